"""Windows that slide over the two middle axes of (outer, height, width, inner).

Every kernel takes an int32 vector `geometry`: the window's size, its strides, the padding before
and the dilation of the window, then that of the operand, each as (along height, along width).

Registered as `maxjax_unfold`, which gives the windows' elements, `maxjax_window_<kind>`, which reduces
each window, and `maxjax_select_scatter_<comparison>`, the derivative of its extremes.
"""
import extensibility
from extensibility import InputTensor, OutputTensor
from max.algorithm import parallelize
from max.gpu.host import DeviceContext
from std.sys.info import simd_width_of

from .reduction import (
    Array,
    Maximizing,
    Minimizing,
    Reducer,
    Summing,
    accumulated,
    chunk_begin,
    copy_run,
    stored,
    task_count,
)


@always_inline
def source_place(index: Int, dilation: Int, size: Int) -> Int:
    """Where a place of the dilated operand is in the operand; -1 if it is padding or a hole."""
    if index < 0 or index >= (size - 1) * dilation + 1:
        return -1
    if dilation == 1:
        return index
    return index // dilation if index % dilation == 0 else -1


@always_inline
def fill_zeros[dtype: DType](target: Array[dtype], count: Int):
    comptime lanes = simd_width_of[dtype]()
    var i = 0
    while i + lanes <= count:
        target.unsafe_store(i, SIMD[dtype, lanes](0))
        i += lanes
    while i < count:
        target.unsafe_store(i, Scalar[dtype](0))
        i += 1


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


@extensibility.register("maxjax_unfold")
struct Unfold:
    """The windows side by side: (outer, height, width, inner) to (outer, rows, columns, window
    size times inner), with zeros for padding and holes."""

    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        comptime kind = stored[result.dtype]()
        var height, width, inner = x.dim_size[1](), x.dim_size[2](), x.dim_size[3]()
        var rows, columns, depth = (
            result.dim_size[1](),
            result.dim_size[2](),
            result.dim_size[3](),
        )
        var source = x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin()
        var unfolded = result.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin()
        var numbers = geometry.unsafe_ptr().as_unsafe_any_origin()
        var items = x.dim_size[0]() * rows
        var tasks = task_count(items, items * columns * depth)

        def part(
            task: Int
        ) {
            var source,
            var unfolded,
            var numbers,
            var tasks,
            var items,
            var rows,
            var columns,
            var depth,
            var height,
            var width,
            var inner,
        }:
            var tall = Int(numbers.unsafe_load[width=1](0))
            var wide = Int(numbers.unsafe_load[width=1](1))
            var down = Int(numbers.unsafe_load[width=1](2))
            var across = Int(numbers.unsafe_load[width=1](3))
            var above = Int(numbers.unsafe_load[width=1](4))
            var before = Int(numbers.unsafe_load[width=1](5))
            var step_down = Int(numbers.unsafe_load[width=1](6))
            var step_across = Int(numbers.unsafe_load[width=1](7))
            var base_down = Int(numbers.unsafe_load[width=1](8))
            var base_across = Int(numbers.unsafe_load[width=1](9))
            var run = wide * inner
            for item in range(chunk_begin(task, tasks, items), chunk_begin(task + 1, tasks, items)):
                var n, p = item // rows, item % rows
                for i in range(tall):
                    var row = source_place(p * down - above + i * step_down, base_down, height)
                    var out = unfolded.unsafe_offset(item * columns * depth + i * run)
                    if row < 0:
                        for q in range(columns):
                            fill_zeros[kind](out.unsafe_offset(q * depth), run)
                        continue
                    var line = source.unsafe_offset((n * height + row) * width * inner)
                    for q in range(columns):
                        unfold_row[kind](
                            out.unsafe_offset(q * depth),
                            line,
                            q * across - before,
                            wide,
                            step_across,
                            base_across,
                            width,
                            inner,
                        )

        if tasks == 1:  # waking the pool costs more than 10 us
            part(0)
        else:
            parallelize(part, tasks)


@always_inline
def window_lanes[
    Op: Reducer, dtype: DType, lanes: Int, holes_are_zero: Bool
](
    target: Array[dtype],
    source: Array[dtype],
    numbers: Array[DType.int32],
    p: Int,
    q: Int,
    height: Int,
    width: Int,
    inner: Int,
):
    """One window of neighbouring elements of `inner`."""
    comptime kind = accumulated[dtype]()
    var tall = Int(numbers.unsafe_load[width=1](0))
    var wide = Int(numbers.unsafe_load[width=1](1))
    var top = p * Int(numbers.unsafe_load[width=1](2)) - Int(numbers.unsafe_load[width=1](4))
    var left = q * Int(numbers.unsafe_load[width=1](3)) - Int(numbers.unsafe_load[width=1](5))
    var total = SIMD[kind, lanes](Op.identity[kind]())
    for i in range(tall):
        var row = source_place(
            top + i * Int(numbers.unsafe_load[width=1](6)),
            Int(numbers.unsafe_load[width=1](8)),
            height,
        )
        for j in range(wide):
            var column = source_place(
                left + j * Int(numbers.unsafe_load[width=1](7)),
                Int(numbers.unsafe_load[width=1](9)),
                width,
            )
            if row >= 0 and column >= 0:
                var value = source.unsafe_load[width=lanes]((row * width + column) * inner)
                total = Op.combine[kind, lanes](total, value.cast[kind]())
            else:
                comptime if holes_are_zero:
                    total = Op.combine[kind, lanes](total, SIMD[kind, lanes](0))
    target.unsafe_store(0, total.cast[dtype]())


@always_inline
def window_tensor[
    Op: Reducer, holes_are_zero: Bool
](
    result: OutputTensor[rank=4, ...],
    x: InputTensor[dtype=result.dtype, rank=4, ...],
    geometry: InputTensor[dtype = DType.int32, rank=1, ...],
):
    comptime kind = result.dtype
    comptime lanes = simd_width_of[accumulated[kind]()]()
    var height, width, inner = x.dim_size[1](), x.dim_size[2](), x.dim_size[3]()
    var rows, columns = result.dim_size[1](), result.dim_size[2]()
    var source = rebind[Array[kind]](x.unsafe_ptr().as_unsafe_any_origin())
    var reduced = rebind[Array[kind]](result.unsafe_ptr().as_unsafe_any_origin())
    var numbers = geometry.unsafe_ptr().as_unsafe_any_origin()
    var items = x.dim_size[0]() * rows
    var tasks = task_count(items, x.dim_size[0]() * height * width * inner)

    def part(
        task: Int
    ) {
        var source,
        var reduced,
        var numbers,
        var tasks,
        var items,
        var rows,
        var columns,
        var height,
        var width,
        var inner,
    }:
        for item in range(chunk_begin(task, tasks, items), chunk_begin(task + 1, tasks, items)):
            var n, p = item // rows, item % rows
            var image = source.unsafe_offset(n * height * width * inner)
            for q in range(columns):
                var out = reduced.unsafe_offset((item * columns + q) * inner)
                var c = 0
                while c + lanes <= inner:
                    window_lanes[Op, kind, lanes, holes_are_zero](
                        out.unsafe_offset(c),
                        image.unsafe_offset(c),
                        numbers,
                        p,
                        q,
                        height,
                        width,
                        inner,
                    )
                    c += lanes
                while c < inner:
                    window_lanes[Op, kind, 1, holes_are_zero](
                        out.unsafe_offset(c),
                        image.unsafe_offset(c),
                        numbers,
                        p,
                        q,
                        height,
                        width,
                        inner,
                    )
                    c += 1

    if tasks == 1:  # waking the pool costs more than 10 us
        part(0)
    else:
        parallelize(part, tasks)


@extensibility.register("maxjax_window_sum")
struct WindowSum:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        window_tensor[Summing, True](result, x, geometry)


@extensibility.register("maxjax_window_max")
struct WindowMax:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        window_tensor[Maximizing, False](result, x, geometry)


@extensibility.register("maxjax_window_min")
struct WindowMin:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        window_tensor[Minimizing, False](result, x, geometry)


@always_inline
def scatter_lanes[
    Op: Reducer, dtype: DType, lanes: Int, largest: Bool
](
    target: Array[dtype],
    operand: Array[dtype],
    source: Array[dtype],
    numbers: Array[DType.int32],
    p: Int,
    q: Int,
    height: Int,
    width: Int,
    inner: Int,
):
    """Adds neighbouring elements of `source` to `target` where one window selects."""
    comptime Values = SIMD[dtype, lanes]
    comptime Numbers = SIMD[DType.int32, lanes]
    comptime least = Op.identity[dtype]()
    var tall = Int(numbers.unsafe_load[width=1](0))
    var wide = Int(numbers.unsafe_load[width=1](1))
    var top = p * Int(numbers.unsafe_load[width=1](2)) - Int(numbers.unsafe_load[width=1](4))
    var left = q * Int(numbers.unsafe_load[width=1](3)) - Int(numbers.unsafe_load[width=1](5))
    var best = Values(least)
    var index = Numbers(0)
    for i in range(tall):
        for j in range(wide):
            var row, column = top + i, left + j
            var current = Values(least)
            if row >= 0 and row < height and column >= 0 and column < width:
                current = operand.unsafe_load[width=lanes]((row * width + column) * inner)
            if i + j == 0:
                best = current
                continue
            # Not the other comparison: after a NaN comes the next element.
            comptime if largest:
                var stays = best.ge(current)
                best = stays.select(best, current)
                index = stays.select(index, Numbers(Int32(i * wide + j)))
            else:
                var stays = best.le(current)
                best = stays.select(best, current)
                index = stays.select(index, Numbers(Int32(i * wide + j)))
    var value = source.unsafe_load[width=lanes](0)
    for i in range(tall):
        for j in range(wide):
            var row, column = top + i, left + j
            if row >= 0 and row < height and column >= 0 and column < width:
                var place = (row * width + column) * inner
                var hit = index.eq(Numbers(Int32(i * wide + j)))
                var old = target.unsafe_load[width=lanes](place)
                target.unsafe_store(place, hit.select(old + value, old))


@always_inline
def scatter_tensor[
    Op: Reducer, largest: Bool
](
    result: OutputTensor[rank=4, ...],
    x: InputTensor[dtype=result.dtype, rank=4, ...],
    updates: InputTensor[dtype=result.dtype, rank=4, ...],
    geometry: InputTensor[dtype = DType.int32, rank=1, ...],
):
    comptime kind = result.dtype
    comptime lanes = simd_width_of[kind]()
    var height, width, inner = x.dim_size[1](), x.dim_size[2](), x.dim_size[3]()
    var rows, columns = updates.dim_size[1](), updates.dim_size[2]()
    var operand = rebind[Array[kind]](x.unsafe_ptr().as_unsafe_any_origin())
    var source = rebind[Array[kind]](updates.unsafe_ptr().as_unsafe_any_origin())
    var scattered = rebind[Array[kind]](result.unsafe_ptr().as_unsafe_any_origin())
    var numbers = geometry.unsafe_ptr().as_unsafe_any_origin()
    var outer = x.dim_size[0]()
    var tasks = task_count(outer, outer * height * width * inner)

    def part(
        task: Int
    ) {
        var operand,
        var source,
        var scattered,
        var numbers,
        var tasks,
        var outer,
        var rows,
        var columns,
        var height,
        var width,
        var inner,
    }:
        var area = height * width * inner
        for n in range(chunk_begin(task, tasks, outer), chunk_begin(task + 1, tasks, outer)):
            var image = operand.unsafe_offset(n * area)
            var out = scattered.unsafe_offset(n * area)
            fill_zeros[kind](out, area)
            for p in range(rows):
                for q in range(columns):
                    var update = source.unsafe_offset(((n * rows + p) * columns + q) * inner)
                    var c = 0
                    while c + lanes <= inner:
                        scatter_lanes[Op, kind, lanes, largest](
                            out.unsafe_offset(c),
                            image.unsafe_offset(c),
                            update.unsafe_offset(c),
                            numbers,
                            p,
                            q,
                            height,
                            width,
                            inner,
                        )
                        c += lanes
                    while c < inner:
                        scatter_lanes[Op, kind, 1, largest](
                            out.unsafe_offset(c),
                            image.unsafe_offset(c),
                            update.unsafe_offset(c),
                            numbers,
                            p,
                            q,
                            height,
                            width,
                            inner,
                        )
                        c += 1

    if tasks == 1:  # waking the pool costs more than 10 us
        part(0)
    else:
        parallelize(part, tasks)


@extensibility.register("maxjax_select_scatter_ge")
struct SelectScatterGe:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        updates: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        scatter_tensor[Maximizing, True](result, x, updates, geometry)


@extensibility.register("maxjax_select_scatter_le")
struct SelectScatterLe:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        updates: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        scatter_tensor[Minimizing, False](result, x, updates, geometry)
