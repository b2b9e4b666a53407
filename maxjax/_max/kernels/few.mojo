"""Reductions, positions of extremes and cumulative operations of few elements, as loops over few have them: each
element by instructions of its own, so that the compiler keeps them in the processor's registers."""
from std.collections import Array as FixedArray
from std.sys.info import simd_width_of

from .cumulative import RUN, accumulate_columns, from_zero, running
from .fixed import Elements, at
from .reduction import SHORT, Reducer, accumulated, reduce_line

# Longer lines whose elements are rounded, each beside its total, are a loop.
comptime MOST_ROUNDED = 12


struct First[dtype: DType](TrivialRegisterPassable):
    """An extreme, and the first position where it is."""

    var value: Scalar[Self.dtype]
    var position: Int32

    @always_inline
    def __init__(out self, value: Scalar[Self.dtype], position: Int32):
        self.value = value
        self.position = position


@always_inline
def first_of_few[
    dtype: DType, largest: Bool, begin: Int, end: Int, step: Int
](x: Elements[dtype]) -> First[dtype]:
    """The first extreme, or NaN, of those in two halves: no comparison waits for more than some others.
    """
    comptime if end - begin == 1:
        return First[dtype](at(x, begin * step), Int32(begin))
    else:
        comptime middle = (begin + end + 1) // 2
        var left = first_of_few[dtype, largest, begin, middle, step](x)
        var right = first_of_few[dtype, largest, middle, end, step](x)
        var better = right.value.gt(left.value) if largest else right.value.lt(left.value)
        comptime if dtype.is_floating_point():
            # What is not to the left of a number is to the right of it, or NaN.
            var worse = right.value.le(left.value) if largest else right.value.ge(left.value)
            better = ~worse & left.value.eq(left.value)
        return First[dtype](
            better.select(right.value, left.value), better.select(right.position, left.position)
        )


@always_inline
def positions_of_few[
    dtype: DType, largest: Bool, outer: Int, count: Int, inner: Int
](x: Elements[dtype], result: Elements[DType.int32]):
    """The positions (outer, inner) of the extremes of (outer, count, inner)."""
    comptime for i in range(outer):
        comptime for j in range(inner):
            var line = x.unsafe_offset(i * count * inner + j)
            var first = first_of_few[dtype, largest, 0, count, inner](line)
            result.unsafe_store(i * inner + j, first.position)


@always_inline
def reduce_few[
    Op: Reducer, dtype: DType, target: DType, lines: Int, count: Int
](x: Elements[dtype], result: Elements[target]):
    """Reduces lines of so many elements, to the bits of the vector machine's `gather_lines`."""
    comptime kind = accumulated[dtype]()
    comptime W = simd_width_of[kind]()
    # Of sums of few lines in memory the compiler would load vectors across what was stored apart.
    comptime is_written_out = lines * count <= 32 or lines >= 8 or not Op.overflows()
    comptime if count < W and is_written_out:

        @always_inline
        def body[w: Int](i: Int) {var x, var result}:
            var total = SIMD[kind, w](Op.identity[kind]())
            comptime for k in range(count):
                var some = SIMD[kind, w](0)
                comptime for lane in range(w):
                    some[lane] = at(x, (i + lane) * count + k).cast[kind]()
                total = Op.combine[kind, w](total, some)
            result.unsafe_store(i, total.cast[target]())

        # An addition is less work than bringing the elements of lines together.
        comptime width = 1 if Op.overflows() else 4
        comptime for i in range(lines // width):
            body[width](i * width)
        comptime for i in range(lines // width * width, lines):
            body[1](i)
    else:
        # Each line in its order where lines are side by side, and others vector by vector.
        comptime together = min(16, W)
        comptime beside = lines // together * together if W <= count < SHORT else 0
        for first in range(0, beside, together):
            var line = x.unsafe_offset(first * count)
            var total = SIMD[kind, together](Op.identity[kind]())
            for k in range(count):
                var column = SIMD[kind, together](0)
                comptime for lane in range(together):
                    column[lane] = at(line, lane * count + k).cast[kind]()
                total = Op.combine[kind, together](total, column)
            result.unsafe_store(first, total.cast[target]())
        comptime for i in range(beside, lines):
            var line = x.unsafe_offset(i * count)
            var total = reduce_line[Op, dtype](line.as_unsafe_any_origin(), count)
            result.unsafe_store(i, total.cast[target]())


@always_inline
def accumulate_few[
    Op: Reducer, dtype: DType, outer: Int, count: Int, reverse: Bool
](x: Elements[dtype], result: Elements[dtype]):
    """Accumulates lines of at most RUN elements, to the bits of `accumulate_columns`."""
    comptime assert count <= RUN
    comptime step = -1 if reverse else 1
    comptime for i in range(outer):
        comptime begin = (i + 1) * count - 1 if reverse else i * count
        var line = x.unsafe_offset(begin)
        var there = result.unsafe_offset(begin)
        comptime if running[dtype]() != dtype and count > MOST_ROUNDED:
            accumulate_columns[Op, dtype, 1, False](
                line.as_unsafe_any_origin(), there.as_unsafe_any_origin(), count, step, 0
            )
        else:
            accumulate_line[Op, dtype, count, step](line, there)


@always_inline
def accumulate_line[
    Op: Reducer, dtype: DType, count: Int, step: Int
](line: Elements[dtype], there: Elements[dtype]):
    """One line of `accumulate_few`."""
    comptime kind = running[dtype]()
    comptime if count == 1 and Op.overflows():
        there.unsafe_store(0, at(line, 0))
        return
    var total = at(line, 0).cast[kind]()
    comptime if Op.rounds():
        total = from_zero[kind, 1](total)
    there.unsafe_store(0, total.cast[dtype]())
    var finite = Scalar[kind](0)
    var least = Scalar[kind](1)
    comptime for k in range(1, count):
        total = Op.combine[kind, 1](total, at(line, k * step).cast[kind]())
        var rounded = total.cast[dtype]()
        there.unsafe_store(k * step, rounded)
        comptime if kind != dtype and Op.overflows():
            var stored = rounded.cast[kind]()
            finite += stored - stored
            comptime if not Op.rounds():
                least = min(least, abs(stored))
    comptime if kind != dtype and Op.overflows():
        if not (finite.eq(0) & least.gt(0)):
            # Of copies: what a loop goes through is in memory, and these need not be.
            var given = FixedArray[Scalar[dtype], count](fill=0)
            var made = FixedArray[Scalar[dtype], count](fill=0)
            comptime for k in range(count):
                given[k] = at(line, k * step)
            accumulate_columns[Op, dtype, 1, False](
                given.unsafe_ptr().as_unsafe_any_origin(),
                made.unsafe_ptr().as_unsafe_any_origin(), count, 1, 0
            )
            comptime for k in range(count):
                there.unsafe_store(k * step, made[k])
