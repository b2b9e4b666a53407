"""The matrix product: `matmul_<dtype>` for every float and integer dtype, and the convolution.

`convolve_<dtype>`: x (outer, height, width, inner), weights, out (outer, rows, columns, outputs)
| outer, height, width, inner, rows, columns, geometry (ten numbers), outputs, threads

c[t, i, j] = sum over p of a[t, i, p] * b[t, p, j], with any strides of a and b. A register tile of
ROWS by VECTORS vectors goes over k; around it blocks of a and b stay in the caches, copied to
contiguous panels where reading them in place would be slow. Vectors times matrices go a way of
their own. Narrow dtypes are widened while they are packed: the halves to float32, 8-bit integers
to 16 bits, where wrapping products come out the same.

MAX's `linalg.matmul` takes 0.90 to 1.00 of this one's time on squares of 128 to 2048, and 1.1 to
1.6 on those of 16 to 64 (float32, one thread, AVX2); it is not used.
"""
from std.sys.info import CompilationTarget, simd_width_of, size_of
from std.sys.intrinsics import llvm_intrinsic

from kernels.calling import Args, Slots, integer, operand
from kernels.crew import Tasks, spread
from kernels.halves import rounded_to
from kernels.reduction import Held, chunk_begin, dot_width, held
from kernels.windows import Geometry, Sizes, unfold_rows

comptime Elements[dtype: DType] = Pointer[Scalar[dtype], MutUntrackedOrigin]

# A tile and its operands fill the vector registers: 16 of AVX2, 32 of AVX-512 and NEON.
comptime ROWS = 6 if CompilationTarget.has_avx2() and not CompilationTarget.has_avx512f() else 12
comptime VECTORS = 2
# A panel of b of so many rows fits the first-level cache.
comptime DEPTH = 256
# A block of a of so many bytes fits the second-level cache, of b the third-level one.
comptime A_BLOCK_BYTES = 147456
comptime B_BLOCK_COLUMNS = 2048
# Less than so many multiplications, some 12 us, are not worth another thread.
comptime GRAIN = 500_000
# Up to so many bytes an operand is read in place.
comptime IN_PLACE_BYTES = 65536


@always_inline
def round_up(x: Int, step: Int) -> Int:
    return (x + step - 1) // step * step


@always_inline
def multiply_add[
    T: DType, width: SIMDLength
](x: SIMD[T, width], y: SIMD[T, width], z: SIMD[T, width]) -> SIMD[T, width]:
    comptime if T.is_floating_point():
        return x.fma(y, z)
    else:
        return x * y + z


@fieldwise_init
struct Matrix[T: DType](TrivialRegisterPassable):
    """Elements at any two strides."""

    var data: Elements[Self.T]
    var row: Int
    var col: Int

    @always_inline
    def at(self, i: Int, j: Int) -> Self:
        """The submatrix from (i, j) on."""
        return Self(self.data.unsafe_offset(i * self.row + j * self.col), self.row, self.col)

    @always_inline
    def transposed(self) -> Self:
        return Self(self.data, self.col, self.row)


struct Scratch[T: DType]:
    """Memory aligned to cache lines, until `free`: a pointer to it does not keep it alive."""

    var memory: List[Scalar[Self.T]]

    def __init__(out self, count: Int):
        self.memory = List[Scalar[Self.T]](unsafe_uninit_length=count + 64)

    @always_inline
    def data(mut self) -> Elements[Self.T]:
        var start = self.memory.unsafe_ptr().unsafe_origin_cast[MutUntrackedOrigin]()
        var excess = Int(start) % 64
        return start.unsafe_offset((64 - excess) // size_of[Scalar[Self.T]]())

    @no_inline
    def free(deinit self):
        pass


@no_inline
def store_first[
    T: DType, W: Int
](value: SIMD[T, W], target: Elements[T], count: Int, add: Bool):
    """Stores, or adds, the first elements of a vector. Not a part of each tile that has an edge:
    elements one by one, of all vectors of a tile, take long to compile."""
    var elements = Array[Scalar[T], W](fill=Scalar[T](0))
    elements.unsafe_ptr().unsafe_store(0, value)
    for i in range(count):
        var one = elements[i]
        if add:
            one += target.unsafe_load[width=1](i)
        target.unsafe_store(i, one)


def tile[
    T: DType, rows: Int, vectors: Int, whole: Bool
](
    a: Matrix[T],
    b: Elements[T],
    b_row: Int,
    k: Int,
    c: Elements[T],
    c_row: Int,
    columns: Int,
    add: Bool,
):
    """Computes, or adds to, `rows` by `columns` elements of c: all of the vectors if `whole`."""
    comptime W = simd_width_of[T]()
    comptime UNROLL = 4 if T.is_floating_point() else 1
    var sums = Array[SIMD[T, W], rows * vectors](fill=SIMD[T, W](0))
    var ap = a.data
    var bp = b
    comptime for i in range(rows):
        # To be written, near, as data.
        llvm_intrinsic["llvm.prefetch", NoneType](
            c.unsafe_offset(i * c_row), Int32(1), Int32(3), Int32(1)
        )

    @always_inline
    def step(x: Elements[T], y: Elements[T]) {mut sums, var a}:
        var right = Array[SIMD[T, W], vectors](fill=SIMD[T, W](0))
        comptime for v in range(vectors):
            right[v] = y.unsafe_load[width=W](v * W)
        comptime for i in range(rows):
            var left = SIMD[T, W](x.unsafe_offset(i * a.row)[])
            comptime for v in range(vectors):
                sums[i * vectors + v] = multiply_add(left, right[v], sums[i * vectors + v])

    for _ in range(k // UNROLL):
        comptime for u in range(UNROLL):
            step(ap.unsafe_offset(u * a.col), bp.unsafe_offset(u * b_row))
        ap = ap.unsafe_offset(UNROLL * a.col)
        bp = bp.unsafe_offset(UNROLL * b_row)
    for _ in range(k % UNROLL):
        step(ap, bp)
        ap = ap.unsafe_offset(a.col)
        bp = bp.unsafe_offset(b_row)

    comptime for i in range(rows):
        var line = c.unsafe_offset(i * c_row)
        comptime for v in range(vectors):
            var value = sums[i * vectors + v]
            if whole or (v + 1) * W <= columns:
                if add:
                    value += line.unsafe_load[width=W](v * W)
                line.unsafe_store(v * W, value)
            else:
                store_first[T, W](value, line.unsafe_offset(v * W), columns - v * W, add)


@no_inline
def column_of_tiles[
    T: DType, vectors: Int, whole: Bool, packed: Bool
](
    a: Matrix[T],
    a_panel: Int,
    b: Elements[T],
    b_row: Int,
    m: Int,
    k: Int,
    c: Elements[T],
    c_row: Int,
    columns: Int,
    add: Bool,
):
    """All tiles of one panel of b. The panels of a are `a_panel` apart.

    `packed`: the strides of a and b are those of packed panels, and so known to the compiler.
    """
    var panel = a
    var step = b_row
    comptime if packed:
        panel.row = 1
        panel.col = ROWS
        step = VECTORS * simd_width_of[T]()
    var i = 0
    while i + ROWS <= m:
        tile[T, ROWS, vectors, whole](
            panel, b, step, k, c.unsafe_offset(i * c_row), c_row, columns, add
        )
        panel.data = panel.data.unsafe_offset(a_panel)
        i += ROWS
    comptime for halved in range(4):
        comptime part = 8 >> halved
        comptime if part < ROWS:
            if (m - i) & part:
                tile[T, part, vectors, whole](
                    panel, b, step, k, c.unsafe_offset(i * c_row), c_row, columns, add
                )
                panel = panel.at(part, 0)
                i += part


@always_inline
def load_cast[
    S: DType, T: DType, width: Int
](x: Elements[S], i: Int) -> SIMD[T, width]:
    return x.unsafe_load[width=width](i).cast[T]()


@always_inline
def transpose_square[
    T: DType, W: Int
](rows: Array[SIMD[T, W], W]) -> Array[SIMD[T, W], W]:
    """Each round rotates the bits of the (row, column) of all elements by one."""
    var x = rows.copy()
    comptime for power in range(7):
        comptime if 1 << power < W:
            var y = x.copy()
            comptime for i in range(W // 2):
                var both = x[i].interleave(x[i + W // 2])
                y[2 * i] = rebind[SIMD[T, W]](both.slice[W, offset=0]())
                y[2 * i + 1] = rebind[SIMD[T, W]](both.slice[W, offset=W]())
            x = y^
    return x^


def turn_b_panel[T: DType](b: Matrix[T], k: Int, panel: Elements[T]):
    """Packs a whole panel of b, whose columns are contiguous."""
    comptime W = simd_width_of[T]()
    comptime N = VECTORS * W
    comptime for v in range(VECTORS):
        var group = b.at(0, v * W)
        var p = 0
        while p + W <= k:
            var square = Array[SIMD[T, W], W](fill=SIMD[T, W](0))
            comptime for i in range(W):
                square[i] = group.at(p, i).data.unsafe_load[width=W](0)
            var turned = transpose_square(square)
            comptime for i in range(W):
                panel.unsafe_store((p + i) * N + v * W, turned[i])
            p += W
        while p < k:
            for i in range(W):
                panel.unsafe_store(p * N + v * W + i, group.at(p, i).data[])
            p += 1


def pack_b[
    S: DType, T: DType
](b: Matrix[S], k: Int, n: Int, panels: Elements[T]):
    """Panels of VECTORS vectors of columns, row after row; missing columns are zero."""
    comptime W = simd_width_of[T]()
    comptime N = VECTORS * W
    # So many panels are written at once that rows are read by several cache lines.
    comptime TOGETHER = 4
    var out = panels
    var j = 0
    while j < n:
        var columns = min(N, n - j)
        var here = b.at(0, j)
        if b.col == 1 and j + TOGETHER * N <= n:
            var x = here.data
            var y = out
            for _ in range(k):
                comptime for panel in range(TOGETHER):
                    comptime for v in range(VECTORS):
                        y.unsafe_store(
                            panel * N * k + v * W, load_cast[S, T, W](x, panel * N + v * W)
                        )
                x = x.unsafe_offset(b.row)
                y = y.unsafe_offset(N)
            out = out.unsafe_offset(TOGETHER * k * N)
            j += TOGETHER * N
            continue
        var turned = False
        comptime if S == T and T.is_floating_point():
            if columns == N and b.row == 1:
                turn_b_panel[T](rebind[Matrix[T]](here), k, out)
                turned = True
        if not turned:
            for p in range(k):
                for i in range(columns):
                    out.unsafe_store(p * N + i, here.at(p, i).data[].cast[T]())
                for i in range(columns, N):
                    out.unsafe_store(p * N + i, Scalar[T](0))
        out = out.unsafe_offset(k * N)
        j += N


def turn_a_panel[T: DType](a: Matrix[T], k: Int, panel: Elements[T]):
    """Packs a whole panel of a, whose rows are contiguous."""
    comptime W = simd_width_of[T]()
    comptime GROUPS = (ROWS + W - 1) // W
    var p = 0
    while p + W <= k:
        var turned = Array[SIMD[T, W], GROUPS * W](fill=SIMD[T, W](0))
        comptime for group in range(GROUPS):
            var square = Array[SIMD[T, W], W](fill=SIMD[T, W](0))
            comptime for r in range(W):
                comptime if group * W + r < ROWS:
                    square[r] = a.at(group * W + r, p).data.unsafe_load[width=W](0)
            var part = transpose_square(square)
            comptime for r in range(W):
                turned[group * W + r] = part[r]
        # What a store writes past ROWS the next one overwrites.
        comptime for r in range(W):
            comptime for group in range(GROUPS):
                panel.unsafe_store((p + r) * ROWS + group * W, turned[group * W + r])
        p += W
    while p < k:
        for r in range(ROWS):
            panel.unsafe_store(p * ROWS + r, a.at(r, p).data[])
        p += 1


def pack_a[
    S: DType, T: DType
](a: Matrix[S], m: Int, k: Int, panels: Elements[T]):
    """Panels of ROWS rows, column after column. Writes up to a vector past the end."""
    # ROWS as a sum of powers of two, so that what is contiguous moves as vectors.
    comptime LEAST = ROWS & -ROWS
    var out = panels
    for i in range(0, m, ROWS):
        var rows = min(ROWS, m - i)
        var here = a.at(i, 0)
        if rows == ROWS and a.row == 1:
            var x = here.data
            var y = out
            for _ in range(k):
                y.unsafe_store(0, load_cast[S, T, ROWS - LEAST](x, 0))
                y.unsafe_store(ROWS - LEAST, load_cast[S, T, LEAST](x, ROWS - LEAST))
                x = x.unsafe_offset(a.col)
                y = y.unsafe_offset(ROWS)
        else:
            var turned = False
            comptime if S == T and T.is_floating_point():
                if rows == ROWS and a.col == 1:
                    turn_a_panel[T](rebind[Matrix[T]](here), k, out)
                    turned = True
            if not turned:
                for p in range(k):
                    for r in range(rows):
                        out.unsafe_store(p * ROWS + r, here.at(r, p).data[].cast[T]())
        out = out.unsafe_offset(k * ROWS)


def product[
    S: DType, T: DType
](a: Matrix[S], b: Matrix[S], c: Elements[T], c_row: Int, m: Int, n: Int, k: Int):
    """One matrix product on one thread, into c of the dtype of its sums."""
    comptime W = simd_width_of[T]()
    comptime N = VECTORS * W
    comptime size = size_of[Scalar[T]]()
    comptime a_rows = A_BLOCK_BYTES // (DEPTH * size) // ROWS * ROWS
    var depth = min(k, DEPTH)
    var b_columns = min(round_up(n, N), B_BLOCK_COLUMNS)
    var a_block = min(round_up(m, ROWS), a_rows)
    var packs_a = S != T or (n > 4 * N and m * k * size > IN_PLACE_BYTES)
    var packs_b = S != T or b.col != 1 or (m > 3 * ROWS and k * n * size > IN_PLACE_BYTES)
    # Columns that fill no whole tile are packed anyway.
    var packed_a = Scratch[T](a_block * depth + W if packs_a else 0)
    var packed_b = Scratch[T](b_columns * depth if packs_b else N * depth if n % N else 0)
    var a_panels = packed_a.data()
    var b_panels = packed_b.data()

    for p in range(0, k, DEPTH):
        var kk = min(DEPTH, k - p)
        for j in range(0, n, B_BLOCK_COLUMNS):
            var nn = min(B_BLOCK_COLUMNS, n - j)
            var tail = nn % N
            if packs_b:
                pack_b[S, T](b.at(p, j), kk, nn, b_panels)
            elif tail:
                pack_b[S, T](b.at(p, j + nn - tail), kk, tail, b_panels)
            for i in range(0, m, a_rows):
                var mm = min(a_rows, m - i)
                var left = Matrix[T](a_panels, 1, ROWS)
                var a_panel = kk * ROWS
                if packs_a:
                    pack_a[S, T](a.at(i, p), mm, kk, a_panels)
                else:
                    left = rebind[Matrix[T]](a.at(i, p))
                    a_panel = ROWS * a.row
                for jj in range(0, nn, N):
                    var columns = min(N, nn - jj)
                    var target = c.unsafe_offset(i * c_row + j + jj)
                    var right = b_panels.unsafe_offset(jj * kk if packs_b else 0)
                    var step = N
                    comptime if S == T:
                        if columns == N and not packs_b:
                            right = rebind[Elements[T]](b.at(p, j + jj).data)
                            step = b.row

                    @always_inline
                    def tiles[vectors: Int, whole: Bool, packed: Bool = False]() {
                        var left,
                        var a_panel,
                        var right,
                        var step,
                        var mm,
                        var kk,
                        var target,
                        var c_row,
                        var columns,
                        var p,
                    }:
                        column_of_tiles[T, vectors, whole, packed](
                            left, a_panel, right, step, mm, kk, target, c_row, columns, p > 0
                        )

                    if columns <= W:
                        tiles[1, False]()
                    elif columns < N:
                        tiles[VECTORS, False]()
                    elif packs_a and packs_b and T.is_floating_point():
                        tiles[VECTORS, True, T.is_floating_point()]()
                    else:
                        tiles[VECTORS, True]()
    packed_a^.free()
    packed_b^.free()


def combine_rows[
    T: DType
](x: Elements[T], x_step: Int, b: Matrix[T], y: Elements[T], n: Int, k: Int):
    """Sets y = x b, where the rows of b are contiguous: eight at a time are added to y."""
    comptime W = simd_width_of[T]()
    comptime TOGETHER = 8
    comptime CHUNK = 2048

    @always_inline
    def add_rows[count: Int](p: Int, j: Int, end: Int) {var x, var x_step, var b, var y}:
        var factors = SIMD[T, count](0)
        comptime for r in range(count):
            factors[r] = x.unsafe_offset((p + r) * x_step)[]
        var rows = b.data.unsafe_offset(p * b.row)
        var i = j

        @always_inline
        def piece[width: Int](i: Int) {var factors, var rows, var b, var y, var p}:
            var total = SIMD[T, width](0)
            if p > 0:
                total = y.unsafe_load[width=width](i)
            comptime for r in range(count):
                var row = rows.unsafe_load[width=width](r * b.row + i)
                total = multiply_add(row, SIMD[T, width](factors[r]), total)
            y.unsafe_store(i, total)

        while i + W <= end:
            piece[W](i)
            i += W
        while i < end:
            piece[1](i)
            i += 1

    for j in range(0, n, CHUNK):
        var end = min(n, j + CHUNK)
        var p = 0
        while p + TOGETHER <= k:
            add_rows[TOGETHER](p, j, end)
            p += TOGETHER
        while p < k:
            add_rows[1](p, j, end)
            p += 1


def dot_columns[
    T: DType
](x: Elements[T], b: Matrix[T], y: Elements[T], n: Int, k: Int):
    """Sets y = x b, where x and the columns of b are contiguous: dot products, four at a time."""
    comptime narrow = dot_width[T](2, 32 // size_of[Scalar[T]]())
    comptime if narrow < simd_width_of[T]():
        if dot_width[T](n, k) == narrow:
            dot_vectors[T, narrow](x, b, y, n, k)
            return
    dot_vectors[T, simd_width_of[T]()](x, b, y, n, k)


@always_inline
def dot_vectors[
    T: DType, W: Int
](x: Elements[T], b: Matrix[T], y: Elements[T], n: Int, k: Int):
    """The same with vectors of a width; what remains of a column is added term by term."""

    @always_inline
    def dots[count: Int](j: Int) {var x, var b, var y, var k}:
        comptime PARTS = 2
        var sums = Array[SIMD[T, W], count * PARTS](fill=SIMD[T, W](0))
        var columns = b.data.unsafe_offset(j * b.col)
        var p = 0
        while p + PARTS * W <= k:
            comptime for part in range(PARTS):
                var left = x.unsafe_load[width=W](p + part * W)
                comptime for i in range(count):
                    sums[i * PARTS + part] = multiply_add(
                        left,
                        columns.unsafe_load[width=W](i * b.col + p + part * W),
                        sums[i * PARTS + part],
                    )
            p += PARTS * W
        while p + W <= k:
            var left = x.unsafe_load[width=W](p)
            comptime for i in range(count):
                sums[i * PARTS] = multiply_add(
                    left, columns.unsafe_load[width=W](i * b.col + p), sums[i * PARTS]
                )
            p += W
        comptime for i in range(count):
            var total = (sums[i * PARTS] + sums[i * PARTS + 1]).reduce_add()
            for q in range(p, k):
                total = multiply_add(
                    x.unsafe_offset(q)[], columns.unsafe_offset(i * b.col + q)[], total
                )
            y.unsafe_store(j + i, total)

    var j = 0
    while j + 4 <= n:
        dots[4](j)
        j += 4
    while j < n:
        dots[1](j)
        j += 1


@always_inline
def adds_rows[T: DType, //](b: Matrix[T], n: Int, k: Int) -> Bool:
    """Whether rows of b are added to a result, rather than dot products of its columns computed."""
    return b.col == 1 and (b.row != 1 or n >= k)


def vector_product[
    T: DType
](x: Elements[T], x_step: Int, b: Matrix[T], y: Elements[T], n: Int, k: Int):
    """Sets y = x b, one of the strides of b being 1."""
    if adds_rows(b, n, k):
        combine_rows[T](x, x_step, b, y, n, k)
    elif x_step == 1:
        dot_columns[T](x, b, y, n, k)
    else:
        var copied = Scratch[T](k)
        var contiguous = copied.data()
        for p in range(k):
            contiguous.unsafe_store(p, x.unsafe_offset(p * x_step)[])
        dot_columns[T](contiguous, b, y, n, k)
        copied^.free()


# Matrices of so many columns are multiplied by a row with a vector for each of their rows.
comptime FEW = 8


def row_by_stack[
    T: DType, width: Int
](
    x: Elements[T],
    x_step: Int,
    b: Elements[T],
    b_row: Int,
    b_batch: Int,
    y: Elements[T],
    batch: Int,
    n: Int,
    k: Int,
) -> Int:
    """Sets y = x b for matrices b of few columns, whose results follow one another: each is a
    vector, whose last elements are those of the next one. Returns how many are done: the last
    vectors would go beyond matrices or results. The bits are those of `combine_rows`."""
    var beyond = width - n
    var safe = batch - (beyond + min(b_batch, n) - 1) // min(b_batch, n)
    for t in range(safe):
        var rows = b.unsafe_offset(t * b_batch)
        var total = SIMD[T, width](0)
        for p in range(k):
            total = multiply_add(
                rows.unsafe_load[width=width](p * b_row),
                SIMD[T, width](x.unsafe_offset(p * x_step)[]),
                total,
            )
        y.unsafe_store(t * n, total)
    return max(safe, 0)


# Products of so few columns, and of so few elements or terms, are computed element by element: tiles
# would mostly be padding, which takes longer to pack than such a product.
comptime NARROW = 4
comptime FEW_ELEMENTS = 16
comptime FEW_TERMS = 4


@always_inline
def few_rows[
    T: DType, rows: Int, columns: Int
](a: Matrix[T], b: Matrix[T], c: Elements[T], c_row: Int, k: Int):
    """Sets `rows` by `columns` elements of c. The bits are those of `product`."""
    for first in range(0, k, DEPTH):
        var sums = Array[Scalar[T], rows * columns](fill=Scalar[T](0))
        for p in range(first, min(k, first + DEPTH)):
            var right = Array[Scalar[T], columns](fill=Scalar[T](0))
            comptime for j in range(columns):
                right[j] = b.data.unsafe_offset(p * b.row + j * b.col)[]
            comptime for i in range(rows):
                var left = a.data.unsafe_offset(i * a.row + p * a.col)[]
                comptime for j in range(columns):
                    sums[i * columns + j] = multiply_add(left, right[j], sums[i * columns + j])
        comptime for i in range(rows):
            comptime for j in range(columns):
                var place = c.unsafe_offset(i * c_row + j)
                if first > 0:
                    place[] = sums[i * columns + j] + place[]
                else:
                    place[] = sums[i * columns + j]


def narrow_product[
    T: DType, columns: Int
](a: Matrix[T], b: Matrix[T], c: Elements[T], c_row: Int, m: Int, k: Int):
    var i = 0
    while i + 4 <= m:
        few_rows[T, 4, columns](a.at(i, 0), b, c.unsafe_offset(i * c_row), c_row, k)
        i += 4
    if i + 2 <= m:
        few_rows[T, 2, columns](a.at(i, 0), b, c.unsafe_offset(i * c_row), c_row, k)
        i += 2
    if i < m:
        few_rows[T, 1, columns](a.at(i, 0), b, c.unsafe_offset(i * c_row), c_row, k)


# Products of so few multiplications read both matrices where they are, if the right one's rows are
# contiguous: panels would take longer to pack.
comptime SMALL = 8192
# A row's product with a matrix of so few elements, too.
comptime FEW_TO_ADD = 512


@no_inline
def rows_of_vectors[
    T: DType, rows: Int, width: Int
](a: Matrix[T], b: Elements[T], b_row: Int, c: Elements[T], c_row: Int, k: Int):
    """Sets `rows` by `width` elements of c. The bits are those of `product`."""
    var sums = Array[SIMD[T, width], rows](fill=SIMD[T, width](0))
    for p in range(k):
        var right = b.unsafe_offset(p * b_row).unsafe_load[width=width](0)
        comptime for i in range(rows):
            var left = SIMD[T, width](a.data.unsafe_offset(i * a.row + p * a.col)[])
            sums[i] = multiply_add(left, right, sums[i])
    comptime for i in range(rows):
        c.unsafe_offset(i * c_row).unsafe_store(0, sums[i])


def small_product[
    T: DType
](a: Matrix[T], b: Matrix[T], c: Elements[T], c_row: Int, m: Int, n: Int, k: Int):
    """The same as `product`, of at most `DEPTH` terms, where the columns of b are next to one
    another: by vectors, halves and quarters of them, and the last columns one by one."""
    comptime W = simd_width_of[T]()
    var j = 0
    comptime for part in range(3):
        comptime width = max(1, W >> part)
        while j + width <= n:
            var right = b.at(0, j).data
            var i = 0
            comptime for power in range(3):
                comptime rows = 8 >> power
                while i + rows <= m:
                    rows_of_vectors[T, rows, width](
                        a.at(i, 0), right, b.row, c.unsafe_offset(i * c_row + j), c_row, k
                    )
                    i += rows
            if i < m:
                rows_of_vectors[T, 1, width](
                    a.at(i, 0), right, b.row, c.unsafe_offset(i * c_row + j), c_row, k
                )
            j += width
    comptime for columns in range(1, max(1, W >> 2)):
        if n - j == columns:
            narrow_product[T, columns](a, b.at(0, j), c.unsafe_offset(j), c_row, m, k)


@no_inline
def stack_of_few[
    T: DType, terms: Int, columns: Int
](
    a: Matrix[T],
    a_batch: Int,
    b: Matrix[T],
    b_batch: Int,
    c: Elements[T],
    c_row: Int,
    c_batch: Int,
    m: Int,
    first: Int,
    last: Int,
):
    """Some of many products of small matrices. The bits are those of `product`."""
    for t in range(first, last):
        var y = b.data.unsafe_offset(t * b_batch)
        var right = Array[Scalar[T], terms * columns](fill=Scalar[T](0))
        comptime for p in range(terms):
            comptime for j in range(columns):
                right[p * columns + j] = y.unsafe_offset(p * b.row + j * b.col)[]
        for i in range(m):
            var x = a.data.unsafe_offset(t * a_batch + i * a.row)
            var z = c.unsafe_offset(t * c_batch + i * c_row)
            var sums = Array[Scalar[T], columns](fill=Scalar[T](0))
            comptime for p in range(terms):
                var left = x.unsafe_offset(p * a.col)[]
                comptime for j in range(columns):
                    sums[j] = multiply_add(left, right[p * columns + j], sums[j])
            comptime for j in range(columns):
                z.unsafe_store(j, sums[j])


# Sums of more terms than these are computed by halves, which bounds their rounding error: where terms
# are added one after the other, or those of each lane of vectors, or `DEPTH` of them at a time.
comptime LONG_SEQUENCE = 256
comptime LONG_VECTORS = 2048
comptime LONG = 2048
# Not of larger results, whose halves would take much memory.
comptime HALVED_ELEMENTS = 65536


def product_in_parts[
    T: DType
](a: Matrix[T], b: Matrix[T], c: Elements[T], c_row: Int, m: Int, n: Int, k: Int):
    """The same as `product`, by the way that suits the sizes."""
    var is_row = m == 1 and (b.col == 1 or b.row == 1)
    var is_column = n == 1 and (c_row == 1 or m == 1) and (a.col == 1 or a.row == 1)
    comptime if T.is_floating_point():
        if k > LONG_SEQUENCE and m * n <= HALVED_ELEMENTS:
            var longest = LONG
            if is_row:
                longest = LONG_SEQUENCE if adds_rows(b, n, k) else LONG_VECTORS
            elif is_column:
                longest = LONG_SEQUENCE if adds_rows(a.transposed(), m, k) else LONG_VECTORS
            elif n <= NARROW and m * n <= FEW_ELEMENTS:
                longest = LONG_VECTORS
            if k > longest:
                var half = round_up(k // 2, DEPTH)
                product_in_parts[T](a, b, c, c_row, m, n, half)
                var left = a.at(0, half)
                var right = b.at(half, 0)
                if m * n == 1:      # which needs no memory from elsewhere
                    var one = Scalar[T](0)
                    var place = Pointer(to=one).unsafe_origin_cast[MutUntrackedOrigin]()
                    product_in_parts[T](left, right, place, n, m, n, k - half)
                    c[] += place[]
                    return
                var others = Scratch[T](m * n)
                var more = others.data()
                product_in_parts[T](left, right, more, n, m, n, k - half)
                for i in range(m):
                    for j in range(n):
                        c[unsafe_offset=i * c_row + j] += more[unsafe_offset=i * n + j]
                others^.free()
                return
    comptime if T == DType.float32 or T == DType.float64:
        if m == 1 and b.col == 1 and n > NARROW and n * k <= FEW_TO_ADD:
            small_product[T](a, b, c, c_row, m, n, k)
            return
    if is_row:
        vector_product[T](a.data, a.col, b, c, n, k)
    elif is_column:
        vector_product[T](b.data, b.row, a.transposed(), c, m, k)
    else:
        comptime if T == DType.float32 or T == DType.float64:
            if n <= NARROW and (m * n <= FEW_ELEMENTS or k <= FEW_TERMS):
                comptime for columns in range(1, NARROW + 1):
                    if n == columns:
                        narrow_product[T, columns](a, b, c, c_row, m, k)
                return
            if b.col == 1 and k <= DEPTH and m * n * k <= SMALL:
                small_product[T](a, b, c, c_row, m, n, k)
                return
        product[T, T](a, b, c, c_row, m, n, k)


def part_of_product[
    S: DType, T: DType
](a: Matrix[S], b: Matrix[S], c: Elements[S], c_row: Int, m: Int, n: Int, k: Int):
    """One matrix product on one thread."""
    if m == 0 or n == 0:
        return
    comptime if S == T:
        var target = rebind[Elements[T]](c)
        if k == 0:
            for i in range(m):
                for j in range(n):
                    target.unsafe_store(i * c_row + j, Scalar[T](0))
        else:
            product_in_parts[T](
                rebind[Matrix[T]](a), rebind[Matrix[T]](b), target, c_row, m, n, k
            )
    else:
        var sums = Scratch[T](m * n)
        var wide = sums.data()
        if k == 0:
            for i in range(m * n):
                wide.unsafe_store(i, Scalar[T](0))
        product[S, T](a, b, wide, n, m, n, k)
        for i in range(m):
            for j in range(n):
                c.unsafe_store(i * c_row + j, rounded_to[S](wide.unsafe_offset(i * n + j)[]))
        sums^.free()


@fieldwise_init
struct Products[S: DType, T: DType](Tasks):
    """The tasks of matmul."""

    var tasks: Int
    var parts: Int
    var cuts: Int
    var a_batch: Int
    var b_batch: Int
    var c_batch: Int
    var left: Matrix[Self.S]
    var right: Matrix[Self.S]
    var c: Elements[Self.S]
    var c_row: Int
    var m: Int
    var n: Int
    var k: Int
    var rows: Int
    var columns: Int

    def run(self, task: Int):
        var tasks = self.tasks
        var parts = self.parts
        var cuts = self.cuts
        var a_batch = self.a_batch
        var b_batch = self.b_batch
        var c_batch = self.c_batch
        var left = self.left
        var right = self.right
        var c = self.c
        var c_row = self.c_row
        var m = self.m
        var n = self.n
        var k = self.k
        var rows = self.rows
        var columns = self.columns
        var first = task * parts // tasks
        var last = (task + 1) * parts // tasks
        comptime if Self.S == Self.T and Self.T.is_floating_point():
            if m == 1 and n <= FEW and k <= LONG_SEQUENCE and cuts == 1 and a_batch == 0 \
                    and c_batch == n and right.col == 1 and right.row > 0 and b_batch > 0:
                var x = rebind[Elements[Self.T]](left.data)
                var b = rebind[Elements[Self.T]](right.data.unsafe_offset(first * b_batch))
                var y = rebind[Elements[Self.T]](c.unsafe_offset(first * n))
                comptime half = FEW // 2
                if n <= half:
                    first += row_by_stack[Self.T, half](
                        x, left.col, b, right.row, b_batch, y, last - first, n, k)
                else:
                    first += row_by_stack[Self.T, FEW](
                        x, left.col, b, right.row, b_batch, y, last - first, n, k)
            if cuts == 1 and last - first > 1 and m <= FEW and 1 < k <= NARROW and n <= NARROW:
                comptime for terms in range(2, NARROW + 1):
                    comptime for columns in range(1, NARROW + 1):
                        if k == terms and n == columns:
                            stack_of_few[Self.T, terms, columns](
                                rebind[Matrix[Self.T]](left),
                                a_batch,
                                rebind[Matrix[Self.T]](right),
                                b_batch,
                                rebind[Elements[Self.T]](c),
                                c_row,
                                c_batch,
                                m,
                                first,
                                last,
                            )
                return
        for part in range(first, last):
            var t = part // cuts
            var cut = part % cuts
            var i = cut * rows if rows < m else 0
            var j = cut * columns if columns < n else 0
            var x = left.at(i, 0)
            x.data = x.data.unsafe_offset(t * a_batch)
            var y = right.at(0, j)
            y.data = y.data.unsafe_offset(t * b_batch)
            part_of_product[Self.S, Self.T](
                x,
                y,
                c.unsafe_offset(t * c_batch + i * c_row + j),
                c_row,
                min(rows, m - i),
                min(columns, n - j),
                k,
            )


@always_inline
def matmul[S: DType, T: DType](slots: Slots, args: Args):
    """Multiplies elements of dtype S, adding in dtype T."""
    var a = operand[S](slots, args, 0).unsafe_origin_cast[MutUntrackedOrigin]()
    var b = operand[S](slots, args, 1).unsafe_origin_cast[MutUntrackedOrigin]()
    var c = operand[S](slots, args, 2).unsafe_origin_cast[MutUntrackedOrigin]()
    var batch = integer(args, 6)
    var m = integer(args, 7)
    var n = integer(args, 8)
    var k = integer(args, 9)
    var a_batch = integer(args, 10)
    var left = Matrix[S](a, integer(args, 11), integer(args, 12))
    var b_batch = integer(args, 13)
    var right = Matrix[S](b, integer(args, 14), integer(args, 15))
    var c_batch = integer(args, 16)
    var c_row = integer(args, 17)
    var threads = integer(args, 18)
    if batch == 0 or m == 0 or n == 0:
        return
    threads = min(threads, batch * m * n * k // GRAIN)
    # Each product is cut along its longer side, where there are fewer products than threads.
    var cuts = 1
    var rows = m
    var columns = n
    if threads > 1 and batch % threads:
        cuts = threads
        if m >= n:
            rows = round_up((m + cuts - 1) // cuts, ROWS)
            cuts = (m + rows - 1) // rows
        else:
            columns = round_up((n + cuts - 1) // cuts, VECTORS * simd_width_of[T]())
            cuts = (n + columns - 1) // columns
    var parts = batch * cuts
    var tasks = max(1, min(threads, parts))

    spread(
        Products[S, T](
            tasks,
            parts,
            cuts,
            a_batch,
            b_batch,
            c_batch,
            left,
            right,
            c,
            c_row,
            m,
            n,
            k,
            rows,
            columns,
        ),
        tasks,
    )


# A block of windows' elements of so many bytes stays in the second-level cache.
comptime WINDOW_BYTES = 524288


@fieldwise_init
struct Convolution[T: DType](Tasks):
    """The tasks of convolve: rows of the result, some of them at a time."""

    var x: Held[Self.T]
    var weights: Matrix[Self.T]
    var result: Elements[Self.T]
    var sizes: Sizes
    var geometry: Geometry
    var depth: Int
    var outputs: Int
    var together: Int
    var tasks: Int

    def run(self, task: Int):
        var columns = self.sizes.columns
        var depth = self.depth
        var outputs = self.outputs
        var windows = Scratch[Self.T](self.together * columns * depth)
        var data = windows.data()
        var items = self.sizes.outer * self.sizes.rows
        var end = chunk_begin(task + 1, self.tasks, items)
        for first in range(chunk_begin(task, self.tasks, items), end, self.together):
            var last = min(end, first + self.together)
            unfold_rows[Self.T](
                self.x.as_unsafe_any_origin(),
                data.as_unsafe_any_origin(),
                self.sizes,
                self.geometry,
                first,
                last,
            )
            part_of_product[Self.T, Self.T](
                Matrix[Self.T](data, depth, 1),
                self.weights,
                self.result.unsafe_offset(first * columns * outputs),
                outputs,
                (last - first) * columns,
                outputs,
                depth,
            )
        windows^.free()


@always_inline
def convolve[T: DType](slots: Slots, args: Args):
    """Multiplies windows of x, row by row, by weights (window size times inner, outputs)."""
    var sizes = Sizes(
        integer(args, 6),
        integer(args, 7),
        integer(args, 8),
        integer(args, 9),
        integer(args, 10),
        integer(args, 11),
    )
    var geometry = Geometry(args.unsafe_offset(12))
    var outputs = integer(args, 22)
    var depth = geometry.tall * geometry.wide * sizes.inner
    var items = sizes.outer * sizes.rows
    var together = max(1, WINDOW_BYTES // (sizes.columns * depth * size_of[Scalar[T]]()))
    var threads = min(integer(args, 23), items * sizes.columns * depth * outputs // GRAIN)
    var tasks = max(1, min(threads, items))
    spread(
        Convolution[T](
            held(operand[T](slots, args, 0)),
            Matrix[T](
                operand[T](slots, args, 1).unsafe_origin_cast[MutUntrackedOrigin](), outputs, 1
            ),
            operand[T](slots, args, 2).unsafe_origin_cast[MutUntrackedOrigin](),
            sizes,
            geometry,
            depth,
            outputs,
            min(together, items),
            tasks,
        ),
        tasks,
    )
