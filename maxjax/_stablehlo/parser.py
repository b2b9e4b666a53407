"""StableHLO text, in the generic and the pretty form, as a ``Module``."""

from __future__ import annotations

import re
from typing import Any

from maxjax._stablehlo import pretty
from maxjax._stablehlo.attributes import Attributes
from maxjax._stablehlo.lexer import Lexer
from maxjax._stablehlo.literals import read_type, read_types
from maxjax._stablehlo.placements import read_mesh
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

_RESOURCES = re.compile(r"\{-#(.*)#-\}\s*$", re.DOTALL)
_RESOURCE = re.compile(r'([\w.$\-]+|"[^"]*")\s*:\s*"(0x[0-9A-Fa-f]*)"')
# Dialects that operations may be written without.
_FUNCTION_WORDS = {"call": "func.call", "return": "func.return"}


def parse(text: str) -> Module:
    """Reads a module.

    Raises:
      Unreadable: it is none, or has what cannot be read.
    """
    found = _RESOURCES.search(text)
    resources: dict[str, str] = {}
    if found is not None:
        resources = {name.strip('"'): content for name, content in _RESOURCE.findall(found[1])}
        text = text[:found.start()]
    parser = Parser(text, resources)
    try:
        return parser.module()
    except RecursionError:
        raise Unreadable(parser.words.where(), "it nests too deep") from None


class Parser:
    """Reads operations.

    Attributes:
      words, attributes: what reads words and attributes.
      scopes: the values that can be named, by name, from the outside to the inside.
    """

    def __init__(self, text: str, resources: dict[str, str]):
        self.words = Lexer(text)
        self.attributes = Attributes(self.words, resources)
        self.scopes: list[dict[str, Value]] = []
        self.found = Module({})

    # --- modules and functions ---
    def module(self) -> Module:
        words = self.words
        while words.peek().kind == "attribute":      # aliases, of which locations mean nothing
            self._alias()
        generic = words.peek().kind == "string"
        if generic:
            if words.string() != "builtin.module":
                raise words.error("this is no module")
            words.expect("(")
            words.expect(")")
            self._properties(self.found_attributes())
            words.expect("(")
            words.expect("{")
            if words.peek().kind == "block":
                words.next()
                words.expect(":")
        else:
            words.take("builtin.module")
            if not words.take("module") and not words.at("@", "{", "attributes"):
                raise words.error(f"{words.shown()} where a module is expected")
            if words.peek().kind == "symbol":
                self.found.name = words.symbol()
            if words.take("attributes"):
                words.expect("{")
                self.attributes.record()
            words.expect("{")
        while not words.take("}"):
            self._top_level()
        if generic:
            words.expect(")")
            if words.take("{"):
                self.attributes.record()
            words.expect(":")
            read_types(words)
            words.expect("->")
            self.attributes.results()
        while words.peek().kind == "name" and words.at("loc"):
            self.attributes.location()
        while words.peek().kind == "attribute":
            self._alias()
        if words.peek().kind != "end":
            raise words.error(f"{words.shown()} after the module")
        return self.found

    def found_attributes(self) -> dict[str, Any]:
        """What ``<{...}>`` holds, where that is next."""
        words = self.words
        if not words.take("<"):
            return {}
        words.expect("{")
        record = self.attributes.record()
        words.expect(">")
        return record

    def _properties(self, record: dict[str, Any]) -> None:
        self.found.name = str(record.get("sym_name", ""))

    def _alias(self) -> None:
        words = self.words
        name = words.next().text[1:]
        words.expect("=")
        self.attributes.aliases[name] = self.attributes.read()

    def _top_level(self) -> None:
        words = self.words
        where = words.where()
        if words.peek().kind == "string":
            function = self._generic_function()
        elif words.take("func.func"):
            function = self._pretty_function(where)
        elif words.peek().kind == "name" and words.peek().text.startswith("sdy."):
            self._mesh()
            return
        else:
            raise words.error(f"{words.shown()} where a function is expected")
        if function is None:
            return
        if function.name in self.found.functions:
            raise Unreadable(where, f"a second function {function.name}")
        self.found.functions[function.name] = function

    def _mesh(self) -> None:
        """``sdy.mesh @mesh = <["x"=2]>``."""
        words = self.words
        words.next()
        name = words.symbol()
        words.expect("=")
        self._add_mesh(name, read_mesh(words))
        self.attributes.optional_record()
        self._skip_location()

    def _add_mesh(self, name: Any, mesh: Any) -> None:
        if isinstance(name, str) and isinstance(mesh, Mesh):
            self.found.meshes[name] = mesh

    def _generic_function(self) -> Function | None:
        words = self.words
        where = words.where()
        name = words.string()
        if name.startswith("sdy."):
            words.skip_balanced()
            record = self.found_attributes()
            self._add_mesh(record.get("sym_name"), record.get("mesh"))
            self.attributes.optional_record()
            words.expect(":")
            read_types(words)
            words.expect("->")
            self.attributes.results()
            return None
        if name != "func.func":
            raise Unreadable(where, f"the operation {name} among functions")
        words.expect("(")
        words.expect(")")
        record = self.found_attributes()
        words.expect("(")
        kind = record.get("function_type")
        symbol = record.get("sym_name")
        if not isinstance(kind, tuple) or not isinstance(symbol, str):
            raise Unreadable(where, "a function without a name or a type")
        self.scopes = [{}]
        block = self.region()
        words.expect(")")
        self.attributes.optional_record()
        words.expect(":")
        read_types(words)
        words.expect("->")
        self.attributes.results()
        self._skip_location()
        if [value.type for value in block.arguments] != kind[0]:
            raise Unreadable(where, f"the arguments of {symbol} are not those of its type")
        return Function(symbol, block, kind[1], where)

    def _pretty_function(self, where: str) -> Function:
        words = self.words
        while words.at("public", "private", "nested"):
            words.next()
        name = words.symbol()
        scope: dict[str, Value] = {}
        arguments: list[Value] = []
        words.expect("(")
        for _ in words.items(")"):
            label = words.kind("value", "an argument")
            words.expect(":")
            arguments.append(self._define(scope, label, read_type(words)))
            self.attributes.optional_record()
            self._skip_location()
        results: list[Type] = []
        if words.take("->"):
            if words.take("("):
                for _ in words.items(")"):
                    results.append(read_type(words))
                    self.attributes.optional_record()
            else:
                results.append(read_type(words))
        if words.take("attributes"):
            words.expect("{")
            self.attributes.record()
        self.scopes = [scope]
        words.expect("{")
        block = Block(arguments)
        self.operations(block)
        self._skip_location()
        return Function(name, block, results, where)

    # --- values, blocks, regions ---
    def _define(self, scope: dict[str, Value], label: str, type: Type) -> Value:
        if label in scope or "#" in label:
            raise self.words.error(f"{label} is given twice")
        value = scope[label] = Value(type)
        return value

    def operand(self) -> Value:
        """A value that has been defined."""
        label = self.words.kind("value", "a value")
        for scope in reversed(self.scopes):
            value = scope.get(label)
            if value is not None:
                return value
        raise self.words.error(f"there is no value {label}")

    def operands_until(self, close: str) -> list[Value]:
        return [self.operand() for _ in self.words.items(close)]

    def define_arguments(self, labels: list[tuple[str, Type]]) -> list[Value]:
        """Arguments of a new block, in the innermost scope."""
        return [self._define(self.scopes[-1], label, type) for label, type in labels]

    def region(self, arguments: list[tuple[str, Type]] | None = None) -> Block:
        """``{ ^bb0(%x: type): operations }``."""
        words = self.words
        if len(self.scopes) > DEEPEST:
            raise words.error("regions nest too deep")
        words.expect("{")
        self.scopes.append({})
        values = self.define_arguments(arguments or [])
        if words.peek().kind == "block":
            words.next()
            if words.take("("):
                while not words.take(")"):
                    if values:
                        words.expect(",")
                    label = words.kind("value", "an argument")
                    words.expect(":")
                    values += self.define_arguments([(label, read_type(words))])
                    self._skip_location()
            words.expect(":")
        block = Block(values)
        self.operations(block)
        self.scopes.pop()
        return block

    def operations(self, block: Block) -> None:
        """Operations up to the bracket that closes their block."""
        words = self.words
        while not words.take("}"):
            if words.peek().kind == "block":
                raise words.error("a region of several blocks")
            block.operations.append(self.operation())

    # --- operations ---
    def operation(self) -> Operation:
        words = self.words
        where = words.where()
        labels: list[tuple[str, int]] = []
        if words.peek().kind == "value":
            while not labels or words.take(","):
                label = words.kind("value", "a value")
                labels.append((label, words.integer() if words.take(":") else 1))
            words.expect("=")
        if words.peek().kind == "string":
            operation = self._generic(where)
        else:
            name = words.kind("name", "an operation")
            operation = pretty.read(self, _FUNCTION_WORDS.get(name, name),
                                    sum(count for _, count in labels), where)
        if words.at("loc"):
            operation.location = self.attributes.location().text
        if sum(count for _, count in labels) != len(operation.results):
            raise Unreadable(where, f"{operation.name} has {len(operation.results)} results")
        self._bind(labels, operation.results)
        return operation

    def _bind(self, labels: list[tuple[str, int]], results: list[Value]) -> None:
        scope = self.scopes[-1]
        remaining = iter(results)
        for label, count in labels:
            if label in scope or f"{label}#0" in scope or "#" in label:
                raise self.words.error(f"{label} is given twice")
            for number in range(count):
                value = next(remaining)
                scope[f"{label}#{number}"] = value
                if count == 1:
                    scope[label] = value

    def _generic(self, where: str) -> Operation:
        words = self.words
        name = words.string()
        words.expect("(")
        operands = self.operands_until(")")
        attributes = self.found_attributes()
        regions = [self.region() for _ in words.items(")")] if words.take("(") else []
        more = self.attributes.optional_record()
        words.expect(":")
        types = read_types(words)
        words.expect("->")
        results = self.attributes.results()
        self.check_operands(name, operands, types, where)
        return Operation(name, operands, [Value(type) for type in results],
                         {**more, **attributes}, regions, where)

    def check_operands(self, name: str, operands: list[Value], types: list[Type],
                       where: str) -> None:
        if [value.type for value in operands] != types:
            raise Unreadable(where, f"the operands of {name} are not of the types that it names")

    def _skip_location(self) -> None:
        if self.words.at("loc"):
            self.attributes.location()
