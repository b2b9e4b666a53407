"""True and False."""

from std.builtin.int import Intable

comptime _Flag = __mlir_type.`!kgen.scalar<bool>`


struct Bool(Intable, TrivialRegisterPassable):
    var _mlir_value: _Flag

    @always_inline("builtin")
    @implicit
    def __init__(out self, mlir_value: _Flag):
        self._mlir_value = mlir_value

    @always_inline("builtin")
    @implicit
    def __init__(out self, bit: __mlir_type.i1):
        self._mlir_value = __mlir_op.`pop.cast_from_builtin`[_type=_Flag](bit)

    @always_inline("nodebug")
    @implicit
    def __init__(out self, value: SIMD[DType.bool, 1]):
        self = value.__bool__()

    @always_inline("builtin")
    def __mlir_bool__(self) -> _Flag:
        return self._mlir_value

    @always_inline("builtin")
    def __mlir_i1__(self) -> __mlir_type.i1:
        return __mlir_op.`pop.cast_to_builtin`[_type=__mlir_type.i1](self._mlir_value)

    @always_inline("builtin")
    def __bool__(self) -> Self:
        return self

    @always_inline("nodebug")
    def __int__(self) -> Int:
        return SIMD[DType.bool, 1](self).__int__()

    @always_inline("builtin")
    def __invert__(self) -> Self:
        return __mlir_op.`pop.simd.xor`(
            self._mlir_value, __mlir_attr.`#kgen.simd<true> : !kgen.scalar<bool>`
        )

    @always_inline("builtin")
    def __and__(self, other: Self) -> Self:
        return __mlir_op.`pop.simd.and`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __or__(self, other: Self) -> Self:
        return __mlir_op.`pop.simd.or`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __xor__(self, other: Self) -> Self:
        return __mlir_op.`pop.simd.xor`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __eq__(self, other: Self) -> Self:
        return ~(self ^ other)

    @always_inline("builtin")
    def __ne__(self, other: Self) -> Self:
        return self ^ other
