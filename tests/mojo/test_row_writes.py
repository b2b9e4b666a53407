"""Loops whose groups write rows of arrays where they are, and others that only look like them."""

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

STEPS, ROWS, COLUMNS = 6, 9, 21
# Where a row is, in the steps of a loop: also before the first and behind the last one.
PLACES = {"in order": lambda i: i, "from the end": lambda i: -1 - i, "outside": lambda i: 3 * i - 4,
          "the same": lambda i: 0 * i + 4}
# What is written of a row, a matrix and the array itself.
ANEW = {
    "scaled": lambda v, a, c, i: v * 2 + i,
    "a column": lambda v, a, c, i: a[:, i] * v,
    "two columns": lambda v, a, c, i: a[:, i] * a[i, 2] + a[:, i + 1] - v,
    "masked": lambda v, a, c, i: jnp.where(jnp.arange(COLUMNS) <= i + 7, v, 1),
    "turned": lambda v, a, c, i: v[::-1] - a[:, i][::-1],
    "a constant": lambda v, a, c, i: jnp.full_like(v, 3),
    "of the array": lambda v, a, c, i: c[i + 1] + v,
    "of the row": lambda v, a, c, i: c[i] * 2 - v,
    "of its sum": lambda v, a, c, i: v - jnp.sum(v),
}


def alone(c, v, new, write):
    return write(c, new), v


def read_later(c, v, new, write):
    return write(c, new), v + new


def array_read_later(c, v, new, write):
    c = write(c, new)
    return c, v - c[2]


def array_read_before(c, v, new, write):
    return write(c, new), v - jnp.sum(c, 0)


def twice(c, v, new, write):
    return write(write(c, new), new + 1), v


def in_a_choice(c, v, new, write):
    return lax.cond(v[0] > 0, lambda: write(c, new), lambda: c * 2), -v


AROUND = (alone, read_later, array_read_later, array_read_before, twice, in_a_choice)
KINDS = ("set", "add", "multiply", "max")
DTYPES = ("float32", "float64", "int32", "int64", "int16")


def program(place, anew, around, kind, dtype):
    def run(c, v, a):
        def body(i, state):
            c, v = state
            new = ANEW[anew](v, a, c, i).astype(c.dtype)
            c_, v_ = around(c, v, new, lambda c, new: getattr(c.at[PLACES[place](i)], kind)(new))
            return c_, v_.astype(v.dtype)
        return lax.fori_loop(0, STEPS, body, (c, v))

    with maxjax.enable_x64(dtype in ("float64", "int64")):
        c, v, a = ((np.arange(np.prod(shape)).reshape(shape) * 7 % 11 - 4).astype(dtype)
                   for shape in ((ROWS, COLUMNS), (COLUMNS,), (COLUMNS, ROWS)))
        drawn = Program(maxjax.make_jaxpr(run)(c, v, a))
        return mojo_programs.Item(f"{place}, {anew}, {around.__name__}, {kind}, {dtype}", drawn,
                                  [*drawn.consts, c, v, a]).plan()


def kinds():
    """Each value in each place, and with what else may be there; the others in turn."""
    ways, dtypes = itertools.cycle(KINDS[:2]), itertools.cycle(DTYPES)
    for place, anew in itertools.product(PLACES, ANEW):
        yield place, anew, alone, next(ways), next(dtypes)
    for anew, around in itertools.product(("scaled", "a column", "of the row"), AROUND[1:]):
        yield "in order", anew, around, "add", next(dtypes)
        yield "outside", anew, around, "set", "float32"
    for kind in KINDS:
        yield "from the end", "a column", alone, kind, "float32"


@pytest.fixture
def written_there(monkeypatch):
    """What becomes of each row that a group might write."""
    return mojo_programs.seen(monkeypatch, loop_function, "writing_row")


def test_rows_written_where_they_are(monkeypatch, written_there):
    mojo_programs.fill_unwritten(monkeypatch, 0x75)
    items = [program(*each) for each in kinds()]
    assert sum(x is not None for x in written_there) > len(items) // 3
    mojo_programs.build(items)
    mojo_programs.check_all(items)


@pytest.mark.parametrize("kind", ["set", "add"])
def test_a_row_is_one_kernel(kind, written_there):
    item = program("in order", "two columns", alone, kind, "float32")
    assert written_there and None not in written_there
    source = "".join(kernel.source for kernel in item.kernels)
    assert "scatter_fixed" not in source


def test_what_is_read_has_its_buffer(written_there):
    program("in order", "scaled", read_later, "set", "float32")
    assert written_there == []
