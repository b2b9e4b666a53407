"""Times workers and programs of both libraries in turns."""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from benchmarks.agreement import disagreement, load

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = "jax"
LIMIT_SECONDS = 900.0


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


@dataclass
class Comparison:
    """Samples of the same thing with both libraries, taken in pairs."""

    label: str
    unit: str  # "s" or "B"
    candidate: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)
    remark: str = ""  # what the candidate did otherwise than the figure means

    @property
    def ratios(self) -> list[float]:
        """Candidate over reference, a pair each: what slowed the machine down slowed both."""
        return [a / b for a, b in zip(self.candidate, self.reference)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)


@dataclass
class Bound:
    """A number that is held to a limit of its own, and not to JAX."""

    label: str
    value: float | None  # None: not measured in this run
    limit: float
    unit: str  # "s", "" for a ratio, or what is counted

    @property
    def met(self) -> bool:
        return self.value is not None and self.value <= self.limit


@dataclass
class Result:
    """What a figure came to. Its ratio is the geometric mean over its comparisons."""

    comparisons: list[Comparison] = field(default_factory=list)
    information: list[Comparison] = field(default_factory=list)  # reported, held to nothing
    notes: list[str] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # what should have been compared too

    @property
    def ratio(self) -> float | None:
        if not self.comparisons:
            return None
        return geometric_mean([comparison.ratio for comparison in self.comparisons])


class BenchmarkError(RuntimeError):
    """A library could not run a figure, or gave another result than JAX."""


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without what would decide a figure, and with `extra`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAXJAX_", "JAX_", "XLA_", "PYTHON"))
    }
    return {**kept, "PYTHONPATH": str(ROOT), **extra}


def persistent_cache(directory: str) -> dict[str, str]:
    """The environment in which JAX keeps all that it compiles, and finds it in later processes."""
    return {
        "JAX_COMPILATION_CACHE_DIR": directory,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


@contextmanager
def started(
    arguments: list[str], extra: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A process in a group of its own, with its error output; the group is ended on leaving.

    maxjax may compile in a process of its own, which must not run into the next measurement.
    """
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment(extra),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            yield process, errors
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()


def read_line(process: subprocess.Popen[str], errors: IO[str], what: str) -> str:
    """The next line of a process, which is ended if that takes too long."""
    assert process.stdout is not None
    timer = threading.Timer(LIMIT_SECONDS, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    if not line:
        process.wait()
        errors.seek(0)
        said = errors.read().strip().splitlines()
        reason = said[-1] if said else f"ended with exit code {process.returncode}"
        raise BenchmarkError(f"{what}: {reason}")
    return line


class Worker:
    """A running `benchmarks.worker`."""

    def __init__(self, library: str, process: subprocess.Popen[str], errors: IO[str]):
        self.library = library
        self.process = process
        self.errors = errors

    def ask(self, request: str) -> dict[str, Any]:
        """The answer.

        Raises:
          BenchmarkError: the library could not do it, or the process has ended.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # read_line says why it ended
        answer = json.loads(read_line(self.process, self.errors, self.library))
        if "error" in answer:
            raise BenchmarkError(f"{self.library}: {answer['error']}")
        return answer


@contextmanager
def worker(library: str, extra: Mapping[str, str]) -> Iterator[Worker]:
    with started(["-m", "benchmarks.worker", library], extra) as (process, errors):
        yield Worker(library, process, errors)


@dataclass
class Run:
    """One run of a program."""

    seconds: float  # from the start of the process to the end of its first line
    facts: dict[str, Any]


def run_program(name: str, library: str, extra: Mapping[str, str], *arguments: str) -> Run:
    command = ["-m", "benchmarks.programs", name, library, *arguments]
    start = time.perf_counter()
    with started(command, extra) as (process, errors):
        line = read_line(process, errors, f"{library}, {name}")
        seconds = time.perf_counter() - start
        while not line.startswith("FACTS "):
            line = read_line(process, errors, f"{library}, {name}")
        return Run(seconds, json.loads(line.removeprefix("FACTS ")))


def in_turns(
    comparison: Comparison,
    candidate: Callable[[], float],
    reference: Callable[[], float],
    repetitions: int,
) -> Comparison:
    """Takes the samples, the two libraries alternately and each first every other time."""
    for repetition in range(repetitions):
        turns = [(candidate, comparison.candidate), (reference, comparison.reference)]
        for sample, samples in turns if repetition % 2 == 0 else reversed(turns):
            samples.append(sample())
    return comparison


def compare_calls(
    names: Mapping[str, str], library: str, extra: Mapping[str, str], quick: bool
) -> list[Comparison]:
    """Compares the calls of `benchmarks.calls`, given as label: name."""
    with worker(library, extra) as candidate, worker(REFERENCE, {}) as reference:
        return [
            compare_call(candidate, reference, label, name, quick) for label, name in names.items()
        ]


def compare_call(
    candidate: Worker, reference: Worker, label: str, name: str, quick: bool
) -> Comparison:
    """Times a call that two workers know by its name. A program's results are compared first.

    Raises:
      BenchmarkError: a library cannot run it, or the results differ.
    """
    seconds, repetitions = (0.02, 5) if quick else (0.1, 15)
    for each in (candidate, reference):
        prepared = each.ask(f"prepare {name} {seconds}")
    if prepared["tolerance"] is not None:
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = Path(folder, "ours.npz"), Path(folder, "theirs.npz")
            candidate.ask(f"save {ours}")
            reference.ask(f"save {theirs}")
            difference = disagreement(load(ours), load(theirs), prepared["tolerance"])
        if difference:
            raise BenchmarkError(f"another result than {reference.library}'s: {difference}")
    comparison = in_turns(
        Comparison(label, "s"),
        lambda: candidate.ask("sample")["seconds"],
        lambda: reference.ask("sample")["seconds"],
        repetitions,
    )
    comparison.remark = candidate.ask("tier")["tier"]
    return comparison
