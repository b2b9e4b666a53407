"""Samplers that pick and reorder: permutation, choice, categorical."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.layout import reshape, transpose
from maxjax._primitives.reduction import argmax_p
from maxjax._primitives.slicing import slice_in_dim
from maxjax._primitives.sorting import sort_p, top_k_p
from maxjax.lax._operands import canonical_axis
from maxjax.numpy._promotion import (
    canonical_shape,
    check_arraylike,
    concrete,
    inexact_dtype,
    promote_shapes,
)
from maxjax.random._arguments import broadcast_shapes, unstack
from maxjax.random._inversion import _gumbel, gumbel_mode
from maxjax.random._keys import jitted, single_key, split_typed
from maxjax.random._uniform import _bits, _uniform, randint

# --- permutation ----------------------------------------------------------------------------------

def permutation(key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False, *,
                out_sharding: Any = None) -> Array:
    """``x`` (or ``arange(x)``, if it is an integer) in random order along an axis.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      x: an array, or an integer.
      axis: along which.
      independent: permute each slice along ``axis`` independently.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of the shape of ``x``, or ``(x,)``; ``x`` itself is left as it is.

    Raises:
      TypeError: ``x`` is a scalar that is no integer, or ``key`` is no key.

    See also: ``choice``, ``randint``, ``split``.

    >>> jax.random.permutation(jax.random.key(0), 8)
    Array([0, 1, 5, 6, 4, 3, 2, 7], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(permutation, out_sharding, key, x, axis, independent)
    typed = single_key("permutation", key)
    check_arraylike("permutation", x)
    if not np.ndim(x):
        if not jnp.issubdtype(jnp.result_type(x), jnp.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        count = operator.index(concrete(x, "argument x of jax.random.permutation()"))
        return _shuffle(typed, jnp.arange(count), canonical_axis(axis, 1))
    x = jnp.asarray(x)
    axis = canonical_axis(axis, x.ndim)
    if independent or x.ndim == 1:
        return _shuffle(typed, x, axis)
    order = _shuffle(typed, jnp.arange(x.shape[axis]), 0)
    return jnp.take(x, order, axis)


@jitted("axis")
def _shuffle(key: Any, x: Any, axis: int) -> Any:
    # Sorts by random keys, often enough that equal keys do not matter: after r rounds the
    # probability of an unresolved tie is below x.size ** (1 - exponent).
    exponent = 3
    rounds = int(math.ceil(exponent * math.log(max(1, x.size)) / math.log(0xFFFFFFFF)))
    for _ in range(rounds):
        key, subkey = unstack(split_typed(key))
        keys = _bits(subkey, 32, x.shape)
        _, x = sort_p.bind(keys, x, dimension=axis, is_stable=True, num_keys=1)
    return x


# --- choice ---------------------------------------------------------------------------------------

def choice(key: ArrayLike, a: ArrayLike, shape: Any = (), replace: bool = True,
           p: ArrayLike | None = None, axis: int = 0, mode: str | None = None) -> Array:
    """Random elements of ``a`` along an axis, or of ``arange(a)`` if it is an integer.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      a: an array, or an integer.
      shape: of the result; its dimensions are Python ints.
      replace: elements may be drawn more than once.
      p: the probability of each element; uniform if None.
      axis: from which the elements, or slices, are drawn.
      mode: see ``gumbel``; for draws without replacement by probabilities.

    Returns:
      An array of ``shape`` in place of the axis, of ``a``'s dtype.

    Raises:
      ValueError: there are too few elements, or ``p`` has a different length.

    See also: ``permutation``, ``categorical``, ``randint``.

    >>> jax.random.choice(jax.random.key(0), 10, (3,), replace=False)
    Array([0, 1, 8], dtype=int32)
    """
    typed = single_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    shape = canonical_shape(shape)
    check_arraylike("choice", a)
    array = None
    if np.ndim(a):
        array = jnp.asarray(a)
        axis = canonical_axis(axis, array.ndim)
        count = array.shape[axis]
    else:
        axis = 0
        count = int(concrete(a, "The error occurred in jax.random.choice()"))
    draws = math.prod(shape)
    if not draws:
        if array is None:
            return jnp.zeros(shape, dtypes.canonical(dtypes.int64))
        return jnp.zeros((*array.shape[:axis], *shape, *array.shape[axis + 1:]), array.dtype)
    if count <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > count:
        raise ValueError(f"Cannot take a larger sample (size {draws}) than population (size "
                         f"{count}) when 'replace=False'")
    if p is None:
        if replace:
            index = randint(typed, shape, 0, count)
            return index if array is None else jnp.take(array, index.reshape(-1), axis).reshape(
                *array.shape[:axis], *shape, *array.shape[axis + 1:])
        lines = permutation(typed, count if array is None else array, axis)
        return _reshaped(slice_in_dim(lines, 0, draws, axis), axis, shape)
    check_arraylike("choice", p)
    p = jnp.asarray(p)
    if p.shape != (count,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. p has shape "
            f"{p.shape} and a.shape[axis] is {count}.")
    p = p.astype(inexact_dtype(p.dtype))
    if replace:
        cumulative = jnp.cumsum(p)
        values = jnp.multiply(cumulative[-1], jnp.subtract(
            1, _uniform(typed, shape, cumulative.dtype, 0.0, 1.0)))
        index = jnp.searchsorted(cumulative, values)
    else:
        scores = lax.add(_gumbel(typed, (count,), p.dtype, gumbel_mode(mode)), lax.log(p))
        _, index = top_k_p.bind(scores, k=draws, axis=0, is_stable=True)
        index = reshape(index, shape)
    index = index.astype(dtypes.canonical(dtypes.int64))
    if array is None:
        return index
    return _reshaped(jnp.take(array, index.reshape(-1), axis), axis, shape)


def _reshaped(lines: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """The drawn slices along ``axis`` in the requested shape."""
    return reshape(lines, (*lines.shape[:axis], *shape, *lines.shape[axis + 1:]))


# --- categorical ----------------------------------------------------------------------------------

def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: Any = None,
                replace: bool = True, mode: str | None = None, *,
                out_sharding: Any = None) -> Array:
    """Indices drawn with probabilities ``softmax(logits, axis)``.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      logits: unnormalized log probabilities.
      axis: along which the categories lie.
      shape: of the result; ends in the shape of ``logits`` without ``axis``.
      replace: if False, the draws along ``shape``'s leading part are distinct indices.
      mode: see ``gumbel``.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of the default integer type: the shape of ``logits`` without ``axis``, or ``shape``.

    Raises:
      ValueError: the shapes do not fit, or there are too few indices.

    See also: ``choice``, ``gumbel``, ``bernoulli``, ``multinomial``, ``jax.nn.log_softmax``.

    >>> jax.random.categorical(jax.random.key(0), jnp.log(jnp.array([0.2, 0.8])), shape=(4,))
    Array([1, 1, 1, 1], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(categorical, out_sharding, key, logits, axis, shape, replace, mode)
    typed = single_key("categorical", key)
    check_arraylike("categorical", logits)
    logits = jnp.asarray(logits)
    dtype = logits.dtype
    if not logits.ndim:
        raise IndexError("index -1 is out of bounds for axis 0 with size 0")
    if not -logits.ndim <= axis < logits.ndim:
        raise IndexError(f"index {axis} is out of bounds for axis 0 with size {logits.ndim}")
    if not dtypes.is_floating(dtype):
        mode = gumbel_mode(mode)
        raise ValueError(f"dtype argument to `gumbel` must be a float dtype, got {dtype.name}")
    axis = canonical_axis(axis, logits.ndim)
    rest = tuple(size for dim, size in enumerate(logits.shape) if dim != axis)
    if shape is None:
        shape = rest
    else:
        shape = canonical_shape(shape)
        if broadcast_shapes(shape, rest) != shape:
            raise ValueError(f"Incompatible shapes for broadcasting: shapes={[shape, rest]}")
    leading = shape[:len(shape) - len(rest)]
    mode = gumbel_mode(mode)
    index_dtype = dtypes.canonical(dtypes.int64)
    if replace:
        position = len(leading) + axis
        inner = list(shape[len(leading):])
        inner.insert(axis, logits.shape[axis])
        noise = _gumbel(typed, (*leading, *inner), dtype, mode)
        scores = jnp.add(*promote_shapes("", noise, logits))
        return argmax_p.bind(scores, axes=(position,), index_dtype=index_dtype)
    draws = math.prod(leading)
    count = logits.shape[axis]
    if draws > count:
        raise ValueError(f"Number of samples without replacement ({draws}) cannot exceed number of "
                         f"categories ({count}).")
    scores = lax.add(logits, _gumbel(typed, logits.shape, dtype, mode))
    order = (*(dim for dim in range(logits.ndim) if dim != axis), axis)
    _, index = top_k_p.bind(transpose(scores, order), k=draws, axis=logits.ndim - 1,
                              is_stable=True)
    moved = transpose(index, (index.ndim - 1, *range(index.ndim - 1)))
    return reshape(moved, shape)
