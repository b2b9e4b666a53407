"""Collectives: operations between the elements of a named axis, which ``vmap`` binds.

An ``axis_name`` is a name or a tuple of names, the first one major. Arguments ``x`` are pytrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.meshes import get_abstract_mesh
from maxjax._ir.axes import axis_size as size_of
from maxjax._ir.axes import is_bound
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, aval_of, context, invalid_type
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.collective import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    named,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.layout import squeeze_p
from maxjax._primitives.ragged import ragged_all_to_all_p
from maxjax._primitives.unreduced import (
    all_gather_reduced_p,
    preduced_p,
    reduced_vary_cast_p,
    unreduced_psum_p,
    unreduced_reduce_scatter_p,
    vary_unreduced_cast_p,
)
from maxjax._primitives.varying import (
    all_gather_invariant_p,
    psum_invariant_p,
    pvary_p,
    states_of,
    vary,
    vma_of,
)
from maxjax.lax._reductions import strongly_typed

__all__ = [
    "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "axis_index", "axis_index_p",
    "axis_size", "pcast", "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "ppermute_p", "psum",
    "psum_p", "psum_scatter", "pswapaxes", "ragged_all_to_all", "ragged_all_to_all_p",
]

Groups = tuple[tuple[int, ...], ...] | None

# --- arguments ------------------------------------------------------------------------------------


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


# --- gathering and scattering ---------------------------------------------------------------------

_GATHERED = ("invarying", "reduced", "varying")


def all_gather(x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0,
               tiled: bool = False, to: str = "varying") -> Any:
    """Gathers all elements of a named axis along a dimension, on each of them.

    Args:
      x: a pytree of arrays.
      axis_name, axis_index_groups: see ``psum``.
      axis: the new dimension; with ``tiled`` the one along which they are concatenated.
      tiled: whether they are concatenated rather than stacked.
      to: "varying"; under ``shard_map`` also "invarying", and "reduced" (see ``pcast``).

    Returns:
      A pytree of arrays with one more dimension, of the axis's size; with ``tiled`` one is that
      many times as long.

    Raises:
      NameError: the axis is not bound.

    See also: ``lax.psum_scatter``, ``lax.all_to_all``, ``lax.ppermute``, ``lax.psum``.

    >>> jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.arange(2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if to not in _GATHERED:
        raise ValueError("Got unexpected `to` value for `jax.lax.all_gather`. Allowed `to` values "
                         f"are: {{{', '.join(map(repr, _GATHERED))}}}")
    axes, groups = _axes(axis_name), _groups(axis_index_groups)
    if not get_abstract_mesh().manual_axes:
        to = "varying"      # values have no states
    if to != "varying" and groups is not None:
        raise NotImplementedError(f"all_gather: to={to!r} is for use without axis_index_groups")
    if not axes:
        return x
    size = _size(axes, groups)

    def gathered(leaf: Any) -> Any:
        if to == "reduced":
            value = _operand(leaf)
            return all_gather_reduced_p.bind(
                value, all_gather_dimension=_axis(axis, value.ndim + (not tiled)), axis_name=axes,
                axis_size=size, tiled=tiled)
        value = vary(_operand(leaf), axes)
        if to == "invarying" and _are_manual(axes):
            return all_gather_invariant_p.bind(
                value, all_gather_dimension=_axis(axis, value.ndim + (not tiled)), axis_name=axes,
                axis_size=size, tiled=tiled)
        return all_gather_p.bind(
            value, all_gather_dimension=_axis(axis, value.ndim + (not tiled)),
            axis_index_groups=groups, axis_name=axes, axis_size=size, tiled=tiled)

    return _each(gathered, x)


def psum_scatter(x: Any, axis_name: Any, *, scatter_dimension: int = 0,
                 axis_index_groups: Any = None, tiled: bool = False) -> Any:
    """The sum over a named axis, scattered: each element gets one part.

    Args:
      x: a pytree of arrays.
      axis_name, axis_index_groups: see ``psum``.
      scatter_dimension: divided among the elements. It has the axis's size, and the result lacks
        it.
      tiled: the dimension's size is a multiple of the axis's instead, and it remains.

    Returns:
      A pytree of arrays: with ``tiled=False`` without the dimension, otherwise with one part of it.

    Raises:
      NameError: the axis is not bound.
      ValueError: the dimension's size does not fit.

    See also: ``lax.psum``, ``lax.all_gather``, ``lax.all_to_all``.

    >>> jax.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    axes, groups = _axes(axis_name), _groups(axis_index_groups)
    if not axes:
        return x
    size = _size(axes, groups)

    def scattered(leaf: Any) -> Any:
        value = _operand(leaf)
        state = _state(value, axes, "psum_scatter") if _are_manual(axes) else "varying"
        if state in ("invarying", "reduced"):
            value = vary(value, axes)
        given = value.shape[_axis(scatter_dimension, value.ndim)]
        if tiled and given % size:
            raise ValueError(f"tiled reduce_scatter operand scatter dimension size {given} must be "
                             f"divisible by shard_count {size}")
        if not tiled and given != size:
            raise ValueError(f"reduce_scatter operand scatter dimension size {given} must match "
                             f"shard count {size}")
        if state == "unreduced":
            return unreduced_reduce_scatter_p.bind(
                value, scatter_dimension=_axis(scatter_dimension, value.ndim), axis_name=axes,
                axis_size=size, tiled=tiled)
        return reduce_scatter_p.bind(
            value, scatter_dimension=_axis(scatter_dimension, value.ndim),
            axis_index_groups=groups, axis_name=axes, axis_size=size, tiled=tiled)

    return _each(scattered, x)


def all_to_all(x: Any, axis_name: Any, split_axis: int, concat_axis: int, *,
               axis_index_groups: Any = None, tiled: bool = False) -> Any:
    """Splits each element into one part per element, and sends part ``n`` of all to element ``n``.

    Args:
      x: a pytree of arrays.
      axis_name, axis_index_groups: see ``psum``.
      split_axis: the dimension to split. It has the axis's size, and the result lacks it; with
        ``tiled`` its size is a multiple, and it remains.
      concat_axis: the new dimension along which the parts are stacked; with ``tiled`` the existing
        one along which they are concatenated.
      tiled: whether parts are concatenated rather than stacked.

    Returns:
      A pytree of arrays with as many elements.

    Raises:
      NameError: the axis is not bound.
      ValueError: the dimension's size does not fit.

    See also: ``lax.all_gather``, ``lax.psum_scatter``, ``lax.ppermute``, ``lax.ragged_all_to_all``.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jax.vmap(lambda row: lax.all_to_all(row, "i", 0, 0), axis_name="i")(x)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    axes, groups = _axes(axis_name), _groups(axis_index_groups)
    for leaf in pytree.leaves(x):
        _axis(split_axis, _operand(leaf).ndim)
    size = _size(axes, groups)
    sizes = (size,) if groups is not None else tuple(size_of(name) for name in axes)

    def bind(value: Any, split: int, concat: int) -> Any:
        return all_to_all_p.bind(
            value, split_axis=split, concat_axis=concat, axis_index_groups=groups,
            axis_name=axis_name if not isinstance(axis_name, list) else axes, axis_sizes=sizes,
            tiled=tiled)

    def exchanged(leaf: Any) -> Any:
        value = vary(_operand(leaf), axes)
        given = value.shape[_axis(split_axis, value.ndim)]
        if tiled:
            if given % size:
                raise ValueError(
                    f"The size of all_to_all split_axis ({given}) has to be divisible by the size "
                    f"of the named axis {axis_name} ({size})")
            return bind(value, _axis(split_axis, value.ndim), _axis(concat_axis, value.ndim))
        if given != size:
            raise ValueError(
                "all_to_all requires the size of the mapped axis axis_name to equal "
                f"x.shape[split_axis], but they are {size} and {given} respectively.")
        split, concat = _axis(split_axis, value.ndim), _axis(concat_axis, value.ndim)
        if split == concat:
            return bind(value, split, concat)
        # The parts are in a new dimension, and the split one has size 1.
        concat += concat > split
        split += split >= concat
        result = bind(expand_axis(value, concat), split, concat)
        return squeeze_p.bind(result, dimensions=(split,))

    return _each(exchanged, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swaps a named axis with a dimension of the same size.

    >>> jax.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


_SLICES = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def ragged_all_to_all(operand: Any, output: Any, input_offsets: Any, send_sizes: Any,
                      output_offsets: Any, recv_sizes: Any, *, axis_name: Any,
                      axis_index_groups: Any = None) -> Array:
    """Sends slices of different sizes, of the leading axis, between the n elements of a named axis.

    Each element has K slices; the first K / n of them go to element 0, and so on. Slices received
    must not overlap. Under ``shard_map`` and ``pmap``, not under ``vmap``, as in JAX.

    Args:
      operand: (N, ...), the data to send; linear.
      output: (M, ...), of the same dtype: the result where nothing is received; linear.
      input_offsets: (K,) integers, where each slice starts in ``operand``.
      send_sizes: (K,) integers, their sizes.
      output_offsets: (K,) integers, where each slice sent starts in its receiver's result.
      recv_sizes: (K,) integers, the sizes of the slices received: ``all_to_all`` of ``send_sizes``.
      axis_name, axis_index_groups: see ``all_to_all``.

    Returns:
      (M, ...), of ``output``'s dtype.

    Raises:
      NameError: the axis is not bound.
      RuntimeError: the call is outside a mapped function.
      TypeError: ``operand`` and ``output`` differ in dtype.
      ValueError: offsets or sizes are not integers of shape (K,), K does not divide by n, or
        ``operand`` and ``output`` differ beyond their leading axis.

    >>> def keep(x):
    ...     offset, size = jnp.array([1]), jnp.array([2])
    ...     return lax.ragged_all_to_all(
    ...         x, jnp.zeros(4), offset, size, jnp.array([2]), size, axis_name="i")
    >>> mesh = jax.make_mesh((1,), ("i",))
    >>> jax.shard_map(keep, mesh=mesh, in_specs=jax.P(), out_specs=jax.P("i"))(jnp.arange(3.))
    Array([0., 0., 1., 2.], dtype=float32)
    """
    axes, groups = _axes(axis_name), _groups(axis_index_groups)
    if context.trace is installed.runtime:
        raise RuntimeError("ragged_all_to_all must be used within a mapped context like vmap or "
                           "shard_map.")
    values = [_operand(x) for x in (
        operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)]
    for name, value in zip(_SLICES, values[2:], strict=True):
        if not dtypes.is_integer(value.dtype):
            raise ValueError(f"ragged_all_to_all {name} must be integer type.")
        if value.ndim != 1 or value.shape[0] == 0:
            raise ValueError(f"ragged_all_to_all {name} must be rank 1 with positive dimension "
                             f"size, but got shape {value.shape}")
    _check_bound(axes, "ragged_all_to_all")
    count = _size(axes, groups)
    lengths = [value.shape[0] for value in values[2:]]
    if len(set(lengths)) > 1 or lengths[0] % count:
        raise ValueError(
            f"ragged_all_to_all needs as many {', '.join(_SLICES)}, a multiple of the {count} "
            f"elements of axis {axis_name}, but got {', '.join(map(str, lengths))}")
    sent, kept = values[:2]
    if sent.dtype != kept.dtype:
        raise TypeError("ragged_all_to_all needs operand and output of one dtype, but got "
                        f"{sent.dtype} and {kept.dtype}")
    if not sent.ndim or not kept.ndim or sent.shape[1:] != kept.shape[1:]:
        raise ValueError("ragged_all_to_all needs operand and output that differ in their leading "
                         f"axis alone, but got shapes {sent.shape} and {kept.shape}")
    varying = frozenset(axes).union(*map(vma_of, values))
    return ragged_all_to_all_p.bind(
        *[vary(value, varying) for value in values], axis_name=axes,
        axis_sizes=(count,) if groups is not None else tuple(size_of(name) for name in axes),
        axis_index_groups=groups)


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
