"""Attributes, read from text: what operations say besides their operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._stablehlo.lexer import Lexer
from maxjax._stablehlo.literals import dtype_of, from_bytes, read_dense, read_type, read_types
from maxjax._stablehlo.placements import read_mesh, read_names, read_placements
from maxjax._stablehlo.program import DEEPEST, Dense, Opaque, Symbol, Tensor


class Attributes:
    """Reads attributes.

    Attributes:
      aliases: the attributes that the file names, by those names.
      resources: the bytes of constants that stand at the file's end, by name.
    """

    def __init__(self, words: Lexer, resources: dict[str, str]):
        self.words = words
        self.aliases: dict[str, Any] = {}
        self.resources = resources
        self.depth = 0

    def record(self, close: str = "}") -> dict[str, Any]:
        """``name = value`` up to a bracket; a name alone is a flag."""
        words = self.words
        found: dict[str, Any] = {}
        while not words.take(close):
            if found and not words.take(","):
                raise words.error(f"{words.shown()} where a comma or {close!r} is expected")
            if words.take(close):
                break
            name = words.string() if words.peek().kind == "string" else words.name()
            if name in found:
                raise words.error(f"the attribute {name} is given twice")
            found[name] = self.read() if words.take("=") else True
        return found

    def optional_record(self) -> dict[str, Any]:
        return self.record() if self.words.take("{") else {}

    def items(self, close: str = "]", item: Callable[[], Any] | None = None) -> list[Any]:
        """Values up to a bracket; the one that opens has been read."""
        return [(item or self.read)() for _ in self.words.items(close)]

    def integers(self) -> list[int]:
        """``[1, 2]``."""
        self.words.expect("[")
        return self.items(item=self.words.integer)

    def read(self) -> Any:
        """One attribute of any kind."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.words.error("attributes nest too deep")
        try:
            return self._read()
        finally:
            self.depth -= 1

    def _read(self) -> Any:
        words = self.words
        token = words.peek()
        match token.kind:
            case "string":
                text = words.string()
                if words.take(":"):
                    read_type(words)
                return text
            case "integer" | "hex" | "float":
                return self._number()
            case "symbol":
                name = words.symbol()
                while words.take(":"):      # @module::@function
                    words.expect(":")
                    name = words.symbol()
                return Symbol(name)
            case "attribute":
                return self._of_dialect()
            case "type":
                return read_type(words)
        if words.take("["):
            return self.items()
        if words.take("{"):
            return self.record()
        if words.at("("):      # a type of functions
            arguments = read_types(words)
            words.expect("->")
            return arguments, self.results()
        return self._named()

    def _named(self) -> Any:
        """What begins with a word."""
        words = self.words
        token = words.peek()
        if token.kind != "name":
            raise words.error(f"{words.shown()} where an attribute is expected")
        match token.text:
            case "true" | "false":
                return words.next().text == "true"
            case "unit":
                words.next()
                return True
            case "dense":
                words.next()
                return read_dense(words)
            case "array":
                words.next()
                return self._array()
            case "dense_resource":
                words.next()
                return self._resource()
            case "loc":
                return self.location()
        return read_type(words)

    def results(self) -> list[Any]:
        """The types of results: several between parentheses, or one."""
        return read_types(self.words) if self.words.at("(") else [read_type(self.words)]

    def location(self) -> Opaque:
        self.words.expect("loc")
        return Opaque(self.words.skip_balanced())

    def _number(self) -> int | float:
        words = self.words
        token = words.next()
        if len(token.text) > 400:
            raise words.error("a number of so many digits")
        type = read_type(words) if words.take(":") else None
        is_float = isinstance(type, Tensor) and type.dtype.kind not in "iub"
        if token.kind == "hex":
            number = int(token.text, 16)
            if is_float and isinstance(type, Tensor):
                size = type.dtype.itemsize
                if not 0 <= number < 1 << 8 * size:
                    raise words.error("the bits of a number")
                return float(np.frombuffer(number.to_bytes(size, "little"), type.dtype)[0])
            return number
        return int(token.text) if token.kind == "integer" and not is_float else float(token.text)

    def _array(self) -> list[Any]:
        """``array<i64: 1, 2>``."""
        words = self.words
        words.expect("<")
        kind = words.name()
        dtype_of(kind, words.where())
        if words.take(">"):
            return []
        words.expect(":")
        return self.items(">", self._element)

    def _element(self) -> Any:
        words = self.words
        if words.at("true", "false"):
            return words.next().text == "true"
        token = words.next()
        if token.kind not in ("integer", "float") or len(token.text) > 400:
            raise words.error("an element of an array")
        return int(token.text) if token.kind == "integer" else float(token.text)

    def _resource(self) -> Dense:
        """A constant whose bytes stand at the end of the file, after those of its alignment."""
        words = self.words
        where = words.where()
        words.expect("<")
        name = words.string() if words.peek().kind == "string" else words.name()
        words.expect(">")
        words.expect(":")
        type = read_type(words)
        text = self.resources.get(name)
        if text is None or not isinstance(type, Tensor) or None in type.shape:
            raise words.error(f"there is no resource {name}")
        shape = tuple([size or 0 for size in type.shape])
        try:
            content = bytes.fromhex(text.removeprefix("0x"))[4:]
        except ValueError:
            raise words.error(f"the resource {name} is no hexadecimal number") from None
        if math.prod(shape) != 1 and len(content) == type.dtype.itemsize:
            raise words.error(f"the resource {name} has one element")
        return from_bytes(content, shape, type.dtype, where)

    # --- of dialects ---
    def _of_dialect(self) -> Any:
        words = self.words
        name = words.next().text[1:]
        if name in self.aliases:
            return self.aliases[name]
        if not words.at("<"):
            raise words.error(f"there is no attribute #{name}")
        match name:
            case "stablehlo" | "chlo" | "mhlo":
                words.next()
                words.name()      # what kind it is: the operation knows
                if words.at("<"):
                    text = words.skip_balanced()
                    words.expect(">")
                    return Opaque(text)
                value = words.string() if words.peek().kind == "string" else words.next().text
                words.expect(">")
                return value
            case "stablehlo.conv":
                words.next()
                return self.convolution_dimensions(">")
            case "stablehlo.precision" | "stablehlo.comparison_direction" | (
                    "stablehlo.comparison_type") | "stablehlo.transpose" | "stablehlo.fft_type":
                words.next()
                value = words.name()
                words.expect(">")
                return value
            case "sdy.mesh":
                return read_mesh(words)
            case "sdy.sharding_per_value":
                words.next()
                placements = read_placements(words)
                words.expect(">")
                return placements
            case "sdy" if words.text.startswith("<manual_axes", words.peek().start):
                words.next()
                words.expect("manual_axes")
                names = read_names(words)
                words.expect(">")
                return names
            case "stablehlo.replica_group_mesh_axes" | "stablehlo.axis_ref":
                words.next()
                return self.record(">")
            case "stablehlo.gather" | "stablehlo.scatter" | "stablehlo.dot" | (
                    "stablehlo.dot_algorithm"):
                words.next()
                return self.record(">")
        return Opaque(f"#{name}{words.skip_balanced()}")

    def convolution_dimensions(self, close: str = "") -> tuple[list[Any], list[Any], list[Any]]:
        """``[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]``."""
        words = self.words

        def labels() -> list[Any]:
            words.expect("[")
            return self.items(item=lambda: words.integer() if words.peek().kind == "integer"
                             else words.name())

        operand = labels()
        words.expect("x")
        kernel = labels()
        words.expect("->")
        result = labels()
        if close:
            words.expect(close)
        return operand, kernel, result
