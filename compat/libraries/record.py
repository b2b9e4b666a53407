"""What each file of a suite gave when it last ran, a line each, kept with the project.

Some suites take longer than one run has: ``--keep`` leaves out what the record has of the same
release, wherever that ran.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from compat import ROOT
from compat.jax_tests.records import Known, Result, Verdict, judge
from compat.libraries import compare

RECORD = ROOT / "compat" / "libraries_record.jsonl"


@dataclasses.dataclass(frozen=True)
class Entry:
    """What one file gave.

    Attributes:
      version: of the library, with the commit of the checkout that the tests are from.
      day, commit: when it ran, and of what of maxjax's.
      counts: how many tests are in each state.
      times: of the tests that passed on both.
      failed: name and error of each unknown failure.
    """

    suite: str
    version: str
    file: str
    day: str
    commit: str
    counts: Mapping[str, int]
    times: compare.Times
    failed: Sequence[Sequence[str]] = ()


def made_of(folder: Path, suite: str, version: str, files: Iterable[str],
            known: Sequence[Known]) -> list[Entry]:
    """The entries of files that have run to their end."""
    found = []
    for file in compare.ran(folder, suite, list(files)):
        made = compare.made_from(folder, suite, file)
        verdict = judge(compare.compared(folder, suite, [file]), known)
        found.append(Entry(suite, version, file, made["day"], made["commit"],
                           dict(verdict.counts.get(suite, {})),
                           compare.times(folder, suite, [file]),
                           [(result.name, result.error[:100]) for result in verdict.failed]))
    return found


def read(path: Path = RECORD) -> dict[tuple[str, str], Entry]:
    """The entries, by suite and file; none where there is no record."""
    lines = path.read_text().splitlines() if path.exists() else []
    entries = [Entry(**{**words, "times": compare.Times(**words["times"])})
               for words in map(json.loads, lines)]
    return {(entry.suite, entry.file): entry for entry in entries}


def update(new: Iterable[Entry], path: Path = RECORD) -> dict[tuple[str, str], Entry]:
    """Puts entries into the record, and takes out of it those of other versions of their suites."""
    new = list(new)
    versions = {entry.suite: entry.version for entry in new}
    entries = {place: entry for place, entry in read(path).items()
               if versions.get(entry.suite, entry.version) == entry.version}
    entries |= {(entry.suite, entry.file): entry for entry in new}
    path.write_text("".join(f"{json.dumps(dataclasses.asdict(entries[place]))}\n"
                            for place in sorted(entries)))
    return entries


def verdict_of(entries: Sequence[Entry]) -> Verdict:
    """What entries say together."""
    counts: dict[str, Counter[str]] = {}
    for entry in entries:
        counts.setdefault(entry.suite, Counter()).update(entry.counts)
    failed = [Result(entry.suite, name, "failed", error)
              for entry in entries for name, error in entry.failed]
    return Verdict(counts, failed, [], {})


def total_times(entries: Iterable[Entry]) -> compare.Times:
    times = [entry.times for entry in entries]
    return compare.Times(sum(one.tests for one in times), sum(one.ours for one in times),
                         sum(one.theirs for one in times))


def span(entries: Sequence[Entry]) -> str:
    """The days and commits of the first and the last of them."""
    ends = sorted({(entry.day, entry.commit) for entry in entries})
    return " to ".join(f"{day}, {commit}" for day, commit in dict.fromkeys((ends[0], ends[-1])))
