"""Windows that slide over the middle axes of x (outer, height, width, inner).

`unfold_<bits>`, `window_sum_<dtype>`, `window_max_<dtype>`, `window_min_<dtype>`: x, out | sizes
`select_scatter_ge_<dtype>`, `select_scatter_le_<dtype>`: x, updates, out | sizes
sizes: outer, height, width, inner, rows, columns, geometry (ten numbers), threads

Wrapping sums are the same bits with and without a sign: one function serves both.
"""
from kernels.calling import Args, Slots, integer, operand
from kernels.reduction import Maximizing, Minimizing, Reducer, Summing
from kernels.windows import Geometry, Sizes, reduce_windows, scatter_windows, unfold_windows


@always_inline
def sizes(args: Args) -> Sizes:
    return Sizes(
        integer(args, 0),
        integer(args, 1),
        integer(args, 2),
        integer(args, 3),
        integer(args, 4),
        integer(args, 5),
    )


def unfold[dtype: DType](slots: Slots, args: Args):
    var rest = args.unsafe_offset(4)
    unfold_windows[dtype](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        sizes(rest),
        Geometry(rest.unsafe_offset(6)),
        integer(rest, 16),
    )


def window[Op: Reducer, holes_are_zero: Bool, dtype: DType](slots: Slots, args: Args):
    var rest = args.unsafe_offset(4)
    reduce_windows[Op, dtype, holes_are_zero](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        sizes(rest),
        Geometry(rest.unsafe_offset(6)),
        integer(rest, 16),
    )


def select_scatter[Op: Reducer, largest: Bool, dtype: DType](slots: Slots, args: Args):
    var rest = args.unsafe_offset(6)
    scatter_windows[Op, dtype, largest](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        operand[dtype](slots, args, 2),
        sizes(rest),
        Geometry(rest.unsafe_offset(6)),
        integer(rest, 16),
    )
