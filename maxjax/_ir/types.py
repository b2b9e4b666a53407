"""Array types: what is known of a value before it is computed."""

from __future__ import annotations

import dataclasses
import math
import sys
import weakref
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import caches, dtypes, threads
from maxjax._base.meshes import AbstractMesh, Mesh, get_abstract_mesh
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import PartitionSpec, SpecEntry, UnreducedKind, checked_kind, entry_axes
from maxjax._ir.dimensions import constant_size

if TYPE_CHECKING:
    from maxjax._base.dtypes import KeyDType
    from maxjax._ir.typing import AxisName, DType, DTypeLike

# How a value lies over a mesh, as far as its type says: over the Explicit axes.
MeshSpec = tuple[AbstractMesh, PartitionSpec]
NO_AXES: frozenset[Any] = frozenset()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ManualAxisType:
    """What a type says of manual mesh axes.

    Args:
      varying: the axes along which the values vary.
      unreduced: the axes along which they are summands of the value.
      reduced: the axes along which the cotangent is unreduced.
      unreduced_kind: how unreduced values combine; None where there are none, which are summands by
        default.

    Raises:
      TypeError: the axes are no sets, or the kind is no ``UnreducedKind``.
      ValueError: an axis is varying and something else; there is a kind and no unreduced axis.

    >>> jax.typeof(jnp.ones(2)).mat == jax.sharding.ManualAxisType()
    True
    """

    varying: frozenset[Any] = NO_AXES
    unreduced: frozenset[Any] = NO_AXES
    reduced: frozenset[Any] = NO_AXES
    unreduced_kind: UnreducedKind | None = None

    def __post_init__(self) -> None:
        for name in ("varying", "unreduced", "reduced"):
            axes = getattr(self, name)
            if not isinstance(axes, (set, frozenset)):
                raise TypeError(f"{name} argument of ManualAxisType should of type `frozenset` or "
                                f"`set`. Got type {type(axes)}")
            object.__setattr__(self, name, frozenset(axes))
        for name in ("unreduced", "reduced"):
            axes = getattr(self, name)
            if self.varying & axes:
                raise ValueError(f"varying and {name} cannot have common mesh axes. Got varying="
                                 f"{self.varying} and {name}={axes}")
        object.__setattr__(self, "unreduced_kind",
                           checked_kind(self.unreduced_kind, self.unreduced))

    def __repr__(self) -> str:
        return (f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, "
                f"reduced={self.reduced}, unreduced_kind={self.unreduced_kind})")

    def update(self, **changes: Any) -> ManualAxisType:
        """A copy with what is given in place of its own."""
        return dataclasses.replace(self, **changes)

    def to_ct_mat(self) -> ManualAxisType:
        """That of a cotangent: unreduced and reduced axes are exchanged."""
        return ManualAxisType(varying=self.varying, unreduced=self.reduced, reduced=self.unreduced)

    @property
    def empty(self) -> bool:
        """Whether it names no axis."""
        return not self.vur

    @property
    def vur(self) -> frozenset[Any]:
        """All axes that it names."""
        return self.varying | self.unreduced | self.reduced

    def invarying(self, mesh: Mesh | AbstractMesh) -> frozenset[Any]:
        """The manual axes of a mesh along which the values are the same."""
        return frozenset(mesh.manual_axes) - self.vur


class ShapedArray:
    """Shape, dtype and weakness of an array, and what its type says of a mesh.

    Equal types are one object: they compare and hash by identity, so that a cache keyed by
    types costs nothing but the lookup.

    Attributes:
      mesh_spec: the mesh and the spec along its Explicit axes; None: nothing is said.
      vma: the manual mesh axes that the value varies along.
      plain: whether neither says anything.
      sharding: the mesh and the spec as one, which may be given in place of ``mesh_spec``.

    >>> jax.core.ShapedArray((2, 3), jnp.float32)
    ShapedArray(float32[2,3])
    """

    __slots__ = ("__weakref__", "dtype", "mesh_spec", "ndim", "plain", "shape", "size", "vma",
                 "weak_type")
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    mesh_spec: MeshSpec | None
    vma: frozenset[Any]
    plain: bool

    def __new__(cls, shape: Iterable[int], dtype: DTypeLike | KeyDType, weak_type: bool = False,
                mesh_spec: MeshSpec | None = None, vma: frozenset[Hashable] = NO_AXES, *,
                sharding: NamedSharding | None = None) -> ShapedArray:
        if sharding is not None and not sharding.mesh.empty:
            mesh = sharding.mesh
            mesh_spec = (mesh if isinstance(mesh, AbstractMesh) else mesh.abstract_mesh,
                         sharding.spec)
        try:
            if mesh_spec is None and not vma:
                return _recent[shape, dtype, weak_type]
        except (KeyError, TypeError):
            pass
        return _intern(tuple([constant_size(d) for d in shape]), dtypes.as_dtype(dtype),
                       bool(weak_type), mesh_spec, vma)

    def update(self, shape: Iterable[int] | None = None, dtype: DTypeLike | KeyDType | None = None,
               weak_type: bool | None = None, **on_mesh: Any) -> ShapedArray:
        """The type with changes; another shape has no ``mesh_spec``."""
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            on_mesh.get("mesh_spec", self.mesh_spec if shape is None else None),
            on_mesh.get("vma", self.vma))

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    @property
    def sharding(self) -> NamedSharding:
        """The sharding that the type says, over an abstract mesh; where it says nothing, over that
        which is set."""
        if self.mesh_spec is not None:
            return NamedSharding(*self.mesh_spec)
        return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * self.ndim))

    def without_dim(self, dim: int) -> ShapedArray:
        """The type of a slice along one dimension."""
        shape = (*self.shape[:dim], *self.shape[dim + 1:])
        if self.plain:
            return ShapedArray(shape, self.dtype, self.weak_type)
        on_mesh = self.mesh_spec
        if on_mesh is not None:
            mesh, spec = on_mesh
            on_mesh = mesh, spec.update(partitions=(*spec.partitions[:dim],
                                                    *spec.partitions[dim + 1:]))
        return ShapedArray(shape, self.dtype, self.weak_type, on_mesh, self.vma)

    def with_leading(self, size: int) -> ShapedArray:
        """The type of several values, stacked along a new first dimension."""
        return self.with_dim(0, size)

    def with_dim(self, dim: int, size: int, entry: SpecEntry | None = None) -> ShapedArray:
        """The type of several values, stacked along a new dimension with an entry in the spec."""
        shape = (*self.shape[:dim], size, *self.shape[dim:])
        if self.plain:
            return ShapedArray(shape, self.dtype, self.weak_type)
        on_mesh = self.mesh_spec
        if on_mesh is not None:
            mesh, spec = on_mesh
            on_mesh = mesh, spec.update(partitions=(
                *spec.partitions[:dim], entry, *spec.partitions[dim:]))
        return ShapedArray(shape, self.dtype, self.weak_type, on_mesh, self.vma)

    def on_mesh(self, mesh: AbstractMesh, spec: PartitionSpec) -> ShapedArray:
        """The type with a spec along the mesh's Explicit axes, filled up to the rank."""
        missing = self.ndim - len(spec)
        return self.update(mesh_spec=(
            mesh, spec.update(partitions=(*spec.partitions, *[None] * missing))
            if missing else spec))

    def off_mesh(self) -> ShapedArray:
        """The type without its mesh part."""
        return self if self.plain else ShapedArray(self.shape, self.dtype, self.weak_type)

    def tangent(self) -> ShapedArray:
        """The type of a tangent or cotangent of a value of this type."""
        dtype = dtypes.tangent_dtype(self.dtype)
        return ShapedArray(self.shape, dtype, self.weak_type and dtype is not dtypes.float0,
                           self.mesh_spec, self.vma)

    def cotangent(self) -> ShapedArray:
        """The type of a cotangent of a value of this type."""
        aval = self.tangent()
        if aval.mesh_spec is None:
            return aval
        mesh, spec = aval.mesh_spec
        return aval.update(mesh_spec=(mesh, spec.to_ct_spec()))

    to_tangent_aval = tangent
    to_cotangent_aval = cotangent
    to_ct_aval = cotangent
    at_least_vspace = tangent

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """Over which manual mesh axes the value may vary, is unreduced, or is reduced."""
        if self.mesh_spec is None:
            return ManualAxisType(varying=self.vma)
        mesh, spec = self.mesh_spec
        manual = frozenset(mesh.manual_axes)
        unreduced = spec.unreduced & manual
        return ManualAxisType(
            varying=self.vma, unreduced=unreduced, reduced=spec.reduced & manual,
            unreduced_kind=spec.unreduced_kind if unreduced else None)

    mat = manual_axis_type

    # What types above arrays ask of the types in them (jax.experimental.hijax): an array is itself.
    def lo_ty(self) -> list[ShapedArray]:
        return [self]

    def lower_val(self, value: object) -> list[Any]:
        return [value]

    def raise_val(self, value: object) -> Any:
        return value

    @property
    def nbytes(self) -> int:
        return self.size * dtypes.physical(self.dtype).itemsize

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """``float32[2,3]``, or ``f32[2,3]`` with ``short_dtypes``."""
        name = (dtypes.short_name(self.dtype) if short_dtypes
                else "float0" if self.dtype == dtypes.float0 else self.dtype.name)
        if self.plain:
            return f"{name}[{','.join(map(str, self.shape))}]"
        return f"{name}[{','.join(self._sizes_on_mesh())}]{self._axes_text()}"

    def _sizes_on_mesh(self) -> list[str]:
        if self.mesh_spec is None:
            return list(map(str, self.shape))
        entries = (*self.mesh_spec[1].partitions, *[None] * self.ndim)
        return [f"{size}@{_axes(axes)}" if (axes := entry_axes(entry)) else str(size)
                for size, entry in zip(self.shape, entries, strict=False)]

    def _axes_text(self) -> str:
        """``{V:x}``: varying, unreduced and reduced axes."""
        order = [axis for axis in writing.axis_order if axis in self.vma]
        parts = [("V", order if len(order) == len(self.vma) else sorted(self.vma, key=str))]
        if self.mesh_spec is not None:
            spec = self.mesh_spec[1]
            kind = spec.unreduced_kind
            unreduced = "U" if kind in (None, UnreducedKind.sum) else f"U_{kind.name}"
            parts += [(unreduced, sorted(spec.unreduced)), ("R", sorted(spec.reduced))]
        shown = ", ".join(f"{letter}:{_axes(axes)}" for letter, axes in parts if axes)
        return f"{{{shown}}}" if shown else ""

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __reduce__(self):
        return (ShapedArray, (self.shape, self.dtype, self.weak_type, self.mesh_spec, self.vma))


class _Writing:
    """How types are written.

    Attributes:
      axis_order: the manual axes of the mesh around, or of the last one: the order of a type's own.
    """

    __slots__ = ("axis_order",)

    def __init__(self) -> None:
        self.axis_order: tuple[Any, ...] = ()


writing = _Writing()


def _axes(axes: Sequence[AxisName]) -> str:
    return str(axes[0]) if len(axes) == 1 else f"({','.join(map(str, axes))})"


# Every living type is in `_all`; `_recent` is a bounded dictionary in front of it, which a plain
# lookup can answer at C speed.
_recent: dict[Any, ShapedArray] = caches.cache()
_all: weakref.WeakValueDictionary[Any, ShapedArray] = weakref.WeakValueDictionary()
_lock = threads.lock()
_RECENT_LIMIT = 20_000


def _intern(shape: tuple[int, ...], dtype: DType, weak_type: bool, mesh_spec: MeshSpec | None,
            vma: frozenset[Hashable]) -> ShapedArray:
    if mesh_spec is not None and len(mesh_spec[1]) > len(shape):
        spec, sharding = mesh_spec[1], NamedSharding(*mesh_spec)
        raise ValueError(
            f"Length of sharding.spec ({len(spec)}) must be equal to aval's ndim ({len(shape)}). "
            f"Got sharding.spec {spec}, aval.ndim {len(shape)} and sharding {sharding!r}")
    plain = mesh_spec is None and not vma
    key: Any = (shape, dtype, weak_type) if plain else (shape, dtype, weak_type, mesh_spec, vma)
    with _lock:
        aval = _all.get(key)
        if aval is None:
            aval = object.__new__(ShapedArray)
            aval.shape = shape
            aval.dtype = dtype
            aval.weak_type = weak_type
            aval.ndim = len(shape)
            aval.size = math.prod(shape)
            aval.mesh_spec = mesh_spec
            aval.vma = vma
            aval.plain = plain
            # Not an assignment: a signal handler may have made it meanwhile.
            aval = _all.setdefault(key, aval)
        if len(_recent) >= _RECENT_LIMIT:
            _recent.clear()
        _recent[key] = aval
    return aval


def check_sizes(avals: Iterable[ShapedArray]) -> None:
    """Refuses to compute values of types that can be traced and have no value.

    Raises:
      TypeError: a dimension has more elements than a 64-bit index counts.
    """
    for aval in avals:
        for size in aval.shape:
            if type(size) is int and size > sys.maxsize:
                raise TypeError(
                    f"a value of type {aval.str_short()} cannot be computed: one of its dimensions "
                    f"has {size} elements, and the largest possible one has {sys.maxsize}")


def match_up_to_weak_type(left: ShapedArray, right: ShapedArray) -> bool:
    return left is right or (
        left.shape == right.shape and left.dtype == right.dtype
        and left.manual_axis_type == right.manual_axis_type)
