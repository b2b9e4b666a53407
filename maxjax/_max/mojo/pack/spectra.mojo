"""Eigenvalues and singular values of stacks of matrices, and the reductions that lead to them.

As `linalg.mojo`. Of a matrix for which a routine fails all results are NaN.

`syevd_<bits>`: x, vectors, values | count, n, syevd, lower, lwork, lrwork, liwork, nan, real size,
    threads
`gesdd_<bits>`: x, values, left, right | count, m, n, gesdd, full, lwork, lrwork, nan, real size,
    threads
`gesdd_values_<bits>`: x, values | as gesdd
`geev_<bits>`: x, values, left or right vectors, of complex numbers | count, n, geev, left, right,
    lwork, nan, real size, threads
`geev_values_<bits>`: x, values; `geev_both_<bits>`: x, values, left, right | as geev
`gees_<bits>`: x, triangles, vectors | count, n, gees, lwork, nan, real size, threads
`gees_values_<bits>`: x, triangles | as gees
`gehrd_<bits>`: x, packed, taus | count, n, gehrd, lwork, nan, threads
`sytrd_<bits>`: x, packed, diagonal, beside, taus | count, n, sytrd, lower, lwork, nan, real size,
    threads
"""
from std.sys.info import size_of

from kernels.calling import Args, Memory, Slots
from kernels.stacks import (
    ALL,
    Call10,
    Call11,
    Call13,
    Call14,
    Call15,
    Call9,
    LOWER,
    NO,
    Operands,
    Routine,
    SOME,
    UPPER,
    VECTORS,
    Work,
    fill,
    routine,
    run,
    to_columns,
    to_rows,
)

# --- eigenvalues and singular values ----------------------------------------------------------


struct Hermitian[T: DType, words: Int](Routine):
    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var place: Int
    var nan: Int
    var real: Int
    var a: Memory
    var more: Memory
    var reals: Memory
    var integers: Memory

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
    var a: Memory
    var left: Memory
    var right: Memory
    var more: Memory
    var reals: Memory
    var integers: Memory

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


struct General[T: DType, words: Int](Routine):
    """Eigenvalues of any matrix, and its left and right eigenvectors, as complex numbers."""

    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var place: Int
    var left: Bool
    var right: Bool
    var nan: Int
    var real: Int
    var a: Memory
    var values: Memory
    var imaginary: Memory
    var lefts: Memory
    var rights: Memory
    var more: Memory
    var reals: Memory

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.place = call.integer(2)
        self.left = call.integer(3) != 0
        self.right = call.integer(4) != 0
        var more = call.integer(5)
        self.nan = call.integer(6)
        self.real = call.integer(7)
        var size = self.n * self.n * Self.SIZE
        self.work = Work(3 * size + (4 * self.n + more) * Self.SIZE)
        self.a = self.work.array(size)
        self.values = self.work.array(self.n * Self.SIZE)
        self.imaginary = self.work.array(self.n * Self.SIZE)
        self.lefts = self.work.array(size)
        self.rights = self.work.array(size)
        self.more = self.work.array(more * Self.SIZE)
        self.reals = self.work.array(2 * self.n * self.real)
        self.work.set(0, VECTORS if self.left else NO)
        self.work.set(1, VECTORS if self.right else NO)
        self.work.set(2, self.n)
        self.work.set(3, more)

    def run(mut self, i: Int):
        var size = self.n * self.n * Self.SIZE
        var x = self.call.operand(0, i * size)
        to_columns[Self.T, Self.words](x, self.a, self.n, self.n)
        self.work.set(4, 1)
        if self.is_finite(x):       # what LAPACK does not ask
            self.decompose()
        var failed = self.work.get(4) != 0
        var line = 2 * self.n * self.real
        if failed:
            fill(self.call.operand(1, i * line), line, self.nan)
        else:
            self.store(self.call.operand(1, i * line), self.values, False)
        var k = 2
        if self.left:
            self.store_vectors(self.call.operand(k, i * self.n * line), self.lefts, failed)
            k += 1
        if self.right:
            self.store_vectors(self.call.operand(k, i * self.n * line), self.rights, failed)

    def is_finite(self, x: Memory) -> Bool:
        var count = self.n * self.n * Self.SIZE // self.real
        if self.real == 4:
            return all_finite[DType.float32](x, count)
        return all_finite[DType.float64](x, count)

    def decompose(mut self):
        if self.real != Self.SIZE:
            routine[Call14](self.place)(
                self.work.at(0),
                self.work.at(1),
                self.work.at(2),
                self.a,
                self.work.at(2),
                self.values,
                self.lefts,
                self.work.at(2),
                self.rights,
                self.work.at(2),
                self.more,
                self.work.at(3),
                self.reals,
                self.work.at(4),
            )
        else:
            routine[Call14](self.place)(
                self.work.at(0),
                self.work.at(1),
                self.work.at(2),
                self.a,
                self.work.at(2),
                self.values,
                self.imaginary,
                self.lefts,
                self.work.at(2),
                self.rights,
                self.work.at(2),
                self.more,
                self.work.at(3),
                self.work.at(4),
            )

    def store_vectors(self, result: Memory, columns: Memory, failed: Bool):
        if failed:
            fill(result, 2 * self.n * self.n * self.real, self.nan)
        else:
            self.store(result, columns, True)

    def store(self, result: Memory, source: Memory, vectors: Bool):
        """Stores values, or vectors row by row, as complex numbers."""
        if self.real != Self.SIZE:
            to_rows[Self.T, Self.words](
                source, result, self.n if vectors else 1, self.n
            )
        elif self.real == 4:
            joined[DType.float32](result, source, self.imaginary, self.n, vectors)
        else:
            joined[DType.float64](result, source, self.imaginary, self.n, vectors)

    def free(deinit self):
        self.work^.free()


def all_finite[T: DType](x: Memory, count: Int) -> Bool:
    var numbers = x.unsafe_bitcast[Scalar[T]]()
    var total = Scalar[T](0)
    for i in range(count):
        total += numbers.unsafe_load[width=1](i) * 0     # NaN of what is not finite
    return total == 0


def joined[
    T: DType
](result: Memory, source: Memory, imaginary: Memory, n: Int, vectors: Bool):
    """Complex eigenvalues of their parts; or vectors: of a conjugate pair, whose first value's
    imaginary part is positive, LAPACK gives the two parts as columns."""
    var numbers = source.unsafe_bitcast[Scalar[T]]()
    var turns = imaginary.unsafe_bitcast[Scalar[T]]()
    var out = result.unsafe_bitcast[Scalar[T]]()
    if not vectors:
        for i in range(n):
            out.unsafe_store(2 * i, numbers.unsafe_load[width=1](i))
            out.unsafe_store(2 * i + 1, turns.unsafe_load[width=1](i))
        return
    var column = 0
    while column < n:
        var paired = turns.unsafe_load[width=1](column) > 0 and column + 1 < n
        for row in range(n):
            var real = numbers.unsafe_load[width=1](column * n + row)
            var place = 2 * (row * n + column)
            out.unsafe_store(place, real)
            if paired:
                var other = numbers.unsafe_load[width=1]((column + 1) * n + row)
                out.unsafe_store(place + 1, other)
                out.unsafe_store(place + 2, real)
                out.unsafe_store(place + 3, -other)
            else:
                out.unsafe_store(place + 1, Scalar[T](0))
        column += 2 if paired else 1


struct Schur[T: DType, words: Int](Routine):
    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var gees: Call15
    var vectors: Bool
    var nan: Int
    var real: Int
    var a: Memory
    var values: Memory
    var columns: Memory
    var more: Memory
    var reals: Memory

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.gees = routine[Call15](call.integer(2))
        self.vectors = call.number == 3
        var more = call.integer(3)
        self.nan = call.integer(4)
        self.real = call.integer(5)
        var size = self.n * self.n * Self.SIZE
        self.work = Work(2 * size + (2 * self.n + more) * Self.SIZE + 12 * self.n)
        self.a = self.work.array(size)
        self.values = self.work.array(2 * self.n * Self.SIZE)
        self.columns = self.work.array(size)
        self.more = self.work.array(more * Self.SIZE)
        self.reals = self.work.array(12 * self.n)
        self.work.set(0, VECTORS if self.vectors else NO)
        self.work.set(1, NO)
        self.work.set(2, self.n)
        self.work.set(3, more)

    def run(mut self, i: Int):
        var size = self.n * self.n * Self.SIZE
        to_columns[Self.T, Self.words](self.call.operand(0, i * size), self.a, self.n, self.n)
        # Nothing is sorted: the function that would choose is never called, nor `bwork` read.
        if self.real != Self.SIZE:
            self.gees(
                self.work.at(0),
                self.work.at(1),
                self.work.at(6),
                self.work.at(2),
                self.a,
                self.work.at(2),
                self.work.at(4),
                self.values,
                self.columns,
                self.work.at(2),
                self.more,
                self.work.at(3),
                self.reals,
                self.work.at(7),
                self.work.at(5),
            )
        else:
            self.gees(
                self.work.at(0),
                self.work.at(1),
                self.work.at(6),
                self.work.at(2),
                self.a,
                self.work.at(2),
                self.work.at(4),
                self.values,
                self.values.unsafe_offset(self.n * Self.SIZE),
                self.columns,
                self.work.at(2),
                self.more,
                self.work.at(3),
                self.work.at(7),
                self.work.at(5),
            )
        var failed = self.work.get(5) != 0
        self.store(self.call.operand(1, i * size), self.a, size, failed)
        if self.vectors:
            self.store(self.call.operand(2, i * size), self.columns, size, failed)

    def store(self, result: Memory, columns: Memory, size: Int, failed: Bool):
        if failed:
            fill(result, size, self.nan)
        else:
            to_rows[Self.T, Self.words](columns, result, self.n, self.n)

    def free(deinit self):
        self.work^.free()


struct Hessenberg[T: DType, words: Int](Routine):
    """The reduction to a matrix with zeros below the first diagonal under the main one."""

    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var gehrd: Call9
    var nan: Int
    var a: Memory
    var more: Memory

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.gehrd = routine[Call9](call.integer(2))
        var more = call.integer(3)
        self.nan = call.integer(4)
        self.work = Work((self.n * self.n + more) * Self.SIZE)
        self.a = self.work.array(self.n * self.n * Self.SIZE)
        self.more = self.work.array(more * Self.SIZE)
        self.work.set(0, self.n)
        self.work.set(1, 1)
        self.work.set(2, more)

    def run(mut self, i: Int):
        var size = self.n * self.n * Self.SIZE
        var line = (self.n - 1) * Self.SIZE
        var packed = self.call.operand(1, i * size)
        var taus = self.call.operand(2, i * line)
        to_columns[Self.T, Self.words](self.call.operand(0, i * size), self.a, self.n, self.n)
        self.gehrd(
            self.work.at(0),
            self.work.at(1),
            self.work.at(0),
            self.a,
            self.work.at(0),
            taus,
            self.more,
            self.work.at(2),
            self.work.at(3),
        )
        if self.work.get(3) == 0:
            to_rows[Self.T, Self.words](self.a, packed, self.n, self.n)
        else:
            fill(packed, size, self.nan)
            fill(taus, line, self.nan)

    def free(deinit self):
        self.work^.free()


struct ToTridiagonal[T: DType, words: Int](Routine):
    """The reduction of a Hermitian matrix to a tridiagonal one."""

    comptime SIZE = size_of[Scalar[Self.T]]() * Self.words
    var call: Operands
    var work: Work
    var n: Int
    var sytrd: Call10
    var nan: Int
    var real: Int
    var a: Memory
    var more: Memory

    def __init__(out self, call: Operands):
        self.call = call
        self.n = call.integer(1)
        self.sytrd = routine[Call10](call.integer(2))
        var more = call.integer(4)
        self.nan = call.integer(5)
        self.real = call.integer(6)
        self.work = Work((self.n * self.n + more) * Self.SIZE)
        self.a = self.work.array(self.n * self.n * Self.SIZE)
        self.more = self.work.array(more * Self.SIZE)
        self.work.set(0, LOWER if call.integer(3) else UPPER)
        self.work.set(1, self.n)
        self.work.set(2, more)

    def run(mut self, i: Int):
        var size = self.n * self.n * Self.SIZE
        var line = (self.n - 1) * Self.SIZE
        var packed = self.call.operand(1, i * size)
        var diagonal = self.call.operand(2, i * self.n * self.real)
        var beside = self.call.operand(3, i * (self.n - 1) * self.real)
        var taus = self.call.operand(4, i * line)
        to_columns[Self.T, Self.words](self.call.operand(0, i * size), self.a, self.n, self.n)
        self.sytrd(
            self.work.at(0),
            self.work.at(1),
            self.a,
            self.work.at(1),
            diagonal,
            beside,
            taus,
            self.more,
            self.work.at(2),
            self.work.at(3),
        )
        if self.work.get(3) == 0:
            to_rows[Self.T, Self.words](self.a, packed, self.n, self.n)
        else:
            fill(packed, size, self.nan)
            fill(diagonal, self.n * self.real, self.nan)
            fill(beside, (self.n - 1) * self.real, self.nan)
            fill(taus, line, self.nan)

    def free(deinit self):
        self.work^.free()
