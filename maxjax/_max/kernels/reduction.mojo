"""Reductions of lines and of columns, and the positions of extremes.

NaN wins in max and min, and the first NaN in the position; bool is reduced by max and min.
`float16` and `bfloat16` accumulate in `float32`.
"""
from std.collections import Array as Values
from std.sys.info import simd_width_of, size_of
from std.utils.numerics import inf, isnan

from .arithmetic import extremum, unsigned_of
from .crew import Tasks, spread
from .halves import rounded_to

comptime Array[dtype: DType] = Pointer[Scalar[dtype], MutAnyOrigin]

# Less work than this is not worth another thread.
comptime GRAIN = 32768
# A partial sum is of so many vectors, or rows, and is added to others, see `Partials`.
comptime BLOCK = 64
# The vector machine reduces lines of fewer elements side by side, as many as a vector has numbers.
comptime SHORT = 24


@always_inline
def stored[dtype: DType]() -> DType:
    """What an array of a dtype is loaded as: vectors of bool cannot be."""
    return DType.uint8 if dtype == DType.bool else dtype


@always_inline
def accumulated[dtype: DType]() -> DType:
    return DType.float32 if dtype.is_half_float() else dtype


trait Reducer:
    @staticmethod
    @always_inline
    def rounds() -> Bool:
        """Whether floats are added, so that what is small is rounded more the more is there."""
        return False

    @staticmethod
    @always_inline
    def overflows() -> Bool:
        """Whether finite floats may give an infinite one."""
        return False

    @staticmethod
    def identity[dtype: DType]() -> Scalar[dtype]:
        ...

    @staticmethod
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        ...


struct Summing(Reducer):
    @staticmethod
    @always_inline
    def overflows() -> Bool:
        return True

    @staticmethod
    @always_inline
    def rounds() -> Bool:
        return True

    @staticmethod
    @always_inline
    def identity[dtype: DType]() -> Scalar[dtype]:
        # -0 keeps the sign of a sum of negative zeros.
        comptime if dtype.is_floating_point():
            return Scalar[dtype](-0.0)
        else:
            return Scalar[dtype](0)

    @staticmethod
    @always_inline
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return x + y


struct Multiplying(Reducer):
    @staticmethod
    @always_inline
    def overflows() -> Bool:
        return True

    @staticmethod
    @always_inline
    def identity[dtype: DType]() -> Scalar[dtype]:
        return Scalar[dtype](1)

    @staticmethod
    @always_inline
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return x * y


struct Maximizing(Reducer):
    @staticmethod
    @always_inline
    def identity[dtype: DType]() -> Scalar[dtype]:
        comptime if dtype.is_floating_point():
            return -inf[dtype]()
        else:
            return Scalar[dtype].MIN

    @staticmethod
    @always_inline
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return extremum[largest=True](x, y)


struct Minimizing(Reducer):
    @staticmethod
    @always_inline
    def identity[dtype: DType]() -> Scalar[dtype]:
        comptime if dtype.is_floating_point():
            return inf[dtype]()
        else:
            return Scalar[dtype].MAX

    @staticmethod
    @always_inline
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return extremum[largest=False](x, y)


struct Anding(Reducer):
    @staticmethod
    @always_inline
    def identity[dtype: DType]() -> Scalar[dtype]:
        return ~Scalar[dtype](0)

    @staticmethod
    @always_inline
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return x & y


struct Oring(Reducer):
    @staticmethod
    @always_inline
    def identity[dtype: DType]() -> Scalar[dtype]:
        return Scalar[dtype](0)

    @staticmethod
    @always_inline
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return x | y


struct Xoring(Reducer):
    @staticmethod
    @always_inline
    def identity[dtype: DType]() -> Scalar[dtype]:
        return Scalar[dtype](0)

    @staticmethod
    @always_inline
    def combine[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return x ^ y


@always_inline
def turn_for[largest: Bool, dtype: DType, signed: DType]() -> Scalar[accumulated[signed]()]:
    """What makes extremes of a dtype the largest numbers (see `turned`); `signed` are the integers
    of its size with a sign, or itself."""
    comptime kind = accumulated[signed]()
    comptime if signed.is_floating_point():
        return Scalar[kind](0.0) if largest else Scalar[kind](-0.0)
    else:
        comptime sign = Scalar[kind].MIN if dtype != signed else Scalar[kind](0)
        return sign if largest else ~sign


@always_inline
def turned[
    dtype: DType, width: SIMDLength, //, turns: Bool = True
](x: SIMD[dtype, width], turn: Scalar[dtype]) -> SIMD[dtype, width]:
    """Numbers in another order: their bits that `turn` has are turned over.

    The extremes of all integers of a size are the largest with a sign then: the highest bit is
    turned of those without one; for the smallest, the other bits are, or with a sign every bit. Of
    floats the sign is turned for the smallest. So one function is compiled for all of them.
    """
    comptime if not turns:
        return x
    elif dtype.is_floating_point():
        comptime bits = unsigned_of[dtype]()
        return SIMD[dtype, width](
            from_bits=x.to_bits[bits]() ^ SIMD[bits, width](turn.to_bits[bits]())
        )
    else:
        return x ^ SIMD[dtype, width](turn)


@always_inline
def fold[
    Op: Reducer, dtype: DType, width: Int
](value: SIMD[dtype, width]) -> Scalar[dtype]:
    """Combines the lanes of a vector, half with half."""
    comptime if width == 1:
        return value[0]
    else:
        comptime half = width // 2
        return fold[Op, dtype, half](
            Op.combine[dtype, half](
                value.slice[half, offset=0](), value.slice[half, offset=half]()
            )
        )


struct Partials[Op: Reducer, dtype: DType, width: Int](Copyable):
    """What partial results are combined in: `TOGETHER` of them to one of the next level, and so on.

    The error of a sum grows as slowly as that of a pairwise sum, with the number of levels.
    """

    comptime V = SIMD[Self.dtype, Self.width]
    comptime LEVELS = 4
    comptime TOGETHER = 32
    var sums: Values[Self.V, Self.LEVELS]
    var count: Int

    @always_inline
    def __init__(out self):
        self.sums = Values[Self.V, Self.LEVELS](fill=Self.V(Self.Op.identity[Self.dtype]()))
        self.count = 0

    @always_inline
    def take(mut self, x: Self.V):
        self.sums[0] = Self.Op.combine[Self.dtype, Self.width](self.sums[0], x)
        self.count += 1
        if self.count % Self.TOGETHER == 0:
            self.raise_levels()

    @no_inline
    def raise_levels(mut self):
        var count = self.count
        comptime for level in range(1, Self.LEVELS):
            if count % Self.TOGETHER != 0:
                return
            count //= Self.TOGETHER
            self.sums[level] = Self.Op.combine[Self.dtype, Self.width](
                self.sums[level], self.sums[level - 1]
            )
            self.sums[level - 1] = Self.V(Self.Op.identity[Self.dtype]())

    @always_inline
    def result(self) -> Self.V:
        var total = self.sums[Self.LEVELS - 1]
        comptime for level in range(2, Self.LEVELS + 1):
            total = Self.Op.combine[Self.dtype, Self.width](total, self.sums[Self.LEVELS - level])
        return total


@always_inline
def reduce_line[
    Op: Reducer, dtype: DType, turns: Bool = False
](
    x: Array[dtype], count: Int, turn: Scalar[accumulated[dtype]()] = 0
) -> Scalar[accumulated[dtype]()]:
    """Reduces contiguous elements, in four vectors at a time to hide the operation's latency;
    where it `turns`, of elements that are `turned`, as the result is."""
    comptime kind = accumulated[dtype]()
    comptime width = simd_width_of[kind]()
    comptime V = SIMD[kind, width]
    comptime identity = Op.identity[kind]()
    var total = V(identity)
    var i = 0
    if count > BLOCK * width:
        var partials = Partials[Op, kind, width]()
        while i + BLOCK * width <= count:
            partials.take(
                reduce_vectors[Op, dtype, width, turns](x.unsafe_offset(i), BLOCK * width, turn)
            )
            i += BLOCK * width
        total = partials.result()
    var whole = (count - i) // width * width
    total = Op.combine[kind, width](
        total, reduce_vectors[Op, dtype, width, turns](x.unsafe_offset(i), whole, turn)
    )
    i += whole
    var result = fold[Op, kind, width](total)
    while i < count:
        var value = turned[turns](x.unsafe_load[width=1](i).cast[kind](), turn)
        result = Op.combine[kind, 1](result, value)
        i += 1
    return result


@always_inline
def reduce_vectors[
    Op: Reducer, dtype: DType, width: Int, turns: Bool = False
](
    x: Array[dtype], count: Int, turn: Scalar[accumulated[dtype]()] = 0
) -> SIMD[accumulated[dtype](), width]:
    """Reduces the vectors that `count` elements are, lane by lane."""
    comptime kind = accumulated[dtype]()
    comptime V = SIMD[kind, width]
    comptime identity = Op.identity[kind]()

    @always_inline
    def vector(i: Int) {var x, var turn} -> V:
        return turned[turns](x.unsafe_load[width=width](i).cast[kind](), turn)

    var a = V(identity)
    var b = V(identity)
    var c = V(identity)
    var d = V(identity)
    var i = 0
    while i + 4 * width <= count:
        a = Op.combine[kind, width](a, vector(i))
        b = Op.combine[kind, width](b, vector(i + width))
        c = Op.combine[kind, width](c, vector(i + 2 * width))
        d = Op.combine[kind, width](d, vector(i + 3 * width))
        i += 4 * width
    while i < count:
        a = Op.combine[kind, width](a, vector(i))
        i += width
    a = Op.combine[kind, width](a, b)
    c = Op.combine[kind, width](c, d)
    return Op.combine[kind, width](a, c)


@always_inline
def reduce_columns[
    Op: Reducer, dtype: DType, width: Int, vectors: Int
](x: Array[dtype], result: Array[dtype], count: Int, stride: Int):
    """Reduces `width * vectors` neighbouring columns of `count` rows."""
    comptime kind = accumulated[dtype]()
    comptime identity = Op.identity[kind]()
    var totals = Partials[Op, kind, width * vectors]()
    var row = 0
    while row < count:
        var block_end = min(count, row + BLOCK)
        var partial = SIMD[kind, width * vectors](identity)
        while row < block_end:
            partial = Op.combine[kind, width * vectors](
                partial,
                x.unsafe_load[width = width * vectors](row * stride).cast[kind](),
            )
            row += 1
        totals.take(partial)
    result.unsafe_store(0, rounded_to[dtype](totals.result()))


@always_inline
def chunk_begin(chunk: Int, chunks: Int, count: Int) -> Int:
    return chunk * count // chunks


@always_inline
def task_count(items: Int, work: Int, threads: Int) -> Int:
    """How many tasks to split items of altogether so much work into."""
    return max(1, min(items, min(work // GRAIN, threads)))


@always_inline
def copy_run[dtype: DType](target: Array[dtype], source: Array[dtype], count: Int):
    comptime lanes = simd_width_of[dtype]()
    var i = 0
    while i + lanes <= count:
        target.unsafe_store(i, source.unsafe_load[width=lanes](i))
        i += lanes
    while i < count:
        target.unsafe_store(i, source.unsafe_load[width=1](i))
        i += 1


# A pointer as a struct can have it.
@always_inline
def dot_width[dtype: DType](n: Int, k: Int) -> Int:
    """How many of k terms are added side by side in each of n dot products: those of a vector, or,
    if there are several, of one of 32 bytes where the processor's are longer and the terms fewer."""
    comptime W = simd_width_of[dtype]()
    comptime narrow = min(W, 32 // size_of[Scalar[dtype]]())
    return narrow if n > 1 and narrow <= k and k < W else W


comptime Held[dtype: DType] = Pointer[Scalar[dtype], MutUntrackedOrigin]


@always_inline
def held[dtype: DType, //](x: Array[dtype]) -> Held[dtype]:
    return x.unsafe_origin_cast[MutUntrackedOrigin]()


@always_inline
def first_extreme[
    dtype: DType, width: Int
](
    x: Array[dtype], count: Int, stride: Int, turn: Scalar[accumulated[dtype]()]
) -> SIMD[DType.int32, width]:
    """The first row at which each of `width` neighbouring columns has its extreme or a NaN."""
    comptime kind = accumulated[dtype]()
    var best = turned(x.unsafe_load[width=width](0).cast[kind](), turn)
    var position = SIMD[DType.int32, width](0)
    for row in range(1, count):
        var value = turned(x.unsafe_load[width=width](row * stride).cast[kind](), turn)
        var better = value.gt(best)
        comptime if kind.is_floating_point():
            better |= isnan(value) & ~isnan(best)
        best = better.select(value, best)
        position = better.select(SIMD[DType.int32, width](Int32(row)), position)
    return position


@no_inline
def first_extreme_of_line[
    dtype: DType
](x: Array[dtype], count: Int, turn: Scalar[accumulated[dtype]()]) -> Int32:
    """The same of contiguous elements: their extreme first, then where it is."""
    comptime kind = accumulated[dtype]()
    comptime width = simd_width_of[kind]()
    var best = turned(reduce_line[Maximizing, dtype, True](x, count, turn), turn)
    var is_nan = False
    comptime if kind.is_floating_point():
        is_nan = isnan(best)
    var i = 0
    while i + width <= count:
        var value = x.unsafe_load[width=width](i).cast[kind]()
        var hit = value.eq(best)
        comptime if kind.is_floating_point():
            if is_nan:
                hit = isnan(value)
        if hit.reduce_or():
            break
        i += width
    while i < count:
        var value = x.unsafe_load[width=1](i).cast[kind]()
        comptime if kind.is_floating_point():
            if is_nan and isnan(value):
                return Int32(i)
        if value == best:
            return Int32(i)
        i += 1
    return 0


@fieldwise_init
struct Positions[dtype: DType](Tasks):
    """The tasks of position_of_extreme."""

    var x: Held[Self.dtype]
    var result: Held[DType.int32]
    var tasks: Int
    var tiles: Int
    var items: Int
    var count: Int
    var inner: Int
    var turn: Scalar[accumulated[Self.dtype]()]

    def run(self, task: Int):
        comptime kind = accumulated[Self.dtype]()
        comptime width = simd_width_of[kind]()
        var x = self.x.as_unsafe_any_origin()
        var result = self.result.as_unsafe_any_origin()
        var first_item = chunk_begin(task, self.tasks, self.items)
        for item in range(first_item, chunk_begin(task + 1, self.tasks, self.items)):
            var i = item // self.tiles
            var begin = (item % self.tiles) * width
            var source = x.unsafe_offset(i * self.count * self.inner + begin)
            var target = result.unsafe_offset(i * self.inner + begin)
            if self.inner == 1:
                var position = first_extreme_of_line[Self.dtype](source, self.count, self.turn)
                target.unsafe_store(0, position)
            elif begin + width <= self.inner:
                var positions = first_extreme[Self.dtype, width](
                    source, self.count, self.inner, self.turn
                )
                target.unsafe_store(0, positions)
            else:
                for column in range(self.inner - begin):
                    var position = first_extreme[Self.dtype, 1](
                        source.unsafe_offset(column), self.count, self.inner, self.turn
                    )
                    target.unsafe_store(column, position)


@no_inline
def position_of_extreme[
    dtype: DType
](
    x: Array[dtype],
    result: Array[DType.int32],
    outer: Int,
    count: Int,
    inner: Int,
    threads: Int,
    turn: Scalar[accumulated[dtype]()],
):
    """For (outer, count, inner) the positions (outer, inner) of the largest, or of what is that
    when it is `turned`."""
    comptime kind = accumulated[dtype]()
    comptime width = simd_width_of[kind]()
    var tiles = (inner + width - 1) // width
    var items = outer * tiles
    var tasks = task_count(items, outer * count * inner, threads)
    spread(
        Positions[dtype](
            held(x), held(result), tasks, tiles, items, count, inner, turn
        ),
        tasks,
    )
