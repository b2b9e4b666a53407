"""The section of docs/libraries.md on the libraries' own tests, replaced by itself."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from compat import ROOT, report, state
from compat.jax_tests.records import Known, Verdict
from compat.libraries import compare, record
from compat.libraries.suites import SUITES, WITHOUT_TESTS

PAGE = ROOT / "docs" / "libraries.md"
ENDS = "<!-- the libraries' own tests -->", "<!-- end of the libraries' own tests -->"
INTRODUCTION = (
    "`make libraries` runs the tests that come with the libraries' source distributions, or are in "
    "a checkout, whose commit is named, unchanged, by `python -m maxjax -m pytest`, compiled as by "
    "default, file by file, with a limit for each test; and on JAX what does not pass on maxjax, "
    "and, for the time, a sample of what does. Failed are tests that pass on JAX, known those with "
    "a reason, listed below. Time is maxjax's / JAX's, over so many tests. The commits are those "
    "of a suite's first and last files; `python -m compat.libraries SUITE` runs one, and `--keep` "
    "goes on with the files that no run has come to.")
_UNSETTLED = re.compile(r"- (\S+), not settled: ")
HEAD = ("| suite | version | files | passed | failed | known | failed on JAX too | skipped | time "
        "| run, from commit |")


@dataclasses.dataclass(frozen=True)
class Row:
    """A suite's line but for its counts.

    Attributes:
      version: of the library, and the commit of its checkout.
      files: how many it has.
      entries: what those gave that have run.
    """

    version: str
    files: int
    entries: Sequence[record.Entry]


def _line(name: str, counts: Counter[str], row: Row) -> str:
    times = record.total_times(row.entries)
    ratio = f"{times.ours / times.theirs:.2f} (of {times.tests})" if times.theirs else "-"
    cells = [name, row.version, f"{len(row.entries)} of {row.files}", counts["passed"],
             counts["failed"], counts["internal"] + counts["difference"],
             counts[compare.ON_JAX_TOO], counts["skipped"], ratio, record.span(row.entries)]
    return f"| {' | '.join(map(str, cells))} |"


def markdown(text: str, known: Sequence[Known], verdict: Verdict, rows: Mapping[str, Row]) -> str:
    """The section, with the lines that the text has of suites that were not run now."""
    section = pattern_of(ENDS).search(text)
    lines_of = {line.split("|")[1].strip(): line for line in
                (section.group().splitlines() if section else ()) if line.startswith("| ")}
    lines_of |= {name: _line(name, verdict.counts[name], row) for name, row in rows.items()}
    made = state.provenance()
    lines = [ENDS[0], "## Their own tests", "", INTRODUCTION,
             f"The last run was with {made['versions']}, on {made['machine']}.", "",
             HEAD, "| --- |" + " --: |" * 8 + " --- |"]
    lines += [lines_of[name] for name in SUITES if name in lines_of]
    reasons = [f"- {name}, {sum(len(row.tests) for row in group)}: {group[0].reason}"
               for name in SUITES if name in lines_of
               for group in _by_reason(row for row in known if row.file == name)]
    unknown = [line for line in (section.group().splitlines() if section else ())
               if (found := _UNSETTLED.match(line)) and found[1] not in rows]
    unknown += [f"- {result.file}, not settled: `{result.name}` ({result.error[:100]})"
                for result in verdict.failed]
    return "\n".join([
        *lines, "", f"The source distributions of {', '.join(WITHOUT_TESTS)} have no tests: they "
        "run from checkouts.", "",
        "What is known of them, and how many tests or patterns of names:", "", *reasons, *unknown,
        ENDS[1]])


def _by_reason(rows: Iterable[Known]) -> list[list[Known]]:
    found: dict[str, list[Known]] = {}
    for row in rows:
        found.setdefault(row.reason, []).append(row)
    return list(found.values())


def pattern_of(ends: tuple[str, str]) -> re.Pattern[str]:
    return re.compile(f"{re.escape(ends[0])}.*?{re.escape(ends[1])}", re.DOTALL)


def placed(text: str, section: str, ends: tuple[str, str]) -> str:
    """The page with the section in it, instead of the one between these ends, or at its end."""
    pattern = pattern_of(ends)
    if pattern.search(text):
        return pattern.sub(lambda _: section, text, count=1)
    return f"{text.rstrip()}\n\n{section}\n"


def write(known: Sequence[Known], verdict: Verdict, rows: Mapping[str, Row],
          page: Path = PAGE) -> None:
    """Puts the section into the documentation, and its table into the matrix."""
    text = page.read_text()
    page.write_text(placed(text, markdown(text, known, verdict, rows), ENDS))
    if page == PAGE:
        report.write_libraries()
