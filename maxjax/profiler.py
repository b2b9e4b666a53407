"""jax.profiler: where the time went, as files for Perfetto, chrome://tracing and XLA's tools.

A profile has a span for each program that ran, with its tier, for the compiled pieces and host
steps of those that have several, for each operation outside ``jit``, each function that was traced
and each program that was compiled, each exchange with other processes, and for user annotations.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from maxjax._base import spans as _spans
from maxjax._base import threads as _threads
from maxjax._base.interrupts import context_manager
from maxjax._base.missing import explain_missing_names
from maxjax._base.profiles import ProfileData as ProfileData
from maxjax._base.profiles import ProfileEvent as ProfileEvent
from maxjax._base.profiles import ProfileLine as ProfileLine
from maxjax._base.profiles import ProfilePlane as ProfilePlane
from maxjax._base.profiles import Recording as _Recording
from maxjax._base.profiles import write as _write_profile
from maxjax._base.protobuf import content as _content
from maxjax._base.protobuf import number as _number
from maxjax._base.protobuf import varint as _varint
from maxjax._runtime import placement as _placement
from maxjax.version import __version__ as _version


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


_lock = _threads.lock()


class _State:
    """The session that is recording, and the requested server."""

    __slots__ = ("server", "session")

    def __init__(self) -> None:
        self.session: ProfileSession | None = None
        self.server: _Server | None = None


_state = _State()


class ProfileSession:
    """Records a profile, from ``start`` to ``stop`` or as a context manager.

    Args:
      log_dir: where ``stop`` writes the profile, to the folder ``plugins/profile/<time>``; without
        it the profile is in ``profile_data`` alone.
      create_perfetto_trace: also write it under the name ``perfetto_trace.json.gz``.

    Raises:
      NotImplementedError: ``create_perfetto_link``: open the file with ui.perfetto.dev.

    >>> with jax.profiler.ProfileSession() as session:
    ...     with jax.profiler.TraceAnnotation("load", part=3):
    ...         pass
    >>> plane = session.profile_data.find_plane_with_name("/host:CPU")
    >>> [(event.name, list(event.stats)) for line in plane.lines for event in line.events]
    [('load', [('part', 3)])]
    """

    def __init__(self, log_dir: os.PathLike[str] | str | None = None,
                 create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
                 profiler_options: ProfileOptions | None = None):
        _check_link(create_perfetto_link)
        self.log_dir = None if log_dir is None else str(log_dir)
        self.create_perfetto_link = create_perfetto_link
        self.create_perfetto_trace = create_perfetto_trace
        self.profiler_options = profiler_options
        self._recording: _Recording | None = None
        self._data: ProfileData | None = None

    def start(self) -> ProfileSession:
        """Begins to record.

        Raises:
          RuntimeError: a profile is already being recorded.
        """
        with _lock:
            if _state.session is not None:
                raise RuntimeError(
                    "Profile has already been started. Only one profile may be run at a time.")
            self._recording, self._data = _Recording(), None
            _state.session = self
            _spans.set_recorder(self._recording.record)
        return self

    def stop(self) -> ProfileData | None:
        """Ends the profile, and writes it where there is a folder for it.

        Raises:
          RuntimeError: it is not being recorded.
        """
        with _lock:
            if self._recording is None:
                raise RuntimeError("No profile started")
            _spans.set_recorder(None)
            self._data = self._recording.data(_version)
            self._recording = _state.session = None
        if self.log_dir is not None:
            self.export_profile_data(
                self.log_dir, create_perfetto_trace=self.create_perfetto_trace)
        return self._data

    @property
    def is_running(self) -> bool:
        """Whether it is being recorded."""
        return self._recording is not None

    @property
    def profile_data(self) -> ProfileData | None:
        """What was recorded, once it has ended."""
        return self._data

    def export_profile_data(self, log_dir: os.PathLike[str] | str,
                            create_perfetto_link: bool = False,
                            create_perfetto_trace: bool = False,
                            session_id: str | None = None) -> None:
        """Writes it: see ``jax.profiler.export_profile_data``."""
        export_profile_data(self, log_dir, create_perfetto_link, create_perfetto_trace, session_id)

    def __enter__(self) -> ProfileSession:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.is_running:
            self.stop()


def _check_link(create_perfetto_link: bool) -> None:
    if create_perfetto_link:
        raise NotImplementedError(
            "create_perfetto_link serves the profile on a local port, which maxjax does not do: "
            "use create_perfetto_trace and open the file with https://ui.perfetto.dev")


def export_profile_data(profile_data: ProfileData | ProfileSession,
                        log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False,
                        create_perfetto_trace: bool = False,
                        session_id: str | None = None) -> None:
    """Writes a profile to a file for Perfetto.

    Args:
      profile_data: a session that has ended, or its data.
      log_dir: the file is in its folder ``plugins/profile/<session_id>``.
      create_perfetto_trace: also write it under the name ``perfetto_trace.json.gz``.
      session_id: the time by default.

    Raises:
      RuntimeError: the session has not been started, or it has not ended.
      TypeError: the first argument is neither.
      NotImplementedError: ``create_perfetto_link``: open the file with ui.perfetto.dev.

    >>> import pathlib, tempfile
    >>> with jax.profiler.trace() as session:
    ...     x = jnp.ones(3).sum().block_until_ready()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jax.profiler.export_profile_data(session, folder, session_id="first")
    ...     [path.parent.name for path in pathlib.Path(folder).rglob("*.trace.json.gz")]
    ['first']
    """
    if isinstance(profile_data, ProfileSession):
        if profile_data.is_running:
            raise RuntimeError(
                "Cannot export a ProfileSession while it is running. Call stop() first.")
        if profile_data.profile_data is None:
            raise RuntimeError("No profile data to export. Ensure the session has completed.")
        if session_id is None and profile_data.profiler_options is not None:
            session_id = profile_data.profiler_options.session_id
        profile_data = profile_data.profile_data
    elif not isinstance(profile_data, ProfileData):
        raise TypeError(
            f"Expected ProfileData or ProfileSession, got {type(profile_data).__name__}")
    _check_link(create_perfetto_link)
    _write_profile(profile_data, Path(log_dir), create_perfetto_trace, session_id)


def start_trace(log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False,
                create_perfetto_trace: bool = False,
                profiler_options: ProfileOptions | None = None) -> ProfileSession | None:
    """Begins a profile.

    Args:
      log_dir: ``stop_trace`` writes to its folder ``plugins/profile/<time>``.
      create_perfetto_trace: also write it under the name ``perfetto_trace.json.gz``.

    Raises:
      RuntimeError: a profile is already being recorded.
      NotImplementedError: ``create_perfetto_link``: open the file with ui.perfetto.dev.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = start_trace(folder)
    ...     x = jnp.ones(3).sum()
    ...     data = jax.profiler.stop_trace()
    """
    return ProfileSession(
        log_dir, create_perfetto_link, create_perfetto_trace, profiler_options).start()


def stop_trace() -> ProfileData | None:
    """Ends the profile and writes it.

    Returns:
      What was recorded.

    Raises:
      RuntimeError: none is being recorded.

    >>> stop_trace()
    Traceback (most recent call last):
    RuntimeError: No profile started
    """
    with _lock:
        session = _state.session
    if session is None:
        raise RuntimeError("No profile started")
    return session.stop()


@context_manager
def trace(log_dir: os.PathLike[str] | str | None = None, create_perfetto_link: bool = False,
          create_perfetto_trace: bool = False,
          profiler_options: ProfileOptions | None = None) -> Iterator[ProfileSession]:
    """Inside the context a profile is recorded: see ``ProfileSession``, which it gives.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with trace(folder):
    ...         x = jnp.ones(3).sum().block_until_ready()
    ...     len(list(pathlib.Path(folder).rglob("*.trace.json.gz")))
    1
    """
    with ProfileSession(
            log_dir, create_perfetto_link, create_perfetto_trace, profiler_options) as session:
        yield session


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
    body = _content(1, _number(1, 1) + _number(2, 2))
    body += _content(1, _number(1, 3) + _number(2, 4))
    for key, counts in enumerate(groups.values(), 1):
        values = b"".join(map(_varint, counts))
        body += _content(2, _content(1, _varint(key)) + _content(2, values))
        body += _content(4, _number(1, key) + _content(4, _number(1, key)))
        body += _content(5, _number(1, key) + _number(2, key + 4))
    return gzip.compress(body + b"".join(_content(6, text.encode()) for text in strings))


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
