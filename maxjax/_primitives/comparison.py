"""Comparison, selection, logic, bits and shifts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base import native as native_functions
from maxjax._ir.contract import takes
from maxjax._ir.costs import Cost, Roofline
from maxjax._ir.interpret import is_plain_scalar
from maxjax._ir.linearity import Linearity
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Host, Sharded
from maxjax._ir.trace import Array, aval_of
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Params, Value
from maxjax._primitives import complex_values, costs, fitting
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_leading
from maxjax._primitives.builders import add_any_p, elementwise
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full, zeros_like
from maxjax._primitives.kernels import ALL, Kernel, to_bool
from maxjax._primitives.layout import move_axis
from maxjax._primitives.rules import is_linear, native, scalar_like
from maxjax._primitives.slicing import provide
from maxjax._primitives.widths import (
    ANY,
    BITS,
    INTEGERS,
    ORDERED,
    accepted,
    bit_width,
    refusal,
    specialized,
    widened,
)

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear
    from maxjax._primitives.widths import Accepted

# --- comparison -----------------------------------------------------------------------------------


def _compare_records(function: np.ufunc) -> Any:
    """For keys, which are records of words: NumPy has no loop for them."""
    def words(x: np.ndarray) -> Any:
        x = np.asarray(x)
        return np.ascontiguousarray(x).reshape(-1).view(np.uint32).reshape(
            *x.shape, x.dtype.itemsize // 4)

    join = np.all if function is np.equal else np.any
    return lambda x, y: join(function(words(x), words(y)), -1)


def _comparison(name: str, function: np.ufunc, accepts: Accepted) -> Primitive:
    def specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                   out_avals: tuple[ShapedArray, ...]) -> np.ufunc:
        dtype = in_avals[0].dtype
        if dtypes.is_key(dtype) and dtype.physical.names:
            return _compare_records(function)
        return function

    return elementwise(name, evaluate=function, host=Host(specialize=specialize),
                       lower=native(name), kernels=(Kernel(name, ALL, 2, to_bool),), cheap=True,
                       out_dtype=dtypes.bool_, accepts=accepts, cost=costs.ELEMENTWISE)


EQUATED = accepted("integer floating complexfloating bool extended")

eq_p = _comparison("eq", np.equal, EQUATED)
ne_p = _comparison("ne", np.not_equal, EQUATED)
lt_p = _comparison("lt", np.less, ORDERED)
le_p = _comparison("le", np.less_equal, ORDERED)
gt_p = _comparison("gt", np.greater, ORDERED)
ge_p = _comparison("ge", np.greater_equal, ORDERED)


def total_order_key(x: np.ndarray) -> np.ndarray:
    """Integers that are ordered as floats are in the total order: -NaN, -inf ... -0, 0 ... NaN."""
    x = np.asarray(x)
    bits = x.view(np.dtype(f"i{x.dtype.itemsize}"))
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _total_order(name: str, function: np.ufunc) -> Primitive:
    def evaluate(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if dtypes.is_floating(x.dtype):
            return function(total_order_key(x), total_order_key(y))
        return function(x, y)

    return elementwise(
        name, evaluate=evaluate, out_dtype=dtypes.bool_,
        accepts=EQUATED if name == "eq_to" else ORDERED,
        host=Host(
            reason="comparison in the total order is only met inside sort, which has its own"))


eq_to_p = _total_order("eq_to", np.equal)
lt_to_p = _total_order("lt_to", np.less)
le_to_p = _total_order("le_to", np.less_equal)

# --- selection ------------------------------------------------------------------------------------


def _select_abstract(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    # A scalar `which` chooses a whole case.
    weak = all(case.weak_type for case in cases)
    return ShapedArray(cases[0].shape, cases[0].dtype, weak)


def _select_evaluate(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    if len(cases) == 1:
        return np.asarray(cases[0])
    if len(cases) == 2:
        return np.where(which if which.dtype == np.bool_ else which > 0, cases[1], cases[0])
    # np.choose takes no more than 32 cases.
    result = np.asarray(cases[0])
    for number, case in enumerate(cases[1:], 1):
        result = np.where(which >= number, case, result)
    return result


def _where(which: np.ndarray, on_false: np.ndarray, on_true: np.ndarray) -> np.ndarray:
    return np.where(which, on_true, on_false)


def _blend(word: np.dtype) -> Callable[..., Any]:
    """np.where for elements of the size of ``word``, by bits: ten times as fast when the mask
    follows no pattern that the processor could predict."""
    def blend(which: np.ndarray, on_false: np.ndarray, on_true: np.ndarray) -> np.ndarray:
        mask = np.negative(which.view(np.int8)).astype(word)      # all ones where true
        off = on_false.view(word)
        result = np.bitwise_xor(on_true.view(word), off)
        np.bitwise_and(result, mask, out=result)
        np.bitwise_xor(result, off, out=result)
        return result.view(on_false.dtype)

    return blend


_BLEND_SIZE = 4096


def _native_select(otherwise: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """Selects by a native function, if there is one and each case is contiguous or a single value;
    by ``otherwise`` else."""
    def evaluate(which: np.ndarray, on_false: np.ndarray, on_true: np.ndarray) -> np.ndarray:
        found = native_functions.find("select", on_false.dtype, which.size)
        if found is not None and which.flags.c_contiguous:
            steps: list[Any] = [
                1 if case.flags.c_contiguous else None if any(case.strides) else 0
                for case in (on_false, on_true)]
            if None not in steps:
                out = np.empty(which.shape, on_false.dtype)
                found((which, on_false, on_true, out), (*steps, out.size), out.size)
                return out
        return otherwise(which, on_false, on_true)

    return evaluate


def _select_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                       out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    if len(in_avals) == 3 and in_avals[0].dtype == dtypes.bool_:
        out = out_avals[0]
        if out.size >= _BLEND_SIZE and all(aval.shape == out.shape for aval in in_avals):
            if out.dtype in (dtypes.float32, dtypes.int32, dtypes.uint32):
                rule = _blend(np.dtype(np.int32))
            elif out.dtype in (dtypes.float64, dtypes.int64, dtypes.uint64):
                rule = _blend(np.dtype(np.int64))
            else:
                rule = _where
            return _native_select(rule) if out.dtype in native_functions.LEAST["select"] else rule
        return _where
    return None


def _select_jvp(primals: Sequence[Array], tangents: Sequence[Array | None]
                ) -> tuple[Array, Array | None]:
    which, *cases = primals
    out = select_n_p.bind(*primals)
    if all(tangent is None for tangent in tangents[1:]):
        return out, None
    filled = [_zeros_as_weak_as(case) if tangent is None else tangent
              for case, tangent in zip(cases, tangents[1:], strict=True)]
    return out, select_n_p.bind(which, *filled)


def _zeros_as_weak_as(x: Array) -> Array:
    return convert_element_type(zeros_like(x), x.dtype, aval_of(x).weak_type)


def _select_transpose(cotangent: Array, which: Array, *cases: Array | Linear) -> list[Array | None]:
    zeros = _zeros_as_weak_as(cotangent)
    return [None, *(
        select_n_p.bind(which, *(cotangent if other is case else zeros for other in cases))
        if is_linear(case) else None
        for case in cases)]


def _select_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis]
                  ) -> tuple[Array, BatchAxis]:
    which, *cases = operands
    which_axis, *case_axes = axes
    if which_axis is None and not which.shape and len({*case_axes}) == 1:
        return select_n_p.bind(*operands), case_axes[0]
    if len({*axes}) == 1 and len(which.shape) == len(cases[0].shape):
        return select_n_p.bind(*operands), axes[0]
    if which_axis is not None and not any(case.shape for case in cases) and len(which.shape) > 1:
        which = move_axis(which, which_axis, 0)
        return select_n_p.bind(
            which, *(broadcast_in_dim(case, which.shape, ()) for case in cases)), 0
    moved = [broadcast_leading(case, size) if axis is None else move_axis(case, axis, 0)
             for case, axis in zip(cases, case_axes, strict=True)]
    if which_axis is not None:
        which = move_axis(which, which_axis, 0)
    elif which.shape:
        which = broadcast_leading(which, size)
    if which.shape and len(which.shape) < len(moved[0].shape):
        which = broadcast_in_dim(which, moved[0].shape, (0,))
    return select_n_p.bind(which, *moved), 0


def _select_expression(avals: Sequence[ShapedArray], operands: Sequence[str]) -> str | None:
    if len(operands) == 3 and avals[0].dtype == np.bool_ and all(map(is_plain_scalar, avals)):
        return f"{operands[2]} if {operands[0]} else {operands[1]}"
    return None


# JAX's roofline counts only the predicate as read, none of the cases.
_SELECT_ROOFLINE = Roofline(costs.results, lambda ins, outs: [ins[0], *outs])

select_n_p = elementwise(
    "select_n",
    contract=takes((2, None), fitting.select_n),
    host=Host(specialize=_select_specialize, expression=_select_expression),
    cost=Cost(costs.no_flops, costs.ONE_EACH.xla, _SELECT_ROOFLINE),
    same_dtypes=slice(1, None), linearity=Linearity(slice(1, None)),
    sharded=Sharded(passes_unreduced=slice(1, None), split_alike=slice(1, None)),
    abstract=_select_abstract,
    evaluate=_select_evaluate,
    lower=lambda ctx, which, *cases: ctx.select(which, cases),
    batch=_select_batch,
)
select_n_p.jvp = _select_jvp
select_n_p.transpose = _select_transpose
provide(select_n_p)


def _clamp_abstract(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)


def _clamp_evaluate(low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
    if dtypes.is_complex(x.dtype):
        return complex_values.minimum(complex_values.maximum(low, x), high)
    # NumPy's extrema keep NaN, as XLA's do.
    return widened(lambda low, x, high: np.minimum(np.maximum(x, low), high))(low, x, high)


def _clamp_jvp(primals: Sequence[Array], tangents: Sequence[Array | None]
               ) -> tuple[Array, Array | None]:
    """At a bound the derivative with respect to the operand is zero; the bound itself moves the
    result only where it is strictly inside or clips."""
    low, x, high = primals
    out = clamp_p.bind(low, x, high)
    total = None

    def contribute(tangent: Array | None, mask: Array) -> None:
        nonlocal total
        if tangent is None:
            return
        if tangent.shape != out.shape:
            tangent = broadcast_in_dim(tangent, out.shape, ())
        if mask.shape != out.shape:
            mask = broadcast_in_dim(mask, out.shape, ())
        term = select(mask, zeros_like(out), tangent)
        total = term if total is None else add_any_p.bind(total, term)

    contribute(tangents[1], and_p.bind(gt_p.bind(x, low), lt_p.bind(x, high)))
    if tangents[0] is not None:
        contribute(tangents[0], and_p.bind(gt_p.bind(low, x), lt_p.bind(low, high)))
    if tangents[2] is not None:
        contribute(tangents[2], lt_p.bind(high, x))
    return out, total


def _clamp_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis]
                 ) -> tuple[Array, BatchAxis]:
    if len(set(axes)) == 1 or (axes[0] is None and axes[2] is None
                               and not operands[0].shape and not operands[2].shape):
        same = all(len(operand.shape) == len(operands[1].shape) for operand in operands)
        if same or axes[0] is None:
            return clamp_p.bind(*operands), axes[1]
    (low, x, high), (low_axis, x_axis, high_axis) = operands, axes
    x = broadcast_leading(x, size) if x_axis is None else move_axis(x, x_axis, 0)

    def edge(value: Array, axis: int | None) -> Array:
        if axis is None:
            return broadcast_leading(value, size) if value.shape else value
        value = move_axis(value, axis, 0)
        return value if len(value.shape) == len(x.shape) else broadcast_in_dim(
            value, x.shape, (0,))

    return clamp_p.bind(edge(low, low_axis), x, edge(high, high_axis)), 0


clamp_p = elementwise(
    "clamp",
    contract=takes(3, fitting.clamp),
    abstract=_clamp_abstract, accepts=ANY,
    evaluate=_clamp_evaluate,
    lower=lambda ctx, low, x, high: ctx.kernel("min", ctx.kernel("max", x, low), high),
    batch=_clamp_batch,
)
clamp_p.jvp = _clamp_jvp

# --- logic and bits -------------------------------------------------------------------------------


def _logic(name: str, function: np.ufunc, operands: int) -> Primitive:
    return elementwise(name, accepts=BITS, evaluate=widened(function),
                       host=Host(specialize=specialized(function)), cheap=True,
                       kernels=(Kernel(name, (*dtypes.INTS, dtypes.bool_), operands),),
                       cost=costs.ELEMENTWISE)


and_p = _logic("and", np.bitwise_and, 2)
or_p = _logic("or", np.bitwise_or, 2)
xor_p = _logic("xor", np.bitwise_xor, 2)
not_p = _logic("not", np.bitwise_not, 1)


def unsigned_view(x: np.ndarray) -> np.ndarray:
    """The bits of integers as numbers in an unsigned dtype; those of narrow ones in 8 bits."""
    x = np.asarray(x)
    bits = bit_width(x.dtype)
    if bits < 8:
        return x.astype(np.int8).view(np.uint8) & np.uint8((1 << bits) - 1)
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


def signed_view(x: np.ndarray) -> np.ndarray:
    """The bits of integers as numbers in a signed dtype; those of narrow ones in 8 bits."""
    bits = bit_width(x.dtype)
    if bits >= 8:
        return x.view(np.dtype(f"i{x.dtype.itemsize}"))
    unused = np.int8(8 - bits)
    return np.right_shift(np.left_shift(x.astype(np.int8), unused), unused)


def _shift(function: np.ufunc, signed: bool, fill: Callable[[np.ndarray], np.ndarray]
           ) -> Callable[..., Any]:
    """``function`` of operands as signed or unsigned numbers, whatever their dtype; ``fill`` where
    the shift is negative, or not less than the width."""
    def evaluate(x: np.ndarray, shift: np.ndarray) -> np.ndarray:
        x = np.asarray(x)
        dtype, bits = x.dtype, bit_width(x.dtype)
        amount = unsigned_view(shift)
        inside = amount < bits
        operand = signed_view(x) if signed else unsigned_view(x)
        if bits >= 8 and inside.all():
            return function(operand, amount.view(operand.dtype)).view(dtype)
        safe = np.where(inside, amount, 0).astype(operand.dtype)
        result = np.where(inside, function(operand, safe), fill(operand).astype(operand.dtype))
        return result.view(dtype) if bits >= 8 else result.astype(np.int8).astype(dtype)

    return evaluate


def _nothing(x: np.ndarray) -> np.ndarray:
    return np.zeros((), np.int8)


def _sign_bits(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, -1, 0)


def _shift_primitive(name: str, function: np.ufunc, signed: bool,
                     fill: Callable[[np.ndarray], np.ndarray]) -> Primitive:
    return elementwise(name, accepts=INTEGERS, evaluate=_shift(function, signed, fill), cheap=True,
                       kernels=(Kernel(name, dtypes.INTS, 2),))


shift_left_p = _shift_primitive("shift_left", np.left_shift, False, _nothing)
shift_right_logical_p = _shift_primitive(
    "shift_right_logical", np.right_shift, False, _nothing)
shift_right_arithmetic_p = _shift_primitive(
    "shift_right_arithmetic", np.right_shift, True, _sign_bits)

population_count_p = elementwise(
    "population_count", accepts=INTEGERS,
    evaluate=lambda x: np.asarray(np.bitwise_count(unsigned_view(x))).astype(x.dtype),
    kernels=(Kernel("population_count", dtypes.INTS),))


def _clz_evaluate(x: np.ndarray) -> np.ndarray:
    value = unsigned_view(x).astype(np.uint64)
    length = np.zeros(value.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):       # the position of the highest bit, by halving
        high = value >= (np.uint64(1) << np.uint64(step))
        length = length + np.where(high, step, 0)
        value = np.where(high, value >> np.uint64(step), value)
    return np.asarray(bit_width(x.dtype) - (length + (value > 0))).astype(x.dtype)


clz_p = elementwise("clz", accepts=INTEGERS, evaluate=_clz_evaluate,
                    kernels=(Kernel("clz", dtypes.INTS),))


def _high_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The upper half of the product of integers, in twice the width."""
    x, y = np.asarray(x), np.asarray(y)
    dtype, bits = x.dtype, bit_width(x.dtype)
    if bits < 64:
        wide = np.int64 if dtypes.is_signed(dtype) else np.uint64
        return ((x.astype(wide) * y.astype(wide)) >> wide(bits)).astype(dtype)
    # Python's integers: too rare for anything faster.
    product = (x.astype(object) * y.astype(object)) >> 64
    return np.asarray(product).astype(dtype)


mulhi_p = elementwise(
    "mulhi", accepts=INTEGERS, evaluate=_high_product,
    host=Host(reason="MAX has no product of twice the width"))


# --- operations that rules are written with -------------------------------------------------------

def select(which: Value, on_false: Value, on_true: Value) -> Array:
    return select_n_p.bind(which, on_false, on_true)


def eq(x: Value, y: Value) -> Array:
    return eq_p.bind(x, y)


def ge(x: Value, y: Value) -> Array:
    return ge_p.bind(x, y)


def gt(x: Value, y: Value) -> Array:
    if dtypes.is_complex(x.dtype):
        raise refusal("gt", x.dtype, " at position 0", ORDERED)
    return gt_p.bind(x, y)


def less(x: np.ndarray, y: Array) -> Any:
    return lt_p.bind(x, y)


def where_zero(x: Array, at_zero: int) -> Array:
    """``x`` with ``at_zero`` in place of its zeros."""
    return select(eq(x, scalar_like(0, x.dtype)), x, convert_element_type(
        full(x.shape, at_zero, x.dtype), x.dtype, aval_of(x).weak_type))
