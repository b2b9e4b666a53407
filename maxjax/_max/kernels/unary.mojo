"""Unary floating-point operations as structs that MAX fuses with their neighbours.

Each is registered as `maxjax_<name>`, takes and gives one dtype, and equals the `jax.lax` operation
of its name on NaN, infinities and signed zeros. `float16` and `bfloat16` compute in `float32`.
"""
import extensibility
from extensibility import ElementwiseUnaryOp
from std.math import ceil, copysign, floor
from std.utils.numerics import isnan

from . import bessel, elementary, normal, special, special_single, trigonometric
from .elementary import F64
from .halves import rounded_to


@extensibility.register("maxjax_exp")
struct Exp(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.exp(x.cast[DType.float32]()))
        else:
            return elementary.exp(x)


@extensibility.register("maxjax_exp2")
struct Exp2(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.exp2(x.cast[DType.float32]()))
        else:
            return elementary.exp2(x)


@extensibility.register("maxjax_expm1")
struct Expm1(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.expm1(x.cast[DType.float32]()))
        else:
            return elementary.expm1(x)


@extensibility.register("maxjax_log")
struct Log(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.log(x.cast[DType.float32]()))
        else:
            return elementary.log(x)


@extensibility.register("maxjax_log2")
struct Log2(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.log2(x.cast[DType.float32]()))
        else:
            return elementary.log2(x)


@extensibility.register("maxjax_log1p")
struct Log1p(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.log1p(x.cast[DType.float32]()))
        else:
            return elementary.log1p(x)


@extensibility.register("maxjax_tanh")
struct Tanh(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.tanh(x.cast[DType.float32]()))
        else:
            return elementary.tanh(x)


@extensibility.register("maxjax_logistic")
struct Logistic(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.logistic(x.cast[DType.float32]()))
        else:
            return elementary.logistic(x)


@extensibility.register("maxjax_sinh")
struct Sinh(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.sinh(x.cast[DType.float32]()))
        else:
            return elementary.sinh(x)


@extensibility.register("maxjax_cosh")
struct Cosh(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.cosh(x.cast[DType.float32]()))
        else:
            return elementary.cosh(x)


@extensibility.register("maxjax_asinh")
struct Asinh(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.asinh(x.cast[DType.float32]()))
        else:
            return elementary.asinh(x)


@extensibility.register("maxjax_acosh")
struct Acosh(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.acosh(x.cast[DType.float32]()))
        else:
            return elementary.acosh(x)


@extensibility.register("maxjax_atanh")
struct Atanh(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.atanh(x.cast[DType.float32]()))
        else:
            return elementary.atanh(x)


@extensibility.register("maxjax_sqrt")
struct Sqrt(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.square_root(x.cast[DType.float32]()))
        else:
            return elementary.square_root(x)


@extensibility.register("maxjax_rsqrt")
struct Rsqrt(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](1 / elementary.square_root(x.cast[DType.float32]()))
        else:
            return 1 / elementary.square_root(x)


@extensibility.register("maxjax_cbrt")
struct Cbrt(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return rounded_to[dtype](elementary.cbrt(x.cast[F64]()))


@extensibility.register("maxjax_sin")
struct Sin(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype == F64:
            return rounded_to[dtype](trigonometric.sin(x.cast[F64]()))
        else:
            return rounded_to[dtype](trigonometric.narrow_wave[quarters=0](x.cast[F64]()))


@extensibility.register("maxjax_cos")
struct Cos(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype == F64:
            return rounded_to[dtype](trigonometric.cos(x.cast[F64]()))
        else:
            return rounded_to[dtype](trigonometric.narrow_wave[quarters=1](x.cast[F64]()))


@extensibility.register("maxjax_tan")
struct Tan(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype == F64:
            return rounded_to[dtype](trigonometric.tan(x.cast[F64]()))
        else:
            return rounded_to[dtype](trigonometric.narrow_tan(x.cast[F64]()))


@extensibility.register("maxjax_asin")
struct Asin(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return rounded_to[dtype](trigonometric.asin(x.cast[F64]()))


@extensibility.register("maxjax_acos")
struct Acos(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return rounded_to[dtype](trigonometric.acos(x.cast[F64]()))


@extensibility.register("maxjax_atan")
struct Atan(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype == F64:
            return rounded_to[dtype](trigonometric.atan(x.cast[F64]()))
        else:
            return rounded_to[dtype](trigonometric.atan_single(x.cast[DType.float32]()))


@extensibility.register("maxjax_erf")
struct Erf(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype == F64:
            return rounded_to[dtype](special.erf(x.cast[F64]()))
        else:
            return rounded_to[dtype](special_single.erf(x.cast[DType.float32]()))


@extensibility.register("maxjax_erfc")
struct Erfc(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype == F64:
            return rounded_to[dtype](special.erfc(x.cast[F64]()))
        else:
            return rounded_to[dtype](special_single.erfc(x.cast[DType.float32]()))


@extensibility.register("maxjax_erfcx")
struct Erfcx(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return rounded_to[dtype](special.erfcx(x.cast[F64]()))


@extensibility.register("maxjax_log_ndtr")
struct LogNdtr(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return rounded_to[dtype](normal.log_ndtr(x.cast[F64]()))


@extensibility.register("maxjax_ndtri")
struct Ndtri(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return rounded_to[dtype](normal.ndtri(x.cast[F64]()))


@extensibility.register("maxjax_lgamma")
struct Lgamma(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return rounded_to[dtype](special.lgamma(x.cast[F64]()))


@extensibility.register("maxjax_digamma")
struct Digamma(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return rounded_to[dtype](special.digamma(x.cast[F64]()))


@extensibility.register("maxjax_erf_inv")
struct ErfInv(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype == F64:
            return rounded_to[dtype](special.erf_inv(x.cast[F64]()))
        else:
            return rounded_to[dtype](special_single.erf_inv(x.cast[DType.float32]()))


@extensibility.register("maxjax_bessel_i0e")
struct BesselI0e(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](bessel.i0e(x.cast[DType.float32]()))
        else:
            return bessel.i0e(x)


@extensibility.register("maxjax_bessel_i1e")
struct BesselI1e(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](bessel.i1e(x.cast[DType.float32]()))
        else:
            return bessel.i1e(x)


@extensibility.register("maxjax_floor")
struct Floor(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](floor(x.cast[DType.float32]()))
        else:
            return floor(x)


@extensibility.register("maxjax_ceil")
struct Ceil(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](ceil(x.cast[DType.float32]()))
        else:
            return ceil(x)


@extensibility.register("maxjax_round_half_even")
struct RoundHalfEven(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](elementary.round_even(x.cast[DType.float32]()))
        else:
            return elementary.round_even(x)


@extensibility.register("maxjax_round_half_away")
struct RoundHalfAway(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](round_away(x.cast[DType.float32]()))
        else:
            return round_away(x)


@always_inline
def round_away[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    # The difference is exact, unlike x + 0.5.
    var whole = elementary.truncate(x)
    var up = abs(x - whole).ge(0.5)
    return copysign(up.select(whole + copysign(SIMD[dtype, width](1), x), whole), x)
