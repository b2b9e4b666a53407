"""FlatBuffers: tables of fields that are found by offsets. Where they are read, every offset is
checked."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")
# Tables in tables nest at most so deep, and a file has at most so many: one can be in many places.
_DEEPEST = 100
_MOST_TABLES = 200_000


class Damaged(ValueError):
    """The bytes are no such file."""


class Buffer:
    """The bytes of a file, and how many tables have been read of it."""

    def __init__(self, content: bytes):
        self.content = content
        self.tables = 0

    def number(self, kind: str, place: int) -> int:
        size = struct.calcsize(kind)
        if place < 0 or place + size > len(self.content):
            raise Damaged("the file is cut off, or an offset leads out of it")
        return int(struct.unpack_from(f"<{kind}", self.content, place)[0])

    def root(self) -> Table:
        return Table(self, self.number("I", 0), 0)


class Table:
    """A table: its fields by number; those that are absent have a default."""

    def __init__(self, buffer: Buffer, place: int, depth: int):
        buffer.tables += 1
        if depth > _DEEPEST or buffer.tables > _MOST_TABLES:
            raise Damaged("its tables nest too deep, or are too many")
        self.buffer, self.place, self.depth = buffer, place, depth
        self.fields = place - buffer.number("i", place)
        self.count = (buffer.number("H", self.fields) - 4) // 2

    def _offset(self, field: int) -> int:
        if field >= self.count:
            return 0
        offset = self.buffer.number("H", self.fields + 4 + 2 * field)
        return self.place + offset if offset else 0

    def has(self, field: int) -> bool:
        return self._offset(field) != 0

    def number(self, field: int, kind: str, default: int = 0) -> int:
        """A number of a ``struct`` kind."""
        place = self._offset(field)
        return self.buffer.number(kind, place) if place else default

    def _target(self, field: int) -> int:
        place = self._offset(field)
        return place + self.buffer.number("I", place) if place else 0

    def table(self, field: int) -> Table | None:
        place = self._target(field)
        return Table(self.buffer, place, self.depth + 1) if place else None

    def _elements(self, field: int, size: int) -> tuple[int, int]:
        place = self._target(field)
        if not place:
            return 0, 0
        count = self.buffer.number("I", place)
        if place + 4 + count * size > len(self.buffer.content):
            raise Damaged("a list is longer than the file")
        return place + 4, count

    def bytes(self, field: int) -> bytes:
        place, count = self._elements(field, 1)
        return self.buffer.content[place:place + count]

    def text(self, field: int) -> str:
        return _decoded(self.bytes(field))

    def numbers(self, field: int, kind: str) -> list[int]:
        size = struct.calcsize(kind)
        place, count = self._elements(field, size)
        return [self.buffer.number(kind, place + size * number) for number in range(count)]

    def _each(self, field: int, read: Callable[[int], T]) -> list[T]:
        place, count = self._elements(field, 4)
        found = []
        for number in range(count):
            at = place + 4 * number
            found.append(read(at + self.buffer.number("I", at)))
        return found

    def tables(self, field: int) -> list[Table]:
        return self._each(field, lambda place: Table(self.buffer, place, self.depth + 1))

    def texts(self, field: int) -> list[str]:
        def read(place: int) -> str:
            length = self.buffer.number("I", place)
            if place + 4 + length > len(self.buffer.content):
                raise Damaged("a text is longer than the file")
            return _decoded(self.buffer.content[place + 4:place + 4 + length])

        return self._each(field, read)


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Damaged("a text that is none") from None


# --- writing --------------------------------------------------------------------------------------

class Number:
    """A number, of a ``struct`` kind."""

    def __init__(self, kind: str, value: int):
        self.content = struct.pack(f"<{kind}", value)


class Numbers:
    """A list of numbers of a ``struct`` kind."""

    def __init__(self, kind: str, values: Sequence[int]):
        self.count = len(values)
        self.content = struct.pack(f"<{len(values)}{kind}", *values)


# What a field refers to, and what a field is. A table has its fields by their numbers.
Target: TypeAlias = "Numbers | str | bytes | Mapping[int, Field] | Sequence[Target]"
Field: TypeAlias = "Number | Target"


def written(root: Mapping[int, Field]) -> bytes:
    """A file with a table.

    Args:
      root: for each field a ``Number`` or ``Numbers``, a text, bytes, another such table, or a list
        of texts or tables.
    """
    writer = _Writer()
    writer.content += bytes(4)
    writer.point(0, root)
    return bytes(writer.content)


class _Writer:
    def __init__(self) -> None:
        self.content = bytearray()

    def align(self) -> None:
        self.content += bytes(-len(self.content) % 4)

    def point(self, place: int, value: Target) -> None:
        """Writes a value at the end, and how far it is from a place, there."""
        self.align()
        if isinstance(value, Mapping):
            target = self._table(value)
        else:
            target = len(self.content)
            self._list(value)
        struct.pack_into("<I", self.content, place, target - place)

    def _list(self, value: Numbers | str | bytes | Sequence[Target]) -> None:
        if isinstance(value, Numbers):
            self.content += struct.pack("<I", value.count) + value.content
        elif isinstance(value, (str, bytes)):
            encoded = value.encode() if isinstance(value, str) else value
            self.content += struct.pack("<I", len(encoded)) + encoded + b"\0"
        else:
            self.content += struct.pack("<I", len(value))
            places = [len(self.content) + 4 * number for number in range(len(value))]
            self.content += bytes(4 * len(value))
            for place, item in zip(places, value, strict=True):
                self.point(place, item)

    def _table(self, fields: Mapping[int, Field]) -> int:
        count = max(fields, default=-1) + 1
        offsets, size = [0] * count, 4
        for number, value in fields.items():
            width = len(value.content) if isinstance(value, Number) else 4
            size += -size % width
            offsets[number] = size
            size += width
        size += -size % 4
        start = len(self.content)
        self.content += struct.pack(f"<HH{count}H", 4 + 2 * count, size, *offsets)
        self.align()
        place = len(self.content)
        self.content += struct.pack("<i", place - start) + bytes(size - 4)
        for number, value in fields.items():
            if isinstance(value, Number):
                at = place + offsets[number]
                self.content[at:at + len(value.content)] = value.content
        for number, value in fields.items():
            if not isinstance(value, Number):
                self.point(place + offsets[number], value)
        return place
