"""Collectives that give each device the value of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._primitives.collective import pbroadcast_p, ppermute_p
from maxjax._primitives.varying import vary
from maxjax.lax._mapped_axes import _axes, _check_bound, _each, _operand

__all__ = ["pbroadcast", "ppermute", "ppermute_p", "pshuffle"]


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """Sends element ``source`` to ``target``, for each pair of ``perm``.

    Args:
      x: a pytree of arrays.
      axis_name: the axis.
      perm: pairs of ints (source, target). Under ``vmap`` there is one for each element.

    Returns:
      A pytree of ``x``'s shapes; zeros where nothing is sent.

    Raises:
      NameError: an axis is not bound.
      TypeError: the pairs are in no list or tuple.

    See also: ``lax.pshuffle``, ``lax.all_to_all``, ``lax.all_gather``, ``lax.psum``.

    >>> def shift(x):
    ...     return lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)])
    >>> jax.vmap(shift, axis_name="i")(jnp.array([10, 20, 30]))
    Array([30, 10, 20], dtype=int32)
    """
    axes = _axes(axis_name)
    if not isinstance(perm, (list, tuple)):
        raise TypeError("`perm` passed to `jax.lax.ppermute` must be a list or a tuple. Got perm "
                        f"of type {type(perm)}")
    pairs = tuple(tuple(pair) for pair in perm)
    if not axes:
        return x

    def permuted(leaf: Any) -> Any:
        value = vary(_operand(leaf), axes)
        _check_bound(axes, "ppermute")
        return ppermute_p.bind(value, axis_name=axes, perm=pairs)

    return _each(permuted, x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Sends element ``perm[n]`` to position ``n``.

    Raises:
      ValueError: ``perm`` is not a permutation.

    >>> jax.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.array([10, 20, 30]))
    Array([30, 10, 20], dtype=int32)
    """
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Broadcasts the element ``source`` to all elements of the axis.

    >>> jax.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([10, 20, 30]))
    Array([20, 20, 20], dtype=int32)
    """
    axes = _axes(axis_name)

    def sent(leaf: Any) -> Any:
        value = vary(_operand(leaf), axes)
        _check_bound(axes, "pbroadcast")
        return pbroadcast_p.bind(value, axis_name=axis_name, source=source)

    return _each(sent, x)
