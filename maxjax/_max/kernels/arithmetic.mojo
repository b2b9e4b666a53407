"""Arithmetic whose edge cases MAX's own operations get wrong, over every dtype.

Registered as `maxjax_<name>`, equal to the `jax.lax` operation of the name: NaN wins in `max` and
`min`, integer division truncates and never traps, shifts by the width or more shift everything out.
"""
import extensibility
from extensibility import ElementwiseBinaryOp, ElementwiseUnaryOp
from std.bit import count_leading_zeros, pop_count
from std.math import copysign, floor
from std.sys.info import bit_width_of
from std.sys.intrinsics import llvm_intrinsic
from std.utils.numerics import isnan

from . import special, trigonometric
from .elementary import F64
from .halves import rounded_to


@always_inline
def signed_of[dtype: DType]() -> DType:
    """The signed integer type of the same width."""
    comptime bits = bit_width_of[dtype]()
    comptime if bits == 8:
        return DType.int8
    elif bits == 16:
        return DType.int16
    elif bits == 32:
        return DType.int32
    else:
        return DType.int64


@always_inline
def unsigned_of[dtype: DType]() -> DType:
    """The unsigned integer type of the same width."""
    comptime bits = bit_width_of[dtype]()
    comptime if bits == 8:
        return DType.uint8
    elif bits == 16:
        return DType.uint16
    elif bits == 32:
        return DType.uint32
    else:
        return DType.uint64


@always_inline
def extremum[
    dtype: DType, width: SIMDLength, //, *, largest: Bool
](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """The larger or smaller of two; NaN wins, and 0 is above -0."""
    comptime if dtype == DType.bool:
        return x | y if largest else x & y
    elif dtype.is_half_float():
        return rounded_to[dtype](
            extremum[largest=largest](x.cast[DType.float32](), y.cast[DType.float32]())
        )
    elif dtype.is_floating_point():
        comptime name = "llvm.maximum" if largest else "llvm.minimum"
        return llvm_intrinsic[name, SIMD[dtype, width], has_side_effect=False](x, y)
    else:
        var first = x.gt(y) if largest else x.lt(y)
        return first.select(x, y)


@extensibility.register("maxjax_max")
struct Max(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return extremum[largest=True](x, y)


@extensibility.register("maxjax_min")
struct Min(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return extremum[largest=False](x, y)


@always_inline
def below_2_to_52[dtype: DType, width: SIMDLength, //](x: SIMD[dtype, width]) -> Bool:
    """Whether all of several numbers are, which are divided together then."""
    comptime if width == 1:
        return False
    else:
        return x.lt(1 << 52).reduce_and()


@always_inline
def integer_quotient[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """The quotient, truncated. x / 0 is all ones; the smallest number over -1 is itself."""
    comptime V = SIMD[dtype, width]
    var by_zero = y.eq(0)
    var quotient: V
    comptime bits = bit_width_of[dtype]()
    comptime if bits < 32:
        # Quotients of 16-bit integers are farther from the next integer than float32 rounds.
        comptime F = DType.float32
        var divisor = by_zero.select(V(1), y).cast[F]()
        quotient = (x.cast[F]() / divisor).cast[DType.int32]().cast[dtype]()
    elif dtype == DType.int32:
        # And of 32-bit ones than float64 does. The one that does not fit, -2^31 by -1, wraps.
        var negated = y.eq(-1)
        var divisor = (by_zero | negated).select(V(1), y).cast[F64]()
        quotient = negated.select(-x, (x.cast[F64]() / divisor).cast[dtype]())
    elif bits == 32:
        var divisor = by_zero.select(V(1), y).cast[F64]()
        var ratio = floor(x.cast[F64]() / divisor)
        # The last bits of 2^52 and more are those of the integer.
        quotient = (ratio + 4503599627370496.0).to_bits[DType.uint64]().cast[dtype]()
    else:
        comptime unsigned = unsigned_of[dtype]()
        comptime U = SIMD[unsigned, width]
        var x_negative = x.lt(0)
        var y_negative = y.lt(0)
        var dividend = x_negative.select(-x, x).cast[unsigned]()
        var divisor = by_zero.select(U(1), y_negative.select(-y, y).cast[unsigned]())
        var magnitude = U()
        if below_2_to_52(dividend | divisor):
            # Such quotients are farther from the next integer than float64 rounds. The bits of
            # x + 2^52 are those of x behind those of 2^52.
            comptime two_to_52 = 4503599627370496.0
            comptime its_bits = U(0x4330000000000000)
            var x_real = SIMD[F64, width](from_bits=dividend | its_bits) - two_to_52
            var y_real = SIMD[F64, width](from_bits=divisor | its_bits) - two_to_52
            var ratio = floor(x_real / y_real)
            magnitude = (ratio + two_to_52).to_bits[unsigned]() ^ its_bits
        else:
            comptime for lane in range(width):
                magnitude[lane] = dividend[lane] // divisor[lane]
        var result = magnitude.cast[dtype]()
        quotient = x_negative.ne(y_negative).select(-result, result)
    return by_zero.select(~V(0), quotient)


@extensibility.register("maxjax_div")
struct Div(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_half_float():
            return rounded_to[dtype](x.cast[DType.float32]() / y.cast[DType.float32]())
        elif dtype.is_floating_point():
            return x / y
        else:
            return integer_quotient(x, y)


@extensibility.register("maxjax_rem")
struct Rem(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_floating_point():
            return rounded_to[dtype](special.remainder(x.cast[F64](), y.cast[F64]()))
        else:
            # With x / 0 = -1 this gives x % 0 = x + 0 * 1, as it should be.
            return x - integer_quotient(x, y) * y


@extensibility.register("maxjax_pow")
struct Pow(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime wide = F64 if dtype == F64 else DType.float32
        return rounded_to[dtype](special.power(x.cast[wide](), y.cast[wide]()))


@extensibility.register("maxjax_atan2")
struct Atan2(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](y: SIMD[dtype, width], x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return rounded_to[dtype](trigonometric.atan2(y.cast[F64](), x.cast[F64]()))


@extensibility.register("maxjax_nextafter")
struct Nextafter(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        # Floats of one sign are ordered as their bits are.
        comptime bits = unsigned_of[dtype]()
        comptime U = SIMD[bits, width]
        comptime sign = Scalar[bits](1) << Scalar[bits](bit_width_of[dtype]() - 1)
        var from_bits = x.to_bits[bits]()
        var outward = x.lt(y).eq((from_bits & sign).eq(0))
        var stepped = outward.select(from_bits + 1, from_bits - 1)
        var smallest = (y.to_bits[bits]() & sign) | 1
        stepped = (from_bits & ~sign).eq(0).select(smallest, stepped)
        var result = x.eq(y).select(y, SIMD[dtype, width](from_bits=stepped))
        result = isnan(y).select(y, result)
        return isnan(x).select(x, result)


@extensibility.register("maxjax_sign")
struct Sign(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime V = SIMD[dtype, width]
        comptime if dtype.is_floating_point():
            return (x.eq(0) | isnan(x)).select(x, x.lt(0).select(V(-1), V(1)))
        else:
            return x.lt(0).select(~V(0), x.eq(0).select(V(0), V(1)))


@extensibility.register("maxjax_abs")
struct Abs(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_floating_point():
            comptime bits = unsigned_of[dtype]()
            comptime mask = ~(Scalar[bits](1) << Scalar[bits](bit_width_of[dtype]() - 1))
            return SIMD[dtype, width](from_bits=x.to_bits[bits]() & mask)
        else:
            return x.lt(0).select(0 - x, x)


@extensibility.register("maxjax_neg")
struct Neg(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_floating_point():
            comptime bits = unsigned_of[dtype]()
            comptime sign = Scalar[bits](1) << Scalar[bits](bit_width_of[dtype]() - 1)
            return SIMD[dtype, width](from_bits=x.to_bits[bits]() ^ sign)
        else:
            return 0 - x


@extensibility.register("maxjax_and")
struct And(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return x & y


@extensibility.register("maxjax_or")
struct Or(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return x | y


@extensibility.register("maxjax_xor")
struct Xor(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return x ^ y


@extensibility.register("maxjax_not")
struct Not(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return ~x


@always_inline
def shift_is_whole[
    dtype: DType, width: SIMDLength, //
](shift: SIMD[dtype, width]) -> SIMD[DType.bool, width]:
    """Whether a shift, taken as unsigned, moves every bit out."""
    comptime unsigned = unsigned_of[dtype]()
    return shift.cast[unsigned]().ge(Scalar[unsigned](bit_width_of[dtype]()))


@extensibility.register("maxjax_shift_left")
struct ShiftLeft(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime V = SIMD[dtype, width]
        var whole = shift_is_whole(y)
        return whole.select(V(0), x << whole.select(V(0), y))


@extensibility.register("maxjax_shift_right_logical")
struct ShiftRightLogical(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime unsigned = unsigned_of[dtype]()
        comptime U = SIMD[unsigned, width]
        var whole = shift_is_whole(y)
        var shift = whole.select(U(0), y.cast[unsigned]())
        return whole.select(U(0), x.cast[unsigned]() >> shift).cast[dtype]()


@extensibility.register("maxjax_shift_right_arithmetic")
struct ShiftRightArithmetic(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        # The top bit is taken for a sign in unsigned types too.
        comptime signed = signed_of[dtype]()
        comptime V = SIMD[signed, width]
        comptime most = Scalar[signed](bit_width_of[dtype]() - 1)
        var shift = shift_is_whole(y).select(V(most), y.cast[signed]())
        return (x.cast[signed]() >> shift).cast[dtype]()


@extensibility.register("maxjax_population_count")
struct PopulationCount(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return pop_count(x)


@extensibility.register("maxjax_clz")
struct Clz(ElementwiseUnaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return count_leading_zeros(x)
