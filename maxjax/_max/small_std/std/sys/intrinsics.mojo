"""Calls of LLVM's intrinsics."""


@always_inline("nodebug")
def inlined_assembly[
    A: TrivialRegisterPassable,
    //,
    asm: StaticString,
    Result: TrivialRegisterPassable,
    *,
    constraints: StaticString,
    has_side_effect: Bool = True,
](a: A) -> Result:
    return __mlir_op.`pop.inline_asm`[
        assembly=asm._mlir_value,
        constraints=constraints._mlir_value,
        isStackAligned=__mlir_attr.`false`,
        hasSideEffects=has_side_effect.__mlir_i1__(),
        _type=Result,
    ](a)


@always_inline("nodebug")
def llvm_intrinsic[
    name: StaticString, Result: TrivialRegisterPassable, *, has_side_effect: Bool = True
]() -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=None, hasSideEffects=has_side_effect.__mlir_i1__()
        ]()
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=Result, hasSideEffects=has_side_effect.__mlir_i1__()
        ]()


@always_inline("nodebug")
def llvm_intrinsic[
    A: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable, *, has_side_effect: Bool = True
](a: A) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=None, hasSideEffects=has_side_effect.__mlir_i1__()
        ](a)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=Result, hasSideEffects=has_side_effect.__mlir_i1__()
        ](a)


@always_inline("nodebug")
def llvm_intrinsic[
    A: TrivialRegisterPassable, B: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable, *, has_side_effect: Bool = True
](a: A, b: B) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=None, hasSideEffects=has_side_effect.__mlir_i1__()
        ](a, b)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=Result, hasSideEffects=has_side_effect.__mlir_i1__()
        ](a, b)


@always_inline("nodebug")
def llvm_intrinsic[
    A: TrivialRegisterPassable, B: TrivialRegisterPassable, C: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable, *, has_side_effect: Bool = True
](a: A, b: B, c: C) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=None, hasSideEffects=has_side_effect.__mlir_i1__()
        ](a, b, c)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=Result, hasSideEffects=has_side_effect.__mlir_i1__()
        ](a, b, c)


@always_inline("nodebug")
def llvm_intrinsic[
    A: TrivialRegisterPassable, B: TrivialRegisterPassable, C: TrivialRegisterPassable, D: TrivialRegisterPassable, //, name: StaticString, Result: TrivialRegisterPassable, *, has_side_effect: Bool = True
](a: A, b: B, c: C, d: D) -> Result:
    comptime if Result == NoneType:
        __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=None, hasSideEffects=has_side_effect.__mlir_i1__()
        ](a, b, c, d)
        return rebind[Result](NoneType(None))
    else:
        return __mlir_op.`pop.call_llvm_intrinsic`[
            intrin=name._mlir_value, _type=Result, hasSideEffects=has_side_effect.__mlir_i1__()
        ](a, b, c, d)
