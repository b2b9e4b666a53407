"""Error functions and powers of `float32`: in `float32` where that keeps 2 units in the last place,
in `float64` with shorter polynomials where not.
"""
from std.math import copysign, fma

from .elementary import (
    EXP_SINGLE,
    F64,
    INFINITY,
    LOG2_E,
    NAN,
    horner,
    log_parts,
    power_of_two,
    reduce_exponent,
    round_even,
    square_root,
)

comptime F32 = DType.float32

# ERF_NEAR: erf(x)/x - 1 in x^2 for x <= 1. ERF_FAR: log(erfc(x)) for 0.9 <= x <= 4.
# ERFC_FAR: e^(x^2) erfc(x) in (x - 3)/(x + 3) for 0.45 <= x <= 10.2.
# LOG2: log2((1 + s)/(1 - s))/s in s^2 for |s| <= 0.172. EXP2: 2^r for |r| <= 1/2.
# ERF_INV_*: M. Giles, Approximating the erfinv function: erf_inv(x)/x by w = -log(1 - x^2), in
# w - 5/2 for w < 5 and in sqrt(w) - 3 beyond.
comptime ERF_NEAR = [
    Float64(0.1283791657262426), -0.3761262582099475, 0.11283585111840853,
    -0.026853810397098343, 0.005188324763966769, -0.0008010167964872536, 7.853776651545705e-05,
]
comptime ERF_FAR = [
    Float64(-0.00017729086749021142), -1.127750470484303, -0.63705810314454,
    -0.10403892300860507, 0.022277900887008324, -0.0030558280128485135, 0.00019720598674738223,
]
comptime ERFC_FAR = [
    Float64(0.1790011523583213), -0.3262335687287565, 0.24560366557085148, -0.1501154508627199,
    0.07166837351603642, -0.024398728000000078, 0.004251703952472116, 0.0007359697091182569,
    -0.0005438855655306265,
]
comptime LOG2 = [
    Float64(2.88539008177785), 0.9617966941141233, 0.5770779420833357, 0.4122092841898763,
    0.3199042887972382, 0.28292147858338307,
]
comptime EXP2 = [
    Float64(0.9999999999616846), 0.6931471807285816, 0.2402265119813569, 0.05550410353017375,
    0.009618027255957194, 0.0013333922910292349, 0.00015469290541921815, 1.5201842026665248e-05,
]
comptime ERF_INV_CENTRE = [
    Float64(1.50140941), 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
    -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08,
]
comptime ERF_INV_TAIL = [
    Float64(2.83297682), 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
    -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257,
]
# LOG_*: log(1 + m) - m + m^2/2 over m^3, in three parts; LOG1P_*: the same for log1p near 0. Both
# are the Cephes library's, as XLA uses them; log(2) in two parts.
comptime LOG_HIGH = [Float64(1.1676998740e-1), -1.1514610310e-1, 7.0376836292e-2]
comptime LOG_MIDDLE = [Float64(-1.6668057665e-1), 1.4249322787e-1, -1.2420140846e-1]
comptime LOG_LOW = [Float64(3.3333331174e-1), -2.4999993993e-1, 2.0000714765e-1]
comptime LOG1P_NUMERATOR = [
    Float64(20.039553499201281259648), 57.112963590585538103336, 60.949667980987787057556,
    29.911919328553073277375, 6.5787325942061044846969, 4.9854102823193375972212e-1,
    4.5270000862445199635215e-5,
]
comptime LOG1P_DENOMINATOR = [
    Float64(60.118660497603843919306), 216.42788614595947685003, 309.09872225312059774938,
    221.76239823732856465394, 83.047565967967209469434, 15.062909083469192043167, 1.0,
]
comptime LN2_HIGH = 0.693359375
comptime LN2_LOW = -2.12194440e-4


@always_inline
def erf[width: SIMDLength, //](x: SIMD[F32, width]) -> SIMD[F32, width]:
    comptime V = SIMD[F32, width]
    var a = abs(x)
    var near = fma(horner[ERF_NEAR](x * x), x, x)
    # 1 - e^log(erfc(a)), which is 1 from 3.92.
    var k = V()
    var r = reduce_exponent(horner[ERF_FAR](a.gt(4).select(V(4), a)), k)
    var far = fma(-horner[EXP_SINGLE](r), power_of_two(k), V(1))
    return a.ge(0.95).select(copysign(far, x), near)


@always_inline
def erfc[width: SIMDLength, //](x: SIMD[F32, width]) -> SIMD[F32, width]:
    comptime V = SIMD[F32, width]
    var a = abs(x)
    # 1 - x is exact from 1/2 on, and what is taken off it small.
    var near = fma(-horner[ERF_NEAR](x * x), x, 1 - x)
    # In float64, whose t and a^2 are as good as exact.
    var wide = a.gt(10.5).select(V(10.5), a).cast[F64]()
    var t = (wide - 3) / (wide + 3)
    var far = (exp2(wide * wide * -LOG2_E) * horner[ERFC_FAR](t)).cast[F32]()
    return a.ge(0.95).select(x.lt(0).select(2 - far, far), near)


@always_inline
def log2[
    width: SIMDLength, //
](m: SIMD[F64, width], exponent: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives exponent + log2(m), sqrt(1/2) <= m <= sqrt(2), to 44 bits."""
    var s = (m - 1) / (m + 1)
    return fma(s, horner[LOG2](s * s), exponent)


@always_inline
def exp2[width: SIMDLength, //](t: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives 2^t to 34 bits, for |t| <= 1000."""
    var k = round_even(t)
    return horner[EXP2](t - k) * power_of_two(k)


@always_inline
def log_of_normal_as_xla[width: SIMDLength, //](x: SIMD[F32, width]) -> SIMD[F32, width]:
    """For positive normal numbers, every rounding as in XLA."""
    comptime V = SIMD[F32, width]
    var e = V()
    var m = log_parts(x, e) - 1
    return log_of_parts_as_xla(m, e)


@always_inline
def log_of_parts_as_xla[
    width: SIMDLength, //
](m: SIMD[F32, width], e: SIMD[F32, width]) -> SIMD[F32, width]:
    """Gives log(2^e (1 + m))."""
    comptime V = SIMD[F32, width]
    var square = m * m
    var cube = square * m
    var series = fma(fma(horner[LOG_HIGH](m), cube, horner[LOG_MIDDLE](m)), cube, horner[LOG_LOW](m))
    return fma(e, V(LN2_HIGH), fma(square, V(-0.5), m) + fma(series, cube, e * V(LN2_LOW)))


@always_inline
def log_as_xla[width: SIMDLength, //](x: SIMD[F32, width]) -> SIMD[F32, width]:
    """Every rounding as in XLA, for all numbers."""
    comptime V = SIMD[F32, width]
    var subnormal = x.lt(1.1754943508222875e-38)
    var e = V()
    var m = log_parts(subnormal.select(x * 16777216.0, x), e) - 1
    var result = log_of_parts_as_xla(m, subnormal.select(e - 24, e))
    result = x.eq(0).select(V(-INFINITY), result)
    result = x.eq(V(INFINITY)).select(V(INFINITY), result)
    return x.ge(0).select(result, V(NAN))


@always_inline
def log1p_as_xla[width: SIMDLength, //](x: SIMD[F32, width]) -> SIMD[F32, width]:
    """For -1 < x <= 0, every rounding as in XLA (`maxjax/_primitives/xla_float32.py` is the NumPy
    rule)."""
    comptime V = SIMD[F32, width]
    var square = x * x
    var ratio = horner[LOG1P_NUMERATOR](x) / horner[LOG1P_DENOMINATOR](x)
    var near = x + fma(V(-0.5), square, x * square * ratio)
    return abs(x).lt(0.41421357).select(near, log_of_normal_as_xla(x + 1))


@always_inline
def erf_inv[width: SIMDLength, //](x: SIMD[F32, width]) -> SIMD[F32, width]:
    """As XLA computes it, so that random numbers made with it are the same."""
    comptime V = SIMD[F32, width]
    var w = -log1p_as_xla(-(x * x))
    var central = horner[ERF_INV_CENTRE](w - 2.5)
    var tail = horner[ERF_INV_TAIL](square_root(w) - 3)
    var a = abs(x)
    var result = w.lt(5).select(central, tail) * x
    result = a.eq(1).select(copysign(V(INFINITY), x), result)
    return a.le(1).select(result, V(NAN))


@always_inline
def power_magnitude[
    width: SIMDLength, //
](a: SIMD[F32, width], y: SIMD[F32, width]) -> SIMD[F32, width]:
    """Gives a^y for a > 0, NaN and special values left to the caller."""
    comptime W = SIMD[F64, width]
    var subnormal = a.lt(1.1754943508222875e-38)
    var e = SIMD[F32, width]()
    var m = log_parts(subnormal.select(a * 16777216.0, a), e)
    e = subnormal.select(e - 24, e)
    var t = y.cast[F64]() * log2(m.cast[F64](), e.cast[F64]())
    t = t.gt(200).select(W(200), t.lt(-200).select(W(-200), t))
    return exp2(t).cast[F32]()
