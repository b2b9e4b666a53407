"""The primitive ``shard_map``: a program of one shard, applied to global values.

Its jaxpr has the types of the shards. Inputs and outputs vary over the axes that their specs name,
and a value whose type lacks an axis is the same on all shards along it; with ``check_vma=False``
types say nothing of that. ``global_program`` makes of it the program that runs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from maxjax._base import caches, config, dtypes
from maxjax._base.interrupts import context_manager
from maxjax._base.meshes import AnyMesh, AxisType, Mesh, use_abstract_mesh
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import AxisName, PartitionSpec, SpecEntry, entry_axes, spec_axes
from maxjax._higher_order.calls import of_results, without_dead_code
from maxjax._higher_order.control import chosen, merged, rearranged
from maxjax._higher_order.jit import jit_p
from maxjax._ir.axes import axes_of, named_axes
from maxjax._ir.costs import ENTERED
from maxjax._ir.effects import ordered_debug_effect
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Params, derived, every_equation
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Communication, Derivative, Inner, Outside, Printed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, Trace, Value, context
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import div_p
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.collective import psum_p
from maxjax._primitives.comparison import eq_p
from maxjax._primitives.creation import zeros_like
from maxjax._primitives.layout import squeeze_p
from maxjax._primitives.rules import Linear, is_linear, replicated_factors, scalar_like
from maxjax._primitives.sharding import sharding_constraint_p
from maxjax._primitives.slicing import select
from maxjax._primitives.varying import flat_index, like_type, manual_axes
from maxjax._sharding.execute import global_program
from maxjax._sharding.shard_body import runnable
from maxjax._transforms.batching import batch_jaxpr
from maxjax._transforms.jvp import jvp_jaxpr
from maxjax._transforms.linearize import Division, LinearTrace, by_linearization
from maxjax._transforms.simplify import called_by, inline_calls
from maxjax._transforms.transpose import transpose_jaxpr

P = PartitionSpec

# --- specs and types ------------------------------------------------------------------------------


def dims_of(spec: PartitionSpec, ndim: int) -> tuple[tuple[Any, ...], ...]:
    """For each dimension the axes that split it."""
    entries = [entry_axes(entry) for entry in spec.partitions]
    return (*entries, *[()] * (ndim - len(entries)))


def shard_shape(shape: Sequence[int], spec: PartitionSpec, mesh: AnyMesh) -> tuple[int, ...]:
    """The shape of one shard of a global value."""
    return tuple(size // _shard_count(axes, mesh)
                 for size, axes in zip(shape, dims_of(spec, len(shape)), strict=True))


def _shard_count(axes: Sequence[AxisName], mesh: AnyMesh) -> int:
    sizes = dict(mesh.shape_tuple)
    return math.prod(sizes[axis] for axis in axes)


def shard_aval(aval: ShapedArray, spec: PartitionSpec, mesh: AnyMesh, check_vma: bool,
               manual: frozenset[AxisName]) -> ShapedArray:
    """The type of one shard of a global value of that type; it keeps its sharding along Explicit
    axes that do not become manual."""
    axes = aval.vma.union(spec_axes(spec)) if check_vma else frozenset()
    local = aval.off_mesh().update(shape=shard_shape(aval.shape, spec, mesh), vma=axes)
    rest = frozenset(mesh.explicit_axes) - manual
    own = P() if aval.mesh_spec is None else restrict_spec(aval.mesh_spec[1], rest)
    if check_vma:
        own = own.update(unreduced=own.unreduced | spec.unreduced,
                         reduced=own.reduced | spec.reduced)
    if (aval.mesh_spec is None or not rest) and not (own.unreduced or own.reduced):
        return local
    return local.on_mesh(inner_mesh(mesh, manual), own)


def stacked_spec(aval: ShapedArray, axes: Sequence[AxisName], check_vma: bool) -> PartitionSpec:
    """A spec for a result that has none: its shards are stacked along the first dimension, over
    those of these axes along which it may vary."""
    names = tuple(axis for axis in axes if not check_vma or axis in aval.vma)
    states = aval.manual_axis_type
    return P(*[names] if names else [], unreduced=states.unreduced, reduced=states.reduced)


def global_aval(aval: ShapedArray, spec: PartitionSpec, mesh: AnyMesh, manual: frozenset[AxisName]
                ) -> ShapedArray:
    """The type of the global value of which a shard has that type."""
    shape = tuple(size * _shard_count(axes, mesh)
                  for size, axes in zip(aval.shape, dims_of(spec, aval.ndim), strict=True))
    explicit = frozenset(mesh.explicit_axes)
    on_mesh = None
    if explicit:
        inner = P() if aval.mesh_spec is None else aval.mesh_spec[1]
        on_mesh = mesh.abstract_mesh, P(*[
            (*outside, *within) for outside, within in zip(
                dims_of(restrict_spec(spec, explicit), aval.ndim), dims_of(inner, aval.ndim),
                strict=True)], unreduced=spec.unreduced | inner.unreduced,
            reduced=spec.reduced | inner.reduced)
    return ShapedArray(shape, aval.dtype, aval.weak_type, on_mesh, aval.vma.difference(manual))


def restrict_spec(spec: PartitionSpec, axes: frozenset[AxisName]) -> PartitionSpec:
    """A spec with these axes alone."""
    return P(*[tuple(axis for axis in entry_axes(entry) if axis in axes)
               for entry in spec.partitions],
             unreduced=spec.unreduced & axes, reduced=spec.reduced & axes)


@caches.memoized
def inner_mesh(mesh: AnyMesh, manual: frozenset[AxisName]) -> Any:
    return mesh.abstract_mesh.update_axis_types(dict.fromkeys(manual, AxisType.Manual))


@context_manager
def inside(mesh: AnyMesh, manual: frozenset[AxisName], check_vma: bool) -> Iterator[None]:
    """The context of a body: the mesh's axes are bound, and these are manual.

    Without ``check_vma`` types say nothing of the axes of an enclosing ``shard_map`` either.
    """
    inner = inner_mesh(mesh, manual)
    names = inner.manual_axes if check_vma else None
    bound = [(name, size) for name, size in mesh.shape_tuple if name in inner.manual_axes]
    with use_abstract_mesh(inner), named_axes(bound), manual_axes(names):
        yield


def _inside(params: Params) -> Any:
    return inside(params["mesh"], params["newly_manual_axes"], params["check_vma"])


# --- running --------------------------------------------------------------------------------------


@derived
def _program(jaxpr: ClosedJaxpr, mesh: AnyMesh, in_specs: tuple[PartitionSpec, ...],
             out_specs: tuple[PartitionSpec, ...], manual: frozenset[AxisName],
             copied: tuple[AxisName, ...], outside: bool) -> ClosedJaxpr:
    if not outside:
        check_effects(jaxpr, mesh)
    local = runnable(jaxpr, mesh.shape_tuple, copied, None,
                     tuple(name for name in mesh.axis_names if name in manual))
    with named_axes(mesh.shape_tuple), manual_axes(None):
        local = with_unreduced(local, in_specs, out_specs)
        program = global_program(
            local, {name: size for name, size in mesh.shape_tuple if name in manual},
            [dims_of(spec, aval.ndim) for spec, aval in zip(in_specs, local.in_avals, strict=True)],
            [dims_of(spec, aval.ndim)
             for spec, aval in zip(out_specs, local.out_avals, strict=True)])
    if outside or mesh.explicit_axes or mesh.manual_axes:
        return program

    # A spec leaves nothing open but along axes that are not manual.
    closes = manual == frozenset(mesh.axis_names)

    def constrained(*values: Value) -> list[Any]:
        return [_constrained(output, spec, mesh, manual)
                if output.shape and (closes or any(spec_axes(spec))) else output
                for output, spec in zip(eval_jaxpr(program.jaxpr, program.consts, *values),
                                        out_specs, strict=True)]

    return trace_to_jaxpr(constrained, program.in_avals, jaxpr.jaxpr.debug_info)


def check_effects(jaxpr: ClosedJaxpr, mesh: AnyMesh) -> None:
    """Raises ValueError where a body has ordered debug effects, and there are several devices."""
    if ordered_debug_effect in jaxpr.effects and mesh.size > 1:
        raise ValueError("The following ordered effects are not supported for more than 1 device: "
                         f"{[ordered_debug_effect]}")


def _constrained(output: Array, spec: PartitionSpec, mesh: AnyMesh, manual: frozenset[AxisName]
                 ) -> Any:
    """A result constrained to its spec; if some axes are not manual, other dimensions are open."""
    is_open = manual != frozenset(mesh.axis_names)
    entries = (*spec.partitions, *[None] * (len(output.shape) - len(spec)))
    free = frozenset(dim for dim, entry in enumerate(entries) if entry is None and is_open)
    sharding = NamedSharding(mesh, P(*[
        P.UNCONSTRAINED if dim in free else entry for dim, entry in enumerate(entries)]))
    return sharding_constraint_p.bind(
        output, sharding=sharding, layout=None, context_mesh=mesh, unconstrained_dims=free)


def with_unreduced(local: ClosedJaxpr, in_specs: Sequence[PartitionSpec],
                   out_specs: Sequence[PartitionSpec]) -> ClosedJaxpr:
    """The program of one shard for unreduced inputs and outputs.

    A global value holds the total: the first shard is given it, and the others zeros.
    """
    if not any(spec.unreduced for spec in (*in_specs, *out_specs)):
        return local

    def summand(x: Value, axes: frozenset[AxisName]) -> Any:
        if not axes:
            return x
        first = eq_p.bind(flat_index(sorted(axes, key=str)), scalar_like(0, dtypes.int32))
        return select(first, zeros_like(x), x)

    def run(*args: Value) -> list[Any]:
        results = eval_jaxpr(local.jaxpr, local.consts, *[
            summand(x, spec.unreduced) for x, spec in zip(args, in_specs, strict=True)])
        return [psum_p.bind(x, axes=tuple(spec.unreduced), axis_index_groups=None)
                if spec.unreduced else x for x, spec in zip(results, out_specs, strict=True)]

    return trace_to_jaxpr(run, local.in_avals, local.jaxpr.debug_info)


def program_of(params: Params, outside: bool = False) -> ClosedJaxpr:
    """The program of global values that an application runs.

    Args:
      outside: of other programs, where what is the same on all shards is printed once, not by
        each, and nobody asks the program how its results lie.

    Raises:
      ValueError: the body has ordered debug effects, and there are several devices.
    """
    manual = params["newly_manual_axes"]
    copied = () if outside or not params["check_vma"] else tuple(sorted(manual, key=str))
    return _program(params["jaxpr"], params["mesh"], params["in_specs"], params["out_specs"],
                    manual, copied, outside)


def _program_outside(jaxpr: ClosedJaxpr, **params: Any) -> tuple[
        ClosedJaxpr, list[NamedSharding]]:
    """What an application outside programs runs, and where its specs say that the results are."""
    return _outside(jaxpr, tuple(params.items()))


@derived
def _outside(jaxpr: ClosedJaxpr, items: tuple[tuple[str, Any], ...]) -> tuple[
        ClosedJaxpr, list[NamedSharding]]:
    params = {"jaxpr": jaxpr, **dict(items)}
    return program_of(params, outside=True), out_shardings_of(params)


def out_shardings_of(params: Params) -> list[NamedSharding]:
    """The shardings of an application's results."""
    mesh = params["mesh"]
    if mesh.auto_axes:
        return [NamedSharding(mesh, spec) for spec in params["out_specs"]]
    if params["newly_manual_axes"] == frozenset(mesh.axis_names):
        return [NamedSharding(mesh, spec) for spec in params["out_specs"]]
    avals = [global_aval(aval, spec, mesh, params["newly_manual_axes"]) for aval, spec in zip(
        params["jaxpr"].out_avals, params["out_specs"], strict=True)]
    return [NamedSharding(mesh, spec if aval.mesh_spec is None else aval.mesh_spec[1])
            for aval, spec in zip(avals, params["out_specs"], strict=True)]


@derived
def manual_results(closed: ClosedJaxpr) -> list[NamedSharding | None]:
    """The shardings of those results that come from a ``shard_map`` over devices."""
    found: dict[Any, NamedSharding | None] = {}
    for eqn in closed.eqns:
        if eqn.primitive is shard_map_p and isinstance(eqn.params["mesh"], Mesh):
            found.update(zip(eqn.outvars, out_shardings_of(eqn.params), strict=True))
        elif eqn.primitive is jit_p:
            found.update(zip(eqn.outvars, manual_results(eqn.params["jaxpr"]), strict=True))
    return [found.get(atom) for atom in closed.jaxpr.outvars]


@derived
def written_results(closed: ClosedJaxpr, mesh: Mesh) -> list[PartitionSpec] | None:
    """The specs of the results of a program of nothing but ``shard_map``s over all axes of a mesh,
    which leave no sharding open; None of any other program."""
    if closed.effects:
        return None
    flat = inline_calls(closed, called_by(jit_p))
    specs: dict[Any, PartitionSpec] = {}
    for eqn in flat.jaxpr.eqns:
        if eqn.primitive is not shard_map_p or (
                eqn.params["mesh"].shape_tuple != mesh.shape_tuple
                or eqn.params["newly_manual_axes"] != frozenset(mesh.axis_names)):
            return None
        specs.update(zip(eqn.outvars, eqn.params["out_specs"], strict=True))
    found = [specs[atom] for atom in flat.jaxpr.outvars if atom in specs]
    return found if len(found) == len(flat.jaxpr.outvars) else None


@derived
def manual_mesh(closed: ClosedJaxpr) -> Mesh | None:
    """The devices of the first ``shard_map`` in a program."""
    return next((eqn.params["mesh"] for eqn in every_equation(closed)
                 if eqn.primitive is shard_map_p and isinstance(eqn.params["mesh"], Mesh)), None)


def _abstract(*avals: ShapedArray, jaxpr: ClosedJaxpr, mesh: AnyMesh,
              out_specs: Sequence[PartitionSpec], newly_manual_axes: frozenset[AxisName],
              **params: Any) -> tuple[ShapedArray, ...]:
    return tuple([global_aval(aval, spec, mesh, newly_manual_axes)
                  for aval, spec in zip(jaxpr.out_avals, out_specs, strict=True)])


def _axis_names(jaxpr: ClosedJaxpr, newly_manual_axes: frozenset[AxisName],
                **params: Any) -> frozenset[Any]:
    used = frozenset().union(*[axes_of(eqn.primitive, eqn.params) for eqn in jaxpr.eqns])
    return used - newly_manual_axes


# --- derivatives ----------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value | None], *, jaxpr: ClosedJaxpr,
         in_specs: Sequence[PartitionSpec], out_specs: Sequence[PartitionSpec],
         **params: Any) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(tangent is not None for tangent in tangents)
    with _inside(params):
        both, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
    results = shard_map_p.bind(
        *primals, *(t for t in tangents if t is not None), jaxpr=both,
        in_specs=(*in_specs, *chosen(in_specs, nonzero)),
        out_specs=(*out_specs, *chosen(out_specs, out_nonzero)), **params)
    count = len(jaxpr.out_avals)
    return results[:count], merged(out_nonzero, results[count:])


class _Split:
    """A body split for linearization.

    Attributes:
      forward: inputs -> (outputs, residuals made); scalars among these have a dimension.
      linear: (residuals, tangents) -> tangents of the outputs.
      sources: for each residual of ``linear`` the number of the input that it equals, or None.
      specs: of the residuals that are made.
      out_nonzero: which outputs have a tangent.
    """

    __slots__ = ("forward", "linear", "out_nonzero", "sources", "specs")
    forward: ClosedJaxpr
    linear: ClosedJaxpr
    sources: list[int | None]
    specs: list[PartitionSpec]
    out_nonzero: tuple[bool, ...]


@derived
def _split(jaxpr: ClosedJaxpr, division: Division, nonzero: tuple[bool, ...],
           axes: tuple[AxisName, ...], check_vma: bool) -> _Split:
    forward, linear, out_nonzero = division.divide(jaxpr, nonzero)
    count = len(jaxpr.out_avals)
    numbers: dict[Atom, int] = {var: n for n, var in enumerate(forward.jaxpr.invars)}
    residuals = forward.jaxpr.outvars[count:]
    split = _Split()
    split.out_nonzero = out_nonzero
    split.sources = [numbers.get(atom) for atom in residuals]
    made = [atom for atom, source in zip(residuals, split.sources, strict=True) if source is None]
    split.specs = [stacked_spec(atom.aval, axes, check_vma) for atom in made]
    scalar = [bool(len(spec)) and not atom.aval.shape
              for atom, spec in zip(made, split.specs, strict=True)]
    short = ClosedJaxpr(
        forward.jaxpr.replace(outvars=[*forward.jaxpr.outvars[:count], *made]), forward.consts)
    if not any(scalar):
        split.forward, split.linear = short, linear
        return split

    def with_dimension(*args: Value) -> list[Any]:
        outs = eval_jaxpr(short.jaxpr, short.consts, *args)
        return [*outs[:count], *(expand_axis(x, 0) if flag else x for x, flag in zip(
            outs[count:], scalar, strict=True))]

    flags = iter(scalar)
    lifted = [source is None and next(flags) for source in split.sources]

    def without_dimension(*args: Value) -> list[Any]:
        given = [squeeze_p.bind(x, dimensions=(0,)) if flag else x
                 for x, flag in zip(args[:len(lifted)], lifted, strict=True)]
        return eval_jaxpr(linear.jaxpr, linear.consts, *given, *args[len(lifted):])

    avals = linear.in_avals
    split.forward = trace_to_jaxpr(with_dimension, short.in_avals, jaxpr.jaxpr.debug_info)
    split.linear = trace_to_jaxpr(
        without_dimension,
        [*(aval.update(shape=(1,)) if flag else aval
           for aval, flag in zip(avals[:len(lifted)], lifted, strict=True)),
         *avals[len(lifted):]], jaxpr.jaxpr.debug_info)
    return split


def _spmd_axes(trace: Trace | None) -> frozenset[AxisName]:
    """The axes that the elements of the batches around lie along, by ``spmd_axis_name``: residuals
    do not vary along those, and specs name them as soon as the batch is a dimension."""
    found: set[AxisName] = set()
    while trace is not None:
        found.update(entry_axes(getattr(trace, "spmd_axis", None) or ()))
        trace = getattr(trace, "parent", None)
    return frozenset(found)


def _linearize(trace: LinearTrace, primals: Sequence[Value], tangents: Sequence[Value | None], *,
               jaxpr: ClosedJaxpr, in_specs: tuple[PartitionSpec, ...],
               out_specs: tuple[PartitionSpec, ...], **params: Any) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(tangent is not None for tangent in tangents)
    manual = params["newly_manual_axes"]
    mapped = _spmd_axes(trace)
    axes = tuple(name for name in params["mesh"].axis_names if name in manual - mapped)
    with _inside(params):
        split = _split(jaxpr, trace.division, nonzero, axes, params["check_vma"])
    count = len(out_specs)
    known = (*trace.division.known(split.out_nonzero), *(True,) * len(split.specs))
    forward = split.forward
    operands: Sequence[int] = range(len(primals))
    if not all(known) or any(primal is None for primal in primals):
        forward, operands = of_results(forward, known)
    results = merged(known, shard_map_p.bind(
        *(primals[number] for number in operands), jaxpr=forward,
        in_specs=tuple(in_specs[number] for number in operands),
        out_specs=tuple(chosen((*out_specs, *split.specs), known)), **params)
        if forward.eqns or forward.outvars else ())
    outs = results[:count]
    if not any(split.out_nonzero):
        return outs, [None] * len(outs)
    made = iter(zip(results[count:], split.specs, strict=True))
    residuals = [next(made) if source is None else (primals[source], in_specs[source])
                 for source in split.sources]
    out_tangents = shard_map_p.bind(
        *(value for value, _ in residuals), *(t for t in tangents if t is not None),
        jaxpr=split.linear,
        in_specs=(*(spec for _, spec in residuals), *chosen(in_specs, nonzero)),
        out_specs=tuple(chosen(out_specs, split.out_nonzero)), **params)
    return outs, merged(split.out_nonzero, out_tangents)


@derived
def _transposed(jaxpr: ClosedJaxpr, linear: tuple[bool, ...], given: tuple[bool, ...],
                unmentioned: tuple[tuple[AxisName, ...], ...], check_vma: bool) -> tuple[
                    ClosedJaxpr, tuple[bool, ...]]:
    """The transposed body, and which linear operands have a cotangent.

    Without ``check_vma`` an input's cotangent is summed over the axes that its spec leaves out.
    """
    transposed, nonzero = transpose_jaxpr(jaxpr, linear, given)
    avals = chosen(chosen(jaxpr.in_avals, linear), nonzero)
    axes = chosen(chosen(unmentioned, linear), nonzero)

    def body(*args: Value) -> list[Any]:
        results = eval_jaxpr(transposed.jaxpr, transposed.consts, *args)
        if check_vma:
            return [like_type(x, aval.cotangent()) for x, aval in zip(results, avals, strict=True)]
        return [psum_p.bind(x, axes=names, axis_index_groups=None) if names else x
                for x, names in zip(results, axes, strict=True)]

    # Cotangents first, then what is known.
    known = len(linear) - sum(linear)
    order = (*range(known, len(transposed.in_avals)), *range(known))
    result = trace_to_jaxpr(body, transposed.in_avals, jaxpr.jaxpr.debug_info)
    return rearranged(result, order), nonzero


def _unmentioned(spec: PartitionSpec, params: Params) -> tuple[Any, ...]:
    mentioned = _spmd_axes(context.trace).union(spec_axes(spec))
    return tuple(name for name in params["mesh"].axis_names
                 if name in params["newly_manual_axes"] and name not in mentioned)


def _transpose(cotangents: Sequence[Value | None], *operands: Value | Linear,
               jaxpr: ClosedJaxpr, in_specs: tuple[PartitionSpec, ...],
               out_specs: tuple[PartitionSpec, ...], **params: Any) -> list[Any]:
    linear = tuple(map(is_linear, operands))
    known = [not flag for flag in linear]
    given = tuple(cotangent is not None for cotangent in cotangents)
    check_vma, mesh = params["check_vma"], params["mesh"]
    values = []
    for cotangent, spec in zip(cotangents, out_specs, strict=True):
        if cotangent is None:
            continue
        count = _shard_count(_unmentioned(spec, params), mesh)
        values.append(cotangent if check_vma or count == 1 else
                      div_p.bind(cotangent, scalar_like(count, cotangent.dtype)))
    with _inside(params):
        body, nonzero = _transposed(
            jaxpr, linear, given, tuple(_unmentioned(spec, params) for spec in in_specs), check_vma)
    results = shard_map_p.bind(
        *values, *chosen(operands, known), jaxpr=body,
        in_specs=(*(spec.to_ct_spec() for spec in chosen(out_specs, given)),
                  *chosen(in_specs, known)),
        out_specs=tuple([spec.to_ct_spec()
                         for spec in chosen(chosen(in_specs, linear), nonzero)]), **params)
    return merged(linear, merged(nonzero, results))


# --- batching and dead code -----------------------------------------------------------------------


def _with_axis(spec: PartitionSpec, axis: int | None, entry: SpecEntry) -> PartitionSpec:
    """The spec of a value with one more dimension."""
    if axis is None:
        return spec
    entries = [*spec.partitions, *[None] * max(0, axis - len(spec))]
    return spec.update(partitions=(*entries[:axis], entry, *entries[axis:]))


def _batch(size: int, operands: Sequence[Value], axes: Sequence[int | None], *,
           jaxpr: ClosedJaxpr, in_specs: Sequence[PartitionSpec],
           out_specs: Sequence[PartitionSpec], **params: Any) -> tuple[list[Any], list[int | None]]:
    mesh, entry, in_types = params["mesh"], context.batch_spmd_axis, context.batch_entry
    if entry is not None and in_types is not None:
        entry = None      # both name the same axes
    if entry is None and params["newly_manual_axes"].issuperset(entry_axes(in_types)):
        entry, in_types = in_types, None      # the elements are spread over axes of the shards
    if entry is not None:
        names = entry_axes(entry)
        used = {axis for spec in (*in_specs, *out_specs) for axis in spec_axes(spec)}
        if used.intersection(names):
            if not config.disable_vmap_shmap_error.value:
                raise ValueError("vmap spmd_axis_name cannot appear in shard_map in_specs")
            for spec, axis in zip(in_specs, axes, strict=True):
                if axis is not None:
                    NamedSharding(mesh, _with_axis(spec, axis, entry))      # refuses it twice
        size //= _shard_count(names, mesh)
        if params["check_vma"]:
            jaxpr = _varying_inputs(jaxpr, tuple(axis is not None for axis in axes), names)
    previous = context.batch_spmd_axis, context.batch_entry
    # A shard_map within this one is on one shard already.
    context.batch_spmd_axis, context.batch_entry = None, in_types
    with _inside(params):
        batched, out_batched = batch_jaxpr(jaxpr, size, tuple(axes))
    context.batch_spmd_axis, context.batch_entry = previous
    results = shard_map_p.bind(
        *operands, jaxpr=batched,
        in_specs=tuple([_with_axis(spec, axis, entry)
                        for spec, axis in zip(in_specs, axes, strict=True)]),
        out_specs=tuple([_with_axis(spec, 0 if flag else None, entry)
                         for spec, flag in zip(out_specs, out_batched, strict=True)]), **params)
    return results, [0 if flag else None for flag in out_batched]


@derived
def _varying_inputs(jaxpr: ClosedJaxpr, marks: tuple[bool, ...],
                    names: tuple[AxisName, ...]) -> ClosedJaxpr:
    """The body with the marked inputs varying along more axes."""
    avals = [aval.update(vma=aval.vma.union(names)) if mark else aval
             for aval, mark in zip(jaxpr.in_avals, marks, strict=True)]
    return trace_to_jaxpr(lambda *xs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *xs), avals,
                          jaxpr.jaxpr.debug_info)


shard_map_p = Primitive(
    "shard_map",
    abstract=_abstract,
    jvp=_jvp,
    derivative=Derivative(linearize=_linearize, partly=by_linearization),
    transpose=_transpose,
    batch=_batch,
    communication=Communication(axis_names=_axis_names),
    factors=replicated_factors,
    outside=Outside(program=_program_outside),
    multiple_results=True,
    cacheable=False,
    inner=Inner(
        calls=program_of,
        dead_code=functools.partial(
            without_dead_code, per_operand=("in_specs",), per_result=("out_specs",))),
    printed=Printed(lambda params: {**params, "jaxpr": params["jaxpr"].jaxpr}),
    cost=ENTERED,
)
