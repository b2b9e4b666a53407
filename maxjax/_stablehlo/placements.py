"""Shardy's dialect, as far as results depend on it: meshes, and who has which part of a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxjax._stablehlo.bytes_reader import Bytes
from maxjax._stablehlo.lexer import Lexer
from maxjax._stablehlo.program import Mesh, Opaque, Placement, Unreadable

if TYPE_CHECKING:
    from maxjax._stablehlo.vhlo import Entries

_MOST_AXES = 64


def _mesh(axes: list[tuple[str, int]], error: Any) -> Mesh:
    found = dict(axes)
    if len(found) < len(axes) or len(axes) > _MOST_AXES or any(
            not 0 < size < 1 << 31 for size in found.values()):
        raise error(f"a mesh of the axes {axes}"[:200])
    return Mesh(found)


# --- text -----------------------------------------------------------------------------------------

def read_mesh(words: Lexer) -> Mesh | Opaque:
    """``<["x"=2, "y"=4]>``; one whose devices are in another order is left as its text."""
    words.expect("<")
    axes: list[tuple[str, int]] = []
    if words.take("["):
        for _ in words.items("]"):
            name = words.string()
            words.expect("=")
            axes.append((name, words.integer()))
        if words.take(">"):
            return _mesh(axes, words.error)
    text = words.position
    depth = 1
    while depth:
        token = words.next()
        if token.kind == "end":
            raise words.error("a bracket is not closed")
        if token.kind == "mark":
            depth += (token.text in "<([{") - (token.text in ">)]}")
    return Opaque(words.text[text:words.position])


def read_placements(words: Lexer) -> list[Placement]:
    """``[<@mesh, [{"x"}, {}]>, <@mesh, []>]``."""
    words.expect("[")
    return [_read_placement(words) for _ in words.items("]")]


def _read_placement(words: Lexer) -> Placement:
    words.expect("<")
    mesh = words.symbol()
    words.expect(",")
    words.expect("[")
    dimensions: list[list[str]] = []
    for _ in words.items("]"):
        dimensions.append(read_names(words))
        if words.peek().kind == "name":      # a priority
            words.next()
    while words.take(","):      # axes along which it is known to be the same, or a part of a sum
        kind = words.name()
        if kind != "replicated":
            raise words.error(f"a value that is {kind[:40]}")
        words.expect("=")
        words.skip_balanced()
    words.expect(">")
    return Placement(mesh, dimensions)


def read_names(words: Lexer) -> list[str]:
    """``{"x", "y"}``; the question mark of a dimension that may be split further is passed over."""
    words.expect("{")
    names: list[str] = []
    for _ in words.items("}"):
        if not words.take("?"):
            names.append(words.string())
            if words.at(":"):
                raise words.error("an axis of which a part is used")
    return names


# --- bytecode -------------------------------------------------------------------------------------

def decode(entries: Entries, words: Bytes) -> Any:
    """An attribute; what is not known of it is left as its text."""
    code = words.number()
    try:
        match code:
            case 0:
                return words.several(lambda: _word(entries, words))
            case 1:
                return entries.string(words), words.signed()
            case 2:
                axes = words.several(lambda: entries.attribute(words, words.number()))
                if not words.number() and all(isinstance(axis, tuple) for axis in axes):
                    return _mesh(axes, words.error)
            case 4:
                name = entries.string(words)
                if not words.number():      # else a part of the axis
                    return name
            case 5:
                return words.several(lambda: _word(entries, words))
            case 6:
                return _decoded_placement(entries, words)
            case 7:
                placements = words.several(lambda: entries.attribute(words, words.number()))
                if all(isinstance(placement, Placement) for placement in placements):
                    return placements
    except Unreadable as error:
        return Opaque(str(error)[:200])
    return Opaque(f"of sdy's kind {code}")


def _word(entries: Entries, words: Bytes) -> str:
    name = entries.attribute(words, words.number())
    if not isinstance(name, str):
        raise words.error("an axis of which a part is used")
    return name


def _decoded_placement(entries: Entries, words: Bytes) -> Placement:
    mesh = getattr(entries.attribute(words, words.number()), "name", None)
    dimensions = words.several(lambda: entries.attribute(words, words.number()))
    words.several(words.number)      # axes along which it is known to be the same
    if not words.is_done and words.number():
        raise words.error("a value that is a part of a sum")
    if not isinstance(mesh, str) or not all(isinstance(names, list) for names in dimensions):
        raise words.error("where a value lies")
    return Placement(mesh, dimensions)
