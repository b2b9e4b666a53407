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
from maxjax._base.meshes import Mesh, around
from maxjax._base.meshes import use as mesh_use
from maxjax._base.processes import job
from maxjax._base.shardings import NamedSharding, Sharding, SingleDeviceSharding
from maxjax._higher_order.outputs import HasNoValue, without_value
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, Params, derived
from maxjax._ir.primitive import OpSpec, Primitive, op_spec
from maxjax._ir.runtime import Devices, Runtime, install
from maxjax._ir.staging import is_staging, staged
from maxjax._ir.trace import Array, Tracer, Value, aval_of, context, is_scalar, leaked_tracer_error
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import FlatJvp, FlatVjp
from maxjax._primitives.sharding import placements, type_on
from maxjax._runtime import (
    invalid,
    keys,
    on_device,
    on_mesh,
    operand_devices,
    spanning,
    transfer_guard,
)
from maxjax._runtime import program as program_module
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.cells import Cell, pending
from maxjax._runtime.devices import (
    Device,
    allow_execution,
    default_device,
    default_device_override,
    memory_of,
)
from maxjax._runtime.devices import devices as all_devices
from maxjax._runtime.donation import check_donated_once, fitting, give_up
from maxjax._runtime.memory import out_of_memory, sharing
from maxjax._runtime.on_mesh import Placed
from maxjax._runtime.operand_devices import Leaf, Placement
from maxjax._runtime.program import Program, program_of
from maxjax._runtime.spanning_array import SpanningArray, collected, spread
from maxjax._sharding.summands import shows_summands, unreduced_axes, with_summands
from maxjax._stablehlo.module import module_text

# A graph is run when it has this many operations, or when its results would take this many bytes.
MAX_OPERATIONS = 4096
MAX_BYTES = 256 << 20

_new_array = ArrayImpl.__new__
_reference = weakref.ref


@derived
def _puts_values(closed: ClosedJaxpr) -> bool:
    for eqn in closed.jaxpr.eqns:
        callee = eqn.primitive.called(eqn.params) if eqn.primitive.stepwise else None
        if eqn.primitive.placement is not None or callee is not None and _puts_values(callee):
            return True
    return False


class LazyTrace(Runtime):
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
            results = self.call(program_module.single(spec), args, name=primitive.name)
            return results if primitive.multiple_results else results[0]
        cell = Cell(spec, inputs)
        result: Any
        if primitive.multiple_results:
            cell.parts = []
            results = []
            for aval in spec.out_avals:
                part = Cell(None, None)
                part.origin = cell
                cell.parts.append(part)
                result = ArrayImpl(aval, None, part)
                part.array = _reference(result)
                results.append(result)
            result = results
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
            put_results(results if primitive.multiple_results else [result], placed, spec, args)
        graph = pending
        graph.cells.append(cell)
        graph.bytes += spec.weight
        if status.watched:
            made = results if primitive.multiple_results else [result]
            allow_execution(primitive.name)
            if status.guards_transfers:
                transfer_guard.check_operands(args, Array)
                transfer_guard.between_devices(args, made)
            if status.checks_keys:
                keys.used(program_module.single(spec), args, primitive.name)(made)
            put_on_default_device(made)
            if status.checks_values:
                invalid.check(primitive.name, made)
        if graph.bytes > MAX_BYTES or len(graph.cells) > MAX_OPERATIONS:
            graph.flush()
        return result

    def _over_processes(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        """An operation on arrays over several processes is a program."""
        if not primitive.cacheable or primitive.placement is not None:
            return self.apply_program(primitive, args, params)
        operands = [self.concrete(arg) for arg in args]
        spec = op_spec(primitive, tuple([x.aval for x in operands]), params)
        results = self.call(program_module.single(spec), operands, name=primitive.name)
        return results if primitive.multiple_results else results[0]

    def apply_program(self, primitive: Primitive, args: tuple[Value, ...],
                      params: Params) -> Any:
        """A higher-order primitive runs at once, as a program of its jaxpr; a callback too."""
        if primitive.placement is not None:
            results = []
            for arg, placement in zip(args, placements(primitive, params), strict=True):
                value = self.concrete(arg)
                if placement is not None:
                    placement = operand_devices.with_devices(placement, value)
                    operand_devices.check_devices(primitive, value, placement)
                    value = put(value, placement)
                results.append(value)
            return results if primitive.multiple_results else results[0]
        if primitive.eager is not None:
            return self.apply_eager(primitive, args, params)
        if primitive.program is not None:
            avals = tuple([aval_of(arg) for arg in args])
            whole = program_module.call_of(primitive, avals, params)
            closed, shardings = primitive.program(**params)
            if job.device_counts:
                values = [self.concrete(arg) for arg in args]
                shardings = [operand_devices.of_shard_map(sharding, values)
                             for sharding in shardings]
                if any(map(spanning.spans, shardings)):
                    return self.call(whole, values, name=primitive.name, out_shardings=shardings)
            if mesh_use.ever_set and shows_summands(whole):
                results = self.call(whole, args, name=primitive.name)
                values = [self.concrete(arg) for arg in args]
                for result, sharding in zip(results, shardings, strict=True):
                    result._placement = operand_devices.of_shard_map(sharding, values)
                return results
            return self.apply_global(closed, shardings, args)
        callee = primitive.called(params)
        if callee is not None:
            if primitive.stepwise and _puts_values(callee):
                return eval_jaxpr(callee.jaxpr, callee.consts, *args)
            return self.call(callee, args)
        avals = tuple([aval_of(arg) for arg in args])
        return self.call(program_module.call_of(primitive, avals, params), args,
                         name=primitive.name)

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
        results = self.call(closed, values)
        for result, sharding in zip(results, shardings, strict=True):
            result._placement, result._committed = sharding, True
            result.aval = type_on(result.aval, sharding)
        return results

    def apply_eager(self, primitive: Primitive, args: tuple[Value, ...],
                    params: Params) -> list[Any]:
        """Calls the primitive's own rule on arrays, without a program around it."""
        operands = [self.concrete(arg) for arg in args]
        spec = op_spec(primitive, tuple([x.aval for x in operands]), params)
        assert primitive.eager is not None
        results = primitive.eager(operands, **params)
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
        """The same, with where arrays have been put."""
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

    def call(self, closed: ClosedJaxpr, leaves: Sequence[Leaf],
             donated: Sequence[int] = (), name: str = "",
             out_shardings: Sequence[Sharding | None] | None = None) -> list[ArrayImpl]:
        """Runs a jaxpr on concrete leaves; ``name`` is that of the one primitive it holds."""
        if job.device_counts and spanning.concerns(closed, leaves, out_shardings):
            made = self._call_over_processes(closed, leaves, donated, name, out_shardings)
            if made is not None:
                return made
            leaves = [_unread(leaf.aval) if leaf.__class__ is SpanningArray else leaf
                      for leaf in leaves]
        if status.accelerators:
            on_accelerator = self._call_on_accelerator(closed, leaves, donated, name, out_shardings)
            if on_accelerator is not None:
                return on_accelerator
        values = []
        foreign = []
        are_placed = False
        for leaf in leaves:
            if leaf.__class__ is ArrayImpl:
                value = leaf._value
                values.append(leaf.host() if value is None else value)
                if leaf._placement is not None:
                    are_placed = True
            elif isinstance(leaf, np.ndarray):
                value = plain(leaf)
                values.append(value)
                if value.dtype == leaf.dtype:
                    foreign.append(value)
            elif isinstance(leaf, Tracer):
                raise leaked_tracer_error(leaf)
            else:
                values.append(self.concrete(leaf).host())
        placed: PlacedCall | None = None
        ran = closed
        if are_placed or out_shardings is not None or mesh_use.ever_set:
            placed = placed_call(name, closed, leaves, out_shardings)
            ran = closed if placed.closed is None else placed.closed
            if placed.summands:
                ran = with_summands(on_mesh.without_types(closed),
                                    tuple([hasattr(leaf, "_summands") for leaf in leaves]))
                values += [leaf._summands for leaf in leaves if hasattr(leaf, "_summands")]
        program: Program
        if not donated:
            program = ran.cache.get("program") or program_of(ran)
        kept = note_keys = None
        if status.watched:
            allow_execution(name or closed.cache.get("name", closed.jaxpr.debug_info))
            if status.guards_transfers:
                transfer_guard.check_operands(leaves, Array)
            if status.checks_keys:
                note_keys = keys.used(closed, leaves, name or "jit-compiled function")
            if status.checks_values:
                kept = self._kept_operands(closed, leaves, values, donated)
        if donated:
            check_donated_once(leaves, donated)
            if placed is not None:
                donated = fitting(leaves, donated, placed.results)
            overwritten = () if placed is not None and placed.summands else tuple(donated)
            program = ran.cache.get(("program", overwritten)) or program_of(ran, overwritten)
            value = None    # the last of the values, which would be referred to once more
            give_up(leaves, values, donated)
        try:
            outputs = program.run(values)
        except MemoryError as error:
            raise out_of_memory(error) from error
        if foreign:
            # The caller may write to its arrays later: no result is one of them, or a view of one.
            shares = sharing(foreign)
            outputs = [value.copy() if shares(value) else value for value in outputs]
        if placed is None:
            results = [ArrayImpl(aval, value) for aval, value in zip(
                closed.cache.get("out types") or out_types(closed), outputs, strict=True)]
        else:
            results = []
            for (aval, placement, committed), value in zip(
                    placed.results, outputs, strict=not placed.summands):
                result = ArrayImpl(aval, value)
                result._placement, result._committed = placement, committed
                results.append(result)
            if placed.summands:
                summands = iter(outputs[len(results):])
                for result, aval in zip(results, closed.out_avals, strict=True):
                    if unreduced_axes(aval):
                        result._summands = next(summands)
        if kept is not None:
            if name:        # of a loop, say: it counts as one operation
                invalid.check(name, results)
            else:
                invalid.check_program(closed, kept, results, self.apply)
        if status.watched:
            put_on_default_device(results)
            if status.guards_transfers:
                transfer_guard.between_devices(leaves, results)
            if note_keys is not None:
                note_keys(results)
        return results

    def _call_on_accelerator(self, closed: ClosedJaxpr, leaves: Sequence[Leaf],
                             donated: Sequence[int], name: str,
                             out_shardings: Sequence[Sharding | None] | None
                             ) -> list[ArrayImpl] | None:
        """Runs a jaxpr on the one accelerator where its operands are, or its results are to be;
        None if there is none, or the program is not compiled for it: the host runs it then."""
        if status.checks_values or any(isinstance(leaf, Tracer) for leaf in leaves):
            return None
        operands = [self.concrete(leaf) for leaf in leaves]
        if any(operand.__class__ is not ArrayImpl for operand in operands):
            return None
        placed = placed_call(name, closed, operands, out_shardings)
        default = default_device_override()
        where = {default if placement is None else placement
                 for _, placement, _ in placed.results}
        memory = memory_of(where.pop()) if len(where) == 1 else None
        if memory is None or placed.summands:
            return None
        if donated:
            check_donated_once(leaves, donated)
        results = on_device.call(closed if placed.closed is None else placed.closed, operands,
                                 placed.results, memory,
                                 name or closed.cache.get("name", closed.jaxpr.debug_info))
        if results is None:
            return None
        for position in donated:
            if leaves[position].__class__ is ArrayImpl:
                operands[position].delete()
        if status.watched:
            put_on_default_device(results)
        return results

    def _call_over_processes(self, closed: ClosedJaxpr, leaves: Sequence[Leaf],
                             donated: Sequence[int], name: str,
                             out_shardings: Sequence[Sharding | None] | None
                             ) -> list[Any] | None:
        operands = [self.concrete(leaf) for leaf in leaves]
        if donated:
            check_donated_once(operands, donated)
        operation = name
        name = name or closed.cache.get("name", "") or closed.jaxpr.debug_info.split(" at ")[0]
        if status.watched:
            allow_execution(name)
        key = ([(operand.__class__, operand._placement, operand._committed)
                for operand in operands], out_shardings, around() if mesh_use.ever_set else None)
        known = closed.cache.get("call over processes")
        try:
            if known is not None and known[0] == key:      # most often the same objects
                results = known[1].run(operands, closed.out_avals)
            else:
                placed = None
                for operand in operands:
                    if operand._placement is not None:
                        placed = common_placement(name, placed, operand, operands, closed)
                results, program = spanning.call(closed, operands, placed, out_shardings, name)
                if program is not None:
                    closed.cache["call over processes"] = key, program
        except MemoryError as error:
            raise out_of_memory(error) from error
        if status.checks_values and results:
            kind = spanning.check_values(name, results)
            if kind is not None:
                # All processes know, and run the operations one by one together.
                invalid.blame(kind, closed, operands, self.apply, operation)
        for position in donated if results is not None else ():
            operands[position].delete()
        return results

    def _kept_operands(self, closed: ClosedJaxpr, leaves: Sequence[Leaf],
                       values: Sequence[np.ndarray], donated: Sequence[int]) -> list[Any]:
        """The operands of a program whose operations may have to run again one by one."""
        kept = [leaf if leaf.__class__ is ArrayImpl else ArrayImpl(aval, value)
                for leaf, value, aval in zip(leaves, values, closed.in_avals, strict=True)]
        for position in donated:
            kept[position] = kept[position]._with_value(values[position])
        return kept

    def compile(self, closed: ClosedJaxpr, in_shardings: Sequence[Sharding | None],
                out_shardings: Sequence[Sharding | None] | None, donated: Sequence[int] = ()
                ) -> tuple[list[Sharding], list[Sharding]]:
        """Compiles a jaxpr ahead of time, as far as the mode allows, for operands with given
        shardings (None: any), and waits. Returns the shardings of all operands and results."""
        ran, ins, outs = on_mesh.compiled_for(closed, in_shardings, out_shardings)
        program = program_of(ran, tuple(donated))
        if program_module.config.compile_mode.value != "never":
            program_module.policy.tiering.compile_now(program)
        return ins, outs

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
            raise TypeError(
                f"Value {leaf!r} with type {type(leaf)} is not a valid JAX type")
        # The caller may write to its array later: it is copied.
        return self._on_default_device(
            ArrayImpl(aval, aligned.copied(plain(leaf), aval.dtype)))


def _unread(aval: ShapedArray) -> ArrayImpl:
    """Stands for an operand that nothing reads."""
    zero = np.zeros((), dtypes.physical(aval.dtype))
    return ArrayImpl(aval.off_mesh(), np.broadcast_to(zero, aval.shape))


def out_types(closed: ClosedJaxpr) -> tuple[ShapedArray, ...]:
    """The types of a jaxpr's results, which are kept with it for calls to come."""
    known = closed.cache["out types"] = tuple(closed.out_avals)
    return known


class PlacedCall:
    """A call of a jaxpr with its operands where they are, but for their values.

    Attributes:
      key: how operands lie, what is asked of results, and the mesh around.
      closed: the jaxpr that runs; None: the called one itself, which this is kept with.
      results: type, placement and whether on purpose of each result.
      summands: whether it runs with the summands of unreduced values.
    """

    __slots__ = ("closed", "key", "results", "summands")

    def __init__(self, key: Any, closed: ClosedJaxpr | None,
                 results: list[tuple[ShapedArray, Any, bool]], summands: bool):
        self.key = key
        self.closed = closed
        self.results = results
        self.summands = summands


def placed_call(name: str, closed: ClosedJaxpr, leaves: Sequence[Any],
                out_shardings: Sequence[Sharding | None] | None) -> PlacedCall:
    """How a jaxpr is called with its operands where they are; that of the last call is kept.

    Raises:
      ValueError: operands, or what the program or its caller names, are on different devices.
    """
    key = ([(leaf._placement, leaf._committed) if leaf.__class__ is ArrayImpl else None
            for leaf in leaves], out_shardings, around() if mesh_use.ever_set else None)
    known = closed.cache.get("placed call")
    if known is not None and known.key == key:      # most often the same objects
        return known
    placed = None
    for leaf in leaves:
        if leaf.__class__ is ArrayImpl and leaf._placement is not None:
            placed = common_placement(name, placed, leaf, leaves, closed)
    ran, where = on_mesh.placed_program(closed, leaves, placed, out_shardings)
    made = PlacedCall(key, None if ran is closed else ran, [
        (aval, None, False) if here is None else (type_on(aval, here[0]), *here)
        for aval, here in zip(closed.out_avals, where, strict=True)], shows_summands(closed))
    closed.cache["placed call"] = made
    return made


def python_value(value: object, dtype: np.dtype) -> np.ndarray:
    try:
        return np.asarray(value, dtype)
    except OverflowError:
        raise OverflowError(f"Python int {value} too large to convert to {dtype.name}") from None


def leaf_aval(leaf: object) -> ShapedArray | None:
    """The type of a concrete leaf, or None."""
    kind = leaf.__class__
    if kind is np.ndarray and leaf.dtype in dtypes.CANONICAL:       # type: ignore[attr-defined]
        return ShapedArray(leaf.shape, leaf.dtype)                  # type: ignore[attr-defined]
    if kind in dtypes.PYTHON_SCALARS:
        dtype, weak = dtypes.python_scalar(kind)
        return ShapedArray((), dtype, weak)
    if isinstance(leaf, (np.ndarray, np.generic)):
        dtype = dtypes.canonical(leaf.dtype)
        if dtype == dtypes.bool_ or dtypes.is_numeric(dtype) or dtype == dtypes.float0:
            return ShapedArray(leaf.shape, dtype)
        return None
    for base, (_, _, weak) in dtypes.PYTHON_SCALARS.items():
        if isinstance(leaf, base):      # subclasses: IntEnum, numpy-like scalars
            dtype = dtypes.python_scalar(base)[0]
            return ShapedArray((), dtype, weak)
    return None


def plain(value: Any) -> np.ndarray:
    """A value from outside as what programs compute on: a NumPy array, of no subclass and of the
    canonical dtype. Arguments of ``jit``, operands, leaves, constants and results of Python
    functions all come through here; where nothing had to be converted, the memory is still the
    caller's.

    Raises:
      ValueError: it is a masked array.
    """
    if value.__class__ is np.ndarray:
        if value.dtype in dtypes.CANONICAL:
            return value
    else:
        if isinstance(value, np.ma.MaskedArray):
            raise ValueError(
                "numpy masked arrays are not supported as direct inputs to JAX functions. Use "
                "arr.filled() to convert the value to a standard numpy array.")
        value = np.asarray(value)
    dtype = dtypes.canonical(value.dtype)
    return value if dtype is value.dtype or dtype == value.dtype else value.astype(dtype)


def common_placement(name: str, known: Placed | None, operand: ArrayImpl, operands: Sequence[Leaf],
                     closed: ClosedJaxpr | None = None) -> Any:
    """The placement of a result, and whether it is committed, from the operands that have one.

    Raises:
      ValueError: two are on different devices, or on the same in another order.
    """
    here: Placed = (operand._placement, operand._committed)      # type: ignore[assignment]
    if not here[1] and here[0].__class__ is Device:
        return known        # results need not follow an operand that is not committed
    if known is None or known[0] is here[0]:
        return here if known is None or here[1] else known
    if not (known[1] and here[1]):
        return known if known[1] else here
    if here[0].__class__ is known[0].__class__ is NamedSharding and (
            here[0].mesh is known[0].mesh):
        return known
    if closed is not None:
        if not operand_devices.is_read(closed, operands, here[0]):
            return known
        if not operand_devices.is_read(closed, operands, known[0]):
            return here
    devices = [operand_devices.devices_of(placement) for placement, _ in (known, here)]
    if list(devices[0]) != list(devices[1]):
        first = next(x for x in operands
                     if isinstance(x, ArrayImpl) and x._placement is known[0])
        raise ValueError(operand_devices.incompatible(name, operands, first, operand, closed))
    one = operand_devices.is_one_device(known[0])
    return here if one and not operand_devices.is_one_device(here[0]) else known


def put_on_default_device(results: Sequence[ArrayImpl]) -> None:
    """Puts results without a placement on the device that ``jax_default_device`` names."""
    device = default_device_override()
    if device is not None:
        for result in results:
            if result._placement is None:
                result._placement = device


def put_results(results: Sequence[ArrayImpl], placed: Placed | None, spec: OpSpec,
                operands: Sequence[Value]) -> None:
    """Sets the placements of an operation's results."""
    if placed is not None and placed[1] and mesh_use.ever_set:
        on_mesh.check_context(spec.primitive.name, operands, placed[0])
    mesh = on_mesh.mesh_of(None if placed is None else placed[0])
    if mesh is None:
        if placed is not None:
            for result in results:
                result._placement, result._committed = placed
        return
    for result, sharding in zip(
            results, on_mesh.result_shardings(spec, operands, mesh), strict=True):
        result._placement, result._committed = sharding, True


def put(value: ArrayImpl, placement: Placement) -> ArrayImpl:
    """The array on a device, or with a sharding.

    Raises:
      ValueError: it cannot have that sharding.
    """
    if isinstance(placement, SingleDeviceSharding) and placement.memory_kind == "device":
        placement = placement._device
    if value._placement is placement and value._committed:
        return value
    if job.device_counts and (value.__class__ is SpanningArray or spanning.spans(placement)):
        return spanning.put(value, placement)
    memory = memory_of(placement) if status.accelerators else None
    if memory is None:
        placed = ArrayImpl(type_on(value.aval, placement), value.host())
    else:
        placed = ArrayImpl(type_on(value.aval, placement), None)
        placed.store(value.stored_in(memory) or memory.store(value.host()))
    if isinstance(placement, NamedSharding) and not isinstance(placement.mesh, Mesh):
        # Only the type changes: the value stays where it is.
        where = value._placement
        if isinstance(where, NamedSharding):
            where = where.update(
                mesh=where.mesh.update(axis_types=placement.mesh.axis_types),
                spec=where.spec.update(unreduced=frozenset(), reduced=frozenset()))
        placed._placement, placed._committed = where, value._committed
    else:
        placed._placement, placed._committed = placement, True
    if hasattr(value, "_layout"):
        placed._layout = value._layout
    if hasattr(value, "_summands"):
        before, after = unreduced_axes(value.aval), unreduced_axes(placed.aval)
        # Summands count by the axes' names: other names may be in another order.
        if after and (before == after or len(after) == 1):
            placed._summands = value._summands
    return placed


install(LazyTrace())
