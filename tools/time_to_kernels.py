"""How long programs take from their first call until they run with kernels of their own.

    python tools/time_to_kernels.py PROGRAMS.py [NAME ...] [--busy 2] [--limit 5]

The programs are written for JAX: each function returns a function and its arguments, which
is called again and again, in a process and a cache folder of its own in which the kernel pack is
and nothing else. `--busy` keeps as many processors busy meanwhile. Exits with 1 where a program has
no kernels after `--limit` seconds.

    python tools/time_to_kernels.py --slowed

measures instead by how much a loop of eager work, and one of interpreted work, is slowed down while
kernels are built one after the other beside it: by the clock, and in processor time of the loop's
thread, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import maxjax
import maxjax.numpy as jnp
from maxjax._base import config
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.mojo.store import KernelStore
from maxjax._runtime.program import Program
from maxjax._runtime.tiering import tiering

_MOST_SECONDS = 30.0
# States in which kernels are still to come.
_WAITS = ("cold", "native", "queued")


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keeps so many processors busy."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
               for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def copy_pack(folder: str) -> str:
    """Copies the pack, and nothing else, to a folder for a cache."""
    os.chmod(folder, 0o700)
    target, pack = Path(folder), tiering.mojo.pack
    problem = pack.build()
    if problem is not None:
        raise SystemExit(f"the pack cannot be built: {problem}")
    cache = pack.libraries.cache
    for unit in pack.units:
        path = cache.lookup(unit.key)
        if path is not None:
            for name in (path.name, path.name.partition("-")[0] + ".key"):
                shutil.copy2(cache.directory / name, target / name)
    # What kernels compile with is made with the pack.
    for prepared in cache.directory.glob("library-*"):
        shutil.copytree(prepared, target / prepared.name, symlinks=True)
    return folder


# --- the time to kernels --------------------------------------------------------------------------

def worker(path: str, name: str) -> None:
    """Measures one program, in this process."""
    made: list[Program] = []
    initialize = Program.__init__

    def noted(self: Program, *args: Any, **options: Any) -> None:
        initialize(self, *args, **options)
        made.append(self)

    spec = importlib.util.spec_from_file_location("programs", path)
    assert spec is not None and spec.loader is not None
    programs = importlib.util.module_from_spec(spec)
    with maxjax.enable_x64(True):
        spec.loader.exec_module(programs)
        run, arguments = getattr(programs, name)()
        maxjax.block_until_ready(arguments)
        Program.__init__ = noted        # type: ignore[method-assign]
        began, calls, first = time.perf_counter(), 0, 0.0
        while True:
            maxjax.block_until_ready(run(*arguments))
            calls += 1
            passed = time.perf_counter() - began
            first = first or passed
            # Calls that take nothing are interpreted for good, which costs less than a kernel.
            waits = [program for program in made if program.state in _WAITS
                     and (program.state != "cold" or program.heat > passed * 1e9 / 20)]
            if not waits or passed > _MOST_SECONDS:
                break
    print("RESULT " + json.dumps({
        "seconds": passed, "first": first, "calls": calls, "ready": not waits,
        "states": sorted({program.state for program in made if program.state != "new"})}))


def measure(path: Path, names: list[str], processes: int, limit: float) -> int:
    names = names or re.findall(r"^def (\w+)\(", path.read_text(), re.MULTILINE)
    late = []
    with tempfile.TemporaryDirectory() as pack:
        copy_pack(pack)
        with busy(processes):
            for name in names:
                with tempfile.TemporaryDirectory() as folder:
                    shutil.copytree(pack, folder, symlinks=True, dirs_exist_ok=True)
                    done = subprocess.run(
                        [sys.executable, "-m", "maxjax", __file__, str(path), "--worker", name],
                        env={**os.environ, "MAXJAX_CACHE_DIR": folder}, text=True,
                        capture_output=True, timeout=20 * _MOST_SECONDS)
                found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
                if not found:
                    raise SystemExit(f"{name}: {done.stdout}{done.stderr}")
                facts = json.loads(found[-1].removeprefix("RESULT "))
                if not facts["ready"] or facts["seconds"] > limit:
                    late.append(name)
                print(f"{name:32} {facts['seconds']:6.2f} s, first call {facts['first']:6.2f} s, "
                      f"{facts['calls']:6} calls, {', '.join(facts['states'])}"
                      f"{'' if facts['ready'] else ', NOT READY'}", flush=True)
    print(f"{len(names)} programs, later than {limit:g} s: {', '.join(late) or 'none'}")
    return int(bool(late))


# --- what builds cost a loop beside them ----------------------------------------------------------

def _set(done: threading.Event, error: str | None) -> None:
    done.set()


def _eager(x: Any) -> None:
    for _ in range(20):
        x = jnp.sin(x) * 0.5 + 1
    np.asarray(x)


_interpreted = maxjax.jit(lambda x: jnp.cumsum(jnp.sin(x) * 0.5 + 1)[::-1] @ x)


def slowed(rounds: int) -> int:
    """Prints how much longer loops take while kernels are built, round by round in turns."""
    x = jnp.linspace(0, 1, 200)

    def loop(work: Any, seconds: float = 1.0) -> tuple[float, float]:
        """Microseconds that a turn takes, by the clock and of the processor."""
        begin, processor, turns = time.perf_counter(), time.thread_time(), 0
        while time.perf_counter() - begin < seconds:
            work(x)
            turns += 1
        return ((time.perf_counter() - begin) / turns * 1e6,
                (time.thread_time() - processor) / turns * 1e6)

    stop, builds = threading.Event(), 0

    def build(store: KernelStore) -> None:
        nonlocal builds
        while not stop.is_set():
            source = _KERNEL.replace("NUMBER", str(builds))
            done = threading.Event()
            store.request([source], functools.partial(_set, done))
            done.wait()
            builds += 1

    with tempfile.TemporaryDirectory() as folder, config.compile_mode("never"):
        os.chmod(folder, 0o700)
        store = KernelStore(cache=ArtifactCache(Path(folder)))
        assert store.build([_KERNEL.replace("NUMBER", "-1")]) is None, store.failures()
        for title, work in (("eager operations", _eager), ("an interpreted program", _interpreted)):
            loop(work)
            alone, beside = [], []
            for _ in range(rounds):
                alone.append(loop(work))
                stop.clear()
                thread = threading.Thread(target=build, args=(store,))
                thread.start()
                beside.append(loop(work))
                stop.set()
                thread.join()
            for number, clock in enumerate(("by the clock", "processor")):
                before, after = ([turn[number] for turn in turns] for turns in (alone, beside))
                ratio = statistics.median(b / a for a, b in zip(before, after, strict=True))
                print(f"{title}, {clock}: {statistics.median(before):.0f} us alone, "
                      f"{statistics.median(after):.0f} us beside builds, {ratio - 1:+.1%}",
                      flush=True)
    print(f"{builds} kernels were built meanwhile")
    return 0


_KERNEL = """
@export("KERNEL")
def KERNEL(p: Pointer[Float32, MutAnyOrigin], n: Int) abi("C"):
    for i in range(n):
        p[i] = p[i] * NUMBER + 1
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--limit", type=float, default=5.0)
    parser.add_argument("--slowed", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        worker(str(chosen.programs), chosen.worker)
        return 0
    if chosen.slowed:
        return slowed(chosen.rounds)
    if chosen.programs is None:
        parser.error("which programs?")
    return measure(chosen.programs.resolve(), chosen.names, chosen.busy, chosen.limit)


if __name__ == "__main__":
    sys.exit(main())
