"""A value as of another type that is the same once parameters are known."""


@always_inline("builtin")
def rebind[
    Source: TrivialRegisterPassable, //, Target: TrivialRegisterPassable
](source: Source) -> Target:
    return __mlir_op.`kgen.rebind`[_type=Target](source)
