"""What values, parameters and axes are, for annotations: one name for each.

Those that lower modules need stand there, and are brought together here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from maxjax._base.dtypes import DType as DType
from maxjax._base.pytree import PyTree as PyTree
from maxjax._base.specs import AxisName as AxisName
from maxjax._ir.jaxpr import Params as Params
from maxjax._ir.trace import Array
from maxjax._ir.trace import Value as Value

# --- values ---------------------------------------------------------------------------------------
# A result of a NumPy rule; NumPy's functions give scalars for arrays of rank 0.
HostValue = np.ndarray | np.generic
# A scalar that no function is traced over.
StaticScalar = np.bool_ | np.number | bool | int | float | complex

# --- types of values ------------------------------------------------------------------------------
# Sizes; symbolic ones, which are objects of their own, act as integers.
Shape = tuple[int, ...]

# --- axes -----------------------------------------------------------------------------------------
# The position of the mapped axis; None: the same for all elements.
BatchAxis = int | None

# --- functions ------------------------------------------------------------------------------------
# A function of values whose result is a flat sequence of values.
FlatFunction = Callable[..., Sequence[Any]]
# Derivative rules of a flat function. Values and their tangents -> results and their tangents.
FlatJvp = Callable[[list[Value], list[Value | None]], tuple[list[Any], list[Any]]]
# Residuals and the cotangents of results -> those of the arguments; some are symbolic zeros.
FlatBackward = Callable[[list[Value], list[Any]], Sequence[Any]]
# Values, and which of them are perturbed -> results, residuals, and the backward pass.
FlatVjp = Callable[[list[Value], tuple[bool, ...]],
                   tuple[list[Any], list[Any], FlatBackward]]


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
