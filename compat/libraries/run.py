"""Runs libraries' own tests, unchanged, on JAX and on maxjax, and compares them test by test.

    python -m compat.libraries [SUITE ...]     all suites where none is named
    python -m compat.libraries --report        what is kept, without a run
    python -m compat.libraries --by-file SUITE ...
                                               file by file, on JAX only what does not pass here;
                                               --file 'test_a*' names some of its files

Tests come with the source distributions of the installed versions. The run fails where a test
fails that passes on JAX and that compat/libraries.toml does not list, and where one passes that it
lists. Results are kept in .compat/libraries and written into docs/libraries.md. Suites whose source
distributions have no tests run from a folder that --source names.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from compat import processes
from compat.jax_tests import records
from compat.libraries import by_file, compare, section
from compat.libraries.suites import SUITES, WITHOUT_TESTS, Suite, files_of, source_of

LIBRARIES = ("jax", "maxjax")


def command_of(suite: Suite, library: str, files: Sequence[str], source: Path,
               options: argparse.Namespace) -> list[str]:
    runner = ["-m", "maxjax", "-m", "pytest"] if library == "maxjax" else ["-m", "pytest"]
    # Of a library's own options those for coverage and parallel runs are left out.
    return [sys.executable, *runner, "-p", "compat.recorder", "-p", "no:cacheprovider",
            "-o", "addopts=", "--continue-on-collection-errors",
            "--rootdir", str(source), "-q", "--tb=short", *suite.options, *files,
            *options.pytest]


def environment_of(suite: Suite, source: Path, options: argparse.Namespace) -> dict[str, str]:
    # Tests import what is beside them before anything of the project's.
    return {**os.environ, "JAX_PLATFORMS": "cpu", "MAXJAX_COMPILE": options.compile,
            "PYTHONPATH": os.pathsep.join([str(source), str(compare.ROOT)]),
            "RECORDER_SECONDS": str(options.test_seconds), "RECORDER_NAMES_FILES": "1",
            **suite.environment}


def run_suite(suite: Suite, library: str, options: argparse.Namespace) -> None:
    """Runs what has no result yet of a suite on one of the libraries."""
    source = options.sources.get(suite.name) or source_of(suite)
    results = compare.results_path(options.results, library, suite.name)
    results.parent.mkdir(parents=True, exist_ok=True)
    if not options.keep and (library == "maxjax" or not options.keep_jax):
        for path in (results, results.with_suffix(".log")):
            path.unlink(missing_ok=True)
    if results.exists() and library == "jax" and options.keep_jax:
        return
    environment = environment_of(suite, source, options)
    files = files_of(suite, source)
    limit = time.monotonic() + options.suite_seconds
    for group in [[file] for file in files] if suite.by_file else [files]:
        if not processes.run(command_of(suite, library, group, source, options), source,
                             environment, results, limit - time.monotonic()):
            print(f"{suite.name} on {library}: stopped after {options.suite_seconds:g} s; "
                  "--keep goes on with what is left", flush=True)
            return


def run_by_file(suite: Suite, options: argparse.Namespace) -> None:
    """Runs a suite file by file; on JAX only what does not pass on maxjax.

    Raises:
      ValueError: no file has the name that ``--file`` asks for.
    """
    source = options.sources.get(suite.name) or source_of(suite)
    files = [file for file in files_of(suite, source)
             if any(fnmatch(file, pattern) for pattern in options.file)]
    if not files:
        raise ValueError(f"no file of {suite.name} is named {' or '.join(options.file)}")
    if not by_file.run(suite, source, files,
                       environment_of(suite, source, options), command_of, options):
        print(f"{suite.name}: stopped after {options.suite_seconds:g} s; "
              "--keep goes on with what is left", flush=True)


def sources(words: Sequence[str]) -> dict[str, Path]:
    """``NAME=FOLDER``, as folders by the suites' names.

    Raises:
      ValueError: no such suite or folder.
    """
    found = {}
    for word in words:
        name, _, folder = word.partition("=")
        if name not in SUITES or not Path(folder).is_dir():
            raise ValueError(f"--source NAME=FOLDER names a suite and its sources, not {word!r}")
        found[name] = Path(folder).resolve()
    return found


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("python -m compat.libraries", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    made.add_argument("--report", action="store_true", help="judge what is kept, run nothing")
    made.add_argument("--by-file", action="store_true",
                      help="run a suite file by file, and on JAX only what does not pass on maxjax")
    made.add_argument("--file", nargs="+", metavar="PATTERN", default=["*"],
                      help="of a suite that is run by file: only files of these names")
    made.add_argument("--results", type=Path, metavar="FOLDER", default=compare.RESULTS,
                      help="where results are kept; .compat/libraries")
    made.add_argument("--known", type=Path, default=compare.KNOWN, help="the known failures")
    made.add_argument("--keep", action="store_true", help="run only what has no result yet")
    made.add_argument("--keep-jax", action="store_true", help="take JAX's results as they are kept")
    made.add_argument("--source", action="append", default=[], metavar="NAME=FOLDER",
                      help="a suite's sources, in place of its source distribution")
    made.add_argument("--compile", choices=["never", "auto", "always"], default="never")
    made.add_argument("--test-seconds", type=float, default=120, help="limit of a test")
    made.add_argument("--suite-seconds", type=float, default=3600,
                      help="limit of a suite on each library")
    made.add_argument("--failures", type=int, default=12, help="causes shown of each suite")
    made.add_argument("--no-docs", action="store_true", help="leave docs/libraries.md as it is")
    made.add_argument("--pytest", nargs=argparse.REMAINDER, default=[],
                      help="options for pytest; they leave docs/libraries.md as it is")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        options.sources = sources(options.source)
        known = records.read_known(options.known)
        if unknown := set(options.suites) - set(SUITES):
            raise ValueError(f"no suites {sorted(unknown)}; there are {', '.join(SUITES)}")
        names = options.suites or [name for name in SUITES if name not in WITHOUT_TESTS
                                   or name in options.sources]
        if options.by_file and not options.suites:
            raise ValueError("--by-file runs suites that are named")
        for name in [] if options.report else names:
            if options.by_file:
                run_by_file(SUITES[name], options)
            else:
                for library in LIBRARIES:
                    run_suite(SUITES[name], library, options)
            records.print_verdict(judge(options, known, [name]), options.failures, compare.STATES)
    except (ValueError, RuntimeError) as error:
        parser().error(str(error))
    is_whole = not options.pytest
    verdict = judge(options, known, names, is_whole)
    if options.report:
        records.print_verdict(verdict, options.failures, compare.STATES)
    if is_whole and not options.no_docs:
        if options.by_file:
            section.write_others(known, verdict,
                                 {name: ran_of(options, name) for name in names})
        else:
            section.write(options.results, judge(options, known, list(SUITES), True))
    return 0 if verdict.is_good else 1


def ran_of(options: argparse.Namespace, name: str) -> tuple[list[str], list[str]]:
    """Of a suite that is run file by file: the files that were run, and all of them."""
    source = options.sources.get(name) or source_of(SUITES[name])
    files = files_of(SUITES[name], source)
    return by_file.ran(options.results, name, files), files


def judge(options: argparse.Namespace, known: Sequence[records.Known], names: Sequence[str],
          is_whole: bool = False) -> records.Verdict:
    if options.by_file:
        results = [result for name in names for result in by_file.compared(
            options.results, name, ran_of(options, name)[0])]
    else:
        results = [result for name in names for result in compare.compared(options.results, name)]
    ran = {result.file for result in results}
    return records.judge(results, known, ran if is_whole else ())
