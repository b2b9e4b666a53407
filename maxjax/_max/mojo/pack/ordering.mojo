"""Sorting, and the positions of extremes.

`argsort_<dtype>`: x, out (int32) | rows, n, threads
`sort_<dtype>`: x, out | rows, n, threads
`argmax_<dtype>`, `argmin_<dtype>`: x, out (int32) | outer, axis, inner, threads
"""
from kernels.arrangement import argsort_rows, sort_values
from kernels.calling import Args, Slots, integer, operand
from kernels.reduction import position_of_extreme

comptime I32 = DType.int32


def argsort[dtype: DType](slots: Slots, args: Args):
    argsort_rows[dtype](
        operand[dtype](slots, args, 0),
        operand[I32](slots, args, 1),
        integer(args, 4),
        integer(args, 5),
        integer(args, 6),
    )


def sort[dtype: DType](slots: Slots, args: Args):
    sort_values[dtype](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        integer(args, 4),
        integer(args, 5),
        integer(args, 6),
    )


def position[largest: Bool, dtype: DType](slots: Slots, args: Args):
    position_of_extreme[largest, dtype](
        operand[dtype](slots, args, 0),
        operand[I32](slots, args, 1),
        integer(args, 4),
        integer(args, 5),
        integer(args, 6),
        integer(args, 7),
    )


@export
def argsort_float16(slots: Slots, args: Args) abi("C"):
    argsort[DType.float16](slots, args)


@export
def argsort_bfloat16(slots: Slots, args: Args) abi("C"):
    argsort[DType.bfloat16](slots, args)


@export
def argsort_float32(slots: Slots, args: Args) abi("C"):
    argsort[DType.float32](slots, args)


@export
def argsort_float64(slots: Slots, args: Args) abi("C"):
    argsort[DType.float64](slots, args)


@export
def argsort_int8(slots: Slots, args: Args) abi("C"):
    argsort[DType.int8](slots, args)


@export
def argsort_int16(slots: Slots, args: Args) abi("C"):
    argsort[DType.int16](slots, args)


@export
def argsort_int32(slots: Slots, args: Args) abi("C"):
    argsort[DType.int32](slots, args)


@export
def argsort_int64(slots: Slots, args: Args) abi("C"):
    argsort[DType.int64](slots, args)


@export
def argsort_uint8(slots: Slots, args: Args) abi("C"):
    argsort[DType.uint8](slots, args)


@export
def argsort_uint16(slots: Slots, args: Args) abi("C"):
    argsort[DType.uint16](slots, args)


@export
def argsort_uint32(slots: Slots, args: Args) abi("C"):
    argsort[DType.uint32](slots, args)


@export
def argsort_uint64(slots: Slots, args: Args) abi("C"):
    argsort[DType.uint64](slots, args)


@export
def argsort_bool(slots: Slots, args: Args) abi("C"):
    argsort[DType.uint8](slots, args)


@export
def sort_float16(slots: Slots, args: Args) abi("C"):
    sort[DType.float16](slots, args)


@export
def sort_bfloat16(slots: Slots, args: Args) abi("C"):
    sort[DType.bfloat16](slots, args)


@export
def sort_float32(slots: Slots, args: Args) abi("C"):
    sort[DType.float32](slots, args)


@export
def sort_float64(slots: Slots, args: Args) abi("C"):
    sort[DType.float64](slots, args)


@export
def sort_int8(slots: Slots, args: Args) abi("C"):
    sort[DType.int8](slots, args)


@export
def sort_int16(slots: Slots, args: Args) abi("C"):
    sort[DType.int16](slots, args)


@export
def sort_int32(slots: Slots, args: Args) abi("C"):
    sort[DType.int32](slots, args)


@export
def sort_int64(slots: Slots, args: Args) abi("C"):
    sort[DType.int64](slots, args)


@export
def sort_uint8(slots: Slots, args: Args) abi("C"):
    sort[DType.uint8](slots, args)


@export
def sort_uint16(slots: Slots, args: Args) abi("C"):
    sort[DType.uint16](slots, args)


@export
def sort_uint32(slots: Slots, args: Args) abi("C"):
    sort[DType.uint32](slots, args)


@export
def sort_uint64(slots: Slots, args: Args) abi("C"):
    sort[DType.uint64](slots, args)


@export
def sort_bool(slots: Slots, args: Args) abi("C"):
    sort[DType.uint8](slots, args)


@export
def argmax_float16(slots: Slots, args: Args) abi("C"):
    position[True, DType.float16](slots, args)


@export
def argmax_bfloat16(slots: Slots, args: Args) abi("C"):
    position[True, DType.bfloat16](slots, args)


@export
def argmax_float32(slots: Slots, args: Args) abi("C"):
    position[True, DType.float32](slots, args)


@export
def argmax_float64(slots: Slots, args: Args) abi("C"):
    position[True, DType.float64](slots, args)


@export
def argmax_int8(slots: Slots, args: Args) abi("C"):
    position[True, DType.int8](slots, args)


@export
def argmax_int16(slots: Slots, args: Args) abi("C"):
    position[True, DType.int16](slots, args)


@export
def argmax_int32(slots: Slots, args: Args) abi("C"):
    position[True, DType.int32](slots, args)


@export
def argmax_int64(slots: Slots, args: Args) abi("C"):
    position[True, DType.int64](slots, args)


@export
def argmax_uint8(slots: Slots, args: Args) abi("C"):
    position[True, DType.uint8](slots, args)


@export
def argmax_uint16(slots: Slots, args: Args) abi("C"):
    position[True, DType.uint16](slots, args)


@export
def argmax_uint32(slots: Slots, args: Args) abi("C"):
    position[True, DType.uint32](slots, args)


@export
def argmax_uint64(slots: Slots, args: Args) abi("C"):
    position[True, DType.uint64](slots, args)


@export
def argmax_bool(slots: Slots, args: Args) abi("C"):
    position[True, DType.uint8](slots, args)


@export
def argmin_float16(slots: Slots, args: Args) abi("C"):
    position[False, DType.float16](slots, args)


@export
def argmin_bfloat16(slots: Slots, args: Args) abi("C"):
    position[False, DType.bfloat16](slots, args)


@export
def argmin_float32(slots: Slots, args: Args) abi("C"):
    position[False, DType.float32](slots, args)


@export
def argmin_float64(slots: Slots, args: Args) abi("C"):
    position[False, DType.float64](slots, args)


@export
def argmin_int8(slots: Slots, args: Args) abi("C"):
    position[False, DType.int8](slots, args)


@export
def argmin_int16(slots: Slots, args: Args) abi("C"):
    position[False, DType.int16](slots, args)


@export
def argmin_int32(slots: Slots, args: Args) abi("C"):
    position[False, DType.int32](slots, args)


@export
def argmin_int64(slots: Slots, args: Args) abi("C"):
    position[False, DType.int64](slots, args)


@export
def argmin_uint8(slots: Slots, args: Args) abi("C"):
    position[False, DType.uint8](slots, args)


@export
def argmin_uint16(slots: Slots, args: Args) abi("C"):
    position[False, DType.uint16](slots, args)


@export
def argmin_uint32(slots: Slots, args: Args) abi("C"):
    position[False, DType.uint32](slots, args)


@export
def argmin_uint64(slots: Slots, args: Args) abi("C"):
    position[False, DType.uint64](slots, args)


@export
def argmin_bool(slots: Slots, args: Args) abi("C"):
    position[False, DType.uint8](slots, args)
