"""The calling convention of native kernels: a table of buffers and the integers of one call."""

from .abi import PLACE

comptime Bytes = Pointer[UInt8, MutAnyOrigin]  # a buffer, whatever its elements are
comptime Memory = Pointer[UInt8, MutUntrackedOrigin]  # the same, as a struct can have it
comptime Slots = Pointer[Bytes, MutAnyOrigin]
comptime Args = Pointer[Int64, MutAnyOrigin]


@always_inline
def integer(args: Args, i: Int) -> Int:
    return Int(args.unsafe_load[width=1](i))


@always_inline
def address(slots: Slots, args: Args, k: Int) -> Bytes:
    """Where operand `k` begins: `args` holds a slot's number and a byte offset for each."""
    var place = args.unsafe_offset(PLACE * k)
    return slots.unsafe_offset(integer(place, 0))[].unsafe_offset(integer(place, 1))


@always_inline
def operand[
    dtype: DType
](slots: Slots, args: Args, k: Int) -> Pointer[Scalar[dtype], MutAnyOrigin]:
    return address(slots, args, k).unsafe_bitcast[Scalar[dtype]]()
