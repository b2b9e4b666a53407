"""The section of docs/libraries.md on the libraries' own tests, which is replaced by itself."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from compat import ROOT, state
from compat.jax_tests.records import Verdict
from compat.libraries import compare
from compat.libraries.suites import SUITES, WITHOUT_TESTS

PAGE = ROOT / "docs" / "libraries.md"
BEGIN, END = "<!-- the libraries' own tests -->", "<!-- end of the libraries' own tests -->"
_SECTION = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)
INTRODUCTION = (
    "`make libraries` runs the tests that come with the libraries' source distributions, "
    "unchanged, under JAX and under `python -m maxjax -m pytest`, interpreted. Failed are tests "
    "that pass on JAX; those with a reason are known, and listed below. Seconds are those of the "
    "tests that pass on both.")


def _row(folder: Path, name: str, counts: Counter[str]) -> str:
    ours, theirs = compare.seconds(folder, name)
    known = counts["internal"] + counts["difference"]
    cells = [name, SUITES[name].version, counts["passed"], counts["failed"], known,
             counts[compare.ON_JAX_TOO], counts["skipped"], f"{ours:.0f}", f"{theirs:.0f}"]
    return f"| {' | '.join(map(str, cells))} |"


def markdown(folder: Path, verdict: Verdict) -> str:
    made = state.provenance()
    lines = [BEGIN, "## Their own tests", "", INTRODUCTION,
             f"Run on {made['day']}, from commit {made['commit']}, with {made['versions']}, on "
             f"{made['machine']}.", "",
             "| suite | version | passed | failed | known | failed on JAX too | skipped | s "
             "| s, JAX |", "| --- |" + " --: |" * 8]
    lines += [_row(folder, name, verdict.counts[name]) for name in SUITES if name in verdict.counts]
    counts: Counter[tuple[str, str]] = Counter()
    for known, count in verdict.explained.items():
        counts[known.file, known.reason] += count
    lines += ["", *(f"- {file}, {count}: {reason}"
                    for (file, reason), count in sorted(counts.items()) if count)]
    if any(counts.values()):
        lines.append("")
    lines += [f"The source distributions of {', '.join(WITHOUT_TESTS)} have no tests."]
    return "\n".join([*lines, END])


def placed(text: str, section: str) -> str:
    """The page with the section in it, instead of the one that it has."""
    if _SECTION.search(text):
        return _SECTION.sub(lambda _: section, text, count=1)
    return f"{text.rstrip()}\n\n{section}\n"


def write(folder: Path, verdict: Verdict, page: Path = PAGE) -> None:
    page.write_text(placed(page.read_text(), markdown(folder, verdict)))
