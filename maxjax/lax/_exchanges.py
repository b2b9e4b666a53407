"""Collectives by which the elements of a named axis exchange parts of their arrays."""

from __future__ import annotations

from typing import Any

from maxjax._base import dtypes, pytree
from maxjax._base.meshes import get_abstract_mesh
from maxjax._ir.axes import axis_size as size_of
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, context
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.collective import all_gather_p, all_to_all_p, reduce_scatter_p
from maxjax._primitives.layout import squeeze_p
from maxjax._primitives.ragged import ragged_all_to_all_p
from maxjax._primitives.unreduced import all_gather_reduced_p, unreduced_reduce_scatter_p
from maxjax._primitives.varying import all_gather_invariant_p, vary, vma_of
from maxjax.lax._mapped_axes import (
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

__all__ = [
    "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "psum_scatter", "pswapaxes",
    "ragged_all_to_all", "ragged_all_to_all_p",
]

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
