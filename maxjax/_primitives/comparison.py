"""Comparison, selection, logic, bits and shifts."""

from __future__ import annotations

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.types import ShapedArray
from maxjax._primitives.builders import elementwise
from maxjax._primitives.rules import is_linear, kernel, native
from maxjax._primitives.shape import (
    broadcast_in_dim,
    broadcast_leading,
    full,
    move_axis,
    provide,
    zeros_like,
)

REALS = (dtypes.bool_, *dtypes.INTS, *dtypes.SMALL_INTS, *dtypes.FLOATS, *dtypes.SMALL_FLOATS)
ANY = (*REALS, *dtypes.COMPLEX)
BITS = (dtypes.bool_, *dtypes.INTS, *dtypes.SMALL_INTS)
INTEGERS = (*dtypes.INTS, *dtypes.SMALL_INTS)


def _comparison(name, function, accepts):
    return elementwise(name, evaluate=function, specialize=lambda *_: function,
                       lower=native(name), out_dtype=dtypes.bool_, accepts=accepts)


eq_p = _comparison("eq", np.equal, ANY)
ne_p = _comparison("ne", np.not_equal, ANY)
lt_p = _comparison("lt", np.less, REALS)
le_p = _comparison("le", np.less_equal, REALS)
gt_p = _comparison("gt", np.greater, REALS)
ge_p = _comparison("ge", np.greater_equal, REALS)


def _select_abstract(which, *cases):
    # A scalar `which` chooses a whole case.
    weak = all(case.weak_type for case in cases)
    return ShapedArray(cases[0].shape, cases[0].dtype, weak)


def _select_evaluate(which, *cases):
    if len(cases) == 2:
        return np.where(which if which.dtype == np.bool_ else which != 0, cases[1], cases[0])
    if which.dtype == np.bool_:
        which = which.astype(np.int32)
    return np.choose(np.clip(which, 0, len(cases) - 1), cases)


def _select_specialize(in_avals, params, out_avals):
    if len(in_avals) == 3 and in_avals[0].dtype == dtypes.bool_:
        where = np.where
        return lambda which, on_false, on_true: where(which, on_true, on_false)
    return None


def _select_jvp(primals, tangents):
    which, *cases = primals
    out = select_n_p.bind(*primals)
    if all(tangent is None for tangent in tangents[1:]):
        return out, None
    filled = [zeros_like(case) if tangent is None else tangent
              for case, tangent in zip(cases, tangents[1:], strict=True)]
    return out, select_n_p.bind(which, *filled)


def _select_transpose(cotangent, which, *cases):
    zeros = full(cotangent.shape, 0, cotangent.dtype)
    return [None, *(
        select_n_p.bind(which, *(cotangent if other is case else zeros for other in cases))
        if is_linear(case) else None
        for case in cases)]


def _select_batch(size, operands, axes):
    which, *cases = operands
    which_axis, *case_axes = axes
    if which_axis is None and not which.shape and len({*case_axes}) == 1:
        return select_n_p.bind(*operands), case_axes[0]
    if len({*axes}) == 1:
        return select_n_p.bind(*operands), axes[0]
    moved = [broadcast_leading(case, size) if axis is None else move_axis(case, axis, 0)
             for case, axis in zip(cases, case_axes, strict=True)]
    if which_axis is not None:
        which = move_axis(which, which_axis, 0)
    elif which.shape:
        which = broadcast_leading(which, size)
    if which.shape and len(which.shape) < len(moved[0].shape):
        which = broadcast_in_dim(which, moved[0].shape, (0,))
    return select_n_p.bind(which, *moved), 0


select_n_p = elementwise(
    "select_n",
    abstract=_select_abstract,
    evaluate=_select_evaluate, specialize=_select_specialize,
    lower=lambda ctx, which, *cases: ctx.select(which, cases),
    batch=_select_batch,
)
select_n_p.jvp = _select_jvp
select_n_p.transpose = _select_transpose
provide(select_n_p)


def _logic(name, bitwise):
    return elementwise(name, evaluate=bitwise, lower=kernel(name), accepts=BITS)


and_p = _logic("and", np.bitwise_and)
or_p = _logic("or", np.bitwise_or)
xor_p = _logic("xor", np.bitwise_xor)
not_p = elementwise("not", evaluate=np.bitwise_not, lower=kernel("not"), accepts=BITS)


def _unsigned(dtype):
    return np.dtype(f"u{dtype.itemsize}")


def _shift(function, overflow):
    """Shifts by the width or more (as unsigned) give what ``overflow`` says of the operand."""
    def evaluate(x, shift):
        x = np.asarray(x)
        bits = x.dtype.itemsize * 8
        amount = np.asarray(shift).view(_unsigned(x.dtype))
        inside = amount < bits
        safe = np.where(inside, amount, 0).astype(x.dtype)
        return np.where(inside, function(x, safe), overflow(x)).astype(x.dtype)
    return evaluate


def _logical_right(x, shift):
    unsigned = _unsigned(x.dtype)
    return np.right_shift(x.view(unsigned), shift.view(unsigned)).view(x.dtype)


shift_left_p = elementwise(
    "shift_left", accepts=INTEGERS,
    evaluate=_shift(np.left_shift, lambda x: np.zeros((), x.dtype)), lower=kernel("shift_left"))
shift_right_logical_p = elementwise(
    "shift_right_logical", accepts=INTEGERS,
    evaluate=_shift(_logical_right, lambda x: np.zeros((), x.dtype)),
    lower=kernel("shift_right_logical"))
shift_right_arithmetic_p = elementwise(
    "shift_right_arithmetic", accepts=INTEGERS,
    evaluate=_shift(np.right_shift, lambda x: np.where(x < 0, -1, 0).astype(x.dtype)),
    lower=kernel("shift_right_arithmetic"))

population_count_p = elementwise(
    "population_count", accepts=INTEGERS,
    evaluate=lambda x: np.bitwise_count(np.asarray(x).view(_unsigned(x.dtype))).astype(x.dtype),
    lower=kernel("population_count"))


def _clz_evaluate(x):
    x = np.asarray(x)
    bits = x.dtype.itemsize * 8
    value = x.view(_unsigned(x.dtype)).astype(np.uint64)
    count = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):       # the position of the highest bit, by halving
        high = value >= (np.uint64(1) << np.uint64(step))
        count = count + np.where(high, step, 0)
        value = np.where(high, value >> np.uint64(step), value)
    return (bits - (count + (value > 0))).astype(x.dtype)


clz_p = elementwise("clz", accepts=INTEGERS, evaluate=_clz_evaluate, lower=kernel("clz"))


def select(which, on_false, on_true):
    return select_n_p.bind(which, on_false, on_true)


def eq(x, y):
    return eq_p.bind(x, y)


def ge(x, y):
    return ge_p.bind(x, y)

