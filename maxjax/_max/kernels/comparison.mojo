"""Comparisons: MAX's own `not_equal` is false of NaN, and its `equal` of a value with itself true.

Registered as `maxjax_eq`, `ne`, `lt`, `le`, `gt`, `ge`, as IEEE 754 has them; over every dtype.
"""
import extensibility
from extensibility import ElementwiseBinaryComparisonOp


@always_inline
def comparable[
    dtype: DType, width: SIMDLength, //
](x: SIMD[dtype, width]) -> SIMD[DType.uint8 if dtype == DType.bool else dtype, width]:
    """False and True have no order of their own; as 0 and 1 they do."""
    comptime kind = DType.uint8 if dtype == DType.bool else dtype
    comptime if dtype == DType.bool:
        comptime R = SIMD[kind, width]
        return rebind[SIMD[DType.bool, width]](x).select(R(1), R(0))
    else:
        return rebind[SIMD[kind, width]](x)


@extensibility.register("maxjax_eq")
struct Eq(ElementwiseBinaryComparisonOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[DType.bool, width]:
        return comparable(x).eq(comparable(y))


@extensibility.register("maxjax_ne")
struct Ne(ElementwiseBinaryComparisonOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[DType.bool, width]:
        return ~comparable(x).eq(comparable(y))


@extensibility.register("maxjax_lt")
struct Lt(ElementwiseBinaryComparisonOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[DType.bool, width]:
        return comparable(x).lt(comparable(y))


@extensibility.register("maxjax_le")
struct Le(ElementwiseBinaryComparisonOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[DType.bool, width]:
        return comparable(x).le(comparable(y))


@extensibility.register("maxjax_gt")
struct Gt(ElementwiseBinaryComparisonOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[DType.bool, width]:
        return comparable(x).gt(comparable(y))


@extensibility.register("maxjax_ge")
struct Ge(ElementwiseBinaryComparisonOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[DType.bool, width]:
        return comparable(x).ge(comparable(y))
