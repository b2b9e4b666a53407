"""Automatic sharding: an integer program over the same rules and prices chooses all specs.

Values that elementwise operations and loops tie to one shape share one choice of a spec; every
other operation has one choice of how its factors are split. The cost of a choice is the time of its
computation; between an operation and a value stands the cheapest path between the layout that the
one computes in and the spec of the other. With ``y`` the specs and ``z`` the splits, one of each
being 1, and ``e`` the flow between them,

    minimize  c_z z + c_y y + c_e e,   sum_s e[l, s] = sum of the z that need layout l,
                                       sum_l e[l, s] = y[s],

the flows are integers where the choices are. The result is partitioned like any program, and so are
the hand-made specs it is compared with; the cheapest of all these is returned.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxjax._base.lazy import scipy_optimize, scipy_sparse
from maxjax._ir.control_flow import bodies_of, iterations
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from maxjax._sharding.assignment import Assignment, computed_rule, finished
from maxjax._sharding.cost_model import CostModel
from maxjax._sharding.engine import (
    Partitioned,
    Specs,
    fixed_specs,
    partition,
    partition_normalized,
    unconstrained,
)
from maxjax._sharding.graph import Operation, normalize, operations
from maxjax._sharding.propagate import AGGRESSIVE
from maxjax._sharding.reshard import Layout, cheapest_path
from maxjax._sharding.specs import Axes, Dim, Dims, Mesh, Spec, product, show

_MOST_SPLITS = 64      # of one operation, the cheapest to compute first


@dataclass
class Choice:
    """What automatic sharding chose.

    Attributes:
      partitioned: the program.
      in_specs: the inputs' specs.
      name: which candidate it is: the integer program's or a hand-made one.
      seconds: of every candidate, by the cost model.
    """

    partitioned: Partitioned
    in_specs: tuple[Dims, ...]
    name: str
    seconds: dict[str, float]

    def text(self) -> str:
        lines = [f"chosen: {self.name}", *(
            f"  input {number}: {show(dims)}" for number, dims in enumerate(self.in_specs))]
        lines += [f"  {1e6 * seconds:10.2f} us  {name}"
                  for name, seconds in sorted(self.seconds.items(), key=lambda item: item[1])]
        return "\n".join(lines)


def auto(closed: ClosedJaxpr, mesh: Mesh, *, in_specs: Specs | None = None,
         out_specs: Specs | None = None, by_hand: Mapping[str, Specs] | None = None,
         model: CostModel | None = None, seconds: float = 10.0) -> Choice:
    """Chooses specs for the inputs and everything between.

    Args:
      closed: the program.
      mesh: names and sizes.
      in_specs, out_specs: the specs that are fixed; None where one is free.
      by_hand: specs of the inputs to be compared with.
      model: the prices.
      seconds: the solver's limit.

    Returns:
      The cheapest by the cost model: never dearer than those of ``by_hand``, than replicating all
      values, or than splitting the inputs' first dimensions over one axis.
    """
    model = model or CostModel()
    program = normalize(closed)
    jaxpr = program.jaxpr
    given = list(in_specs or [None] * len(jaxpr.invars))
    fixed = fixed_specs(jaxpr, mesh, given, out_specs, unconstrained, None)
    found: dict[str, Partitioned] = {}
    solution = _solve(jaxpr, mesh, fixed, model, seconds)
    if solution is not None:
        everything = {var: (_closed(dims), "chosen") for var, dims in solution.items()}
        found["integer program"] = partition_normalized(
            program, mesh, everything, out_specs, unconstrained, AGGRESSIVE, model)
        found["integer program, inputs alone"] = partition(
            program, mesh, [_closed(solution[var]) if var in solution else None
                            for var in jaxpr.invars], out_specs, model=model)
    candidates: dict[str, Specs] = dict(by_hand or {})
    candidates["all whole"] = [_closed(((),) * aval.ndim) for aval in program.in_avals]
    for axis, size in mesh.items():
        candidates[f"first dimensions over {axis}"] = [
            _closed(tuple((axis,) if not dim and length % size == 0 else ()
                          for dim, length in enumerate(aval.shape))) for aval in program.in_avals]
    for name, specs in candidates.items():
        complete = [old if old is not None else new for old, new in zip(given, specs, strict=True)]
        found[name] = partition(program, mesh, complete, out_specs, model=model)
    best = min(found, key=lambda name: found[name].report.seconds)
    return Choice(found[best], found[best].in_specs, best,
                  {name: made.report.seconds for name, made in found.items()})


def _closed(dims: Dims) -> Spec:
    return Spec(tuple(Dim(axes) for axes in dims))


# --- the integer program --------------------------------------------------------------------------


def _layouts(shape: tuple[int, ...], mesh: Mesh) -> Iterator[Dims]:
    """Every way to split a value: each axis along some dimension or none, in the mesh's order."""
    axes = [axis for axis, size in mesh.items() if size > 1]
    for targets in itertools.product((None, *range(len(shape))), repeat=len(axes)):
        dims = tuple(
            tuple(axis for axis, target in zip(axes, targets, strict=True) if target == dim)
            for dim in range(len(shape)))
        if all(size % product(here, mesh) == 0 for size, here in zip(shape, dims, strict=True)):
            yield dims


def _splits(eqn: JaxprEqn, mesh: Mesh, model: CostModel) -> list[Assignment]:
    """Every way to split an operation's factors, those that compute fastest first."""
    rule = computed_rule(eqn)
    free = [factor for factor, size in rule.sizes.items()
            if factor not in rule.replicated and size > 1]
    axes = [axis for axis, size in mesh.items() if size > 1]
    found: list[Assignment] = []
    for targets in itertools.product((None, *free), repeat=len(axes)):
        split: dict[Any, Axes] = {}
        for axis, factor in zip(axes, targets, strict=True):
            if factor is not None:
                split[factor] = (*split.get(factor, ()), axis)
        if any(rule.sizes[factor] % product(here, mesh) for factor, here in split.items()):
            continue
        assignment = finished(eqn, rule, split, mesh)
        if assignment.axes == split:
            assignment.seconds = model.computation(eqn, product(assignment.used, mesh))
            found.append(assignment)
    found.sort(key=lambda assignment: assignment.seconds)
    return [*found[:_MOST_SPLITS - 1], *found[-1:]] if len(found) > _MOST_SPLITS else found


def _is_tie(operation: Operation) -> bool:
    """Whether all values have the same dimensions, each its own factor."""
    rule = operation.rule
    if rule.replicated or rule.reduction or not operation.values:
        return False
    first = operation.values[0][1]
    shape = operation.values[0][0].aval.shape
    return all(len(dim) == 1 for dim in first) and all(
        factors == first and var.aval.shape == shape for var, factors in operation.values)


@dataclass
class _Program:
    """Columns and rows of the integer program."""

    costs: list[float] = field(default_factory=list)
    integral: list[int] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)

    def column(self, cost: float, integral: bool) -> int:
        self.costs.append(cost)
        self.integral.append(int(integral))
        return len(self.costs) - 1

    def row(self, terms: Sequence[tuple[int, float]], total: float) -> None:
        self.entries += [(len(self.sums), column, value) for column, value in terms]
        self.sums.append(total)

    def solve(self, seconds: float) -> np.ndarray | None:
        rows, columns, values = zip(*self.entries, strict=True)
        matrix = scipy_sparse.csr_matrix(
            (values, (rows, columns)), (len(self.sums), len(self.costs)))
        scale = max(self.costs) or 1.0
        result = scipy_optimize.milp(
            np.asarray(self.costs) / scale, integrality=np.asarray(self.integral),
            bounds=scipy_optimize.Bounds(0, 1),
            constraints=scipy_optimize.LinearConstraint(matrix, self.sums, self.sums),
            options={"time_limit": seconds, "mip_rel_gap": 1e-4})
        return result.x


class _Ties:
    """Sets of variables that are split alike; each is known by one of them, its head."""

    def __init__(self, jaxpr: Jaxpr, found: Sequence[Operation]) -> None:
        self._above: dict[Var, Var] = {}
        for operation in found:
            for var, _ in operation.values:
                self.head(var)
                if _is_tie(operation):
                    self._above[self.head(var)] = self.head(operation.values[0][0])
        for var in (*jaxpr.invars, *jaxpr.constvars):
            self.head(var)

    def head(self, var: Var) -> Var:
        while self._above.setdefault(var, var) is not var:
            var = self._above[var]
        return var

    def __iter__(self) -> Iterator[Var]:
        return iter(self._above)


class _Formulation:
    """Which layout each value has, and which split each operation, as an integer program.

    Exactly one layout is picked for each set of tied values, and one split for each operation. A
    value flows from the layout that it has to the one that an operation's split wants, or from the
    one that a split gives, at the price of the path between the two.
    """

    def __init__(self, ties: _Ties, demands: Mapping[Var, Dims], mesh: Mesh, model: CostModel):
        self.ties = ties
        self.mesh = mesh
        self.model = model
        self.items = tuple(mesh.items())
        self.problem = _Program()
        self.options: dict[Var, dict[Dims, int]] = {}
        for var in ties:
            if ties.head(var) is var and var.aval.ndim:
                wanted = demands.get(var)
                every = [wanted] if wanted is not None else list(_layouts(var.aval.shape, mesh))
                self.options[var] = {dims: self.problem.column(0.0, True) for dims in every}
                self._pick_one(self.options[var].values())

    def _pick_one(self, columns: Iterable[int]) -> None:
        self.problem.row([(column, 1.0) for column in columns], 1.0)

    def add(self, operation: Operation, often: int) -> None:
        """An operation that runs so often."""
        eqn = operation.eqn
        if _is_tie(operation):
            if eqn is not None:
                self._add_tie(eqn, operation.values[0][0], often)
        elif eqn is None:
            _join_stacked(self.problem, operation, self.options, self.ties.head)
        else:
            self._add_split(eqn, often)

    def _add_tie(self, eqn: JaxprEqn, var: Var, often: int) -> None:
        """All values have one layout: it costs what computing them so split costs."""
        for dims, column in self.options[self.ties.head(var)].items():
            shards = product([axis for axes in dims for axis in axes], self.mesh)
            self.problem.costs[column] += often * self.model.computation(eqn, shards)

    def _add_split(self, eqn: JaxprEqn, often: int) -> None:
        splits = _splits(eqn, self.mesh, self.model)
        columns = [self.problem.column(often * split.seconds, True) for split in splits]
        self._pick_one(columns)
        for number, atom in enumerate(eqn.invars):
            self._flow(atom, [Layout(split.operands[number]) for split in splits], columns,
                       often, inwards=True)
        for number, var in enumerate(eqn.outvars):
            layouts = [Layout(split.results[number], split.result.unreduced) for split in splits]
            self._flow(var, layouts, columns, often, inwards=False)

    def _flow(self, atom: Atom, layouts: Sequence[Layout], columns: Sequence[int], often: int,
              inwards: bool) -> None:
        """Joins a value's layouts to those of it that an operation's splits have.

        Args:
          layouts: of each split.
          columns: of the splits.
          inwards: whether the value is an operand.
        """
        if not isinstance(atom, Var) or not any(x.dims or x.unreduced for x in layouts):
            return
        values = self.options.get(self.ties.head(atom)) if atom.aval.ndim else None
        if values is None:          # a scalar: only its reduction costs something
            for layout, column in zip(layouts, columns, strict=True):
                self.problem.costs[column] += self._price(layout, Layout(()), atom, often)
            return
        flows: dict[Dims, list[int]] = {dims: [] for dims in values}
        for layout in dict.fromkeys(layouts):
            for dims, flow in flows.items():
                ends = (Layout(dims), layout) if inwards else (layout, Layout(dims))
                flow.append(self.problem.column(self._price(*ends, atom, often), False))
            takers = [column for column, other in zip(columns, layouts, strict=True)
                      if other == layout]
            self._balance([flow[-1] for flow in flows.values()], takers)
        for dims, flow in flows.items():
            self._balance(flow, [values[dims]])

    def _price(self, source: Layout, target: Layout, atom: Atom, often: int) -> float:
        return often * cheapest_path(source, target, atom.aval.nbytes, self.items, self.model)[0]

    def _balance(self, columns: Iterable[int], others: Iterable[int]) -> None:
        """The columns sum to what the others sum to."""
        self.problem.row([*((column, 1.0) for column in columns),
                          *((column, -1.0) for column in others)], 0.0)


def _solve(jaxpr: Jaxpr, mesh: Mesh, fixed: Mapping[Var, tuple[Spec, str]], model: CostModel,
           seconds: float) -> dict[Var, Dims] | None:
    """The spec of every variable, or None if the solver finds nothing in its time."""
    found = operations(jaxpr)
    times = _times(jaxpr)
    ties = _Ties(jaxpr, found)
    demands: dict[Var, Dims] = {}
    for var, (spec, _) in fixed.items():
        if not any(dim.open for dim in spec.dims):
            demands.setdefault(ties.head(var), spec.axes)
    formulation = _Formulation(ties, demands, mesh, model)
    for operation in found:
        formulation.add(operation, times.get(id(operation.eqn), 1))
    solution = formulation.problem.solve(seconds)
    if solution is None:
        return None
    picked = {var: max(columns, key=lambda dims: solution[columns[dims]])
              for var, columns in formulation.options.items()}
    return {var: picked[ties.head(var)] for var in ties if var.aval.ndim}


def _join_stacked(problem: _Program, operation: Operation, options: Mapping[Var, dict[Dims, int]],
                  head: Callable[[Var], Var]) -> None:
    """A scan's stacked value is split as its slices are, and not along the loop."""
    first, second = (var for var, _ in operation.values) if len(operation.values) == 2 else (
        None, None)
    if first is None or second is None or first.aval.ndim == second.aval.ndim:
        return
    stacked, single = ((first, second) if first.aval.ndim > second.aval.ndim
                       else (second, first))
    wide, narrow = options[head(stacked)], options[head(single)]
    for dims, column in narrow.items():
        same = wide.get(((), *dims))
        problem.row([(column, 1.0), *([(same, -1.0)] if same is not None else [])], 0.0)


def _times(jaxpr: Jaxpr, often: int = 1) -> dict[int, int]:
    """How often each equation runs, by id: the product of the lengths of the scans around it."""
    found: dict[int, int] = {}
    for eqn in jaxpr.eqns:
        found[id(eqn)] = often
        for body in bodies_of(eqn):
            found.update(_times(body.jaxpr, often * iterations(eqn)))
    return found
