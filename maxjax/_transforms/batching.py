"""Vectorization: each value may carry one batch axis, which each primitive's rule moves along."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import config
from maxjax._base.errors import InternalError
from maxjax._base.meshes import use as mesh_use
from maxjax._base.specs import AxisName, SpecEntry
from maxjax._ir.axes import jaxpr_uses_axis, named_axes, uses_axis
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, derived
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import Ref
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import (
    Array,
    Trace,
    Tracer,
    aval_of,
    check_leaks,
    context,
    current_trace,
    leaked_tracer_error,
)
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import (
    BatchAxis,
    FlatBackward,
    FlatFunction,
    FlatJvp,
    FlatVjp,
    Params,
    Value,
)
from maxjax._primitives.broadcasting import broadcast_leading, reduce_sum
from maxjax._primitives.layout import move_axis, squeeze_p
from maxjax._primitives.sharding import along_batch
from maxjax._primitives.slicing import slice_p


@dataclasses.dataclass(frozen=True)
class ValueAxis:
    """Instead of a batch axis: how an array in a value of a type above arrays is mapped.

    Attributes:
      spec: how the value is, of which only the type knows the meaning.
      whole: the type of all elements.
      element: the type of the array in one element.
    """

    spec: Any
    whole: Any
    element: ShapedArray


class MappedValue(NotImplementedError):
    """An operation on the arrays in a mapped value of a type above arrays."""

    def __init__(self, what: str):
        super().__init__(f"{what} of a value of a type above arrays (jax.experimental.hijax), "
                         "under vmap")


class BatchTracer(Tracer):
    """One element of a batch: ``value`` holds all of them along ``axis``."""

    __slots__ = ("axis", "value")

    def __init__(self, trace: BatchTrace, value: Value, axis: Any):
        self._trace = trace
        self.aval = (axis.element if axis.__class__ is ValueAxis
                     else aval_of(value).without_dim(axis))
        self.value = value
        self.axis = axis

    def origin(self) -> str:
        return self.value.origin() if isinstance(self.value, Tracer) else ""

    def __repr__(self) -> str:
        return (f"VmapTracer(aval={self.aval}, "
                f"batched={aval_of(self.value)})")


class BatchTrace(Trace):
    """Applies each primitive's batching rule under the parent trace.

    Attributes:
      within: the trace with the same elements that has handed a function with a rule over to its
        parent; the function may close over tracers of it.
    """

    __slots__ = ("axis_name", "entry", "parent", "size", "spmd_axis", "within")

    def __init__(self, parent: Trace, size: int, axis_name: AxisName | None = None,
                 spmd_axis: AxisName = None, entry: SpecEntry | None = None,
                 within: BatchTrace | None = None):
        super().__init__()
        self.within = within
        self.parent = parent
        self.size = size
        self.axis_name = axis_name
        self.spmd_axis = spmd_axis      # the mesh axis that the elements lie along
        self.entry = entry      # the Explicit axes that they lie along, by their types

    def unbox(self, value: Value) -> tuple[Any, int | None]:
        if type(value) is BatchTracer:
            if value._trace is self:
                return value.value, value.axis
            if self.within is not None:
                return self.within.unbox(value)
            if not value._trace.live:
                raise leaked_tracer_error(value)
        return value, None

    def box(self, value: Value, axis: int | None) -> Any:
        return value if axis is None else BatchTracer(self, value, axis)

    def write_outside(self, ref: Ref, value: Value, operation: str) -> Any:
        raise Exception(
            f"performing {operation} operation with vmapped value on an unbatched array reference "
            f"of type {ref.aval}. Move the array reference to be an argument to the vmapped "
            "function?")

    def apply(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        if context.manual is not None:
            args = context.manual.align(self, primitive, args)
        operands, axes = [], []
        batched = primitive.rule_for_all
        in_values = False
        for arg in args:
            value, axis = self.unbox(arg)
            operands.append(value)
            axes.append(axis)
            if axis is not None:
                batched = True
                in_values = in_values or axis.__class__ is ValueAxis
        if in_values and not primitive.rule_for_all:
            return self._inlined(primitive, args, params)
        rule = primitive.batch
        if self.axis_name is not None and uses_axis(primitive, params, self.axis_name):
            communication = primitive.communication
            if communication is not None and communication.batch_named is not None:
                rule = functools.partial(communication.batch_named, self.axis_name)
        elif not batched:
            return self.parent.apply(primitive, tuple(operands), params)
        if rule is None:
            raise NotImplementedError(f"Batching rule for '{primitive.name}' not implemented")
        # The trace is not always self: one above may have passed this on.
        previous = (context.trace, context.batch_axis, context.batch_spmd_axis,
                    context.batch_entry)
        context.trace, context.batch_axis, context.batch_spmd_axis, context.batch_entry = (
            self.parent, self.axis_name, self.spmd_axis, self.entry)
        try:
            if self.entry is not None and primitive.sharded.split_alike is not None:
                self._split_alike(operands, axes)
            out, out_axis = rule(self.size, operands, axes, **params)
        except MappedValue:
            if primitive.called(params) is None:
                raise
            inline = True
        else:
            inline = False
        finally:
            (context.trace, context.batch_axis, context.batch_spmd_axis,
             context.batch_entry) = previous
        if inline:
            return self._inlined(primitive, args, params)
        if primitive.multiple_results:
            return [self.box(o, a) for o, a in zip(out, out_axis, strict=True)]
        return self.box(out, out_axis)

    def _split_alike(self, operands: list[Array], axes: list[BatchAxis]) -> None:
        """Gives the operands that are not mapped the mapped axis and its split; scalars go with
        any."""
        for n, operand in enumerate(operands):
            if axes[n] is None and operand.shape:
                operands[n], axes[n] = to_axis(operand, None, 0, self.size, self.entry), 0

    def _inlined(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        """A call of a jaxpr, equation by equation: the arrays in values have no axis to map."""
        closed = primitive.called(params)
        if closed is None:
            raise MappedValue(repr(primitive.name))
        with current_trace(self):
            return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    def apply_custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp,
                         args: list[Value], **params: Any) -> list[Any]:
        values, axes = zip(*map(self.unbox, args), strict=True) if args else ((), ())
        # What is not mapped may still close over what is.
        out_axes = _OutAxes()

        def batched(*xs: Value) -> list[Any]:
            outs, new_axes = self.batch(function, xs, axes)
            return out_axes.align(outs, new_axes, self.size)

        def batched_jvp(primals: list[Value], tangents: list[Value | None]
                        ) -> tuple[list[Any], list[Any]]:
            count = len(primals)
            present = [t is not None for t in tangents]

            def rule(*xs: Value) -> list[Any]:
                given = iter(xs[count:])
                outs, out_tangents = jvp(
                    list(xs[:count]), [next(given) if p else None for p in present])
                return [*outs, *out_tangents]

            filled = [t for t in tangents if t is not None]
            tangent_axes = [axis for axis, p in zip(axes, present, strict=True) if p]
            outs, axes_out = self.batch(rule, [*primals, *filled], [*axes, *tangent_axes])
            half = len(outs) // 2
            # A tangent has its result's batch axis.
            wanted = [own if own is not None else other for own, other in zip(
                axes_out[:half], axes_out[half:], strict=True)]
            results = [o if axis is wanted_axis else to_axis(
                           o, axis, wanted_axis, self.size, self.entry)
                       for o, axis, wanted_axis in zip(
                           outs[:half], axes_out[:half], wanted, strict=True)]
            results = out_axes.align(results, wanted, self.size)
            result_tangents = [
                None if t is None else
                t if target is None else to_axis(t, axis, target, self.size, self.entry)
                for t, axis, target in zip(
                    outs[half:], axes_out[half:], out_axes.axes, strict=True)]
            return results, result_tangents

        with current_trace(self.parent):
            outs = self.parent.apply_custom_jvp(batched, batched_jvp, list(values), **params)
        return [self.box(o, a) for o, a in zip(outs, out_axes.axes, strict=True)]

    def apply_custom_vjp(self, function: Callable[..., list[Value]], rule: FlatVjp,
                         args: list[Value], **params: Any) -> list[Any]:
        values, axes = zip(*map(self.unbox, args), strict=True) if args else ((), ())
        out_axes = _OutAxes()

        def batched(*xs: Value) -> list[Any]:
            outs, new_axes = self.batch(function, xs, axes)
            return out_axes.align(outs, new_axes, self.size)

        def batched_rule(primals: list[Value], perturbed: tuple[bool, ...]) -> Any:
            count = 0
            backward: Any = None

            def forward(*xs: Value) -> list[Any]:
                nonlocal count, backward
                outs, residuals, backward = rule(list(xs), perturbed)
                count = len(outs)
                return [*outs, *residuals]

            results, result_axes = self.batch(forward, primals, axes)
            outs = out_axes.align(results[:count], result_axes[:count], self.size)
            return outs, results[count:], functools.partial(
                self.batched_backward, backward, axes, result_axes[count:], out_axes.axes)

        with current_trace(self.parent):
            outs = self.parent.apply_custom_vjp(batched, batched_rule, list(values), **params)
        return [self.box(o, a) for o, a in zip(outs, out_axes.axes, strict=True)]

    def batched_backward(self, backward: FlatBackward, in_axes: Sequence[int | None],
                         residual_axes: Sequence[int | None], out_axes: Sequence[int | None],
                         residuals: list[Value], cotangents: list[Any]) -> list[Any]:
        """A reverse-mode rule on all elements: a cotangent has its argument's batch axis; where the
        argument has none, it is summed over the elements."""
        count = len(residuals)
        # Symbolic zeros and float0 are not mapped.
        mapped = [isinstance(cotangent, Array) for cotangent in cotangents]

        def on_element(*xs: Value) -> Sequence[Any]:
            given = iter(xs[count:])
            return backward(list(xs[:count]), [
                next(given) if flag else _one_element(cotangent, axis)
                for cotangent, flag, axis in zip(cotangents, mapped, out_axes, strict=True)])

        results, axes = self.batch(
            on_element,
            [*residuals, *(cotangent for cotangent, flag in zip(cotangents, mapped, strict=True)
                           if flag)],
            [*residual_axes, *(axis for axis, flag in zip(out_axes, mapped, strict=True) if flag)])
        return [x if x is None or (axis is None and wanted is None)
                else reduce_sum(x, (axis,)) if wanted is None
                else to_axis(x, axis, wanted, self.size, self.entry)
                for x, axis, wanted in zip(results, axes, in_axes, strict=True)]

    def batch(self, function: FlatFunction, operands: Sequence[Value],
              axes: Sequence[int | None]) -> tuple[list[Any], list[Any]]:
        return batch_flat(
            function, self.size, operands, axes, self.axis_name, self.spmd_axis, self)


class _OutAxes:
    """The batch axes of the results of a function with a rule: whichever of the two runs first
    decides for both."""

    __slots__ = ("axes",)

    def __init__(self) -> None:
        self.axes: list[int | None] = []

    def align(self, values: Sequence[Array], axes: Sequence[int | None], size: int) -> list[Any]:
        if not self.axes:
            self.axes = list(axes)
        result = []
        for value, axis, target in zip(values, axes, self.axes, strict=True):
            if target is not None:
                value = to_axis(value, axis, target, size)
            elif axis is not None:      # the same for all elements, so the first will do
                value = squeeze_p.bind(_first(value, axis), dimensions=(axis,))
            result.append(value)
        return result


def _first(value: Value, axis: int) -> Any:
    shape = value.shape
    return slice_p.bind(
        value, start_indices=(0,) * len(shape),
        limit_indices=tuple(1 if n == axis else size for n, size in enumerate(shape)),
        strides=None)


def _one_element(cotangent: Any, axis: int | None) -> Any:
    """A symbolic zero or float0 without the batch axis."""
    if axis is None or cotangent is None:
        return cotangent
    shape = cotangent.shape
    rest = (*shape[:axis], *shape[axis + 1:])
    if isinstance(cotangent, np.ndarray):
        return np.zeros(rest, cotangent.dtype)
    return type(cotangent)(ShapedArray(rest, cotangent.dtype))


def to_axis(value: Array, axis: int | None, target: int, size: int, entry: SpecEntry | None = None
            ) -> Any:
    """``value`` with its batch axis at ``target``; an unbatched one is repeated, and split
    over the Explicit axes of ``entry``, or else of the batch that the running rule maps."""
    if axis is not None:
        if axis.__class__ is ValueAxis:
            raise MappedValue("an array")
        return move_axis(value, axis, target)
    return along_batch(move_axis(broadcast_leading(value, size), 0, target), target, entry)


def batch_flat(function: FlatFunction, size: int, operands: Sequence[Value],
               axes: Sequence[int | None], axis_name: AxisName = None, spmd_axis: AxisName = None,
               within: BatchTrace | None = None) -> tuple[list[Any], list[Any]]:
    """Results of ``function`` on each element, and their batch axes (None: the same for all)."""
    entry = mapped_entry(operands, axes) if mesh_use.ever_set else None
    trace = BatchTrace(context.trace, size, axis_name, spmd_axis, entry, within)
    try:
        with current_trace(trace), named_axes(() if axis_name is None else [(axis_name, size)]):
            boxed = [trace.box(x, axis) for x, axis in zip(operands, axes, strict=True)]
            outputs = function(*boxed)
        pairs = [(None, None) if output is None else trace.unbox(output) for output in outputs]
    finally:
        trace.live = False
    if config.check_tracer_leaks.value:
        reference: weakref.ref[Trace] = weakref.ref(trace)
        del trace, boxed, outputs
        check_leaks(reference)
    return [value for value, _ in pairs], [axis for _, axis in pairs]


def mapped_entry(operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    """The Explicit axes that the first operand with a split mapped dimension has it split over."""
    for operand, axis in zip(operands, axes, strict=True):
        if axis is None or axis.__class__ is ValueAxis:
            continue
        found = aval_of(operand).mesh_spec
        if found is not None and found[1].partitions[axis] is not None:
            return found[1].partitions[axis]
    return None


def batch_jaxpr(closed: ClosedJaxpr, size: int, axes: tuple[int | None, ...],
                batched_outputs: tuple[bool, ...] | bool = False) -> tuple[
                    ClosedJaxpr, tuple[bool, ...]]:
    """The jaxpr of all elements at once, with which outputs are batched, always along axis 0.

    For batching rules: if the axis that they map has a name, collectives over it are carried out.
    ``batched_outputs`` names the outputs that must be batched even if they are all the same.
    """
    name = context.batch_axis
    if name is not None and not jaxpr_uses_axis(closed, name):
        name = None      # one jaxpr for axes of all names
    return _batch_jaxpr(closed, size, axes, batched_outputs, name, context.batch_spmd_axis,
                        context.batch_entry)


@derived
def _batch_jaxpr(closed: ClosedJaxpr, size: int, axes: tuple[int | None, ...],
                 batched_outputs: tuple[bool, ...] | bool, axis_name: AxisName, spmd_axis: AxisName,
                 entry: SpecEntry | None) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    in_avals = [aval if axis is None else aval.with_dim(axis, size, entry)
                for aval, axis in zip(closed.in_avals, axes, strict=True)]
    batched: list[bool] = []

    def function(*args: Value) -> list[Any]:
        outs, out_axes = batch_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), size, args, axes, axis_name,
            spmd_axis)
        force = ((batched_outputs,) * len(outs) if isinstance(batched_outputs, bool)
                 else batched_outputs)
        result = []
        for out, axis, forced in zip(outs, out_axes, force, strict=True):
            if axis is not None or forced:
                out = to_axis(out, axis, 0, size, entry)
            batched.append(axis is not None or forced)
            result.append(out)
        return result

    result = trace_to_jaxpr(function, in_avals, closed.jaxpr.debug_info)
    return result, tuple(batched)


def batch_size(operands: Sequence[Value], axes: Sequence[int | None]) -> int:
    """The common size of the batch axes."""
    sizes = {x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None}
    if len(sizes) != 1:
        raise InternalError(f"batch axes of sizes {sorted(sizes)}")
    return sizes.pop()
