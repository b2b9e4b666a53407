"""Bits of integers."""
from std.sys.intrinsics import llvm_intrinsic


@always_inline("nodebug")
def count_leading_zeros[
    dtype: DType, width: Int, //
](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return llvm_intrinsic["llvm.ctlz", SIMD[dtype, width], has_side_effect=False](x, Bool(False))


@always_inline("nodebug")
def pop_count[dtype: DType, width: Int, //](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return llvm_intrinsic["llvm.ctpop", SIMD[dtype, width], has_side_effect=False](x)
