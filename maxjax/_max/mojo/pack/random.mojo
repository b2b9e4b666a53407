"""Random bits.

`threefry2x32`: two key words, two counters, two results (uint32) | key count (1 or count), count,
threads
"""
from kernels.arrangement import U32, threefry_arrays
from kernels.calling import Args, Slots, integer, operand


@export
def threefry2x32(slots: Slots, args: Args) abi("C"):
    threefry_arrays(
        operand[U32](slots, args, 0),
        operand[U32](slots, args, 1),
        operand[U32](slots, args, 2),
        operand[U32](slots, args, 3),
        operand[U32](slots, args, 4),
        operand[U32](slots, args, 5),
        integer(args, 12),
        integer(args, 13),
        integer(args, 14),
    )
