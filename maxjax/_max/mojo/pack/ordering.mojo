"""Sorting, and the positions of extremes.

`argsort_<dtype>`: x, out (int32) | rows, n, threads
`argsort_few_<dtype>`: x, out (int32) | rows, n, k, threads; the first k positions of each row
`sort_<dtype>`: x, out | rows, n, threads
`argmax_<dtype>`, `argmin_<dtype>`: x, out (int32) | outer, axis, inner, threads
"""
from std.memory import unsafe_memcpy
from std.sys.info import simd_width_of

from kernels.arithmetic import unsigned_of
from kernels.arrangement import (
    Order,
    argsort_line,
    argsort_rows,
    sort_values,
    transpose_matrix,
)
from kernels.calling import Args, Slots, integer, operand
from kernels.crew import Tasks, spread
from kernels.reduction import (
    Array,
    Held,
    accumulated,
    chunk_begin,
    first_extreme,
    first_extreme_of_line,
    held,
    position_of_extreme,
    task_count,
    turn_for,
)

comptime I32 = DType.int32
# Rows up to this length are transposed, so that vectors go over rows and not along them.
comptime SHORT = 128
# Up to so many elements of a row are found by insertion, if they are a small part of it.
comptime FEW = 64


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


@always_inline
def first_few[
    bits: DType
](keys: Array[bits], count: Int, k: Int, best: Array[bits], positions: Array[I32]):
    """The positions of the k least keys, in order; of equal ones the first."""
    comptime W = simd_width_of[bits]()
    var found = 0
    var i = 0
    while i < count:
        if found == k and i + W <= count:
            var greatest = SIMD[bits, W](best.unsafe_load[width=1](k - 1))
            if not keys.unsafe_load[width=W](i).lt(greatest).reduce_or():
                i += W
                continue
        # One by one, until the next whole vector can be tried.
        for next in range(i, min(count, i + W)):
            var key = keys.unsafe_load[width=1](next)
            var place = found
            if found == k:
                if key >= best.unsafe_load[width=1](k - 1):
                    continue
                place = k - 1
            else:
                found += 1
            while place > 0 and best.unsafe_load[width=1](place - 1) > key:
                best.unsafe_store(place, best.unsafe_load[width=1](place - 1))
                positions.unsafe_store(place, positions.unsafe_load[width=1](place - 1))
                place -= 1
            best.unsafe_store(place, key)
            positions.unsafe_store(place, Int32(next))
        i += W


@fieldwise_init
struct FewOfRows[bits: DType](Tasks):
    """The tasks of argsort_few."""

    var x: Held[Self.bits]
    var result: Held[I32]
    var tasks: Int
    var rows: Int
    var count: Int
    var k: Int
    var order: Order[Self.bits]

    def run(self, task: Int):
        var count = self.count
        var k = self.k
        var scratch = List[Scalar[Self.bits]](length=2 * count, fill=0)
        var more = List[Int32](length=2 * count, fill=0)
        var keys = scratch.unsafe_ptr().as_unsafe_any_origin()
        var spare = more.unsafe_ptr().as_unsafe_any_origin()
        var end = chunk_begin(task + 1, self.tasks, self.rows)
        for row in range(chunk_begin(task, self.tasks, self.rows), end):
            var line = self.x.as_unsafe_any_origin().unsafe_offset(row * count)
            var positions = self.result.as_unsafe_any_origin().unsafe_offset(row * k)
            if k <= FEW and 4 * k <= count:
                self.order.encode(line, keys, count)
                self.order.join_zeros(keys, count)
                first_few[Self.bits](keys, count, k, keys.unsafe_offset(count), positions)
            else:
                var whole = spare.unsafe_offset(count)
                argsort_line[Self.bits](line, whole, count, self.order, keys, spare)
                unsafe_memcpy(dest=positions, src=whole, count=k)
        _ = scratch^
        _ = more^


def argsort_few[dtype: DType](slots: Slots, args: Args):
    comptime bits = unsigned_of[dtype]()
    var rows = integer(args, 4)
    var count = integer(args, 5)
    if integer(args, 6) == 0:
        return
    var tasks = task_count(rows, rows * count * 4, integer(args, 7))
    spread(
        FewOfRows[bits](
            held(operand[dtype](slots, args, 0).unsafe_bitcast[Scalar[bits]]()),
            held(operand[I32](slots, args, 1)),
            tasks,
            rows,
            count,
            integer(args, 6),
            Order[bits](Scalar[dtype](0)),
        ),
        tasks,
    )


@fieldwise_init
struct ShortRows[dtype: DType](Tasks):
    """The positions of the extremes of short rows."""

    comptime bits = unsigned_of[Self.dtype]()
    var x: Held[Self.dtype]
    var result: Held[I32]
    var tasks: Int
    var rows: Int
    var count: Int
    var turn: Scalar[accumulated[Self.dtype]()]

    def run(self, task: Int):
        comptime width = simd_width_of[accumulated[Self.dtype]()]()
        comptime strip = max(16, width)
        var count = self.count
        var memory = List[Scalar[Self.dtype]](length=strip * count, fill=0)
        var columns = memory.unsafe_ptr().as_unsafe_any_origin()
        var row = chunk_begin(task, self.tasks, self.rows)
        var end = chunk_begin(task + 1, self.tasks, self.rows)
        while row < end:
            var line = self.x.as_unsafe_any_origin().unsafe_offset(row * count)
            var target = self.result.as_unsafe_any_origin().unsafe_offset(row)
            if row + strip > end:
                target.unsafe_store(
                    0, first_extreme_of_line[Self.dtype](line, count, self.turn)
                )
                row += 1
                continue
            # Of the bits, which are the same for several dtypes.
            transpose_matrix[Self.bits](
                line.unsafe_bitcast[Scalar[Self.bits]](),
                columns.unsafe_bitcast[Scalar[Self.bits]](),
                strip, count, count, strip,
            )
            comptime for part in range(strip // width):
                target.unsafe_store(
                    part * width,
                    first_extreme[Self.dtype, width](
                        columns.unsafe_offset(part * width), count, strip, self.turn
                    ),
                )
            row += strip
        _ = memory^


@always_inline
def position[largest: Bool, dtype: DType, signed: DType](slots: Slots, args: Args):
    position_turned[signed](slots, args, turn_for[largest, dtype, signed]())


@no_inline
def position_turned[
    dtype: DType
](slots: Slots, args: Args, turn: Scalar[accumulated[dtype]()]):
    var rows = integer(args, 4)
    var count = integer(args, 5)
    if integer(args, 6) == 1 and count <= SHORT:
        var tasks = task_count(rows, rows * count, integer(args, 7))
        spread(
            ShortRows[dtype](
                held(operand[dtype](slots, args, 0)),
                held(operand[I32](slots, args, 1)),
                tasks,
                rows,
                count,
                turn,
            ),
            tasks,
        )
        return
    position_of_extreme[dtype](
        operand[dtype](slots, args, 0),
        operand[I32](slots, args, 1),
        integer(args, 4),
        integer(args, 5),
        integer(args, 6),
        integer(args, 7),
        turn,
    )
