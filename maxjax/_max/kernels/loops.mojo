"""The loops that generated kernels stand in: odometers over outer dimensions, sweeps, threads.

A space is a list of dimensions, row-major, of which the last, the inner one, is swept by SIMD
vectors. The sizes, and each operand's strides (in elements), are integers of the call.
"""
from max.algorithm import parallelize
from std.collections import Array
from std.sys.info import simd_width_of

from .calling import Args, Slots, address, integer, operand

comptime MOST_DIMENSIONS = 16


struct Walk[operands: Int]:
    """The offsets of operands while an odometer goes through outer dimensions.

    `args` holds `rank`, the sizes of its dimensions, then the strides of each operand in turn.
    """

    var offsets: Array[Int, Self.operands]
    var index: Array[Int, MOST_DIMENSIONS]
    var rank: Int

    @always_inline
    def __init__(out self, args: Args, position: Int):
        """Stands at the `position`-th point."""
        self.rank = integer(args, 0)
        self.offsets = Array[Int, Self.operands](fill=0)
        self.index = Array[Int, MOST_DIMENSIONS](fill=0)
        var rest = position
        for d in range(self.rank - 1, -1, -1):
            var size = integer(args, 1 + d)
            var i = rest % size if d > 0 else rest
            rest //= size
            self.index[d] = i
            comptime for k in range(Self.operands):
                self.offsets[k] += i * Self.stride(args, k, d)

    @always_inline
    @staticmethod
    def stride(args: Args, k: Int, d: Int) -> Int:
        return integer(args, 1 + integer(args, 0) * (k + 1) + d)

    @always_inline
    def advance(mut self, args: Args):
        """Goes to the next point."""
        var d = self.rank - 1
        while d >= 0:
            self.index[d] += 1
            comptime for k in range(Self.operands):
                self.offsets[k] += Self.stride(args, k, d)
            var size = integer(args, 1 + d)
            if self.index[d] < size or d == 0:
                return
            self.index[d] = 0
            comptime for k in range(Self.operands):
                self.offsets[k] -= size * Self.stride(args, k, d)
            d -= 1


@always_inline
def sweep[
    width: Int, Body: def[w: Int](Int) -> None
](body: Body, begin: Int, end: Int):
    var i = begin
    while i + width <= end:
        body[width](i)
        i += width
    while i < end:
        body[1](i)
        i += 1
