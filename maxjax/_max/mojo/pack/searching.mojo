"""Where values belong in a sorted line.

`searchsorted_<dtype>`: x, y, out (int32) | n, right, count, threads; x (n) has no NaN, n > 0
"""
from std.bit import bit_width
from std.sys.info import simd_width_of
from std.utils.numerics import isnan

from kernels.calling import Args, Slots, integer, operand
from kernels.crew import Tasks, spread
from kernels.reduction import Held, chunk_begin, held, task_count

comptime I32 = DType.int32


@fieldwise_init
struct Searches[dtype: DType, right: Bool](Tasks):
    """How many elements of x stand before each of y, bit by bit, the highest first."""

    var x: Held[Self.dtype]
    var y: Held[Self.dtype]
    var result: Held[I32]
    var n: Int
    var count: Int
    var tasks: Int

    @always_inline
    def step[width: Int](self, i: Int):
        comptime V = SIMD[I32, width]
        var y = self.y.unsafe_load[width=width](i)
        var n = V(Int32(self.n))
        var found = V(0)
        var bit = 1 << (Int(bit_width(self.n)) - 1)
        while bit:
            var next = found + Int32(bit)
            var inside = next.le(n)
            var place = inside.select(next - 1, V(0))
            # Their loads do not wait for one another.
            var value = SIMD[Self.dtype, width]()
            comptime for lane in range(width):
                value[lane] = self.x.unsafe_load[width=1](Int(place[lane]))
            var before = value.le(y) if Self.right else value.lt(y)
            found = (inside & before).select(next, found)
            bit >>= 1
        comptime if Self.dtype.is_floating_point():  # NaN comes last
            found = isnan(y).select(n, found)
        self.result.unsafe_store(i, found)

    def run(self, task: Int):
        comptime width = 2 * simd_width_of[I32]()
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            self.step[width](i)
            i += width
        while i < end:
            self.step[1](i)
            i += 1


@always_inline
def search[dtype: DType, right: Bool](slots: Slots, args: Args):
    var count = integer(args, 8)
    var tasks = task_count(count, 100 * count, integer(args, 9))
    spread(
        Searches[dtype, right](
            held(operand[dtype](slots, args, 0)),
            held(operand[dtype](slots, args, 1)),
            held(operand[I32](slots, args, 2)),
            integer(args, 6),
            count,
            tasks,
        ),
        tasks,
    )


@always_inline
def search[dtype: DType](slots: Slots, args: Args):
    if integer(args, 7):
        search[dtype, True](slots, args)
    else:
        search[dtype, False](slots, args)
