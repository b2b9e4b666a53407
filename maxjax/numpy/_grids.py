"""mgrid, ogrid, r_, c_: arrays made by indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax.numpy import _creation as creation
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining as joining
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _shape as shapes
from maxjax.numpy._promotion import concrete

__all__ = ["c_", "mgrid", "ogrid", "r_"]


def _line(name: str, key: slice) -> Any:
    start: Any
    stop: Any
    start, stop, step = (
        None if value is None else concrete(value, f"slice {part} of jnp.{name}")
        for part, value in (("start", key.start), ("stop", key.stop), ("step", key.step)))
    start = 0 if start is None else start
    if isinstance(step, complex):
        return ranges.linspace(start, stop, int(abs(step)))
    return ranges.arange(start, stop, 1 if step is None else step)


class _Grid:
    """``grid[0:2, 0:3]``: the coordinates of a grid."""

    def __init__(self, name: str, sparse: bool):
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(self.name, key)
        if not key:
            return [] if self.sparse else filled.zeros((0,), int)
        lines = [_line(self.name, k) for k in key]
        dtype = dtypes.canonical(np.result_type(*[np.dtype(x.dtype) for x in lines]))
        lines = [x.astype(dtype) for x in lines]
        grids = ranges.meshgrid(*lines, indexing="ij", sparse=self.sparse)
        if self.sparse:
            return list(grids)
        return joining.stack(grids, 0)

    def __repr__(self) -> str:
        return f"jax.numpy.{self.name}"


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class _Joined:
    """``r_[1:4, 0, x]``: slices, numbers and arrays concatenated along an axis."""

    def __init__(self, name: str, axis: int, rank: int, position: int):
        self.name = name
        self.axis = axis
        self.rank = rank
        self.position = position

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, rank, position, matrix = self.axis, self.rank, self.position, None
        if isinstance(items[0], str):
            directive = items.pop(0)
            if directive in ("r", "c"):     # a matrix: a vector is its row or its column
                matrix = "rc".index(directive)
            else:
                try:
                    numbers = [int(part) for part in directive.split(",")[:3]]
                except ValueError as error:
                    raise ValueError(f"could not understand directive {directive!r}") from error
                axis, rank, position = (*numbers, *(axis, rank, position)[len(numbers):])
        parts = []
        for item in items:
            if isinstance(item, str):
                raise ValueError("string directive must be placed at the beginning")
            scalar = isinstance(item, slice)
            x = _line(self.name, item) if scalar else creation.asarray(item)
            had = 0 if scalar else x.ndim
            x = creation.array(x, ndmin=rank)
            if position != -1 and had < rank:
                # Its first own dimension goes to that position, counted as in NumPy.
                shift = rank - abs(rank + position + 1) % rank
                order = list(range(rank))
                x = shapes.transpose(x, order[shift:] + order[:shift])
            parts.append(x)
        x = joining.concatenate(parts, axis)
        return x if matrix is None or x.ndim != 1 else shapes.expand_dims(x, matrix)

    def __repr__(self) -> str:
        return f"jax.numpy.{self.name}"


class RClass(_Joined):
    """The class of ``r_``."""

    def __init__(self) -> None:
        super().__init__("r_", 0, 1, -1)


class CClass(_Joined):
    """The class of ``c_``."""

    def __init__(self) -> None:
        super().__init__("c_", -1, 2, 0)


r_ = RClass()
c_ = CClass()
