"""The threads of native kernels: every task runs once, whoever calls and whenever helpers come."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests import ROOT
from tests.support import mojo_programs

pytest.importorskip("max.engine")

from maxjax._max.mojo import crew

ROWS, COUNT = 64, 4096     # each call has as many tasks as threads are allowed
PAUSE = 72                 # the word of `kernels/crew.mojo` that says until when there is a pause


def cumsum(x: np.ndarray, threads: int) -> np.ndarray:
    out = np.empty_like(x)
    slots = (ctypes.c_void_p * 2)(x.ctypes.data, out.ctypes.data)
    args = np.array([0, 0, 1, 0, x.shape[0], x.shape[1], 1, 0, threads])
    mojo_programs.pack().function("cumsum_int32")(slots, args.ctypes.data)
    return out


def inputs(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 9, (ROWS, COUNT)).astype(np.int32)


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
def test_every_task_is_done(threads):
    x = inputs(threads)
    expected = np.cumsum(x, 1, np.int32)
    for _ in range(200):
        assert np.array_equal(cumsum(x, threads), expected)


def test_callers_at_the_same_time():
    """One call has the crew, and the others run their own tasks."""
    failures: list[int] = []

    def work(seed: int) -> None:
        x = inputs(seed)
        expected = np.cumsum(x, 1, np.int32)
        failures.extend(seed for _ in range(300) if not np.array_equal(cumsum(x, 8), expected))

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures


@pytest.mark.skipif(crew.cores() == 1, reason="a single core has no helpers")
def test_helpers_take_part_and_sleep():
    """Both in a separate process, where nothing else uses processor time."""
    script = """if True:
        import os, threading, time
        from tests.mojo.test_crew import COUNT, ROWS, cumsum, inputs
        x = inputs(0)
        def spent():
            start = [os.times()[0], time.thread_time()]
            for _ in range(300):
                cumsum(x, 64)
            return os.times()[0] - start[0], time.thread_time() - start[1]
        whole, own = spent()
        end = time.monotonic() + 20     # on a busy machine callers do without helpers at times
        while whole <= 1.2 * own and time.monotonic() < end:
            whole, own = spent()
        assert whole > 1.2 * own, (whole, own)      # others have worked as well
        time.sleep(0.1)
        start = time.process_time()
        time.sleep(0.5)
        assert time.process_time() - start < 0.1    # and they sleep by now
        print("well")
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.stdout == "well\n", done.stderr


@pytest.mark.skipif(crew.cores() == 1, reason="a single core has no helpers")
def test_a_pause_is_without_helpers():
    """All words of the crew, but until when the pause lasts, stay as they are."""
    script = """if True:
        import ctypes, time
        import numpy as np
        from maxjax._max.mojo import crew
        from tests.mojo.test_crew import PAUSE, cumsum, inputs
        x = inputs(0)
        expected = np.cumsum(x, 1, np.int32)
        cumsum(x, 64)
        words = np.ctypeslib.as_array((ctypes.c_int64 * 80).from_address(int(crew._cell[0])))
        words[PAUSE] = time.monotonic_ns() + 10**12
        ticket = words[0]
        assert all(np.array_equal(cumsum(x, 64), expected) for _ in range(50))
        assert words[0] == ticket
        words[PAUSE] = time.monotonic_ns() - 1
        assert np.array_equal(cumsum(x, 64), expected)
        assert words[0] != ticket
        print("well")
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.stdout == "well\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_begins_anew():
    """Also during calls of another thread."""
    x = inputs(7)
    expected = np.cumsum(x, 1, np.int32)
    assert np.array_equal(cumsum(x, 64), expected)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            cumsum(x, 64)

    busy = threading.Thread(target=work)
    busy.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                alone = np.array_equal(cumsum(x, 64), expected) and not crew._cell[0]
                crew.start(mojo_programs.pack())
                together = all(np.array_equal(cumsum(x, 64), expected) for _ in range(20))
                os._exit(0 if alone and together else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        busy.join()


class Place(ctypes.Structure):
    """The result of ``dladdr`` for an address: the file and its address; a name and its address."""

    _fields_ = [("file", ctypes.c_char_p), ("start", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's loader")
def test_libraries_take_no_lock_of_the_runtime():
    """Locks that a forked child could find taken: memory comes from the C library, and the only
    global is the crew's address. (The last, ``fprintf``, prints why a process is aborted.)"""
    allowed = {"AlignedAlloc", "AlignedFree", "InsertGlobal", "fprintf"}
    for unit in mojo_programs.pack().units:
        path = unit.native._name
        used = set(re.findall(rb"KGEN_CompilerRT_(\w+)", Path(path).read_bytes()))
        assert used <= {name.encode() for name in allowed}, unit.name
        for name in ("KGEN_CompilerRT_AlignedAlloc", "KGEN_CompilerRT_AlignedFree"):
            function = ctypes.cast(getattr(unit.native, name), ctypes.c_void_p)
            place = Place()
            assert ctypes.CDLL(None).dladdr(function, ctypes.byref(place))
            assert place.file.decode() == path, name
        assert getattr(unit.native, crew.JOIN)
