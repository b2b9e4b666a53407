"""From a program of global values and their shardings to the program of one shard.

The result is a jaxpr of local shapes under named axes, one for each mesh axis, with the collectives
that move values between the layouts in which they are made, kept and used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from maxjax._base.meshes import Mesh as DeviceMesh
from maxjax._base.source import inherited_source_lines, scopes
from maxjax._higher_order.debugging import ShardingInspector
from maxjax._ir.control_flow import Role, Structure, structure_of, with_bodies
from maxjax._ir.evaluate import eval_jaxpr, literal_operand
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.liveness import eliminate_dead_code, read_variables
from maxjax._ir.staging import DynamicJaxprTracer, trace_to_jaxpr
from maxjax._ir.trace import Value
from maxjax._sharding.assignment import Assignment, assign
from maxjax._sharding.combine import joined_reductions
from maxjax._sharding.cost_model import CostModel, link_bytes
from maxjax._sharding.custom_partitioning import custom_partitioning_p, division_of
from maxjax._sharding.local import apply_local, apply_step, on_first
from maxjax._sharding.reshard import Layout, Step, cheapest_path
from maxjax._sharding.shard_body import only_types, runnable
from maxjax._sharding.shard_map import check_effects, dims_of, shard_map_p
from maxjax._sharding.specs import Dims, Mesh, local_aval, product
from maxjax._sharding.unreduced import accumulators, unreduced_values


@dataclass(frozen=True)
class Collective:
    """One collective of the partitioned program.

    Attributes:
      kind: the primitive, of ``cost_model.KINDS``.
      axes: the mesh axes that it runs over.
      nbytes: of one shard of its operand.
      links: the bytes that each link carries.
      seconds: by the cost model.
      var: the variable of the original program whose value it moves.
      reason: what asked for the move.
      before, after: the layouts of the value.
      times: how often it runs: the product of the lengths of the scans around it; a while loop
        counts as one.
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


def is_manual(eqn: JaxprEqn, sizes: tuple[tuple[Any, int], ...]) -> bool:
    """Whether an equation is a ``shard_map`` over all axes of a mesh of these."""
    if eqn.primitive is not shard_map_p:
        return False
    params = eqn.params
    return (tuple(params["mesh"].shape_tuple) == sizes
            and params["newly_manual_axes"] == frozenset(name for name, _ in sizes)
            and not any(spec.unreduced or spec.reduced
                        for spec in (*params["in_specs"], *params["out_specs"])))


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
class VersionedValue:
    """The layouts in which a value is available; the first is the one it was computed in."""

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
      devices: the mesh itself, if there is one.
    """

    mesh: Mesh
    dims_of: Callable[[Atom], Dims]
    model: CostModel
    constrained: Callable[[JaxprEqn], Any]
    devices: DeviceMesh | None = None
    collectives: list[Collective] = field(default_factory=list)
    assignments: dict[JaxprEqn, Assignment] = field(default_factory=dict)
    computation: float = 0.0
    inspected: list[tuple[Callable[[Any], None], Dims]] = field(default_factory=list)
    _known: dict[Any, Assignment] = field(default_factory=dict)

    def assign(self, eqn: JaxprEqn) -> Assignment:
        """The equation's assignment, found once for all equal equations, as in many layers."""
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

        def function(*args: Value) -> list[Any]:
            body.define_all(jaxpr.constvars, closed.consts, [
                Layout(((),) * var.aval.ndim) for var in jaxpr.constvars])
            body.define_all(jaxpr.invars, args, in_layouts)
            for number, var in enumerate(jaxpr.invars):
                body.settle(var, f"input {number} of the program" if times == 1 else "the body")
            for eqn in jaxpr.eqns:
                scopes.source_line = eqn.source
                body.equation(eqn)
            results = [body.read(atom, layout, f"output {number}")
                       for number, (atom, layout) in enumerate(
                           zip(jaxpr.outvars, out_layouts, strict=True))]
            body.values.clear()      # tracers that are held longer would have leaked
            return results

        with inherited_source_lines():
            result = trace_to_jaxpr(function, avals, jaxpr.debug_info)
        closed = eliminate_dead_code(result, inside=False)
        live = read_variables(closed.eqns, closed.outvars)
        closed, together = joined_reductions(closed, self.model)
        moves = {var: collective for var, collective in body.moves if var in live}
        for members in together.values():
            if any(var not in moves for var in members):
                continue      # of the body of a shard_map
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
        self.values: dict[Var, VersionedValue] = {}
        self.moves: list[tuple[Var, Collective]] = []
        self.assigned = owner.assignments
        for eqn in jaxpr.eqns:
            if (eqn not in self.assigned and eqn.primitive.inner.control_flow is None
                    and eqn.primitive not in (custom_partitioning_p, shard_map_p)
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

    def define_all(self, variables: Sequence[Var], values: Sequence[Value],
                   layouts: Sequence[Layout]) -> None:
        for var, value, layout in zip(variables, values, layouts, strict=True):
            self.values[var] = VersionedValue({layout: value}, var.aval.nbytes)

    def settle(self, var: Var, reason: str) -> None:
        """Brings a value into the layout that propagation gave it, unreduced along the axes along
        which it stays so."""
        self.read(var, self.layout_of(var), reason)

    def layout_of(self, atom: Atom) -> Layout:
        axes = self.unreduced.get(atom, {})
        return Layout(self.owner.dims_of(atom), tuple(sorted(axes.items())))

    def read(self, atom: Atom, layout: Layout, reason: str) -> Any:
        """An atom in a layout, moved from its nearest version."""
        if isinstance(atom, Literal):
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

    def note(self, step: Step, results: Sequence[DynamicJaxprTracer], atom: Var, reason: str,
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
        callback = eqn.params.get("callback")
        if eqn.primitive.inner.control_flow is not None:
            _control_flow(self, eqn)
        elif isinstance(callback, ShardingInspector):
            self.owner.inspected.append((callback.function, self.owner.dims_of(eqn.invars[0])))
        elif self.owner.constrained(eqn) is not None:
            source, = eqn.invars
            layout = Layout(self.owner.dims_of(eqn.outvars[0]))
            self.define_all(eqn.outvars, [self.read(source, layout, "a constraint")], [layout])
        elif eqn.primitive is custom_partitioning_p:
            self.divide(eqn)
        elif eqn.primitive is shard_map_p:
            self.shards(eqn)
        else:
            self.compute(eqn, self.assigned[eqn])

    def divide(self, eqn: JaxprEqn) -> None:
        """An equation that its caller divides; whole where there is no mesh of devices to ask for.
        """
        layouts, results = self.plain(eqn.invars), self.plain(eqn.outvars)
        devices = self.owner.devices
        # The caller knows the axes of its own mesh, not the parts that propagation may make.
        if (devices is None or eqn.params["partition"] is None
                or not self.mesh.items() <= dict(devices.shape_tuple).items()):
            whole = [Layout(((),) * atom.aval.ndim) for atom in (*eqn.invars, *eqn.outvars)]
            operands = self.operands(eqn, whole[:len(eqn.invars)])
            self.finish(eqn, custom_partitioning_p.bind(*operands, **eqn.params),
                        whole[len(eqn.invars):])
            return
        made = division_of(eqn, devices, [layout.dims for layout in layouts],
                           [layout.dims for layout in results])
        operands = self.operands(eqn, list(map(Layout, made.operands)))
        self.finish(eqn, made.local(*operands), list(map(Layout, made.results)))

    def shards(self, eqn: JaxprEqn) -> None:
        """A ``shard_map`` over all axes: its body is the program of one shard already."""
        params = eqn.params
        check_effects(params["jaxpr"], params["mesh"])
        layouts = [Layout(tuple(self.parts(axes) for axes in dims_of(spec, atom.aval.ndim)))
                   for atom, spec in zip((*eqn.invars, *eqn.outvars),
                                         (*params["in_specs"], *params["out_specs"]), strict=True)]
        count = len(eqn.invars)
        body = runnable(params["jaxpr"], params["mesh"].shape_tuple, (), only_types)
        results = eval_jaxpr(body.jaxpr, body.consts, *self.operands(eqn, layouts[:count]))
        self.finish(eqn, results, layouts[count:])

    def parts(self, axes: Sequence[Any]) -> tuple[str, ...]:
        """The axes of a mesh as the parts that propagation may have made of them."""
        return tuple(part for axis in axes for part in self.mesh
                     if part == axis or part.partition(":(")[0] == axis)

    def compute(self, eqn: JaxprEqn, assignment: Assignment) -> None:
        name = eqn.primitive.name
        staying = self.through[eqn]
        operands = []
        for number, (atom, dims) in enumerate(zip(eqn.invars, assignment.operands, strict=True)):
            here = self.unreduced.get(atom, {})
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

    def finish(self, eqn: JaxprEqn, results: Sequence[Value], layouts: Sequence[Layout]) -> None:
        self.define_all(eqn.outvars, results, layouts)
        for var in eqn.outvars:
            self.settle(var, f"result of {eqn.primitive.name}")

    def plain(self, atoms: Sequence[Atom]) -> list[Layout]:
        return [Layout(self.owner.dims_of(atom)) for atom in atoms]

    def inner(self, closed: ClosedJaxpr, in_layouts: Sequence[Layout],
              out_layouts: Sequence[Layout], times: int = 1) -> ClosedJaxpr:
        return self.owner.run(closed, in_layouts, out_layouts, self.times * times)


def _stacked(layout: Layout) -> Layout:
    return replace(layout, dims=((), *layout.dims))


def _unreduced_carries(body: _Body, flow: Structure, ins: Sequence[Layout],
                       outs: Sequence[Layout], times: int) -> dict[int, Layout]:
    """The carries of a scan that may stay unreduced until after the loop, with their layouts.

    A sum over iterations of unreduced values, such as the gradient of what all iterations share, is
    reduced once.

    Args:
      ins, outs: of the operands as the loop's body takes them, and of its outputs.
    """
    step, = flow.producers
    jaxpr = step.jaxpr.jaxpr
    inputs = dict(zip(step.takes, jaxpr.invars, strict=True))
    carried = [inputs[number] for number in flow.carries]
    found: dict[int, Layout] = {}
    for number in accumulators(jaxpr, carried, jaxpr.outvars[:len(carried)]):
        layout = ins[flow.carries[number]]
        taken = {axis for axes in layout.dims for axis in axes}
        for axis, size in body.mesh.items():
            if axis in taken or size == 1:
                continue
            tried = replace(layout, unreduced=tuple(sorted([
                *found.get(number, layout).unreduced, (axis, "add")])))
            trial = {**found, number: tried}
            starts = {flow.carries[carry]: one for carry, one in trial.items()}
            inside = _Body(
                body.owner, jaxpr, [starts.get(operand, ins[operand]) for operand in step.takes],
                [trial.get(output, one) for output, one in enumerate(outs)], times)
            if all(isinstance(var, Var)
                   and dict(inside.unreduced.get(var, {})) == dict(one.unreduced)
                   for carry, one in trial.items()
                   for var in (carried[carry], jaxpr.outvars[carry])):
                found = trial
    return found


def _control_flow(body: _Body, eqn: JaxprEqn) -> None:
    """A loop or a choice: the layouts outside of its jaxprs, and inside."""
    flow = structure_of(eqn)
    count = len(flow.carries)
    inside = body.plain(eqn.invars)
    outs = body.plain(eqn.outvars)
    times = 1 if flow.length is None else flow.length
    if flow.is_loop:
        step, = flow.producers
        for each in (*flow.bodies, step):      # a carry has its layout in the loop's body
            for number, layout in zip(each.takes, body.plain(each.jaxpr.invars), strict=True):
                inside[number] = layout
        outs = [*[inside[number] for number in flow.carries],
                *body.plain(step.jaxpr.outvars[count:])]
    operands = body.operands(eqn, [
        _stacked(layout) if role is Role.SCANNED else layout
        for layout, role in zip(inside, flow.roles, strict=True)])
    if flow.length is not None:
        for number, layout in _unreduced_carries(body, flow, inside, outs, times).items():
            # The initial value is added once.
            axes = tuple(axis for axis, _ in layout.unreduced)
            position = flow.carries[number]
            operands[position] = on_first(operands[position], axes, body.mesh)
            inside[position] = outs[number] = layout
    jaxprs = [body.inner(each.jaxpr, [inside[number] for number in each.takes],
                         [Layout(())] if each.decides else outs, times) for each in flow.bodies]
    results = eqn.primitive.bind(*operands, **with_bodies(eqn, jaxprs))
    body.finish(eqn, results, [*outs[:count], *map(_stacked, outs[count:])]
                if flow.is_loop else outs)
