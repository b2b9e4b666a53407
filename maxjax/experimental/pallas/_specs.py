"""How a kernel's arrays are cut into blocks, and where they lie."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.types import ShapedArray


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A dimension cut into blocks: the index map gives the block's number.

    >>> pl = jax.experimental.pallas
    >>> pl.Blocked(8)
    Blocked(block_size=8)
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """A dimension of which a block begins anywhere: the index map gives its first position.

    Attributes:
      padding: elements of no value before and after the array.

    >>> pl = jax.experimental.pallas
    >>> windows = pl.BlockSpec((pl.Element(3),), lambda i: 2 * i)
    >>> x = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    >>> rows = pl.BlockSpec((None, 3), lambda i: (i, 0))
    >>> def kernel(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...]
    >>> pl.pallas_call(kernel, x, grid=2, in_specs=[windows], out_specs=rows,
    ...                interpret=True)(jnp.arange(5.))
    Array([[0., 1., 2.],
           [2., 3., 4.]], dtype=float32)
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        return f"Element({self.block_size})" if self.padding == (0, 0) else (
            f"Element({self.block_size}, padding={self.padding})")


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """A dimension of which a block has one position, and which the kernel does not see.

    >>> pl = jax.experimental.pallas
    >>> pl.BlockSpec((pl.squeezed, 8), lambda i: (i, 0)).block_shape
    (Squeezed(), 8)
    """


squeezed = Squeezed()


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """A dimension of which the index map gives a slice; ``pallas_call`` refuses it here.

    >>> pl = jax.experimental.pallas
    >>> pl.BoundedSlice(8)
    BoundedSlice(block_size=8)
    """

    block_size: int


class RevisitMode(enum.Enum):
    """When a device may come back to a block; the interpreter has no pipeline.

    >>> jax.experimental.pallas.RevisitMode.ANY
    <RevisitMode.ANY: 'any'>
    """

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many buffers a device's pipeline has for a block; the interpreter has no pipeline.

    >>> pl = jax.experimental.pallas
    >>> pl.Buffered(2).buffer_count
    2
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


class MemoryRef:
    """The type of a reference that a kernel is given for its own use.

    >>> pl = jax.experimental.pallas
    >>> pl.ANY((2,), jnp.float32).shape
    (2,)
    """

    def __init__(self, inner_aval: ShapedArray, memory_space: Any):
        self.inner_aval = inner_aval
        self.memory_space = memory_space

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)

    def __repr__(self) -> str:
        return f"MemoryRef(inner_aval={self.inner_aval!r}, memory_space={self.memory_space!r})"


class _Space:
    """What a memory space's name does: called, it gives the type of a reference there."""

    value: Any

    def __str__(self) -> str:
        return str(self.value)

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return MemoryRef(ShapedArray(tuple(shape), dtypes.canonical(dtype)), self)


class MemorySpace(_Space, enum.Enum):
    """Memory that any device has.

    >>> pl = jax.experimental.pallas
    >>> pl.ANY((2,), jnp.float32)
    MemoryRef(inner_aval=ShapedArray(float32[2]), memory_space=<MemorySpace.ANY: 'any'>)
    """

    ANY = "any"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


ANY, HOST = MemorySpace.ANY, MemorySpace.HOST


class NoBlockSpec:
    """Stands for specs that are not given: the kernel sees whole arrays."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


@dataclasses.dataclass
class BlockSpec:
    """How an array is cut into blocks.

    Attributes:
      block_shape: of each dimension a block's size, or ``Element``, or None, for one position that
        the kernel does not see; None means the whole array.
      index_map: from the indices in the grid to the number of the block in each dimension; without
        one it is the first block.
      memory_space, pipeline_mode: for devices; the interpreter ignores them.

    >>> pl = jax.experimental.pallas
    >>> pl.BlockSpec((8, 128), lambda i, j: (i, j)).block_shape
    (8, 128)
    """

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    memory_space: Any | None = dataclasses.field(kw_only=True, default=None)

    def replace(self, **changes: Any) -> BlockSpec:
        """A copy with changes."""
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(init=False)
class GridSpec:
    """The grid of a kernel, and how its inputs and outputs are cut along it.

    >>> pl = jax.experimental.pallas
    >>> pl.GridSpec(grid=4).grid
    (4,)
    """

    grid: tuple[Any, ...]
    in_specs: Any
    out_specs: Any
    scratch_shapes: Any

    def __init__(self, grid: Any = (), in_specs: Any = no_block_spec,
                 out_specs: Any = no_block_spec, scratch_shapes: Any = ()):
        self.grid = grid_of(grid)
        self.in_specs = list(in_specs) if isinstance(in_specs, tuple) else in_specs
        self.out_specs = out_specs
        self.scratch_shapes = tuple(scratch_shapes) if isinstance(scratch_shapes, list) \
            else scratch_shapes


def grid_of(grid: Any) -> tuple[Any, ...]:
    """A grid as a tuple.

    Raises:
      ValueError: it is something else than sizes.
    """
    sizes = (grid,) if not isinstance(grid, (tuple, list)) else tuple(grid)
    for size in sizes:
        if isinstance(size, bool) or not (
                hasattr(size, "__index__") or hasattr(size, "dtype")):
            raise ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid}")
    return sizes


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, for a device's scheduler.

    >>> pl = jax.experimental.pallas
    >>> pl.CostEstimate(flops=10, transcendentals=0, bytes_accessed=80).flops
    10
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0
