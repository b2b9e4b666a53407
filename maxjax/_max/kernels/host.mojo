"""Calls of Python amid a program, and what stops the program.

The word before the first slot is 0; a function that fails sets it, and nothing more is called.
"""
from std.time import perf_counter_ns

from .calling import Args, Slots, integer
from .subnormal import TAKEN_FOR_0, floating_mode, set_floating_mode

comptime Step = def (Slots, Int) abi("C") thin -> Int


@always_inline
def is_stopped(slots: Slots) -> Bool:
    return integer(slots.unsafe_bitcast[Int64](), -1) != 0


def call_python(slots: Slots, function: Args):
    """Calls the function of Python whose address is at `function`, and stops the program unless it
    returns the number that it is given.

    An error may be raised before its first line or after its last, where nothing catches it: then
    what it returns is whatever was there, perhaps what an earlier call has left. So the number is
    another one each time.

    Python computes with subnormal numbers.
    """
    var number = Int(perf_counter_ns())
    var mode = floating_mode()
    set_floating_mode(mode & ~TAKEN_FOR_0)
    if function.unsafe_bitcast[Step]()[](slots, number) != number:
        slots.unsafe_bitcast[Int64]().unsafe_offset(-1)[] = 1
    set_floating_mode(mode)
