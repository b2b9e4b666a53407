"""What loops that are one function consist of: sweeps, copies and rows whose sizes are known."""
from std.memory import unsafe_memcpy

from .copies import copy_line
from .reduction import Array


@always_inline
def sweep_fixed[width: Int, n: Int, Body: def[w: Int](Int) -> None](body: Body):
    """Calls `body` for vectors of `width` elements, then of half of it, and so on."""
    comptime full = n // width * width
    for i in range(0, full, width):
        body[width](i)
    comptime if full < n:
        sweep_rest[width // 2, full, n](body)


@always_inline
def sweep_rest[width: Int, begin: Int, end: Int, Body: def[w: Int](Int) -> None](body: Body):
    comptime if begin + width <= end:
        body[width](begin)
        comptime if begin + width < end:
            sweep_rest[width // 2, begin + width, end](body)
    else:
        sweep_rest[width // 2, begin, end](body)


@always_inline
def copy_fixed[
    dtype: DType, count: Int, step: Int, result_step: Int
](x: Array[dtype], result: Array[dtype]):
    """Copies elements that are `step` apart to places that are `result_step` apart."""
    copy_line[dtype](x, result, count, step, result_step)


@always_inline
def copy_unless_there(x: Array[DType.uint8], result: Array[DType.uint8], count: Int):
    if x != result:
        unsafe_memcpy(dest=result, src=x, count=count)


@always_inline
def gather_fixed[
    dtype: DType, index: DType, outer: Int, size: Int, inner: Int, count: Int
](x: Array[dtype], places: Array[index], result: Array[dtype]):
    """Rows of `inner` elements at places that are within bounds, of each of `outer` stacks."""
    comptime if count == 1:
        var place = Int(places.unsafe_load[width=1](0))
        comptime if inner == 1:
            copy_line[dtype](x.unsafe_offset(place), result, outer, size, 1)
        else:
            for stack in range(outer):
                copy_line[dtype](
                    x.unsafe_offset((stack * size + place) * inner),
                    result.unsafe_offset(stack * inner),
                    inner,
                    1,
                    1,
                )
    else:
        for stack in range(outer):
            for k in range(count):
                copy_line[dtype](
                    x.unsafe_offset((stack * size + Int(places.unsafe_load[width=1](k))) * inner),
                    result.unsafe_offset((stack * count + k) * inner),
                    inner,
                    1,
                    1,
                )


@always_inline
def scatter_fixed[
    dtype: DType, rows: Int, width: Int, count: Int, adds: Bool
](
    x: Array[dtype], places: Array[DType.int32], updates: Array[dtype], result: Array[dtype]
):
    """`x`, which may be in place of the result, with rows replaced or added to, in order; a place
    outside drops its update."""
    if x != result:
        unsafe_memcpy(dest=result, src=x, count=rows * width)
    for k in range(count):
        var place = Int(places.unsafe_load[width=1](k))
        if 0 <= place and place < rows:
            var target = result.unsafe_offset(place * width)
            var source = updates.unsafe_offset(k * width)
            comptime if adds:
                for i in range(width):
                    target.unsafe_store(
                        i,
                        target.unsafe_load[width=1](i) + source.unsafe_load[width=1](i),
                    )
            else:
                copy_line[dtype](source, target, width, 1, 1)
