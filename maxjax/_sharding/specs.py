"""Internal shardings: how a value lies over a mesh whose axes are cut into atoms.

A mesh is an ordered mapping of names to sizes. While shardings are propagated each axis is a row of
*atoms*, axes of prime size, so that a dimension that splits may take a part of an axis: an axis
``x`` of size 4 is ``x:(1)2``, ``x:(2)2``, major first (the size before it, its own size). Atoms
that always stay together are joined again afterwards (``coarsened``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from maxjax._ir.types import ShapedArray

Axes = tuple[str, ...]
Dims = tuple[Axes, ...]
Mesh = Mapping[str, int]


@dataclass(frozen=True)
class Dim:
    """One dimension of a spec.

    Attributes:
      axes: the mesh axes that split it, major first.
      open: whether propagation may add axes.
      priority: from which round of propagation on it counts; 0 is first.
    """

    axes: Axes = ()
    open: bool = False
    priority: int = 0

    def __str__(self) -> str:
        inner = ", ".join([*self.axes, *(["?"] if self.open else [])])
        return f"{{{inner}}}" + (f"p{self.priority}" if self.priority else "")


@dataclass(frozen=True)
class Spec:
    """How a value lies over a mesh: its dimensions, and the axes along which it must not vary."""

    dims: tuple[Dim, ...]
    replicated: frozenset[str] = frozenset()

    @staticmethod
    def of(*dims: str | Sequence[str] | None, open: bool = False) -> Spec:
        """A spec in the manner of ``PartitionSpec``: a name, a tuple of names, or None each.

        >>> print(Spec.of("data", None, ("x", "y")))
        [{data}, {}, {x, y}]
        """
        return Spec(tuple(Dim(_axes(dim), open) for dim in dims))

    @staticmethod
    def unknown(ndim: int) -> Spec:
        """Nothing is said: every dimension is open."""
        return Spec((Dim((), True),) * ndim)

    @property
    def axes(self) -> Dims:
        return tuple(dim.axes for dim in self.dims)

    def __str__(self) -> str:
        text = "[" + ", ".join(map(str, self.dims)) + "]"
        if self.replicated:
            text += " replicated={" + ", ".join(sorted(self.replicated)) + "}"
        return text


def _axes(dim: str | Sequence[str] | None) -> Axes:
    if dim is None:
        return ()
    return (dim,) if isinstance(dim, str) else tuple(dim)


def show(dims: Dims) -> str:
    """``[{data}, {}]``"""
    return "[" + ", ".join("{" + ", ".join(axes) + "}" for axes in dims) + "]"


def product(axes: Iterable[str], mesh: Mesh) -> int:
    return math.prod(mesh[axis] for axis in axes)


def local_shape(shape: Sequence[int], dims: Dims, mesh: Mesh) -> tuple[int, ...]:
    """The shape of one shard."""
    return tuple(size // product(axes, mesh) for size, axes in zip(shape, dims, strict=True))


def local_aval(aval: ShapedArray, dims: Dims, mesh: Mesh) -> ShapedArray:
    return aval.update(shape=local_shape(aval.shape, dims, mesh))


def check(spec: Spec, aval: ShapedArray, mesh: Mesh, what: str) -> Spec:
    """The spec, if it fits the value; shorter ones are filled up with unsplit dimensions, and those
    beyond the rank left out.

    Raises:
      ValueError: rank, an unknown axis, an axis used twice, or a dimension that does not divide.
    """
    if any(dim.axes for dim in spec.dims[aval.ndim:]):
        raise ValueError(
            f"{what} has rank {aval.ndim} ({aval.str_short()}), but its sharding {spec} names "
            f"{len(spec.dims)} dimensions.")
    dims = (*spec.dims[:aval.ndim], *[Dim()] * (aval.ndim - len(spec.dims)))
    seen: set[str] = set(spec.replicated)
    for axis in (*spec.replicated, *(axis for dim in dims for axis in dim.axes)):
        if axis not in mesh:
            raise ValueError(f"the sharding {spec} of {what} names the axis {axis!r}, which the "
                             f"mesh {dict(mesh)} does not have.")
    for number, (dim, size) in enumerate(zip(dims, aval.shape, strict=True)):
        for axis in dim.axes:
            if axis in seen:
                raise ValueError(f"the sharding {spec} of {what} uses the axis {axis!r} twice.")
            seen.add(axis)
        count = product(dim.axes, mesh)
        if size % count:
            names = " and ".join(map(repr, dim.axes))
            raise ValueError(
                f"{what} ({aval.str_short()}): dimension {number} of size {size} cannot be split "
                f"over the mesh axis {names} of size {count}: {size} is not divisible by {count}.")
    return Spec(dims, spec.replicated)


# --- atoms ----------------------------------------------------------------------------------------


def _primes(size: int) -> list[int]:
    found, divisor = [], 2
    while size > 1:
        while size % divisor == 0:
            found.append(divisor)
            size //= divisor
        divisor += 1 if divisor * divisor <= size else max(size - divisor, 1)
    return found


def sub_axis(axis: str, before: int, size: int, axis_size: int) -> str:
    return axis if size == axis_size else f"{axis}:({before}){size}"


class Atoms:
    """A mesh's axes as rows of axes of prime size."""

    def __init__(self, mesh: Mesh):
        self.mesh = dict(mesh)
        self.rows: dict[str, Axes] = {}
        self.sizes: dict[str, int] = {}
        self._where: dict[str, tuple[str, int, int]] = {}      # atom -> (axis, before, size)
        for axis, axis_size in mesh.items():
            before, row = 1, []
            for size in _primes(axis_size):
                atom = sub_axis(axis, before, size, axis_size)
                row.append(atom)
                self.sizes[atom] = size
                self._where[atom] = (axis, before, size)
                before *= size
            self.rows[axis] = tuple(row)

    def of(self, axes: Iterable[str]) -> Axes:
        """The atoms of axes, in order; those of size 1 have none."""
        return tuple(atom for axis in axes for atom in self.rows[axis])

    def spec(self, spec: Spec) -> Spec:
        return Spec(tuple(Dim(self.of(dim.axes), dim.open, dim.priority) for dim in spec.dims),
                    frozenset(self.of(spec.replicated)))

    def coarsened(self, lists: Iterable[Axes]) -> dict[str, str | None]:
        """Joins neighbouring atoms that stand next to one another wherever one of them stands.

        Gives for each atom the name of what it has become a part of, None for all parts but the
        first.
        """
        follows: dict[str, str] = {
            a: b for row in self.rows.values() for a, b in zip(row, row[1:], strict=False)}
        before = {b: a for a, b in follows.items()}
        parted: set[str] = set()
        for axes in lists:
            for number, atom in enumerate(axes):
                after = follows.get(atom)
                if after and axes[number + 1:number + 2] != (after,):
                    parted.add(atom)
                ahead = before.get(atom)
                if ahead and (not number or axes[number - 1] != ahead):
                    parted.add(ahead)
        names: dict[str, str | None] = {}
        for axis, row in self.rows.items():
            start = 0
            for number, atom in enumerate(row):
                if number + 1 == len(row) or atom in parted:
                    group = row[start:number + 1]
                    first = self._where[group[0]][1]
                    name = sub_axis(axis, first, product(group, self.sizes), self.mesh[axis])
                    names.update(dict.fromkeys(group[1:]))
                    names[group[0]] = name
                    start = number + 1
        return names

    def joined_mesh(self, names: Mapping[str, str | None]) -> dict[str, int]:
        """The mesh of the joined axes, in the order of the original's; size-1 axes stay."""
        mesh: dict[str, int] = {}
        for axis, row in self.rows.items():
            if not row:
                mesh[axis] = 1
            name = ""
            for atom in row:
                name = names[atom] or name
                mesh[name] = mesh.get(name, 1) * self.sizes[atom]
        return mesh


def renamed(axes: Axes, names: Mapping[str, str | None]) -> Axes:
    return tuple(name for axis in axes if (name := names[axis]) is not None)
