"""The driver: runs a tape, a sequence of calls of native kernels, in one foreign call.

A tape is a flat array of int64: for each call the address of the function, how many integers
follow, and these integers. The functions of this file that control other calls are kernels too:
they find the tapes they run by address, among their integers. Where these are is in `abi.py`, which
writes such constants (`SCAN_TIMES`) behind this text.
"""
from std.memory import unsafe_memcpy

from kernels.abi import TAPE_INTEGERS, TAPE_WORDS
from kernels.calling import Args, Bytes, Slots, address, integer
from kernels.crew import Tasks, Words, help_forever, prepare, spread
from kernels.host import call_python, is_stopped
from kernels.subnormal import TAKEN_FOR_0, floating_mode, set_floating_mode

comptime Kernel = def (Slots, Args) abi("C") thin -> None
# One thread alone does not use all that memory gives: what is longer is copied in such parts.
comptime PART = 512 * 1024


@always_inline
def run(slots: Slots, tape: Args, length: Int):
    var i = 0
    while i < length and not is_stopped(slots):
        var call = tape.unsafe_offset(i)
        call.unsafe_bitcast[Kernel]()[](slots, call.unsafe_offset(TAPE_WORDS))
        i += TAPE_WORDS + integer(call, TAPE_INTEGERS)


@always_inline
def nested(args: Args, i: Int) -> Args:
    """The tape whose address is integer `i`."""
    return args.unsafe_offset(i).unsafe_bitcast[Args]()[]


@always_inline
def exchange(slots: Slots, args: Args, count: Int):
    """Exchanges `count` pairs of slots."""
    for k in range(count):
        var a = slots.unsafe_offset(integer(args, 2 * k))
        var b = slots.unsafe_offset(integer(args, 2 * k + 1))
        var held = a[]
        a[] = b[]
        b[] = held


@always_inline
def run_whole(slots: Slots, tape: Args, length: Int):
    """Runs the tape of a program, in which subnormal numbers are taken for 0."""
    var mode = floating_mode()
    set_floating_mode(mode | TAKEN_FOR_0)
    run(slots, tape, length)
    set_floating_mode(mode)


@export("run_tape")
def run_tape(slots: Slots, tape: Args, length: Int) abi("C"):
    run_whole(slots, tape, length)


@export("run_program")
def run_program(objects: Args, count: Int, slots: Slots, tape: Args, length: Int) abi("C") -> Int:
    """Runs a tape with the data of `count` NumPy arrays in its first slots, and returns 0.

    `objects` are the addresses of the arrays. The first that is not contiguous in C order or not
    aligned ends it before anything has run; its number, counted from 1, is returned.
    """
    for i in range(count):
        var array = objects.unsafe_offset(i).unsafe_bitcast[Bytes]()[]
        var flags = array.unsafe_offset(ARRAY_FLAGS).unsafe_bitcast[Int32]()[]
        if (flags & PLAIN_FLAGS) != PLAIN_FLAGS:
            return i + 1
        slots.unsafe_offset(i)[] = array.unsafe_offset(ARRAY_DATA).unsafe_bitcast[Bytes]()[]
    run_whole(slots, tape, length)
    return 0


@export("tape_scan")
def tape_scan(slots: Slots, args: Args) abi("C"):
    """Runs a body a number of times over slots that move.

    Integers: how many, reverse, counter slot or -1, number of moves, moves (slot, base slot, byte
    offset, byte stride), number of exchanges, exchanges (slot, slot), body, its length.
    """
    var times = integer(args, SCAN_TIMES)
    var reverse = integer(args, SCAN_REVERSE)
    var counter = integer(args, SCAN_COUNTER)
    var moves = args.unsafe_offset(SCAN_WORDS)
    var n_moves = integer(args, SCAN_MOVES)
    var exchanges = moves.unsafe_offset(MOVE_WORDS * n_moves + 1)
    var n_exchanges = integer(exchanges, -1)
    var rest = exchanges.unsafe_offset(2 * n_exchanges)
    var body = nested(rest, 0)
    var length = integer(rest, 1)
    for step in range(times):
        if is_stopped(slots):
            return
        var i = times - 1 - step if reverse != 0 else step
        for k in range(n_moves):
            var move = moves.unsafe_offset(MOVE_WORDS * k)
            var base = slots.unsafe_offset(integer(move, MOVE_BASE))[]
            slots.unsafe_offset(integer(move, MOVE_SLOT))[] = base.unsafe_offset(
                integer(move, MOVE_OFFSET) + i * integer(move, MOVE_STRIDE)
            )
        if counter >= 0:
            slots.unsafe_offset(counter)[].unsafe_bitcast[Int64]()[] = Int64(i)
        run(slots, body, length)
        exchange(slots, exchanges, n_exchanges)


@export("tape_while")
def tape_while(slots: Slots, args: Args) abi("C"):
    """Runs a condition and, as long as it leaves a byte that is not zero, a body.

    Integers: condition, its length, body, its length, where the byte is (slot, byte offset),
    number of exchanges after each body, exchanges (slot, slot).
    """
    var condition = nested(args, WHILE_CONDITION)
    var condition_length = integer(args, WHILE_CONDITION + 1)
    var body = nested(args, WHILE_BODY)
    var body_length = integer(args, WHILE_BODY + 1)
    var place = args.unsafe_offset(WHILE_SLOT)
    while True:
        run(slots, condition, condition_length)
        if address(slots, place, 0)[] == 0 or is_stopped(slots):
            return
        run(slots, body, body_length)
        exchange(slots, args.unsafe_offset(WHILE_WORDS), integer(args, WHILE_EXCHANGES))


@export("tape_switch")
def tape_switch(slots: Slots, args: Args) abi("C"):
    """Runs one of several tapes.

    Integers: where the int32 index is (slot, byte offset), number of tapes, tapes (tape, length).
    An index out of bounds means the nearest.
    """
    var place = args.unsafe_offset(SWITCH_SLOT)
    var index = Int(address(slots, place, 0).unsafe_bitcast[Int32]()[])
    var number = max(0, min(index, integer(args, SWITCH_TAPES) - 1))
    var chosen = args.unsafe_offset(SWITCH_WORDS + 2 * number)
    run(slots, nested(chosen, 0), integer(chosen, 1))


@export("tape_call_python")
def tape_call_python(slots: Slots, args: Args) abi("C"):
    """Calls a function of Python. Integers: its address."""
    call_python(slots, args)


@fieldwise_init
struct Parts(Tasks):
    """A copy of many bytes, in parts."""

    var source: Pointer[UInt8, MutUntrackedOrigin]
    var target: Pointer[UInt8, MutUntrackedOrigin]
    var count: Int

    def run(self, task: Int):
        var first = task * PART
        unsafe_memcpy(
            dest=self.target.unsafe_offset(first), src=self.source.unsafe_offset(first),
            count=min(PART, self.count - first),
        )


@export("tape_copy_bytes")
def tape_copy_bytes(slots: Slots, args: Args) abi("C"):
    """Copies bytes, unless they are there. Operands: from, to. Integers: how many."""
    var source = address(slots, args, 0)
    var target = address(slots, args, 1)
    var count = integer(args, 4)
    if source == target:
        return
    if count < 2 * PART:
        unsafe_memcpy(dest=target, src=source, count=count)
        return
    spread(
        Parts(
            source.unsafe_origin_cast[MutUntrackedOrigin](),
            target.unsafe_origin_cast[MutUntrackedOrigin](),
            count,
        ),
        (count + PART - 1) // PART,
    )


@export("crew_open")
def crew_open(words: Words) abi("C"):
    """Makes a crew of zeros."""
    prepare(words)


@export("crew_help")
def crew_help(words: Words) abi("C"):
    """The life of one more thread of the crew: it does not return."""
    set_floating_mode(floating_mode() | TAKEN_FOR_0)
    help_forever(words)
