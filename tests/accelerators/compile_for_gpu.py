"""Compiles programs of the case tables for a GPU that is not there, in a process of its own.

    python -m tests.accelerators.compile_for_gpu FOLDER [FAMILY or PRIMITIVE ...]

MAX takes a virtual device of the architecture ``sm_90``. One program of each family is compiled,
the one with the fewest equations, and one of each primitive that is composed of MAX's operations;
the artifacts are written to the folder. Prints one line for each: OK and the equations, or why it
failed. Nothing is run.
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
# What ``DeviceContext`` composes, and the family that has it.
COMPOSED = {
    "conv_general_dilated": "convolution",
    "cumsum": "reduction",
    "cummax": "reduction",
    "cumlogsumexp": "reduction",
    "reduce_window_sum": "window",
    "reduce_window_max": "window",
    "select_and_scatter_add": "window",
    "dynamic_update_slice": "indexing",
}


def session() -> Any:
    from max import driver, engine
    driver.set_virtual_device_api("cuda")
    driver.set_virtual_device_target_arch(ARCHITECTURE)
    driver.set_virtual_device_count(1)
    return engine.InferenceSession(devices=[driver.CPU(), driver.Accelerator(0)])


def pieces_of(name: str) -> list[Piece]:
    """Those for the accelerator, of the family's or primitive's program with the fewest equations
    in them."""
    primitive = name if name in COMPOSED else None
    cases = tier1.select(harness.families()[COMPOSED.get(name, name)], None if primitive else 12)
    programs = [[piece for piece in partition(
        tier1.program_of(case, "").program.opened.jaxpr, device_reason) if not piece.on_host]
        for case in cases]
    return min((pieces for pieces in programs if pieces and (
        primitive is None or primitive in names_in(pieces))), default=[], key=lambda pieces: sum(
            len(piece.jaxpr.eqns) for piece in pieces))


def names_in(pieces: Sequence[Piece]) -> Counter[str]:
    return Counter(eqn.primitive.name for piece in pieces for eqn in piece.jaxpr.eqns)


def compile_for_gpu(max_session: Any, name: str, pieces: Sequence[Piece], folder: Path) -> None:
    from max.graph import Module
    module = Module()
    extensions = builder.build(module, json.dumps({"pieces": [
        [f"piece_{number}", encode(piece.jaxpr)] for number, piece in enumerate(pieces)]}),
        {"directory": str(folder), "device": 0})
    compiled = max_session.compile(module, custom_extensions=list(map(str, extensions)))
    compiled.export_mef(str(folder / f"{name}.mef"))


def main(folder: Path, *chosen: str) -> None:
    max_session = session()
    for name in chosen or [*sorted(harness.families()), *COMPOSED]:
        if isinstance(harness.families().get(name), Exception):
            continue
        pieces = pieces_of(name)
        if not pieces:
            print(f"{name}: nothing of it is for an accelerator", flush=True)
            continue
        equations = ", ".join(names_in(pieces))
        try:
            compile_for_gpu(max_session, name, pieces, folder)
            print(f"{name}: OK {equations}", flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[-600:]!r} ({equations})",
                  flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
