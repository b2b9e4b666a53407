"""What ``reduce`` of NumPy's universal functions does with reductions that take no ``dtype``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array
from maxjax._primitives.convert import convert_element_type
from maxjax.numpy import _shape as shapes
from maxjax.numpy._promotion import as_array, cast


def extreme(reduction: Callable[..., Array]) -> Callable[..., Array]:
    """A reduction of elements that are converted first."""
    def reduce(a: Any, dtype: Any = None, **options: Any) -> Array:
        return reduction(a if dtype is None else convert_element_type(as_array(a), dtype),
                         **options)
    return reduce


def truth(reduction: Callable[..., Array], primitive: Primitive) -> Callable[..., Array]:
    """A reduction of truth values; an initial one is joined to the result by ``primitive``."""
    def reduce(a: Any, dtype: Any = None, initial: Any = None, **options: Any) -> Array:
        result = reduction(a, **options)
        if dtype is not None:
            if dtypes.is_inexact(dtype):
                raise TypeError(f"{primitive.name} does not accept dtype {dtype}: truth values are "
                                "reduced as booleans or integers.")
            result = convert_element_type(result, dtype)
        if initial is None:
            return result
        return primitive.bind(*shapes.broadcast_arrays(
            result, as_array(cast(initial, result.dtype))))
    return reduce
