"""Functions of values of several types."""


@always_inline("nodebug")
def abs(x: Int) -> Int:
    return max(x, -x)


@always_inline("nodebug")
def abs[dtype: DType, width: Int, //](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return x.__abs__()


@always_inline("nodebug")
def min(x: Int, y: Int) -> Int:
    return __mlir_op.`index.mins`(x._mlir_value, y._mlir_value)


@always_inline("nodebug")
def min[
    dtype: DType, width: Int, //
](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return SIMD[dtype, width](mlir_value=__mlir_op.`pop.min`(x._mlir_value, y._mlir_value))


@always_inline("nodebug")
def max(x: Int, y: Int) -> Int:
    return __mlir_op.`index.maxs`(x._mlir_value, y._mlir_value)


@always_inline("nodebug")
def max[
    dtype: DType, width: Int, //
](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
    return SIMD[dtype, width](mlir_value=__mlir_op.`pop.max`(x._mlir_value, y._mlir_value))


@always_inline("nodebug")
def swap[T: TrivialRegisterPassable, //](mut x: T, mut y: T):
    var held = x
    x = y
    y = held
