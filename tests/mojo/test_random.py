"""Random programs on the Mojo backend against tier 0, and the ways in which programs are called."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.gen import mojo_random
from tests.mojo.test_cases import check_guarded
from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax._max.mojo import part as part_module
from maxjax._runtime.program import Program

# Structures of default runs; each has mojo_random.ASSIGNMENTS programs.
STRUCTURES = 12
# Of exhaustive ones: 10,000 programs in batches.
BATCHES, BATCH, MANY = 10, 50, 20

pytestmark = pytest.mark.xdist_group("mojo")


def check_all(items: list[mojo_programs.Item]) -> None:
    mojo_programs.pack()
    mojo_programs.build(items)
    for item in items:
        try:
            mojo_programs.check(item)
        except Exception as error:
            raise AssertionError(
                f"{item.name}: {type(error).__name__}: {error}\n{item.program.opened}\n"
                f"{mojo_programs.sources_of(item)}") from error


@pytest.mark.extended
def test_random_programs():
    check_all(mojo_random.default(STRUCTURES))


@pytest.mark.exhaustive
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_random_programs(batch):
    structures = range(1000 + batch * BATCH, 1000 + (batch + 1) * BATCH)
    check_all(mojo_random.programs(structures, range(MANY)))


@pytest.mark.extended
def test_random_programs_on_threads(monkeypatch):
    """Every kernel on as many threads as there are, columns in small blocks."""
    monkeypatch.setattr(part_module, "threads_for", lambda group, elements, cores: cores)
    monkeypatch.setattr(part_module, "_BLOCK", 64)
    check_all(mojo_random.default(STRUCTURES))


@pytest.mark.extended
@pytest.mark.parametrize("side", ["end", "begin"])
def test_within_bounds(side):
    mojo_programs.build(mojo_random.default(STRUCTURES))
    check_guarded(side, "random", STRUCTURES)


@pytest.mark.parametrize("side", ["end", "begin"])
def test_beyond_bounds_crashes(side):
    with pytest.raises(AssertionError, match=r"exit status -11"):
        check_guarded(side, "crash", 1)


# --- calls ----------------------------------------------------------------------------------------

def linked(function, *args):
    """A function's program, linked."""
    program = Program(maxjax.make_jaxpr(function)(*args))
    item = mojo_programs.Item("a call", program, [*program.consts, *args]).plan()
    mojo_programs.build([item])
    piece, = item.pieces
    return mojo_programs.executable(piece.plan, piece.jaxpr)


def normalised(x, w):
    y = jnp.tanh(x @ w)
    return (y - y.mean(0)) / jnp.sqrt(y.var(0) + 1), jnp.sort(x, 0), x


def arguments(seed, rows=37):
    draw = np.random.default_rng(seed)
    return [draw.normal(size=(rows, 21)).astype(np.float32),
            draw.normal(size=(21, 50)).astype(np.float32)]


def test_two_threads_run_one_program():
    """Each call has its own memory."""
    run = linked(normalised, *arguments(0))
    inputs = [arguments(seed) for seed in range(8)]
    expected = [[x.copy() for x in run(values)] for values in inputs]
    wrong, start = [], threading.Barrier(2)

    def work(first):
        start.wait()
        for number in range(400):
            chosen = (first + number) % len(inputs)
            for ours, theirs in zip(run(inputs[chosen]), expected[chosen], strict=True):
                if not np.array_equal(ours, theirs):
                    wrong.append((first, number))

    threads = [threading.Thread(target=work, args=(4 * first,)) for first in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def layouts(x):
    """Copies of an array in other layouts, by their names."""
    wide = np.full((2 * x.shape[0], 3 * x.shape[1]), np.nan, x.dtype)
    wide[::2, ::3] = x
    fixed = x.copy()
    fixed.flags.writeable = False
    raw = np.empty(x.nbytes + 1, np.uint8)
    misaligned = raw[1:].view(x.dtype).reshape(x.shape)
    misaligned[...] = x
    assert not misaligned.flags.aligned
    return {"strided": wide[::2, ::3], "Fortran": np.asfortranarray(x),
            "reversed": x[::-1].copy()[::-1], "read-only": fixed, "misaligned": misaligned,
            "broadcast": np.broadcast_to(x[:1], x.shape)}


@pytest.mark.parametrize("layout", list(layouts(np.zeros((2, 2), np.float32))))
def test_layout_of_arguments(layout):
    values = arguments(1)
    run = linked(normalised, *values)
    placed = [layouts(x)[layout] for x in values]
    expected = run([np.array(x, order="C") for x in placed])
    for ours, theirs in zip(run(placed), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
