"""Plots of a full run's results, as SVG: for light and dark pages, and in the page's own colours.

Rows of bars, each a ratio (maxjax's time / JAX's), on a logarithmic scale around 1: twice as fast
is as far from the middle as twice as slow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, geometric_mean

IMAGES = ROOT / "docs" / "images"
# The colours of text and of lines; bars have a middle tone that both kinds of page show well.
THEMES = {"light": ("#1f2328", "#d1d9e0"), "dark": ("#e6edf3", "#3d444d"),
          "page": ("currentColor", "currentColor")}
SERIES = ("#3b82d6", "#d9822b")
WIDTH, LABELS, ROW, BAR, EDGE = 440, 214, 30, 10, 12
# The part of a label that a plot has room for.
_SHORT = re.compile(r", (?!training\b)(?:[^,]|,(?! ))*")
_NAMES = {"elementwise chain, 1M": "elementwise chain", "softmax of 2048 rows of 1024": "softmax",
          "layer norm of 4096 rows of 512": "layer norm",
          "sums of 2048 rows of 2048": "sums of rows",
          "sums of 2048 columns of 2048": "sums of columns",
          "transpose, 2048 by 2048": "transpose", "sort, 1M": "sort",
          "matmul, 64": "product, 64 by 64", "matmul, 512": "product, 512 by 512",
          "matmul, 2048": "product, 2048 by 2048",
          "attention, 4 x 8 x 128 x 64": "attention", "CNN training step": "CNN training step",
          "transformer block training step": "transformer training step",
          "RNN, scan of 1,000 steps": "RNN, 1,000 steps", "gather, 1M": "gather",
          "scatter-add, 1M": "scatter-add"}

Rows = Sequence[tuple[str, Sequence[float]]]


def bars(title: str, series: Sequence[str], rows: Rows, note: str, theme: str) -> str:
    """A plot: a group of bars a row, one of each series, with its ratio beside it."""
    text, line = THEMES[theme]
    low = min([0.25, *(value for _, values in rows for value in values)])
    high = max([1.5, *(value for _, values in rows for value in values)])
    ticks = [tick for tick in (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
             if low / 1.3 <= tick <= high * 1.3]
    first, last = math.log2(low) - 0.55, math.log2(high) + 0.55
    step = ROW if len(series) > 1 else ROW - 9
    top = 52 + (18 if len(series) > 1 else 0)
    height = top + step * len(rows) + 40

    def across(value: float) -> float:
        return LABELS + (math.log2(value) - first) / (last - first) * (WIDTH - LABELS - EDGE)

    def said(x: float, y: float, words: str, more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" '
           f'font-family="system-ui, sans-serif" font-size="13" fill="{text}">',
           f"<title>{escape(title)}</title>",
           said(0, 16, title, 'font-weight="600" font-size="15"')]
    if len(series) > 1:
        place = 0.0
        for name, colour in zip(series, SERIES):
            out.append(f'<rect x="{place:.1f}" y="28" width="11" height="11" rx="2" '
                       f'fill="{colour}"/>')
            out.append(said(place + 17, 38, name))
            place += 36 + 7.2 * len(name)
    bottom = top + step * len(rows)
    for tick in ticks:
        x = across(tick)
        strong = ' stroke-width="1.5"' if tick == 1 else ' stroke-dasharray="2 3"'
        out.append(f'<line x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{bottom}" '
                   f'stroke="{text if tick == 1 else line}" '
                   f'opacity="{0.8 if tick == 1 else 0.5}"{strong}/>')
        label = "JAX" if tick == 1 else f"{tick:g}×" if tick > 1 else f"1/{1 / tick:.0f}"
        out.append(said(x, top - 13, label, 'text-anchor="middle" font-size="11"'))
    for number, (label, values) in enumerate(rows):
        y = top + step * number
        middle = y + (len(values) * (BAR + 1)) / 2
        weight = ' font-weight="600"' if label == "geometric mean" else ""
        out.append(said(LABELS - 10, middle + 4.5, label, f'text-anchor="end"{weight}'))
        for place, (value, colour) in enumerate(zip(values, SERIES)):
            start, end = sorted((across(1.0), across(value)))
            at = y + place * (BAR + 1)
            out.append(f'<rect x="{start:.1f}" y="{at}" width="{max(end - start, 1):.1f}" '
                       f'height="{BAR}" rx="2" fill="{colour}"/>')
            beside, anchor = (start - 4, "end") if value <= 1 else (end + 4, "start")
            out.append(said(beside, at + BAR - 0.5, f"{value:.2f}",
                            f'text-anchor="{anchor}" font-size="10"'))
    out += [said(0, bottom + 20, "Time relative to JAX's: left of the line maxjax is faster.",
                 'font-size="11"'),
            said(0, bottom + 34, note, 'font-size="11"'), "</svg>\n"]
    return "\n".join(out)


def measured_with(data: Mapping[str, Any]) -> str:
    """Which versions a run's results are of, and on what."""
    of = data["versions"]
    return (f"maxjax {of['maxjax']}, JAX {of['jax']}; {of['cores']} cores of "
            f"{of.get('model', of['processor'])}")


def script_rows(data: Mapping[str, Any]) -> Rows:
    """The ratios of each script on the quiet machine: first process, a step of the second one."""
    rows = [(_SHORT.sub("", title).replace(" with a key-value", ", key-value"),
             [entry["comparisons"][0]["ratio"], entry["comparisons"][2]["ratio"]])
            for title, entry in data["whole_scripts"][0]["scripts"].items()
            if "comparisons" in entry]
    return [*rows, ("geometric mean", [geometric_mean(column)
                                       for column in zip(*(values for _, values in rows))])]


def program_rows(data: Mapping[str, Any]) -> Rows:
    """The ratios of the compiled programs that have a short name, and the mean of all."""
    compared = data["figures"]["steady"]["comparisons"]
    known = {each["label"]: each["ratio"] for each in compared}
    rows = [(name, [known[label]]) for label, name in _NAMES.items() if label in known]
    return [*rows, ("geometric mean", [geometric_mean([each["ratio"] for each in compared])])]


def plots(data: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The plots of a run by their names, each in each theme; none of what was not measured."""
    note = measured_with(data)
    found: dict[str, dict[str, str]] = {}
    if data.get("whole_scripts"):
        rows = script_rows(data)
        found["scripts"] = {theme: bars(
            "Whole scripts, from process start", ("first process", "a step, second process"),
            rows, note, theme) for theme in THEMES}
    if "comparisons" in data["figures"].get("steady", {}):
        rows = program_rows(data)
        count = len(data["figures"]["steady"]["comparisons"])
        found["programs"] = {theme: bars(
            f"{len(rows) - 1} of {count} compiled programs, and the mean of all", ("",), rows,
            note, theme) for theme in THEMES}
    return found


def draw(data: Mapping[str, Any], folder: Path = IMAGES) -> None:
    """Writes the plots of a run: NAME-light.svg and NAME-dark.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, themes in plots(data).items():
        for theme in ("light", "dark"):
            (folder / f"{name}-{theme}.svg").write_text(themes[theme], encoding="utf-8")
