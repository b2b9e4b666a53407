"""The graph backend for one accelerator: its programs take and give buffers of its memory."""

from __future__ import annotations

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

_CUMULATIVE = "maxjax's cumulative kernels, and MAX's, are for processors"
_SORTS = "maxjax's sorting kernel, and MAX's, are for processors"
_SCATTERS = "maxjax's scatter kernel is for processors, and MAX's have no order of updates"
_WINDOWS = "maxjax's window kernels are for processors"

# What the CPU's graphs do with a loop of ours that no operations of MAX stand in for.
HOST_STEPS = {
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "true_positions"), _CUMULATIVE),
    **dict.fromkeys(("sort", "top_k"), _SORTS),
    **dict.fromkeys(("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min",
                     "scatter-max", "scatter_rows", "dynamic_update_slice"), _SCATTERS),
    **dict.fromkeys(("conv_general_dilated", "reduce_window_sum", "reduce_window_max",
                     "reduce_window_min", "select_and_scatter_add"), _WINDOWS),
}


def device_reason(eqn: JaxprEqn) -> str | None:
    """Why an equation runs on the host; None if it can be compiled for an accelerator."""
    reason = HOST_STEPS.get(eqn.primitive.name) or host_reason(eqn)
    if reason is not None:
        return reason
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
