"""From a program of global values and their shardings to the program of one shard.

The result is a jaxpr of local shapes under named axes, one for each mesh axis, with the collectives
that move values between the layouts in which they are made, kept and used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from maxjax._base.source import inherited_source_lines, scopes
from maxjax._higher_order.cond import cond_p
from maxjax._higher_order.debugging import ShardingInspector
from maxjax._higher_order.scan import scan_p
from maxjax._higher_order.while_loop import while_p
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Var
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import literal_operand, trace_to_jaxpr
from maxjax._sharding.assignment import Assignment, assign
from maxjax._sharding.combine import joined_reductions
from maxjax._sharding.cost_model import CostModel, link_bytes
from maxjax._sharding.local import apply_local, apply_step, on_first
from maxjax._sharding.reshard import Layout, Step, cheapest_path
from maxjax._sharding.specs import Dims, Mesh, local_aval, product
from maxjax._sharding.unreduced import accumulators, unreduced_values
from maxjax._transforms.simplify import has_effects


@dataclass(frozen=True)
class Collective:
    """One collective of the partitioned program.

    Attributes:
      kind: the primitive, of ``cost.KINDS``.
      axes: the mesh axes that it runs over.
      nbytes: of one shard of its operand.
      links: the bytes that each link carries.
      seconds: by the cost model.
      var: the variable of the original program whose value it moves.
      reason: what asked for the move.
      before, after: the layouts of the value.
      times: how often it runs: the lengths of the scans around it; a while loop counts as one.
      also: the variables that are reduced together with the first one.
    """

    kind: str
    axes: tuple[str, ...]
    nbytes: int
    links: float
    seconds: float
    var: Var
    reason: str
    before: Layout
    after: Layout
    times: int = 1
    also: tuple[Var, ...] = ()


def _joined(members: Sequence[Collective], owner: Partitioner) -> Collective:
    first = members[0]
    nbytes = sum(member.nbytes for member in members)
    count = product(first.axes, owner.mesh)
    return replace(
        first, nbytes=nbytes, links=link_bytes(first.kind, nbytes, count),
        seconds=owner.model.collective(first.kind, nbytes, count),
        reason="; ".join(dict.fromkeys(member.reason for member in members)),
        also=tuple(member.var for member in members[1:]))


@dataclass
class Value:
    """The layouts in which a value is at hand, the first the one it was made in."""

    versions: dict[Layout, Any]
    nbytes: int


@dataclass
class Partitioner:
    """Writes the program of one shard.

    Args:
      mesh: names and sizes.
      dims_of: the sharding of each variable.
      model: prices.
      constrained: equations that only fix a sharding.
    """

    mesh: Mesh
    dims_of: Callable[[Atom], Dims]
    model: CostModel
    constrained: Callable[[JaxprEqn], Any]
    collectives: list[Collective] = field(default_factory=list)
    assignments: dict[JaxprEqn, Assignment] = field(default_factory=dict)
    computation: float = 0.0
    inspected: list[tuple[Callable[[Any], None], Dims]] = field(default_factory=list)
    _known: dict[Any, Assignment] = field(default_factory=dict)

    def assign(self, eqn: JaxprEqn) -> Assignment:
        """The equation's assignment: found once for all that are alike, as those of many layers."""
        atoms = [*eqn.invars, *eqn.outvars]
        key = (eqn.primitive, tuple(eqn.params.items()), tuple(
            (atom.aval, self.dims_of(atom), atoms.index(atom)) for atom in atoms))
        try:
            known = self._known.get(key)
        except TypeError:      # a parameter that has no hash
            return assign(eqn, self.dims_of, self.mesh, self.model)
        if known is None:
            known = self._known[key] = assign(eqn, self.dims_of, self.mesh, self.model)
        return known

    def run(self, closed: ClosedJaxpr, in_layouts: Sequence[Layout],
            out_layouts: Sequence[Layout], times: int = 1) -> ClosedJaxpr:
        """The jaxpr of a shard whose inputs and outputs have the given layouts."""
        jaxpr = closed.jaxpr
        body = _Body(self, jaxpr, in_layouts, out_layouts, times)
        avals = [local_aval(var.aval, layout.dims, self.mesh)
                 for var, layout in zip(jaxpr.invars, in_layouts, strict=True)]

        def function(*args: Any) -> list[Any]:
            body.define_all(jaxpr.constvars, closed.consts, [
                Layout(((),) * var.aval.ndim) for var in jaxpr.constvars])
            body.define_all(jaxpr.invars, args, in_layouts)
            for number, var in enumerate(jaxpr.invars):
                body.settle(var, f"input {number} of the program" if times == 1 else "the body")
            for eqn in jaxpr.eqns:
                scopes.source_line = eqn.source
                body.equation(eqn)
            return [body.read(atom, layout, f"output {number}")
                    for number, (atom, layout) in enumerate(
                        zip(jaxpr.outvars, out_layouts, strict=True))]

        with inherited_source_lines():
            result = trace_to_jaxpr(function, avals, jaxpr.debug_info)
        live, closed = _without_dead_code(result)
        closed, together = joined_reductions(closed, self.model)
        moves = {var: collective for var, collective in body.moves if var in live}
        for members in together.values():
            moves[members[-1]] = _joined([moves.pop(var) for var in members], self)
        self.collectives += moves.values()
        return closed


class _Body:
    """One jaxpr while it is being partitioned."""

    def __init__(self, owner: Partitioner, jaxpr: Jaxpr, in_layouts: Sequence[Layout],
                 out_layouts: Sequence[Layout], times: int):
        self.owner = owner
        self.mesh = owner.mesh
        self.items = tuple(owner.mesh.items())
        self.times = times
        self.values: dict[Var, Value] = {}
        self.moves: list[tuple[Var, Collective]] = []
        self.assigned = owner.assignments
        for eqn in jaxpr.eqns:
            if (eqn not in self.assigned and not eqn.primitive.control_flow
                    and owner.constrained(eqn) is None):
                self.assigned[eqn] = owner.assign(eqn)
        asked = {atom: dict(layout.unreduced) for atom, layout in zip(
            jaxpr.outvars, out_layouts, strict=True) if isinstance(atom, Var) and layout.unreduced}
        given = {var: dict(layout.unreduced) for var, layout in zip(
            jaxpr.invars, in_layouts, strict=True) if layout.unreduced}
        self.unreduced, self.through = unreduced_values(
            jaxpr, self._made, self._used, self._axes_of, asked, self._price, given)

    def _made(self, eqn: JaxprEqn) -> dict[str, str]:
        found = self.assigned.get(eqn)
        return found.unreduced if found is not None else {}

    def _used(self, eqn: JaxprEqn) -> set[str]:
        found = self.assigned.get(eqn)
        return found.used if found is not None else set(self.mesh)

    def _axes_of(self, var: Var) -> set[str]:
        return {axis for axes in self.owner.dims_of(var) for axis in axes}

    def _price(self, var: Var) -> float:
        shards = product(self._axes_of(var), self.mesh)
        return self.owner.model.collective("psum", var.aval.nbytes / shards, 2)

    # --- values ---

    def define_all(self, variables: Sequence[Var], values: Sequence[Any],
                   layouts: Sequence[Layout]) -> None:
        for var, value, layout in zip(variables, values, layouts, strict=True):
            self.values[var] = Value({layout: value}, var.aval.nbytes)

    def settle(self, var: Var, reason: str) -> None:
        """Brings a value into the layout that propagation gave it, unreduced along the axes along
        which it stays so."""
        self.read(var, self.layout_of(var), reason)

    def layout_of(self, atom: Atom) -> Layout:
        axes = self.unreduced.get(atom, {}) if isinstance(atom, Var) else {}
        return Layout(self.owner.dims_of(atom), tuple(sorted(axes.items())))

    def read(self, atom: Atom, layout: Layout, reason: str) -> Any:
        """An atom in some layout, from the version of it that is nearest."""
        if not isinstance(atom, Var):
            return literal_operand(atom)
        value = self.values[atom]
        if layout not in value.versions:
            paths = [
                (*cheapest_path(start, layout, value.nbytes, self.items, self.owner.model), start)
                for start in value.versions if set(layout.unreduced) <= set(start.unreduced)]
            _, steps, start = min(paths, key=lambda found: found[0])
            x = value.versions[start]
            for step in steps:
                results = apply_step(step, x, self.mesh)
                self.note(step, results, atom, reason, start)
                x = results[-1]
                start = step.layout
                value.versions.setdefault(start, x)
        return value.versions[layout]

    def note(self, step: Step, results: Sequence[Any], atom: Var, reason: str,
             before: Layout) -> None:
        axes = tuple(reversed(step.axes)) if step.kind == "all_gather" else step.axes
        groups = [axes] if len(results) == 1 else [(axis,) for axis in axes]
        nbytes = step.nbytes
        for group, result in zip(groups, results, strict=True):
            count = product(group, self.mesh)
            self.moves.append((result._var, Collective(
                step.kind, group, nbytes, link_bytes(step.kind, nbytes, count),
                self.owner.model.collective(step.kind, nbytes, count), atom, reason, before,
                step.layout, self.times)))
            if step.kind == "all_gather":
                nbytes *= count
            elif step.kind == "reduce_scatter":
                nbytes //= count

    # --- equations ---

    def equation(self, eqn: JaxprEqn) -> None:
        loop = LOOPS.get(eqn.primitive)
        callback = eqn.params.get("callback")
        if loop is not None:
            loop(self, eqn)
        elif isinstance(callback, ShardingInspector):
            self.owner.inspected.append((callback.function, self.owner.dims_of(eqn.invars[0])))
        elif self.owner.constrained(eqn) is not None:
            source, = eqn.invars
            layout = Layout(self.owner.dims_of(eqn.outvars[0]))
            self.define_all(eqn.outvars, [self.read(source, layout, "a constraint")], [layout])
        else:
            self.compute(eqn, self.assigned[eqn])

    def compute(self, eqn: JaxprEqn, assignment: Assignment) -> None:
        name = eqn.primitive.name
        staying = self.through[eqn]
        operands = []
        for number, (atom, dims) in enumerate(zip(eqn.invars, assignment.operands, strict=True)):
            here = self.unreduced.get(atom, {}) if isinstance(atom, Var) else {}
            keep = tuple(sorted((axis, kind) for axis, kind in here.items() if axis in staying))
            operands.append(self.read(atom, Layout(dims, keep), f"operand {number} of {name}"))
        results = apply_local(eqn, assignment.rule, operands, assignment.operands,
                              assignment.results, self.mesh)
        made = tuple(sorted({**assignment.unreduced, **staying}.items()))
        self.define_all(eqn.outvars, results, [Layout(dims, made) for dims in assignment.results])
        for var in eqn.outvars:
            self.settle(var, f"result of {name}")
        self.owner.computation += self.times * self.owner.model.computation(
            eqn, product(assignment.used, self.mesh))

    def operands(self, eqn: JaxprEqn, layouts: Sequence[Layout]) -> list[Any]:
        return [self.read(atom, layout, f"operand {number} of {eqn.primitive.name}")
                for number, (atom, layout) in enumerate(zip(eqn.invars, layouts, strict=True))]

    def finish(self, eqn: JaxprEqn, results: Sequence[Any], layouts: Sequence[Layout]) -> None:
        self.define_all(eqn.outvars, results, layouts)
        for var in eqn.outvars:
            self.settle(var, f"result of {eqn.primitive.name}")

    def plain(self, atoms: Sequence[Atom]) -> list[Layout]:
        return [Layout(self.owner.dims_of(atom)) for atom in atoms]

    def inner(self, closed: ClosedJaxpr, in_layouts: Sequence[Layout],
              out_layouts: Sequence[Layout], times: int = 1) -> ClosedJaxpr:
        return self.owner.run(closed, in_layouts, out_layouts, self.times * times)


def _stacked(layouts: Sequence[Layout]) -> list[Layout]:
    return [replace(layout, dims=((), *layout.dims)) for layout in layouts]


def _unreduced_carries(body: _Body, jaxpr: Jaxpr, first: int, carries: int, ins: Sequence[Layout],
                 outs: Sequence[Layout], times: int) -> dict[int, Layout]:
    """The carries of a scan that may stay unreduced until after the loop, with their layouts.

    A sum over iterations of unreduced values, such as the gradient of what all iterations share, is
    reduced once.
    """
    found: dict[int, Layout] = {}
    for number in accumulators(jaxpr, jaxpr.invars[first:first + carries],
                               jaxpr.outvars[:carries]):
        layout = ins[first + number]
        taken = {axis for axes in layout.dims for axis in axes}
        for axis, size in body.mesh.items():
            if axis in taken or size == 1:
                continue
            tried = replace(layout, unreduced=tuple(sorted([
                *found.get(number, layout).unreduced, (axis, "add")])))
            trial = {**found, number: tried}
            inside = _Body(body.owner, jaxpr, _with(ins, trial, first), _with(outs, trial), times)
            if all(isinstance(var, Var)
                   and dict(inside.unreduced.get(var, {})) == dict(one.unreduced)
                   for carry, one in trial.items()
                   for var in (jaxpr.invars[first + carry], jaxpr.outvars[carry])):
                found = trial
    return found


def _with(layouts: Sequence[Layout], changes: dict[int, Layout], first: int = 0) -> list[Layout]:
    return [changes.get(number - first, layout) for number, layout in enumerate(layouts)]


def _scan(body: _Body, eqn: JaxprEqn) -> None:
    params = eqn.params
    inner = params["jaxpr"].jaxpr
    consts, carries = params["num_consts"], params["num_carry"]
    fixed = consts + carries
    ins = body.plain(inner.invars)
    outs = [*ins[consts:fixed], *body.plain(inner.outvars[carries:])]
    operands = body.operands(eqn, [*ins[:fixed], *_stacked(ins[fixed:])])
    accumulated = _unreduced_carries(body, inner, consts, carries, ins, outs, params["length"])
    for number, layout in accumulated.items():      # the start counts once
        axes = tuple(axis for axis, _ in layout.unreduced)
        operands[consts + number] = on_first(operands[consts + number], axes, body.mesh)
    ins, outs = _with(ins, accumulated, consts), _with(outs, accumulated)
    closed = body.inner(params["jaxpr"], ins, outs, params["length"])
    results = eqn.primitive.bind(*operands, **{**params, "jaxpr": closed})
    body.finish(eqn, results, [*outs[:carries], *_stacked(outs[carries:])])


def _while(body: _Body, eqn: JaxprEqn) -> None:
    params = eqn.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    cond, step = params["cond_jaxpr"], params["body_jaxpr"]
    carry = body.plain(step.jaxpr.invars[second:])
    cond_consts = body.plain(cond.jaxpr.invars[:first])
    consts = body.plain(step.jaxpr.invars[:second])
    operands = body.operands(eqn, [*cond_consts, *consts, *carry])
    results = eqn.primitive.bind(*operands, **{
        **params, "cond_jaxpr": body.inner(cond, [*cond_consts, *carry], [Layout(())]),
        "body_jaxpr": body.inner(step, [*consts, *carry], carry)})
    body.finish(eqn, results, carry)


def _cond(body: _Body, eqn: JaxprEqn) -> None:
    branches = eqn.params["branches"]
    ins = body.plain(eqn.invars[1:])
    outs = body.plain(eqn.outvars)
    operands = body.operands(eqn, [Layout(()), *ins])
    results = eqn.primitive.bind(*operands, branches=tuple(
        body.inner(branch, ins, outs) for branch in branches))
    body.finish(eqn, results, outs)


LOOPS: dict[Primitive, Callable[[_Body, JaxprEqn], None]] = {
    scan_p: _scan, while_p: _while, cond_p: _cond}


def _without_dead_code(closed: ClosedJaxpr) -> tuple[set[Var], ClosedJaxpr]:
    """Drops equations that nothing needs; those that stay are not changed."""
    jaxpr = closed.jaxpr
    live = {atom for atom in jaxpr.outvars if isinstance(atom, Var)}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if live.isdisjoint(eqn.outvars) and not has_effects(eqn):
            continue
        live.update(atom for atom in eqn.invars if isinstance(atom, Var))
        eqns.append(eqn.replace(outvars=[
            var if var in live else DropVar(var.aval) for var in eqn.outvars]))
    constants = [(var, value) for var, value in zip(jaxpr.constvars, closed.consts, strict=True)
                 if var in live]
    return live, ClosedJaxpr(
        jaxpr.replace(constvars=[var for var, _ in constants], eqns=eqns[::-1]),
        [value for _, value in constants])
