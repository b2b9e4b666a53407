"""Error functions, gamma functions, powers and remainders in `float64`; narrower types convert."""
from std.math import copysign, floor, fma
from std.utils.numerics import isnan

from . import special_single
from .elementary import (
    F64,
    INFINITY,
    LOG_TAIL,
    NAN,
    PI,
    exp,
    exp_scaled,
    horner,
    log,
    log_parts,
    polynomial,
    power_of_two,
    round_even,
    square_root,
    truncate,
)
from .trigonometric import cos_near_zero, sin_near_zero

# ERF: erf(x)/x in x^2 for x <= 1.
# ERFC: (1 + 2x) e^(x^2) erfc(x) in (x - 4)/(x + 4), for 0.45 <= x <= 28.
# ERFCX_TAIL: x e^(x^2) erfc(x) in 1/x^2, asymptotically, for x >= 28.
# ERFINV_*: erf_inv(x)/x by w = -log(1 - x^2): in w - 3 for w < 6, in sqrt(w) - 4.2 beyond.
# LGAMMA_CENTRE: lgamma(x) / ((x - 1)(x - 2)) in x - 1.75, for 0.75 <= x <= 2.75.
# STIRLING: B_2k / (2k (2k - 1)) and DIGAMMA: B_2k / 2k, k = 1, 2, ...
comptime ERF = [
    Float64(1.1283791670955126), -0.37612638903183754, 0.1128379167095512, -0.02686617064512984,
    0.0052239776254232985, -0.000854832702193483, 0.00012055332902888736,
    -1.4925647567519332e-05, 1.6462045441468418e-06, -1.6364642158167616e-07,
    1.4792401209404813e-08, -1.216456005728345e-09, 8.709045129053106e-11,
    -4.230945824295338e-12,
]
comptime ERFC = [
    Float64(1.2329951186255526), -0.13962111684056255, 0.015379652102619098, 0.06809705425469749,
    -0.10103906603625828, 0.09373283499818684, -0.06633036581349587, 0.037167515539911176,
    -0.016197734039638548, 0.005031969959410359, -0.000757773439017777, -0.0001992566217694988,
    0.00015062245399856283, -2.4399309113143737e-05, -1.1224624450988928e-05,
    5.709372041077491e-06, 2.993879523321948e-07, -8.235624390130822e-07, 6.71722632643329e-08,
    1.0645264965326085e-07, -1.2278425705831714e-08, -1.0731846710150756e-08,
]
comptime ERFCX_TAIL = [
    Float64(0.5641895835477563), -0.28209479177387814, 0.42314218766081724, -1.057855469152043,
    3.7024941420321507, -16.661223639144676, 91.63673001529573,
]
comptime ERFINV_CENTRAL = [
    Float64(1.6235420064648194), 0.2416304041661596, -0.00573813522077229, -0.000836181776938404,
    0.00019506132355544888, -1.271642253156138e-05, -1.7480008724651734e-06,
    4.499852716422346e-07, -2.3689614398801037e-08, -5.467066263893663e-09,
    1.1111682775449101e-09, -3.1473333156776854e-11, -1.7423115076483848e-11,
    2.711422513930998e-12, 2.1199191642577203e-14, -5.49729506437174e-14, 4.884707284895511e-15,
    4.826651813247963e-16, -8.258341014101388e-17, 3.010753215360279e-19,
]
comptime ERFINV_TAIL = [
    Float64(4.041726367915772), 1.0099023279198631, 0.0008072453998243255,
    -0.0006519249320502685, 0.0002288417209060505, -7.178799167965703e-05,
    2.6784640547948985e-05, -1.2661975522124133e-05, 6.457657047119576e-06,
    -4.004978194406254e-06, 2.413341789195113e-06, -6.886893360121421e-07,
    -1.345785405565903e-07, 1.243686104424732e-07, -1.726190941717766e-08,
    -1.0884693318758725e-09,
]
comptime LGAMMA_CENTRE = [
    Float64(0.4501393121092563), -0.11948158662524275, 0.04452044719850958, -0.01905395783024751,
    0.008776370425259793, -0.004226194125918377, 0.0020955338799517683, -0.0010605660753353595,
    0.0005448969880028713, -0.0002831906216947946, 0.0001485168148721519, -7.846176924600013e-05,
    4.170494022262255e-05, -2.22811921171879e-05, 1.1952384223824948e-05, -6.438349158831357e-06,
    3.4959883899769273e-06, -1.8954387692072647e-06, 9.828372423277771e-07, -5.3493213694914e-07,
    3.95944291818124e-07, -2.176607718618664e-07, -5.057592513858944e-08, 2.9096117213920525e-08,
    1.907701101717789e-07, -1.0630670240831151e-07, -1.258458418347269e-07,
    7.031475937948508e-08, 7.82329832333253e-08, -4.366199498254754e-08, -2.587686052895114e-08,
    1.444673957100922e-08, 4.900121609590935e-09, -2.7336145892234275e-09,
]
comptime STIRLING = [
    Float64(0.08333333333333333), -0.002777777777777778, 0.0007936507936507937,
    -0.0005952380952380953, 0.0008417508417508417, -0.0019175269175269176,
    0.00641025641025641, -0.029550653594771242,
]
comptime DIGAMMA = [
    Float64(0.08333333333333333), -0.008333333333333333, 0.003968253968253968,
    -0.004166666666666667, 0.007575757575757576, -0.021092796092796094,
    0.08333333333333333, -0.4432598039215686,
]
comptime TWO_OVER_ROOT_PI = 1.1283791670955126
comptime HALF_LOG_TWO_PI = 0.9189385332046728
comptime LOG_PI = 1.1447298858494002


@always_inline
def erf_near_zero[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    return x * horner[ERF](x * x)


@always_inline
def erfcx_of_large[width: SIMDLength, //](a: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives e^(a^2) erfc(a) for a >= 0.45."""
    comptime V = SIMD[F64, width]
    var bounded = a.gt(28).select(V(28), a)
    var large = horner[ERFC]((bounded - 4) / (bounded + 4)) / (1 + 2 * bounded)
    var inverse = 1 / a
    return a.gt(28).select(inverse * horner[ERFCX_TAIL](inverse * inverse), large)


@always_inline
def erfc_of_large[width: SIMDLength, //](a: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives erfc(a) for a >= 0.45."""
    comptime V = SIMD[F64, width]
    var bounded = a.gt(28).select(V(28), a)
    var t = (bounded - 4) / (bounded + 4)
    # e^(-a^2), the square's rounding error included.
    var square = fma(bounded, bounded, V(0))
    var tail = fma(bounded, bounded, -square)
    return exp_scaled(-square, V(0), -tail) * (horner[ERFC](t) / (1 + 2 * bounded))


@always_inline
def erf[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    var a = abs(x)
    var outer = copysign(1 - erfc_of_large(a), x)
    return a.ge(0.85).select(outer, erf_near_zero(x))


@always_inline
def erfc[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    var a = abs(x)
    var large = erfc_of_large(a)
    var outer = x.lt(0).select(2 - large, large)
    return a.ge(0.5).select(outer, 1 - erf_near_zero(x))


@always_inline
def erfcx[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives e^(x^2) erfc(x)."""
    comptime V = SIMD[F64, width]
    var a = abs(x)
    var large = erfcx_of_large(a)
    # e^(x^2), the square's rounding error included.
    var bounded = a.gt(28).select(V(28), a)
    var square = fma(bounded, bounded, V(0))
    var growth = exp_scaled(square, V(0), fma(bounded, bounded, -square))
    var outer = x.lt(0).select(2 * growth - large, large)
    return a.ge(0.5).select(outer, growth * (1 - erf_near_zero(x)))


@always_inline
def erf_inv[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    """The inverse of erf: a polynomial good to 1e-8, and a Halley step."""
    comptime V = SIMD[F64, width]
    var a = abs(x)
    var w = -log((1 - a) * (1 + a))
    var central = horner[ERFINV_CENTRAL](w - 3)
    var y = a * w.lt(6).select(central, horner[ERFINV_TAIL](square_root(w) - 4.2))
    # Newton on the well-conditioned side, then Halley's denominator 1 + y e.
    var inner = erf_near_zero(y) - a
    var outer = (1 - a) - erfc_of_large(y)
    var residual = y.lt(0.5).select(inner, outer)
    var error = residual / (TWO_OVER_ROOT_PI * exp(-y * y))
    y = y - error / (1 + y * error)
    var result = copysign(y, x)
    result = x.eq(0).select(x, result)
    result = a.eq(1).select(copysign(V(INFINITY), x), result)
    return a.gt(1).select(V(NAN), result)


@always_inline
def sin_cos_pi[
    width: SIMDLength, //
](x: SIMD[F64, width], mut cosine: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives sin(pi x), up to sign, and cos(pi x) with the same sign taken, for any x."""
    var fraction = x - round_even(x)
    # |fraction| <= 1/2; both are computed within pi/4 and exchanged beyond.
    var a = abs(fraction)
    var far = a.gt(0.25)
    var r = PI * far.select(0.5 - a, a)
    var zero = SIMD[F64, width](0)
    var s = sin_near_zero(r, zero)
    var c = cos_near_zero(r, zero)
    cosine = far.select(s, c)
    return copysign(far.select(c, s), fraction)


@always_inline
def lgamma_of_positive[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    comptime V = SIMD[F64, width]
    # Below 0.75: lgamma(x) = lgamma(x + 1) - log(x). From 2.75 to 8, down by whole steps:
    # lgamma(x) = lgamma(x - n) + log((x - 1) ... (x - n)). From 8, Stirling's series.
    var low = x.lt(0.75)
    var shifted = low.select(x + 1, x)
    var product = low.select(1 / x, V(1))
    comptime for _ in range(6):
        var above = shifted.gt(2.75)
        shifted = above.select(shifted - 1, shifted)
        product = above.select(product * shifted, product)
    shifted = shifted.gt(2.75).select(V(2), shifted)
    var centre = (shifted - 1) * (shifted - 2) * horner[LGAMMA_CENTRE](shifted - 1.75)
    var logarithm = low.select(-log(x), log(product))
    var near = centre + (low | product.ne(1)).select(logarithm, V(0))
    var inverse = 1 / x
    var log_x = log(x)
    var far = fma(
        x - 0.5,
        log_x - 1,
        (HALF_LOG_TWO_PI - 0.5) + inverse * horner[STIRLING](inverse * inverse),
    )
    far = x.gt(1e17).select(x * (log_x - 1), far)
    return x.lt(8).select(near, far)


@always_inline
def lgamma[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    comptime V = SIMD[F64, width]
    var a = abs(x)
    var positive = lgamma_of_positive(a)
    # lgamma(-a) = log(pi / (a |sin(pi a)|)) - lgamma(a).
    var cosine = V()
    var sine = abs(sin_cos_pi(a, cosine))
    var reflected = LOG_PI - log(a * sine) - positive
    var pole = x.le(0) & x.eq(floor(x))
    # Near 0 that is -log(a), without the product that underflows.
    var result = (x.lt(0) & a.gt(1e-100)).select(reflected, positive)
    result = (pole | a.eq(INFINITY)).select(V(INFINITY), result)
    return isnan(x).select(x, result)


@always_inline
def digamma[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    comptime V = SIMD[F64, width]
    # digamma(x) = digamma(1 - x) - pi / tan(pi x) for x < 1/2.
    var mirrored = x.lt(0.5)
    var z = mirrored.select(1 - x, x)
    var sum = V(0)
    comptime for _ in range(10):
        var small = z.lt(10)
        sum = small.select(sum - 1 / z, sum)
        z = small.select(z + 1, z)
    var inverse = 1 / z
    var square = inverse * inverse
    var series = log(z) - 0.5 * inverse - square * horner[DIGAMMA](square)
    var result = series + sum
    var cosine = V()
    var sine = sin_cos_pi(x, cosine)
    result = mirrored.select(result - PI * cosine / sine, result)
    var pole = x.lt(0) & x.eq(floor(x))
    result = x.eq(INFINITY).select(x, result)
    result = x.eq(0).select(V(-INFINITY), result)
    return (pole | isnan(x)).select(V(NAN), result)


@always_inline
def log_in_two_parts[
    width: SIMDLength, //
](x: SIMD[F64, width], mut low: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives log(x) = result + low to about 66 bits, for positive finite x.

    The low part is some roundings of the result: it is not normalized.
    """
    comptime V = SIMD[F64, width]
    var subnormal = x.lt(2.2250738585072014e-308)
    var scaled = subnormal.select(x * 18014398509481984.0, x)
    var exponent = V()
    var m = log_parts(scaled, exponent)
    exponent = subnormal.select(exponent - 54, exponent)
    # s + s_low = (m - 1) / (m + 1); the sum's rounding error is 1 - (sum - m).
    var numerator = m - 1
    var denominator = m + 1
    var denominator_low = m.gt(1).select(1 - (denominator - m), m - (denominator - 1))
    var s = numerator / denominator
    var s_low = fma(-s, denominator_low, fma(-s, denominator, numerator)) / denominator
    # q + q_low = s^2, and the series 2s (1 + q/3 + q^2/5 + q^3 TAIL/2). Each sum of a product is
    # rounded once, where what follows waits for it; what it lost is found beside it.
    var q = fma(s, s, V(0))
    var q_low = fma(s, s, -q) + 2 * s * s_low
    var rest_of_series = fma(q, polynomial[LOG_TAIL](q), 0.4)
    # t + t_low = 2/3 + fifth
    var t = fma(q, rest_of_series, 0.6666666666666666)
    var fifth = q * rest_of_series
    var t_low = (0.6666666666666666 - t) + fifth + 3.700743415417188e-17
    # p + p_low = q t
    var p = fma(q, t, V(0))
    var p_low = fma(q, t, -p) + fma(q, t_low, q_low * t)
    # c + c_low = 2 + p
    var c = fma(q, t, V(2))
    var c_low = (2 - c) + p + p_low
    # body + body_low = s c
    var body = fma(s, c, V(0))
    var body_low = fma(s, c, -body) + fma(s, c_low, s_low * c)
    # The first part of ln(2) has 32 bits: its product with the exponent is exact.
    var k_high = fma(exponent, V(0.6931471803691238), V(0))
    var k_low = fma(exponent, V(1.9082149288430703e-10), V(0))
    var k_rest = fma(
        exponent, V(4.275175589747649e-20), fma(exponent, V(1.9082149288430703e-10), -k_low)
    )
    var high = fma(s, c, k_high)
    var rest = (k_high - high) + body
    # Where the body outweighs the exponent's part the roles in that difference exchange.
    rest = exponent.eq(0).select(V(0), rest)
    low = rest + k_low + (body_low + k_rest)
    return high


@always_inline
def power_magnitude[
    width: SIMDLength, //
](a: SIMD[F64, width], y: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives a^y for a > 0, NaN and special values left to the caller."""
    comptime V = SIMD[F64, width]
    var low = V()
    var high = log_in_two_parts(a, low)
    var product = fma(y, high, V(0))
    var tail = fma(y, high, -product) + y * low
    # Far out of range the tail is inf - inf, and the product alone decides.
    return exp_scaled(product, V(0), tail)


@always_inline
def power[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """Gives x^y as C's pow, in float64 or float32."""
    comptime V = SIMD[dtype, width]
    var a = abs(x)
    var result: V
    comptime if dtype == F64:
        result = rebind[V](
            power_magnitude(rebind[SIMD[F64, width]](a), rebind[SIMD[F64, width]](y))
        )
    else:
        result = rebind[V](
            special_single.power_magnitude(
                rebind[SIMD[DType.float32, width]](a), rebind[SIMD[DType.float32, width]](y)
            )
        )
    # All that is special is decided meanwhile: one choice waits for the result.
    var integral = y.eq(truncate(y))
    # An odd y has a fractional half.
    var half = y * 0.5
    var odd = integral & half.ne(truncate(half))
    var infinite_y = abs(y).eq(INFINITY)
    var infinite_or_zero = a.eq(0) | a.eq(INFINITY)
    # Far from 1, or at the ends, the result is 0 or infinite.
    var vanishes = infinite_or_zero.select(a.eq(0), a.lt(1)).ne(y.lt(0))
    var special = vanishes.select(V(0), V(INFINITY))
    special = (infinite_y & a.eq(1)).select(V(1), special)
    var not_a_number = (x.lt(0) & ~integral & a.ne(INFINITY)) | isnan(x) | isnan(y)
    special = not_a_number.select(V(NAN), special)
    var one = y.eq(0) | x.eq(1)
    special = one.select(V(1), special)
    var negative = odd & copysign(V(1), x).lt(0) & ~not_a_number & ~one
    result = (infinite_y | infinite_or_zero | not_a_number | one).select(special, result)
    return negative.select(-result, result)


@always_inline
def remainder[
    width: SIMDLength, //
](x: SIMD[F64, width], y: SIMD[F64, width]) -> SIMD[F64, width]:
    """The exact C remainder: the sign of x, smaller than |y|."""
    comptime V = SIMD[F64, width]
    var divisor = abs(y)
    var valid = divisor.gt(0) & abs(x).lt(INFINITY)
    divisor = (valid & divisor.lt(INFINITY)).select(divisor, V(INFINITY))
    var r = valid.select(abs(x), V(0))
    # Each round takes off up to 50 bits of the quotient, exactly: the divisor is scaled up by a
    # power of two first, so that the quotient stays below 2^52.
    while True:
        var open = r.ge(divisor)
        if not open.reduce_or():
            break
        var gap = exponent_of(r) - exponent_of(divisor) - 50
        var positive = gap.gt(0)
        var multiple = positive.select(scale_up(divisor, positive.select(gap, V(0))), divisor)
        var quotient = truncate(r / multiple)
        var next = fma(-quotient, multiple, r)
        next = next.lt(0).select(next + multiple, next)
        next = next.ge(multiple).select(next - multiple, next)
        r = open.select(next, r)
    return (valid & ~isnan(y)).select(copysign(r, x), V(NAN))


@always_inline
def exponent_of[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    return ((x.to_bits[DType.uint64]() >> 52) & 0x7FF).cast[DType.int32]().cast[F64]()


@always_inline
def scale_up[
    width: SIMDLength, //
](x: SIMD[F64, width], k: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives x * 2^k for 0 <= k < 2047, in three steps so that no factor overflows."""
    var third = truncate(k / 3)
    var rest = k - third - third
    return x * power_of_two(third) * power_of_two(third) * power_of_two(rest)
