"""What the tests gave, kept in ``.compat/jax_tests``, and what is known of their failures."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from compat import ROOT

RESULTS = ROOT / ".compat" / "jax_tests"
KNOWN = ROOT / "compat" / "jax_tests.toml"
KINDS = ("internal", "difference")
STATES = ("passed", "failed", "difference", "internal", "skipped")


@dataclasses.dataclass(frozen=True)
class Result:
    """How one test ended: "passed", "failed" or "skipped".

    Attributes:
      name: ``Class::test``, or the public name of a docstring.
      error: the error's type and message, in one line; of a skipped test, why.
      place: where it was raised.
      private: the private objects of JAX's that the test asked for.
    """

    file: str
    name: str
    outcome: str
    error: str = ""
    place: str = ""
    private: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Known:
    """Failures that are expected, and why.

    Attributes:
      kind: "internal", where the test looks at JAX's inside, or "difference".
      file: the file's name without ``.py``; ``*`` stands for anything.
      tests: names, where ``*`` stands for anything; without any all of the file.
      error: found in the failure's error; without any all failures.
      place: found in the place where it was raised.
    """

    kind: str
    reason: str
    file: str
    tests: tuple[str, ...] = ()
    error: str = ""
    place: str = ""

    def names(self, result: Result) -> bool:
        return (fnmatch.fnmatchcase(result.file, self.file)
                and (not self.tests or any(fnmatch.fnmatchcase(result.name, pattern)
                                           for pattern in self.tests)))

    def explains(self, result: Result) -> bool:
        return (result.outcome == "failed" and self.names(result)
                and re.search(self.error, result.error, re.DOTALL) is not None
                and re.search(self.place, result.place) is not None)


def parse(rows: Iterable[dict[str, Any]]) -> list[Known]:
    """The rows of the list.

    Raises:
      ValueError: a row is of no known kind, has no reason, or would excuse any failure.
    """
    found = [Known(**{**row, "tests": tuple(row.get("tests", ()))}) for row in rows]
    for known in found:
        if known.kind not in KINDS or not known.reason:
            raise ValueError(f"a known failure has a reason and a kind of {KINDS}: {known}")
        if not (known.tests or known.error or known.place):
            raise ValueError(f"a known failure names tests, an error or a place: {known}")
        re.compile(known.error), re.compile(known.place)
    return found


def read_known(path: Path = KNOWN) -> list[Known]:
    return parse(tomllib.loads(path.read_text()).get("known", []))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def read_results(folder: Path = RESULTS) -> list[Result]:
    """What is kept of all files."""
    return [result for path in sorted(folder.glob("*.jsonl")) for result in results_of(path)]


def results_of(path: Path) -> list[Result]:
    """What is kept of one file; a test that began and did not end ended its process."""
    found: dict[str, Result] = {}
    for line in lines_of(path):
        if line["outcome"] == "began":
            found[line["id"]] = Result(path.stem, line["id"], "failed", "the process died")
            continue
        words = (line[key] for key in ("type", "message") if key in line)
        error = " ".join(": ".join(words).split())
        earlier = found.get(line["id"])
        if earlier is None or earlier.error == "the process died" or line["outcome"] == "failed":
            found[line["id"]] = Result(
                path.stem, line["id"], line["outcome"], error,
                line.get("place", ""), tuple(line.get("private", ())))
    return list(found.values())


def counting(results: Iterable[Result], on_jax: Iterable[Result]) -> list[Result]:
    """The results that count: not of tests that JAX was asked for and did not pass.

    Tests that are skipped here stay too: they are told, and are no failures.
    """
    failing = {(result.file, result.name) for result in on_jax if result.outcome != "passed"}
    return [result for result in results
            if result.outcome == "skipped" or (result.file, result.name) not in failing]


@dataclasses.dataclass
class Verdict:
    """The results judged by what is known.

    Attributes:
      counts: by file, how many tests are in each of STATES.
      failed: unknown failures.
      gone: known failures that have come to pass, a line each.
      explained: by row of the list, how many failures it explains.
    """

    counts: dict[str, Counter[str]]
    failed: list[Result]
    gone: list[str]
    explained: dict[Known, int]

    @property
    def is_good(self) -> bool:
        return not self.failed and not self.gone


def judge(results: Sequence[Result], known: Sequence[Known],
          whole: Iterable[str] = ()) -> Verdict:
    """Sorts failures into known and unknown ones.

    Args:
      whole: the files that were run whole; a row that explains nothing in its own is out of date.
    """
    counts: dict[str, Counter[str]] = {}
    failed: list[Result] = []
    explained = dict.fromkeys(known, 0)
    for result in results:
        state = result.outcome
        if state == "failed":
            row = next((row for row in known if row.explains(result)), None)
            if row is None:
                failed.append(result)
            else:
                state = row.kind
                explained[row] += 1
        counts.setdefault(result.file, Counter())[state] += 1
    return Verdict(counts, failed, _gone(results, known, explained, set(whole)), explained)


def _gone(results: Sequence[Result], known: Sequence[Known], explained: dict[Known, int],
          whole: set[str]) -> list[str]:
    found = []
    by_file: dict[str, list[Result]] = {}
    for result in results:
        by_file.setdefault(result.file, []).append(result)
    for row in known:
        mine = by_file.get(row.file, [])
        for pattern in row.tests:
            judged = [result for result in mine if fnmatch.fnmatchcase(result.name, pattern)
                      and result.outcome != "skipped"]
            if judged and all(result.outcome == "passed" for result in judged):
                found.append(f"{row.file}: {pattern} passes: remove it ({row.reason})")
        if not row.tests and row.file in whole and not explained[row]:
            cause = row.error or row.place
            found.append(f"{row.file}: no test fails with {cause!r} any more: remove it")
    return found


def print_verdict(verdict: Verdict, failures: int,
                  states: Sequence[str] = STATES) -> None:
    """A line for each file, unknown failures by their error, and known failures that pass."""
    for file, count in verdict.counts.items():
        causes: dict[str, list[Result]] = {}
        for result in verdict.failed:
            if result.file == file:
                cause = re.sub(r"\d+", "N", result.error)[:110]
                causes.setdefault(cause, []).append(result)
        print(f"{file:36}" + "  ".join(f"{state} {count[state]:4}" for state in states))
        for cause, group in sorted(causes.items(), key=lambda item: -len(item[1]))[:failures]:
            print(f"  {len(group):4} {cause}\n       {group[0].name}  [{group[0].place}]")
    for line in verdict.gone:
        print(line)
    total: dict[str, int] = {state: sum(count[state] for count in verdict.counts.values())
                             for state in states}
    print("all: " + ", ".join(f"{count} {state}" for state, count in total.items()))
