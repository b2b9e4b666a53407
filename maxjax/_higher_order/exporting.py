"""How a function is exported: traced, rid of what cannot be saved, and with its derivative."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from maxjax._base import dtypes, pytree
from maxjax._base.meshes import AbstractMesh, AxisType, Mesh
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.shardings import NamedSharding, Sharding
from maxjax._base.specs import PartitionSpec
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.entries import Entry
from maxjax._higher_order.exported import Exported, argument_names
from maxjax._higher_order.jit_function import PjitFunction, make_jit
from maxjax._higher_order.safety_checks import DisabledSafetyCheck
from maxjax._higher_order.shape_struct import ShapeDtypeStruct
from maxjax._ir.dimensions import Dimension, is_dimension
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, every_equation
from maxjax._ir.liveness import eliminate_dead_code
from maxjax._ir.refs import RefsTouched
from maxjax._ir.serialize import NotSerializable, encode
from maxjax._ir.symbolic import check_known, solve
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.sharding import ArrayCopySemantics, device_put_p, placements
from maxjax._transforms import autodiff
from maxjax._transforms.simplify import expansion, inline_calls


def export_function(jitted: PjitFunction, args: tuple[PyTree, ...], kwargs: dict[str, PyTree],
                    platforms: tuple[str, ...],
                    disabled_checks: Sequence[DisabledSafetyCheck],
                    is_saved: bool = True) -> Exported:
    """Traces a jitted function and exports it; see ``maxjax.export.export``.

    Args:
      is_saved: whether it may be saved, and so has to be free of Python functions.
    """
    entry, _, tree, _ = jitted._trace_abstract(args, kwargs)
    exported = export_entry(jitted.function_name, entry, tree, platforms, disabled_checks,
                            is_saved)
    closed = entry.closed
    traced: Any = jitted.trace(*args, **kwargs)
    ins, outs = traced._places, traced._result_shardings()
    mesh = next((place.mesh for place in (*ins, *outs) if isinstance(place, NamedSharding)),
                _mesh_in(closed))
    if mesh is not None and mesh.size > 1:
        exported = dataclasses.replace(
            exported, nr_devices=mesh.size, in_specs=_specs(ins), out_specs=_specs(outs),
            mesh_axes=tuple([(name, size, kind is AxisType.Explicit) for (name, size), kind in zip(
                mesh.shape.items(), mesh.axis_types, strict=True)]))
    known = solve(argument_names(exported.in_tree), [aval.shape for aval in exported.in_avals])
    check_known(_sizes_in(closed), known)
    return exported


def _sizes_in(closed: ClosedJaxpr) -> Iterator[Dimension]:
    """The symbolic sizes of results, and among parameters, of a program's equations."""
    for eqn in every_equation(closed):
        for values in (*(var.aval.shape for var in eqn.outvars), eqn.params.values()):
            for value in values:
                yield from filter(is_dimension, value if isinstance(value, tuple) else (value,))


def export_entry(name: str, entry: Entry, tree: PyTreeSpec, platforms: tuple[str, ...],
                 disabled_checks: Sequence[DisabledSafetyCheck] = (),
                 is_saved: bool = True) -> Exported:
    """Exports a traced function, for one device.

    Args:
      is_saved: whether it may be saved.

    Raises:
      NotImplementedError: it calls back into Python, or closes over tracers.
    """
    if entry.closed.refs:
        raise RefsTouched("export", entry.closed.refs)
    if entry.captured:
        raise NotImplementedError(
            f"{name} closes over values that are being traced: export it outside the "
            "transformation, or pass them as arguments")
    closed = entry.closed
    return _exported(name, PyTreeDef(tree), tuple(closed.in_avals), PyTreeDef(entry.out_tree),
                     tuple(closed.out_avals), closed, platforms, tuple(disabled_checks), is_saved)


def _specs(places: Sequence[Sharding | None]) -> tuple[PartitionSpec | None, ...]:
    return tuple([place.spec if isinstance(place, NamedSharding) else None for place in places])


def _mesh_in(closed: ClosedJaxpr) -> Any:
    """The mesh that a program names: of a ``shard_map``, or of how a value lies."""
    for eqn in every_equation(closed):
        named = placements(eqn.primitive, eqn.params) if eqn.primitive.outside.placement else []
        for value in (*eqn.params.values(), *[getattr(place, "mesh", None) for place in named]):
            if isinstance(value, (Mesh, AbstractMesh)) and not value.empty:
                return value
    return None


def _exported(name: str, in_tree: PyTreeDef, in_avals: tuple[ShapedArray, ...],
              out_tree: PyTreeDef, out_avals: tuple[ShapedArray, ...], closed: ClosedJaxpr,
              platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...],
              is_saved: bool = True) -> Exported:
    """``closed`` takes and gives the arrays except those of float0."""
    program = without_rules(closed)
    try:
        if is_saved:
            encode(program.jaxpr)
    except NotSerializable as error:
        primitive = error.args[1] if len(error.args) > 1 else "a constant"
        raise NotImplementedError(
            f"{name} cannot be exported: its program has the primitive {primitive!r}, which holds "
            f"{error.args[0]}. Callbacks and other Python functions cannot be saved") from None
    return Exported(name, in_tree, in_avals, out_tree, out_avals, platforms, checks, program,
                    lambda exported: _vjp_of(exported, closed))


def without_rules(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Without calls, and so without derivative rules, which are Python functions."""
    inlined = eliminate_dead_code(inline_calls(inline_calls(closed), _that_hold_functions))
    eqns = [_anywhere(eqn) if eqn.primitive.outside.placement is not None else
            eqn.replace(params={name: _value_without_rules(value)
                                for name, value in eqn.params.items()}, source=None)
            if not eqn.primitive.cacheable else eqn for eqn in inlined.jaxpr.eqns]
    return inlined.replace(eqns=eqns)


def _that_hold_functions(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The operations that an equation stands for, if its parameters may hold Python functions."""
    return None if eqn.primitive.cacheable else expansion(eqn)


def _anywhere(eqn: JaxprEqn) -> JaxprEqn:
    """Removes from an equation where its values are: a file names no devices."""
    count = len(eqn.invars)
    return JaxprEqn(device_put_p, eqn.invars, {
        "devices": (None,) * count, "srcs": (None,) * count,
        "copy_semantics": (ArrayCopySemantics.REUSE_INPUT,) * count}, eqn.outvars)


def _value_without_rules(value: object) -> Any:
    if isinstance(value, ClosedJaxpr):
        return without_rules(value)
    if isinstance(value, Jaxpr):
        inner = without_rules(ClosedJaxpr(value.replace(constvars=[], invars=[
            *value.constvars, *value.invars])))
        count = len(value.constvars)
        if inner.consts:
            return value
        return inner.jaxpr.replace(constvars=inner.jaxpr.invars[:count],
                                   invars=inner.jaxpr.invars[count:])
    if type(value) is tuple:
        return tuple([_value_without_rules(item) for item in value])
    return value


def _vjp_of(exported: Exported, closed: ClosedJaxpr) -> Exported:
    inputs = exported.in_avals
    tangents = tuple(aval.tangent() for aval in exported.out_avals)
    in_avals = (*inputs, *tangents)
    out_avals = tuple(aval.tangent() for aval in inputs)
    kept = [aval for aval in inputs if aval.dtype != dtypes.float0]
    taken = [aval for aval in tangents if aval.dtype != dtypes.float0]

    def function(*values: Value) -> list[Any]:
        """Takes and gives the arrays except those of float0."""
        primals, given = values[:len(kept)], iter(values[len(kept):])
        active = [dtypes.has_tangents(aval.dtype) for aval in kept]

        def of_active(*chosen: Value) -> list[Any]:
            mine = iter(chosen)
            operands = [next(mine) if is_active else x
                        for is_active, x in zip(active, primals, strict=True)]
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *operands)
            return [out for out, aval in zip(outs, closed.out_avals, strict=True)
                    if dtypes.has_tangents(aval.dtype)]

        chosen = [x for x, is_active in zip(primals, active, strict=True) if is_active]
        _, pull = autodiff.vjp(of_active, *chosen)
        return list(pull(list(given)))

    function.__name__ = "fun_vjp_jax"
    entry = make_jit(function)._trace_abstract(tuple(
        ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)
        for aval in (*kept, *taken)), {})[0]

    def flat(count: int) -> Any:
        return tuple([0] * count)

    made = _exported("fun_vjp_jax", PyTreeDef(pytree.structure((flat(len(in_avals)), {}))),
                     in_avals, PyTreeDef(pytree.structure(flat(len(out_avals)))), out_avals,
                     entry.closed, exported.platforms, exported.disabled_safety_checks)
    return dataclasses.replace(
        made, nr_devices=exported.nr_devices, mesh_axes=exported.mesh_axes,
        in_specs=(*exported.in_specs, *exported.out_specs), out_specs=exported.in_specs)
