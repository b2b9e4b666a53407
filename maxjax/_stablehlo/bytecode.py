"""Portable artifacts: StableHLO in MLIR's bytecode, as its versioned dialect (VHLO) has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from maxjax._stablehlo import vhlo
from maxjax._stablehlo.bytes_reader import Bytes
from maxjax._stablehlo.program import (
    DEEPEST,
    Block,
    Function,
    Mesh,
    Module,
    Operation,
    Type,
    Unreadable,
    Value,
)

MAGIC = b"ML\xefR"
_VERSIONS = range(4, 7)      # of the format
# Sections.
_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _OPERATIONS, _RESOURCES = range(6)
_VERSION_OF_DIALECT, _PROPERTIES = 7, 8
_KNOWN = range(9)
# Operations whose results are their operands: on types, and on where values lie.
_SAME = (("builtin", "unrealized_conversion_cast"), ("sdy", "sharding_constraint"))
_SHARDED = (("sdy", "manual_computation"), ("sdy", "return"))
# What an operation has.
_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USES, _HAS_PROPERTIES = (
    1 << bit for bit in range(7))


def parse_bytecode(content: bytes) -> Module:
    """Reads a module.

    Raises:
      Unreadable: it is none, is damaged, or has what cannot be read.
    """
    reader = _File(content)
    try:
        return reader.module()
    except RecursionError:
        raise Unreadable("the module", "it nests too deep") from None


class _Name(NamedTuple):
    dialect: str
    name: str


class _File:
    """A file's tables, and its operations."""

    def __init__(self, content: bytes):
        words = Bytes(memoryview(content), 0)
        if bytes(words.bytes(4)) != MAGIC:
            raise Unreadable("byte 0", "this is no MLIR bytecode")
        self.version = words.number()
        if self.version not in _VERSIONS:
            raise words.error(f"the format's version is {self.version}; those from "
                              f"{_VERSIONS[0]} to {_VERSIONS[-1]} can be read")
        self.producer = words.text()
        self.sections: dict[int, Bytes] = {}
        while not words.is_done:
            kind, section = words.section()
            if kind in self.sections or kind not in _KNOWN:
                raise words.error(f"a section of kind {kind}")
            self.sections[kind] = section
        self.strings = self._strings()
        self.names = self._names()
        self.entries = vhlo.Entries(self.strings, *self._offsets())
        self.stored = self._stored()
        self.meshes: dict[str, Mesh] = {}
        self.depth = 0

    def section(self, kind: int) -> Bytes:
        found = self.sections.get(kind)
        if found is None:
            raise Unreadable("the file", f"it has no section of kind {kind}")
        return found

    # --- tables ---
    def _strings(self) -> list[bytes]:
        words = self.section(_STRINGS)
        lengths = words.several(words.number, "strings")
        found = []
        for length in reversed(lengths):
            content = bytes(words.bytes(length))
            if not content.endswith(b"\0"):
                raise words.error("a string does not end")
            found.append(content[:-1])
        return found

    def string(self, words: Bytes, number: int) -> str:
        if number >= len(self.strings):
            raise words.error(f"there is no string {number}")
        return self.strings[number].decode("utf-8", "replace")

    def _names(self) -> list[_Name]:
        """The operations' names."""
        words = self.section(_DIALECTS)
        self.dialects: list[str] = []
        for _ in range(words.count("dialects")):
            number = words.number()
            self.dialects.append(self.string(words, number >> 1))
            if number & 1:
                words.section()
        words.count("operations")
        found = []
        while not words.is_done:
            dialect = self._dialect(words)
            for _ in range(words.count("operations")):
                number = words.number()
                name = self.string(words, number >> 1 if self.version >= 5 else number)
                found.append(_Name(dialect, name))
        return found

    def _dialect(self, words: Bytes) -> str:
        number = words.number()
        if number >= len(self.dialects):
            raise words.error(f"there is no dialect {number}")
        return self.dialects[number]

    def _offsets(self) -> tuple[list[vhlo.Entry], list[vhlo.Entry]]:
        """Where attributes and types are: by dialects, each with its length."""
        words, entries = self.section(_OFFSETS), self.section(_ENTRIES)
        counts = words.count("attributes"), words.count("types")
        tables: tuple[list[vhlo.Entry], list[vhlo.Entry]] = ([], [])
        for table, count in zip(tables, counts, strict=True):
            while len(table) < count:
                dialect = self._dialect(words)
                number = words.count("entries")
                if not number or len(table) + number > count:
                    raise words.error("a group of attributes or types")
                for _ in range(number):
                    length = words.number()
                    table.append(vhlo.Entry(dialect, bool(length & 1),
                                            entries.part(length >> 1)))
        return tables

    # --- operations ---
    def module(self) -> Module:
        words = self.section(_OPERATIONS)
        block = self._block(words, [], ())
        if len(block) != 1 or not isinstance(block[0], Module):
            raise words.error("there is not one module")
        return block[0]

    def _block(self, words: Bytes, values: list[Value | None], arguments: Sequence[Value]
               ) -> list[Any]:
        """The operations of a block that is none of a function's: modules and functions."""
        encoding = words.number()
        if encoding & 1:
            raise words.error("arguments of a module")
        return [self._top_level(words) for _ in range(encoding >> 1)]

    def _head(self, words: Bytes) -> tuple[_Name, int, str, dict[str, Any]]:
        where = f"byte {words.start + words.position}"
        number = words.number()
        if number >= len(self.names):
            raise words.error(f"there is no operation {number}")
        mask = words.byte()
        words.number()      # the location
        attributes: dict[str, Any] = {}
        if mask & _ATTRIBUTES:
            attributes = self.entries.record(words, words.number())
        name = self.names[number]
        if mask & _HAS_PROPERTIES:
            place = words.number()
            if place >= len(self.stored):
                raise words.error(f"there are no properties {place}")
            if name.dialect in ("vhlo", "sdy"):
                stored = self.stored[place]
                stored.position = 0
                values = []
                while not stored.is_done:
                    values.append(self.entries.attribute(stored, stored.number()))
                attributes = {**attributes, **vhlo.stored_attributes(name.name, values, where)}
        return name, mask, where, attributes

    def _stored(self) -> list[Bytes]:
        """The attributes of operations, as numbers of their entries."""
        if _PROPERTIES not in self.sections:
            return []
        words = self.sections[_PROPERTIES]
        return [words.part(words.number()) for _ in range(words.count("properties"))]

    def _top_level(self, words: Bytes) -> Module | Function | None:
        self.depth += 1
        name, mask, where, attributes = self._head(words)
        if name == ("sdy", "mesh"):
            self.depth -= 1
            mesh, symbol = attributes.get("mesh"), attributes.get("sym_name")
            if isinstance(mesh, Mesh) and isinstance(symbol, str):
                self.meshes[symbol] = mesh
            return None
        if mask & ~(_ATTRIBUTES | _REGIONS | _HAS_PROPERTIES):
            raise Unreadable(where, f"the operation {name.name} among functions")
        if not mask & _REGIONS or self.depth > 2:
            raise Unreadable(where, f"the operation {name.name} among functions")
        encoding = words.number()
        if encoding >> 1 != 1:
            raise Unreadable(where, f"{name.name} of {encoding >> 1} regions")
        inside = words.section()[1] if encoding & 1 else words
        made: Module | Function
        if name == ("builtin", "module") and self.depth == 1:
            made = self._module(inside)
        elif name == ("vhlo", "func_v1"):
            made = self._function(inside, attributes, where)
        else:
            raise Unreadable(where, f"the operation {name.dialect}.{name.name} among functions")
        self.depth -= 1
        return made

    def _module(self, words: Bytes) -> Module:
        if words.number() != 1:
            raise words.error("a module of several blocks")
        if words.number():
            raise words.error("values of a module")
        module = Module({}, meshes=self.meshes)
        for function in self._block(words, [], ()):
            if function is None:
                continue
            if not isinstance(function, Function) or function.name in module.functions:
                raise words.error("a module in a module, or two functions of one name")
            module.functions[function.name] = function
        return module

    def _function(self, words: Bytes, attributes: dict[str, Any], where: str) -> Function:
        name, kind = attributes.get("sym_name"), attributes.get("function_type")
        if not isinstance(name, str) or not isinstance(kind, vhlo.FunctionType):
            raise Unreadable(where, "a function without a name or a type")
        values: list[Value | None] = []
        block = self._region(words, values, where)
        if [value.type for value in block.arguments] != kind.arguments:
            raise Unreadable(where, f"the arguments of {name} are not those of its type")
        return Function(name, block, kind.results, where)

    def _region(self, words: Bytes, values: list[Value | None], where: str) -> Block:
        """One block; its values are numbered after those around it."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise words.error("regions nest too deep")
        if words.number() != 1:
            raise words.error("a region that is not of one block")
        first = len(values)
        values.extend([None] * words.count("values"))
        defined = first
        encoding = words.number()
        block = Block([])
        if encoding & 1:
            for type in words.several(lambda: self._argument(words), "arguments"):
                block.arguments.append(self._define(words, values, defined, type))
                defined += 1
            if words.byte():
                self._skip_uses(words, len(block.arguments))
        for _ in range(encoding >> 1):
            operation, results = self._operation(words, values)
            if operation is not None:
                block.operations.append(operation)
            for value in results:
                if defined >= len(values):
                    raise words.error("more values than a region has")
                values[defined] = value
                defined += 1
        del values[first:]
        self.depth -= 1
        return block

    def _skip_uses(self, words: Bytes, count: int) -> None:
        """In which order values are used: a matter of MLIR's lists."""
        for _ in range(1 if count == 1 else words.count("orders of uses")):
            if count != 1:
                words.number()
            for _ in range(words.number() >> 1):
                words.number()

    def _argument(self, words: Bytes) -> Type:
        number = words.number()
        if number & 1:
            words.number()      # the location
        return self.entries.type(words, number >> 1)

    def _define(self, words: Bytes, values: list[Value | None], number: int, type: Type) -> Value:
        if number >= len(values):
            raise words.error("more values than a region has")
        value = values[number] = Value(type)
        return value

    def _operation(self, words: Bytes, values: list[Value | None]
                   ) -> tuple[Operation | None, list[Value]]:
        """An operation and its results; none where they are its operands."""
        name, mask, where, attributes = self._head(words)
        if mask & ~(_ATTRIBUTES | _RESULTS | _OPERANDS | _REGIONS | _USES | _HAS_PROPERTIES):
            raise Unreadable(where, f"{name.name} has what no operation of StableHLO has")
        results: list[int] = []
        if mask & _RESULTS:
            results = words.several(words.number, "results")
        operands = []
        if mask & _OPERANDS:
            for number in words.several(words.number, "operands"):
                value = values[number] if number < len(values) else None
                if value is None:
                    raise Unreadable(where, f"{name.name}: there is no value {number}")
                operands.append(value)
        if mask & _USES:
            self._skip_uses(words, len(results))
        regions: list[Block] = []
        if mask & _REGIONS:
            encoding = words.number()
            # Those that see no values around them stand in a section of their own.
            inside, around = (words.section()[1], []) if encoding & 1 else (words, values)
            for _ in range(encoding >> 1):
                regions.append(self._region(inside, around, where))
        if name in _SAME and len(results) == len(operands) and not regions:
            return None, operands
        if name.dialect != "vhlo" and name not in _SHARDED:
            raise Unreadable(where, f"the operation {name.dialect}.{name.name} is not supported")
        made = [Value(self.entries.type(words, number)) for number in results]
        bare = f"sdy.{name.name}" if name in _SHARDED else vhlo.name_of(name.name)
        return Operation(bare, operands, made, vhlo.attributes_of(
            name.name, attributes, where), regions, where), made
