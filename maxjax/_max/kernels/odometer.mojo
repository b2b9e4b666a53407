"""An odometer over the outer dimensions of operands: where it begins, and how it carries.

Both take what `Walk` (loops.mojo) has. Where kernels compile with the small standard library, a
library is linked to these as compiled once (``mojo/standard_library.py``), and a file with their
declarations stands in their place: written out, they took an eighth of what a small kernel takes
to compile, and a line is mostly longer than what a call costs.
"""
from .calling import Args, integer

comptime Integers = Pointer[Int, MutAnyOrigin]
# One dimension never carries, nor does none.
comptime NEVER = 1 << 62


@no_inline
def stand(
    args: Args, position: Int, indices: Integers, offsets: Integers, operands: Int
) -> Int:
    """Goes to the `position`-th point from the first one; returns how many steps along the last
    dimension are left until it carries."""
    var rank = integer(args, 0)
    var rest = position
    for d in range(rank - 1, -1, -1):
        var size = integer(args, 1 + d)
        var i = rest
        if d > 0:
            rest = rest // size
            i -= rest * size
        indices.unsafe_offset(d)[] = i
        for k in range(operands):
            offsets.unsafe_offset(k)[] += i * integer(args, 1 + rank * (k + 1) + d)
    return integer(args, rank) - indices.unsafe_offset(rank - 1)[] if rank > 1 else NEVER


@no_inline
def carry(args: Args, indices: Integers, offsets: Integers, operands: Int) -> Int:
    """Goes from the last point along the last of several dimensions to the next point; returns as
    `stand`."""
    var rank = integer(args, 0)
    indices.unsafe_offset(rank - 1)[] = integer(args, rank) - 1
    for d in range(rank - 1, -1, -1):
        var size = integer(args, 1 + d)
        var index = indices.unsafe_offset(d)
        index[] += 1
        var goes_back = index[] == size and d > 0
        var steps = 1 - size if goes_back else 1
        for k in range(operands):
            offsets.unsafe_offset(k)[] += steps * integer(args, 1 + rank * (k + 1) + d)
        if not goes_back:
            break
        index[] = 0
    return integer(args, rank)
