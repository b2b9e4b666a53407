"""Random bits, and samplers by rejection.

`threefry2x32`: two key words, two counters, two results (uint32) | key count (1 or count), count,
threads
`gamma_cubes_float32`: keys (uint64), alpha, cubes, uniform numbers | count, threads
`poisson_counts_float32`: keys (uint64), rates, counts by Knuth's method (int32), counts by rejection
(float32) | keys, rates of each, threads
"""
from std.math import floor

from kernels.arrangement import U32, threefry, threefry_arrays
from kernels.calling import Args, Slots, integer, operand
from kernels.crew import Tasks, spread
from kernels.elementary import F64, square_root
from kernels.reduction import Array, Held, chunk_begin, held, task_count
from kernels.special import lgamma
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
struct Key(TrivialRegisterPassable):
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
    def uniform(self, counter: Int = 0) -> Scalar[F32]:
        """In [0, 1)."""
        var words = self.at(counter)
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


# A rate from which on counts are drawn by rejection, and the one that stands in for lower rates
# there: all counts of a key are drawn until the last of them is accepted.
comptime LEAST_REJECTED = Scalar[F32](10)
comptime STAND_IN = Scalar[F32](1e5)


@fieldwise_init
struct Draws:
    """What the iterations of a key draw from: the keys of each, made when first asked for."""

    var state: Key
    var first: List[Key]
    var second: List[Key]
    var several: Bool  # two keys for an iteration

    def reach(mut self, iteration: Int):
        while len(self.first) <= iteration:
            self.first.append(self.state.at(1))
            if self.several:
                self.second.append(self.state.at(2))
            self.state = self.state.at(0)


def knuth_count(mut draws: Draws, rate: Scalar[F32], element: Int) -> Int:
    """Knuth's method, less one; `random_rejection.py` is the NumPy rule."""
    var count = 0
    var log_product = Scalar[F32](0)
    while log_product > -rate:
        draws.reach(count)
        log_product += log_as_xla(draws.first[count].uniform(element))
        count += 1
    return count - 1


@fieldwise_init
struct Rejection(TrivialRegisterPassable):
    """Hormann's transformed rejection for a rate."""

    var rate: Scalar[F32]
    var log_rate: Scalar[F32]
    var a: Scalar[F32]
    var b: Scalar[F32]
    var inverse_alpha: Scalar[F32]
    var bound: Scalar[F32]

    def __init__(out self, rate: Scalar[F32]):
        self.rate = rate
        self.log_rate = log_as_xla(rate)
        self.b = Scalar[F32](0.931) + Scalar[F32](2.53) * square_root(rate)
        self.a = Scalar[F32](-0.059) + Scalar[F32](0.02483) * self.b
        self.inverse_alpha = Scalar[F32](1.1239) + Scalar[F32](1.1328) / (
            self.b - Scalar[F32](3.4)
        )
        self.bound = Scalar[F32](0.9277) - Scalar[F32](3.6224) / (self.b - 2)

    def draw(self, first: Key, second: Key, element: Int, mut k: Scalar[F32]) -> Bool:
        """Draws a count; returns whether it is accepted."""
        var u = first.uniform(element) - Scalar[F32](0.5)
        var v = second.uniform(element)
        var shifted = Scalar[F32](0.5) - abs(u)
        k = floor((2 * self.a / shifted + self.b) * u + self.rate + Scalar[F32](0.43))
        if shifted >= Scalar[F32](0.07) and v <= self.bound:
            return True
        if k < 0 or (shifted < Scalar[F32](0.013) and v > shifted):
            return False
        var s = log_as_xla(v * self.inverse_alpha / (self.a / (shifted * shifted) + self.b))
        var t = -self.rate + k * self.log_rate - lgamma((k + 1).cast[F64]()).cast[F32]()
        return s <= t


@fieldwise_init
struct PoissonCounts(Tasks):
    """The tasks of poisson_counts_float32: keys."""

    var keys: Held[DType.uint64]
    var rates: Held[F32]
    var counts: Held[DType.int32]
    var rejected: Held[F32]
    var key_count: Int
    var each: Int
    var tasks: Int

    def run(self, task: Int):
        var end = chunk_begin(task + 1, self.tasks, self.key_count)
        for number in range(chunk_begin(task, self.tasks, self.key_count), end):
            self.draw(number)

    def draw(self, number: Int):
        var words = self.keys.unsafe_load[width=1](number)
        var key = Key(words.cast[U32](), (words >> 32).cast[U32]())
        var rates = self.rates.unsafe_offset(number * self.each)
        var counts = self.counts.unsafe_offset(number * self.each)
        var rejected = self.rejected.unsafe_offset(number * self.each)
        var draws = Draws(key, List[Key](), List[Key](), False)
        var pairs = Draws(key, List[Key](), List[Key](), True)
        var any_large = False
        for i in range(self.each):
            var rate = rates.unsafe_load[width=1](i)
            var large = rate >= LEAST_REJECTED
            any_large = any_large or large
            counts.unsafe_store(
                i, Scalar[DType.int32](0 if large else knuth_count(draws, rate, i))
            )
            rejected.unsafe_store(i, Scalar[F32](-1))
        if not any_large:
            return
        # The last iteration is that in which the last count is accepted for the first time, and
        # each count is what it accepted last.
        var iterations = 0
        for i in range(self.each):
            var rate = rates.unsafe_load[width=1](i)
            var rejection = Rejection(rate if rate >= LEAST_REJECTED else STAND_IN)
            var k = Scalar[F32](0)
            var iteration = 0
            while True:
                pairs.reach(iteration)
                var accepted = rejection.draw(
                    pairs.first[iteration], pairs.second[iteration], i, k
                )
                iteration += 1
                if accepted:
                    break
            iterations = max(iterations, iteration)
        for i in range(self.each):
            var rate = rates.unsafe_load[width=1](i)
            if not rate >= LEAST_REJECTED:
                continue
            var rejection = Rejection(rate)
            var k = Scalar[F32](0)
            for iteration in range(iterations - 1, -1, -1):
                if rejection.draw(pairs.first[iteration], pairs.second[iteration], i, k):
                    break
            rejected.unsafe_store(i, k)


@export
def poisson_counts_float32(slots: Slots, args: Args) abi("C"):
    var keys = integer(args, 8)
    var each = integer(args, 9)
    var tasks = min(keys, task_count(keys * each, keys * each * 256, integer(args, 10)))
    spread(
        PoissonCounts(
            held(operand[DType.uint64](slots, args, 0)),
            held(operand[F32](slots, args, 1)),
            held(operand[DType.int32](slots, args, 2)),
            held(operand[F32](slots, args, 3)),
            keys,
            each,
            tasks,
        ),
        tasks,
    )
