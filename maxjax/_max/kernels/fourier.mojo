"""What Fourier transforms are made of: lines of complex numbers, the passes of Stockham's algorithm
"""
from std.bit import log2_floor
from std.collections import Array as Vectors
from std.sys.info import simd_width_of

from .reduction import Held


@fieldwise_init
struct Complex[dtype: DType, width: Int](TrivialRegisterPassable):
    var re: SIMD[Self.dtype, Self.width]
    var im: SIMD[Self.dtype, Self.width]

    @always_inline
    def __add__(self, other: Self) -> Self:
        return Self(self.re + other.re, self.im + other.im)

    @always_inline
    def __sub__(self, other: Self) -> Self:
        return Self(self.re - other.re, self.im - other.im)

    @always_inline
    def __mul__(self, other: Self) -> Self:
        return Self(
            self.re.fma(other.re, -(self.im * other.im)), self.re.fma(other.im, self.im * other.re)
        )

    @always_inline
    def turned(self) -> Self:
        """Times -i."""
        return Self(self.im, -self.re)

    @always_inline
    def plus(self, factor: Scalar[Self.dtype], other: Self) -> Self:
        """Added to a multiple of another."""
        var factors = SIMD[Self.dtype, Self.width](factor)
        return Self(other.re.fma(factors, self.re), other.im.fma(factors, self.im))

    @always_inline
    def by(self, factor: Scalar[Self.dtype]) -> Self:
        return Self(self.re * factor, self.im * factor)


@fieldwise_init
struct Line[dtype: DType](TrivialRegisterPassable):
    """Complex numbers in memory, real and imaginary parts apart."""

    var re: Held[Self.dtype]
    var im: Held[Self.dtype]

    @always_inline
    def load[width: Int](self, i: Int) -> Complex[Self.dtype, width]:
        return Complex[Self.dtype, width](
            self.re.unsafe_load[width=width](i), self.im.unsafe_load[width=width](i)
        )

    @always_inline
    def store[width: Int](self, i: Int, value: Complex[Self.dtype, width]):
        self.re.unsafe_store(i, value.re)
        self.im.unsafe_store(i, value.im)

    @always_inline
    def exchanged(self) -> Self:
        return Self(self.im, self.re)


# --- passes ---------------------------------------------------------------------------------------


@fieldwise_init
struct Pass[dtype: DType](TrivialRegisterPassable):
    """One pass: `m` transforms of `r` numbers for each of `s` next to one another.

    Number j of transform p is at q + s * (p + m * j), and its result k at q + s * (r * p + k),
    multiplied by the root of unity (p * k) of r * m, for each q below s.
    """

    var source: Line[Self.dtype]
    var target: Line[Self.dtype]
    var roots: Held[Self.dtype]
    var r: Int
    var m: Int
    var s: Int

    @always_inline
    def root[width: Int, along: Bool](self, p: Int, k: Int) -> Complex[Self.dtype, width]:
        """Those of p and those behind it, or of p alone."""
        var at = (2 * k - 2) * self.m + p
        comptime if along:
            return Complex[Self.dtype, width](
                self.roots.unsafe_load[width=width](at),
                self.roots.unsafe_load[width=width](at + self.m),
            )
        else:
            return Complex[Self.dtype, width](
                SIMD[Self.dtype, width](self.roots.unsafe_load[width=1](at)),
                SIMD[Self.dtype, width](self.roots.unsafe_load[width=1](at + self.m)),
            )

    @always_inline
    def load[width: Int](self, p: Int, q: Int, j: Int) -> Complex[Self.dtype, width]:
        return self.source.load[width](q + self.s * (p + self.m * j))

    @always_inline
    def store[
        width: Int, along: Bool
    ](self, p: Int, q: Int, k: Int, value: Complex[Self.dtype, width]):
        comptime if along:
            comptime for lane in range(width):
                var at = self.r * (p + lane) + k
                self.target.re.unsafe_store(at, value.re[lane])
                self.target.im.unsafe_store(at, value.im[lane])
        else:
            self.target.store[width](q + self.s * (self.r * p + k), value)

    @always_inline
    def store_turned[
        width: Int, along: Bool
    ](self, p: Int, q: Int, k: Int, value: Complex[Self.dtype, width]):
        """Multiplied by the roots of unity: in the last pass they are all 1."""
        if self.m == 1:
            self.store[width, along](p, q, k, value)
        else:
            self.store[width, along](p, q, k, value * self.root[width, along](p, k))

    @always_inline
    def butterflies[width: Int, along: Bool](self, p: Int, q: Int):
        """The transforms at p and q, and those that follow in a vector: along p or along q."""
        if self.r == 4:
            self.by_four[width, along](p, q)
        elif self.r == 2:
            var a = self.load[width](p, q, 0)
            var b = self.load[width](p, q, 1)
            self.store[width, along](p, q, 0, a + b)
            self.store_turned[width, along](p, q, 1, a - b)
        elif self.r == 3:
            self.by_three[width, along](p, q)
        elif self.r == 5:
            self.by_five[width, along](p, q)
        else:
            self.by_any[width, along](p, q)

    @always_inline
    def by_four[width: Int, along: Bool](self, p: Int, q: Int):
        var a = self.load[width](p, q, 0)
        var b = self.load[width](p, q, 1)
        var c = self.load[width](p, q, 2)
        var d = self.load[width](p, q, 3)
        var even = a + c
        var odd = a - c
        var sum = b + d
        var turned = (b - d).turned()
        comptime if along:
            # Four vectors become one line.
            var one = (odd + turned) * self.root[width, along](p, 1)
            var two = (even - sum) * self.root[width, along](p, 2)
            var three = (odd - turned) * self.root[width, along](p, 3)
            var zero = even + sum
            self.target.re.unsafe_store(
                4 * p, zero.re.interleave(two.re).interleave(one.re.interleave(three.re))
            )
            self.target.im.unsafe_store(
                4 * p, zero.im.interleave(two.im).interleave(one.im.interleave(three.im))
            )
        else:
            self.store[width, along](p, q, 0, even + sum)
            self.store_turned[width, along](p, q, 1, odd + turned)
            self.store_turned[width, along](p, q, 2, even - sum)
            self.store_turned[width, along](p, q, 3, odd - turned)

    @always_inline
    def by_three[width: Int, along: Bool](self, p: Int, q: Int):
        comptime sine = Scalar[Self.dtype](0.86602540378443864676)
        var a = self.load[width](p, q, 0)
        var b = self.load[width](p, q, 1)
        var c = self.load[width](p, q, 2)
        var sum = b + c
        var real = a.plus(-0.5, sum)
        var turned = (b - c).turned().by(sine)
        self.store[width, along](p, q, 0, a + sum)
        self.store_turned[width, along](p, q, 1, real + turned)
        self.store_turned[width, along](p, q, 2, real - turned)

    @always_inline
    def by_five[width: Int, along: Bool](self, p: Int, q: Int):
        comptime cos1 = Scalar[Self.dtype](0.30901699437494742410)
        comptime sin1 = Scalar[Self.dtype](0.95105651629515357212)
        comptime cos2 = Scalar[Self.dtype](-0.80901699437494742410)
        comptime sin2 = Scalar[Self.dtype](0.58778525229247312917)
        var a = self.load[width](p, q, 0)
        var b = self.load[width](p, q, 1)
        var c = self.load[width](p, q, 2)
        var d = self.load[width](p, q, 3)
        var e = self.load[width](p, q, 4)
        var outer = b + e
        var inner = c + d
        var far = (b - e).turned()
        var near = (c - d).turned()
        var real1 = a.plus(cos1, outer).plus(cos2, inner)
        var real2 = a.plus(cos2, outer).plus(cos1, inner)
        var turned1 = far.by(sin1).plus(sin2, near)
        var turned2 = far.by(sin2).plus(-sin1, near)
        self.store[width, along](p, q, 0, a + outer + inner)
        self.store_turned[width, along](p, q, 1, real1 + turned1)
        self.store_turned[width, along](p, q, 2, real2 + turned2)
        self.store_turned[width, along](p, q, 3, real2 - turned2)
        self.store_turned[width, along](p, q, 4, real1 - turned1)

    @always_inline
    def by_any[width: Int, along: Bool](self, p: Int, q: Int):
        """An odd factor, by sums and differences of what is as far from both ends."""
        var r = self.r
        var cosines = self.roots.unsafe_offset(2 * (r - 1) * self.m)
        var sines = cosines.unsafe_offset(r)
        var first = self.load[width](p, q, 0)
        var total = first
        for j in range(1, r):
            total = total + self.load[width](p, q, j)
        self.store[width, along](p, q, 0, total)
        for k in range(1, (r + 1) // 2):
            var real = first
            var turned = Complex[Self.dtype, width](0, 0)
            var angle = 0
            for j in range(1, (r + 1) // 2):
                angle += k
                if angle >= r:
                    angle -= r
                var b = self.load[width](p, q, j)
                var c = self.load[width](p, q, r - j)
                real = real.plus(cosines.unsafe_load[width=1](angle), b + c)
                turned = turned.plus(sines.unsafe_load[width=1](angle), b - c)
            turned = turned.turned()
            self.store_turned[width, along](p, q, k, real + turned)
            self.store_turned[width, along](p, q, r - k, real - turned)

    @always_inline
    def across[width: Int](self, begin: Int, end: Int):
        """All transforms, for q from `begin` to `end`, by vectors."""
        for p in range(self.m):
            var q = begin
            while q < end:
                self.butterflies[width, False](p, q)
                q += width

    @no_inline
    def run(self):
        comptime width = simd_width_of[Self.dtype]()
        if self.s == 1 and self.m >= width:
            var whole = self.m - self.m % width
            var p = 0
            while p < whole:
                self.butterflies[width, True](p, 0)
                p += width
            for rest in range(whole, self.m):
                self.butterflies[1, False](rest, 0)
            return
        var whole = self.s - self.s % width
        if whole > 0:
            self.across[width](0, whole)
        var most = self.s - self.s % (width // 2)
        if most > whole:
            self.across[width // 2](whole, most)
        if self.s > most:
            self.across[1](most, self.s)


# --- between memory and lines ---------------------------------------------------------------------


@always_inline
def combined[
    dtype: DType, width: Int
](
    x: Complex[dtype, width], y: Complex[dtype, width], root: Complex[dtype, width], inverse: Bool
) -> Complex[dtype, width]:
    var even = Complex[dtype, width](x.re + y.re, x.im - y.im)
    var odd = Complex[dtype, width](x.re - y.re, x.im + y.im)
    if inverse:
        # i times the root's inverse.
        return even + odd * Complex[dtype, width](root.im, root.re)
    return even + odd.turned() * root


@always_inline
def transpose[
    dtype: DType, size: Int
](mut rows: Vectors[SIMD[dtype, size], size]):
    # Interleaving the halves turns the bits of (row, column), taken as one number, by one place.
    comptime for _ in range(log2_floor(size)):
        var turned = Vectors[SIMD[dtype, size], size](fill=0)
        comptime for i in range(size // 2):
            var pair = rows[i].interleave(rows[i + size // 2])
            turned[2 * i] = pair.slice[size, offset=0]()
            turned[2 * i + 1] = pair.slice[size, offset=size]()
        rows = turned^


@always_inline
def take[dtype: DType](target: Line[dtype], at: Int, source: Held[dtype], count: Int):
    """Reads complex numbers that lie next to one another."""
    comptime width = simd_width_of[dtype]()
    var k = 0
    while k + width <= count:
        var pairs = source.unsafe_load[width=2 * width](2 * k).deinterleave()
        target.re.unsafe_store(at + k, pairs[0])
        target.im.unsafe_store(at + k, pairs[1])
        k += width
    while k < count:
        target.re.unsafe_store(at + k, source.unsafe_load[width=1](2 * k))
        target.im.unsafe_store(at + k, source.unsafe_load[width=1](2 * k + 1))
        k += 1


@always_inline
def give[
    dtype: DType
](source: Line[dtype], at: Int, target: Held[dtype], count: Int, scale: Scalar[dtype]):
    """Writes complex numbers next to one another."""
    comptime width = simd_width_of[dtype]()
    var k = 0
    while k + width <= count:
        var value = source.load[width](at + k).by(scale)
        target.unsafe_store(2 * k, value.re.interleave(value.im))
        k += width
    while k < count:
        var value = source.load[1](at + k).by(scale)
        target.unsafe_store(2 * k, value.re)
        target.unsafe_store(2 * k + 1, value.im)
        k += 1


def scale_lines[
    dtype: DType
](target: Line[dtype], source: Line[dtype], factors: Line[dtype], count: Int, lanes: Int):
    """Each number of lines side by side times one factor."""
    comptime width = simd_width_of[dtype]()
    if lanes == 1:
        var k = 0
        while k + width <= count:
            target.store[width](k, source.load[width](k) * factors.load[width](k))
            k += width
        while k < count:
            target.store[1](k, source.load[1](k) * factors.load[1](k))
            k += 1
        return
    for k in range(count):
        var factor = factors.load[1](k)
        var factor_vector = Complex[dtype, width](factor.re, factor.im)
        var at = k * lanes
        while at + width <= (k + 1) * lanes:
            target.store[width](at, source.load[width](at) * factor_vector)
            at += width
        while at < (k + 1) * lanes:
            target.store[1](at, source.load[1](at) * factor)
            at += 1
