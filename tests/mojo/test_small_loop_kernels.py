"""Loops over few elements as kernels give what the machine's code gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from tests.mojo.test_small_loops import (
    F7,
    F64,
    HALF,
    LOOPS,
    ROUNDED,
    planned,
    values_of,
    wide,  # noqa: F401  (a fixture)
)

pytestmark = pytest.mark.xdist_group("mojo")


def bits_of(x: np.ndarray) -> bytes:
    """All that is told of values: what is no number has no sign."""
    return np.where(np.isnan(x), np.nan, x).tobytes() if x.dtype.kind == "f" else x.tobytes()


def check_kernels(names, loops=None):
    """They give what the machine gives, to the bit; they are built together."""
    made = []
    for name in names:
        function, *args = (LOOPS | ROUNDED if loops is None else loops)[name]
        program, plan = planned(function, *args)
        if plan.kernels:
            made.append((name, program, plan, [*program.consts, *map(np.asarray, args)]))
    assert len(made) > len(names) // 2
    mojo_programs.store().build([source for _, _, plan, _ in made for source in plan.kernels])
    failures = []
    for name, program, plan, values in made:
        results = [run(plan, program.opened.jaxpr)(values)
                   for run in (mojo_programs.executable, mojo_programs.without_kernels)]
        if [bits_of(x) for x in results[0]] != [bits_of(x) for x in results[1]]:
            failures.append(f"{name}: {results[0]}, not {results[1]}")
    assert not failures, "\n".join(failures)


def test_loops_are_kernels_as_well():
    check_kernels(["mixed", "while in a loop", "lines", "results backwards", "slices and a stack",
                   "a choice of many", "the value before is read, too", "rows that are not there",
                   "one in a loop within", "rows that do not move", "stages", "many lines",
                   "a factor", "whether all are", "two that are written", "bits", "random bits",
                   "one element of all, and all anew", "a long one, read and written",
                   "how often each is there", "divided and shifted by numbers",
                   "elements of masked rows", "a triangle by rows", "totals of rows",
                   "the smaller and larger are kept", "the smaller and larger of a few",
                   "the smaller of rows"])


@pytest.mark.exhaustive
def test_all_kernels():
    check_kernels(LOOPS | ROUNDED)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_with_vectors_add_as_the_machine_does(dtype):
    """Also terms that no vector is filled by, and that one is filled by half."""
    def turns(x, a, b):
        return lax.fori_loop(0, 3, lambda i, x: jnp.sin(b @ (a @ x)), x)

    def sides(x, a, b):
        return lax.fori_loop(0, 3, lambda i, x: jnp.cos(x @ b @ a) - (a.T @ (x @ b).T), x)

    loops, random = {}, np.random.default_rng(3)
    for m, k in ((1, 5), (2, 3), (3, 33), (4, 4), (5, 17), (6, 8), (7, 16), (8, 8), (10, 10)):
        x, a, b = (random.normal(size=size).astype(dtype) for size in (k, (m, k), (k, m)))
        loops |= {f"turns {m} {k}": (turns, x, a, b), f"sides {m} {k}": (sides, x, a, b)}
    with maxjax.enable_x64(dtype == "float64"):
        check_kernels(loops, loops)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "int8"])
def test_positions_and_cumulative_operations_of_few(dtype):
    """In the kernel's text, with numbers that are equal, that are none, and that overflow."""
    special = values_of(np.dtype(dtype))
    if dtype in ("float32", "float64"):
        special = np.r_[special, np.finfo(dtype).max, -np.finfo(dtype).max, np.finfo(dtype).tiny]
    random, loops = np.random.default_rng(5), {}

    def positions(xs):
        def step(found, x):
            a, b = jnp.argmax(x, -1), jnp.argmin(x, 0)
            return found + a.sum(), (a, b)

        return lax.scan(step, jnp.int32(0).astype(jnp.asarray(0).dtype), xs)

    def lines(xs):
        def step(last, x):
            return x, (jnp.cumsum(x - last, -1), jnp.cumprod(x, -1), lax.cummax(x, x.ndim - 1),
                       lax.cumsum(x, x.ndim - 1, reverse=True),
                       lax.cummin(x, x.ndim - 1, reverse=True))

        return lax.scan(step, xs[0], xs)

    for shape in ((1,), (2,), (3,), (7,), (12,), (16,), (3, 3), (2, 8), (4, 13), (33,)):
        few = random.choice(special[1:4], (20, *shape))
        xs = np.concatenate([few, random.choice(special, (60, *shape))]).astype(dtype)
        loops |= {f"positions {shape}": (positions, xs), f"lines {shape}": (lines, xs)}
    with np.errstate(all="ignore"):
        check_kernels(loops, loops)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_broadcasts_are_gone_through_by_lines(dtype):
    """Rows and columns with matrices that are written in place, in lines that vectors are filled by
    and that they are not; their sums and extremes."""
    def turn(i, state):
        m, rows, columns, mask = state
        m = jnp.where(mask[:, None], m - columns[:, None], rows[None] - m) + rows * (i % 3)
        d = columns[:, None] - rows
        return (m * m[0] - m[:, 1:2], rows - d.max(0) + abs(m).min(0),
                columns + d.sum(1).astype(dtype) - m.max(1), (m > rows).all(1) ^ mask)

    def exponentials(i, state):
        m, rows, columns, mask = state
        m = jnp.exp(-abs(m - rows)) * columns[:, None]
        return m, jnp.sin(rows + m.sum(0)), columns - m.max(1) / 2, ~mask

    random, loops = np.random.default_rng(7), {}
    for shape in ((3, 5), (6, 8), (7, 9), (9, 11), (5, 20), (8, 16), (9, 14), (5, 24)):
        args = [(random.normal(size=size) * 3).astype(dtype)
                for size in (shape, shape[1:], shape[:1])]
        for body in (turn, exponentials) if dtype == "float32" else (turn,):
            loops[f"{body.__name__} {shape}"] = (
                lambda *args, body=body: lax.fori_loop(0, 4, body, args), *args, args[2] > 0)
    with np.errstate(all="ignore"):
        check_kernels(loops, loops)


def means(i, x):
    """Each cell becomes the mean of those around it."""
    j, k = i // 3 % 3, i % 3
    return lax.dynamic_update_slice(
        x, jnp.mean(lax.dynamic_slice(x, (j, k), (3, 3)))[None, None], (j + 1, k + 1))


@pytest.mark.parametrize("step, x, is_own", [
    (means, np.eye(5, dtype=np.float32), True),
    (lambda i, x: x.at[i % 7].set(x[i // 2]) * 0.5, F7, True),
    (lambda i, x: jnp.sort(x)[::-1] * 0.5, F7, False),
    (lambda i, x: x * 0.5 + x[::-1], np.float32(F64), False)])
def test_short_registers_are_in_a_kernel_s_own_memory(step, x, is_own):
    """But for those that functions of the pack are called on, and for long ones."""
    text = planned(lambda x: lax.fori_loop(0, 25, step, x), x)[1].source.partition("& 63)")[2]
    assert text and ("block.unsafe_offset" not in text) == is_own, text
    assert ("= FixedArray[" in text) >= is_own, text


def test_loops_of_other_lengths_share_a_kernel():
    kernels = [[*planned(lambda x, n=n: lax.fori_loop(0, n, lambda i, c: c * 2 + i, x), HALF)[1]
                .kernels] for n in (5, 6)]
    assert kernels[0] == kernels[1] and len(kernels[0]) == 1
