"""Calls of the pack's kernels as the driver of a tape makes them, and operands for them."""

from __future__ import annotations

import atexit
import ctypes
import functools
import mmap
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from maxjax._max.mojo.store import open_library
from tests.support import mojo_programs

# Set in the process that runs this file again, in guarded memory.
GUARD = "MAXJAX_TEST_GUARD"
GUARDED = GUARD in os.environ
# The folder of a second pack, which another standard library has compiled, in a process that makes
# every call in both.
BESIDE = "MAXJAX_TEST_BESIDE"


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """A file of the pack, from the user's cache."""
    found = {unit.name: unit.native for unit in mojo_programs.pack().units}[name]
    assert found is not None, name
    return found


@functools.cache
def other_library(name: str) -> ctypes.CDLL | None:
    """The library of that name in the second pack; None: there is none."""
    path = Path(os.environ.get(BESIDE, "/nowhere"), f"{name}.so")
    return open_library(path) if path.exists() else None


class Twins:
    """Copies of operands before a call, for the same call of another library.

    What overlaps stays so, and what lies at a multiple of 64 bytes.

    Attributes:
      arrays: as the operands, elsewhere.
    """

    def __init__(self, operands: Sequence[np.ndarray]):
        self._copies: dict[tuple[int, int], np.ndarray] = {}
        self.arrays = [self._twin(array) for array in operands]

    def _twin(self, array: np.ndarray) -> np.ndarray:
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        low, high = np.lib.array_utils.byte_bounds(base)
        copy = self._copies.get((low, high))
        if copy is None:
            memory = np.empty(high - low + 64, np.uint8)
            copy = memory[(low - memory.ctypes.data) % 64:][:high - low]
            copy[:] = np.frombuffer(ctypes.string_at(low, high - low), np.uint8)
            self._copies[low, high] = copy
        return np.ndarray(array.shape, array.dtype, copy, array.ctypes.data - low, array.strides)

    def check(self, name: str) -> None:
        """The memory of the operands has the bits of that of the copies."""
        for (low, high), copy in self._copies.items():
            assert ctypes.string_at(low, high - low) == copy.tobytes(), name
        called.add(name)


called: set[str] = set()    # of the functions of both


@atexit.register
def _tell() -> None:
    if BESIDE in os.environ:
        Path(os.environ[BESIDE], "called").write_text("\n".join(sorted(called)))


def guarded(array: np.ndarray) -> np.ndarray:
    """A copy whose last byte is the last before a page that cannot be accessed."""
    if not GUARDED or array.nbytes == 0:
        return np.array(array, order="C")
    page = mmap.PAGESIZE
    size = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, size + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for edge in (start, start + page + size):
        assert protect(ctypes.c_void_p(edge), page, 0) == 0
    copy = np.frombuffer(memory, array.dtype, array.size, page + size - array.nbytes)
    copy = copy.reshape(array.shape)
    copy[...] = array
    return copy


def address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def table(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))


def call(file: str, name: str, operands: Sequence[np.ndarray], *integers: int) -> None:
    """One call of a kernel; each operand is a slot of its own."""
    call_with(file, name, operands,
              *(number for slot in range(len(operands)) for number in (slot, 0)), *integers)


def call_with(file: str, name: str, operands: Sequence[np.ndarray], *integers: int) -> None:
    """One call of a kernel, of which all integers are given; where there is a second pack, of both
    kernels of the name."""
    other = other_library(file)
    twins = Twins(operands) if other is not None else None
    _run(getattr(library(file), name), operands, integers)
    if twins is not None:
        _run(getattr(other, name), twins.arrays, integers)
        twins.check(name)


def _run(function: Any, operands: Sequence[np.ndarray], integers: Sequence[int]) -> None:
    function.restype = None
    function(table(operands), (ctypes.c_int64 * len(integers))(*integers))


FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "bool")
BITS = (8, 16, 32, 64)
THREADS = (1, 2)
# Enough elements for a second thread, with a remainder after every width of vector.
MANY = 270_011


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def values(dtype: np.dtype | str, *shape: int, seed: int = 0) -> np.ndarray:
    """Numbers with repetitions; of floats also NaN, infinities and zeros of both signs."""
    dtype = dtype_of(dtype) if isinstance(dtype, str) else dtype
    rng = np.random.default_rng(seed)
    if dtype.name == "bool":
        return guarded(rng.random(shape) < 0.5)
    if dtype.name in INTEGERS:
        info = np.iinfo(dtype)
        array = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return guarded(np.where(rng.random(shape) < 0.2, array[:1] if array.size else array, array))
    array = (rng.standard_normal(shape) * 3).astype(dtype)
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1], dtype)[rng.integers(0, 6, shape)]
    return guarded(np.where(rng.random(shape) < 0.2, odd, array))


def plain(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Small whole numbers: every order of summation gives the same."""
    rng = np.random.default_rng(seed)
    return guarded(rng.integers(0 if dtype.startswith("u") else -3, 4, shape).astype(
        dtype_of(dtype)))


def empty(dtype: np.dtype | str, *shape: int) -> np.ndarray:
    """An array for results, filled with values that no kernel writes."""
    dtype = dtype_of(dtype) if isinstance(dtype, str) else dtype
    array = guarded(np.zeros(shape, dtype))
    array.reshape(-1).view(np.uint8)[:] = 0xA5
    return array


def assert_same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"),
                                  np.ascontiguousarray(expected).view(f"u{got.itemsize}"))


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal, or both NaN."""
    assert got.dtype == expected.dtype
    if got.dtype.name == "bfloat16":  # NumPy does not know that it has NaN
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(got, expected)


def run_guarded(file: str) -> None:
    """Runs a file of tests again, in a process of its own and in guarded memory."""
    mojo_programs.pack()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file],
        env={**os.environ, GUARD: "1"}, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-2000:]}"
