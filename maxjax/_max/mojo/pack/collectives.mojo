"""Collectives between processes by MPI, whose functions are called by their addresses.

What a call does is in a table of int64 words, which `maxjax/_distributed/native.py` fills and
describes. As in `maxjax/_distributed/group.py` it begins with a message from each process to each,
which says what it is about to do and holds a small value. Python is called where it is not to be
done here, where processes differ, and now and then while it waits.

The words, kinds (one that neither adds nor permutes gathers), dtypes, what Python is told and where
parts of a message are: `abi.py` writes these constants behind this text.
"""
from std.ffi import external_call
from std.memory import unsafe_memcpy
from std.time import perf_counter_ns

from kernels.calling import Args, Bytes, Slots, address, integer
from kernels.host import call_python, is_stopped

comptime Send = def (Bytes, Int, Int, Int, Int, Int, Bytes) abi("C") thin -> Int32
comptime Reduce = def (Bytes, Bytes, Int, Int, Int, Int, Bytes) abi("C") thin -> Int32
comptime Gather = def (Bytes, Int, Int, Bytes, Int, Int, Int, Bytes) abi("C") thin -> Int32
comptime Test = def (Int, Bytes, Bytes, Bytes) abi("C") thin -> Int32

comptime SPINS = 100
comptime YIELDS = 5000
comptime PERMUTATION_TAG = 1
comptime LOOK = 50_000_000  # nanoseconds until Python may look


@always_inline
def pointer(words: Args, i: Int) -> Bytes:
    return words.unsafe_offset(i).unsafe_bitcast[Bytes]()[]


def tell(slots: Slots, words: Args, event: Int):
    words.unsafe_offset(EVENT)[] = Int64(event)
    call_python(slots, words.unsafe_offset(ATTEND))


def has_ended(slots: Slots, words: Args, count: Int) -> Bool:
    """Waits for the first requests; whether they have ended."""
    var test = words.unsafe_offset(TESTALL).unsafe_bitcast[Test]()[]
    var flag = pointer(words, FLAG)
    var spins = 0
    var begin = perf_counter_ns()
    var looked = begin
    while True:
        if test(count, pointer(words, REQUESTS), flag, pointer(words, STATUSES)) != 0:
            tell(slots, words, FAILS)
            return False
        if flag.unsafe_bitcast[Int32]()[] != 0:
            return True
        spins += 1
        if spins < SPINS:
            continue
        if spins < YIELDS:
            _ = external_call["sched_yield", Int32]()
        else:
            _ = external_call["usleep", Int32](UInt32(100))
        var now = perf_counter_ns()
        if now - looked > LOOK:
            looked = now
            words.unsafe_offset(NANOSECONDS)[] = Int64(now - begin)
            tell(slots, words, WAITS)
            if is_stopped(slots):
                return False


def add_up[dtype: DType](words: Args, result: Bytes, begin: Int):
    var total = result.unsafe_bitcast[Scalar[dtype]]()
    var messages = pointer(words, MESSAGES).unsafe_offset(VALUE_AT + begin)
    for i in range(integer(words, COUNT)):
        var value = messages.unsafe_bitcast[Scalar[dtype]]().unsafe_offset(i)[]
        for process in range(1, integer(words, SIZE)):
            var there = messages.unsafe_offset(process * MESSAGE_BYTES)
            value += there.unsafe_bitcast[Scalar[dtype]]().unsafe_offset(i)[]
        total.unsafe_offset(i)[] = value


def combine(words: Args, result: Bytes):
    """The result of small values, which the messages hold."""
    var kind = integer(words, KIND)
    var block = integer(words, BLOCK_BYTES)
    # Where in a value this process's part begins.
    var begin = 0
    if kind == KIND_SCATTERED_SUM or kind == KIND_TRANSPOSE:
        begin = integer(words, RANK) * block
    if kind != KIND_SUM and kind != KIND_SCATTERED_SUM:
        for process in range(integer(words, SIZE)):
            var there = pointer(words, MESSAGES).unsafe_offset(process * MESSAGE_BYTES)
            unsafe_memcpy(
                dest=result.unsafe_offset(process * block),
                src=there.unsafe_offset(VALUE_AT + begin),
                count=block,
            )
        return
    var dtype = integer(words, DTYPE)
    if dtype == OF_FLOAT32:
        add_up[DType.float32](words, result, begin)
    elif dtype == OF_FLOAT64:
        add_up[DType.float64](words, result, begin)
    elif dtype == OF_INT32:
        add_up[DType.int32](words, result, begin)
    elif dtype == OF_INT64:
        add_up[DType.int64](words, result, begin)
    elif dtype == OF_UINT32:
        add_up[DType.uint32](words, result, begin)
    else:
        add_up[DType.uint64](words, result, begin)


def messages_are_equal(slots: Slots, words: Args, value: Bytes) -> Bool:
    """Exchanges the messages; whether all processes are at the same."""
    var own = pointer(words, MESSAGE)
    var messages = pointer(words, MESSAGES)
    var calls = pointer(words, CALLS).unsafe_bitcast[Int64]()
    calls[] += 1
    own.unsafe_offset(CALLS_AT).unsafe_bitcast[Int64]()[] = calls[]
    if integer(words, IS_SMALL) != 0:
        unsafe_memcpy(dest=own.unsafe_offset(VALUE_AT), src=value, count=integer(words, NBYTES))
    var rank = integer(words, RANK)
    unsafe_memcpy(dest=messages.unsafe_offset(rank * MESSAGE_BYTES), src=own, count=MESSAGE_BYTES)
    var send = words.unsafe_offset(ISEND).unsafe_bitcast[Send]()[]
    var receive = words.unsafe_offset(IRECV).unsafe_bitcast[Send]()[]
    var comm = integer(words, COMM)
    var kind = integer(words, BYTE_TYPE)
    var size = integer(words, SIZE)
    var each = integer(words, REQUEST_BYTES)
    var request = pointer(words, REQUESTS)
    var failed = Int32(0)
    for peer in range(size):
        if peer != rank:
            # No message has the number 0: those that do not come are known by it.
            var number = messages.unsafe_offset(peer * MESSAGE_BYTES + CALLS_AT)
            number.unsafe_bitcast[Int64]()[] = 0
            failed |= receive(
                messages.unsafe_offset(peer * MESSAGE_BYTES), MESSAGE_BYTES, kind, peer, 0, comm,
                request,
            )
            request = request.unsafe_offset(each)
    for peer in range(size):
        if peer != rank:
            failed |= send(own, MESSAGE_BYTES, kind, peer, 0, comm, request)
            request = request.unsafe_offset(each)
    if failed != 0:
        tell(slots, words, FAILS)
        return False
    if not has_ended(slots, words, 2 * (size - 1)):
        return False
    for peer in range(size):
        for i in range(COMPARED_BYTES):
            if messages.unsafe_offset(peer * MESSAGE_BYTES + i)[] != own.unsafe_offset(i)[]:
                tell(slots, words, DIFFERS)
                return False
    return True


def starts_permutation(slots: Slots, words: Args, value: Bytes, result: Bytes) -> Int:
    """Begins to receive and to send; how many requests there are, none where that has failed."""
    var nbytes = integer(words, NBYTES)
    var kind = integer(words, BYTE_TYPE)
    var comm = integer(words, COMM)
    var count = 0
    var failed = Int32(0)
    if integer(words, SOURCE) >= 0:
        failed |= words.unsafe_offset(IRECV).unsafe_bitcast[Send]()[](
            result, nbytes, kind, integer(words, SOURCE), PERMUTATION_TAG, comm,
            pointer(words, REQUESTS),
        )
        count += 1
    else:
        for i in range(nbytes):
            result.unsafe_offset(i)[] = 0
    if integer(words, TARGET) >= 0:
        var request = pointer(words, REQUESTS).unsafe_offset(count * integer(words, REQUEST_BYTES))
        failed |= words.unsafe_offset(ISEND).unsafe_bitcast[Send]()[](
            value, nbytes, kind, integer(words, TARGET), PERMUTATION_TAG, comm, request,
        )
        count += 1
    if failed != 0:
        tell(slots, words, FAILS)
        return 0
    return count


def starts(slots: Slots, words: Args, value: Bytes, result: Bytes) -> Int:
    """Begins what is not a permutation; how many requests there are."""
    var kind = integer(words, KIND)
    var comm = integer(words, COMM)
    var failed: Int32
    if kind == KIND_SUM or kind == KIND_SCATTERED_SUM:
        failed = words.unsafe_offset(START).unsafe_bitcast[Reduce]()[](
            value, result, integer(words, COUNT), integer(words, ELEMENT_TYPE),
            integer(words, SUM), comm, pointer(words, REQUESTS),
        )
    else:
        var block = integer(words, BLOCK_BYTES)
        var byte = integer(words, BYTE_TYPE)
        failed = words.unsafe_offset(START).unsafe_bitcast[Gather]()[](
            value, block, byte, result, block, byte, comm, pointer(words, REQUESTS),
        )
    if failed != 0:
        tell(slots, words, FAILS)
        return 0
    return 1


@export("mpi_collective")
def mpi_collective(slots: Slots, args: Args) abi("C"):
    """A collective over processes. Operands: value, token, result, token. Integers: the address of
    the words.
    """
    var words = args.unsafe_offset(8).unsafe_bitcast[Args]()[]
    if integer(words, READY) == 0 or pointer(words, BLOCKED).unsafe_bitcast[Int64]()[] != 0:
        call_python(slots, words.unsafe_offset(IN_PYTHON))
        return
    var value = address(slots, args, 0)
    var result = address(slots, args, 2)
    if not messages_are_equal(slots, words, value):
        return
    if integer(words, IS_SMALL) != 0:
        combine(words, result)
        return
    var count: Int
    if integer(words, KIND) == KIND_PERMUTATION:
        count = starts_permutation(slots, words, value, result)
    else:
        count = starts(slots, words, value, result)
    if count > 0:
        _ = has_ended(slots, words, count)
