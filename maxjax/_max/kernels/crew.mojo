"""Threads of our own: the tasks of one call, shared by its caller and the helpers that are free.

A helper that has just worked looks for more for some tens of microseconds before it sleeps: the
calls of a program follow one another sooner than a sleeping thread wakes. The caller takes tasks
like a helper, and waits only for those that others have begun: a helper that finds no free
processor costs nothing. One that loses its processor amid a task costs as long as the other
process has it, so for a while after that callers do without helpers.

The crew's memory is the process's (`maxjax/_max/mojo/crew.py`): int64 words, those that change on
cache lines of their own.

A child that is forked amid a call runs kernels too, so they may take no lock that the child cannot
renew: not those of MAX's runtime, around its globals and its memory. A library is told where the
crew is and keeps that itself; a graph, which runs in no such child, asks the runtime.
"""
from std.atomic import Atomic
from std.ffi import _get_global_or_null, _get_kgen_string, external_call
from std.sys import is_defined, llvm_intrinsic
from std.sys.info import CompilationTarget
from std.time import perf_counter_ns

from .abi import CREW_NAME, CREW_WORDS

comptime State = Pointer[UInt8, ImmutAnyOrigin]
comptime Call = def (State, Int) thin -> None
comptime Words = Pointer[Int64, MutAnyOrigin]

# Where the crew's words are. The ticket is the number of the call, and the next of its tasks.
comptime TICKET = 0
comptime DONE = 16  # tasks that are done
comptime HELD = 32  # whether a caller has the crew
comptime ASLEEP = 48  # helpers
comptime CALL = 64  # the function, its state, how many tasks
comptime PAUSE = 72  # until when callers do without helpers, and for how long
comptime MUTEX = 80  # what helpers sleep on
comptime CONDITION = CREW_WORDS - 16  # the last ones, more than any system's takes

comptime TASK_BITS = 20
comptime CLOSED = (1 << TASK_BITS) - 1  # in place of a task: the call is not ready
comptime LOOKS = 2000  # for work, before a helper sleeps: about 50 us

# In nanoseconds. Shorter waits have many reasons. A pause is as long as some waits, so that a
# processor that is taken for a moment now and then costs little; one after a pause is twice as
# long, for one that is taken for good.
comptime SHORT_WAIT = 200_000
comptime PAUSE_FOR_WAIT = 2
comptime LONGEST_PAUSE = 256_000_000


@always_inline
def load(words: Words, i: Int) -> Int:
    return Int(Atomic[Int64].load(words.unsafe_offset(i)))


@always_inline
def store(words: Words, i: Int, value: Int):
    Atomic[Int64].store(words.unsafe_offset(i), Int64(value))


@always_inline
def exchange(words: Words, i: Int, expected: Int, value: Int) -> Bool:
    """Stores a value if another is there; whether it was."""
    var seen = Int64(expected)
    return Atomic[Int64].compare_exchange(words.unsafe_offset(i), seen, Int64(value))


@always_inline
def pause():
    comptime if CompilationTarget.is_x86():
        llvm_intrinsic["llvm.x86.sse2.pause", NoneType]()


def work(words: Words) -> Bool:
    """Does one task, if there is one."""
    var ticket = load(words, TICKET)
    var task = ticket & CLOSED
    # All this belongs to the ticket if the ticket is still the same when a task is taken.
    if task == CLOSED or task >= load(words, CALL + 2):
        return False
    var call = load(words, CALL)
    var state = load(words, CALL + 1)
    if exchange(words, TICKET, ticket, ticket + 1):
        Pointer(to=call).unsafe_bitcast[Call]()[](
            Pointer(to=state).unsafe_bitcast[State]()[], task
        )
        _ = Atomic[Int64].fetch_add(words.unsafe_offset(DONE), Int64(1))
    return True


def is_open(words: Words) -> Bool:
    var task = load(words, TICKET) & CLOSED
    return task != CLOSED and task < load(words, CALL + 2)


def help_forever(words: Words):
    """The life of a helper."""
    var mutex = words.unsafe_offset(MUTEX)
    var condition = words.unsafe_offset(CONDITION)
    while True:
        var looks = 0
        while looks < LOOKS:
            if work(words):
                looks = 0
            else:
                pause()
                looks += 1
        _ = external_call["pthread_mutex_lock", Int32](mutex)
        _ = Atomic[Int64].fetch_add(words.unsafe_offset(ASLEEP), Int64(1))
        while not is_open(words):
            _ = external_call["pthread_cond_wait", Int32](condition, mutex)
        _ = Atomic[Int64].fetch_add(words.unsafe_offset(ASLEEP), Int64(-1))
        _ = external_call["pthread_mutex_unlock", Int32](mutex)


def prepare(words: Words):
    """Makes memory that is all zeros a crew."""
    _ = external_call["pthread_mutex_init", Int32](words.unsafe_offset(MUTEX), 0)
    _ = external_call["pthread_cond_init", Int32](words.unsafe_offset(CONDITION), 0)
    store(words, TICKET, CLOSED)


@no_inline  # every copy would have a word of its own
def crew_cell() -> Words:
    """A library's own word: the address of the cell that holds the address of the crew."""
    return Words(
        _mlir_value=__mlir_op.`pop.global_alloc`[
            name=_get_kgen_string["maxjax_crew_cell_word"](),
            count=Int(1).__mlir_index__(),
            _type=Words._mlir_type,
            alignment=Int(8).__mlir_index__(),
        ]()
    )


@always_inline
def find_crew() -> Int:
    """The address of the crew's words, or 0."""
    comptime if is_defined["MAXJAX_LINKED"]():
        # The word is in another object of the library, which has one for all of them.
        var cell = Int(external_call["maxjax_crew_cell", Words]()[])
        return Pointer(to=cell).unsafe_bitcast[Pointer[Int, MutAnyOrigin]]()[][] if cell else 0
    elif is_defined["MAXJAX_LIBRARY"]():
        var cell = Int(crew_cell()[])
        return Pointer(to=cell).unsafe_bitcast[Pointer[Int, MutAnyOrigin]]()[][] if cell else 0
    else:
        var found = _get_global_or_null(CREW_NAME)
        return found.value().unsafe_bitcast[Int]()[] if found else 0


def pause_after(words: Words, worked: Int, waited: Int):
    """Does without helpers for a while if the caller waited longer than it worked itself."""
    if waited <= max(worked, SHORT_WAIT):
        return
    var now = Int(perf_counter_ns())
    var length = load(words, PAUSE + 1)
    var again = now - load(words, PAUSE) < length
    length = min(2 * length if again else PAUSE_FOR_WAIT * waited, LONGEST_PAUSE)
    store(words, PAUSE + 1, length)
    store(words, PAUSE, now + length)


@no_inline
def launch(call: Call, state: State, tasks: Int):
    """Does `call(state, task)` for all tasks, on as many threads as are free."""
    var crew = find_crew()
    if crew == 0 or tasks >= CLOSED:
        for task in range(tasks):
            call(state, task)
        return
    var words = Pointer(to=crew).unsafe_bitcast[Words]()[]
    var begin = Int(perf_counter_ns())
    # Another thread's call may have the crew, or one that this is a part of.
    if begin < load(words, PAUSE) or not exchange(words, HELD, 0, 1):
        for task in range(tasks):
            call(state, task)
        return
    var number = (load(words, TICKET) >> TASK_BITS) + 1
    store(words, TICKET, (number << TASK_BITS) | CLOSED)
    var function = call
    var place = state
    store(words, CALL, Pointer(to=function).unsafe_bitcast[Int]()[])
    store(words, CALL + 1, Pointer(to=place).unsafe_bitcast[Int]()[])
    store(words, CALL + 2, tasks)
    store(words, DONE, 0)
    # The first task is the caller's: in the next call of the kind, what it has written is in the
    # cache of the same core.
    store(words, TICKET, (number << TASK_BITS) | 1)
    if load(words, ASLEEP) > 0:
        _ = external_call["pthread_mutex_lock", Int32](words.unsafe_offset(MUTEX))
        _ = external_call["pthread_cond_broadcast", Int32](words.unsafe_offset(CONDITION))
        _ = external_call["pthread_mutex_unlock", Int32](words.unsafe_offset(MUTEX))
    call(state, 0)
    _ = Atomic[Int64].fetch_add(words.unsafe_offset(DONE), Int64(1))
    while is_open(words):
        _ = work(words)
    if load(words, DONE) < tasks:
        var since = Int(perf_counter_ns())
        var looks = 0
        while load(words, DONE) < tasks:
            pause()
            looks += 1
            if looks > LOOKS:  # its helper is without a processor
                _ = external_call["sched_yield", Int32]()
        if looks > LOOKS:
            pause_after(words, since - begin, Int(perf_counter_ns()) - since)
    store(words, HELD, 0)


trait Tasks:
    """Work in parts that may run at the same time."""

    def run(self, task: Int):
        ...


def run_task[Work: Tasks](state: State, task: Int):
    state.unsafe_bitcast[Work]()[].run(task)


@always_inline
def spread[Work: Tasks](work: Work, tasks: Int):
    """Does all tasks, on as many threads as are free."""
    if tasks == 1:
        work.run(0)
    else:
        launch(
            run_task[Work], Pointer(to=work).unsafe_bitcast[UInt8]().as_unsafe_any_origin(), tasks
        )
