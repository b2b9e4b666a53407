"""The figures that maxjax is held to, a row each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import compiling, sharded, steady
from benchmarks.measure import (
    REFERENCE,
    BenchmarkError,
    Comparison,
    Result,
    compare_call,
    compare_calls,
    in_turns,
    persistent_cache,
    run_program,
    worker,
)

EAGER = ("add", "sin", "sum", "reshape", "slice", "where", "matmul")


@dataclass(frozen=True)
class Figure:
    """A row of the report.

    Attributes:
      target: the largest ratio, maxjax over JAX, that will do; None where the result has bounds.
      run: takes the library's name and whether to be quick.
      each: the largest ratio that will do of each comparison alone.
      on_request: whether it runs only when asked for.
    """

    name: str
    title: str
    target: float | None
    run: Callable[[str, bool], Result]
    each: float | None = None
    on_request: bool = False

    def met(self, result: Result) -> bool:
        ratio = result.ratio
        return (
            not result.failures
            and (self.target is None or (ratio is not None and ratio <= self.target))
            and (self.each is None or all(x.ratio <= self.each for x in result.comparisons))
            and all(bound.met for bound in result.bounds)
        )


def calls(names: dict[str, str], **extra: str) -> Callable[[str, bool], Result]:
    return lambda library, quick: Result(compare_calls(names, library, extra, quick))


def programs(names: list[str], **extra: str) -> Callable[[str, bool], Result]:
    """Programs of `benchmarks.steady`, in processes of their own: one may crash."""

    def compare(library: str, name: str, quick: bool) -> Comparison:
        compiled = {"MAXJAX_COMPILE": "always", **extra}
        with worker(library, compiled) as candidate, worker(REFERENCE, extra) as reference:
            return compare_call(candidate, reference, name, name, quick)

    def run(library: str, quick: bool) -> Result:
        if library != REFERENCE:
            compiling.pack_directory(library)  # or it would be built while programs are timed
        result = Result()
        for name in names:
            try:
                result.comparisons.append(compare(library, name, quick))
            except BenchmarkError as error:
                result.failures.append(f"{name}: {error}")
        return result

    return run


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
        persistent = persistent_cache(xla_cache)
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
    Figure("jit_call", "a call of a jitted x * 2 + 1", 1.5, calls({"call": "jitted_call"})),
    Figure("trace", "tracing grad of 3 layers to a jaxpr", 1.5, calls({"trace": "trace_grad"})),
    Figure(
        "trace_transformer",
        "tracing a training step of 12 transformer blocks to a jaxpr",
        1.5,
        calls({"trace": "trace_transformer"}),
    ),
    Figure(
        "scan",
        "a scan of 1,000 steps, interpreted; JAX compiled",
        5.0,
        calls({"scan": "scan"}, MAXJAX_COMPILE="never"),
    ),
    Figure("scan_compiled", "the same, compiled", 1.2, programs(["RNN, scan of 1,000 steps"])),
    Figure(
        "hessian", "eager Hessian for 50 parameters", 0.5, calls({"hessian": "eager_hessian"})
    ),
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
        "a compiled training step, 784-512-512-10, batch 128",
        0.8,
        programs([steady.MLP_STEP]),
    ),
    Figure(
        "steady",
        "compiled programs, the geometric mean",
        0.8,
        programs(list(steady.SUITE)),
        each=1.5,
    ),
    Figure(
        "partition",
        "propagation and partition of a training step of 12 transformer blocks",
        None,
        sharded.partition_transformer,
    ),
    Figure(
        "sharded_step",
        "the training step, 784-512-512-10, compiled for 8 simulated devices",
        1.5,
        programs([sharded.MLP_STEP], **sharded.DEVICES),
    ),
    Figure("pack", "building the pack into an empty cache", None, compiling.build_pack),
    Figure(
        "compile_graph",
        "the same compile by both backends, nothing cached",
        None,
        compiling.compile_with_graph,
        on_request=True,
    ),
    Figure(
        "compile",
        "compiling a training step, the pack being there",
        None,
        compiling.compile_steps,
    ),
    Figure(
        "train_memory",
        "peak memory of training with a compiled step",
        1.2,
        compiling.train_memory,
    ),
    Figure(
        "donated_memory",
        "peak memory of training with donated state, above that before there were arguments",
        1.0,
        compiling.donated_memory,
        each=1.0,
    ),
    Figure("memory", "peak memory of the demo's process", 1.0, demo_memory),
)
