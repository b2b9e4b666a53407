"""Cumulative operations along the middle axis of (outer, axis, inner).

`cumsum_<dtype>`, `cumprod_<dtype>`, `cummax_<dtype>`, `cummin_<dtype>`, `cumlogsumexp_<dtype>`:
x, out | outer, axis, inner, reverse, threads

Wrapping sums and products are the same bits with and without a sign: one function serves both. One
serves all extremes of integers of a size, which are turned into each other.
"""
from kernels.calling import Args, Slots, integer, operand
from kernels.cumulative import AddingExponentials, accumulate_middle, running
from kernels.reduction import (
    Maximizing,
    Minimizing,
    Multiplying,
    Reducer,
    Summing,
    turn_for,
)


@no_inline
def accumulate[
    Op: Reducer, dtype: DType, turns: Bool = False
](slots: Slots, args: Args, turn: Scalar[running[dtype]()] = 0):
    accumulate_middle[Op, dtype, turns](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        integer(args, 4),
        integer(args, 5),
        integer(args, 6),
        integer(args, 7) != 0,
        integer(args, 8),
        turn,
    )


@always_inline
def accumulate_extremes[largest: Bool, dtype: DType, signed: DType](slots: Slots, args: Args):
    comptime if not dtype.is_floating_point():
        comptime turn = turn_for[largest, dtype, signed]()
        accumulate[Maximizing, signed, True](slots, args, turn.cast[running[signed]()]())
    elif largest:
        accumulate[Maximizing, dtype](slots, args)
    else:
        accumulate[Minimizing, dtype](slots, args)
