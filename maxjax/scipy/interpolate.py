"""jax.scipy.interpolate: interpolation on a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import check_arraylike, promote_inexact

explain_missing_names(__name__)


def _points_of(xi: Any) -> Any:
    """(..., dimensions): each entry of a tuple has the coordinates of one dimension."""
    if isinstance(xi, tuple):
        return jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, xi)), -1)
    return jnp.asarray(xi)


class RegularGridInterpolator:
    """Interpolates values given on a rectangular grid.

    Args:
      points: the increasing coordinates of each of the grid's N dimensions.
      values: of shape ``(len(points[0]), ..., len(points[N - 1]), ...)``.
      method: "linear" or "nearest".
      bounds_error: not implemented in JAX, which refuses True.
      fill_value: the result outside the grid; None to extrapolate.

    Raises:
      NotImplementedError: ``bounds_error`` is true.
      ValueError: the shapes are inconsistent.

    >>> import maxjax.scipy.interpolate
    >>> grid = (jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 1.0]))
    >>> interpolate = jax.scipy.interpolate.RegularGridInterpolator(
    ...     grid, jnp.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]))
    >>> interpolate(jnp.array([[0.5, 0.5], [2.5, 0.0]]))
    Array([1.5, nan], dtype=float32)
    """

    def __init__(self, points: Sequence[Any], values: Any, method: str = "linear",
                 bounds_error: bool = False, fill_value: Any = np.nan):
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined")
        if bounds_error:
            raise NotImplementedError("`bounds_error` takes no effect under JIT")
        check_arraylike("RegularGridInterpolator", values, *points)
        values = jnp.asarray(values)
        if len(points) > values.ndim:
            raise ValueError(f"there are {len(points)} point arrays, but values has "
                             f"{values.ndim} dimensions")
        values, = map(jnp.asarray, promote_inexact("RegularGridInterpolator", values))
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            fill_value = jnp.asarray(fill_value)
            if fill_value.dtype.kind == "c" and values.dtype.kind != "c":
                raise ValueError("fill_value must be either 'None' or of a type compatible with "
                                 "values")
        grid = []
        for dimension, coordinates in enumerate(points):
            axis = jnp.asarray(coordinates)
            if axis.ndim != 1:
                raise ValueError(f"the points in dimension {dimension} must be 1-dimensional")
            if values.shape[dimension] != axis.shape[0]:
                raise ValueError(f"there are {axis.shape[0]} points and "
                                 f"{values.shape[dimension]} values in dimension {dimension}")
            grid.append(axis)
        self.method = method
        self.bounds_error = bounds_error
        self.fill_value = fill_value
        self.grid = tuple(grid)
        self.values = values

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The values at points.

        Args:
          xi: shape ``(..., N)``, or a tuple of N arrays of coordinates.
          method: overrides the interpolator's.
        """
        method = self.method if method is None else method
        if method not in ("linear", "nearest"):
            raise ValueError(f"method {method!r} is not defined")
        rank = len(self.grid)
        points = _points_of(xi)
        if points.ndim == 1:
            points = points.reshape(-1, rank)
        if points.shape[-1] != rank:
            raise ValueError(f"the requested sample points xi have dimension {points.shape[-1]}, "
                             f"but this RegularGridInterpolator has dimension {rank}")
        flat = points.reshape(-1, rank)
        lows, fractions, outside = [], [], jnp.zeros(flat.shape[0], bool)
        for dimension, axis in enumerate(self.grid):
            x = flat[:, dimension]
            low = jnp.clip(jnp.searchsorted(axis, x) - 1, 0, axis.size - 2)
            lows.append(low)
            fractions.append((x - axis[low]) / (axis[low + 1] - axis[low]))
            outside |= (x < axis[0]) | (x > axis[-1])
        if method == "nearest":
            nearest = [jnp.where(t <= 0.5, low, low + 1)
                       for low, t in zip(lows, fractions, strict=True)]
            result = self.values[tuple(nearest)]
        else:
            result = self._linear(lows, fractions)
        if self.fill_value is not None:
            outside = outside.reshape(-1, *(1,) * (result.ndim - 1))
            result = jnp.where(outside, self.fill_value, result)
        return result.reshape(*points.shape[:-1], *self.values.shape[rank:])

    def _linear(self, lows: list[Any], fractions: list[Any]) -> Any:
        """The corners of the cell around each point, weighted by proximity."""
        extra = (1,) * (self.values.ndim - len(lows))
        total: Any = 0.0
        for corner in itertools.product((0, 1), repeat=len(lows)):
            weight: Any = 1.0
            for high, t in zip(corner, fractions, strict=True):
                weight = weight * (t if high else 1 - t)
            places = tuple([low + high for low, high in zip(lows, corner, strict=True)])
            total = total + self.values[places] * weight.reshape(-1, *extra)
        return total
