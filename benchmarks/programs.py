"""Whole programs, for the figures that begin with a new process or are about its memory.

`python -m benchmarks.programs NAME LIBRARY [ARGUMENT ...]` prints the result first, and last a
line of facts about the run: "FACTS " and JSON. Nothing is imported here that the program itself
does not need: the import of the library is part of what is measured.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any


def first_result(library: str) -> dict[str, Any]:
    jnp = importlib.import_module(f"{library}.numpy")
    print(jnp.arange(10.0) + 1, flush=True)
    return {}


def first_step(library: str) -> dict[str, Any]:
    """The first training step of the digits MLP."""
    jax = importlib.import_module(library)
    from benchmarks import network

    step = network.train_step(jax)
    layers = network.initialize(jax, network.DIGITS)
    layers, loss = step(layers, *network.batch(network.DIGITS, 128))
    print(float(loss), flush=True)
    return tier_facts(jax, step)


def tier_facts(jax: Any, step: Any) -> dict[str, Any]:
    """Where maxjax ran the step; nothing for JAX, which has one tier."""
    read = getattr(getattr(jax, "debug", None), "statistics", None)
    if read is None:
        return {}
    statistics = read(step)
    return {
        "interpreted_calls": statistics.interpreted_calls,
        "compiled_calls": statistics.compiled_calls,
    }


def demo(library: str, *arguments: str) -> dict[str, Any]:
    """examples/digits.py, and the most memory that its process held, in bytes."""
    import pathlib
    import runpy

    script = pathlib.Path(__file__).resolve().parent.parent / "examples" / "digits.py"
    sys.argv = [str(script), *arguments, *(["--jax"] if library == "jax" else [])]
    runpy.run_path(str(script), run_name="__main__")
    return {"peak_bytes": peak_bytes()}


def peak_bytes() -> int:
    """The largest resident size of this process, without its children.

    Linux carries ru_maxrss over from the process that started this one; VmHWM begins anew.
    """
    try:
        return memory_bytes("VmHWM")
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory_bytes(name: str) -> int:
    """A line of Linux's status of this process: the resident size, or its peak."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def forget_peak() -> None:
    """Has the peak of the resident size begin anew."""
    with open("/proc/self/clear_refs", "w") as requests:
        requests.write("5")


def build_pack(library: str) -> dict[str, Any]:
    """Builds maxjax's pack into the cache directory: how long each of its libraries takes."""
    import time

    pack = importlib.import_module(f"{library}._max.mojo.pack_library").Pack()
    seconds: dict[str, float] = {}
    start = time.monotonic()
    problem = pack.build(seconds.__setitem__)
    return {"problem": problem, "seconds": time.monotonic() - start, "libraries": seconds}


def copy_pack(library: str, directory: str) -> dict[str, Any]:
    """Puts the pack into another cache directory. What of it is missing is built first."""
    import pathlib
    import shutil

    pack = importlib.import_module(f"{library}._max.mojo.pack_library").Pack()
    cache = pack.libraries.cache
    target = importlib.import_module(f"{library}._max.artifacts").ArtifactCache(
        pathlib.Path(directory)
    )
    problem = pack.build()
    for unit in [] if problem else pack.units:
        copy = target.incoming(".so")
        shutil.copyfile(cache.lookup(unit.key), copy)
        target.store(unit.key, copy, suffix=".so")
    return {"problem": problem}


def compiled_libraries() -> list[str]:
    """What lies in maxjax's cache: native code of the one backend (.so) or the other (.mef)."""
    import os

    directory = os.environ.get("MAXJAX_CACHE_DIR", "")
    if not directory:
        return []
    return sorted(name for name in os.listdir(directory) if name.endswith((".so", ".mef")))


def compile_step(library: str, model: str) -> dict[str, Any]:
    """Compiles a training step, runs it, and does the same with another batch size."""
    import time

    jax = importlib.import_module(library)
    from benchmarks import models

    facts: dict[str, Any] = {"seconds": [], "built": [], "losses": []}
    step: Any = None
    for batch in models.BATCHES[model]:
        made, arguments = models.TRAIN_STEPS[model](jax, batch)
        step = step or made
        lowered = step.lower(*arguments)
        before = set(compiled_libraries())
        start = time.perf_counter()
        lowered.compile()
        facts["seconds"].append(time.perf_counter() - start)
        facts["losses"].append(float(step(*arguments)[0]))
        facts["built"].append(sorted(set(compiled_libraries()) - before))
    return {**facts, **tier_facts(jax, step)}


def train(library: str, model: str, steps: str) -> dict[str, Any]:
    """A training loop, and the most memory that its process held, in bytes."""
    jax = importlib.import_module(library)
    from benchmarks import models

    step, arguments = models.TRAIN_STEPS[model](jax)
    loss: Any = None
    for _ in range(int(steps)):
        loss, *state = step(*arguments)
        arguments = (*state, *arguments[len(state) :])
        loss.block_until_ready()
    return {"loss": float(loss), "peak_bytes": peak_bytes(), **tier_facts(jax, step)}


def train_donated(library: str, model: str, steps: str) -> dict[str, Any]:
    """A training loop whose state is donated: the most memory that its process held after the first
    step, which compiles, above what it held before there were arguments, in bytes."""
    jax = importlib.import_module(library)
    from benchmarks import models

    jax.block_until_ready(jax.numpy.ones(4) + 1)
    before = memory_bytes("VmRSS")
    step, arguments = models.DONATING[model](jax)
    first = 0.0
    for number in range(int(steps)):
        loss, *state = step(*arguments)
        arguments = (*state, *arguments[len(state) :])
        del state
        jax.block_until_ready(arguments)
        if number == 0:
            first = float(loss)
            forget_peak()
    return {
        "loss": first,
        "peak_bytes": memory_bytes("VmHWM") - before,
        **tier_facts(jax, step),
    }


def partition_step(library: str) -> dict[str, Any]:
    """Partitions a traced training step of a transformer over 8 devices."""
    import time

    jax = importlib.import_module(library)
    from benchmarks import sharded

    step, arguments = sharded.transformer(jax)
    step.trace(*arguments)
    start = time.perf_counter()
    report = jax.sharding.explain(step, *arguments).report
    return {"seconds": time.perf_counter() - start, "collectives": len(report.moves)}


PROGRAMS = {
    program.__name__: program
    for program in (
        first_result,
        first_step,
        demo,
        build_pack,
        copy_pack,
        compile_step,
        train,
        train_donated,
        partition_step,
    )
}

if __name__ == "__main__":
    facts = PROGRAMS[sys.argv[1]](*sys.argv[2:])
    print("FACTS", json.dumps(facts), flush=True)
