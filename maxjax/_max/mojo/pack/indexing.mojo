"""Reading and writing rows at computed places.

`gather_rows_<bits>`: x (outer, size, inner), indices, out (outer, count, inner) | outer, size,
inner, count, bytes of an index (4 or 8), threads
`scatter_rows_<kind>_<dtype>`: x (rows, width), places (int32), updates (count, width), out | rows,
width, count, threads
`permutation_of_exchanges`: places (int32; outer, exchanges), out (outer, count) | outer, exchanges,
count

Wrapping sums and products are the same bits with and without a sign: one function serves both.
"""
from kernels.calling import Args, Slots, integer, operand
from kernels.crew import Tasks, spread
from kernels.reduction import (
    Array,
    Held,
    Maximizing,
    Minimizing,
    Multiplying,
    Reducer,
    Summing,
    chunk_begin,
    copy_run,
    held,
    task_count,
)
from kernels.scatter import Replacing, scatter


@always_inline
def gather_some[
    dtype: DType, index: DType
](x: Array[dtype], places: Array[index], result: Array[dtype], inner: Int, count: Int):
    if inner == 1:
        for i in range(count):
            var place = Int(places.unsafe_load[width=1](i))
            result.unsafe_store(i, x.unsafe_load[width=1](place))
        return
    for i in range(count):
        var place = Int(places.unsafe_load[width=1](i))
        copy_run[dtype](
            result.unsafe_offset(i * inner), x.unsafe_offset(place * inner), inner
        )


@fieldwise_init
struct GatheredRows[dtype: DType](Tasks):
    """The tasks of gather_rows."""

    var x: Held[Self.dtype]
    var places: Held[DType.int64]
    var result: Held[Self.dtype]
    var size: Int
    var inner: Int
    var count: Int
    var wide: Bool
    var items: Int
    var tasks: Int

    def run(self, task: Int):
        var x = self.x.as_unsafe_any_origin()
        var places = self.places.as_unsafe_any_origin()
        var result = self.result.as_unsafe_any_origin()
        var size = self.size
        var inner = self.inner
        var count = self.count
        var wide = self.wide
        var items = self.items
        var tasks = self.tasks
        var item = chunk_begin(task, tasks, items)
        var end = chunk_begin(task + 1, tasks, items)
        if count == 1 and inner == 1:
            # One column.
            var place = Int(places.unsafe_load[width=1](0)) if wide else Int(
                places.unsafe_bitcast[Int32]().unsafe_load[width=1](0))
            for line in range(item, end):
                result.unsafe_store(line, x.unsafe_load[width=1](line * size + place))
            return
        while item < end:
            var i = item % count
            var some = min(end - item, count - i)
            var source = x.unsafe_offset(item // count * size * inner)
            var target = result.unsafe_offset(item * inner)
            if wide:
                gather_some(source, places.unsafe_offset(i), target, inner, some)
            else:
                var narrow = places.unsafe_bitcast[Int32]().unsafe_offset(i)
                gather_some(source, narrow, target, inner, some)
            item += some


def gather_rows[dtype: DType](slots: Slots, args: Args):
    var x = operand[dtype](slots, args, 0)
    var places = operand[DType.int64](slots, args, 1)
    var result = operand[dtype](slots, args, 2)
    var outer = integer(args, 6)
    var size = integer(args, 7)
    var inner = integer(args, 8)
    var count = integer(args, 9)
    var wide = integer(args, 10) == 8
    var items = outer * count
    var tasks = task_count(items, items * max(inner, 4), integer(args, 11))

    spread(
        GatheredRows[dtype](
            held(x), held(places), held(result), size, inner, count, wide, items, tasks
        ),
        tasks,
    )


def scatter_rows[R: Reducer, dtype: DType](slots: Slots, args: Args):
    scatter[R, dtype](
        operand[dtype](slots, args, 3),
        operand[dtype](slots, args, 0),
        operand[DType.int32](slots, args, 1),
        operand[dtype](slots, args, 2),
        integer(args, 8),
        integer(args, 9),
        integer(args, 10),
        integer(args, 11),
    )


@export
def permutation_of_exchanges(slots: Slots, args: Args) abi("C"):
    """The order that results from exchanging element i with that at place i, one by one."""
    var exchanges = integer(args, 5)
    var count = integer(args, 6)
    for row in range(integer(args, 4)):
        var places = operand[DType.int32](slots, args, 0).unsafe_offset(row * exchanges)
        var result = operand[DType.int32](slots, args, 1).unsafe_offset(row * count)
        for i in range(count):
            result.unsafe_store(i, Int32(i))
        for i in range(min(exchanges, count)):
            var place = max(0, min(count - 1, Int(places.unsafe_load[width=1](i))))
            var other = result.unsafe_load[width=1](place)
            result.unsafe_store(place, result.unsafe_load[width=1](i))
            result.unsafe_store(i, other)


@export
def gather_rows_8(slots: Slots, args: Args) abi("C"):
    gather_rows[DType.uint8](slots, args)


@export
def gather_rows_16(slots: Slots, args: Args) abi("C"):
    gather_rows[DType.uint16](slots, args)


@export
def gather_rows_32(slots: Slots, args: Args) abi("C"):
    gather_rows[DType.uint32](slots, args)


@export
def gather_rows_64(slots: Slots, args: Args) abi("C"):
    gather_rows[DType.uint64](slots, args)


@export
def scatter_rows_set_float16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint16](slots, args)


@export
def scatter_rows_set_bfloat16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint16](slots, args)


@export
def scatter_rows_set_float32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint32](slots, args)


@export
def scatter_rows_set_float64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint64](slots, args)


@export
def scatter_rows_set_int8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint8](slots, args)


@export
def scatter_rows_set_int16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint16](slots, args)


@export
def scatter_rows_set_int32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint32](slots, args)


@export
def scatter_rows_set_int64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint64](slots, args)


@export
def scatter_rows_set_uint8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint8](slots, args)


@export
def scatter_rows_set_uint16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint16](slots, args)


@export
def scatter_rows_set_uint32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint32](slots, args)


@export
def scatter_rows_set_uint64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint64](slots, args)


@export
def scatter_rows_set_bool(slots: Slots, args: Args) abi("C"):
    scatter_rows[Replacing, DType.uint8](slots, args)


@export
def scatter_rows_add_float16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.float16](slots, args)


@export
def scatter_rows_add_bfloat16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.bfloat16](slots, args)


@export
def scatter_rows_add_float32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.float32](slots, args)


@export
def scatter_rows_add_float64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.float64](slots, args)


@export
def scatter_rows_add_int8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.int8](slots, args)


@export
def scatter_rows_add_int16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.int16](slots, args)


@export
def scatter_rows_add_int32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.int32](slots, args)


@export
def scatter_rows_add_int64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.int64](slots, args)


@export
def scatter_rows_add_uint8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.int8](slots, args)


@export
def scatter_rows_add_uint16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.int16](slots, args)


@export
def scatter_rows_add_uint32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.int32](slots, args)


@export
def scatter_rows_add_uint64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Summing, DType.int64](slots, args)


@export
def scatter_rows_mul_float16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.float16](slots, args)


@export
def scatter_rows_mul_bfloat16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.bfloat16](slots, args)


@export
def scatter_rows_mul_float32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.float32](slots, args)


@export
def scatter_rows_mul_float64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.float64](slots, args)


@export
def scatter_rows_mul_int8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.int8](slots, args)


@export
def scatter_rows_mul_int16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.int16](slots, args)


@export
def scatter_rows_mul_int32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.int32](slots, args)


@export
def scatter_rows_mul_int64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.int64](slots, args)


@export
def scatter_rows_mul_uint8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.int8](slots, args)


@export
def scatter_rows_mul_uint16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.int16](slots, args)


@export
def scatter_rows_mul_uint32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.int32](slots, args)


@export
def scatter_rows_mul_uint64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Multiplying, DType.int64](slots, args)


@export
def scatter_rows_min_float16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.float16](slots, args)


@export
def scatter_rows_min_bfloat16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.bfloat16](slots, args)


@export
def scatter_rows_min_float32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.float32](slots, args)


@export
def scatter_rows_min_float64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.float64](slots, args)


@export
def scatter_rows_min_int8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.int8](slots, args)


@export
def scatter_rows_min_int16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.int16](slots, args)


@export
def scatter_rows_min_int32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.int32](slots, args)


@export
def scatter_rows_min_int64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.int64](slots, args)


@export
def scatter_rows_min_uint8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.uint8](slots, args)


@export
def scatter_rows_min_uint16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.uint16](slots, args)


@export
def scatter_rows_min_uint32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.uint32](slots, args)


@export
def scatter_rows_min_uint64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.uint64](slots, args)


@export
def scatter_rows_min_bool(slots: Slots, args: Args) abi("C"):
    scatter_rows[Minimizing, DType.uint8](slots, args)


@export
def scatter_rows_max_float16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.float16](slots, args)


@export
def scatter_rows_max_bfloat16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.bfloat16](slots, args)


@export
def scatter_rows_max_float32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.float32](slots, args)


@export
def scatter_rows_max_float64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.float64](slots, args)


@export
def scatter_rows_max_int8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.int8](slots, args)


@export
def scatter_rows_max_int16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.int16](slots, args)


@export
def scatter_rows_max_int32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.int32](slots, args)


@export
def scatter_rows_max_int64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.int64](slots, args)


@export
def scatter_rows_max_uint8(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.uint8](slots, args)


@export
def scatter_rows_max_uint16(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.uint16](slots, args)


@export
def scatter_rows_max_uint32(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.uint32](slots, args)


@export
def scatter_rows_max_uint64(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.uint64](slots, args)


@export
def scatter_rows_max_bool(slots: Slots, args: Args) abi("C"):
    scatter_rows[Maximizing, DType.uint8](slots, args)
