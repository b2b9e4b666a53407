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
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


PROGRAMS = {"first_result": first_result, "first_step": first_step, "demo": demo}

if __name__ == "__main__":
    facts = PROGRAMS[sys.argv[1]](*sys.argv[2:])
    print("FACTS", json.dumps(facts), flush=True)
