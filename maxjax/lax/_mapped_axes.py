"""Named axes: their index and size, and what collectives make of an axis and of their operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._ir.axes import axis_size as size_of
from maxjax._ir.axes import is_bound
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, aval_of, context, invalid_type
from maxjax._primitives.collective import axis_index_p, named
from maxjax._primitives.varying import states_of

__all__ = ["axis_index", "axis_index_p", "axis_size"]

Groups = tuple[tuple[int, ...], ...] | None


# --- arguments of collectives ---------------------------------------------------------------------

def _axes(axis_name: Any) -> tuple[Any, ...]:
    """The axes as a tuple; those of a reduction may be positions."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _check_bound(axes: Sequence[Any], operation: str) -> None:
    for name in named(axes):
        if not is_bound(name):
            raise NameError(f"Found an unbound axis name: {name}. To fix this, please call "
                            f"{operation} under `jax.shard_map`.")


def _groups(axis_index_groups: Any) -> Groups:
    if axis_index_groups is None:
        return None
    groups = tuple(tuple(group) for group in axis_index_groups)
    if sorted(sum(groups, ())) != list(range(sum(map(len, groups)))):
        raise ValueError("axis_index_groups must cover all indices exactly once")
    return groups


def _size(axes: Sequence[Any], groups: Groups) -> int:
    """The number of participating elements."""
    sizes = [size_of(name) for name in named(axes)]
    return math.prod(sizes) if groups is None else len(groups[0])


def _operand(leaf: Any) -> Array:
    if isinstance(leaf, Array):
        return leaf
    try:
        return installed.runtime.operand(leaf)
    except TypeError:
        raise invalid_type(leaf) from None


def _are_manual(axes: Sequence[Any]) -> bool:
    """Whether types track which values vary over some of these axes."""
    manual = context.manual
    return manual is not None and not manual.names.isdisjoint(axes)


def _state(x: Any, axes: Sequence[Any], operation: str) -> str:
    """"varying", "unreduced", "reduced" or "invarying".

    Raises:
      ValueError: the state differs between the axes.
    """
    own = states_of(x)
    states = {next((state for state in ("varying", "unreduced", "reduced")
                    if axis in getattr(own, state)), "invarying") for axis in axes}
    if len(states) > 1:
        raise ValueError(
            f"jax.lax.{operation} can only accept axis_name which corresponds to one of varying, "
            f"unreduced, reduced or invarying state of the input. Got input type: "
            f"{aval_of(x).str_short()}, axes: {tuple(axes)} and input state: {states}")
    return states.pop()


def _each(function: Callable[[Any], Any], x: Any) -> Any:
    leaves, tree = pytree.flatten(x)
    return pytree.unflatten(tree, [function(leaf) for leaf in leaves])


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


# --- the axis itself ------------------------------------------------------------------------------

def axis_index(axis_name: Any) -> Array:
    """The index of the element along a named axis, an int32; of several axes the last is minor.

    Args:
      axis_name: a name, or a tuple of them.

    Returns:
      A scalar array of int32.

    Raises:
      NameError: an axis is not bound.

    See also: ``lax.axis_size``, ``lax.psum``, ``random.fold_in``, ``jax.shard_map``.

    >>> jax.vmap(lambda x: x * lax.axis_index("i"), axis_name="i")(jnp.array([5, 5, 5]))
    Array([ 0,  5, 10], dtype=int32)
    """
    if not isinstance(axis_name, (tuple, list)):
        if not is_bound(axis_name):
            raise NameError(f"Found an unbound axis name: {axis_name}. To fix this, please call "
                            "axis_index under `jax.shard_map`.")
        return axis_index_p.bind(axis_name=axis_name)
    index: Any = _operand(0)
    stride = 1
    for name in reversed(axis_name):
        index = index + axis_index(name) * stride
        stride *= size_of(name)
    return index


def axis_size(axis_name: Any) -> int:
    """The size of a named axis, an int; the product for several.

    Args:
      axis_name: a name, or a tuple of them.

    Returns:
      A Python int, with which shapes can be made.

    Raises:
      NameError: an axis is not bound.

    See also: ``lax.axis_index``, ``lax.psum``.

    >>> jax.vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(jnp.ones(4))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    return math.prod(size_of(name) for name in _axes(axis_name))
