"""Elementary functions on SIMD vectors, free of libm, table look-ups and traps.

A graph kernel cannot call the host's libm, and MAX's own versions lose NaN or digits, so these are
self-contained. `float32` and `float64` are computed in their own precision where that is fast and
accurate (exponentials, logarithms, hyperbolics); the rest is computed in `float64`, which makes its
`float32` results correctly rounded but for rare ties. Polynomials are Chebyshev fits made in 50
digits; each comment gives the function that was fitted.
"""
from std.math import copysign, fma
from std.sys.intrinsics import llvm_intrinsic
from std.utils.numerics import isnan

comptime F64 = DType.float64

# EXPM1: (e^r - 1 - r) / r^2 for |r| <= ln(2)/2. LOG: (2 atanh(s)/s - 2) / s^2 in s^2, for
# |s| <= 0.172. LOG_TAIL: what 2 atanh(s)/s leaves after its s^4 term, over s^6.
# SIN: (sin(r)/r - 1)/r^2 and COS: (cos(r) - 1 + r^2/2)/r^4, in r^2, for |r| <= pi/4.
# SIN_NARROW: the same in fewer terms, and COS_NARROW: (cos(r) - 1)/r^2, for results that are rounded
# to float32: 2^-37 and 2^-34 of the result are missing.
# ATAN, ATAN_SINGLE: (atan(t)/t - 1)/t^2 in t^2 for |t| <= tan(pi/8).
# ASIN: (asin(s)/s - 1)/s^2, s <= 1/2.
comptime EXPM1_DOUBLE = [
    Float64(0.5), 0.16666666666666666, 0.04166666666666668, 0.008333333333333333,
    0.0013888888888878269, 0.00019841269841262761, 2.4801587338565345e-05,
    2.7557319248633827e-06, 2.755726102934377e-07, 2.5052069594795685e-08,
    2.0918961837795778e-09, 1.6087177234380782e-10,
]
comptime EXPM1_SINGLE = [
    Float64(0.5000000014286223), 0.16666666682534356, 0.04166645680967788, 0.008333310024225292,
    0.0013934541928270264, 0.0001989198131397769,
]
comptime LOG_DOUBLE = [
    Float64(0.6666666666666666), 0.4000000000000094, 0.2857142857076445, 0.2222222240054776,
    0.181817947008978, 0.15386290534658992, 0.13267418596474884, 0.1310072138350349,
]
comptime LOG_SINGLE = [
    Float64(0.6666666654988318), 0.40000125594554364, 0.28550396959618013, 0.23341943388714562,
]
comptime LOG_TAIL = [
    Float64(0.285714285714286), 0.22222222222135615, 0.18181818228358637, 0.15384606019058353,
    0.13334228871836348, 0.11720924879043454, 0.11577270571501114,
]
comptime SIN = [
    Float64(-0.16666666666666666), 0.008333333333333331, -0.0001984126984126457,
    2.755731921895673e-06, -2.5052106100926675e-08, 1.605851097953535e-10, -7.58549250782124e-13,
]
comptime COS = [
    Float64(0.041666666666666664), -0.0013888888888888887, 2.480158730158437e-05,
    -2.75573192211902e-07, 2.0876755717957296e-09, -1.147044941240971e-11, 4.745202155702359e-14,
]
comptime SIN_NARROW = [
    Float64(-0.16666666641624941), 0.008333329385704297, -0.0001983933477595377,
    2.718310915582915e-06,
]
comptime COS_NARROW = [
    Float64(-0.4999999969444572), 0.04166662035386804, -0.0013886681547623481,
    2.4383558030492075e-05,
]
comptime ATAN = [
    Float64(-0.3333333333333333), 0.1999999999999999, -0.14285714285711226, 0.11111111110721053,
    -0.09090909065008844, 0.07692306666088453, -0.06666640476612812, 0.05881902886080892,
    -0.05257825876436812, 0.0471802454590135, -0.04098925212046918, 0.030508638210712917,
    -0.013790276896186757,
]
comptime ATAN_SINGLE = [
    Float64(-0.33333331760863766), 0.19999540413603538, -0.14263953171156329, 0.10743705260895021,
    -0.064518412768827973,
]
comptime ASIN = [
    Float64(0.16666666666666666), 0.07500000000000119, 0.04464285714255019, 0.030381944475693704,
    0.022372157435623815, 0.017352816768546473, 0.013963775787848137, 0.011566511821890942,
    0.00962140274734483, 0.009322101501082774, 0.0030350071727267623, 0.019579201619744684,
    -0.019277545928584557, 0.02963502626354855,
]
# EXP_SINGLE: e^r for |r| <= ln(2)/2, its first two coefficients 1.
# TANH_SINGLE: (tanh(x)/x - 1)/x^2, in x^2, for |x| <= 0.6.
comptime EXP_SINGLE = [
    Float64(1), 1, 0.5000000013502685, 0.16666576823489146, 0.04166646457202675,
    0.0083632054674689, 0.001393368835783458,
]
comptime TANH_SINGLE = [
    Float64(-0.33333333234569346), 0.13333313327852112, -0.053961653376605634,
    0.021789107551530674, -0.008412553715207712, 0.002373515076027183,
]
comptime LN2 = 0.6931471805599453
# ln(2) in two parts; the first has trailing zeros, so that (integer < 2^20) * part is exact.
comptime LN2_HIGH = 0.6931471803691238
comptime LN2_LOW = 1.9082149288430703e-10
comptime LN2_HIGH_SINGLE = 0.693145751953125
comptime LN2_LOW_SINGLE = 1.4286068203094173e-06
comptime LOG2_E = 1.4426950408889634
comptime ROUNDING = 6755399441055744.0
comptime PI = 3.141592653589793
comptime PI_LOW = 1.2246467991473532e-16
comptime PI_OVER_2 = 1.5707963267948966
comptime PI_OVER_2_LOW = 6.123233995736766e-17
comptime INFINITY = FloatLiteral.infinity
comptime NAN = FloatLiteral.nan


@always_inline
def horner[
    dtype: DType, width: SIMDLength, //, coefficients: Span[Scalar[F64], ...]
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Evaluates a polynomial, lowest coefficient first, in the precision of `x`."""
    comptime count = len(coefficients)
    var result = SIMD[dtype, width](coefficients[count - 1].cast[dtype]())
    comptime for i in range(1, count):
        result = fma(
            result, x, SIMD[dtype, width](coefficients[count - 1 - i].cast[dtype]())
        )
    return result


@always_inline
def coefficient_at[
    dtype: DType, width: SIMDLength, coefficients: Span[Scalar[F64], ...], index: Int
]() -> SIMD[dtype, width]:
    return SIMD[dtype, width](coefficients[index].cast[dtype]())


@always_inline
def four_terms[
    dtype: DType, width: SIMDLength, //, coefficients: Span[Scalar[F64], ...], first: Int
](x: SIMD[dtype, width], square: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Evaluates the coefficients from `first` on, four of them or what there is."""
    comptime left = len(coefficients) - first
    var low = coefficient_at[dtype, width, coefficients, first]()
    comptime if left > 1:
        low = fma(coefficient_at[dtype, width, coefficients, first + 1](), x, low)
    comptime if left > 2:
        var high = coefficient_at[dtype, width, coefficients, first + 2]()
        comptime if left > 3:
            high = fma(coefficient_at[dtype, width, coefficients, first + 3](), x, high)
        low = fma(high, square, low)
    return low


@always_inline
def polynomial[
    dtype: DType, width: SIMDLength, //, coefficients: Span[Scalar[F64], ...]
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Evaluates the same as `horner`, four coefficients at a time.

    For two products more, the chain of operations that wait for one another is a third as long:
    a loop over scalars consists of such chains. The constant coefficient is rounded three times,
    so this is for what is added to something larger.
    """
    comptime last = (len(coefficients) - 1) // 4
    var square = x * x
    var fourth = square * square
    var result = four_terms[coefficients, 4 * last](x, square)
    comptime for i in range(1, last + 1):
        result = fma(result, fourth, four_terms[coefficients, 4 * (last - i)](x, square))
    return result


@always_inline
def round_even[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Rounds to the nearest integer, ties to even."""
    return llvm_intrinsic[
        "llvm.roundeven", SIMD[dtype, width], has_side_effect=False
    ](x)


@always_inline
def rounded_product[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width], factor: Float64) -> SIMD[dtype, width]:
    """Gives the integer nearest to `x * factor`, in float64, where it is below 2^51.

    At 1.5 * 2^52 a float64 has no room for a fraction.
    """
    comptime V = SIMD[dtype, width]
    return fma(x, V(factor.cast[dtype]()), V(ROUNDING)) - V(ROUNDING)


@always_inline
def truncate[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Rounds towards zero."""
    return llvm_intrinsic[
        "llvm.trunc", SIMD[dtype, width], has_side_effect=False
    ](x)


@always_inline
def square_root[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return llvm_intrinsic["llvm.sqrt", SIMD[dtype, width], has_side_effect=False](
        x
    )


@always_inline
def power_of_two[
    dtype: DType, width: SIMDLength, //
](k: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Gives 2^k for an integral float `k` within the exponent range of normal numbers."""
    # Adding 1.5 * 2^(mantissa bits) leaves the integer in the low bits.
    comptime if dtype == DType.float32:
        var bits = integer_bits(rebind[SIMD[DType.float32, width]](k))
        return SIMD[dtype, width](from_bits=(bits + 127) << 23)
    else:
        var bits = (k + ROUNDING).to_bits[DType.uint64]()
        return SIMD[dtype, width](from_bits=(bits + 1023) << 52)


@always_inline
def scale[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width], k: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Gives x * 2^k in two steps, so that neither factor leaves the normal range early."""
    var half = round_even(k * 0.5)
    return x * power_of_two(half) * power_of_two(k - half)


@always_inline
def reduce_exponent[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width], mut k: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Splits x = k ln(2) + r with |r| <= ln(2)/2; returns r."""
    comptime if dtype == DType.float32:
        k = round_even(x * LOG2_E)
        return fma(-k, LN2_LOW_SINGLE, fma(-k, LN2_HIGH_SINGLE, x))
    else:
        k = rounded_product(x, LOG2_E)
        return fma(-k, LN2_LOW, fma(-k, LN2_HIGH, x))


@always_inline
def exp_minus_one_near_zero[
    dtype: DType, width: SIMDLength, //
](r: SIMD[dtype, width]) -> SIMD[dtype, width]:
    comptime if dtype == DType.float32:
        return fma(horner[EXPM1_SINGLE](r), r * r, r)
    else:
        return fma(polynomial[EXPM1_DOUBLE](r), r * r, r)


@always_inline
def clamp_exponent[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Keeps NaN; beyond these bounds the exponential is 0 or infinite anyway."""
    comptime bound: Float64 = 110.0 if dtype == DType.float32 else 760.0
    comptime high = bound.cast[dtype]()
    var low = x.lt(-high).select(SIMD[dtype, width](-high), x)
    return low.gt(high).select(SIMD[dtype, width](high), low)


@always_inline
def exp_scaled[
    dtype: DType, width: SIMDLength, //
](
    x: SIMD[dtype, width], shift: SIMD[dtype, width], tail: SIMD[dtype, width]
) -> SIMD[dtype, width]:
    """Gives e^(x + tail) * 2^shift, for a tail much smaller than x, and a shift of 0 or -1."""
    var k = SIMD[dtype, width]()
    var r = reduce_exponent(x, k) + tail
    return exp_of_parts(x, k + shift, exp_minus_one_near_zero(r))


@always_inline
def exp_of_parts[
    dtype: DType, width: SIMDLength, //
](
    x: SIMD[dtype, width], k: SIMD[dtype, width], minus_one: SIMD[dtype, width]
) -> SIMD[dtype, width]:
    """Gives (minus_one + 1) * 2^k, and the exponential of x where that is 0 or infinite anyway."""
    comptime V = SIMD[dtype, width]
    comptime bound: Float64 = 110.0 if dtype == DType.float32 else 760.0
    comptime most = bound.cast[dtype]()
    # In two steps, so that neither factor leaves the normal range early.
    var half = round_even(k * 0.5)
    var power = power_of_two(half)
    var result = fma(minus_one, power, power) * power_of_two(k - half)
    var beyond = x.gt(0).select(V(INFINITY), V(0))
    return abs(x).gt(most).select(beyond, result)


@always_inline
def exp[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    comptime if dtype == DType.float32:
        return rebind[SIMD[dtype, width]](
            exp_single(rebind[SIMD[DType.float32, width]](x))
        )
    else:
        var k = SIMD[dtype, width]()
        var r = reduce_exponent(x, k)
        return exp_of_parts(x, k, exp_minus_one_near_zero(r))


@always_inline
def exp_single[
    width: SIMDLength, //
](x: SIMD[DType.float32, width]) -> SIMD[DType.float32, width]:
    """The exponential with one scaling: 2^k goes straight into the exponent's bits.

    Results below the least normal number are zero, as XLA's are.
    """
    comptime V = SIMD[DType.float32, width]
    var k = V()
    var p = horner[EXP_SINGLE](reduce_exponent(x, k))
    var result = V(from_bits=p.to_bits[DType.uint32]() + (integer_bits(k) << 23))
    result = x.lt(-87.33654022216797).select(V(0), result)
    # Up to this bound k <= 128, and p < 1 where k is 128. Beyond it, infinity; or NaN.
    return x.le(88.72283172607422).select(result, x + INFINITY)


@always_inline
def integer_bits[
    width: SIMDLength, //
](k: SIMD[DType.float32, width]) -> SIMD[DType.uint32, width]:
    """The integer that a small integral float is, in its low bits."""
    return (k + 12582912.0).to_bits[DType.uint32]()


@always_inline
def exp2[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    comptime bound: Float64 = 160.0 if dtype == DType.float32 else 1100.0
    comptime high = bound.cast[dtype]()
    var low = x.lt(-high).select(SIMD[dtype, width](-high), x)
    var clamped = low.gt(high).select(SIMD[dtype, width](high), low)
    var k = round_even(clamped)
    # The product is rounded once, at |r| <= ln(2)/2: half an ulp of the result at most.
    var r = (clamped - k) * LN2
    return scale(exp_minus_one_near_zero(r) + 1, k)


@always_inline
def expm1[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    var clamped = clamp_exponent(x)
    var k = SIMD[dtype, width]()
    var p = exp_minus_one_near_zero(reduce_exponent(clamped, k))
    # 2^k (p + 1) - 1 = 2^k p + (2^k - 1). One factor of 2 is kept back for the largest k; for the
    # smallest, 2^k no longer matters beside the 1.
    comptime lowest: Float64 = -100.0 if dtype == DType.float32 else -1000.0
    comptime least = lowest.cast[dtype]()
    k = k.lt(least).select(SIMD[dtype, width](least), k)
    var half_power = power_of_two(k - 1)
    comptime highest: Float64 = 127.0 if dtype == DType.float32 else 1023.0
    comptime most = highest.cast[dtype]()
    var result = fma(half_power, p, half_power - 0.5) * 2
    # exp itself overflows gradually where 2^(k-1) does not.
    result = k.ge(most).select(exp(x), result)
    return x.eq(0).select(x, k.eq(0).select(p, result))


@always_inline
def log_parts[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width], mut exponent: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Splits a positive normal x = 2^exponent m with sqrt(1/2) <= m < sqrt(2); returns m."""
    comptime if dtype == DType.float32:
        var bits = x.to_bits[DType.uint32]().cast[DType.int32]()
        var e = (bits - 0x3F3504F3) >> 23
        exponent = e.cast[dtype]()
        return SIMD[dtype, width](
            from_bits=(bits - (e << 23)).cast[DType.uint32]()
        )
    else:
        var bits = x.to_bits[DType.uint64]().cast[DType.int64]()
        var e = (bits - 0x3FE6A09E667F3BCD) >> 52
        exponent = e.cast[DType.int32]().cast[dtype]()
        return SIMD[dtype, width](
            from_bits=(bits - (e << 52)).cast[DType.uint64]()
        )


@always_inline
def log_of_parts[
    dtype: DType, width: SIMDLength, //
](
    f: SIMD[dtype, width], exponent: SIMD[dtype, width], tail: SIMD[dtype, width]
) -> SIMD[dtype, width]:
    """Gives exponent * ln(2) + log(1 + f) + tail.

    With s = f / (2 + f): log(1 + f) = 2 atanh(s) = f - s (f - R) = f - (f^2/2 - s (f^2/2 + R)),
    the last form having the least rounding error.
    """
    var s = f / (f + 2)
    var z = s * s
    var half_square = 0.5 * f * f
    var inner: SIMD[dtype, width]
    var high: SIMD[dtype, width]
    var low: SIMD[dtype, width]
    comptime if dtype == DType.float32:
        inner = half_square + z * horner[LOG_SINGLE](z)
        high = exponent * LN2_HIGH_SINGLE
        low = fma(exponent, LN2_LOW_SINGLE, tail)
    else:
        inner = fma(z, polynomial[LOG_DOUBLE](z), half_square)
        high = exponent * LN2_HIGH
        low = fma(exponent, LN2_LOW, tail)
    return high - ((half_square - fma(s, inner, low)) - f)


@always_inline
def smallest_normal[dtype: DType]() -> Scalar[dtype]:
    comptime if dtype == DType.float32:
        return Scalar[dtype](1.1754943508222875e-38)
    else:
        return Scalar[dtype](2.2250738585072014e-308)


@always_inline
def log_parts_of_any[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width], mut exponent: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """The same of a positive number that may be subnormal."""
    comptime bits: Float64 = 24.0 if dtype == DType.float32 else 54.0
    comptime factor: Float64 = 16777216.0 if dtype == DType.float32 else 18014398509481984.0
    var subnormal = x.lt(smallest_normal[dtype]())
    var m = log_parts(subnormal.select(x * factor.cast[dtype](), x), exponent)
    exponent = subnormal.select(exponent - bits.cast[dtype](), exponent)
    return m


@always_inline
def log[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    comptime V = SIMD[dtype, width]
    var exponent = V()
    var m = log_parts_of_any(x, exponent)
    var result = log_of_parts(m - 1, exponent, V(0))
    # One choice waits for the result, the others are made meanwhile.
    var special = x.eq(0).select(V(-INFINITY), x.gt(0).select(x, V(NAN)))
    return (x.gt(0) & x.lt(INFINITY)).select(result, special)


@always_inline
def log2[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Exact for powers of 2: the exponent is added to the logarithm of what is left."""
    comptime V = SIMD[dtype, width]
    var exponent = V()
    var m = log_parts_of_any(x, exponent)
    var result = fma(log_of_parts(m - 1, V(0), V(0)), V(LOG2_E), exponent)
    result = x.eq(INFINITY).select(x, result)
    result = x.eq(0).select(V(-INFINITY), result)
    return (x.lt(0) | isnan(x)).select(V(NAN), result)


@always_inline
def log1p[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    comptime V = SIMD[dtype, width]
    var u = x + 1
    # What the sum lost, relative to u; log(u + c u) = log(u) + c.
    var lost = x.gt(1).select(1 - (u - x), x - (u - 1)) / u
    var exponent = V()
    var m = log_parts(u, exponent)
    var direct = exponent.eq(0)
    var f = direct.select(x, m - 1)
    var tail = direct.select(V(0), lost)
    var result = log_of_parts(f, exponent, tail)
    result = (x.eq(INFINITY) | x.eq(0)).select(x, result)
    result = x.eq(-1).select(V(-INFINITY), result)
    return (x.lt(-1) | isnan(x)).select(V(NAN), result)


@always_inline
def tanh[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    comptime if dtype == DType.float32:
        return rebind[SIMD[dtype, width]](
            tanh_single(rebind[SIMD[DType.float32, width]](x))
        )
    else:
        # tanh(a) = -t / (t + 2) with t = e^(-2a) - 1, which is -1 from 20 on.
        comptime V = SIMD[dtype, width]
        var a = abs(x)
        var k = V()
        var r = reduce_exponent(a.gt(20).select(V(-40), -2 * a), k)
        var power = power_of_two(k)
        var t = fma(power, exp_minus_one_near_zero(r), power - 1)
        return copysign(t / (t + 2), x)


@always_inline
def tanh_single[
    width: SIMDLength, //
](x: SIMD[DType.float32, width]) -> SIMD[DType.float32, width]:
    """An odd polynomial near zero, and tanh(a) = 1 - 2 / (e^(2a) + 1) beyond."""
    comptime V = SIMD[DType.float32, width]
    var a = abs(x)
    var square = x * x
    var near = fma(horner[TANH_SINGLE](square) * square, x, x)
    var doubled = a.gt(10).select(V(20), a + a)
    var k = round_even(doubled * LOG2_E)
    # One part of ln(2) is enough: k is small where e^(2a) matters.
    var p = horner[EXP_SINGLE](fma(-k, V(LN2), doubled))
    var far = 1 - 2 / fma(p, power_of_two(k), V(1))
    return copysign(a.lt(0.6).select(near, far), x)


@always_inline
def logistic[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return 1 / (1 + exp(-x))


@always_inline
def sinh[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    var a = abs(x)
    var k = SIMD[dtype, width]()
    var p = exp_minus_one_near_zero(reduce_exponent(a, k))
    # t = e^a - 1, where it is no larger than e^22.
    var power = power_of_two(k)
    var t = fma(power, p, power - 1)
    var small = 0.5 * (t + t / (t + 1))
    var result = a.gt(22).select(exp_of_parts(a, k - 1, p), small)
    return x.eq(0).select(x, copysign(result, x))


@always_inline
def cosh[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    comptime V = SIMD[dtype, width]
    var half = exp_scaled(abs(x), V(-1), V(0))
    return half + 0.25 / half


@always_inline
def asinh[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    var a = abs(x)
    var square = a * a
    var small = log1p(a + square / (1 + square_root(1 + square)))
    var result = a.gt(1e9).select(log(a) + LN2, small)
    return x.eq(0).select(x, copysign(result, x))


@always_inline
def acosh[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    comptime V = SIMD[dtype, width]
    var t = x - 1
    var small = log1p(t + square_root(t * (t + 2)))
    var result = x.gt(1e9).select(log(x) + LN2, small)
    return x.lt(1).select(V(NAN), result)


@always_inline
def atanh[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    var a = abs(x)
    var twice = a + a
    var small = log1p(twice + twice * a / (1 - a))
    var large = log1p(twice / (1 - a))
    var result = 0.5 * a.lt(0.5).select(small, large)
    return x.eq(0).select(x, copysign(result, x))


@always_inline
def cbrt[
    width: SIMDLength, //
](x: SIMD[F64, width]) -> SIMD[F64, width]:
    var a = abs(x)
    var y = exp(log(a) * 0.3333333333333333)
    # One Newton step, its residual exact: a - y^3 with y^2 split into two parts.
    var square = y * y
    var square_low = fma(y, y, -square)
    var residual = fma(-square, y, a) - square_low * y
    y = y + residual / (3 * square)
    return (x.eq(0) | a.eq(INFINITY) | isnan(x)).select(x, copysign(y, x))
