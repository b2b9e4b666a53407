"""Rounding, signs, and products that are added without rounding."""
from std.sys.intrinsics import llvm_intrinsic


@always_inline("nodebug")
def floor[dtype: DType, width: Int, //](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return SIMD[dtype, width](mlir_value=__mlir_op.`pop.floor`(x._mlir_value))


@always_inline("nodebug")
def ceil[dtype: DType, width: Int, //](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return SIMD[dtype, width](mlir_value=__mlir_op.`pop.ceil`(x._mlir_value))


@always_inline("nodebug")
def trunc[dtype: DType, width: Int, //](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return SIMD[dtype, width](mlir_value=__mlir_op.`pop.trunc`(x._mlir_value))


@always_inline("nodebug")
def fma[
    dtype: DType, width: Int, //
](x: SIMD[dtype, width], y: SIMD[dtype, width], z: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return x.fma(y, z)


@always_inline("nodebug")
def copysign[
    dtype: DType, width: Int, //
](x: SIMD[dtype, width], sign: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return llvm_intrinsic["llvm.copysign", SIMD[dtype, width], has_side_effect=False](x, sign)
