"""Reports results: on the terminal, in docs/benchmarks.md, docs/performance.md and its plots, in
benchmarks/results.json."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import plots, summary
from benchmarks.figures import Figure
from benchmarks.measure import ROOT, Bound, Comparison, Result, geometric_mean
from benchmarks.whole_scripts import (
    EACH_TARGET,
    MEAN_TARGET,
    SCRIPTS,
    ScriptOutcome,
    ScriptReport,
)

Outcome = tuple[Figure, Result | str]  # the result, or why there is none

HEADINGS = ("figure", "maxjax", "JAX", "ratio", "spread", "target", "met")
SCRIPT_HEADINGS = ("script", "steps", "first process", "second process", "step", "agrees")
ABOUT_SCRIPTS = """\
The {count} scripts of `benchmarks/scripts/` are JAX programs as users write them. They run
unchanged, `python -m maxjax script.py` in turns with `python script.py` on JAX, and print a line a
step, which is stamped as it comes. After a fixed time nobody reads on, which ends the script.

- Steps: N, as many as both libraries got to, in their first processes and in their second ones.
- First process: from its start to step N. Nothing is cached; maxjax's kernel pack, which is built
  once on a machine, is there.
- Second process: the same once more. maxjax finds what its first process kept, also what that left
  to be built, which is awaited. JAX finds all its programs in its persistent compilation cache.
- Step: the mean over the last third of the second process's steps.
- Agrees: whether each step printed the same number on both, up to the script's tolerance.

A cell is the ratio (maxjax's time / JAX's): below 1, maxjax is faster.
A full run measures twice, the second time while another process keeps one core busy.
`python -m benchmarks --scripts` prints this table alone, of all or of the named scripts. `--busy`
keeps one core busy meanwhile; `--seconds` and `--rounds` say how long and how often a script runs.
"""


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


def script_cell(comparison: Comparison) -> str:
    ours, theirs, ratio, _ = cells(comparison)
    return f"{ratio} ({ours} / {theirs})"


def script_rows(outcomes: list[ScriptOutcome]) -> list[list[str]]:
    """A row a script, and the geometric means of those that have a result."""
    table, ratios = [], []
    for script, result in outcomes:
        if isinstance(result, str):
            table.append([script.title, "", "", "", "", f"no: {result}"])
            continue
        agrees = "yes" if result.difference is None else f"no: {result.difference}"
        measured = [script_cell(comparison) for comparison in result.comparisons]
        steps = ", ".join(str(min(column)) for column in zip(*result.steps))
        table.append([script.title, steps, *measured, agrees])
        ratios.append([comparison.ratio for comparison in result.comparisons])
    if ratios:
        means = [f"{geometric_mean(column):.2f}" for column in zip(*ratios)]
        table.append(["geometric mean", "", *means, ""])
    return table


def script_conditions(report: ScriptReport) -> str:
    busy = "one core was kept busy" if report.busy else "no core was kept busy"
    return (
        f"Processes of {report.seconds:g} s; {busy}, and the machine's load average was "
        f"{report.load:.1f} at the start."
    )


def script_summary(report: ScriptReport) -> str:
    ratios = report.ratios
    if not ratios:
        return "No script was measured."
    return (
        f"Of all: geometric mean {geometric_mean(ratios):.2f} (target {MEAN_TARGET:.2f}), worst "
        f"{max(ratios):.2f} (target {EACH_TARGET:.2f})."
    )


def script_table(report: ScriptReport, library: str) -> Table:
    """The scripts' table for the terminal."""
    busy = ", one core busy" if report.busy else ""
    table = Table(title=f"whole scripts, {library} against JAX{busy}")
    for heading in SCRIPT_HEADINGS:
        table.add_column(heading)
    for row in script_rows(report.outcomes):
        table.add_row(*row)
    return table


def script_lines(reports: Sequence[ScriptReport]) -> list[str]:
    """The scripts' section of the report."""
    about = ABOUT_SCRIPTS.format(count=len(SCRIPTS))
    lines = ["", "## Whole scripts", "", *about.splitlines()]
    for report in reports:
        lines += [
            "",
            script_conditions(report),
            script_summary(report),
            "",
            "| " + " | ".join(SCRIPT_HEADINGS) + " |",
            "| --- | ---: | ---: | ---: | ---: | --- |",
            *(markdown_row(row) for row in script_rows(report.outcomes)),
        ]
    return lines


def markdown_row(row: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def terminal_table(outcomes: list[Outcome], library: str) -> Table:
    table = Table(title=f"{library} against JAX (ratio: below 1 is faster or smaller than JAX)")
    for heading in HEADINGS:
        table.add_column(heading.replace("maxjax", library))
    for row in rows(outcomes):
        style = {"yes": "green", "no": "red"}.get(row[-1].partition(":")[0])
        table.add_row(*row[:-1], f"[{style}]{row[-1]}[/]" if style else row[-1])
    return table


def processor_model() -> str:
    """The processor's name as Linux tells it, or nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines
                 if line.startswith("model name")), "")


def versions() -> dict[str, Any]:
    def version(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return "not installed"

    return {
        "processor": platform.machine(),
        **({"model": model} if (model := processor_model()) else {}),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in ("maxjax", "max", "jax", "numpy")},
    }


def markdown(
    outcomes: list[Outcome], library: str, scripts: Sequence[ScriptReport] = ()
) -> str:
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
    lines += [markdown_row(row) for row in rows(outcomes)]
    return "\n".join([*lines, *script_lines(scripts)]) + "\n"


def comparison_data(each: Comparison, library: str) -> dict[str, Any]:
    return {
        "label": each.label,
        "unit": each.unit,
        library: each.candidate,
        "jax": each.reference,
        "ratio": each.ratio,
        "remark": each.remark,
    }


def script_data(report: ScriptReport, library: str) -> dict[str, Any]:
    scripts: dict[str, Any] = {}
    for script, result in report.outcomes:
        if isinstance(result, str):
            scripts[script.title] = {"error": result}
            continue
        scripts[script.title] = {
            "steps": result.steps,
            "comparisons": [comparison_data(each, library) for each in result.comparisons],
            "difference": result.difference,
        }
    conditions = {"seconds": report.seconds, "load": report.load, "busy": report.busy}
    return {**conditions, "scripts": scripts}


def as_json(
    outcomes: list[Outcome], library: str, scripts: Sequence[ScriptReport] = ()
) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for figure, result in outcomes:
        entry: dict[str, Any] = {"title": figure.title, "target": figure.target}
        if isinstance(result, str):
            entry["error"] = result
        else:
            entry["ratio"] = result.ratio
            entry["met"] = figure.met(result)
            entry["comparisons"] = [comparison_data(each, library) for each in result.comparisons]
            entry["information"] = [comparison_data(each, library) for each in result.information]
            entry["notes"] = result.notes
            entry["bounds"] = [asdict(bound) for bound in result.bounds]
            entry["failures"] = result.failures
        figures[figure.name] = entry
    report: dict[str, Any] = {"versions": versions(), "figures": figures}
    if scripts:
        report["whole_scripts"] = [script_data(each, library) for each in scripts]
    return report


def write(
    outcomes: list[Outcome],
    library: str,
    scripts: Sequence[ScriptReport],
    text: Path,
    data: Path,
) -> None:
    results = as_json(outcomes, library, scripts)
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(markdown(outcomes, library, scripts), encoding="utf-8")
    data.write_text(json.dumps(results, indent=1) + "\n")
    summary.fill(ROOT / "docs" / "performance.md", results)
    plots.draw(results)
