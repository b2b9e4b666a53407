"""Cumulative operations along the middle axis of (outer, axis, inner), from either end.

`float32` accumulates in `float64` (a running sum would lose a digit every ten thousand elements),
narrower floats in `float32`, `float64` in blocks of which each begins anew.
"""
from std.sys.info import simd_width_of
from std.utils.numerics import isnan

from .elementary import exp, log1p
from .crew import Tasks, spread
from .halves import rounded_to
from .reduction import (
    Array,
    Held,
    Maximizing,
    Partials,
    Reducer,
    chunk_begin,
    held,
    task_count,
    turned,
)

# So many rows are accumulated before a block begins anew.
comptime RUN = 32


@always_inline
def running[dtype: DType]() -> DType:
    comptime if dtype == DType.float32:
        return DType.float64
    elif dtype.is_half_float():
        return DType.float32
    else:
        return dtype


struct AddingExponentials(Reducer):
    """Gives log(e^x + e^y)."""

    @staticmethod
    @always_inline
    def rounds() -> Bool:
        return True

    @staticmethod
    @always_inline
    def identity[dtype: DType]() -> Scalar[dtype]:
        return Maximizing.identity[dtype]()

    @staticmethod
    @always_inline
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime if dtype.is_floating_point():
            var larger = Maximizing.combine[dtype, width](x, y)
            # For two infinities of one sign the difference would be NaN.
            var gap = x.eq(y).select(SIMD[dtype, width](0), abs(x - y))
            return larger + log1p(exp(-gap))
        else:
            return x


@always_inline
def accumulate_columns[
    Op: Reducer, dtype: DType, width: Int, turns: Bool
](
    x: Array[dtype], result: Array[dtype], count: Int, stride: Int,
    turn: Scalar[running[dtype]()]
):
    """Accumulates neighbouring columns, from row 0 on; a stride below 0 goes backwards."""
    comptime kind = running[dtype]()
    comptime if Op.rounds() and Op.overflows():
        if count == 1:      # a sum of one element is that
            result.unsafe_store(0, x.unsafe_load[width=width](0))
            return
    comptime if kind == dtype:
        comptime if kind.is_floating_point() and Op.rounds():
            accumulate_in_blocks[Op, dtype, width](x, result, count, stride)
        else:
            _ = accumulate_rows[Op, dtype, width, False, turns](x, result, count, stride, turn)
    elif not Op.overflows():
        _ = accumulate_rows[Op, dtype, width, False, turns](x, result, count, stride, turn)
    else:
        if accumulate_rows[Op, dtype, width, False, turns](x, result, count, stride, turn):
            _ = accumulate_rows[Op, dtype, width, True, turns](x, result, count, stride, turn)


@always_inline
def from_zero[dtype: DType, width: Int](first: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """A first element of several, as 0 has been added to it: XLA's running sums begin with 0."""
    return first + SIMD[dtype, width](0)


@always_inline
def accumulate_rows[
    Op: Reducer, dtype: DType, width: Int, sticking: Bool, turns: Bool
](
    x: Array[dtype], result: Array[dtype], count: Int, stride: Int,
    turn: Scalar[running[dtype]()]
) -> Bool:
    """Accumulates one row after the other. Gives whether something may have become infinite, or
    zero, by being rounded: in a narrow type it would stay so, as where it is `sticking`."""
    comptime kind = running[dtype]()
    var total = turned[turns](x.unsafe_load[width=width](0).cast[kind](), turn)
    comptime if Op.rounds():
        total = from_zero[kind, width](total)
    result.unsafe_store(0, rounded_to[dtype](turned[turns](total, turn)))
    # The difference of infinities is not a number, and stays so.
    var finite = SIMD[kind, width](0)
    var least = SIMD[kind, width](1)
    for row in range(1, count):
        total = Op.combine[kind, width](
            total, turned[turns](x.unsafe_load[width=width](row * stride).cast[kind](), turn)
        )
        var rounded = rounded_to[dtype](turned[turns](total, turn))
        result.unsafe_store(row * stride, rounded)
        comptime if kind != dtype and Op.overflows():
            var stored = rounded.cast[kind]()
            comptime if sticking:
                # `ne` would not tell of what is not a number.
                var is_lost = ~(stored - stored).eq(0) | stored.eq(0)
                total = (is_lost & (total - total).eq(0)).select(stored, total)
            else:
                finite += stored - stored
                comptime if not Op.rounds():
                    least = min(least, abs(stored))
    return not (finite.eq(0) & least.gt(0)).reduce_and()


@always_inline
def accumulate_in_blocks[
    Op: Reducer, dtype: DType, width: Int
](x: Array[dtype], result: Array[dtype], count: Int, stride: Int):
    """The same, each block of rows from its own beginning: to that is added what was before it."""
    comptime V = SIMD[dtype, width]
    comptime identity = Op.identity[dtype]()
    var partials = Partials[Op, dtype, width]()
    var before = V(identity)
    var row = 0
    while row < count:
        var end = min(count, row + RUN)
        var total = V(identity)
        while row < end:
            var value = x.unsafe_load[width=width](row * stride)
            if row == 0:
                value = from_zero[dtype, width](value)
            total = Op.combine[dtype, width](total, value)
            result.unsafe_store(row * stride, Op.combine[dtype, width](before, total))
            row += 1
        partials.take(total)
        before = partials.result()


@fieldwise_init
struct Accumulation[Op: Reducer, dtype: DType, turns: Bool](Tasks):
    """The tasks of accumulate_middle."""

    var x: Held[Self.dtype]
    var result: Held[Self.dtype]
    var tasks: Int
    var tiles: Int
    var items: Int
    var count: Int
    var inner: Int
    var stride: Int
    var first: Int
    var turn: Scalar[running[Self.dtype]()]

    def run(self, task: Int):
        comptime width = simd_width_of[running[Self.dtype]()]()
        var x = self.x.as_unsafe_any_origin()
        var result = self.result.as_unsafe_any_origin()
        var first_item = chunk_begin(task, self.tasks, self.items)
        for item in range(first_item, chunk_begin(task + 1, self.tasks, self.items)):
            var begin = (item % self.tiles) * width
            var offset = (item // self.tiles) * self.count * self.inner + begin + self.first
            var source = x.unsafe_offset(offset)
            var target = result.unsafe_offset(offset)
            if begin + width <= self.inner:
                accumulate_columns[Self.Op, Self.dtype, width, Self.turns](
                    source, target, self.count, self.stride, self.turn
                )
            else:
                for column in range(self.inner - begin):
                    accumulate_columns[Self.Op, Self.dtype, 1, Self.turns](
                        source.unsafe_offset(column),
                        target.unsafe_offset(column),
                        self.count,
                        self.stride,
                        self.turn,
                    )


@no_inline
def accumulate_middle[
    Op: Reducer, dtype: DType, turns: Bool = False
](
    x: Array[dtype],
    result: Array[dtype],
    outer: Int,
    count: Int,
    inner: Int,
    reverse: Bool,
    threads: Int,
    turn: Scalar[running[dtype]()] = 0,
):
    """Accumulates along the middle axis of (outer, count, inner); extremes as they are `turned`."""
    comptime width = simd_width_of[running[dtype]()]()
    var tiles = (inner + width - 1) // width
    var items = outer * tiles
    var tasks = task_count(items, outer * count * inner, threads)
    var stride = -inner if reverse else inner
    var first = (count - 1) * inner if reverse else 0
    if count == 0:
        return
    spread(
        Accumulation[Op, dtype, turns](
            held(x), held(result), tasks, tiles, items, count, inner, stride, first, turn
        ),
        tasks,
    )
