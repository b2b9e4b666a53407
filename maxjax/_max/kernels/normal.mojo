"""The normal distribution's logarithm and quantiles in `float64`; narrower types convert."""
from std.math import fma

from .elementary import (
    F64,
    INFINITY,
    NAN,
    exp_scaled,
    horner,
    log,
    log1p,
    square_root,
)
from .special import erf_near_zero, erfcx_of_large

# The quantile of 1/2 + x/2 over x, in x^2 <= 0.2755. That of q, as a part of u = sqrt(-2 log(q)):
# in 1/u, as quotients of polynomials, for u <= 6 (NEAR) and up to 38.7 (FAR).
comptime CENTRAL = [
    Float64(1.2533141373155003), 0.32811687386921728, 0.18039167308155331, 0.12240319503336076,
    0.091866771932729029, 0.073159099347796413, 0.060579800477300487, 0.05157874155321321,
    0.044715324100585289, 0.040454614598605332, 0.029681212669413772, 0.058652116456723699,
    -0.059525967013998923, 0.22788518109996392, -0.26136705547437848, 0.22958073152964544,
]
comptime NEAR_NUMERATOR = [
    Float64(1.0000602623241428), 37.638383681115986, 384.45643518512174, 1715.9087833492711,
    4222.5721259057121, 2804.4317551151191, -6202.2653583457522, -6731.5648336858559,
    -1197.2280429403095,
]
comptime NEAR_DENOMINATOR = [
    Float64(1.0), 37.651124597771224, 389.92468061720061, 1859.0438700809207, 5320.83333667966,
    7085.5985213602381, 3316.9457437144269, 360.79130456908689, -2.3074795540914323,
]
comptime FAR_NUMERATOR = [
    Float64(1.0000014855384364), 257.21061815433934, 17953.867979764855, 456354.58135375831,
    4528667.0039903636, 16454219.596460711, 15382281.757855845, -8870509.3951926726,
    -24911474.358117604, -26626321.370144415,
]
comptime FAR_DENOMINATOR = [
    Float64(1.0), 257.21257277681038, 17961.236775056635, 457829.68720631414, 4611971.9868388132,
    18146181.675861813, 28254599.849567681, 25609257.63465423, 10534271.330585667,
    -474425.10638699158,
]
comptime ROOT_HALF = 0.7071067811865476


@always_inline
def log_ndtr[width: SIMDLength, //](x: SIMD[F64, width]) -> SIMD[F64, width]:
    """Gives log(erfc(-x / sqrt(2)) / 2)."""
    comptime V = SIMD[F64, width]
    var a = abs(x)
    var s = a * ROOT_HALF
    var scaled = 0.5 * erfcx_of_large(s)
    # Below -1/2 it is log(erfcx(s) / 2) - x^2 / 2, near 0 log(1/2 + erf(x / sqrt(2)) / 2).
    var near = s.lt(0.5)
    var inner = 0.5 + 0.5 * erf_near_zero(x * ROOT_HALF)
    var logarithm = log(near.select(inner, scaled))
    var half_square = near.select(V(0), 0.5 * a * a)
    # Above: log(1 - e^(-x^2 / 2) erfcx(s) / 2), the square's rounding error included.
    var bounded = a.gt(40).select(V(40), a)
    var square = 0.5 * bounded * bounded
    var tail = fma(0.5 * bounded, bounded, -square)
    var above = log1p(-exp_scaled(-square, V(0), -tail) * scaled)
    var upper = x.gt(0) & ~near
    return upper.select(above, logarithm - half_square)


@always_inline
def ndtri[width: SIMDLength, //](p: SIMD[F64, width]) -> SIMD[F64, width]:
    comptime V = SIMD[F64, width]
    var above = p.gt(0.5)
    var q = above.select(1 - p, p)
    var x = fma(p, V(2), V(-1))
    var central = x * horner[CENTRAL](x * x)
    var u = square_root(-2 * log(q))
    var inverse = 1 / u
    var close = u.lt(6)
    var numerator = close.select(
        horner[NEAR_NUMERATOR](inverse), horner[FAR_NUMERATOR](inverse)
    )
    var denominator = close.select(
        horner[NEAR_DENOMINATOR](inverse), horner[FAR_DENOMINATOR](inverse)
    )
    var far = u * (numerator / denominator)
    far = q.eq(0).select(V(INFINITY), far)
    var result = abs(x).lt(0.5248).select(central, above.select(far, -far))
    return (p.ge(0) & p.le(1)).select(result, V(NAN))
