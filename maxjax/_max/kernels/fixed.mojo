"""What loops that are one function consist of: sweeps, copies and rows whose sizes are known."""
from std.collections import Array as FixedArray
from std.memory import unsafe_memcpy
from std.sys.info import simd_width_of

from .abi import PLACE
from .calling import Args, Memory, Slots
from .copies import copy_line
from .reduction import Array, Reducer, accumulated, dot_width, fold
from .scatter import Replacing

# Elements where the compiler does not follow who uses them. The use of a pointer that may lead
# anywhere is one of each variable that there is: in a loop of hundreds of variables, finding out how
# long each lives took more than half of its compile.
comptime Elements[dtype: DType] = Pointer[Scalar[dtype], MutUntrackedOrigin]


struct Frame(TrivialRegisterPassable):
    """What a loop is called with: its buffers and integers."""

    var slots: Pointer[Memory, MutUntrackedOrigin]
    var args: Pointer[Int64, MutUntrackedOrigin]

    @always_inline
    def __init__(out self, slots: Slots, args: Args):
        self.slots = slots.unsafe_bitcast[Memory]().unsafe_origin_cast[MutUntrackedOrigin]()
        self.args = args.unsafe_origin_cast[MutUntrackedOrigin]()

    @always_inline
    def integer(self, i: Int) -> Int:
        return Int(self.args.unsafe_load[width=1](i))

    @always_inline
    def address(self, k: Int) -> Memory:
        """As `address` of `calling.mojo`."""
        var slot = self.slots.unsafe_offset(self.integer(PLACE * k))[]
        return slot.unsafe_offset(self.integer(PLACE * k + 1))


@always_inline
def at[dtype: DType, //](p: Elements[dtype], i: Int) -> Scalar[dtype]:
    return p.unsafe_load[width=1](i)


@always_inline
def bool_at(p: Elements[DType.uint8], i: Int) -> Scalar[DType.bool]:
    return p.unsafe_load[width=1](i).ne(0)


@always_inline
def vector_at[dtype: DType, //, w: Int](p: Elements[dtype], i: Int) -> SIMD[dtype, w]:
    return p.unsafe_load[width=w](i)


@always_inline
def bools_at[w: Int](p: Elements[DType.uint8], i: Int) -> SIMD[DType.bool, w]:
    return p.unsafe_load[width=w](i).ne(0)


@always_inline
def put_bools[
    w: SIMDLength, //
](p: Elements[DType.uint8], i: Int, x: SIMD[DType.bool, w]):
    comptime R = SIMD[DType.uint8, w]
    p.unsafe_store(i, x.select(R(1), R(0)))


@always_inline
def in_use[T: AnyType, //](memory: T):
    """A last use: what memory holds is nothing after that, though pointers into it are still read."""
    pass


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
def sweep_line[
    width: Int, n: Int, Body: def[w: Int, unit: Int](Int) -> None
](body: Body):
    """Calls `body` for four vectors, units 0 to 3, as long as there are so many, then for the others,
    units 4 to 6, then for single elements, unit 7."""
    comptime whole = n // (4 * width) * (4 * width)
    for i in range(0, whole, 4 * width):
        comptime for unit in range(4):
            body[width, unit](i + unit * width)
    comptime for unit in range((n - whole) // width):
        body[width, 4 + unit](whole + unit * width)
    for i in range(n // width * width, n):
        body[1, 7](i)


struct LineTotal[Op: Reducer, dtype: DType](Copyable):
    """A reduction of what `sweep_line` goes through, to the bits of `reduce_line`."""

    comptime W = simd_width_of[Self.dtype]()
    comptime V = SIMD[Self.dtype, Self.W]
    var parts: FixedArray[Self.V, 4]
    var total: Scalar[Self.dtype]
    var is_folded: Bool

    @always_inline
    def __init__(out self):
        self.parts = FixedArray[Self.V, 4](fill=Self.V(Self.Op.identity[Self.dtype]()))
        self.total = Self.Op.identity[Self.dtype]()
        self.is_folded = False

    @always_inline
    def take[w: Int, unit: Int](mut self, x: SIMD[Self.dtype, w]):
        comptime if unit == 7:
            self.fold_parts()
            self.total = Self.Op.combine[Self.dtype, 1](
                self.total, rebind[SIMD[Self.dtype, 1]](x)
            )
        else:
            comptime part = unit if unit < 4 else 0
            self.parts[part] = Self.Op.combine[Self.dtype, Self.W](
                self.parts[part], rebind[Self.V](x)
            )

    @always_inline
    def fold_parts(mut self):
        if self.is_folded:
            return
        var a = Self.Op.combine[Self.dtype, Self.W](self.parts[0], self.parts[1])
        var c = Self.Op.combine[Self.dtype, Self.W](self.parts[2], self.parts[3])
        var all = Self.Op.combine[Self.dtype, Self.W](a, c)
        all = Self.Op.combine[Self.dtype, Self.W](
            Self.V(Self.Op.identity[Self.dtype]()), all
        )
        self.total = fold[Self.Op, Self.dtype, Self.W](all)
        self.is_folded = True

    @always_inline
    def result(mut self) -> Scalar[Self.dtype]:
        self.fold_parts()
        return self.total


struct DotTotal[dtype: DType](Copyable):
    """The product of two vectors that `sweep_line` goes through, to the bits of the pack's product
    of matrices."""

    comptime W = simd_width_of[Self.dtype]()
    comptime V = SIMD[Self.dtype, Self.W]
    var parts: FixedArray[Self.V, 2]
    var total: Scalar[Self.dtype]
    var is_folded: Bool

    @always_inline
    def __init__(out self):
        self.parts = FixedArray[Self.V, 2](fill=Self.V(0))
        self.total = Scalar[Self.dtype](0)
        self.is_folded = False

    @always_inline
    def take[
        w: Int, unit: Int
    ](mut self, x: SIMD[Self.dtype, w], y: SIMD[Self.dtype, w]):
        comptime if unit == 7:
            self.fold_parts()
            self.total = rebind[SIMD[Self.dtype, 1]](x).fma(
                rebind[SIMD[Self.dtype, 1]](y), self.total
            )
        else:
            self.parts[unit % 2] = rebind[Self.V](x).fma(
                rebind[Self.V](y), self.parts[unit % 2]
            )

    @always_inline
    def fold_parts(mut self):
        if not self.is_folded:
            self.total = (self.parts[0] + self.parts[1]).reduce_add()
            self.is_folded = True

    @always_inline
    def result(mut self) -> Scalar[Self.dtype]:
        self.fold_parts()
        return self.total


struct RowTotal[Op: Reducer, dtype: DType, width: Int](Copyable):
    """What `Lanes` is for rows of few vectors: each is folded at once, also parts of one."""

    comptime kind = accumulated[Self.dtype]()
    var total: Scalar[Self.kind]

    @always_inline
    def __init__(out self):
        self.total = Self.Op.identity[Self.kind]()

    @always_inline
    def take[w: Int, unit: Int](mut self, x: SIMD[Self.dtype, w]):
        self.total = Self.Op.combine[Self.kind, 1](
            self.total, fold[Self.Op, Self.kind, w](x.cast[Self.kind]())
        )

    @always_inline
    def result(mut self) -> Scalar[Self.kind]:
        return self.total


@always_inline
def copy_fixed[
    dtype: DType, count: Int, step: Int, result_step: Int
](x: Array[dtype], result: Array[dtype]):
    """Copies elements that are `step` apart to places that are `result_step` apart."""
    comptime if result_step == 1 and (step < -1 or step > 1):

        @always_inline
        def body[w: Int](i: Int) {var x, var result}:
            # Stored as vectors, as they are read next: a processor waits for single stores first.
            var some = SIMD[dtype, w](0)
            comptime for lane in range(w):
                some[lane] = x.unsafe_load[width=1]((i + lane) * step)
            result.unsafe_store(i, some)

        sweep_fixed[simd_width_of[dtype](), count](body)
    else:
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
            copy_fixed[dtype, outer, size, 1](x.unsafe_offset(place), result)
        else:
            for stack in range(outer):
                copy_line[dtype](
                    x.unsafe_offset((stack * size + place) * inner),
                    result.unsafe_offset(stack * inner),
                    inner,
                    1,
                    1,
                )
    elif inner == 1:
        for stack in range(outer):
            var line = x.unsafe_offset(stack * size)
            var there = result.unsafe_offset(stack * count)

            @always_inline
            def body[w: Int](i: Int) {var line, var there, var places}:
                var some = SIMD[dtype, w](0)
                comptime for lane in range(w):
                    some[lane] = line.unsafe_load[width=1](
                        Int(places.unsafe_load[width=1](i + lane))
                    )
                there.unsafe_store(i, some)

            sweep_fixed[simd_width_of[dtype](), count](body)
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
    dtype: DType, rows: Int, width: Int, count: Int, R: Reducer = Replacing
](
    x: Array[dtype], places: Array[DType.int32], updates: Array[dtype], result: Array[dtype]
):
    """`x`, which may be in place of the result, with rows combined with updates in order; a
    place outside drops its update."""
    if x != result:
        unsafe_memcpy(dest=result, src=x, count=rows * width)
    for k in range(count):
        var place = Int(places.unsafe_load[width=1](k))
        if 0 <= place and place < rows:
            var target = result.unsafe_offset(place * width)
            var source = updates.unsafe_offset(k * width)

            @always_inline
            def body[w: Int](i: Int) {var target, var source}:
                target.unsafe_store(
                    i,
                    R.combine[dtype, w](
                        target.unsafe_load[width=w](i), source.unsafe_load[width=w](i)
                    ),
                )

            sweep_fixed[simd_width_of[dtype](), width](body)


@always_inline
def clamped(starts: Array[DType.int64], dim: Int, last: Int) -> Int:
    """Where a window begins along a dimension, as near to its start as it fits."""
    return max(0, min(last, Int(starts.unsafe_load[width=1](dim))))


@always_inline
def product_fixed[
    dtype: DType,
    m: Int,
    n: Int,
    k: Int,
    a_row: Int,
    a_column: Int,
    b_row: Int,
    b_column: Int,
](a: Array[dtype], b: Array[dtype], c: Array[dtype]):
    """A small product of matrices; strides of the operands, and a row-major result."""
    comptime if n == 1 and m > 1:  # the transposed one, of a row
        product_fixed[dtype, 1, m, k, 0, b_row, a_column, a_row](b, a, c)
    elif m == 1 and a_column == 1 and b_row == 1 and n > 1 and b_column >= k > 1:
        dots_of_product[dtype, n, k, b_column](a, b, c)
    elif b_column == 1 and n > 1:
        comptime together = 4 if m % 4 == 0 else 2 if m % 2 == 0 else 1
        for i in range(0, m, together):
            rows_of_product[dtype, together, n, k, a_row, a_column, b_row](
                a.unsafe_offset(i * a_row), b, c.unsafe_offset(i * n)
            )
    else:
        for i in range(m):
            for j in range(n):
                c.unsafe_store(
                    i * n + j,
                    dot_fixed[dtype, k, a_column, b_row](
                        a.unsafe_offset(i * a_row), b.unsafe_offset(j * b_column)
                    ),
                )


@always_inline
def products_fixed[
    dtype: DType,
    batch: Int,
    m: Int,
    n: Int,
    k: Int,
    a_batch: Int,
    a_row: Int,
    a_column: Int,
    b_batch: Int,
    b_row: Int,
    b_column: Int,
    c_batch: Int,
](a: Array[dtype], b: Array[dtype], c: Array[dtype]):
    """Several small products, one after the other."""
    for t in range(batch):
        product_fixed[dtype, m, n, k, a_row, a_column, b_row, b_column](
            a.unsafe_offset(t * a_batch),
            b.unsafe_offset(t * b_batch),
            c.unsafe_offset(t * c_batch),
        )


@always_inline
def products_of_registers[
    dtype: DType,
    batch: Int,
    m: Int,
    n: Int,
    k: Int,
    a_batch: Int,
    a_row: Int,
    a_column: Int,
    b_batch: Int,
    b_row: Int,
    b_column: Int,
    c_batch: Int,
](a: Elements[dtype], b: Elements[dtype], c: Elements[dtype]):
    """The same of what lies among a loop's variables."""
    products_fixed[
        dtype, batch, m, n, k, a_batch, a_row, a_column, b_batch, b_row, b_column, c_batch
    ](a.as_unsafe_any_origin(), b.as_unsafe_any_origin(), c.as_unsafe_any_origin())


@always_inline
def product_of_few[
    dtype: DType,
    batch: Int,
    m: Int,
    n: Int,
    k: Int,
    a_batch: Int,
    a_row: Int,
    a_column: Int,
    b_batch: Int,
    b_row: Int,
    b_column: Int,
    c_batch: Int,
    c_row: Int,
](a: Elements[dtype], b: Elements[dtype], c: Elements[dtype]):
    """Each element is a chain of fused multiplications and additions, without a loop."""
    comptime for t in range(batch):
        comptime for i in range(m):
            comptime for j in range(n):
                var total = Scalar[dtype](0)
                comptime for p in range(k):
                    total = at(a, t * a_batch + i * a_row + p * a_column).fma(
                        at(b, t * b_batch + p * b_row + j * b_column), total
                    )
                c.unsafe_store(t * c_batch + i * c_row + j, total)


@always_inline
def dots_of_product[
    dtype: DType, n: Int, k: Int, step: Int
](x: Array[dtype], columns: Array[dtype], y: Array[dtype]):
    """A row times columns, each of which lies in memory without gaps, `step` elements after the one
    before; added as the pack's `dot_columns` does."""
    comptime W = dot_width[dtype](n, k)
    comptime V = SIMD[dtype, W]
    comptime pairs = k // (2 * W) * (2 * W)
    comptime whole = k // W * W

    @always_inline
    def body[count: Int](j: Int) {var x, var columns, var y}:
        var column = columns.unsafe_offset(j * step)
        var sums = FixedArray[V, count](fill=V(0))
        comptime if pairs > 0:
            var others = FixedArray[V, count](fill=V(0))
            for p in range(0, pairs, 2 * W):
                var left = x.unsafe_load[width=W](p)
                var right = x.unsafe_load[width=W](p + W)
                comptime for i in range(count):
                    sums[i] = left.fma(column.unsafe_load[width=W](i * step + p), sums[i])
                    others[i] = right.fma(column.unsafe_load[width=W](i * step + p + W), others[i])
            comptime if whole > pairs:
                var left = x.unsafe_load[width=W](pairs)
                comptime for i in range(count):
                    sums[i] = left.fma(column.unsafe_load[width=W](i * step + pairs), sums[i])
            comptime for i in range(count):
                sums[i] += others[i]
        elif whole > 0:
            var left = x.unsafe_load[width=W](0)
            comptime for i in range(count):
                sums[i] = left.fma(column.unsafe_load[width=W](i * step), V(0)) + V(0)
        var total = totals(sums)
        comptime for p in range(whole, k):
            var factors = SIMD[dtype, count](0)
            comptime for i in range(count):
                factors[i] = column.unsafe_load[width=1](i * step + p)
            total = SIMD[dtype, count](x.unsafe_load[width=1](p)).fma(factors, total)
        y.unsafe_store(j, total)

    sweep_fixed[min(8, W), n](body)


@always_inline
def totals[
    dtype: DType, width: Int, count: Int, //
](vectors: FixedArray[SIMD[dtype, width], count]) -> SIMD[dtype, count]:
    """`reduce_add` of each of a few vectors, no more than a vector has elements: the halves of two
    are added at once, which gives a vector of both, then those of two of these."""
    var x = vectors.copy()
    comptime for power in range(3):
        comptime rows = count >> power
        comptime if rows > 1:
            comptime for i in range(rows // 2):
                var both = x[i].interleave(x[i + rows // 2])
                var low = rebind[SIMD[dtype, width]](both.slice[width, offset=0]())
                x[i] = low + rebind[SIMD[dtype, width]](both.slice[width, offset=width]())
    return halved[count](x[0])


@always_inline
def halved[
    dtype: DType, width: Int, //, count: Int
](x: SIMD[dtype, width]) -> SIMD[dtype, count]:
    comptime if width == count:
        return rebind[SIMD[dtype, count]](x)
    else:
        comptime half = width // 2
        return halved[count](x.slice[half]() + x.slice[half, offset=half]())


@always_inline
def rows_of_product[
    dtype: DType, m: Int, n: Int, k: Int, a_row: Int, a_column: Int, b_row: Int
](a: Array[dtype], b: Array[dtype], c: Array[dtype]):
    """Some rows together, which read `b` once."""

    @always_inline
    def body[w: Int](j: Int) {var a, var b, var c}:
        comptime V = SIMD[dtype, w]
        var sums = FixedArray[V, m](fill=V(0))
        for p in range(k):
            var row = b.unsafe_load[width=w](p * b_row + j)
            comptime for i in range(m):
                var factor = a.unsafe_load[width=1](i * a_row + p * a_column)
                sums[i] = V(factor).fma(row, sums[i])
        comptime for i in range(m):
            c.unsafe_store(i * n + j, sums[i])

    sweep_fixed[simd_width_of[dtype](), n](body)


@always_inline
def dot_fixed[
    dtype: DType, k: Int, a_step: Int, b_step: Int
](a: Array[dtype], b: Array[dtype]) -> Scalar[dtype]:
    comptime W = simd_width_of[dtype]()
    var sum = Scalar[dtype](0)
    comptime if a_step == 1 and b_step == 1 and k >= W:
        comptime V = SIMD[dtype, W]
        comptime whole = k // W * W
        comptime units = 4 if whole % (4 * W) == 0 else 2 if whole % (2 * W) == 0 else 1
        var sums = FixedArray[V, units](fill=V(0))
        for p in range(0, whole, units * W):
            comptime for unit in range(units):
                var x = a.unsafe_load[width=W](p + unit * W)
                sums[unit] = x.fma(b.unsafe_load[width=W](p + unit * W), sums[unit])
        comptime for unit in range(1, units):
            sums[0] += sums[unit]
        sum = sums[0].reduce_add()
        for p in range(whole, k):
            sum = a.unsafe_load[width=1](p).fma(b.unsafe_load[width=1](p), sum)
    else:
        for p in range(k):
            sum = a.unsafe_load[width=1](p * a_step).fma(
                b.unsafe_load[width=1](p * b_step), sum
            )
    return sum
