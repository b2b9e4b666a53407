"""The figures of docs/performance.md: tables made of a full run's results, between two marks."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import geometric_mean
from benchmarks.plots import measured_with

BEGIN, END = "<!-- figures: made by `make bench` -->\n", "<!-- end of the figures -->\n"
NOTHING = "not measured"
# Scripts as the table calls them, where their titles say more than it needs.
LONG = re.compile(r", (?!training\b|500 bodies\b)(?:[^,]|,(?! ))*")


class Results:
    """What a full run measured, as `benchmarks/results.json` has it."""

    def __init__(self, data: Mapping[str, Any]):
        self.figures = data["figures"]
        self.scripts = data.get("whole_scripts", [])

    def ratio(self, figure: str, *labels: str) -> float | None:
        """The ratio of a figure, or the geometric mean of its comparisons of these labels."""
        entry = self.figures.get(figure, {})
        if not labels:
            ratio: float | None = entry.get("ratio")
            return ratio
        ratios = [each["ratio"] for each in self.comparisons(figure) if each["label"] in labels]
        return geometric_mean(ratios) if len(ratios) == len(labels) else None

    def comparisons(self, figure: str) -> list[dict[str, Any]]:
        entry = self.figures.get(figure, {})
        return [*entry.get("comparisons", []), *entry.get("information", [])]

    def bound(self, figure: str, start: str = "") -> float | None:
        """The value of the first bound whose label starts so."""
        for each in self.figures.get(figure, {}).get("bounds", []):
            if each["label"].startswith(start):
                value: float | None = each["value"]
                return value
        return None


def number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def of(figure: str, *labels: str) -> Callable[[Results], str]:
    """The ratios of comparisons of these labels one by one, or the figure's."""

    def cell(results: Results) -> str:
        return ", ".join(number(results.ratio(figure, label)) for label in labels) or number(
            results.ratio(figure))

    return cell


def products(results: Results) -> str:
    """The range of small products' ratios, and that of large ones."""
    ranges = []
    for sizes in ((16, 32, 64, 128), (256, 512, 1024, 2048)):
        ratios = [results.ratio("steady", f"matmul, {size}") for size in sizes]
        known = [ratio for ratio in ratios if ratio is not None]
        ranges.append(f"{min(known):.2f} to {max(known):.2f}" if known else NOTHING)
    return "; ".join(ranges)


def cold_compiles(results: Results) -> str:
    medians = [[statistics.median(each[library]) for each in results.comparisons("compile")]
               for library in ("maxjax", "jax")]
    if not medians[0]:
        return NOTHING
    ours, theirs = (", ".join(f"{value:.2g} s" for value in values) for values in medians)
    return f"{ours} (JAX {theirs})"


def other_batches(results: Results) -> str:
    built = [each["value"] for each in results.figures.get("compile", {}).get("bounds", [])
             if each["unit"] == "libraries"]
    return NOTHING if not built else f"{sum(built):.0f} libraries" if sum(built) else "nothing"


def eager(results: Results) -> str:
    worst = max(results.comparisons("eager"), key=lambda each: each["ratio"], default=None)
    mean = number(results.ratio("eager"))
    return mean if worst is None else f"{mean} (`{worst['label']}`: {worst['ratio']:.2f})"


def seconds(figure: str) -> Callable[[Results], str]:
    def cell(results: Results) -> str:
        value = results.bound(figure)
        return NOTHING if value is None else f"{value:.2g} s"

    return cell


COMPILED = {
    "25 compiled programs, geometric mean": lambda results: number(all_programs(results)),
    "elementwise chain, softmax, layer norm": of(
        "steady", "elementwise chain, 1M", "softmax of 2048 rows of 1024",
        "layer norm of 4096 rows of 512"),
    "sums of rows, sums of columns": of(
        "steady", "sums of 2048 rows of 2048", "sums of 2048 columns of 2048"),
    "transpositions: 2048 by 2048, heads of attention": of(
        "steady", "transpose, 2048 by 2048", "transpose of heads, 16 x 256 x 8 x 64"),
    "matrix products, 16 to 128; 256 to 2048": products,
    "attention, CNN training step, transformer training step": of(
        "steady", "attention, 4 x 8 x 128 x 64", "CNN training step",
        "transformer block training step"),
    "training step 784-512-512-10, batch 128": of("train_step"),
    "RNN, a scan of 1,000 steps": of("steady", "RNN, scan of 1,000 steps"),
    "sort, gather, scatter-add of 1M": of("steady", "sort, 1M", "gather, 1M", "scatter-add, 1M"),
    "call of a jitted `x * 2 + 1` on 100 elements": of("jit_call"),
    "cold compile of the MLP's and of the transformer's training step": cold_compiles,
    "another batch size: what is compiled": other_batches,
    "the kernel pack, once a machine": seconds("pack"),
    "peak memory of a compiled training step": of("train_memory"),
    "the same of GPT-2's, 124M parameters, with donated state: 256 tokens, 512 tokens": of(
        "donated_memory", "GPT-2 of 124M parameters, 256 tokens",
        "GPT-2 of 124M parameters, 512 tokens"),
}
AROUND = {
    "process start to the first result": of("start"),
    "eager operations on 100 elements, geometric mean": eager,
    "eager `grad` of a small function": of("grad"),
    "eager Hessian for 50 parameters": of("hessian"),
    "tracing a training step of 12 transformer blocks to a jaxpr": of("trace_transformer"),
    "a training step over 8 simulated devices": of("sharded_step"),
    "spreading a step of 12 blocks over 8 devices": seconds("partition"),
    "process start to the first training step, nothing cached": of("first_step_cold"),
    "the same, compiled by an earlier process": of("first_step_cached"),
    "a scan of 1,000 small steps, interpreted; JAX compiled": of("scan"),
    "peak memory of the demo": of("memory"),
}


def all_programs(results: Results) -> float | None:
    """The geometric mean of the compiled programs, the MLP's training step among them."""
    ratios = [each["ratio"] for figure in ("steady", "train_step")
              for each in results.comparisons(figure)]
    return geometric_mean(ratios) if ratios else None


def figures_table(rows: Mapping[str, Callable[[Results], str]], results: Results) -> list[str]:
    return ["| what | maxjax / JAX |", "| --- | --- |",
            *(f"| {label} | {cell(results)} |" for label, cell in rows.items())]


def scripts_table(results: Results) -> list[str]:
    """A row a script: its ratios on the quiet machine, then those with a core busy."""
    titles = list(results.scripts[0]["scripts"])
    columns: list[list[float]] = [[] for _ in range(3 * len(results.scripts))]
    lines = []
    for title in titles:
        cells = []
        for number_of_report, report in enumerate(results.scripts):
            compared = report["scripts"].get(title, {}).get("comparisons")
            for place in range(3):
                if compared is None:
                    cells.append(NOTHING)
                    continue
                ratio = compared[place]["ratio"]
                columns[3 * number_of_report + place].append(ratio)
                cells.append(f"{ratio:.2f}")
        lines.append(f"| {LONG.sub('', title)} | {' | '.join(cells)} |")
    means = [number(geometric_mean(column) if column else None) for column in columns]
    heads = ["first process", "second process", "a step", "busy: first", "second", "a step"]
    return ["| script | " + " | ".join(heads[:len(columns)]) + " |",
            "| --- " * (1 + len(columns)) + "|",
            *lines, f"| geometric mean | {' | '.join(means)} |"]


def section(data: Mapping[str, Any]) -> str:
    """The tables, and under what conditions they were measured."""
    results = Results(data)
    lines = [f"Measured with {measured_with(data)}.", ""]
    if results.scripts:
        report = results.scripts[0]
        lines += [
            f"Whole scripts from process start, {report['seconds']:g} s each "
            f"(load {report['load']:.1f} before them, and once more",
            "while another process kept one of the cores busy):", "",
            *scripts_table(results), ""]
    lines += ["Compiled programs, on the Mojo backend, medians:", "",
              *figures_table(COMPILED, results), "",
              "Startup, eager code and tracing:", "", *figures_table(AROUND, results), ""]
    return "\n".join(lines)


def filled(text: str, data: Mapping[str, Any]) -> str:
    """The page's text with the tables between its two marks.

    Raises:
      ValueError: the marks are not there.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for figures between {BEGIN!r} and {END!r}")
    return f"{before}{begin}{section(data)}{end}{after}"


def fill(page: Path, data: Mapping[str, Any]) -> None:
    """Writes the tables into the page."""
    page.write_text(filled(page.read_text(encoding="utf-8"), data), encoding="utf-8")
