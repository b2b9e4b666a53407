"""Copies of lines of elements, many of which may be short.

A line of three elements fills no vector. Where lines follow one another in the result, each is
written as a whole vector, whose last elements the next line overwrites.
"""
from std.sys.info import simd_width_of, size_of

from .reduction import Array, copy_run

# Elements that are so far apart, or fewer, are picked out of vectors.
comptime NEAR = 4
# Lines of so many elements are written apart from one another without a loop.
comptime FEW = 4


@always_inline
def pick[
    dtype: DType, width: Int, step: Int
](x: Array[dtype]) -> SIMD[dtype, width]:
    """`width` elements that are `step` apart; none behind the last one is read."""
    var picked = SIMD[dtype, width](0)
    comptime for part in range(step):
        comptime first = min(part * width, (width - 1) * step + 1 - width)
        var some = x.unsafe_load[width=width](first)
        comptime for k in range(width):
            comptime if k * step // width == part:
                picked[k] = some[k * step - first]
    return picked


@always_inline
def copy_line[
    dtype: DType
](x: Array[dtype], result: Array[dtype], count: Int, x_step: Int, result_step: Int):
    """Copies elements; steps are in elements."""
    comptime W = 32 // size_of[Scalar[dtype]]()
    var i = 0
    if result_step == 1:
        if x_step == 1:
            # The compiler cannot know that the two do not overlap, and would copy one by one.
            copy_run[dtype](result, x, count)
            return
        if x_step == 0:
            var value = SIMD[dtype, W](x.unsafe_load[width=1](0))
            while i + W <= count:
                result.unsafe_store(i, value)
                i += W
        elif x_step == -1:
            while i + W <= count:
                result.unsafe_store(i, x.unsafe_load[width=W](1 - i - W).reversed())
                i += W
        else:
            comptime for step in range(2, NEAR + 1):
                if x_step == step:
                    while i + W <= count:
                        result.unsafe_store(i, pick[dtype, W, step](x.unsafe_offset(i * step)))
                        i += W
    while i < count:
        result.unsafe_store(i * result_step, x.unsafe_load[width=1](i * x_step))
        i += 1


@always_inline
def copy_packed[
    dtype: DType, width: Int, spread: Bool
](x: Array[dtype], result: Array[dtype], lines: Int, size: Int, x_line: Int) -> Int:
    """Copies lines of `size` elements (of one element, if `spread`) to lines next to one another,
    as vectors; returns how many are done. The last ones are left: vectors would go beyond them."""
    var beyond = width - size
    var safe = lines - (beyond + size - 1) // size
    comptime if not spread:
        safe = min(safe, lines - (beyond + x_line - 1) // x_line)
    for line in range(safe):
        var from_line = x.unsafe_offset(line * x_line)
        comptime if spread:
            result.unsafe_store(
                line * size, SIMD[dtype, width](from_line.unsafe_load[width=1](0))
            )
        else:
            result.unsafe_store(line * size, from_line.unsafe_load[width=width](0))
    return max(safe, 0)


@always_inline
def copy_whole[
    dtype: DType, V: Int
](x: Array[dtype], result: Array[dtype], lines: Int, size: Int, x_line: Int, fills: Bool):
    """Copies lines of `size` elements, `V` or more, or fills them with one element each, to lines
    next to one another. The last vector of a line overlaps the one before."""
    for line in range(lines):
        var from_line = x.unsafe_offset(line * x_line)
        var to_line = result.unsafe_offset(line * size)
        if fills:
            var value = SIMD[dtype, V](from_line.unsafe_load[width=1](0))
            for i in range(0, size - V, V):
                to_line.unsafe_store(i, value)
            to_line.unsafe_store(size - V, value)
        else:
            for i in range(0, size - V, V):
                to_line.unsafe_store(i, from_line.unsafe_load[width=V](i))
            to_line.unsafe_store(size - V, from_line.unsafe_load[width=V](size - V))


def copy_lines[
    dtype: DType
](
    x: Array[dtype],
    result: Array[dtype],
    lines: Int,
    size: Int,
    x_line: Int,
    x_step: Int,
    result_line: Int,
    result_step: Int,
):
    """Copies lines of `size` elements; strides are in elements.

    The result overlaps neither `x` nor itself.
    """
    comptime W = 32 // size_of[Scalar[dtype]]()
    if size == 1:
        copy_line[dtype](x, result, lines, x_line, result_line)
        return
    if lines == 1 or x_line == size * x_step and result_line == size * result_step:
        copy_line[dtype](x, result, lines * size, x_step, result_step)
        return
    comptime V = simd_width_of[dtype]()
    if size >= V and result_line == size and result_step == 1 and (x_step == 0 or x_step == 1):
        copy_whole[dtype, V](x, result, lines, size, x_line, x_step == 0)
        return
    var line = 0
    if size <= W and result_line == size and result_step == 1:
        if x_step == 0:
            if 2 * size <= W:
                line = copy_packed[dtype, W // 2, True](x, result, lines, size, x_line)
            else:
                line = copy_packed[dtype, W, True](x, result, lines, size, x_line)
        elif x_step == 1 and x_line > 0:
            if 2 * size <= W:
                line = copy_packed[dtype, W // 2, False](x, result, lines, size, x_line)
            else:
                line = copy_packed[dtype, W, False](x, result, lines, size, x_line)
    elif size == 2 and x_line == 1 and result_line == 2 and result_step == 1:
        while line + W <= lines:
            var first = x.unsafe_load[width=W](line)
            var second = x.unsafe_load[width=W](line + x_step)
            result.unsafe_store(2 * line, first.interleave(second))
            line += W
    if size <= FEW:
        comptime for few in range(2, FEW + 1):
            if size == few:
                while line < lines:
                    var from_line = x.unsafe_offset(line * x_line)
                    var to_line = result.unsafe_offset(line * result_line)
                    comptime for i in range(few):
                        to_line.unsafe_store(
                            i * result_step, from_line.unsafe_load[width=1](i * x_step)
                        )
                    line += 1
    while line < lines:
        copy_line[dtype](
            x.unsafe_offset(line * x_line),
            result.unsafe_offset(line * result_line),
            size,
            x_step,
            result_step,
        )
        line += 1


@always_inline
def copy_listed[
    dtype: DType
](
    x: Array[dtype],
    result: Array[dtype],
    x_offsets: Pointer[Int, _],
    result_offsets: Pointer[Int, _],
    lines: Int,
    size: Int,
    x_step: Int,
    result_step: Int,
):
    """Copies lines of `size` elements whose offsets are listed; strides are in elements."""
    comptime for few in range(1, FEW + 1):
        if size == few:
            for line in range(lines):
                var from_line = x.unsafe_offset(x_offsets[unsafe_offset=line])
                var to_line = result.unsafe_offset(result_offsets[unsafe_offset=line])
                comptime for i in range(few):
                    to_line.unsafe_store(
                        i * result_step, from_line.unsafe_load[width=1](i * x_step)
                    )
            return
    for line in range(lines):
        copy_line[dtype](
            x.unsafe_offset(x_offsets[unsafe_offset=line]),
            result.unsafe_offset(result_offsets[unsafe_offset=line]),
            size,
            x_step,
            result_step,
        )
