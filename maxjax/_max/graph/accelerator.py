"""The graph backend for one accelerator: its programs take and give buffers of its memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxjax._ir.jaxpr import Jaxpr, JaxprEqn, subjaxprs
from maxjax._max.device_memory import DeviceExecutable, DeviceMemory
from maxjax._max.graph.backend import GraphBackend, Prepared
from maxjax._max.mojo import crew
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.versions import cpu_target
from maxjax._transforms.partition import Piece, host_reason, partition

_SORTS = "maxjax's sorting kernel, and MAX's, are for processors"
_SCATTERS = "maxjax's scatter kernel is for processors, and MAX's have no order of updates"
_LARGE_WINDOWS = "a selection in windows has operations for each of their places"
# So many places a window may have for that.
_MOST_PLACES = 64

# What the CPU's graphs do with a loop of ours that no operations of MAX stand in for.
HOST_STEPS = {
    **dict.fromkeys(("sort", "top_k"), _SORTS),
    **dict.fromkeys(("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min",
                     "scatter-max", "scatter_rows", "true_positions"), _SCATTERS),
}
_SELECTIONS = ("select_and_gather_add", "select_and_scatter_add")


def device_reason(eqn: JaxprEqn) -> str | None:
    """Why an equation runs on the host; None if it can be compiled for an accelerator."""
    reason = HOST_STEPS.get(eqn.primitive.name) or host_reason(eqn)
    if reason is not None:
        return reason
    if (eqn.primitive.name in _SELECTIONS
            and math.prod(eqn.params["window_dimensions"]) > _MOST_PLACES):
        return _LARGE_WINDOWS
    for inner in subjaxprs(eqn.params):
        for inner_eqn in inner.eqns:
            reason = device_reason(inner_eqn)
            if reason is not None:
                return f"its body has {inner_eqn.primitive.name}: {reason}"
    return None


class AcceleratorBackend(GraphBackend):
    """Compiles for one accelerator.

    Args:
      memory: the accelerator's.
    """

    def __init__(self, memory: DeviceMemory, pack: Callable[[], Pack]) -> None:
        super().__init__(pack)
        self.memory = memory

    def _pieces(self, jaxpr: Jaxpr) -> list[Piece]:
        return partition(jaxpr, device_reason)

    def _target(self) -> str:
        return f"{cpu_target()} {self.memory.target}"

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "device": self.memory.compiled_for}

    def _loaded(self, prepared: Prepared, path: Path) -> dict[int, DeviceExecutable]:
        models = self.memory.sessions_models(path)
        crew.start(self._pack(), graphs=True)
        return {number: DeviceExecutable(self.memory, models[f"piece_{number}"])
                for number, piece in enumerate(prepared.pieces) if not piece.on_host}
