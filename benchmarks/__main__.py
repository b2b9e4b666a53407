"""Runs the figures and whole scripts: `python -m benchmarks [--scripts] [NAME ...] [--quick]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from rich.console import Console

from benchmarks.figures import FIGURES
from benchmarks.measure import ROOT, BenchmarkError
from benchmarks.report import (
    Outcome,
    script_conditions,
    script_summary,
    script_table,
    terminal_table,
    write,
)
from benchmarks.whole_scripts import (
    QUICK_SECONDS,
    SCRIPTS,
    SECONDS,
    ScriptReport,
    busy_core,
    load_average,
    measure_script,
)


def run_figures(
    chosen: Collection[str], options: argparse.Namespace, console: Console
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for figure in FIGURES:
        wanted = figure.name in chosen if chosen else not figure.on_request
        if not wanted and not (figure.on_request and options.graph):
            continue
        with console.status(figure.title):
            try:
                outcomes.append((figure, figure.run(options.candidate, options.quick)))
            except BenchmarkError as error:
                outcomes.append((figure, str(error)))
    console.print(terminal_table(outcomes, options.candidate))
    return outcomes


def run_scripts(
    chosen: Collection[str], options: argparse.Namespace, busy: bool, console: Console
) -> ScriptReport:
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    report = ScriptReport(seconds, load_average(), busy)
    with busy_core(busy):
        for name, script in SCRIPTS.items():
            if not chosen or name in chosen:
                with console.status(script.title):
                    outcome = measure_script(name, options.candidate, seconds, options.rounds)
                report.outcomes.append(outcome)
    console.print(script_table(report, options.candidate))
    console.print(script_conditions(report))
    console.print(script_summary(report))
    return report


def main() -> int:
    figures, scripts = [figure.name for figure in FIGURES], list(SCRIPTS)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run the same programs on maxjax and on JAX, in turns, and compare.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of the figures {', '.join(figures)}; with --scripts, of the scripts "
        f"{', '.join(scripts)}; or all",
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="the same")
    parser.add_argument(
        "--graph",
        action="store_true",
        help="compile with the graph backend too, for its ratio; takes minutes",
    )
    parser.add_argument(
        "--scripts",
        action="store_true",
        help="whole scripts alone, from process start; nothing is written",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help=f"how long a process of a script runs (default {SECONDS:g}; quick {QUICK_SECONDS:g})",
    )
    parser.add_argument("--rounds", type=int, default=1, help="how often a script is measured")
    parser.add_argument(
        "--busy", action="store_true", help="with --scripts: keep one core busy meanwhile"
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions; nothing is written")
    parser.add_argument("--candidate", default="maxjax", help="the library to hold against JAX")
    parser.add_argument("--markdown", type=Path, default=ROOT / "docs" / "benchmarks.md")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks" / "results.json")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args()
    chosen = {*options.names, *options.only}
    known = scripts if options.scripts else figures
    if unknown := sorted(chosen - set(known)):
        what = "script" if options.scripts else "figure"
        parser.error(f"no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    if options.busy and not options.scripts:
        parser.error("--busy goes with --scripts: the figures are about a quiet machine")
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}, and has to be at least 1")

    console = Console()
    outcomes = [] if options.scripts else run_figures(chosen, options, console)
    # A part of the figures, or a quick look, must not replace the record of a full run.
    is_full = not chosen and not options.scripts and not options.quick
    # Scripts are part of a full run, and no figure has a script's name.
    times = [False, True] if is_full else [options.busy] if options.scripts or not chosen else []
    reports = [run_scripts(chosen, options, busy, console) for busy in times]
    if is_full and options.candidate == "maxjax":
        write(outcomes, options.candidate, reports, options.markdown, options.json)
        console.print(f"wrote {options.markdown}, {options.json}, docs/performance.md, plots")
    missed = any(isinstance(r, str) or not figure.met(r) for figure, r in outcomes)
    failed = any(isinstance(r, str) or r.failures for _, r in outcomes)
    missed = missed or not all(report.met for report in reports)
    failed = failed or any(report.failed for report in reports)
    return 1 if failed or (options.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
