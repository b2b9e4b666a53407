"""Sorting, transposition and the threefry hash."""
import extensibility
from extensibility import InputTensor, OutputTensor
from max.algorithm import parallelize
from max.gpu.host import DeviceContext
from std.sys.info import bit_width_of, simd_width_of
from std.utils.numerics import isnan

from .arithmetic import unsigned_of
from .reduction import Array, chunk_begin, stored, task_count

# Up to so many elements insertion is faster than eight passes of counting.
comptime INSERTION = 48
comptime TILE = 32


@always_inline
def sort_key[dtype: DType](x: Scalar[dtype]) -> Scalar[unsigned_of[dtype]()]:
    """An unsigned integer ordered as JAX sorts: -inf < ... < -0 == 0 < ... < inf < NaN."""
    comptime bits = unsigned_of[dtype]()
    comptime sign = Scalar[bits](1) << Scalar[bits](bit_width_of[dtype]() - 1)
    comptime if dtype.is_floating_point():
        if isnan(x):
            return ~Scalar[bits](0)
        var raw = x.to_bits[bits]()
        if raw == sign:
            raw = 0
        return ~raw if (raw & sign) != 0 else raw | sign
    elif dtype.is_signed():
        return x.cast[bits]() ^ sign
    else:
        return x.cast[bits]()


def argsort_line[dtype: DType](x: Array[dtype], permutation: Array[DType.int32], count: Int):
    """The stable sorting permutation of contiguous elements."""
    comptime bits = unsigned_of[dtype]()
    var keys = List[Scalar[bits]](length=count, fill=0)
    for i in range(count):
        keys[i] = sort_key(x.unsafe_load[width=1](i))
    if count <= INSERTION:
        for i in range(count):
            var key = keys[i]
            var place = i
            while place > 0 and keys[place - 1] > key:
                keys[place] = keys[place - 1]
                permutation.unsafe_store(place, permutation.unsafe_load[width=1](place - 1))
                place -= 1
            keys[place] = key
            permutation.unsafe_store(place, Int32(i))
        return
    # Counting sort by one byte after the other, from the least.
    var order = List[Int32](length=count, fill=0)
    var next = List[Int32](length=count, fill=0)
    for i in range(count):
        order[i] = Int32(i)
    for byte in range(bit_width_of[dtype]() // 8):
        var shift = Scalar[bits](byte * 8)
        var places = List[Int](length=256, fill=0)
        for i in range(count):
            places[Int((keys[i] >> shift) & 255)] += 1
        if places[Int((keys[0] >> shift) & 255)] == count:
            continue
        var total = 0
        for digit in range(256):
            var size = places[digit]
            places[digit] = total
            total += size
        for i in range(count):
            var element = order[i]
            var digit = Int((keys[Int(element)] >> shift) & 255)
            next[places[digit]] = element
            places[digit] += 1
        swap(order, next)
    for i in range(count):
        permutation.unsafe_store(i, order[i])


@extensibility.register("maxjax_argsort")
struct Argsort:
    """The stable permutation that sorts each row of a matrix."""

    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[dtype = DType.int32, rank=2, ...],
        x: InputTensor[rank=2, ...],
        context: DeviceContext,
    ) raises:
        comptime kind = stored[x.dtype]()
        var rows, count = x.dim_size[0](), x.dim_size[1]()
        var source = x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin()
        var permutation = result.unsafe_ptr().as_unsafe_any_origin()
        var tasks = task_count(rows, rows * count * 16)

        def part(task: Int) {var source, var permutation, var tasks, var rows, var count}:
            for row in range(chunk_begin(task, tasks, rows), chunk_begin(task + 1, tasks, rows)):
                argsort_line[kind](
                    source.unsafe_offset(row * count),
                    permutation.unsafe_offset(row * count),
                    count,
                )

        if tasks == 1:  # waking the pool costs more than 10 us
            part(0)
        else:
            parallelize(part, tasks)


def transpose_matrix[
    dtype: DType
](x: Array[dtype], result: Array[dtype], rows: Int, columns: Int, begin: Int, end: Int):
    """Transposes the columns from `begin` to `end`, tile by tile, so that a tile stays in cache."""
    for row in range(0, rows, TILE):
        for column in range(begin, end, TILE):
            for j in range(column, min(column + TILE, end)):
                for i in range(row, min(row + TILE, rows)):
                    result.unsafe_store(
                        j * rows + i, x.unsafe_load[width=1](i * columns + j)
                    )


def transpose_blocks[
    dtype: DType
](
    x: Array[dtype],
    result: Array[dtype],
    rows: Int,
    columns: Int,
    size: Int,
    begin: Int,
    end: Int,
):
    """The same of a matrix whose elements are blocks of contiguous values."""
    comptime width = simd_width_of[dtype]()
    for j in range(begin, end):
        for i in range(rows):
            var source = x.unsafe_offset((i * columns + j) * size)
            var target = result.unsafe_offset((j * rows + i) * size)
            var k = 0
            while k + width <= size:
                target.unsafe_store(k, source.unsafe_load[width=width](k))
                k += width
            while k < size:
                target.unsafe_store(k, source.unsafe_load[width=1](k))
                k += 1


@extensibility.register("maxjax_transpose")
struct Transpose:
    """Exchanges the middle axes: (outer, rows, columns, inner) to (outer, columns, rows, inner)."""

    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        context: DeviceContext,
    ) raises:
        comptime kind = stored[result.dtype]()
        var outer, rows = x.dim_size[0](), x.dim_size[1]()
        var columns, inner = x.dim_size[2](), x.dim_size[3]()
        var source = x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin()
        var target_array = result.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin()
        # A task is a strip of columns of one matrix.
        var strips = max(1, (columns + TILE - 1) // TILE)
        var items = outer * strips
        var tasks = task_count(items, outer * rows * columns * inner)

        def part(
            task: Int
        ) {
            var source,
            var target_array,
            var tasks,
            var items,
            var strips,
            var rows,
            var columns,
            var inner,
        }:
            for item in range(chunk_begin(task, tasks, items), chunk_begin(task + 1, tasks, items)):
                var offset = (item // strips) * rows * columns * inner
                var begin = (item % strips) * TILE
                var end = min(columns, begin + TILE)
                var from_matrix = source.unsafe_offset(offset)
                var to_matrix = target_array.unsafe_offset(offset)
                if inner == 1:
                    transpose_matrix[kind](from_matrix, to_matrix, rows, columns, begin, end)
                else:
                    transpose_blocks[kind](
                        from_matrix, to_matrix, rows, columns, inner, begin, end
                    )

        if tasks == 1:  # waking the pool costs more than 10 us
            part(0)
        else:
            parallelize(part, tasks)


comptime U32 = DType.uint32


@always_inline
def rotate_left[
    width: Int, //, count: Int
](x: SIMD[U32, width]) -> SIMD[U32, width]:
    return (x << UInt32(count)) | (x >> UInt32(32 - count))


@always_inline
def four_rounds[
    width: Int, //, a: Int, b: Int, c: Int, d: Int
](mut x: SIMD[U32, width], mut y: SIMD[U32, width]):
    x += y
    y = rotate_left[a](y) ^ x
    x += y
    y = rotate_left[b](y) ^ x
    x += y
    y = rotate_left[c](y) ^ x
    x += y
    y = rotate_left[d](y) ^ x


@always_inline
def threefry[
    width: Int, //
](
    key0: SIMD[U32, width],
    key1: SIMD[U32, width],
    mut x: SIMD[U32, width],
    mut y: SIMD[U32, width],
):
    """Threefry-2x32 with 20 rounds (Salmon et al., Parallel Random Numbers, 2011)."""
    var key2 = key0 ^ key1 ^ 0x1BD11BDA
    x += key0
    y += key1
    four_rounds[13, 15, 26, 6](x, y)
    x += key1
    y += key2 + 1
    four_rounds[17, 29, 16, 24](x, y)
    x += key2
    y += key0 + 2
    four_rounds[13, 15, 26, 6](x, y)
    x += key0
    y += key1 + 3
    four_rounds[17, 29, 16, 24](x, y)
    x += key1
    y += key2 + 4
    four_rounds[13, 15, 26, 6](x, y)
    x += key2
    y += key0 + 5


@extensibility.register("maxjax_threefry2x32")
struct Threefry2x32:
    """Hashes two arrays of counters; each key word is an array of their size or of size 1."""

    @staticmethod
    def execute[target: StaticString](
        result0: OutputTensor[dtype=U32, rank=1, ...],
        result1: OutputTensor[dtype=U32, rank=1, ...],
        key0: InputTensor[dtype=U32, rank=1, ...],
        key1: InputTensor[dtype=U32, rank=1, ...],
        counter0: InputTensor[dtype=U32, rank=1, ...],
        counter1: InputTensor[dtype=U32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        comptime width = simd_width_of[U32]()
        var count = counter0.dim_size[0]()
        var one_key = key0.dim_size[0]() == 1
        var k0, k1 = key0.unsafe_ptr(), key1.unsafe_ptr()
        var x, y = counter0.unsafe_ptr(), counter1.unsafe_ptr()
        var out0, out1 = result0.unsafe_ptr(), result1.unsafe_ptr()
        var tasks = task_count(count, count * 8)

        @always_inline
        def hash[
            width: Int
        ](i: Int) {var k0, var k1, var x, var y, var out0, var out1, var one_key}:
            var a = x.unsafe_load[width=width](i)
            var b = y.unsafe_load[width=width](i)
            if one_key:
                threefry(
                    SIMD[U32, width](k0.unsafe_load[width=1](0)),
                    SIMD[U32, width](k1.unsafe_load[width=1](0)),
                    a,
                    b,
                )
            else:
                threefry(k0.unsafe_load[width=width](i), k1.unsafe_load[width=width](i), a, b)
            out0.unsafe_store(i, a)
            out1.unsafe_store(i, b)

        def part(task: Int) {var hash, var tasks, var count}:
            var i = chunk_begin(task, tasks, count)
            var end = chunk_begin(task + 1, tasks, count)
            while i + width <= end:
                hash[width](i)
                i += width
            while i < end:
                hash[1](i)
                i += 1

        if tasks == 1:  # waking the pool costs more than 10 us
            part(0)
        else:
            parallelize(part, tasks)
