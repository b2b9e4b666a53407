"""The kinds of numbers."""

comptime _Kind = __mlir_type.`!kgen.dtype`
comptime _Byte = __mlir_type.`!kgen.scalar<ui8>`


struct DType(TrivialRegisterPassable):
    var _mlir_value: _Kind

    comptime bool = DType(__mlir_attr.`#kgen.dtype.constant<bool> : !kgen.dtype`)
    comptime int = DType(__mlir_attr.`#kgen.dtype.constant<index> : !kgen.dtype`)
    comptime uint = DType(__mlir_attr.`#kgen.dtype.constant<uindex> : !kgen.dtype`)
    comptime int8 = DType(__mlir_attr.`#kgen.dtype.constant<si8> : !kgen.dtype`)
    comptime int16 = DType(__mlir_attr.`#kgen.dtype.constant<si16> : !kgen.dtype`)
    comptime int32 = DType(__mlir_attr.`#kgen.dtype.constant<si32> : !kgen.dtype`)
    comptime int64 = DType(__mlir_attr.`#kgen.dtype.constant<si64> : !kgen.dtype`)
    comptime uint8 = DType(__mlir_attr.`#kgen.dtype.constant<ui8> : !kgen.dtype`)
    comptime uint16 = DType(__mlir_attr.`#kgen.dtype.constant<ui16> : !kgen.dtype`)
    comptime uint32 = DType(__mlir_attr.`#kgen.dtype.constant<ui32> : !kgen.dtype`)
    comptime uint64 = DType(__mlir_attr.`#kgen.dtype.constant<ui64> : !kgen.dtype`)
    comptime uint128 = DType(__mlir_attr.`#kgen.dtype.constant<ui128> : !kgen.dtype`)
    comptime float16 = DType(__mlir_attr.`#kgen.dtype.constant<f16> : !kgen.dtype`)
    comptime bfloat16 = DType(__mlir_attr.`#kgen.dtype.constant<bf16> : !kgen.dtype`)
    comptime float32 = DType(__mlir_attr.`#kgen.dtype.constant<f32> : !kgen.dtype`)
    comptime float64 = DType(__mlir_attr.`#kgen.dtype.constant<f64> : !kgen.dtype`)

    @always_inline("builtin")
    def __init__(out self, mlir_value: _Kind):
        self._mlir_value = mlir_value

    @always_inline("builtin")
    def _code(self) -> _Byte:
        """In which bit 7 says that it is an integer, bit 6 a float, bit 0 that it is signed."""
        return __mlir_op.`pop.cast_from_builtin`[_type=_Byte](
            __mlir_op.`pop.dtype.to_ui8`(self._mlir_value)
        )

    @always_inline("builtin")
    def _has(self, mask: _Byte) -> Bool:
        return __mlir_op.`pop.cmp`[pred=__mlir_attr.`#kgen.cmp_pred<ne>`](
            __mlir_op.`pop.simd.and`(self._code(), mask),
            __mlir_attr.`#kgen.simd<0> : !kgen.scalar<ui8>`,
        )

    @always_inline("builtin")
    def __eq__(self, other: DType) -> Bool:
        return __mlir_op.`pop.cmp`[pred=__mlir_attr.`#kgen.cmp_pred<eq>`](
            self._code(), other._code()
        )

    @always_inline("builtin")
    def __ne__(self, other: DType) -> Bool:
        return __mlir_op.`pop.cmp`[pred=__mlir_attr.`#kgen.cmp_pred<ne>`](
            self._code(), other._code()
        )

    @always_inline("builtin")
    def is_integral(self) -> Bool:
        return (
            (self == DType.int)
            | (self == DType.uint)
            | self._has(__mlir_attr.`#kgen.simd<128> : !kgen.scalar<ui8>`)
        )

    @always_inline("builtin")
    def is_floating_point(self) -> Bool:
        return self._has(__mlir_attr.`#kgen.simd<64> : !kgen.scalar<ui8>`)

    @always_inline("builtin")
    def is_unsigned(self) -> Bool:
        return (self == DType.uint) | (
            self._has(__mlir_attr.`#kgen.simd<128> : !kgen.scalar<ui8>`)
            & ~self._has(__mlir_attr.`#kgen.simd<1> : !kgen.scalar<ui8>`)
        )

    @always_inline("builtin")
    def is_signed(self) -> Bool:
        return self.is_floating_point() | (self.is_integral() & ~self.is_unsigned())

    @always_inline("builtin")
    def is_half_float(self) -> Bool:
        return (self == DType.float16) | (self == DType.bfloat16)
