"""jax.scipy.ndimage: interpolation of images."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.trace import Array

explain_missing_names(__name__)


def _mirror(index: Any, size: int) -> Any:
    turn = 2 * (size - 1) if size > 1 else 1
    place = index % turn
    return jnp.minimum(place, turn - place) if size > 1 else jnp.zeros_like(index)


def _reflect(index: Any, size: int) -> Any:
    place = index % (2 * size)
    return jnp.minimum(place, 2 * size - 1 - place)


_MODES: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirror,
    "reflect": _reflect,
}


def _round_half_away(x: Any) -> Any:
    return x if not dtypes.is_inexact(x.dtype) else jnp.trunc(x + jnp.where(x >= 0, 0.5, -0.5))


def map_coordinates(input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant",
                    cval: Any = 0.0) -> Array:
    """The values of an array at positions between its elements.

    Args:
      coordinates: an array of indices for each axis, all of one shape.
      order: 0 for the nearest element, 1 for linear interpolation.
      mode: the values outside: "constant" (``cval``), "nearest", "wrap", "mirror" or "reflect".

    Raises:
      ValueError: the number of coordinates is not the number of axes.
      NotImplementedError: another order or mode.

    >>> x = jnp.array([[0., 1.], [2., 3.]])
    >>> jax.scipy.ndimage.map_coordinates(x, [jnp.array([0.5]), jnp.array([0.5])], order=1)
    Array([1.5], dtype=float32)
    """
    x = jnp.asarray(input)
    places = [jnp.asarray(c) for c in coordinates]
    fill = jnp.asarray(cval, x.dtype)
    if len(places) != x.ndim:
        raise ValueError("coordinates must be a sequence of length input.ndim, but "
                         f"{len(places)} != {x.ndim}")
    if mode not in _MODES:
        raise NotImplementedError(
            f"jax.scipy.ndimage.map_coordinates does not yet support mode {mode}. Currently "
            f"supported modes are {set(_MODES)}.")
    if order not in (0, 1):
        raise NotImplementedError(
            "jax.scipy.ndimage.map_coordinates currently requires order<=1")
    return _interpolated(x, places, fill, order, mode)


@functools.partial(make_jit, static_argnums=(3, 4))
def _interpolated(x: Any, places: Sequence[Any], fill: Any, order: int, mode: str) -> Any:
    corners = []       # the neighbours along each axis: index, whether it is inside, weight
    for place, size in zip(places, x.shape):
        if order == 0:
            index = _round_half_away(place).astype(jnp.int32)
            near: list[Any] = [(index, 1)]
        else:
            floor = jnp.floor(place)
            upper = place - floor
            index = floor.astype(jnp.int32)
            near = [(index, 1 - upper), (index + 1, upper)]
        parts = []
        for at, weight in near:
            valid = (at >= 0) & (at < size) if mode == "constant" else True
            parts.append((jnp.clip(_MODES[mode](at, size), 0, size - 1) if mode == "constant"
                          else _MODES[mode](at, size), valid, weight))
        corners.append(parts)
    terms = []
    for chosen in itertools.product(*corners):
        indices, valid, weights = zip(*chosen)
        value = x[indices]
        if mode == "constant":
            value = jnp.where(functools.reduce(operator.and_, valid), value, fill)
        terms.append(functools.reduce(operator.mul, weights) * value)
    result = functools.reduce(operator.add, terms)
    if not dtypes.is_inexact(x.dtype):
        result = _round_half_away(result)
    return result.astype(x.dtype)
