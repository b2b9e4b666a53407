"""Statistics of samples."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.trace import Array
from maxjax._transforms.vmap import vmap
from maxjax.lax._operands import canonical_axis
from maxjax.numpy._at_once import all_at_once
from maxjax.numpy._promotion import check_arraylike, promote_inexact
from maxjax.numpy._reductions import strong
from maxjax.numpy._unique import one_nan


class ModeResult(NamedTuple):
    mode: Any
    count: Any


def _policy(nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}; expected one of "
                         "{'propagate', 'omit', 'raise'}")
    if nan_policy == "omit":
        raise NotImplementedError("Logic for `nan_policy` of omit is not implemented")
    if nan_policy == "raise":
        raise NotImplementedError(
            "In order to best JIT compile `mode`, we cannot know whether `x` contains nans. Please "
            "check if nans exist in `x` outside of the `mode` function.")


def mode(a: Any, axis: int | None = 0, nan_policy: str = "propagate",
         keepdims: bool = False) -> ModeResult:
    """The most frequent values along an axis; among equally frequent ones, the least.

    Args:
      nan_policy: "propagate".

    >>> jax.scipy.stats.mode(jnp.array([2, 1, 2, 3]))
    ModeResult(mode=Array(2, dtype=int32), count=Array(2, dtype=int32))
    """
    check_arraylike("mode", a)
    _policy(nan_policy)
    x = jnp.atleast_1d(jnp.asarray(a))
    if jnp.iscomplexobj(x):      # sorted by its parts, which JAX joins to a strongly typed number
        x = one_nan(strong(x))
    if axis is not None:
        axis = canonical_axis(axis, x.ndim)
        x = jnp.moveaxis(x, axis, 0)
    elif keepdims:
        rank, x = x.ndim, x.ravel()
    else:
        x = x.ravel()
    rest = x.shape[1:]
    if not x.shape[0]:      # no elements have no most frequent one
        value, count = jnp.full(rest, np.nan, float), jnp.zeros(rest, float)
    elif not x.size:
        value, count = jnp.zeros(rest, x.dtype), jnp.zeros(rest, int)
    else:
        value, count = (part.reshape(rest) for part in _most_frequent(
            x.reshape(x.shape[0], math.prod(rest))))
    if keepdims:
        shape = (1,) * rank if axis is None else None
        value, count = ((part.reshape(shape) if shape is not None else jnp.expand_dims(part, axis))
                        for part in (value, count))
    return ModeResult(value, count)


@make_jit
def _most_frequent(x: Array) -> tuple[Array, Array]:
    """The most frequent element of each column, and how often it occurs: both of shape (1, n)."""
    columns = jnp.sort(x, axis=0)
    left, right = (vmap(functools.partial(jnp.searchsorted, side=side), 1, 1)(columns, columns)
                   for side in ("left", "right"))
    counts = right - left
    best = jnp.argmax(counts, axis=0)[None]
    return (jnp.take_along_axis(columns, best, axis=0),
            jnp.take_along_axis(counts, best, axis=0).astype(int))


def _ranks(x: Any, method: str) -> Any:
    order = jnp.argsort(x)
    inverse = jnp.argsort(order)
    if method == "ordinal":
        return inverse + 1
    values = x[order]
    starts = jnp.concatenate([jnp.array([True]), values[1:] != values[:-1]])
    dense = jnp.cumsum(starts)[inverse]
    if method == "dense":
        return dense
    lowest = jnp.searchsorted(values, x, side="left")
    highest = jnp.searchsorted(values, x, side="right")
    if method == "max":
        return highest
    if method == "min":
        return lowest + 1
    if method == "average":
        return 0.5 * (highest + lowest + 1).astype(jnp.result_type(float))
    raise ValueError(f"unknown method '{method}'")


def rankdata(a: Any, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:
    """The ranks of the elements, from 1.

    Args:
      method: how to rank equal elements: "average", "min", "max", "dense" or "ordinal".
      axis: None ranks all elements together, and returns a vector.

    >>> jax.scipy.stats.rankdata(jnp.array([10, 30, 10]))
    Array([1.5, 3. , 1.5], dtype=float32)
    """
    check_arraylike("rankdata", a)
    _policy(nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method '{method}'")
    x = jnp.asarray(a)
    ranks = (_ranks(x.ravel(), method) if axis is None else
             jnp.apply_along_axis(lambda row: _ranks(row, method), axis, x))
    ranks = ranks.astype(jnp.result_type(float))
    if not dtypes.is_inexact(x.dtype):
        return ranks
    # An element that cannot be ordered leaves the others unranked.
    nan = jnp.isnan(x).any(axis, keepdims=axis is not None)
    return jnp.where(nan, jnp.array(np.nan, ranks.dtype), ranks)


def sem(a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """The standard error of the mean: ``std(a, ddof=ddof) / sqrt(n)``.

    Args:
      nan_policy: "propagate", or "omit", which ignores NaN.

    >>> jax.scipy.stats.sem(jnp.array([1., 3.]))
    Array(1., dtype=float32)
    """
    x, = promote_inexact("sem", a)
    x = jnp.asarray(x)
    if nan_policy == "propagate":
        size = x.size if axis is None else x.shape[axis]
        return jnp.std(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(size).astype(x.dtype)
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(x), axis, keepdims=keepdims)
        return jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count).astype(x.dtype)
    raise ValueError(f"{nan_policy} is not supported")


all_at_once(globals())
