"""The launch of a generated kernel: its items, shared by as many threads as it is to have.

Where kernels compile with the small standard library, a library is linked to this as compiled once
(``mojo/standard_library.py``), and a file with the declaration of `launch` stands in its place.
"""
from .abi import AT_ITEMS, AT_THREADS
from .calling import Args, Memory, Slots, integer
from .crew import Tasks, spread

comptime Part = def (Slots, Args, Int, Int) thin -> None
comptime TASKS_A_THREAD = 3


@fieldwise_init
struct Items(Tasks):
    """The items of a call, in tasks."""

    var part: Part
    var slots: Memory
    var args: Memory
    var tasks: Int
    var items: Int

    def run(self, task: Int):
        self.part(
            self.slots.unsafe_bitcast[Pointer[UInt8, MutAnyOrigin]]().as_unsafe_any_origin(),
            self.args.unsafe_bitcast[Int64]().as_unsafe_any_origin(),
            task * self.items // self.tasks,
            (task + 1) * self.items // self.tasks,
        )


@no_inline
def launch(part: Part, slots: Slots, args: Args, at: Int):
    """Does all items of a call, by several threads if there are to be: integer `at` of the call is
    how many threads, and how many items follows. One such function serves all kernels."""
    var threads = integer(args, at)
    var items = integer(args, at + AT_ITEMS - AT_THREADS)
    if threads == 1:
        part(slots, args, 0, items)
        return
    # More tasks than threads: one that comes late, or is slow, does fewer.
    var tasks = min(items, TASKS_A_THREAD * threads)
    spread(
        Items(
            part,
            slots.unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin](),
            args.unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin](),
            tasks,
            items,
        ),
        tasks,
    )
