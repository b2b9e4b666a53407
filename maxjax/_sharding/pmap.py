"""``pmap``: a ``shard_map`` over one axis, in which each shard is one element."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import config, pytree
from maxjax._base.meshes import Mesh, get_abstract_mesh
from maxjax._base.meshes import use as mesh_use
from maxjax._base.processes import job
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.shardings import NamedSharding, check_shape
from maxjax._base.signatures import wraps
from maxjax._base.specs import AxisName, PartitionSpec
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.api import jit
from maxjax._higher_order.control import operands_of, traced
from maxjax._higher_order.jit_function import PjitFunction
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, Tracer, Value, context
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.layout import squeeze_p
from maxjax._sharding.shard_map import inside, shard_aval, shard_map_p
from maxjax._transforms.autodiff import check_callable

if TYPE_CHECKING:
    from maxjax._base.meshes import DeviceLike

P = PartitionSpec
_NAME = "_internal_pmap_axis_name"


def pmap(fun: Callable[..., PyTree], axis_name: AxisName = None, *, in_axes: PyTree = 0,
         out_axes: PyTree = 0, static_broadcasted_argnums: int | Iterable[int] = (),
         devices: Sequence[DeviceLike] | None = None, backend: str | None = None,
         axis_size: int | None = None, donate_argnums: int | Iterable[int] = ()
         ) -> Callable[..., Any]:
    """A function that applies ``fun`` to each element of its arguments along an axis, each on a
    device of its own, under jit.

    Args:
      fun: a function of arrays or pytrees of them, positional ones.
      axis_name: a name for the axis, for collectives such as ``lax.psum`` inside ``fun``.
      in_axes: for each positional argument the axis that is mapped, or None; a prefix pytree.
        Keyword arguments map axis 0.
      out_axes: where the axis stands in the results; a prefix pytree. None: the first element's.
      static_broadcasted_argnums: the positional arguments that are Python values.
      devices: which; absent: the first ones. Over several processes all devices; arguments and
        results hold the elements of this process's, whose number is the size of their axes.
      backend: of the devices.
      axis_size: how many elements there are; must be so.
      donate_argnums: positional arguments whose memory results may take; they are deleted.

    Returns:
      A function of the same arguments with one more axis in each that is mapped. The results lie
      over the devices along theirs.

    Raises:
      TypeError: ``fun`` is not callable, or an axis is neither an int nor None.
      ValueError: no argument is mapped, or there are not as many devices as elements.

    See also: ``jax.vmap``, ``jax.shard_map``, ``jax.jit``, ``lax.psum``,
    ``jax.local_device_count``.

    >>> jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jnp.array([2.]))
    Array([1.], dtype=float32)
    """
    check_callable(fun)
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if not all(type(leaf) is int for leaf in pytree.leaves(axes)):
            raise TypeError(f"pmap {name} must be an int, None, or (nested) container with those "
                            f"types as leaves, but got {axes}.")
    if devices is not None and not len(devices):
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    numbers = static_broadcasted_argnums
    static = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    mapped = _Mapped(fun, _NAME if axis_name is None else axis_name, in_axes, out_axes, static,
                     frozenset(donated), devices, backend, axis_size)

    @wraps(fun)
    @boundary
    def call(*args: PyTree, **kwargs: PyTree) -> Any:
        jitted, leaves, given = mapped.prepare(args, kwargs)
        results = jitted(*leaves)
        if donated and context.trace is installed.runtime:
            for leaf, original in zip(leaves, given, strict=True):
                if leaf is not original and not isinstance(
                        original, Tracer) and leaf.is_deleted():
                    original.delete()
        if job.device_counts:
            results = pytree.map(installed.runtime.collected, results)
        return results

    def lower(*args: PyTree, **kwargs: PyTree) -> Any:
        # By the class: the jitted function has the attributes of ``call``, this one among them.
        return PjitFunction.lower(jit(call, static_argnums=static), *args, **kwargs)

    call.lower = lower
    return call


class _Mapped:
    """A function under ``pmap``, with a jitted function of flat arguments for each signature."""

    def __init__(self, function: Callable[..., PyTree], axis_name: AxisName, in_axes: PyTree,
                 out_axes: PyTree, static: tuple[int, ...], donated: frozenset[int],
                 devices: Sequence[DeviceLike] | None, backend: str | None, axis_size: int | None):
        self.function = function
        self.name = getattr(function, "__name__", str(function))
        self.axis_name = axis_name
        self.in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self.out_axes = out_axes
        self.static = static
        self.donated = donated
        self.devices = devices
        self.backend = backend
        self.axis_size = axis_size
        self.jitted: dict[Any, Any] = {}

    def prepare(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> tuple[
            Any, list[Any], list[Any]]:
        """The jitted function, its flat arguments, and those before they were moved."""
        fixed = self._static_values(args)
        axes: Any = self.in_axes
        if isinstance(axes, tuple) and fixed:
            axes = tuple(axis for n, axis in enumerate(axes) if n not in fixed)
        dynamic = tuple(arg for n, arg in enumerate(args) if n not in fixed)
        leaves, tree = pytree.flatten((dynamic, kwargs))
        flat_axes = self._axes(axes, dynamic, kwargs)
        at_base = context.trace is installed.runtime
        values = operands_of(leaves)
        given = list(values)
        over_all = bool(job.device_counts) and at_base and not any(
            isinstance(value, Tracer) for value in values)
        sizes = [np.shape(leaf)[axis] for leaf, axis in zip(leaves, flat_axes, strict=True)
                 if axis is not None and -np.ndim(leaf) <= axis < np.ndim(leaf)
                 and hasattr(leaf, "dtype")]
        if not sizes:
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        mesh_use.ever_set = True
        mesh = self._mesh(sizes[0], over_all)
        over_all = over_all and mesh.is_multi_process
        if self.axis_size not in ((None, mesh.size) if over_all else (None, sizes[0])):
            raise ValueError(f"Specified axis_size {self.axis_size} doesn't match received "
                             f"axis_size {mesh.size if over_all else sizes[0]}.")
        specs = []
        for number, (value, axis) in enumerate(zip(values, flat_axes, strict=True)):
            rank = value.aval.ndim
            if axis is not None:
                axis = axis % max(rank, 1)
                flat_axes[number] = axis
                here = (mesh.local_mesh if over_all and getattr(value, "is_fully_addressable", True)
                        else mesh)
                check_shape(NamedSharding(here, _spec(axis, self.axis_name)), value.aval.shape,
                            f"pjit arguments with pytree key path flat_args[{number}]")
                if value.aval.shape[axis] != here.size:
                    shape = list(value.aval.shape)
                    shape[axis] //= here.size
                    raise ValueError(
                        "cannot select an axis to squeeze out which has size not equal to one, "
                        f"got shape={tuple(shape)} and dimensions=({axis},)")
            specs.append(P() if axis is None else _spec(axis, self.axis_name))
            if over_all and value.is_fully_addressable:
                values[number] = installed.runtime.spread(value, NamedSharding(mesh, specs[-1]))
            elif at_base and not isinstance(value, Tracer):
                values[number] = _moved(value, NamedSharding(mesh, specs[-1]))
        key = (tree, tuple(flat_axes), mesh,
               tuple((n, type(value), value) for n, value in fixed.items()))
        jitted = self.jitted.get(key)
        if jitted is None:
            jitted = self.jitted[key] = jit(
                self._flat_function(tree, tuple(flat_axes), mesh, tuple(specs), fixed, key),
                donate_argnums=self._donated_leaves(args, fixed))
        return jitted, values, given

    def _donated_leaves(self, args: tuple[PyTree, ...], fixed: dict[int, Any]) -> tuple[int, ...]:
        """The positions of the donated arguments' leaves among the flat arguments."""
        positions: list[int] = []
        start = 0
        for number, arg in enumerate(args):
            if number in fixed:
                continue
            count = len(pytree.leaves(arg))
            if number in self.donated:
                positions.extend(range(start, start + count))
            start += count
        return tuple(positions)

    def _static_values(self, args: tuple[PyTree, ...]) -> dict[int, Any]:
        if self.static and max(self.static) >= len(args):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={self.static} but was called "
                f"with only {len(args)} positional argument{'' if len(args) == 1 else 's'}. All "
                "static broadcasted arguments must be passed positionally.")
        fixed = {number % len(args): args[number] for number in self.static}
        for number, value in fixed.items():
            try:
                hash(value)
            except TypeError:
                raise ValueError(
                    "Non-hashable static arguments are not supported, as this can lead to "
                    f"unexpected cache-misses. Static argument (index {number}) of type "
                    f"{type(value)} for function {self.name} is non-hashable.") from None
        return fixed

    def _axes(self, axes: PyTree, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> list[Any]:
        try:
            return pytree.broadcast_prefix((axes, 0), (args, kwargs), lambda node: node is None)
        except ValueError:
            error = pytree.structure_error((axes, 0), (args, kwargs), "pmap in_axes",
                                           lambda node: node is None)
            by_name = "" if not kwargs else (
                "When some arguments are passed by keyword to the pmapped function, they are not "
                "included in the comparison to `in_axes`. Instead, each argument passed by keyword "
                "is mapped over its leading axis. See the description of `in_axes` in the `pmap` "
                "docstring: https://docs.jax.dev/en/latest/_autosummary/jax.pmap.html#jax.pmap"
                "\n\n")
            raise ValueError(
                f"{error}\n\nThe 'full pytree' here is the tuple of arguments passed positionally "
                "to the pmapped function, and the value of `in_axes` must be a tree prefix of that "
                f"tuple. But it was not a prefix.\n\n{by_name}Check that the value of the "
                "`in_axes` argument to `pmap` is a tree prefix of the tuple of arguments passed "
                "positionally to the pmapped function.") from None

    def _mesh(self, size: int, over_all: bool) -> Mesh:
        devices = list(installed.runtime.devices(self.backend) if self.devices is None
                       else self.devices)
        if job.device_counts and self.devices is None and not over_all:
            devices = [device for device in devices if device.process_index == job.index]
        if over_all:
            size = len(devices)
        chosen = np.empty(min(size, len(devices)), object)
        chosen[:] = devices[:size] if self.devices is None else devices
        return Mesh(chosen, (self.axis_name,))

    def _flat_function(self, tree: PyTreeSpec, axes: tuple[int | None, ...], mesh: Mesh,
                       specs: tuple[PartitionSpec, ...], fixed: dict[int, Hashable],
                       key: Hashable) -> Callable[..., Any]:
        name, manual = self.axis_name, frozenset([self.axis_name])

        def _fun(*values: Value) -> Any:
            around = get_abstract_mesh()
            if around.manual_axes:
                raise ValueError(f"The context mesh {around} should match the mesh passed to "
                                 f"shard_map {mesh}")
            found: list[tuple[PartitionSpec, ...]] = []

            def body(*shards: Array) -> Any:
                elements = [x if axis is None else squeeze_p.bind(x, dimensions=(axis,))
                            for x, axis in zip(shards, axes, strict=True)]
                dynamic, kwargs = pytree.unflatten(tree, elements)
                given = iter(dynamic)
                count = len(dynamic) + len(fixed)
                outputs = self.function(
                    *[fixed[n] if n in fixed else next(given) for n in range(count)], **kwargs)
                leaves, out_tree = pytree.flatten(outputs)
                try:
                    out_axes = pytree.broadcast_prefix(
                        self.out_axes, outputs, lambda node: node is None)
                except ValueError:
                    raise pytree.structure_error(
                        self.out_axes, outputs, "broadcast_prefix prefix_tree",
                        lambda node: node is None) from None
                results, out_specs = [], []
                for x, axis in zip(operands_of(leaves), out_axes, strict=True):
                    if axis is None:
                        results.append(x)
                        out_specs.append(P())
                        continue
                    axis %= len(x.shape) + 1
                    results.append(expand_axis(x, axis))
                    out_specs.append(_spec(axis, name))
                found.append(tuple(out_specs))
                return pytree.unflatten(out_tree, results)

            # A new object is traced anew: with `jax_disable_jit`, functions run at each call.
            function = partial(self.function) if config.disable_jit.value else self.function
            operands = operands_of(values)
            avals = [shard_aval(x.aval, spec, mesh, False, manual)
                     for x, spec in zip(operands, specs, strict=True)]
            with inside(mesh, manual, False):
                traced_body = traced(function, "shard_map", pytree.structure(tuple(avals)),
                                     avals, (self, key), body)
            if found:
                traced_body.out_specs = found[-1]
            consts = operands_of(traced_body.consts)
            results = shard_map_p.bind(
                *consts, *operands, mesh=mesh, in_specs=(*[P()] * len(consts), *specs),
                out_specs=traced_body.out_specs, jaxpr=traced_body.closed, check_vma=False,
                newly_manual_axes=manual)
            return pytree.unflatten(traced_body.tree, results)

        return _fun


def _moved(value: Array, sharding: NamedSharding) -> Any:
    """An argument, moved to the devices of the mapped axis if it is committed to others.

    Raises:
      ValueError: it has another sharding over the same devices.
    """
    own = value.sharding
    if not value.committed or own.is_equivalent_to(sharding, value.ndim):
        return value
    if own._devices() == sharding._devices() and value.ndim and not own.is_fully_replicated:
        raise ValueError(
            "Sharding passed to jit does not match the sharding on the respective arg. Got jit "
            f"sharding: {sharding!r},\narg sharding: {own!r} for arg type: {value.aval}")
    return installed.runtime.put(value, sharding)


def _spec(axis: int, name: AxisName) -> PartitionSpec:
    return P(*[None] * axis, name)
