"""The matrix product of the kernel pack against NumPy.

`test_within_bounds` runs the shapes a second time, in a process of its own, on buffers that begin
and end at inaccessible pages.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import subprocess
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.mojo.pack_calls import GUARD, GUARDED, call_with, library
from tests.support import mojo_programs

pytest.importorskip("max.engine")

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))

def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def empty(size: int, dtype: np.dtype) -> np.ndarray:
    """Memory that, if guarded, ends at an inaccessible page."""
    if not GUARDED or size == 0:
        return np.empty(size, dtype)
    page = mmap.PAGESIZE
    length = size * dtype.itemsize
    whole = -(-length // page) * page
    memory = mmap.mmap(-1, whole + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for edge in (start, start + page + whole):
        assert protect(ctypes.c_void_p(edge), page, 0) == 0
    return np.frombuffer(memory, dtype, size, page + whole - length)


def stored(values: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """A copy of an array in new memory, with its axes in this order there."""
    lies = values.transpose(order)
    memory = empty(values.size, values.dtype).reshape(lies.shape)
    memory[...] = lies
    return memory.transpose(np.argsort(order))


def random(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def multiply(a: np.ndarray, b: np.ndarray, threads: int = 1, gap: int = 0) -> np.ndarray:
    """The kernel's product of (batch, m, k) and (batch, k, n).

    The rows of the result are `gap` elements apart; nothing is written between them.
    """
    dtype = a.dtype
    (batch, m, k), n = a.shape, b.shape[2]
    row = n + gap
    memory = empty(max(batch * m * row - gap, 0), dtype)
    memory.view(np.uint8)[...] = 0x5A
    result = np.lib.stride_tricks.as_strided(
        memory, (batch, m, n), tuple(dtype.itemsize * step for step in (m * row, row, 1)))

    def strides(x: np.ndarray) -> list[int]:
        return [step // dtype.itemsize for step in x.strides]

    integers = [0, 0, 1, 0, 2, 0, batch, m, n, k, *strides(a), *strides(b), m * row, row, threads]
    call_with("matmul", f"matmul_{dtype.name}", [a, b, memory], *integers)
    between = np.ones(max(batch * m * row, 1), bool).reshape(-1)[:batch * m * row]
    between.reshape(batch, m, row)[..., :n] = False
    assert (memory[between[:memory.size]].view(np.uint8) == 0x5A).all()
    return result


def check(a: np.ndarray, b: np.ndarray, result: np.ndarray) -> None:
    dtype = a.dtype
    if dtype.kind in "iu":
        np.testing.assert_array_equal(result, np.matmul(a, b))
        return
    wide: Any = np.longdouble if dtype == np.float64 else np.float64
    x, y = a.astype(wide), b.astype(wide)
    expected, magnitude = x @ y, np.abs(x) @ np.abs(y)
    k = a.shape[2]
    sums = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    # A sum of k terms, in the worst order; the halves are then rounded once.
    bound = (np.sqrt(k) + 2) * np.finfo(sums).eps * magnitude
    if sums != dtype:
        info = ml_dtypes.finfo(dtype)
        bound = bound + np.abs(expected) * float(info.eps) / 2 + float(info.smallest_subnormal)
    difference = np.abs(result.astype(wide) - expected)
    assert (difference <= bound).all(), (difference - bound).max()


PLAIN, TRANSPOSED, ROWS_FIRST = (0, 1, 2), (0, 2, 1), (1, 0, 2)
# Around the edges of tiles of 4 to 12 rows and 8 to 64 columns, and of the blocks that are packed.
SIZES = (
    (1, 1, 1), (1, 1, 9), (1, 7, 1), (5, 1, 1), (1, 33, 5), (1, 70, 47), (67, 1, 47), (67, 1, 1),
    (2, 3, 4), (6, 16, 4), (7, 17, 5), (11, 15, 3), (12, 32, 8), (13, 31, 9), (5, 47, 17),
    (23, 65, 33), (40, 10, 128), (64, 64, 64), (31, 127, 66),
    # Few columns, and few elements or terms.
    (2, 2, 500), (4, 4, 300), (3, 3, 3), (5, 3, 257), (500, 2, 2), (9, 4, 4), (7, 2, 3), (1, 3, 9),
    (16, 1, 600), (4, 4, 1), (6, 2, 513),
)
# Each is worth more than one thread.
LARGE = ((150, 200, 300), (301, 97, 543), (20, 2100, 130), (1, 4000, 1300), (4000, 1, 1300))


@pytest.mark.parametrize("orders", (
    (PLAIN, PLAIN), (PLAIN, TRANSPOSED), (TRANSPOSED, PLAIN), (TRANSPOSED, TRANSPOSED),
    (ROWS_FIRST, (2, 0, 1)), ((2, 1, 0), (1, 2, 0)),
))
@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_products_of_all_sizes_and_orders(name: str,
                                          orders: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    dtype = numpy_dtype(name)
    for number, (m, n, k) in enumerate(SIZES):
        batch = 1 + number % 3
        a = stored(random(rng, dtype, (batch, m, k)), orders[0])
        b = stored(random(rng, dtype, (batch, k, n)), orders[1])
        check(a, b, multiply(a, b, gap=number % 2 * 3))


@pytest.mark.parametrize("threads", (1, 2, 3))
@pytest.mark.parametrize("name", ("float32", "float64", "bfloat16", "int32", "uint8"))
def test_products_of_large_matrices(name: str, threads: int) -> None:
    rng = np.random.default_rng(1)
    dtype = numpy_dtype(name)
    for m, n, k in LARGE:
        for left, right in ((PLAIN, PLAIN), (TRANSPOSED, PLAIN), (PLAIN, TRANSPOSED)):
            a = stored(random(rng, dtype, (1, m, k)), left)
            b = stored(random(rng, dtype, (1, k, n)), right)
            check(a, b, multiply(a, b, threads))


@pytest.mark.parametrize("name", ("float32", "float64"))
def test_few_columns_have_the_bits_of_a_larger_product(name: str) -> None:
    """Few elements are computed one by one, the same rows among more of them by tiles."""
    rng = np.random.default_rng(6)
    dtype = numpy_dtype(name)
    for n, k in itertools.product((2, 3, 4), (5, 31, 64, 257, 600)):
        b = stored(random(rng, dtype, (1, k, n)), PLAIN)
        a = stored(random(rng, dtype, (1, 40, k)), PLAIN)
        whole = multiply(a, b)
        for m in range(2, 16 // n + 1):       # one row is computed by lines
            np.testing.assert_array_equal(multiply(a[:, :m], b), whole[:, :m])


@pytest.mark.parametrize("name", ("float32", "float64"))
def test_small_products_have_the_bits_of_a_larger_one(name: str) -> None:
    """Both matrices of small products are read where they are, of a larger one from panels."""
    rng = np.random.default_rng(7)
    dtype = numpy_dtype(name)
    for n, k in itertools.product((5, 6, 8, 13, 16, 23, 33, 47), (1, 2, 5, 16, 40)):
        b = stored(random(rng, dtype, (1, k, n)), PLAIN)
        for order in (PLAIN, TRANSPOSED):
            a = stored(random(rng, dtype, (1, 8192 // (n * k) + 1, k)), order)
            whole = multiply(a, b)
            for m in range(2, min(12, a.shape[1])):
                np.testing.assert_array_equal(multiply(a[:, :m], b, gap=m % 2), whole[:, :m])


@pytest.mark.parametrize("name", ("float32", "float64", "bfloat16", "int32"))
def test_stacks_of_small_matrices(name: str) -> None:
    rng = np.random.default_rng(8)
    dtype = numpy_dtype(name)
    for m, n, k in itertools.product((1, 2, 3, 4, 8, 9), (1, 2, 3, 4, 5, 8), (1, 2, 3, 4, 5)):
        for batch, threads in ((2, 1), (7, 2)):
            a = stored(random(rng, dtype, (batch, m, k)), (PLAIN, TRANSPOSED, ROWS_FIRST)[m % 3])
            b = stored(random(rng, dtype, (batch, k, n)), (PLAIN, TRANSPOSED)[k % 2])
            check(a, b, multiply(a, b, threads, gap=n % 2))
            check(a[:1].repeat(batch, 0), b, multiply(np.broadcast_to(a[:1], a.shape), b, threads))


@pytest.mark.parametrize("threads", (1, 2))
def test_products_of_batches(threads: int) -> None:
    rng = np.random.default_rng(2)
    for batch in (5, 6):
        a = stored(random(rng, np.dtype(np.float32), (batch, 131, 70)), ROWS_FIRST)
        b = stored(random(rng, np.dtype(np.float32), (batch, 70, 133)), TRANSPOSED)
        check(a, b, multiply(a, b, threads))


@pytest.mark.parametrize("name", ("float32", "float64", "float16", "int32"))
def test_batches_of_few_columns(name: str) -> None:
    """One row by each matrix of a stack."""
    rng = np.random.default_rng(5)
    dtype = numpy_dtype(name)
    for n in range(1, 10):
        for batch, k, threads in ((1, 7, 1), (2, 1, 1), (3, 20, 1), (40, 7, 1), (6001, 7, 2)):
            row = stored(random(rng, dtype, (1, 1, k)), PLAIN)
            a = np.broadcast_to(row, (batch, 1, k))
            for order in (PLAIN, ROWS_FIRST, TRANSPOSED):
                b = stored(random(rng, dtype, (batch, k, n)), order)
                check(a, b, multiply(a, b, threads, gap=k % 2))
                check(a, b, multiply(a, b, threads))


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_products_of_strided_operands(name: str) -> None:
    """Broadcast batches and rows, every other element, and backwards."""
    rng = np.random.default_rng(3)
    dtype = numpy_dtype(name)
    a = stored(random(rng, dtype, (3, 46, 50)), PLAIN)
    b = stored(random(rng, dtype, (3, 50, 70)), PLAIN)
    for x in (np.broadcast_to(a[:1], a.shape), np.broadcast_to(a[:, :1], a.shape),
              np.broadcast_to(a[:, :, :1], a.shape), a[::-1], a[:, ::-1], a[:, :, ::-1],
              a[:, ::2], a[:, :1]):
        check(x, b, multiply(x, b))
    for y in (np.broadcast_to(b[:1], b.shape), np.broadcast_to(b[:, :1], b.shape),
              np.broadcast_to(b[:, :, :1], b.shape), b[::-1], b[:, ::-1], b[:, :, ::-1],
              b[:, :, ::3], b[:, :, 5:6]):
        check(a, y, multiply(a, y))
    for x, y in ((a[:, :1, ::-1], b), (a[:, ::2, ::2], b[:, ::-2, ::2]),
                 (a[:, :, ::-1], b[:, ::-1, :1])):
        check(x, y, multiply(x, y))


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_products_without_elements_are_zero(name: str) -> None:
    dtype = numpy_dtype(name)
    for batch, m, n, k in ((0, 3, 4, 5), (2, 0, 4, 5), (2, 3, 0, 5), (2, 3, 4, 0), (1, 1, 9, 0),
                           (1, 9, 1, 0), (0, 0, 0, 0)):
        for threads in (1, 2):
            result = multiply(np.ones((batch, m, k), dtype), np.ones((batch, k, n), dtype),
                              threads, gap=1)
            np.testing.assert_array_equal(result, np.zeros((batch, m, n), dtype))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("size", ((9, 20, 30), (1, 40, 30), (40, 1, 30), (70, 100, 90)))
def test_not_finite(name: str, size: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(4)
    dtype = numpy_dtype(name)
    m, n, k = size
    for order in (PLAIN, TRANSPOSED):
        values = random(rng, dtype, (1, m, k))
        values[rng.random(values.shape) < 0.05] = 0
        values[0, rng.integers(m), rng.integers(k)] = np.nan
        values[0, rng.integers(m), rng.integers(k)] = np.inf
        others = random(rng, dtype, (1, k, n))
        others[rng.random(others.shape) < 0.05] = 0
        others[0, rng.integers(k), rng.integers(n)] = -np.inf
        a, b = stored(values, order), stored(others, order)
        with np.errstate(invalid="ignore"):
            terms = values[0].astype(np.float64)[:, :, None] * others[0].astype(np.float64)
            expected = terms.sum(1)
        result = multiply(a, b)[0].astype(np.float64)
        odd = ~np.isfinite(expected)
        assert odd.any()
        np.testing.assert_array_equal(result[odd], expected[odd])
        assert np.isfinite(result[~odd]).all()


def test_halves_round_once() -> None:
    """1 + 600 * 2^-12 is lost where each sum is rounded to a half."""
    for name in ("float16", "bfloat16"):
        dtype = numpy_dtype(name)
        a = np.full((1, 3, 601), 2.0 ** -6, dtype)
        a[0, :, 0] = 1
        b = np.full((1, 601, 20), 2.0 ** -6, dtype)
        b[0, 0] = 1
        expected = np.full((1, 3, 20), 1 + 600 * 2.0 ** -12).astype(dtype)
        np.testing.assert_array_equal(multiply(a, b), expected)


def test_two_callers() -> None:
    """Two threads of Python call at once, each kernel with two threads of its own."""
    failures: list[BaseException] = []

    def work(m: int, n: int, k: int) -> None:
        try:
            rng = np.random.default_rng(m)
            a = random(rng, np.dtype(np.float32), (1, m, k))
            b = random(rng, np.dtype(np.float32), (1, k, n))
            first = multiply(a, b, 2)
            check(a, b, first)
            for _ in range(30):
                np.testing.assert_array_equal(multiply(a, b, 2), first)
        except BaseException as problem:
            failures.append(problem)

    library("matmul")
    callers = [threading.Thread(target=work, args=size)
               for size in ((200, 300, 310), (310, 120, 400))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures, failures


@pytest.mark.extended
@pytest.mark.skipif(GUARDED, reason="this is the process that the test starts")
def test_within_bounds() -> None:
    mojo_programs.pack()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k",
         "sizes or strides or batches or nothing or (large and float32)"],
        env={**os.environ, GUARD: "1"}, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-2000:]}"
