"""Figures about compiling: how long it takes, how often it happens, and what memory it leaves.

Each run is a process of its own with a cache directory of its own. Cold means that the directory
holds the pack and nothing else.
"""

from __future__ import annotations

import datetime
import functools
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import models
from benchmarks.measure import (
    REFERENCE,
    ROOT,
    BenchmarkError,
    Bound,
    Comparison,
    Result,
    in_turns,
    run_program,
)

# The last measured times of both backends, which the graph backend takes minutes for.
GRAPH_RECORD = ROOT / "benchmarks" / "graph_compile.json"
COMPILE_SECONDS = {"mlp": 8.0, "transformer": 15.0}
PACK_SECONDS = 180.0
GRAPH_RATIO = 0.1
NAMES = {"mlp": "MLP", "transformer": "transformer block"}
LOSS_TOLERANCE = 1e-5


@functools.cache
def pack_directory(library: str) -> tempfile.TemporaryDirectory[str]:
    """A cache directory with the pack alone: the user's, which is built if need be."""
    directory = tempfile.TemporaryDirectory(prefix="maxjax-pack-")
    problem = run_program("copy_pack", library, {}, directory.name).facts["problem"]
    if problem:
        raise BenchmarkError(f"the pack cannot be built: {problem}")
    return directory


@contextmanager
def cache_with_pack(library: str) -> Iterator[str]:
    pack = pack_directory(library).name
    with tempfile.TemporaryDirectory(prefix="maxjax-cache-") as directory:
        shutil.copytree(pack, directory, dirs_exist_ok=True)
        yield directory


def compile_cold(library: str, model: str, backend: str = "mojo") -> dict[str, Any]:
    """The facts of `compile_step` in a new process.

    Raises:
      BenchmarkError: it was not that backend that compiled the step, or the step was interpreted.
    """
    with cache_with_pack(library) as directory:
        environment = {"MAXJAX_CACHE_DIR": directory, "MAXJAX_BACKEND": backend}
        facts = run_program("compile_step", library, environment, model).facts
    if facts.get("interpreted_calls") or not facts.get("compiled_calls"):
        raise BenchmarkError(f"the step of the {NAMES[model]} is interpreted")
    by_graph = any(name.endswith(".mef") for names in facts["built"] for name in names)
    if by_graph != (backend == "graph"):
        other = "graph" if by_graph else "Mojo"
        raise BenchmarkError(f"the step of the {NAMES[model]} is compiled by the {other} backend")
    if not facts["built"][0]:
        raise BenchmarkError(f"the step of the {NAMES[model]} was compiled before")
    return facts


def check_losses(title: str, ours: list[float], theirs: list[float]) -> None:
    if any(abs(a - b) > LOSS_TOLERANCE * abs(b) for a, b in zip(ours, theirs, strict=True)):
        raise BenchmarkError(f"the losses of the {title} are {ours}, and JAX's {theirs}")


def compare_compiles(
    library: str, model: str, repetitions: int
) -> tuple[Comparison, list[dict[str, Any]]]:
    """Cold compiles of a training step, and the facts of those that are not JAX's."""
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []

    def candidate() -> float:
        ours.append(compile_cold(library, model))
        return ours[-1]["seconds"][0]

    def reference() -> float:
        theirs.append(run_program("compile_step", REFERENCE, {}, model).facts)
        return theirs[-1]["seconds"][0]

    label = f"compiling the {NAMES[model]}'s step, and JAX's compile"
    comparison = in_turns(Comparison(label, "s"), candidate, reference, repetitions)
    check_losses(NAMES[model], ours[0]["losses"], theirs[0]["losses"])
    return comparison, ours


def compile_steps(library: str, quick: bool) -> Result:
    """Training steps of both models, cold and then with another batch size."""
    result = Result()
    second: list[Bound] = []
    for model, limit in COMPILE_SECONDS.items():
        comparison, runs = compare_compiles(library, model, 1 if quick else 3)
        result.information.append(comparison)
        seconds = statistics.median(comparison.candidate)
        result.bounds.append(Bound(f"the {NAMES[model]}'s step", seconds, limit, "s"))
        built = sum(len(facts["built"][1]) for facts in runs)
        sizes = "{} after {}".format(*reversed(models.BATCHES[model]))
        second.append(Bound(f"{NAMES[model]}, batch of {sizes}", float(built), 0.0, "libraries"))
        ready = max(facts["seconds"][1] for facts in runs)
        result.notes.append(f"{NAMES[model]}, batch of {sizes}: ready in {ready:.2f} s")
    result.bounds += [graph_bound(), *second]
    return result


def graph_bound() -> Bound:
    """The backends' ratio for the MLP's step, as it was measured last."""
    label = "the MLP's step, relative to the graph backend"
    if not GRAPH_RECORD.exists():
        return Bound(f"{label} (--graph)", None, GRAPH_RATIO, "")
    record = json.loads(GRAPH_RECORD.read_text())
    ratio = record["mojo"] / record["graph"]
    return Bound(f"{label} (measured {record['date']})", ratio, GRAPH_RATIO, "")


def compile_with_graph(library: str, quick: bool) -> Result:
    """The MLP's step by both backends; kept for the runs that leave out the graph backend."""
    seconds = {
        backend: compile_cold(library, "mlp", backend)["seconds"][0]
        for backend in ("mojo", "graph")
    }
    record = {"date": datetime.date.today().isoformat(), **seconds}
    GRAPH_RECORD.write_text(json.dumps(record, indent=1) + "\n")
    notes = [f"{backend}: {value:.1f} s" for backend, value in seconds.items()]
    return Result(bounds=[graph_bound()], notes=notes)


def build_pack(library: str, quick: bool) -> Result:
    label = "all of its libraries"
    if quick:
        return Result(bounds=[Bound(f"{label} (not in a quick run)", None, PACK_SECONDS, "s")])
    with tempfile.TemporaryDirectory(prefix="maxjax-cache-") as empty:
        facts = run_program("build_pack", library, {"MAXJAX_CACHE_DIR": empty}).facts
    if facts["problem"]:
        raise BenchmarkError(facts["problem"])
    notes = [f"{name}: {seconds:.1f} s" for name, seconds in facts["libraries"].items()]
    return Result(bounds=[Bound(label, facts["seconds"], PACK_SECONDS, "s")], notes=notes)


def compare_memory(library: str, model: str, repetitions: int) -> Comparison:
    """Peak memory of processes that train; maxjax's finds its step compiled."""
    with cache_with_pack(library) as directory:
        extra = {"MAXJAX_CACHE_DIR": directory, "MAXJAX_COMPILE": "always"}
        ours = run_program("train", library, extra, model, "1").facts
        theirs = run_program("train", REFERENCE, {}, model, "1").facts
        if ours.get("interpreted_calls"):
            raise BenchmarkError(f"the step of the {NAMES[model]} is interpreted")
        check_losses(NAMES[model], [ours["loss"]], [theirs["loss"]])
        return in_turns(
            Comparison(f"training the {NAMES[model]}", "B"),
            lambda: run_program("train", library, extra, model, "50").facts["peak_bytes"],
            lambda: run_program("train", REFERENCE, {}, model, "50").facts["peak_bytes"],
            repetitions,
        )


def train_memory(library: str, quick: bool) -> Result:
    mlp, transformer = (
        compare_memory(library, model, 1 if quick else 3) for model in COMPILE_SECONDS
    )
    note = "compiled by an earlier process: without what the compiler takes, in its own processes"
    return Result([mlp], [transformer], [note])


# The steps whose state is donated: what they are called, and how many are taken.
DONATED = {
    "gpt2_256": ("GPT-2 of 124M parameters, 256 tokens", 3),
    "gpt2_512": ("GPT-2 of 124M parameters, 512 tokens", 3),
    "mlp": ("MLP", 50),
    "cnn": ("CNN", 50),
    "transformer": ("transformer block", 50),
}
DONATED_QUICK = {"gpt2_2_blocks": ("GPT-2 of 2 blocks, 256 tokens", 3)}


def compare_donated(library: str, model: str, title: str, steps: int, repetitions: int
                    ) -> Comparison:
    """Peak memory of processes that train and donate their state."""
    losses: dict[str, float] = {}

    def sample(name: str, extra: dict[str, str]) -> float:
        facts = run_program("train_donated", name, extra, model, str(steps)).facts
        if facts.get("interpreted_calls"):
            raise BenchmarkError(f"the step of the {title} is interpreted")
        losses[name] = facts["loss"]
        return facts["peak_bytes"]

    with cache_with_pack(library) as directory:
        extra = {"MAXJAX_CACHE_DIR": directory, "MAXJAX_COMPILE": "always"}
        sample(library, extra)      # compiles
        comparison = in_turns(
            Comparison(title, "B"),
            lambda: sample(library, extra),
            lambda: sample(REFERENCE, {}),
            repetitions,
        )
    check_losses(title, [losses[library]], [losses[REFERENCE]])
    return comparison


def donated_memory(library: str, quick: bool) -> Result:
    chosen = DONATED_QUICK if quick else DONATED
    return Result([
        compare_donated(library, model, title, steps, 1 if quick else 3)
        for model, (title, steps) in chosen.items()
    ])
