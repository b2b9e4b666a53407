"""When native functions are used in tier 0, and what happens where they cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("max.engine")

from maxjax._base import native
from maxjax._base.config import compile_mode, config
from maxjax._ir.primitive import op_spec
from maxjax._ir.types import ShapedArray
from maxjax._max.mojo import crew
from maxjax._primitives import (
    cumulative,
    sorting,
)
from maxjax._runtime.native_functions import NativeFunctions
from tests.mojo.native_calls import (
    BuiltPack,
    close,
    same,
    values,
)


def big(size: int = 5000) -> np.ndarray:
    return values("int8", size)


def sort(x: np.ndarray) -> np.ndarray:
    return op_spec(sorting.sort_p, (ShapedArray(x.shape, x.dtype),), {
        "dimension": 0, "is_stable": True, "num_keys": 1}).run(x)[0]


def test_thresholds(provider, restored):
    provider.names.clear()
    native.install(provider)
    least = native.LEAST["sort"][np.dtype(np.int8)]
    with compile_mode("auto"):
        sort(big(least - 1))
        assert provider.names == []
        sort(big(least))
        assert provider.names == ["sort_int8"]
    for name in native.LEAST.keys() - native.SAMPLERS:
        assert min(native.LEAST[name].values(), default=native.FEWEST) >= native.FEWEST


def test_options_decide_whether_native_code_is_used(calls):
    x = big()
    with compile_mode("never"):
        sort(x)
    assert calls == []
    config.update("check_tiers", True)
    try:
        sort(x)         # the reference of the comparison
        assert calls == []
    finally:
        config.update("check_tiers", False)
    sort(x)
    assert calls == ["sort_int8"]
    # An option that one thread sets for itself does not affect another.
    with compile_mode("never"), ThreadPoolExecutor(1) as other:
        def elsewhere() -> None:
            with compile_mode("auto"):
                sort(x)
        other.submit(elsewhere).result()
        assert len(calls) == 2
        sort(x)
        assert len(calls) == 2


def test_no_provider(restored):
    native.install(None)
    with compile_mode("auto"):
        same(sort(big()), np.sort(big()))


def test_provider_that_fails(restored):
    asked = []

    def failing(name: str) -> None:
        asked.append(name)
        raise OSError("the disk is gone")

    native.install(failing)
    with compile_mode("auto"):
        for _ in range(3):
            same(sort(big()), np.sort(big()))
    assert asked == ["sort_int8"]


def test_nobody_waits_for_the_pack(restored):
    """The pack is opened in the background; missing functions are not searched again at once."""
    looks, go = [], threading.Event()

    class Slow:
        def address(self, name: str) -> int | None:
            looks.append(name)
            assert go.wait(30)
            return BuiltPack().address(name) if name == "sort_int8" else None

    functions = NativeFunctions(Slow)
    native.install(functions)
    with compile_mode("auto"):
        for _ in range(3):
            same(sort(big()), np.sort(big()))
        go.set()
        functions._loading.join(30)
        assert looks == ["sort_int8"]
        assert native.find("sort", np.dtype(np.int8), 5000) is not None
        same(sort(big()), np.sort(big()))
        for _ in range(3):
            assert native.find("sort", np.dtype(np.int16), 5000) is None
            functions._loading.join(30)
        assert looks == ["sort_int8", "sort_int16"]


def test_pack_that_cannot_be_opened(restored):
    def broken() -> Any:
        raise RuntimeError("no pack")

    functions = NativeFunctions(broken)
    native.install(functions)
    with compile_mode("auto"):
        same(sort(big()), np.sort(big()))
        functions._loading.join(30)
        same(sort(big()), np.sort(big()))


def test_threads_are_for_large_operands_alone(monkeypatch):
    monkeypatch.setattr(crew, "cores", lambda: 4)
    started = []
    monkeypatch.setattr(crew, "start", lambda pack: started.append(pack))
    functions = NativeFunctions(BuiltPack)
    assert functions.load("sort_int8")
    x = big(1 << 20)
    out = np.empty_like(x)
    functions("sort_int8")((x[:5000], out[:5000]), (1, 5000), 5000)
    assert not started
    functions("sort_int8")((x, out), (1, x.size), x.size)
    assert len(started) == 1 and functions.threads() == 4
    same(out, np.sort(x))


def test_many_threads(calls):
    x = values("float16", (300, 50))
    sums = np.add.accumulate(x.astype(np.float32), 0).astype(x.dtype)
    expected = np.sort(x, axis=0, kind="stable"), sums

    def work(_: int) -> None:
        with compile_mode("auto"):
            for _ in range(20):
                same(sort(x), expected[0])
                close(cumulative.cumsum_p.evaluate(x, axis=0, reverse=False), expected[1])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(calls) == 8 * 20 * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_a_fork(calls):
    """The crew stayed behind, and the child has one of its own."""
    x = big(1 << 20)
    expected = np.sort(x)
    same(sort(x), expected)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            calls.clear()
            before = crew._cell[0]
            right = np.array_equal(sort(x), expected) and calls == ["sort_int8"]
            status = 0 if right and not before and (crew._cell[0] or crew.cores() == 1) else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + 60
    done, status = os.waitpid(child, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(0.05)
        done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done and status == 0


def test_finding_is_cheap(provider, restored):
    """Far below a microsecond, so that it is negligible."""
    native.install(provider)
    kind = np.dtype(np.int8)

    def nanoseconds(size: int) -> float:
        best = float("inf")
        for _ in range(50):
            start = time.perf_counter_ns()
            for _ in range(200):
                native.find("sort", kind, size)
            best = min(best, (time.perf_counter_ns() - start) / 200)
        return best

    with compile_mode("auto"):
        assert native.find("sort", kind, 1 << 20) is not None
        assert nanoseconds(1 << 20) < 1500
        assert nanoseconds(10) < 1000


def test_import_looks_at_nothing():
    """Importing maxjax and small operands open no pack and do not import MAX."""
    program = ("import sys, maxjax, maxjax.numpy as jnp\n"
               "from maxjax._runtime.native_functions import functions\n"
               "print(jnp.sort(jnp.arange(50))[:2])\n"
               "assert functions._loading is None and not functions._addresses\n"
               "assert not any(name == 'max' or name.startswith('max.') for name in sys.modules)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "MAXJAX_COMPILE": "auto"})
    assert done.returncode == 0, done.stderr
