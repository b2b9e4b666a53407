"""Selections of jax.lax: operands share a dtype, and are scalars or of one shape."""

from __future__ import annotations

from typing import Any

from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.comparison import clamp_p, select_n_p
from maxjax._transforms.batching import BatchTracer
from maxjax.lax._operands import check_accepted, same_dtypes_error
from maxjax.lax._operands import operand as as_operand

__all__ = ["clamp", "clamp_p", "select", "select_n", "select_n_p"]


def clamp(min: Any, x: ArrayLike, max: Any) -> Array:
    """``x`` clipped to ``min`` and ``max``, scalars or arrays of its shape; NaN stays NaN.

    Args:
      min, max: the limits.
      x: an array.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: dtypes or shapes differ.

    See also: ``jnp.clip``, ``lax.max``, ``lax.min``.

    >>> lax.clamp(0., jnp.array([-1., 0.5, jnp.nan]), 1.)
    Array([0. , 0.5, nan], dtype=float32)
    """
    primitive = clamp_p
    low, x, high = [as_operand(value, "clamp", i) for i, value in enumerate((min, x, max))]
    avals = (low.aval, x.aval, high.aval)
    check_accepted(primitive, avals)
    if not avals[0].dtype == avals[1].dtype == avals[2].dtype:
        raise same_dtypes_error("clamp", avals)
    shape = x.aval.shape
    for name, edge in (("min", low), ("max", high)):
        if edge.shape and edge.shape != shape:
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                f"{name}.shape={edge.shape}, operand.shape={shape}.")
    return primitive.bind(low, x, high)


def select_n(which: Any, *cases: Any) -> Array:
    """Selects each element from the case that ``which`` names.

    Args:
      which: booleans (two cases) or integers; a scalar, or of the cases' shape. Where ``vmap``
        maps it, and not the cases, these may be scalars.
      cases: arrays of one shape and dtype.

    Returns:
      An array of the cases' shape and dtype.

    Raises:
      TypeError: shapes or dtypes differ, or ``which`` is neither boolean nor integer.
      ValueError: there are no cases.

    See also: ``lax.select``, ``lax.switch``, ``jnp.where``, ``jnp.choose``.

    >>> lax.select_n(jnp.array([0, 2]), *(jnp.full(2, k) for k in range(3)))
    Array([0, 2], dtype=int32, weak_type=True)
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    which = as_operand(which, "select_n", 0)
    values = [as_operand(case, "select_n", position) for position, case in enumerate(cases, 1)]
    # Where only the predicate is mapped by vmap, JAX takes scalar cases for any shape of it, and
    # libraries rely on that.
    is_mapped = isinstance(which, BatchTracer) and not any(
        value.shape or isinstance(value, BatchTracer) for value in values)
    _check_select(which.aval, [value.aval for value in values], is_mapped)
    return select_n_p.bind(which, *values)


def _check_select(which: ShapedArray, cases: list[ShapedArray], is_mapped: bool) -> None:
    first = cases[0]
    if any(case.shape != first.shape for case in cases):
        raise TypeError("select cases must have the same shapes, got "
                        f"[{', '.join(str(case.shape) for case in cases)}].")
    if which.shape and which.shape != first.shape and not is_mapped:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got `which` shape "
            f"{which.shape} but case shape {first.shape}.")
    if any(case.dtype != first.dtype for case in cases):
        raise same_dtypes_error("select", cases)
    if which.dtype != dtypes.bool_ and not dtypes.is_integer(which.dtype):
        raise TypeError(
            f"select `which` must be boolean or integer type, got {which.dtype}.")
    if which.dtype == dtypes.bool_ and len(cases) > 2:
        raise TypeError("select with boolean `which` cannot have > 2 cases.")


def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """``on_true`` where ``pred``, otherwise ``on_false``; all of one shape, or ``pred`` a scalar.

    Args:
      pred: booleans, of the shape of the other two or a scalar.
      on_true, on_false: arrays of one shape and dtype; a number takes on the other's dtype.

    Returns:
      An array of their shape and dtype. Both are computed.

    Raises:
      TypeError: shapes or dtypes differ, where ``jnp.where`` broadcasts and promotes.

    See also: ``lax.select_n``, ``jnp.where``, ``lax.cond``.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return select_n(pred, on_false, on_true)
