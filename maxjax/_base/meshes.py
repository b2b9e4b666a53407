"""Meshes of devices with named axes, partition specs, and the mesh around the running code.

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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar

import numpy as np

from maxjax._base import config
from maxjax._base.config import set_trace_meshes
from maxjax._base.interrupts import entered_at_once
from maxjax._base.processes import job

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
# Of a mesh axis; mostly a string.
AxisName = Hashable


class AxisType(enum.Enum):
    """Who decides how values are split along an axis: the propagation, the types, or the user."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


# --- partition specs ------------------------------------------------------------------------------


class _Unconstrained:
    """The entry of a dimension that a spec leaves open."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()
# Of one dimension: an axis, several in a tuple or list, None, or UNCONSTRAINED.
SpecEntry = AxisName | list[AxisName]


def _canonical_entry(entry: SpecEntry) -> Any:
    if isinstance(entry, (list, tuple)):
        for axis in entry:
            if isinstance(axis, (list, tuple)):
                raise ValueError("A tuple inside PartitionSpec cannot contain a nested tuple. Got "
                                 f"partition: {entry} and the nested tuple: {axis}")
        if not entry:
            return None
        return entry[0] if len(entry) == 1 else tuple(entry)
    return entry


def _checked_axes(name: str, axes: object) -> frozenset[Any]:
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(
            f"{name} argument of PartitionSpec should of type `frozenset` or `set`. Got type "
            f"{type(axes)}")
    if None in axes:
        raise ValueError(f"{name} cannot contain None. All elements in {name} should refer to the "
                         "mesh axes.")
    return frozenset(axes)


class UnreducedKind(enum.Enum):
    """How the shards of an array combine into it, over axes over which it is unreduced.

    >>> jax.sharding.UnreducedKind.sum
    <UnreducedKind.sum: 1>
    """

    sum = 1
    max = 2
    min = 3


def checked_kind(kind: UnreducedKind | None, unreduced: frozenset[AxisName]
                 ) -> UnreducedKind | None:
    """The kind that belongs to these unreduced axes: a sum where none is given.

    Raises:
      TypeError: it is no ``UnreducedKind``.
      ValueError: there are no such axes.
    """
    if kind is None:
        return UnreducedKind.sum if unreduced else None
    if not isinstance(kind, UnreducedKind):
        raise TypeError("Expected unreduced_kind to be of type `jax.sharding.UnreducedKind` but "
                        f"got {type(kind)}")
    if not unreduced:
        raise ValueError("`unreduced_kind` should be `None` when `unreduced` is an empty set. Got "
                         f"unreduced_kind={kind!r} and {unreduced=}")
    return kind


# Equal specs are one object, so that comparing and hashing them takes no time.
_SPECS: weakref.WeakValueDictionary[Any, PartitionSpec] = weakref.WeakValueDictionary()


class PartitionSpec:
    """Over which mesh axes each dimension of an array is split; equal specs are the same object.

    Args:
      *partitions: for each dimension the name of an axis, several in a tuple (major first), None
        (it is not split), or ``PartitionSpec.UNCONSTRAINED``. Missing ones are None.
      unreduced: axes over which the shards are summands of the array.
      reduced: axes over which the cotangent is unreduced.
      unreduced_kind: how the shards combine; None where there are no unreduced axes, which are
        summands by default.

    Raises:
      ValueError: an axis is in two of the sets, or None is in one; there is a kind and no
        unreduced axis.
      TypeError: the sets are none, or the kind is no ``UnreducedKind``.

    See also: ``jax.sharding.NamedSharding``, ``jax.sharding.Mesh``, ``jax.jit``, ``jax.shard_map``.

    >>> PartitionSpec("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("__weakref__", "_partitions", "_reduced", "_unreduced", "_unreduced_kind")
    UNCONSTRAINED = UNCONSTRAINED

    _partitions: tuple[Any, ...]
    _unreduced: frozenset[Any]
    _reduced: frozenset[Any]
    _unreduced_kind: UnreducedKind | None

    def __new__(cls, *partitions: SpecEntry,
                unreduced: set[AxisName] | frozenset[AxisName] = frozenset(),
                reduced: set[AxisName] | frozenset[AxisName] = frozenset(),
                unreduced_kind: UnreducedKind | None = None) -> PartitionSpec:
        entries = tuple(map(_canonical_entry, partitions))
        unreduced = _checked_axes("unreduced", unreduced)
        reduced = _checked_axes("reduced", reduced)
        key = entries, unreduced, reduced, checked_kind(unreduced_kind, unreduced)
        found = _SPECS.get(key)
        if found is not None:
            return found
        _check_spec_parts(entries, unreduced, reduced)
        made = object.__new__(cls)
        for name, value in zip(("_partitions", "_unreduced", "_reduced", "_unreduced_kind"), key,
                               strict=True):
            object.__setattr__(made, name, value)
        return _SPECS.setdefault(key, made)

    def __init_subclass__(cls, **kwargs: object) -> None:
        raise TypeError("Subclassing `jax.P` is prohibited.")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot assign to field {name!r}")

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries of the dimensions."""
        return self._partitions

    @property
    def unreduced(self) -> frozenset[Any]:
        """The axes over which the shards are summands of the array."""
        return self._unreduced

    @property
    def reduced(self) -> frozenset[Any]:
        """The axes over which the cotangent is unreduced."""
        return self._reduced

    @property
    def unreduced_kind(self) -> UnreducedKind | None:
        """How the shards combine over the unreduced axes; None where there are none."""
        return self._unreduced_kind

    def update(self, partitions: Iterable[SpecEntry] | None = None,
               unreduced: frozenset[AxisName] | None = None,
               reduced: frozenset[AxisName] | None = None,
               unreduced_kind: UnreducedKind | None = None) -> PartitionSpec:
        """A copy of the spec, with what is given in place of its own."""
        unreduced = self._unreduced if unreduced is None else unreduced
        if unreduced_kind is None and unreduced:
            unreduced_kind = self._unreduced_kind
        return PartitionSpec(
            *(self._partitions if partitions is None else partitions), unreduced=unreduced,
            reduced=self._reduced if reduced is None else reduced, unreduced_kind=unreduced_kind)

    def to_tangent_spec(self) -> PartitionSpec:
        """The spec of a tangent: the same."""
        return self

    def to_ct_spec(self) -> PartitionSpec:
        """The spec of a cotangent: unreduced and reduced axes are exchanged."""
        return PartitionSpec(*self._partitions, unreduced=self._reduced, reduced=self._unreduced)

    def to_lo(self) -> list[PartitionSpec]:
        """The spec, in a list."""
        return [self]

    def index(self, value: SpecEntry) -> int:
        """The first dimension with that entry."""
        return self._partitions.index(_canonical_entry(value))

    def count(self, value: SpecEntry) -> int:
        """How many dimensions have that entry."""
        return self._partitions.count(_canonical_entry(value))

    def __getitem__(self, position: int | slice) -> Any:
        if self._unreduced or self._reduced:
            raise ValueError(
                "Using pspec[...] is dangerous when PartitionSpec has non-empty unreduced/reduced "
                "set. Please use spec.partitions[...]")
        return self._partitions[position]

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Any]:
        if self._reduced or self._unreduced:
            raise ValueError(
                "Using *pspec is dangerous when PartitionSpec has non-empty unreduced/reduced set. "
                "Please use *spec.partitions")
        return iter(self._partitions)

    def __add__(self, other: PartitionSpec | tuple[SpecEntry, ...]) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            if self._unreduced_kind is not other._unreduced_kind:
                raise TypeError(
                    "PartitionSpec can't be added if the unreduced_kind differs in self and other. "
                    f"Got {self=} and {other=}")
            return PartitionSpec(
                *self._partitions, *other._partitions,
                unreduced=self._unreduced | other._unreduced,
                reduced=self._reduced | other._reduced, unreduced_kind=self._unreduced_kind)
        self._check_joins(other, "__add__")
        return self.update(partitions=(*self._partitions, *other))

    def __radd__(self, other: tuple[SpecEntry, ...]) -> PartitionSpec:
        self._check_joins(other, "__radd__")
        return self.update(partitions=(*other, *self._partitions))

    def _check_joins(self, other: object, method: str) -> None:
        if not isinstance(other, tuple):
            raise NotImplementedError
        for name in ("unreduced", "reduced"):
            if getattr(self, name):
                raise TypeError(f"other {other} cannot be of instance `tuple` when self {self} has "
                                f"{name} in `{method}` of PartitionSpec.")

    def __reduce__(self) -> Any:
        return _restore_spec, (self._partitions, self._unreduced, self._reduced,
                               self._unreduced_kind)

    def __repr__(self) -> str:
        parts = repr(self._partitions)[1:-1]
        shown = [parts.rstrip(",") if self._unreduced or self._reduced else parts] if parts else []
        for name in ("unreduced", "reduced"):
            axes = getattr(self, name)
            if axes:
                shown.append(f"{name}={{{', '.join(map(repr, sorted(axes, key=str)))}}}")
        if self._unreduced_kind is not None:
            shown.append(f"unreduced_kind={self._unreduced_kind.name}")
        return f"P({', '.join(shown)})"


# The name that errors and prints show, as JAX's.
PartitionSpec.__module__, PartitionSpec.__name__, PartitionSpec.__qualname__ = "maxjax", "P", "P"


def _check_spec_parts(partitions: tuple[SpecEntry, ...], unreduced: frozenset[AxisName],
                      reduced: frozenset[AxisName]) -> None:
    if unreduced & reduced:
        raise ValueError(
            "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got "
            f"unreduced: {unreduced} and reduced: {reduced}")
    used = frozenset(spec_axes(partitions))
    for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
        if axes & used:
            raise ValueError(
                f"partitions cannot overlap with {name} axes passed to PartitionSpec. Got "
                f"partitions: {partitions} and {name} axes: {axes}")


def _restore_spec(partitions: tuple[SpecEntry, ...], unreduced: frozenset[AxisName],
                  reduced: frozenset[AxisName], kind: UnreducedKind | None = None
                  ) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)


def entry_axes(entry: SpecEntry) -> tuple[Any, ...]:
    """The mesh axes of one entry of a spec."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def spec_axes(spec: Iterable[SpecEntry]) -> Iterator[Any]:
    """All axes that split a dimension, in order."""
    for entry in spec.partitions if isinstance(spec, PartitionSpec) else spec:
        yield from entry_axes(entry)


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
        first = next(iter(array.flat), None)
        kind = None if first is None else AbstractDevice(
            first.device_kind, getattr(first, "num_cores", None), first.platform)
        self.abstract_mesh = AbstractMesh(array.shape, names, types, abstract_device=kind)
        _meshes[key] = self
        return self

    @property
    def axis_sizes(self) -> tuple[int, ...]:      # type: ignore[override]
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
