"""The loops that generated kernels stand in: odometers over outer dimensions, sweeps, threads.

A space is a list of dimensions, row-major, of which the last, the inner one, is swept by SIMD
vectors. The sizes, and each operand's strides (in elements), are integers of the call.
"""
from std.collections import Array
from std.sys import inlined_assembly
from std.sys.info import simd_width_of, size_of

from .abi import MOST_DIMENSIONS
from .calling import Args, integer
from .copies import NEAR, pick
from .odometer import NEVER, carry, stand
from .reduction import Partials, Reducer, accumulated, fold, stored

# So many vectors are swept at a time, to hide the latency of a reduction's operation.
comptime UNITS = 4
comptime REST = -1  # the unit that takes what is left of a line
# Partial results of columns are added to others (`Partials`) after so many rows; those of a line
# after so many vectors of each accumulator: rounding errors then grow as slowly as in NumPy's
# pairwise sums.
comptime PARTIAL = 64
comptime LINE_PARTIAL = 16
# From so many operands on, what is done for each is a loop.
comptime MANY = 16


struct Walk[operands: Int](Copyable):
    """The offsets of operands while an odometer goes through outer dimensions.

    `args` holds `rank`, the sizes of its dimensions, then the strides of each operand in turn.
    """

    var offsets: Array[Int, Self.operands]
    var index: Array[Int, MOST_DIMENSIONS]  # of the last dimension, as the odometer carried last
    var left: Int  # so many steps along the last dimension, and it carries

    @always_inline
    def __init__(out self, args: Args, position: Int):
        """Stands at the `position`-th point."""
        self.index = Array[Int, MOST_DIMENSIONS](fill=0)
        # Of a copy: what a function has an address of is not kept in registers.
        var offsets = Array[Int, Self.operands](fill=0)
        self.left = stand(
            args,
            position,
            Pointer(to=self.index).unsafe_bitcast[Int]().as_unsafe_any_origin(),
            Pointer(to=offsets).unsafe_bitcast[Int]().as_unsafe_any_origin(),
            Self.operands,
        )
        self.offsets = offsets^

    @always_inline
    def __init__(out self, args: Args):
        """Stands at the first point."""
        self.offsets = Array[Int, Self.operands](fill=0)
        self.index = Array[Int, MOST_DIMENSIONS](fill=0)
        var rank = integer(args, 0)
        self.left = integer(args, rank) if rank > 1 else NEVER

    @staticmethod
    @always_inline
    def stride(args: Args, k: Int, d: Int) -> Int:
        return integer(args, 1 + integer(args, 0) * (k + 1) + d)

    @always_inline
    def advance(mut self, args: Args):
        """Goes to the next point."""
        self.left -= 1
        if self.left > 0:
            self.move(args, integer(args, 0) - 1, 1)
            return
        var offsets = self.offsets.copy()
        self.left = carry(
            args,
            Pointer(to=self.index).unsafe_bitcast[Int]().as_unsafe_any_origin(),
            Pointer(to=offsets).unsafe_bitcast[Int]().as_unsafe_any_origin(),
            Self.operands,
        )
        self.offsets = offsets^

    @always_inline
    def skip(mut self, args: Args, count: Int):
        """Goes `count` points on, where there is one dimension; one point, where there are more."""
        if integer(args, 0) != 1:
            self.advance(args)
            return
        self.move(args, 0, count)

    @always_inline
    def move(mut self, args: Args, d: Int, count: Int):
        """Goes `count` steps along dimension `d`."""
        comptime if Self.operands >= MANY:
            for k in range(Self.operands):
                self.offsets[k] += count * Self.stride(args, k, d)
        else:
            comptime for k in range(Self.operands):
                self.offsets[k] += count * Self.stride(args, k, d)


@always_inline
def hidden(i: Int) -> Int:
    """The same number, of which the compiler does not know how it follows from the last one."""
    return Int(inlined_assembly["", Int64, constraints="=r,0", has_side_effect=False](Int64(i)))


@always_inline
def sweep[
    width: Int, Body: def[w: Int](Int) -> None, *, many: Bool = False
](body: Body, begin: Int, end: Int):
    """Calls `body` for vectors of `width` elements, then of a quarter of it, then for single ones.

    If `many`, it reads and writes more places than a processor has registers for addresses. Which of
    them to keep, and how, is then not worth asking: the compiler tries combinations for longer than
    it takes for all else.
    """
    comptime quarter = width // 4
    var i = begin
    while i + width <= end:
        body[width](hidden(i) if many else i)
        i += width
    comptime if quarter > 1:
        while i + quarter <= end:
            body[quarter](hidden(i) if many else i)
            i += quarter
    while i < end:
        body[1](hidden(i) if many else i)
        i += 1


@always_inline
def sweep_rows[
    width: Int, Body: def[w: Int, units: Int](Int) -> None
](body: Body, begin: Int, end: Int, count: Int):
    """Sweeps one row, or `UNITS` of them together."""
    comptime quarter = width // 4
    var i = begin
    if count == UNITS:
        while i + width <= end:
            body[width, UNITS](i)
            i += width
        while i < end:
            body[1, UNITS](i)
            i += 1
        return
    while i + width <= end:
        body[width, 1](i)
        i += width
    comptime if quarter > 1:
        while i + quarter <= end:
            body[quarter, 1](i)
            i += quarter
    while i < end:
        body[1, 1](i)
        i += 1


@always_inline
def sweep_units[
    width: Int, Body: def[w: Int, unit: Int](Int) -> None, *, units: Int = UNITS
](body: Body, begin: Int, end: Int):
    """The same, telling the body which of `units` accumulators is its own; what is left of a line
    is for `REST`.

    Several hide how long the operation that accumulates takes; where the body takes longer than
    that, one is as fast, and a fraction of the code.
    """
    var i = begin
    while i + units * width <= end:
        comptime for unit in range(units):
            body[width, unit](i + unit * width)
        i += units * width
    comptime if units > 1:
        while i + width <= end:
            body[width, REST](i)
            i += width
    while i < end:
        body[1, REST](i)
        i += 1


struct Lanes[
    Op: Reducer, dtype: DType, width: Int, *, units: Int = UNITS, many: Bool = False
](Copyable):
    """The partial results of a reduction along the swept dimension, of `many` lines or one."""

    comptime kind = accumulated[Self.dtype]()
    comptime V = SIMD[Self.kind, Self.width]
    comptime levelled = Self.kind.is_floating_point() and Self.Op.rounds()
    var parts: Array[Self.V, Self.units]
    var totals: Partials[Self.Op, Self.kind, Self.width]
    var single: Scalar[Self.kind]
    var singles: Partials[Self.Op, Self.kind, 1]
    var count: Int
    var single_count: Int

    @always_inline
    def __init__(out self):
        comptime identity = Self.Op.identity[Self.kind]()
        self.parts = Array[Self.V, Self.units](fill=Self.V(identity))
        self.totals = Partials[Self.Op, Self.kind, Self.width]()
        self.single = identity
        self.singles = Partials[Self.Op, Self.kind, 1]()
        self.count = 0
        self.single_count = 0

    @always_inline
    def take[w: Int, unit: Int](mut self, x: SIMD[Self.dtype, w]):
        comptime if w == Self.width:
            comptime part = 0 if unit == REST else unit
            var value = rebind[SIMD[Self.dtype, Self.width]](x).cast[Self.kind]()
            self.parts[part] = Self.Op.combine[Self.kind, Self.width](self.parts[part], value)
            # Of one line no more is left than a round.
            comptime if Self.levelled and (unit == 0 or Self.many and unit == REST):
                self.count += 1
                if self.count == LINE_PARTIAL:
                    self.flush()
        else:
            self.single = Self.Op.combine[Self.kind, 1](self.single, x[0].cast[Self.kind]())
            comptime if Self.levelled and Self.many:
                self.single_count += 1
                if self.single_count == PARTIAL:
                    self.single_count = 0
                    self.singles.take(rebind[SIMD[Self.kind, 1]](self.single))
                    self.single = Self.Op.identity[Self.kind]()

    @always_inline
    def gathered(self) -> Self.V:
        """What the parts have together."""
        var total = self.parts[0]
        comptime for unit in range(1, Self.units):
            total = Self.Op.combine[Self.kind, Self.width](total, self.parts[unit])
        return total

    @always_inline
    def flush(mut self):
        self.totals.take(self.gathered())
        self.parts = Array[Self.V, Self.units](fill=Self.V(Self.Op.identity[Self.kind]()))
        self.count = 0

    @always_inline
    def result(self) -> Scalar[Self.kind]:
        var total = self.gathered()
        var single = self.single
        comptime if Self.levelled:
            total = Self.Op.combine[Self.kind, Self.width](total, self.totals.result())
            comptime if Self.many:
                single = Self.Op.combine[Self.kind, 1](self.singles.result(), single)
        return Self.Op.combine[Self.kind, 1](
            fold[Self.Op, Self.kind, Self.width](total), single
        )


@always_inline
def load[
    dtype: DType, w: Int
](p: Pointer[Scalar[dtype], MutAnyOrigin], i: Int) -> SIMD[dtype, w]:
    return p.unsafe_load[width=w](i)


@always_inline
def load_bool[w: Int](p: Pointer[UInt8, MutAnyOrigin], i: Int) -> SIMD[DType.bool, w]:
    return p.unsafe_load[width=w](i).ne(0)


@always_inline
def store_bool[
    w: SIMDLength, //
](p: Pointer[UInt8, MutAnyOrigin], i: Int, x: SIMD[DType.bool, w]):
    p.unsafe_store(i, as_bytes(x))


@always_inline
def as_bytes[w: SIMDLength, //](x: SIMD[DType.bool, w]) -> SIMD[DType.uint8, w]:
    comptime R = SIMD[DType.uint8, w]
    return x.select(R(1), R(0))


@always_inline
def gather[
    dtype: DType, w: Int
](p: Pointer[Scalar[dtype], MutAnyOrigin], i: Int, stride: Int) -> SIMD[dtype, w]:
    """Elements that lie `stride` apart."""
    comptime if w > 1:
        comptime for near in range(2, NEAR + 1):
            if stride == near:
                return pick[dtype, w, near](p.unsafe_offset(i * near))
    var first = p.unsafe_offset(i * stride)
    var result = SIMD[dtype, w](0)
    comptime for lane in range(w):
        result[lane] = first.unsafe_load[width=1](lane * stride)
    return result


@always_inline
def scatter[
    dtype: DType, w: SIMDLength, //
](p: Pointer[Scalar[dtype], MutAnyOrigin], i: Int, stride: Int, x: SIMD[dtype, w]):
    var first = p.unsafe_offset(i * stride)
    comptime for lane in range(Int(w)):
        first.unsafe_store(lane * stride, x[lane])


@always_inline
def scatter_pair[
    dtype: DType, w: SIMDLength, //
](
    p: Pointer[Scalar[dtype], MutAnyOrigin],
    p_stride: Int,
    q: Pointer[Scalar[dtype], MutAnyOrigin],
    q_stride: Int,
    i: Int,
    x: SIMD[dtype, w],
    y: SIMD[dtype, w],
):
    """What two results have; both parts of complex numbers are written together."""
    comptime if w > 1:
        if p_stride == 2 and q_stride == 2 and Int(q) - Int(p) == size_of[Scalar[dtype]]():
            p.unsafe_store(2 * i, x.interleave(y))
            return
    scatter(p, i, p_stride, x)
    scatter(q, i, q_stride, y)


@always_inline
def ramp[dtype: DType, w: Int](first: Int, step: Int) -> SIMD[dtype, w]:
    """`first`, `first + step`, ..."""
    comptime wide = DType.int64
    var result = SIMD[wide, w](Int64(first))
    comptime for lane in range(w):
        result[lane] += Int64(lane * step)
    return result.cast[dtype]()


@always_inline
def part_begin(n: Int, part: Int, parts: Int) -> Int:
    """Where a part of a swept dimension begins: parts are of whole vectors, but the last."""
    if part == parts:
        return n
    return part * n // parts // 64 * 64


@always_inline
def part_size(n: Int, parts: Int) -> Int:
    """No part is larger."""
    return n if parts == 1 else n // parts + 128


struct Columns[Op: Reducer, dtype: DType]:
    """The partial results of reductions of neighbouring columns."""

    comptime kind = accumulated[Self.dtype]()
    comptime LEVELS = 4
    comptime TOGETHER = 16
    var partials: List[Scalar[Self.kind]]
    var totals: List[Scalar[Self.kind]]  # of each level, as in `Partials`
    var width: Int
    var rows: Int
    var flushes: Int

    def __init__(out self, most: Int):
        self.partials = List[Scalar[Self.kind]](length=most, fill=0)
        self.totals = List[Scalar[Self.kind]]()
        self.width = 0
        self.rows = 0
        self.flushes = 0

    @always_inline
    def clear(mut self, width: Int):
        """Begins with other columns."""
        self.width = width
        self.rows = 0
        self.flushes = 0
        for i in range(width):
            self.partials[i] = Self.Op.identity[Self.kind]()

    @always_inline
    def partial(mut self) -> Pointer[Scalar[Self.kind], MutAnyOrigin]:
        return self.partials.unsafe_ptr().as_unsafe_any_origin()

    @always_inline
    def result(mut self) -> Pointer[Scalar[Self.kind], MutAnyOrigin]:
        return self.partials.unsafe_ptr().as_unsafe_any_origin()

    @always_inline
    def count_rows(mut self, count: Int):
        comptime if Self.kind.is_floating_point():
            self.rows += count
            if self.rows >= PARTIAL:
                self.flush()

    def flush(mut self):
        """Adds the partial results to the totals, which bounds their rounding error."""
        if self.flushes == 0:
            self.totals = List[Scalar[Self.kind]](
                length=Self.LEVELS * self.width, fill=Self.Op.identity[Self.kind]()
            )
        self.rows = 0
        self.flushes += 1
        self.move(self.partial(), self.total(0))
        var count = self.flushes
        for level in range(1, Self.LEVELS):
            if count % Self.TOGETHER != 0:
                return
            count //= Self.TOGETHER
            self.move(self.total(level - 1), self.total(level))

    @always_inline
    def total(mut self, level: Int) -> Pointer[Scalar[Self.kind], MutAnyOrigin]:
        return self.totals.unsafe_ptr().as_unsafe_any_origin().unsafe_offset(level * self.width)

    @always_inline
    def move(
        self,
        source: Pointer[Scalar[Self.kind], MutAnyOrigin],
        target: Pointer[Scalar[Self.kind], MutAnyOrigin],
    ):
        """Combines results with others, and begins anew."""
        for i in range(self.width):
            target.unsafe_store(
                i,
                Self.Op.combine[Self.kind, 1](
                    target.unsafe_load[width=1](i), source.unsafe_load[width=1](i)
                ),
            )
            source.unsafe_store(i, Self.Op.identity[Self.kind]())

    @always_inline
    def keep(self):
        """A last use: a value may be freed after that, though pointers to it are still read."""
        pass

    @always_inline
    def finish(mut self):
        if self.flushes > 0:
            for level in range(Self.LEVELS):
                self.move(self.total(level), self.partial())


@always_inline
def keep[dtype: DType](memory: List[Scalar[dtype]]):
    """A last use: memory may be freed after that, though pointers into it are still read."""
    pass


@always_inline
def take_column[
    kind: DType, dtype: DType, w: SIMDLength, //, Op: Reducer
](p: Pointer[Scalar[kind], MutAnyOrigin], i: Int, x: SIMD[dtype, w]):
    p.unsafe_store(i, Op.combine[kind, w](p.unsafe_load[width=w](i), x.cast[kind]()))
