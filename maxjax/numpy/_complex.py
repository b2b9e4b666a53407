"""Parts of complex numbers, and which arrays and elements are complex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import complex_p, conj_p, imag_p, real_p
from maxjax._primitives.comparison import ne_p, not_p
from maxjax._primitives.creation import full
from maxjax.lax._conversion import lying_like
from maxjax.numpy._at_once import at_once
from maxjax.numpy._elementwise import alias
from maxjax.numpy._promotion import (
    apart,
    as_array,
    bind,
    broadcast_to,
    cast,
    constant,
    operand,
)

__all__ = ["conj", "conjugate", "imag", "iscomplex", "iscomplexobj", "isreal", "isrealobj", "real"]


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real arrays are returned as they are.

    Args:
      x: an array or scalar.

    Returns:
      An array of the same shape and dtype.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``real``, ``imag``, ``abs``, ``angle``, ``lax.conj``.

    >>> jnp.conjugate(jnp.array([1 + 2j, 3]))
    Array([1.-2.j, 3.-0.j], dtype=complex64)
    """
    x = operand("conjugate", x)
    if not dtypes.is_complex(x.dtype):
        return apart(x)
    return conj_p.bind(x, input_dtype=x.dtype)


conj = alias(conjugate, "conj")


def real(val: ArrayLike, /) -> Array:
    """The real part.

    Args:
      val: an array or scalar.

    Returns:
      An array of the same shape, of the real dtype; real arrays are returned as they are.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``imag``, ``conj``, ``iscomplexobj``, ``lax.real``.

    >>> jnp.real(jnp.array([1 + 2j, 3]))
    Array([1., 3.], dtype=float32)
    """
    x = operand("real", val)
    return real_p.bind(x) if dtypes.is_complex(x.dtype) else apart(x)


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros for real arrays.

    Args:
      val: an array or scalar.

    Returns:
      An array of the same shape, of the real dtype.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``real``, ``conj``, ``angle``, ``lax.imag``.

    >>> jnp.imag(jnp.array([1 + 2j, 3]))
    Array([2., 0.], dtype=float32)
    """
    x = operand("imag", val)
    if dtypes.is_complex(x.dtype):
        return imag_p.bind(x)
    zeros = broadcast_to(constant(0, x.dtype, x.weak_type), x.shape) if x.weak_type else _zeros(x)
    return lying_like(zeros, x)


def _zeros(x: Array) -> Array:
    return as_array(full(x.shape, 0, x.dtype)) if x.shape else as_array(constant(0, x.dtype))


def each_part(x: Array, function: Callable[[Array], Array]) -> Array:
    """The function applied to x, or to both parts of a complex x."""
    if dtypes.is_complex(x.dtype):
        return complex_of(function(real(x)), function(imag(x)))
    return function(x)


def complex_of(x: Any, y: Any) -> Array:
    return complex_p.bind(x, y)


@at_once
def iscomplex(x: ArrayLike) -> Array:
    """Whether each element has an imaginary part.

    >>> jnp.iscomplex(jnp.array([1j, 2]))
    Array([ True, False], dtype=bool)
    """
    part = imag(x)
    if part.dtype == dtypes.bool_:
        part = cast(part, part.dtype)
    return bind(ne_p, part, constant(0, part.dtype, part.weak_type and not part.ndim))


@at_once
def isreal(x: ArrayLike) -> Array:
    """Whether each element has no imaginary part.

    >>> jnp.isreal(jnp.array([1j, 2]))
    Array([False,  True], dtype=bool)
    """
    return not_p.bind(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex.

    Args:
      x: an array or scalar, or anything with a dtype.

    Returns:
      A Python boolean, also while tracing; imaginary parts of 0 count as well.

    See also: ``isrealobj``, ``iscomplex``, ``issubdtype``.

    >>> jnp.iscomplexobj(jnp.array([1j, 2])), jnp.iscomplexobj(2.0)
    (True, False)
    """
    if x is None:
        return False
    if hasattr(x, "__jax_array__") and not isinstance(x, Array):
        x = x.__jax_array__()
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return isinstance(x, complex) or (
            isinstance(x, (list, tuple)) and any(map(iscomplexobj, x)))
    return dtypes.is_complex(dtype)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex.

    >>> jnp.isrealobj(jnp.array([1j, 2])), jnp.isrealobj(2.0)
    (False, True)
    """
    return not iscomplexobj(x)
