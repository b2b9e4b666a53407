"""The graph backend for one accelerator: its programs take and give buffers of its memory."""

from __future__ import annotations

import ctypes.util
import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.jaxpr import Jaxpr, JaxprEqn, every_equation, subjaxprs
from maxjax._max.device_memory import DeviceExecutable, DeviceMemory
from maxjax._max.graph.backend import GraphBackend, Prepared
from maxjax._max.mojo import crew
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.versions import cpu_target
from maxjax._primitives.gather_plan import scatter_plan
from maxjax._transforms.partition import Piece, host_reason, partition

_SORTS = "maxjax's sorting kernel, and MAX's, are for processors"
_LARGE_SCATTERS = "each element that a scatter may write looks at all of its updates"
_LARGE_WINDOWS = "a selection in windows has operations for each of their places"
# So many places a window may have for that.
_MOST_PLACES = 64
# So many comparisons a scatter may take there: some milliseconds.
_MOST_COMPARISONS = 1 << 33

# What the CPU's graphs do with a loop of ours that no operations of MAX stand in for.
HOST_STEPS = dict.fromkeys(("sort", "top_k"), _SORTS)
_SCATTERS = ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
_PRODUCTS = ("dot_general", "conv_general_dilated")
_OF_CUBLAS = (dtypes.float32, dtypes.bfloat16, dtypes.float16)
# So many operations make a product a large one.
_LARGE_PRODUCT = 1 << 31
_SELECTIONS = ("select_and_gather_add", "select_and_scatter_add")


def device_reason(eqn: JaxprEqn) -> str | None:
    """Why an equation runs on the host; None if it can be compiled for an accelerator."""
    reason = HOST_STEPS.get(eqn.primitive.name) or host_reason(eqn)
    if reason is not None:
        return reason
    if (eqn.primitive.name in _SELECTIONS
            and math.prod(eqn.params["window_dimensions"]) > _MOST_PLACES):
        return _LARGE_WINDOWS
    if _comparisons(eqn) > _MOST_COMPARISONS:
        return _LARGE_SCATTERS
    for inner in subjaxprs(eqn.params):
        for inner_eqn in inner.eqns:
            reason = device_reason(inner_eqn)
            if reason is not None:
                return f"its body has {inner_eqn.primitive.name}: {reason}"
    return None


def _comparisons(eqn: JaxprEqn) -> int:
    """How many places the elements that a scatter may write look at."""
    operands = [atom.aval for atom in eqn.invars]
    name = eqn.primitive.name
    if name == "true_positions":
        return eqn.outvars[0].aval.size * operands[0].size
    if name == "scatter_rows":
        return operands[0].size * operands[1].size
    if name not in _SCATTERS or not all(aval.size for aval in operands[::2]):
        return 0
    plan = scatter_plan(*(aval.shape for aval in operands), eqn.params["dimension_numbers"])
    return operands[0].size * plan.count


def suits_cublas(jaxprs: Sequence[Jaxpr]) -> bool:
    """Whether cuBLAS is to compute the products of a program: all of them or none.

    It takes 0.4 of the time of MAX's own for large ones, and more for small ones (a perceptron's
    training step 1.8 times as long); whole numbers it refuses.
    """
    products = [eqn for jaxpr in jaxprs for eqn in every_equation(jaxpr)
                if eqn.primitive.name in _PRODUCTS]
    return (all(atom.aval.dtype in _OF_CUBLAS for eqn in products
                for atom in (*eqn.invars, *eqn.outvars))
            and any(eqn.primitive.flops_of(
                [atom.aval for atom in eqn.invars], [atom.aval for atom in eqn.outvars],
                eqn.params) >= _LARGE_PRODUCT for eqn in products))


@functools.cache
def has_cublas() -> bool:
    """Whether the system's loader knows cuBLAS."""
    return all(ctypes.util.find_library(name) for name in ("cublas", "cublasLt"))


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

    def _target(self, pieces: Sequence[Piece]) -> str:
        products = " cuBLAS" if self._uses_cublas(pieces) else ""
        return f"{cpu_target()} {self.memory.target}{products}"

    def _options(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        return {**super()._options(pieces), "device": self.memory.compiled_for,
                "vendor_products": self._uses_cublas(pieces)}

    def _uses_cublas(self, pieces: Sequence[Piece]) -> bool:
        return (not self.memory.is_simulated and self.memory.api == "cuda"
                and suits_cublas([piece.jaxpr for piece in pieces if not piece.on_host])
                and has_cublas())

    def _loaded(self, prepared: Prepared, path: Path) -> dict[int, DeviceExecutable]:
        models = self.memory.sessions_models(path)
        crew.start(self._pack(), graphs=True)
        return {number: DeviceExecutable(self.memory, models[f"piece_{number}"])
                for number, piece in enumerate(prepared.pieces) if not piece.on_host}
