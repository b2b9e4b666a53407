"""FlatBuffers, read: tables of fields that are found by offsets. Every offset is checked."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

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
