"""The kernels of the pack, called as the driver of a tape calls them.

Each file of the pack is built once a session. `test_within_bounds` runs everything a second time, in
a process of its own, on buffers that end at an inaccessible page.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("max.engine")

import maxjax
from maxjax._max import session

SOURCES = Path(maxjax.__file__).parent / "_max"
# Where a process that runs this file again finds what the first has built.
BUILT = "MAXJAX_TEST_PACK"
GUARDED = BUILT in os.environ
KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64))


@functools.cache
def directory() -> Path:
    if GUARDED:
        return Path(os.environ[BUILT])
    holder = tempfile.TemporaryDirectory(prefix="maxjax-pack-")
    directories.append(holder)  # removed when the process ends
    return Path(holder.name)


directories: list[tempfile.TemporaryDirectory] = []


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """A file of the pack, built if need be."""
    session.session()  # has the threads that kernels may use
    path = directory() / f"{name}.so"
    if not path.exists():
        from mojo.run import subprocess_run_mojo

        done = subprocess_run_mojo(
            ["build", "--emit", "shared-lib", "-I", str(SOURCES),
             str(SOURCES / "mojo" / "pack" / f"{name}.mojo"), "-o", str(path)],
            capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(path))


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
    ints = [number for slot in range(len(operands)) for number in (slot, 0)] + list(integers)
    function = getattr(library(file), name)
    function.restype = None
    function(table(operands), (ctypes.c_int64 * len(ints))(*ints))


# The driver


class Tape:
    """Calls put in a row; keeps what they refer to alive."""

    def __init__(self) -> None:
        self.integers: list[int] = []
        self.kept: list[Any] = []

    def add(self, function: Any, *integers: int | Tape) -> Tape:
        """A call; a nested tape stands for its address and its length."""
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
        run_tape(table(arrays), data, ctypes.c_int64(len(data)))


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


def test_copy_bytes() -> None:
    source, target = guarded(np.arange(10, dtype=np.uint8)), guarded(np.zeros(5, np.uint8))
    Tape().add(library("tape").tape_copy_bytes, 0, 7, 1, 2, 3).run(source, target)
    assert target.tolist() == [0, 0, 7, 8, 9]


@pytest.mark.parametrize("reverse", (0, 1))
@pytest.mark.parametrize("count", (0, 1, 2, 5))
def test_scan(count: int, reverse: int) -> None:
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


def test_while() -> None:
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


def test_switch() -> None:
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
        slots = (ctypes.c_void_p * 3)(0, 0, result.ctypes.data)
        objects = (ctypes.c_int64 * len(arrays))(*map(id, arrays))
        return run_program(objects, ctypes.c_int64(len(arrays)), slots, data,
                           ctypes.c_int64(len(data)))

    a, b = longs(1), longs(2, 3)
    assert run(a, b) == 0
    assert result[0] == 4
    # Not contiguous, then not aligned: nothing runs.
    assert run(a, longs(1, 2, 3, 4)[::2]) == 2
    assert run(np.frombuffer(b"\0" * 17, np.int64, 2, 1), b) == 1
    assert result[0] == 4


@pytest.mark.skipif(GUARDED, reason="this is the process that the test starts")
def test_within_bounds() -> None:
    for source in (SOURCES / "mojo" / "pack").glob("*.mojo"):
        library(source.stem)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, BUILT: str(directory())}, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-2000:]}"
