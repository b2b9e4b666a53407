"""Modified Bessel functions of the first kind, exponentially scaled: e^-|x| I(x)."""
from std.math import copysign

from .elementary import F64, LOG2_E, exp, horner, square_root
from .special_single import exp2

# Up to 8, by q = x^2/4. I0_NEAR: I0(x), I1_NEAR: I1(x)/x. Beyond, sqrt(x) e^-x I(x): in 1/x of
# float32, in 16/x - 1 of float64. All terms near have one sign: nothing is lost.
comptime I0_NEAR_SINGLE = [
    Float64(0.9999999911263562), 1.000000223762485, 0.24999918842888333, 0.02777880432798172,
    0.001735504455928181, 6.963705519277648e-05, 1.8937984299516634e-06, 4.3158186069140905e-08,
    3.811471904505952e-10, 1.498412724030652e-11,
]
comptime I0_FAR_SINGLE = [
    Float64(0.39894228101119533), 0.0498673938730692, 0.02809638487437755, 0.027208635921821246,
    0.08568291246522673, -0.3091655614051675, 1.8363293168106198,
]
comptime I1_NEAR_SINGLE = [
    Float64(0.49999999896941505), 0.2500000208536475, 0.04166660285439651, 0.0034722928849319095,
    0.0001735735367456885, 5.797994989879726e-06, 1.3591707380206996e-07, 2.6506260676862625e-09,
    2.2968015967135938e-11, 7.210033967414864e-13,
]
comptime I1_FAR_SINGLE = [
    Float64(0.39894227968944684), -0.14960290229573328, -0.04680361919633288,
    -0.03861130338627182, -0.10403265240164028, 0.3415986777658814, -2.085792992473625,
]
comptime I0_NEAR_DOUBLE = [
    Float64(1.0), 1.0, 0.25, 0.02777777777777778, 0.001736111111111106, 6.944444444444882e-05,
    1.9290123456765407e-06, 3.936759889238354e-08, 6.151187323998059e-10, 7.594058487051352e-12,
    7.59405749044198e-14, 6.276092646227169e-16, 4.358286690595411e-18, 2.5796359138253543e-20,
    1.3122053822734593e-22, 5.976725245213973e-25, 1.973751019377943e-27, 1.2296184293122587e-29,
]
comptime I0_FAR_DOUBLE = [
    Float64(0.40217650944500816), 0.0033605519836677504, 0.00013621607437904054,
    1.1143033800708978e-05, 1.48384809739718e-06, 2.973596046562712e-07, 8.871360038754709e-08,
    3.93288937511463e-08, 2.1620199017859175e-08, 7.534355843803582e-09, -7.101093490475985e-09,
    -1.3326094405767222e-08, -4.3057274269890635e-09, 7.335968710817977e-09,
    5.191958083670449e-09, -3.1346276429265805e-09, -2.93373662863873e-09, 1.105055879444533e-09,
    9.73577662508994e-10, -2.803381997896824e-10, -1.4824893214980684e-10, 3.629355229738394e-11,
]
comptime I1_NEAR_DOUBLE = [
    Float64(0.5), 0.25, 0.041666666666666664, 0.0034722222222222225, 0.00017361111111111098,
    5.78703703703715e-06, 1.3778659611986568e-07, 2.460474930738191e-09, 3.417326291938273e-11,
    3.7970292292750737e-13, 3.4518444979359483e-15, 2.615036812746333e-17, 1.676277131567122e-19,
    9.21228791725182e-22, 4.376687344280225e-24, 1.8608230097275734e-26, 5.913223951803805e-29,
    3.3382811499512434e-31,
]
comptime I1_FAR_DOUBLE = [
    Float64(0.3893984590258723), -0.009749577193235635, -0.00021923576382047057,
    -1.5038547209501858e-05, -1.8349106860450982e-06, -3.4838534380376333e-07,
    -1.0000393426323457e-07, -4.313196489977728e-08, -2.344868241306528e-08,
    -8.40918204044321e-09, 7.102306101258279e-09, 1.3958551001386975e-08, 4.830702164186598e-09,
    -7.444441477199498e-09, -5.559075345855084e-09, 3.0868867367257832e-09, 3.100880270240622e-09,
    -1.0594544160468815e-09, -1.0230972770952235e-09, 2.634077109525656e-10,
    1.5532708319190096e-10, -3.365431853204207e-11,
]


@always_inline
def i0e[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    var a = abs(x)
    var near: SIMD[dtype, width]
    var far: SIMD[dtype, width]
    comptime if dtype == F64:
        near = horner[I0_NEAR_DOUBLE](0.25 * a * a) * exp(-a)
        far = horner[I0_FAR_DOUBLE](16 / a - 1)
    else:
        near = near_of_single[I0_NEAR_SINGLE](a)
        far = horner[I0_FAR_SINGLE](1 / a)
    return a.le(8).select(near, far / square_root(a))


@always_inline
def i1e[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    var a = abs(x)
    var near: SIMD[dtype, width]
    var far: SIMD[dtype, width]
    comptime if dtype == F64:
        near = horner[I1_NEAR_DOUBLE](0.25 * a * a) * exp(-a)
        far = horner[I1_FAR_DOUBLE](16 / a - 1)
    else:
        near = near_of_single[I1_NEAR_SINGLE](a)
        far = horner[I1_FAR_SINGLE](1 / a)
    return a.le(8).select(near * x, copysign(far / square_root(a), x))


@always_inline
def near_of_single[
    dtype: DType, width: SIMDLength, //, coefficients: Span[Scalar[F64], ...]
](a: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """The polynomial in a^2/4, times e^-a; its value is up to 4 times as sensitive as a^2."""
    var wide = a.cast[F64]()
    var bounded = a.le(8).select(a, SIMD[dtype, width](8)).cast[F64]()
    return (horner[coefficients](0.25 * wide * wide) * exp2(bounded * -LOG2_E)).cast[dtype]()
