"""What the compiler calls: a raw MLIR value's type, and the steps of a `comptime for`."""
from std.builtin.range import Iterator


struct __MLIRType[T: __mlir_type.`!kgen.non_struct_type`](TrivialRegisterPassable):
    var value: Self.T
    comptime __del__is_trivial = True
    comptime __move_ctor_is_trivial = True
    comptime __copy_ctor_is_trivial = True


def paramfor_has_next[IteratorType: Iterator & Copyable](it: IteratorType) -> Bool:
    return it.__has_next__()


def paramfor_next_iter[IteratorType: Iterator & Copyable](it: IteratorType) -> IteratorType:
    var result = it.copy()
    result.__go_on__()
    return result^


def paramfor_next_value[
    IteratorType: Iterator & Copyable
](it: IteratorType) -> IteratorType.Element:
    return it.__first__()
