"""The lines of StableHLO text: values, operations with their regions, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base.interrupts import context_manager
from maxjax._ir.dimensions import size_index
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._stablehlo.operations import BINARY, UNARY
from maxjax._stablehlo.text import FRONTEND, frontend_attributes, tensor_type

_SHORT = frozenset([f"stablehlo.{name}" for name in (*BINARY.values(), *UNARY.values())])


class Value(NamedTuple):
    """A value of the text."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def type(self) -> str:
        return tensor_type(self.shape, self.dtype)


class Writer:
    """Writes the lines of one function.

    Args:
      located: the name of the function, where each operation is to say its scopes and its line.

    Attributes:
      eqn: the equation that is being written, if any.
    """

    eqn: JaxprEqn | None = None

    def __init__(self, located: str | None = None):
        self.located = located
        self.lines: list[str] = []
        self.depth = 0
        # The scopes of the loops and branches that are being written.
        self._around = f"jit({located})"
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def location(self) -> str:
        """Where the operation that is being written comes from, as MLIR says it."""
        if self.located is None or self.eqn is None:
            return ""
        source = self.eqn.source
        child = "" if source is None else (
            f"({json.dumps(source.code.co_filename)}:{source.line}:0)")
        return f" loc({json.dumps(self._place(self.eqn))}{child})"

    def _place(self, eqn: JaxprEqn) -> str:
        """The scopes of an equation and its name; a scan is a loop like any other."""
        flow = eqn.primitive.inner.control_flow
        name = "while" if flow is not None and flow.length else eqn.primitive.name
        scopes = eqn.source.name_stack if eqn.source else ""
        return "/".join([self._around, *([scopes] if scopes else []), name])

    @context_manager
    def part_of(self, part: str) -> Iterator[None]:
        """What is written inside is a part of the equation that is being written."""
        outer = self._around
        if self.eqn is not None:
            self._around = f"{self._place(self.eqn)}/{part}"
        try:
            yield
        finally:
            self._around = outer

    def attributes(self) -> str:
        """What the user has to say of the operation that is being written, as an attribute."""
        source = None if self.eqn is None else self.eqn.source
        return frontend_attributes(source.scopes.metadata) if source else ""

    def say(self, x: Value, metadata: Mapping[str, object]) -> None:
        """Adds to what is said of the operation that gave a value; nothing of an input."""
        start = f"{'  ' * self.depth}{x.name.partition('#')[0]}"
        for number in range(len(self.lines) - 1, -1, -1):
            line = self.lines[number]
            if line.startswith((start + " =", start + ":")):
                # An operation with regions ends with the line that closes the last.
                while line.endswith("({") or not line.startswith(
                        ("  " * self.depth + "})", start)):
                    number += 1
                    line = self.lines[number]
                line, located, where = line.partition(" loc(")
                head, _, types = line.rpartition(" : ")
                before, found, said = head.rpartition(FRONTEND)
                if not found:
                    before, said = head, "}}"
                new = frontend_attributes({key: value for key, value in metadata.items()
                                           if f"{key} = " not in said})
                if new and found:
                    new = f"{new[:-2]}, {said}"
                self.lines[number] = f"{before}{new or found + said} : {types}{located}{where}"
                return

    def value(self, shape: Sequence[int], dtype: Any) -> Value:
        name = f"%{self._count}"
        self._count += 1
        return Value(name, tuple(map(size_index, shape)), np.dtype(dtype))

    def emit(self, operation: str, operands: Sequence[Value], shape: Sequence[int], dtype: Any,
             attributes: str = "") -> Value:
        """One operation with one result; elementwise ones in their short form."""
        if operation in _SHORT and {x.type for x in operands} == {tensor_type(shape, dtype)}:
            result = self.value(shape, dtype)
            self.line(f"{result.name} = {operation} {', '.join([x.name for x in operands])}"
                      f"{self.attributes()} : {result.type}{self.location()}")
            return result
        result, = self.emit_all(operation, operands, [(shape, dtype)], attributes)
        return result

    def emit_all(self, operation: str, operands: Sequence[Value],
                 results: Sequence[tuple[Sequence[int], Any]], attributes: str = "",
                 regions: Sequence[Callable[[], None]] = (), discardable: str = ""
                 ) -> list[Value]:
        """One operation, with regions that functions write.

        Args:
          attributes: those that are part of the operation.
          discardable: others.
        """
        names = ", ".join([x.name for x in operands])
        count = self._count
        self._count += 1
        made = [Value(f"%{count}" if len(results) == 1 else f"%{count}#{number}",
                      tuple(map(size_index, shape)), np.dtype(dtype))
                for number, (shape, dtype) in enumerate(results)]
        name = f"%{count}" if len(results) == 1 else f"%{count}:{len(results)}"
        types = (f"({', '.join([x.type for x in operands])}) -> "
                 f"({', '.join([x.type for x in made])})")
        properties = f" <{{{attributes}}}>" if attributes else ""
        # Read before the regions are written, whose operations change them.
        location, said = self.location(), self.attributes()
        if discardable:
            said = f" {{{discardable}}}"
        head = (f"{name} = " if made else "") + f'"{operation}"({names}){properties}'
        if not regions:
            self.line(f"{head}{said} : {types}{location}")
            return made
        self.line(f"{head} ({{")
        for number, region in enumerate(regions):
            if number:
                self.line("}, {")
            self.depth += 1
            region()
            self.depth -= 1
        self.line(f"}}){said} : {types}{location}")
        return made

    def region(self, arguments: Sequence[tuple[Sequence[int], Any]],
               body: Callable[..., Sequence[Value]]) -> Callable[[], None]:
        """A block with arguments, which returns what ``body`` of them gives."""
        def write() -> None:
            values = [self.value(shape, dtype) for shape, dtype in arguments]
            if values:
                listed_arguments = ", ".join([f"{x.name}: {x.type}" for x in values])
                self.line(f"^bb0({listed_arguments}):")
            self.returned(body(*values))
        return write

    def returned(self, results: Sequence[Value], operation: str = "stablehlo.return") -> None:
        names, types = ", ".join([x.name for x in results]), ", ".join([x.type for x in results])
        self.line(f'"{operation}"({names}) : ({types}) -> ()')
