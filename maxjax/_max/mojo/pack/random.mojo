"""Random bits, and samplers by rejection.

`threefry2x32`: two key words, two counters, two results (uint32) | key count (1 or count), count,
threads
`gamma_cubes_float32`: keys (uint64), alpha, cubes, uniform numbers | count, threads
"""
from kernels.arrangement import U32, threefry, threefry_arrays
from kernels.calling import Args, Slots, integer, operand
from kernels.crew import Tasks, spread
from kernels.elementary import F64, square_root
from kernels.reduction import Array, Held, chunk_begin, held, task_count
from kernels.special_single import F32, erf_inv, log_as_xla


@export
def threefry2x32(slots: Slots, args: Args) abi("C"):
    threefry_arrays(
        operand[U32](slots, args, 0),
        operand[U32](slots, args, 1),
        operand[U32](slots, args, 2),
        operand[U32](slots, args, 3),
        operand[U32](slots, args, 4),
        operand[U32](slots, args, 5),
        integer(args, 12),
        integer(args, 13),
        integer(args, 14),
    )


@fieldwise_init
struct Key(ImplicitlyCopyable, Movable):
    """A threefry key, and what is drawn from it as `maxjax/_primitives/random_bits.py` does."""

    var first: Scalar[U32]
    var second: Scalar[U32]

    @always_inline
    def at(self, counter: Int) -> Key:
        """The block of a counter: new words, which may be those of a key."""
        var x = Scalar[U32](counter >> 32)
        var y = Scalar[U32](counter & 0xFFFFFFFF)
        threefry[width=1](self.first, self.second, x, y)
        return Key(x, y)

    @always_inline
    def uniform(self) -> Scalar[F32]:
        """In [0, 1)."""
        var words = self.at(0)
        var bits = (words.first ^ words.second) >> 9
        return Scalar[F32](from_bits=bits | 0x3F800000) - 1

    @always_inline
    def normal(self) -> Scalar[F32]:
        var low = Scalar[F32](from_bits=Scalar[U32](0xBF7FFFFF))  # after -1
        var value = self.uniform() * (1 - low) + low
        return Scalar[F32](1.4142135623730951) * erf_inv(max(low, value))


@always_inline
def gamma_cube(key: Key, alpha: Scalar[F32]) -> Scalar[F32]:
    """The cube that Marsaglia and Tsang's loop accepts; `random_rejection.py` is the NumPy rule."""
    var shape = alpha + 1 if alpha < 1 else alpha
    var d = shape - Scalar[F32](1.0 / 3.0)
    var c = Scalar[F32](1.0 / 3.0) / square_root(d)
    var state = key
    while True:
        var draws = state.at(1)
        var x = Scalar[F32](0)
        var v = Scalar[F32](-1)
        while v <= 0:
            x = draws.at(1).normal()
            v = (x.cast[F64]() * c.cast[F64]() + 1).cast[F32]()
            draws = draws.at(0)
        var u = state.at(2).uniform()
        state = state.at(0)
        var squared = x * x
        var cubed = v * v * v
        if not (u >= 1 - Scalar[F32](0.0331) * (squared * squared)):
            return cubed
        var bound = squared * Scalar[F32](0.5) + d * ((1 - cubed) + log_as_xla(cubed))
        if not (log_as_xla(u) >= bound):
            return cubed


@fieldwise_init
struct GammaCubes(Tasks):
    """The tasks of gamma_cubes_float32."""

    var keys: Held[DType.uint64]
    var alpha: Held[F32]
    var cubes: Held[F32]
    var uniform: Held[F32]
    var count: Int
    var tasks: Int

    def run(self, task: Int):
        var end = chunk_begin(task + 1, self.tasks, self.count)
        for i in range(chunk_begin(task, self.tasks, self.count), end):
            var words = self.keys.unsafe_load[width=1](i)
            var key = Key(words.cast[U32](), (words >> 32).cast[U32]())
            self.cubes.unsafe_store(i, gamma_cube(key.at(0), self.alpha.unsafe_load[width=1](i)))
            self.uniform.unsafe_store(i, key.at(1).uniform())


@export
def gamma_cubes_float32(slots: Slots, args: Args) abi("C"):
    var count = integer(args, 8)
    var tasks = task_count(count, count * 256, integer(args, 9))
    spread(
        GammaCubes(
            held(operand[DType.uint64](slots, args, 0)),
            held(operand[F32](slots, args, 1)),
            held(operand[F32](slots, args, 2)),
            held(operand[F32](slots, args, 3)),
            count,
            tasks,
        ),
        tasks,
    )
