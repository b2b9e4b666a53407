"""Runs JAX's own tests, and its docstrings' examples, on maxjax.

    python -m compat.jax_tests CHECKOUT [FILE ...]     JAX's tests
    python -m compat.jax_tests --docstrings [NAME ...] examples in docstrings of public names
    python -m compat.jax_tests --report                what is kept, without a run

CHECKOUT is a copy of JAX's repository, or a folder of its test files; FILE a name without .py.
Tests that do not pass on the installed JAX do not count: the checkout may be of another state
(--brief asks JAX only for those that do not pass here). The
run fails where a test fails that compat/jax_tests.toml does not list, and where one passes that it
lists. The outcome is kept in .compat/jax_tests and written into
the matrix, but for compiled runs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.metadata
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from compat import ROOT, processes
from compat.jax_tests import docstrings, records, section
from compat.jax_tests.records import RESULTS


def test_files(checkout: Path, names: Sequence[str]) -> list[Path]:
    """The files of those names, all where none is given.

    Raises:
      ValueError: there is no such file, or no test at all.
    """
    folder = checkout / "tests" if (checkout / "tests").is_dir() else checkout
    found = {path.stem: path.resolve() for path in sorted(folder.glob("*_test.py"))}
    if not found:
        raise ValueError(f"no tests in {folder}: expected a checkout of JAX, or its folder tests/")
    for name in names:
        if name not in found:
            raise ValueError(f"no {name}.py in {folder}")
    return [found[name] for name in names or found]


def devices_of(path: Path) -> int:
    """How many devices a file asks for."""
    asked = re.search(r"^jtu\.request_cpu_devices\((\d+)\)", path.read_text(), re.MULTILINE)
    return int(asked.group(1)) if asked else 1


def environment_of(path: Path, options: argparse.Namespace) -> dict[str, str]:
    devices = devices_of(path)
    return {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu",
            "JAX_NUM_CPU_DEVICES": str(devices),
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
            "JAX_NUM_GENERATED_CASES": str(options.cases), "MAXJAX_COMPILE": options.compile,
            "RECORDER_SECONDS": str(options.test_seconds)}


def run_file(path: Path, options: argparse.Namespace) -> None:
    """Runs a file in a process of its own, and on JAX what has not been run on it."""
    ours = options.results / f"{path.stem}.jsonl"
    if options.brief:
        _run(path, ours, ["-p", "compat.jax_tests.plugin"], options, keep=options.keep)
    asked = False
    if options.on_jax is not None:
        results = options.on_jax / f"{path.stem}.jsonl"
        is_old = results.exists() and results.stat().st_mtime < path.stat().st_mtime
        known = set() if is_old or not results.exists() else {
            result.name for result in records.results_of(results)}
        failed = [name for name in _failed(ours) if name not in known] if options.brief else []
        if failed or not options.brief:
            # A file that fails as it is imported has one test, without a name.
            asked = _run(path, results, [], options, keep=not is_old,
                         names=failed if all(failed) else ())
    if not options.brief:
        _run(path, ours, ["-p", "compat.jax_tests.plugin"], options, keep=options.keep)
    if asked:
        _note_absent(results, _failed(ours))


def _failed(results: Path) -> list[str]:
    return [result.name for result in records.results_of(results) if result.outcome == "failed"]


def _run(path: Path, results: Path, plugins: Sequence[str], options: argparse.Namespace,
         keep: bool, names: Sequence[str] = ()) -> bool:
    """Runs a file, or only its tests of those names; returns whether it ended in time."""
    if not keep:
        results.unlink(missing_ok=True)
        results.with_suffix(".log").unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *plugins, "-p", "compat.jax_tests.missing",
               "-p", "compat.recorder", "-p", "no:cacheprovider", "--noconftest",
               "--rootdir", str(path.parent), "-c", os.devnull, "-q", "--tb=no", "-rN",
               str(path), *options.pytest]
    environment = environment_of(path, options)
    if names:
        only = results.with_suffix(".only")
        only.write_text("\n".join(names))
        environment["RECORDER_ONLY"] = str(only)
    ended = processes.run(command, path.parent, environment, results, options.file_seconds)
    if not ended:
        print(f"{path.stem}: stopped after {options.file_seconds:g} s; "
              "--keep goes on with what is left", flush=True)
    return ended


def _note_absent(results: Path, names: Sequence[str]) -> None:
    """Notes the tests that the file does not have on JAX: it may generate others there."""
    known = {result.name for result in records.results_of(results)}
    with open(results, "a") as stream:
        for name in names:
            if name not in known:
                stream.write(json.dumps({"id": name, "outcome": "failed", "type": "LookupError",
                                         "message": "JAX has no such test"}) + "\n")


def folder_on_jax(folder: Path) -> Path:
    """Where the installed JAX's results are kept, below a folder of results."""
    return folder / f"jax-{importlib.metadata.version('jax')}"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("python -m compat.jax_tests", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("names", nargs="*", metavar="CHECKOUT [FILE ...]")
    made.add_argument("--docstrings", action="store_true", help="examples instead of tests")
    made.add_argument("--report", action="store_true", help="judge what is kept, run nothing")
    made.add_argument("--results", type=Path, metavar="FOLDER",
                      help="where results are kept; .compat/jax_tests/interpreted or compiled")
    made.add_argument("--all", action="store_true",
                      help="count also tests that do not pass on JAX; do not run them on it")
    made.add_argument("--known", type=Path, default=records.KNOWN, help="the known failures")
    made.add_argument("--brief", action="store_true",
                      help="run on JAX only what does not pass here; what passes here counts")
    made.add_argument("--keep", action="store_true", help="run only what has no result yet")
    made.add_argument("--cases", type=int, default=10, help="generated cases of each test")
    made.add_argument("--compile", choices=["never", "always"], default="never")
    made.add_argument("--test-seconds", type=float, default=60, help="limit of a test")
    made.add_argument("--file-seconds", type=float, default=1800, help="limit of a file")
    made.add_argument("-j", dest="processes", type=int, default=2, help="files at a time")
    made.add_argument("--failures", type=int, default=8, help="causes shown of each file")
    made.add_argument("--no-matrix", action="store_true", help="leave the matrix as it is")
    made.add_argument("--pytest", nargs=argparse.REMAINDER, default=[],
                      help="options for pytest; -k leaves the matrix as it is")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    is_compiled = options.compile == "always"
    if options.results is None:
        options.results = RESULTS / ("compiled" if is_compiled else "interpreted")
        options.on_jax = folder_on_jax(RESULTS)
    else:
        options.on_jax = folder_on_jax(options.results)
    if options.all:
        options.on_jax = None
    for folder in filter(None, (options.results, options.on_jax)):
        folder.mkdir(parents=True, exist_ok=True)
    files: list[str] = []
    try:
        known = records.read_known(options.known)
        if options.docstrings:
            docstrings.run(options.names, options)
            files = [docstrings.FILE]
        elif not options.report:
            if not options.names:
                raise ValueError("which checkout of JAX? (--help)")
            paths = test_files(Path(options.names[0]), options.names[1:])
            files = [path.stem for path in paths]
            with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
                list(pool.map(lambda path: run_file(path, options), paths))
    except ValueError as error:
        parser().error(str(error))
    kept = records.read_results(options.results)
    if options.on_jax is not None:
        kept = records.counting(kept, records.read_results(options.on_jax))
    ran = [result for result in kept if options.report or result.file in files]
    is_whole = not options.pytest and not (options.docstrings and options.names)
    verdict = records.judge(ran, known, {r.file for r in ran} if is_whole else ())
    records.print_verdict(verdict, options.failures)
    if is_whole and not is_compiled and not options.no_matrix:
        section.write(records.judge(kept, known))
    return 0 if verdict.is_good else 1
