"""Cutting blocks out of arrays, and putting them back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from maxjax import lax, tree_util
from maxjax import numpy as jnp
from maxjax._base import dtypes, tree_equality
from maxjax._base.source import function_location
from maxjax._ir.types import ShapedArray
from maxjax.experimental.pallas._grid import at
from maxjax.experimental.pallas._specs import (
    Blocked,
    BlockSpec,
    Element,
    NoBlockSpec,
    Squeezed,
)
from maxjax.tree_util import keystr


def uninitialized(shape: Sequence[int], dtype: Any) -> Any:
    """What nobody has written: NaN, or the least integer, or False."""
    if dtypes.is_inexact(dtype):
        return jnp.full(shape, float("nan"), dtype)
    if dtypes.is_integer(dtype):
        return jnp.full(shape, dtypes.extremes(dtype)[0], dtype)
    if dtypes.is_bool(dtype):
        return jnp.zeros(shape, dtype)
    raise NotImplementedError(f"pallas_call of arrays of {dtype}: kernels compute with numbers")


@dataclasses.dataclass
class Blocks:
    """How one array is cut.

    Attributes:
      aval: the array's type.
      dims: of each dimension how it is cut; None where the kernel sees the whole array.
      index_map: from the grid's indices, and what comes with them, to blocks.
      origin: the array's name in errors.
    """

    aval: ShapedArray
    dims: tuple[Blocked | Element | Squeezed, ...] | None
    index_map: Any
    origin: str

    @property
    def sizes(self) -> list[int]:
        """The sizes of a block in the array, with 1 for a squeezed dimension."""
        return [1 if isinstance(dim, Squeezed) else dim.block_size for dim in self.dims or ()]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the block that the kernel sees, without squeezed dimensions."""
        if self.dims is None:
            return self.aval.shape
        return tuple(dim.block_size for dim in self.dims if not isinstance(dim, Squeezed))

    def padded(self, value: Any) -> Any:
        """The array with as much around it as blocks reach over it, or see as padding."""
        if self.dims is None:
            return value
        around = [dim.padding if isinstance(dim, Element) else (0, 0) for dim in self.dims]
        wide = []
        for size, block, (before, after) in zip(value.shape, self.sizes, around, strict=True):
            size += before + after
            wide.append((before, after + -(-size // block) * block - size, 0))
        if not any(before or after for before, after, _ in wide):
            return value
        return lax.pad(value, uninitialized((), value.dtype), wide)

    def cropped(self, value: Any) -> Any:
        """The array without what was put around it."""
        if value.shape == self.aval.shape:
            return value
        starts = [dim.padding[0] if isinstance(dim, Element) else 0 for dim in self.dims or ()]
        return lax.slice(value, starts, [start + size for start, size in zip(
            starts, self.aval.shape, strict=True)])

    def starts(self, indices: Sequence[Any], sizes: Sequence[Any], more: Sequence[Any]
               ) -> list[Any]:
        """Where the block for a point of the grid begins.

        Raises:
          ValueError: the index map gives another number of indices.
        """
        if self.dims is None or self.index_map is None:
            return [0] * len(self.dims or ())
        with at(indices, sizes):
            found = self.index_map(*indices, *more)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) != len(self.dims):
            raise ValueError(
                f"Index map function {function_location(self.index_map)} for {self.origin} must "
                f"return {len(self.dims)} values to match block_shape={self.dims}. Currently "
                f"returning {len(found)} values: {found}")
        return [index if isinstance(dim, Element) else
                index * (1 if isinstance(dim, Squeezed) else dim.block_size)
                for index, dim in zip(found, self.dims, strict=True)]

    def take(self, value: Any, starts: Sequence[Any]) -> Any:
        """The block as the kernel sees it; one that reaches over the end is moved before it."""
        if self.dims is None:
            return value
        return lax.dynamic_slice(value, starts, self.sizes).reshape(self.shape)

    def put(self, value: Any, block: Any, starts: Sequence[Any]) -> Any:
        """The array with a block replaced."""
        if self.dims is None:
            return block
        return lax.dynamic_update_slice(value, block.reshape(self.sizes), starts)


def blocks_of(aval: ShapedArray, spec: Any, origin: str) -> Blocks:
    """How a spec cuts an array.

    Raises:
      ValueError: the spec has another number of dimensions.
      NotImplementedError: it has dimensions of a kind that only devices have.
    """
    if isinstance(spec, NoBlockSpec) or spec.block_shape is None:
        return Blocks(aval, None, None, origin)
    if not isinstance(spec, BlockSpec):
        raise ValueError(f"the block spec of {origin} must be a BlockSpec, got {spec!r}")
    dims = tuple(Squeezed() if dim is None else
                 Blocked(dim.__index__()) if hasattr(dim, "__index__") else dim
                 for dim in spec.block_shape)
    if len(dims) != len(aval.shape):
        raise ValueError(f"Block shape for {origin} (= {dims}) must have the same number of "
                         f"dimensions as the array shape {aval.shape}.")
    for dim in dims:
        if not isinstance(dim, (Blocked, Element, Squeezed)):
            raise NotImplementedError(
                f"pallas_call with a block dimension {dim!r} for {origin}: here blocks have sizes "
                "that are known beforehand (integers, Element, or None)")
    return Blocks(aval, dims, spec.index_map, origin)


def specs_for(specs: Any, tree: Any, count: int, name: str, what: str) -> list[Any]:
    """A spec for each leaf of a pytree.

    Raises:
      ValueError: the specs are a tree of another kind.
    """
    if isinstance(specs, NoBlockSpec):
        return [specs] * count
    found, own = tree_util.tree_flatten(
        specs, is_leaf=lambda x: isinstance(x, (BlockSpec, NoBlockSpec)))
    if own != tree:
        lines = [f"{f'at {keystr(path)}, ' if path else ''}`{name}` is {mine} but `{what}` is "
                 f"{theirs}, so {why}"
                 for path, mine, theirs, why in tree_equality.structure_differences(
                     specs, tree_util.tree_unflatten(tree, [0] * count), "pytree leaf")]
        shown = "\n".join(f"    * {line}" for line in lines[:5])
        raise ValueError(f"Pytree for `{name}` and `{what}` do not match. There are {len(lines)} "
                         f"mismatches, including:\n{shown}")
    return found
