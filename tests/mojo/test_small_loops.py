"""Loops over few elements, which are code of the scalar machine, give what tier 0 gives."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import dtypes
from maxjax._base.errors import InternalError
from maxjax._max.elementwise_kernels import KERNELS
from maxjax._max.mojo import loop_registers
from maxjax._max.mojo.abi import SCALAR_OPCODES
from maxjax._max.mojo.check_code import check_loop
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._max.mojo.plan import Plan
from maxjax._max.mojo.scalar_code import MACHINE, LoopCode, Repeat, every_instruction
from maxjax._max.mojo.tape import Tape
from maxjax._max.mojo.vector_operations import own_operations, pairs, singles
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

RNG = np.random.default_rng(0)
HALF = np.float32(0.5)
F3, F7, F64 = (RNG.standard_normal(size).astype(np.float32) for size in (3, 7, 64))


def planned(function, *args):
    program = Program(maxjax.make_jaxpr(function)(*args))
    return program, CheckedPlan(program.opened.jaxpr, 2)


def codes(tape: Tape) -> list[LoopCode]:
    found = []
    for step in tape.steps:
        for x in step.integers:
            if isinstance(x, LoopCode):
                found.append(x)
            elif isinstance(x, Tape):
                found += codes(x)
    return found


def check(function, *args, loops=1, tolerance=0.0):
    """The machine runs it, and gives what tier 0 gives, to the bit if no tolerance is given."""
    args = [np.asarray(x) for x in args]
    program, plan = planned(function, *args)
    assert len(codes(plan.tape)) == loops, plan.source
    values = [*program.consts, *args]
    with np.errstate(all="ignore"):
        expected = program.tier0(*[np.array(x) for x in values])
    run = mojo_programs.without_kernels(plan, program.opened.jaxpr)
    for _ in range(2):      # a frame is used again
        for ours, theirs in zip(run(values), expected, strict=True):
            theirs = np.asarray(theirs)
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            if tolerance:
                np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
            else:
                np.testing.assert_array_equal(ours, theirs)
                zeros = theirs == 0
                np.testing.assert_array_equal(
                    np.signbit(ours[zeros].astype(np.float64)),
                    np.signbit(theirs[zeros].astype(np.float64)))


def collatz(n):
    def step(state):
        n, count = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return lax.while_loop(lambda state: state[0] != 1, step, (n, jnp.int32(0)))[1]


def swapped(i, state):
    a, b, c = state
    return b, a + i, a


def stacked(a, b):
    return lax.scan(lambda c, x: (c + x, (c, c * x, x > 0)), a, b)


def lorenz(y, _):
    a, b, c = y
    return y + 0.01 * jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c]), a


LOOPS = {
    "float32": (lambda x: lax.fori_loop(0, 50, lambda i, c: c * 0.9 + 1 / (i + 1), x), HALF),
    "int32": (lambda x: lax.fori_loop(
        0, 50, lambda i, c: (c * 1103515245 + 12345) ^ (i >> 3), x), np.int32(7)),
    "mixed": (lambda x: lax.fori_loop(0, 50, lambda i, c: (
        c[0] * 0.5 + c[1], (c[1] + i) % 7, c[2] ^ (c[0] > 3)), (x, 1, False)), HALF),
    "no times": (lambda x: lax.fori_loop(0, 0, lambda i, c: c + i, x), np.int32(7)),
    "once": (lambda x: lax.fori_loop(3, 4, lambda i, c: c + i, x), np.int32(7)),
    "bounds that are not known": (lambda n, x: lax.fori_loop(0, n, lambda i, c: c + i, x),
                                  np.int32(9), np.float32(0.5)),
    "while that never runs": (lambda x: lax.while_loop(lambda c: c < 0, lambda c: c + 1, x), HALF),
    "while": (collatz, np.int32(27)),
    "while of a vmap": (maxjax.vmap(collatz), np.arange(1, 20, dtype=np.int32)),
    "while in a loop": (lambda n: lax.fori_loop(1, 9, lambda i, s: s + collatz(i), n), np.int32(0)),
    "carries that change places": (lambda a, b: lax.fori_loop(
        0, 5, swapped, (a, b, a)), np.int32(3), np.int32(4)),
    "a carry twice": (lambda a, b: lax.fori_loop(
        0, 5, lambda i, c: (c[0] + c[1],) * 2, (a, b)), np.float32(3), np.float32(4)),
    "a constant carry": (lambda a: lax.fori_loop(
        0, 5, lambda i, c: (c[1], c[1] * 0 + 2), (a, a)), np.float32(3)),
    "results": (stacked, HALF, F7),
    "results backwards": (lambda a, b: lax.scan(
        lambda c, x: (c * 0.5 + x, c), a, b, reverse=True), HALF, F7),
    "lines": (lambda a, b: lax.scan(lambda c, x: (c + x, c[::-1] * x), a, b), F3,
              F64[:60].reshape(20, 3)),
    "slices and a stack": (lambda y: lax.scan(lorenz, y, None, length=20), F3),
    "matrices": (lambda x: lax.fori_loop(
        0, 3, lambda i, c: (c.T[:, ::2].repeat(2, 1)[:, :3].T + c)[::-1], x),
        F64[:9].reshape(3, 3)),
    "padded": (lambda x: lax.fori_loop(
        0, 3, lambda i, c: jnp.pad(c[1:], (0, 1), constant_values=2) + c, x), F7),
    "a choice": (lambda x: lax.fori_loop(0, 20, lambda i, c: lax.cond(
        c > 1, lambda c: c * 0.5, lambda c: c + 0.25, c), x), HALF),
    "a choice of many": (lambda x: lax.fori_loop(0, 9, lambda i, c: lax.switch(
        i - 2, [lambda c: c, lambda c: c + 1, lambda c: 3.0, lambda c: c * 2], c), x), HALF),
    "a scan of a carry": (lambda x: lax.fori_loop(0, 3, lambda i, c: lax.scan(
        lambda a, b: (a + b, a * b), c[0] * 0, c)[1] + c, x), F7),
    "gathered and scattered": (lambda x: lax.fori_loop(
        0, 20, lambda i, c: c.at[i % 7].set(c[(i + 3) % 7] * 0.5), x), F7),
    "the smaller and larger of a few": (lambda x: rows_loop(lambda i, c: (
        c.at[i % 9].min(c[(i + 3) % 7] * 0.5).at[i % 5].max(c[i % 7] - 1),), x),
        np.float32([1, -2, np.nan, 4, -0.0, 6, 7])),
    "an index that is read": (lambda x: lax.fori_loop(
        0, 5, lambda i, c: c + jnp.arange(7) * i, x), F7),
    "bits": (lambda x: lax.fori_loop(0, 5, lambda i, c: lax.bitcast_convert_type(
        lax.bitcast_convert_type(c, jnp.uint8)[..., ::-1], jnp.int32) + 1, x), np.int32(77)),
    "random bits": (lambda k: lax.fori_loop(0, 3, lambda i, c: (
        maxjax.random.split(c[0])[0], c[1] ^ maxjax.random.bits(c[0])), (k, jnp.uint32(0)))[1],
        maxjax.random.PRNGKey(0)),
    "sorted": (lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sort(-c) + jnp.argmax(c), x), F7),
    "the most elements": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2 - c[::-1], x),
                          np.tile(F64, 2)),
}

TABLE, ROWS = (RNG.standard_normal(shape).astype(np.float32) for shape in (300, (40, 3)))


def rows_loop(step, *init, times=20):
    return lax.fori_loop(0, times, lambda i, state: step(i, *state), init)


def sieve(x):
    def without_multiples(i, s):
        return lax.while_loop(lambda c: c[0] < 300, lambda c: (
            c[0] + i, c[1].at[c[0]].set(False)), (i * i, s))[1]

    return lax.fori_loop(2, 18, without_multiples, x)


# Large arrays of which rows are read and written.
LOOPS |= {
    "a large array is read": (lambda x: lax.fori_loop(
        0, 300, lambda i, c: c * 0.5 + x[i], 0.0), TABLE),
    "one is written": (lambda x: lax.fori_loop(
        0, 300, lambda i, s: s.at[i].set(i * 2.0), x), TABLE),
    "one is read and written": (lambda x: lax.fori_loop(
        1, 300, lambda i, s: s.at[i].set(s[i - 1] * 0.5 + s[i]), x), TABLE),
    "the value before is read, too": (lambda x: rows_loop(lambda i, s, c: (
        (t := s.at[i % 7].add(1.0)), c + s[i % 7] * 2 + t[i % 5] + s[3]), x, 0.0), TABLE),
    "one value after the other": (lambda x: rows_loop(lambda i, s: (
        s.at[i].set(s[i + 1]).at[2 * i].multiply(3.0).at[i + 1].add(-s[i]),), x), TABLE),
    "rows that are not there": (lambda x: rows_loop(lambda i, s, c: (
        s.at[i * 40 - 200].set(5.0).at[i * 31].add(1.0, mode="clip"),
        c + s[i * 33 - 7] + s.at[i * 50 - 400].get(mode="fill", fill_value=2)), x, 0.0), TABLE),
    "rows": (lambda x: rows_loop(lambda i, s: (
        s.at[i].set(s[39 - i] * 2).at[i // 2].add(s[0]),), x), ROWS),
    "columns": (lambda x: rows_loop(lambda i, c: (c * 0.5 + x[:, i],), x[:, 3]),
                ROWS.reshape(3, 40)),
    "rows that do not move": (lambda x: rows_loop(lambda i, s: (
        s.at[i].set(s[3] + s[30, 1] + s[4:34:3, 2][:3]).at[2].set(0.5),), x), ROWS),
    "slices": (lambda x: rows_loop(lambda i, s: (lax.dynamic_update_slice(
        s, lax.dynamic_slice(s, (i * 31 - 9,), (5,)) + 1, (i * 16,)),), x), TABLE),
    "several elements": (lambda x: rows_loop(lambda i, s: (s.at[jnp.stack([i, i * 2, 7])].add(
        s[jnp.stack([i + 1, 5, 299 - i])]),), x), TABLE),
    "from one to another": (lambda x: lax.fori_loop(
        0, 300, lambda i, s: s.at[i].set(x[299 - i]), x), TABLE),
    "two that begin as one": (lambda x: rows_loop(lambda i, a, b: (
        a.at[i].set(b[i + 1]), b.at[2 * i].set(a[i])), x, x), TABLE),
    "one that is not returned": (lambda x: rows_loop(lambda i, s, c: (
        s.at[i % 3].add(c), c * 0.5 + s[i % 4]), x, 1.0)[1], TABLE),
    "one that stays": (lambda x: rows_loop(lambda i, s, c: (s, c + s[i]), x, 1.0), TABLE),
    "one in a loop within": (sieve, np.ones(300, bool)),
    "one in a choice": (lambda x: rows_loop(lambda i, s: (lax.cond(
        s[i] > 0, lambda s: s.at[i].set(s[i + 1]), lambda s: s, s),), x), TABLE),
    "one that a choice reads": (lambda x: rows_loop(lambda i, c: (lax.cond(
        i % 3 == 0, lambda c: c + x[i], lambda c: c * 0.5, c),), 1.0), TABLE),
    "one that is kept as it goes": (lambda x: lax.while_loop(
        lambda c: (c[0] < 300) & (c[2] < 100), lambda c: (
            c[0] + 1, c[1].at[c[0]].set(c[2]), c[2] * 1.03), (0, x * 0, 1.0)), TABLE),
    "the smaller and larger are kept": (lambda x: rows_loop(lambda i, s: (
        s.at[i].min(s[i + 1]).at[2 * i].max(s[i + 2] * 3).at[i * 40 - 200].max(9.0),), x),
        np.where(abs(TABLE) < 0.1, np.float32(np.nan), TABLE)),
    "the smaller of rows": (lambda x: rows_loop(lambda i, s: (
        s.at[i].min(s[39 - i]).at[i // 2].max(s[i] - 1),), x), ROWS),
    "the larger of integers": (lambda x: rows_loop(lambda i, s: (
        s.at[i].max(s[i * 2] + 3).at[i + 100].min(s[i]),), x), np.arange(300).astype(np.uint8)),
    "shorts": (lambda x: rows_loop(lambda i, s: (s.at[i].set(s[i * 2] + 3),), x),
               np.arange(300).astype(np.int8)),
    "halves": (lambda x: rows_loop(lambda i, s: (s.at[i].add(s[i * 2]),), x),
                TABLE.astype(np.float16)),
}


WORDS, SMALL = np.arange(-4, 3, dtype=np.int32), np.float32([1, -2, np.nan, 4, -0.0, 6, 7])
MOST = np.iinfo(np.int32).max


def edit_distance(a, b, d):
    def row(i, d):
        return lax.fori_loop(1, 8, lambda j, d: d.at[i, j].set(jnp.minimum(jnp.minimum(
            d[i - 1, j] + 1, d[i, j - 1] + 1), d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))), d)
    return lax.fori_loop(1, 8, row, d)


# Tables of few elements that are looked up, and indices of which is known what they may be.
LOOPS |= {
    "edit distance": (edit_distance, WORDS, WORDS[::-1] // 2,
                      np.arange(81, dtype=np.int32).reshape(9, 9)),
    "a small table": (lambda x: rows_loop(lambda i, c: (c * 0.5 + x[i % 7],), 0.0), SMALL),
    "indices that are not there": (lambda x: rows_loop(lambda i, c: (
        c * 0.5 + x[i - 9] + x.at[i - 3].get(mode="clip"), ), 0.0), F7),
    "those that are not filled": (lambda x: rows_loop(lambda i, b, c: (
        b * 0.5 + x.at[i - 9].get(mode="fill", fill_value=2), c + x.at[i - 8].get(
            mode="fill", fill_value=5)), 0.0, 1.0), F7),
    "a table that is a carry": (lambda x: rows_loop(lambda i, s, c: (
        jnp.roll(s, 1) + c, s[i % 7] + s[(2 * i) % 5]), x, 0.5), F7),
    "a table within the body": (lambda x: rows_loop(lambda i, c: (
        (c * jnp.arange(7))[i % 6] + (x - c)[3 - i % 4],), 0.5), F7),
    "its rows": (lambda x: rows_loop(lambda i, s: (s * 0.5 + s[i % 5][None],), x),
                 ROWS[:5]),
    "backwards": (lambda x: lax.while_loop(lambda c: c[0] >= 0, lambda c: (
        c[0] - 1, c[1] + x[c[0]]), (6, 0.0)), F7),
    "a counter that goes down": (lambda x: lax.scan(lambda c, _: (
        (c[0] - 2, c[1] + x[c[0]]), x[c[0] + 1]), (9, 0.0), None, length=8), F7),
    "a counter that wraps around": (lambda x: lax.scan(lambda c, _: (
        (c[0] + MOST // 2, jnp.where(c[0] < 0, c[1] + 1, c[1] * 2) + x[c[0]]), c[0] > 5),
        (jnp.int32(3), 0.5), None, length=9), F7),
    "a counter in two loops": (lambda x: lax.fori_loop(0, 4, lambda i, c: (
        lax.fori_loop(0, 5, lambda j, c: (c[0] + 1, c[1] + jnp.where(
            c[0] < 12, x[c[0] - 3], x[i + j - 7])), c)), (0, 0.0)), F7),
    "what is behind a loop": (lambda x: lax.fori_loop(0, 3, lambda i, s: s + jnp.where(
        lax.fori_loop(0, 5, lambda j, k: k + 1, 2) > 6, x[i], 100.0), 0.0), F7),
    "a counter that a choice changes": (lambda x: lax.fori_loop(0, 9, lambda i, c: (
        lax.cond(c[1] > 0, lambda k: k + 1, lambda k: k - 3, c[0]), c[1] + x[c[0]]),
        (0, 0.0)), F7),
    "the greatest": (lambda x: rows_loop(lambda i, s: (
        s.at[jnp.argmax(s)].add(-1.0).at[jnp.argmin(abs(s))].set(s[jnp.argmax(s) - 1]),), x), F7),
    "bounds of what is computed": (lambda x: rows_loop(lambda i, c, k: (
        jnp.where((i * 3 - 50 < 8) & ~(i > 30) | (k == 70000), c + i, -c),
        jnp.minimum(jnp.maximum(k * k, i), 70000)), x, 1), np.float32(2)),
    "products and sums": (lambda x, y: rows_loop(lambda i, a, b: (
        a * b + y, (b - a * y) * (a - 1) - (y + a) * b), x, y), np.float32(0.3), np.float32(-0.7)),
    "those of numbers": (lambda x, y: rows_loop(lambda i, a, b: (
        a * b + y, (b - a * y) * (i - a) - (y + a) * b), x, y), np.int32(3), np.int32(-7)),
    "a product that is read twice": (lambda x, y: rows_loop(lambda i, a, b: (
        (t := a * b) + y, t - (a + y) * t), x, y), np.float32(0.3), np.float32(-0.7)),
    "products of lines": (lambda x, y: rows_loop(lambda i, a, b: (
        a * b + y, b - a * y), x, y), F3, F3[::-1] * 0.3),
    "rows that are written": (lambda x, y: rows_loop(
        lambda i, a, b: (b, a.at[i - 2].set(b[i] + 1, mode="drop")), x, y),
        F64[:21].reshape(7, 3), F64[21:42].reshape(7, 3)),
    "an array and what it was": (lambda x: rows_loop(
        lambda i, a, b: (a.at[i % 3].set(a[2] * 0.5), a), x, x), F64[:9].reshape(3, 3)),
    "a row by an index beyond": (lambda x, n: lax.fori_loop(
        0, 5, lambda i, c: c.at[n + i].add(i).at[n - i].set(0.5), x), F7, np.int32(5)),
    "runs at computed places": (lambda x: rows_loop(lambda i, y: (lax.dynamic_update_slice(
        y, 0.5 * lax.dynamic_slice(y, (3 * i % 17,), (12,)) + lax.dynamic_slice(x, (i,), (12,)),
        (i % 19 - 1,)),), x), F64[:40]),
    "two ends of a loop": (lambda a, b: lax.while_loop(
        lambda c: (c[0] < 7) & (9 > c[1]) & (c[2][0] < 100),
        lambda c: (c[0] + 1, c[1] + 2, c[2].at[c[0]].set(c[2][c[0] - 1] + c[1])),
        (a, b, jnp.asarray(F7))), np.int32(2), np.int32(-3)),
    "backwards to an end": (lambda x: lax.while_loop(
        lambda c: c[0] >= 0, lambda c: (c[0] - 1, c[1].at[c[0]].add(c[1][c[0] - 1])),
        (jnp.int32(6), x))[1], F7),
    "a counter that runs over": (lambda n: lax.while_loop(
        lambda c: c[0] < 127, lambda c: (c[0] + jnp.int8(3), c[1] + jnp.where(c[0] < 0, 1, 100)),
        (n, jnp.int32(0))), np.int8(125)),
    "an end that moves": (lambda n: lax.while_loop(
        lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1] + c[2], c[2] ^ (c[0] < 9), c[3] + (
            c[0] < 7)), (jnp.int32(0), n, True, 0)), np.int32(6)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_give_what_tier_0_gives(name):
    check(*LOOPS[name])


MATRIX, SQUARE = F64[:12].reshape(3, 4), F64[:9].reshape(3, 3)


def steps(step, x):
    return lax.fori_loop(0, 9, lambda i, c: step(c), x)


def stages(y):
    """A Runge-Kutta step of seven stages, and its error."""
    def step(state):
        t, y, h = state
        k = lax.fori_loop(0, 7, lambda i, k: k.at[i].set(
            jnp.cos(y + h * (F7 @ k)) * t), jnp.zeros((7, 3)))
        error = jnp.sqrt(jnp.mean((h * (F7 @ k)) ** 2))
        return t + 0.1, jnp.where(error < 0.5, y + h * (F7[::-1] @ k), y), jnp.clip(
            h * 0.5 / error, 0.01, 0.2)

    return lax.while_loop(lambda c: (c[0] < 2) & jnp.all(jnp.isfinite(c[1])), step,
                          (0.1, y, 0.1))


def triangle_by_rows(a):
    """The lower factor of a symmetric matrix, by masked rows of it."""
    k = jnp.arange(len(a))

    def row(i, a):
        a = lax.fori_loop(0, i, lambda j, a: a.at[i, j].set((a[i, j] - jnp.dot(
            jnp.where(k < j, a[i], 0), jnp.where(k < j, a[j], 0))) / a[j, j]), a)
        r = jnp.where(k < i, a[i], 0)
        return a.at[i, i].set(jnp.sqrt(abs(a[i, i] - r @ r)))

    return lax.fori_loop(0, len(a), row, a)


# Those that NumPy rounds otherwise.
ROUNDED = {
    "functions and a sum": (lambda x: steps(lambda c: jnp.sin(c) * jnp.exp(-c) + c.sum(), x), F7),
    "a row by a matrix": (lambda x: steps(lambda c: 0.5 * c - 0.1 * (c[:, 1] @ c), x), SQUARE),
    "products of matrices": (lambda x: steps(lambda c: jnp.tanh(c @ c.T) @ c, x), MATRIX),
    "sums of columns": (lambda x: steps(lambda c: c / jnp.sqrt((c * c).sum(0) + 1), x), MATRIX),
    "a derivative": (maxjax.grad(lambda x: lax.scan(
        lambda c, _: (jnp.sin(c) * x, c), x, None, length=9)[0]), np.float32(0.3)),
    "a norm": (lambda x: steps(lambda c: c / jnp.sqrt((c * c).sum()), x), F3),
    "stages": (stages, F3),
    "many lines": (lambda x: steps(lambda c: c * 0.5 + (c.reshape(16, 4).sum(1) + c.reshape(
        4, 16).prod(1).sum())[:, None].repeat(4, 1).ravel() * 0.01, x), F64),
    "a product by columns": (lambda x: steps(lambda c: jnp.tanh(SQUARE @ c[:3]).sum() * c, x), F7),
    "a longer product": (lambda x: steps(
        lambda c: jnp.tanh(c @ F64.reshape(2, 32)[:, :7].T).sum() * c, x), F7),
    "a triangle by rows": (triangle_by_rows, np.resize(F64, (23, 23)) + 23 * np.eye(23, dtype="f")),
    "totals of rows": (lambda x: lax.fori_loop(0, 9, lambda i, s: s.at[i].set(jnp.where(
        s[i] > s[i + 1].sum(), s[i] - 0.1 * s[i + 2] @ s[i], s[i + 1] * s[i].mean())
        - jnp.square(s[i]).sum() * 0.01), x), np.resize(F64, (12, 90))),
    "a factor": (lambda x: steps(lambda c: jnp.linalg.cholesky(
        c @ c.T + 3 * jnp.eye(3)) * 0.5, x), SQUARE),
}
# Reductions, calls of the pack and what they are computed of, which are in memory.
LOOPS |= {
    "reductions of numbers": (lambda x: rows_loop(lambda i, a, b: (
        a + b.sum(), jnp.stack([b.max(), b.min(), a & 7, b.prod() % 5, i])), 0, x), WORDS[:5]),
    "whether all are": (lambda x: lax.while_loop(
        lambda c: jnp.all(c[1] < 90) | (c[0] < 3), lambda c: (
            c[0] + 1, jnp.where(jnp.any(c[1] > 50), c[1] + 2, c[1] * 1.5)), (0, x)), abs(F3) + 1),
    "the greatest of lines": (lambda x: steps(lambda c: (c - c.max(1)[:, None]) * 2, x), MATRIX),
    "a mask that is written": (lambda x: rows_loop(lambda i, s: (
        s.at[i % 9].set(~s[(i * 5) % 7]),), x), F7 > 0),
    "two that are written": (lambda x: rows_loop(lambda i, s: (
        s.at[jnp.stack([i - 3, i % 5])].set(jnp.stack([s[i % 7], 2.0])),), x), F7),
    "rows that are written": (lambda x: rows_loop(lambda i, s: (
        s.at[i % 7].set(s[(i * 2) % 5] * 0.5),), x), ROWS[:5]),
    "the order of few": (lambda x: rows_loop(lambda i, s: (
        jnp.sort(s)[jnp.argsort(-s)] * 0.5 + s[jnp.argmin(s)],), x), F3),
    "one element of all, and all anew": (lambda x: rows_loop(lambda i, s: (
        (s - s[3]) * 0.5 + s[2] * x,), x), F64[:40]),
    "a long one, read and written": (lambda x: rows_loop(lambda i, s, t: (
        jnp.where(s > t, t - s * 2, s + 0.5), abs(s) - t), x, x[::-1]), F64[:33]),
    "more elements": (lambda x: rows_loop(lambda i, s: (
        jnp.where(s[::-1] > 0, s * 0.5, s + s.max()) - s[5],), x), np.tile(F64, 2)[:117]),
    "how often each is there": (lambda k, x: rows_loop(lambda i, s, t: (
        s.at[k[i % 7]].add(1), t.at[abs(k[i % 5])].multiply(1.5)), k, x), WORDS, F7),
    "divided and shifted by numbers": (lambda n, m: rows_loop(lambda i, a, b: (
        (a * 75 + 74) % 65537 // 3, b // 7 ^ (b << 3) ^ (b >> 40) + i % 6 + a.astype(b.dtype)),
        n, m), np.int32(-9), np.uint32(9)),
    "elements of masked rows": (lambda x: rows_loop(lambda i, s, c: (s.at[i].set(jnp.where(
        jnp.arange(45) < i, s[i], s[i // 2]) * c), jnp.max(jnp.where(s[i + 1] > c, c, s[i + 1]))
        * 0.5), x, 1.0), np.resize(F64, (22, 45))),
    "a choice of long ones": (lambda x: rows_loop(lambda i, s: (lax.switch(i % 3, [
        lambda s: s[::-1], lambda s: s * 2, lambda s: s.at[i % 7].set(0.5)], s),), x), F7),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_what_is_rounded(name):
    function, x = ROUNDED[name]
    program, plan = planned(function, x)
    check(function, x, loops=len(codes(plan.tape)), tolerance=1e-5)
    assert codes(plan.tape)


SPECIAL = [0.0, -0.0, 0.5, 1.0, -1.5, 2.5, 1e-40, 3e9, -3e9, np.inf, -np.inf, np.nan]


def values_of(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype in dtypes.FLOATS:
        with np.errstate(over="ignore"):
            return np.array(SPECIAL).astype(dtype)
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, 31, info.max, info.max - 1, info.min, info.min + 1], dtype)


OPERATIONS = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem,
    "max": lax.max, "min": lax.min, "eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le,
    "gt": lax.gt, "ge": lax.ge, "and": lax.bitwise_and, "or": lax.bitwise_or,
    "xor": lax.bitwise_xor, "not": lax.bitwise_not, "neg": lax.neg, "abs": lax.abs,
    "sign": lax.sign, "floor": lax.floor, "ceil": lax.ceil, "is_finite": lax.is_finite,
    "sqrt": lax.sqrt, "exp": lax.exp, "log": lax.log, "sin": lax.sin, "tanh": lax.tanh,
    "pow": lax.pow, "atan2": lax.atan2, "round": lax.round, "shift_left": lax.shift_left,
    "shift_right_logical": lax.shift_right_logical,
    "shift_right_arithmetic": lax.shift_right_arithmetic, "clz": lax.clz,
    "population_count": lax.population_count,
    "select": lambda a, b: lax.select(a == b, a, b),
    **{f"convert to {dtype}": lambda a, dtype=dtype: lax.convert_element_type(a, dtype)
       for dtype in ("bool", "int8", "uint8", "int32", "uint32", "int64", "float32", "bfloat16",
                     "float64")},
}


def one_by_one(operation, x, *rest):
    """A loop that cannot be seen to be none: the first operand is carried."""
    following = jnp.concatenate([x[1:], x[:1]])
    return lax.scan(lambda carry, xs: (xs[0], operation(carry, *xs[1:])), x[0],
                    (following, *rest))[1]


@pytest.fixture
def wide():
    with maxjax.enable_x64(True):
        yield


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "uint32", "int64", "float64", "int8",
                                   "uint64", "bfloat16", "float16"])
def test_one_element_is_computed_as_many_are(dtype):
    """Each operation on all pairs of special values: one by one in a loop, three at a time, and
    all together by the vector machine."""
    x = values_of(jnp.dtype(dtype))
    failures, tried = [], 0
    for name, operation in OPERATIONS.items():
        count = operation.__code__.co_argcount - len(operation.__defaults__ or ())
        args = np.stack([np.repeat(x, len(x)), np.tile(x, len(x))])[:count]
        try:
            maxjax.make_jaxpr(operation)(*args)
        except TypeError:
            continue        # not for this dtype
        tried += 1
        with np.errstate(all="ignore"):
            program, plan = planned(operation, *args)
            whole, = mojo_programs.without_kernels(plan, program.opened.jaxpr)(
                [*program.consts, *args])
            for width in (1, 2, 3):
                lines = [np.resize(a, (a.size // width, width)[:width]) for a in args]
                one, plan = planned(functools.partial(one_by_one, operation), *lines)
                assert codes(plan.tape)
                found, = mojo_programs.without_kernels(plan, one.opened.jaxpr)(
                    [*one.consts, *lines])
                expected = whole[:found.size].reshape(found.shape)
                same = (found == expected) & (
                    np.signbit(found.astype(np.float64)) == np.signbit(expected.astype(np.float64)))
                if not np.all(same | (found != found) & (expected != expected)):
                    failures.append(f"{name} by {width}")
    assert not failures, failures
    assert tried > 15


def test_the_machine_itself_computes_what_is_cheap():
    names = singles()
    assert {"vector_add_float32", "vector_select_32", "vector_convert_int32_float32"} <= set(names)
    assert not any(name.startswith(("vector_sin", "vector_exp")) for name in names)
    assert set(names) <= {*mojo_programs.pack().names}
    assert KERNELS


# --- what is none of them -------------------------------------------------------------------------

@pytest.mark.parametrize("function, x", [
    (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x), np.zeros(129, np.float32)),
    (lambda x: lax.fori_loop(0, 3, lambda i, c: c + jnp.ones((9, 9)).sum() * c, x), F7),
    (lambda x: lax.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1]), (x, jnp.zeros((0,)))), F7),
    # Large arrays of which two values are needed at a time, or all elements.
    (lambda x: rows_loop(lambda i, a, b: (b, a.at[i].set(2.0)), x, x + 1), TABLE),
    (lambda x: rows_loop(lambda i, a, b: (a.at[i].set(b[i] + 2), a), x, x + 1), TABLE),
    (lambda x: rows_loop(lambda i, s, c: (s.at[i].add(c), c + s[s.at[i].add(1.0)[i].astype(int)]),
                         x, 1.0), TABLE),
    (lambda x: rows_loop(lambda i, s: (jnp.where(i > 3, s.at[i].set(1.0), s + 1),), x), TABLE),
    (lambda x: rows_loop(lambda i, a, b: lax.cond(
        i > 3, lambda a, b: (b.at[i].set(1.0), a), lambda a, b: (a, b), a, b), x, x + 1), TABLE),
    (lambda x: rows_loop(lambda i, s: (lax.dynamic_update_slice(s, s[:140], (i,)),), x), TABLE),
])
def test_other_loops(function, x):
    program, plan = planned(function, x)
    assert not any(item.opcode == "write" for code in codes(plan.tape)
                   for item in every_instruction(code.items)), plan.source
    values = [*program.consts, x]
    for ours, theirs in zip(mojo_programs.without_kernels(plan, program.opened.jaxpr)(values),
                            program.tier0(*values), strict=True):
        np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-6)


def test_a_loop_in_a_larger_one():
    check(lambda x: lax.fori_loop(0, 3, lambda i, c: c * lax.fori_loop(
        0, i, lambda j, s: s + j, jnp.int32(1)), x), np.ones(1000, np.float32))


def test_code_is_read_by_people():
    _, plan = planned(LOOPS["while in a loop"][0], np.int32(0))
    for part in ("repeat:", "while:", "rem_int32(", "load(operand 1)"):
        assert part in plan.uncompiled_source, plan.uncompiled_source
    for part in ("loop: add", "while True:", "Rem.elementwise", "a loop over few elements"):
        assert part in plan.source, plan.source


def test_runs_are_moved_by_the_machine_itself():
    """Each call of a function that copies windows takes as long as many instructions."""
    _, plan = planned(*LOOPS["runs at computed places"])
    code, = codes(plan.tape)
    assert "window" not in str(code)


def test_slices_that_are_joined_are_copied_once():
    _, plan = planned(lambda x: lax.fori_loop(
        0, 9, lambda i, x: jnp.roll(x, 1) + jnp.roll(x[::-1], -2), x), F64)
    code, = codes(plan.tape)
    assert sum(x.elements for x in every_instruction(code.items)
               if x.opcode == "move") <= 3 * F64.size, str(code)
    check(lambda x: lax.fori_loop(
        0, 9, lambda i, x: jnp.roll(x, 1) + jnp.roll(x[::-1], -2), x), F64)


def test_what_is_known_of_an_index_is_not_computed():
    """Nothing compares a counter that is known to be a row's number."""
    _, plan = planned(*LOOPS["edit distance"])
    code, = codes(plan.tape)
    assert not {"lt", "le", "ge", "select", "max"} & {
        x.name for x in every_instruction(code.items)}, str(code)


def test_two_operations_are_one_instruction():
    """A product, and the sum that alone reads it."""
    _, plan = planned(*LOOPS["products and sums"])
    code, = codes(plan.tape)
    numbers = np.array(code.words(
        dict.fromkeys(code.functions, 1), lambda integers: 0, lambda step, places: 0))
    opcodes = numbers.reshape(-1, 5)[:, 3] >> 32
    first = len(SCALAR_OPCODES) + len(singles())
    assert np.count_nonzero(opcodes >= first) == 4, str(code)
    assert {*pairs().values()} == {*range(len(singles()), len(singles()) + len(pairs()))}


def test_operations_on_elements_are_one_instruction():
    """They work on three elements at once; a number is one for all of them."""
    _, plan = planned(lambda x, y: lax.fori_loop(
        0, 9, lambda i, c: jnp.sqrt(jnp.abs(c / y)) * 0.9, x), F3, F3[::-1])
    code, = codes(plan.tape)
    numbers = np.array(code.words(
        dict.fromkeys(code.functions, 1), lambda integers: 0, lambda step, places: 0))
    opcodes = numbers.reshape(-1, 5)[:, 3] >> 32
    several = opcodes >= len(SCALAR_OPCODES) + own_operations()
    elements = numbers.reshape(-1, 5)[several, 3] & 0xFFFFFFFF
    assert list(elements) == [3] * 4, str(code)


def test_a_row_is_written_in_place():
    """Nothing is called or copied."""
    _, plan = planned(stages, F3)
    code, = codes(plan.tape)
    loop = next(x for x in every_loop(code.items) if any(
        getattr(y, "assigned", "") for y in x.body))
    row = next(y for y in loop.body if getattr(y, "assigned", ""))
    assert row.results == row.sources[:1], str(code)
    assert not any(getattr(y, "opcode", "") == "move" and y.target is row.results[0]
                   for y in loop.body), str(code)
    assert not any(name.startswith("scatter") for name in code.functions)


def every_loop(items):
    for item in items:
        if isinstance(item, Repeat):
            yield item
            yield from every_loop(item.body)


def test_a_carry_is_computed_where_it_is_read():
    """No copies in the body of the first loop."""
    _, plan = planned(*LOOPS["float32"])
    code, = codes(plan.tape)
    body = next(x for x in code.items if isinstance(x, Repeat)).body
    assert [x.opcode for x in body] == ["apply"] * len(body), str(code)


@pytest.mark.parametrize("change, message", [
    (lambda x, code: x._replace(sources=(x.target, x.target)), "read before it is written"),
    (lambda x, code: x._replace(function=""), "its function"),
    (lambda x, code: x._replace(opcode="fly"), "no such instruction"),
    (lambda x, code: x._replace(elements=2), "its sizes"),
    (lambda x, code: x._replace(target=code.items[0].target), "an invariant is written"),
])
def test_code_that_is_wrong_is_refused(change, message):
    _, plan = planned(lambda x: lax.fori_loop(0, 5, lambda i, c: (c * 2 + 1) * c, x), 0.5)
    code, = codes(plan.tape)
    check_loop(code)
    loop = next(x for x in code.items if isinstance(x, Repeat))
    code.items[0].target.invariant = True
    loop.body[0] = change(loop.body[0], code)
    with pytest.raises(InternalError, match=re.escape(message)):
        check_loop(code)


def test_registers_do_not_overlap():
    _, plan = planned(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 2 + 1, x), F7)
    code, = codes(plan.tape)
    code.items[0].target.offset += 8
    with pytest.raises(InternalError, match="overlaps|aligned"):
        check_loop(code)


def test_loops_above_a_limit_are_left_alone(monkeypatch):
    for limit in ("_MOST_BYTES", "_MOST_INSTRUCTIONS"):
        with monkeypatch.context() as patch:
            patch.setattr(loop_registers, limit, 1)
            program = Program(maxjax.make_jaxpr(LOOPS["float32"][0])(0.5))
            assert MACHINE not in Plan(program.opened.jaxpr, 1).functions
