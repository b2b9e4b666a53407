"""Reductions as MAX's graphs call them: over the middle axis of (outer, axis, inner).

Registered as `maxjax_reduce_<name>`, giving (outer, inner), and `maxjax_argmax`, `maxjax_argmin`,
giving (outer, inner) of int32.
"""
import extensibility
from extensibility import InputTensor, OutputTensor
from max.algorithm import parallelize
from max.gpu.host import DeviceContext
from std.runtime import parallelism_level
from std.sys.info import simd_width_of

from .halves import rounded_to
from .reduction import (
    Anding,
    Array,
    Maximizing,
    Minimizing,
    Multiplying,
    Oring,
    Reducer,
    Summing,
    Xoring,
    accumulated,
    chunk_begin,
    position_of_extreme,
    reduce_columns,
    reduce_line,
    stored,
    turn_for,
)

# Less work than this is not worth another thread of MAX's pool, which takes 20 us and more to wake.
comptime POOL_GRAIN = 131072


@always_inline
def pool_task_count(items: Int, work: Int) -> Int:
    return max(1, min(items, min(work // POOL_GRAIN, parallelism_level())))


def reduce_middle[
    Op: Reducer, dtype: DType
](x: Array[dtype], result: Array[dtype], outer: Int, count: Int, inner: Int):
    """Reduces (outer, count, inner) to (outer, inner) on all threads."""
    comptime kind = accumulated[dtype]()
    var work = outer * count * inner
    if inner == 1 and outer >= parallelism_level():
        var tasks = pool_task_count(outer, work)

        def lines(task: Int) {var x, var result, var tasks, var outer, var count}:
            for i in range(chunk_begin(task, tasks, outer), chunk_begin(task + 1, tasks, outer)):
                var value = reduce_line[Op, dtype](x.unsafe_offset(i * count), count)
                result.unsafe_store(i, rounded_to[dtype](value))

        if tasks == 1:  # waking the pool costs more than 10 us
            lines(0)
        else:
            parallelize(lines, tasks)
    elif inner == 1:
        # Few long lines: each is split, and its partial results combined.
        for i in range(outer):
            var tasks = pool_task_count(count, count)
            var partial = List[Scalar[kind]](length=tasks, fill=0)
            var parts = partial.unsafe_ptr()
            var line = x.unsafe_offset(i * count)

            def pieces(task: Int) {var parts, var line, var tasks, var count}:
                var begin = chunk_begin(task, tasks, count)
                var end = chunk_begin(task + 1, tasks, count)
                parts[unsafe_offset=task] = reduce_line[Op, dtype](
                    line.unsafe_offset(begin), end - begin
                )

            if tasks == 1:  # waking the pool costs more than 10 us
                pieces(0)
            else:
                parallelize(pieces, tasks)
            var total = Op.identity[kind]()
            for task in range(tasks):
                total = Op.combine[kind, 1](total, partial[task])
            result.unsafe_store(i, rounded_to[dtype](total))
    else:
        # Tiles of columns, each of whole cache lines where there are enough columns.
        comptime width = simd_width_of[kind]()
        comptime tile = 4 * width
        var tiles = (inner + tile - 1) // tile
        var items = outer * tiles
        var tasks = pool_task_count(items, work)

        def columns(
            task: Int
        ) {var x, var result, var tasks, var tiles, var items, var count, var inner}:
            for item in range(chunk_begin(task, tasks, items), chunk_begin(task + 1, tasks, items)):
                var i = item // tiles
                var begin = (item % tiles) * tile
                var end = min(inner, begin + tile)
                var source = x.unsafe_offset(i * count * inner)
                var target = result.unsafe_offset(i * inner)
                if end - begin == tile:
                    reduce_columns[Op, dtype, width, 4](
                        source.unsafe_offset(begin), target.unsafe_offset(begin), count, inner
                    )
                    continue
                while begin + width <= end:
                    reduce_columns[Op, dtype, width, 1](
                        source.unsafe_offset(begin), target.unsafe_offset(begin), count, inner
                    )
                    begin += width
                while begin < end:
                    reduce_columns[Op, dtype, 1, 1](
                        source.unsafe_offset(begin), target.unsafe_offset(begin), count, inner
                    )
                    begin += 1

        if tasks == 1:  # waking the pool costs more than 10 us
            columns(0)
        else:
            parallelize(columns, tasks)


@always_inline
def reduce_tensor[
    Op: Reducer
](result: OutputTensor[rank=2, ...], x: InputTensor[dtype=result.dtype, rank=3, ...]):
    comptime kind = stored[result.dtype]()
    reduce_middle[Op, kind](
        x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
        result.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
        x.dim_size[0](),
        x.dim_size[1](),
        x.dim_size[2](),
    )


@extensibility.register("maxjax_reduce_sum")
struct ReduceSum:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        reduce_tensor[Summing](result, x)


@extensibility.register("maxjax_reduce_prod")
struct ReduceProd:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        reduce_tensor[Multiplying](result, x)


@extensibility.register("maxjax_reduce_max")
struct ReduceMax:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        reduce_tensor[Maximizing](result, x)


@extensibility.register("maxjax_reduce_min")
struct ReduceMin:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        reduce_tensor[Minimizing](result, x)


@extensibility.register("maxjax_reduce_and")
struct ReduceAnd:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        reduce_tensor[Anding](result, x)


@extensibility.register("maxjax_reduce_or")
struct ReduceOr:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        reduce_tensor[Oring](result, x)


@extensibility.register("maxjax_reduce_xor")
struct ReduceXor:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        reduce_tensor[Xoring](result, x)


@always_inline
def position_tensor[
    largest: Bool
](result: OutputTensor[dtype = DType.int32, rank=2, ...], x: InputTensor[rank=3, ...]):
    comptime kind = stored[x.dtype]()
    position_of_extreme[kind](
        x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
        result.unsafe_ptr().as_unsafe_any_origin(),
        x.dim_size[0](),
        x.dim_size[1](),
        x.dim_size[2](),
        parallelism_level(),
        turn_for[largest, kind, kind](),
    )


@extensibility.register("maxjax_argmax")
struct Argmax:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[dtype = DType.int32, rank=2, ...],
        x: InputTensor[rank=3, ...],
        context: DeviceContext,
    ) raises:
        position_tensor[True](result, x)


@extensibility.register("maxjax_argmin")
struct Argmin:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[dtype = DType.int32, rank=2, ...],
        x: InputTensor[rank=3, ...],
        context: DeviceContext,
    ) raises:
        position_tensor[False](result, x)
