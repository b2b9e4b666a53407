"""Compiles programs of the case tables for a GPU that is not there, in a process of its own.

    python -m tests.accelerators.compile_for_gpu FOLDER [FAMILY ...]

MAX takes a virtual device of the architecture ``sm_90``. One program of each family is compiled,
the one with the fewest equations; the artifacts are written to the folder. Prints one line a
family: OK and the equations, or why it failed. Nothing is run.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maxjax._ir.serialize import encode
from maxjax._max.graph import builder
from maxjax._max.graph.accelerator import device_reason
from maxjax._transforms.partition import Piece, partition
from tests.support import harness, tier1

ARCHITECTURE = "sm_90"


def session() -> Any:
    from max import driver, engine
    driver.set_virtual_device_api("cuda")
    driver.set_virtual_device_target_arch(ARCHITECTURE)
    driver.set_virtual_device_count(1)
    return engine.InferenceSession(devices=[driver.CPU(), driver.Accelerator(0)])


def pieces_of(family: str) -> list[Piece]:
    """Those for the accelerator, of the program with the fewest equations in them."""
    programs = [[piece for piece in partition(
        tier1.program_of(case, "").program.opened.jaxpr, device_reason) if not piece.on_host]
        for case in tier1.select(harness.families()[family], 12)]
    return min(filter(None, programs), default=[], key=lambda pieces: sum(
        len(piece.jaxpr.eqns) for piece in pieces))


def compile_for_gpu(max_session: Any, family: str, pieces: Sequence[Piece], folder: Path) -> None:
    from max.graph import Module
    module = Module()
    extensions = builder.build(module, json.dumps({"pieces": [
        [f"piece_{number}", encode(piece.jaxpr)] for number, piece in enumerate(pieces)]}),
        {"directory": str(folder), "device": 0})
    compiled = max_session.compile(module, custom_extensions=list(map(str, extensions)))
    compiled.export_mef(str(folder / f"{family}.mef"))


def main(folder: Path, *chosen: str) -> None:
    max_session = session()
    for family in chosen or sorted(harness.families()):
        if isinstance(harness.families()[family], Exception):
            continue
        pieces = pieces_of(family)
        if not pieces:
            print(f"{family}: nothing of it is for an accelerator", flush=True)
            continue
        names = Counter(eqn.primitive.name for piece in pieces for eqn in piece.jaxpr.eqns)
        try:
            compile_for_gpu(max_session, family, pieces, folder)
            print(f"{family}: OK {', '.join(names)}", flush=True)
        except Exception as error:
            print(f"{family}: {type(error).__name__}: {str(error)[-600:]!r} ({', '.join(names)})",
                  flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
