"""Runs libraries' own tests, unchanged, on maxjax and on JAX, and compares them test by test.

    python -m compat.libraries [SUITE ...]     all suites where none is named
    python -m compat.libraries SUITE --file 'test_a*'
                                               some of its files
    python -m compat.libraries --keep          goes on with what has no result yet
    python -m compat.libraries --report        what is kept, without a run

Tests come with the source distributions of the installed versions; where those have none, a suite
runs from a folder that --source names, or from a checkout below the folder that --from names. Each
file runs whole on maxjax; JAX, which compiles what it runs, runs what does not pass on maxjax, and
of what does a sample, for the time. The run fails where a test fails that passes on JAX and that
compat/libraries.toml does not list, and where one passes that it lists. Results are kept in
.compat/libraries, each file's in a line of compat/libraries_record.jsonl, and written into
docs/libraries.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from compat import processes, state
from compat.jax_tests import records
from compat.libraries import compare, record, section
from compat.libraries.suites import (
    SUITES,
    WITHOUT_TESTS,
    Suite,
    files_of,
    is_checkout,
    revision_of,
    source_of,
)


def command_of(suite: Suite, library: str, file: str, source: Path,
               options: argparse.Namespace) -> list[str]:
    runner = ["-m", "maxjax", "-m", "pytest"] if library == "maxjax" else ["-m", "pytest"]
    # Of a library's own options those for coverage and parallel runs are left out.
    return [sys.executable, *runner, "-p", "compat.recorder", "-p", "no:cacheprovider",
            "-o", "addopts=", "--continue-on-collection-errors",
            "--rootdir", str(source), "-q", "--tb=short", *suite.options, file,
            *options.pytest]


def environment_of(suite: Suite, source: Path, options: argparse.Namespace) -> dict[str, str]:
    # Tests import what is beside them before anything of the project's.
    return {**os.environ, "JAX_PLATFORMS": "cpu", "MAXJAX_COMPILE": options.compile,
            "PYTHONPATH": os.pathsep.join([str(source), str(compare.ROOT)]),
            "RECORDER_SECONDS": str(options.test_seconds), "RECORDER_NAMES_FILES": "1",
            **suite.environment}


def run_file(suite: Suite, source: Path, file: str, is_sampled: bool, limit: float,
             options: argparse.Namespace) -> bool:
    """Runs what has no result yet of a file.

    Returns:
      Whether it came to its end before the limit, a time of the monotonic clock.
    """
    for library in compare.LIBRARIES:
        results = compare.results_path(options.results, library, suite.name, file)
        if compare.ended_path(results).exists():
            continue
        left = limit - time.monotonic()
        if left <= 0:
            return False
        environment = environment_of(suite, source, options)
        if library == "jax":
            names = compare.wanted_of_jax(compare.results_path(
                options.results, "maxjax", suite.name, file), is_sampled)
            if not names:
                results.touch()
                compare.end(results, state.provenance())
                continue
            wanted = results.with_suffix(".wanted")
            wanted.write_text("\n".join(names))
            environment["RECORDER_ONLY"] = os.fspath(wanted)
        if not processes.run(command_of(suite, library, file, source, options), source,
                             environment, results, left):
            return False
        compare.end(results, state.provenance())
    return True


def run_suite(suite: Suite, options: argparse.Namespace) -> None:
    """Runs a suite's files, some at once.

    Raises:
      ValueError: no file has the name that ``--file`` asks for.
    """
    source = options.sources.get(suite.name) or source_of(suite)
    _ = suite.version   # An error at once where the library is not installed.
    files = files_of(suite, source)
    chosen = [file for file in files if any(fnmatch(file, pattern) for pattern in options.file)]
    if not chosen:
        raise ValueError(f"no file of {suite.name} is named {' or '.join(options.file)}")
    if options.keep:
        kept = record.read(options.record)
        chosen = [file for file in chosen if (suite.name, file) not in kept
                  or kept[suite.name, file].version != version_of(suite, source)]
    for file in chosen:
        for library in compare.LIBRARIES:
            results = compare.results_path(options.results, library, suite.name, file)
            results.parent.mkdir(parents=True, exist_ok=True)
            if not options.keep:
                for suffix in (".jsonl", ".ended", ".log", ".wanted"):
                    results.with_suffix(suffix).unlink(missing_ok=True)
    sampled = set(files[::options.sampled_files])
    limit = time.monotonic() + options.suite_seconds
    with ThreadPoolExecutor(options.jobs) as pool:
        ends = list(pool.map(lambda file: run_file(suite, source, file, file in sampled, limit,
                                                   options), chosen))
    if not all(ends):
        print(f"{suite.name}: stopped after {options.suite_seconds:g} s; "
              "--keep goes on with what is left", flush=True)


def version_of(suite: Suite, source: Path) -> str:
    """The release, and the commit of a checkout."""
    return " at ".join(filter(None, (suite.version, revision_of(source))))


def sources(words: Sequence[str], among: Sequence[Path] = ()) -> dict[str, Path]:
    """Folders by the suites' names.

    Args:
      words: ``NAME=FOLDER`` each; they go before what is found.
      among: folders whose folders are looked at for checkouts.

    Raises:
      ValueError: no such suite or folder, or no checkout.
    """
    found = {}
    for above in among:
        here = {name: folder.resolve() for folder in sorted(above.glob("*/"))
                for name, suite in SUITES.items() if is_checkout(suite, folder)}
        if not here:
            raise ValueError(f"no folder below {above} has the name and the tests of a suite")
        found |= here
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
    made.add_argument("--file", nargs="+", metavar="PATTERN", default=["*"],
                      help="only files of these names")
    made.add_argument("--results", type=Path, metavar="FOLDER", default=compare.RESULTS,
                      help="where results are kept; .compat/libraries")
    made.add_argument("--known", type=Path, default=compare.KNOWN, help="the known failures")
    made.add_argument("--record", type=Path, default=record.RECORD, help="what each file gave")
    made.add_argument("--page", type=Path, default=section.PAGE, help="the page with the table")
    made.add_argument("--keep", action="store_true",
                      help="run only what has no result yet, here or in the record")
    made.add_argument("--source", action="append", default=[], metavar="NAME=FOLDER",
                      help="a suite's sources, in place of its source distribution")
    made.add_argument("--from", dest="among", action="append", type=Path, default=[],
                      metavar="FOLDER", help="a folder with checkouts, each of which is the "
                      "source of the suite, or suites, of its name")
    made.add_argument("--jobs", type=int, default=os.cpu_count(), help="files at once; all cores")
    made.add_argument("--compile", choices=["never", "auto", "always"], default="auto",
                      help="maxjax's mode; what users get by default")
    made.add_argument("--test-seconds", type=float, default=120, help="limit of a test")
    made.add_argument("--suite-seconds", type=float, default=7200, help="limit of a suite")
    made.add_argument("--sampled-files", type=int, metavar="N", default=compare.SAMPLED_FILES,
                      help="JAX runs a sample of what passes on maxjax of every N-th file; 6")
    made.add_argument("--failures", type=int, default=12, help="causes shown of each suite")
    made.add_argument("--no-docs", action="store_true", help="leave docs/libraries.md as it is")
    made.add_argument("--pytest", nargs=argparse.REMAINDER, default=[],
                      help="options for pytest; they leave docs/libraries.md as it is")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        options.sources = sources(options.source, options.among)
        known = records.read_known(options.known)
        if unknown := set(options.suites) - set(SUITES):
            raise ValueError(f"no suites {sorted(unknown)}; there are {', '.join(SUITES)}")
        names = options.suites or [name for name in SUITES if name not in WITHOUT_TESTS
                                   or name in options.sources]
        for number, name in enumerate([] if options.report else names):
            run_suite(SUITES[name], options)
            records.print_verdict(judge(options, known, [name]), options.failures, compare.STATES)
            write(options, known, names[:number + 1])
        if options.report:
            records.print_verdict(judge(options, known, names), options.failures, compare.STATES)
            write(options, known, names)
    except (ValueError, RuntimeError) as error:
        parser().error(str(error))
    return 0 if judge(options, known, names).is_good else 1


def write(options: argparse.Namespace, known: Sequence[records.Known],
          names: Sequence[str]) -> None:
    """Puts the suites' results into the record and docs/libraries.md, unless some of their tests
    were left out."""
    if options.pytest or options.no_docs:
        return
    rows, found = {}, []
    for name in names:
        suite = SUITES[name]
        source = options.sources.get(name) or source_of(suite)
        files = files_of(suite, source)
        version = version_of(suite, source)
        kept = record.update(record.made_of(options.results, name, version, files, known),
                             options.record)
        entries = [kept[name, file] for file in files
                   if (name, file) in kept and kept[name, file].version == version]
        if entries:
            rows[name] = section.Row(version, len(files), entries)
            found += entries
    section.write(known, record.verdict_of(found), rows, options.page)


def _files(options: argparse.Namespace, name: str) -> list[str]:
    return files_of(SUITES[name], options.sources.get(name) or source_of(SUITES[name]))


def judge(options: argparse.Namespace, known: Sequence[records.Known],
          names: Sequence[str]) -> records.Verdict:
    results = [result for name in names for result in compare.compared(
        options.results, name, compare.ran(options.results, name, _files(options, name)))]
    ran = {result.file for result in results}
    return records.judge(results, known, () if options.pytest else ran)
