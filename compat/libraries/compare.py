"""A suite's tests on maxjax beside the same tests on JAX: what is kept of them, and what it says.

A file's results are a file, and another beside it says that the run of it came to its end, so that
a run goes on where the one before was stopped.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from compat import ROOT
from compat.jax_tests import records
from compat.jax_tests.records import Result

RESULTS = ROOT / ".compat" / "libraries"
KNOWN = ROOT / "compat" / "libraries.toml"
ON_JAX_TOO = "failed on JAX too"
STATES = (*records.STATES, ON_JAX_TOO)
LIBRARIES = ("maxjax", "jax")
# JAX compiles for minutes what takes maxjax seconds: of the tests that pass here it runs so many,
# of every so many files, and of those that it is started for anyway.
SAMPLED_FILES, SAMPLED_TESTS = 6, 8
# A file's tests that are skipped for one reason are mostly skipped by one line: so JAX is asked of
# no more.
ASKED_OF_ONE_REASON = 3


def results_path(folder: Path, library: str, suite: str, file: str) -> Path:
    return folder / suite / library / f"{file.replace('/', '__')}.jsonl"


def ended_path(results: Path) -> Path:
    return results.with_suffix(".ended")


def is_ended(folder: Path, library: str, suite: str, file: str) -> bool:
    return ended_path(results_path(folder, library, suite, file)).exists()


def end(results: Path, made: Mapping[str, str]) -> None:
    """Says that a file's run came to its end, and what it was made from."""
    ended_path(results).write_text(json.dumps(made))


def made_from(folder: Path, suite: str, file: str) -> dict[str, str]:
    """What maxjax's run of a file was made from."""
    made: dict[str, str] = json.loads(
        ended_path(results_path(folder, "maxjax", suite, file)).read_text())
    return made


def ran(folder: Path, suite: str, files: Sequence[str]) -> list[str]:
    """The files that were run to their end, on both."""
    return [file for file in files
            if all(is_ended(folder, library, suite, file) for library in LIBRARIES)]


def wanted_of_jax(ours: Path, is_sampled: bool) -> list[str]:
    """The tests that JAX is to run: what does not pass on maxjax, and a sample of what does."""
    found = []
    asked: Counter[str] = Counter()
    passed = []
    for result in records.results_of(ours):
        if result.outcome == "passed":
            passed.append(result.name)
            continue
        if result.outcome == "skipped":
            asked[result.error] += 1
            if asked[result.error] > ASKED_OF_ONE_REASON:
                continue
        found.append(result.name)
    if passed and (is_sampled or found):
        found += passed[::-(-len(passed) // SAMPLED_TESTS)]
    return found


def compared(folder: Path, suite: str, files: Sequence[str]) -> list[Result]:
    """maxjax's results of those files; what neither passes has failed on JAX too.

    A test that does not pass here and that JAX does not say anything of has failed.
    """
    found = []
    for file in files:
        theirs = {result.name: result.outcome for result in records.results_of(
            results_path(folder, "jax", suite, file))}
        for result in records.results_of(results_path(folder, "maxjax", suite, file)):
            result = dataclasses.replace(result, file=suite)
            on_jax = theirs.get(result.name, "absent")
            if result.outcome == "failed" and on_jax == "failed":
                result = dataclasses.replace(result, outcome=ON_JAX_TOO)
            elif result.outcome == "skipped" and on_jax == "passed":
                result = dataclasses.replace(result, outcome="failed",
                                             error="skipped, and passes on JAX")
            found.append(result)
    return found


@dataclasses.dataclass(frozen=True)
class Times:
    """What the tests took that were run on both and passed.

    Attributes:
      tests: how many.
      ours, theirs: seconds, on maxjax and on JAX.
    """

    tests: int
    ours: float
    theirs: float


def times(folder: Path, suite: str, files: Sequence[str]) -> Times:
    tests, seconds = 0, [0.0, 0.0]
    for file in files:
        ours, theirs = ({line["id"]: line["seconds"] for line in records.lines_of(
            results_path(folder, library, suite, file)) if line["outcome"] == "passed"}
            for library in LIBRARIES)
        both = ours.keys() & theirs.keys()
        tests += len(both)
        for number, of in enumerate((ours, theirs)):
            seconds[number] += sum(of[name] for name in both)
    return Times(tests, *seconds)
