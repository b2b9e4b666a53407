"""Draws the graphs that `_ir/picture.py` writes, as SVG, where Graphviz is not installed.

Layers from top to bottom: a value's producer lies above its uses. A box (a loop, a branch, a call)
is laid out by itself, and then is one item of the box around it. Places within a layer are means of
those of the neighbours, in a few sweeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

_LETTER, _LINE, _PAD, _GAP, _RISE = 6.3, 14.0, 8.0, 18.0, 34.0
_LABEL = r'label="((?:[^"\\]|\\.)*)"'
_NODE = re.compile(rf'\s*(n\d+) \[{_LABEL}(?:, fillcolor="([^"]+)")?\];')
_EDGE = re.compile(rf"\s*(n\d+) -> (n\d+) \[{_LABEL}\];")
_TITLE = re.compile(rf"\s*graph \[.*?{_LABEL}")
_SWEEPS = 6


@dataclass(eq=False)
class _Item:
    """A node, a box, or a place where an edge passes a layer; x and y are its middle's, within the
    box around it."""

    name: str = ""
    label: list[str] = field(default_factory=list)
    fill: str = "#f5f5f5"
    children: list[_Item] = field(default_factory=list)
    is_box: bool = False
    width: float = 6.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0


@dataclass(eq=False)
class _Edge:
    """From a node to another, by way of the places where it passes layers."""

    start: str
    end: str
    label: str
    bends: list[_Item] = field(default_factory=list)


def svg(text: str) -> str:
    """The drawing of a graph in the language that `picture.dot` writes."""
    root, edges = _read(text)
    owners = dict(_owners(root, []))
    _lay_out(root, edges, owners)
    places: dict[_Item, tuple[float, float]] = {}
    shapes = list(_shapes(root, root.width / 2, root.height / 2, places))
    lines = [_line(edge, owners, places) for edge in edges]
    boxes, nodes = ([shape for is_box, shape in shapes if is_box is kind] for kind in (True, False))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{root.width:.0f}" '
        f'height="{root.height:.0f}" viewBox="0 0 {root.width:.0f} {root.height:.0f}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="11">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
        'markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#808080"/></marker></defs>',
        *boxes, *lines, *nodes, "</svg>"]) + "\n"


def _read(text: str) -> tuple[_Item, list[_Edge]]:
    """The items of a graph, in boxes, and its edges."""
    root = _Item(is_box=True)
    stack = [root]
    edges = []
    for line in text.splitlines():
        if (edge := _EDGE.fullmatch(line)) is not None:
            edges.append(_Edge(edge[1], edge[2], _plain(edge[3])))
        elif (node := _NODE.fullmatch(line)) is not None:
            label = _plain(node[2]).split("\n")
            stack[-1].children.append(_Item(
                node[1], label, node[3] or "#f5f5f5",
                width=max(map(len, label)) * _LETTER + 2 * _PAD,
                height=len(label) * _LINE + _PAD))
        elif line.lstrip().startswith("subgraph"):
            box = _Item(is_box=True)
            stack[-1].children.append(box)
            stack.append(box)
        elif (title := _TITLE.match(line)) is not None:
            stack[-1].label = [_plain(title[1])]
        elif line.strip() == "}" and len(stack) > 1:
            stack.pop()
    return root, edges


def _plain(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], quoted)


def _owners(box: _Item, around: list[_Item]) -> Iterator[tuple[str, list[_Item]]]:
    """The name of each node, with the boxes around it from the whole graph inwards, and itself."""
    chain = [*around, box]
    for child in box.children:
        if child.is_box:
            yield from _owners(child, chain)
        else:
            yield child.name, [*chain, child]


# --- the layout -----------------------------------------------------------------------------------

def _lay_out(box: _Item, edges: Sequence[_Edge], owners: dict[str, list[_Item]]) -> None:
    """Gives the items of a box, and of those in it, their places, and the box its size."""
    for child in box.children:
        if child.is_box:
            _lay_out(child, edges, owners)
    pairs = []
    for edge in edges:
        ends = [_in(box, owners[name]) for name in (edge.start, edge.end)]
        if ends[0] is not None and ends[1] is not None and ends[0] is not ends[1]:
            pairs.append((ends[0], ends[1], edge))
    ranks = _ranks(box.children, [(start, end) for start, end, _ in pairs])
    layers: list[list[_Item]] = [[] for _ in range(max(ranks.values(), default=0) + 1)]
    for item, rank in ranks.items():
        layers[rank].append(item)
    links: list[tuple[_Item, _Item]] = []
    for start, end, edge in pairs:
        passed = [_Item() for _ in range(ranks[start] + 1, ranks[end])]
        for item, rank in zip(passed, range(ranks[start] + 1, ranks[end])):
            layers[rank].append(item)
        edge.bends += passed
        chain = [start, *passed, end]
        links += zip(chain, chain[1:])
    _spread(layers, links)
    top = _PAD + (_LINE + _PAD if box.label else 0.0)
    for layer in layers:
        height = max((item.height for item in layer), default=0.0)
        for item in layer:
            item.y = top + height / 2
        top += height + _RISE
    items = [item for layer in layers for item in layer]
    left = min((item.x - item.width / 2 for item in items), default=0.0) - _PAD
    for item in items:
        item.x -= left
    box.height = top - _RISE + _PAD
    title = max(map(len, box.label), default=0) * _LETTER
    wide = max((item.x + item.width / 2 for item in items), default=0.0) + _PAD
    box.width = max(wide, title + 2 * _PAD)
    for item in items:      # in the middle, where the title is wider
        item.x += (box.width - wide) / 2


def _in(box: _Item, chain: list[_Item]) -> _Item | None:
    """The item of a box that a node is, or is in."""
    return next((child for parent, child in zip(chain, chain[1:]) if parent is box), None)


def _ranks(items: Sequence[_Item], pairs: Sequence[tuple[_Item, _Item]]) -> dict[_Item, int]:
    """The layer of each item: below all that goes into it; what nothing goes into is as low as its
    uses allow."""
    ranks = dict.fromkeys(items, 0)
    for _ in items:
        changed = False
        for start, end in pairs:
            if ranks[end] <= ranks[start]:
                ranks[end] = ranks[start] + 1
                changed = True
        if not changed:
            break
    targets = {end for _, end in pairs}
    below: dict[_Item, int] = {}
    for start, end in pairs:
        below[start] = min(ranks[end], below.get(start, ranks[end]))
    for item, rank in below.items():
        if item not in targets:
            ranks[item] = rank - 1
    return ranks


def _spread(layers: Sequence[list[_Item]], links: Sequence[tuple[_Item, _Item]]) -> None:
    """Gives the items of each layer their x: near their neighbours' mean, without overlaps."""
    near: dict[_Item, tuple[list[_Item], list[_Item]]] = {
        item: ([], []) for layer in layers for item in layer}
    for start, end in links:
        near[end][0].append(start)
        near[start][1].append(end)
    for layer in layers:
        _without_overlaps(layer)
    for sweep in range(2 * _SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            for item in layer:
                neighbours = near[item][0 if down else 1]
                if neighbours:
                    item.x = sum(other.x for other in neighbours) / len(neighbours)
            layer.sort(key=lambda item: item.x)
            _without_overlaps(layer)


def _without_overlaps(layer: Sequence[_Item]) -> None:
    """Moves items to the right of those before them, and all back by the mean of that."""
    wanted = sum(item.x for item in layer)
    for before, item in zip(layer, layer[1:]):
        item.x = max(item.x, before.x + (before.width + item.width) / 2 + _GAP)
    shift = (sum(item.x for item in layer) - wanted) / max(len(layer), 1)
    for item in layer:
        item.x -= shift


# --- the drawing ----------------------------------------------------------------------------------

def _shapes(item: _Item, x: float, y: float, places: dict[_Item, tuple[float, float]]
            ) -> Iterator[tuple[bool, str]]:
    """The shapes of an item and of those in it, and whether each is a box; notes their places."""
    places[item] = (x, y)
    left, top = x - item.width / 2, y - item.height / 2
    fill, stroke = ("none", "#a0a0a0") if item.is_box else (item.fill, "#808080")
    yield item.is_box, (
        f'<rect x="{left + 0.5:.1f}" y="{top + 0.5:.1f}" width="{item.width - 1:.1f}" '
        f'height="{item.height - 1:.1f}" rx="5" fill="{fill}" stroke="{stroke}"/>')
    colour = "#808080" if item.is_box else "#1f2328"
    for number, line in enumerate(item.label):
        at = top + _PAD / 2 + _LINE * (number + 0.8)
        yield item.is_box, (f'<text x="{x:.1f}" y="{at:.1f}" text-anchor="middle" '
                            f'fill="{colour}">{escape(line)}</text>')
    for child in item.children:
        yield from _shapes(child, left + child.x, top + child.y, places)


def _line(edge: _Edge, owners: dict[str, list[_Item]],
          places: dict[_Item, tuple[float, float]]) -> str:
    """An edge as a curve from a node's lower side to another's upper one, and its label."""
    start, end = owners[edge.start][-1], owners[edge.end][-1]
    # Where an edge passes layers is in the innermost box around both of its ends.
    around = owners[edge.end]
    common = next(box for box in reversed(owners[edge.start][:-1]) if box in around)
    x, y = places[common]
    left, top = x - common.width / 2, y - common.height / 2
    points = [(places[start][0], places[start][1] + start.height / 2),
              *((left + bend.x, top + bend.y) for bend in edge.bends),
              (places[end][0], places[end][1] - end.height / 2)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        middle = (y0 + y1) / 2
        path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    (x0, y0), (x1, y1) = points[:2]
    label = "" if "\n".join(start.label).endswith(edge.label) else (
        f'<text x="{(x0 + x1) / 2 + 4:.1f}" y="{(y0 + y1) / 2 + 3:.1f}" font-size="9" '
        f'fill="#808080">{escape(edge.label)}</text>')
    return f'<path d="{path}" fill="none" stroke="#808080" marker-end="url(#tip)"/>{label}'
