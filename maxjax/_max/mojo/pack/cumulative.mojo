"""Cumulative operations along the middle axis of (outer, axis, inner).

`cumsum_<dtype>`, `cumprod_<dtype>`, `cummax_<dtype>`, `cummin_<dtype>`, `cumlogsumexp_<dtype>`:
x, out | outer, axis, inner, reverse, threads

Wrapping sums and products are the same bits with and without a sign: one function serves both.
"""
from kernels.calling import Args, Slots, integer, operand
from kernels.cumulative import AddingExponentials, accumulate_middle
from kernels.reduction import Maximizing, Minimizing, Multiplying, Reducer, Summing


def accumulate[Op: Reducer, dtype: DType](slots: Slots, args: Args):
    accumulate_middle[Op, dtype](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        integer(args, 4),
        integer(args, 5),
        integer(args, 6),
        integer(args, 7) != 0,
        integer(args, 8),
    )
