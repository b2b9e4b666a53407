"""Runs the Mojo compiler: one source text into one shared library, in a process of its own.

Kernels compile with a small standard library and are linked by MAX's linker (see
``standard_library``); other texts, and what that library lacks, with MAX's and the C compiler.

A small launcher runs between this process and the compiler. It ends the compiler when this process
dies; all their children are in one process group, which is killed on a timeout or when the
interpreter ends. Builds run at the usual priority.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import importlib.util
import logging
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from maxjax._base import threads
from maxjax._max import kernel_digest
from maxjax._max.folder_locks import fresh_name
from maxjax._max.mojo import crew, load, standard_library
from maxjax._max.versions import cpu_target, versions
from maxjax._max.warning import warn_no_more

logger = logging.getLogger("maxjax")

KERNELS = Path(__file__).resolve().parent.parent  # where the package `kernels` is
_OPTIONS = ("-O3", "--fp-mode", "contract=off", "-D", "MAXJAX_LIBRARY")
FLAGS = (*_OPTIONS,
         # These words belong to a library, though they are in another of its object files.
         *(() if sys.platform == "darwin" else ("-Xlinker", "-Bsymbolic")))
SOURCE_NAME = "library.mojo"

# The last part of every library that imports kernels: what they need from the process, without a
# lock of MAX's runtime (see kernels/crew.mojo). Memory comes from the C library, which renews its
# locks in a forked child.
_COMMON = f"""

from std.ffi import external_call
from kernels.crew import Words as CrewWords, crew_cell


@export("{crew.JOIN}")
def maxjax_join_crew() abi("C") -> CrewWords:
    return crew_cell()


@export("KGEN_CompilerRT_AlignedAlloc")
def maxjax_allocate(alignment: Int, size: Int) abi("C") -> Pointer[UInt8, MutAnyOrigin]:
    var step = max(alignment, 64)
    return external_call["aligned_alloc", Pointer[UInt8, MutAnyOrigin]](
        step, (max(size, 1) + step - 1) // step * step
    )


@export("KGEN_CompilerRT_AlignedFree")
def maxjax_free(memory: Pointer[UInt8, MutAnyOrigin]) abi("C"):
    external_call["free", NoneType](memory)
"""
_IMPORTS_KERNELS = re.compile(r"^from kernels\.", re.MULTILINE)

_POLL_SECONDS = 0.1
_WAKE_SECONDS = 1.0
_MOST_OUTPUT = 1 << 18

# Arguments: the parent's process id, the commands to run one after the other, each behind the
# number of its words. Modules that are files would take as long to import as Python to start, at
# every build: hence those that are part of it alone, where it has them.
# The compiler is its child, not its successor: when the parent dies the kernel signals only the
# launcher, and where it does not, the launcher notices that its own parent has changed.
_LAUNCHER = """
import posix as os, sys, _signal as signal
parent, *words = sys.argv[1:]
def prctl(*numbers):
    try:
        import _ctypes
        _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl"), numbers)
    except (ImportError, AttributeError):
        import ctypes
        ctypes.CDLL(None).prctl(*numbers)
def end_with_parent():
    if sys.platform == "linux":
        prctl(1, signal.SIGKILL)    # PR_SET_PDEATHSIG
def watch(*_):
    if os.getppid() != int(parent):
        os.killpg(0, signal.SIGKILL)
def run(command):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        end_with_parent()
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):    # by Python
            signal.signal(ignored, signal.SIG_DFL)
        os.execv(command[0], command)
    except OSError as problem:
        print(f"{problem}: {command[0]}", flush=True)
    finally:
        os._exit(%d)
end_with_parent()
signal.signal(signal.SIGALRM, watch)
signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, OSError, ValueError):
    pass
code = 0
while words and not code:
    count = int(words[0]) + 1
    code, words = run(words[1:count]), words[count:]
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""
_DRIVER = "MODULAR_MOJO_MAX_DRIVER_PATH"    # names the compiler
_NO_COMPILER = 97  # the launcher's exit status
# Linkers: the Mojo compiler looks for one only after it has compiled everything.
_LINKER = "cc"      # the only name that Mojo looks for
_NO_LINKER = "unable to find suitable c compiler"
_ERROR_LINE = re.compile(r"^(?:.*?: )?error: (.*)$", re.MULTILINE)

_lock = threads.lock()
_running: dict[int, tuple[subprocess.Popen, Path]] = {}
_ending = False


class ToolchainError(Exception):
    """There is no library; the message says why in one line.

    Attributes:
      kind: ``"missing"`` (no Mojo or C compiler), ``"rejected"`` (an error in the source),
        ``"crashed"``, ``"killed"`` (from outside, by SIGKILL), ``"timeout"``, ``"disk"``,
        ``"stopped"`` (by its ``Pace``) or ``"ending"`` (the interpreter).
      output: what the compiler printed.
    """

    def __init__(self, kind: str, message: str, output: str = ""):
        super().__init__(message)
        self.kind = kind
        self.output = output


class Pace:
    """How many builds run at once, and whether they go on. Both may change while they run.

    Attributes:
      urgent: somebody waits for them, so they take all processors.
      stopped: they are given up.
    """

    def __init__(self, urgent: bool = False) -> None:
        self.urgent = urgent
        self.stopped = False

    def look(self) -> None:
        """Called some ten times a second during a build: decides whether it goes on."""

    def has_room(self) -> bool:
        """Whether another build may run beside one: on a processor that is idle, unless somebody
        waits."""
        return self.urgent or load.idle_cores() > 0.5


def target_cpu() -> str | None:
    """The ``--target-cpu`` that the user chose, or None for this machine's."""
    return os.environ.get("MAXJAX_CPU_TARGET") or None


def identity(source: str = "", target: str | None = None) -> str:
    """All that a library depends on besides its source; the source names the kernels it imports."""
    return "\n".join((f"native library 1, {versions()}", f"for {target or cpu_target()}",
                      kernel_digest.kernels(_whole(source)), *FLAGS, _COMMON,
                      standard_library.identity(source)))


def _whole(source: str) -> str:
    return source + _COMMON if _IMPORTS_KERNELS.search(source) else source


def build_library(source: str, output: Path, include: Sequence[Path] = (KERNELS,), *,
                  directory: Path | None = None, target: str | None = None,
                  seconds: float = 300.0, threads: int = 1, pace: Pace | None = None) -> None:
    """Builds a shared library from the text of a Mojo module.

    Args:
      output: the file to write; on the file system of ``directory``.
      include: folders in which to look for imported packages.
      directory: where to create a private folder for the compiler's files; by default that of
        ``output``.
      target: the ``--target-cpu``; by default ``MAXJAX_CPU_TARGET``, or else this machine's.
      seconds: the time after which the compiler is killed.
      threads: for the compiler.
      pace: says whether it goes on.

    Raises:
      ToolchainError: there is no library, and nothing is left behind.
    """
    directory = directory or output.parent
    folder = directory / fresh_name("building", directory)
    target = target or target_cpu()
    processor = ("--target-cpu", target) if target else ()
    built = folder / "library.so"
    pace = pace or Pace()
    deadline = time.monotonic() + seconds
    small = standard_library.applies(source)
    if not small:
        check_linker()

    def run(commands: Sequence[Sequence[str]],
            environment: Mapping[str, str] | None = None) -> None:
        _run(commands, folder, environment or {}, seconds, deadline, pace)

    try:
        folder.mkdir(mode=0o700)
        if small and not _build_small(source, built, directory, threads, processor, run):
            check_linker()
            small = False
        if not small:
            text = folder / SOURCE_NAME
            text.write_text(_whole(source), encoding="utf-8")
            run([["mojo", "build", "--emit", "shared-lib", *FLAGS, "-j", str(threads), *processor,
                  *(part for path in include for part in ("-I", str(path))),
                  str(text), "-o", str(built)]])
        if not built.is_file() or not built.stat().st_size:
            raise ToolchainError("crashed", "the Mojo compiler wrote no library")
        os.replace(built, output)
    except OSError as error:
        raise ToolchainError("disk", f"no place to build native code: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def build_object(source: str, output: Path, *, directory: Path, target: str | None = None,
                 seconds: float = 300.0, pace: Pace | None = None) -> None:
    """Compiles the text of a Mojo module into an object for ``link_objects``: with the small
    standard library, or with MAX's where that lacks something, as a user's function may need.

    Args:
      output: the file to write; on the file system of ``directory``.
      directory: where to create a private folder for the compiler's files.
      target: the ``--target-cpu``; by default ``MAXJAX_CPU_TARGET``, or else this machine's.
      seconds: the time after which the compiler is killed.
      pace: says whether it goes on.

    Raises:
      ToolchainError: there is none.
    """
    def make(folder: Path, library: Path, options: Sequence[str], run: standard_library.Run
             ) -> None:
        text = folder / SOURCE_NAME
        text.write_text(source, encoding="utf-8")
        environment = standard_library.environment(library)
        try:
            if standard_library.applies(source):
                run([standard_library.compile_command(text, folder / "made", options)], environment)
                return
        except ToolchainError as error:
            if error.kind not in ("rejected", "crashed"):
                raise
            logger.info("an object is compiled with MAX's standard library, as the small one "
                        "lacks something: %s", error)
        run([standard_library.compile_command(
            text, folder / "made", (*options, "-I", str(KERNELS)))],
            {"PATH": environment["PATH"]})

    _make(make, output, directory, target, seconds, pace or Pace())


def link_objects(objects: Sequence[Path], output: Path, options: Sequence[str], *,
                 directory: Path, target: str | None = None, seconds: float = 300.0) -> None:
    """Links objects, and what all libraries have in common, to a shared library.

    Args:
      options: of the linker.
      output, directory, target, seconds: as of ``build_object``.

    Raises:
      ToolchainError: there is none.
    """
    def make(folder: Path, library: Path, _: Sequence[str], run: standard_library.Run) -> None:
        run([standard_library.link_command(objects, folder / "made", library, options)],
            standard_library.environment(library))

    _make(make, output, directory, target, seconds, Pace(urgent=True))


def _make(make: Callable[[Path, Path, Sequence[str], standard_library.Run], None], output: Path,
          directory: Path, target: str | None, seconds: float, pace: Pace) -> None:
    """Has the file ``made`` of a private folder made, and moves it to its place."""
    folder = directory / fresh_name("building", directory)
    target = target or target_cpu()
    options = (*_OPTIONS, *(("--target-cpu", target) if target else ()))
    deadline = time.monotonic() + seconds

    def run(commands: Sequence[Sequence[str]],
            environment: Mapping[str, str] | None = None) -> None:
        _run(commands, folder, environment or {}, seconds, deadline, pace)

    try:
        folder.mkdir(mode=0o700)
        library = standard_library.prepared(
            directory, folder, options, _COMMON, target, run)
        make(folder, library, (*options, "-j", "1"), run)
        os.replace(folder / "made", output)
    except OSError as error:
        raise ToolchainError("disk", f"no place to build native code: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _build_small(source: str, built: Path, directory: Path, threads: int,
                 processor: Sequence[str], run: standard_library.Run) -> bool:
    """Builds a library with the small standard library; returns whether that went well.

    Raises:
      ToolchainError: it has no fault in this.
    """
    options = (*_OPTIONS, "-j", str(threads), *processor)
    folder = built.parent
    step = "it cannot be prepared"
    try:
        library = standard_library.prepared(
            directory, folder, (*_OPTIONS, *processor), _COMMON, target_cpu(), run)
        step = "it lacks something"
        text = folder / SOURCE_NAME
        text.write_text(source, encoding="utf-8")
        run(standard_library.commands(text, built, library, options),
            standard_library.environment(library))
    except ToolchainError as error:
        if error.kind not in ("rejected", "crashed"):
            raise
        if step == "it lacks something":
            logger.info("a library of kernels is compiled with MAX's standard library, as the "
                        "small one lacks something: %s", error)
        else:
            standard_library.give_up(str(error))
        return False
    return True


def _run(commands: Sequence[Sequence[str]], folder: Path, environment: Mapping[str, str],
         seconds: float, deadline: float, pace: Pace) -> None:
    """Runs the compiler, and perhaps a linker, to the end.

    Raises:
      ToolchainError: one did not succeed.
    """
    process = _start(commands, folder, environment)

    def goes_on() -> bool:
        pace.look()
        return not pace.stopped

    try:
        printed, in_time = _listen(process, deadline, goes_on)
    finally:
        _end(process)
        with _lock:
            _running.pop(process.pid, None)
    output = printed.decode(errors="replace").strip()
    if _ending:
        raise ToolchainError("ending", "the interpreter is ending")
    if in_time:
        _judge(process.returncode, output)
    elif pace.stopped:
        raise ToolchainError("stopped", "the build was given up")
    else:
        raise ToolchainError("timeout", f"the Mojo compiler took more than {seconds:g} s", output)


def _start(commands: Sequence[Sequence[str]], folder: Path, environment: Mapping[str, str]
           ) -> subprocess.Popen:
    """Starts the compiler.

    Raises:
      ToolchainError: it cannot be.
    """
    program, places = _compiler()
    environment = {**places, **os.environ, **environment, "TMPDIR": str(folder),
                   # Builds share nothing, and this cache is unbounded.
                   "MODULAR_CACHE_DIR": str(folder / "cache")}
    environment.setdefault("MODULAR_TELEMETRY_ENABLED", "0")
    command = [sys.executable, "-I", "-S", "-c", _LAUNCHER % _NO_COMPILER,
               str(os.getpid())]
    for first, *words in commands:
        command += [str(len(words) + 1), program if first == "mojo" else first, *words]
    with _lock:
        if _ending:
            raise ToolchainError("ending", "the interpreter is ending")
        try:
            with threads.unforked:      # a fork would keep open the pipe that signals the start
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, env=environment, cwd=folder, start_new_session=True)
        except (OSError, ValueError, TypeError) as error:  # TypeError: sys.executable is None
            raise ToolchainError("missing", f"the Mojo compiler cannot be run: {error}") from error
        _running[process.pid] = process, folder
    return process


def _judge(code: int, output: str) -> None:
    """Raises the error that the compiler's exit status and output indicate, if any."""
    if code == 0:
        return
    last = output.splitlines()[-1] if output else "it printed nothing"
    if "No space left on device" in output or os.strerror(errno.EDQUOT) in output:
        raise ToolchainError("disk", "no space left on device to build native code", output)
    if code == -getattr(signal, "SIGXFSZ", 0) or os.strerror(errno.EFBIG) in output:
        raise ToolchainError("disk", "files may not be as large (ulimit -f) as building native "
                             "code needs", output)
    if code == _NO_COMPILER:
        raise ToolchainError("missing", f"no Mojo compiler: {last}", output)
    if _NO_LINKER in output:
        raise _no_linker(output)
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        why = " (out of memory?)" if -code == signal.SIGKILL else ""
        raise ToolchainError("killed" if -code == signal.SIGKILL else "crashed",
                             f"the Mojo compiler was ended by {name}{why}", output)
    found = _ERROR_LINE.search(output)
    if found is None:
        raise ToolchainError(
            "crashed", f"the Mojo compiler ended with status {code}: {last}", output)
    raise ToolchainError("rejected", f"the Mojo compiler failed: {found[1]}", output)


def check() -> None:
    """Raises a ToolchainError where the pack and kernels cannot be built: there is no compiler, or
    nothing to link with."""
    compiler_folder()
    if standard_library.why_not() is not None:
        check_linker()


def check_linker() -> None:
    """Raises a ToolchainError where there is no C compiler to link with."""
    if shutil.which(_LINKER) is None:
        raise _no_linker()


def _no_linker(output: str = "") -> ToolchainError:
    return ToolchainError("missing", "no C compiler, which the Mojo compiler links with: PATH has "
                          f"no {_LINKER}", output)


def compiler_folder() -> str:
    """The folder on ``sys.path`` that has the package ``mojo``, found without importing it."""
    try:
        spec = importlib.util.find_spec("mojo")
    except (ImportError, ValueError):
        spec = None
    for location in (spec.submodule_search_locations if spec is not None else None) or ():
        if os.path.exists(os.path.join(location, "run.py")):
            return os.path.dirname(os.path.abspath(location))
    raise ToolchainError("missing", "no Mojo compiler: the package mojo-compiler is not installed")


def _compiler() -> tuple[str, dict[str, str]]:
    """The compiler's file, and the variables that tell it where its own files are, unless the
    environment says otherwise; as the package ``mojo`` finds and sets them.

    Raises:
      ToolchainError: there is none.
    """
    site = Path(compiler_folder())
    # A wheel's folder, or conda's environment: the `bin/mojo` of a virtual one calls the wheel's.
    root = next((root for root in (site / "modular", site.parent.parent.parent)
                 if (root / "bin" / "mojo").exists() and (root / "lib" / "mojo").exists()),
                site / "modular")
    program = os.environ.get(_DRIVER) or str(root / "bin" / "mojo")
    if not os.path.exists(program):
        raise ToolchainError("missing", f"no Mojo compiler: there is none at {program}")
    return program, {"MODULAR_MAX_PACKAGE_ROOT": str(root),
                     "MODULAR_MOJO_MAX_PACKAGE_ROOT": str(root), _DRIVER: program,
                     "MODULAR_MOJO_MAX_IMPORT_PATH": str(root / "lib" / "mojo")}


def _listen(process: subprocess.Popen, deadline: float,
            goes_on: Callable[[], bool]) -> tuple[bytes, bool]:
    """What the process prints until it ends, and whether it does: before the deadline, and while
    ``goes_on`` says so."""
    assert process.stdout is not None
    stream = process.stdout.fileno()
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    printed = bytearray()
    ended = False
    woken = time.monotonic()
    while True:
        if not ended and time.monotonic() - woken > _WAKE_SECONDS:
            # One that somebody has stopped would hold up all others until the deadline.
            woken = time.monotonic()
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGCONT)
        # Not until the end of the stream: one of the compiler's children may hold it longer.
        if poll.poll(0 if ended else int(_POLL_SECONDS * 1000)):
            chunk = os.read(stream, 1 << 16)
            printed += chunk[:max(0, _MOST_OUTPUT - len(printed))]
            if not chunk:
                poll.unregister(stream)
                if not ended:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(max(0.0, deadline - time.monotonic()))
                return bytes(printed), process.poll() is not None
        elif ended:
            return bytes(printed), True
        ended = ended or process.poll() is not None
        if not ended and (time.monotonic() >= deadline or not goes_on()):
            return bytes(printed), False


def _end(process: subprocess.Popen) -> None:
    """Ends a process and its group, whether or not it has ended by itself."""
    with contextlib.suppress(OSError):
        # Until the process is reaped, its number, and so the group's, still belongs to it.
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5.0)
    if process.stdout is not None:
        process.stdout.close()


def _end_all() -> None:
    global _ending
    warn_no_more()
    with _lock:
        _ending = True
        running = list(_running.values())
    for process, folder in running:
        with contextlib.suppress(OSError):
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


@threads.after_fork
def _after_fork_in_child() -> None:
    for process, _ in _running.values():
        process.returncode = 0  # not a child of this process: nothing to wait for, or to end
    _running.clear()


atexit.register(_end_all)
