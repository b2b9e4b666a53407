"""What the vector machine's functions stand in: loops over blocks of elements, and over lines."""
from std.collections import Array
from std.sys.info import simd_width_of, size_of

from .calling import Bytes
from .copies import NEAR, pick
from .halves import rounded_to
from .reduction import (
    SHORT,
    Maximizing,
    Reducer,
    Summing,
    accumulated,
    reduce_line,
    turn_for,
    turned,
)


@always_inline
def typed[dtype: DType](x: Bytes) -> Pointer[Scalar[dtype], MutAnyOrigin]:
    return x.unsafe_bitcast[Scalar[dtype]]()

comptime Block = def (Bytes, Bytes, Bytes, Bytes, Int) thin -> None


@no_inline
def run_blocks(
    block: Block, width: Int, result: Bytes, a: Bytes, b: Bytes, c: Bytes, n: Int,
    result_size: Int, a_size: Int, b_size: Int, c_size: Int
):
    """Whole vectors, then a vector of copies of what is left; of registers alone, whose number of
    elements is told as a negative number, there is room for a whole vector more. (One element of
    registers, -1, does not come here.)"""
    if n < 0:
        block(result, a, b, c, width - 1 - n)
        return
    block(result, a, b, c, n)
    var rest = n % width
    if rest == 0:
        return
    var done = n - rest
    # Of no more than 64 elements of 8 bytes each.
    var memory = Array[UInt64, 4 * 64](uninitialized=True)
    var own = Pointer(to=memory).unsafe_bitcast[UInt8]().as_unsafe_any_origin()
    copy_bytes(own, a.unsafe_offset(done * a_size), rest * a_size)
    copy_bytes(own.unsafe_offset(512), b.unsafe_offset(done * b_size), rest * b_size)
    copy_bytes(own.unsafe_offset(1024), c.unsafe_offset(done * c_size), rest * c_size)
    block(own.unsafe_offset(1536), own, own.unsafe_offset(512), own.unsafe_offset(1024), width)
    copy_bytes(result.unsafe_offset(done * result_size), own.unsafe_offset(1536),
               rest * result_size)


@no_inline
def run_vector(block: Block, x: Bytes, width: Int):
    """One vector of each operand. A block that were called by its name, too, would be compiled
    twice: once for that, without the arguments that it does not use."""
    block(x.unsafe_offset(1536), x, x.unsafe_offset(512), x.unsafe_offset(1024), width)


@always_inline
def fill_vector[dtype: DType, width: Int](target: Bytes, x: Bytes):
    typed[dtype](target).unsafe_store(
        0, SIMD[dtype, width](typed[dtype](x).unsafe_load[width=1](0)))


# So many numbers of 16 bits are computed at a time in float32.
comptime HALVES = 128


@no_inline
def run_halves[
    dtype: DType
](block: Block, width: Int, operands: Int, result: Bytes, a: Bytes, b: Bytes, n: Int):
    """What a block of float32 gives for numbers of 16 bits, rounded: so they need none of their
    own. Of registers the number of elements is negative."""
    var memory = Array[Float32, 3 * HALVES](uninitialized=True)
    var own = Pointer(to=memory).as_unsafe_any_origin().unsafe_bitcast[UInt8]()
    var second = own.unsafe_offset(4 * HALVES)
    var values = second.unsafe_offset(4 * HALVES)
    var count = abs(n)
    for begin in range(0, count, HALVES):
        var some = min(HALVES, count - begin)
        var whole = (some + width - 1) // width * width
        widen_halves[dtype](own, a.unsafe_offset(2 * begin), some, whole)
        if operands > 1:
            widen_halves[dtype](second, b.unsafe_offset(2 * begin), some, whole)
        block(values, own, second, own, whole)
        narrow_halves[dtype](result.unsafe_offset(2 * begin), values, some)


@no_inline
def widen_halves[dtype: DType](target: Bytes, x: Bytes, some: Int, whole: Int):
    """Converts some numbers, and copies of the first of them to fill whole vectors: for one alone
    processors have instructions that lose subnormal numbers."""
    comptime W = simd_width_of[DType.float32]()
    comptime V = SIMD[dtype, W]
    var i = 0
    while i < whole:
        var value: V
        if i + W <= some:
            value = typed[dtype](x).unsafe_load[width=W](i)
        else:
            var rest = Array[V, 1](fill=V(typed[dtype](x).unsafe_load[width=1](0)))
            var own = Pointer(to=rest).as_unsafe_any_origin().unsafe_bitcast[UInt8]()
            copy_bytes(own, x.unsafe_offset(2 * i), 2 * max(0, some - i))
            value = typed[dtype](own).unsafe_load[width=W](0)
        typed[DType.float32](target).unsafe_store(i, value.cast[DType.float32]())
        i += W


@no_inline
def narrow_halves[dtype: DType](target: Bytes, x: Bytes, some: Int):
    comptime W = simd_width_of[DType.float32]()
    for i in range(0, some, W):
        var value = rounded_to[dtype](typed[DType.float32](x).unsafe_load[width=W](i))
        if i + W <= some:
            typed[dtype](target).unsafe_store(i, value)
        else:
            var rest = Array[SIMD[dtype, W], 1](fill=value)
            copy_bytes(target.unsafe_offset(2 * i), Pointer(to=rest).as_unsafe_any_origin()
                       .unsafe_bitcast[UInt8](), 2 * (some - i))


@always_inline
def copy_bytes(target: Bytes, source: Bytes, count: Int):
    for i in range(count):
        target.unsafe_store(i, source.unsafe_load[width=1](i))


@no_inline
def gather_short[
    Op: Reducer, dtype: DType, kind: DType, few: Int, turns: Bool
](
    target: Pointer[Scalar[kind], MutAnyOrigin], x: Pointer[Scalar[dtype], MutAnyOrigin],
    lines: Int, fresh: Int, turn: Scalar[kind]
) -> Int:
    """Reduces lines of `few` elements, each line's in their order, many lines at a time; returns
    how many lines are done."""
    comptime part = accumulated[dtype]()
    comptime W = min(16, simd_width_of[part]())
    var line = 0
    while line + W <= lines:
        var value = SIMD[part, W](Op.identity[part]())
        comptime for i in range(few):
            var picked = pick[dtype, W, few](x.unsafe_offset(line * few + i)).cast[part]()
            value = Op.combine[part, W](value, turned[turns](picked, turn.cast[part]()))
        var wide = value.cast[kind]()
        if fresh == 0:
            wide = Op.combine[kind, W](
                turned[turns](target.unsafe_load[width=W](line), turn), wide)
        target.unsafe_store(line, turned[turns](wide, turn))
        line += W
    return line


@no_inline
def gather_side_by_side[
    Op: Reducer, dtype: DType, kind: DType, turns: Bool
](
    target: Pointer[Scalar[kind], MutAnyOrigin], x: Pointer[Scalar[dtype], MutAnyOrigin],
    lines: Int, width: Int, fresh: Int, turn: Scalar[kind]
) -> Int:
    """The same of lines of any length: of few elements, the loop over each would cost more."""
    comptime part = accumulated[dtype]()
    comptime W = min(16, simd_width_of[part]())
    var line = 0
    while line + W <= lines:
        var value = SIMD[part, W](Op.identity[part]())
        for i in range(width):
            var column = SIMD[dtype, W](0)
            comptime for lane in range(W):
                column[lane] = x.unsafe_load[width=1]((line + lane) * width + i)
            value = Op.combine[part, W](
                value, turned[turns](column.cast[part](), turn.cast[part]()))
        var wide = value.cast[kind]()
        if fresh == 0:
            wide = Op.combine[kind, W](
                turned[turns](target.unsafe_load[width=W](line), turn), wide)
        target.unsafe_store(line, turned[turns](wide, turn))
        line += W
    return line


@always_inline
def gather_lines[
    Op: Reducer, dtype: DType, kind: DType, turns: Bool = False
](result: Bytes, x: Bytes, lines: Int, width: Int, fresh: Int, turn: Scalar[kind] = 0):
    """Reduces lines, each to one element that is combined with what is there; where it `turns`, to
    an extreme of what is `turned`."""
    var target = typed[kind](result)
    var done = 0
    comptime for few in range(2, NEAR + 1):
        if width == few:
            done = gather_short[Op, dtype, kind, few, turns](
                target, typed[dtype](x), lines, fresh, turn)
    if NEAR < width and width < SHORT:
        done = gather_side_by_side[Op, dtype, kind, turns](
            target, typed[dtype](x), lines, width, fresh, turn)
    for line in range(done, lines):
        var value = reduce_line[Op, dtype, turns](
            typed[dtype](x).unsafe_offset(line * width), width,
            turn.cast[accumulated[dtype]()](),
        ).cast[kind]()
        if fresh == 0:
            value = Op.combine[kind, 1](
                turned[turns](target.unsafe_load[width=1](line), turn), value)
        target.unsafe_store(line, turned[turns](value, turn))


@always_inline
def gather_extremes[
    largest: Bool, dtype: DType, signed: DType
](result: Bytes, x: Bytes, lines: Int, width: Int, fresh: Int):
    gather_turned[signed](result, x, lines, width, fresh, turn_for[largest, dtype, signed]())


@no_inline
def gather_turned[
    dtype: DType
](
    result: Bytes, x: Bytes, lines: Int, width: Int, fresh: Int,
    turn: Scalar[accumulated[dtype]()]
):
    """The extremes of lines, whichever: one function is compiled for all of a size."""
    gather_lines[Maximizing, dtype, accumulated[dtype](), True](
        result, x, lines, width, fresh, turn)


@always_inline
def gather_columns[
    Op: Reducer, dtype: DType, kind: DType
](result: Bytes, x: Bytes, lines: Int, width: Int, fresh: Int):
    """Combines lines, one element with one, with what is there."""
    comptime W = simd_width_of[kind]()
    var target = typed[kind](result)
    for line in range(lines):
        var source = typed[dtype](x).unsafe_offset(line * width)
        var anew = fresh != 0 and line == 0
        var i = 0
        while i + W <= width:
            var value = source.unsafe_load[width=W](i).cast[kind]()
            if not anew:
                value = Op.combine[kind, W](target.unsafe_load[width=W](i), value)
            target.unsafe_store(i, value)
            i += W
        comptime for halving in range(1, 4):
            comptime H = W >> halving
            comptime if H > 1:
                if i + H <= width:
                    var value = source.unsafe_load[width=H](i).cast[kind]()
                    if not anew:
                        value = Op.combine[kind, H](target.unsafe_load[width=H](i), value)
                    target.unsafe_store(i, value)
                    i += H
        while i < width:
            var value = source.unsafe_load[width=1](i).cast[kind]()
            if not anew:
                value = Op.combine[kind, 1](target.unsafe_load[width=1](i), value)
            target.unsafe_store(i, value)
            i += 1


@always_inline
def add_exactly[
    w: Int
](sums: Pointer[Float64, MutAnyOrigin], errors: Pointer[Float64, MutAnyOrigin], i: Int,
  x: SIMD[DType.float64, w]):
    """Adds to sums, and to their errors what that rounds off."""
    var old = sums.unsafe_load[width=w](i)
    var new = old + x
    var added = new - old
    sums.unsafe_store(i, new)
    errors.unsafe_store(
        i, errors.unsafe_load[width=w](i) + ((old - (new - added)) + (x - added)))


@always_inline
def add_lines(result: Bytes, x: Bytes, lines: Int, width: Int, fresh: Int):
    """Adds lines of float64, each to a sum; the sums' errors follow them all.

    A line is one of many parts, so that a plain sum of them would be rounded too often.
    """
    var sums = typed[DType.float64](result)
    var errors = sums.unsafe_offset(lines)
    if fresh != 0:
        gather_lines[Summing, DType.float64, DType.float64](result, x, lines, width, fresh)
        for line in range(lines):
            errors.unsafe_store(line, 0)
        return
    for line in range(lines):
        add_exactly[1](sums, errors, line, reduce_line[Summing, DType.float64](
            typed[DType.float64](x).unsafe_offset(line * width), width).cast[DType.float64]())


@always_inline
def add_columns(result: Bytes, x: Bytes, lines: Int, width: Int, fresh: Int):
    """Adds lines of float64 to a line of sums, which that of their errors follows."""
    comptime W = simd_width_of[DType.float64]()
    comptime V = SIMD[DType.float64, W]
    var sums = typed[DType.float64](result)
    var errors = sums.unsafe_offset(width)
    if fresh != 0:
        for i in range(width):
            sums.unsafe_store(i, -0.0)
            errors.unsafe_store(i, 0)
    # A few lines together: their sum is rounded as seldom as a pairwise one.
    for first in range(0, lines, 16):
        var source = typed[DType.float64](x).unsafe_offset(first * width)
        var count = min(16, lines - first)
        var i = 0
        while i + W <= width:
            var total = source.unsafe_load[width=W](i)
            for line in range(1, count):
                total += source.unsafe_load[width=W](line * width + i)
            add_exactly[W](sums, errors, i, total)
            i += W
        while i < width:
            var total = source.unsafe_load[width=1](i)
            for line in range(1, count):
                total += source.unsafe_load[width=1](line * width + i)
            add_exactly[1](sums, errors, i, total)
            i += 1


@always_inline
def settle_sums(result: Bytes, x: Bytes, count: Int):
    """Sums with their errors: those of infinities are not finite."""
    var sums = typed[DType.float64](x)
    for i in range(count):
        var sum = sums.unsafe_load[width=1](i)
        var error = sums.unsafe_load[width=1](count + i)
        var counts = error != 0 and error - error == 0
        typed[DType.float64](result).unsafe_store(i, sum + error if counts else sum)


@always_inline
def fill_ramp[dtype: DType](result: Bytes, first: Int, step: Int, count: Int):
    for i in range(count):
        typed[dtype](result).unsafe_store(i, Int64(first + i * step).cast[dtype]())
