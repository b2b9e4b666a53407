"""The sections of docs/libraries.md on the libraries' own tests, replaced by themselves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from compat import ROOT, state
from compat.jax_tests.records import Known, Verdict
from compat.libraries import compare
from compat.libraries.suites import SUITES, WITHOUT_TESTS

PAGE = ROOT / "docs" / "libraries.md"
BEGIN, END = "<!-- the libraries' own tests -->", "<!-- end of the libraries' own tests -->"
OTHERS = "<!-- the other suites -->", "<!-- end of the other suites -->"
INTRODUCTION = (
    "`make libraries` runs the tests that come with the libraries' source distributions, "
    "unchanged, under JAX and under `python -m maxjax -m pytest`, interpreted. Failed are tests "
    "that pass on JAX; those with a reason are known, and listed below. Seconds are those of the "
    "tests that pass on both.")

INTRODUCTION_OF_OTHERS = (
    "`python -m compat.libraries --by-file SUITE` runs these on maxjax, file by file, with a limit "
    "for each test, and on JAX only what does not pass on maxjax. `--keep` goes on with what is "
    "left, `--source SUITE=FOLDER` takes the tests of a checkout. Files are those run of those "
    "there are; failed are tests that pass on JAX, known those with a reason. The commit is that "
    "of the last run, whose results stand beside those kept from runs before it.")


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


def _row_of_others(name: str, counts: Counter[str], ran: int, files: int) -> str:
    made = state.provenance()
    cells = [name, SUITES[name].version, f"{ran} of {files}", counts["passed"], counts["failed"],
             counts["internal"] + counts["difference"], counts[compare.ON_JAX_TOO],
             counts["skipped"], f"{made['day']}, {made['commit']}"]
    return f"| {' | '.join(map(str, cells))} |"


def markdown_of_others(text: str, known: Sequence[Known], verdict: Verdict,
                       files: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> str:
    """The section, with the rows that the text has of suites that were not run now.

    Args:
      files: by suite, the test files that were run, and those that there are.
    """
    section = _pattern(*OTHERS).search(text)
    rows = {line.split("|")[1].strip(): line for line in
            (section.group().splitlines() if section else ()) if line.startswith("| ")}
    rows |= {name: _row_of_others(name, verdict.counts[name], *map(len, files[name]))
             for name in verdict.counts}
    lines = [OTHERS[0], "## The other suites", "", INTRODUCTION_OF_OTHERS,
             f"The last run was with {state.provenance()['versions']}.", "",
             "| suite | version | files | passed | failed | known | failed on JAX too | skipped "
             "| run, from commit |", "| --- |" + " --: |" * 7 + " --- |"]
    lines += [rows[name] for name in SUITES if name in rows]
    reasons = [f"- {name}, {sum(len(row.tests) for row in group)}: {group[0].reason}"
               for name in SUITES if name in rows
               for group in _by_reason(row for row in known if row.file == name)]
    unknown = [f"- {result.file}, not settled: `{result.name}` ({result.error[:100]})"
               for result in verdict.failed]
    return "\n".join([*lines, "", "What is known of them, and how many tests or patterns of names:",
                      "", *reasons, *unknown, OTHERS[1]])


def _by_reason(rows: Iterable[Known]) -> list[list[Known]]:
    found: dict[str, list[Known]] = {}
    for row in rows:
        found.setdefault(row.reason, []).append(row)
    return list(found.values())


def write_others(known: Sequence[Known], verdict: Verdict,
                 files: Mapping[str, tuple[Sequence[str], Sequence[str]]],
                 page: Path = PAGE) -> None:
    text = page.read_text()
    page.write_text(placed(text, markdown_of_others(text, known, verdict, files), OTHERS))


def _pattern(begin: str, end: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)


def placed(text: str, section: str, ends: tuple[str, str] = (BEGIN, END)) -> str:
    """The page with the section in it, instead of the one that it has."""
    pattern = _pattern(*ends)
    if pattern.search(text):
        return pattern.sub(lambda _: section, text, count=1)
    return f"{text.rstrip()}\n\n{section}\n"


def write(folder: Path, verdict: Verdict, page: Path = PAGE) -> None:
    page.write_text(placed(page.read_text(), markdown(folder, verdict)))
