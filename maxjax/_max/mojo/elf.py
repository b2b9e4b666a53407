"""ELF files: writes data as an object file, with the addresses of functions in it, for the linker.

A program's tapes, codes and constants become such a file: as Mojo text they would take the compiler
minutes, and there may be no other compiler. The files are of 64 bits, for x86-64 and AArch64.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

_MACHINES = {"x86_64": 62, "AMD64": 62, "aarch64": 183}
# Kinds of relocations, by machine: that of an address; and the code of an accessor (see `_Code`)
# with the offset, kind and addend of each of its relocations.
_ADDRESS = {62: 1, 183: 257}
_FUNCTION = {
    62: (bytes.fromhex("488d0500000000c3"), [(3, 2, -4)]),      # lea rax, [rip + x]; ret
    # adrp x0, x; add x0, x0, :lo12:x; ret
    183: (bytes.fromhex("0000009000000091c0035fd6"), [(0, 275, 0), (4, 277, 0)]),
}
_SECTIONS = (".text", ".rodata", ".data.rel.ro", ".data")
_TEXT, _RODATA, _WORDS, _CELLS = range(4)
# Type and flags: PROGBITS; allocated, written, executed.
_KINDS = ((1, 2 | 4), (1, 2), (1, 2 | 1), (1, 2 | 1))
_ALIGNMENT = 128
_SYMTAB, _STRTAB, _RELA = 2, 3, 4
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SEGMENT = struct.Struct("<IIQQQQQQ")
# Kinds of segments, then of entries in the dynamic one.
_LOAD, _DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_SONAME = 1, 5, 14


class Reference(int):
    """An address that the linker will know, in the place of an integer.

    Attributes:
      symbol: a function's name, or the number of a section.
      offset: from there.
    """

    symbol: str | int
    offset: int

    def __new__(cls, symbol: str | int, offset: int = 0) -> Reference:
        # Not 0: that would be no address.
        made = super().__new__(cls, 1)
        made.symbol = symbol
        made.offset = offset
        return made


class DataObject:
    """An object file that is being written.

    Args:
      machine: as ``platform.machine()`` names it.

    Raises:
      ValueError: it is of another processor.
    """

    def __init__(self, machine: str):
        if machine not in _MACHINES:
            raise ValueError(f"there are no libraries for processors of the kind {machine}")
        self._machine = _MACHINES[machine]
        self._content = [bytearray() for _ in _SECTIONS]
        # For each section its relocations: offset, symbol, kind, addend.
        self._relocations: list[list[tuple[int, str | int, int, int]]] = [[] for _ in _SECTIONS]
        self._constants: dict[tuple[bytes, int], Reference] = {}
        self._functions: dict[str, tuple[int, int]] = {}     # offset and length in .text

    @property
    def nbytes(self) -> int:
        return sum(map(len, self._content))

    def constant(self, data: bytes, alignment: int = 64) -> Reference:
        """Where bytes will be that nothing writes; equal ones are there once."""
        known = self._constants.get((data, alignment))
        if known is None:
            known = self._constants[data, alignment] = Reference(
                _RODATA, self._append(_RODATA, data, alignment))
        return known

    def words(self, integers: Sequence[int]) -> Reference:
        """Where integers will be that nothing writes."""
        start = self._append(_WORDS, b"", 8)
        self._relocations[_WORDS] += [
            (start + 8 * n, x.symbol, _ADDRESS[self._machine], x.offset)
            for n, x in enumerate(integers) if isinstance(x, Reference)]
        plain = [0 if isinstance(x, Reference) else x for x in integers]
        self._append(_WORDS, struct.pack(f"<{len(plain)}q", *plain), 1)
        return Reference(_WORDS, start)

    def cells(self, count: int) -> Reference:
        """Where so many integers will be that are 0 at first and may be written."""
        return Reference(_CELLS, self._append(_CELLS, bytes(8 * count), _ALIGNMENT))

    def accessor(self, name: str, of: Reference) -> None:
        """Adds a function that returns an address: Mojo can name other objects' functions alone."""
        code, places = _FUNCTION[self._machine]
        start = self._append(_TEXT, code, 16)
        self._functions[name] = start, len(code)
        self._relocations[_TEXT] += [
            (start + at, of.symbol, kind, of.offset + more) for at, kind, more in places]

    def _append(self, section: int, data: bytes, alignment: int) -> int:
        content = self._content[section]
        content += bytes(-len(content) % alignment)
        start = len(content)
        content += data
        return start

    def written(self) -> bytes:
        """The file."""
        names = list(dict.fromkeys(
            symbol for part in self._relocations for _, symbol, _, _ in part
            if isinstance(symbol, str) and symbol not in self._functions))
        strings = _Strings()
        count = len(_SECTIONS)
        # The symbols of sections, which are local, then functions.
        symbols = [bytes(_SYMBOL.size)] + [
            _SYMBOL.pack(0, 3, 0, number + 1, 0, 0) for number in range(count)]
        numbers: dict[str | int, int] = {number: number + 1 for number in range(count)}
        for name, (start, length) in self._functions.items():
            numbers[name] = len(symbols)
            symbols.append(_SYMBOL.pack(strings.add(name), 0x12, 0, _TEXT + 1, start, length))
        for name in names:
            numbers[name] = len(symbols)
            symbols.append(_SYMBOL.pack(strings.add(name), 0x10, 0, 0, 0, 0))
        sections: list[tuple[str, int, int, bytes, int, int, int, int]] = [
            (name, *kind, bytes(content), 0, 0, _ALIGNMENT, 0)
            for name, kind, content in zip(_SECTIONS, _KINDS, self._content, strict=True)]
        symtab = count + 1
        sections += [
            (".symtab", _SYMTAB, 0, b"".join(symbols), symtab + 1, count + 1, 8, _SYMBOL.size),
            (".strtab", _STRTAB, 0, strings.content, 0, 0, 1, 0),
            (".note.GNU-stack", 1, 0, b"", 0, 0, 1, 0)]
        for number, part in enumerate(self._relocations):
            if part:
                table = b"".join([_RELOCATION.pack(at, numbers[symbol] << 32 | kind, more)
                                  for at, symbol, kind, more in part])
                sections.append((f".rela{_SECTIONS[number]}", _RELA, 0x40, table, symtab,
                                 number + 1, 8, _RELOCATION.size))
        return self._assembled(sections)

    def _assembled(self, sections: list[tuple[str, int, int, bytes, int, int, int, int]]
                   ) -> bytes:
        strings = _Strings()
        names = [strings.add(name) for name, *_ in sections] + [strings.add(".shstrtab")]
        sections = [*sections, (".shstrtab", _STRTAB, 0, strings.content, 0, 0, 1, 0)]
        file = bytearray(_HEADER.size)
        headers = [bytes(_SECTION.size)]
        for name, (_, kind, flags, content, link, info, alignment, entry) in zip(
                names, sections, strict=True):
            file += bytes(-len(file) % alignment)
            headers.append(_SECTION.pack(name, kind, flags, 0, len(file), len(content), link, info,
                                         alignment, entry))
            file += content
        file += bytes(-len(file) % 8)
        file[:_HEADER.size] = _HEADER.pack(
            b"\x7fELF\x02\x01\x01" + bytes(9), 1, self._machine, 1, 0, 0, len(file), 0,
            _HEADER.size, 0, 0, _SECTION.size, len(headers), len(headers) - 1)
        return bytes(file + b"".join(headers))


class _Strings:
    """A table of strings."""

    def __init__(self) -> None:
        self.content = b"\0"

    def add(self, text: str) -> int:
        place = len(self.content)
        self.content += text.encode() + b"\0"
        return place


def needed(path: Path) -> tuple[str | None, list[str]]:
    """The name of a shared library, if it has one, and the names of those that it needs.

    Raises:
      OSError: it cannot be read.
      ValueError: it is no ELF library of 64 bits.
    """
    content = path.read_bytes()
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not an ELF library")
    offset, = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    headers = [_SEGMENT.unpack_from(content, offset + size * n) for n in range(count)]
    entries: list[tuple[int, int]] = []
    for kind, _, start, _, _, length, *_ in headers:
        if kind == _DYNAMIC:
            entries += struct.iter_unpack("<QQ", content[start:start + length // 16 * 16])
    tables = [value for kind, value in entries if kind == _DT_STRTAB]
    strings = next((start + tables[0] - base for kind, _, start, base, _, length, *_ in headers
                    if tables and kind == _LOAD and base <= tables[0] < base + length), None)
    if strings is None:
        return None, []

    def text(place: int) -> str:
        return content[strings + place:content.index(b"\0", strings + place)].decode()

    names = [text(value) for kind, value in entries if kind == _DT_NEEDED]
    return next((text(value) for kind, value in entries if kind == _DT_SONAME), None), names
