"""Partition specs: over which mesh axes each dimension of an array is split."""

from __future__ import annotations

import enum
import weakref
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

# The name of a mesh axis, mostly a string.
AxisName = Hashable


class _Unconstrained:
    """The entry of a dimension that a spec leaves open."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()
# What a spec says of one dimension: an axis, several in a tuple or list, None, or UNCONSTRAINED.
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
