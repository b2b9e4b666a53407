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
