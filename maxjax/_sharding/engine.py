"""The engine's entry: a program, a mesh and specs in; the program of one shard and a report out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maxjax._base.meshes import Mesh as DeviceMesh
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from maxjax._ir.liveness import variables
from maxjax._ir.printing import Names
from maxjax._sharding.cost_model import CostModel
from maxjax._sharding.custom_partitioning import with_rules
from maxjax._sharding.graph import all_equations, normalize, operations
from maxjax._sharding.partitioner import Partitioner, is_manual
from maxjax._sharding.projection import project
from maxjax._sharding.propagate import AGGRESSIVE, Propagation
from maxjax._sharding.report import Report, Row
from maxjax._sharding.reshard import Layout
from maxjax._sharding.shard_map import dims_of, shard_map_p
from maxjax._sharding.specs import Atoms, Axes, Dim, Dims, Spec, check, renamed

Specs = Sequence[Spec | None]
ConstraintOf = Callable[[JaxprEqn], Spec | None]


@dataclass(frozen=True)
class Partitioned:
    """The program of one shard.

    Attributes:
      jaxpr: local shapes, under the named axes of ``mesh``.
      mesh: the axes that the program communicates over: those of the mesh that was given, but
        where a value is split over a part of an axis, the parts: ``x:(1)2``, ``x:(2)4``.
      in_specs, out_specs: how the inputs must be split and the outputs are, in axes of ``mesh``.
      report: each value's sharding, each collective.
      inspected: functions to call with the sharding of a value, and that sharding.
    """

    jaxpr: ClosedJaxpr
    mesh: dict[str, int]
    in_specs: tuple[Dims, ...]
    out_specs: tuple[Dims, ...]
    report: Report
    inspected: Sequence[tuple[Callable[[Any], None], Dims]] = ()


def partition(closed: ClosedJaxpr, mesh: Mapping[str, int], in_specs: Specs,
              out_specs: Specs | None = None, *, constraint_of: ConstraintOf | None = None,
              strategy: str = AGGRESSIVE, model: CostModel | None = None,
              names: Sequence[str] | None = None,
              devices: DeviceMesh | None = None, keeps_shards: bool = False) -> Partitioned:
    """Propagates shardings through a program and writes the program of one shard.

    Args:
      closed: the program.
      mesh: names and sizes of the axes, in order.
      in_specs: one for each input; None: propagation decides.
      out_specs: likewise for the outputs.
      constraint_of: gives the spec of an equation that is an identity with a fixed sharding, and
        None for all others.
      strategy: ``"aggressive"`` or ``"basic"`` (``propagate``).
      model: the prices that decide between collectives.
      names: what messages call the inputs.
      devices: the mesh itself, for functions whose callers divide them.
      keeps_shards: the body of a ``shard_map`` over all axes of the mesh becomes a part of the
        program of one shard as it is.

    Raises:
      ValueError: a spec does not fit its value: rank, unknown axis, an axis used twice, or a
        dimension that its axes do not divide.

    >>> from maxjax._ir.staging import trace_to_jaxpr
    >>> from maxjax._ir.types import ShapedArray
    >>> square = ShapedArray((4, 4), np.float32)
    >>> program = trace_to_jaxpr(lambda x, y: [jnp.dot(x, y)], [square, square])
    >>> partition(program, {"x": 2}, [Spec.of(None, "x"), Spec.of("x")]).report.counts()
    {'psum': 1}
    """
    stays = functools.partial(is_manual, sizes=tuple(mesh.items())) if keeps_shards else None
    program = normalize(closed, stays)
    if devices is not None:
        program = with_rules(program, devices)
    constraint = constraint_of or unconstrained
    fixed = fixed_specs(program.jaxpr, mesh, in_specs, out_specs, constraint, names)
    return partition_normalized(program, mesh, fixed, out_specs, constraint, strategy,
                                model or CostModel(), devices)


def partition_normalized(program: ClosedJaxpr, mesh: Mapping[str, int],
                         fixed: Mapping[Var, tuple[Spec, str]], out_specs: Specs | None,
                         constraint: ConstraintOf, strategy: str, model: CostModel,
                         devices: DeviceMesh | None = None) -> Partitioned:
    """``partition`` of a normalized program; the specs of any variables may be given."""
    atoms = Atoms(mesh)
    jaxpr = program.jaxpr
    found = operations(jaxpr)
    propagation = Propagation(found, {
        var: (atoms.spec(spec), origin) for var, (spec, origin) in fixed.items()},
        atoms.sizes, strategy)

    asked: dict[int, tuple[Axes, ...]] = {}      # by output, which one variable may be twice
    for number, (atom, spec) in enumerate(zip(
            jaxpr.outvars, out_specs or [None] * len(jaxpr.outvars), strict=True)):
        if spec is not None and not any(dim.open for dim in spec.dims):
            asked[number] = atoms.spec(check(spec, atom.aval, mesh, f"output {number}")).axes

    def lists() -> Iterator[Axes]:
        for dims in asked.values():
            yield from dims
        for state in propagation.states.values():
            yield from state.dims
        for operation in found:
            for var, factors in operation.values:
                state = propagation.states[var]
                if state.axes:
                    yield from project(tuple(state.dims), factors, operation.rule.sizes,
                                       atoms.sizes).values()

    joined = atoms.coarsened(dict.fromkeys(lists()))
    new_mesh = atoms.joined_mesh(joined)
    known: dict[Var, Dims] = {
        var: tuple(renamed(axes, joined) for axes in state.dims)
        for var, state in propagation.states.items()}

    def layout_of(atom: Atom) -> Dims:
        return known[atom] if atom in known else ((),) * atom.aval.ndim

    partitioner = Partitioner(new_mesh, layout_of, model, constraint, devices)
    ins = [layout_of(var) for var in jaxpr.invars]
    outs = [tuple(renamed(axes, joined) for axes in asked[number]) if number in asked
            else layout_of(atom) for number, atom in enumerate(jaxpr.outvars)]
    local = partitioner.run(program, list(map(Layout, ins)), list(map(Layout, outs)))
    variables = Names(jaxpr)
    rows = [_row(var, variables, propagation, known) for var in _variables(jaxpr)]
    report = Report(dict(mesh), new_mesh, rows, partitioner.collectives, partitioner.computation,
                    variables)
    return Partitioned(local, new_mesh, tuple(ins), tuple(outs), report, partitioner.inspected)


def unconstrained(eqn: JaxprEqn) -> None:
    return None


def fixed_specs(jaxpr: Jaxpr, mesh: Mapping[str, int], in_specs: Specs, out_specs: Specs | None,
                constraint: ConstraintOf, names: Sequence[str] | None
                ) -> dict[Var, tuple[Spec, str]]:
    """The specs that are given, and where each is from; the first for a variable counts."""
    fixed: dict[Var, tuple[Spec, str]] = {}

    def give(var: Atom, spec: Spec | None, what: str, origin: str) -> None:
        if spec is not None:
            spec = check(spec, var.aval, mesh, what)
            if isinstance(var, Var):
                fixed.setdefault(var, (spec, origin))

    for number, (var, spec) in enumerate(zip(jaxpr.invars, in_specs, strict=True)):
        name = names[number] if names is not None else f"input {number}"
        give(var, spec, name, "given")
    for eqn in all_equations(jaxpr):
        if eqn.primitive is shard_map_p:
            # What propagation leaves open of operands is as the body takes them.
            for open_, atoms, specs in ((True, eqn.invars, eqn.params["in_specs"]),
                                        (False, eqn.outvars, eqn.params["out_specs"])):
                for atom, given in zip(atoms, specs, strict=True):
                    give(atom, Spec(tuple(Dim(axes, open_)
                                          for axes in dims_of(given, atom.aval.ndim))),
                         "an operand of shard_map" if open_ else "a result of shard_map",
                         "shard_map")
            continue
        spec = constraint(eqn)
        if spec is not None:
            give(eqn.outvars[0], spec, f"the constrained value {eqn.outvars[0].aval.str_short()}",
                 "constraint")
    for number, (atom, spec) in enumerate(zip(
            jaxpr.outvars, out_specs or [None] * len(jaxpr.outvars), strict=True)):
        give(atom, spec, f"output {number}", "asked of the output")
    return fixed


def _variables(jaxpr: Jaxpr) -> Iterator[tuple[Var, str, Sequence[Atom]]]:
    """The variables, with what makes each and of what."""
    for var in jaxpr.constvars:
        yield var, "constant", ()
    for var in jaxpr.invars:
        yield var, "input", ()
    for eqn in all_equations(jaxpr):
        for var in eqn.outvars:
            yield var, eqn.primitive.name, eqn.invars


def _row(made: tuple[Var, str, Sequence[Atom]], names: Names, propagation: Propagation,
         known: Mapping[Var, Dims]) -> Row:
    var, maker, operands = made
    sources = tuple(dict.fromkeys(names.of(var) for var in variables(operands)))
    state = propagation.states.get(var)
    origins = tuple(state.origins) if state is not None else ()
    return Row(names.of(var), var.aval, maker, known.get(var, ((),) * var.aval.ndim), origins,
               sources)
