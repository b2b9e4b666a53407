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


@export
def cumsum_float16(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.float16](slots, args)


@export
def cumsum_bfloat16(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.bfloat16](slots, args)


@export
def cumsum_float32(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.float32](slots, args)


@export
def cumsum_float64(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.float64](slots, args)


@export
def cumsum_int8(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.int8](slots, args)


@export
def cumsum_int16(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.int16](slots, args)


@export
def cumsum_int32(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.int32](slots, args)


@export
def cumsum_int64(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.int64](slots, args)


@export
def cumsum_uint8(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.int8](slots, args)


@export
def cumsum_uint16(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.int16](slots, args)


@export
def cumsum_uint32(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.int32](slots, args)


@export
def cumsum_uint64(slots: Slots, args: Args) abi("C"):
    accumulate[Summing, DType.int64](slots, args)


@export
def cumprod_float16(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.float16](slots, args)


@export
def cumprod_bfloat16(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.bfloat16](slots, args)


@export
def cumprod_float32(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.float32](slots, args)


@export
def cumprod_float64(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.float64](slots, args)


@export
def cumprod_int8(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.int8](slots, args)


@export
def cumprod_int16(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.int16](slots, args)


@export
def cumprod_int32(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.int32](slots, args)


@export
def cumprod_int64(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.int64](slots, args)


@export
def cumprod_uint8(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.int8](slots, args)


@export
def cumprod_uint16(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.int16](slots, args)


@export
def cumprod_uint32(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.int32](slots, args)


@export
def cumprod_uint64(slots: Slots, args: Args) abi("C"):
    accumulate[Multiplying, DType.int64](slots, args)


@export
def cummax_float16(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.float16](slots, args)


@export
def cummax_bfloat16(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.bfloat16](slots, args)


@export
def cummax_float32(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.float32](slots, args)


@export
def cummax_float64(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.float64](slots, args)


@export
def cummax_int8(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.int8](slots, args)


@export
def cummax_int16(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.int16](slots, args)


@export
def cummax_int32(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.int32](slots, args)


@export
def cummax_int64(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.int64](slots, args)


@export
def cummax_uint8(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.uint8](slots, args)


@export
def cummax_uint16(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.uint16](slots, args)


@export
def cummax_uint32(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.uint32](slots, args)


@export
def cummax_uint64(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.uint64](slots, args)


@export
def cummax_bool(slots: Slots, args: Args) abi("C"):
    accumulate[Maximizing, DType.uint8](slots, args)


@export
def cummin_float16(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.float16](slots, args)


@export
def cummin_bfloat16(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.bfloat16](slots, args)


@export
def cummin_float32(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.float32](slots, args)


@export
def cummin_float64(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.float64](slots, args)


@export
def cummin_int8(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.int8](slots, args)


@export
def cummin_int16(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.int16](slots, args)


@export
def cummin_int32(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.int32](slots, args)


@export
def cummin_int64(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.int64](slots, args)


@export
def cummin_uint8(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.uint8](slots, args)


@export
def cummin_uint16(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.uint16](slots, args)


@export
def cummin_uint32(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.uint32](slots, args)


@export
def cummin_uint64(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.uint64](slots, args)


@export
def cummin_bool(slots: Slots, args: Args) abi("C"):
    accumulate[Minimizing, DType.uint8](slots, args)


@export
def cumlogsumexp_float16(slots: Slots, args: Args) abi("C"):
    accumulate[AddingExponentials, DType.float16](slots, args)


@export
def cumlogsumexp_bfloat16(slots: Slots, args: Args) abi("C"):
    accumulate[AddingExponentials, DType.bfloat16](slots, args)


@export
def cumlogsumexp_float32(slots: Slots, args: Args) abi("C"):
    accumulate[AddingExponentials, DType.float32](slots, args)


@export
def cumlogsumexp_float64(slots: Slots, args: Args) abi("C"):
    accumulate[AddingExponentials, DType.float64](slots, args)
