"""Windows that slide over the middle axes of x (outer, height, width, inner).

`unfold_<bits>`, `window_sum_<dtype>`, `window_max_<dtype>`, `window_min_<dtype>`: x, out | sizes
`select_scatter_ge_<dtype>`, `select_scatter_le_<dtype>`: x, updates, out | sizes
sizes: outer, height, width, inner, rows, columns, geometry (ten numbers), threads

Wrapping sums are the same bits with and without a sign: one function serves both. One serves both
extremes of integers with and without a sign as well, which are turned into each other.
"""
from kernels.calling import Args, Slots, integer, operand
from kernels.reduction import Maximizing, Minimizing, Reducer, Summing, turn_for
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


@no_inline
def window[
    Op: Reducer, holes_are_zero: Bool, dtype: DType
](slots: Slots, args: Args, turn: Scalar[dtype] = 0):
    var rest = args.unsafe_offset(4)
    reduce_windows[Op, dtype, holes_are_zero](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        sizes(rest),
        Geometry(rest.unsafe_offset(6)),
        integer(rest, 16),
        turn,
    )


@always_inline
def window_extreme[largest: Bool, dtype: DType, signed: DType](slots: Slots, args: Args):
    comptime if not dtype.is_floating_point():
        window[Maximizing, False, signed](
            slots, args, turn_for[largest, dtype, signed]().cast[signed]()
        )
    elif largest:
        window[Maximizing, False, dtype](slots, args)
    else:
        window[Minimizing, False, dtype](slots, args)


@always_inline
def select_scatter[largest: Bool, dtype: DType, signed: DType](slots: Slots, args: Args):
    comptime if not dtype.is_floating_point():
        select_scatter_turned[Maximizing, True, signed](
            slots, args, turn_for[largest, dtype, signed]().cast[signed]()
        )
    elif largest:
        select_scatter_turned[Maximizing, True, dtype](slots, args, 0)
    else:
        select_scatter_turned[Minimizing, False, dtype](slots, args, 0)


@no_inline
def select_scatter_turned[
    Op: Reducer, largest: Bool, dtype: DType
](slots: Slots, args: Args, turn: Scalar[dtype]):
    var rest = args.unsafe_offset(6)
    scatter_windows[Op, dtype, largest](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        operand[dtype](slots, args, 2),
        sizes(rest),
        Geometry(rest.unsafe_offset(6)),
        integer(rest, 16),
        turn,
    )
