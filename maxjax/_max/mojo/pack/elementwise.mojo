"""Elementwise functions that NumPy has no vector code for, of arrays without gaps.

`map_blocks`: x, y, out | count, bytes of an element, bytes of an element's operands and result,
function, threads; the function is one of the vector machine's, which may leave y alone: it computes
parts of the arrays
`spacing_float32`: x, out | count, threads
`hypot_float32` logaddexp logaddexp2: x, y, out | count, threads
`frexp_float32`: x, mantissa, exponent (int32) | count, threads
`isclose_float32`: x, y, relative (1), absolute (1), out (bytes) | count, threads
`reduce_precision_float32`: x, out | exponent_bits, mantissa_bits, count, threads
`abs_complex64`: x, out (float32); `exp_complex64`: x, out | count, threads
`integer_power_<int32|uint32>`: x, y, out | count, threads
`select_<bits>`: which (bytes), on_false, on_true, out | false_step, true_step, count, threads;
a step of 0: one element for all
"""
from extensibility import ElementwiseBinaryOp, ElementwiseUnaryOp
from std.math import fma
from std.sys.info import simd_width_of, size_of
from std.utils.numerics import isnan

from kernels.arithmetic import *
from kernels.calling import Args, Bytes, Slots, integer, operand
from kernels.crew import Tasks, spread
from kernels.elementary import INFINITY, exp, exp2, log1p, square_root
from kernels.reduction import Array, Held, chunk_begin, held, task_count
from kernels.unary import *


@fieldwise_init
struct Range[Op: ElementwiseUnaryOp, dtype: DType](Tasks):
    """The tasks of apply."""

    var x: Held[Self.dtype]
    var result: Held[Self.dtype]
    var count: Int
    var tasks: Int

    def run(self, task: Int):
        comptime width = 2 * simd_width_of[Self.dtype]()  # two hide each other's latency
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            var x = self.x.unsafe_load[width=width](i)
            self.result.unsafe_store(i, Self.Op.elementwise[Self.dtype, width](x))
            i += width
        while i < end:
            var x = self.x.unsafe_load[width=1](i)
            self.result.unsafe_store(i, Self.Op.elementwise[Self.dtype, 1](x))
            i += 1


@always_inline
def apply[Op: ElementwiseUnaryOp, dtype: DType](slots: Slots, args: Args):
    var count = integer(args, 4)
    var tasks = task_count(count, 8 * count, integer(args, 5))
    spread(
        Range[Op, dtype](
            held(operand[dtype](slots, args, 0)), held(operand[dtype](slots, args, 1)), count, tasks
        ),
        tasks,
    )


@fieldwise_init
struct PairedRange[Op: ElementwiseBinaryOp, dtype: DType](Tasks):
    """The tasks of apply_to_pairs."""

    var x: Held[Self.dtype]
    var y: Held[Self.dtype]
    var result: Held[Self.dtype]
    var count: Int
    var tasks: Int

    def run(self, task: Int):
        comptime width = 2 * simd_width_of[Self.dtype]()
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            var x = self.x.unsafe_load[width=width](i)
            var y = self.y.unsafe_load[width=width](i)
            self.result.unsafe_store(i, Self.Op.elementwise[Self.dtype, width](x, y))
            i += width
        while i < end:
            var x = self.x.unsafe_load[width=1](i)
            var y = self.y.unsafe_load[width=1](i)
            self.result.unsafe_store(i, Self.Op.elementwise[Self.dtype, 1](x, y))
            i += 1


@always_inline
def apply_to_pairs[Op: ElementwiseBinaryOp, dtype: DType](slots: Slots, args: Args):
    var count = integer(args, 6)
    var tasks = task_count(count, 12 * count, integer(args, 7))
    spread(
        PairedRange[Op, dtype](
            held(operand[dtype](slots, args, 0)),
            held(operand[dtype](slots, args, 1)),
            held(operand[dtype](slots, args, 2)),
            count,
            tasks,
        ),
        tasks,
    )


# Result, operands, how many elements.
comptime Block = def (Bytes, Bytes, Bytes, Bytes, Int) abi("C") thin -> None


@fieldwise_init
struct Blocks(Tasks):
    """The tasks of map_blocks."""

    var x: Held[DType.uint8]
    var y: Held[DType.uint8]
    var result: Held[DType.uint8]
    var function: Block
    var size: Int
    var count: Int
    var tasks: Int

    def run(self, task: Int):
        var begin = chunk_begin(task, self.tasks, self.count)
        var y = self.y.unsafe_offset(self.size * begin).as_unsafe_any_origin()
        self.function(
            self.result.unsafe_offset(self.size * begin).as_unsafe_any_origin(),
            self.x.unsafe_offset(self.size * begin).as_unsafe_any_origin(),
            y,
            y,
            chunk_begin(task + 1, self.tasks, self.count) - begin,
        )


@export("map_blocks")
def map_blocks(slots: Slots, args: Args) abi("C"):
    var count = integer(args, 6)
    var tasks = task_count(count, count * integer(args, 8), integer(args, 10))
    spread(
        Blocks(
            held(operand[DType.uint8](slots, args, 0)),
            held(operand[DType.uint8](slots, args, 1)),
            held(operand[DType.uint8](slots, args, 2)),
            args.unsafe_offset(9).unsafe_bitcast[Block]()[],
            integer(args, 7),
            count,
            tasks,
        ),
        tasks,
    )


struct Spacing(ElementwiseUnaryOp):
    """The way to the next float away from zero: the one with the next bits."""

    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return SIMD[dtype, width](from_bits=x.to_bits[DType.uint32]() + 1) - x


struct Hypot(ElementwiseBinaryOp):
    """Squares of float32 neither overflow in float64 nor vanish."""

    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        var wide_x = x.cast[DType.float64]()
        var wide_y = y.cast[DType.float64]()
        var result = square_root(fma(wide_x, wide_x, wide_y * wide_y)).cast[dtype]()
        var infinite = abs(x).eq(INFINITY) | abs(y).eq(INFINITY)
        return infinite.select(SIMD[dtype, width](INFINITY), result)


@always_inline
def log_of_sum[
    dtype: DType, width: SIMDLength, //, *, base_two: Bool
](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
    """The greater one plus a correction; at equal infinities their difference is NaN."""
    var difference = x - y
    var term: SIMD[dtype, width]
    comptime if base_two:
        term = log1p(exp2(-abs(difference))) * 1.4426950408889634
    else:
        term = log1p(exp(-abs(difference)))
    var result = extremum[largest=True](x, y) + term
    return isnan(difference).select(x + y, result)


struct Logaddexp(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return log_of_sum[base_two=False](x, y)


struct Logaddexp2(ElementwiseBinaryOp):
    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        return log_of_sum[base_two=True](x, y)


@fieldwise_init
struct Closeness(Tasks):
    """The tasks of isclose."""

    var x: Held[DType.float32]
    var y: Held[DType.float32]
    var relative: Float32
    var absolute: Float32
    var result: Held[DType.uint8]
    var count: Int
    var tasks: Int

    @always_inline
    def step[width: Int](self, i: Int):
        comptime V = SIMD[DType.uint8, width]
        var x = self.x.unsafe_load[width=width](i)
        var y = self.y.unsafe_load[width=width](i)
        var near = abs(x - y).le(self.absolute + self.relative * abs(y))
        var close = (near & abs(y).lt(INFINITY)) | x.eq(y)
        self.result.unsafe_store(i, close.select(V(1), V(0)))

    def run(self, task: Int):
        comptime width = 2 * simd_width_of[DType.float32]()
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            self.step[width](i)
            i += width
        while i < end:
            self.step[1](i)
            i += 1


@export("isclose_float32")
def isclose_float32(slots: Slots, args: Args) abi("C"):
    var count = integer(args, 10)
    var tasks = task_count(count, 9 * count, integer(args, 11))
    spread(
        Closeness(
            held(operand[DType.float32](slots, args, 0)),
            held(operand[DType.float32](slots, args, 1)),
            operand[DType.float32](slots, args, 2)[],
            operand[DType.float32](slots, args, 3)[],
            held(operand[DType.uint8](slots, args, 4)),
            count,
            tasks,
        ),
        tasks,
    )


@fieldwise_init
struct Rounding(Tasks):
    """The tasks of reduce_precision."""

    var x: Held[DType.float32]
    var result: Held[DType.float32]
    var dropped: UInt32  # bits of the mantissa
    var least: UInt32  # the bits of the least normal number, and of the least infinity
    var limit: UInt32
    var count: Int
    var tasks: Int

    @always_inline
    def step[width: Int](self, i: Int):
        comptime V = SIMD[DType.float32, width]
        comptime U = SIMD[DType.uint32, width]
        var x = self.x.unsafe_load[width=width](i)
        var bits = x.to_bits[DType.uint32]()
        var sign = bits & 0x80000000
        var magnitude = bits ^ sign
        if self.dropped:
            # Half of the last kept place, less one when the kept part is even.
            var half = (UInt32(1) << (self.dropped - 1)) - 1
            magnitude += half + ((magnitude >> self.dropped) & 1)
            magnitude &= ~((UInt32(1) << self.dropped) - 1)
        magnitude = magnitude.ge(self.limit).select(U(0x7F800000), magnitude)
        magnitude = magnitude.lt(self.least).select(U(0), magnitude)
        var rounded = V(from_bits=magnitude | sign)
        self.result.unsafe_store(i, isnan(x).select(x, rounded))

    def run(self, task: Int):
        comptime width = 2 * simd_width_of[DType.float32]()
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            self.step[width](i)
            i += width
        while i < end:
            self.step[1](i)
            i += 1


@export("reduce_precision_float32")
def reduce_precision_float32(slots: Slots, args: Args) abi("C"):
    var exponent_bits = integer(args, 4)
    var mantissa_bits = integer(args, 5)
    var count = integer(args, 6)
    var tasks = task_count(count, 8 * count, integer(args, 7))
    var least = 0
    var limit = 0x7F800000
    if exponent_bits < 8:
        var bias = (1 << (exponent_bits - 1)) - 1
        least = (128 - bias) << 23
        limit = (128 + bias) << 23
    spread(
        Rounding(
            held(operand[DType.float32](slots, args, 0)),
            held(operand[DType.float32](slots, args, 1)),
            UInt32(max(0, 23 - mantissa_bits)),
            UInt32(least),
            UInt32(limit),
            count,
            tasks,
        ),
        tasks,
    )


@fieldwise_init
struct Magnitudes(Tasks):
    """The tasks of abs_complex64: squares of single precision neither round nor overflow in
    double precision."""

    var x: Held[DType.float32]
    var result: Held[DType.float32]
    var count: Int
    var tasks: Int

    @always_inline
    def step[width: Int](self, i: Int):
        var parts = self.x.unsafe_load[width=2 * width](2 * i).deinterleave()
        var x = rebind[SIMD[DType.float32, width]](parts[0]).cast[DType.float64]()
        var y = rebind[SIMD[DType.float32, width]](parts[1]).cast[DType.float64]()
        var size = square_root(x * x + y * y)
        # One infinite part makes it infinite, also beside a NaN.
        size = (abs(x).eq(INFINITY) | abs(y).eq(INFINITY)).select(
            SIMD[DType.float64, width](INFINITY), size
        )
        self.result.unsafe_store(i, size.cast[DType.float32]())

    def run(self, task: Int):
        comptime width = simd_width_of[DType.float32]()
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            self.step[width](i)
            i += width
        while i < end:
            self.step[1](i)
            i += 1


@export("abs_complex64")
def abs_complex64(slots: Slots, args: Args) abi("C"):
    var count = integer(args, 4)
    var tasks = task_count(count, 12 * count, integer(args, 5))
    spread(
        Magnitudes(
            held(operand[DType.float32](slots, args, 0)),
            held(operand[DType.float32](slots, args, 1)),
            count,
            tasks,
        ),
        tasks,
    )


@fieldwise_init
struct ComplexExponentials(Tasks):
    """The tasks of exp_complex64."""

    var x: Held[DType.float32]
    var result: Held[DType.float32]
    var count: Int
    var tasks: Int

    @always_inline
    def step[width: Int](self, i: Int):
        comptime V = SIMD[DType.float32, width]
        var parts = self.x.unsafe_load[width=2 * width](2 * i).deinterleave()
        var x = rebind[V](parts[0])
        var y = rebind[V](parts[1])
        # The whole may overflow where the product does not.
        var root = Exp.elementwise[DType.float32, width](x * 0.5)
        var real = root * Cos.elementwise[DType.float32, width](y) * root
        var imaginary = root * Sin.elementwise[DType.float32, width](y) * root
        self.result.unsafe_store(2 * i, real.interleave(y.eq(0).select(y, imaginary)))

    def run(self, task: Int):
        comptime width = simd_width_of[DType.float32]()
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            self.step[width](i)
            i += width
        while i < end:
            self.step[1](i)
            i += 1


@export("exp_complex64")
def exp_complex64(slots: Slots, args: Args) abi("C"):
    var count = integer(args, 4)
    var tasks = task_count(count, 16 * count, integer(args, 5))
    spread(
        ComplexExponentials(
            held(operand[DType.float32](slots, args, 0)),
            held(operand[DType.float32](slots, args, 1)),
            count,
            tasks,
        ),
        tasks,
    )


struct IntegerPower(ElementwiseBinaryOp):
    """By the low six bits of the exponent, as JAX's; other powers of 0 than the 0th are 0."""

    @staticmethod
    @always_inline
    def elementwise[
        dtype: DType, width: SIMDLength
    ](x: SIMD[dtype, width], y: SIMD[dtype, width]) -> SIMD[dtype, width]:
        comptime V = SIMD[dtype, width]
        var result = (x.eq(0) & y.ne(0)).select(V(0), V(1))
        var square = x
        comptime for bit in range(6):
            result = ((y >> Scalar[dtype](bit)) & 1).ne(0).select(result * square, result)
            square = square * square
        return result


@fieldwise_init
struct Selection[dtype: DType](Tasks):
    """The tasks of select."""

    var which: Held[DType.uint8]
    var on_false: Held[Self.dtype]
    var on_true: Held[Self.dtype]
    var result: Held[Self.dtype]
    var false_step: Int
    var true_step: Int
    var count: Int
    var tasks: Int

    @always_inline
    def step[width: Int](self, i: Int):
        comptime V = SIMD[Self.dtype, width]
        var which = self.which.unsafe_load[width=width](i).ne(0)
        var on_false = self.on_false.unsafe_load[width=width](
            i
        ) if self.false_step else V(self.on_false.unsafe_load[width=1](0))
        var on_true = self.on_true.unsafe_load[width=width](
            i
        ) if self.true_step else V(self.on_true.unsafe_load[width=1](0))
        self.result.unsafe_store(i, which.select(on_true, on_false))

    def run(self, task: Int):
        comptime width = 2 * simd_width_of[Self.dtype]()
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            self.step[width](i)
            i += width
        while i < end:
            self.step[1](i)
            i += 1


@always_inline
def select[dtype: DType](slots: Slots, args: Args):
    var count = integer(args, 10)
    comptime size = 3 * size_of[Scalar[dtype]]() + 1
    var tasks = task_count(count, size * count, integer(args, 11))
    spread(
        Selection[dtype](
            held(operand[DType.uint8](slots, args, 0)),
            held(operand[dtype](slots, args, 1)),
            held(operand[dtype](slots, args, 2)),
            held(operand[dtype](slots, args, 3)),
            integer(args, 8),
            integer(args, 9),
            count,
            tasks,
        ),
        tasks,
    )


@fieldwise_init
struct MantissasAndExponents(Tasks):
    """The tasks of frexp."""

    var x: Held[DType.float32]
    var mantissas: Held[DType.float32]
    var exponents: Held[DType.int32]
    var count: Int
    var tasks: Int

    @always_inline
    def step[width: Int](self, i: Int):
        comptime V = SIMD[DType.float32, width]
        comptime W = SIMD[DType.int32, width]
        var x = self.x.unsafe_load[width=width](i)
        var tiny = abs(x).lt(1.1754943508222875e-38)
        var bits = tiny.select(x * 8388608.0, x).to_bits[DType.uint32]()
        var field = ((bits >> 23) & 0xFF).cast[DType.int32]()
        var exponent = field - tiny.select(W(126 + 23), W(126))
        var mantissa = V(from_bits=(bits & 0x807FFFFF) | 0x3F000000)
        var special = x.eq(0) | field.eq(0xFF)
        self.mantissas.unsafe_store(i, special.select(x, mantissa))
        self.exponents.unsafe_store(i, special.select(W(0), exponent))

    def run(self, task: Int):
        comptime width = 2 * simd_width_of[DType.float32]()
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            self.step[width](i)
            i += width
        while i < end:
            self.step[1](i)
            i += 1


@export("frexp_float32")
def frexp_float32(slots: Slots, args: Args) abi("C"):
    var count = integer(args, 6)
    var tasks = task_count(count, 12 * count, integer(args, 7))
    spread(
        MantissasAndExponents(
            held(operand[DType.float32](slots, args, 0)),
            held(operand[DType.float32](slots, args, 1)),
            held(operand[DType.int32](slots, args, 2)),
            count,
            tasks,
        ),
        tasks,
    )
