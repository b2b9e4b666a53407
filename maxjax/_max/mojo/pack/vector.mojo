"""The vector machine: runs a group of elementwise operations and reductions without a kernel.

A group that has no compiled kernel yet is a list of instructions over registers. A register holds a
block of some hundred elements, so that all of them stay in the L2 cache; each instruction is one
loop over a block, of a function that the pack has for each operation and dtype.

`vector_machine`: a generated kernel's operands and integers (`layout.py`), then the address of the
code, which `bytecode.py` writes and describes. Kinds, opcodes, levels and the positions of a code's
words are in `abi.py`, which writes these constants behind this text.

A tile is what one pass over the code works on: `lines` times `width` elements. Lines are points of
the group's space, or rows where those are reduced; short ones go together into a tile, all points of
the innermost dimension several times if there is room; of a long one a tile is a part.

Lines follow one another in registers. Those of a window of an array, whose operands are mostly
such windows, are as far apart in registers as in the array instead (`pitch`): operands need no
copy, and what is between lines is computed for nothing.
"""
from std.collections import Array
from std.ffi import external_call

from kernels.abi import (
    AT_LENGTH,
    AT_PIECES,
    AT_ROWS,
    AT_STRIDES,
    AT_THREADS,
    MOST_DIMENSIONS,
    PLACE,
    TAPE_INTEGERS,
    TAPE_WORDS,
)
from kernels.calling import Args, Memory, Slots, integer
from kernels.copies import copy_lines
from kernels.launching import launch
from kernels.loops import part_begin

# Pointers as structs can have them.
comptime Words = Pointer[Int64, MutUntrackedOrigin]
comptime Table = Pointer[Memory, MutUntrackedOrigin]
# Result, operands, how many elements.
comptime Operation = def (Memory, Memory, Memory, Memory, Int) abi("C") thin -> None
# Result, operand, lines, elements of a line, whether the result begins anew.
comptime Reduction = def (Memory, Memory, Int, Int, Int) abi("C") thin -> None
# Result, first value, step, how many.
comptime Ramp = def (Memory, Int, Int, Int) abi("C") thin -> None

# Longer lines of a map are not put together in a tile: operands would have to be copied to registers
# for that, and instructions take them where they are.
comptime MOST_TOGETHER = 320
# Lines may be further apart in registers than they are long by one part in so many.
comptime LEAST_WIDE = 8


@always_inline
def word(words: Words, i: Int) -> Int:
    return Int(words.unsafe_load[width=1](i))


@always_inline
def words_at(words: Words, i: Int) -> Words:
    """The words whose address is word `i`."""
    return words.unsafe_offset(i).unsafe_bitcast[Words]()[]


@always_inline
def code_of(args: Words) -> Words:
    """The code of a call, whose address is the last of its integers."""
    return words_at(args, word(args, TAPE_INTEGERS - TAPE_WORDS) - 1)


@always_inline
def held(args: Args) -> Words:
    return args.unsafe_origin_cast[MutUntrackedOrigin]()


def copy(
    itemsize: Int,
    target: Memory,
    target_line: Int,
    target_step: Int,
    source: Memory,
    source_line: Int,
    source_step: Int,
    lines: Int,
    width: Int,
):
    """Copies lines of elements; strides are in elements."""

    @always_inline
    def of_kind[
        dtype: DType
    ]() {
        var target,
        var target_line,
        var target_step,
        var source,
        var source_line,
        var source_step,
        var lines,
        var width,
    }:
        copy_lines[dtype](
            source.unsafe_bitcast[Scalar[dtype]]().as_unsafe_any_origin(),
            target.unsafe_bitcast[Scalar[dtype]]().as_unsafe_any_origin(),
            lines,
            width,
            source_line,
            source_step,
            target_line,
            target_step,
        )

    if itemsize == 4:
        of_kind[DType.uint32]()
    elif itemsize == 8:
        of_kind[DType.uint64]()
    elif itemsize == 1:
        of_kind[DType.uint8]()
    else:
        of_kind[DType.uint16]()


struct Odometer:
    """The offsets of operands while outer dimensions are gone through, as `Walk` of `loops.mojo`.
    """

    var args: Words
    var operands: Int
    var rank: Int
    var index: Words
    var offsets: Words

    def __init__(out self, args: Words, operands: Int, memory: Words):
        """`memory` has room for `MOST_DIMENSIONS` integers, and one for each operand."""
        self.args = args
        self.operands = operands
        self.rank = word(args, 0)
        self.index = memory
        self.offsets = memory.unsafe_offset(MOST_DIMENSIONS)

    @always_inline
    def stride(self, k: Int, d: Int) -> Int:
        return word(self.args, 1 + self.rank * (k + 1) + d)

    @always_inline
    def line_stride(self, k: Int) -> Int:
        """From a point to the next along the innermost dimension."""
        return self.stride(k, self.rank - 1) if self.rank > 0 else 0

    def seat(mut self, position: Int):
        """Stands at the `position`-th point."""
        for k in range(self.operands):
            self.offsets.unsafe_store(k, Int64(0))
        var rest = position
        for d in range(self.rank - 1, -1, -1):
            var size = word(self.args, 1 + d)
            var i = rest
            if d > 0:
                rest = rest // size
                i -= rest * size
            self.index.unsafe_store(d, Int64(i))
            for k in range(self.operands):
                self.offsets.unsafe_store(
                    k, Int64(word(self.offsets, k) + i * self.stride(k, d))
                )

    @always_inline
    def group_stride(self, k: Int) -> Int:
        """From a point to the next along the dimension around the innermost."""
        return self.stride(k, self.rank - 2) if self.rank > 1 else 0

    @always_inline
    def group(self) -> Int:
        """Points of the innermost dimension."""
        return word(self.args, self.rank) if self.rank > 0 else 1

    @always_inline
    def left(self) -> Int:
        """Points from here to the end of the innermost dimension."""
        if self.rank == 0:
            return 1
        return word(self.args, self.rank) - word(self.index, self.rank - 1)

    @always_inline
    def groups_left(self) -> Int:
        """From here to the end of the dimension around the innermost."""
        if self.rank < 2:
            return 1
        return word(self.args, self.rank - 1) - word(self.index, self.rank - 2)

    def advance(mut self, count: Int, groups: Bool = False):
        """Goes on along the innermost dimension, or the one around it, not beyond its end."""
        var d = self.rank - 2 if groups else self.rank - 1
        var steps = count
        while d >= 0:
            var at = word(self.index, d) + steps
            var size = word(self.args, 1 + d)
            var carry = at >= size and d > 0
            var moved = steps - size if carry else steps
            self.index.unsafe_store(d, Int64(0 if carry else at))
            for k in range(self.operands):
                self.offsets.unsafe_store(
                    k, Int64(word(self.offsets, k) + moved * self.stride(k, d))
                )
            if not carry:
                return
            steps = 1
            d -= 1


struct Machine:
    """The registers of one task, and the tile that it is at.

    `points` and, where rows are reduced, `rows` say where operands' lines begin; `inner` says
    which of the two goes from line to line.
    """

    var slots: Table
    var args: Words
    var code: Words
    var instructions: Words
    var operands: Int
    var block: Int
    var memory: Memory
    var registers: Table
    var own: Memory
    var register_bytes: Int
    var strides: Int  # where the integers of strides along a line begin
    var points: Odometer
    var rows: Odometer
    var has_rows: Bool
    var lines: Int
    var groups: Int  # of as many lines each: all points of the innermost dimension, if several
    var width: Int
    var pitch: Int  # from a line to the next in registers
    var first: Int  # of a line's elements, in this tile
    var fresh: Bool  # accumulators begin anew
    var joined: Bool  # a reduction takes all lines of a tile as one

    def __init__(out self, slots: Table, args: Words, memory: Memory):
        self.slots = slots
        self.args = args
        self.code = code_of(args)
        self.operands = word(self.code, OPERANDS)
        self.block = word(self.code, BLOCK)
        self.register_bytes = word(self.code, REGISTER_BYTES)
        self.instructions = self.code.unsafe_offset(
            HEAD + PHASE_WORDS * word(self.code, PHASES)
        )
        self.strides = PLACE * self.operands + AT_STRIDES
        var walk = args.unsafe_offset(self.strides + self.operands)
        var registers = word(self.code, REGISTERS)
        self.memory = memory
        self.registers = self.memory.unsafe_bitcast[Memory]()
        self.own = self.memory.unsafe_offset(word(self.code, REGISTERS_AT))
        for k in range(registers):
            self.registers.unsafe_offset(k)[] = self.own.unsafe_offset(k * self.register_bytes)
        # The odometers are between the registers' places and the registers.
        var place = self.registers.unsafe_offset(registers).unsafe_bitcast[UInt8]()
        self.points = Odometer(walk, self.operands, place.unsafe_bitcast[Int64]())
        var behind = walk.unsafe_offset(1 + (1 + self.operands) * word(walk, 0))
        self.rows = Odometer(
            behind,
            self.operands,
            place.unsafe_offset(word(self.code, ODOMETER_BYTES)).unsafe_bitcast[Int64](),
        )
        self.has_rows = False
        self.lines = 1
        self.groups = 1
        self.width = 1
        self.pitch = 1
        self.first = 0
        self.fresh = True
        self.joined = False

    @always_inline
    def operand(self, k: Int) -> Memory:
        return place_of(self.slots, self.args, k)

    @always_inline
    def line_stride(self, k: Int) -> Int:
        return self.rows.line_stride(k) if self.has_rows else self.points.line_stride(k)

    @always_inline
    def offset(self, k: Int) -> Int:
        """Of an operand's first line, in elements, or of an iota in values."""
        var offset = word(self.points.offsets, k)
        if self.has_rows:
            offset += word(self.rows.offsets, k)
        return offset

    @always_inline
    def register(self, k: Int) -> Memory:
        return self.registers.unsafe_offset(k)[]

    @always_inline
    def aim(self, k: Int, place: Memory):
        self.registers.unsafe_offset(k)[] = place

    @always_inline
    def own_register(self, k: Int) -> Memory:
        return self.own.unsafe_offset(k * self.register_bytes)

    def run(self, begin: Int, length: Int):
        """Runs instructions over the present tile."""
        for number in range(begin, begin + length):
            var x = self.instructions.unsafe_offset(INSTRUCTION_WORDS * number)
            var kind = word(x, OPCODE)
            var target = word(x, TARGET)
            var level = word(x, LEVEL)
            if kind == APPLY:
                var count = self.lines
                if level == FULL:
                    count = (count - 1) * self.pitch + self.width
                elif level == ONCE:
                    count = 1
                if word(x, SIZE) != 0:
                    count = -count
                x.unsafe_offset(FUNCTION).unsafe_bitcast[Operation]()[](
                    self.register(target),
                    self.register(word(x, A)),
                    self.register(word(x, B)),
                    self.register(word(x, C)),
                    count,
                )
            elif kind == LOAD:
                self.load(target, word(x, A), word(x, SIZE), level)
            elif kind == VIEW:
                self.view(target, word(x, A), word(x, SIZE))
            elif kind == STORE:
                self.store(word(x, A), target, word(x, SIZE), level)
            elif kind == SPREAD:
                var size = word(x, SIZE)
                if level == ONCE:
                    copy(size, self.register(target), 0, 1, self.register(word(x, A)), 0, 0,
                         1, self.block)
                else:
                    copy(size, self.register(target), self.pitch, 1,
                         self.register(word(x, A)), 1, 0, self.lines, self.width)
            elif kind == RAMP:
                self.ramp(target, word(x, A), x.unsafe_offset(FUNCTION).unsafe_bitcast[Ramp]()[],
                          word(x, SIZE), level)
            elif kind == REDUCE:
                x.unsafe_offset(FUNCTION).unsafe_bitcast[Reduction]()[](
                    self.register(target),
                    self.register(word(x, A)),
                    1 if self.joined else self.lines,
                    self.lines * self.width if self.joined else self.width,
                    Int(self.fresh),
                )
            elif kind == REDUCE_COLUMNS:
                x.unsafe_offset(FUNCTION).unsafe_bitcast[Reduction]()[](
                    self.register(target),
                    self.register(word(x, A)),
                    self.lines,
                    self.width,
                    Int(self.fresh),
                )
            else:
                # The next instruction writes where its result is wanted, if it can.
                self.aim(target, self.place(word(x, A), word(x, SIZE), target))

    @always_inline
    def is_together(self, k: Int) -> Bool:
        """Whether an operand's elements of this tile follow one another in memory."""
        var group = self.lines // self.groups
        return (
            (word(self.args, self.strides + k) == 1 or self.width == 1)
            and (group == 1 or self.line_stride(k) == self.pitch)
            and (self.groups == 1 or self.points.group_stride(k) == group * self.width)
        )

    @always_inline
    def element(self, k: Int, size: Int) -> Memory:
        """An operand's first element in this tile."""
        var at = self.offset(k) + self.first * word(self.args, self.strides + k)
        return self.operand(k).unsafe_offset(at * size)

    def place(self, k: Int, size: Int, target: Int) -> Memory:
        # Between lines is what others have written.
        if self.pitch == self.width and self.is_together(k):
            return self.element(k, size)
        return self.own_register(target)

    def load(self, target: Int, k: Int, size: Int, level: Int):
        if level == ONCE:
            copy(size, self.register(target), 0, 1, self.operand(k), 0, 1, 1, 1)
            return
        if level == LINE:
            var x = self.operand(k).unsafe_offset(self.offset(k) * size)
            self.copy_tile[False](size, k, x, self.register(target), 1, 1)
            return
        self.copy_tile[False](
            size, k, self.element(k, size), self.register(target), self.width, self.pitch
        )

    def copy_tile[
        storing: Bool
    ](self, size: Int, k: Int, x: Memory, register: Memory, width: Int, pitch: Int):
        """Copies lines of `width` elements between an operand and a register."""
        var step = word(self.args, self.strides + k)
        var line = self.line_stride(k)
        # Lines, and groups of lines; from one to the next there, and in the register.
        var lines = self.lines
        var length = width
        var here_line = pitch
        var groups = 1
        var between = 0
        var here_between = 0
        if self.groups > 1:
            between = self.points.group_stride(k)
            lines //= self.groups
            groups = self.groups
            here_between = lines * width
            # A group is a line of its own if its elements are equally far apart.
            if width == 1 or lines == 1 or line == width * step:
                step = line if width == 1 else step
                length = lines * width
                here_line = here_between
                line = between
                lines = groups
                groups = 1
            elif groups > lines:
                # The same line of all groups, one line after the other.
                swap(lines, groups)
                swap(line, between)
                swap(here_line, here_between)
        for group in range(groups):
            var there = x.unsafe_offset(group * between * size)
            var here = register.unsafe_offset(group * here_between * size)
            comptime if storing:
                copy(size, there, line, step, here, here_line, 1, lines, length)
            else:
                copy(size, here, here_line, 1, there, line, step, lines, length)

    def view(self, target: Int, k: Int, size: Int):
        if self.is_together(k):
            self.aim(target, self.element(k, size))
            return
        self.aim(target, self.own_register(target))
        self.load(target, k, size, FULL)

    def store(self, source: Int, k: Int, size: Int, level: Int):
        if level == ONCE:
            copy(size, self.operand(k), 0, 1, self.register(source), 0, 1, 1, 1)
            return
        if level == LINE:
            var x = self.operand(k).unsafe_offset(self.offset(k) * size)
            self.copy_tile[True](size, k, x, self.register(source), 1, 1)
            return
        var x = self.element(k, size)
        if Int(x) == Int(self.register(source)):
            return
        self.copy_tile[True](size, k, x, self.register(source), self.width, self.pitch)

    def ramp(self, target: Int, k: Int, fill: Ramp, size: Int, level: Int):
        """Values of an iota: its operand's places hold its first value."""
        var start = word(self.args, PLACE * k + 1)
        var step = word(self.args, self.strides + k)
        if level == ONCE:
            fill(self.register(target), start, 0, 1)
            return
        start += self.offset(k)
        var lines = self.lines // self.groups
        for group in range(self.groups):
            var first = start + group * self.points.group_stride(k)
            var done = group * lines
            if level == LINE:
                fill(
                    self.register(target).unsafe_offset(done * size),
                    first,
                    self.line_stride(k),
                    lines,
                )
                continue
            for line in range(lines):
                fill(
                    self.register(target).unsafe_offset((done + line) * self.pitch * size),
                    first + self.first * step + line * self.line_stride(k),
                    step,
                    self.width,
                )

    # --- the kinds of groups ---
    def phase(self, number: Int, part: Int) -> Int:
        """How many instructions a phase has: for lines, for all elements, at its end."""
        return word(self.code, HEAD + PHASE_WORDS * number + part)

    def run_call(mut self) -> Int:
        """What is computed once; returns the number of the next instruction."""
        var length = word(self.code, CALL_LENGTH)
        self.run(0, length)
        return length

    @always_inline
    def most_lines(self, width: Int) -> Int:
        """Of a tile. Registers of one element a line are half as long as others: they may be of
        wider elements."""
        return self.block // max(2, width)

    @always_inline
    def take_lines(mut self, width: Int, rest: Int) -> Int:
        """How many of the next points are the lines of one tile, some groups of them if possible.
        """
        var most = min(self.most_lines(width), rest)
        var here = min(most, self.points.left())
        var group = self.points.group()
        self.groups = 1
        if here == group and 2 * group <= most:
            self.groups = min(most // group, self.points.groups_left())
            here = self.groups * group
        return here

    @always_inline
    def pass_lines(mut self, count: Int):
        if self.groups > 1:
            self.points.advance(self.groups, True)
        else:
            self.points.advance(count)

    def pitch_of(self, n: Int) -> Int:
        """From a line of `n` elements to the next, where registers are to have them."""
        var pitch = n
        var apart = 0
        var together = 0
        if self.points.rank == 0 or 2 * self.points.group() * n <= self.block:
            return n
        for k in range(self.operands):
            if word(self.args, self.strides + k) != 1:
                continue
            var line = self.points.line_stride(k)
            if line == n:
                together += 1
            elif pitch == n and n < line and line - n <= n // LEAST_WIDE:
                pitch = line
            if line > n and line == pitch:
                apart += 1
        return pitch if apart > together + 1 and 2 * pitch <= self.block else n

    def run_map(mut self, begin: Int, end: Int):
        var n = word(self.args, PLACE * self.operands + AT_LENGTH)
        var pieces = word(self.args, PLACE * self.operands + AT_PIECES)
        var start = self.run_call()
        var pitch = self.pitch_of(n) if pieces == 1 else n
        var item = begin
        self.points.seat(begin // pieces)
        while item < end:
            var piece = item % pieces
            var here = 1
            if pieces == 1 and (n <= MOST_TOGETHER or pitch > n) and 2 * pitch <= self.block:
                here = self.take_lines(pitch, end - item)
            self.lines = here
            self.run(start, self.phase(0, LINES))
            self.sweep(
                start + self.phase(0, LINES), self.phase(0, ELEMENTS),
                part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces),
                pitch if here > 1 else 0,
            )
            item += here
            if piece + 1 == pieces:
                self.pass_lines(here)

    @always_inline
    def sweep(mut self, begin: Int, length: Int, first: Int, last: Int, pitch: Int = 0):
        """Runs instructions over lines' elements, a block at a time; in registers lines follow one
        another unless there is a pitch."""
        self.first = first
        while self.first < last:
            self.width = min(self.block, last - self.first)
            self.pitch = max(pitch, self.width)
            self.run(begin, length)
            self.first += self.width
            self.fresh = False

    def run_rows(mut self, begin: Int, end: Int):
        var n = word(self.args, PLACE * self.operands + AT_LENGTH)
        var rows = word(self.args, PLACE * self.operands + AT_ROWS)
        var behind_call = self.run_call()
        var item = begin
        self.points.seat(begin)
        while item < end:
            var here = 1
            if self.rows.rank == 0 and 2 * n <= self.block:
                here = self.take_lines(n, end - item)
            var at = behind_call
            for phase in range(word(self.code, PHASES)):
                self.lines = here
                self.has_rows = False
                self.joined = False
                self.fresh = True
                var first = self.phase(phase, LINES)
                var second = self.phase(phase, ELEMENTS)
                var third = self.phase(phase, END)
                if self.rows.rank == 0:
                    self.run(at, first)
                    self.sweep(at + first, second, 0, n)
                else:
                    self.run(at, first)
                    self.run_reduced_rows(at + first, second, rows, n)
                self.lines = here
                self.has_rows = False
                self.run(at + first + second, third)
                at += first + second + third
            item += here
            self.pass_lines(here)

    def run_reduced_rows(mut self, begin: Int, length: Int, rows: Int, n: Int):
        """The rows of one point, of which all are reduced."""
        self.has_rows = True
        self.joined = True
        self.rows.seat(0)
        var row = 0
        while row < rows:
            self.lines = 1
            if 2 * n <= self.block:
                self.lines = min(self.most_lines(n), self.rows.left())
            var here = self.lines
            self.sweep(begin, length, 0, n)
            row += here
            self.rows.advance(here)


    def run_columns(mut self, begin: Int, end: Int):
        var n = word(self.args, PLACE * self.operands + AT_LENGTH)
        var blocks = word(self.args, PLACE * self.operands + AT_PIECES)
        var rows = word(self.args, PLACE * self.operands + AT_ROWS)
        var start = self.run_call()
        self.points.seat(begin // blocks)
        for item in range(begin, end):
            self.first = part_begin(n, item % blocks, blocks)
            self.width = part_begin(n, item % blocks + 1, blocks) - self.first
            self.pitch = self.width
            self.fresh = True
            self.has_rows = True
            self.rows.seat(0)
            var row = 0
            while row < rows:
                self.lines = min(max(1, self.most_lines(self.width)), self.rows.left())
                self.run(start, self.phase(0, ELEMENTS))
                self.fresh = False
                row += self.lines
                self.rows.advance(self.lines)
            self.lines = 1
            self.has_rows = False
            self.run(start + self.phase(0, ELEMENTS), self.phase(0, END))
            if item % blocks + 1 == blocks:
                self.points.advance(1)


def run_part(slots: Slots, args: Args, begin: Int, end: Int):
    var code = code_of(held(args))
    var bytes = word(code, MEMORY)
    if bytes <= STACK_BYTES:
        var stack = Array[UInt64, STACK_BYTES // 8](uninitialized=True)
        run_in(slots, args, begin, end, Pointer(to=stack).unsafe_bitcast[UInt8]())
    else:
        var memory = external_call["malloc", Memory](bytes)
        run_in(slots, args, begin, end, memory)
        external_call["free", NoneType](memory)


def run_in[
    origin: MutOrigin, //
](slots: Slots, args: Args, begin: Int, end: Int, memory: Pointer[UInt8, origin]):
    var machine = Machine(
        slots.unsafe_bitcast[Memory]().unsafe_origin_cast[MutUntrackedOrigin](),
        held(args),
        memory.unsafe_origin_cast[MutUntrackedOrigin](),
    )
    if word(machine.code, KIND) == OF_MAP:
        machine.run_map(begin, end)
    elif word(machine.code, KIND) == OF_ROWS:
        machine.run_rows(begin, end)
    else:
        machine.run_columns(begin, end)


def run_scalars(slots: Table, args: Words, code: Words):
    """A group of single elements: all is computed once."""
    var memory = Array[UInt64, STACK_BYTES // 8](uninitialized=True)
    var own = Pointer(to=memory).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var size = word(code, REGISTER_BYTES)
    var x = code.unsafe_offset(HEAD)
    for _ in range(word(code, CALL_LENGTH)):
        var kind = word(x, OPCODE)
        var a = word(x, A)
        if kind == APPLY:
            x.unsafe_offset(FUNCTION).unsafe_bitcast[Operation]()[](
                own.unsafe_offset(word(x, TARGET) * size),
                own.unsafe_offset(a * size),
                own.unsafe_offset(word(x, B) * size),
                own.unsafe_offset(word(x, C) * size),
                -1,
            )
        elif kind == LOAD:
            copy_one(word(x, SIZE), own.unsafe_offset(word(x, TARGET) * size),
                     place_of(slots, args, a))
        elif kind == STORE:
            copy_one(word(x, SIZE), place_of(slots, args, word(x, TARGET)),
                     own.unsafe_offset(a * size))
        else:
            x.unsafe_offset(FUNCTION).unsafe_bitcast[Ramp]()[](
                own.unsafe_offset(word(x, TARGET) * size), word(args, PLACE * a + 1), 0, 1
            )
        x = x.unsafe_offset(INSTRUCTION_WORDS)


@always_inline
def place_of(slots: Table, args: Words, k: Int) -> Memory:
    """Where an operand begins in memory."""
    return slots.unsafe_offset(word(args, PLACE * k))[].unsafe_offset(word(args, PLACE * k + 1))


@always_inline
def copy_one(size: Int, target: Memory, source: Memory):
    if size == 4:
        target.unsafe_bitcast[UInt32]()[] = source.unsafe_bitcast[UInt32]()[]
    elif size == 8:
        target.unsafe_bitcast[UInt64]()[] = source.unsafe_bitcast[UInt64]()[]
    elif size == 1:
        target[] = source[]
    else:
        target.unsafe_bitcast[UInt16]()[] = source.unsafe_bitcast[UInt16]()[]


@export("vector_machine")
def vector_machine(slots: Slots, args: Args) abi("C"):
    var code = code_of(held(args))
    if word(code, PHASES) == 0:
        run_scalars(
            slots.unsafe_bitcast[Memory]().unsafe_origin_cast[MutUntrackedOrigin](),
            held(args),
            code,
        )
        return
    launch(run_part, slots, args, PLACE * word(code, OPERANDS) + AT_THREADS)
