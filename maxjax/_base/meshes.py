"""Meshes of devices with named axes, and the mesh around the running code.

All that is asked of devices here is ``id``, ``platform`` and ``device_kind``.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar

import numpy as np

from maxjax._base import config
from maxjax._base.config import set_trace_meshes
from maxjax._base.interrupts import entered_at_once
from maxjax._base.processes import job
from maxjax._base.specs import AxisName

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class AxisType(enum.Enum):
    """Who decides how values are split along an axis: the propagation, the types, or the user."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


# --- meshes ---------------------------------------------------------------------------------------

AxisNames = str | Iterable[AxisName]
AxisTypes = AxisType | tuple[AxisType, ...] | None

if TYPE_CHECKING:
    class DeviceLike(Protocol):
        """What meshes ask of a device."""

        id: int
        platform: str

        @property
        def device_kind(self) -> str: ...

@dataclass(frozen=True)
class AbstractDevice:
    """The kind of a mesh's devices."""

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return (f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, "
                f"platform={self.platform})")


def _names(axis_names: AxisNames) -> tuple[Any, ...]:
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if any(name is None for name in names):
        raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
    return names


def _types(kind: str, names: tuple[AxisName, ...], axis_types: AxisTypes) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Explicit if kind == "AbstractMesh" else AxisType.Auto,) * len(names)
    types = axis_types if isinstance(axis_types, tuple) else (axis_types,)
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError(
            f"axis_types passed to {kind} must be of type `jax.sharding.AxisType`. Got "
            f"{types} of type {tuple(type(t) for t in types)}")
    if len(types) != len(names):
        raise ValueError("Number of axis names should match the number of axis_types. Got "
                         f"axis_names={names} and axis_types={types}")
    return types


class _Axes:
    """What concrete and abstract meshes have in common: named axes with sizes and types."""

    __slots__ = ()
    axis_names: tuple[Any, ...]
    axis_sizes: Any
    axis_types: tuple[AxisType, ...]

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """Sizes by name, in order."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Pairs of name and size."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there are no axes."""
        return not self.axis_names

    def _of_type(self, wanted: AxisType) -> tuple[Any, ...]:
        return tuple(name for name, kind in zip(self.axis_names, self.axis_types, strict=True)
                     if kind is wanted)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """The axes along which propagation decides."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The axes along which the types say how values are split."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """The axes that the code communicates over itself."""
        return self._of_type(AxisType.Manual)

    def _all(self, wanted: AxisType) -> bool:
        return bool(self.axis_types) and all(kind is wanted for kind in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, all Auto."""
        return self._all(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, all Explicit."""
        return self._all(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, all Manual."""
        return self._all(AxisType.Manual)


class AbstractMesh(_Axes):
    """A mesh of which only the axes are known: names, sizes and types.

    Raises:
      ValueError: there are not as many names or types as sizes.
    """

    __slots__ = ("__weakref__", "abstract_device", "axis_names", "axis_sizes", "axis_types")

    def __init__(self, axis_sizes: Sequence[int], axis_names: AxisNames,
                 axis_types: AxisTypes = None, *, abstract_device: AbstractDevice | None = None):
        self.axis_sizes = tuple(axis_sizes)
        self.axis_names = _names(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"AbstractMesh has {len(self.axis_sizes)} axis_sizes {self.axis_sizes} and "
                f"{len(self.axis_names)} axis_names {self.axis_names}: one of each is wanted.")
        self.axis_types = _types("AbstractMesh", self.axis_names, axis_types)
        self.abstract_device = abstract_device

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def _none(self, name: str) -> Any:
        raise ValueError(f"AbstractMesh does not implement {name}")

    devices = property(lambda self: self._none("devices"))
    device_ids = property(lambda self: self._none("device_ids"))
    is_multi_process = property(lambda self: self._none("is_multi_process"))
    local_devices = property(lambda self: self._none("local_devices"))
    local_mesh = property(lambda self: self._none("local_mesh"))

    def update(self, axis_sizes: Sequence[int] | None = None, axis_names: AxisNames | None = None,
               axis_types: AxisTypes = None, **kwargs: AbstractDevice | None) -> AbstractMesh:
        """A copy of the mesh, with what is given in place of its own."""
        kwargs.setdefault("abstract_device", self.abstract_device)
        return AbstractMesh(self.axis_sizes if axis_sizes is None else axis_sizes,
                            self.axis_names if axis_names is None else axis_names,
                            self.axis_types if axis_types is None else axis_types, **kwargs)

    def update_axis_types(self, name_to_type: Mapping[AxisName, AxisType]) -> AbstractMesh:
        """A copy of the mesh in which the named axes have other types."""
        return self.update(axis_types=tuple(
            name_to_type.get(name, kind)
            for name, kind in zip(self.axis_names, self.axis_types, strict=True)))

    def _key(self) -> tuple[Any, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, AbstractMesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple) or "()"
        device = self.abstract_device
        kind = "" if device is None else (
            f", device_kind={device.device_kind}, num_cores={device.num_cores}, "
            f"platform={device.platform}")
        return f"AbstractMesh({axes}, axis_types={self.axis_types}{kind})"


EMPTY = AbstractMesh((), ())


class Mesh(_Axes):
    """An array of devices whose dimensions have names. Equal meshes are one object.

    As a context (``with mesh:``, deprecated) or a decorator it gives meaning to a
    ``PartitionSpec`` in ``with_sharding_constraint`` and ``pjit``; ``set_mesh`` does more.

    Args:
      devices: an array of devices, or a nested sequence of them.
      axis_names: one name, or one for each dimension.
      axis_types: an ``AxisType`` for each; None: Auto.

    Raises:
      ValueError: there are not as many names or types as dimensions.
      TypeError: the types are no ``AxisType``s.

    See also: ``jax.make_mesh``, ``jax.set_mesh``, ``jax.sharding.NamedSharding``,
    ``jax.shard_map``.
    """

    __slots__ = ("__weakref__", "_hash", "_internal", "abstract_mesh", "axis_names", "axis_types",
                 "devices")
    devices: np.ndarray
    abstract_mesh: AbstractMesh      # the axes without the devices
    _internal: tuple[Any, ...]
    _hash: int

    def __new__(cls, devices: np.ndarray | Sequence[object], axis_names: AxisNames,
                axis_types: AxisTypes = None) -> Mesh:
        array = devices if isinstance(devices, np.ndarray) else np.array(devices, dtype=object)
        names = _names(axis_names)
        if array.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                f"its second argument (`axis_names`), but got devices.ndim == {array.ndim} and "
                f"len(axis_names) == {len(names)}.")
        types = _types("Mesh", names, axis_types)
        key = (tuple(array.flat), array.shape, names, types)
        known = _meshes.get(key)
        if known is not None:
            return known
        self = object.__new__(cls)
        array = array.copy()
        array.flags.writeable = False
        self.devices = array
        self.axis_names = names
        self.axis_types = types
        self._internal = key
        self._hash = hash(key)
        first: Any = next(iter(array.flat), None)
        # What stands for a device in a test need not say of which kind it is.
        kind = None if not hasattr(first, "device_kind") else AbstractDevice(
            first.device_kind, getattr(first, "num_cores", None), first.platform)
        self.abstract_mesh = AbstractMesh(array.shape, names, types, abstract_device=kind)
        _meshes[key] = self
        return self

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.devices.shape

    @property
    def size(self) -> int:
        """The number of devices."""
        return self.devices.size if self.axis_names else 0

    @property
    def is_scalar(self) -> bool:
        """Whether it has one device and no axes."""
        return not self.axis_names and self.devices.size == 1

    @property
    def device_ids(self) -> np.ndarray:
        """The devices' numbers, in the mesh's shape."""
        return np.array([device.id for device in self.devices.flat], int).reshape(
            self.devices.shape)

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh in this process.

        Raises:
          ValueError: that is no mesh of the same axes, or empty.
        """
        if not self.is_multi_process:
            return self
        here = np.vectorize(lambda device: device.process_index == job.index, otypes=[bool])(
            self.devices)
        part = self.devices[np.ix_(*[
            np.flatnonzero(here.any(axis=tuple(other for other in range(here.ndim)
                                               if other != dim)))
            for dim in range(here.ndim)])]
        if not part.size or part.size != here.sum():
            raise ValueError("When passing a mesh with devices of several processes, those of each "
                             f"must form a block of it, got {self.devices}")
        return self.update(devices=part)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process, in order."""
        return [device for device in self.devices.flat
                if getattr(device, "process_index", job.index) == job.index]

    @property
    def is_multi_process(self) -> bool:
        """Whether devices belong to several processes."""
        return job.count > 1 and len({
            getattr(device, "process_index", 0) for device in self.devices.flat}) > 1

    def update(self, devices: np.ndarray | Sequence[object] | None = None,
               axis_names: AxisNames | None = None, axis_types: AxisTypes = None) -> Mesh:
        """A copy of the mesh, with what is given in place of its own."""
        return Mesh(self.devices if devices is None else devices,
                    self.axis_names if axis_names is None else axis_names,
                    self.axis_types if axis_types is None else axis_types)

    def __enter__(self) -> Mesh:
        if config.disallow_mesh_context_manager.value:
            raise RuntimeError("Mesh context manager is disabled.")
        warnings.warn("`with mesh:` context manager has been deprecated. Please use `with "
                      "jax.set_mesh(mesh):` instead.", DeprecationWarning, stacklevel=2)
        now, before = _current.around, _current.before
        try:
            _current.before = [*before, now]
            _current.enter(_current.changed(physical=self))
        except BaseException:       # an interrupt: nobody calls `__exit__`
            _current.before = before
            _current.put_back(now)
            raise
        return self

    @entered_at_once
    def __exit__(self, *_: object) -> Literal[False]:
        *_current.before, previous = _current.before
        _current.put_back(previous)
        return False

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        """As a decorator: the function, called in the mesh's context."""
        @functools.wraps(function)
        def within(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            with self:
                return function(*args, **kwargs)

        return within

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self._internal == other._internal)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        if self is EMPTY_MESH:
            return "Mesh(axis_sizes=(), axis_names=())"
        return (f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
                f"axis_types={self.axis_types})")

    def __str__(self) -> str:
        if self is EMPTY_MESH:
            return "Mesh()"
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"Mesh({axes}, axis_types={self.axis_types})"


_meshes: weakref.WeakValueDictionary[Any, Mesh] = weakref.WeakValueDictionary()


def concrete_meshes(abstract: AbstractMesh) -> list[Mesh]:
    """The living meshes of devices that an abstract mesh may stand for."""
    return [mesh for mesh in list(_meshes.values()) if mesh.abstract_mesh == abstract]


# With devices, or of axes alone.
AnyMesh = Mesh | AbstractMesh
EMPTY_MESH = Mesh(np.empty((), object), ())


# --- the mesh around the running code -------------------------------------------------------------


@dataclass(frozen=True)
class Around:
    """The meshes that are set: by ``use_abstract_mesh``, ``set_mesh`` (both) and ``with mesh``."""

    abstract: AbstractMesh = EMPTY
    concrete: Mesh = EMPTY_MESH
    physical: Mesh = EMPTY_MESH
    # Whether there is none; a field, as who puts something back cannot compute it.
    is_none: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_none", self.abstract == EMPTY and all(
            mesh == EMPTY_MESH for mesh in (self.concrete, self.physical)))


NONE_AROUND = Around()


class _Use:
    """Whether anybody has ever set a mesh or asked for a sharding within a program: a single check
    where nobody has."""

    __slots__ = ("ever_set",)

    def __init__(self) -> None:
        self.ever_set = False


use = _Use()


class _Current(threading.local):
    def __init__(self) -> None:
        self.around = NONE_AROUND
        self.before: list[Around] = []      # what is set around each ``with mesh``

    def enter(self, around: Around) -> None:
        if not around.concrete.empty:
            use.ever_set = True
        self.put_back(around)

    @entered_at_once
    def put_back(self, around: Around) -> None:
        self.around = around
        # Programs traced under other meshes are other programs.
        set_trace_meshes(None if around.is_none else around)

    def changed(self, **meshes: Any) -> Around:
        """The meshes that are set, but for these."""
        return dataclasses.replace(self.around, **meshes)


_current = _Current()


def around() -> Around:
    """The meshes around the running code."""
    return _current.around


def set_around(meshes: Around) -> Around:
    """Puts other meshes around the code that follows, and returns the previous ones."""
    previous = _current.around
    try:
        _current.enter(meshes)
    except BaseException:       # an interrupt
        _current.put_back(previous)
        raise
    return previous


@entered_at_once
def put_back(meshes: Around) -> None:
    """Puts those meshes around the code that follows that were there before."""
    _current.put_back(meshes)


class within:
    """``with within(meshes):`` has the code see those meshes around it that were there before."""

    __slots__ = ("_meshes", "_previous")

    def __init__(self, meshes: Around):
        self._meshes = meshes

    def _chosen(self) -> Around:
        return self._meshes

    def __enter__(self) -> None:
        chosen = self._chosen()
        self._previous = _current.around
        try:
            _current.enter(chosen)
        except BaseException:       # an interrupt: nobody calls `__exit__`
            self.__exit__()
            raise

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        _current.put_back(self._previous)


def get_abstract_mesh() -> AbstractMesh:
    """The abstract mesh that is set; an empty one if none is.

    Returns:
      An ``AbstractMesh``.

    See also: ``jax.set_mesh``, ``jax.make_mesh``, ``jax.sharding.Mesh``.
    """
    return _current.around.abstract


def context_mesh() -> AnyMesh:
    """The mesh that specs are about: that which is set, with the axes of the abstract one that
    ``use_abstract_mesh`` has put in its place. Within ``shard_map`` it is the mesh of all axes."""
    around = _current.around
    abstract, concrete = around.abstract, around.concrete
    if concrete.empty:
        return abstract
    if abstract.empty or abstract.manual_axes or abstract == concrete.abstract_mesh:
        return concrete
    if abstract.size != concrete.size:
        return abstract
    return Mesh(concrete.devices.reshape(abstract.axis_sizes), abstract.axis_names,
                abstract.axis_types)


class use_abstract_mesh(within):
    """``with use_abstract_mesh(mesh):`` sets an abstract mesh.

    Raises:
      ValueError: it is no abstract mesh, or the mesh that is set has another number of devices.
    """

    __slots__ = ("mesh",)

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(
                f"Expected mesh of type `jax.sharding.AbstractMesh`. Got type: {type(mesh)}")
        self.mesh = mesh

    def _chosen(self) -> Around:
        _check_size(self.mesh)
        return _current.changed(abstract=self.mesh)


def _check_size(mesh: AbstractMesh) -> None:
    """Raises ValueError where the mesh that is set has another number of devices."""
    previous = _current.around.abstract
    if not (previous.empty or mesh.empty) and previous.size != mesh.size:
        raise ValueError(
            f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {mesh} with "
            f"size={mesh.size} and prev mesh: {previous} with size={previous.size}")


class physical_mesh_set(within):
    """Sets the mesh of ``with mesh:``, if there is one, as ``set_mesh`` would.

    Raises:
      ValueError: another mesh is set, of another number of devices.
    """

    __slots__ = ()

    def __init__(self) -> None:
        """Which mesh it is, is seen when the context is entered."""

    def _chosen(self) -> Around:
        physical = _current.around.physical
        if physical.empty:
            return _current.around
        _check_size(physical.abstract_mesh)
        return _current.changed(abstract=physical.abstract_mesh, concrete=physical)
