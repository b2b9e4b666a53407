"""mgrid, ogrid, r_, c_: arrays made by indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax.numpy import _creation as creation
from maxjax.numpy import _joining as joining
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _shape as shapes

__all__ = ["c_", "mgrid", "ogrid", "r_"]


def _line(key: slice) -> Any:
    start = key.start or 0
    step = 1 if key.step is None else key.step
    if isinstance(step, complex):
        return ranges.linspace(start, key.stop, int(abs(step)))
    return ranges.arange(start, key.stop, step)


class _Grid:
    """``grid[0:2, 0:3]``: the coordinates of a grid."""

    def __init__(self, name: str, sparse: bool):
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(key)
        if not key:
            return [] if self.sparse else creation.zeros((0,), int)
        lines = [_line(k) for k in key]
        dtype = np.result_type(*[np.dtype(x.dtype) for x in lines])
        lines = [x.astype(dtype) for x in lines]
        grids = ranges.meshgrid(*lines, indexing="ij", sparse=self.sparse)
        if self.sparse:
            return grids
        return joining.stack(grids, 0)

    def __repr__(self) -> str:
        return f"jax.numpy.{self.name}"


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class _Joined:
    """``r_[1:4, 0, x]``: slices, numbers and arrays joined along an axis."""

    def __init__(self, name: str, axis: int, rank: int, position: int):
        self.name = name
        self.axis = axis
        self.rank = rank
        self.position = position

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, rank, position = self.axis, self.rank, self.position
        if isinstance(items[0], str):
            directive = items.pop(0)
            if directive in ("r", "c"):     # a matrix: a vector is its row or its column
                return self._matrix(items, column=directive == "c")
            numbers = [int(part) for part in directive.split(",")]
            axis, rank, position = (*numbers, *(self.axis, 1, -1)[len(numbers):])
        parts = []
        for item in items:
            if isinstance(item, slice):
                x = _line(item)
            else:
                x = creation.asarray(item)
            had = x.ndim
            if had < rank:
                x = creation.array(x, ndmin=rank)
                if position >= 0 and had:
                    order = list(range(rank - had))
                    own = list(range(rank - had, rank))
                    for offset, dim in enumerate(own):
                        order.insert(position + offset, dim)
                    x = shapes.transpose(x, order)
            parts.append(x)
        return joining.concatenate(parts, axis)

    def _matrix(self, items: list[Any], column: bool) -> Any:
        x = _Joined(self.name, self.axis, 1, -1)[tuple(items)]
        if x.ndim == 1 and column:
            return x[:, None]
        return joining.atleast_2d(x)

    def __repr__(self) -> str:
        return f"jax.numpy.{self.name}"


r_ = _Joined("r_", 0, 1, -1)
c_ = _Joined("c_", -1, 2, 0)
