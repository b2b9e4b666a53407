"""The kernels of the pack, called as the driver of a tape calls them.

`test_within_bounds` runs everything a second time,
in a process of its own, on buffers that end at an inaccessible page.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("max.engine")

from maxjax._primitives import random_rejection
from maxjax._primitives.convert import convert
from maxjax._primitives.cumulative import (
    cumlogsumexp_p,
    cummax_p,
    cummin_p,
    cumprod_p,
    cumsum_p,
)
from maxjax._primitives.random_bits import threefry2x32_p
from tests.mojo.pack_calls import (
    ALL,
    BITS,
    FLOATS,
    GUARDED,
    INTEGERS,
    MANY,
    NUMBERS,
    THREADS,
    address,
    assert_same,
    assert_same_bits,
    call,
    call_with,
    dtype_of,
    empty,
    guarded,
    library,
    plain,
    run_guarded,
    values,
)

KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64))


# The driver


class Tape:
    """A sequence of calls; keeps the objects they refer to alive."""

    def __init__(self) -> None:
        self.integers: list[int] = []
        self.kept: list[Any] = []

    def add(self, function: Any, *integers: int | Tape) -> Tape:
        """A call; a nested tape is replaced by its address and its length."""
        numbers: list[int] = []
        for integer in integers:
            if isinstance(integer, Tape):
                data = integer.data()
                self.kept += [integer, data]
                numbers += [ctypes.addressof(data), len(data)]
            else:
                numbers.append(integer)
        self.kept.append(function)
        self.integers += [address(function), len(numbers), *numbers]
        return self

    def data(self) -> Any:
        return (ctypes.c_int64 * len(self.integers))(*self.integers)

    def run(self, *arrays: np.ndarray) -> None:
        data = self.data()
        run_tape = library("tape").run_tape
        run_tape.restype = None
        slots = stoppable(*(array.ctypes.data for array in arrays))
        run_tape(slots, data, ctypes.c_int64(len(data)))


def stoppable(*addresses: int) -> Any:
    """Slots behind the word that stops the driver."""
    return ctypes.byref((ctypes.c_void_p * (len(addresses) + 1))(0, *addresses), 8)


def kernel(rule: Callable[..., Any]) -> Any:
    """A kernel over int64 scalars in slots: `rule(*operands)` is the last operand's new value.

    Its integers are the number of operands, then (slot, byte offset) of each and of the result.
    """

    def run(slots: Any, args: Any) -> None:
        places = [ctypes.c_int64.from_address(slots[args[2 * k + 1]] + args[2 * k + 2])
                  for k in range(args[0] + 1)]
        places[-1].value = int(rule(*(place.value for place in places[:-1])))

    return KERNEL(run)


ADD = kernel(lambda a, b: a + b)
LESS = kernel(lambda a, b: a < b)


def longs(*values: int) -> np.ndarray:
    return guarded(np.array(values, np.int64))


def test_tape_runs_calls_in_order() -> None:
    values = longs(1, 2, 0)
    tape = Tape().add(ADD, 2, 0, 0, 0, 8, 0, 16).add(ADD, 2, 0, 16, 0, 16, 0, 16)
    tape.run(values)
    assert values.tolist() == [1, 2, 6]
    Tape().run(values)
    assert values.tolist() == [1, 2, 6]


def test_nothing_is_called_after_a_failure() -> None:
    """In whichever tape: the loops end, and so do those around them."""
    def run(slots: Any, args: Any) -> None:
        ADD(slots, (ctypes.c_int64 * 7)(2, 0, 0, 0, 8, 0, 0))
        if ctypes.c_int64.from_address(slots[0]).value == 3:
            slots[-1] = 1
    count_to_three = KERNEL(run)
    never = kernel(lambda: 1)
    for endless in (
            Tape().add(library("tape").tape_scan, 1 << 60, 0, -1, 0, 0, Tape().add(count_to_three)),
            Tape().add(library("tape").tape_while, Tape().add(never, 0, 0, 16),
                       Tape().add(count_to_three), 0, 16, 0)):
        values = longs(0, 1, 1)
        outer = Tape().add(library("tape").tape_scan, 5, 0, -1, 0, 0, endless)
        outer.add(ADD, 2, 0, 0, 0, 8, 0, 0).run(values)
        assert values.tolist() == [3, 1, 1]


def test_copy_bytes() -> None:
    source, target = guarded(np.arange(10, dtype=np.uint8)), guarded(np.zeros(5, np.uint8))
    Tape().add(library("tape").tape_copy_bytes, 0, 7, 1, 2, 3).run(source, target)
    assert target.tolist() == [0, 0, 7, 8, 9]


@pytest.mark.parametrize("count", (2**20 - 1, 2**20, 3 * 2**20 + 5))
def test_copy_bytes_in_parts(count: int) -> None:
    source = guarded(np.arange(count + 3).astype(np.uint8))
    target = guarded(np.zeros(count + 2, np.uint8))
    Tape().add(library("tape").tape_copy_bytes, 0, 3, 1, 2, count).run(source, target)
    assert np.array_equal(target, np.concatenate((np.zeros(2, np.uint8), source[3:])))


@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("count", (0, 1, 2, 5))
def test_a_tape_runs_a_scan(count: int, reverse: int) -> None:
    # Slots: xs, ys, carry, next carry, x, y, counter. Running sums of xs + counter.
    xs, ys = longs(*range(10, 10 + count)), longs(*[-1] * count)
    carry, following, counter = longs(100), longs(0), longs(-1)
    body = (Tape().add(ADD, 2, 2, 0, 4, 0, 3, 0).add(ADD, 2, 3, 0, 6, 0, 3, 0)
            .add(library("tape").tape_copy_bytes, 3, 0, 5, 0, 8))
    scan = Tape().add(library("tape").tape_scan, count, reverse, 6, 2, 4, 0, 0, 8, 5, 1, 0, 8,
                      1, 2, 3, body)
    # Afterwards the carry is in the slot of the carry, wherever that points.
    result = longs(0)
    scan.add(library("tape").tape_copy_bytes, 2, 0, 7, 0, 8)
    scan.run(xs, ys, carry, following, xs, ys, counter, result)
    steps = [int(x) + i for i, x in enumerate(xs)]
    expected = 100 + np.cumsum(steps[::-1])[::-1] if reverse else 100 + np.cumsum(steps)
    assert ys.tolist() == expected.tolist()
    assert result[0] == 100 + sum(steps)


def test_scan_offsets() -> None:
    xs, total = longs(1, 2, 3, 4, 5, 6), longs(0)
    body = Tape().add(ADD, 2, 1, 0, 2, 0, 1, 0)
    Tape().add(library("tape").tape_scan, 3, 0, -1, 1, 2, 0, 8, 16, 0, body).run(xs, total, xs)
    assert total[0] == 2 + 4 + 6


def test_a_tape_runs_a_while_loop() -> None:
    state, following, limit, one, go_on = longs(0), longs(0), longs(7), longs(1), longs(0)
    condition = Tape().add(LESS, 2, 0, 0, 2, 0, 4, 0)
    body = Tape().add(ADD, 2, 0, 0, 3, 0, 1, 0)
    tape = Tape().add(library("tape").tape_while, condition, body, 4, 0, 1, 0, 1)
    tape.run(state, following, limit, one, go_on)
    assert sorted((state[0], following[0])) == [6, 7]
    limit[0] = 0
    tape.run(state, following, limit, one, go_on)
    assert sorted((state[0], following[0])) == [6, 7]


def test_scan_within_while() -> None:
    # While total < 100: total += sum(xs).
    xs, total, limit, go_on = longs(5, 6, 7), longs(0), longs(100), longs(0)
    scan = Tape().add(library("tape").tape_scan, 3, 0, -1, 1, 4, 0, 0, 8, 0,
                      Tape().add(ADD, 2, 1, 0, 4, 0, 1, 0))
    condition = Tape().add(LESS, 2, 1, 0, 2, 0, 3, 0)
    Tape().add(library("tape").tape_while, condition, scan, 3, 0, 0).run(xs, total, limit, go_on,
                                                                          xs)
    assert total[0] == 108


def test_a_tape_runs_one_branch() -> None:
    values = longs(1, 10, 100, 0)
    branches = [Tape().add(ADD, 2, 0, 24, 0, 8 * k, 0, 24) for k in range(3)]
    for index, expected in ((0, 1), (1, 10), (2, 100), (-3, 1), (9, 100)):
        values[3] = 0
        Tape().add(library("tape").tape_switch, 1, 4, 3, *branches).run(
            values, guarded(np.array([7, index], np.int32)))
        assert values[3] == expected


def test_run_program() -> None:
    run_program = library("tape").run_program
    run_program.restype = ctypes.c_int64
    data = Tape().add(ADD, 2, 0, 0, 1, 8, 2, 0).data()
    result = longs(0)

    def run(*arrays: np.ndarray) -> int:
        slots = stoppable(0, 0, result.ctypes.data)
        objects = (ctypes.c_int64 * len(arrays))(*map(id, arrays))
        return run_program(objects, ctypes.c_int64(len(arrays)), slots, data,
                           ctypes.c_int64(len(data)))

    a, b = longs(1), longs(2, 3)
    assert run(a, b) == 0
    assert result[0] == 4
    # Not contiguous, then misaligned: nothing runs.
    assert run(a, longs(1, 2, 3, 4)[::2]) == 2
    assert run(np.frombuffer(b"\0" * 17, np.int64, 2, 1), b) == 1
    assert result[0] == 4


# Movement


def strides(array: np.ndarray) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


def check_copy(x: np.ndarray, view: np.ndarray, out: np.ndarray, target: np.ndarray,
               threads: int) -> None:
    """Copies `view`, which is of `x`, to `target`, which is of `out`."""
    expected = out.copy()
    base = target.ctypes.data - out.ctypes.data
    np.lib.stride_tricks.as_strided(
        expected.reshape(-1)[base // out.itemsize:], target.shape, target.strides)[...] = view
    rank = view.ndim
    integers = [rank, *view.shape, *strides(view), *strides(target), threads]
    call_with("movement", f"copy_{8 * x.itemsize}", [x, out],
              0, view.ctypes.data - x.ctypes.data, 1, base, *integers)
    np.testing.assert_array_equal(out, expected)


VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "all": lambda x: x,
    "scalar": lambda x: x[1, 2, 3, 4:5].reshape(()),
    "transposed": lambda x: x.transpose(3, 2, 1, 0),
    "last two": lambda x: x.swapaxes(2, 3),
    "middle": lambda x: x.transpose(0, 2, 1, 3),
    "channels first": lambda x: x.transpose(0, 3, 1, 2),
    "reversed": lambda x: x[::-1, :, ::-1, ::-1],
    "reversed and transposed": lambda x: x[:, :, ::-1, ::-1].transpose(3, 1, 2, 0),
    "steps": lambda x: x[::2, 1::2, ::3, 1::2],
    "slice": lambda x: x[1:, 1:-1, 2:, 3:-2],
    "one element steps": lambda x: x[:, :1, :, 2:3],
    "broadcast rows": lambda x: np.broadcast_to(x[0, 0, 0], x.shape),
    "broadcast columns": lambda x: np.broadcast_to(x[..., :1], x.shape),
    "broadcast all": lambda x: np.broadcast_to(x[0, 0, 0, :1], x.shape),
    "empty": lambda x: x[:, :0],
}


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("view", VIEWS)
def test_copies_of_views_keep_all_elements(view: str, bits: int) -> None:
    x = values(f"uint{bits}", 3, 5, 7, 19)
    viewed = VIEWS[view](x)
    for threads in THREADS:
        out = empty(x.dtype, *viewed.shape)
        check_copy(x, viewed, out, out, threads)
        # Into every other place, and from the end to the beginning.
        wide = empty(x.dtype, *(2 * size for size in viewed.shape))
        check_copy(x, viewed, wide, wide[(..., *[slice(None, None, 2)] * viewed.ndim)], threads)
        out = empty(x.dtype, *viewed.shape)
        check_copy(x, viewed, out, out[(..., *[slice(None, None, -1)] * viewed.ndim)], threads)


@pytest.mark.parametrize("bits", BITS)
def test_copy_large(bits: int) -> None:
    x = values(f"uint{bits}", 611, 700)
    for viewed in (x, x.T, x[:, ::-1], x[::-1, 1:], x.reshape(-1), x.reshape(-1)[::-1],
                   np.broadcast_to(x[0], (600, 700)), np.broadcast_to(x[0, :1], (MANY * 2,))):
        for threads in THREADS:
            out = empty(x.dtype, *viewed.shape)
            check_copy(x, viewed, out, out, threads)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("size", (2, 3, 4, 5, 8, 13, 16, 31, 33, 64, 100))
def test_copy_lines(size: int, bits: int) -> None:
    """Lines that fill no vector, to lines next to one another and apart."""
    for lines in (1, 2, 3, 5, 40, 300):
        x = values(f"uint{bits}", lines, size + 4)
        close = np.lib.stride_tricks.as_strided(
            x, (lines, size), (x.itemsize, x.itemsize), writeable=False)
        spaced = values(f"uint{bits}", lines, 4 * size)
        for base, view in (
                (x, x[:, 4:]), (x, x[:, :size]), (x, x[::-1, 4:]), (x, x[:, 3:size + 3][:, ::-1]),
                (x, close), (x, np.broadcast_to(x[:, 4:5], (lines, size))),
                (x, np.broadcast_to(x[:, :1], (lines, size))[::-1]),
                *((spaced, spaced[:, step - 1::step][:, :size]) for step in (2, 3, 4))):
            for threads in THREADS:
                out = empty(x.dtype, lines, size)
                check_copy(base, view, out, out, threads)
                out = empty(x.dtype, lines, 3 * size + 1)
                check_copy(base, view, out, out[:, 1:size + 1], threads)
                out = empty(x.dtype, lines, 3 * size)
                check_copy(base, view, out, out[:, 2::3], threads)


@pytest.mark.parametrize("bits", BITS)
def test_fills_write_each_element(bits: int) -> None:
    value = values(f"uint{bits}", 1)
    for threads in THREADS:
        for shape in ((), (0,), (1,), (17,), (3, 5, 9), (MANY * 2,)):
            out = empty(value.dtype, *shape)
            call("movement", f"fill_{bits}", [value, out],
                 len(shape), *shape, *strides(out), threads)
            assert (out == value).all()
        out = empty(value.dtype, 9, 40)
        before = out.copy()
        call("movement", f"fill_{bits}", [value, out], 2, 9, 13, 40, 3, threads)
        before[:, :39:3] = value
        np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("shape", (
    (1, 1, 1, 1), (2, 3, 5, 1), (1, 64, 64, 1), (3, 33, 130, 1), (1, 700, 611, 1), (2, 3, 5, 4),
    (1, 5, 100, 67), (3, 33, 70, 64), (0, 3, 4, 1), (1, 0, 4, 1), (2, 4, 0, 3), (2, 4, 3, 0)))
def test_transpose(shape: tuple[int, ...], bits: int) -> None:
    x = values(f"uint{bits}", *shape)
    for threads in THREADS:
        out = empty(x.dtype, *(shape[i] for i in (0, 2, 1, 3)))
        call("movement", f"transpose_{bits}", [x, out], *shape, threads)
        np.testing.assert_array_equal(out, x.swapaxes(1, 2))


# Ordering


def lines(dtype: str) -> list[np.ndarray]:
    """Matrices whose rows are sorted by every method, in one task and in several."""
    matrices = [values(dtype, rows, count) for rows, count in
                ((1, 0), (0, 3), (5, 1), (3, 2), (7, 48), (3, 49), (300, 100), (1, 5000))]
    return [*matrices, np.sort(matrices[-1]), guarded(np.ones((2, 5000), dtype_of(dtype)))]


@pytest.mark.parametrize("dtype", ALL)
def test_sorts_are_stable_as_numpy(dtype: str) -> None:
    for x in lines(dtype):
        # NumPy's stable order is ours: NaN last, zeros of both signs equal.
        order = np.argsort(x.astype(np.float32) if dtype == "bfloat16" else x, kind="stable")
        for threads in THREADS:
            permutation, out = empty("int32", *x.shape), empty(x.dtype, *x.shape)
            call("ordering", f"argsort_{dtype}", [x, permutation], *x.shape, threads)
            np.testing.assert_array_equal(permutation, order)
            call("ordering", f"sort_{dtype}", [x, out], *x.shape, threads)
            assert_same_bits(out, np.take_along_axis(x, order, 1))


def test_sort_keeps_the_kinds_of_nan() -> None:
    bits = np.array([0x7FC00001, 0xFFC00002, 0x7F800003, 0, 0x80000000, 0xFF800000] * 20, np.uint32)
    x = guarded(bits.view(np.float32))
    order = np.argsort(x, kind="stable")
    for count in (6, 120):
        out = empty("float32", count)
        call("ordering", "sort_float32", [x, out], 1, count, 1)
        assert_same_bits(out, x[order[order < count]])


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ("argmax", "argmin"))
def test_position_of_extreme(name: str, dtype: str) -> None:
    for shape in ((1, 1, 1), (3, 7, 1), (2, 1, 5), (2, 9, 19), (0, 3, 2), (2, 3, 0), (5, 40, 67),
                  (3, 1000, 1), (1, 600, 611), (45, 3, 1), (200, 8, 1), (77, 65, 1), (33, 128, 1),
                  (20, 129, 1)):
        x = values(dtype, *shape)
        wide = x.astype(np.float32) if dtype == "bfloat16" else x
        expected = getattr(np, name)(wide, 1).astype(np.int32)
        for threads in THREADS:
            out = empty("int32", shape[0], shape[2])
            call("ordering", f"{name}_{dtype}", [x, out], *shape, threads)
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_first_positions(dtype: str) -> None:
    for rows, count, k in ((1, 1, 1), (5, 40, 3), (3, 7, 7), (70, 64, 4), (4, 300, 64),
                           (4, 300, 70), (2, 1000, 0)):
        x = values(dtype, rows, count)
        expected = np.argsort(x, axis=1, kind="stable")[:, :k].astype(np.int32)
        for threads in THREADS:
            out = empty("int32", rows, k)
            call("ordering", f"argsort_few_{dtype}", [x, out], rows, count, k, threads)
            np.testing.assert_array_equal(out, expected)


# Random bits


@pytest.mark.parametrize("count", (0, 1, 5, 64, 1001, MANY))
def test_threefry_gives_the_words_of_tier_0(count: int) -> None:
    counters = [values("uint32", count, seed=seed) for seed in (1, 2)]
    for key_count in {1, count}:
        keys = [values("uint32", key_count, seed=seed) for seed in (3, 4)]
        expected = threefry2x32_p.evaluate(
            *(np.broadcast_to(key, count) for key in keys), *counters)
        for threads in THREADS:
            results = [empty("uint32", count) for _ in range(2)]
            call("random", "threefry2x32", [*keys, *counters, *results], key_count, count, threads)
            for result, wanted in zip(results, expected, strict=True):
                np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("count", (0, 1, 77, MANY))
def test_gamma_cubes(count: int) -> None:
    """The bits of the NumPy rule, whatever alpha is."""
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 1 << 63, count, dtype=np.uint64)
    alpha = (10.0 ** rng.uniform(-3, 6, count)).astype(np.float32)
    odd = np.array([0, -0.0, -0.5, -3, np.nan, np.inf, -np.inf, 1, 1e-40, 3e38], np.float32)
    alpha[:odd.size] = odd[:count]
    with np.errstate(all="ignore"):
        d = np.where(alpha < 1, alpha + np.float32(1), alpha) - np.float32(1 / 3)
        expected = random_rejection._cubes(keys, alpha, d, True)
    for threads in THREADS:
        results = [empty("float32", count) for _ in range(2)]
        call("random", "gamma_cubes_float32", [guarded(keys), guarded(alpha), *results], count,
             threads)
        for result, wanted in zip(results, expected, strict=True):
            assert_same_bits(result, wanted)


@pytest.mark.parametrize("keys,each", ((1, 0), (1, 1), (3, 77), (40, 5), (1, MANY)))
@pytest.mark.parametrize("most", (0.9, 6))
def test_poisson_counts(keys: int, each: int, most: float) -> None:
    """The numbers of the NumPy rule, whatever the rates are."""
    rng = np.random.default_rng(6)
    given = rng.integers(0, 1 << 63, keys, dtype=np.uint64)
    rates = (10.0 ** rng.uniform(-2, most, (keys, each))).astype(np.float32)
    odd = np.array([np.nan, 0, -0.0, -1, -np.inf, 9.999999, 1e-40], np.float32)
    if most > 1:
        odd = np.array([*odd, 10, np.inf, 3e38], np.float32)
    rates[0, :odd.size] = odd[:each]
    with np.errstate(all="ignore"):
        expected = np.array([random_rejection._poisson(
            key, part, np.dtype(np.int32), True) for key, part in zip(given, rates, strict=True)])
    for threads in THREADS:
        counts, rejected = empty("int32", keys * each), empty("float32", keys * each)
        call("random", "poisson_counts_float32",
             [guarded(given), guarded(rates.ravel()), counts, rejected], keys, each, threads)
        got = np.where(rates >= 10, convert(rejected, np.dtype(np.int32)).reshape(rates.shape),
                       counts.reshape(rates.shape))
        np.testing.assert_array_equal(np.where(rates == 0, 0, got), expected)


# Cumulative operations

CUMULATIVE = {"cumsum": (cumsum_p, NUMBERS), "cumprod": (cumprod_p, NUMBERS),
              "cummax": (cummax_p, ALL), "cummin": (cummin_p, ALL),
              "cumlogsumexp": (cumlogsumexp_p, FLOATS)}


def check_cumulative(name: str, x: np.ndarray, tolerance: float) -> None:
    for reverse in (False, True):
        with np.errstate(all="ignore"):
            expected = CUMULATIVE[name][0].evaluate(x, axis=1, reverse=reverse)
        for threads in THREADS:
            out = empty(x.dtype, *x.shape)
            call("cumulative", f"{name}_{x.dtype}", [x, out], *x.shape, reverse, threads)
            if tolerance:
                np.testing.assert_allclose(out.astype(np.float64), expected.astype(np.float64),
                                           rtol=tolerance, atol=tolerance)
            else:
                assert_same(out, expected)


@pytest.mark.parametrize(("name", "dtype"), [
    (name, dtype) for name, (_, names) in CUMULATIVE.items() for dtype in names])
def test_cumulative(name: str, dtype: str) -> None:
    shapes = ((1, 0, 1), (0, 3, 1), (2, 3, 0), (1, 1, 1), (3, 17, 1), (2, 9, 5), (2, 6, 67),
              (3, 100, 1000))
    # Operations that round differently: exponentials, and products of more than a few digits.
    tolerance = 0.0
    if name == "cumlogsumexp" or (name == "cumprod" and dtype in FLOATS):
        tolerance = 4 * float(ml_dtypes.finfo(dtype_of(dtype)).eps)
    for shape in shapes:
        if name in ("cummax", "cummin"):
            check_cumulative(name, values(dtype, *shape), 0)
            continue
        check_cumulative(name, plain(dtype, *shape), tolerance)
        if dtype in FLOATS and shape[1] == 17:
            check_cumulative(name, values(dtype, *shape), 4 * float(
                ml_dtypes.finfo(dtype_of(dtype)).eps))


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("count", (1, 3))
@pytest.mark.parametrize("name", ("cumsum", "cumprod", "cummax", "cummin"))
def test_signs_of_cumulative_zeros(name: str, count: int, dtype: str) -> None:
    """As in JAX, whose sums of several elements begin with 0."""
    x, out = guarded(np.full((1, count, 1), -0.0, dtype)), empty(dtype, 1, count, 1)
    call("cumulative", f"{name}_{dtype}", [x, out], 1, count, 1, 0, 1)
    signs = [count == 1] * 3 if name == "cumsum" else [True, name != "cumprod", True]
    assert np.signbit(out).ravel().tolist() == signs[:count]


# Indexing


@pytest.mark.parametrize("index", ("int32", "int64"))
@pytest.mark.parametrize("bits", BITS)
def test_gather_rows(bits: int, index: str) -> None:
    for outer, size, inner, count in (
            (1, 1, 1, 1), (1, 5, 1, 9), (3, 5, 1, 9), (2, 7, 3, 5), (2, 7, 67, 5), (1, 4, 0, 3),
            (2, 4, 3, 0), (0, 4, 3, 2), (1, 1000, 1, MANY), (2, 100, 65, 4001), (700, 90, 1, 611),
            (900, 7, 1, 1), (MANY, 3, 1, 1)):
        x = values(f"uint{bits}", outer, size, inner)
        indices = guarded(np.random.default_rng(1).integers(0, size, count).astype(index))
        for threads in THREADS:
            out = empty(x.dtype, outer, count, inner)
            call("indexing", f"gather_rows_{bits}", [x, indices, out], outer, size, inner, count,
                 indices.itemsize, threads)
            assert_same(out, x[:, indices])


SCATTER: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: new, "add": np.add, "mul": np.multiply, "min": np.minimum,
    "max": np.maximum}


def scattered(kind: str, x: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> np.ndarray:
    result = x.copy()
    for row, update in zip(rows, updates, strict=True):
        if 0 <= row < len(x):
            with np.errstate(all="ignore"):
                result[row] = SCATTER[kind](result[row], update)
    return result


@pytest.mark.parametrize(("kind", "dtype"), [
    (kind, dtype) for kind in SCATTER
    for dtype in (NUMBERS if kind in ("add", "mul") else ALL)])
def test_scatter_rows(kind: str, dtype: str) -> None:
    for n_rows, width, count in ((1, 1, 1), (5, 1, 20), (4, 3, 9), (7, 67, 12), (3, 0, 2),
                                 (0, 3, 2), (3, 4, 0), (50, 200, 2000)):
        x, updates = values(dtype, n_rows, width), values(dtype, count, width, seed=1)
        rows = guarded(np.random.default_rng(2).integers(-2, n_rows + 2, count).astype(np.int32))
        expected = scattered(kind, x, rows, updates)
        for threads in THREADS:
            out = empty(x.dtype, n_rows, width)
            call("indexing", f"scatter_rows_{kind}_{dtype}", [x, rows, updates, out],
                 n_rows, width, count, threads)
            assert_same(out, expected)
            out[...] = x  # in place
            call("indexing", f"scatter_rows_{kind}_{dtype}", [out, rows, updates, out],
                 n_rows, width, count, threads)
            assert_same(out, expected)


@pytest.mark.parametrize("bits", BITS)
def test_windows_are_read_and_written_in_bounds(bits: int) -> None:
    for sizes, window in (
            ((1,), (1,)), ((9, 70), (4, 33)), ((9, 70), (9, 1)), ((5, 6, 7), (3, 6, 2)),
            ((300, 200), (298, 198)), ((4, 0), (2, 0))):
        x, update = values(f"uint{bits}", *sizes), values(f"uint{bits}", *window, seed=1)
        strides, within = ([math.prod(shape[d + 1:]) for d in range(len(shape))]
                           for shape in (sizes, window))
        for begin in (-5, 0, 1, 900):
            starts = guarded(np.full(len(sizes), begin, np.int64))
            part = tuple(slice(first, first + size) for first, size in (
                (max(0, min(begin, whole - size)), size) for whole, size in zip(sizes, window)))
            expected = x.copy()
            expected[part] = update
            for threads in THREADS:
                integers = (len(sizes), *window, *strides, *within, *sizes, x.size, 1, threads)
                out = empty(x.dtype, *window)
                call("movement", f"read_window_{bits}", [x, starts, out], *integers)
                assert_same(out, x[part])
                out = empty(x.dtype, *sizes)
                call("movement", f"write_window_{bits}", [x, starts, update, out], *integers)
                assert_same(out, expected)
                out[...] = x  # in place
                call("movement", f"write_window_{bits}", [out, starts, update, out], *integers)
                assert_same(out, expected)


@pytest.mark.extended
@pytest.mark.skipif(GUARDED, reason="this is the process that the test starts")
def test_within_bounds() -> None:
    run_guarded(__file__)
