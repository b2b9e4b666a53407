"""Saying how a value lies over a mesh: with_sharding_constraint and reshard."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base import meshes, pytree
from maxjax._base.errors import ShardingTypeError
from maxjax._base.layouts import Format, Layout, check_layout
from maxjax._base.meshes import AxisType
from maxjax._base.pytree import PyTree
from maxjax._base.shardings import NamedSharding, Sharding, check_shape
from maxjax._base.source import occurs_at
from maxjax._base.specs import PartitionSpec, UnreducedKind, entry_axes, spec_axes
from maxjax._higher_order.unreduced_out_sharding import check_unreduced_out_sharding
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.runtime import call_of, installed
from maxjax._ir.staging import is_staging, trace_to_jaxpr
from maxjax._ir.trace import Array, Tracer, context
from maxjax._ir.typing import ArrayLike, Value
from maxjax._primitives.sharding import freed, reshard_p, sharding_constraint_p

EMPTY_CONTEXT = (
    "{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {name}. "
    "You can define a context mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s "
    "to {name} and then the mesh context manager is not required.")


# Where a caller says that a result is to lie.
OutSharding = NamedSharding | PartitionSpec | None


def is_sharding(node: object) -> bool:
    return node is None or isinstance(node, (Sharding, PartitionSpec))


def with_sharding_constraint(x: PyTree, shardings: PyTree) -> Any:
    """The leaves of a pytree, constrained to shardings; differentiable.

    Args:
      x: a pytree of arrays.
      shardings: a ``Sharding``, a ``PartitionSpec`` of the mesh that is set, a row-major
        ``Format``, or a prefix pytree of them. Dimensions that are ``PartitionSpec.UNCONSTRAINED``
        are left open.

    Returns:
      The same values, as a pytree of arrays. Outside of ``jit`` they are moved.

    Raises:
      TypeError: something given is no sharding.
      ValueError: they are no prefix; there is no sharding; a spec names Explicit axes, or an axis
        that the mesh does not have; the rank of a value is too small, or a dimension is not
        divisible.
      RuntimeError: a ``PartitionSpec`` is given, and no mesh is set.
      AssertionError: all axes of the mesh that is set are Explicit, and the type says otherwise.

    See also: ``jax.device_put``, ``jax.sharding.reshard``, ``jax.sharding.NamedSharding``,
    ``jax.jit``.

    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    >>> lax.with_sharding_constraint(jnp.arange(4), rows).sharding.spec
    P('x',)
    """
    leaves, tree = pytree.flatten(x)
    name = "with_sharding_constraint shardings"
    try:
        chosen = pytree.broadcast_prefix(shardings, x, is_sharding, name)
    except ValueError:
        raise pytree.prefix_error(shardings, x, name, is_sharding) from None
    return pytree.unflatten(tree, [
        constrained(installed.runtime.operand(leaf), _given(sharding, leaf))
        for leaf, sharding in zip(leaves, chosen, strict=True)])


def _given(sharding: object, leaf: object = None) -> Any:
    """A sharding that constrains a leaf.

    Raises:
      ValueError: it is None, or over an abstract mesh that nothing says the devices of.
    """
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, meshes.AbstractMesh) and (
            isinstance(leaf, np.ndarray) and not is_staging() and meshes.around().concrete.empty):
        raise ValueError(
            "Target sharding contains a `jax.sharding.AbstractMesh` which requires the input "
            f"passed should be a `jax.Array`. Got {type(leaf)} with shape "
            f"{leaf.dtype}{list(leaf.shape)}")
    if sharding is None:
        raise ValueError(
            "One of with_sharding_constraint arguments got sharding None which is not allowed. "
            "Please only pass `jax.sharding.Sharding` instances.")
    return sharding


def constrained(value: Any, sharding: object) -> Any:
    """One value with a constraint; None constrains nothing."""
    if isinstance(sharding, Format):
        return _laid_out(constrained(value, _given(sharding.sharding)), sharding.layout)
    if sharding is None:
        return value
    sharding = named(sharding, "with_sharding_constraint", "shardings")
    if not isinstance(sharding, Sharding):
        raise TypeError("shardings leaf specifications are expected to be PartitionSpec instances "
                        f"or None, but got {sharding}")
    if isinstance(sharding, NamedSharding):
        mesh, spec = sharding.mesh.abstract_mesh, sharding.spec
        if mesh.are_all_axes_explicit and not meshes.get_abstract_mesh().empty:
            _assert_type(value, sharding)
            return value
        if not set(spec_axes(spec)).isdisjoint((*mesh.explicit_axes, *mesh.manual_axes)):
            raise ValueError(
                "The spec of NamedSharding passed to with_sharding_constraint can only refer to "
                f"Auto axes of the mesh. Got spec={spec} and mesh={mesh}. You probably meant to "
                "use `reshard` API?")
        _check_manual(value, sharding)
        sharding = _applicable(sharding, value)
    return suggested(value, sharding)


def suggested(value: Array, sharding: Sharding) -> Array:
    """One value with a constraint, over axes of any type: nothing of it is in the value's type.

    Raises:
      ValueError: the value's shape cannot be divided like that.
    """
    check_shape(sharding, value.shape, "with_sharding_constraint arguments",
                divided="pjit outputs with pytree key path result")
    meshes.use.ever_set = True
    unconstrained = frozenset(
        dim for dim, entry in enumerate(getattr(sharding, "spec", ()))
        if entry is PartitionSpec.UNCONSTRAINED)
    return sharding_constraint_p.bind(
        value, sharding=sharding, layout=None, context_mesh=meshes.around().concrete,
        unconstrained_dims=unconstrained)


def _laid_out(value: Array, layout: object) -> Any:
    """A value in a layout: within programs that is only checked."""
    if not isinstance(layout, Layout):
        return value
    check_layout(layout, value.shape, "with_sharding_constraint arguments")
    return value if isinstance(value, Tracer) else installed.runtime.lay_out(value, layout)


def _applicable(sharding: NamedSharding, value: Array) -> NamedSharding:
    """The sharding as it can be followed: that of a concrete array over the devices of the mesh
    that is set, and inside a program without what does not divide a dimension."""
    mesh, spec = sharding.mesh, sharding.spec
    if not isinstance(value, Tracer):
        concrete = meshes.around().concrete
        if isinstance(mesh, meshes.AbstractMesh) and concrete.empty:
            return _over_own_devices(sharding, value)
        return NamedSharding(concrete, spec) if (
            isinstance(mesh, meshes.AbstractMesh) and not concrete.empty
            and concrete.abstract_mesh == mesh) else sharding
    if len(spec) > len(value.shape):
        return sharding
    entries = [
        entry if entry is PartitionSpec.UNCONSTRAINED or is_dimension(size)
        or not size % math.prod([mesh.shape[axis] for axis in entry_axes(entry)]) else None
        for entry, size in zip(spec.partitions, value.shape, strict=False)]
    return sharding if entries == list(spec.partitions) else NamedSharding(
        mesh, spec.update(partitions=tuple(entries)))


def _over_own_devices(sharding: NamedSharding, value: Array) -> NamedSharding:
    """A sharding over an abstract mesh, over the devices of the array.

    Raises:
      ValueError: the array lies over a mesh of other axes.
      TypeError: it lies over none.
    """
    own, shown = value.sharding, value.aval.str_short()
    if not isinstance(own, NamedSharding):
        raise TypeError(
            "The sharding on the input must be a `NamedSharding` since the target sharding has an "
            f"`AbstractMesh` in it. Got sharding type {type(own)} for shape {shown}")
    if own.mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(
            f"Mesh shape of the input {own.mesh.shape_tuple} does not match the mesh shape of the "
            f"target sharding {sharding.mesh.shape_tuple} for shape {shown}")
    return NamedSharding(own.mesh, sharding.spec)


def _check_manual(value: Array, sharding: NamedSharding) -> None:
    """Inside ``shard_map`` a sharding leaves manual axes alone.

    Raises:
      ValueError: it names them, or its mesh does not know them as manual and the value varies along
        them.
    """
    mesh, manual = sharding.mesh, meshes.get_abstract_mesh().manual_axes
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    for axis in manual:
        if axis in value.aval.vma and kinds.get(axis, AxisType.Manual) is not AxisType.Manual:
            raise ValueError(
                "Axes mentioned in `manual_axis_type` field of ShapedArray should be of type "
                f"`Manual`. Got manual_axis_type={value.aval.manual_axis_type} with axis: {axis} "
                f"of type AxisType.{kinds[axis].name}")
    if not set(spec_axes(sharding.spec)).isdisjoint(manual):
        raise ValueError(
            f"pspec {sharding.spec} contains a manual axes {tuple(manual)} of mesh which is not "
            "allowed. If you are using a with_sharding_constraint under a shard_map, only use the "
            "mesh axis in PartitionSpec which are not manual.")


def _assert_type(value: Array, sharding: NamedSharding) -> None:
    entries = value.aval.mesh_spec
    own = PartitionSpec(*[None] * len(value.shape)) if entries is None else entries[1]
    missing = len(value.shape) - len(sharding.spec)
    asked = sharding.spec.update(partitions=(*sharding.spec.partitions, *[None] * missing))
    if own != asked:
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
            f"`Explicit`. The array sharding: {own} did not match the sharding provided: {asked}. "
            "Please use `jax.sharding.reshard` to shard your input to the sharding you want.")


def named(sharding: object, what: str, name: str) -> Any:
    """A partition spec as a sharding over the mesh around the code.

    Raises:
      RuntimeError: no mesh is set.
    """
    if not isinstance(sharding, PartitionSpec):
        return sharding
    around = meshes.around()
    found: Any = around.concrete if what == "jit" else meshes.context_mesh()
    if found.empty and what != "jit":
        found = around.physical
    if found.empty:
        raise RuntimeError(EMPTY_CONTEXT.format(what=what, name=name))
    return NamedSharding(found, sharding)


def with_out_sharding(function: Callable[..., PyTree], out_sharding: OutSharding, *args: PyTree,
                      **kwargs: PyTree) -> Any:
    """The result of a function of operands whose types mention no mesh, moved to the caller's
    ``out_sharding``."""
    return _moved_result(function, UnreducedKind.sum, out_sharding, args, kwargs)


def reduced_with_out_sharding(function: Callable[..., PyTree], kind: UnreducedKind,
                              out_sharding: OutSharding, *args: PyTree) -> PyTree:
    """``with_out_sharding`` of a reduction, which can leave parts of that kind to be combined.

    Raises:
      ShardingTypeError: the parts are to be of another kind.
    """
    if isinstance(out_sharding, PartitionSpec):
        out_sharding = over_context(out_sharding)
    if not isinstance(out_sharding, NamedSharding):
        return _moved_result(function, kind, out_sharding, args, {})
    spec = out_sharding.spec
    if spec.unreduced_kind not in (None, kind):
        raise ShardingTypeError(
            f"reduce_{kind.name} requires `out_sharding`'s unreduced_kind to be UnreducedKind."
            f"{kind.name} but got {spec}")
    own = getattr(getattr(args[0], "aval", None), "mesh_spec", None)
    if own is not None and own[1].unreduced and not spec.unreduced:
        # What is unreduced stays so, unless other axes are named.
        out_sharding = out_sharding.update(spec=spec.update(
            unreduced=own[1].unreduced, unreduced_kind=own[1].unreduced_kind))
    return _moved_result(function, kind, out_sharding, args, {})


def _moved_result(function: Callable[..., PyTree], kind: UnreducedKind, out_sharding: OutSharding,
                  args: PyTree, kwargs: PyTree) -> PyTree:
    if isinstance(out_sharding, PartitionSpec):
        out_sharding = over_context(out_sharding)
    if isinstance(out_sharding, NamedSharding) and not out_sharding.mesh.empty:
        named_function = getattr(function, "func", function)      # of a partial
        check_out_sharding(named_function.__name__, out_sharding)
    if isinstance(out_sharding, NamedSharding) and out_sharding.spec.unreduced:
        check_unreduced_out_sharding(function, out_sharding, args, kwargs)
        if context.trace is installed.runtime:
            return _as_program(
                lambda *args, **kwargs: _moved_result(function, kind, out_sharding, args, kwargs),
                args, kwargs)
    args, kwargs = pytree.map(freed, (args, kwargs))
    return resharded(function(*args, **kwargs), out_sharding, kind)


def reshape_with_out_sharding(function: Callable[[Array], Array], operand: ArrayLike,
                              out_sharding: OutSharding) -> PyTree:
    """``with_out_sharding`` of a reshape, which keeps what is unreduced or reduced.

    Raises:
      ValueError: the result is to be unreduced, or reduced, along other axes than the operand.
    """
    if isinstance(out_sharding, PartitionSpec):
        out_sharding = over_context(out_sharding)
    if not isinstance(out_sharding, NamedSharding):
        return with_out_sharding(function, out_sharding, operand)
    asked = out_sharding.spec
    on_mesh = operand.aval.mesh_spec if isinstance(operand, Array) else None
    own = PartitionSpec() if on_mesh is None else on_mesh[1]
    shown = NamedSharding(out_sharding.mesh.abstract_mesh, asked)
    for what in ("unreduced", "reduced"):
        if getattr(own, what) == getattr(asked, what):
            continue
        if not getattr(own, what):
            raise ValueError(f"out_sharding passed to `reshape` cannot contain {what} axes. Got "
                             f"{shown!r}")
        raise ValueError(
            f"out_sharding passed to reshape must be {what} over the same mesh axes as operand. "
            f"Got out_sharding: {asked} and operand type: {_short_type(operand)}")
    if on_mesh is None or not isinstance(operand, Array) or not (own.unreduced or own.reduced):
        return with_out_sharding(function, out_sharding, operand)
    unsplit = NamedSharding(on_mesh[0], own.update(partitions=()))
    return resharded(function(resharded(operand, unsplit)), out_sharding)


def _as_program(function: Callable[..., PyTree], args: PyTree, kwargs: PyTree) -> Any:
    """The result of a function whose operations run as one program: each device then keeps its
    own summand, where one operation after the other would give all devices the sum."""
    leaves, tree = pytree.flatten((args, kwargs))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Array)]
    result_tree: Any = None

    def flat(*tracers: Value) -> list[Any]:
        nonlocal result_tree
        inputs = dict(zip(places, tracers, strict=True))
        own_args, own_kwargs = pytree.unflatten(
            tree, [inputs.get(n, leaf) for n, leaf in enumerate(leaves)])
        results, result_tree = pytree.flatten(function(*own_args, **own_kwargs))
        return results

    arrays = [leaves[n] for n in places]
    closed = trace_to_jaxpr(flat, [array.aval for array in arrays])
    return pytree.unflatten(result_tree, installed.runtime.call(call_of(closed), arrays))


def check_out_sharding(operation: str, sharding: NamedSharding) -> None:
    """Raises ValueError where an ``out_sharding`` is over another mesh than the one that is set, or
    names axes that are not Explicit."""
    around = meshes.get_abstract_mesh()
    mesh = sharding.mesh.abstract_mesh
    if around.empty:
        around = mesh
    kinds = dict(zip(around.axis_names, around.axis_types, strict=True))
    if not around.manual_axes and (around.shape_tuple != mesh.shape_tuple or
            around.axis_types != mesh.axis_types and meshes.around().concrete.abstract_mesh
            != mesh):
        raise ValueError(f"Context mesh {around} should match the mesh of sharding {mesh} passed "
                         f"to {operation}." + occurs_at())
    for axis in spec_axes(sharding.spec):
        if kinds[axis] is not AxisType.Explicit:
            raise ValueError(
                f"PartitionSpec passed to {operation} cannot contain axis names that are of type "
                f"Auto or Manual. Got PartitionSpec: {sharding.spec} with axis name: {axis} of "
                f"type: {kinds[axis]}." + occurs_at())


def over_context(spec: PartitionSpec) -> NamedSharding:
    """A spec over the mesh that is set.

    Raises:
      ValueError: none is.
    """
    mesh = meshes.context_mesh()
    if mesh.empty:
        raise ValueError(
            "Using PartitionSpec when you are not under a mesh context is not allowed. Please "
            "pass a NamedSharding instance or enter into a mesh context via `jax.set_mesh`. "
            f"Got {spec}")
    return NamedSharding(mesh, spec)


def reshard(xs: PyTree, out_shardings: PyTree) -> Any:
    """The leaves of a pytree, moved to lie along Explicit axes as given; differentiable.

    Args:
      xs: a pytree of arrays.
      out_shardings: a ``NamedSharding``, a ``PartitionSpec`` of the mesh that is set, or a prefix
        pytree of them.

    Returns:
      A pytree of arrays of the same values, whose types have the new sharding.

    Raises:
      ValueError: no mesh is set, the spec names axes that are not Explicit, or a dimension is not
        divisible.

    See also: ``jax.device_put``, ``lax.with_sharding_constraint``, ``jax.set_mesh``.
    """
    leaves, tree = pytree.flatten(xs)
    chosen = pytree.broadcast_prefix(out_shardings, xs, is_sharding, "reshard out_shardings")
    for sharding in chosen:
        if sharding is None or isinstance(sharding, NamedSharding) and sharding.mesh.empty:
            raise ValueError("Reshard should only be used with out_shardings which are non-None "
                             f"and have a non-empty mesh. Got sharding {sharding}.")
    return pytree.unflatten(tree, [
        resharded(installed.runtime.operand(leaf), sharding)
        for leaf, sharding in zip(leaves, chosen, strict=True)])


def resharded(value: Value, sharding: Sharding | PartitionSpec | None,
              kind: UnreducedKind = UnreducedKind.sum) -> Any:
    """One value, moved; left where it is by a sharding over no mesh, as types without one have.

    Args:
      kind: what the value is made by. Any value can become parts of a sum, and only an extreme
        parts of an extreme.
    """
    if sharding is None:
        return value
    if isinstance(sharding, PartitionSpec):
        sharding = over_context(sharding)
    if not isinstance(sharding, NamedSharding):
        raise TypeError(f"reshard takes NamedShardings and PartitionSpecs, got {sharding!r}")
    mesh, spec = sharding.mesh, sharding.spec
    if mesh.empty:
        return value
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    for axis in spec_axes(spec):
        if axis not in mesh.explicit_axes:
            raise ValueError(
                "PartitionSpec passed to reshard cannot contain axis names that are of type Auto "
                f"or Manual. Got PartitionSpec: {spec} with axis name: {axis} of type: "
                f"{kinds[axis]}." + occurs_at())
    meshes.use.ever_set = True
    missing = len(value.shape) - len(spec)
    full = NamedSharding(mesh, spec.update(partitions=(*spec.partitions, *[None] * missing)))
    if spec.unreduced_kind not in (None, kind):
        _check_kind(value, full.spec)
    if sharding.memory_kind is not None and isinstance(mesh, meshes.AbstractMesh):
        raise ValueError(
            "sharding with memory_kind is not allowed. Please use `jax.device_put` to transfer to "
            f"different memory spaces. Got {sharding=}")
    return reshard_p.bind(value, dst_sharding=full)


def _short_type(value: ArrayLike) -> str:
    return value.aval.str_short(short_dtypes=True) if isinstance(value, Array) else str(value)


def _check_kind(value: Value, asked: PartitionSpec) -> None:
    """Raises ValueError where a value does not consist of parts of the kind that it should."""
    on_mesh = value.aval.mesh_spec if isinstance(value, Array) else None
    own = PartitionSpec(*[None] * len(value.shape)) if on_mesh is None else on_mesh[1]
    if own.unreduced_kind not in (None, asked.unreduced_kind):
        raise ValueError(
            "The unreduced_kind of input and output sharding passed to `jax.reshard` should be the "
            f"same. Got input spec: {own} and output spec: {asked}")
    if not asked.unreduced <= own.unreduced:
        raise ValueError("out_sharding passed to `jax.reshard` cannot be more unreduced than the "
                         f"input. Got input pspec: {own}, out pspec: {asked}")


