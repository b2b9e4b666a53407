"""Reading and writing array references by indices.

An index is as in NumPy, without negative steps and masks. A written value has the region's shape
and the reference's dtype: nothing is broadcast or promoted. A computed position is moved into
bounds; out-of-bounds entries of index arrays are not written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import NonConcreteBooleanIndexError
from maxjax._base.pytree import register
from maxjax._ir.refs import ADD, NO_DERIVATIVES, SET, Ref, make_ref, read, write
from maxjax._ir.trace import Array, Tracer
from maxjax._primitives.convert import convert_element_type
from maxjax._transforms.autodiff import leaf_operand
from maxjax.lax import dynamic_slice, dynamic_update_slice, stop_gradient
from maxjax.numpy._index_parsing import Slice
from maxjax.numpy._indexing import take
from maxjax.numpy._ufunc_objects import add, maximum, minimum
from maxjax.numpy._ufuncs import less
from maxjax.numpy._where import where


class _NotSpecified:
    """That an argument was left out."""


_NOT_SPECIFIED = _NotSpecified()


def ds(start: Any, size: Any = _NOT_SPECIFIED, stride: int | None = None) -> slice | Slice:
    """An index of a reference or an array: ``size`` positions from ``start``, every ``stride``-th.

    Args:
      start: an integer, or a traced one, which is moved into bounds; None is 0. Alone, it is the
        size, and the start is 0; None alone means all.

    >>> ref = jax.new_ref(jnp.arange(5.))
    >>> ref[jax.ds(1, 3)]
    Array([1., 2., 3.], dtype=float32)
    """
    if size is _NOT_SPECIFIED:
        if start is None:
            return slice(None, None, stride)
        start, size = 0, start
    return Slice(0 if start is None else start, size, 1 if stride is None else stride)


# The entry of an index for one dimension: an array of indices, or this.
@dataclasses.dataclass(slots=True)
class _Span:
    start: Any
    size: int
    stride: int
    dropped: bool = False       # an integer: the dimension is dropped

    @property
    def static(self) -> bool:
        return isinstance(self.start, int)

    def index(self) -> Any:
        """The equivalent index of an array, if the start is known."""
        if self.dropped:
            return self.start
        return slice(self.start, self.start + max(self.size - 1, 0) * self.stride
                     + min(self.size, 1), self.stride)

    @property
    def extent(self) -> int:
        return (self.size - 1) * self.stride + 1 if self.size else 0


def _entries(shape: tuple[int, ...], index: Any) -> list[Any]:
    """A ``_Span`` or an array of indices for each dimension."""
    if index is None:
        index = ()
    parts = list(index) if isinstance(index, tuple) else [index]
    dots = [n for n, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise ValueError("Only one ellipsis is supported.")
    if any(part is None for part in parts):
        raise ValueError("an index of an array reference adds no dimensions")
    missing = len(shape) - len(parts) + len(dots)
    if missing < 0:
        raise ValueError(f"`indices` must not be longer than `shape`: indices={tuple(parts)}, "
                         f"shape={shape}")
    place = dots[0] if dots else len(parts)
    parts[place:place + len(dots)] = [slice(None)] * missing
    return [_entry(part, size) for part, size in zip(parts, shape, strict=True)]


def _entry(part: Any, size: int) -> Any:
    if isinstance(part, slice):
        step = 1 if part.step is None else int(part.step)
        if step < 1:
            raise ValueError(f"slice must have a step >= 1 (found: {step})")
        start, stop, _ = slice(
            *(None if x is None else int(x) for x in (part.start, part.stop))).indices(size)
        count = max(0, -(-(stop - start) // step))
        if start >= size and size:
            raise ValueError(f"Out of bound slice: start={start}, dim={size}.")
        return _Span(start, count, step)
    if isinstance(part, Slice):
        start, found = _integer(part.start, size), int(part.size)
        span = _Span(start, found, part.stride)
        if span.static and start + span.extent > size:
            raise ValueError(f"Out of bound slice: start={start}, size={found}, "
                             f"stride={part.stride}, dim={size}.")
        return span
    if isinstance(part, list):
        part = np.asarray(part)
    value = leaf_operand(part)
    if value.shape:
        if dtypes.is_bool(value.dtype):
            raise NonConcreteBooleanIndexError(value)
        return value
    start = _integer(part, size)
    if isinstance(start, int):
        if start >= size:
            raise ValueError(f"Out of bound indexer: idx={start}, dim={size}.")
        start = max(start, 0)
    return _Span(start, 1, 1, dropped=True)


def _integer(value: Any, size: int) -> Any:
    """A position, counted from the front: a number if it is known."""
    if isinstance(value, Tracer):
        found = value.concrete()
        if found is None:
            if not dtypes.is_integer(value.dtype):
                raise TypeError(f"an index is an integer, not {value.dtype}")
            return where(less(value, 0), add(value, size), value)
        value = found
    number = int(value)
    return number + size if number < 0 else number


def _region(shape: tuple[int, ...], entries: list[Any]) -> tuple[int, ...]:
    """The shape of the region given by the entries."""
    if all(isinstance(entry, _Span) for entry in entries):
        return tuple(entry.size for entry in entries if not entry.dropped)
    index = tuple(
        np.zeros(entry.shape, int) if not isinstance(entry, _Span) else 0 if entry.dropped
        else slice(0, entry.extent, entry.stride) for entry in entries)
    return np.broadcast_to(np.int8(0), shape)[index].shape


def _is_whole(shape: tuple[int, ...], entries: list[Any]) -> bool:
    return all(isinstance(entry, _Span) and not entry.dropped and entry.static
               and entry.size == size for entry, size in zip(entries, shape, strict=True))


def _as_index(entries: list[Any], shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """The entries as an index of an array; None if a start is computed and there is no array."""
    spans = [entry for entry in entries if isinstance(entry, _Span)]
    if all(span.static for span in spans):
        return tuple(entry.index() if isinstance(entry, _Span) else entry for entry in entries)
    if len(spans) == len(entries):
        return None
    if any(not span.static and not span.dropped for span in spans):
        raise NotImplementedError("an index with a slice at a computed place and an array")
    return tuple(
        entry if not isinstance(entry, _Span) else entry.index() if entry.static
        else minimum(maximum(entry.start, 0), size - 1)
        for entry, size in zip(entries, shape, strict=True))


def _block(value: Any, entries: list[Any]) -> tuple[Any, list[Any], tuple[Any, ...]]:
    """The block that contains the entries, its start, and their static index in it."""
    starts = [entry.start for entry in entries]
    block = dynamic_slice(value, starts, [entry.extent for entry in entries])
    inside = tuple(0 if entry.dropped else slice(None, None, entry.stride) for entry in entries)
    return block, starts, inside


def _get(value: Any, index: Any) -> Any:
    return _taken(value, _entries(value.shape, index))


def _taken(value: Any, entries: list[Any]) -> Any:
    if _is_whole(value.shape, entries):
        return value
    place = _as_index(entries, value.shape)
    if place is not None:
        return value[place]
    strided = _strided(entries)
    if strided:
        # Each element has its own position, which is moved into bounds separately.
        n, span = strided[0]
        entries[n] = _Span(0, value.shape[n], 1)
        axis = sum(not (isinstance(x, _Span) and x.dropped) for x in entries[:n])
        places = add(span.start, np.arange(span.size, dtype=np.int32) * span.stride)
        return take(_taken(value, entries), places, axis=axis, mode="clip")
    block, _, inside = _block(value, entries)
    return block[inside]


def _strided(entries: list[Any]) -> list[tuple[int, _Span]]:
    """The entries with a stride and a computed start, by their dimensions."""
    return [(n, entry) for n, entry in enumerate(entries)
            if isinstance(entry, _Span) and entry.stride > 1 and not entry.static]


def _update(value: Any, index: Any, new: Any, name: str) -> Any:
    """``value`` with ``new`` set in a region, or added to it ("swap", "addupdate")."""
    new = leaf_operand(new)
    shape, dtype = value.shape, value.dtype
    entries = _entries(shape, index)
    region = _region(shape, entries)
    is_whole = _is_whole(shape, entries)
    if new.shape != region:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {shape}. Expected shape: {region}. "
            f"Value shape: {new.shape}. Transforms: ({'' if is_whole else f'{index!r},'}). ")
    if new.dtype != dtype:
        if name != "swap" or not (dtypes.is_integer(dtype) and dtypes.is_integer(new.dtype)):
            kind = "dtype" if name == "swap" else "shape"
            raise ValueError(f"Invalid dtype for `{name}`. Ref dtype: {dtype.name}. "
                             f"Value {kind}: {new.dtype.name}. ")
        new = convert_element_type(new, dtype)
    elif name == "swap" and new.aval.weak_type:
        new = convert_element_type(new, dtype)
    adds = name == "addupdate"
    if is_whole:
        return add(value, new) if adds else new
    place = _as_index(entries, shape)
    if place is not None:
        return value.at[place].add(new) if adds else value.at[place].set(new)
    if _strided(entries):
        raise NotImplementedError("writing to a slice with a stride at a computed place")
    block, starts, inside = _block(value, entries)
    changed = block.at[inside].add(new) if adds else block.at[inside].set(new)
    return dynamic_update_slice(value, changed, starts)


class RefView:
    """A part of a reference, read and written like one: ``ref.at[index]``."""

    __slots__ = ("_index", "_of")

    def __init__(self, of: Ref | RefView, index: Any):
        self._of = of
        self._index = index

    shape = property(lambda self: _value(self).shape, doc="The sizes of the dimensions.")
    dtype = property(lambda self: self._of.dtype, doc="The type of the elements.")
    ndim = property(lambda self: len(self.shape), doc="The number of dimensions.")
    size = property(lambda self: _value(self).size, doc="The number of elements.")

    def __repr__(self) -> str:
        return f"{self._of!r}.at[{self._index!r}]"


def _parts(view: RefView) -> tuple[tuple[Any, ...], tuple[bool, tuple[Any, ...]]]:
    """What a transformation sees of a view: its reference and the arrays of its index."""
    is_tuple = isinstance(view._index, tuple)
    entries = view._index if is_tuple else (view._index,)
    known = tuple([_GIVEN if isinstance(entry, (Array, np.ndarray)) else entry
                   for entry in entries])
    given = [entry for entry, kept in zip(entries, known, strict=True) if kept is _GIVEN]
    return (view._of, *given), (is_tuple, known)


def _view(index: tuple[bool, tuple[Any, ...]], parts: Sequence[Any]) -> RefView:
    of, *given = parts
    is_tuple, known = index
    arrays = iter(given)
    entries = tuple([next(arrays) if entry is _GIVEN else entry for entry in known])
    return RefView(of, entries if is_tuple else entries[0])


# Stands in the structure of a view for an array of its index.
_GIVEN = ("an array",)
# Functions that are traced take views as arguments, in whatever trees they are.
register(RefView, _parts, _view)


class _Views:
    """``ref.at``, to be indexed."""

    __slots__ = ("of",)

    def __init__(self, of: Ref | RefView):
        self.of = of

    def __getitem__(self, index: Any) -> RefView:
        return RefView(self.of, index)


def _value(of: Ref | RefView) -> Any:
    return read(of) if isinstance(of, Ref) else _get(_value(of._of), of._index)


def _store(of: Ref | RefView, value: Any, operation: str) -> None:
    if isinstance(of, Ref):
        write(of, stop_gradient(value) if of.aval.kind == NO_DERIVATIVES else value, operation)
    else:
        _store(of._of, _update(_value(of._of), of._index, value, "swap"), operation)


def _checked(ref: Any, function: str, name: str) -> Any:
    """A valid reference or view.

    Raises:
      ValueError: it is neither, or the reference is no longer valid.
    """
    base = ref
    while isinstance(base, RefView):
        base = base._of
    if not isinstance(base, Ref):
        raise ValueError(f"Can only call `{function}` on a `Ref`: {ref}.")
    invalid = base._storage.invalid
    if invalid and (name != "get" or invalid == "freed"):
        raise ValueError(
            f"`{name}` must be called on `Ref` types: {base.aval.inner_aval.str_short()}.")
    return ref


def get(ref: Ref | RefView, idx: Any = None) -> Array:
    """The value of a reference, or a region of it: ``ref[idx]``.

    Args:
      idx: None means all.

    Raises:
      ValueError: ``ref`` is not a reference, or a known index is out of range.

    >>> ref = jax.new_ref(jnp.arange(5))
    >>> jax.ref.get(ref, slice(1, 3))
    Array([1, 2], dtype=int32)
    """
    return _get(_value(_checked(ref, "ref_get", "get")), idx)


def set(ref: Ref | RefView, idx: Any, value: Any) -> None:
    """Writes a region of a reference: ``ref[idx] = value``.

    Args:
      idx: None means all.
      value: has the region's shape and the reference's dtype.

    Raises:
      ValueError: the shape or dtype differs, ``ref`` is not a reference, or a known index is out of
        range.

    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> jax.ref.set(ref, 1, 10.)
    >>> ref
    Ref([ 0., 10.,  0.], dtype=float32)
    """
    _checked(ref, "ref_set", "swap")
    _store(ref, _update(_value(ref), idx, value, "swap"), SET)


def swap(ref: Ref | RefView, idx: Any, value: Any, _function_name: str = "ref_swap") -> Array:
    """Writes a region of a reference and returns its old value; arguments as for ``set``.

    >>> ref = jax.new_ref(jnp.arange(3))
    >>> jax.ref.swap(ref, 0, 7), ref
    (Array(0, dtype=int32), Ref([7, 1, 2], dtype=int32))
    """
    old = _value(_checked(ref, _function_name, "swap"))
    _store(ref, _update(old, idx, value, "swap"), SET)
    return _get(old, idx)


def addupdate(ref: Ref | RefView, idx: Any, x: Any) -> None:
    """Adds to a region of a reference; repeated indices accumulate.

    Args:
      idx: None means all.
      x: has the region's shape and the reference's dtype.

    Raises:
      ValueError: as for ``set``.

    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> jax.ref.addupdate(ref, jnp.array([0, 0]), jnp.ones(2))
    >>> ref
    Ref([2., 0., 0.], dtype=float32)
    """
    _checked(ref, "ref_addupdate", "addupdate")
    _store(ref, _update(_value(ref), idx, x, "addupdate"), ADD)


def _addupdate(self: Any, x: Any, idx: Any = ()) -> None:
    """Adds to a region, by default the whole: ``jax.ref.addupdate``."""
    addupdate(self, idx, x)


def _copy(self: Ref) -> Any:
    """A pickled or deeply copied reference is a new one."""
    return make_ref, (read(self),)


_MEMBERS: dict[str, Any] = {
    "__getitem__": lambda self, index: get(self, index),
    "__setitem__": lambda self, index, value: set(self, index, value),
    "addupdate": _addupdate,
    "at": property(_Views, doc="``ref.at[index]``: a part of the reference, as one itself."),
}
for _name, _member in _MEMBERS.items():
    setattr(Ref, _name, _member)
    setattr(RefView, _name, _member)
Ref.__reduce__ = _copy      # type: ignore[assignment,method-assign]
