"""Steps of the host within native loops and branches."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import jax

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

X = np.linspace(-2, 2, 48, dtype=np.float32).reshape(6, 8)


def twice(j, x):
    """Something that only the host can do."""
    return j.pure_callback(lambda x: np.asarray(2 * x), j.ShapeDtypeStruct(x.shape, x.dtype), x)


def in_scan(j, x):
    def body(carry, row):
        carry = j.numpy.sin(carry) + twice(j, row)
        return carry, (twice(j, carry).sum(), carry[::-1])
    return j.lax.scan(body, x[0] * 0, x, reverse=True)


def in_while(j, x):
    # A tenth: else each step would make the differences of rounding larger.
    return j.lax.while_loop(lambda c: twice(j, c[0]).sum() < 100,
                            lambda c: (c[0] + 1, j.numpy.cos(0.1 * c[1] @ c[1].T)),
                            (x[0], x[:, :6]))


def in_branches(j, x):
    def body(i, x):
        return j.lax.switch(i % 3, (lambda x: twice(j, x) - x, lambda x: x * 0.5,
                                    lambda x: j.numpy.tanh(twice(j, x.T).T)), x)
    return j.lax.fori_loop(0, 7, body, x)


def in_nested_loops(j, x):
    def inner(i, c):
        return c * 0.9 + j.scipy.special.gammainc(j.numpy.abs(c) + 1, i + 1.0)
    return j.lax.fori_loop(0, 4, lambda i, c: j.lax.fori_loop(0, 3, inner, c) - i, x)


def without_operands(j, x):
    def body(i, x):
        (y,) = j.pure_callback(lambda: (np.float32(3),), (j.ShapeDtypeStruct((), x.dtype),))
        return x + y
    return j.lax.fori_loop(0, 4, body, x)


def without_elements(j, x):
    return j.lax.fori_loop(0, 3, lambda i, c: (c[0] + 1, twice(j, c[1])), (x, x[:0]))


def of_keys(j, x):
    def body(carry, key):
        halves = j.random.gamma(key, 2.0, (3,), j.numpy.float16)
        return carry + j.random.poisson(key, 3.0, (4,)).sum(), (halves, j.random.gamma(key, 2.0))
    return j.lax.scan(body, 0, j.random.split(j.random.key(3), 5))


def several_results(j, x):
    def body(c, row):
        low, high = j.pure_callback(
            lambda r: (r.min(), r.max()), (j.ShapeDtypeStruct((), row.dtype),) * 2, row)
        return c + high, (low < -1, row > high - 1, (row * low).astype(j.numpy.int8))
    return j.lax.scan(body, x[0, 0], x)


def of_other_dtypes(j, x):
    def body(c, row):
        half, whole, flag = c
        return (twice(j, half * 0.25), twice(j, whole), j.pure_callback(
            np.logical_not, j.ShapeDtypeStruct(flag.shape, flag.dtype), flag)), half.sum()
    return j.lax.scan(body, (x.astype(j.numpy.bfloat16), x.astype(j.numpy.int16), x > 0), x)


PROGRAMS = (in_scan, in_while, in_branches, in_nested_loops, without_operands, without_elements,
            of_keys, several_results, of_other_dtypes)


def native(function, *args):
    """Its results by tapes without kernels, and the plan of its one piece."""
    program = Program(maxjax.jit(function)._lookup(args, {}).closed)
    item = mojo_programs.Item("", program, [])
    item.plan()
    assert item.problem is None, item.problem
    plan, = [piece.plan for piece in item.pieces if piece.plan is not None]
    return mojo_programs.run(item, [*program.consts, *map(np.asarray, args)]), plan


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gives_what_jax_gives(program, monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    results, plan = native(lambda x: program(maxjax, x), X)
    # What is pure is not called for a result without elements, by JAX neither.
    assert plan.host_steps or program is without_elements
    for ours, theirs in zip(results, jax.tree.leaves(jax.jit(
            lambda x: program(jax, x))(X)), strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        # XLA computes in half precision where the processor does, and else in single.
        rtol = 4 * np.finfo(np.float16).eps if ours.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(ours.astype(np.float32), np.asarray(theirs, np.float32),
                                   rtol=rtol, atol=1e-6)


def test_equations_without_effects_are_one_step(monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    _, plan = native(lambda x: lax.fori_loop(0, 3, lambda i, x: (
        twice(maxjax, x) + twice(maxjax, x * 2)), x), X)
    assert len(plan.host_steps) == 1
    assert "it calls a Python function" in str(plan.host_steps[0])


@pytest.mark.parametrize("loop", ("scan", "while", "nested"))
def test_an_error_ends_the_program(loop, monkeypatch):
    """At once; the next call begins anew."""
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    calls, limit = [], 4

    def fails_at_last(x):
        calls.append(1)
        if len(calls) == limit:
            raise ValueError("four calls are enough")
        return np.asarray(x)

    def step(x):
        return jnp.sin(maxjax.pure_callback(
            fails_at_last, maxjax.ShapeDtypeStruct(x.shape, x.dtype), x)) + 1

    def program(x):
        if loop == "scan":
            x, _ = lax.scan(lambda c, _: (step(c), None), x, None, length=1 << 40)
        elif loop == "while":
            x = lax.while_loop(lambda c: (c == c).any(), step, x)
        else:
            x = lax.fori_loop(0, 1 << 30, lambda _, c: lax.fori_loop(
                0, 3, lambda _, c: step(c), c), x)
        return x

    for _ in range(2):
        calls.clear()
        with pytest.raises(maxjax.errors.JaxRuntimeError, match="four calls are enough"):
            native(program, X)
        assert len(calls) == limit


def test_interrupts_pass(monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)

    def interrupted(x):
        raise KeyboardInterrupt

    def program(x):
        return lax.while_loop(lambda c: (c == c).any(), lambda c: maxjax.pure_callback(
            interrupted, maxjax.ShapeDtypeStruct(x.shape, x.dtype), c), x)
    with pytest.raises(KeyboardInterrupt):
        native(program, X)


def test_threads_and_programs_within_programs(monkeypatch):
    """A step may run programs, the same one too, while others run it."""
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)

    def inner(x):
        return lax.fori_loop(0, 5, lambda i, x: twice(maxjax, jnp.sin(x)), x)

    def outer(x):
        return lax.fori_loop(0, 3, lambda i, x: maxjax.pure_callback(
            lambda x: maxjax.jit(inner)(x), maxjax.ShapeDtypeStruct(x.shape, x.dtype), x) + i, x)

    program = Program(maxjax.jit(outer)._lookup((X,), {}).closed)
    jaxpr = program.opened.jaxpr
    executable = mojo_programs.without_kernels(CheckedPlan(jaxpr, 2), jaxpr)
    expected, results = program.tier0(*program.consts, X), []
    threads = [threading.Thread(target=lambda: results.extend(
        executable([*program.consts, X]) for _ in range(10))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 40
    for result in results:
        np.testing.assert_allclose(result[0], expected[0], rtol=1e-5)


def test_loops_with_effects_stay_in_order(capfd):
    def body(i, x):
        maxjax.debug.print("step {}", i, ordered=True)
        return twice(maxjax, x)
    maxjax.block_until_ready(maxjax.jit(lambda x: lax.fori_loop(0, 3, body, x))(X))
    maxjax.effects_barrier()
    assert capfd.readouterr().out.split() == "step 0 step 1 step 2".split()
