"""Collectives: reductions over named axes, which ``vmap`` binds, and states of values over them.

An ``axis_name`` is a name or a tuple of names, the first one major. Arguments ``x`` are pytrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, context
from maxjax._primitives.collective import named, pmax_p, pmin_p, psum_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.unreduced import (
    preduced_p,
    reduced_vary_cast_p,
    unreduced_psum_p,
    vary_unreduced_cast_p,
)
from maxjax._primitives.varying import psum_invariant_p, pvary_p, states_of, vary
from maxjax.lax._mapped_axes import (
    Groups,
    _are_manual,
    _axes,
    _axis,
    _check_bound,
    _each,
    _groups,
    _operand,
    _size,
    _state,
)
from maxjax.lax._reductions import strongly_typed

__all__ = ["pcast", "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "psum", "psum_p"]

# --- reductions -----------------------------------------------------------------------------------


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum over the elements of named axes.

    Booleans are summed as int32. A number that is the same for all elements is multiplied by their
    count immediately, so that ``psum(1, axis_name)`` is the axis size, an int. The derivative sums
    the cotangent.

    Args:
      x: a pytree of arrays and numbers.
      axis_name: a name or a tuple of them; ints in it are dimensions of ``x``.
      axis_index_groups: sums within each of these groups, which cover all indices (not under
        ``vmap``).

    Returns:
      A pytree of ``x``'s shapes, the same for all elements.

    Raises:
      NameError: an axis is not bound.

    See also: ``lax.pmean``, ``lax.pmax``, ``lax.psum_scatter``, ``lax.all_gather``,
    ``lax.axis_index``, ``jax.shard_map``, ``jax.vmap``.

    >>> jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1., 3.]))
    Array([0.25, 0.75], dtype=float32)
    """
    axes, groups = _axes(axis_name), _groups(axis_index_groups)
    if groups is not None and len(named(axes)) < len(axes):
        raise ValueError("axis_index_groups only supported for sums over just named axes")
    if not axes:
        return x

    def total(leaf: Any) -> Any:
        if isinstance(leaf, (bool, np.bool_)):
            leaf = _operand(np.int32(leaf))
        elif getattr(leaf, "dtype", None) == dtypes.bool_:
            leaf = convert_element_type(_operand(leaf), dtypes.int32)
        if not isinstance(leaf, Array):
            _operand(leaf)
            return _multiplied(leaf, axes, groups)
        if context.trace is installed.runtime:
            return _multiplied(leaf, axes, groups)
        _check_bound(axes, "psum")
        if _are_manual(axes):
            if groups is not None:
                raise NotImplementedError("axis_index_groups of psum where check_vma is on")
            state = _state(leaf, axes, "psum")
            if state == "unreduced":
                return unreduced_psum_p.bind(leaf, axes=axes)
            if state != "varying":
                leaf = vary(leaf, axes)
            return psum_invariant_p.bind(leaf, axes=axes)
        return psum_p.bind(leaf, axes=axes, axis_index_groups=groups)

    return _each(total, x)


def _multiplied(x: Any, axes: Sequence[Any], groups: Groups) -> Any:
    """The sum of a constant: only positional axes are actually summed over."""
    size = _size(axes, groups)
    rank = np.ndim(x)
    positions = tuple(_axis(axis, rank) for axis in axes if isinstance(axis, int))
    if positions:
        x = psum_p.bind(strongly_typed(_operand(x)), axes=positions, axis_index_groups=None)
    if isinstance(x, (np.ndarray, np.generic)):
        with np.errstate(over="ignore"):
            return x * np.asarray(size).astype(x.dtype)
    return x * size if named(axes) else x


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean over the elements of named axes: ``psum(x) / psum(1)``.

    Args:
      x: a pytree of arrays and numbers; integers give floats.
      axis_name: a name or a tuple of them.
      axis_index_groups: means within each of these groups (not under ``vmap``).

    Returns:
      A pytree of ``x``'s shapes, the same for all elements.

    Raises:
      NameError: an axis is not bound.

    See also: ``lax.psum``, ``lax.pmax``, ``jnp.mean``.

    >>> jax.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.array([1., 2., 6.]))
    Array([-2., -1.,  3.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    count = psum(1, axis_name, axis_index_groups=axis_index_groups)
    return _each(lambda leaf: leaf / count, total)


def _extreme(primitive: Any, x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    axes, groups = _axes(axis_name), _groups(axis_index_groups)
    if groups is not None and len(named(axes)) < len(axes):
        raise ValueError("axis_index_groups only supported for sums over just named axes")
    if not axes:
        return x

    def extreme(leaf: Any) -> Any:
        value = _operand(leaf)
        if len(named(axes)) < len(axes):
            value = strongly_typed(value)
        _check_bound(axes, "psum")
        if _are_manual(axes):
            inside = [axis for axis in axes if axis in context.manual.names]
            if _state(value, inside, primitive.name) == "unreduced":
                raise ValueError(
                    f"unreduced_{primitive.name} cannot accept args with unreduced_kind="
                    f"{states_of(value).unreduced_kind}. Expected unreduced_kind=UnreducedKind."
                    f"{primitive.name.removeprefix('p')}")
        value = vary(value, axes)
        return primitive.bind(value, axes=axes, axis_index_groups=groups)

    return _each(extreme, x)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The greatest of the elements of named axes. It has no derivative.

    Args:
      x: a pytree of arrays and numbers.
      axis_name, axis_index_groups: see ``psum``.

    Returns:
      A pytree of ``x``'s shapes, the same for all elements.

    Raises:
      NameError: an axis is not bound.

    See also: ``lax.pmin``, ``lax.psum``, ``lax.pmean``, ``jnp.max``.

    >>> jax.vmap(lambda x: x == lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 5, 2]))
    Array([False,  True, False], dtype=bool)
    """
    return _extreme(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The least of the elements of named axes. It has no derivative.

    Args:
      axis_name, axis_index_groups: see ``psum``.

    >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([3, 1, 2]))
    Array([1, 1, 1], dtype=int32)
    """
    return _extreme(pmin_p, x, axis_name, axis_index_groups)


# --- types ---------------------------------------------------------------------------------------


_STATES = ("unreduced", "reduced", "varying")
_CASTS = {("invarying", "varying"): pvary_p, ("invarying", "reduced"): preduced_p,
          ("varying", "unreduced"): vary_unreduced_cast_p,
          ("reduced", "varying"): reduced_vary_cast_p}


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """Inside ``shard_map``: the same values with another variation in their type.

    Args:
      x: a pytree of arrays.
      axis_name: axes along which the values are all in one state.
      to: "varying", of values that are the same on all shards (the derivative sums the cotangents
        of all shards) or reduced; "unreduced", of values that vary: they are the summands of a sum,
        to be reduced by ``psum`` or ``psum_scatter``; "reduced", of values that are the same on
        all shards: their cotangents stay unreduced.

    Returns:
      A pytree of the same values.

    Raises:
      ValueError: there is no conversion from the values' state, ``to`` is unknown, or the call is
        outside ``shard_map``.
      TypeError: ``axis_name`` is neither a name nor a tuple of them.

    See also: ``lax.psum``, ``lax.all_gather``, ``jax.shard_map``, ``jax.typeof``.

    >>> def f(x):
    ...     print(jax.typeof(x), jax.typeof(lax.pcast(x, "i", to="varying")))
    ...     return x
    >>> mesh = jax.make_mesh((1,), ("i",))
    >>> _ = jax.shard_map(f, mesh=mesh, in_specs=jax.P(), out_specs=jax.P())(jnp.ones(2))
    float32[2] float32[2]{V:i}
    """
    if to not in _STATES:
        raise ValueError("Got unexpected `to` value. Allowed `to` values are: "
                         f"{{{', '.join(map(repr, _STATES))}}}")
    if isinstance(axis_name, (list, set, frozenset)):
        raise TypeError(f"{axis_name=} must be a tuple or a str. Got {axis_name}")
    axes = _axes(axis_name)
    if context.trace is installed.runtime:
        raise ValueError("pvary should be called under jax.shard_map.")
    _check_bound(axes, "pcast")
    manual = _are_manual(axes)

    def cast(leaf: Any) -> Any:
        value = _operand(leaf)
        state = _state(value, axes, "pcast") if manual else "invarying"
        if (state, to) not in _CASTS:
            raise ValueError(f"Unsupported pcast from={state}, {to=!r}")
        return _CASTS[state, to].bind(value, axes=axes) if manual else leaf

    return _each(cast, x)


# --- the axis itself ------------------------------------------------------------------------------
