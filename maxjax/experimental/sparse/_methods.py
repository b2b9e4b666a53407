"""The operators and methods of BCOO arrays, installed on the class."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax.experimental.sparse import _ops
from maxjax.experimental.sparse._bcoo import BCOO, JAXSparse


def transpose(self: BCOO, axes: Sequence[int] | None = None) -> BCOO:
    """The array with its axes in another order."""
    permutation = tuple(range(self.ndim))[::-1] if axes is None else axes
    return _ops.bcoo_transpose(self, permutation=permutation)


def reshape(self: BCOO, *args: Any, **kwargs: Any) -> BCOO:
    """The array in another shape; one size may be -1."""
    shape = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    known = math.prod(size for size in shape if size != -1)
    sizes = [self.size // known if size == -1 else size for size in shape]
    return _ops.bcoo_reshape(self, new_sizes=sizes, **kwargs)


def sum(self: BCOO, axis: int | Sequence[int] | None = None) -> Any:
    """The sums along axes, sparse; a dense scalar along all of them, the default."""
    if axis is None:
        axes = tuple(range(self.ndim))
    else:
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
    result = _ops.bcoo_reduce_sum(self, axes=tuple(a % self.ndim for a in axes))
    return result if result.ndim else result.todense()


def sum_duplicates(self: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """Each coordinate once, in order; without zeros if ``remove_zeros``."""
    return _ops.sum_duplicates(self, nse, remove_zeros)


def sort_indices(self: BCOO) -> BCOO:
    """The coordinates in order."""
    return _ops.bcoo_sort_indices(self)


def update_layout(self: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                  on_inefficient: str = "error") -> BCOO:
    """The array with other batch and dense dimensions: see ``bcoo_update_layout``."""
    return _ops.bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense,
                                   on_inefficient=on_inefficient)


def _divided(self: BCOO, other: Any) -> BCOO:
    if isinstance(other, JAXSparse):
        raise NotImplementedError("sparse rule for div is not implemented between sparse arrays")
    # A Python scalar has no elements to gather, and is weakly typed.
    divisor = _gathered(self, other) if jnp.ndim(other) else other
    return self._like(self.data / divisor)


def _gathered(self: BCOO, other: Any) -> Any:
    """The values of a dense operand at the stored elements."""
    ones = self._like(jnp.ones(self.data.shape, jnp.result_type(other)))
    return _ops.bcoo_multiply_dense(ones, other)


def _power(self: BCOO, exponent: Any) -> BCOO:
    if not isinstance(exponent, int) or exponent < 1:
        raise NotImplementedError("sparse rule for pow is not implemented because it would result "
                                  "in dense output, but for positive integers")
    return _alone(self)._like(_alone(self).data ** exponent)


def _alone(self: BCOO) -> BCOO:
    """The array with each coordinate once, for nonlinear operations."""
    return self if self.unique_indices else _ops.sum_duplicates(self, self.nse, False)


def _absolute(self: BCOO) -> BCOO:
    mat = _alone(self)
    return mat._like(jnp.abs(mat.data))


def _refused(name: str) -> Any:
    def refuse(self: BCOO, other: Any) -> Any:
        raise NotImplementedError(
            f"sparse rule for {name} is not implemented because it would result in dense output. "
            "If this is your intent, use sparse.todense() to convert your arguments to dense "
            "matrices.")
    return refuse


def _getitem(self: BCOO, item: Any) -> BCOO:
    items = item if isinstance(item, tuple) else (item,)
    if any(x is None or not isinstance(x, (slice, int, np.integer, type(Ellipsis)))
           for x in items):
        raise NotImplementedError("sparse arrays are indexed by integers, slices and ...")
    if Ellipsis in items:
        place = items.index(Ellipsis)
        items = (*items[:place], *[slice(None)] * (self.ndim - len(items) + 1),
                 *items[place + 1:])
    if len(items) > self.ndim:
        raise IndexError(f"Too many indices: {self.ndim}-dimensional array indexed with "
                         f"{len(items)} regular indices.")
    items = (*items, *[slice(None)] * (self.ndim - len(items)))
    starts, stops, steps, gone, flipped = [], [], [], [], []
    for axis, (x, size) in enumerate(zip(items, self.shape, strict=True)):
        if isinstance(x, slice):
            places = range(size)[x]
            if places and places.step < 0:
                places = places[::-1]
                flipped.append(axis)
        else:
            index = operator.index(x)
            if not -size <= index < size:
                raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
            places = range(index % size, index % size + 1)
            gone.append(axis)
        starts.append(places.start)
        stops.append(places[-1] + 1 if places else places.start)
        steps.append(places.step if places else 1)
    mat = _ops.bcoo_slice(self, start_indices=starts, limit_indices=stops, strides=steps)
    if flipped:
        mat = _ops.bcoo_rev(mat, flipped)
    return _ops.bcoo_squeeze(mat, dimensions=gone) if gone else mat


def _iterate(self: BCOO) -> Iterator[BCOO]:
    return (_getitem(self, i) for i in range(self.shape[0]))


for _function in (transpose, reshape, sum, sum_duplicates, sort_indices, update_layout):
    setattr(BCOO, _function.__name__, _function)
for _name, _function in {
        "matmul": lambda self, other: _ops.matmul(self, other),
        "rmatmul": lambda self, other: _ops.matmul(other, self),
        "neg": lambda self: self._like(-self.data), "pos": lambda self: self, "abs": _absolute,
        "mul": _ops.multiply, "rmul": _ops.multiply, "truediv": _divided, "pow": _power,
        "add": _ops.add, "radd": _ops.add, "sub": _ops.subtract,
        "rsub": lambda self, other: _ops.subtract(other, self),
        "getitem": _getitem, "iter": _iterate,
        **{name: _refused(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}}.items():
    setattr(BCOO, f"__{_name}__", _function)
BCOO.__hash__ = None      # type: ignore[assignment]
