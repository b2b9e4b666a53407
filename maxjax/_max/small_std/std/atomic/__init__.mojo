"""Reads and writes that other threads see whole, in one order."""


struct Atomic[T: AnyType]:
    @staticmethod
    @always_inline
    def load[dtype: DType, //](p: Pointer[SIMD[dtype, 1], ...]) -> SIMD[dtype, 1]:
        return SIMD[dtype, 1](
            mlir_value=__mlir_op.`pop.load`[
                alignment=__mlir_attr.`8 : index`,
                isVolatile=__mlir_attr.`false`,
                isInvariant=__mlir_attr.`false`,
                isNonTemporal=__mlir_attr.`false`,
                ordering=__mlir_attr.`#pop.atomic_ordering<seq_cst>`,
                syncscope=__mlir_attr.`"" : !kgen.string`,
            ](_raw(p))
        )

    @staticmethod
    @always_inline
    def store[dtype: DType, //](p: Pointer[SIMD[dtype, 1], ...], value: SIMD[dtype, 1]):
        _ = __mlir_op.`pop.atomic.rmw`[
            bin_op=__mlir_attr.`#pop.bin_op<xchg>`,
            ordering=__mlir_attr.`#pop.atomic_ordering<seq_cst>`,
            syncscope=__mlir_attr.`"" : !kgen.string`,
            _type=SIMD[dtype, 1]._mlir_type,
        ](_raw(p), value._mlir_value)

    @staticmethod
    @always_inline
    def fetch_add[
        dtype: DType, //
    ](p: Pointer[SIMD[dtype, 1], ...], value: SIMD[dtype, 1]) -> SIMD[dtype, 1]:
        return SIMD[dtype, 1](
            mlir_value=__mlir_op.`pop.atomic.rmw`[
                bin_op=__mlir_attr.`#pop.bin_op<add>`,
                ordering=__mlir_attr.`#pop.atomic_ordering<seq_cst>`,
                syncscope=__mlir_attr.`"" : !kgen.string`,
                _type=SIMD[dtype, 1]._mlir_type,
            ](_raw(p), value._mlir_value)
        )

    @staticmethod
    @always_inline
    def compare_exchange[
        dtype: DType, //
    ](
        p: Pointer[SIMD[dtype, 1], ...], mut expected: SIMD[dtype, 1], desired: SIMD[dtype, 1]
    ) -> Bool:
        var seen = __mlir_op.`pop.atomic.cmpxchg`[
            failure_ordering=__mlir_attr.`#pop.atomic_ordering<seq_cst>`,
            success_ordering=__mlir_attr.`#pop.atomic_ordering<seq_cst>`,
            syncscope=__mlir_attr.`"" : !kgen.string`,
        ](_raw(p), expected._mlir_value, desired._mlir_value)
        expected = SIMD[dtype, 1](
            mlir_value=__mlir_op.`kgen.struct.extract`[index=__mlir_attr.`0:index`](seen)
        )
        return Bool(mlir_value=__mlir_op.`kgen.struct.extract`[index=__mlir_attr.`1:index`](seen))


@always_inline
def _raw[
    dtype: DType, //
](p: Pointer[SIMD[dtype, 1], ...]) -> __mlir_type[
    `!kgen.pointer<scalar<`, dtype._mlir_value, `>>`
]:
    return __mlir_op.`pop.pointer.bitcast`[
        _type=__mlir_type[`!kgen.pointer<scalar<`, dtype._mlir_value, `>>`]
    ](p._mlir_value)
