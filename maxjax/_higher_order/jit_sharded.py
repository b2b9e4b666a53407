"""jit with shardings of arguments and results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import config, pytree
from maxjax._base.canonical_specs import canonical
from maxjax._base.errors import DuplicateSpecError
from maxjax._base.layouts import Format, Layout, check_layout
from maxjax._base.meshes import AbstractMesh, around
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.shardings import NamedSharding, Sharding, SingleDeviceSharding, check_shape
from maxjax._base.specs import UNCONSTRAINED, PartitionSpec
from maxjax._higher_order.constraints import constrained, named, suggested
from maxjax._higher_order.static_arguments import Static, dynamic_positions
from maxjax._higher_order.target import refuse_mesh
from maxjax._ir.refs import Ref, read
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, Tracer, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.rules import aval_of
from maxjax._primitives.sharding import ArrayCopySemantics, device_put_p

if TYPE_CHECKING:
    pass

Chosen = Sequence[Sharding | None]


class _Unspecified:
    """The default of ``jit``'s shardings."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = _Unspecified()


def _is_leaf(node: object) -> bool:
    return node is None or node is UNSPECIFIED or isinstance(
        node, (Sharding, PartitionSpec, Layout))


def on_device(device: Any) -> Shardings:
    """Those of a function that moves its arguments to a device, and runs there."""
    return Shardings(UNSPECIFIED, UNSPECIFIED, SingleDeviceSharding(device))


def checked(in_shardings: PyTree, out_shardings: PyTree) -> Shardings:
    """Those of a function whose arguments and results lie as given.

    Raises:
      TypeError: something given is not a sharding.
      ValueError: a sharding is over no mesh, a dimension is left unconstrained, or a layout stands
        alone.
    """
    def of_leaf(name: str, leaf: object) -> Any:
        if isinstance(leaf, Format):
            return leaf.sharding
        if isinstance(leaf, Layout):
            raise ValueError(
                "`jax.jit` does not accept device-local layouts directly. Create a `Format` "
                "instance wrapping this device-local layout and pass that to `jit` instead. Got "
                f"{leaf}")
        if isinstance(leaf, NamedSharding) and leaf.mesh.empty:
            raise ValueError(f"One of {name} leaf specifications got an empty NamedSharding: "
                             f"{leaf} which is not allowed.")
        if isinstance(leaf, NamedSharding) and UNCONSTRAINED in leaf.spec.partitions:
            raise ValueError(f"Unconstrained dims are not allowed when passed to {name}: {leaf}")
        if not _is_leaf(leaf):
            raise TypeError(f"{name} leaf specifications are expected to be PartitionSpec "
                            f"instances or None, but got {leaf}")
        return leaf

    def of_tree(name: str, tree: PyTree) -> PyTree:
        leaves, spec = pytree.flatten(tree, _is_leaf)
        read = [of_leaf(name, leaf) for leaf in leaves]
        return tree if all(map(operator.is_, read, leaves)) else pytree.unflatten(spec, read)

    found = Shardings(of_tree("in_shardings", in_shardings),
                      of_tree("out_shardings", out_shardings))
    found.in_layouts, found.out_layouts = map(_layouts, (in_shardings, out_shardings))
    return found


def _layouts(tree: PyTree) -> PyTree:
    """The layouts among shardings; None if there is none."""
    leaves, spec = pytree.flatten(tree, _is_leaf)
    layouts = [leaf.layout if isinstance(leaf, Format) and isinstance(leaf.layout, Layout) else None
               for leaf in leaves]
    return pytree.unflatten(spec, layouts) if any(layouts) else None


_HOST_INPUT = (
    "Passing non-trivial shardings for numpy inputs is not allowed. To fix this error, either "
    "specify a replicated sharding explicitly or use "
    "`jax.make_array_from_process_local_data(...)` to convert your host local numpy inputs to a "
    "jax.Array which you can pass to jit. If the numpy input is the same on each process, then you "
    "can use `jax.make_array_from_callback(...) to create a `jax.Array` which you can pass to jit. "
    "Got arg type: ")


class Shardings:
    """The shardings of the arguments and results of a function under jit, as far as given.

    Attributes:
      caller: whose name messages have; "pjit" takes the mesh of ``with mesh:``.
      in_layouts, out_layouts: those that arguments and results are to have, as pytrees; None: none.
    """

    def __init__(self, in_shardings: PyTree, out_shardings: PyTree,
                 device: SingleDeviceSharding | None = None):
        self.caller = "jit"
        self._device = device
        self._in_shardings = in_shardings
        self._out_shardings = out_shardings
        self._chosen: dict[Any, Chosen] = {}
        self.in_layouts: PyTree = None
        self.out_layouts: PyTree = None

    @property
    def moves_arguments(self) -> bool:
        """Whether arguments are put where the function runs, wherever they are."""
        return self._device is not None

    def check_call(self, has_kwargs: bool) -> None:
        """
        Raises:
          ValueError: keyword arguments have no shardings.
          NotImplementedError: a mesh is set around a function that runs on one device.
        """
        if has_kwargs and self._in_shardings not in (UNSPECIFIED, None):
            raise ValueError("pjit does not support kwargs when in_shardings is specified.")
        if self._device is not None:
            refuse_mesh()

    def placed(self, leaf: object, value: Array, sharding: Sharding, name: Callable[[], str]
               ) -> Any:
        """A leaf of the arguments, which is ``value`` as an array, with the sharding asked for.

        Args:
          name: that of the argument, for messages.

        Raises:
          ValueError: it lies elsewhere, or cannot have that sharding.
        """
        at_base = context.trace is installed.runtime
        if isinstance(leaf, Ref):
            if at_base:
                _check_reference(leaf, sharding)
            return leaf
        if self._device is not None:
            return _moved(value, sharding)
        if not at_base or isinstance(value, Tracer):
            return _constrained(value, sharding)
        if isinstance(leaf, np.ndarray) and not (
                sharding.is_fully_addressable or sharding.is_fully_replicated):
            raise ValueError(_HOST_INPUT + value.aval.str_short())
        return _placed(value, sharding, name)

    def of_arguments(self, tree: PyTreeSpec, static: Static | None) -> Chosen:
        """The sharding of each leaf of the arguments; None: left open."""
        if self._device is not None:
            return [self._device] * tree.num_leaves
        given = self._replicated(self._in_shardings)
        if given is UNSPECIFIED or given is None:
            return [None] * tree.num_leaves
        key = ("in", tree, static, config.trace_state())
        known = self._chosen.get(key)
        if known is None:
            known = self._chosen[key] = _resolved(
                _argument_shardings(given, tree, static), self.caller, "in_shardings")
        return known

    def _replicated(self, given: PyTree) -> PyTree:
        """What is asked for: to pjit on the mesh of ``with mesh:``, None says replicated."""
        if self.caller != "pjit" or around().physical.empty:
            return given
        return pytree.map(lambda leaf: PartitionSpec() if leaf is None else leaf, given,
                          is_leaf=_is_leaf)

    def of_results(self, avals: Sequence[ShapedArray], tree: PyTreeSpec) -> Chosen:
        """The sharding of each result, checked."""
        if self._device is not None:
            return [self._device] * len(avals)
        asked = self._replicated(self._out_shardings)
        if asked is None or asked is UNSPECIFIED:
            return [None] * len(avals)
        whole = pytree.numbered(tree)
        found = _resolved(_prefix(asked, whole, "pjit out_shardings"), self.caller, "out_shardings")
        for path, sharding, aval in zip(
                pytree.flatten_with_path(whole)[0], found, avals, strict=True):
            if sharding is not None:
                check_shape(sharding, aval.shape, "pjit outputs with pytree key path result"
                            + pytree.path_string(path))
        return found

    def layouts_of_arguments(self, tree: PyTreeSpec, static: Static | None) -> list[Any]:
        """The layout asked for each leaf of the arguments, or None."""
        if self.in_layouts is None:
            return [None] * tree.num_leaves
        return _argument_shardings(self.in_layouts, tree, static)

    def check_layouts_of_arguments(self, avals: Sequence[object], tree: PyTreeSpec,
                                   static: Static | None, names: Callable[[], Sequence[str]]
                                   ) -> None:
        """
        Args:
          names: those of the arguments, for messages.

        Raises:
          ValueError: an argument is of another rank than the layout asked for.
        """
        if self.in_layouts is None:
            return
        layouts = self.layouts_of_arguments(tree, static)
        for number, (layout, aval) in enumerate(zip(layouts, avals, strict=True)):
            if layout is not None and isinstance(aval, ShapedArray):
                check_layout(layout, aval.shape,
                             f"jit arguments with pytree key path {names()[number]}")

    def layouts_of_results(self, avals: Sequence[ShapedArray], tree: PyTreeSpec
                           ) -> list[Any] | None:
        """The layout asked for each result, checked, or None; None if there is none at all."""
        if self.out_layouts is None:
            return None
        whole = pytree.numbered(tree)
        found = _prefix(self.out_layouts, whole, "pjit out_shardings")
        for path, layout, aval in zip(
                pytree.flatten_with_path(whole)[0], found, avals, strict=True):
            if layout is not None:
                check_layout(layout, aval.shape, "jit outputs with pytree key path result"
                             + pytree.path_string(path))
        return found


def constrained_results(results: Sequence[Array], shardings: Chosen) -> list[Any]:
    """Results inside another program, constrained to the shardings asked for."""
    return [_constrained(value, sharding)
            for value, sharding in zip(results, shardings, strict=True)]


def _placed(value: Array, sharding: Sharding, name: Callable[[], str]) -> Any:
    """A concrete argument with the sharding asked for.

    Raises:
      ValueError: it was put elsewhere on purpose, or cannot have that sharding.
      NotImplementedError: it is on a device of another process.
    """
    if isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        raise _placed_elsewhere(sharding, value.sharding, value.aval)
    if value.committed:
        own = value.sharding
        if own == sharding or own.is_equivalent_to(sharding, value.ndim):
            return value
        if isinstance(own, SingleDeviceSharding) and isinstance(sharding, SingleDeviceSharding):
            return installed.runtime.put(value, sharding)
        if (isinstance(own, SingleDeviceSharding) and not sharding.is_fully_addressable
                and sharding.is_fully_replicated):
            # Each process gives what is on a device of its own.
            if not own.is_fully_addressable:
                raise NotImplementedError("Cannot reshard an input that is not fully addressable")
            return installed.runtime.put(value, sharding)
        raise _placed_elsewhere(sharding, own, value.aval)
    check_shape(sharding, value.shape, f"pjit arguments with pytree key path {name()}")
    placed = installed.runtime.put(value, sharding)
    # What is asked of an argument says where it lies, not what its type is.
    placed.aval = value.aval
    return placed


def _check_reference(ref: Ref, sharding: Sharding) -> None:
    """Raises ValueError where a reference's value, which stays where it is, lies elsewhere."""
    value = read(ref)
    if not isinstance(value, Tracer) and not value.sharding.is_equivalent_to(sharding, value.ndim):
        raise _placed_elsewhere(sharding, value.sharding, ref.aval)


def _placed_elsewhere(asked: Sharding, own: Sharding, aval: object) -> ValueError:
    if asked.memory_kind != own.memory_kind:
        return ValueError(
            "Memory kinds passed to jax.jit does not match memory kind on the respective arg. Got "
            f"jit memory kind: {asked.memory_kind}, arg memory kind: {own.memory_kind} for arg "
            f"type: {aval}")
    return ValueError(
        "Sharding passed to jit does not match the sharding on the respective arg. Got "
        f"jit sharding: {asked!r},\narg sharding: {own!r} for arg type: {aval}")


def _moved(value: Value, sharding: Sharding) -> Any:
    """A value that is put on a device, wherever it is."""
    return device_put_p.bind(value, devices=(sharding,), srcs=(None,),
                             copy_semantics=(ArrayCopySemantics.REUSE_INPUT,))[0]


def _constrained(value: Array, sharding: Sharding | None) -> Any:
    """A value inside another program, constrained to the sharding asked for. Its type, if it says
    where the value lies, stays as it is."""
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
        is_typed = aval_of(value).mesh_spec is not None or not around().abstract.empty
        return value if is_typed else suggested(value, sharding)
    return constrained(value, sharding)


def _argument_shardings(given: PyTree, tree: PyTreeSpec, static: Static | None) -> list[Any]:
    if _is_leaf(given):
        return [given] * canonical(tree).children()[0].num_leaves
    args, _ = pytree.numbered(tree)
    start = ("pjit in_shardings specification must be a tree prefix of the positional arguments "
             "tuple. In particular, pjit in_shardings must either be a Sharding, a PartitionSpec, "
             "or a tuple of length equal to the number of positional arguments. But pjit "
             "in_shardings is ")
    if type(given) not in (tuple, list):
        raise ValueError(
            f"{start}not a tuple: got {type(given)} instead. Given the corresponding argument "
            "being passed, it looks like pjit in_shardings might need to be wrapped in a "
            "singleton tuple.")
    count = len(args) if static is None else static.num_positional
    if len(given) == count and count != len(args):
        given = tuple(given[position] for position in dynamic_positions(tree, static))
    if len(given) != len(args):
        raise ValueError(f"{start}the wrong length: got a tuple or list of length {len(given)} "
                         f"for an args tuple of length {len(args)}.")
    return _prefix(tuple(given), args, "pjit in_shardings")


def _prefix(prefix: PyTree, whole: PyTree, name: str) -> list[Any]:
    try:
        return pytree.broadcast_prefix(prefix, whole, _is_leaf, name)
    except ValueError:
        if name == "pjit out_shardings":
            whole = pytree.map(lambda _: pytree.PytreeLeaf(), whole)
        errors = pytree.structure_errors(prefix, whole, name, _is_leaf)
        raise ValueError("\n".join([f"Mismatch details ({len(errors)} found):", *errors])
                         ) from None


def _resolved(given: Sequence[object], caller: str, name: str) -> Chosen:
    try:
        return [None if leaf is UNSPECIFIED else named(leaf, caller, name) for leaf in given]
    except DuplicateSpecError as error:
        raise DuplicateSpecError(str(error).replace("NamedSharding spec", name)) from None


def check_devices(shardings: Chosen) -> None:
    """Raises ValueError where results are to be on different devices."""
    first: Any = None
    for sharding in shardings:
        if sharding is None or isinstance(getattr(sharding, "mesh", None), AbstractMesh):
            continue
        devices = sharding._devices()
        if first is None:
            first = devices
        elif list(first) != list(devices):
            shown = " and ".join(
                f"explicit output sharding with device ids {[d.id for d in group]} on platform CPU"
                for group in (first, devices))
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got {shown}")
