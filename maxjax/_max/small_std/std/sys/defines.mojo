"""What the command line of the compiler defines."""


@always_inline("nodebug")
def is_defined[name: StaticString]() -> Bool:
    return __mlir_attr[`#kgen.param.expr<get_env, `, name._mlir_value, `> : i1`]
