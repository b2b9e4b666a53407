"""Writing rows of a matrix at computed places, in order, so that the last of equal places wins.

x (rows, width), places (count) of int32, updates (count, width) give (rows, width). A place outside
x drops its update.
"""
from std.sys.info import simd_width_of

from .crew import Tasks, spread
from .halves import rounded_to
from .reduction import Array, Held, Reducer, accumulated, chunk_begin, copy_run, held, task_count

# Rows of less are not worth a thread that looks at all places.
comptime WIDE = 16


struct Replacing(Reducer):
    @staticmethod
    @always_inline
    def identity[dtype: DType]() -> Scalar[dtype]:
        return Scalar[dtype](0)

    @staticmethod
    @always_inline
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return y


@always_inline
def update[
    R: Reducer, dtype: DType, width: Int
](target: Array[dtype], source: Array[dtype], column: Int):
    comptime kind = accumulated[dtype]()
    var old = target.unsafe_load[width=width](column).cast[kind]()
    var new = source.unsafe_load[width=width](column).cast[kind]()
    target.unsafe_store(column, rounded_to[dtype](R.combine[kind, width](old, new)))


@fieldwise_init
struct Scatter[R: Reducer, dtype: DType](Tasks):
    """The tasks of scatter."""

    var result: Held[Self.dtype]
    var x: Held[Self.dtype]
    var places: Held[DType.int32]
    var updates: Held[Self.dtype]
    var width: Int
    var count: Int
    var rows: Int
    var tasks: Int

    def run(self, task: Int):
        var result = self.result.as_unsafe_any_origin()
        var x = self.x.as_unsafe_any_origin()
        var places = self.places.as_unsafe_any_origin()
        var updates = self.updates.as_unsafe_any_origin()
        comptime lanes = simd_width_of[Self.dtype]()
        var begin = chunk_begin(task, self.tasks, self.rows)
        var end = chunk_begin(task + 1, self.tasks, self.rows)
        if result != x:
            copy_run[Self.dtype](
                result.unsafe_offset(begin * self.width),
                x.unsafe_offset(begin * self.width),
                (end - begin) * self.width,
            )
        if self.width == 1:
            for item in range(self.count):
                var place = Int(places.unsafe_load[width=1](item))
                if place >= begin and place < end:
                    update[Self.R, Self.dtype, 1](
                        result.unsafe_offset(place), updates.unsafe_offset(item), 0
                    )
            return
        for item in range(self.count):
            var place = Int(places.unsafe_load[width=1](item))
            if place < begin or place >= end:
                continue
            var target = result.unsafe_offset(place * self.width)
            var source = updates.unsafe_offset(item * self.width)
            var column = 0
            while column + lanes <= self.width:
                update[Self.R, Self.dtype, lanes](target, source, column)
                column += lanes
            while column < self.width:
                update[Self.R, Self.dtype, 1](target, source, column)
                column += 1


@no_inline
def scatter[
    R: Reducer, dtype: DType
](
    result: Array[dtype],
    x: Array[dtype],
    places: Array[DType.int32],
    updates: Array[dtype],
    rows: Int,
    width: Int,
    count: Int,
    threads: Int,
):
    """`x`, which may be in place of the result, with its rows updated in order."""
    # Each task has some of the rows, and looks at all places for them.
    var tasks = task_count(rows, count * width, threads if width >= WIDE else 1)
    spread(
        Scatter[R, dtype](
            held(result), held(x), held(places), held(updates), width, count, rows, tasks
        ),
        tasks,
    )
