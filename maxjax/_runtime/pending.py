"""The runtime: operations outside of transformations are recorded, and programs run.

An operation makes a cell and appends it to the pending graph (``maxjax._runtime.cells``). The first
look at a value runs all that is pending; a graph that grows long or would hold much memory is run
without waiting for a look.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import aligned, dtypes
from maxjax._base.config import status
from maxjax._base.layouts import Layout
from maxjax._base.lazy import LazyModule
from maxjax._base.meshes import use as mesh_use
from maxjax._base.processes import job
from maxjax._base.shardings import NamedSharding, Sharding
from maxjax._higher_order.outputs import HasNoValue, without_value
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, Params, derived
from maxjax._ir.primitive import OpSpec, Primitive, op_spec
from maxjax._ir.runtime import Devices, call_of, install
from maxjax._ir.staging import is_staging, staged
from maxjax._ir.trace import Array, Tracer, Value, aval_of, context, is_scalar, leaked_tracer_error
from maxjax._ir.types import ShapedArray, check_sizes
from maxjax._ir.typing import FlatJvp, FlatVjp
from maxjax._primitives.sharding import placements, type_on
from maxjax._runtime import (
    invalid,
    keys,
    operand_devices,
    spanning,
    transfer_guard,
)
from maxjax._runtime import program as program_module
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.calls import Caller
from maxjax._runtime.cells import Cell, pending
from maxjax._runtime.devices import (
    allow_execution,
    default_device,
    memory_of,
)
from maxjax._runtime.devices import devices as all_devices
from maxjax._runtime.operand_devices import Leaf
from maxjax._runtime.outside_values import leaf_aval, not_numeric, plain, python_value
from maxjax._runtime.result_placement import (
    common_placement,
    put,
    put_on_default_device,
    put_results,
)
from maxjax._runtime.spanning_array import SpanningArray, collected, spread
from maxjax._sharding.summands import shows_summands, unreduced_axes
from maxjax._stablehlo.module import module_text

# With the parser of StableHLO: some 8 ms, for few programs.
_hlo = LazyModule("maxjax._stablehlo.hlo")

# A graph is run when it has this many operations, or when its results would take this many bytes.
MAX_OPERATIONS = 4096
MAX_BYTES = 256 << 20

_new_array = ArrayImpl.__new__
_reference = weakref.ref


@derived
def _puts_values(closed: ClosedJaxpr) -> bool:
    for eqn in closed.jaxpr.eqns:
        outside = eqn.primitive.outside
        callee = eqn.primitive.called(eqn.params) if outside.stepwise else None
        if outside.placement is not None or callee is not None and _puts_values(callee):
            return True
    return False


class LazyTrace(Caller):
    """The trace at the bottom: records, and runs programs."""

    __slots__ = ()

    @property
    def platform(self) -> str:
        """That of the default device."""
        return default_device().platform

    def apply(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        inputs: list[Any] = []
        avals = []
        placed: Any = None
        for arg in args:
            if arg.__class__ is not ArrayImpl:
                if isinstance(arg, Tracer):
                    raise leaked_tracer_error(arg)
                if arg.__class__ is SpanningArray:
                    return self._over_processes(primitive, args, params)
                if is_scalar(arg):
                    inputs.append(arg)
                    avals.append(ShapedArray((), arg.dtype))
                    continue
                arg = self.concrete(arg)
            cell = arg._cell
            if cell is not None:
                inputs.append(cell)
            else:
                value = arg._value
                inputs.append(arg.host() if value is None else value)
            avals.append(arg.aval)
            if arg._placement is not None:
                placed = common_placement(primitive.name, placed, arg, args)
        if not primitive.cacheable:
            return self.apply_program(primitive, args, params)
        spec = op_spec(primitive, tuple(avals), params)
        if placed is not None and any(
                not aval.plain and unreduced_axes(aval) for aval in avals):
            results = self.call(call_of(program_module.single(spec), primitive.name), args)
            return results if primitive.multiple_results else results[0]
        cell = Cell(spec, inputs)
        result: Any
        if primitive.multiple_results:
            result = _parts(cell, spec)
        else:
            result = _new_array(ArrayImpl)
            result.aval = spec.out_aval
            result._value = None
            result._cell = cell
            result._placement = None
            result._committed = False
            cell.array = _reference(result)
        if placed is not None or mesh_use.ever_set:
            if job.device_counts and (
                    spanning.around_spans() if placed is None else spanning.spans(placed[0])):
                return self._over_processes(primitive, args, params)
            put_results(result if primitive.multiple_results else [result], placed, spec, args)
        graph = pending
        weight = spec.weight
        if weight > MAX_BYTES:
            check_sizes(spec.out_avals)
        graph.cells.append(cell)
        graph.bytes += weight
        if status.watched:
            _watch(spec, args, result if primitive.multiple_results else [result])
        if graph.bytes > MAX_BYTES or len(graph.cells) > MAX_OPERATIONS:
            graph.flush()
        return result

    def _over_processes(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        """An operation on arrays over several processes is a program."""
        if not primitive.cacheable or primitive.outside.placement is not None:
            return self.apply_program(primitive, args, params)
        operands = [self.concrete(arg) for arg in args]
        spec = op_spec(primitive, tuple([x.aval for x in operands]), params)
        results = self.call(
            call_of(program_module.single(spec), primitive.name), operands)
        return results if primitive.multiple_results else results[0]

    def apply_program(self, primitive: Primitive, args: tuple[Value, ...],
                      params: Params) -> Any:
        """A higher-order primitive runs at once, as a program of its jaxpr; a callback too."""
        outside = primitive.outside
        if outside.placement is not None:
            results = []
            for arg, placement in zip(args, placements(primitive, params), strict=True):
                value = self.concrete(arg)
                if placement is not None:
                    placement = operand_devices.with_devices(placement, value)
                    operand_devices.check_devices(primitive, value, placement)
                    value = put(value, placement)
                results.append(value)
            return results if primitive.multiple_results else results[0]
        if outside.eager is not None:
            return self.apply_eager(primitive, args, params)
        if outside.program is not None:
            avals = tuple([aval_of(arg) for arg in args])
            whole = program_module.application(primitive, avals, params)
            closed, shardings = outside.program(**params)
            if job.device_counts:
                values = [self.concrete(arg) for arg in args]
                shardings = [operand_devices.of_shard_map(sharding, values)
                             for sharding in shardings]
                if any(map(spanning.spans, shardings)):
                    return self.call(
                        call_of(whole, primitive.name, tuple(shardings)), values)
            if mesh_use.ever_set and shows_summands(whole):
                results = self.call(call_of(whole, primitive.name), args)
                values = [self.concrete(arg) for arg in args]
                for result, sharding in zip(results, shardings, strict=True):
                    result._placement = operand_devices.of_shard_map(sharding, values)
                return results
            return self.apply_global(closed, shardings, args)
        callee = primitive.called(params)
        if callee is not None:
            if outside.stepwise and _puts_values(callee):
                return eval_jaxpr(callee.jaxpr, callee.consts, *args)
            return self.call(call_of(callee), args)
        avals = tuple([aval_of(arg) for arg in args])
        return self.call(call_of(
            program_module.application(primitive, avals, params), primitive.name), args)

    def apply_global(self, closed: ClosedJaxpr, shardings: Sequence[NamedSharding],
                     args: tuple[Value, ...]) -> list[Any]:
        """Runs a jaxpr of global values, wherever they are; the results get the given shardings.

        Raises:
          ValueError: they lie over an abstract mesh, and no value is on such a mesh.
        """
        values = [self.concrete(arg) for arg in args]
        shardings = [operand_devices.of_shard_map(sharding, values) for sharding in shardings]
        values = [x if x._placement is None else ArrayImpl(x.aval.off_mesh(), x.host())
                  for x in values]
        results = self.call(call_of(closed), values)
        for result, sharding in zip(results, shardings, strict=True):
            result._placement, result._committed = sharding, True
            result.aval = type_on(result.aval, sharding)
        return results

    def apply_eager(self, primitive: Primitive, args: tuple[Value, ...],
                    params: Params) -> list[Any]:
        """Calls the primitive's own rule on arrays, without a program around it."""
        operands = [self.concrete(arg) for arg in args]
        spec = op_spec(primitive, tuple([x.aval for x in operands]), params)
        assert primitive.outside.eager is not None
        results = primitive.outside.eager(operands, **params)
        return [ArrayImpl(aval, value)
                for aval, value in zip(spec.out_avals, results, strict=True)]

    def apply_custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp,
                         args: list[Value], **params: object) -> list[Any]:
        return function(*args)

    def apply_custom_vjp(self, function: Callable[..., list[Value]], rule: FlatVjp,
                         args: list[Value], **params: object) -> list[Any]:
        return function(*args)

    # --- what transformations ask of the runtime: see ``Runtime`` for what each is ---
    def devices(self, backend: str | None) -> list[Any]:
        """All devices of a platform; None: of the default one."""
        return all_devices(backend)

    def put(self, leaf: Leaf, sharding: Sharding) -> ArrayImpl:
        """A concrete leaf as an array with a sharding."""
        return put(self.concrete(leaf), sharding)

    def lay_out(self, x: Any, layout: Layout) -> Any:
        axes = layout.major_to_minor
        is_plain = axes == tuple(range(len(axes)))
        if is_plain and not hasattr(x, "_layout"):
            return x
        if x.__class__ is SpanningArray or status.accelerators and memory_of(x._placement):
            raise NotImplementedError(f"arrays of several processes, and on accelerators, are "
                                      f"row-major, got {layout}")
        laid = ArrayImpl(x.aval, x.host())
        laid._placement, laid._committed = x._placement, x._committed
        if not is_plain:
            laid._layout = axes
        return laid

    def spread(self, leaf: Leaf, sharding: NamedSharding) -> Any:
        """An array over several processes, from what this process's devices hold together."""
        return spread(self.concrete(leaf), sharding)

    def collected(self, array: Any) -> Any:
        """What this process's devices hold together of an array over several processes."""
        return collected(array) if array.__class__ is SpanningArray else array

    def constant(self, value: np.ndarray, aval: ShapedArray) -> ArrayImpl:
        """An array of a NumPy value, which nobody else writes to."""
        return self._on_default_device(ArrayImpl(aval, value))

    def _on_default_device(self, made: ArrayImpl) -> ArrayImpl:
        if status.watched:
            if status.guards_transfers:
                transfer_guard.from_host(None, made.aval)
            put_on_default_device([made])
        return made

    def stablehlo(self, name: str, closed: ClosedJaxpr, results: Sequence[str],
                  located: bool = False, arguments: Sequence[str] = (),
                  devices: Devices | None = None) -> str:
        """A jaxpr as the text of a StableHLO module."""
        return module_text(name, closed, results, located, arguments, devices)

    def hlo(self, stablehlo: str) -> str:
        """The text of a StableHLO module as that of HLO."""
        text: str = _hlo.hlo_text(stablehlo)
        return text

    def signature(self, leaves: Sequence[object]) -> tuple[ShapedArray, ...] | None:
        """The types of concrete leaves; None if one is a tracer or no array at all."""
        avals = []
        for leaf in leaves:
            if isinstance(leaf, ArrayImpl):
                avals.append(leaf.aval)
                continue
            aval = leaf_aval(leaf)
            if aval is None:
                return None
            avals.append(aval)
        return tuple(avals)

    def array_types(self, values: Sequence[Any]) -> tuple[object, ...] | None:
        """What determines the types of values that are all arrays, NumPy's too, or numbers, and
        takes less to find out than they; else None."""
        found: list[object] = []
        for value in values:
            kind = value.__class__
            if kind is ArrayImpl:
                found.append(value.aval)
            elif kind is np.ndarray:
                found.append((value.dtype, value.shape))
            elif kind in dtypes.PYTHON_SCALARS or issubclass(kind, np.generic):
                found.append(kind)
            else:
                return None
        return tuple(found)

    def placed_types(self, values: Sequence[Any]) -> tuple[object, ...] | None:
        """The types of values, each followed by where the array has been put; None as above."""
        found: list[object] = []
        for value in values:
            kind = value.__class__
            if kind is ArrayImpl:
                found.append(value.aval)
                placement, committed = value._placement, value._committed
                if placement is not None or committed:
                    found.append(placement)
                    found.append(committed)
            elif kind is np.ndarray:
                found.append((value.dtype, value.shape))
            elif kind in dtypes.PYTHON_SCALARS or issubclass(kind, np.generic):
                found.append(kind)
            else:
                return None
        return tuple(found)

    def operand(self, leaf: object) -> Any:
        """A leaf as an operand of primitives: an array or tracer.

        Raises:
          TypeError: it is neither a number nor an array.
          ValueError: it is a masked array.
        """
        if isinstance(leaf, Array):
            return leaf
        made = self._array_of(leaf)
        return made if context.trace is self or isinstance(made, Tracer) else staged(made)

    def concrete(self, leaf: object) -> Any:
        """A leaf as an operand whose value is known, while a program is traced too."""
        return leaf if isinstance(leaf, Array) else self._array_of(leaf)

    def _array_of(self, leaf: object) -> Any:
        kind = leaf.__class__
        if kind in dtypes.PYTHON_SCALARS:
            dtype, weak = dtypes.python_scalar(kind)
            return self._on_default_device(
                ArrayImpl(ShapedArray((), dtype, weak), python_value(leaf, dtype)))
        aval = leaf_aval(leaf)
        if aval is None:
            if isinstance(leaf, HasNoValue) and is_staging():
                return without_value(leaf)
            if hasattr(leaf, "__jax_array__"):
                return leaf.__jax_array__()
            if isinstance(leaf, (np.ndarray, np.generic)):
                raise not_numeric(leaf)
            raise TypeError(
                f"Value {leaf!r} with type {type(leaf)} is not a valid JAX type")
        # The caller may write to its array later: it is copied.
        return self._on_default_device(
            ArrayImpl(aval, aligned.copied(plain(leaf), aval.dtype)))


def _parts(cell: Cell, spec: OpSpec) -> list[ArrayImpl]:
    """The arrays that wait for the results of an operation with several."""
    cell.parts = []
    results = []
    for aval in spec.out_avals:
        part = Cell(None, None)
        part.origin = cell
        cell.parts.append(part)
        result = ArrayImpl(aval, None, part)
        part.array = _reference(result)
        results.append(result)
    return results


def _watch(spec: OpSpec, args: Sequence[Value], results: Sequence[ArrayImpl]) -> None:
    """The checks around one operation that options ask for (``maxjax._runtime.calls.Watch``).

    Raises:
      RuntimeError: nothing may run.
      JaxRuntimeError: a transfer guard forbids an operand.
      KeyReuseError: a random key is used again.
      FloatingPointError: a result is invalid.
    """
    name = spec.primitive.name
    allow_execution(name)
    if status.guards_transfers:
        transfer_guard.check_operands(args, Array)
        transfer_guard.between_devices(args, results)
    if status.checks_keys:
        keys.used(program_module.single(spec), args, name)(results)
    put_on_default_device(results)
    if status.checks_values:
        invalid.check(name, results)


install(LazyTrace())
