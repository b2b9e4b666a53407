"""A report of sharding as a picture: SVG, a row for each value, top to bottom."""

from __future__ import annotations

from html import escape

from maxjax._sharding.report import Report

_ROW, _LEFT, _LETTER = 22, 12, 7.3
_COLORS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#9c755f", "#edc948", "#e15759")


def svg(report: Report) -> str:
    """A row for each value: its name and type, a cell for each dimension in the colours of the axes
    that split it, and what brought that about. A collective is a red row below its value.

    >>> from maxjax._ir.staging import trace_to_jaxpr
    >>> from maxjax._ir.types import ShapedArray
    >>> from maxjax._sharding.engine import partition
    >>> from maxjax._sharding.specs import Spec
    >>> square = ShapedArray((4, 4), np.float32)
    >>> program = trace_to_jaxpr(lambda x, y: [jnp.dot(x, y)], [square, square])
    >>> report = partition(program, {"x": 2}, [Spec.of(None, "x"), Spec.of("x")]).report
    >>> picture = svg(report)
    >>> picture.startswith("<svg"), picture.count("psum over x")
    (True, 1)
    """
    colors = {axis: _COLORS[number % len(_COLORS)] for number, axis in enumerate(report.axes)}
    moves: dict[str, list[str]] = {}
    for move in report.moves:
        often = f" {move.times} times" if move.times > 1 else ""
        moves.setdefault(report.names.of(move.var), []).append(
            f"{move.kind} over {', '.join(move.axes)}{often}, {move.nbytes} bytes: {move.reason}")
    parts: list[str] = []
    for number, (axis, size) in enumerate(report.axes.items()):
        parts += [_box(_LEFT + 130 * number, 8, 14, colors[axis]),
                  _text(_LEFT + 130 * number + 20, 20, f"{axis}: {size}")]
    y = 2 * _ROW
    for row in report.rows:
        parts.append(_text(_LEFT, y + 14, f"{row.name}:{row.aval.str_short(short_dtypes=True)} = "
                                          f"{row.maker}"))
        for number, axes in enumerate(row.dims):
            x = _LEFT + 300 + 34 * number
            parts.append(_box(x, y, 30, "#eeeeee"))
            width = 30 / max(len(axes), 1)
            parts += [_box(x + width * position, y, width, colors[axis])
                      for position, axis in enumerate(axes)]
        parts.append(_text(_LEFT + 310 + 34 * len(row.dims), y + 14, row.why, "#666666"))
        y += _ROW
        for line in moves.get(row.name, ()):
            parts.append(_text(_LEFT + 24, y + 14, f"↳ {line}", "#c00000"))
            y += _ROW
    longest = max(map(len, (line for lines in moves.values() for line in lines)), default=0)
    widest = max((300 + 34 * len(row.dims) + _LETTER * len(row.why) for row in report.rows),
                 default=0)
    width = max(widest, _LETTER * longest) + 60
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{y + _ROW}" '
        'font-family="monospace" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"])


def _box(x: float, y: float, width: float, color: str) -> str:
    return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="16" fill="{color}" '
            'stroke="white"/>')


def _text(x: float, y: float, text: str, color: str = "black") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{color}">{escape(text)}</text>'
