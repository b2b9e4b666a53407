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


@always_inline("nodebug")
def bit_width(x: Int) -> Int:
    """How many bits a number of no sign needs."""
    return 64 - Int(count_leading_zeros(Int64(x)))


@always_inline("nodebug")
def log2_floor(x: Int) -> Int:
    return bit_width(x) - 1
