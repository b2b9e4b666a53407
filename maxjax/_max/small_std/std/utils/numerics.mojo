"""Floats that are no numbers, or no finite ones."""


@always_inline("nodebug")
def isnan[dtype: DType, width: Int, //](x: SIMD[dtype, width]) -> SIMD[DType.bool, width]:
    return ~x.eq(x)


@always_inline("nodebug")
def inf[dtype: DType]() -> SIMD[dtype, 1]:
    return SIMD[dtype, 1](FloatLiteral.infinity)
