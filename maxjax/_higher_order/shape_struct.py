"""ShapeDtypeStruct and typeof: types instead of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import config, dtypes, meshes
from maxjax._base.dtypes import KeyDType
from maxjax._base.layouts import Format
from maxjax._base.shardings import NamedSharding, Sharding
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order.hi_types import hi_classes, hi_type_of
from maxjax._higher_order.outputs import HasNoValue
from maxjax._ir.refs import AbstractRef, Ref
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, Tracer, invalid_type
from maxjax._ir.types import ManualAxisType, ShapedArray
from maxjax._ir.typing import DTypeLike
from maxjax._primitives.sharding import type_on


class ShapeDtypeStruct(HasNoValue):
    """A shape and a dtype instead of an array; immutable.

    Args:
      shape: the sizes of the dimensions.
      dtype: the type of the elements.
      sharding: a ``Sharding``, or a ``PartitionSpec`` of the mesh that is set where it is read.
      weak_type, is_ref, manual_axis_type: stored, compared and passed on.

    Raises:
      ValueError: there is no dtype, the shape is not a sequence, or the sharding is not one or
        names more dimensions.
      TypeError: where the sharding is asked for, a ``PartitionSpec`` was given and no mesh is set.

    See also: ``jax.eval_shape``, ``jax.typeof``, ``jax.jit``, ``jax.pure_callback``.

    >>> ShapeDtypeStruct((2,), np.float32)
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """

    __module__ = "maxjax"
    __slots__ = ("_aval", "_others", "_sharding")
    _aval: ShapedArray
    _others: tuple[Any, ...]
    _sharding: Any

    def __init__(self, shape: Sequence[int], dtype: DTypeLike | KeyDType, *,
                 sharding: Sharding | PartitionSpec | Format | None = None,
                 weak_type: bool = False, is_ref: bool = False,
                 manual_axis_type: ManualAxisType | None = None):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        if isinstance(shape, (tuple, list)) and any(size is None for size in shape):
            raise ValueError("`shape` passed to `ShapeDtypeStruct` cannot have None in it. Got "
                             f"shape={tuple(shape)}")
        set_ = object.__setattr__
        if isinstance(sharding, NamedSharding):
            sharding.check_compatible_aval(tuple(shape))
        elif isinstance(sharding, PartitionSpec):
            if len(sharding) > len(tuple(shape)):
                raise ValueError(
                    f"PartitionSpec {sharding} is only valid for values of rank at least "
                    f"{len(sharding)}, but was applied to a value of rank {len(tuple(shape))}.")
        elif not (sharding is None or isinstance(sharding, (Sharding, Format))):
            raise ValueError(
                "sharding should be an instance of `jax.sharding.Sharding`, "
                "`jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`. Got "
                f"{sharding} of type {type(sharding)}.")
        if isinstance(sharding, Format):
            sharding.check_concrete("in a `ShapeDtypeStruct`")
        if not isinstance(manual_axis_type, (ManualAxisType, type(None))):
            raise TypeError("`manual_axis_type` argument passed to ShapeDtypeStruct should be of "
                            "type `jax.sharding.ManualAxisType`. Got type "
                            f"{type(manual_axis_type)}")
        set_(self, "_aval", ShapedArray(tuple(shape), dtypes.as_dtype(dtype), weak_type))
        set_(self, "_others", (is_ref, manual_axis_type))
        set_(self, "_sharding", sharding)

    @property
    def sharding(self) -> Any:
        """How the array lies."""
        found = self._sharding
        if isinstance(found, Format):
            return found.sharding
        if not isinstance(found, PartitionSpec):
            return found
        around = meshes.around()
        mesh: Any = around.abstract if around.concrete.empty else around.concrete
        if mesh.empty:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be "
                "empty. Please use `jax.set_mesh` to set the mesh context.")
        return NamedSharding(mesh, found)

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, name):
            raise RuntimeError(
                f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects")
        raise AttributeError(f"'ShapeDtypeStruct' object has no attribute {name!r}")

    shape = property(lambda self: self._aval.shape, doc="The sizes of the dimensions.")
    dtype = property(lambda self: self._aval.dtype, doc="The type of the elements.")
    weak_type = property(lambda self: self._aval.weak_type,
                         doc="Whether the dtype yields to others in promotion.")
    ndim = property(lambda self: self._aval.ndim, doc="The number of dimensions.")
    size = property(lambda self: self._aval.size, doc="The number of elements.")
    is_ref = property(lambda self: self._others[0], doc="Whether it stands for a reference.")
    manual_axis_type = property(lambda self: self._others[1])
    format = property(lambda self: self._sharding if isinstance(self._sharding, Format) else
                      Format(None, self.sharding), doc="Layout and sharding.")

    @classmethod
    def like(cls, x: object) -> ShapeDtypeStruct:
        """The type of an array or scalar: shape, dtype, weakness, and how it lies where it was put
        there on purpose or its type says it."""
        if isinstance(x, ShapeDtypeStruct):
            return x
        aval = typeof(x)
        place: Any = None
        if isinstance(x, Array) and not isinstance(x, Tracer):
            array: Any = x
            place = array.format if array.committed else None
            if dtypes.is_opaque(aval.dtype) and place is not None:
                place = place.sharding      # keys have no layout
        elif isinstance(aval, ShapedArray) and aval.mesh_spec is not None:
            place = aval.sharding
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=place)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with changes; unknown names are ignored, as in JAX.

        Raises:
          ValueError: a layout would be lost to a sharding without one.
        """
        fields = {name: changes.get(name, getattr(self, name)) for name in (
            "weak_type", "is_ref", "manual_axis_type")}
        fields["sharding"] = changes.get("sharding", self._sharding)
        if isinstance(fields["sharding"], Sharding) and self.format.layout is not None:
            raise ValueError(
                "You are updating ShapeDtypeStruct with a <class 'jax.sharding."
                f"{type(fields['sharding']).__name__}'> when the original ShapeDtypeStruct had a "
                f"concrete layout {self.format}. This might lead to bugs. If you want to do this, "
                "create a new ShapeDtypeStruct via the constructor.")
        return ShapeDtypeStruct(changes.get("shape", self.shape),
                                changes.get("dtype", self.dtype), **fields)

    def __len__(self) -> int:
        return len(self._aval)

    def _key(self) -> Any:
        return self._aval, self._others, self.format

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        return _restore_struct, (
            self.shape, self.dtype, self._sharding, self.weak_type, *self._others)

    def __repr__(self) -> str:
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        if self.format.layout is not None:
            sharding += f", format={self.format.layout}"
        weak = ", weak_type=True" if self.weak_type else ""
        ref = ", is_ref=True" if self.is_ref else ""
        manual = self.manual_axis_type
        states = "" if manual is None else f", manual_axis_type={manual}"
        name = self.dtype.name
        return (f"ShapeDtypeStruct(shape={self.shape}, dtype={name}{sharding}{weak}{states}"
                f"{ref})")


def _restore_struct(shape: Sequence[int], dtype: DTypeLike | KeyDType,
                    sharding: Sharding | PartitionSpec | Format | None, weak_type: bool,
                    is_ref: bool, manual: ManualAxisType | None) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype, sharding=sharding, weak_type=weak_type, is_ref=is_ref,
                            manual_axis_type=manual)


class _Number(NamedTuple):
    """A class of Python numbers: its types without and with 64 bits, and what is beyond the first.
    """

    narrow: ShapedArray
    wide: ShapedArray
    bound: int | None


def _number(kind: type) -> _Number:
    narrow, wide, weak = dtypes.PYTHON_SCALARS[kind]
    return _Number(ShapedArray((), narrow, weak), ShapedArray((), wide, weak),
                   1 << 31 if issubclass(kind, int) and kind is not bool else None)


_numbers: dict[type, _Number] = {kind: _number(kind) for kind in dtypes.PYTHON_SCALARS}
_MOST_CLASSES = 1024        # of numbers, such as enumerations, that are remembered


def _type_of_number(x: Any, number: _Number) -> ShapedArray:
    """Raises OverflowError for an integer that is too large."""
    narrow, wide, bound = number
    aval = narrow
    if config.enable_x64.value:
        aval, bound = wide, None if bound is None else 1 << 63
    if bound is not None and not -bound <= x < bound:
        raise OverflowError(f"Python int {x} too large to convert to {aval.dtype.name}")
    return aval


def _number_class(x: object) -> _Number | None:
    """What is known of a number of a subclass: an enumeration's, say."""
    if isinstance(x, np.generic):
        return None
    base = next((base for base in dtypes.PYTHON_SCALARS if isinstance(x, base)), None)
    if base is None:
        return None
    if len(_numbers) < _MOST_CLASSES:
        _numbers[x.__class__] = _numbers[base]
    return _numbers[base]


def typeof(x: object) -> Any:
    """The type of an array or scalar, or of a value of a type above arrays.

    Args:
      x: an array, a tracer, or a number.

    Returns:
      A ``ShapedArray``: shape, dtype, weak type and, over Explicit axes, the sharding.

    Raises:
      TypeError: ``x`` is none of them.
      OverflowError: it is an integer of Python's that is too large.

    See also: ``jax.eval_shape``, ``jnp.shape``, ``jnp.result_type``.
    """
    # A number has a type without being made an array, which would be a transfer to the device.
    number = _numbers.get(x.__class__)
    if number is not None and not hi_classes:
        return _type_of_number(x, number)
    if isinstance(x, (Array, Ref)):
        return x.aval
    if isinstance(x, ShapeDtypeStruct):
        aval = ShapedArray(x.shape, dtypes.kept(x.dtype), x.weak_type)
        if x.sharding is not None:
            aval = type_on(aval, x.sharding)
        if x.manual_axis_type is not None:
            aval = aval.update(vma=x.manual_axis_type.varying)
        return AbstractRef(aval) if x.is_ref else aval
    above_arrays = hi_type_of(x)
    if above_arrays is not None:
        return above_arrays
    number = _number_class(x)
    if number is not None:
        return _type_of_number(x, number)
    try:
        return installed.runtime.argument(x).aval
    except TypeError:
        raise invalid_type(x) from None


def abstract_leaf(leaf: object) -> Any:
    """The type of an argument: an array, a scalar, or anything with a shape and a dtype.

    Raises:
      TypeError: it has none.
    """
    if isinstance(leaf, (Array, Ref, ShapeDtypeStruct, np.ndarray, np.generic)):
        return typeof(leaf)
    if isinstance(leaf, AbstractRef):
        return leaf
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is not None and dtype is not None:
        return ShapedArray(shape, dtypes.kept(dtype), bool(getattr(leaf, "weak_type", False)))
    return typeof(leaf)


def _shown_sharding(aval: ShapedArray) -> NamedSharding | None:
    if aval.mesh_spec is None and aval.vma:
        return NamedSharding(meshes.get_abstract_mesh(), PartitionSpec(*[None] * aval.ndim))
    return None if aval.mesh_spec is None else aval.sharding


def shape_structs(avals: Iterable[ShapedArray]) -> list[ShapeDtypeStruct]:
    """The types as structs, with what they say of Explicit axes."""
    return [ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type,
                             sharding=_shown_sharding(aval),
                             manual_axis_type=aval.manual_axis_type if aval.vma else None)
            for aval in avals]
