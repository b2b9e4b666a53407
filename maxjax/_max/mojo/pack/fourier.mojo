"""Discrete Fourier transforms along the middle axis of (outer, n, inner).

`fourier_float32`, `fourier_float64`: x, table, out, scratch | kind, outer, n, inner, length, lanes,
inverse, chirp length, tasks, threads, number of factors, factors

`length` complex numbers are transformed for each line: n of them, or, of an even number of real
ones, half as many, two real numbers at a time. So many lines as there are lanes lie side by side in
`scratch`, real and imaginary parts apart; each task has four times `lanes` times `length` and one
(or `chirp length`, if that is more) numbers of its own. Factors are those of the length, in the
order of the passes (Stockham's, which need no permutation); where a length has a large prime
factor, those of a chirp length, with which its transform is a convolution (Bluestein). An inverse
transform is the forward one of what has its real and imaginary parts exchanged.

`kind` is how lines lie in `x` and in `out`, one of `Kind` of `maxjax/_primitives/fourier.py`, whose
members `abi.py` writes behind this text.

`table` has what `maxjax/_primitives/fourier.py` writes: the scale of results; for each pass the
roots of unity that its results are multiplied by, those of factor r in r - 1 pairs of lines, and
behind them r cosines and r sines if r is no factor with a butterfly of its own; the roots for lines
of real numbers; the chirp, and the transform of what it is convolved with.
"""
from std.collections import Array as Vectors
from std.sys.info import simd_width_of

from kernels.calling import Args, Slots, integer, operand
from kernels.crew import Tasks, spread
from kernels.fourier import (
    Complex,
    Line,
    Pass,
    combined,
    give,
    scale_lines,
    take,
    transpose,
)
from kernels.reduction import Held, held


@fieldwise_init
struct Lines[dtype: DType](Tasks):
    """The lines of a call, in tasks."""

    var x: Held[Self.dtype]
    var table: Held[Self.dtype]
    var result: Held[Self.dtype]
    var scratch: Held[Self.dtype]
    var numbers: Held[DType.int64]  # the call's, from `kind` on
    var tasks: Int

    @always_inline
    def number(self, i: Int) -> Int:
        return Int(self.numbers.unsafe_load[width=1](i))

    def run(self, task: Int):
        var outer = self.number(1)
        var inner = self.number(3)
        var lanes = self.number(5)
        var blocks = (inner + lanes - 1) // lanes
        var items = outer * blocks if inner > 1 else (outer + lanes - 1) // lanes
        for item in range(task * items // self.tasks, (task + 1) * items // self.tasks):
            if inner > 1:
                var column = item % blocks * lanes
                self.block(task, item // blocks, column, min(lanes, inner - column))
            else:
                self.block(task, item * lanes, 0, min(lanes, outer - item * lanes))

    def block(self, task: Int, line: Int, column: Int, lanes: Int):
        """Lines side by side: from `line` on, or from a column of what lies there."""
        var kind = self.number(0)
        var n = self.number(2)
        var inner = self.number(3)
        var length = self.number(4)
        var inverse = self.number(6) != 0
        var chirp = self.number(7)
        var size = max(length + 1, chirp) * self.number(5)
        var own = self.scratch.unsafe_offset(4 * size * task)
        var a = Line[Self.dtype](own, own.unsafe_offset(size))
        var b = Line[Self.dtype](own.unsafe_offset(2 * size), own.unsafe_offset(3 * size))
        var half = n // 2 + 1
        var roots = self.table.unsafe_offset(1)
        var given = a.exchanged() if inverse else a
        if kind == COMPLEX:
            if inner > 1:
                var first = 2 * (line * n * inner + column)
                for k in range(n):
                    take(given, k * lanes, self.x.unsafe_offset(first + 2 * k * inner), lanes)
            else:
                self.read(given, self.x.unsafe_offset(2 * n * line), 2 * n, n, lanes)
        elif kind == FROM_REAL:
            self.read(given, self.x.unsafe_offset(n * line), n, length, lanes)
        elif kind == FROM_ODD_REAL:
            for k in range(n):
                for lane in range(lanes):
                    given.re.unsafe_store(
                        k * lanes + lane, self.x.unsafe_load[width=1]((line + lane) * n + k)
                    )
                    given.im.unsafe_store(k * lanes + lane, 0)
        elif kind == TO_REAL:
            self.read(b, self.x.unsafe_offset(2 * half * line), 2 * half, half, lanes)
            for lane in range(lanes):       # what real numbers would not give
                b.im.unsafe_store(lane, 0)
                b.im.unsafe_store(length * lanes + lane, 0)
            self.combine(given, b, lanes, True)
        else:
            self.read_mirrored(given, self.x.unsafe_offset(2 * half * line), lanes)
        var swapped = (
            self.transformed(a, b, roots, length, lanes) if chirp == 0
            else self.convolved(a, b, roots, lanes)
        )
        var made = b if swapped else a
        if inverse:
            made = made.exchanged()
        var scale = self.table.unsafe_load[width=1](0)
        if kind == COMPLEX:
            if inner > 1:
                var first = 2 * (line * n * inner + column)
                for k in range(n):
                    give(made, k * lanes, self.result.unsafe_offset(first + 2 * k * inner), lanes,
                         scale)
            else:
                self.write(made, self.result.unsafe_offset(2 * n * line), 2 * n, n, lanes, scale)
        elif kind == FROM_REAL:
            var other = a if swapped else b
            self.combine(other, made, lanes, False)
            self.write(other, self.result.unsafe_offset(2 * half * line), 2 * half, half, lanes,
                       scale * Scalar[Self.dtype](0.5))
        elif kind == FROM_ODD_REAL:
            self.write(made, self.result.unsafe_offset(2 * half * line), 2 * half, half, lanes,
                       scale)
        elif kind == TO_REAL:
            self.write(made, self.result.unsafe_offset(n * line), n, length, lanes, scale)
        else:
            for lane in range(lanes):
                for k in range(n):
                    var value = made.re.unsafe_load[width=1](k * lanes + lane)
                    self.result.unsafe_store((line + lane) * n + k, value * scale)

    def transformed(
        self, a: Line[Self.dtype], b: Line[Self.dtype], table: Held[Self.dtype], length: Int,
        lanes: Int,
    ) -> Bool:
        """Transforms lines in `a`; whether the results are in `b`."""
        var roots = table
        var m = length
        var s = lanes
        var swapped = False
        for number in range(self.number(10)):
            var r = self.number(11 + number)
            m //= r
            Pass[Self.dtype](b if swapped else a, a if swapped else b, roots, r, m, s).run()
            roots = roots.unsafe_offset(2 * (r - 1) * m + (2 * r if r > 5 else 0))
            s *= r
            swapped = not swapped
        return swapped

    def passes_end(self) -> Int:
        """Where the table goes on behind the passes."""
        var chirp = self.number(7)
        var m = chirp if chirp > 0 else self.number(4)
        var end = 1
        for number in range(self.number(10)):
            var r = self.number(11 + number)
            m //= r
            end += 2 * (r - 1) * m + (2 * r if r > 5 else 0)
        return end

    def convolved(
        self, a: Line[Self.dtype], b: Line[Self.dtype], table: Held[Self.dtype], lanes: Int
    ) -> Bool:
        """The transform as a convolution of its numbers, times a chirp, with the chirp."""
        var length = self.number(4)
        var size = self.number(7)
        var kind = self.number(0)
        var at = self.passes_end() + (
            2 * (length + 1) if kind == FROM_REAL or kind == TO_REAL else 0
        )
        var chirp = Line[Self.dtype](
            self.table.unsafe_offset(at), self.table.unsafe_offset(at + length)
        )
        var filter = Line[Self.dtype](
            self.table.unsafe_offset(at + 2 * length),
            self.table.unsafe_offset(at + 2 * length + size),
        )
        scale_lines(a, a, chirp, length, lanes)
        for i in range(length * lanes, size * lanes):
            a.re.unsafe_store(i, 0)
            a.im.unsafe_store(i, 0)
        var first = self.transformed(a, b, table, size, lanes)
        var source = b if first else a
        var other = a if first else b
        scale_lines(source, source, filter, size, lanes)
        var second = self.transformed(source.exchanged(), other.exchanged(), table, size, lanes)
        var made = other if second else source
        scale_lines(made, made, chirp, length, lanes)
        return first != second

    def read(
        self, target: Line[Self.dtype], source: Held[Self.dtype], stride: Int, count: Int,
        lanes: Int,
    ):
        """Complex numbers of lines, `stride` real numbers from one to the next."""
        if lanes == 1:
            take(target, 0, source, count)
            return
        comptime size = min(4, simd_width_of[Self.dtype]())
        var whole = count // size * size
        var whole_lanes = lanes // size * size
        for k in range(0, whole, size):
            for lane in range(0, whole_lanes, size):
                var real = Vectors[SIMD[Self.dtype, size], size](fill=0)
                var imaginary = Vectors[SIMD[Self.dtype, size], size](fill=0)
                comptime for i in range(size):
                    var pairs = source.unsafe_load[width=2 * size](
                        (lane + i) * stride + 2 * k
                    ).deinterleave()
                    real[i] = rebind[SIMD[Self.dtype, size]](pairs[0])
                    imaginary[i] = rebind[SIMD[Self.dtype, size]](pairs[1])
                transpose(real)
                transpose(imaginary)
                comptime for i in range(size):
                    var at = (k + i) * lanes + lane
                    target.re.unsafe_store(at, real[i])
                    target.im.unsafe_store(at, imaginary[i])
        for lane in range(lanes):
            for k in range(whole if lane < whole_lanes else 0, count):
                var at = lane * stride + 2 * k
                target.re.unsafe_store(k * lanes + lane, source.unsafe_load[width=1](at))
                target.im.unsafe_store(k * lanes + lane, source.unsafe_load[width=1](at + 1))

    def write(
        self, source: Line[Self.dtype], target: Held[Self.dtype], stride: Int, count: Int,
        lanes: Int, scale: Scalar[Self.dtype],
    ):
        if lanes == 1:
            give(source, 0, target, count, scale)
            return
        comptime size = min(4, simd_width_of[Self.dtype]())
        var whole = count // size * size
        var whole_lanes = lanes // size * size
        for lane in range(0, whole_lanes, size):
            for k in range(0, whole, size):
                var real = Vectors[SIMD[Self.dtype, size], size](fill=0)
                var imaginary = Vectors[SIMD[Self.dtype, size], size](fill=0)
                comptime for i in range(size):
                    var value = source.load[size]((k + i) * lanes + lane).by(scale)
                    real[i] = value.re
                    imaginary[i] = value.im
                transpose(real)
                transpose(imaginary)
                comptime for i in range(size):
                    target.unsafe_store(
                        (lane + i) * stride + 2 * k, real[i].interleave(imaginary[i])
                    )
        for lane in range(lanes):
            for k in range(whole if lane < whole_lanes else 0, count):
                var value = source.load[1](k * lanes + lane).by(scale)
                target.unsafe_store(lane * stride + 2 * k, value.re)
                target.unsafe_store(lane * stride + 2 * k + 1, value.im)

    def combine(
        self, target: Line[Self.dtype], source: Line[Self.dtype], lanes: Int, inverse: Bool
    ):
        """Between the spectrum of real numbers and that of pairs of them, twice the one and the
        other: sum and difference of what is as far from both ends belong to the numbers in even
        and in odd places."""
        comptime width = simd_width_of[Self.dtype]()
        var length = self.number(4)
        var at = self.passes_end()
        var roots = Line[Self.dtype](
            self.table.unsafe_offset(at), self.table.unsafe_offset(at + length + 1)
        )
        if lanes > 1:
            for k in range(length if inverse else length + 1):
                var first = (k if k < length else 0) * lanes
                var other = (length - k if k > 0 or inverse else 0) * lanes
                var root = roots.load[1](k)
                var lane = 0
                while lane + width <= lanes:
                    target.store[width](k * lanes + lane, combined[Self.dtype, width](
                        source.load[width](first + lane), source.load[width](other + lane),
                        Complex[Self.dtype, width](root.re, root.im), inverse))
                    lane += width
                while lane < lanes:
                    target.store[1](k * lanes + lane, combined[Self.dtype, 1](
                        source.load[1](first + lane), source.load[1](other + lane), root, inverse))
                    lane += 1
            return
        var k = 1
        while k + width <= length:
            var last = source.load[width](length - k - width + 1)
            target.store[width](k, combined[Self.dtype, width](
                source.load[width](k),
                Complex[Self.dtype, width](last.re.reversed(), last.im.reversed()),
                roots.load[width](k), inverse))
            k += width
        while k < length:
            target.store[1](k, combined[Self.dtype, 1](
                source.load[1](k), source.load[1](length - k), roots.load[1](k), inverse))
            k += 1
        var end = length if inverse else 0
        target.store[1](0, combined[Self.dtype, 1](
            source.load[1](0), source.load[1](end), roots.load[1](0), inverse))
        if not inverse:
            target.store[1](length, combined[Self.dtype, 1](
                source.load[1](0), source.load[1](0), roots.load[1](length), inverse))

    def read_mirrored(self, target: Line[Self.dtype], source: Held[Self.dtype], lanes: Int):
        """A whole spectrum of its half, of odd length."""
        var n = self.number(2)
        var half = n // 2 + 1
        for lane in range(lanes):
            var line = source.unsafe_offset(2 * lane * half)
            for k in range(half):
                var x = line.unsafe_load[width=2](2 * k)
                if k == 0:
                    target.store[1](lane, Complex[Self.dtype, 1](x[0], 0))
                else:
                    target.store[1](k * lanes + lane, Complex[Self.dtype, 1](x[0], x[1]))
                    target.store[1]((n - k) * lanes + lane, Complex[Self.dtype, 1](x[0], -x[1]))


def transform[dtype: DType](slots: Slots, args: Args):
    var tasks = integer(args, 16) if integer(args, 17) > 1 else 1
    spread(
        Lines[dtype](
            held(operand[dtype](slots, args, 0)),
            held(operand[dtype](slots, args, 1)),
            held(operand[dtype](slots, args, 2)),
            held(operand[dtype](slots, args, 3)),
            held(args.unsafe_offset(8)),
            tasks,
        ),
        tasks,
    )
