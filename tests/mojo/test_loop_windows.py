"""Windows at computed places in loops over few elements: random programs give what tier 0 gives."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

pytest.importorskip("max.engine")

import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base.errors import InternalError
from maxjax._max.mojo.check_code import check_loop
from maxjax._max.mojo.loop_memory import MOST_ELEMENTS
from maxjax._max.mojo.loop_windows import window
from maxjax._max.mojo.scalar_code import Repeat, every_instruction
from tests.mojo.test_small_loop_kernels import check_kernels
from tests.mojo.test_small_loops import check, codes, every_loop, planned

pytestmark = pytest.mark.xdist_group("mojo")

DTYPES = ("float32", "float32", "int32", "bool", "float16")
SHAPES = ((9,), (40,), (128,), (7, 5), (11, 11), (3, 4, 5), (2, 3, 4), (300,), (20, 17), (4, 4))


def random_loop(seed: int, dtypes=DTYPES, shapes=SHAPES):
    """A loop that reads and writes windows of two arrays, and those arrays."""
    draw = random.Random(seed)
    shapes = [draw.choice(shapes) for _ in range(2)]
    dtype = draw.choice(dtypes)
    arrays = [(np.random.default_rng(seed + k).random(shape) * 9 - 2).astype(dtype)
              for k, shape in enumerate(shapes)]

    def places(shape):
        """For each dimension, what the position is in each iteration: also beyond the ends."""
        return [(draw.randint(0, 3), draw.randint(-size, size), draw.randint(1, size + 2),
                 draw.randint(0, 2)) for size in shape]

    def part(shape):
        # Few elements of large arrays, so that the loop is one over few elements.
        sizes = [draw.randint(1, size) for size in shape]
        while math.prod(sizes) > (20 if math.prod(shape) > MOST_ELEMENTS else 60):
            sizes[draw.randrange(len(sizes))] = 1
        return sizes

    steps = [(draw.randrange(2), part(shapes[0]), places(shapes[0]), part(shapes[1]),
              places(shapes[1]), draw.random()) for _ in range(draw.randint(1, 3))]

    def at(i, place):
        return [(i * times + plus) % most - less if times else jnp.int32(plus)
                for times, plus, most, less in place]

    def step(i, state):
        state = list(state)
        for number, own, place, other, there, kind in steps:
            parts, spots = (own, other), (place, there)
            x, y = state[number], state[1 - number]
            w = lax.dynamic_slice(y, at(i, spots[1 - number]), parts[1 - number])
            size = math.prod(parts[number])
            update = jnp.resize(w, size).reshape(parts[number])
            old = lax.dynamic_slice(x, at(i + (kind < 0.2), spots[number]), parts[number])
            update = update ^ old if dtype == "bool" else update // 2 + old if dtype == "int32" \
                else update * jnp.asarray(0.5, dtype) + old
            if kind < 0.8:
                x = lax.dynamic_update_slice(x, update, at(i, spots[number]))
            else:
                x = lax.cond(i % 3 > 0, lambda x, u, spot=spots[number]: lax.dynamic_update_slice(
                    x, u, at(i, spot)), lambda x, u: x, x, update)
            state[number] = x
        return tuple(state)

    return lambda *arrays: lax.fori_loop(0, 7, step, arrays), *arrays


def small(seeds, **kinds):
    """Those of random loops that are loops over few elements."""
    found = {}
    for seed in seeds:
        function, *args = random_loop(seed, **kinds)
        if codes(planned(function, *args)[1].tape):
            found[f"seed {seed}"] = function, *args
    return found


def test_random_loops_on_the_machine():
    loops = small(range(60))
    assert len(loops) > 40
    for function, *args in loops.values():
        check(function, *args)


def test_random_loops_as_kernels():
    loops = small(range(100, 124), dtypes=DTYPES[:-1])
    assert len(loops) > 12
    check_kernels(loops, loops)


def test_random_runs_as_kernels():
    loops = small(range(200, 216), dtypes=("float32", "int32", "bool"),
                  shapes=((40,), (128,), (300,), (30, 4)))
    assert len(loops) > 10
    check_kernels(loops, loops)


def moved(i, x, read, write):
    """A run that is read at one place, and written half as large at another, and one beside it."""
    run = lax.dynamic_slice(x, (i * 5 % 30 + read,), (20,))
    return lax.dynamic_update_slice(x, run * 0.5 + 1, (i * 5 % 30 + write,))


@pytest.mark.parametrize("read, is_fused", [(0, True), (3, False), (-3, False)])
def test_what_is_computed_of_a_run_is_stored_there(read, is_fused):
    """Without a copy, where nothing is read behind what is written."""
    x = np.arange(60, dtype=np.float32)
    loop = (lambda x: lax.fori_loop(0, 9, lambda i, x: moved(i, x, read, 0), x)), x
    _, plan = planned(*loop)
    text = plan.source.partition("while ")[2]
    assert ("memcpy(dest=block.unsafe_offset(64).unsafe_offset" not in text) == is_fused, text
    check_kernels(["it"] * 2, {"it": loop})


WINDOWS = {     # an array, a window's shape: how many instructions read it
    "a run": ((40,), (12,), 1), "a block": ((11, 11), (3, 3), 3), "a column": ((9, 5), (9, 1), 9),
    "whole rows": ((9, 5), (3, 5), 1), "part of a row": ((9, 5), (1, 3), 1),
    "a block of rows": ((3, 4, 5), (2, 2, 5), 2),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_each_line_is_one_instruction(name):
    shape, part, lines = WINDOWS[name]

    def step(i, x):
        at = [i % size for size in shape]
        return lax.dynamic_update_slice(x, lax.dynamic_slice(x, at, part) * 0.5, at[::-1][:len(at)])

    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    _, plan = planned(lambda x: lax.fori_loop(0, 9, step, x), x)
    code, = codes(plan.tape)
    found = [y.opcode for y in every_instruction(code.items)]
    assert found.count("read") == lines and found.count("assign") == 1, str(code)
    assert "call" not in found
    check(lambda x: lax.fori_loop(0, 9, step, x), x)


def test_a_window_is_written_in_place():
    """What it is written to is not copied, though it is read at another place before."""
    def step(i, x):
        return lax.dynamic_update_slice(
            x, lax.dynamic_slice(x, (i * 7 % 20,), (12,)) + 1, (i * 3 % 25,))

    _, plan = planned(lambda x: lax.fori_loop(0, 9, step, x), np.zeros(40, np.float32))
    code, = codes(plan.tape)
    body = next(loop for loop in every_loop(code.items) if isinstance(loop, Repeat)).body
    written = next(x for x in body if getattr(x, "opcode", "") == "assign")
    assert written.target is written.sources[0], str(code)
    assert not any(
        x.opcode == "move" and x.elements > 1 for x in every_instruction(body)), str(code)


def test_where_the_lines_of_a_window_are():
    # Of a part of shape (2, 2, 3) in an array of shape (4, 5, 6).
    place = window((3, 2, 2, 3, 30, 6, 1, 6, 3, 1, 4, 5, 6, 120, 1, 1))
    assert place.lines == (0, 6, 30, 36) and place.run == 3
    assert place.lasts == (2, 3, 3) and place.strides == (30, 6, 1)
    assert place.places == 2 * 30 + 3 * 6 + 3 + 1
    flat = window((2, 3, 5, 5, 1, 5, 1, 9, 5, 45, 1, 1))
    assert (flat.lines, flat.run, flat.stride, flat.places) == ((0,), 15, 5, 7)


def test_code_that_reads_beyond_an_array_is_refused():
    _, plan = planned(lambda x: lax.fori_loop(0, 9, lambda i, x: lax.dynamic_update_slice(
        x, lax.dynamic_slice(x, (i,), (12,)) + 1, (i,)), x), np.zeros(40, np.float32))
    code, = codes(plan.tape)
    loop = next(every_loop(code.items))
    for opcode, place in (("read", 2), ("assign", 1)):
        number, x = next((n, y) for n, y in enumerate(loop.body)
                         if getattr(y, "opcode", "") == opcode)
        numbers = list(x.numbers)
        numbers[place] += 1
        loop.body[number] = x._replace(numbers=tuple(numbers))
        with pytest.raises(InternalError, match="its sizes"):
            check_loop(code)
        loop.body[number] = x


def random_joins(seed: int):
    """A loop that joins slices of two carried arrays anew, also reversed, strided and padded."""
    draw = random.Random(seed)
    rank, axis = draw.choice([(1, 0), (2, 0), (2, 1), (3, 1)])
    shape = [draw.randint(2, 3) for _ in range(rank)]
    is_summed = draw.random() < 0.5
    shape[axis] = draw.randint(4, 12)
    pieces = []
    for _ in range(2):
        left, own = shape[axis], []
        while left:
            size, step = draw.randint(1, left), draw.choice([1, 1, 2, -1])
            size = min(size, (shape[axis] - 1) // abs(step) + 1)
            begin = draw.randint(0, shape[axis] - 1 - (size - 1) * abs(step))
            own.append((draw.randrange(2), begin, size, step))
            left -= size
        pieces.append(own)

    def cut(x, begin, size, step):
        part = lax.slice_in_dim(x, begin, begin + (size - 1) * abs(step) + 1, abs(step), axis)
        return jnp.flip(part, axis) if step < 0 else part

    def step(i, state):
        joined = [jnp.concatenate([cut(state[k], *where) for k, *where in own], axis)
                  for own in pieces]
        return joined[0], joined[1] + state[0] if is_summed else joined[1]

    arrays = [np.random.default_rng(seed + k).random(shape).astype(np.float32) for k in range(2)]
    return lambda *arrays: lax.fori_loop(0, 7, step, arrays), *arrays


def test_random_joins():
    for seed in range(40):
        check(*random_joins(seed))
    check_kernels(range(8), {seed: random_joins(seed) for seed in range(8)})
