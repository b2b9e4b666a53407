"""The text of a jaxpr.

A document (text, possible line breaks, groups, indentation) is laid out after Wadler, "A prettier
printer": a group stands on one line if it fits, else all of its own breaks are taken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    from maxjax._ir.typing import Params

WIDTH = 80
# A sub-jaxpr of more equations than this is printed once, before the jaxpr that uses it.
_INLINE_EQUATIONS = 10
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")

# --- documents ------------------------------------------------------------------------------------


class Break:
    """A line break, or ``flat`` where its group stands on one line."""

    __slots__ = ("flat",)

    def __init__(self, flat: str = " "):
        self.flat = flat


class Group:
    """Breaks all of its own breaks or none."""

    __slots__ = ("content",)

    def __init__(self, *content: object):
        self.content = content


class Nest:
    """Indents the lines that begin inside."""

    __slots__ = ("content", "depth")

    def __init__(self, depth: int, *content: object):
        self.depth = depth
        self.content = content


class Noted:
    """Content with a note for the end of the line that it begins on."""

    __slots__ = ("content", "note")

    def __init__(self, content: object, note: str):
        self.content = content
        self.note = note


Document = str | Break | Group | Nest | Noted | Sequence[Any]


def layout(document: Document, width: int = WIDTH) -> str:
    """The document as text, in lines of at most ``width`` characters where possible.

    Notes follow all lines; a line's second note has a line of its own.
    """
    output: list[str] = []
    notes: dict[int, list[str]] = {}
    line = 0
    column = 0
    # (indentation, flat, document), the next on top.
    stack: list[tuple[int, bool, Any]] = [(0, False, document)]
    while stack:
        indent, flat, item = stack.pop()
        if isinstance(item, str):
            output.append(item)
            column += len(item)
            line += item.count("\n")
        elif isinstance(item, Noted):
            notes.setdefault(line, []).append(item.note)
            stack.append((indent, flat, item.content))
        elif isinstance(item, Break):
            if flat:
                output.append(item.flat)
                column += len(item.flat)
            else:
                output.append("\n" + " " * indent)
                column = indent
                line += 1
        elif isinstance(item, Nest):
            stack.extend((indent + item.depth, flat, part) for part in reversed(item.content))
        elif isinstance(item, Group):
            flat = flat or _fits(item, width - column)
            stack.extend((indent, flat, part) for part in reversed(item.content))
        else:
            stack.extend((indent, flat, part) for part in reversed(item))
    text = "".join(output)
    return _with_notes(text.split("\n"), notes) if notes else text


def _with_notes(lines: list[str], notes: dict[int, list[str]]) -> str:
    column = max(map(len, lines))
    result = []
    for number, text in enumerate(lines):
        first, *more = notes.get(number, [""])
        result.append(f"{text:{column}} # {first}" if first else text)
        result += [f"{'':{column}} # {note}" for note in more]
    return "\n".join(result)


def _fits(document: Document, room: int) -> bool:
    stack: list[Any] = [document]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            room -= len(item)
        elif isinstance(item, Break):
            room -= len(item.flat)
        elif isinstance(item, Noted):
            stack.append(item.content)
        else:
            stack.extend(reversed(item.content if isinstance(item, (Group, Nest)) else item))
        if room < 0:
            return False
    return True


def join(separator: Document, documents: Iterable[Document]) -> list[Document]:
    result: list[Document] = []
    for document in documents:
        if result:
            result.append(separator)
        result.append(document)
    return result


def fill(documents: Iterable[Document], separator: str = "") -> list[Document]:
    """One after the other, as many to a line as fit."""
    return join([separator, Group(Break())], documents)


# --- names ----------------------------------------------------------------------------------------


class Names:
    """Names of variables (a, b, ..., z, ba, bb, ...) and of the sub-jaxprs printed first; and what
    else is to be shown."""

    def __init__(self, jaxpr: Jaxpr | None = None, *, source_info: bool = False,
                 name_stack: bool = False, print_shapes: bool = True,
                 print_effects: bool = False, by_rules: bool = True) -> None:
        self.by_rules = by_rules
        self.source_info = source_info
        self.name_stack = name_stack
        self.print_shapes = print_shapes
        self.print_effects = print_effects
        # Unused results are `_` in the jaxpr itself, and have names in the jaxprs that it calls.
        self.variables: dict[Var, str] = {
            var: "_" for eqn in (jaxpr.eqns if jaxpr is not None else ())
            for var in eqn.outvars if isinstance(var, DropVar)}
        self.count = 0
        self.shared: dict[Jaxpr, str] = {}

    def of(self, var: Var) -> str:
        name = self.variables.get(var)
        if name is None:
            name = self.variables[var] = _letters(self.count)
            self.count += 1
        return name

    def suggest(self, inner: Sequence[Atom], outer: Sequence[Atom]) -> None:
        """A called jaxpr's variables take the names of the operands."""
        given: set[Var] = set()
        for mine, other in zip(inner, outer, strict=True):
            if (isinstance(mine, Var) and isinstance(other, Var) and other not in given
                    and mine not in self.variables):
                self.variables[mine] = self.of(other)
                given.add(other)


def _letters(number: int) -> str:
    digits = chr(ord("a") + number % 26)
    while number >= 26:
        number //= 26
        digits = chr(ord("a") + number % 26) + digits
    return digits


# --- parameters -----------------------------------------------------------------------------------
def _value(value: object, names: Names) -> Document:
    if isinstance(value, Jaxpr):
        return _jaxpr(value.jaxpr, names)
    if (isinstance(value, tuple) and value
            and all(isinstance(item, Jaxpr) for item in value)):
        return Group("(", Nest(2, Break(""), *join(Break(), (_value(v, names) for v in value))),
                     Break(""), ")")
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, frozenset):      # in one order each time
        return f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
    # Addresses say nothing, and differ from run to run.
    return _ADDRESS.sub("0x" + 12 * "X", str(value))


def _params(params: Params, names: Names) -> Document:
    if not params:
        return ""
    order = sorted(params, key=lambda name: (name != "name", name))
    shown = [Group(f"{name}=", _value(params[name], names)) for name in order]
    return Group("[", Nest(2, Break(""), *join(Break(), shown)), Break(""), "]")


# --- atoms, equations, jaxprs ---------------------------------------------------------------------


def _literal(literal: Literal) -> str:
    value, aval = literal.val, literal.aval
    if not hasattr(value, "dtype") or np.ndim(value):
        text = str(value)
    elif dtypes.is_floating(aval.dtype) and aval.weak_type and aval.dtype == dtypes.float32:
        # A Python float: the shortest decimal that stands for it.
        text = repr(float(str(np.float32(value))))
    elif dtypes.is_floating(aval.dtype):
        text = repr(float(value))
    else:
        text = str(np.asarray(value).item())
    return f"{text}:{aval.str_short(short_dtypes=True)}"


def _atom(atom: Atom, names: Names) -> str:
    return _literal(atom) if isinstance(atom, Literal) else names.of(atom)


def _binder(var: Var, names: Names) -> str:
    return f"{names.of(var)}:{_type(var.aval)}" if names.print_shapes else names.of(var)


def _type(aval: ShapedArray) -> str:
    return aval.str_short(short_dtypes=True)


def _shown(eqn: JaxprEqn) -> dict[str, Any]:
    rule = eqn.primitive.printed.params
    return eqn.params if rule is None else rule(eqn.params)


def _eqn(eqn: JaxprEqn, names: Names) -> Document:
    params = _shown(eqn) if names.by_rules else eqn.params
    called, printed = params.get("jaxpr"), eqn.primitive.printed
    if names.by_rules and printed.names_inputs and isinstance(called, ClosedJaxpr) and (
            called.jaxpr not in names.shared):
        names.suggest(called.jaxpr.invars, eqn.invars)
        names.suggest(called.jaxpr.outvars, eqn.outvars)
    results = [_binder(var, names) for var in eqn.outvars]
    operands = [_atom(atom, names) for atom in eqn.invars]
    named = printed.name if names.by_rules else None
    document: Document = Nest(
        2, *fill(results), " = " if results else "",
        eqn.primitive.name if named is None else named(eqn.params),
        Nest(-2, _params(params, names)), " ", *fill(operands))
    for note in _notes(eqn, names)[::-1]:
        document = Noted(document, note)
    return document


def _notes(eqn: JaxprEqn, names: Names) -> list[str]:
    source = eqn.source
    if source is None:
        return []
    return ([source.with_column()] if names.source_info else []) + (
        [f"[{source.name_stack}]"] if names.name_stack else [])


def _jaxpr(jaxpr: Jaxpr, names: Names) -> Document:
    name = names.shared.get(jaxpr)
    return name if name is not None else _whole(jaxpr, names)


def _whole(jaxpr: Jaxpr, names: Names) -> Document:
    binders: list[Any] = ["{ lambda "]
    if jaxpr.constvars:
        binders.append(Nest(4, *fill(_binder(var, names) for var in jaxpr.constvars)))
    binders += ["; ", Nest(4, *fill(_binder(var, names) for var in jaxpr.invars)), ". let"]
    eqns = [_eqn(eqn, names) for eqn in jaxpr.eqns]
    outs = [_atom(atom, names) for atom in jaxpr.outvars]
    results = ["(", *fill(outs, ","), "," if len(outs) == 1 else "", ")"]
    if names.print_effects:
        results.append(f" : {{ {', '.join(sorted(map(str, jaxpr.effects)))} }}")
    return Group(
        *binders, Nest(4, Break(), *join(Break("; "), eqns)),
        Nest(2, Break(), Nest(2, "in ", *results), " }"))


def _shared(jaxpr: Jaxpr) -> dict[Jaxpr, str]:
    """The sub-jaxprs that are long or used more than once, with a name for each."""
    counts: Counter[Jaxpr] = Counter()
    called: dict[Jaxpr, str] = {}
    queue = [jaxpr]
    for current in queue:      # grows as it is walked: breadth first
        counts[current] += 1
        if current is not jaxpr and len(current.eqns) > _INLINE_EQUATIONS:
            counts[current] += 1
        for eqn in current.eqns:
            for inner in _nested(_shown(eqn)):
                queue.append(inner)
                name = eqn.params.get("name")
                if isinstance(name, str):
                    called.setdefault(inner, name.strip("<>"))
    result: dict[Jaxpr, str] = {}
    taken: Counter[str] = Counter()
    for inner, count in counts.items():
        if count == 1 or inner is jaxpr:
            continue
        name = called.get(inner, "jaxpr")
        number = taken[name]
        taken[name] += 1
        result[inner] = f"{name}{number}" if number else name
    return result


def _nested(params: Params) -> list[Jaxpr]:
    result = []
    for value in params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, ClosedJaxpr):
                result.append(item.jaxpr)
            elif isinstance(item, Jaxpr):
                result.append(item)
    return result


def pretty_print(self: Jaxpr | ClosedJaxpr | JaxprEqn, *, source_info: bool = False,
                 print_shapes: bool = True, name_stack: bool = False,
                 custom_pp_eqn_rules: bool = True, print_effects: bool = False, **kwargs: object
                 ) -> str:
    """The text of a jaxpr or an equation.

    Args:
      source_info: after each equation, the line of the user's code that it comes from.
      name_stack: after each equation, the names of ``jax.named_scope`` around it.
      print_shapes: the types of variables.
      print_effects: the effects of each jaxpr.
      custom_pp_eqn_rules, kwargs: JAX's, accepted.
    """
    settings: dict[str, Any] = {"source_info": source_info, "name_stack": name_stack,
                "print_shapes": print_shapes, "print_effects": print_effects}
    if isinstance(self, JaxprEqn):
        return layout(_eqn(self, Names(None, **settings)))
    jaxpr = self.jaxpr
    names = Names(jaxpr, **settings)
    names.shared = _shared(jaxpr)
    parts = [[f"let {name} = ", _whole(inner, names), " in\n"]
             for inner, name in names.shared.items()]
    whole = _whole(jaxpr, names)
    if source_info or name_stack:       # notes of all parts stand in one column
        return layout([*parts, whole])
    return "".join(map(layout, parts)) + layout(whole)


def unruled_text(eqn: JaxprEqn) -> str:
    """The text of an equation whose parameters may be anything: no rule of its primitive, or of one
    in its jaxprs, is asked."""
    return layout(_eqn(eqn, Names(by_rules=False)))


def _text(self: Any) -> str:
    return pretty_print(self)


for _class in (Jaxpr, ClosedJaxpr, JaxprEqn):
    _class.__repr__ = _text                 # type: ignore[method-assign]
    _class.__str__ = _text                  # type: ignore[method-assign]
    _class.pretty_print = pretty_print      # type: ignore[union-attr]
