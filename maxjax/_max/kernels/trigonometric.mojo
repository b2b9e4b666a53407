"""Circular functions and their inverses in `float64`, the arctangent also in `float32`; narrower
types convert, those of sines, cosines and tangents to `float64` with fewer terms (`narrow_*`).

Arguments of any size are reduced exactly: by a split pi/2 while x is below 2^27, else with as many
bits of 2/pi as the exponent calls for (Payne and Hanek's method, one lane at a time: such arguments
are rare).
"""
from std.builtin.globals import global_constant
from std.collections import Array
from std.math import copysign, fma
from std.utils.numerics import isnan

from .elementary import (
    ASIN,
    ATAN,
    ATAN_SINGLE,
    COS,
    COS_NARROW,
    F64,
    INFINITY,
    NAN,
    PI,
    PI_LOW,
    PI_OVER_2,
    PI_OVER_2_LOW,
    ROUNDING,
    SIN,
    SIN_NARROW,
    horner,
    polynomial,
    rounded_product,
    square_root,
)

# pi/2 in three parts; the first two have 33 bits, so that (integer < 2^20) * part is exact and for
# larger integers the fused operations lose less than the third part's own error.
comptime HALF_PI_1 = 1.5707963267341256
comptime HALF_PI_2 = 6.077100506303966e-11
comptime HALF_PI_3 = 2.0222662487959506e-21
comptime TWO_OVER_PI = 0.6366197723675814
# pi/2 less its nearest float32.
comptime PI_OVER_2_REST = -4.371139000186243e-08
comptime LARGEST_SPLIT = 134217728.0

# The binary digits of 2/pi after 64 zeros, 64 to a word.
comptime TWO_OVER_PI_BITS: Array[UInt64, 20] = [
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
]


def word_at(bit: Int) -> UInt64:
    """The 64 digits of the table that start at a bit."""
    ref words = global_constant[TWO_OVER_PI_BITS]()
    var index = bit >> 6
    var offset = UInt64(bit & 63)
    var word = words[index] << offset
    if offset > 0:
        word |= words[index + 1] >> (64 - offset)
    return word


def reduce_large(x: Float64, mut quadrant: Float64) -> Float64:
    """Splits finite |x| >= 2^27 into quadrant * pi/2 + r, |r| <= pi/4, up to multiples of 2 pi."""
    var bits = x.to_bits[DType.uint64]()
    var exponent = Int((bits >> 52) & 0x7FF) - 1075
    var mantissa = UInt128((bits & 0xFFFFFFFFFFFFF) | 0x10000000000000)
    # Digits of 2/pi worth a multiple of 4 once scaled are skipped; 192 follow. The product's two
    # leading bits are the quadrant, the rest is the fraction.
    var start = exponent - 2 + 64
    var product = (
        (mantissa * UInt128(word_at(start))) << 64
    ) + mantissa * UInt128(word_at(start + 64))
    product += (mantissa * UInt128(word_at(start + 128))) >> 64
    var whole = product >> 126
    var fraction = product << 2
    var negative = (fraction >> 127) == 1
    if negative:
        whole += 1
        fraction = ~fraction + 1
    var high = UInt64(fraction >> 64).cast[F64]() * 5.421010862427522e-20
    var low = UInt64(fraction & 0xFFFFFFFFFFFFFFFF).cast[F64]() * 2.938735877055719e-39
    var f = high + low
    var r = fma(f, PI_OVER_2, f * PI_OVER_2_LOW)
    quadrant = UInt64(whole & 3).cast[F64]()
    if negative:
        r = -r
    if x < 0:
        r = -r
        quadrant = -quadrant
    return r


@no_inline
def reduce_large_lanes[
    width: SIMDLength, //
](
    x: SIMD[F64, width],
    mut r: SIMD[F64, width],
    mut quadrant: SIMD[F64, width],
    mut tail: SIMD[F64, width],
):
    """What `reduce_angle` gives for the large elements: rarely called, and long to compile."""
    for lane in range(width):
        if abs(x[lane]) > LARGEST_SPLIT:
            if abs(x[lane]) < INFINITY:
                var lane_quadrant: Float64 = 0
                r[lane] = reduce_large(x[lane], lane_quadrant)
                quadrant[lane] = lane_quadrant
                tail[lane] = 0
            else:
                r[lane] = NAN
                quadrant[lane] = 0


@always_inline
def reduce_angle[
    width: SIMDLength, //
](
    x: SIMD[F64, width],
    mut quadrant: SIMD[F64, width],
    mut tail: SIMD[F64, width],
) -> SIMD[F64, width]:
    """Splits x = quadrant * pi/2 + r + tail; returns r. NaN and infinities give NaN."""
    var k = rounded_product(x, TWO_OVER_PI)
    var first = fma(-k, HALF_PI_1, x)
    # first - k * part 2, with the rounding error kept for the tail.
    var product = fma(k, SIMD[F64, width](HALF_PI_2), SIMD[F64, width](0))
    var product_error = fma(k, SIMD[F64, width](HALF_PI_2), -product)
    var r = first - product
    var rest = ((first - r) - product) - fma(k, HALF_PI_3, product_error)
    var sum = r + rest
    tail = (r - sum) + rest
    r = sum
    quadrant = k
    if abs(x).gt(LARGEST_SPLIT).reduce_or():
        # Of their own, so that those above stay in registers.
        var angle = r
        var turns = quadrant
        var rest_of_angle = tail
        reduce_large_lanes(x, angle, turns, rest_of_angle)
        r = angle
        quadrant = turns
        tail = rest_of_angle
    return r


@always_inline
def sin_near_zero[
    width: SIMDLength, //
](r: SIMD[F64, width], tail: SIMD[F64, width]) -> SIMD[F64, width]:
    var z = r * r
    return r + fma(z * r, polynomial[SIN](z), tail * (1 - 0.5 * z))


@always_inline
def cos_near_zero[
    width: SIMDLength, //
](r: SIMD[F64, width], tail: SIMD[F64, width]) -> SIMD[F64, width]:
    var z = r * r
    var half = 0.5 * z
    var head = 1 - half
    return head + (((1 - head) - half) + fma(z * z, polynomial[COS](z), -r * tail))


@always_inline
def quadrant_bits[
    width: SIMDLength, //
](quadrant: SIMD[F64, width]) -> SIMD[DType.uint64, width]:
    return (quadrant + ROUNDING).to_bits[DType.uint64]()


@always_inline
def sin[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    var quadrant = SIMD[F64, width]()
    var tail = SIMD[F64, width]()
    var r = reduce_angle(x, quadrant, tail)
    var bits = quadrant_bits(quadrant)
    var result = (bits & 1).ne(0).select(
        cos_near_zero(r, tail), sin_near_zero(r, tail)
    )
    result = (bits & 2).ne(0).select(-result, result)
    return x.eq(0).select(x, result)


@always_inline
def cos[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    var quadrant = SIMD[F64, width]()
    var tail = SIMD[F64, width]()
    var r = reduce_angle(x, quadrant, tail)
    var bits = quadrant_bits(quadrant) + 1
    var result = (bits & 1).ne(0).select(
        cos_near_zero(r, tail), sin_near_zero(r, tail)
    )
    return (bits & 2).ne(0).select(-result, result)


@always_inline
def tan[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    var quadrant = SIMD[F64, width]()
    var tail = SIMD[F64, width]()
    var r = reduce_angle(x, quadrant, tail)
    var odd = (quadrant_bits(quadrant) & 1).ne(0)
    var sine = sin_near_zero(r, tail)
    var cosine = cos_near_zero(r, tail)
    var result = odd.select(-cosine, sine) / odd.select(sine, cosine)
    return x.eq(0).select(x, result)


@always_inline
def narrow_angle[
    width: SIMDLength, //
](x: SIMD[F64, width], mut quadrant: SIMD[DType.uint64, width]) -> SIMD[F64, width]:
    """What `reduce_angle` gives for numbers of `float32`, which lie no nearer to a multiple of pi/2
    than some 2^-60: the rounding error of the second difference is none that a result tells of."""
    var turned = fma(x, SIMD[F64, width](TWO_OVER_PI), SIMD[F64, width](ROUNDING))
    quadrant = turned.to_bits[DType.uint64]()
    var k = turned - ROUNDING
    var r = fma(-k, PI_OVER_2_LOW, fma(-k, PI_OVER_2, x))
    if abs(x).gt(LARGEST_SPLIT).reduce_or():
        var angle = r
        var turns = k
        var rest_of_angle = SIMD[F64, width](0)
        reduce_large_lanes(x, angle, turns, rest_of_angle)
        r = angle
        quadrant = quadrant_bits(turns)
    return r


@always_inline
def narrow_sine[
    width: SIMDLength, //
](r: SIMD[F64, width], z: SIMD[F64, width]) -> SIMD[F64, width]:
    """sin(r), of z = r * r; zero keeps its sign."""
    return r * fma(z, polynomial[SIN_NARROW](z), 1)


@always_inline
def narrow_cosine[width: SIMDLength, //](z: SIMD[F64, width]) -> SIMD[F64, width]:
    return fma(z, polynomial[COS_NARROW](z), 1)


@always_inline
def narrow_wave[
    width: SIMDLength, //, quarters: UInt64
](x: SIMD[F64, width]) -> SIMD[F64, width]:
    """sin(x + quarters * pi/2)."""
    var bits = SIMD[DType.uint64, width](0)
    var r = narrow_angle(x, bits)
    var z = r * r
    bits += quarters
    var result = (bits & 1).ne(0).select(narrow_cosine(z), narrow_sine(r, z))
    return SIMD[F64, width](
        from_bits=result.to_bits[DType.uint64]() ^ ((bits & 2) << 62)
    )


@always_inline
def narrow_tan[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    var bits = SIMD[DType.uint64, width](0)
    var r = narrow_angle(x, bits)
    var z = r * r
    var odd = (bits & 1).ne(0)
    var sine = narrow_sine(r, z)
    var cosine = narrow_cosine(z)
    return odd.select(-cosine, sine) / odd.select(sine, cosine)


@always_inline
def atan_of_ratio[
    width: SIMDLength, //
](y: SIMD[F64, width], x: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives atan(y / x) for 0 <= y <= x."""
    # Beyond tan(pi/8): atan(t) = pi/4 + atan((t - 1) / (t + 1)).
    var t = y / x
    var upper = t.gt(0.41421356237309503)
    var u = upper.select((t - 1) / (t + 1), t)
    var z = u * u
    comptime V = SIMD[F64, width]
    var base = upper.select(V(0.5 * PI_OVER_2), V(0))
    var base_low = upper.select(V(0.5 * PI_OVER_2_LOW), V(0))
    return base + (u + fma(z * u, polynomial[ATAN](z), base_low))


@always_inline
def atan[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    var a = abs(x)
    var inverted = a.gt(1)
    var one = SIMD[F64, width](1)
    var small = atan_of_ratio(inverted.select(one, a), inverted.select(a, one))
    var result = inverted.select(PI_OVER_2 - (small - PI_OVER_2_LOW), small)
    return copysign(result, x)


@always_inline
def atan_single[
    width: SIMDLength, //
](x: SIMD[DType.float32, width]) -> SIMD[DType.float32, width]:
    """With t = tan(pi/8): atan(a) up to t, pi/4 + atan((a - 1) / (a + 1)) up to 1 / t, and beyond
    pi/2 - atan(1 / a)."""
    comptime V = SIMD[DType.float32, width]
    var a = abs(x)
    var low = a.lt(0.41421357)
    var high = a.gt(2.4142135)
    var numerator = low.select(a, high.select(V(-1), a - 1))
    var denominator = low.select(V(1), high.select(a, a + 1))
    var u = numerator / denominator
    var z = u * u
    var base = low.select(V(0), high.select(V(PI_OVER_2), V(0.5 * PI_OVER_2)))
    var base_low = low.select(
        V(0), high.select(V(PI_OVER_2_REST), V(0.5 * PI_OVER_2_REST))
    )
    return copysign(base + (u + fma(z * u, horner[ATAN_SINGLE](z), base_low)), x)


@always_inline
def atan2[
    width: SIMDLength, //
](y: SIMD[F64, width], x: SIMD[F64, width]) -> SIMD[F64, width]:
    comptime V = SIMD[F64, width]
    var a = abs(y)
    var b = abs(x)
    var steep = a.gt(b)
    var numerator = steep.select(b, a)
    var denominator = steep.select(a, b)
    # inf/inf stands for 1, 0/0 for 0.
    var infinite = numerator.eq(INFINITY)
    numerator = infinite.select(V(1), numerator)
    denominator = (infinite | denominator.eq(0)).select(V(1), denominator)
    var r = atan_of_ratio(numerator, denominator)
    r = steep.select(PI_OVER_2 - (r - PI_OVER_2_LOW), r)
    var leftward = copysign(V(1), x).lt(0)
    r = leftward.select(PI - (r - PI_LOW), r)
    return (isnan(x) | isnan(y)).select(V(NAN), copysign(r, y))


@always_inline
def asin_parts[
    width: SIMDLength, //
](
    a: SIMD[F64, width],
    mut root: SIMD[F64, width],
    mut root_low: SIMD[F64, width],
) -> SIMD[F64, width]:
    """For a <= 1/2 gives asin(a) - a with root = a; beyond, with s = sqrt((1 - a) / 2), asin(s) - s
    with root + root_low = s."""
    var inner = a.le(0.5)
    var z = inner.select(a * a, 0.5 * (1 - a))
    root = inner.select(a, square_root(z))
    var residual = fma(-root, root, z)
    root_low = (inner | z.eq(0)).select(SIMD[F64, width](0), residual / (2 * root))
    return root * z * horner[ASIN](z)


@always_inline
def asin[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    comptime V = SIMD[F64, width]
    var a = abs(x)
    var root = V()
    var low = V()
    var rest = asin_parts(a, root, low)
    # asin(a) = pi/2 - 2 asin(s).
    var outer = PI_OVER_2 - (2 * root + (2 * (rest + low) - PI_OVER_2_LOW))
    var result = a.le(0.5).select(root + rest, outer)
    return a.gt(1).select(V(NAN), copysign(result, x))


@always_inline
def acos[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    comptime V = SIMD[F64, width]
    var a = abs(x)
    var root = V()
    var low = V()
    var rest = asin_parts(a, root, low)
    var signed = copysign(root, x)
    var inner = PI_OVER_2 - (signed + (copysign(rest, x) - PI_OVER_2_LOW))
    var twice = 2 * (root + (rest + low))
    var outer = x.lt(0).select(PI - (twice - PI_LOW), twice)
    var result = a.le(0.5).select(inner, outer)
    return (a.gt(1) | isnan(x)).select(V(NAN), result)
