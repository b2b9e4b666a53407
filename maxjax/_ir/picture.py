"""A picture of a jaxpr: its equations as the nodes of a graph, in Graphviz' language.

The jaxprs of loops, branches and calls are boxes within it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from maxjax._ir.control_flow import iterations, structure_of
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var

# Parameters longer than this are left out of a label.
_LONGEST = 32


def dot(closed: ClosedJaxpr, name: str, note: Callable[[JaxprEqn], str | None] | None = None,
        argument_names: Sequence[str] = ()) -> str:
    """The graph of a jaxpr in DOT.

    Args:
      note: gives a remark about an equation, such as why it runs on the host; it stands below the
        equation's name, which is then shaded.
      argument_names: of the inputs.
    """
    writer = _Writer(note)
    writer.line(f"digraph {_quoted(name)} {{")
    writer.line('  graph [fontname="Helvetica", labelloc="t", label=' + _quoted(name) + "];")
    writer.line('  node [fontname="Helvetica", fontsize=10, shape=box, style="rounded,filled", '
                'fillcolor="#f5f5f5", color="#808080"];')
    writer.line('  edge [fontname="Helvetica", fontsize=8, color="#606060"];')
    jaxpr = closed.jaxpr
    sources: dict[Var, list[str]] = {}
    for var in jaxpr.constvars:
        sources[var] = [writer.node(f"constant\n{_type(var)}", "#fff3cd")]
    for number, var in enumerate(jaxpr.invars):
        label = argument_names[number] if number < len(argument_names) else f"input {number}"
        sources[var] = [writer.node(f"{label}\n{_type(var)}", "#d6e9f8")]
    writer.body(jaxpr, sources)
    for number, atom in enumerate(jaxpr.outvars):
        node = writer.node(f"result {number}\n{_type(atom)}", "#d9f2d9")
        writer.edges(atom, sources, node)
    writer.lines += writer.arrows       # inside a box, an arrow would draw its ends into the box
    writer.line("}")
    return "\n".join(writer.lines) + "\n"


class _Writer:
    def __init__(self, note: Callable[[JaxprEqn], str | None] | None):
        self.lines: list[str] = []
        self.arrows: list[str] = []
        self.note = note
        self.depth = 1
        self.numbers: Iterator[int] = itertools.count()

    def line(self, text: str) -> None:
        self.lines.append(text)

    def node(self, label: str, color: str = "") -> str:
        name = f"n{next(self.numbers)}"
        fill = f', fillcolor="{color}"' if color else ""
        self.line(f"{'  ' * self.depth}{name} [label={_quoted(label)}{fill}];")
        return name

    def edges(self, atom: Atom, sources: dict[Var, list[str]], target: str) -> None:
        """From the producer of a value to its use; a literal is a node of its own."""
        if isinstance(atom, Literal):
            origins = [self.node(str(atom.val), "#ffffff")]
        else:
            origins = sources[atom]
        for origin in origins:
            self.arrows.append(f"  {origin} -> {target} [label={_quoted(_type(atom))}];")

    def body(self, jaxpr: Jaxpr, sources: dict[Var, list[str]]) -> None:
        for eqn in jaxpr.eqns:
            inner = _called(eqn)
            if inner:
                self.cluster(eqn, inner, sources)
                continue
            remark = self.note(eqn) if self.note is not None else None
            label = "\n".join([_applied(eqn), *_parameters(eqn), *filter(None, [remark])])
            node = self.node(label, "#f8d7da" if remark else "")
            for atom in eqn.invars:
                if isinstance(atom, Var):       # literals stand in the label
                    self.edges(atom, sources, node)
            sources.update((var, [node]) for var in eqn.outvars)

    def cluster(self, eqn: JaxprEqn, inner: list[tuple[str, Jaxpr, Sequence[Atom]]],
                sources: dict[Var, list[str]]) -> None:
        """An equation with jaxprs inside: a box, with a box for each if there are several."""
        remark = self.note(eqn) if self.note is not None else None
        title = eqn.primitive.name
        if isinstance(eqn.params.get("name"), str):
            title += f" {eqn.params['name']}"
        flow = eqn.primitive.inner.control_flow
        if flow is not None and flow.length is not None:
            title += f", {iterations(eqn)} times"
        self._open(f"{title}: {remark}" if remark else title)
        results: list[list[str]] = [[] for _ in eqn.outvars]
        for what, jaxpr, operands in inner:
            if len(inner) > 1:
                self._open(what)
            own: dict[Var, list[str]] = {}
            for var, atom in zip(jaxpr.invars, operands, strict=True):
                node = self.node(f"in\n{_type(var)}", "#eef5fb")
                own[var] = [node]
                self.edges(atom, sources, node)
            for var in jaxpr.constvars:
                own[var] = [self.node(f"constant\n{_type(var)}", "#fff3cd")]
            self.body(jaxpr, own)
            outs = []
            for atom in jaxpr.outvars:
                node = self.node(f"out\n{_type(atom)}", "#eef8ee")
                self.edges(atom, own, node)
                outs.append(node)
            if len(outs) == len(results):       # a loop's condition gives no results
                for found, node in zip(results, outs, strict=True):
                    found.append(node)
            if len(inner) > 1:
                self._close()
        self._close()
        sources.update(zip(eqn.outvars, results, strict=True))

    def _open(self, title: str) -> None:
        indent = "  " * self.depth
        self.line(f"{indent}subgraph cluster_{next(self.numbers)} {{")
        self.line(f'{indent}  graph [label={_quoted(title)}, style="rounded", color="#a0a0a0"];')
        self.depth += 1

    def _close(self) -> None:
        self.depth -= 1
        self.line("  " * self.depth + "}")


def _applied(eqn: JaxprEqn) -> str:
    """The primitive's name; where operands are literals, with them in their places."""
    if not any(isinstance(atom, Literal) for atom in eqn.invars):
        return eqn.primitive.name
    operands = (str(atom.val) if isinstance(atom, Literal) else "·" for atom in eqn.invars)
    return f"{eqn.primitive.name}({', '.join(operands)})"


def _called(eqn: JaxprEqn) -> list[tuple[str, Jaxpr, Sequence[Atom]]]:
    """The jaxprs of an equation with their operands; those with other inputs (a derivative rule,
    say) are left out."""
    if eqn.primitive.inner.control_flow is not None:
        return [(body.label, body.jaxpr.jaxpr, [eqn.invars[number] for number in body.takes])
                for body in structure_of(eqn).bodies]
    return [(name, _open_jaxpr(value), eqn.invars) for name, value in eqn.params.items()
            if isinstance(value, Jaxpr)
            and len(_open_jaxpr(value).invars) == len(eqn.invars)
            and len(_open_jaxpr(value).outvars) == len(eqn.outvars)]


def _open_jaxpr(value: ClosedJaxpr | Jaxpr) -> Jaxpr:
    return value.jaxpr


def _parameters(eqn: JaxprEqn) -> list[str]:
    shown = []
    for name, value in sorted(eqn.params.items()):
        text = str(value)
        if value is not None and len(text) <= _LONGEST and not callable(value):
            shown.append(f"{name}={text}")
    return shown


def _type(atom: Atom) -> str:
    if isinstance(atom, DropVar):
        return "_"
    return atom.aval.str_short(short_dtypes=True)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
