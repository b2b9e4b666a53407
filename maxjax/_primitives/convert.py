"""Conversion between dtypes, by value and by bits; stop_gradient."""

from __future__ import annotations

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.types import ShapedArray
from maxjax._primitives.builders import elementwise
from maxjax._primitives.rules import factor_rule
from maxjax._ir.primitive import Primitive
from maxjax._primitives.shape import move_axis


def to_integer(x, dtype):
    """Floats to integers as XLA does it: NaN is 0, what is out of range saturates."""
    low, high = dtypes.extremes(dtype)
    wide = np.asarray(x, np.float64)
    wide = np.where(np.isnan(wide), 0.0, wide)
    # float64(high) may round up to 2**63: compare before converting.
    inside = np.where((wide > float(low)) & (wide < float(high)), wide, 0.0)
    result = inside.astype(np.int64 if dtype != np.uint64 else np.uint64).astype(dtype)
    result = np.where(wide >= float(high), high, result)
    return np.where(wide <= float(low), low, result).astype(dtype)


def convert(x, dtype):
    """The NumPy rule of convert_element_type."""
    source = x.dtype
    if source == dtype:
        return np.asarray(x)
    if dtype == dtypes.bool_:
        return np.asarray(x != 0)
    if dtypes.is_complex(source) and not dtypes.is_complex(dtype):
        x = x.real
        source = x.dtype
    if dtypes.is_integer(dtype) and dtypes.is_floating(source):
        return to_integer(x, dtype)
    return np.asarray(x).astype(dtype)


def _convert_jvp(t, x, out, *, new_dtype, weak_type):
    if not dtypes.is_inexact(new_dtype):
        return None
    return convert_element_type_p.bind(t, new_dtype=new_dtype, weak_type=weak_type)


def _convert_specialize(in_avals, params, out_avals):
    dtype, source = params["new_dtype"], in_avals[0].dtype
    if source == dtype:
        return np.asarray
    if dtypes.is_floating(dtype) and not dtypes.is_complex(source):
        return lambda x: x.astype(dtype)
    return None


convert_element_type_p = elementwise(
    "convert_element_type",
    abstract=lambda x, *, new_dtype, weak_type: ShapedArray(x.shape, new_dtype, weak_type),
    evaluate=lambda x, *, new_dtype, weak_type: convert(x, new_dtype),
    specialize=_convert_specialize,
    lower=lambda ctx, x, *, new_dtype, weak_type: ctx.convert(x, new_dtype),
    jvp=_convert_jvp,
    transpose=lambda ct, x, *, new_dtype, weak_type: [
        convert_element_type_p.bind(ct, new_dtype=x.dtype, weak_type=x.aval.weak_type)],
)


def _bitcast_abstract(x, *, new_dtype):
    old, new = x.dtype.itemsize, dtypes.physical(new_dtype).itemsize
    shape = x.shape
    if new < old:
        shape = (*shape, old // new)
    elif new > old:
        shape = shape[:-1]
    return ShapedArray(shape, new_dtype)


def _bitcast_evaluate(x, *, new_dtype):
    dtype = dtypes.physical(new_dtype)
    x = np.ascontiguousarray(x).reshape(x.shape)
    old, new = x.dtype.itemsize, dtype.itemsize
    if old == new:
        return x.view(dtype)
    if new < old:
        return x.reshape(*x.shape, 1).view(dtype)
    return x.view(dtype).reshape(x.shape[:-1])


def _bitcast_batch(size, operands, axes, *, new_dtype):
    return bitcast_convert_type_p.bind(
        move_axis(operands[0], axes[0], 0), new_dtype=new_dtype), 0


def _bitcast_factors(in_avals, out_avals, *, new_dtype):
    common = min(in_avals[0].ndim, out_avals[0].ndim)
    names = [list(range(common)) + ["bytes"] * (aval.ndim - common)
             for aval in (in_avals[0], out_avals[0])]
    return factor_rule([names[0]], [names[1]], in_avals, out_avals,
                       replicated=frozenset({"bytes"} & {*names[0], *names[1]}))


bitcast_convert_type_p = Primitive(
    "bitcast_convert_type",
    abstract=_bitcast_abstract,
    evaluate=_bitcast_evaluate,
    lower=lambda ctx, x, *, new_dtype: ctx.bitcast(x, new_dtype),
    jvp=lambda primals, tangents, *, new_dtype: (
        bitcast_convert_type_p.bind(*primals, new_dtype=new_dtype), None),
    batch=_bitcast_batch,
    factors=_bitcast_factors,
)

stop_gradient_p = elementwise(
    "stop_gradient", evaluate=lambda x: x, lower=lambda ctx, x: x)


def convert_element_type(x, dtype, weak_type: bool = False):
    """``x`` as ``dtype``; nothing where it is that already."""
    if x.dtype == dtype and getattr(x, "weak_type", False) == weak_type:
        return x
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)


