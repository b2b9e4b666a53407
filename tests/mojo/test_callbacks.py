"""Callbacks within native loops and branches: what they are given, how often, in which order."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from tests.gen.callback_programs import Program as RandomProgram
from tests.support import mojo_programs
from tests.support.selection import extended_but

pytest.importorskip("max.engine")

import jax
import jax.experimental

import maxjax
import maxjax.experimental
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base.config import compile_mode
from maxjax._max.mojo.backend import MojoBackend
from maxjax._max.mojo.scalar_code import MACHINE
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

# Of few elements, for the scalar machine, and of more than it takes.
SIZES = (3, 150)
SEEDS = range(20)
MANY_SEEDS = range(100, 400)


def values(size):
    return (np.arange(size, dtype=np.int32) * 7 + 3) % 97


def poisoned(monkeypatch):
    """Native memory that nothing has written holds what no program computes."""
    mojo_programs.fill_unwritten(monkeypatch, 0xA5)


def native(function, *args):
    """The program with the machines in the place of kernels, as a function without arguments."""
    program = Program(maxjax.jit(function)._lookup(args, {}).closed)
    item = mojo_programs.Item("", program, []).plan()
    assert item.problem is None, item.problem
    given = [*program.consts, *map(np.asarray, args)]
    return item, lambda: mojo_programs.run(item, given)


def on_jax(program, x):
    log = []
    out = jax.jit(program.on(jax, log))(x, np.int32(2))
    jax.effects_barrier()
    return np.asarray(out), log


def check_random(seed, size, monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    poisoned(monkeypatch)
    program, x = RandomProgram(seed), values(size)
    wanted, theirs = on_jax(program, x)
    log = []
    item, run = native(program.on(maxjax, log), x, np.int32(2))
    assert not any("its body has" in reason for reason in item.reasons), item.reasons
    interpreted = item.program.tier0(*item.program.consts, x, np.int32(2))
    first = list(log)
    np.testing.assert_array_equal(interpreted[0], wanted)
    # JAX calls what is unordered in any order, and those of one kind in theirs.
    for order in ("debug", "io"):
        assert [entry for entry in first if entry.order == order] == [
            entry for entry in theirs if entry.order == order]
    assert Counter(first) == Counter(theirs)
    for _ in range(2):
        log.clear()
        results = run()
        np.testing.assert_array_equal(results[0], wanted)
        assert log == first


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", extended_but(SEEDS[::4], SEEDS))
def test_random_programs(seed, size, monkeypatch):
    check_random(seed, size, monkeypatch)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_many_random_programs(seed, monkeypatch):
    check_random(seed, SIZES[seed % 2], monkeypatch)


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_random_programs_compiled(seed):
    """With kernels, by the public way."""
    program = RandomProgram(seed)
    for size in SIZES:
        x, runs = values(size), []
        for mode in ("never", "always"):
            log = []
            with compile_mode(mode):
                out = maxjax.jit(program.on(maxjax, log))(x, np.int32(2))
                runs.append((np.asarray(out).tolist(), log))
        assert runs[0] == runs[1]


class StopError(Exception):
    pass


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", SEEDS[:10])
def test_what_a_callback_raises_ends_the_program(seed, size, monkeypatch):
    """At each callback of a run; the next run is whole."""
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    poisoned(monkeypatch)

    class Log(list):
        limit = 1 << 30

        def append(self, entry):
            if len(self) == self.limit:
                raise StopError
            super().append(entry)

    log = Log()
    _, run = native(RandomProgram(seed).on(maxjax, log), values(size), np.int32(2))
    wanted, whole = run(), list(log)
    for limit in range(0, len(whole), 1 + len(whole) // 6):
        log.clear()
        log.limit = limit
        with pytest.raises(maxjax.errors.JaxRuntimeError, match="StopError"):
            run()
        assert list(log) == whole[:limit]
        log.clear()
        log.limit = 1 << 30
        np.testing.assert_array_equal(run()[0], wanted[0])
        assert list(log) == whole


STOPPED = """
import numpy as np
import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base.config import compile_mode

calls = 0

def stop(i):
    global calls
    calls += 1
    if calls == 3:
        raise ValueError("stop here")
    return np.int32(i)

def count(i):
    called = lambda _, i: maxjax.pure_callback(stop, maxjax.ShapeDtypeStruct((), np.int32), i)
    return lax.fori_loop(0, 2, called, i)

@maxjax.jit
def run(x):
    def body(c):
        i, x = c
        return count(i) + 1, x.at[1:-1].set((x[:-2] + x[2:]) / 2)
    return lax.while_loop(lambda c: c[0] < 20, body, (jnp.int32(0), x))

with compile_mode("always"):
    try:
        run(np.ones(500, np.float32))[1].block_until_ready()
    except maxjax.errors.JaxRuntimeError as error:
        print("stop here" in str(error), calls)
"""


def test_what_an_inner_loops_callback_raises_ends_an_outer_loop_of_kernels():
    """The loop around it runs on, for ever, if it is one native function of its own."""
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True,
                          timeout=120)
    assert done.stdout == "True 3\n", done.stderr


def of_batch(j, log, x):
    def one(x):
        def body(i, c):
            j.debug.callback(lambda i, c: log.append((int(i), round(float(c), 3))), i, c)
            return j.numpy.where(c > 1, c * 0.5, c + 0.75)
        return j.lax.fori_loop(0, 3, body, x)
    return j.vmap(one)(x[:3])


def of_gradient(j, log, x):
    def loss(x):
        def step(c, w):
            j.debug.callback(lambda c: log.append(round(float(c), 3)), c[0])
            return j.numpy.sin(c) * w, c.sum()
        c, sums = j.lax.scan(step, x, x[:4])
        return c.sum() + sums.sum()
    return j.value_and_grad(loss)(x)


def of_recomputation(j, log, x):
    @j.checkpoint
    def block(c):
        j.debug.callback(lambda c: log.append(round(float(c), 3)), c[1])
        return j.numpy.tanh(c)

    def step(c, _):
        return block(c) + 0.5 * c, None
    return j.grad(lambda x: j.lax.scan(step, x, None, length=3)[0].sum())(x)


def of_tangents(j, log, x):
    def f(x):
        def body(c):
            j.debug.callback(lambda n: log.append(int(n)), c[0], ordered=True)
            return c[0] + 1, c[1] * 0.9 + j.numpy.cos(c[1])
        return j.lax.while_loop(lambda c: c[0] < 4, body, (0, x))[1]
    return j.jvp(f, (x,), (j.numpy.ones_like(x),))


def of_batched_branches(j, log, x):
    def one(x, n):
        return j.lax.fori_loop(0, 4, lambda i, c: j.lax.cond(
            i == n, lambda c: (j.debug.callback(lambda c: log.append(round(float(c), 3)), c), c)[1],
            lambda c: c * 1.5, c), x)
    return j.vmap(one, (0, None))(x[:4], 2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("function", [
    of_batch, of_gradient, of_recomputation, of_tangents, of_batched_branches])
def test_under_transformations(function, size, monkeypatch):
    """As interpreted, callbacks and results; and as in JAX, in whatever order."""
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    x, log, theirs = np.linspace(0.1, 1.3, size, dtype=np.float32), [], []
    wanted = jax.tree.leaves(jax.jit(lambda x: function(jax, theirs, x))(x))
    jax.effects_barrier()
    item, run = native(lambda x: function(maxjax, log, x), x)
    assert not any("its body has" in reason for reason in item.reasons), item.reasons
    item.program.tier0(*item.program.consts, x)
    first = list(log)
    log.clear()
    for ours, expected in zip(run(), wanted, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=1e-6)
    assert log == first
    assert Counter(map(str, first)) == Counter(map(str, theirs))


def rarely(x):
    def body(i, c):
        lax.cond(i % 100 == 99, lambda: maxjax.debug.callback(lambda v: None, c[0]), lambda: None)
        return c * 0.5 + 1
    return lax.fori_loop(0, 1000, body, x)


@pytest.mark.parametrize("size, functions", [(3, {MACHINE, "run_program", "tape_call_python"})])
def test_a_loop_over_few_elements_stays_one(size, functions):
    plan, = MojoBackend().prepare(
        Program(maxjax.make_jaxpr(rarely)(np.ones(size, np.float32))).opened.jaxpr).plans.values()
    assert "a loop over few elements" in plan.source
    assert plan.host_steps and "tape_scan" not in plan.source


def test_explain_says_what_the_host_does():
    text = str(maxjax.debug.explain(maxjax.jit(rarely), jnp.ones(3)))
    assert "within, on host: debug_callback: it calls a Python function" in text
    assert "its body has effects" not in text


def test_one_step_after_the_other_around_a_loop():
    """What is before the loop, in it and behind it."""
    log = []

    def program(x):
        maxjax.debug.callback(lambda x: log.append("before"), x, ordered=True)
        x = lax.fori_loop(0, 2, lambda i, x: (
            maxjax.debug.callback(lambda i: log.append(int(i)), i), x + i)[1], x)
        maxjax.debug.callback(lambda x: log.append("behind"), x)
        return x, lax.cond(x > 0, lambda: (
            maxjax.debug.callback(lambda: log.append("branch")), 1)[1], lambda: 0)

    with compile_mode("always"):
        out = maxjax.jit(program)(1)
        assert [int(v) for v in out] == [2, 1]
    assert log == ["before", 0, 1, "behind", "branch"]
