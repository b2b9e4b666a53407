"""Loops that compute a window of an array anew where it is, and others that only look like them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._max.mojo import loop_function
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

STEPS = 5
WINDOWS = {
    "column": lambda i: ((0, i), (9, 1)), "columns": lambda i: ((0, 2 - i), (9, 3)),
    "block": lambda i: ((i - 1, 2), (4, 5)), "last": lambda i: ((1, i + 3, 0), (3, 1, 2)),
    "run": lambda i: ((4 * i - 1,), (9,))}
# Of the window as it was, another value of its shape, and the array.
ANEW = {
    "scaled": lambda old, v, x: old * 2 - v,
    "constant": lambda old, v, x: jnp.where(old > 3, old, 1),
    "turned": lambda old, v, x: old[::-1] + v,
    "twice": lambda old, v, x: old - old[::-1],
    "with the array": lambda old, v, x: old + x.reshape(-1)[0],
    "summed": lambda old, v, x: old - jnp.sum(old),
}


def alone(x, v, old, new, starts):
    return lax.dynamic_update_slice(x, new, starts), v


def old_read_later(x, v, old, new, starts):
    x = lax.dynamic_update_slice(x, new, starts)
    return lax.dynamic_update_slice(x, old, (0,) * x.ndim), v


def new_read_later(x, v, old, new, starts):
    return lax.dynamic_update_slice(x, new, starts), v + jnp.sum(new)


def array_read_between(x, v, old, new, starts):
    return lax.dynamic_update_slice(x, new, starts), v + jnp.sum(x)


def array_read_later(x, v, old, new, starts):
    return lax.dynamic_update_slice(x, new, starts) + x, v


def elsewhere(x, v, old, new, starts):
    return lax.dynamic_update_slice(x, new, (*starts[:-1], starts[-1] + 1)), v


def two_in_turns(x, v, old, new, starts):
    x = lax.dynamic_update_slice(x, new, starts)
    there = [start + 1 for start in starts]
    return lax.dynamic_update_slice(x, lax.dynamic_slice(x, there, new.shape) + v, there), v


AROUND = (alone, old_read_later, new_read_later, array_read_between, array_read_later, elsewhere,
          two_in_turns)
DTYPES = ("float32", "int32", "uint8", "bool", "complex64", "int16")


def program(window, anew, around, dtype):
    rank = len(WINDOWS[window](0)[0])
    shape = {1: (20,), 2: (9, 8), 3: (5, 7, 4)}[rank]
    size = WINDOWS[window](0)[1]
    is_bool = dtype == "bool"
    data = (np.arange(np.prod(shape)).reshape(shape) * 7 % 5).astype(dtype)

    def run(x, v):
        def body(i, state):
            x, v = state
            starts, _ = WINDOWS[window](i)
            old = lax.dynamic_slice(x, starts, size)
            if is_bool:
                new = ~old | v if anew == "scaled" else old ^ v
            else:
                new = ANEW[anew](old, v, x).astype(x.dtype)
            return tuple([a.astype(x.dtype) for a in around(x, v, old, new, starts)])
        return lax.fori_loop(0, STEPS, body, (x, v))

    args = data, data[tuple(slice(part) for part in size)]
    drawn = Program(maxjax.make_jaxpr(run)(*args))
    return mojo_programs.Item(f"{window}, {anew}, {around.__name__}, {dtype}", drawn,
                              [*drawn.consts, *args]).plan()


def kinds():
    """Each window with each value, each of them with what else is there, and the dtypes in turn."""
    pairs = [(window, anew, alone) for window in WINDOWS for anew in ANEW]
    pairs += [(window, "scaled", around) for window in WINDOWS for around in AROUND[1:]]
    pairs += [("column", anew, around) for anew in ("twice", "constant") for around in AROUND[1:]]
    for (window, anew, around), dtype in zip(pairs, itertools.cycle(DTYPES)):
        if dtype == "complex64" and anew == "constant":
            dtype = "float32"
        yield window, anew, around, dtype
        if dtype != "float32":
            yield window, anew, around, "float32"


def fused_seen(monkeypatch):
    """What becomes of each update of a window."""
    return mojo_programs.seen(monkeypatch, loop_function, "fused")


def test_windows_computed_where_they_are(monkeypatch):
    mojo_programs.fill_unwritten(monkeypatch, 0x75)
    found = fused_seen(monkeypatch)
    items = [program(*kind) for kind in kinds()]
    assert sum(x is not None for x in found) > len(WINDOWS) * 4, found
    mojo_programs.build(items)
    mojo_programs.check_all(items)


@pytest.mark.parametrize("x64", [False, True])
def test_a_column_by_one_index_is_one_window(monkeypatch, x64):
    """In 64 bits too what is read and what is written begin at one place."""
    def one(x):
        def step(state):
            i, x = state
            return i + 1, x.at[i].set(x[i] * 2 + 1)
        return lax.while_loop(lambda state: state[0] < 50, step, (0, x))[1]

    found = fused_seen(monkeypatch)
    with maxjax.enable_x64(x64):
        x = np.arange(3200, dtype=np.float32).reshape(64, 50)
        drawn = Program(maxjax.make_jaxpr(maxjax.vmap(one))(x))
        item = mojo_programs.Item("a column", drawn, [*drawn.consts, x]).plan()
    assert [x is not None for x in found] == [True]
    mojo_programs.build([item])
    mojo_programs.check_all([item])
