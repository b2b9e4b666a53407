"""Helpers shared by the distributions."""

from __future__ import annotations

from typing import Any

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import as_array, promote_args_inexact, type_of


def floats(name: str, *args: Any) -> list[Any]:
    """The arguments as floats of one dtype; weakly typed only if all of them are Python's numbers,
    booleans among them, or weakly typed.

    So an array of integers with a Python float gives a strong type, as in JAX.
    """
    operands = promote_args_inexact(name, *args)
    if operands[0].dtype == dtypes.bfloat16:
        # NumPy's scalars of it become float32 where they meet Python's numbers.
        operands = [as_array(x) for x in operands]
    if not type_of(operands[0])[1] or all(
            arg.__class__ is bool or type_of(arg)[1] for arg in args):
        return operands
    return [lax.convert_element_type(x, x.dtype) for x in operands]


def reals(name: str, *args: Any) -> list[Any]:
    """As ``floats``, of a distribution that compares its arguments.

    Raises:
      TypeError: an argument is complex.
    """
    return _ordered(name, floats(name, *args))


def weak_floats(name: str, *args: Any) -> list[Any]:
    """The arguments as floats of one dtype, by JAX's usual promotion."""
    return promote_args_inexact(name, *args)


def weak_reals(name: str, *args: Any) -> list[Any]:
    """As ``weak_floats``, of a distribution that compares its arguments.

    Raises:
      TypeError: an argument is complex.
    """
    return _ordered(name, weak_floats(name, *args))


def _ordered(name: str, operands: list[Any]) -> list[Any]:
    dtype = operands[0].dtype
    if dtypes.is_complex(dtype):
        raise TypeError(f"{name} does not accept dtype {dtype}: complex numbers have no order")
    return operands


def inside(condition: Any, value: Any, otherwise: Any) -> Array:
    """``value`` where the condition holds."""
    return jnp.where(condition, value, otherwise)


def outside(condition: Any, constant: Any, value: Any) -> Array:
    """``constant`` where the condition holds. It does not for NaN, whose ``value`` is NaN."""
    return jnp.where(condition, constant, value)
