"""Reports results: a table on the terminal, docs/benchmarks.md and benchmarks/results.json."""

from __future__ import annotations

import json
import os
import platform
import statistics
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.figures import Figure
from benchmarks.measure import Bound, Comparison, Result

Outcome = tuple[Figure, Result | str]  # the result, or why there is none

HEADINGS = ("figure", "maxjax", "JAX", "ratio", "spread", "target", "met")


def amount(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / 1e6:.0f} MB"
    if unit != "s":
        return f"{value:.3g} {unit}".strip()
    for scale, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value * 1e6:.3g} µs"


def cells(comparison: Comparison) -> list[str]:
    """Both medians, their median ratio and the ratio's range over the middle half of the pairs."""
    ratios = sorted(comparison.ratios)
    quarter = len(ratios) // 4
    return [
        amount(statistics.median(comparison.candidate), comparison.unit),
        amount(statistics.median(comparison.reference), comparison.unit),
        f"{comparison.ratio:.2f}",
        f"{ratios[quarter]:.2f} to {ratios[-1 - quarter]:.2f}",
    ]


def yes_or_no(met: bool) -> str:
    return "yes" if met else "no"


def remarked(label: str, comparison: Comparison) -> str:
    return f"{label} ({comparison.remark})" if comparison.remark else label


def comparison_row(figure: Figure, comparison: Comparison) -> list[str]:
    limit = met = ""
    if figure.each is not None:
        limit, met = f"{figure.each:.2f}", yes_or_no(comparison.ratio <= figure.each)
    return [f"- {remarked(comparison.label, comparison)}", *cells(comparison), limit, met]


def bound_row(bound: Bound) -> list[str]:
    value = "not measured" if bound.value is None else amount(bound.value, bound.unit)
    limit = amount(bound.limit, bound.unit)
    return [f"- {bound.label}", value, "", "", "", limit, yes_or_no(bound.met)]


def rows(outcomes: list[Outcome]) -> list[list[str]]:
    table = []
    for figure, result in outcomes:
        target = "" if figure.target is None else f"{figure.target:.2f}"
        if isinstance(result, str):
            table.append([figure.title, "", "", "", "", target, f"no: {result}"])
            continue
        met = yes_or_no(figure.met(result))
        if len(result.comparisons) == 1:
            only = result.comparisons[0]
            table.append([remarked(figure.title, only), *cells(only), target, met])
        else:
            ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
            table.append([figure.title, "", "", ratio, "", target, met])
            table += [comparison_row(figure, each) for each in result.comparisons]
        table += [[f"- {failure}", "", "", "", "", "", "no"] for failure in result.failures]
        table += [bound_row(bound) for bound in result.bounds]
        table += [
            [f"- {remarked(each.label, each)}", *cells(each), "", ""] for each in result.information
        ]
        table += [[f"- {note}", "", "", "", "", "", ""] for note in result.notes]
    return table


def terminal_table(outcomes: list[Outcome], library: str) -> Table:
    table = Table(title=f"{library} against JAX (ratio: below 1 is faster or smaller than JAX)")
    for heading in HEADINGS:
        table.add_column(heading.replace("maxjax", library))
    for row in rows(outcomes):
        style = {"yes": "green", "no": "red"}.get(row[-1].partition(":")[0])
        table.add_row(*row[:-1], f"[{style}]{row[-1]}[/]" if style else row[-1])
    return table


def versions() -> dict[str, Any]:
    def version(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return "not installed"

    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in ("maxjax", "max", "jax", "numpy")},
    }


def markdown(outcomes: list[Outcome], library: str) -> str:
    about = ", ".join(f"{name} {value}" for name, value in versions().items())
    lines = [
        "# Benchmarks",
        "",
        f"{library} against JAX: the same programs (`benchmarks/`), run in turns by `make bench`.",
        "A ratio is the median over pairs of runs; below 1, maxjax is faster or smaller. The",
        "spread is the range of the middle half of the pairs.",
        "",
        f"Measured with {about}.",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows(outcomes):
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines) + "\n"


def as_json(outcomes: list[Outcome], library: str) -> dict[str, Any]:
    def comparison(each: Comparison) -> dict[str, Any]:
        return {
            "label": each.label,
            "unit": each.unit,
            library: each.candidate,
            "jax": each.reference,
            "ratio": each.ratio,
            "remark": each.remark,
        }

    figures: dict[str, Any] = {}
    for figure, result in outcomes:
        entry: dict[str, Any] = {"title": figure.title, "target": figure.target}
        if isinstance(result, str):
            entry["error"] = result
        else:
            entry["ratio"] = result.ratio
            entry["met"] = figure.met(result)
            entry["comparisons"] = [comparison(each) for each in result.comparisons]
            entry["information"] = [comparison(each) for each in result.information]
            entry["notes"] = result.notes
            entry["bounds"] = [asdict(bound) for bound in result.bounds]
            entry["failures"] = result.failures
        figures[figure.name] = entry
    return {"versions": versions(), "figures": figures}


def write(outcomes: list[Outcome], library: str, text: Path, data: Path) -> None:
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(markdown(outcomes, library), encoding="utf-8")
    data.write_text(json.dumps(as_json(outcomes, library), indent=1) + "\n")
