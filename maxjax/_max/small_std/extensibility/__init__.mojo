"""What kernels name for MAX's graphs, of which libraries have none."""


trait ElementwiseUnaryOp:
    @staticmethod
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        ...


trait ElementwiseBinaryOp:
    @staticmethod
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        ...


trait ElementwiseBinaryComparisonOp:
    @staticmethod
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[DType.bool, width]:
        ...


trait ElementwiseUnaryMixedOp:
    @staticmethod
    def elementwise[
        dtype: DType, out_dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[out_dtype, width]:
        ...


@always_inline
def register(name: StaticString):
    pass
