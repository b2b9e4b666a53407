"""Sizes of types, and of the target's vectors."""

comptime _Target = __mlir_type.`!kgen.target`


@always_inline("nodebug")
def _target() -> _Target:
    return __mlir_attr.`#kgen.param.expr<current_target> : !kgen.target`


@always_inline("nodebug")
def size_of[type: AnyType]() -> Int:
    comptime mlir_type = __mlir_attr[
        `#kgen.param.expr<rebind, #kgen.type<!kgen.param<`, type, `>> : `, AnyType, `> : !kgen.type`
    ]
    return Int(
        mlir_value=__mlir_attr[
            `#kgen.param.expr<get_sizeof, #kgen.type<`,
            mlir_type,
            `> : !kgen.type,`,
            _target(),
            `> : index`,
        ]
    )


@always_inline("nodebug")
def bit_width_of[dtype: DType]() -> Int:
    return 1 if dtype == DType.bool else 8 * size_of[dtype]()


@always_inline("nodebug")
def size_of[dtype: DType]() -> Int:
    return size_of[SIMD[dtype, 1]]()


@always_inline("nodebug")
def simd_width_of[dtype: DType]() -> Int:
    return (
        Int(
            mlir_value=__mlir_attr[
                `#kgen.param.expr<target_get_field,`,
                _target(),
                `, "simd_bit_width" : !kgen.string`,
                `> : index`,
            ]
        )
        // (8 * size_of[dtype]())
    )


struct CompilationTarget:
    @staticmethod
    def is_x86() -> Bool:
        return _has["sse4.1"]()

    @staticmethod
    def has_avx2() -> Bool:
        return _has["avx2"]()

    @staticmethod
    def has_avx512f() -> Bool:
        return _has["avx512f"]()


def _has[feature: StaticString]() -> Bool:
    return __mlir_attr[
        `#kgen.param.expr<target_has_feature,`,
        _target(),
        `, `,
        feature._mlir_value,
        `> : i1`,
    ]
