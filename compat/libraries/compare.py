"""A suite's tests on maxjax beside the same tests on JAX."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from compat import ROOT
from compat.jax_tests import records
from compat.jax_tests.records import Result

RESULTS = ROOT / ".compat" / "libraries"
KNOWN = ROOT / "compat" / "libraries.toml"
ON_JAX_TOO = "failed on JAX too"
STATES = (*records.STATES, ON_JAX_TOO)


def results_path(folder: Path, library: str, suite: str) -> Path:
    return folder / library / f"{suite}.jsonl"


def compared(folder: Path, suite: str) -> list[Result]:
    """maxjax's results, where what does not pass on JAX is no failure.

    A test that JAX passes and that maxjax skips or does not reach has failed. Of a suite that was
    not run on both there is nothing to say.
    """
    theirs = {result.name: result for result in records.results_of(
        results_path(folder, "jax", suite))}
    ours = {result.name: result for result in records.results_of(
        results_path(folder, "maxjax", suite))}
    if not theirs or not ours:
        return []
    found = []
    for name, result in ours.items():
        on_jax = theirs[name].outcome if name in theirs else "absent"
        if result.outcome == "failed" and on_jax == "failed":
            result = dataclasses.replace(result, outcome=ON_JAX_TOO)
        elif result.outcome == "skipped" and on_jax == "passed":
            result = dataclasses.replace(result, outcome="failed",
                                         error="skipped, and passes on JAX")
        found.append(result)
    return found + [Result(suite, name, "failed", "not run, and passes on JAX")
                    for name, result in theirs.items()
                    if result.outcome == "passed" and name not in ours]


def seconds(folder: Path, suite: str) -> tuple[float, float]:
    """How long the tests took that pass on both: on maxjax, on JAX."""
    times = [{line["id"]: line["seconds"] for line in records.lines_of(
        results_path(folder, library, suite)) if line["outcome"] == "passed"}
        for library in ("maxjax", "jax")]
    both = times[0].keys() & times[1].keys()
    return sum(times[0][name] for name in both), sum(times[1][name] for name in both)
