"""Factors of stacks of matrices and systems of equations, through LAPACK.

The routines are those of SciPy.
Elements are moved by their size in bits: 32 (float32), 64 (float64, complex64), 128 (complex128).
Of a matrix for which a routine fails all results are NaN: `nan` is its bits, those of float32 twice.

`getrf_<bits>`: x, factors, pivots (int32), order (int32) | count, m, n, getrf, threads
`potrf_<bits>`: x, out | count, n, potrf, nan, threads
`geqrf_<bits>`: x, packed, taus | count, m, n, geqrf, lwork, threads
`orgqr_<bits>`: x, taus, out | count, m, n, k, orgqr, lwork, threads
`ormqr_<bits>`: x, taus, c, out | count, m, n, rows and columns of x, number of taus, k, ormqr, lwork,
    left, form, threads
`trsm_<bits>`: a, b, out | count, n, columns, trsm, left, lower, form, unit, one, is real, threads
`gesv_<bits>`: a, b, out | count, n, columns, getrf, trsm, one, is real, threads
`gtsv_<bits>`: below, diagonal, above, b, out | count, n, columns, gtsv, nan, threads
"""
from std.memory import unsafe_memcpy
from std.sys.info import simd_width_of, size_of

from kernels.calling import Args, Memory, Slots
from kernels.stacks import (
    CONJUGATED,
    Call11,
    Call13,
    Call5,
    Call6,
    Call8,
    Call9,
    LEFT,
    LINE,
    LOWER,
    NO,
    Operands,
    RIGHT,
    Routine,
    TRANSPOSED,
    UNIT,
    UPPER,
    Work,
    fill,
    routine,
    run,
    to_columns,
    to_rows,
)

# --- factorizations ---------------------------------------------------------------------------


@always_inline
def factor(a: Memory, pivots: Memory, work: Work, call: Call6):
    """LU of the matrix in `a`, sizes in arguments 0 and 1, its first size also in 2."""
    call(work.at(0), work.at(1), a, work.at(2), pivots, work.at(3))


struct Lu[T: DType, words: Int](Routine):
    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var m: Int
    var n: Int
    var getrf: Call6
    var a: Memory
    var pivots: Memory

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

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.potrf = routine[Call5](call.integer(2))
        self.nan = call.integer(3)
        self.work = Work(0)
        # The lower triangle's rows are the columns of the upper one of the conjugated matrix, whose
        # factor's columns are the rows of the wanted one.
        self.work.set(0, UPPER)
        self.work.set(1, self.n)

    def run(mut self, i: Int):
        var size = self.n * self.n * Self.SIZE
        var result = self.call.operand(1, i * size)
        unsafe_memcpy(dest=result, src=self.call.operand(0, i * size), count=size)
        self.potrf(
            self.work.at(0), self.work.at(1), result, self.work.at(1), self.work.at(2)
        )
        if self.work.get(2) != 0:
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
    var a: Memory
    var taus: Memory
    var more: Memory

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
    var a: Memory
    var more: Memory

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
    var a: Memory
    var c: Memory
    var more: Memory

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
    var one: Memory

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
    """By LU. Not by `getrs`: OpenBLAS's for complex numbers uses threads for matrices of any size."""

    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var columns: Int
    var getrf: Call6
    var trsm: Call11
    var own: Bool
    var a: Memory
    var pivots: Memory
    var one: Memory

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.columns = call.integer(2)
        self.getrf = routine[Call6](call.integer(3))
        self.trsm = routine[Call11](call.integer(4))
        self.own = call.integer(6) != 0 and self.n <= SMALL
        self.work = Work(self.n * self.n * Self.SIZE + 4 * self.n + LINE)
        self.a = self.work.array(self.n * self.n * Self.SIZE)
        self.pivots = self.work.array(4 * self.n)
        self.one = self.work.array(LINE)
        fill(self.one, LINE, 0)
        fill(self.one, 8, call.integer(5))
        self.work.set(0, self.n)
        self.work.set(1, self.n)
        self.work.set(2, self.n)
        # Rows are columns of the transposed equation, which has the matrix on the other side.
        self.work.set(4, RIGHT)
        self.work.set(5, TRANSPOSED)
        self.work.set(6, self.columns)
        self.work.set(7, LOWER)
        self.work.set(8, UPPER)
        self.work.set(9, UNIT)
        self.work.set(10, NO)

    def run(mut self, i: Int):
        var size = self.n * self.columns * Self.SIZE
        var b = self.call.operand(1, i * size)
        var result = self.call.operand(2, i * size)
        to_columns[Self.T, Self.words](
            self.call.operand(0, i * self.n * self.n * Self.SIZE), self.a, self.n, self.n
        )
        factor(self.a, self.pivots, self.work, self.getrf)
        unsafe_memcpy(dest=result, src=b, count=size)
        self.exchange(result)
        if self.own:
            self.substitute_twice(result.unsafe_bitcast[Scalar[Self.Own]]())
            return
        self.solve(self.work.at(7), self.work.at(9), result)
        self.solve(self.work.at(8), self.work.at(10), result)

    def solve(self, half: Memory, diagonal: Memory, x: Memory):
        self.trsm(
            self.work.at(4),
            half,
            self.work.at(5),
            diagonal,
            self.work.at(6),
            self.work.at(0),
            self.one,
            self.a,
            self.work.at(0),
            x,
            self.work.at(6),
        )

    def exchange(self, rows: Memory):
        """Puts the rows of the right side in the order of the factors."""
        var pivots = self.pivots.unsafe_bitcast[Int32]()
        var parts = rows.unsafe_bitcast[Scalar[Self.T]]()
        var width = self.columns * Self.words
        for row in range(self.n):
            var other = Int(pivots.unsafe_load[width=1](row)) - 1
            if other != row:
                for j in range(width):
                    var held = parts.unsafe_load[width=1](row * width + j)
                    parts.unsafe_store(
                        row * width + j, parts.unsafe_load[width=1](other * width + j)
                    )
                    parts.unsafe_store(other * width + j, held)

    def substitute_twice(self, x: Pointer[Scalar[Self.Own], MutUntrackedOrigin]):
        var a = self.a.unsafe_bitcast[Scalar[Self.Own]]()
        var n = self.n
        var columns = self.columns
        substitute[Self.Own](a, 1, n, x, n, columns, 1, columns, True, True)
        substitute[Self.Own](a, 1, n, x, n, columns, 1, columns, False, False)

    def free(deinit self):
        self.work^.free()


struct Tridiagonal[T: DType, words: Int](Routine):
    """Systems of a tridiagonal matrix: the first element of `below` and the last of `above` are
    none of it."""

    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var columns: Int
    var gtsv: Call8
    var nan: Int
    var below: Memory
    var diagonal: Memory
    var above: Memory
    var b: Memory

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.columns = call.integer(2)
        self.gtsv = routine[Call8](call.integer(3))
        self.nan = call.integer(4)
        var line = self.n * Self.SIZE
        self.work = Work((3 + self.columns) * line)
        self.below = self.work.array(line)
        self.diagonal = self.work.array(line)
        self.above = self.work.array(line)
        self.b = self.work.array(self.columns * line)
        self.work.set(0, self.n)
        self.work.set(1, self.columns)

    def run(mut self, i: Int):
        var line = self.n * Self.SIZE
        var size = self.columns * line
        var less = line - Self.SIZE
        unsafe_memcpy(
            dest=self.below, src=self.call.operand(0, i * line + Self.SIZE), count=less
        )
        unsafe_memcpy(dest=self.diagonal, src=self.call.operand(1, i * line), count=line)
        unsafe_memcpy(dest=self.above, src=self.call.operand(2, i * line), count=less)
        var b = self.call.operand(3, i * size)
        var result = self.call.operand(4, i * size)
        var x = self.b if self.columns > 1 else result
        if self.columns > 1:
            to_columns[Self.T, Self.words](b, x, self.n, self.columns)
        else:
            unsafe_memcpy(dest=x, src=b, count=size)
        self.gtsv(
            self.work.at(0),
            self.work.at(1),
            self.below,
            self.diagonal,
            self.above,
            x,
            self.work.at(0),
            self.work.at(2),
        )
        if self.work.get(2) != 0:
            fill(result, size, self.nan)
        elif self.columns > 1:
            to_rows[Self.T, Self.words](x, result, self.n, self.columns)

    def free(deinit self):
        self.work^.free()
