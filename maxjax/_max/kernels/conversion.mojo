"""Operations whose result has another dtype than their operand."""
import extensibility
from extensibility import ElementwiseUnaryMixedOp
from std.utils.numerics import isnan

from .arithmetic import unsigned_of
from .elementary import INFINITY
from .halves import rounded_to


@extensibility.register("maxjax_is_finite")
struct IsFinite(ElementwiseUnaryMixedOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, out_dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[out_dtype, width]:
        comptime if dtype.is_half_float():
            return abs(x.cast[DType.float32]()).lt(INFINITY).cast[out_dtype]()
        else:
            return abs(x).lt(INFINITY).cast[out_dtype]()


@always_inline
def saturate[
    dtype: DType, out_dtype: DType, width: SIMDLength
](x: SIMD[dtype, width]) -> SIMD[out_dtype, width]:
    """Truncates a float32 or float64; what does not fit goes to the nearest bound, NaN to 0."""
    comptime R = SIMD[out_dtype, width]
    # The bounds are powers of two (or 0), hence exact in floating point: below <= x < above.
    comptime lowest = Scalar[out_dtype].MIN
    comptime highest = Scalar[out_dtype].MAX
    comptime below = lowest.cast[dtype]()
    comptime above = (highest // 2 + 1).cast[dtype]() * 2
    var over = x.ge(above)
    var under = x.lt(below)
    var inside = (over | under | isnan(x)).select(SIMD[dtype, width](0), x)
    var result = inside.cast[out_dtype]()
    return under.select(R(lowest), over.select(R(highest), result))


@extensibility.register("maxjax_convert")
struct Convert(ElementwiseUnaryMixedOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, out_dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[out_dtype, width]:
        comptime if dtype == out_dtype:
            return rebind[SIMD[out_dtype, width]](x)
        elif dtype == DType.bool:
            comptime R = SIMD[out_dtype, width]
            return rebind[SIMD[DType.bool, width]](x).select(R(1), R(0))
        elif dtype.is_half_float() and (
            out_dtype == DType.bool or out_dtype.is_integral()
        ):
            return Self.elementwise[DType.float32, out_dtype, width](
                x.cast[DType.float32]()
            )
        elif out_dtype == DType.bool:
            # Not `x.ne(0)`, which is false of NaN.
            return rebind[SIMD[out_dtype, width]](~x.eq(0))
        elif dtype.is_floating_point() and out_dtype.is_integral():
            return saturate[dtype, out_dtype, width](x)
        elif dtype == DType.float64 and out_dtype == DType.float16:
            # By way of float32, as XLA does it.
            return x.cast[DType.float32]().cast[out_dtype]()
        else:
            return rounded_to[out_dtype](x)


@extensibility.register("maxjax_bitcast")
struct Bitcast(ElementwiseUnaryMixedOp):
    """The same bits as another dtype of the same width."""

    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, out_dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[out_dtype, width]:
        comptime bits = unsigned_of[dtype]()
        comptime if dtype == out_dtype:
            return rebind[SIMD[out_dtype, width]](x)
        elif dtype.is_floating_point():
            var raw = x.to_bits[bits]()
            comptime if out_dtype.is_floating_point():
                return SIMD[out_dtype, width](from_bits=raw)
            else:
                return raw.cast[out_dtype]()
        elif out_dtype.is_floating_point():
            return SIMD[out_dtype, width](from_bits=x.cast[bits]())
        else:
            return x.cast[out_dtype]()
