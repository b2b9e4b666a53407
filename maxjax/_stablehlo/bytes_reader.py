"""MLIR's bytecode, byte by byte: numbers of variable length, sections, lists of strings.

See https://mlir.llvm.org/docs/BytecodeFormat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from maxjax._stablehlo.program import Unreadable

T = TypeVar("T")


class Bytes:
    """Reads bytes of a file.

    Attributes:
      start: where they begin in the file.
    """

    def __init__(self, content: memoryview, start: int):
        self.content = content
        self.start = start
        self.position = 0

    def error(self, problem: str) -> Unreadable:
        return Unreadable(f"byte {self.start + self.position}", problem)

    @property
    def is_done(self) -> bool:
        return self.position >= len(self.content)

    def byte(self) -> int:
        if self.is_done:
            raise self.error("the file is cut off")
        value = self.content[self.position]
        self.position += 1
        return value

    def bytes(self, count: int) -> memoryview:
        if count > len(self.content) - self.position:
            raise self.error("the file is cut off")
        found = self.content[self.position:self.position + count]
        self.position += count
        return found

    def part(self, count: int) -> Bytes:
        start = self.start + self.position
        return Bytes(self.bytes(count), start)

    def number(self) -> int:
        """The zeros at the end of the first byte say how many bytes follow."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if not first:
            return int.from_bytes(self.bytes(8), "little")
        more = (first & -first).bit_length() - 1
        return (first | int.from_bytes(self.bytes(more), "little") << 8) >> (more + 1)

    def signed(self) -> int:
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def count(self, what: str) -> int:
        """A number of things, each of which takes a byte at least."""
        value = self.number()
        if value > len(self.content) - self.position:
            raise self.error(f"{value} {what} in fewer bytes")
        return value

    def several(self, read: Callable[[], T], what: str = "elements") -> list[T]:
        return [read() for _ in range(self.count(what))]

    def text(self) -> str:
        """Up to a zero."""
        rest = bytes(self.content[self.position:])
        end = rest.find(b"\0")
        if end < 0:
            raise self.error("a string does not end")
        self.position += end + 1
        return rest[:end].decode("utf-8", "replace")

    def section(self) -> tuple[int, Bytes]:
        """A section's kind and its content, which may be aligned."""
        kind = self.byte()
        length = self.number()
        if kind & 0x80:
            alignment = self.number()
            if alignment < 1 or alignment & (alignment - 1) or alignment > 1 << 20:
                raise self.error("an alignment that is no power of two")
            while (self.start + self.position) % alignment:
                if self.byte() != 0xCB:
                    raise self.error("the padding of a section")
        return kind & 0x7F, self.part(length)
