"""Arguments of jax.lax operations: as arrays of valid dtypes, axes, sizes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._higher_order.outputs import HasNoValue
from maxjax._ir.dimensions import size_index
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import Ref
from maxjax._ir.runtime import installed
from maxjax._ir.staging import is_staging
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._primitives.widths import refusal

_ARRAYLIKE = (np.ndarray, np.generic, bool, int, float, complex)


def _holds_text(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "OSU"


def operand(value: Any, name: str, position: int = 0) -> Array:
    """An argument as an array or tracer; Python scalars become weakly typed.

    Raises:
      TypeError: it is not a number or array.
      ValueError: it is a reference, whose value is ``ref[...]``.
    """
    if isinstance(value, Array):
        return value
    if hasattr(value, "__jax_array__") or isinstance(value, HasNoValue) and is_staging():
        return installed.runtime.operand(value)
    if isinstance(value, _ARRAYLIKE) and not _holds_text(value):
        return installed.runtime.operand(value)
    if isinstance(value, Ref):
        raise ValueError(f"Attempting to pass a Ref {value.aval!r} to a primitive: {name} -- did "
                         "you forget to unpack ([...]) the ref?")
    raise TypeError(
        f"Error interpreting argument to {name} as a JAX value. The problematic value is of type "
        f"{type(value)} and was passed to {name} at position {position}.\n")


def check_accepted(primitive: Primitive, avals: Sequence[ShapedArray]) -> None:
    accepts: Any = primitive.values.accepts
    if accepts is None:
        return
    for position, aval in enumerate(avals):
        if aval.dtype not in accepts:
            where = f" at position {position}" if len(avals) > 1 else ""
            raise refusal(primitive.name, aval.dtype, where, accepts)


# The promoting function of jax.numpy, where JAX's message names it.
_PROMOTING = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "max": "maximum",
    "min": "minimum", "atan2": "arctan2", "nextafter": "nextafter", "eq": "equal",
    "ne": "not_equal", "shift_left": "left_shift", "shift_right_logical": "right_shift",
    "shift_right_arithmetic": "right_shift", "select": "where",
}


def same_dtypes_error(name: str, avals: Sequence[ShapedArray]) -> TypeError:
    tip = _PROMOTING.get(name)
    names = ", ".join(str(aval.dtype) for aval in avals)
    return TypeError(
        f"lax.{name} requires arguments to have the same dtypes, got {names}." + (
            f" (Tip: jnp.{tip} is a similar function that does automatic type promotion on "
            "inputs)." if tip else ""))


def integers(values: Any) -> tuple[int, ...]:
    """A sequence of concrete integers, including NumPy's."""
    return tuple([size_index(value) for value in values])


def canonical_axis(axis: Any, rank: int) -> int:
    """An axis counted from the left.

    Raises:
      ValueError: it is out of bounds.
    """
    index = operator.index(axis)
    if not -rank <= index < rank:
        raise ValueError(f"axis {index} is out of bounds for array of dimension {rank}")
    return index + rank if index < 0 else index


def check_nonnegative(name: str, what: str, values: Sequence[int]) -> None:
    if any(value < 0 for value in values):
        raise TypeError(f"{name} {what} must have every element be nonnegative, got "
                        f"{tuple(values)}.")


def check_same_dtypes(name: str, arrays: Sequence[Array]) -> None:
    if len({x.dtype for x in arrays}) > 1:
        message = str(same_dtypes_error(name, [x.aval for x in arrays]))
        if "(Tip" not in message:
            message += (f" (Tip: jnp.{name} is a similar function that does automatic type "
                        "promotion on inputs).")
        raise TypeError(message)
