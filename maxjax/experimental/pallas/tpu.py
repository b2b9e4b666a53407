"""jax.experimental.pallas.tpu: what kernels for TPUs name, as far as it can be interpreted.

Memory spaces are one memory here, and a copy is made when it is started.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._ir.types import ShapedArray
from maxjax.experimental.pallas._call import interpreted
from maxjax.experimental.pallas._specs import GridSpec, MemoryRef, _Space, no_block_spec

explain_missing_names(__name__)


class MemorySpace(_Space, enum.Enum):
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __repr__(self) -> str:
        return self.name


VMEM, VMEM_SHARED, SMEM = MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM
CMEM, SEMAPHORE, HBM = MemorySpace.CMEM, MemorySpace.SEMAPHORE, MemorySpace.HBM


class GridDimensionSemantics(enum.Enum):
    """In which order a device may take the points of a dimension; here it is always theirs."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, ARBITRARY = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.ARBITRARY
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL


class SemaphoreType(enum.Enum):
    """Semaphores, of which copies are given one; a copy here is made before anybody waits."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        return MemoryRef(ShapedArray(tuple(shape), dtypes.as_dtype("int32")), SEMAPHORE)

    def get_ref_aval(self) -> MemoryRef:
        """The type of a single one."""
        return self(())


class SideEffectType(enum.Enum):
    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of the compiler for TPUs; the interpreter ignores them."""

    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: Mapping[str, Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False


class InterpretParams:
    """What JAX's simulation of TPUs can be told; here any means ``interpret=True``."""

    def __init__(self, **params: Any):
        self.__dict__.update(params)


def force_tpu_interpret_mode(params: InterpretParams | None = None
                             ) -> contextlib.AbstractContextManager[None]:
    """Inside the context, ``pallas_call`` interprets whatever it is told."""
    return interpreted()


@dataclasses.dataclass(init=False)
class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps, and the kernel, are first given references to the first arguments.

    Attributes:
      num_scalar_prefetch: how many arguments these are.
    """

    num_scalar_prefetch: int

    def __init__(self, num_scalar_prefetch: int, grid: Any = (), in_specs: Any = no_block_spec,
                 out_specs: Any = no_block_spec, scratch_shapes: Any = ()):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


class AsyncCopyDescriptor:
    """A copy from one reference to another, made by ``start``."""

    def __init__(self, source: Any, target: Any, add: bool = False):
        self._source, self._target, self._add = source, target, add

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        value = self._source[...]
        self._target[...] = self._target[...] + value if add or self._add else value

    def wait(self) -> None:
        """Nothing: the copy is made."""

    wait_send = wait_recv = wait


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    """A copy that has not been started.

    Args:
      src_ref, dst_ref: references, or parts of them (``ref.at[...]``), of one shape.
      sem: a semaphore, for devices.
    """
    return AsyncCopyDescriptor(src_ref, dst_ref)


def async_copy(src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False
               ) -> AsyncCopyDescriptor:
    """A copy that has been started."""
    copy = AsyncCopyDescriptor(src_ref, dst_ref, add)
    copy.start(priority)
    return copy


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copies, or adds, what one reference holds to another."""
    AsyncCopyDescriptor(src_ref, dst_ref, add).start()


def roll(x: Any, shift: Any, axis: int, *, stride: int | None = None,
         stride_axis: int | None = None) -> Any:
    """``jnp.roll``; with a stride, each index of another axis is moved by so much more.

    Raises:
      ValueError: one of ``stride`` and ``stride_axis`` is given without the other.
    """
    if (stride is None) != (stride_axis is None):
        raise ValueError("stride and stride_axis must be both specified or not specified.")
    if stride is None or stride_axis is None:
        return jnp.roll(x, shift, axis)
    size = x.shape[axis]
    moved = shift + stride * lax.broadcasted_iota(jnp.int32, x.shape, stride_axis)
    positions = (lax.broadcasted_iota(jnp.int32, x.shape, axis) - moved) % size
    return jnp.take_along_axis(x, positions, axis)


def load(ref: Any, *, mask: Any = None) -> Any:
    """What a reference holds, whatever the mask: elements without it have no defined value."""
    return ref[...]


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Writes, where the mask holds."""
    ref[...] = val if mask is None else jnp.where(mask, val, ref[...])


def with_memory_space_constraint(x: Any, memory_space: Any) -> Any:
    """``x``: there is one memory."""
    return x
