"""Writing rows of a matrix at computed places on any target.

Registered as `maxjax_device_scatter_rows`, with a parameter `kind`: 0 set, 1 add, 2 mul, 3 min,
4 max. x (rows, width), places (count) of int32, updates (at most count, width) give (rows, width).
Each element looks at all places for those of its row, and applies their updates in order: nothing
is written twice, so the result is the same in every run. A place outside x drops its update. It
passes over the blocks of places whose least and greatest one, int32 (blocks), say that none is its
row's.
"""
import extensibility
from extensibility import InputTensor, OutputTensor, foreach
from max.gpu.host import DeviceContext
from std.utils.coord import Coord

from .halves import rounded_to
from .reduction import Array, Maximizing, Minimizing, Multiplying, Reducer, Summing, accumulated
from .scatter import Replacing


@always_inline
def scatter_elements[
    R: Reducer, target: StaticString
](
    result: OutputTensor[rank=2, ...],
    x: InputTensor[dtype=result.dtype, rank=2, ...],
    places: InputTensor[dtype = DType.int32, rank=1, ...],
    least: InputTensor[dtype = DType.int32, rank=1, ...],
    greatest: InputTensor[dtype = DType.int32, rank=1, ...],
    updates: InputTensor[dtype=result.dtype, rank=2, ...],
    context: DeviceContext,
) raises:
    comptime kind = accumulated[result.dtype]()
    var blocks = least.dim_size[0]()
    var block = places.dim_size[0]() // blocks
    var firsts: Array[DType.int32] = least.unsafe_ptr().as_unsafe_any_origin()
    var lasts: Array[DType.int32] = greatest.unsafe_ptr().as_unsafe_any_origin()
    var columns = x.dim_size[1]()
    var rows: Array[DType.int32] = places.unsafe_ptr().as_unsafe_any_origin()
    var sources: Array[result.dtype] = updates.unsafe_ptr().as_unsafe_any_origin()

    @always_inline
    def element[
        width: Int
    ](
        at: Coord
    ) {
        var x, var rows, var firsts, var lasts, var sources, var blocks, var block, var columns
    } -> SIMD[result.dtype, width]:
        var row = Int32(Int(at[0].value()))
        var column = Int(at[1].value())
        var value = x.load[width](at)
        for number in range(blocks):
            if (
                row < firsts.unsafe_load[width=1](number)
                or row > lasts.unsafe_load[width=1](number)
            ):
                continue
            for item in range(number * block, (number + 1) * block):
                if rows.unsafe_load[width=1](item) == row:
                    var update = sources.unsafe_load[width=width](item * columns + column)
                    value = rounded_to[result.dtype](
                        R.combine[kind, width](value.cast[kind](), update.cast[kind]())
                    )
        return value

    foreach[target=target](element, result, context)


@extensibility.register("maxjax_device_scatter_rows")
struct DeviceScatterRows:
    @staticmethod
    def execute[
        kind: Int, target: StaticString
    ](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=2, ...],
        places: InputTensor[dtype = DType.int32, rank=1, ...],
        least: InputTensor[dtype = DType.int32, rank=1, ...],
        greatest: InputTensor[dtype = DType.int32, rank=1, ...],
        updates: InputTensor[dtype=result.dtype, rank=2, ...],
        context: DeviceContext,
    ) raises:
        comptime if kind == 0:
            scatter_elements[Replacing, target](
                result, x, places, least, greatest, updates, context
            )
        elif kind == 1:
            scatter_elements[Summing, target](
                result, x, places, least, greatest, updates, context
            )
        elif kind == 2:
            scatter_elements[Multiplying, target](
                result, x, places, least, greatest, updates, context
            )
        elif kind == 3:
            scatter_elements[Minimizing, target](
                result, x, places, least, greatest, updates, context
            )
        else:
            scatter_elements[Maximizing, target](
                result, x, places, least, greatest, updates, context
            )
