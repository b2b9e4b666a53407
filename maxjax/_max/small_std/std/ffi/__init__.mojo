"""Calls of functions of other languages."""


@always_inline("nodebug")
def external_call[
    name: StaticString, Result: TrivialRegisterPassable
]() -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.external_call`[func=name._mlir_value, _type=None]()
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.external_call`[func=name._mlir_value, _type=Result]()


@always_inline("nodebug")
def external_call[
    A: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable
](a: A) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.external_call`[func=name._mlir_value, _type=None](a)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.external_call`[func=name._mlir_value, _type=Result](a)


@always_inline("nodebug")
def external_call[
    A: TrivialRegisterPassable, B: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable
](a: A, b: B) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.external_call`[func=name._mlir_value, _type=None](a, b)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.external_call`[func=name._mlir_value, _type=Result](a, b)


@always_inline("nodebug")
def external_call[
    A: TrivialRegisterPassable, B: TrivialRegisterPassable, C: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable
](a: A, b: B, c: C) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.external_call`[func=name._mlir_value, _type=None](a, b, c)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.external_call`[func=name._mlir_value, _type=Result](a, b, c)


@always_inline("nodebug")
def external_call[
    A: TrivialRegisterPassable, B: TrivialRegisterPassable, C: TrivialRegisterPassable, D: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable
](a: A, b: B, c: C, d: D) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.external_call`[func=name._mlir_value, _type=None](a, b, c, d)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.external_call`[func=name._mlir_value, _type=Result](a, b, c, d)


@always_inline("nodebug")
def external_call[
    A: TrivialRegisterPassable, B: TrivialRegisterPassable, C: TrivialRegisterPassable, D: TrivialRegisterPassable, E: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable
](a: A, b: B, c: C, d: D, e: E) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.external_call`[func=name._mlir_value, _type=None](a, b, c, d, e)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.external_call`[func=name._mlir_value, _type=Result](a, b, c, d, e)


@always_inline("nodebug")
def external_call[
    A: TrivialRegisterPassable, B: TrivialRegisterPassable, C: TrivialRegisterPassable, D: TrivialRegisterPassable, E: TrivialRegisterPassable, F: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable
](a: A, b: B, c: C, d: D, e: E, f: F) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.external_call`[func=name._mlir_value, _type=None](a, b, c, d, e, f)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.external_call`[func=name._mlir_value, _type=Result](a, b, c, d, e, f)


@always_inline("builtin")
def _get_kgen_string[string: StaticString]() -> __mlir_type.`!kgen.string`:
    return string._mlir_value


struct _Nothing(TrivialRegisterPassable):
    @always_inline("nodebug")
    def __init__(out self):
        pass

    @always_inline("nodebug")
    def __bool__(self) -> Bool:
        return False

    @always_inline("nodebug")
    def value(self) -> Pointer[UInt8, MutAnyOrigin]:
        return external_call["abort", Pointer[UInt8, MutAnyOrigin]]()


@always_inline
def _get_global_or_null(name: StaticString) -> _Nothing:
    """MAX's runtime has the global variables of graphs; libraries have none of them."""
    return _Nothing()
