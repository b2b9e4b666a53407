"""The words of StableHLO text, one at a time."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from maxjax._stablehlo.program import Unreadable

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)+")
_NAME = r'(?:[A-Za-z_$.\-][\w$.\-]*|[0-9]+)'
_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<arrow>->)|(?P<resources>\{-#|#-\})"
    rf"|(?P<value>%{_NAME}(?:\#[0-9]+)?)"
    r'|(?P<symbol>@(?:[A-Za-z_$.\-][\w$.\-]*|"(?:[^"\\\n]|\\.)*"))'
    rf"|(?P<block>\^{_NAME})"
    r"|(?P<attribute>\#[A-Za-z_][\w$.]*)|(?P<type>![A-Za-z_][\w$.]*)"
    r"|(?P<hex>-?0x[0-9A-Fa-f]+)"
    r"|(?P<float>-?[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?)|(?P<integer>-?[0-9]+)"
    r"|(?P<name>[A-Za-z_][\w$.]*)"
    r"|(?P<mark>[(){}\[\]<>:,=+*?/|\-])")
_ESCAPE = re.compile(rb'\\(?:([0-9A-Fa-f]{2})|(["\\nt]))')
_ESCAPED = {b'"': b'"', b"\\": b"\\", b"n": b"\n", b"t": b"\t"}


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class Lexer:
    """Reads a text word by word."""

    def __init__(self, text: str):
        self.text = text
        self.position = 0
        self._token: Token | None = None
        self._line_ends = [found.start() for found in re.finditer("\n", text)]

    # --- words ---
    def peek(self) -> Token:
        """The next word, of kind "end" after the last."""
        token = self._token
        if token is None:
            space = _SPACE.match(self.text, self.position)
            start = space.end() if space else self.position
            found = _TOKEN.match(self.text, start)
            if found is not None:
                token = Token(str(found.lastgroup), found[0], start, found.end())
            elif start >= len(self.text):
                token = Token("end", "", start, start)
            else:
                self.position = start
                raise self.error(f"the character {self.text[start]!r}")
            self._token = token
        return token

    def next(self) -> Token:
        token = self.peek()
        self.position = token.end
        self._token = None
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next word is one of these."""
        token = self.peek()
        return token.kind != "string" and token.text in texts

    def take(self, text: str) -> bool:
        """Reads a word, if it is the next."""
        if self.at(text):
            self.next()
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.at(text):
            raise self.error(f"{self.shown()} where {text!r} is expected")
        return self.next()

    def items(self, close: str) -> Iterator[int]:
        """The numbers of a list's items, up to the bracket ``close``. The caller reads each item as
        it gets its number; the commas between them and the bracket are read here."""
        for number in itertools.count():
            if self.take(close):
                return
            if number:
                self.expect(",")
            yield number

    def kind(self, kind: str, what: str) -> str:
        """The text of the next word, which must be of this kind."""
        token = self.peek()
        if token.kind != kind:
            raise self.error(f"{self.shown()} where {what} is expected")
        return self.next().text

    def name(self) -> str:
        return self.kind("name", "a name")

    def integer(self) -> int:
        text = self.kind("integer", "an integer")
        if len(text) > 30:
            raise self.error("an integer of so many digits")
        return int(text)

    def string(self) -> str:
        return unquoted(self.kind("string", "a string"))

    def symbol(self) -> str:
        text = self.kind("symbol", "the name of a function")[1:]
        return unquoted(text) if text.startswith('"') else text

    def match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """What a pattern finds right after the last word."""
        found = pattern.match(self.text, self.peek().start)
        if found is None:
            raise self.error(f"{self.shown()} where {what} is expected")
        self.position = found.end()
        self._token = None
        return found

    def until(self, end: str, what: str) -> str:
        """The text up to a character, which is read too."""
        start = self.peek().start if self._token else self.position
        stop = self.text.find(end, start)
        if stop < 0:
            raise self.error(f"{what} does not end")
        self.position = stop + 1
        self._token = None
        return self.text[start:stop]

    def skip_balanced(self) -> str:
        """Reads what begins with an opening bracket, to the one that closes it."""
        start = self.peek().start
        expected: list[str] = []
        closing = {"(": ")", "[": "]", "{": "}", "<": ">"}
        while True:
            token = self.next()
            if token.kind == "end":
                raise self.error("a bracket is not closed")
            if token.kind == "mark" and token.text in closing:
                expected.append(closing[token.text])
            elif token.kind == "mark" and token.text in ")]}>":
                if not expected or expected.pop() != token.text:
                    raise self.error(f"{token.text!r} closes nothing")
            if not expected:
                return self.text[start:self.position]

    # --- errors ---
    def where(self) -> str:
        start = self._token.start if self._token else self.position
        line = bisect.bisect_left(self._line_ends, start)
        before = self._line_ends[line - 1] + 1 if line else 0
        return f"line {line + 1}, column {start - before + 1}"

    def shown(self) -> str:
        token = self.peek()
        return "the end" if token.kind == "end" else repr(token.text[:40])

    def error(self, problem: str) -> Unreadable:
        return Unreadable(self.where(), problem)


def unquoted(text: str) -> str:
    """A string without its quotes and escapes."""
    inner = text[1:-1].encode()
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]) if found[1] else _ESCAPED[found[2]],
                       inner).decode("utf-8", "surrogateescape")
