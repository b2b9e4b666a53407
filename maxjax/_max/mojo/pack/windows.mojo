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


@export
def unfold_8(slots: Slots, args: Args) abi("C"):
    unfold[DType.uint8](slots, args)


@export
def unfold_16(slots: Slots, args: Args) abi("C"):
    unfold[DType.uint16](slots, args)


@export
def unfold_32(slots: Slots, args: Args) abi("C"):
    unfold[DType.uint32](slots, args)


@export
def unfold_64(slots: Slots, args: Args) abi("C"):
    unfold[DType.uint64](slots, args)


@export
def window_sum_float16(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.float16](slots, args)


@export
def window_sum_bfloat16(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.bfloat16](slots, args)


@export
def window_sum_float32(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.float32](slots, args)


@export
def window_sum_float64(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.float64](slots, args)


@export
def window_sum_int8(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.int8](slots, args)


@export
def window_sum_int16(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.int16](slots, args)


@export
def window_sum_int32(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.int32](slots, args)


@export
def window_sum_int64(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.int64](slots, args)


@export
def window_sum_uint8(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.int8](slots, args)


@export
def window_sum_uint16(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.int16](slots, args)


@export
def window_sum_uint32(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.int32](slots, args)


@export
def window_sum_uint64(slots: Slots, args: Args) abi("C"):
    window[Summing, True, DType.int64](slots, args)


@export
def window_max_float16(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.float16](slots, args)


@export
def window_max_bfloat16(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.bfloat16](slots, args)


@export
def window_max_float32(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.float32](slots, args)


@export
def window_max_float64(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.float64](slots, args)


@export
def window_max_int8(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.int8](slots, args)


@export
def window_max_int16(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.int16](slots, args)


@export
def window_max_int32(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.int32](slots, args)


@export
def window_max_int64(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.int64](slots, args)


@export
def window_max_uint8(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.uint8](slots, args)


@export
def window_max_uint16(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.uint16](slots, args)


@export
def window_max_uint32(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.uint32](slots, args)


@export
def window_max_uint64(slots: Slots, args: Args) abi("C"):
    window[Maximizing, False, DType.uint64](slots, args)


@export
def window_min_float16(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.float16](slots, args)


@export
def window_min_bfloat16(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.bfloat16](slots, args)


@export
def window_min_float32(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.float32](slots, args)


@export
def window_min_float64(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.float64](slots, args)


@export
def window_min_int8(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.int8](slots, args)


@export
def window_min_int16(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.int16](slots, args)


@export
def window_min_int32(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.int32](slots, args)


@export
def window_min_int64(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.int64](slots, args)


@export
def window_min_uint8(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.uint8](slots, args)


@export
def window_min_uint16(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.uint16](slots, args)


@export
def window_min_uint32(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.uint32](slots, args)


@export
def window_min_uint64(slots: Slots, args: Args) abi("C"):
    window[Minimizing, False, DType.uint64](slots, args)


@export
def select_scatter_ge_float16(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.float16](slots, args)


@export
def select_scatter_ge_bfloat16(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.bfloat16](slots, args)


@export
def select_scatter_ge_float32(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.float32](slots, args)


@export
def select_scatter_ge_float64(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.float64](slots, args)


@export
def select_scatter_ge_int8(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.int8](slots, args)


@export
def select_scatter_ge_int16(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.int16](slots, args)


@export
def select_scatter_ge_int32(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.int32](slots, args)


@export
def select_scatter_ge_int64(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.int64](slots, args)


@export
def select_scatter_ge_uint8(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.uint8](slots, args)


@export
def select_scatter_ge_uint16(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.uint16](slots, args)


@export
def select_scatter_ge_uint32(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.uint32](slots, args)


@export
def select_scatter_ge_uint64(slots: Slots, args: Args) abi("C"):
    select_scatter[Maximizing, True, DType.uint64](slots, args)


@export
def select_scatter_le_float16(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.float16](slots, args)


@export
def select_scatter_le_bfloat16(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.bfloat16](slots, args)


@export
def select_scatter_le_float32(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.float32](slots, args)


@export
def select_scatter_le_float64(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.float64](slots, args)


@export
def select_scatter_le_int8(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.int8](slots, args)


@export
def select_scatter_le_int16(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.int16](slots, args)


@export
def select_scatter_le_int32(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.int32](slots, args)


@export
def select_scatter_le_int64(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.int64](slots, args)


@export
def select_scatter_le_uint8(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.uint8](slots, args)


@export
def select_scatter_le_uint16(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.uint16](slots, args)


@export
def select_scatter_le_uint32(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.uint32](slots, args)


@export
def select_scatter_le_uint64(slots: Slots, args: Args) abi("C"):
    select_scatter[Minimizing, False, DType.uint64](slots, args)
