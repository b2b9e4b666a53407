"""Sorting, transposition and the threefry hash."""
from std.bit import log2_floor
from std.collections import Array as Vectors
from std.memory import unsafe_memcpy
from std.sys.info import bit_width_of, simd_width_of, size_of
from std.utils.numerics import inf

from .arithmetic import unsigned_of
from .calling import Bytes
from .crew import Tasks, spread
from .reduction import Array, Held, chunk_begin, copy_run, held, task_count

# Up to so many elements insertion is faster than eight passes of counting.
comptime INSERTION = 48
# Columns that are transposed together, so that what is read of them stays in cache.
comptime STRIP = 64
# Runs of so many bytes fill cache lines.
comptime LINE_BYTES = 64


struct Order[bits: DType](TrivialRegisterPassable):
    """How values are sorted, by their bits: -inf < ... < -0 == 0 < ... < inf < NaN.

    One sort of integers serves all dtypes of a width.
    """

    comptime SIGN = Scalar[Self.bits](1) << Scalar[Self.bits](bit_width_of[Self.bits]() - 1)
    comptime UNSIGNED = 0
    comptime SIGNED = 1
    comptime FLOATING = 2

    var kind: Int
    var infinity: Scalar[Self.bits]

    @always_inline
    def __init__[dtype: DType](out self, of: Scalar[dtype]):
        """The order of a dtype; the value does not matter."""
        self.infinity = 0
        comptime if dtype.is_floating_point():
            self.kind = Self.FLOATING
            self.infinity = inf[dtype]().to_bits[Self.bits]()
        else:
            self.kind = Self.SIGNED if dtype.is_signed() else Self.UNSIGNED

    @always_inline
    def is_nan[width: Int](self, x: SIMD[Self.bits, width]) -> SIMD[DType.bool, width]:
        """Of the bits of floats."""
        return (x & ~SIMD[Self.bits, width](Self.SIGN)).gt(SIMD[Self.bits, width](self.infinity))

    @always_inline
    def encode_some[
        kind: Int, width: Int
    ](self, x: SIMD[Self.bits, width]) -> SIMD[Self.bits, width]:
        comptime sign = SIMD[Self.bits, width](Self.SIGN)
        comptime if kind == Self.FLOATING:
            var key = (x & sign).ne(0).select(~x, x | sign)
            return self.is_nan[width](x).select(~SIMD[Self.bits, width](0), key)
        elif kind == Self.SIGNED:
            return x ^ sign
        else:
            return x

    @always_inline
    def decode_some[
        kind: Int, width: Int
    ](self, key: SIMD[Self.bits, width]) -> SIMD[Self.bits, width]:
        comptime sign = SIMD[Self.bits, width](Self.SIGN)
        comptime if kind == Self.FLOATING:
            return (key & sign).eq(0).select(~key, key ^ sign)
        elif kind == Self.SIGNED:
            return key ^ sign
        else:
            return key

    @always_inline
    def map[
        kind: Int, inverse: Bool
    ](self, x: Array[Self.bits], keys: Array[Self.bits], count: Int):
        comptime width = simd_width_of[Self.bits]()
        var i = 0
        while i + width <= count:
            var some = x.unsafe_load[width=width](i)
            comptime if inverse:
                keys.unsafe_store(i, self.decode_some[kind, width](some))
            else:
                keys.unsafe_store(i, self.encode_some[kind, width](some))
            i += width
        while i < count:
            var one = x.unsafe_load[width=1](i)
            comptime if inverse:
                keys.unsafe_store(i, self.decode_some[kind, 1](one))
            else:
                keys.unsafe_store(i, self.encode_some[kind, 1](one))
            i += 1

    def encode(self, x: Array[Self.bits], keys: Array[Self.bits], count: Int):
        """Unsigned integers ordered like the values, but that -0 comes before 0."""
        if self.kind == Self.FLOATING:
            self.map[Self.FLOATING, False](x, keys, count)
        elif self.kind == Self.SIGNED:
            self.map[Self.SIGNED, False](x, keys, count)
        else:
            self.map[Self.UNSIGNED, False](x, keys, count)

    def decode(self, keys: Array[Self.bits], x: Array[Self.bits], count: Int):
        """The values again, where they are not NaN."""
        if self.kind == Self.FLOATING:
            self.map[Self.FLOATING, True](keys, x, count)
        elif self.kind == Self.SIGNED:
            self.map[Self.SIGNED, True](keys, x, count)
        else:
            self.map[Self.UNSIGNED, True](keys, x, count)

    def join_zeros(self, keys: Array[Self.bits], count: Int):
        """Gives -0 the key of 0."""
        if self.kind == Self.FLOATING:
            for i in range(count):
                var key = keys.unsafe_load[width=1](i)
                keys.unsafe_store(i, Self.SIGN if key == Self.SIGN - 1 else key)

    def restore_equals(self, x: Array[Self.bits], result: Array[Self.bits], count: Int):
        """Puts zeros of both signs, and NaN of all kinds, in the order in which they are in `x`."""
        if self.kind != Self.FLOATING:
            return
        var nans = 0
        var negative = 0
        var negative_zeros = 0
        var zeros = 0
        for i in range(count):
            var value = x.unsafe_load[width=1](i)
            var is_nan = self.is_nan[1](value)
            nans += Int(is_nan)
            negative += Int(value > Self.SIGN and not is_nan)
            negative_zeros += Int(value == Self.SIGN)
            zeros += Int(value == 0)
        if nans == 0 and (negative_zeros == 0 or zeros == 0):
            return
        var zero = negative
        var nan = count - nans
        for i in range(count):
            var value = x.unsafe_load[width=1](i)
            if value == 0 or value == Self.SIGN:
                result.unsafe_store(zero, value)
                zero += 1
            elif self.is_nan[1](value):
                result.unsafe_store(nan, value)
                nan += 1


def insertion_sort[
    bits: DType
](keys: Array[bits], permutation: Array[DType.int32], count: Int):
    """Sorts a few keys, and a permutation with them."""
    for i in range(count):
        var key = keys.unsafe_load[width=1](i)
        var place = i
        while place > 0 and keys.unsafe_load[width=1](place - 1) > key:
            keys.unsafe_store(place, keys.unsafe_load[width=1](place - 1))
            permutation.unsafe_store(place, permutation.unsafe_load[width=1](place - 1))
            place -= 1
        keys.unsafe_store(place, key)
        permutation.unsafe_store(place, Int32(i))


struct Digits[bits: DType]:
    """How a radix sort cuts keys: where each digit's elements go, digit by digit from the least."""

    var size: Int  # in bits
    var number: Int
    var places: List[Int]

    def __init__(out self, keys: Array[Self.bits], count: Int):
        comptime width = bit_width_of[Self.bits]()
        self.size = min(width, 11 if count >= 4096 and width > 16 else 8)
        self.number = (width + self.size - 1) // self.size
        self.places = List[Int](length=self.number << self.size, fill=0)
        var places = self.places.unsafe_ptr()
        for i in range(count):
            var key = keys.unsafe_load[width=1](i)
            for digit in range(self.number):
                places[unsafe_offset=self.bin(key, digit)] += 1

    @always_inline
    def bin(self, key: Scalar[Self.bits], digit: Int) -> Int:
        var value = Int(key >> Scalar[Self.bits](digit * self.size))
        return (digit << self.size) + (value & ((1 << self.size) - 1))

    def prepare(mut self, digit: Int, key: Scalar[Self.bits], count: Int) -> Bool:
        """Makes places of a digit's counts. False: all keys (`key` is one) have the same digit."""
        if self.places[self.bin(key, digit)] == count:
            return False
        var total = 0
        for i in range(digit << self.size, (digit + 1) << self.size):
            var size = self.places[i]
            self.places[i] = total
            total += size
        return True

    @always_inline
    def next(mut self, key: Scalar[Self.bits], digit: Int) -> Int:
        """The place of the next element with this key's digit."""
        var bin = self.bin(key, digit)
        var place = self.places.unsafe_ptr()[unsafe_offset=bin]
        self.places.unsafe_ptr()[unsafe_offset=bin] = place + 1
        return place


def radix_sort[bits: DType](keys: Array[bits], spare: Array[bits], count: Int) -> Bool:
    """Sorts unsigned integers. Whether they end in `spare` and not in `keys`."""
    var digits = Digits[bits](keys, count)
    var source = keys
    var target = spare
    var moved = False
    for digit in range(digits.number):
        if not digits.prepare(digit, source.unsafe_load[width=1](0), count):
            continue
        for i in range(count):
            var key = source.unsafe_load[width=1](i)
            target.unsafe_store(digits.next(key, digit), key)
        swap(source, target)
        moved = not moved
    return moved


def radix_argsort[
    bits: DType
](
    keys: Array[bits],
    spare_keys: Array[bits],
    permutation: Array[DType.int32],
    spare: Array[DType.int32],
    count: Int,
) -> Bool:
    """Sorts `keys`, and a permutation with them. Whether that ends in `spare`."""
    var digits = Digits[bits](keys, count)
    var source = keys
    var target = spare_keys
    var order = permutation
    var next = spare
    var moved = False
    for i in range(count):
        order.unsafe_store(i, Int32(i))
    for digit in range(digits.number):
        if not digits.prepare(digit, source.unsafe_load[width=1](0), count):
            continue
        for i in range(count):
            var key = source.unsafe_load[width=1](i)
            var place = digits.next(key, digit)
            target.unsafe_store(place, key)
            next.unsafe_store(place, order.unsafe_load[width=1](i))
        swap(source, target)
        swap(order, next)
        moved = not moved
    return moved


def argsort_line[
    bits: DType
](
    x: Array[bits],
    permutation: Array[DType.int32],
    count: Int,
    order: Order[bits],
    keys: Array[bits],
    spare: Array[DType.int32],
):
    """The stable sorting permutation of contiguous elements; scratch for twice and once as many."""
    order.encode(x, keys, count)
    order.join_zeros(keys, count)
    if count <= INSERTION:
        insertion_sort(keys, permutation, count)
    elif radix_argsort[bits](keys, keys.unsafe_offset(count), permutation, spare, count):
        unsafe_memcpy(dest=permutation, src=spare, count=count)


def sort_line[
    bits: DType
](x: Array[bits], result: Array[bits], count: Int, order: Order[bits], keys: Array[bits]):
    """Contiguous elements in the order of argsort_line; scratch for as many."""
    order.encode(x, keys, count)
    var moved = False
    if count <= INSERTION:
        for i in range(1, count):
            var key = keys.unsafe_load[width=1](i)
            var place = i
            while place > 0 and keys.unsafe_load[width=1](place - 1) > key:
                keys.unsafe_store(place, keys.unsafe_load[width=1](place - 1))
                place -= 1
            keys.unsafe_store(place, key)
    else:
        moved = radix_sort[bits](keys, result, count)
    order.decode(result if moved else keys, result, count)
    order.restore_equals(x, result, count)


@fieldwise_init
struct SortedRows[bits: DType](Tasks):
    """The tasks of sort_rows."""

    var x: Held[Self.bits]
    var result: Held[DType.uint8]
    var permutation: Bool
    var tasks: Int
    var rows: Int
    var count: Int
    var order: Order[Self.bits]

    def run(self, task: Int):
        var x = self.x.as_unsafe_any_origin()
        var result = self.result.as_unsafe_any_origin()
        var permutation = self.permutation
        var tasks = self.tasks
        var rows = self.rows
        var count = self.count
        var order = self.order
        var scratch = List[Scalar[Self.bits]](length=2 * count, fill=0)
        var spare = List[Int32](length=count if permutation else 0, fill=0)
        var keys = scratch.unsafe_ptr().as_unsafe_any_origin()
        for row in range(chunk_begin(task, tasks, rows), chunk_begin(task + 1, tasks, rows)):
            var line = x.unsafe_offset(row * count)
            if permutation:
                var places = result.unsafe_bitcast[Int32]().unsafe_offset(row * count)
                var more = spare.unsafe_ptr().as_unsafe_any_origin()
                argsort_line[Self.bits](line, places, count, order, keys, more)
            else:
                var target = result.unsafe_bitcast[Scalar[Self.bits]]().unsafe_offset(row * count)
                sort_line[Self.bits](line, target, count, order, keys)
        _ = scratch^
        _ = spare^


@no_inline
def sort_rows[
    bits: DType
](
    x: Array[bits],
    result: Bytes,
    permutation: Bool,
    rows: Int,
    count: Int,
    order: Order[bits],
    threads: Int,
):
    """Sorts each row: to a permutation (int32), or the values themselves."""
    var tasks = task_count(rows, rows * count * 16, threads)

    spread(
        SortedRows[bits](held(x), held(result), permutation, tasks, rows, count, order), tasks
    )


@always_inline
def argsort_rows[
    dtype: DType
](x: Array[dtype], result: Array[DType.int32], rows: Int, count: Int, threads: Int):
    """The stable permutation that sorts each row."""
    comptime bits = unsigned_of[dtype]()
    sort_rows[bits](
        x.unsafe_bitcast[Scalar[bits]](),
        result.unsafe_bitcast[UInt8](),
        True,
        rows,
        count,
        Order[bits](Scalar[dtype](0)),
        threads,
    )


@always_inline
def sort_values[
    dtype: DType
](x: Array[dtype], result: Array[dtype], rows: Int, count: Int, threads: Int):
    """Each row in the order of argsort_rows."""
    comptime bits = unsigned_of[dtype]()
    sort_rows[bits](
        x.unsafe_bitcast[Scalar[bits]](),
        result.unsafe_bitcast[UInt8](),
        False,
        rows,
        count,
        Order[bits](Scalar[dtype](0)),
        threads,
    )


@always_inline
def transpose_tile[
    dtype: DType, size: Int
](x: Array[dtype], result: Array[dtype], x_stride: Int, result_stride: Int):
    """Transposes `size` by `size` elements in registers."""
    var rows = Vectors[SIMD[dtype, size], size](fill=0)
    comptime for i in range(size):
        rows[i] = x.unsafe_load[width=size](i * x_stride)
    # Interleaving the halves turns the bits of (row, column), taken as one number, by one place.
    comptime for _ in range(log2_floor(size)):
        var turned = Vectors[SIMD[dtype, size], size](fill=0)
        comptime for i in range(size // 2):
            var pair = rows[i].interleave(rows[i + size // 2])
            turned[2 * i] = pair.slice[size, offset=0]()
            turned[2 * i + 1] = pair.slice[size, offset=size]()
        rows = turned^
    comptime for i in range(size):
        result.unsafe_store(i * result_stride, rows[i])


def transpose_matrix[
    dtype: DType
](
    x: Array[dtype],
    result: Array[dtype],
    rows: Int,
    columns: Int,
    x_stride: Int,
    result_stride: Int,
):
    """Transposes rows, each contiguous, into columns, tile by tile."""
    comptime size = min(16, simd_width_of[dtype]())
    var whole_rows = rows // size * size
    var whole_columns = columns // size * size
    for column in range(0, whole_columns, size):
        for row in range(0, whole_rows, size):
            transpose_tile[dtype, size](
                x.unsafe_offset(row * x_stride + column),
                result.unsafe_offset(column * result_stride + row),
                x_stride,
                result_stride,
            )
    for row in range(rows):
        var column = whole_columns if row < whole_rows else 0
        while column < columns:
            var value = x.unsafe_load[width=1](row * x_stride + column)
            result.unsafe_store(column * result_stride + row, value)
            column += 1


@fieldwise_init
struct TransposedStrips[dtype: DType](Tasks):
    """The tasks of transpose_middle."""

    var x: Held[Self.dtype]
    var result: Held[Self.dtype]
    var tasks: Int
    var items: Int
    var strips: Int
    var rows: Int
    var columns: Int
    var inner: Int

    def run(self, task: Int):
        var x = self.x.as_unsafe_any_origin()
        var result = self.result.as_unsafe_any_origin()
        var tasks = self.tasks
        var items = self.items
        var strips = self.strips
        var rows = self.rows
        var columns = self.columns
        var inner = self.inner
        for item in range(chunk_begin(task, tasks, items), chunk_begin(task + 1, tasks, items)):
            var begin = (item % strips) * STRIP
            var end = min(columns, begin + STRIP)
            var area = (item // strips) * rows * columns * inner
            var source = x.unsafe_offset(area + begin * inner)
            var target = result.unsafe_offset(area + begin * rows * inner)
            if inner == 1:
                transpose_matrix[Self.dtype](source, target, rows, end - begin, columns, rows)
                continue
            if inner * size_of[Scalar[Self.dtype]]() >= LINE_BYTES:
                # In the order of `x`, which is then read ahead; what is written are whole lines.
                for row in range(rows):
                    for column in range(end - begin):
                        copy_run[Self.dtype](
                            target.unsafe_offset((column * rows + row) * inner),
                            source.unsafe_offset((row * columns + column) * inner),
                            inner,
                        )
                continue
            for column in range(end - begin):
                for row in range(rows):
                    copy_run[Self.dtype](
                        target.unsafe_offset((column * rows + row) * inner),
                        source.unsafe_offset((row * columns + column) * inner),
                        inner,
                    )


def transpose_middle[
    dtype: DType
](
    x: Array[dtype],
    result: Array[dtype],
    outer: Int,
    rows: Int,
    columns: Int,
    inner: Int,
    threads: Int,
):
    """(outer, rows, columns, inner) to (outer, columns, rows, inner)."""
    # A task has strips of columns of a matrix.
    var strips = max(1, (columns + STRIP - 1) // STRIP)
    var items = outer * strips
    var tasks = task_count(items, outer * rows * columns * inner, threads)

    spread(
        TransposedStrips[dtype](
            held(x), held(result), tasks, items, strips, rows, columns, inner
        ),
        tasks,
    )


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


@fieldwise_init
struct Hashes(Tasks):
    """The tasks of threefry_arrays."""

    var key0: Held[U32]
    var key1: Held[U32]
    var counter0: Held[U32]
    var counter1: Held[U32]
    var result0: Held[U32]
    var result1: Held[U32]
    var key_count: Int
    var count: Int
    var tasks: Int

    @always_inline
    def hash[width: Int](self, i: Int):
        var x = self.counter0.unsafe_load[width=width](i)
        var y = self.counter1.unsafe_load[width=width](i)
        if self.key_count == 1:
            var k0 = SIMD[U32, width](self.key0.unsafe_load[width=1](0))
            var k1 = SIMD[U32, width](self.key1.unsafe_load[width=1](0))
            threefry(k0, k1, x, y)
        else:
            var k0 = self.key0.unsafe_load[width=width](i)
            threefry(k0, self.key1.unsafe_load[width=width](i), x, y)
        self.result0.unsafe_store(i, x)
        self.result1.unsafe_store(i, y)

    def run(self, task: Int):
        comptime width = 2 * simd_width_of[U32]()  # two hide each other's latency
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            self.hash[width](i)
            i += width
        while i < end:
            self.hash[1](i)
            i += 1


def threefry_arrays(
    key0: Array[U32],
    key1: Array[U32],
    counter0: Array[U32],
    counter1: Array[U32],
    result0: Array[U32],
    result1: Array[U32],
    key_count: Int,
    count: Int,
    threads: Int,
):
    """Hashes counters; each key word is an array of their size or of size 1."""
    var tasks = task_count(count, count * 8, threads)
    spread(
        Hashes(
            held(key0),
            held(key1),
            held(counter0),
            held(counter1),
            held(result0),
            held(result1),
            key_count,
            count,
            tasks,
        ),
        tasks,
    )
