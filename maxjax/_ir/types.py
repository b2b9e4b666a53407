"""Array types: what is known of a value before it is computed."""

from __future__ import annotations

import math
import os
import threading
import weakref
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.dimensions import constant_size


class ShapedArray:
    """Shape, dtype and weakness of an array.

    Equal types are one object: they compare and hash by identity, so that a cache keyed by
    types costs nothing but the lookup.
    """

    __slots__ = ("__weakref__", "dtype", "ndim", "shape", "size", "weak_type")
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int

    def __new__(cls, shape: Any, dtype: Any, weak_type: bool = False) -> ShapedArray:
        try:
            return _recent[shape, dtype, weak_type]
        except (KeyError, TypeError):
            return _intern(tuple([constant_size(d) for d in shape]), dtypes.as_dtype(dtype),
                           bool(weak_type))

    def update(self, shape: Any = None, dtype: Any = None,
               weak_type: bool | None = None) -> ShapedArray:
        """The same type but for what is given."""
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type)

    def strip_weak_type(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype, False) if self.weak_type else self

    def tangent(self) -> ShapedArray:
        """The type of a tangent or cotangent of a value of this type."""
        dtype = dtypes.tangent_dtype(self.dtype)
        return ShapedArray(self.shape, dtype, self.weak_type and dtype is not dtypes.float0)

    to_tangent_aval = tangent
    to_cotangent_aval = tangent

    @property
    def nbytes(self) -> int:
        return self.size * dtypes.physical(self.dtype).itemsize

    def str_short(self, short_dtypes: bool = False) -> str:
        """``float32[2,3]``, or ``f32[2,3]`` with ``short_dtypes``."""
        name = dtypes.short_name(self.dtype) if short_dtypes else (
            "float0" if self.dtype == dtypes.float0 else self.dtype.name)
        return f"{name}[{','.join(map(str, self.shape))}]"

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
        return (ShapedArray, (self.shape, self.dtype, self.weak_type))


# Every living type is in `_all`; `_recent` is a bounded dictionary in front of it, which a plain
# lookup can answer at C speed.
_recent: dict[tuple[Any, Any, bool], ShapedArray] = {}
_all: weakref.WeakValueDictionary[tuple[Any, Any, bool], ShapedArray] = (
    weakref.WeakValueDictionary())
_lock = threading.Lock()
_RECENT_LIMIT = 20_000


def _after_fork_in_child() -> None:
    """A thread that held the lock is not here to release it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _intern(shape: tuple[int, ...], dtype: Any, weak_type: bool) -> ShapedArray:
    key = (shape, dtype, weak_type)
    with _lock:
        aval = _all.get(key)
        if aval is None:
            aval = object.__new__(ShapedArray)
            aval.shape = shape
            aval.dtype = dtype
            aval.weak_type = weak_type
            aval.ndim = len(shape)
            aval.size = math.prod(shape)
            _all[key] = aval
        if len(_recent) >= _RECENT_LIMIT:
            _recent.clear()
        _recent[key] = aval
    return aval


FLOAT0_SCALAR = ShapedArray((), dtypes.float0)


def match_up_to_weak_type(left: ShapedArray, right: ShapedArray) -> bool:
    return left is right or (left.shape == right.shape and left.dtype == right.dtype)
