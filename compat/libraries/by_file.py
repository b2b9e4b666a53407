"""A suite that is long on JAX: file by file, and on JAX only what does not pass on maxjax.

A file's results are a file, and another beside it says that the run of it came to its end, so that
a run goes on where the one before was stopped.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compat import processes
from compat.jax_tests import records
from compat.jax_tests.records import Result
from compat.libraries import compare
from compat.libraries.suites import Suite

Command = Callable[[Suite, str, Sequence[str], Path, argparse.Namespace], list[str]]


def results_path(folder: Path, library: str, suite: str, file: str) -> Path:
    return folder / "by_file" / suite / library / f"{file.replace('/', '__')}.jsonl"


def _ended(results: Path) -> Path:
    return results.with_suffix(".ended")


def run(suite: Suite, source: Path, files: Sequence[str], environment: Mapping[str, str],
        command: Command, options: argparse.Namespace) -> bool:
    """Runs the files that did not come to their end yet.

    Returns:
      Whether all did, within the suite's seconds.
    """
    limit = time.monotonic() + options.suite_seconds
    folder = options.results
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / f"{suite.name}.wanted"
    for file in files:
        for library in ("maxjax", "jax"):
            results = results_path(folder, library, suite.name, file)
            results.parent.mkdir(parents=True, exist_ok=True)
            if not options.keep:
                for path in (results, _ended(results), results.with_suffix(".log")):
                    path.unlink(missing_ok=True)
            if _ended(results).exists():
                continue
            left = limit - time.monotonic()
            if left <= 0:
                return False
            settings = dict(environment)
            if library == "jax":
                names = [result.name for result in records.results_of(
                    results_path(folder, "maxjax", suite.name, file))
                    if result.outcome != "passed"]
                if not names:
                    results.touch()
                    _ended(results).touch()
                    continue
                wanted.write_text("\n".join(names))
                settings["RECORDER_ONLY"] = os.fspath(wanted)
            if not processes.run(command(suite, library, [file], source, options), source,
                                 settings, results, left):
                return False
            _ended(results).touch()
    return True


def ran(folder: Path, suite: str, files: Sequence[str]) -> list[str]:
    """The files that were run to their end, on both."""
    return [file for file in files
            if all(_ended(results_path(folder, library, suite, file)).exists()
                   for library in ("maxjax", "jax"))]


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
                result = dataclasses.replace(result, outcome=compare.ON_JAX_TOO)
            elif result.outcome == "skipped" and on_jax == "passed":
                result = dataclasses.replace(result, outcome="failed",
                                             error="skipped, and passes on JAX")
            found.append(result)
    return found
