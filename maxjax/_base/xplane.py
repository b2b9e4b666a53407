"""Profiles in XLA's format, ``XSpace``, which ``ProfileData`` of JAX reads.

A plane is a process or an accelerator, a line a thread, and an event a span in picoseconds. Names
of events and of their data stand once in a plane, by numbers:

    XSpace          1 planes, 4 names of hosts
    XPlane          1 id, 2 name, 3 lines, 4 names of events, 5 names of data, 6 data
    XLine           1 id, 2 name, 3 begin in ns, 4 events, 11 name to show
    XEvent          1 name, 2 begin since the line's in ps, 3 duration in ps, 4 data
    XStat           1 name, 2 double, 3 uint64, 4 int64, 5 text, 6 bytes, 7 a name as the value
    XEventMetadata  1 id, 2 name;  XStatMetadata the same, each as the value 2 of a key 1
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from maxjax._base.protobuf import as_double, content, double, fields, number, signed

# Data by name; of one name there may be several.
Stats = Sequence[tuple[str, object]]


@dataclasses.dataclass
class Event:
    """A span: nanoseconds since its line began."""

    name: str
    start: float
    duration: float
    stats: Stats


@dataclasses.dataclass
class Line:
    """A thread: the number of it, and when it began, in nanoseconds."""

    name: str
    number: int
    start: int
    events: list[Event]


@dataclasses.dataclass
class Plane:
    name: str
    stats: Stats
    lines: list[Line]


# --- writing --------------------------------------------------------------------------------------

class _Names(dict[str, int]):
    """The numbers of names, from 1 on."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self) + 1
        return self[name]

    def written(self, field: int) -> bytes:
        return b"".join(
            content(field, number(1, key) + content(2, number(1, key) + content(2, name.encode())))
            for name, key in self.items())


def _stats(field: int, stats: Stats, names: _Names) -> bytes:
    def written(value: object) -> bytes:
        match value:
            case int():
                return number(4, value) if -1 << 63 <= value < 1 << 63 else number(3, value)
            case float():
                return double(2, value)
            case bytes():
                return content(6, value)
        return content(5, str(value).encode())

    return b"".join(content(field, number(1, names[name]) + written(value))
                    for name, value in stats)


def _plane(plane: Plane, key: int) -> bytes:
    events, stats = _Names(), _Names()
    lines = b"".join(
        content(3, number(1, line.number) + content(2, line.name.encode())
                + number(3, line.start) + b"".join(
                    content(4, number(1, events[event.name])
                            + number(2, round(event.start * 1000))
                            + number(3, round(event.duration * 1000))
                            + _stats(4, event.stats, stats))
                    for event in line.events))
        for line in plane.lines)
    own = _stats(6, plane.stats, stats)
    return (number(1, key) + content(2, plane.name.encode()) + lines + events.written(4)
            + stats.written(5) + own)


def serialize(planes: Iterable[Plane], host: str) -> bytes:
    """A profile of one host."""
    written = [content(1, _plane(plane, key)) for key, plane in enumerate(planes)]
    return b"".join([*written, content(4, host.encode())])


# --- reading --------------------------------------------------------------------------------------

class _Message:
    """The fields of a message by their numbers; of those that are not there 0 and "".

    Raises:
      ValueError: a field is of another kind than it has in a profile.
    """

    def __init__(self, data: bytes) -> None:
        self._found: dict[int, list[int | bytes]] = {}
        for field, value in fields(data):
            self._found.setdefault(field, []).append(value)

    def __contains__(self, field: int) -> bool:
        return field in self._found

    def contents(self, field: int) -> list[bytes]:
        found = self._found.get(field, [])
        contents = [value for value in found if isinstance(value, bytes)]
        if len(contents) < len(found):
            raise ValueError(f"field {field} of an XSpace is an integer")
        return contents

    def content(self, field: int) -> bytes:
        return self.contents(field)[-1] if field in self else b""

    def text(self, field: int) -> str:
        return self.content(field).decode(errors="replace")

    def unsigned(self, field: int) -> int:
        value = self._found.get(field, [0])[-1]
        if not isinstance(value, int):
            raise ValueError(f"field {field} of an XSpace is no integer")
        return value

    def integer(self, field: int) -> int:
        return signed(self.unsigned(field))

    def messages(self, field: int) -> list[_Message]:
        return [_Message(content) for content in self.contents(field)]


def _read_names(plane: _Message, field: int) -> dict[int, str]:
    return {entry.integer(1): _Message(entry.content(2)).text(2)
            for entry in plane.messages(field)}


def _read_stats(stats: list[_Message], names: dict[int, str]) -> Stats:
    def value(stat: _Message) -> object:
        if 2 in stat:
            return as_double(stat.content(2))
        if 3 in stat:
            return stat.unsigned(3)
        if 5 in stat or 6 in stat:
            return stat.text(5 if 5 in stat else 6)
        return names.get(stat.integer(7), "") if 7 in stat else stat.integer(4)

    return [(names.get(stat.integer(1), ""), value(stat)) for stat in stats]


def _read_plane(plane: _Message) -> Plane:
    events, names = _read_names(plane, 4), _read_names(plane, 5)
    lines = [
        Line(line.text(11) or line.text(2), line.integer(1), line.integer(3), [
            Event(events.get(event.integer(1), ""), event.integer(2) / 1000,
                  event.integer(3) / 1000, _read_stats(event.messages(4), names))
            for event in line.messages(4)])
        for line in plane.messages(3)]
    return Plane(plane.text(2), _read_stats(plane.messages(6), names), lines)


def deserialize(data: bytes) -> list[Plane]:
    """The planes of a profile.

    Raises:
      ValueError: the bytes are no profile, or not a whole one.
    """
    return [_read_plane(plane) for plane in _Message(data).messages(1)]
