"""Copies between strided arrays, filling, and transposition.

`copy_<bits>`: x, out | rank, sizes, strides of x, strides of out, threads
`fill_<bits>`: one element, out | rank, sizes, strides of out, threads
`transpose_<bits>`: x, out | outer, rows, columns, inner, threads
`read_window_<bits>`: x, starts (int64), out | rank, sizes of the window, strides of x, strides of
the window, sizes of x, elements of x, 1, threads
`write_window_<bits>`: x, starts (int64), window, out, which may be x | the same
"""
from kernels.arrangement import STRIP, transpose_matrix, transpose_middle
from kernels.calling import Args, Slots, integer, operand
from kernels.copies import FEW, copy_line, copy_lines, copy_listed
from kernels.crew import Tasks, spread
from kernels.reduction import GRAIN, Array, Held, chunk_begin, held, task_count


@fieldwise_init
struct Dimension(TrivialRegisterPassable):
    """A dimension of a copy: its size, its stride in `x`, its stride in the result."""

    var size: Int
    var x: Int
    var result: Int


struct Space(Movable):
    """The dimensions of a copy, as few as describe it, in the order of the result's strides."""

    var sizes: List[Int]
    var x: List[Int]  # strides
    var result: List[Int]

    def __init__(out self, sizes: Args, x: Args, out_strides: Args, rank: Int):
        self.sizes = List[Int](capacity=rank + 1)
        self.x = List[Int](capacity=rank + 1)
        self.result = List[Int](capacity=rank + 1)
        for d in range(rank):
            var size = integer(sizes, d)
            if size == 1:
                continue
            # In the order of the strides of the result, the largest first.
            var place = len(self.sizes)
            while place > 0 and abs(self.result[place - 1]) < abs(integer(out_strides, d)):
                place -= 1
            self.sizes.insert(place, size)
            self.x.insert(place, integer(x, d))
            self.result.insert(place, integer(out_strides, d))
        var d = len(self.sizes) - 1
        while d > 0:
            var size = self.sizes[d]
            if self.x[d - 1] == size * self.x[d] and self.result[d - 1] == size * self.result[d]:
                self.sizes[d - 1] *= size
                self.x[d - 1] = self.x[d]
                self.result[d - 1] = self.result[d]
                _ = self.pop(d)
            d -= 1
        if len(self.sizes) == 0:
            self.append(Dimension(1, 0, 0))

    def pop(mut self, d: Int) -> Dimension:
        """Takes a dimension out."""
        return Dimension(self.sizes.pop(d), self.x.pop(d), self.result.pop(d))

    def append(mut self, last: Dimension):
        self.sizes.append(last.size)
        self.x.append(last.x)
        self.result.append(last.result)

    def count(self) -> Int:
        var count = 1
        for d in range(len(self.sizes)):
            count *= self.sizes[d]
        return count

    def list_lines(mut self, mut x: List[Int], mut result: List[Int]):
        """Makes the last dimension one that is worth a loop: the longest, or the last ones together.

        Of several together `x` and `result`, which are empty, become lists of the lines' offsets,
        and the strides are 0.
        """
        var longest = len(self.sizes) - 1
        for d in range(longest - 1, -1, -1):
            if self.sizes[longest] < MANY and self.sizes[d] > self.sizes[longest]:
                longest = d
        if longest < 0 or self.sizes[longest] >= MANY or len(self.sizes) == 1:
            if longest >= 0 and longest < len(self.sizes) - 1:
                self.append(self.pop(longest))
            return
        x.append(0)
        result.append(0)
        while len(self.sizes) > 0 and len(x) < LISTED:
            var next = self.pop(len(self.sizes) - 1)
            # Those so far are the last ones, and go fastest.
            var count = len(x)
            x.reserve(next.size * count)
            result.reserve(next.size * count)
            for i in range(1, next.size):
                for k in range(count):
                    x.append(x[k] + i * next.x)
                    result.append(result[k] + i * next.result)
        self.append(Dimension(len(x), 0, 0))


# Lines along one dimension that are worth a loop of their own, and lines of several dimensions whose
# offsets are listed.
comptime MANY = 16
comptime LISTED = 64
# Fewer rows or columns are not transposed tile by tile.
comptime FEWEST_TRANSPOSED = 8


@fieldwise_init
struct CopiedPieces[dtype: DType](Tasks):
    """The tasks of copy_strided."""

    var x: Held[Self.dtype]
    var result: Held[Self.dtype]
    var sizes: Pointer[Int, MutUntrackedOrigin]
    var x_strides: Pointer[Int, MutUntrackedOrigin]
    var out_strides: Pointer[Int, MutUntrackedOrigin]
    var x_offsets: Pointer[Int, MutUntrackedOrigin]
    var out_offsets: Pointer[Int, MutUntrackedOrigin]
    var listed: Bool
    var rank: Int
    var size: Int
    var x_stride: Int
    var out_stride: Int
    var rows_out: Int
    var transposed: Bool
    var length: Int
    var piece: Int
    var pieces: Int
    var items: Int
    var tasks: Int

    def run(self, task: Int):
        var x = self.x.as_unsafe_any_origin()
        var result = self.result.as_unsafe_any_origin()
        var sizes = self.sizes
        var x_strides = self.x_strides
        var out_strides = self.out_strides
        var rank = self.rank
        var size = self.size
        var x_stride = self.x_stride
        var out_stride = self.out_stride
        var rows_out = self.rows_out
        var transposed = self.transposed
        var length = self.length
        var piece = self.piece
        var pieces = self.pieces
        var items = self.items
        var tasks = self.tasks
        var index = List[Int](length=rank, fill=0)
        var item = chunk_begin(task, tasks, items)
        var rest = item // pieces
        var from_point = x
        var to_point = result
        for d in range(rank - 1, -1, -1):
            index[d] = rest % sizes[unsafe_offset=d]
            rest //= sizes[unsafe_offset=d]
            from_point = from_point.unsafe_offset(index[d] * x_strides[unsafe_offset=d])
            to_point = to_point.unsafe_offset(index[d] * out_strides[unsafe_offset=d])
        var k = item % pieces
        var end = chunk_begin(task + 1, tasks, items)
        while item < end:
            var done = 1
            if pieces == 1 and rank > 0 and not transposed:
                # Lines next to each other, which may be short.
                done = min(sizes[unsafe_offset=rank - 1] - index[rank - 1], end - item)
                if self.listed:
                    copy_listed[Self.dtype](
                        from_point,
                        to_point,
                        self.x_offsets.unsafe_offset(index[rank - 1]),
                        self.out_offsets.unsafe_offset(index[rank - 1]),
                        done,
                        size,
                        x_stride,
                        out_stride,
                    )
                var step = x_strides[unsafe_offset=rank - 1]
                var to_step = out_strides[unsafe_offset=rank - 1]
                if not self.listed:
                    copy_lines[Self.dtype](
                        from_point, to_point, done, size, step, x_stride, to_step, out_stride
                    )
                index[rank - 1] += done - 1
                from_point = from_point.unsafe_offset((done - 1) * step)
                to_point = to_point.unsafe_offset((done - 1) * to_step)
            else:
                var begin = k * piece
                var count = min(piece, length - begin)
                if transposed:
                    transpose_matrix[Self.dtype](
                        from_point.unsafe_offset(begin),
                        to_point.unsafe_offset(begin * rows_out),
                        size,
                        count,
                        x_stride,
                        rows_out,
                    )
                else:
                    copy_line[Self.dtype](
                        from_point.unsafe_offset(begin * x_stride),
                        to_point.unsafe_offset(begin * out_stride),
                        count,
                        x_stride,
                        out_stride,
                    )
            item += done
            k += 1
            if k < pieces:
                continue
            k = 0
            for d in range(rank - 1, -1, -1):
                index[d] += 1
                from_point = from_point.unsafe_offset(x_strides[unsafe_offset=d])
                to_point = to_point.unsafe_offset(out_strides[unsafe_offset=d])
                if index[d] < sizes[unsafe_offset=d]:
                    break
                from_point = from_point.unsafe_offset(-index[d] * x_strides[unsafe_offset=d])
                to_point = to_point.unsafe_offset(-index[d] * out_strides[unsafe_offset=d])
                index[d] = 0


def copy_strided[
    dtype: DType
](x: Array[dtype], result: Array[dtype], var space: Space, threads: Int):
    var total = space.count()
    if total == 0:
        return
    var line = space.pop(len(space.sizes) - 1)
    var size = line.size
    var x_stride = line.x
    var out_stride = line.result
    # A matrix, of which `x` is contiguous along the rows and the result along the columns?
    var rows = Dimension(1, 0, 0)
    var transposed = False
    if out_stride == 1 and x_stride != 1 and size >= FEWEST_TRANSPOSED:
        for d in range(len(space.sizes)):
            if space.x[d] == 1 and space.sizes[d] >= FEWEST_TRANSPOSED:
                rows = space.pop(d)
                transposed = True
                break
    var x_offsets = List[Int]()
    var out_offsets = List[Int]()
    if not transposed and size <= GRAIN:
        space.list_lines(x_offsets, out_offsets)
    # What goes to threads are pieces: a point of the other dimensions, and a part of the line or
    # of the matrix.
    var points = space.count()
    var length = rows.size if transposed else size
    var piece = STRIP if transposed else max(1, min(length, GRAIN))
    var pieces = (length + piece - 1) // piece
    var items = points * pieces
    # Copying is bound by the caches, each of which is one core's.
    var tasks = task_count(items, total // (2 if transposed else 4), threads)
    var rank = len(space.sizes)
    var sizes = space.sizes.unsafe_ptr().unsafe_origin_cast[MutUntrackedOrigin]()
    var x_strides = space.x.unsafe_ptr().unsafe_origin_cast[MutUntrackedOrigin]()
    var out_strides = space.result.unsafe_ptr().unsafe_origin_cast[MutUntrackedOrigin]()

    spread(
        CopiedPieces[dtype](
            held(x),
            held(result),
            sizes,
            x_strides,
            out_strides,
            x_offsets.unsafe_ptr().unsafe_origin_cast[MutUntrackedOrigin](),
            out_offsets.unsafe_ptr().unsafe_origin_cast[MutUntrackedOrigin](),
            len(x_offsets) > 0,
            rank,
            size,
            x_stride,
            out_stride,
            rows.result,
            transposed,
            length,
            piece,
            pieces,
            items,
            tasks,
        ),
        tasks,
    )
    _ = space^
    _ = x_offsets^
    _ = out_offsets^


def copy_plain[
    dtype: DType, spread: Bool
](
    x: Array[dtype], result: Array[dtype], sizes: Args, x_strides: Args, out_strides: Args,
    rank: Int
) -> Bool:
    """Copies few elements straight away, where they are lines that are equally far apart; returns
    whether they are. What else copies need, to be fast in all cases, takes longer than these do.

    Parameters:
      spread: `x` is one element.
    """
    var size = 1
    var x_step = 0
    var step = 1
    var lines = 1
    var x_line = 0
    var line = 0
    for d in range(rank - 1, -1, -1):
        var count = integer(sizes, d)
        if count == 1:
            continue
        var x_stride = 0
        comptime if not spread:
            x_stride = integer(x_strides, d)
        var stride = integer(out_strides, d)
        if size == 1:
            size = count
            x_step = x_stride
            step = stride
        elif lines == 1:
            if x_stride == size * x_step and stride == size * step:
                size *= count
            else:
                lines = count
                x_line = x_stride
                line = stride
        elif x_stride == lines * x_line and stride == lines * line:
            lines *= count
        else:
            return False
    if size * lines > GRAIN or size == 0 or lines > 1 and (
        step != 1 or (x_step != 0 and x_step != 1) or FEW < size and size < MANY and line != size
    ):
        return False
    copy_lines[dtype](x, result, lines, size, x_line, x_step, line, step)
    return True


def copy[dtype: DType](slots: Slots, args: Args):
    var rank = integer(args, 4)
    var sizes = args.unsafe_offset(5)
    var x_strides = sizes.unsafe_offset(rank)
    var out_strides = x_strides.unsafe_offset(rank)
    if copy_plain[dtype, False](
        operand[dtype](slots, args, 0), operand[dtype](slots, args, 1),
        sizes, x_strides, out_strides, rank,
    ):
        return
    copy_strided[dtype](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        Space(sizes, x_strides, out_strides, rank),
        integer(out_strides, rank),
    )


def fill[dtype: DType](slots: Slots, args: Args):
    var rank = integer(args, 4)
    var sizes = args.unsafe_offset(5)
    var out_strides = sizes.unsafe_offset(rank)
    if copy_plain[dtype, True](
        operand[dtype](slots, args, 0), operand[dtype](slots, args, 1),
        sizes, sizes, out_strides, rank,
    ):
        return
    var zeros = List[Int64](length=max(1, rank), fill=0)
    copy_strided[dtype](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        Space(sizes, zeros.unsafe_ptr().as_unsafe_any_origin(), out_strides, rank),
        integer(out_strides, rank),
    )
    _ = zeros^


def window_begin(starts: Array[DType.int64], args: Args) -> Int:
    """The first element of a window in x, as near to `starts` as the whole window fits."""
    var rank = integer(args, 0)
    var sizes = args.unsafe_offset(1)
    var x_strides = sizes.unsafe_offset(rank)
    var x_sizes = x_strides.unsafe_offset(2 * rank)
    var begin = 0
    for d in range(rank):
        var last = integer(x_sizes, d) - integer(sizes, d)
        var start = max(0, min(last, Int(starts.unsafe_load[width=1](d))))
        begin += start * integer(x_strides, d)
    return begin


def read_window[dtype: DType](slots: Slots, args: Args):
    var integers = args.unsafe_offset(6)
    var rank = integer(integers, 0)
    var sizes = integers.unsafe_offset(1)
    var x_strides = sizes.unsafe_offset(rank)
    var begin = window_begin(operand[DType.int64](slots, args, 1), integers)
    copy_strided[dtype](
        operand[dtype](slots, args, 0).unsafe_offset(begin),
        operand[dtype](slots, args, 2),
        Space(sizes, x_strides, x_strides.unsafe_offset(rank), rank),
        integer(integers, 4 * rank + 3),
    )


def write_window[dtype: DType](slots: Slots, args: Args):
    var integers = args.unsafe_offset(8)
    var rank = integer(integers, 0)
    var sizes = integers.unsafe_offset(1)
    var x_strides = sizes.unsafe_offset(rank)
    var whole = integers.unsafe_offset(4 * rank + 1)  # elements of x, and 1
    var threads = integer(integers, 4 * rank + 3)
    var begin = window_begin(operand[DType.int64](slots, args, 1), integers)
    var x = operand[dtype](slots, args, 0)
    var result = operand[dtype](slots, args, 3)
    if result != x:
        var one = whole.unsafe_offset(1)
        copy_strided[dtype](x, result, Space(whole, one, one, 1), threads)
    copy_strided[dtype](
        operand[dtype](slots, args, 2),
        result.unsafe_offset(begin),
        Space(sizes, x_strides.unsafe_offset(rank), x_strides, rank),
        threads,
    )


def transpose[dtype: DType](slots: Slots, args: Args):
    transpose_middle[dtype](
        operand[dtype](slots, args, 0),
        operand[dtype](slots, args, 1),
        integer(args, 4),
        integer(args, 5),
        integer(args, 6),
        integer(args, 7),
        integer(args, 8),
    )
