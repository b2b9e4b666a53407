"""jax.profiler: where the time went, as a file for Perfetto and chrome://tracing.

A profile has a span for each program that ran, with its tier, for the compiled pieces and host
steps of those that have several, for each operation outside ``jit``, each function that was traced
and each program that was compiled, each exchange with other processes, and for user annotations.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import gzip
import json
import os
import platform
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from maxjax._base import spans as _spans
from maxjax._base import threads as _threads
from maxjax._base.missing import explain_missing_names
from maxjax._base.processes import job as _job
from maxjax._runtime import placement as _placement


@dataclasses.dataclass
class ProfileOptions:
    """JAX's options of ``start_trace``; none of them changes a profile of maxjax.

    >>> ProfileOptions().host_tracer_level
    2
    """

    advanced_configuration: dict[str, Any] = dataclasses.field(default_factory=dict)
    duration_ms: int = 0
    enable_hlo_proto: bool = True
    host_tracer_level: int = 2
    include_dataset_ops: bool = True
    python_tracer_level: int = 1
    raise_error_on_start_failure: bool = False
    repository_path: str = ""
    session_id: str = ""
    start_timestamp_ns: int = 0


# Spans of one thread have to nest, or Perfetto drops them: those of several programs that are
# compiled at a time do not, and are pairs of events of their own.
_OVERLAPPING = {"compile"}


class _Recording:
    """The spans of the profile that is being recorded."""

    def __init__(self, folder: Path, perfetto: bool):
        self.folder = folder
        self.perfetto = perfetto
        self.start = _spans.clock()
        self.events: list[dict[str, Any]] = []
        self.threads: dict[int, str] = {}

    def record(self, name: str, category: str, start: int, end: int,
               arguments: dict[str, Any]) -> None:
        thread = threading.current_thread()
        self.threads[thread.native_id or 0] = thread.name
        event: dict[str, Any] = {
            "ph": "X", "name": name, "cat": category, "pid": os.getpid(), "tid": thread.native_id,
            "ts": max(0, start - self.start) / 1e3}
        if arguments:
            event["args"] = {key: str(value) for key, value in arguments.items()}
        # extend and append are atomic: programs run in several threads.
        if category in _OVERLAPPING:
            event |= {"ph": "b", "id": f"{thread.native_id}.{start}"}
            last = {key: event[key] for key in ("name", "cat", "pid", "tid", "id")}
            self.events.extend([event, last | {"ph": "e", "ts": (end - self.start) / 1e3}])
        else:
            event["dur"] = (end - max(start, self.start)) / 1e3
            self.events.append(event)

    def write(self) -> Path:
        now = datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S")
        folder = self.folder / "plugins" / "profile" / now
        folder.mkdir(parents=True, exist_ok=True)
        pid = os.getpid()
        host, process = platform.node() or "host", "/host:CPU"
        if _job.device_counts:       # several processes of a host write to one folder
            host, process = f"{host}-{_job.index}", f"{process} process {_job.index}"
        names = [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}}]
        names += [{"ph": "M", "pid": pid, "tid": thread, "name": "thread_name",
                   "args": {"name": name}} for thread, name in self.threads.items()]
        text = json.dumps({"displayTimeUnit": "ns", "traceEvents": [*names, *self.events]})
        path = folder / f"{host}.trace.json.gz"
        paths = [path, folder / "perfetto_trace.json.gz"] if self.perfetto else [path]
        for target in paths:
            target.write_bytes(gzip.compress(text.encode()))
        return path


_lock = _threads.lock()


class _State:
    """The profile that is being recorded, and the requested server."""

    __slots__ = ("recording", "server")

    def __init__(self) -> None:
        self.recording: _Recording | None = None
        self.server: _Server | None = None


_state = _State()


def start_trace(log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False,
                create_perfetto_trace: bool = False,
                profiler_options: ProfileOptions | None = None) -> None:
    """Begins a profile.

    Args:
      log_dir: ``stop_trace`` writes to its folder ``plugins/profile/<time>``.
      create_perfetto_trace: also write it under the name ``perfetto_trace.json.gz``.

    Raises:
      RuntimeError: a profile is already being recorded.
      NotImplementedError: ``create_perfetto_link``: open the file with ui.perfetto.dev.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     start_trace(folder)
    ...     x = jnp.ones(3).sum()
    ...     jax.profiler.stop_trace()
    """
    if create_perfetto_link:
        raise NotImplementedError(
            "create_perfetto_link serves the profile on a local port, which maxjax does not do: "
            "use create_perfetto_trace and open the file with https://ui.perfetto.dev")
    with _lock:
        if _state.recording is not None:
            raise RuntimeError(
                "Profile has already been started. Only one profile may be run at a time.")
        _state.recording = _Recording(Path(log_dir), create_perfetto_trace)
        _spans.set_recorder(_state.recording.record)


def stop_trace() -> None:
    """Ends the profile and writes it.

    Raises:
      RuntimeError: none is being recorded.

    >>> stop_trace()
    Traceback (most recent call last):
    RuntimeError: No profile started
    """
    with _lock:
        recording = _state.recording
        if recording is None:
            raise RuntimeError("No profile started")
        _spans.set_recorder(None)
        _state.recording = None
        recording.write()


@contextlib.contextmanager
def trace(log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False,
          create_perfetto_trace: bool = False,
          profiler_options: ProfileOptions | None = None) -> Iterator[None]:
    """Inside the context a profile is recorded: see ``start_trace``.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with trace(folder):
    ...         x = jnp.ones(3).sum().block_until_ready()
    ...     len(list(pathlib.Path(folder).rglob("*.trace.json.gz")))
    1
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """A user-defined span in the profile.

    Args:
      name: what the span is called.
      kwargs: additional data, shown with it.

    >>> with TraceAnnotation("load", file="a.npz"):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any):
        self._name = name
        self._arguments = kwargs
        self._start = 0

    def __enter__(self) -> TraceAnnotation:
        self._start = _spans.clock()
        return self

    def __exit__(self, *_: Any) -> None:
        _spans.add(self._name, "annotation", self._start, **self._arguments)

    def set_metadata(self, **kwargs: Any) -> None:
        """Adds data to the span."""
        self._arguments = {**self._arguments, **kwargs}

    @staticmethod
    def is_enabled() -> bool:
        """Whether a profile is being recorded."""
        return _spans.state.record is not None


class StepTraceAnnotation(TraceAnnotation):
    """The span of one step of a training loop.

    >>> for step in range(2):
    ...     with StepTraceAnnotation("train", step_num=step):
    ...         pass
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[..., Any], name: str | None = None,
                      **decorator_kwargs: Any) -> Callable[..., Any]:
    """``func`` with a span around each call.

    >>> @annotate_function
    ... def load():
    ...     return 3
    >>> load()
    3
    """
    label = name or getattr(func, "__qualname__", None) or type(func).__qualname__

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)
    return annotated


# --- servers --------------------------------------------------------------------------------------

class _Server:
    """A substitute for JAX's profiler server."""


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Warns that there is no server at the port: maxjax only writes files.

    Raises:
      ValueError: it has been called before.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     server = start_server(9999)
    >>> jax.profiler.stop_server()
    """
    if _state.server is not None:
        raise ValueError("Only one profiler server can be active at a time.")
    warnings.warn("maxjax has no profiler server: use maxjax.profiler.trace(folder)",
                  RuntimeWarning, stacklevel=2)
    _state.server = _Server()
    return _state.server


def stop_server() -> None:
    """Undoes ``start_server``.

    Raises:
      ValueError: it has not been called.

    >>> stop_server()
    Traceback (most recent call last):
    ValueError: No active profiler server.
    """
    if _state.server is None:
        raise ValueError("No active profiler server.")
    _state.server = None


# --- memory ---------------------------------------------------------------------------------------

def device_memory_profile(backend: str | None = None) -> bytes:
    """The live arrays, by shape and dtype, as a gzipped profile for ``pprof``.

    Stack traces are not recorded: the shape and dtype take their place.

    >>> import gzip
    >>> x = jnp.ones((3, 5)).block_until_ready()
    >>> b"float32[3,5]" in gzip.decompress(device_memory_profile())
    True
    """
    groups: dict[str, list[int]] = {}
    for array in _placement.live_arrays():
        counts = groups.setdefault(array.aval.str_short(), [0, 0])
        counts[0] += 1
        counts[1] += array.nbytes
    strings = ["", "allocations", "count", "space", "bytes", *groups]
    # https://github.com/google/pprof/blob/main/proto/profile.proto
    body = _field(1, _number(1, 1) + _number(2, 2)) + _field(1, _number(1, 3) + _number(2, 4))
    for number, counts in enumerate(groups.values(), 1):
        values = b"".join(map(_varint, counts))
        body += _field(2, _field(1, _varint(number)) + _field(2, values))
        body += _field(4, _number(1, number) + _field(4, _number(1, number)))
        body += _field(5, _number(1, number) + _number(2, number + 4))
    return gzip.compress(body + b"".join(_field(6, text.encode()) for text in strings))


def _varint(value: int) -> bytes:
    digits = []
    while True:
        value, digit = value >> 7, value & 127
        digits.append(digit | (128 if value else 0))
        if not value:
            return bytes(digits)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def save_device_memory_profile(filename: str | os.PathLike[str],
                               backend: str | None = None) -> None:
    """Writes ``device_memory_profile`` to a file.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_device_memory_profile(folder + "/memory.prof")
    ...     os.listdir(folder)
    ['memory.prof']
    """
    Path(filename).write_bytes(device_memory_profile(backend))


explain_missing_names(__name__)
