"""The figures that maxjax is held to, a row each."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.measure import REFERENCE, Comparison, compare_calls, in_turns, run_program

EAGER = ("add", "sin", "sum", "reshape", "slice", "where", "matmul")


@dataclass
class Result:
    """What a figure came to. Its ratio is the geometric mean over its comparisons."""

    comparisons: list[Comparison]
    information: list[Comparison] = field(default_factory=list)  # reported, held to nothing
    notes: list[str] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        logarithms = [math.log(comparison.ratio) for comparison in self.comparisons]
        return math.exp(sum(logarithms) / len(logarithms))


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    target: float  # the largest ratio, maxjax over JAX, that will do
    run: Callable[[str, bool], Result]  # takes the library's name and whether to be quick


def calls(names: dict[str, str], **extra: str) -> Callable[[str, bool], Result]:
    return lambda library, quick: Result(compare_calls(names, library, extra, quick))


def start(library: str, quick: bool) -> Result:
    for each in (library, REFERENCE):
        run_program("first_result", each, {})  # reads the files in, and writes their bytecode
    comparison = in_turns(
        Comparison("start", "s"),
        lambda: run_program("first_result", library, {}).seconds,
        lambda: run_program("first_result", REFERENCE, {}).seconds,
        3 if quick else 9,
    )
    return Result([comparison])


def first_step_cold(library: str, quick: bool) -> Result:
    def candidate() -> float:
        with tempfile.TemporaryDirectory() as empty:
            return run_program("first_step", library, {"MAXJAX_CACHE_DIR": empty}).seconds

    candidate()
    comparison = in_turns(
        Comparison("first step, nothing cached", "s"),
        candidate,
        lambda: run_program("first_step", REFERENCE, {}).seconds,
        3 if quick else 7,
    )
    return Result([comparison])


def first_step_cached(library: str, quick: bool) -> Result:
    """A new process that finds the step compiled by an earlier one."""
    repetitions = 3 if quick else 7
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as xla_cache:
        cached = {"MAXJAX_CACHE_DIR": cache}
        run_program("first_step", library, {**cached, "MAXJAX_COMPILE": "always"})
        persistent = {
            "JAX_COMPILATION_CACHE_DIR": xla_cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        run_program("first_step", REFERENCE, persistent)
        on_max = []

        def candidate() -> float:
            run = run_program("first_step", library, cached)
            on_max.append(run.facts.get("compiled_calls", 0) > 0)
            return run.seconds

        candidate()
        comparison = in_turns(
            Comparison("first step, cached; JAX cold", "s"),
            candidate,
            lambda: run_program("first_step", REFERENCE, {}).seconds,
            repetitions,
        )
        information = in_turns(
            Comparison("first step, cached; JAX with its persistent cache", "s"),
            candidate,
            lambda: run_program("first_step", REFERENCE, persistent).seconds,
            repetitions,
        )
    note = f"the first call ran on MAX in {sum(on_max)} of {len(on_max)} processes"
    return Result([comparison], [information], [note])


def demo_memory(library: str, quick: bool) -> Result:
    """Both networks of the demo; unless quick, up to and past the swap to MAX."""
    arguments = ["--steps", "50"] if quick else ["--steps", "200", "--wait"]
    with tempfile.TemporaryDirectory() as cache:
        arguments += ["--picture", f"{cache}/digits.png"]
        extra = {"MAXJAX_CACHE_DIR": cache}
        comparison = in_turns(
            Comparison("peak memory of the demo", "B"),
            lambda: run_program("demo", library, extra, *arguments).facts["peak_bytes"],
            lambda: run_program("demo", REFERENCE, {}, *arguments).facts["peak_bytes"],
            1 if quick else 3,
        )
    return Result([comparison])


FIGURES = (
    Figure("start", "process start to the first printed result", 1.0, start),
    Figure(
        "eager",
        "an eager operation on 100 elements, up to its realised result",
        1.0,
        calls({name: f"eager_{name}" for name in EAGER}),
    ),
    Figure("grad", "eager grad of sum(sin(x) * x)", 0.33, calls({"grad": "eager_grad"})),
    Figure("jit_call", "a call of a jitted x * 2 + 1", 3.0, calls({"call": "jitted_call"})),
    Figure("trace", "tracing grad of 3 layers to a jaxpr", 1.5, calls({"trace": "trace_grad"})),
    Figure(
        "first_step_cold",
        "process start to the first jitted training step, nothing cached",
        1.0,
        first_step_cold,
    ),
    Figure(
        "first_step_cached",
        "the same in a new process, compiled before",
        1.0,
        first_step_cached,
    ),
    Figure(
        "train_step",
        "a training step on MAX, 784-512-512-10, batch 128",
        1.0,
        calls({"step": "steady_train_step"}, MAXJAX_COMPILE="always"),
    ),
    Figure("memory", "peak memory of the demo's process", 1.0, demo_memory),
)
