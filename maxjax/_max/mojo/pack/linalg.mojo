"""Stacks of matrices through LAPACK, whose routines are called by address.

The routines are those of SciPy, which know columns: each matrix is transposed on its way in and out.
Elements are moved by their size in bits: 32 (float32), 64 (float64, complex64), 128 (complex128).
Of a matrix for which a routine fails all results are NaN: `nan` is its bits, those of float32 twice.

`getrf_<bits>`: x, factors, pivots (int32), order (int32) | count, m, n, getrf, threads
`potrf_<bits>`: x, out | count, n, potrf, nan, threads
`geqrf_<bits>`: x, packed, taus | count, m, n, geqrf, lwork, threads
`orgqr_<bits>`: x, taus, out | count, m, n, k, orgqr, lwork, threads
`ormqr_<bits>`: x, taus, c, out | count, m, n, rows and columns of x, number of taus, k, ormqr, lwork,
    left, form, threads
`trsm_<bits>`: a, b, out | count, n, columns, trsm, left, lower, form, unit, one, is real, threads
`getrs_<bits>`: a, b, out | count, n, columns, getrf, getrs, is real, threads
`syevd_<bits>`: x, vectors, values | count, n, syevd, lower, lwork, lrwork, liwork, nan, real size,
    threads
`gesdd_<bits>`: x, values, left, right | count, m, n, gesdd, full, lwork, lrwork, nan, real size,
    threads
`gesdd_values_<bits>`: x, values | as gesdd
"""
from std.memory import unsafe_memcpy
from std.sys.info import simd_width_of, size_of

from kernels.arrangement import transpose_matrix
from kernels.calling import Args, Slots, address, integer
from kernels.crew import Tasks, spread
from kernels.reduction import chunk_begin, task_count

comptime Bytes = Pointer[UInt8, MutUntrackedOrigin]
comptime Integers = Pointer[Int32, MutUntrackedOrigin]

# FORTRAN takes all arguments by their addresses.
comptime Call5 = def (Bytes, Bytes, Bytes, Bytes, Bytes) abi("C") thin -> None
comptime Call6 = def (Bytes, Bytes, Bytes, Bytes, Bytes, Bytes) abi("C") thin -> None
comptime Call8 = def (
    Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes
) abi("C") thin -> None
comptime Call9 = def (
    Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes
) abi("C") thin -> None
comptime Call11 = def (
    Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes
) abi("C") thin -> None
comptime Call13 = def (
    Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes
) abi("C") thin -> None
comptime Call14 = def (
    Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes
) abi("C") thin -> None
comptime Call15 = def (
    Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes,
    Bytes
) abi("C") thin -> None

# A routine uses threads of its own for larger matrices: then ours would only be in its way.
comptime ALONE = 64 * 64
comptime LINE = 64


@always_inline
def routine[Call: TrivialRegisterPassable](place: Int) -> Call:
    var held = place
    return Pointer(to=held).unsafe_bitcast[Call]()[]


comptime LOWER = 76  # "L"
comptime UPPER = 85
comptime LEFT = 76
comptime RIGHT = 82
comptime NO = 78
comptime TRANSPOSED = 84
comptime CONJUGATED = 67
comptime UNIT = 85
comptime VECTORS = 86
comptime SOME = 83
comptime ALL = 65


struct Work:
    """The memory of one task until `free`: int32 arguments of routines, then arrays, each from a
    cache line on. A character is the first byte of an argument.
    """

    var memory: List[UInt8]
    var begin: Bytes
    var end: Int

    def __init__(out self, size: Int):
        """For arrays of altogether so many bytes, eight at most."""
        self.memory = List[UInt8](unsafe_uninit_length=size + 12 * LINE)
        var begin = self.memory.unsafe_ptr().unsafe_origin_cast[MutUntrackedOrigin]()
        self.begin = begin.unsafe_offset(LINE - Int(begin) % LINE)
        self.end = 2 * LINE

    @always_inline
    def at(self, i: Int) -> Bytes:
        """Argument `i`."""
        return self.begin.unsafe_offset(4 * i)

    @always_inline
    def set(self, i: Int, value: Int):
        self.at(i).unsafe_bitcast[Int32]()[] = Int32(value)

    @always_inline
    def get(self, i: Int) -> Int:
        return Int(self.at(i).unsafe_bitcast[Int32]()[])

    def array(mut self, size: Int) -> Bytes:
        var place = self.begin.unsafe_offset(self.end)
        self.end += (size + LINE - 1) // LINE * LINE
        return place

    @no_inline
    def free(deinit self):
        pass


@always_inline
def to_columns[T: DType, words: Int](x: Bytes, columns: Bytes, m: Int, n: Int):
    """Stores (m, n) column by column."""
    transposed[T, words](x, columns, m, n)


@always_inline
def to_rows[T: DType, words: Int](columns: Bytes, x: Bytes, m: Int, n: Int):
    """Stores (m, n) row by row again."""
    transposed[T, words](columns, x, n, m)


def transposed[T: DType, words: Int](x: Bytes, result: Bytes, rows: Int, columns: Int):
    var source = x.unsafe_bitcast[Scalar[T]]().as_unsafe_any_origin()
    var target = result.unsafe_bitcast[Scalar[T]]().as_unsafe_any_origin()
    comptime if words == 1:
        if rows >= 8 and columns >= 8:
            transpose_matrix[T](source, target, rows, columns, columns, rows)
            return
    for row in range(rows):
        for column in range(columns):
            target.unsafe_store(
                words * (column * rows + row),
                source.unsafe_load[width=words](words * (row * columns + column)),
            )


def fill(place: Bytes, size: Int, value: Int):
    """Repeats the eight bytes of a value; `size` is a multiple of four."""
    var words = place.unsafe_bitcast[Int32]()
    for i in range(size // 4):
        words.unsafe_store(i, Int32((value >> 32) if i % 2 else (value & 0xFFFFFFFF)))


@fieldwise_init
struct Operands(TrivialRegisterPassable):
    """The operands and integers of one call, `number` operands before the integers."""

    var slots: Bytes  # as a struct can have it
    var args: Pointer[Int64, MutUntrackedOrigin]
    var number: Int

    @always_inline
    def operand(self, k: Int, bytes: Int) -> Bytes:
        """Operand `k` from a byte on."""
        return (
            address(
                self.slots.unsafe_bitcast[Pointer[UInt8, MutAnyOrigin]]().as_unsafe_any_origin(),
                self.args.as_unsafe_any_origin(),
                k,
            )
            .unsafe_origin_cast[MutUntrackedOrigin]()
            .unsafe_offset(bytes)
        )

    @always_inline
    def integer(self, i: Int) -> Int:
        return integer(self.args.as_unsafe_any_origin(), 2 * self.number + i)


trait Routine:
    """What is done with each matrix of a stack, by one task."""

    def __init__(out self, call: Operands):
        ...

    def run(mut self, i: Int):
        ...

    def free(deinit self):
        ...


@fieldwise_init
struct Stack[R: Routine](Tasks):
    var call: Operands
    var count: Int
    var tasks: Int

    def run(self, task: Int):
        var routine = Self.R(self.call)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        for i in range(chunk_begin(task, self.tasks, self.count), end):
            routine.run(i)
        routine^.free()


@always_inline
def run[
    R: Routine, operands: Int, integers: Int, m: Int, n: Int
](slots: Slots, args: Args):
    """Runs a routine of `integers` integers, besides the number of threads that follows them.

    Integers `m` and `n` are the sizes of a matrix.
    """
    var call = Operands(
        slots.unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin](),
        args.unsafe_origin_cast[MutUntrackedOrigin](),
        operands,
    )
    var count = call.integer(0)
    var tasks = 1
    var rows = call.integer(m)
    var columns = call.integer(n)
    if rows * columns <= ALONE:
        var work = count * (64 + rows * columns * min(rows, columns) // 2)
        tasks = task_count(count, work, call.integer(integers))
    spread(Stack[R](call, count, tasks), tasks)


# --- factorizations ---------------------------------------------------------------------------


@always_inline
def factor(a: Bytes, pivots: Bytes, work: Work, call: Call6):
    """LU of the matrix in `a`, sizes in arguments 0 and 1, its first size also in 2."""
    call(work.at(0), work.at(1), a, work.at(2), pivots, work.at(3))


struct Lu[T: DType, words: Int](Routine):
    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var m: Int
    var n: Int
    var getrf: Call6
    var a: Bytes
    var pivots: Bytes

    def __init__(out self, call: Operands):
        self.call = call
        self.m = call.integer(1)
        self.n = call.integer(2)
        self.getrf = routine[Call6](call.integer(3))
        self.work = Work(self.m * self.n * Self.SIZE + 4 * self.m)
        self.a = self.work.array(self.m * self.n * Self.SIZE)
        self.pivots = self.work.array(4 * self.m)
        self.work.set(0, self.m)
        self.work.set(1, self.n)
        self.work.set(2, self.m)

    def run(mut self, i: Int):
        var size = self.m * self.n * Self.SIZE
        var fewer = min(self.m, self.n)
        to_columns[Self.T, Self.words](self.call.operand(0, i * size), self.a, self.m, self.n)
        factor(self.a, self.pivots, self.work, self.getrf)
        to_rows[Self.T, Self.words](self.a, self.call.operand(1, i * size), self.m, self.n)
        var found = self.pivots.unsafe_bitcast[Int32]()
        var pivots = self.call.operand(2, i * fewer * 4).unsafe_bitcast[Int32]()
        var order = self.call.operand(3, i * self.m * 4).unsafe_bitcast[Int32]()
        for row in range(self.m):
            order.unsafe_store(row, Int32(row))
        for row in range(fewer):
            var other = Int(found.unsafe_load[width=1](row)) - 1
            pivots.unsafe_store(row, Int32(other))
            var held = order.unsafe_load[width=1](row)
            order.unsafe_store(row, order.unsafe_load[width=1](other))
            order.unsafe_store(other, held)

    def free(deinit self):
        self.work^.free()


struct Cholesky[T: DType, words: Int](Routine):
    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var potrf: Call5
    var nan: Int
    var a: Bytes

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.potrf = routine[Call5](call.integer(2))
        self.nan = call.integer(3)
        self.work = Work(self.n * self.n * Self.SIZE)
        self.a = self.work.array(self.n * self.n * Self.SIZE)
        self.work.set(0, LOWER)
        self.work.set(1, self.n)

    def run(mut self, i: Int):
        var size = self.n * self.n * Self.SIZE
        var result = self.call.operand(1, i * size)
        to_columns[Self.T, Self.words](self.call.operand(0, i * size), self.a, self.n, self.n)
        self.potrf(
            self.work.at(0), self.work.at(1), self.a, self.work.at(1), self.work.at(2)
        )
        if self.work.get(2) == 0:
            to_rows[Self.T, Self.words](self.a, result, self.n, self.n)
        else:
            fill(result, size, self.nan)
        for row in range(self.n):  # zero above the diagonal even there
            fill(
                result.unsafe_offset((row * self.n + row + 1) * Self.SIZE),
                (self.n - row - 1) * Self.SIZE,
                0,
            )

    def free(deinit self):
        self.work^.free()


struct Reflections[T: DType, words: Int](Routine):
    """The decomposition into R and the reflections whose product is Q."""

    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var m: Int
    var n: Int
    var geqrf: Call8
    var a: Bytes
    var taus: Bytes
    var more: Bytes

    def __init__(out self, call: Operands):
        self.call = call
        self.m = call.integer(1)
        self.n = call.integer(2)
        self.geqrf = routine[Call8](call.integer(3))
        var more = call.integer(4)
        self.work = Work((self.m * self.n + self.m + more) * Self.SIZE)
        self.a = self.work.array(self.m * self.n * Self.SIZE)
        self.taus = self.work.array(self.m * Self.SIZE)
        self.more = self.work.array(more * Self.SIZE)
        self.work.set(0, self.m)
        self.work.set(1, self.n)
        self.work.set(2, more)

    def run(mut self, i: Int):
        var size = self.m * self.n * Self.SIZE
        var taus = min(self.m, self.n) * Self.SIZE
        to_columns[Self.T, Self.words](self.call.operand(0, i * size), self.a, self.m, self.n)
        self.geqrf(
            self.work.at(0),
            self.work.at(1),
            self.a,
            self.work.at(0),
            self.taus,
            self.more,
            self.work.at(2),
            self.work.at(3),
        )
        to_rows[Self.T, Self.words](self.a, self.call.operand(1, i * size), self.m, self.n)
        unsafe_memcpy(dest=self.call.operand(2, i * taus), src=self.taus, count=taus)

    def free(deinit self):
        self.work^.free()


struct Product[T: DType, words: Int](Routine):
    """The product of reflections."""

    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var m: Int
    var n: Int
    var k: Int
    var orgqr: Call9
    var a: Bytes
    var more: Bytes

    def __init__(out self, call: Operands):
        self.call = call
        self.m = call.integer(1)
        self.n = call.integer(2)
        self.k = call.integer(3)
        self.orgqr = routine[Call9](call.integer(4))
        var more = call.integer(5)
        self.work = Work((self.m * self.n + more) * Self.SIZE)
        self.a = self.work.array(self.m * self.n * Self.SIZE)
        self.more = self.work.array(more * Self.SIZE)
        self.work.set(0, self.m)
        self.work.set(1, self.n)
        self.work.set(2, self.k)
        self.work.set(3, more)

    def run(mut self, i: Int):
        var size = self.m * self.n * Self.SIZE
        to_columns[Self.T, Self.words](self.call.operand(0, i * size), self.a, self.m, self.n)
        self.orgqr(
            self.work.at(0),
            self.work.at(1),
            self.work.at(2),
            self.a,
            self.work.at(0),
            self.call.operand(1, i * self.k * Self.SIZE),
            self.more,
            self.work.at(3),
            self.work.at(4),
        )
        to_rows[Self.T, Self.words](self.a, self.call.operand(2, i * size), self.m, self.n)

    def free(deinit self):
        self.work^.free()


struct Reflected[T: DType, words: Int](Routine):
    """The product of reflections, or its transpose, times a matrix."""

    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var m: Int
    var n: Int
    var rows: Int
    var columns: Int
    var taus: Int
    var ormqr: Call13
    var a: Bytes
    var c: Bytes
    var more: Bytes

    def __init__(out self, call: Operands):
        self.call = call
        self.m = call.integer(1)
        self.n = call.integer(2)
        self.rows = call.integer(3)
        self.columns = call.integer(4)
        self.taus = call.integer(5)
        self.ormqr = routine[Call13](call.integer(7))
        var more = call.integer(8)
        self.work = Work((self.rows * self.columns + self.m * self.n + more) * Self.SIZE)
        self.a = self.work.array(self.rows * self.columns * Self.SIZE)
        self.c = self.work.array(self.m * self.n * Self.SIZE)
        self.more = self.work.array(more * Self.SIZE)
        self.work.set(0, LEFT if call.integer(9) else RIGHT)
        var form = call.integer(10)
        self.work.set(1, NO if form == 0 else TRANSPOSED if form == 1 else CONJUGATED)
        self.work.set(2, self.m)
        self.work.set(3, self.n)
        self.work.set(4, call.integer(6))
        self.work.set(5, self.rows)
        self.work.set(6, more)

    def run(mut self, i: Int):
        var size = self.m * self.n * Self.SIZE
        var a = self.call.operand(0, i * self.rows * self.columns * Self.SIZE)
        to_columns[Self.T, Self.words](a, self.a, self.rows, self.columns)
        to_columns[Self.T, Self.words](self.call.operand(2, i * size), self.c, self.m, self.n)
        self.ormqr(
            self.work.at(0),
            self.work.at(1),
            self.work.at(2),
            self.work.at(3),
            self.work.at(4),
            self.a,
            self.work.at(5),
            self.call.operand(1, i * self.taus * Self.SIZE),
            self.c,
            self.work.at(2),
            self.more,
            self.work.at(6),
            self.work.at(7),
        )
        to_rows[Self.T, Self.words](self.c, self.call.operand(3, i * size), self.m, self.n)

    def free(deinit self):
        self.work^.free()


# --- systems of equations ---------------------------------------------------------------------


def substitute[
    T: DType
](
    a: Pointer[Scalar[T], MutUntrackedOrigin],
    row: Int,
    column: Int,
    x: Pointer[Scalar[T], MutUntrackedOrigin],
    n: Int,
    x_row: Int,
    x_column: Int,
    columns: Int,
    lower: Bool,
    unit: Bool,
):
    """Solves a y = x in place; a and x have any strides."""
    comptime W = simd_width_of[T]()
    var first = 0 if lower else n - 1
    var step = 1 if lower else -1
    for number in range(n):
        var i = first + step * number
        var pivot = a.unsafe_offset(i * (row + column))[]
        var factors = a.unsafe_offset(i * row)
        var target = x.unsafe_offset(i * x_row)

        @always_inline
        def some[width: Int](j: Int) {var target, var factors, var pivot, var x, var first, var step, var number, var column, var x_row, var unit}:
            var total = target.unsafe_load[width=width](j)
            for before in range(number):
                var p = first + step * before
                total -= factors.unsafe_offset(p * column)[] * x.unsafe_load[width=width](
                    p * x_row + j
                )
            target.unsafe_store(j, total if unit else total / pivot)

        if x_column == 1:
            var j = 0
            while j + W <= columns:
                some[W](j)
                j += W
            while j < columns:
                some[1](j)
                j += 1
        else:
            for j in range(columns):
                some[1](j * x_column)


# Up to this size the loops above are faster than BLAS, which begins to use threads of its own; where
# columns are not contiguous, a quarter of it.
comptime SMALL = 64


struct Triangular[T: DType, words: Int, Own: DType](Routine):
    """`Own` is the dtype for which there are loops of our own, if `own` of the call says so."""

    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var columns: Int
    var trsm: Call11
    var left: Bool
    var lower: Bool
    var form: Int
    var unit: Bool
    var own: Bool
    var one: Bytes

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.columns = call.integer(2)
        self.trsm = routine[Call11](call.integer(3))
        self.left = call.integer(4) != 0
        self.lower = call.integer(5) != 0
        self.form = call.integer(6)
        self.unit = call.integer(7) != 0
        self.own = call.integer(9) != 0 and self.n <= (SMALL if self.left else SMALL // 4)
        self.work = Work(LINE)
        self.one = self.work.array(LINE)
        fill(self.one, LINE, 0)
        fill(self.one, 8, call.integer(8))
        # Rows are columns of the transposed equation, which has the matrix on the other side.
        self.work.set(0, RIGHT if self.left else LEFT)
        self.work.set(1, UPPER if self.lower else LOWER)
        self.work.set(2, NO if self.form == 0 else TRANSPOSED if self.form == 1 else CONJUGATED)
        self.work.set(3, UNIT if self.unit else NO)
        self.work.set(4, self.columns if self.left else self.n)
        self.work.set(5, self.n if self.left else self.columns)
        self.work.set(6, self.n)

    def run(mut self, i: Int):
        var size = self.n * self.columns * Self.SIZE
        var a = self.call.operand(0, i * self.n * self.n * Self.SIZE)
        var result = self.call.operand(2, i * size)
        unsafe_memcpy(dest=result, src=self.call.operand(1, i * size), count=size)
        if self.own:
            # x op(a) = b is op(a)^T x^T = b^T.
            var turned = (self.form != 0) != (not self.left)
            substitute[Self.Own](
                a.unsafe_bitcast[Scalar[Self.Own]](),
                1 if turned else self.n,
                self.n if turned else 1,
                result.unsafe_bitcast[Scalar[Self.Own]](),
                self.n,
                self.columns if self.left else 1,
                1 if self.left else self.n,
                self.columns,
                self.lower != turned,
                self.unit,
            )
            return
        self.trsm(
            self.work.at(0),
            self.work.at(1),
            self.work.at(2),
            self.work.at(3),
            self.work.at(4),
            self.work.at(5),
            self.one,
            a,
            self.work.at(6),
            result,
            self.work.at(4),
        )

    def free(deinit self):
        self.work^.free()


struct Solve[T: DType, words: Int, Own: DType](Routine):
    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var columns: Int
    var getrf: Call6
    var getrs: Call9
    var own: Bool
    var a: Bytes
    var b: Bytes
    var pivots: Bytes

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.columns = call.integer(2)
        self.getrf = routine[Call6](call.integer(3))
        self.getrs = routine[Call9](call.integer(4))
        self.own = call.integer(5) != 0 and self.n <= SMALL
        self.work = Work((self.n * self.n + self.n * self.columns) * Self.SIZE + 4 * self.n)
        self.a = self.work.array(self.n * self.n * Self.SIZE)
        self.b = self.work.array(self.n * self.columns * Self.SIZE)
        self.pivots = self.work.array(4 * self.n)
        self.work.set(0, self.n)
        self.work.set(1, self.n)
        self.work.set(2, self.n)
        self.work.set(4, NO)
        self.work.set(5, self.columns)

    def run(mut self, i: Int):
        var size = self.n * self.columns * Self.SIZE
        var b = self.call.operand(1, i * size)
        var result = self.call.operand(2, i * size)
        to_columns[Self.T, Self.words](
            self.call.operand(0, i * self.n * self.n * Self.SIZE), self.a, self.n, self.n
        )
        factor(self.a, self.pivots, self.work, self.getrf)
        if self.own:
            unsafe_memcpy(dest=result, src=b, count=size)
            self.substitute_twice(result.unsafe_bitcast[Scalar[Self.Own]]())
            return
        to_columns[Self.T, Self.words](b, self.b, self.n, self.columns)
        self.getrs(
            self.work.at(4),
            self.work.at(0),
            self.work.at(5),
            self.a,
            self.work.at(0),
            self.pivots,
            self.b,
            self.work.at(0),
            self.work.at(3),
        )
        to_rows[Self.T, Self.words](self.b, result, self.n, self.columns)

    def substitute_twice(self, x: Pointer[Scalar[Self.Own], MutUntrackedOrigin]):
        var pivots = self.pivots.unsafe_bitcast[Int32]()
        for row in range(self.n):
            var other = Int(pivots.unsafe_load[width=1](row)) - 1
            if other != row:
                for j in range(self.columns):
                    var held = x.unsafe_load[width=1](row * self.columns + j)
                    x.unsafe_store(
                        row * self.columns + j, x.unsafe_load[width=1](other * self.columns + j)
                    )
                    x.unsafe_store(other * self.columns + j, held)
        var a = self.a.unsafe_bitcast[Scalar[Self.Own]]()
        var n = self.n
        var columns = self.columns
        substitute[Self.Own](a, 1, n, x, n, columns, 1, columns, True, True)
        substitute[Self.Own](a, 1, n, x, n, columns, 1, columns, False, False)

    def free(deinit self):
        self.work^.free()


# --- eigenvalues and singular values ----------------------------------------------------------


struct Hermitian[T: DType, words: Int](Routine):
    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var place: Int
    var nan: Int
    var real: Int
    var a: Bytes
    var more: Bytes
    var reals: Bytes
    var integers: Bytes

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.place = call.integer(2)
        var more = call.integer(4)
        var reals = call.integer(5)
        var integers = call.integer(6)
        self.nan = call.integer(7)
        self.real = call.integer(8)
        var size = self.n * self.n * Self.SIZE
        self.work = Work(size + more * Self.SIZE + reals * self.real + 4 * integers)
        self.a = self.work.array(size)
        self.more = self.work.array(more * Self.SIZE)
        self.reals = self.work.array(reals * self.real)
        self.integers = self.work.array(4 * integers)
        self.work.set(0, VECTORS)
        self.work.set(1, LOWER if call.integer(3) else UPPER)
        self.work.set(2, self.n)
        self.work.set(3, more)
        self.work.set(4, reals)
        self.work.set(5, integers)

    def run(mut self, i: Int):
        var size = self.n * self.n * Self.SIZE
        var vectors = self.call.operand(1, i * size)
        var values = self.call.operand(2, i * self.n * self.real)
        to_columns[Self.T, Self.words](self.call.operand(0, i * size), self.a, self.n, self.n)
        if self.real != Self.SIZE:
            routine[Call13](self.place)(
                self.work.at(0),
                self.work.at(1),
                self.work.at(2),
                self.a,
                self.work.at(2),
                values,
                self.more,
                self.work.at(3),
                self.reals,
                self.work.at(4),
                self.integers,
                self.work.at(5),
                self.work.at(6),
            )
        else:
            routine[Call11](self.place)(
                self.work.at(0),
                self.work.at(1),
                self.work.at(2),
                self.a,
                self.work.at(2),
                values,
                self.more,
                self.work.at(3),
                self.integers,
                self.work.at(5),
                self.work.at(6),
            )
        if self.work.get(6) == 0:
            to_rows[Self.T, Self.words](self.a, vectors, self.n, self.n)
        else:
            fill(vectors, size, self.nan)
            fill(values, self.n * self.real, self.nan)

    def free(deinit self):
        self.work^.free()


struct Singular[T: DType, words: Int](Routine):
    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var m: Int
    var n: Int
    var place: Int
    var vectors: Bool
    var lefts: Int
    var rights: Int
    var nan: Int
    var real: Int
    var a: Bytes
    var left: Bytes
    var right: Bytes
    var more: Bytes
    var reals: Bytes
    var integers: Bytes

    def __init__(out self, call: Operands):
        self.call = call
        self.m = call.integer(1)
        self.n = call.integer(2)
        self.place = call.integer(3)
        self.vectors = call.number == 4
        var full = call.integer(4) != 0
        var more = call.integer(5)
        var reals = call.integer(6)
        self.nan = call.integer(7)
        self.real = call.integer(8)
        var fewer = min(self.m, self.n)
        self.lefts = self.m if full else fewer
        self.rights = self.n if full else fewer
        var left = self.m * self.lefts * Self.SIZE
        var right = self.n * self.rights * Self.SIZE
        self.work = Work(
            self.m * self.n * Self.SIZE + left + right + more * Self.SIZE + reals * self.real
            + 32 * fewer
        )
        self.a = self.work.array(self.m * self.n * Self.SIZE)
        self.left = self.work.array(left)
        self.right = self.work.array(right)
        self.more = self.work.array(more * Self.SIZE)
        self.reals = self.work.array(reals * self.real)
        self.integers = self.work.array(32 * fewer)
        self.work.set(0, NO if not self.vectors else ALL if full else SOME)
        self.work.set(1, self.m)
        self.work.set(2, self.n)
        self.work.set(3, self.rights)
        self.work.set(4, more)

    def run(mut self, i: Int):
        var size = self.m * self.n * Self.SIZE
        var bytes = min(self.m, self.n) * self.real
        var values = self.call.operand(1, i * bytes)
        to_columns[Self.T, Self.words](self.call.operand(0, i * size), self.a, self.m, self.n)
        if self.real != Self.SIZE:
            routine[Call15](self.place)(
                self.work.at(0),
                self.work.at(1),
                self.work.at(2),
                self.a,
                self.work.at(1),
                values,
                self.left,
                self.work.at(1),
                self.right,
                self.work.at(3),
                self.more,
                self.work.at(4),
                self.reals,
                self.integers,
                self.work.at(5),
            )
        else:
            routine[Call14](self.place)(
                self.work.at(0),
                self.work.at(1),
                self.work.at(2),
                self.a,
                self.work.at(1),
                values,
                self.left,
                self.work.at(1),
                self.right,
                self.work.at(3),
                self.more,
                self.work.at(4),
                self.integers,
                self.work.at(5),
            )
        var failed = self.work.get(5) != 0
        if failed:
            fill(values, bytes, self.nan)
        if not self.vectors:
            return
        var left = self.m * self.lefts * Self.SIZE
        var right = self.rights * self.n * Self.SIZE
        if failed:
            fill(self.call.operand(2, i * left), left, self.nan)
            fill(self.call.operand(3, i * right), right, self.nan)
            return
        to_rows[Self.T, Self.words](
            self.left, self.call.operand(2, i * left), self.m, self.lefts
        )
        to_rows[Self.T, Self.words](
            self.right, self.call.operand(3, i * right), self.rights, self.n
        )

    def free(deinit self):
        self.work^.free()


# --- exports ----------------------------------------------------------------------------------


@always_inline
def getrf[T: DType, words: Int](slots: Slots, args: Args):
    run[Lu[T, words], 4, 4, 1, 2](slots, args)


@export
def getrf_32(slots: Slots, args: Args) abi("C"):
    getrf[DType.uint32, 1](slots, args)


@export
def getrf_64(slots: Slots, args: Args) abi("C"):
    getrf[DType.uint64, 1](slots, args)


@export
def getrf_128(slots: Slots, args: Args) abi("C"):
    getrf[DType.uint64, 2](slots, args)


@always_inline
def potrf[T: DType, words: Int](slots: Slots, args: Args):
    run[Cholesky[T, words], 2, 4, 1, 1](slots, args)


@export
def potrf_32(slots: Slots, args: Args) abi("C"):
    potrf[DType.uint32, 1](slots, args)


@export
def potrf_64(slots: Slots, args: Args) abi("C"):
    potrf[DType.uint64, 1](slots, args)


@export
def potrf_128(slots: Slots, args: Args) abi("C"):
    potrf[DType.uint64, 2](slots, args)


@always_inline
def geqrf[T: DType, words: Int](slots: Slots, args: Args):
    run[Reflections[T, words], 3, 5, 1, 2](slots, args)


@export
def geqrf_32(slots: Slots, args: Args) abi("C"):
    geqrf[DType.uint32, 1](slots, args)


@export
def geqrf_64(slots: Slots, args: Args) abi("C"):
    geqrf[DType.uint64, 1](slots, args)


@export
def geqrf_128(slots: Slots, args: Args) abi("C"):
    geqrf[DType.uint64, 2](slots, args)


@always_inline
def orgqr[T: DType, words: Int](slots: Slots, args: Args):
    run[Product[T, words], 3, 6, 1, 2](slots, args)


@export
def orgqr_32(slots: Slots, args: Args) abi("C"):
    orgqr[DType.uint32, 1](slots, args)


@export
def orgqr_64(slots: Slots, args: Args) abi("C"):
    orgqr[DType.uint64, 1](slots, args)


@export
def orgqr_128(slots: Slots, args: Args) abi("C"):
    orgqr[DType.uint64, 2](slots, args)


@export
def ormqr_32(slots: Slots, args: Args) abi("C"):
    run[Reflected[DType.uint32, 1], 4, 11, 1, 2](slots, args)


@export
def ormqr_64(slots: Slots, args: Args) abi("C"):
    run[Reflected[DType.uint64, 1], 4, 11, 1, 2](slots, args)


@export
def ormqr_128(slots: Slots, args: Args) abi("C"):
    run[Reflected[DType.uint64, 2], 4, 11, 1, 2](slots, args)


@export
def trsm_32(slots: Slots, args: Args) abi("C"):
    run[Triangular[DType.uint32, 1, DType.float32], 3, 10, 1, 2](slots, args)


@export
def trsm_64(slots: Slots, args: Args) abi("C"):
    run[Triangular[DType.uint64, 1, DType.float64], 3, 10, 1, 2](slots, args)


@export
def trsm_128(slots: Slots, args: Args) abi("C"):
    run[Triangular[DType.uint64, 2, DType.float64], 3, 10, 1, 2](slots, args)


@export
def getrs_32(slots: Slots, args: Args) abi("C"):
    run[Solve[DType.uint32, 1, DType.float32], 3, 6, 1, 1](slots, args)


@export
def getrs_64(slots: Slots, args: Args) abi("C"):
    run[Solve[DType.uint64, 1, DType.float64], 3, 6, 1, 1](slots, args)


@export
def getrs_128(slots: Slots, args: Args) abi("C"):
    run[Solve[DType.uint64, 2, DType.float64], 3, 6, 1, 1](slots, args)


@export
def syevd_32(slots: Slots, args: Args) abi("C"):
    run[Hermitian[DType.uint32, 1], 3, 9, 1, 1](slots, args)


@export
def syevd_64(slots: Slots, args: Args) abi("C"):
    run[Hermitian[DType.uint64, 1], 3, 9, 1, 1](slots, args)


@export
def syevd_128(slots: Slots, args: Args) abi("C"):
    run[Hermitian[DType.uint64, 2], 3, 9, 1, 1](slots, args)


@export
def gesdd_32(slots: Slots, args: Args) abi("C"):
    run[Singular[DType.uint32, 1], 4, 9, 1, 2](slots, args)


@export
def gesdd_64(slots: Slots, args: Args) abi("C"):
    run[Singular[DType.uint64, 1], 4, 9, 1, 2](slots, args)


@export
def gesdd_128(slots: Slots, args: Args) abi("C"):
    run[Singular[DType.uint64, 2], 4, 9, 1, 2](slots, args)


@export
def gesdd_values_32(slots: Slots, args: Args) abi("C"):
    run[Singular[DType.uint32, 1], 2, 9, 1, 2](slots, args)


@export
def gesdd_values_64(slots: Slots, args: Args) abi("C"):
    run[Singular[DType.uint64, 1], 2, 9, 1, 2](slots, args)


@export
def gesdd_values_128(slots: Slots, args: Args) abi("C"):
    run[Singular[DType.uint64, 2], 2, 9, 1, 2](slots, args)
