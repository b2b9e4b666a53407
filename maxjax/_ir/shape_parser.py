"""Reads symbolic sizes as they are written, ``"2*n + 1"``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from maxjax._ir.dimensions import Size, is_dimension, larger, smaller, symbol_in
from maxjax._ir.size_scopes import Scope

_TOKEN = re.compile(r"\s*(\.\.\.|\d+(?:\.\d*)?|[^\W\d]\w*|[-+*^(),]|\S)")


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "max": larger, "min": smaller}


class Parser:
    """``expression = ["-"] term {("+" | "-") term}``, ``term = power {"*" power}``."""

    def __init__(self, text: str, scope: Scope):
        self.text = text
        self.scope = scope
        self.tokens = [(match[1], match.start(1)) for match in _TOKEN.finditer(text)]
        self.position = 0
        self.dimension = 0

    @property
    def token(self) -> str:
        return self.tokens[self.position][0] if self.position < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.token
        if expected is not None and token != expected:
            self.fail(f"expecting {expected!r} but found {token or 'the end'!r}")
        self.position += 1
        return token

    def accept(self, token: str) -> bool:
        if self.token != token:
            return False
        self.position += 1
        return True

    def fail(self, why: str) -> NoReturn:
        start = (self.tokens[self.position][1] if self.position < len(self.tokens)
                 else len(self.text))
        raise ValueError(
            f"syntax error in symbolic shape {self.text!r} in dimension {self.dimension}: {why}. "
            f"Parsed {self.text[:start]!r}, remaining {self.text[start:]!r}.")

    def shape(self, like: Sequence[Size | None] | None) -> tuple[Any, ...]:
        sizes: list[Any] = []
        parenthesis = self.accept("(")
        while self.token and not (parenthesis and self.token == ")"):
            if sizes:
                self.take(",")
                if not self.token or (parenthesis and self.token == ")"):
                    break
            self.dimension = len(sizes)
            if self.token in ("...", "_"):
                if like is None:
                    self.fail("spec contains ... but no 'like' shape was given")
                if self.take() == "...":
                    sizes.extend(like[len(sizes):])
                    break
            elif like is None or len(sizes) >= len(like):
                sizes.append(self.expression())
                continue
            else:
                size = self.expression()
                known = like[len(sizes)]
                if not is_dimension(size) and known is not None and size != known:
                    self.fail(f"different size {size} for known dimension; like={tuple(like)}")
                sizes.append(size)
                continue
            if len(sizes) >= len(like):
                self.fail(f"no dimension {len(sizes)} in like={tuple(like)}")
            if like[len(sizes)] is None:
                self.fail(f"_ placeholder for unknown dimension; like={tuple(like)}")
            sizes.append(like[len(sizes)])
        if parenthesis:
            self.take(")")
        if self.token:
            self.fail(f"unexpected {self.token!r}")
        return tuple(sizes)

    def expression(self) -> Any:
        sign = -1 if self.accept("-") else 1
        total = sign * self.term()
        while self.token in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            total = total + sign * self.term()
        return total

    def term(self) -> Any:
        product = self.power()
        while self.accept("*"):
            product = product * self.power()
        return product

    def power(self) -> Any:
        base = self.atom()
        if not self.accept("^"):
            return base
        if not self.token.isdigit():
            self.fail(f"expecting a whole number but found {self.token!r}")
        return base ** int(self.take())

    def atom(self) -> Any:
        token = self.token
        if token[:1].isdigit():
            if "." in token:
                self.fail(f"expecting integer, found {token}")
            return int(self.take())
        if not token.isidentifier():
            self.fail(f"expecting a name or a number but found {token or 'the end'!r}")
        self.take()
        if token not in _OPERATIONS or self.token != "(":
            return symbol_in(self.scope, token)
        self.take("(")
        left = self.expression()
        self.take(",")
        right = self.expression()
        self.take(")")
        return _OPERATIONS[token](left, right)


def parse_dimension(text: str, scope: Scope) -> Any:
    """The size that a text such as ``2*a + 1`` stands for."""
    parser = Parser(text, scope)
    size = parser.expression()
    if parser.token:
        parser.fail(f"unexpected {parser.token!r}")
    return size
