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
from maxjax._runtime import tiering as tiering_module
from maxjax._runtime.program import Program, policy
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


def run_random_calls(seed: int) -> None:
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


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_random_calls(mode):
    for seed in range(*{"never": (0, 40), "auto": (40, 70), "always": (70, 76)}[mode]):
        try:
            run_random_calls(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
