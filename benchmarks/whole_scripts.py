"""Whole scripts as users run them: from process start to N steps, and how long a step takes then.

The scripts of `benchmarks/scripts/` import JAX and nothing of maxjax. `python script.py` runs them
on JAX, `python -m maxjax script.py` on maxjax. Each prints a line a step: its index and a number.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import compiling
from benchmarks.agreement import disagreement
from benchmarks.measure import (
    REFERENCE,
    ROOT,
    BenchmarkError,
    Comparison,
    geometric_mean,
    persistent_cache,
    read_line,
    started,
)

FOLDER = ROOT / "benchmarks" / "scripts"
SECONDS, QUICK_SECONDS = 18.0, 5.0
# Enough steps for a mean over the last of them, however slow they are.
LEAST_STEPS = 4
# More than any process gets to: the time ends a script, not its steps.
ENDLESS = 1_000_000
# No ratio of a script is to be greater, and the geometric mean of all of them not either.
EACH_TARGET, MEAN_TARGET = 1.0, 0.6
EXIT_SECONDS = 60.0
BUILD_SECONDS = 300.0


@dataclass(frozen=True)
class Script:
    """A file of `benchmarks/scripts/`.

    Attributes:
      tolerance: the largest difference of two steps' numbers, relative to JAX's number.
    """

    title: str
    tolerance: float


SCRIPTS = {
    "nbody": Script("N-body, 500 bodies", 1e-4),
    "language_model": Script("language model, 3 blocks of width 128, training", 1e-2),
    "resnet": Script("ResNet, 32 by 32 pixels, training", 1e-2),
    "lstm": Script("LSTM, sequences of 60, training", 1e-2),
    "hmc": Script("Hamiltonian Monte Carlo, logistic regression", 1e-3),
    "gp_regression": Script("Gaussian process regression, 600 points", 1e-3),
    "kmeans": Script("k-means, 50,000 points, 64 clusters", 1e-4),
    "life": Script("game of life, 512 by 512", 0.0),
    "decoding": Script("decoding with a key-value cache, 4 blocks", 1e-3),
    "message_passing": Script("message passing, 20,000 edges, training", 1e-3),
    "option_pricing": Script("Monte Carlo option pricing, 20,000 paths", 1e-4),
}


@dataclass
class Process:
    """What one process of a script printed: a number a step, and when it came.

    Attributes:
      seconds: since the start of the process.
    """

    numbers: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def step_seconds(self) -> float:
        """The mean of the last third of the steps."""
        begin = min(2 * len(self.seconds) // 3, len(self.seconds) - 2)
        return (self.seconds[-1] - self.seconds[begin]) / (len(self.seconds) - 1 - begin)


@dataclass
class ScriptResult:
    """A script on both libraries, with a sample a round.

    Attributes:
      steps: how many steps both libraries got to, in the first process and in the second.
      first: from process start to that step, nothing cached.
      second: the same in a later process, which finds what an earlier one has cached.
      step: a step of the second process.
      difference: how the numbers differ; None if they agree.
    """

    steps: list[tuple[int, int]] = field(default_factory=list)
    first: Comparison = field(default_factory=lambda: Comparison("first process", "s"))
    second: Comparison = field(default_factory=lambda: Comparison("second process", "s"))
    step: Comparison = field(default_factory=lambda: Comparison("step", "s"))
    difference: str | None = None

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return self.first, self.second, self.step


ScriptOutcome = tuple[Script, ScriptResult | str]  # the result, or why there is none


@dataclass
class ScriptReport:
    """All measured scripts, and under which conditions.

    Attributes:
      seconds: after which a process is ended.
      load: the machine's load average before.
      busy: whether one core was kept busy.
    """

    seconds: float
    load: float
    busy: bool
    outcomes: list[ScriptOutcome] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """All ratios of all scripts that have a result."""
        results = [result for _, result in self.outcomes if not isinstance(result, str)]
        return [each.ratio for result in results for each in result.comparisons]

    @property
    def failed(self) -> bool:
        """Whether a script has no result, or another one than JAX."""
        return any(
            isinstance(result, str) or result.difference is not None for _, result in self.outcomes
        )

    @property
    def met(self) -> bool:
        ratios = self.ratios
        fast = bool(ratios) and max(ratios) <= EACH_TARGET
        return fast and geometric_mean(ratios) <= MEAN_TARGET and not self.failed


@contextmanager
def busy_core(wanted: bool) -> Iterator[None]:
    """Keeps one core busy, if wanted."""
    if not wanted:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def run_script(
    name: str,
    library: str,
    extra: dict[str, str],
    seconds: float,
    steps: int = ENDLESS,
    small: bool = False,
) -> Process:
    """Runs a script for that many seconds or steps. It ends as under `| head`: nobody reads on.

    Raises:
      BenchmarkError: it failed, or printed something else than its steps.
    """
    runner = [] if library == REFERENCE else ["-m", library]
    arguments = [*runner, str(FOLDER / f"{name}.py"), str(steps), *(["small"] if small else [])]
    process = Process()
    start = time.perf_counter()
    with started(arguments, {"PYTHONUNBUFFERED": "1", **extra}) as (running, errors):
        while len(process.numbers) < steps:
            line = read_line(running, errors, f"{library}, {name}")
            now = time.perf_counter() - start
            index, _, number = line.partition(" ")
            if index != str(len(process.numbers)):
                raise BenchmarkError(f"{library}, {name}: printed {line.strip()!r}, not a step")
            process.numbers.append(float(number))
            process.seconds.append(now)
            if now >= seconds and len(process.numbers) >= LEAST_STEPS:
                break
        assert running.stdout is not None
        running.stdout.close()
        try:
            running.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # `started` ends it
    return process


def await_builders(directory: str) -> None:
    """Waits for processes that outlive a script and still build for its cache directory."""
    end = time.monotonic() + BUILD_SECONDS
    while any(uses(process, directory) for process in Path("/proc").glob("[0-9]*")):
        if time.monotonic() > end:
            raise BenchmarkError(f"processes still build after {BUILD_SECONDS:.0f} s")
        time.sleep(0.2)


def uses(process: Path, directory: str) -> bool:
    """Whether a process, given by its folder in /proc, has that cache directory."""
    try:
        variables = (process / "environ").read_bytes()
    except OSError:
        return False  # it has ended, or is another user's
    return f"MAXJAX_CACHE_DIR={directory}".encode() in variables.split(b"\0")


def difference(script: Script, ours: Process, theirs: Process) -> str | None:
    """How the numbers of the steps that both did differ, each relative to itself."""
    pairs = list(zip(ours.numbers, theirs.numbers))
    return disagreement(
        [np.asarray(a) for a, _ in pairs], [np.asarray(b) for _, b in pairs], script.tolerance
    )


def measure_round(
    result: ScriptResult, name: str, library: str, seconds: float, reference_goes_first: bool
) -> None:
    """Two processes of each library, in turns, with caches that are empty but for the pack."""
    with compiling.cache_with_pack(library) as ours, tempfile.TemporaryDirectory() as theirs:

        def candidate() -> Process:
            process = run_script(name, library, {"MAXJAX_CACHE_DIR": ours}, seconds)
            await_builders(ours)
            return process

        def both(environment: dict[str, str]) -> tuple[Process, Process]:
            if reference_goes_first:
                reference = run_script(name, REFERENCE, environment, seconds)
                return candidate(), reference
            return candidate(), run_script(name, REFERENCE, environment, seconds)

        first = both({})
        run_script(name, REFERENCE, persistent_cache(theirs), 0.0)  # fills JAX's cache
        second = both(persistent_cache(theirs))
    reached = []
    for comparison, (mine, yours) in ((result.first, first), (result.second, second)):
        steps = min(len(mine.seconds), len(yours.seconds))
        reached.append(steps)
        comparison.candidate.append(mine.seconds[steps - 1])
        comparison.reference.append(yours.seconds[steps - 1])
        result.difference = result.difference or difference(SCRIPTS[name], mine, yours)
    result.steps.append((reached[0], reached[1]))
    result.step.candidate.append(second[0].step_seconds)
    result.step.reference.append(second[1].step_seconds)


def measure_script(name: str, library: str, seconds: float, rounds: int) -> ScriptOutcome:
    script, result = SCRIPTS[name], ScriptResult()
    try:
        for number in range(rounds):
            measure_round(result, name, library, seconds, number % 2 == 0)
    except BenchmarkError as error:
        return script, str(error)
    return script, result


def load_average() -> float:
    """The load average of the last minute; NaN where the system keeps none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
