"""Stacks of matrices through LAPACK: what the pack's functions of one matrix are written with.

LAPACK's routines are called by address, and know columns: each matrix is transposed on its way in
and out.
"""
from std.sys.info import size_of

from .arrangement import transpose_matrix
from .calling import Args, Memory, Slots, address, integer
from .crew import Tasks, spread
from .reduction import chunk_begin, task_count

comptime Integers = Pointer[Int32, MutUntrackedOrigin]

# FORTRAN takes all arguments by their addresses.
comptime Call5 = def (Memory, Memory, Memory, Memory, Memory) abi("C") thin -> None
comptime Call6 = def (Memory, Memory, Memory, Memory, Memory, Memory) abi("C") thin -> None
comptime Call8 = def (
    Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory
) abi("C") thin -> None
comptime Call9 = def (
    Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory
) abi("C") thin -> None
comptime Call10 = def (
    Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory
) abi("C") thin -> None
comptime Call11 = def (
    Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory
) abi("C") thin -> None
comptime Call13 = def (
    Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory,
    Memory, Memory
) abi("C") thin -> None
comptime Call14 = def (
    Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory,
    Memory, Memory, Memory
) abi("C") thin -> None
comptime Call15 = def (
    Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory, Memory,
    Memory, Memory, Memory, Memory
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
    var begin: Memory
    var end: Int

    def __init__(out self, size: Int):
        """For arrays of altogether so many bytes, eight at most."""
        self.memory = List[UInt8](unsafe_uninit_length=size + 12 * LINE)
        var begin = self.memory.unsafe_ptr().unsafe_origin_cast[MutUntrackedOrigin]()
        self.begin = begin.unsafe_offset(LINE - Int(begin) % LINE)
        self.end = 2 * LINE

    @always_inline
    def at(self, i: Int) -> Memory:
        """Argument `i`."""
        return self.begin.unsafe_offset(4 * i)

    @always_inline
    def set(self, i: Int, value: Int):
        self.at(i).unsafe_bitcast[Int32]()[] = Int32(value)

    @always_inline
    def get(self, i: Int) -> Int:
        return Int(self.at(i).unsafe_bitcast[Int32]()[])

    def array(mut self, size: Int) -> Memory:
        var place = self.begin.unsafe_offset(self.end)
        self.end += (size + LINE - 1) // LINE * LINE
        return place

    @no_inline
    def free(deinit self):
        pass


@always_inline
def to_columns[T: DType, words: Int](x: Memory, columns: Memory, m: Int, n: Int):
    """Stores (m, n) column by column."""
    transposed[T, words](x, columns, m, n)


@always_inline
def to_rows[T: DType, words: Int](columns: Memory, x: Memory, m: Int, n: Int):
    """Stores (m, n) row by row again."""
    transposed[T, words](columns, x, n, m)


def transposed[T: DType, words: Int](x: Memory, result: Memory, rows: Int, columns: Int):
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


def fill(place: Memory, size: Int, value: Int):
    """Repeats the eight bytes of a value; `size` is a multiple of four."""
    var words = place.unsafe_bitcast[Int32]()
    for i in range(size // 4):
        words.unsafe_store(i, Int32((value >> 32) if i % 2 else (value & 0xFFFFFFFF)))


@fieldwise_init
struct Operands(TrivialRegisterPassable):
    """The operands and integers of one call, `number` operands before the integers."""

    var slots: Memory  # as a struct can have it
    var args: Pointer[Int64, MutUntrackedOrigin]
    var number: Int

    @always_inline
    def operand(self, k: Int, bytes: Int) -> Memory:
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
    R: Routine, operands: Int, integers: Int, m: Int, n: Int, linear: Bool = False
](slots: Slots, args: Args):
    """Runs a routine of `integers` integers, besides the number of threads that follows them.

    Integers `m` and `n` are the sizes of a matrix. A `linear` routine does a few operations for
    each of its elements, and never uses threads of its own.
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
    comptime if linear:
        tasks = task_count(count, count * (64 + rows * columns * 8), call.integer(integers))
    else:
        if rows * columns <= ALONE:
            var work = count * (64 + rows * columns * min(rows, columns) // 2)
            tasks = task_count(count, work, call.integer(integers))
    spread(Stack[R](call, count, tasks), tasks)
