"""Profiles: what was recorded, as objects and as files.

One file is for Perfetto and chrome://tracing, the other for what reads XLA's profiles.
"""

from __future__ import annotations

import datetime
import gzip
import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from maxjax._base import spans, xplane
from maxjax._base.errors import JaxRuntimeError
from maxjax._base.processes import job

# Spans of one thread have to nest, or Perfetto drops them: those of several programs that are
# compiled at a time do not, and are pairs of events of their own.
_OVERLAPPING = {"compile"}


class ProfileEvent:
    """A span of a profile.

    Attributes:
      name: what it is called.
      category: what kind it is, such as "operation"; of maxjax alone.
      start_ns, end_ns, duration_ns: nanoseconds since the profile began.

    >>> with jax.profiler.trace() as session, jax.profiler.TraceAnnotation("load"):
    ...     pass
    >>> event = next(next(session.profile_data.find_plane_with_name("/host:CPU").lines).events)
    >>> event.name, event.end_ns == event.start_ns + event.duration_ns
    ('load', True)
    """

    def __init__(self, name: str, category: str, thread: int, start: float, end: float,
                 stats: xplane.Stats):
        self.name = name
        self.category = category
        self.start_ns = float(start)
        self.end_ns = float(end)
        self.duration_ns = float(end - start)
        self._thread = thread
        self._stats = stats

    @property
    def stats(self) -> Iterator[tuple[str, Any]]:
        """The data that come with it, by name."""
        return iter(self._stats)


class ProfileLine:
    """The spans of one thread.

    >>> with jax.profiler.trace() as session, jax.profiler.TraceAnnotation("load"):
    ...     pass
    >>> plane = session.profile_data.find_plane_with_name("/host:CPU")
    >>> [line.name for line in plane.lines]
    ['MainThread']
    """

    def __init__(self, name: str, thread: int, events: list[ProfileEvent]):
        self.name = name
        self._thread = thread
        self._events = events

    @property
    def events(self) -> Iterator[ProfileEvent]:
        """In the order in which they began."""
        return iter(self._events)


class ProfilePlane:
    """A part of a profile: the lines of a process, or data about the run.

    >>> with jax.profiler.trace() as session:
    ...     pass
    >>> [plane.name for plane in session.profile_data.planes]
    ['/host:metadata', '/host:CPU', 'Task Environment']
    """

    def __init__(self, name: str, stats: xplane.Stats, lines: list[ProfileLine]):
        self.name = name
        self._stats = stats
        self._lines = lines

    @property
    def lines(self) -> Iterator[ProfileLine]:
        """One for each thread in which something happened."""
        return iter(self._lines)

    @property
    def stats(self) -> Iterator[tuple[str, Any]]:
        """Data about all of it, by name."""
        return iter(self._stats)


class ProfileData:
    """A profile: what ``jax.profiler.ProfileSession`` recorded.

    >>> with jax.profiler.trace() as session:
    ...     pass
    >>> [name for name, _ in session.profile_data.find_plane_with_name("Task Environment").stats]
    ['profile_start_time', 'profile_stop_time']
    """

    def __init__(self, planes: list[ProfilePlane]):
        self._planes = planes

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        """Its parts."""
        return iter(self._planes)

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        """The part of that name, if there is one."""
        return next((plane for plane in self._planes if plane.name == name), None)

    @staticmethod
    def from_file(proto_file_path: str) -> ProfileData:
        """Reads a file ``*.xplane.pb``, which JAX or maxjax wrote.

        Raises:
          JaxRuntimeError: there is none.
          RuntimeError: it is no such file.
        """
        try:
            written = Path(proto_file_path).read_bytes()
        except FileNotFoundError:
            raise JaxRuntimeError(
                f"NOT_FOUND: {proto_file_path}; No such file or directory") from None
        return ProfileData.from_serialized_xspace(written)

    @staticmethod
    def from_serialized_xspace(serialized_xspace: bytes) -> ProfileData:
        """Reads the contents of a file ``*.xplane.pb``.

        Raises:
          RuntimeError: they are no profile, or not a whole one.
        """
        try:
            planes = xplane.deserialize(serialized_xspace)
        except ValueError as error:
            raise RuntimeError(f"Failed to parse XSpace from array: {error}") from None
        return ProfileData([
            ProfilePlane(plane.name, plane.stats, [
                ProfileLine(line.name, line.number, [
                    _as_event(event, line) for event in line.events])
                for line in plane.lines])
            for plane in planes])

    @staticmethod
    def from_text_proto(text: str) -> NoReturn:
        """Is an error: profiles are read in their binary form."""
        raise NotImplementedError(
            "maxjax does not read profiles in protocol buffers' text format: use "
            "ProfileData.from_file of a file *.xplane.pb")


def _as_event(event: xplane.Event, line: xplane.Line) -> ProfileEvent:
    category = str(dict(event.stats).get("category", ""))
    start = line.start + event.start
    return ProfileEvent(event.name, category, line.number, start, start + event.duration,
                        [pair for pair in event.stats if pair[0] != "category"])


def _as_planes(data: ProfileData) -> list[xplane.Plane]:
    return [
        xplane.Plane(plane.name, plane._stats, [
            xplane.Line(line.name, line._thread, 0, [
                xplane.Event(event.name, event.start_ns, event.duration_ns,
                             [("category", event.category), *event._stats])
                for event in line.events])
            for line in plane.lines])
        for plane in data.planes]


class Recording:
    """The spans of the profile that is being recorded."""

    def __init__(self) -> None:
        self.start = spans.clock()
        self.began = time.time_ns()
        self.events: list[ProfileEvent] = []
        self.threads: dict[int, str] = {}

    def record(self, name: str, category: str, start: int, end: int,
               arguments: dict[str, object]) -> None:
        thread = threading.current_thread()
        number = thread.native_id or 0
        self.threads[number] = thread.name
        # append is atomic: programs run in several threads.
        self.events.append(ProfileEvent(
            name, category, number, max(0, start - self.start), end - self.start,
            tuple(arguments.items())))

    def data(self, version: str) -> ProfileData:
        lines = [
            ProfileLine(name, thread, sorted(
                (event for event in self.events if event._thread == thread),
                key=lambda event: (event.start_ns, -event.duration_ns)))
            for thread, name in self.threads.items()]
        return ProfileData([
            ProfilePlane("/host:metadata", [("maxjax_version", version)], []),
            ProfilePlane("/host:CPU", [("process_id", os.getpid())], lines),
            ProfilePlane("Task Environment", [
                ("profile_start_time", self.began), ("profile_stop_time", time.time_ns())], [])])


def write(data: ProfileData, folder: Path, perfetto: bool, session_id: str | None) -> None:
    """Writes a profile to ``plugins/profile/<session_id>``, which is the time by default."""
    name = session_id or datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S")
    folder = folder / "plugins" / "profile" / name
    folder.mkdir(parents=True, exist_ok=True)
    host, process = platform.node() or "host", "/host:CPU"
    if job.device_counts:       # several processes of a host write to one folder
        host, process = f"{host}-{job.index}", f"{process} process {job.index}"
    plane = data.find_plane_with_name("/host:CPU")
    assert plane is not None
    pid = dict(plane.stats)["process_id"]
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}}]
    for line in plane.lines:
        events.append({"ph": "M", "pid": pid, "tid": line._thread, "name": "thread_name",
                       "args": {"name": line.name}})
    for line in plane.lines:
        for event in line.events:
            events.extend(_as_json(event, pid))
    text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events})
    paths = [folder / f"{host}.trace.json.gz"]
    if perfetto:
        paths.append(folder / "perfetto_trace.json.gz")
    for path in paths:
        path.write_bytes(gzip.compress(text.encode()))
    (folder / f"{host}.xplane.pb").write_bytes(xplane.serialize(_as_planes(data), host))


def _as_json(event: ProfileEvent, pid: int) -> list[dict[str, Any]]:
    found: dict[str, Any] = {
        "ph": "X", "name": event.name, "cat": event.category, "pid": pid, "tid": event._thread,
        "ts": event.start_ns / 1e3}
    if event._stats:
        found["args"] = {key: str(value) for key, value in event.stats}
    if event.category not in _OVERLAPPING:
        return [found | {"dur": event.duration_ns / 1e3}]
    found |= {"ph": "b", "id": f"{event._thread}.{int(event.start_ns)}"}
    last = {key: found[key] for key in ("name", "cat", "pid", "tid", "id")}
    return [found, last | {"ph": "e", "ts": event.end_ns / 1e3}]
