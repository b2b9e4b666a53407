"""What values, parameters and axes are, for annotations: one name for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from maxjax._base.dtypes import KeyDType
from maxjax._ir.trace import Array

# --- values ---------------------------------------------------------------------------------------
# What primitives are applied to: arrays and tracers; while a program is evaluated also its
# literals, NumPy's scalars. Rules are written for ``Array``: a literal has its shape, dtype and
# operators.
Value = Array | np.ndarray | np.generic
# None: known to be zero.
Tangent = Array | None
# A result of a NumPy rule; NumPy's functions give scalars for arrays of rank 0.
HostValue = np.ndarray | np.generic
# A scalar that no function is traced over.
StaticScalar = np.bool_ | np.number | bool | int | float | complex
# A tree of containers with leaves of any class: a type checker knows none of its structure.
PyTree = Any

# --- types of values ------------------------------------------------------------------------------
# Sizes; symbolic ones, which are objects of their own, act as integers.
Shape = tuple[int, ...]
# NumPy's, or of random keys.
DType = np.dtype | KeyDType

# --- axes -----------------------------------------------------------------------------------------
# The position of the mapped axis; None: the same for all elements.
BatchAxis = int | None
# Of an axis that ``vmap``, ``shard_map`` or a mesh names.
AxisName = Hashable

# --- parameters -----------------------------------------------------------------------------------
# Those of an application. What they are depends on the primitive: each rule that needs one names
# and types it as a keyword argument.
Params = dict[str, Any]


# --- functions ------------------------------------------------------------------------------------
# Of a flat list of values, with one as its result; and its jvp, of primals and tangents.
FlatFunction = Callable[..., Sequence[Any]]
FlatJvp = Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]


# --- users' arguments -----------------------------------------------------------------------------

class SupportsDType(Protocol):
    """Has a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


# What functions of maxjax.numpy take as an array, and as a dtype.
ArrayLike = Array | np.ndarray | StaticScalar
DTypeLike = str | type[Any] | np.dtype | SupportsDType

# What a transformation gives back as it was typed: the function, its results, a pytree.
Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")
Aux = TypeVar("Aux")
Tree = TypeVar("Tree")
Class = TypeVar("Class", bound=type)
