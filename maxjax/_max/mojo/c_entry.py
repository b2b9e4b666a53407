"""The functions of a C library, in Mojo: what a program calls, and how a call gets its memory.

A *block* describes a program for its sizes: words that the linker fills with addresses
(``c_library.py``), in the order of ``BLOCK``. Of each array there is a row, in that of ``ROW``.
"""

from __future__ import annotations

from collections.abc import Sequence

from maxjax._max.mojo.abi import CREW_WORDS

BLOCK = ("TAPE", "LENGTH", "TEMPLATE", "SLOTS", "ARENA_SLOT", "HEAD", "BYTES", "CELLS", "ARRAYS",
         "COUNT", "COPIES", "COPY_COUNT", "IS_ONE")
ROW = ("SLOT", "NBYTES", "ALIGNMENT", "IS_RESULT", "DTYPE", "RANK", "SHAPE")
# Frames that are kept for further calls, as many as ran at the same time.
KEPT = 4
PROGRAMS, TEXTS = "maxjax_library_programs", "maxjax_library_texts"
# The memory of a library with threads of its own: 16 words, then those of the crew (``crew.py``).
CREW, CREW_OWN = "maxjax_library_crew", 16
# Codes of errors: of the library, then as many of each array.
NO_MEMORY, WRONG_COUNT, WRONG_SIZES = 1, 2, 3
FIRST_OF_ARRAYS = OF_ARRAY = 8
NULL, MISALIGNED, OVERLAPS, WRONG_DTYPE, WRONG_SHAPE = range(5)
# More arrays are not arguments of a C function each.
MOST_PARAMETERS = 100

_TEXT = f'''
from std.atomic import Atomic
from std.ffi import external_call
from std.memory import unsafe_memcpy
from kernels.calling import Args, Bytes, Slots, integer

comptime ALIGNED = 64
comptime KEPT = {KEPT}
{"".join(f"comptime {name} = {n}{chr(10)}" for n, name in enumerate(BLOCK))}
{"".join(f"comptime {name} = {n}{chr(10)}" for n, name in enumerate(ROW))}
comptime ROW = {len(ROW)}
comptime GIVEN = 3  # words of an array that is given: its data, its shape, its dtype and rank


@always_inline
def words_at(words: Args, i: Int) -> Args:
    """Where integer `i` points to."""
    return words.unsafe_offset(i).unsafe_bitcast[Args]()[]


@always_inline
def code_of(array: Int, problem: Int) -> Int:
    return {FIRST_OF_ARRAYS} + {OF_ARRAY} * array + problem


def fill(program: Args, slots: Slots):
    """Puts the addresses of constants, and of the arena, in their slots."""
    unsafe_memcpy(
        dest=slots.unsafe_bitcast[UInt8](),
        src=words_at(program, TEMPLATE).unsafe_bitcast[UInt8](),
        count=8 * integer(program, SLOTS),
    )
    slots.unsafe_offset(integer(program, ARENA_SLOT))[] = (
        slots.unsafe_bitcast[UInt8]().unsafe_offset(integer(program, HEAD) - 8)
    )


def take(program: Args) -> Int:
    """The slots of a frame that no other call has; 0 if there is no memory. A frame is the word
    that stops the driver, the slots, then the arena; the programs of all sizes share them."""
    var cells = words_at(program, CELLS)
    for i in range(KEPT):
        var cell = cells.unsafe_offset(i)
        var seen = Atomic[Int64].load(cell)
        if seen != 0 and Atomic[Int64].compare_exchange(cell, seen, Int64(0)):
            if integer(program, IS_ONE) == 0:
                fill(program, slots_at(Int(seen)))
            return Int(seen)
    var memory = external_call["aligned_alloc", Bytes](ALIGNED, integer(program, BYTES))
    if Int(memory) == 0:
        return 0
    memory.unsafe_bitcast[Int64]()[] = 0
    var slots = Int(memory.unsafe_offset(8))
    fill(program, slots_at(slots))
    return slots


@always_inline
def slots_at(address: Int) -> Slots:
    var place = address
    return Pointer(to=place).unsafe_bitcast[Slots]()[]


def give_back(program: Args, slots: Slots):
    """Keeps a frame for another call, or frees it."""
    var cells = words_at(program, CELLS)
    for i in range(KEPT):
        var empty = Int64(0)
        if Atomic[Int64].compare_exchange(cells.unsafe_offset(i), empty, Int64(Int(slots))):
            return
    external_call["free", NoneType](slots.unsafe_offset(-1))


def release(program: Args):
    """Frees the frames that are kept."""
    var cells = words_at(program, CELLS)
    for i in range(KEPT):
        var cell = cells.unsafe_offset(i)
        var seen = Atomic[Int64].load(cell)
        if seen != 0 and Atomic[Int64].compare_exchange(cell, seen, Int64(0)):
            external_call["free", NoneType](slots_at(Int(seen)).unsafe_offset(-1))


def overlaps(arrays: Args, slots: Slots, number: Int) -> Bool:
    """Whether a result shares memory with an array before it."""
    var result = arrays.unsafe_offset(number * ROW)
    var begin = Int(slots.unsafe_offset(integer(result, SLOT))[])
    var end = begin + integer(result, NBYTES)
    for i in range(number):
        var other = arrays.unsafe_offset(i * ROW)
        var at = Int(slots.unsafe_offset(integer(other, SLOT))[])
        if at < end and begin < at + integer(other, NBYTES):
            return True
    return False


def problem_of(program: Args, slots: Slots) -> Int:
    """What is wrong with the addresses in the slots, or 0."""
    var arrays = words_at(program, ARRAYS)
    for i in range(integer(program, COUNT)):
        var row = arrays.unsafe_offset(i * ROW)
        if integer(row, NBYTES) == 0:
            continue
        var begin = Int(slots.unsafe_offset(integer(row, SLOT))[])
        if begin == 0:
            return code_of(i, {NULL})
        if begin & (integer(row, ALIGNMENT) - 1) != 0:
            return code_of(i, {MISALIGNED})
        if integer(row, IS_RESULT) != 0 and overlaps(arrays, slots, i):
            return code_of(i, {OVERLAPS})
    return 0


def finish(program: Args, address: Int) -> Int32:
    """Runs the program on the arrays whose addresses are in the slots."""
    var slots = slots_at(address)
    var problem = problem_of(program, slots)
    if problem == 0:
        look_for_fork()
        external_call["run_tape", NoneType](
            slots, words_at(program, TAPE), integer(program, LENGTH)
        )
        var copies = words_at(program, COPIES)
        for i in range(integer(program, COPY_COUNT)):
            var copy = copies.unsafe_offset(3 * i)
            unsafe_memcpy(
                dest=slots.unsafe_offset(integer(copy, 1))[],
                src=slots.unsafe_offset(integer(copy, 0))[],
                count=integer(copy, 2),
            )
    give_back(program, slots)
    return Int32(problem)


def has_type(row: Args, given: Args) -> Int:
    """What is wrong with the type of an array that is given, or -1."""
    var kind = given.unsafe_bitcast[Int32]()
    if Int(kind.unsafe_load[width=1](4)) != integer(row, DTYPE):
        return {WRONG_DTYPE}
    if Int(kind.unsafe_load[width=1](5)) != integer(row, RANK):
        return {WRONG_SHAPE}
    var shape = words_at(given, 1)
    for i in range(integer(row, RANK)):
        if integer(shape, i) != integer(words_at(row, SHAPE), i):
            return {WRONG_SHAPE}
    return -1


def run_arrays(program: Args, arguments: Args, many: Int, results: Args, more: Int) -> Int32:
    """Runs the program on arrays whose types are looked at."""
    var arrays = words_at(program, ARRAYS)
    var count = integer(program, COUNT)
    var taken = 0
    while taken < count and integer(arrays, taken * ROW + IS_RESULT) == 0:
        taken += 1
    if many != taken or more != count - taken:
        return {WRONG_COUNT}
    for i in range(count):
        var given = arguments.unsafe_offset(i * GIVEN) if i < taken else (
            results.unsafe_offset((i - taken) * GIVEN)
        )
        var problem = has_type(arrays.unsafe_offset(i * ROW), given)
        if problem >= 0:
            return Int32(code_of(i, problem))
    var address = take(program)
    if address == 0:
        return {NO_MEMORY}
    var slots = slots_at(address)
    for i in range(count):
        var given = arguments.unsafe_offset(i * GIVEN) if i < taken else (
            results.unsafe_offset((i - taken) * GIVEN)
        )
        slots.unsafe_offset(integer(arrays, i * ROW + SLOT))[] = (
            given.unsafe_bitcast[Bytes]()[]
        )
    return finish(program, address)
'''


# Mojo's standard library, which a user's own function may need, prints by MAX's runtime before it
# ends a process. That is not here: it ends without a word.
_PRINTING = """

@export("KGEN_CompilerRT_fprintf")
def print_nothing() abi("C") -> Int32:
    return 0
"""
_THREADS = f'''
comptime LOCK = 0
comptime HELPERS = 1
comptime PROCESS = 2
comptime CELL = 3  # the address of the crew's words, or 0
comptime OWN = {CREW_OWN}
comptime Help = def (Args) abi("C") thin -> Args


def help(words: Args) abi("C") -> Args:
    external_call["crew_help", NoneType](words)
    return words


@always_inline
def process() -> Int64:
    return Int64(external_call["getpid", Int32]().cast[DType.int64]())


def look_for_fork():
    """In a child after a fork there are no helpers."""
    var crew = external_call["{CREW}", Args]()
    if Atomic[Int64].load(crew.unsafe_offset(CELL)) != 0 and (
        crew.unsafe_offset(PROCESS)[] != process()
    ):
        Atomic[Int64].store(crew.unsafe_offset(CELL), Int64(0))


def threads_of(wanted: Int) -> Int:
    """Starts helpers until there are so many threads with a caller's; returns how many there are.
    """
    var crew = external_call["{CREW}", Args]()
    var words = crew.unsafe_offset(OWN)
    var free = Int64(0)
    while not Atomic[Int64].compare_exchange(crew.unsafe_offset(LOCK), free, Int64(1)):
        _ = external_call["sched_yield", Int32]()
        free = Int64(0)
    if crew.unsafe_offset(PROCESS)[] != process():
        Atomic[Int64].store(crew.unsafe_offset(CELL), Int64(0))
        for i in range({CREW_WORDS}):
            words.unsafe_offset(i)[] = 0
        external_call["crew_open", NoneType](words)
        crew.unsafe_offset(HELPERS)[] = 0
        crew.unsafe_offset(PROCESS)[] = process()
    var helpers = integer(crew, HELPERS)
    var function: Help = help
    var address = Pointer(to=function).unsafe_bitcast[Int]()[]
    while helpers + 1 < wanted:
        var thread = Int(0)
        if external_call["pthread_create", Int32](
            Pointer(to=thread).unsafe_bitcast[UInt8](), Int(0), address, words
        ) != 0:
            break
        _ = external_call["pthread_detach", Int32](thread)
        helpers += 1
    crew.unsafe_offset(HELPERS)[] = Int64(helpers)
    if helpers > 0:
        external_call["maxjax_crew_cell", Slots]()[] = (
            crew.unsafe_offset(CELL).unsafe_bitcast[UInt8]()
        )
        Atomic[Int64].store(crew.unsafe_offset(CELL), Int64(Int(words)))
    Atomic[Int64].store(crew.unsafe_offset(LOCK), Int64(0))
    return helpers + 1
'''
_NO_THREADS = """

@always_inline
def look_for_fork():
    pass


def threads_of(wanted: Int) -> Int:
    return 1
"""


def functions(name: str, arrays: int = 0) -> list[str]:
    """The names of all functions of a library for so many arrays."""
    others = [f"{name}_{suffix}" for suffix in ("arrays", "error", "release", "threads")]
    return others if arrays > MOST_PARAMETERS else [name, *others]


def text(name: str, slots: Sequence[int], sizes: Sequence[tuple[str, int, int]],
         texts: int, has_threads: bool) -> str:
    """The module with the functions of a library.

    Args:
      name: of the function.
      slots: where each array's address goes.
      sizes: names, least and greatest values of the sizes that are arguments.
      texts: how many texts of errors there are.
      has_threads: whether there is a crew.
    """
    parameters = [f"size_{n}: Int" for n in range(len(sizes))]
    choice = ["    var chosen = 0"]
    count = 1
    for n, (_, least, most) in enumerate(sizes):
        choice += [f"    if size_{n} < {least} or size_{n} > {most}:",
                   f"        return {WRONG_SIZES}",
                   f"    chosen = chosen * {most - least + 1} + size_{n} - {least}"]
        count *= most - least + 1
    choice.append(f'    var program = words_at(external_call["{PROGRAMS}", Args](), chosen)')
    if sizes:       # constraints may forbid what is within bounds
        choice += ["    if Int(program) == 0:", f"        return {WRONG_SIZES}"]
    lines = [_TEXT, _PRINTING, _THREADS if has_threads else _NO_THREADS, ""]
    if len(slots) <= MOST_PARAMETERS:
        given = [*parameters, *(f"p{n}: Bytes" for n in range(len(slots)))]
        lines += [f'@export("{name}")', f'def entry({", ".join(given)}) abi("C") -> Int32:',
                  *choice, "    var address = take(program)", "    if address == 0:",
                  f"        return {NO_MEMORY}", "    var slots = slots_at(address)",
                  *(f"    slots.unsafe_offset({slot})[] = p{n}" for n, slot in enumerate(slots)),
                  "    return finish(program, address)", "", ""]
    given = [*parameters, "arguments: Args", "many: Int", "results: Args", "more: Int"]
    lines += [f'@export("{name}_arrays")',
              f'def entry_arrays({", ".join(given)}) abi("C") -> Int32:', *choice,
              "    return run_arrays(program, arguments, many, results, more)", "", "",
              f'@export("{name}_error")', 'def entry_error(code: Int32) abi("C") -> Args:',
              f"    var known = Int(code) if code >= 0 and code < {texts} else {texts}",
              f'    return words_at(external_call["{TEXTS}", Args](), known)', "", "",
              f'@export("{name}_release")', 'def entry_release() abi("C"):',
              f"    for i in range({count}):",
              f'        var program = words_at(external_call["{PROGRAMS}", Args](), i)',
              "        if Int(program) != 0:", "            release(program)",
              "            return", "", "",
              f'@export("{name}_threads")', 'def entry_threads(wanted: Int32) abi("C") -> Int32:',
              "    return Int32(threads_of(Int(wanted)))", ""]
    return "\n".join(lines)
