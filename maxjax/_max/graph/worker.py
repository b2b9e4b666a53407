"""The compile process (``python -m maxjax._max.graph.worker``), started by the compile service.

Compiling holds a core for many seconds and a gigabyte, and leaks some of it, so it happens in a
process of its own. The messages (``maxjax._max.graph.messages``) in both directions:

- on standard input, ``{"id", "program", "builder", "output", "options"}``: build the program's
  graphs with ``builder`` (``"module:function"``), compile them and write the artifact to
  ``output``. Options known here: ``compiler`` (``"module:function"``, in place of MAX, for
  tests), ``custom_extensions`` (paths of Mojo kernel libraries), ``cpu_target``, ``device`` (the
  number of the accelerator that the program is for) and ``vendor_products`` (its matrix products
  are its vendor's).
- on what was standard output at the start, ``{"id", "ok", "error", "fatal", "seconds", "phases",
  "resident", "retires"}``. ``fatal`` says that every other program would fail too. From then on
  standard output is standard error, which the service points at a log file.

The worker ends when its input does, even during a compile.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from maxjax._max.graph.messages import read_message, write_message
from maxjax._max.graph.session import import_compiler, resolve, telemetry_off

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_PARENT_CHECK_SECONDS = 1.0

Phases = dict[str, float]


class _Unavailable(Exception):
    """MAX or the builder cannot be imported: no program can be compiled here."""


class MaxCompiler:
    """Builds, compiles and exports with MAX, which is imported at the first program."""

    def __init__(self) -> None:
        # By the accelerator that they compile for, if any, and whether products are its vendor's.
        self._sessions: dict[tuple[int | None, bool], Any] = {}

    def __call__(self, program: str, builder: Callable[..., Any], output: str,
                 options: dict[str, Any]) -> Phases:
        clock = _Clock()
        try:
            engine, driver, graph = import_compiler()
        except ImportError as error:
            raise _Unavailable(f"MAX cannot be imported: {error}") from error
        clock.lap("import")
        device = options.get("device")
        number = device if isinstance(device, int) else None
        kind = number, bool(options.get("vendor_products"))
        session = self._sessions.get(kind)
        if session is None:
            if options.get("cpu_target"):
                driver.set_virtual_cpu_target(options["cpu_target"])
            session = self._sessions[kind] = engine.InferenceSession(devices=[driver.CPU()] + (
                [] if number is None else [driver.Accelerator(number)]))
            if kind[1]:
                session._use_vendor_blas("true")
        clock.lap("session")
        module = graph.Module()
        extensions = builder(module, program, options)
        extensions = [*options.get("custom_extensions", ()), *(extensions or ())]
        clock.lap("build")
        compiled = session.compile(
            module, custom_extensions=[str(path) for path in extensions] or None)
        clock.lap("compile")
        compiled.export_mef(output)
        clock.lap("export")
        return clock.phases


class _Clock:
    def __init__(self) -> None:
        self.phases: Phases = {}
        self._last = time.monotonic()

    def lap(self, phase: str) -> None:
        now = time.monotonic()
        self.phases[phase] = round(now - self._last, 4)
        self._last = now


def resident_bytes() -> int:
    """This process's memory, or its peak where the system reports only that."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        if resource is None:
            return 0
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _compile(compiler: MaxCompiler, message: dict[str, Any]) -> dict[str, Any]:
    """Does one job; whatever goes wrong becomes part of the answer."""
    start = time.monotonic()
    answer: dict[str, Any] = {"id": message["id"], "ok": False, "error": None, "fatal": False,
                              "phases": {}}
    try:
        options = message.get("options") or {}
        stand_in = options.get("compiler")
        try:
            chosen = resolve(stand_in) if stand_in else compiler
            builder = resolve(message["builder"])
        except (ImportError, AttributeError) as error:
            raise _Unavailable(f"the compiler cannot be imported: {error}") from error
        answer["phases"] = chosen(message["program"], builder, message["output"], options) or {}
        answer["ok"] = True
    except _Unavailable as error:
        answer.update(error=str(error), fatal=True)
    except BaseException as error:
        summary = "".join(traceback.format_exception_only(type(error), error)).strip()
        answer["error"] = f"{summary}\n\n{traceback.format_exc().strip()}"
    if not answer["ok"]:
        try:
            os.unlink(message["output"])
        except OSError:
            pass
    answer["seconds"] = round(time.monotonic() - start, 4)
    return answer


def _die_with_parent(parent: int) -> None:
    """Ends this process when its parent does, even while the pipe is open in the parent's forks."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        except (OSError, AttributeError):
            pass

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _read_jobs(stream: BinaryIO, jobs: queue.SimpleQueue) -> None:
    while (message := read_message(stream)) is not None:
        jobs.put(message)
    os._exit(0)  # not sys.exit: a compile in progress must not hold the process


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="maxjax._max.graph.worker", description=__doc__)
    parser.add_argument("--parent", type=int, required=True, help="process to live as long as")
    parser.add_argument("--path", default="", help="more entries for sys.path")
    parser.add_argument("--most-compiles", type=int, default=1 << 30, help="then retire")
    parser.add_argument("--most-bytes", type=int, default=1 << 62, help="resident, then retire")
    chosen = parser.parse_args(arguments)

    _die_with_parent(chosen.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's interrupt is for the parent
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.path.extend(path for path in chosen.path.split(os.pathsep)
                    if path and path not in sys.path)
    telemetry_off()

    jobs: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(requests, jobs), daemon=True).start()
    compiler, compiles = MaxCompiler(), 0
    while True:
        message = jobs.get()
        answer = _compile(compiler, message)
        compiles += 1
        answer["resident"] = resident_bytes()
        answer["retires"] = (compiles >= chosen.most_compiles
                             or answer["resident"] > chosen.most_bytes)
        try:
            write_message(replies, answer)
        except OSError:
            os._exit(1)
        if answer["retires"]:
            os._exit(0)


if __name__ == "__main__":
    main()
