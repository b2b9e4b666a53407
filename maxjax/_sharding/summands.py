"""Unreduced arrays device by device.

An unreduced array holds its total, which suffices wherever its shards can only be added up. Where
they can be seen one by one (``addressable_shards``, a ``shard_map`` with ``check_vma=False``) it
holds its summands too: stacked along a leading dimension, one for each index along its unreduced
axes, which count in the order of their names. ``with_summands`` gives a program that takes and
returns them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from maxjax._base.meshes import AbstractMesh, use_abstract_mesh
from maxjax._base.specs import AxisName, PartitionSpec
from maxjax._ir.axes import named_axes
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Params,
    Var,
    derived,
    every_equation,
    subjaxprs,
)
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, Value, aval_of
from maxjax._ir.types import ShapedArray
from maxjax._primitives.broadcasting import expand_axis, reduce_sum, reduce_sum_p
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.convert import convert_element_type_p
from maxjax._primitives.creation import zeros_like
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape, squeeze_p, transpose_p
from maxjax._primitives.varying import manual_axes
from maxjax._sharding.execute import cut, global_program
from maxjax._sharding.shard_body import runnable
from maxjax._sharding.shard_map import dims_of, program_of, shard_map_p
from maxjax._transforms.batching import batch_flat, to_axis
from maxjax._transforms.simplify import called, inline_calls

# What may stand between the operands of a sum and its unreduced result.
_AROUND_SUMS = frozenset((dot_general_p, reduce_sum_p, transpose_p, convert_element_type_p))


@derived
def _flat(closed: ClosedJaxpr) -> ClosedJaxpr:
    return inline_calls(closed, lambda eqn: None if eqn.primitive is shard_map_p else called(eqn))


class _Unreduced(NamedTuple):
    """A value with its summands, along a leading dimension."""

    total: Any
    summands: Any


def unreduced_axes(aval: ShapedArray) -> tuple[AxisName, ...]:
    """The axes that a type is unreduced along, in the order in which summands are counted."""
    return () if aval.mesh_spec is None else _ordered(aval.mesh_spec[1].unreduced)


def _ordered(axes: Collection[AxisName]) -> tuple[AxisName, ...]:
    return tuple(sorted(axes, key=str))


@derived
def shows_summands(closed: ClosedJaxpr) -> bool:
    """Whether a program takes, returns or looks at summands, and can be followed with them."""
    seen = any(map(unreduced_axes, (*closed.in_avals, *closed.out_avals))) or any(
        eqn.primitive is shard_map_p and not eqn.params["check_vma"]
        and any(spec.unreduced for spec in eqn.params["in_specs"])
        for eqn in every_equation(closed))
    if not seen or closed.effects:
        return False
    flat = _flat(closed)
    return not any(unreduced_axes(aval_of(value)) for value in flat.consts) and all(
        eqn.primitive is shard_map_p or not any(subjaxprs(eqn.params))
        for eqn in flat.eqns)


@derived
def with_summands(closed: ClosedJaxpr, given: tuple[bool, ...]) -> ClosedJaxpr:
    """The program, of values whose types say nothing of a mesh, which takes the summands of some
    inputs after all inputs, and returns those of its unreduced outputs after all outputs.

    Args:
      given: the inputs whose summands are given. Of other unreduced ones the first summand is the
        total, and the others are zeros.
    """
    flat = _flat(closed)
    makers: dict[Atom, JaxprEqn] = {
        var: eqn for eqn in flat.jaxpr.eqns for var in eqn.outvars}
    in_avals = [aval.off_mesh() for aval in closed.in_avals]
    stacked = [aval.off_mesh().update(shape=(_count(aval), *aval.shape))
               for aval, has in zip(closed.in_avals, given, strict=True) if has]
    values: dict[Atom, Any] = {}

    def rule(eqn: JaxprEqn, operands: Sequence[Any]) -> Sequence[Any]:
        results = _results(eqn, operands, makers, values)
        values.update(zip(eqn.outvars, results, strict=True))
        return results

    def run(*xs: Value) -> list[Any]:
        rest = iter(xs[len(in_avals):])
        args = [_taken(x, aval, next(rest) if has else None)
                for x, aval, has in zip(xs, closed.in_avals, given, strict=False)]
        values.update(zip(flat.jaxpr.invars, args, strict=True))
        values.update(zip(flat.jaxpr.constvars, flat.consts, strict=True))
        results = eval_jaxpr(flat.jaxpr, flat.consts, *args, rule=rule)
        return [*map(_total, results),
                *(x.summands for x in results if isinstance(x, _Unreduced))]

    with use_abstract_mesh(AbstractMesh((), ())):
        return trace_to_jaxpr(run, [*in_avals, *stacked], closed.jaxpr.debug_info)


def _sizes(aval: ShapedArray) -> dict[AxisName, int]:
    """Those of the mesh that a type speaks of."""
    return {} if aval.mesh_spec is None else dict(aval.mesh_spec[0].shape_tuple)


def _count(aval: ShapedArray) -> int:
    sizes = _sizes(aval)
    return math.prod(sizes[axis] for axis in unreduced_axes(aval))


def _taken(x: Any, aval: ShapedArray, summands: Value | None) -> Any:
    """A value of an unreduced type, with its summands if they are known."""
    if not unreduced_axes(aval):
        return x
    return _first_alone(x, _count(aval)) if summands is None else _Unreduced(x, summands)


def _first_alone(x: Any, count: int) -> _Unreduced:
    """A value of which no summands are known."""
    first = expand_axis(x, 0)
    return _Unreduced(x, concatenate([first, *[zeros_like(first)] * (count - 1)], 0))


def _total(x: Any) -> Any:
    return x.total if isinstance(x, _Unreduced) else x


def _summed(summands: Array) -> _Unreduced:
    return _Unreduced(reduce_sum(summands, (0,)), summands)


# --- equations ------------------------------------------------------------------------------------


def _results(eqn: JaxprEqn, operands: Sequence[Any], makers: Mapping[Atom, JaxprEqn],
             values: Mapping[Atom, Any]) -> list[Any]:
    if eqn.primitive is shard_map_p:
        return [x if isinstance(x, _Unreduced) else _taken(x, var.aval, None)
                for x, var in zip(_shard_map(eqn.params, operands), eqn.outvars, strict=True)]
    made = [var.aval for var in eqn.outvars]
    axes = unreduced_axes(made[0]) if made else ()
    if eqn.primitive.outside.placement is not None:
        return [_placed(atom, operand, aval, makers, values)
                for atom, operand, aval in zip(eqn.invars, operands, made, strict=True)]
    unreduced = [isinstance(x, _Unreduced) for x in operands]
    if any(unreduced) and axes:
        operands = _with_all_summands(eqn, operands, _count(made[0]))
        unreduced = [isinstance(x, _Unreduced) for x in operands]
        outputs, out_axes = batch_flat(
            lambda *xs: _applied(eqn, xs), _count(made[0]),
            [x.summands if isinstance(x, _Unreduced) else x for x in operands],
            [0 if has else None for has in unreduced])
        return [_summed(to_axis(output, axis, 0, _count(made[0])))
                for output, axis in zip(outputs, out_axes, strict=True)]
    return [_taken(x, aval, None) for x, aval in zip(
        _applied(eqn, list(map(_total, operands))), made, strict=True)]


def _with_all_summands(eqn: JaxprEqn, operands: Sequence[object], count: int) -> list[Any]:
    """The operands, where those that are added to an unreduced one have summands too: each of its
    summands would otherwise get the whole of them."""
    linearity = eqn.primitive.linearity
    if linearity is None or linearity.each:
        return list(operands)
    added = linearity.positions(len(operands))
    return [_first_alone(x, count) if number in added and not isinstance(x, _Unreduced) else x
            for number, x in enumerate(operands)]


def _applied(eqn: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    results = eqn.primitive.bind(*operands, **eqn.params)
    return list(results) if eqn.primitive.multiple_results else [results]


def _placed(atom: Atom, operand: Any, aval: ShapedArray, makers: Mapping[Atom, JaxprEqn],
            values: Mapping[Atom, Any]) -> Any:
    """A value where it is put: a type may say only now that a sum is unreduced."""
    axes = unreduced_axes(aval)
    if isinstance(operand, _Unreduced):
        return operand if axes == unreduced_axes(atom.aval) else _taken(operand.total, aval, None)
    return (axes and _sum_by_summands(atom, aval, makers, values)) or _taken(operand, aval, None)


def _sum_by_summands(atom: Atom, aval: ShapedArray, makers: Mapping[Atom, JaxprEqn],
                     values: Mapping[Atom, Any]) -> _Unreduced | None:
    """The sum over dimensions that lie along the axes that it is unreduced along, summand by
    summand; None where the value is no such sum."""
    inputs: list[Var] = []
    eqns: list[JaxprEqn] = []

    def collect(atom: Atom) -> bool:
        """Finds the equations from where types speak of the mesh to here."""
        if isinstance(atom, Literal):
            return False
        maker = makers.get(atom)
        if atom in inputs or maker in eqns:
            return True
        if maker is not None and maker.primitive in _AROUND_SUMS:
            found = all(map(collect, maker.invars))
            eqns.append(maker)
            return found
        if maker is not None and maker.primitive.outside.placement is not None and not isinstance(
                maker.invars[0], Literal) and maker.invars[0].aval.mesh_spec is not None:
            inputs.append(atom)
            return True
        return False

    sums = (dot_general_p, reduce_sum_p)
    if not collect(atom) or sum(eqn.primitive in sums for eqn in eqns) != 1:
        return None
    axes = unreduced_axes(aval)
    sizes = _sizes(aval)
    operands, batch_axes = [], []
    for var in inputs:
        source = makers[var].invars[0].aval
        spec = PartitionSpec() if source.mesh_spec is None else source.mesh_spec[1]
        dims = tuple([entry if set(entry) & set(axes) else ()
                      for entry in dims_of(spec, source.ndim)])
        named = [axis for entry in dims for axis in entry]
        value = _total(values[var])
        if named and sorted(named, key=str) != list(axes):
            return None
        if named:
            blocks = cut(value, dims, {str(axis): sizes[axis] for axis in axes})
            value = reshape(blocks, (_count(aval), *blocks.shape[len(axes):]))
        operands.append(value)
        batch_axes.append(0 if named else None)
    if all(axis is None for axis in batch_axes):
        return None
    region = Jaxpr([], inputs, [atom], eqns)
    outputs, out_axes = batch_flat(lambda *xs: eval_jaxpr(region, [], *xs), _count(aval),
                                   operands, batch_axes)
    return _summed(to_axis(outputs[0], out_axes[0], 0, _count(aval)))


def _shard_map(params: Params, operands: Sequence[Any]) -> list[Any]:
    """Each shard is given its own summand of an unreduced input, and gives one of an output.

    Along axes that do not become manual only the totals are known.
    """
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    if not any(spec.unreduced for spec in (*in_specs, *out_specs)):
        program = program_of(params, outside=True)
        return eval_jaxpr(program.jaxpr, program.consts, *map(_total, operands))
    mesh, manual = params["mesh"], params["newly_manual_axes"]
    sizes = {name: size for name, size in mesh.shape_tuple if name in manual}
    local = runnable(params["jaxpr"], mesh.shape_tuple, ())

    def run(*xs: Value) -> list[Any]:
        results = eval_jaxpr(local.jaxpr, local.consts, *[
            squeeze_p.bind(x, dimensions=(0,)) if spec.unreduced else x
            for x, spec in zip(xs, in_specs, strict=True)])
        return [expand_axis(x, 0) if spec.unreduced else x
                for x, spec in zip(results, out_specs, strict=True)]

    def dims(specs: Sequence[PartitionSpec], avals: Sequence[ShapedArray]) -> list[Any]:
        return [(_ordered(spec.unreduced), *dims_of(spec, aval.ndim)) if spec.unreduced
                else dims_of(spec, aval.ndim) for spec, aval in zip(specs, avals, strict=True)]

    with named_axes(mesh.shape_tuple), manual_axes(None):
        stacked = trace_to_jaxpr(run, [
            aval.update(shape=(1, *aval.shape)) if spec.unreduced else aval
            for aval, spec in zip(local.in_avals, in_specs, strict=True)],
            local.jaxpr.debug_info)
        program = global_program(stacked, sizes, dims(in_specs, local.in_avals),
                                 dims(out_specs, local.out_avals))
    counts = [math.prod(sizes[axis] for axis in spec.unreduced) for spec in in_specs]
    results = eval_jaxpr(program.jaxpr, program.consts, *[
        _total(x) if not spec.unreduced else
        x.summands if isinstance(x, _Unreduced) and len(x.summands) == count else
        _first_alone(_total(x), count).summands
        for x, spec, count in zip(operands, in_specs, counts, strict=True)])
    return [_summed(x) if spec.unreduced else x for x, spec in zip(results, out_specs, strict=True)]
