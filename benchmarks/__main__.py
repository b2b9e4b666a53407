"""Runs the figures: `python -m benchmarks [NAME ...] [--quick]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.figures import FIGURES
from benchmarks.measure import ROOT, BenchmarkError
from benchmarks.report import Outcome, terminal_table, write


def main() -> int:
    names = [figure.name for figure in FIGURES]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run the same programs on maxjax and on JAX, in turns, and compare.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; or all")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="the same")
    parser.add_argument(
        "--graph",
        action="store_true",
        help="compile with the graph backend too, for its ratio; takes minutes",
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions; nothing is written")
    parser.add_argument("--candidate", default="maxjax", help="the library to hold against JAX")
    parser.add_argument("--markdown", type=Path, default=ROOT / "docs" / "benchmarks.md")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks" / "results.json")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args()
    chosen = {*options.names, *options.only}
    if unknown := sorted(chosen - set(names)):
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(names)}")

    console = Console()
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

    # A part of the figures, or a quick look, must not replace the record of a full run.
    if not chosen and not options.quick and options.candidate == "maxjax":
        write(outcomes, options.candidate, options.markdown, options.json)
        console.print(f"wrote {options.markdown} and {options.json}")
    missed = any(isinstance(r, str) or not figure.met(r) for figure, r in outcomes)
    failed = any(isinstance(r, str) or r.failures for _, r in outcomes)
    return 1 if failed or (options.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
