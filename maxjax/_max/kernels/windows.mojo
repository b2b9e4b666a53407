"""Windows that slide over the two middle axes of (outer, height, width, inner).

How they lie is an int32 vector `geometry`: the window's size, its strides, the padding before
and the dilation of the window, then that of the operand, each as (along height, along width).
"""
from std.sys.info import simd_width_of

from .crew import Tasks, spread
from .halves import rounded_to
from .reduction import (
    BLOCK,
    Array,
    Held,
    Partials,
    Reducer,
    accumulated,
    chunk_begin,
    copy_run,
    held,
    task_count,
    turned,
)


struct Geometry(TrivialRegisterPassable):
    """How windows lie: the ten numbers, along height and along width."""

    var tall: Int
    var wide: Int
    var down: Int
    var across: Int
    var above: Int
    var before: Int
    var step_down: Int
    var step_across: Int
    var base_down: Int
    var base_across: Int

    def __init__[dtype: DType](out self, numbers: Array[dtype]):
        self.tall = Int(numbers.unsafe_load[width=1](0))
        self.wide = Int(numbers.unsafe_load[width=1](1))
        self.down = Int(numbers.unsafe_load[width=1](2))
        self.across = Int(numbers.unsafe_load[width=1](3))
        self.above = Int(numbers.unsafe_load[width=1](4))
        self.before = Int(numbers.unsafe_load[width=1](5))
        self.step_down = Int(numbers.unsafe_load[width=1](6))
        self.step_across = Int(numbers.unsafe_load[width=1](7))
        self.base_down = Int(numbers.unsafe_load[width=1](8))
        self.base_across = Int(numbers.unsafe_load[width=1](9))


struct Sizes(TrivialRegisterPassable):
    """Of x (outer, height, width, inner) and of the windows' (outer, rows, columns, ...)."""

    var outer: Int
    var height: Int
    var width: Int
    var inner: Int
    var rows: Int
    var columns: Int

    def __init__(
        out self, outer: Int, height: Int, width: Int, inner: Int, rows: Int, columns: Int
    ):
        self.outer = outer
        self.height = height
        self.width = width
        self.inner = inner
        self.rows = rows
        self.columns = columns


@always_inline
def source_place(index: Int, dilation: Int, size: Int) -> Int:
    """Where a place of the dilated operand is in the operand; -1 if it is padding or a hole."""
    if index < 0 or index >= (size - 1) * dilation + 1:
        return -1
    if dilation == 1:
        return index
    return index // dilation if index % dilation == 0 else -1


@no_inline
def fill[dtype: DType](target: Array[dtype], count: Int, value: Scalar[dtype]):
    comptime lanes = simd_width_of[dtype]()
    var i = 0
    while i + lanes <= count:
        target.unsafe_store(i, SIMD[dtype, lanes](value))
        i += lanes
    while i < count:
        target.unsafe_store(i, value)
        i += 1


@always_inline
def fill_zeros[dtype: DType](target: Array[dtype], count: Int):
    fill[dtype](target, count, 0)


@always_inline
def unfold_row[
    dtype: DType
](
    target: Array[dtype],
    source: Array[dtype],
    start: Int,
    window: Int,
    step: Int,
    base: Int,
    width: Int,
    inner: Int,
):
    """One row of a window, from its place `start` in a row of the operand."""
    if step == 1 and base == 1:
        # Contiguous but for what lies outside.
        var low = min(window, max(0, -start))
        var high = max(low, min(window, width - start))
        fill_zeros[dtype](target, low * inner)
        copy_run[dtype](
            target.unsafe_offset(low * inner),
            source.unsafe_offset((start + low) * inner),
            (high - low) * inner,
        )
        fill_zeros[dtype](target.unsafe_offset(high * inner), (window - high) * inner)
        return
    for j in range(window):
        var place = source_place(start + j * step, base, width)
        if place < 0:
            fill_zeros[dtype](target.unsafe_offset(j * inner), inner)
        else:
            copy_run[dtype](
                target.unsafe_offset(j * inner), source.unsafe_offset(place * inner), inner
            )


def unfold_rows[
    dtype: DType
](
    x: Array[dtype],
    result: Array[dtype],
    sizes: Sizes,
    geometry: Geometry,
    first: Int,
    end: Int,
):
    """The windows of some rows of the result, counted over all of `outer`."""
    var run = geometry.wide * sizes.inner
    var depth = geometry.tall * run
    for item in range(first, end):
        var n = item // sizes.rows
        var p = item % sizes.rows
        for i in range(geometry.tall):
            var row = source_place(
                p * geometry.down - geometry.above + i * geometry.step_down,
                geometry.base_down,
                sizes.height,
            )
            var target = result.unsafe_offset((item - first) * sizes.columns * depth + i * run)
            if row < 0:
                for q in range(sizes.columns):
                    fill_zeros[dtype](target.unsafe_offset(q * depth), run)
                continue
            var line = x.unsafe_offset((n * sizes.height + row) * sizes.width * sizes.inner)
            for q in range(sizes.columns):
                unfold_row[dtype](
                    target.unsafe_offset(q * depth),
                    line,
                    q * geometry.across - geometry.before,
                    geometry.wide,
                    geometry.step_across,
                    geometry.base_across,
                    sizes.width,
                    sizes.inner,
                )


@fieldwise_init
struct UnfoldedRows[dtype: DType](Tasks):
    """The tasks of unfold_windows."""

    var x: Held[Self.dtype]
    var result: Held[Self.dtype]
    var sizes: Sizes
    var geometry: Geometry
    var row_size: Int
    var items: Int
    var tasks: Int

    def run(self, task: Int):
        var first = chunk_begin(task, self.tasks, self.items)
        unfold_rows[Self.dtype](
            self.x.as_unsafe_any_origin(),
            self.result.as_unsafe_any_origin().unsafe_offset(first * self.row_size),
            self.sizes,
            self.geometry,
            first,
            chunk_begin(task + 1, self.tasks, self.items),
        )


@no_inline
def unfold_windows[
    dtype: DType
](x: Array[dtype], result: Array[dtype], sizes: Sizes, geometry: Geometry, threads: Int):
    """The windows side by side: (outer, height, width, inner) to (outer, rows, columns, window
    size times inner), with zeros for padding and holes."""
    var row_size = sizes.columns * geometry.tall * geometry.wide * sizes.inner
    var items = sizes.outer * sizes.rows
    var tasks = task_count(items, items * row_size, threads)
    spread(
        UnfoldedRows[dtype](held(x), held(result), sizes, geometry, row_size, items, tasks), tasks
    )


@always_inline
def combine_row[
    Op: Reducer, dtype: DType, turns: Bool
](
    line: Array[accumulated[dtype]()], source: Array[dtype], count: Int, turn: Scalar[dtype]
):
    """Combines a row of the operand into a line."""
    comptime kind = accumulated[dtype]()
    comptime lanes = simd_width_of[kind]()
    var i = 0
    while i + lanes <= count:
        var value = turned[turns](source.unsafe_load[width=lanes](i), turn).cast[kind]()
        line.unsafe_store(i, Op.combine[kind, lanes](line.unsafe_load[width=lanes](i), value))
        i += lanes
    while i < count:
        var value = turned[turns](source.unsafe_load[width=1](i), turn).cast[kind]()
        line.unsafe_store(i, Op.combine[kind, 1](line.unsafe_load[width=1](i), value))
        i += 1


@no_inline
def fold_line[
    Op: Reducer, kind: DType, lanes: Int, stride: Int
](line: Array[kind], step: Int, count: Int) -> SIMD[kind, lanes]:
    """Combines `count` vectors, `step` apart, each of every `stride`-th element."""
    if count > BLOCK:
        var partials = Partials[Op, kind, lanes]()
        for first in range(0, count, BLOCK):
            partials.take(
                fold_line[Op, kind, lanes, stride](
                    line.unsafe_offset(first * step), step, min(BLOCK, count - first)
                )
            )
        return partials.result()
    var total = SIMD[kind, lanes](Op.identity[kind]())
    for j in range(count):
        var some = line.unsafe_load[width = lanes * stride](j * step)
        comptime if stride == 2:
            var even = rebind[SIMD[kind, lanes]](some.deinterleave()[0])
            total = Op.combine[kind, lanes](total, even)
        else:
            total = Op.combine[kind, lanes](total, rebind[SIMD[kind, lanes]](some))
    return total


def window_row[
    Op: Reducer, dtype: DType, holes_are_zero: Bool
](
    target: Array[dtype],
    image: Array[dtype],
    line: Array[accumulated[dtype]()],
    length: Int,
    geometry: Geometry,
    p: Int,
    sizes: Sizes,
    turn: Scalar[dtype],
):
    """A row of windows: first down, into a line of `length` places and its padding, then along.

    The line has room for two vectors more.
    """
    comptime turns = not holes_are_zero and not dtype.is_floating_point()
    comptime kind = accumulated[dtype]()
    comptime lanes = simd_width_of[kind]()
    comptime hole = Scalar[kind](0) if holes_are_zero else Op.identity[kind]()
    var inner = sizes.inner
    var base = geometry.base_across
    var top = p * geometry.down - geometry.above
    fill[kind](line, length * inner + 2 * lanes, hole)
    # The columns of the operand that lie in the line; runs of them are contiguous there.
    var first = max(0, (-geometry.before + base - 1) // base)
    var last = min(sizes.width, max(0, length - geometry.before + base - 1) // base)
    var run = max(0, last - first) if base == 1 else 1
    for column in range(first, last, max(1, run)):
        var place = line.unsafe_offset((geometry.before + column * base) * inner)
        fill[kind](place, run * inner, Op.identity[kind]())
    for i in range(geometry.tall):
        var row = source_place(top + i * geometry.step_down, geometry.base_down, sizes.height)
        if row < 0:
            comptime if holes_are_zero:
                for s in range(length * inner):
                    line.unsafe_store(s, line.unsafe_load[width=1](s) + hole)
            continue
        for column in range(first, last, max(1, run)):
            combine_row[Op, dtype, turns](
                line.unsafe_offset((geometry.before + column * base) * inner),
                image.unsafe_offset((row * sizes.width + column) * inner),
                run * inner,
                turn,
            )
    # Vectors lie along the windows where `inner` is 1, else along `inner`.
    var count = sizes.columns if inner == 1 else inner
    var along = geometry.across if inner == 1 else 1
    var step = geometry.step_across * inner
    for window in range(1 if inner == 1 else sizes.columns):
        var begin = line.unsafe_offset(window * geometry.across * inner)
        var out_line = target.unsafe_offset(window * inner)
        var i = 0
        if along <= 2:
            while i + lanes <= count:
                var some = begin.unsafe_offset(i * along)
                var total = (
                    fold_line[Op, kind, lanes, 2](some, step, geometry.wide) if along
                    == 2 else fold_line[Op, kind, lanes, 1](some, step, geometry.wide)
                )
                out_line.unsafe_store(i, turned[turns](rounded_to[dtype](total), turn))
                i += lanes
        while i < count:
            var total = fold_line[Op, kind, 1, 1](
                begin.unsafe_offset(i * along), step, geometry.wide
            )
            out_line.unsafe_store(i, turned[turns](rounded_to[dtype](total), turn))
            i += 1


@fieldwise_init
struct WindowRows[Op: Reducer, dtype: DType, holes_are_zero: Bool](Tasks):
    """The tasks of reduce_windows."""

    var x: Held[Self.dtype]
    var result: Held[Self.dtype]
    var sizes: Sizes
    var geometry: Geometry
    var turn: Scalar[Self.dtype]
    var items: Int
    var tasks: Int

    def run(self, task: Int):
        comptime kind = accumulated[Self.dtype]()
        comptime lanes = simd_width_of[kind]()
        var x = self.x.as_unsafe_any_origin()
        var result = self.result.as_unsafe_any_origin()
        var begin = chunk_begin(task, self.tasks, self.items)
        var end = chunk_begin(task + 1, self.tasks, self.items)
        if begin == end:
            return
        var length = (self.sizes.columns - 1) * self.geometry.across + 1
        length += (self.geometry.wide - 1) * self.geometry.step_across
        var area = self.sizes.height * self.sizes.width * self.sizes.inner
        var scratch = List[Scalar[kind]](length=length * self.sizes.inner + 2 * lanes, fill=0)
        for item in range(begin, end):
            window_row[Self.Op, Self.dtype, Self.holes_are_zero](
                result.unsafe_offset(item * self.sizes.columns * self.sizes.inner),
                x.unsafe_offset(item // self.sizes.rows * area),
                scratch.unsafe_ptr().as_unsafe_any_origin(),
                length,
                self.geometry,
                item % self.sizes.rows,
                self.sizes,
                self.turn,
            )
        _ = scratch^


@no_inline
def reduce_windows[
    Op: Reducer, dtype: DType, holes_are_zero: Bool
](
    x: Array[dtype],
    result: Array[dtype],
    sizes: Sizes,
    geometry: Geometry,
    threads: Int,
    turn: Scalar[dtype] = 0,
):
    """What each window gives; of extremes of integers that are `turned`."""
    comptime kind = accumulated[dtype]()
    comptime lanes = simd_width_of[kind]()
    var items = sizes.outer * sizes.rows if sizes.columns * sizes.inner > 0 else 0
    var work = items * sizes.columns * sizes.inner * geometry.tall * geometry.wide
    var tasks = task_count(items, work, threads)
    spread(
        WindowRows[Op, dtype, holes_are_zero](
            held(x), held(result), sizes, geometry, turn, items, tasks
        ),
        tasks,
    )


@always_inline
def scatter_lanes[
    Op: Reducer, dtype: DType, lanes: Int, largest: Bool
](
    target: Array[dtype],
    operand: Array[dtype],
    source: Array[dtype],
    geometry: Geometry,
    p: Int,
    q: Int,
    sizes: Sizes,
    turn: Scalar[dtype],
):
    """Adds neighbouring elements of `source` to `target` where one window selects."""
    comptime turns = not dtype.is_floating_point()
    comptime Values = SIMD[dtype, lanes]
    comptime Numbers = SIMD[DType.int32, lanes]
    comptime least = Op.identity[dtype]()
    var top = p * geometry.down - geometry.above
    var left = q * geometry.across - geometry.before
    var best = Values(least)
    var index = Numbers(0)
    for i in range(geometry.tall):
        for j in range(geometry.wide):
            var row = top + i
            var column = left + j
            var current = Values(least)
            if row >= 0 and row < sizes.height and column >= 0 and column < sizes.width:
                var place = (row * sizes.width + column) * sizes.inner
                current = turned[turns](operand.unsafe_load[width=lanes](place), turn)
            if i + j == 0:
                best = current
                continue
            # Not the other comparison: after a NaN comes the next element.
            comptime if largest:
                var stays = best.ge(current)
                best = stays.select(best, current)
                index = stays.select(index, Numbers(Int32(i * geometry.wide + j)))
            else:
                var stays = best.le(current)
                best = stays.select(best, current)
                index = stays.select(index, Numbers(Int32(i * geometry.wide + j)))
    var value = source.unsafe_load[width=lanes](0)
    for i in range(geometry.tall):
        for j in range(geometry.wide):
            var row = top + i
            var column = left + j
            if row >= 0 and row < sizes.height and column >= 0 and column < sizes.width:
                var place = (row * sizes.width + column) * sizes.inner
                var hit = index.eq(Numbers(Int32(i * geometry.wide + j)))
                var old = target.unsafe_load[width=lanes](place)
                target.unsafe_store(place, hit.select(old + value, old))


@fieldwise_init
struct Selection[Op: Reducer, dtype: DType, largest: Bool](Tasks):
    """The tasks of scatter_windows."""

    var x: Held[Self.dtype]
    var updates: Held[Self.dtype]
    var result: Held[Self.dtype]
    var sizes: Sizes
    var geometry: Geometry
    var turn: Scalar[Self.dtype]
    var area: Int
    var tasks: Int

    def run(self, task: Int):
        comptime lanes = simd_width_of[Self.dtype]()
        var x = self.x.as_unsafe_any_origin()
        var updates = self.updates.as_unsafe_any_origin()
        var result = self.result.as_unsafe_any_origin()
        var begin = chunk_begin(task, self.tasks, self.sizes.outer)
        for n in range(begin, chunk_begin(task + 1, self.tasks, self.sizes.outer)):
            var image = x.unsafe_offset(n * self.area)
            var target = result.unsafe_offset(n * self.area)
            fill_zeros[Self.dtype](target, self.area)
            for p in range(self.sizes.rows):
                for q in range(self.sizes.columns):
                    var window = (n * self.sizes.rows + p) * self.sizes.columns + q
                    var update = updates.unsafe_offset(window * self.sizes.inner)
                    var c = 0
                    while c + lanes <= self.sizes.inner:
                        scatter_lanes[Self.Op, Self.dtype, lanes, Self.largest](
                            target.unsafe_offset(c),
                            image.unsafe_offset(c),
                            update.unsafe_offset(c),
                            self.geometry,
                            p,
                            q,
                            self.sizes,
                            self.turn,
                        )
                        c += lanes
                    while c < self.sizes.inner:
                        scatter_lanes[Self.Op, Self.dtype, 1, Self.largest](
                            target.unsafe_offset(c),
                            image.unsafe_offset(c),
                            update.unsafe_offset(c),
                            self.geometry,
                            p,
                            q,
                            self.sizes,
                            self.turn,
                        )
                        c += 1


@no_inline
def scatter_windows[
    Op: Reducer, dtype: DType, largest: Bool
](
    x: Array[dtype],
    updates: Array[dtype],
    result: Array[dtype],
    sizes: Sizes,
    geometry: Geometry,
    threads: Int,
    turn: Scalar[dtype] = 0,
):
    """Adds each update where its window of `x` has its extreme; of integers as `turned`."""
    comptime lanes = simd_width_of[dtype]()
    var area = sizes.height * sizes.width * sizes.inner
    var tasks = task_count(sizes.outer, sizes.outer * area, threads)
    spread(
        Selection[Op, dtype, largest](
            held(x), held(updates), held(result), sizes, geometry, turn, area, tasks
        ),
        tasks,
    )
