"""Donated arguments: results take over their memory, and nothing that is held is overwritten.

Each program gives what it gives without donation, in every tier, and whatever else refers to an
argument's memory sees the values that it has seen before.
"""

from __future__ import annotations

import copy

import jax
import numpy as np
import pytest

from tests.support import mojo_programs
from tests.support.harness import assert_close

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import config
from maxjax._base.ownership import is_alone
from maxjax._max.mojo import arena, memory_order
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._runtime.program import Program
from maxjax._runtime.tiering import tiering

pytestmark = pytest.mark.xdist_group("mojo")

MODES = ("never", "auto", "always")


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    """A mode of compiling; "auto" runs natively from the first call, and compiles nothing."""
    if request.param == "auto":
        monkeypatch.setattr(tiering, "EAGER_LOOKUP_SECONDS", -1.0)
        monkeypatch.setattr(tiering, "LOOKUP_NANOSECONDS", 0)
        monkeypatch.setattr(tiering, "submit", lambda program, priority: None)
    with config.compile_mode(request.param):
        yield request.param


@pytest.fixture
def memory_counts(monkeypatch):
    """Small values are worth another order, and another arrangement in memory."""
    monkeypatch.setattr(memory_order, "LEAST_BYTES", 0)
    monkeypatch.setattr(memory_order, "_WORTH_BYTES", 0)
    monkeypatch.setattr(arena, "_LARGE_BYTES", 0)


# --- random programs ------------------------------------------------------------------------------

def operation(what: int, x, y, i: int):
    """One of several: elementwise, views, updates, sums, products, loops and choices."""
    return [
        lambda: x + y,
        lambda: x * 0.5 - 1,
        lambda: jnp.maximum(x, y * 2),
        lambda: x.at[i % 6].set(y[i % 4]),
        lambda: x.at[:, i % 6].add(y[:, 0]),
        lambda: lax.dynamic_update_slice(x, y[:2, :3], (i % 4, i % 3)),
        lambda: x[::-1],
        lambda: x.T,
        lambda: x.reshape(4, 9).reshape(6, 6),
        lambda: x - x.sum(i % 2, keepdims=True),
        lambda: x @ y,
        lambda: jnp.concatenate([y[i % 5:], x[:i % 5 + 1]])[:6],
        lambda: lax.fori_loop(0, i % 4, lambda j, z: z.at[j].set(y[j + 1]), x),
        lambda: lax.scan(lambda c, r: (c * 0.5 + r, c), y[0], x)[1],
        lambda: lax.cond(x[0, 0] > 0, lambda x, y: x.at[1].set(y[0]), lambda x, y: y, x, y),
        lambda: jnp.where(x > y, x, y),
        lambda: x.astype(jnp.int32).astype(jnp.float32),
        lambda: x,
    ][what % 18]()


def program(seed: int):
    """A random program of four arguments, its arguments, and which of them are donated."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, 1 << 16, (int(rng.integers(1, 9)), 4)).tolist()
    outputs = rng.integers(0, 1 << 16, int(rng.integers(1, 6))).tolist()

    def function(*args):
        values = list(args)
        for what, first, second, i in steps:
            x, y = values[first % len(values)], values[second % len(values)]
            values.append(jnp.clip(operation(what, x, y, i), -9, 9) if what % 3
                          else operation(what, x, y, i))
        # Mostly what was computed last.
        results = [values[-1 - number % min(len(values), 6)] for number in outputs]
        return results, [x.sum() for x in results[:1]]

    args = [rng.integers(-5, 5, (6, 6)).astype(np.float32) for _ in range(4)]
    donated = tuple(n for n in range(4) if rng.random() < 0.7) or (0,)
    return function, args, donated


def check_plan(seed: int) -> int:
    """The executable gives what tier 0 gives, and overwrites nothing that is read-only. Returns how
    many results are in arguments' memory."""
    function, args, donated = program(seed)
    closed = maxjax.make_jaxpr(function)(*args)
    plain, giving = Program(closed), Program(closed, donated)
    expected = [np.array(x) for x in plain.tier0(*plain.consts, *args)]
    plan = CheckedPlan(giving.opened.jaxpr, 2, giving.donated)
    run = mojo_programs.without_kernels(plan, giving.opened.jaxpr)
    overwritten = {number for number in plan.overwritten if number is not None}
    assert overwritten <= {*giving.donated}
    for locks in (False, True):
        given = [*giving.consts, *map(np.array, args)]
        if locks:
            for x in given:
                x.flags.writeable = False
        before = [x.copy() for x in given]
        results = run(given)
        for ours, theirs in zip(results, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
        for number, (x, value) in enumerate(zip(given, before, strict=True)):
            if locks or number not in overwritten:
                np.testing.assert_array_equal(x, value)
        if not locks:
            assert overwritten <= {number for number, x in enumerate(given)
                                   if any(np.shares_memory(x, y) for y in results)}
    return len(overwritten)


@pytest.mark.parametrize("batch", range(4))
def test_random_plans(batch, memory_counts):
    count = sum([check_plan(seed) for seed in range(40 * batch, 40 * batch + 40)])
    assert count > 20       # there is something to overwrite


@pytest.mark.exhaustive
def test_many_random_plans(memory_counts):
    for seed in range(1000, 4000):
        check_plan(seed)


# What else refers to an array's memory, or has seen it: what to hold, and how to look at it.
HOLDS = [
    lambda x: x[1:],
    lambda x: x.reshape(-1),
    lambda x: maxjax.block_until_ready(x.T),
    lambda x: x + 1,
    np.asarray,
    lambda x: np.asarray(x)[2:],
    lambda x: memoryview(np.asarray(x)),
    lambda x: np.from_dlpack(x),
    copy.copy,
    lambda x: x.copy(),
    maxjax.jit(lambda x: x),
    maxjax.jit(lambda x: x[None]),
    maxjax.device_get,
    lambda x: called(maxjax.jit(lambda y: y * x)),      # a constant of a program
]


def called(jitted):
    jitted(jnp.ones((6, 6)))
    return jitted


def seen(held):
    if callable(held):
        found = held(jnp.ones((6, 6)))
        return np.array(maxjax.tree.leaves(found)[0])
    return np.array(held)


def run_random_calls(seed: int) -> int:
    """Returns how many calls ran natively."""
    function, args, donated = program(seed)
    rng = np.random.default_rng(seed)
    jitted = maxjax.jit(function)
    giving = maxjax.jit(function, donate_argnums=donated)
    expected = [np.array(x) for x in maxjax.tree.leaves(jitted(*args))]
    for _ in range(3):
        arrays = [jnp.asarray(x) + 0 for x in args]
        holds = [(HOLDS[rng.integers(len(HOLDS))], x) for x in arrays if rng.random() < 0.4]
        held = [hold(x) for hold, x in holds]
        wanted = [seen(hold(jnp.asarray(np.array(x)))) for hold, x in holds]
        results = giving(*arrays)
        for ours, theirs in zip(maxjax.tree.leaves(results), expected, strict=True):
            assert_close(np.asarray(ours), theirs, "accumulate")
        for ours, theirs in zip(held, wanted, strict=True):
            np.testing.assert_array_equal(seen(ours), theirs)
        for number, x in enumerate(arrays):
            if x.is_deleted():
                assert number in donated
            else:
                np.testing.assert_array_equal(np.asarray(x), args[number])
    return maxjax.debug.statistics(giving).compiled_calls


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_random_calls(mode):
    native = 0
    for seed in range(*{"never": (0, 40), "auto": (40, 70), "always": (70, 76)}[mode]):
        try:
            native += run_random_calls(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert (native > 0) == (mode != "never")


# --- what is taken, and what is not ---------------------------------------------------------------

def address(x) -> int:
    return x.unsafe_buffer_pointer()


SAME_PLACE = {
    "one operation": lambda x: x + 1,
    "several operations": lambda x: -(x * 2 - 1) / 3,
    "read twice": lambda x: x * 2 - x,
    "an element": lambda x: x.at[0].add(1),
    "a window": lambda x: x.at[3:9].set(2) * 3,
    "elements": lambda x: (x - 1).at[np.array([1, 1, 5])].add(np.float32([2, 3, 4])),
}


@pytest.mark.parametrize("name", SAME_PLACE)
def test_the_result_is_where_the_argument_was(name, mode):
    for library in (jax, maxjax):
        jitted = library.jit(SAME_PLACE[name], donate_argnums=0)
        wanted = SAME_PLACE[name](library.numpy.arange(1000.0) + 1)
        for _ in range(3):
            x = library.numpy.arange(1000.0) + 1
            place = address(x)
            y = jitted(x)
            assert x.is_deleted() and address(y) == place, library
            assert_close(np.asarray(y), np.asarray(wanted), "elementwise")


@pytest.mark.parametrize("update", [
    lambda x, lax: x.at[1:].set(x[:-1]) + x.at[:-1].add(x[1:]),
    lambda x, lax: x.at[np.array([5, 0, 5])].add(x[::-1][:3]),
    lambda x, lax: x.T.at[np.array([2, 0])].set(x[:2]),
    lambda x, lax: lax.dynamic_update_slice(x, x[:3, 1:4] * 2, (2, 1)),
    lambda x, lax: lax.dynamic_update_slice(x, x, (0, 0)) + x.at[...].set(x.T),
    lambda x, lax: x.at[np.array([7, 1])].mul(3, mode="drop").at[np.array([0])].min(x[4])])
def test_an_update_reads_what_was_there(update, mode):
    for library in (jax, maxjax):
        give = library.jit(lambda x: update(x, library.lax), donate_argnums=0)  # noqa: B023
        for _ in range(3):
            found = np.asarray(give(library.numpy.arange(36.0).reshape(6, 6) + 1))
            if library is jax:
                wanted = found
            np.testing.assert_array_equal(found, wanted)


def test_trees_are_updated_in_place(mode):
    def step(state, g):
        mean = maxjax.tree.map(lambda m: 0.9 * m + g, state["mean"])
        return {"mean": mean, "x": maxjax.tree.map(lambda x, m: x - m, state["x"], mean)}

    jitted = maxjax.jit(step, donate_argnums=0)
    state = {name: [jnp.full((30, 40), n + 0.5) + 0 for n in range(3)] for name in ("mean", "x")}
    for _ in range(3):
        wanted = maxjax.tree.leaves(maxjax.jit(step)(state, 2.0))
        before = maxjax.tree.map(address, state)
        after = jitted(state, 2.0)
        for ours, theirs in zip(maxjax.tree.leaves(after), wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        assert maxjax.tree.map(address, after) == before
        state = after


def test_an_update_of_a_cache_is_in_place():
    """Natively: nothing of a cache is copied but the rows that are new."""
    x, row = np.zeros((1000, 10), np.float32), np.ones((1, 10), np.float32)
    closed = maxjax.make_jaxpr(
        lambda x, row, i: (lax.dynamic_update_slice(x, row, (i, 0)), row.sum()))(x, row, 3)
    giving = Program(closed, (0,))
    plan = CheckedPlan(giving.opened.jaxpr, 1, giving.donated)
    assert plan.overwritten[0] == 0
    run = mojo_programs.without_kernels(plan, giving.opened.jaxpr)
    result, _ = run([*giving.consts, x, row, np.array(3, np.int32)])
    assert result is x and x[3].all() and x.sum() == 10


def test_programs_that_give_an_argument_back(mode):
    jitted = maxjax.jit(lambda x, y: (x, x + y, y[::-1]), donate_argnums=(0, 1))
    for _ in range(2):
        x, y = jnp.arange(1000.0) + 1, jnp.arange(1000.0) * 2
        found = [np.array(z) for z in jitted(x, y)]
        a = np.arange(1000, dtype=np.float32)
        for ours, theirs in zip(found, (a + 1, 3 * a + 1, 2 * a[::-1]), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_memory_of_others_is_not_overwritten(mode):
    jitted = maxjax.jit(lambda x: x + 1, donate_argnums=0)
    for give in (lambda a: a, jnp.asarray, jnp.from_dlpack, maxjax.device_put,
                 lambda a: jnp.frombuffer(memoryview(a), np.float32)):
        mine = np.ones(1000, np.float32)
        x = give(mine)
        jitted(x)
        maxjax.block_until_ready(jitted(give(mine)))
        np.testing.assert_array_equal(mine, np.ones(1000, np.float32))


def test_two_arrays_of_one_memory(mode):
    """One array has the memory of the other, and both are donated."""
    x = jnp.arange(1000.0) + 1
    y = maxjax.jit(lambda x: x)(x)
    a, b = maxjax.jit(lambda x, y: (x + 1, y * 2), donate_argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(a, np.arange(1000) + 2.0)
    np.testing.assert_array_equal(b, np.arange(1000) * 2.0 + 2)


def test_a_call_that_fails_has_used_up_the_argument():
    def run(library):
        def fails(x):
            raise ValueError("no")
        x = library.numpy.arange(10.0)
        jitted = library.jit(lambda x: library.pure_callback(fails, x, x) + x, donate_argnums=0)
        with pytest.raises(Exception, match="no"):
            library.block_until_ready(jitted(x))
        return x.is_deleted()
    assert run(jax) and run(maxjax)


def test_both_tiers_are_held_against_each_other():
    with config.check_tiers(True), config.compile_mode("always"):
        x = jnp.arange(1000.0) + 1
        y = maxjax.jit(lambda x: x * 2 + 1, donate_argnums=0)(x)
        np.testing.assert_array_equal(y, np.arange(1000) * 2.0 + 3)


def test_invalid_values_are_found_in_donated_arguments():
    with maxjax.debug_nans(True), pytest.raises(FloatingPointError):
        maxjax.jit(lambda x: x / x, donate_argnums=0)(jnp.zeros(1000))


def test_a_view_of_a_block_is_not_alone():
    block = np.empty(100, np.uint8)
    x = np.ndarray((10,), np.float32, block, 4)
    assert not is_alone(x)      # the block is another reference
    del block
    assert is_alone(x)
    y = x[2:]
    assert not is_alone(x) and not is_alone(y)
    del x
    assert is_alone(y)


# --- how much memory a program takes --------------------------------------------------------------

def training_step(layers: int, momentum: bool):
    def loss(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return (x * x).sum()

    def step(weights, velocity, x):
        gradients = maxjax.grad(loss)(weights, x)
        velocity = [0.9 * v - 0.1 * g for v, g in zip(velocity, gradients, strict=True)]
        return [w + v for w, v in zip(weights, velocity, strict=True)], velocity

    weights = [np.zeros((128, 128), np.float32) for _ in range(layers)]
    return step, (weights, weights, np.zeros((8, 128), np.float32))


def test_gradients_live_until_their_weight_is_updated(memory_counts):
    """All results are in the memory of arguments, and two gradients at a time in the arena."""
    step, args = training_step(12, True)
    giving = Program(maxjax.make_jaxpr(step)(*args), tuple(range(24)))
    plan = CheckedPlan(giving.opened.jaxpr, 2, giving.donated)
    assert None not in plan.overwritten and plan.peak_bytes == plan.arena + len(plan.constants)
    weight = 128 * 128 * 4
    activations = 12 * 8 * 128 * 4
    assert plan.arena <= 2 * weight + 2 * activations


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_values_are_placed_first(seed, memory_counts):
    rng = np.random.default_rng(seed)
    firsts = np.sort(rng.integers(0, 40, 60))
    lives = [(int(rng.integers(1, 5000)), int(first), int(first + rng.integers(0, 15)))
             for first in firsts]
    taken = arena.Arena()
    begins = taken.allocate_all(lives)
    spans = [(begin, begin + size, *life) for begin, (size, *life) in
             zip(begins, lives, strict=True)]
    for number, (begin, end, first, last) in enumerate(spans):
        assert end <= taken.size and begin % arena.ALIGNMENT == 0
        for other, until, since, still in spans[:number]:
            assert last < since or still < first or end <= other or until <= begin
    taken.restart()
    for step in range(60):      # what calls take for themselves
        begin = taken.allocate(3000, step, step)
        assert all(not first <= step <= last or begin + 3000 <= other or until <= begin
                   for other, until, first, last in spans)


DTYPES = ("float32", "int32", "uint8", "bool", "bfloat16", "float16", "complex64", "float8_e4m3fn")


def check_dtype(dtype: str) -> None:
    def function(x, y):
        flipped = ~x if x.dtype == bool else x + x
        return (flipped, x.reshape(-1)[:8].astype(y.dtype), jnp.where(y > 3, y, y + 1),
                jnp.zeros((0,)))

    def args():
        return jnp.arange(24).reshape(2, 12).astype(dtype), jnp.arange(8.0) + 0

    wanted = maxjax.jit(function)(*args())
    for _ in range(2):
        found = maxjax.jit(function, donate_argnums=(0, 1))(*args())
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_of_each_dtype_is_donated(dtype, mode):
    check_dtype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_dtypes_of_double_width(dtype, mode):
    with maxjax.enable_x64(True):
        check_dtype(dtype)


@pytest.mark.parametrize("same", [lambda x: x, lambda x: x.T, lambda x: np.array(x)])
def test_steps_of_the_host_between(same, mode):
    """What a callback is given, or gives, is nothing that a later piece overwrites."""
    def function(x, y):
        seen = maxjax.pure_callback(same, x, x)
        z = maxjax.pure_callback(same, y, y * 2 + seen)
        return x + 1, z - y, seen * z.sum(), y[::-1]

    def args():
        return jnp.arange(3600.0).reshape(60, 60) / 99 + 1, jnp.ones((60, 60)) * 3

    wanted = [np.array(x) for x in maxjax.jit(function)(*args())]
    jitted = maxjax.jit(function, donate_argnums=(0, 1))
    for _ in range(3):
        x, y = args()
        held = x[1:]
        for ours, theirs in zip(jitted(x, y), wanted, strict=True):
            assert_close(np.asarray(ours), theirs, "accumulate")
        np.testing.assert_array_equal(held, args()[0][1:])
