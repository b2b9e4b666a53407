"""Constants in a library's data."""


@always_inline
def global_constant[T: Copyable & Deinitable, //, value: T]() -> ref[ImmStaticOrigin] T:
    return Pointer[mut=False, T=T, origin=ImmStaticOrigin](
        _mlir_value=__mlir_op.`pop.global_constant`[value=value]()
    )[]
