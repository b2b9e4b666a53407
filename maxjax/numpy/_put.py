"""Elements put at indices, or under a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.layout import reshape
from maxjax._primitives.rules import scalar_like
from maxjax.lax._operands import canonical_axis
from maxjax.numpy import _division
from maxjax.numpy._at import update
from maxjax.numpy._at_once import at_once
from maxjax.numpy._getitem import getitem
from maxjax.numpy._indexing import flat
from maxjax.numpy._nonzero import flatnonzero
from maxjax.numpy._promotion import as_array, check_arraylike

__all__ = ["place", "put", "put_along_axis"]


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. "
            "Pass inplace=False to instead return an updated array.")


def put(a: ArrayLike, ind: Any, v: ArrayLike, mode: str | None = None, *,
        inplace: bool = True) -> Array:
    """A copy of ``a`` whose flat elements at ``ind`` are ``v`` (repeated as needed).

    Args:
      mode: "clip" (the default) or "wrap" for out-of-bounds indices.
      inplace: must be False: arrays are immutable.

    >>> jnp.put(jnp.zeros(5), jnp.array([0, 3]), jnp.array([1.0, 2.0]), inplace=False)
    Array([1., 0., 0., 2., 0.], dtype=float32)
    """
    _refuse_inplace("put", inplace)
    check_arraylike("put", a, ind, v)
    a, ind, v = as_array(a), flat(as_array(ind)), flat(as_array(v))
    if not a.size or not ind.size or not v.size:
        return a
    v = _repeated(v, ind.size)
    if ind.dtype == dtypes.bool_:      # 0 and 1, and no mask
        ind = convert_element_type(ind, dtypes.int32)
    if mode is None or mode == "clip":
        scatter_mode = "clip"
    elif mode == "wrap":
        if ind.dtype.itemsize < 4:      # which may not hold the size
            ind = convert_element_type(ind, dtypes.int32)
        ind = _division.remainder(ind, scalar_like(a.size, ind.dtype))
        scatter_mode = "drop"
    elif mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    else:
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode='{mode}'")
    return reshape(update(flat(a), ind, v, "set", scatter_mode), a.shape)


def _repeated(v: Array, count: int) -> Array:
    """The flat ``v`` repeated or truncated to ``count`` elements."""
    times = -(-count // v.size)
    if times > 1:
        v = flat(broadcast_in_dim(v, (times, v.size), (1,)))
    return v if v.size == count else getitem(v, slice(0, count))


@at_once
def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None,
                   inplace: bool = True, *, mode: str | None = None) -> Array:
    """A copy of ``arr`` with ``values`` where ``take_along_axis`` would read at ``indices``.

    >>> x = jnp.array([[3, 1], [2, 9]])
    >>> jnp.put_along_axis(x, x.argmax(1, keepdims=True), 0, axis=1, inplace=False)
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    _refuse_inplace("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    arr, indices = as_array(arr), as_array(indices)
    original = arr.shape
    if axis is None:
        arr, axis = flat(arr), 0
    axis = canonical_axis(axis, arr.ndim)
    if arr.ndim != indices.ndim:
        raise ValueError("put_along_axis: arr and indices must have the same number of "
                         f"dimensions, got {arr.ndim} and {indices.ndim}")
    if not arr.size or not indices.size:
        return reshape(arr, original)
    lines = tuple(
        indices if dim == axis else np.arange(size, dtype=np.int32).reshape(
            [-1 if d == dim else 1 for d in range(arr.ndim)])
        for dim, size in enumerate(arr.shape))
    return reshape(update(arr, lines, values, "set", mode), original)


def place(arr: ArrayLike, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """A copy of ``arr`` whose elements under ``mask`` are ``vals``, repeated as needed.

    >>> jnp.place(jnp.arange(5), jnp.arange(5) % 2 == 0, jnp.array([10, 20]), inplace=False)
    Array([10,  1, 20,  3, 10], dtype=int32)
    """
    check_arraylike("place", arr, mask, vals)
    arr, mask, vals = as_array(arr), as_array(mask), flat(as_array(vals))
    _refuse_inplace("place", inplace)
    if arr.size != mask.size:
        raise ValueError("place: arr and mask must be the same size")
    if not vals.size:
        raise ValueError("Cannot place values from an empty array")
    if not arr.size:
        return arr
    places = flatnonzero(mask, size=mask.size, fill_value=mask.size)
    return reshape(update(flat(arr), places, _repeated(vals, arr.size), "set", "drop",
                          unique_indices=False), arr.shape)
