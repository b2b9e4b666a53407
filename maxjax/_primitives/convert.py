"""Conversion between dtypes, by value and by bits; stop_gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base import native as native_functions
from maxjax._ir.contract import DTYPE, FLAG, integer, takes
from maxjax._ir.costs import Cost, XlaCost
from maxjax._ir.interpret import is_plain_scalar
from maxjax._ir.linearity import REDUCED_FIRST, Linearity
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Compiled, Host, Sharded
from maxjax._ir.runtime import installed
from maxjax._ir.staging import DynamicJaxprTracer, program_written, staged, within_program
from maxjax._ir.trace import Array, Tracer, context, is_scalar
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Value
from maxjax._primitives import costs, fitting
from maxjax._primitives.builders import elementwise
from maxjax._primitives.kernels import ALL, NUMBERS, Kernel
from maxjax._primitives.layout import move_axis
from maxjax._primitives.rules import factor_rule
from maxjax._primitives.widths import BIT_WIDTHS, FLOATING, WIDER, bit_width, widened

if TYPE_CHECKING:
    from maxjax._base.dtypes import DType
    from maxjax._primitives.rules import FactorRule


def to_integer(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats to integers as XLA does it: NaN is 0, values out of range saturate."""
    low, high = dtypes.extremes(dtype)
    x = np.asarray(x)
    if x.size and x.dtype in (dtypes.float32, dtypes.float64):
        # Nearly always all are in range; NaN fails the comparison.
        if np.min(x) > float(low) - 1.0 and np.max(x) < float(high):
            return x.astype(dtype)
    wide = np.asarray(x, np.float64)
    wide = np.where(np.isnan(wide), 0.0, wide)
    # float64(high) may round up to 2**63: compare before converting.
    inside = np.where((wide > float(low)) & (wide < float(high)), wide, 0.0)
    result = inside.astype(np.int64 if dtype != np.uint64 else np.uint64).astype(dtype)
    result = np.where(wide >= float(high), high, result)
    return np.where(wide <= float(low), low, result).astype(dtype)


def convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The NumPy rule of convert_element_type."""
    source = x.dtype
    if source == dtype:
        return np.asarray(x)
    if dtypes.is_complex(source) and not dtypes.is_complex(dtype):
        x = x.real      # to bool too, as XLA does it
        source = x.dtype
    if dtype == dtypes.bool_:
        return np.asarray(x != 0)
    if dtypes.is_integer(dtype) and dtypes.is_floating(source):
        return to_integer(x, dtype)
    if source in BIT_WIDTHS and dtype in BIT_WIDTHS:
        x = x.astype(WIDER[source])     # there is no cast from one of them to another
    if rounds_twice(source, dtype):
        x = x.astype(np.float32)
    return np.asarray(x).astype(dtype)


def rounds_twice(source: DType, target: DType) -> bool:
    """Whether XLA rounds numbers to float32 first: 1 + 2**-8 + 2**-40 is 1 in bfloat16 then.
    ml_dtypes did so as well before its release 0.7."""
    return source == dtypes.float64 and target in (dtypes.bfloat16, dtypes.float16)


def _convert_jvp(t: Value, x: Value, out: Value, *, new_dtype: np.dtype, weak_type: bool
                 ) -> Array | None:
    if not dtypes.has_tangents(new_dtype):
        return None
    return convert_element_type_p.bind(
        t, new_dtype=dtypes.tangent_dtype(new_dtype), weak_type=weak_type)


def _keeps_precision(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
                     params: Params) -> bool:
    """Whether a conversion rounds nothing: to a wider type of the same kind."""
    before, after = in_avals[0].dtype, out_avals[0].dtype
    return (dtypes.is_inexact(before) == dtypes.is_inexact(after)
            and before.kind != "b" and after.itemsize >= before.itemsize
            and (before.kind == after.kind or dtypes.is_inexact(before)))


def _convert_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                        out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    dtype, source = params["new_dtype"], in_avals[0].dtype
    if source == dtype:
        return np.asarray
    if dtypes.is_opaque(dtype) or dtypes.is_opaque(source):
        return None
    if rounds_twice(source, dtype):
        return lambda x: x.astype(np.float32).astype(dtype)
    if dtypes.is_floating(dtype) and not dtypes.is_complex(source):
        return lambda x: x.astype(dtype)
    return None


def _check_opaque(source: DType, target: DType) -> None:
    """Raises ValueError where elements, of which some are opaque, cannot be converted."""
    if dtypes.is_user_defined(source) and dtypes.is_user_defined(target):
        raise ValueError(f"cannot directly convert between extended dtypes: from {source} to "
                         f"{target}.")
    own, other, way = ((source, target, "from") if dtypes.is_user_defined(source) else
                       (target, source, "to"))
    if not (dtypes.is_user_defined(own) and isinstance(other, np.dtype)
            and own.converts(source, target)):
        raise ValueError(f"Cannot convert_element_type from {source} to {target}")
    if own.physical != other:
        raise ValueError(
            f"can only convert {way} extended dtype {'to' if way == 'from' else 'from'} its "
            f"representation dtype, but tried to convert from {source} to {target} which doesn't "
            f"match the representation type {own.physical}.")


def _convert_abstract(x: ShapedArray, *, new_dtype: np.dtype | dtypes.KeyDType, weak_type: bool
                      ) -> ShapedArray:
    if x.dtype != new_dtype and (dtypes.is_opaque(x.dtype) or dtypes.is_opaque(new_dtype)):
        _check_opaque(x.dtype, new_dtype)
    return ShapedArray(x.shape, new_dtype, weak_type)


def _convert_expression(avals: Sequence[ShapedArray], operands: Sequence[str]) -> str | None:
    if avals[0].dtype == avals[1].dtype:
        return operands[0]
    if avals[0].dtype == np.bool_ and all(map(is_plain_scalar, avals)):
        return f"{avals[1].dtype.type.__name__}({operands[0]})"
    return None


_CONVERSION_COST = XlaCost(lambda ins, outs, params: (
    0 if ins[0].dtype == outs[0].dtype else outs[0].size))

convert_element_type_p = elementwise(
    "convert_element_type",
    contract=takes(1, new_dtype=DTYPE, weak_type=FLAG),
    host=Host(specialize=_convert_specialize, expression=_convert_expression),
    cost=Cost(flops=costs.no_flops, xla=_CONVERSION_COST),
    linearity=Linearity(unreduced=_keeps_precision), sharded=Sharded(passes_unreduced=slice(None)),
    abstract=_convert_abstract,
    evaluate=lambda x, *, new_dtype, weak_type: convert(x, dtypes.physical(new_dtype)),
    lower=lambda ctx, x, *, new_dtype, weak_type: ctx.convert(
        x, dtypes.physical(new_dtype)), cheap=True,
    kernels=(Kernel("convert", ALL, results=lambda source: tuple(
        target for target in ALL if target != source)),),
    jvp=_convert_jvp,
    transpose=lambda cotangent, x, *, new_dtype, weak_type: [
        convert_element_type(cotangent, x.dtype, x.aval.weak_type)],
    keeps_zero=True,
)


def _bitcast_abstract(x: ShapedArray, *, new_dtype: np.dtype) -> ShapedArray:
    old, new = bit_width(x.dtype), bit_width(dtypes.physical(new_dtype))
    shape = x.shape
    if new < old:
        shape = (*shape, old // new)
    elif new > old:
        shape = shape[:-1]
    return ShapedArray(shape, new_dtype)


def _bitcast_evaluate(x: np.ndarray, *, new_dtype: np.dtype) -> np.ndarray:
    dtype = dtypes.physical(new_dtype)
    x = np.ascontiguousarray(x).reshape(x.shape)
    old, new = bit_width(x.dtype), bit_width(dtype)
    if old == new:
        return x.view(dtype)
    if min(old, new) < 8:
        return _bitcast_narrow(x, dtype, old, new)
    if new < old:
        return x.reshape(*x.shape, 1).view(dtype)
    return x.view(dtype).reshape(x.shape[:-1])


def _bitcast_narrow(x: np.ndarray, dtype: np.dtype, old: int, new: int) -> np.ndarray:
    """To or from elements below a byte, which NumPy stores one to a byte; low bits first."""
    if new < old:
        words = x.view(np.dtype(f"u{x.dtype.itemsize}")) if old >= 8 else x.view(np.uint8)
        places = np.arange(0, old, new).astype(words.dtype)
        parts = (words[..., None] >> places) & words.dtype.type((1 << new) - 1)
        return parts.astype(np.uint8).view(dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    parts = (x.view(np.uint8) & np.uint8((1 << old) - 1)).astype(word)
    places = np.arange(0, new, old).astype(word)
    return np.asarray(np.bitwise_or.reduce(parts << places, axis=-1)).astype(word).view(dtype)


def _bitcast_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *,
                   new_dtype: np.dtype) -> tuple[Array, int]:
    return bitcast_convert_type_p.bind(
        move_axis(operands[0], axes[0], 0), new_dtype=new_dtype), 0


def _bitcast_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                     new_dtype: np.dtype) -> FactorRule:
    common = min(in_avals[0].ndim, out_avals[0].ndim)
    names = [list(range(common)) + ["bytes"] * (aval.ndim - common)
             for aval in (in_avals[0], out_avals[0])]
    return factor_rule([names[0]], [names[1]], in_avals, out_avals,
                       replicated=frozenset({"bytes"} & {*names[0], *names[1]}))


bitcast_convert_type_p = Primitive(
    "bitcast_convert_type",
    contract=takes(1, fitting.bitcast, new_dtype=DTYPE),
    cost=costs.MOVES,
    abstract=_bitcast_abstract,
    evaluate=_bitcast_evaluate,
    lower=lambda ctx, x, *, new_dtype: ctx.bitcast(x, new_dtype),
    compiled=Compiled(cheap=True, kernels=(
        Kernel("bitcast", NUMBERS, results=lambda source: tuple(
            target for target in NUMBERS
            if target != source and target.itemsize == source.itemsize)),)),
    jvp=lambda primals, tangents, *, new_dtype: (
        bitcast_convert_type_p.bind(*primals, new_dtype=new_dtype), None),
    batch=_bitcast_batch,
    factors=_bitcast_factors,
)

stop_gradient_p = elementwise(
    "stop_gradient", cost=costs.UNMOVED, sharded=Sharded(passes_unreduced=slice(None)),
    evaluate=lambda x: x, lower=lambda ctx, x: x)

# --- reduce_precision -----------------------------------------------------------------------------


def _reduce_precision(x: np.ndarray, *, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    """Rounds to nearest even in a float of that many bits; values that are too large become
    infinite, those below its normal numbers zero."""
    x = np.asarray(x)
    if x.size >= native_functions.FEWEST and x.dtype == np.float32 and x.flags.c_contiguous:
        found = native_functions.find("reduce_precision", x.dtype, x.size)
        if found is not None:
            out = np.empty_like(x)
            found((x, out), (exponent_bits, mantissa_bits, x.size), x.size)
            return out
    info = np.finfo(x.dtype)
    word = np.dtype(f"u{x.dtype.itemsize}").type
    bits = x.view(word)
    sign = bits & word(1 << (info.bits - 1))
    magnitude = np.asarray(bits ^ sign)
    drop = info.nmant - mantissa_bits
    if drop > 0:
        # Half of the last kept place, less one when the kept part is even: ties go to even.
        last = magnitude >> word(drop)
        last &= word(1)
        last += word((1 << (drop - 1)) - 1)
        magnitude += last
        magnitude &= ~word((1 << drop) - 1)
    if exponent_bits < info.iexp:
        bias, reduced = (1 << (info.iexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        infinity = word(((1 << info.iexp) - 1) << info.nmant)
        magnitude[magnitude >= word((bias + reduced + 1) << info.nmant)] = infinity
        magnitude *= magnitude >= word((bias - reduced + 1) << info.nmant)
    magnitude |= sign
    result = magnitude.view(x.dtype)
    np.copyto(result, x, where=np.isnan(x))
    return result


reduce_precision_p = elementwise(
    "reduce_precision",
    contract=takes(1, exponent_bits=integer(1, 64), mantissa_bits=integer(0, 64)),
    linearity=REDUCED_FIRST, sharded=Sharded(passes_unreduced=slice(None)), accepts=FLOATING,
    evaluate=widened(_reduce_precision),
    jvp=lambda t, x, out, **params: reduce_precision_p.bind(t, **params),
    transpose=lambda cotangent, x, **params: [reduce_precision_p.bind(cotangent, **params)],
    host=Host(reason="rounding to a format that MAX does not have"))


def _literal(x: Any) -> Any:
    """The number that stands in a jaxpr for a value, a scalar; None for other values, and for those
    of an enclosing jaxpr, which are constants of this one."""
    if x.__class__ is DynamicJaxprTracer:
        return x.literal() if x._trace is program_written() else None
    if isinstance(x, Tracer) or x.shape or not within_program():
        return None
    if is_scalar(x):
        return x
    kept = context.kept_scalars
    return x.literal() if isinstance(x, Array) and not (kept and id(x) in kept) else None


def convert_element_type(x: Array, dtype: np.dtype, weak_type: bool = False) -> Array:
    """``x`` as ``dtype``; ``x`` itself if it is that already."""
    if x.dtype == dtype and getattr(x, "weak_type", False) == weak_type:
        return x
    if isinstance(dtype, np.dtype) and (number := _literal(x)) is not None:
        # By NumPy, as JAX has it: what is out of range is not what an array's conversion gives.
        value = (np.asarray(convert(number, dtype)) if dtypes.is_complex(x.dtype) else
                 np.asarray(number).astype(dtype))
        return staged(installed.runtime.constant(value, ShapedArray((), dtype, weak_type)))
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)
