"""Functions under a mesh of other axis types: auto_axes and explicit_axes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import meshes, pytree
from maxjax._base.meshes import AbstractMesh, AxisType, use_abstract_mesh
from maxjax._base.pytree import PyTree
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import PartitionSpec, entry_axes
from maxjax._higher_order.constraints import is_sharding
from maxjax._ir.runtime import installed
from maxjax._primitives.sharding import free_mesh, reshard_p


def auto_axes(f: Callable[..., PyTree] | None = None, /, *,
              axes: str | tuple[str, ...] | None = None, out_sharding: PyTree = None) -> Any:
    """A function within which Explicit axes are Auto: propagation decides how values lie.

    Args:
      f: the function. Left out: a decorator is returned.
      axes: the axes; None: all.
      out_sharding: how the results are to lie, a prefix pytree of ``PartitionSpec``s or
        ``NamedSharding``s; may also be given at each call.

    Returns:
      A function of the same arguments; or, without ``f``, a decorator.

    Raises:
      TypeError: at a call: there is no ``out_sharding``.

    See also: ``jax.sharding.explicit_axes``, ``jax.sharding.reshard``, ``jax.shard_map``.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def call(*args: PyTree, **kwargs: PyTree) -> Any:
        wanted = _given(kwargs, "out_sharding", out_sharding)
        mesh = _mesh(args, kwargs)
        inner = free_mesh(mesh, _checked(mesh, _chosen(mesh, axes, AxisType.Explicit)))
        args, kwargs = pytree.map(functools.partial(_over, inner), (args, kwargs))
        with use_abstract_mesh(inner):
            results = f(*args, **kwargs)
        return _moved(results, wanted, mesh, "auto_axes out_sharding")

    return call


def explicit_axes(f: Callable[..., PyTree] | None = None, /, *,
                  axes: str | tuple[str, ...] | None = None, in_sharding: PyTree = None) -> Any:
    """A function within which Auto axes are Explicit: types say how values lie.

    Args:
      f: the function. Left out: a decorator is returned.
      axes: the axes; None: all.
      in_sharding: how the arguments lie, a prefix pytree of ``PartitionSpec``s or
        ``NamedSharding``s; may also be given at each call.

    Raises:
      TypeError: at a call: there is no ``in_sharding``.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def call(*args: PyTree, **kwargs: PyTree) -> Any:
        wanted = _given(kwargs, "in_sharding", in_sharding)
        mesh = _mesh(args, kwargs)
        chosen = _checked(mesh, _chosen(mesh, axes, AxisType.Auto))
        inner = mesh.update_axis_types(dict.fromkeys(chosen, AxisType.Explicit))
        args = _moved(args, wanted, inner, "explicit_axes in_sharding")
        with use_abstract_mesh(inner):
            results = f(*args, **kwargs)
        return pytree.map(functools.partial(_over, mesh), results)

    return call


def _given(kwargs: dict[str, PyTree], name: str, default: PyTree) -> PyTree:
    """Shardings given at a call, which may be None where there is nothing to move, or before."""
    if name not in kwargs and default is None:
        raise TypeError(f"Missing required keyword argument: {name!r}")
    return kwargs.pop(name, default)


def _mesh(*trees: PyTree) -> AbstractMesh:
    """The mesh that is set, or that of the arguments."""
    mesh = meshes.get_abstract_mesh()
    if mesh.empty:
        for leaf in pytree.leaves(trees):
            on_mesh = getattr(getattr(leaf, "aval", None), "mesh_spec", None)
            if on_mesh is not None:
                return on_mesh[0]
    return mesh


def _chosen(mesh: AbstractMesh, axes: str | Sequence[str] | None,
            kind: AxisType) -> Sequence[str]:
    if axes is None:
        return mesh.explicit_axes if kind is AxisType.Explicit else mesh.auto_axes
    return (axes,) if isinstance(axes, str) else axes


def _checked(mesh: AbstractMesh, axes: Sequence[str]) -> Sequence[str]:
    """Raises NotImplementedError where axes are Manual, or all of the mesh's are."""
    if not set(axes).isdisjoint(mesh.manual_axes) or mesh.are_all_axes_manual:
        raise NotImplementedError(
            "Going from `Manual` AxisType to `Auto` or `Explicit` AxisType is not allowed: within "
            "shard_map the code sees one shard")
    return axes


def _over(mesh: AbstractMesh, leaf: PyTree) -> Any:
    """A leaf whose type mentions only the Explicit axes of a mesh."""
    on_mesh = getattr(getattr(leaf, "aval", None), "mesh_spec", None)
    if on_mesh is None:
        return leaf
    kept = set(mesh.explicit_axes)
    spec = PartitionSpec(*[tuple(axis for axis in entry_axes(entry) if axis in kept)
                           for entry in on_mesh[1]])
    return reshard_p.bind(leaf, dst_sharding=NamedSharding(mesh, spec))


def _moved(tree: PyTree, wanted: PyTree, mesh: AbstractMesh, what: str) -> Any:
    leaves, structure = pytree.flatten(tree)
    chosen = pytree.broadcast_prefix(wanted, tree, is_sharding, what)
    meshes.use.ever_set = True
    return pytree.unflatten(structure, [
        _put(leaf, sharding, mesh) for leaf, sharding in zip(leaves, chosen, strict=True)])


def _put(leaf: object, sharding: NamedSharding | PartitionSpec | None, mesh: AbstractMesh) -> Any:
    if sharding is None:
        raise ValueError("Reshard should only be used with out_shardings which are non-None and "
                         "have a non-empty mesh. Got sharding None.")
    value = installed.runtime.operand(leaf)
    spec = sharding if isinstance(sharding, PartitionSpec) else sharding.spec
    missing = len(value.shape) - len(spec)
    full = spec.update(partitions=(*spec.partitions, *[None] * missing))
    return reshard_p.bind(value, dst_sharding=NamedSharding(mesh, full))


