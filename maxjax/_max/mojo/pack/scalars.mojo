"""The scalar machine: runs loops over few elements, bodies and conditions as one list of
instructions.

All values are registers, in one block of memory; an instruction is a call of a function that the
vector machine has, or a jump. So a step of a loop costs its operations, a nanosecond or two each.

`scalar_machine`: the places of operands, of which the first is the block; then the number of a slot
and the address of the code, which `scalar_code.py` writes and describes. The slot is set to where
the registers begin, for functions of the pack that are called on them. Opcodes and the positions of
an instruction's words are in `abi.py`, which writes these constants behind this text.
"""
from std.math import trunc
from std.memory import unsafe_memcpy

from kernels.abi import PLACE, TAPE_INTEGERS, TAPE_WORDS
from kernels.arithmetic import *
from kernels.calling import Args, Bytes, Slots, address, integer
from kernels.comparison import *
from kernels.conversion import *
from kernels.host import is_stopped
from kernels.loops import load, load_bool, store_bool
from kernels.unary import *

comptime Words = Pointer[Int64, MutAnyOrigin]
# Result, operands, how many elements.
comptime Operation = def (Bytes, Bytes, Bytes, Bytes, Int) abi("C") thin -> None
# Result, operand, lines, elements of a line, whether the result begins anew.
comptime Reduction = def (Bytes, Bytes, Int, Int, Int) abi("C") thin -> None
comptime Kernel = def (Slots, Args) abi("C") thin -> None

# From opcode `ONE` on there are the machine's own operations, which follow from a table: of one
# element (`compute_one`), then as many of a few elements, one after the other (`compute_few`).
comptime FEW = ONE + OPERATIONS


@always_inline
def short(x: Words, i: Int) -> Int:
    """Short word `i`; the first two are the long one's."""
    return Int(x.unsafe_bitcast[Int32]().unsafe_load[width=1](i))


@always_inline
def typed[dtype: DType](x: Bytes) -> Pointer[Scalar[dtype], MutAnyOrigin]:
    return x.unsafe_bitcast[Scalar[dtype]]()


@always_inline
def long(x: Bytes) -> Pointer[Int, MutAnyOrigin]:
    return x.unsafe_bitcast[Int]()


@always_inline
def pointer(x: Bytes) -> Pointer[Bytes, MutAnyOrigin]:
    return x.unsafe_bitcast[Bytes]()


@always_inline
def copy_one(target: Bytes, source: Bytes, size: Int):
    """Copies so many bytes, mostly those of one element."""
    if size == 4:
        target.unsafe_bitcast[UInt32]()[] = source.unsafe_bitcast[UInt32]()[]
    elif size == 8:
        target.unsafe_bitcast[UInt64]()[] = source.unsafe_bitcast[UInt64]()[]
    elif size == 1:
        target[] = source[]
    elif size == 2:
        target.unsafe_bitcast[UInt16]()[] = source.unsafe_bitcast[UInt16]()[]
    else:
        unsafe_memcpy(dest=target, src=source, count=size)


@always_inline
def row_number(x: Words, block: Bytes) -> Int:
    """The index of a row that an instruction names, of 4 or 8 bytes."""
    var index = block.unsafe_offset(short(x, B))
    if short(x, C) == 4:
        return Int(index.unsafe_bitcast[Int32]()[])
    return Int(index.unsafe_bitcast[Int64]()[])


@always_inline
def row(x: Words, block: Bytes, number: Int) -> Bytes:
    """Where a row of a large array begins."""
    return pointer(block.unsafe_offset(short(x, A)))[].unsafe_offset(
        short(x, FIRST) + number * short(x, SECOND))


@always_inline
def fill[dtype: DType](target: Bytes, source: Bytes, count: Int):
    var value = source.unsafe_bitcast[Scalar[dtype]]()[]
    for i in range(count):
        target.unsafe_bitcast[Scalar[dtype]]().unsafe_store(i, value)


@always_inline
def move[
    dtype: DType
](target: Bytes, target_step: Int, source: Bytes, source_step: Int, count: Int):
    for i in range(count):
        target.unsafe_bitcast[Scalar[dtype]]().unsafe_store(
            i * target_step,
            source.unsafe_bitcast[Scalar[dtype]]().unsafe_load[width=1](i * source_step),
        )


@no_inline
def spread(target: Bytes, source: Bytes, size: Int, count: Int):
    if size == 4:
        fill[DType.uint32](target, source, count)
    elif size == 8:
        fill[DType.uint64](target, source, count)
    elif size == 1:
        fill[DType.uint8](target, source, count)
    else:
        fill[DType.uint16](target, source, count)


@no_inline
def move_line(target: Bytes, target_step: Int, source: Bytes, source_step: Int, size: Int,
              count: Int):
    if target_step == 1 and source_step == 1:
        copy_one(target, source, size * count)
    elif size == 4:
        move[DType.uint32](target, target_step, source, source_step, count)
    elif size == 8:
        move[DType.uint64](target, target_step, source, source_step, count)
    elif size == 1:
        move[DType.uint8](target, target_step, source, source_step, count)
    else:
        move[DType.uint16](target, target_step, source, source_step, count)


@no_inline
def product[dtype: DType](target: Bytes, a: Bytes, b: Bytes, numbers: Args):
    """Products of matrices: each element is a chain of fused multiplications and additions. The
    numbers are those of `matmul`."""
    var m = integer(numbers, 1)
    var n = integer(numbers, 2)
    var k = integer(numbers, 3)
    for t in range(integer(numbers, 0)):
        var x = typed[dtype](a).unsafe_offset(t * integer(numbers, 4))
        var y = typed[dtype](b).unsafe_offset(t * integer(numbers, 7))
        var z = typed[dtype](target).unsafe_offset(t * integer(numbers, 10))
        for i in range(m):
            for j in range(n):
                var left = x.unsafe_offset(i * integer(numbers, 5))
                var right = y.unsafe_offset(j * integer(numbers, 9))
                var total = Scalar[dtype](0)
                for _ in range(k):
                    total = left[].fma(right[], total)
                    left = left.unsafe_offset(integer(numbers, 6))
                    right = right.unsafe_offset(integer(numbers, 8))
                z.unsafe_store(i * integer(numbers, 11) + j, total)


@export("scalar_machine")
def scalar_machine(slots: Slots, args: Args) abi("C"):
    var count = integer(args, TAPE_INTEGERS - TAPE_WORDS)
    var code = args.unsafe_offset(count - 1).unsafe_bitcast[Words]()[]
    var block = address(slots, args, 0)
    block = block.unsafe_offset(-Int(block) & (ALIGNMENT - 1))
    slots.unsafe_offset(integer(args, count - 2))[] = block
    var x = code
    while True:
        var kind = short(x, OPCODE)
        if kind >= FEW:
            compute_few(
                kind - FEW,
                block.unsafe_offset(short(x, TARGET)),
                block.unsafe_offset(short(x, A)),
                block.unsafe_offset(short(x, B)),
                block.unsafe_offset(short(x, C)),
                short(x, NUMBER),
                short(x, FIRST),
            )
        elif kind >= ONE:
            compute_one(
                kind - ONE,
                block.unsafe_offset(short(x, TARGET)),
                block.unsafe_offset(short(x, A)),
                block.unsafe_offset(short(x, B)),
                block.unsafe_offset(short(x, C)),
            )
        elif kind == APPLY:
            x.unsafe_bitcast[Operation]()[](
                block.unsafe_offset(short(x, TARGET)),
                block.unsafe_offset(short(x, A)),
                block.unsafe_offset(short(x, B)),
                block.unsafe_offset(short(x, C)),
                short(x, NUMBER),
            )
        elif kind == COUNT:
            # Another time, until the number of them is used up.
            var left = long(block.unsafe_offset(short(x, TARGET)))
            left[] -= 1
            if left[] > 0:
                x = code.unsafe_offset(WORDS * short(x, NUMBER))
                continue
        elif kind == JUMP:
            x = code.unsafe_offset(WORDS * short(x, NUMBER))
            continue
        elif kind == IF:
            if block.unsafe_offset(short(x, A))[] != 0:
                x = code.unsafe_offset(WORDS * short(x, NUMBER))
                continue
        elif kind == SWITCH:
            # The jumps that follow are the branches'.
            var index = Int(block.unsafe_offset(short(x, A)).unsafe_bitcast[Int32]()[])
            x = x.unsafe_offset(WORDS * max(0, min(index, short(x, NUMBER) - 1)))
        elif kind == NEXT:
            var cell = pointer(block.unsafe_offset(short(x, A)))
            copy_one(block.unsafe_offset(short(x, TARGET)), cell[], short(x, NUMBER))
            cell[] = cell[].unsafe_offset(short(x, C))
        elif kind == PUT:
            var cell = pointer(block.unsafe_offset(short(x, TARGET)))
            copy_one(cell[], block.unsafe_offset(short(x, A)), short(x, NUMBER))
            cell[] = cell[].unsafe_offset(short(x, C))
        elif kind == SPREAD:
            spread(block.unsafe_offset(short(x, TARGET)), block.unsafe_offset(short(x, A)),
                   short(x, B), short(x, NUMBER))
        elif kind == MOVE:
            var target = block.unsafe_offset(short(x, TARGET))
            var source = block.unsafe_offset(short(x, A))
            if short(x, NUMBER) == 1:
                copy_one(target, source, short(x, B))
            else:
                move_line(target, short(x, FIRST), source, short(x, SECOND), short(x, B),
                          short(x, NUMBER))
        elif kind == REDUCE:
            x.unsafe_bitcast[Reduction]()[](
                block.unsafe_offset(short(x, TARGET)), block.unsafe_offset(short(x, A)),
                short(x, C), short(x, NUMBER), 1)
        elif kind == CALL:
            x.unsafe_bitcast[Kernel]()[](slots, x.unsafe_offset(POINTER).unsafe_bitcast[Args]()[])
            if is_stopped(slots):
                return
        elif kind == SET:
            long(block.unsafe_offset(short(x, TARGET)))[] = integer(x, 0)
        elif kind == LOAD:
            copy_one(block.unsafe_offset(short(x, TARGET)), address(slots, args, short(x, A)),
                     short(x, NUMBER))
        elif kind == STORE:
            copy_one(address(slots, args, short(x, TARGET)), block.unsafe_offset(short(x, A)),
                     short(x, NUMBER))
        elif kind == POINT:
            pointer(block.unsafe_offset(short(x, TARGET)))[] = address(
                slots, args, short(x, A)
            ).unsafe_offset(integer(x, 0))
        elif kind == AIM:
            pointer(block.unsafe_offset(short(x, TARGET)))[] = block.unsafe_offset(integer(x, 0))
        elif kind == READ:
            var number = max(0, min(row_number(x, block), integer(x, 0) - 1))
            copy_one(block.unsafe_offset(short(x, TARGET)), row(x, block, number),
                     short(x, NUMBER))
        elif kind == WRITE:
            # What is out of bounds is left out.
            var number = row_number(x, block)
            if 0 <= number and number < integer(x, 0):
                copy_one(row(x, block, number), block.unsafe_offset(short(x, TARGET)),
                         short(x, NUMBER))
        elif kind == PRODUCT:
            var target = block.unsafe_offset(short(x, TARGET))
            var a = block.unsafe_offset(short(x, A))
            var b = block.unsafe_offset(short(x, B))
            # Behind the places of operands and result.
            var numbers = x.unsafe_offset(POINTER).unsafe_bitcast[Args]()[].unsafe_offset(
                3 * PLACE)
            if short(x, C) == 4:
                product[DType.float32](target, a, b, numbers)
            else:
                product[DType.float64](target, a, b, numbers)
        elif kind == ASSIGN:
            # An array with one row written, unless that is out of bounds: so many rows, or places, are
            # there, and so far apart.
            var target = block.unsafe_offset(short(x, TARGET))
            if short(x, TARGET) != short(x, A):
                unsafe_memcpy(dest=target, src=block.unsafe_offset(short(x, A)),
                              count=short(x, NUMBER))
            var place = block.unsafe_offset(short(x, B))
            var number = (
                Int(place.unsafe_bitcast[Int32]()[]) if short(x, SECOND) == 4
                else Int(place.unsafe_bitcast[Int64]()[])
            )
            if 0 <= number and number < short(x, 0):
                copy_one(target.unsafe_offset(number * short(x, 1)),
                         block.unsafe_offset(short(x, C)), short(x, FIRST))
        elif kind == END:
            return
        x = x.unsafe_offset(WORDS)
