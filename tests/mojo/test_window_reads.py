"""Loops whose groups read windows at computed places where they are, and others that only look like
them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._max.mojo import window_reads
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

STEPS = 4
# The shape of an array, where a window of it begins, and its size.
WINDOWS = {
    "column": ((9, 8), lambda i: (0, i), (9, 1)), "columns": ((9, 8), lambda i: (0, 2 - i), (9, 3)),
    "row": ((9, 8), lambda i: (i + 7, 0), (1, 8)), "block": ((9, 8), lambda i: (i - 1, 2), (4, 5)),
    "last": ((5, 7, 4), lambda i: (1, i + 3, 0), (3, 1, 2)),
    "cube": ((5, 7, 4), lambda i: (1, i, i - 1), (3, 2, 4)),
    "run": ((20,), lambda i: (4 * i - 1,), (9,)), "one": ((9, 8), lambda i: (i, i + 1), (1, 1))}
# What is computed of a window and another value of its shape, in which all dimensions are there.
USES = {
    "elementwise": lambda w, v: w * 2 + v,
    "twice": lambda w, v: w - w[::-1] * v,
    "a part": lambda w, v: (w[-1:] + v).at[:1].multiply(2),
    "turned": lambda w, v: (w.T[::-1] + v.T).T,
    "total": lambda w, v: v + jnp.sum(w * v),
    "normalized": lambda w, v: jnp.exp(w - jnp.max(w, -1, keepdims=True)) + v,
    "by rows": lambda w, v: v + jnp.sum(w, -1, keepdims=True),
    "by columns": lambda w, v: v + jnp.sum(w * w, 0, keepdims=True),
    "spread": lambda w, v: v + jnp.max(w[..., None] - v.reshape(-1)[:3], -1),
    "of its first": lambda w, v: v * w.reshape(-1)[0],
}


def alone(use, x, v, window, there):
    return x, use(window(x, there), v)


def written_between(use, x, v, window, there):
    w = window(x, there)
    x = x.at[..., 0].add(1)
    return x, use(w, v) + x.reshape(-1)[0]


def written_later(use, x, v, window, there):
    v = use(window(x, there), v)
    return lax.dynamic_update_slice(x, (v * 0.5).astype(x.dtype), there), v


def written_elsewhere(use, x, v, window, there):
    """The window that is computed may have some of the one that is read."""
    other = (*there[:-1], there[-1] + 1)
    new = use(window(x, there), window(x, other))
    return lax.dynamic_update_slice(x, new.astype(x.dtype), other), v


def renewed(use, x, v, window, there):
    w = window(x, there)
    return x[::-1] * 0.5, use(w, v)


def read_by_others(use, x, v, window, there):
    w = window(x, there)
    return x, jnp.sort(w, -1) + use(w, v)


def two_windows(use, x, v, window, there):
    other = tuple([start - 1 for start in there])
    return x, use(window(x, there), v) - window(x, other)


def in_a_loop_within(use, x, v, window, there):
    return x, lax.fori_loop(0, 2, lambda j, v: use(window(x, (*there[:-1], there[-1] + j)), v), v)


AROUND = (alone, written_between, written_later, written_elsewhere, renewed, read_by_others,
          two_windows, in_a_loop_within)
DTYPES = ("float32", "float64", "complex64", "int32", "int16")


def program(name, use, around, dtype):
    shape, starts, size = WINDOWS[name]

    def window(x, there):
        return lax.dynamic_slice(x, there, size)

    def run(x, v):
        def body(i, state):
            x, v = state
            x_, v_ = around(USES[use], x, v, window, starts(i))
            return x_.astype(x.dtype), (v_ * 0.25).astype(v.dtype)
        return lax.fori_loop(0, STEPS, body, (x, v))

    with maxjax.enable_x64(dtype == "float64"):
        data = ((np.arange(np.prod(shape)).reshape(shape) * 7 % 13) - 5).astype(dtype)
        args = data, (np.arange(np.prod(size)).reshape(size) % 4 - 1).astype(dtype)
        drawn = Program(maxjax.make_jaxpr(run)(*args))
        return mojo_programs.Item(f"{name}, {use}, {around.__name__}, {dtype}", drawn,
                                  [*drawn.consts, *args]).plan()


def kinds():
    """Each window in each use, and with what else may be there; uses and dtypes in turn."""
    uses, dtypes = itertools.cycle(USES), itertools.cycle(DTYPES)
    for name, use in itertools.product(WINDOWS, USES):
        yield name, use, alone, next(dtypes)
    for name, around in itertools.product(WINDOWS, AROUND[1:]):
        yield name, next(uses), around, "float32"
        yield name, "elementwise", around, next(dtypes)


def suited(kind):
    """Complex numbers are not ordered, and integers have no exponential."""
    _, use, around, dtype = kind
    is_ordered = use in ("normalized", "spread") or around is read_by_others
    return not (is_ordered and dtype == "complex64" or use == "normalized" and dtype[0] == "i")


@pytest.fixture
def read_there(monkeypatch):
    """What becomes of each window that a group might read."""
    return mojo_programs.seen(monkeypatch, window_reads, "read_where_it_is")


def test_windows_read_where_they_are(monkeypatch, read_there):
    mojo_programs.fill_unwritten(monkeypatch, 0x75)
    items = [program(*kind) for kind in kinds() if suited(kind)]
    assert sum(x is not None for x in read_there) > len(items) // 2
    assert sum(x is None for x in read_there) > 10
    mojo_programs.build(items)
    mojo_programs.check_all(items)


def test_columns_are_not_copied(read_there):
    """Nothing of a rank-2 update by columns moves elements but what computes."""
    def run(c, a, b):
        def row(i, c):
            return lax.fori_loop(0, 50, lambda j, c: c.at[i].add(
                a[:, j] * b[i, j] + b[:, j] * a[i, j]), c)
        return lax.fori_loop(0, 60, row, c)

    args = [np.ones(shape, np.float32) for shape in ((60, 60), (60, 50), (60, 50))]
    drawn = Program(maxjax.make_jaxpr(run)(*args))
    item = mojo_programs.Item("rank 2", drawn, [*drawn.consts, *args]).plan()
    assert len(read_there) >= 4 and None not in read_there
    assert "copy_fixed[DType.uint32, 60" not in "".join(kernel.source for kernel in item.kernels)


def test_what_is_overwritten_is_read_before(read_there):
    program("column", "elementwise", written_between, "float32")
    assert read_there == []
