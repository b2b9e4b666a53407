"""``smap``: ``shard_map`` over one axis of the mesh, with the axes of arrays by number."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from maxjax._base import pytree
from maxjax._base.meshes import AxisType, get_abstract_mesh
from maxjax._base.pytree import PyTree
from maxjax._base.specs import AxisName, PartitionSpec
from maxjax._sharding.shard_map_api import INFER, shard_map


def smap(f: Callable[..., PyTree] | None = None, /, *, in_axes: PyTree = INFER, out_axes: PyTree,
         axis_name: AxisName) -> Any:
    """A function of whole arrays that applies ``f`` to each shard of them, along one mesh axis.

    Args:
      f: a function of arrays or pytrees of them, positional ones; absent: gives a decorator.
      in_axes: the axis of each argument that is cut, from 0; None: all shards get the whole. A
        prefix pytree. Absent: what the arguments' types say, where the mesh axis is Explicit.
      out_axes: along which axis the shards' results are put together; None: all are the same.
      axis_name: the axis of the mesh that is set.

    Raises:
      TypeError: ``f`` is not callable, an axis is neither an int nor None, there are several names,
        or ``in_axes`` is absent where the mesh axis is not Explicit.
      ValueError: no mesh is set, or the axes do not fit.

    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> total = jax.smap(lambda x: jax.lax.psum(x.sum(), "x"), in_axes=0, out_axes=None,
    ...                  axis_name="x")
    >>> with jax.set_mesh(mesh):
    ...     total(jnp.arange(4.))
    Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (list, tuple)):
        raise TypeError(f"smap axis_name should be a `str` or a `Hashable`, but got {axis_name}")
    if in_axes is not None and in_axes is not INFER and not isinstance(in_axes, (int, tuple)):
        raise TypeError(
            "smap in_axes must be an int, None, jax.sharding.Infer, or a tuple of entries "
            "corresponding to the positional arguments passed to the function, but got "
            f"{in_axes}.")
    if in_axes is not INFER and not _are_axes(in_axes):
        raise TypeError(
            "smap in_axes must be an int, None, jax.sharding.Infer, or (nested) container with "
            f"those types as leaves, but got {in_axes}.")
    if not _are_axes(out_axes):
        raise TypeError("smap out_axes must be an int, None, or (nested) container with those "
                        f"types as leaves, but got {out_axes}.")
    names = frozenset([axis_name])
    mapped = shard_map(
        f, in_specs=in_axes if in_axes is INFER else _specs(in_axes, axis_name),
        out_specs=_specs(out_axes, axis_name), axis_names=names)
    if in_axes is not INFER:
        return mapped

    @functools.wraps(mapped)
    def checked(*args: PyTree) -> Any:
        mesh = get_abstract_mesh()
        kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
        kind = kinds.get(axis_name, AxisType.Explicit)
        if kind is not AxisType.Explicit:
            raise TypeError(f"in_axes was not specified when axis_name={names} was of type "
                            f"AxisType.{kind.name}")
        return mapped(*args)

    return checked


def _are_axes(axes: PyTree) -> bool:
    return all(isinstance(leaf, int) for leaf in pytree.leaves(axes))


def _specs(axes: PyTree, axis_name: AxisName) -> PyTree:
    """A spec for each axis."""
    leaves, tree = pytree.flatten(axes, lambda node: node is None)
    return pytree.unflatten(tree, [
        PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)
        for axis in leaves])
