"""Cumulative sums and products."""

from __future__ import annotations

from typing import Any

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.cumulative import cumprod_p, cumsum_p
from maxjax._primitives.layout import reshape
from maxjax._primitives.slicing import pad
from maxjax.lax._operands import canonical_axis
from maxjax.numpy._at_once import at_once
from maxjax.numpy._nan_reductions import without_nan
from maxjax.numpy._promotion import as_array, cast, check_out
from maxjax.numpy._reductions import strong, wide_integer

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum"]


def _cumulate(name: str, primitive: Primitive, a: Any, axis: Any, dtype: Any, out: Any) -> Array:
    check_out(name, out)
    x = as_array(a, name)
    if axis is None:
        x = reshape(x, (x.size,))
        axis = 0
    elif not x.ndim and x.weak_type:
        x = reshape(x, (1,))        # as JAX takes a Python number, and no other scalar
    index = canonical_axis(axis, x.ndim)
    if dtype is None:
        dtype = dtypes.canonical(dtypes.int64) if x.dtype == dtypes.bool_ else x.dtype
    else:
        dtype = dtypes.argument(dtype, name)
    if dtype == dtypes.bool_:
        result = primitive.bind(
            convert_element_type(cast(x, dtype), dtypes.int32), axis=index, reverse=False)
        return convert_element_type(result, dtype)
    return primitive.bind(strong(cast(x, dtype)), axis=index, reverse=False)


@at_once
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
           out: Any = None) -> Array:
    """Cumulative sums along ``axis`` (of the flattened array by default).

    Args:
      a: an array.
      axis: along which; None: of the flattened array.
      dtype: in which to sum, and of the result; None: that of ``a``, small integers and booleans in
        the default integer type.
      out: None: arrays are immutable, so that nothing is written into one.

    Returns:
      An array of the shape of ``a``, or of shape ``(a.size,)`` without an axis.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``cumprod``, ``nancumsum``, ``cumulative_sum``, ``sum``, ``lax.cumsum``,
    ``lax.associative_scan``.

    >>> jnp.cumsum(jnp.array([[1, 2], [3, 4]])), jnp.cumsum(jnp.array([[1, 2], [3, 4]]),
    ...     axis=0)
    (Array([ 1,  3,  6, 10], dtype=int32), Array([[1, 2],
           [4, 6]], dtype=int32))
    """
    check_out("cumsum", out)
    return _cumsum(a, axis=axis, dtype=dtype)


@named("cumsum", "axis", "dtype")
def _cumsum(a: Any, *, axis: Any, dtype: Any) -> Array:
    return _cumulate("cumsum", cumsum_p, a, axis, dtype, None)


@at_once
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
            out: Any = None) -> Array:
    """Cumulative products along ``axis`` (of the flattened array by default).

    Args:
      a: an array.
      axis: along which; None: of the flattened array.
      dtype: in which to multiply, and of the result; None: that of ``a``, small integers and
        booleans in the default integer type.
      out: None: arrays are immutable, so that nothing is written into one.

    Returns:
      An array of the shape of ``a``, or of shape ``(a.size,)`` without an axis.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``cumsum``, ``nancumprod``, ``cumulative_prod``, ``prod``, ``lax.cumprod``.

    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    check_out("cumprod", out)
    return _cumprod(a, axis=axis, dtype=dtype)


@named("cumprod", "axis", "dtype")
def _cumprod(a: Any, *, axis: Any, dtype: Any) -> Array:
    return _cumulate("cumprod", cumprod_p, a, axis, dtype, None)


@at_once
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
              out: Any = None) -> Array:
    """As ``cumsum``, with NaN treated as zero.

    Args:
      a: an array.
      axis: along which; None: of the flattened array.
      dtype: in which to sum, and of the result; None: that of ``a``, small integers in the default
        type.
      out: None: arrays are immutable, so that nothing is written into one.

    Returns:
      An array of the shape of ``a``, or of shape ``(a.size,)`` without an axis.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``cumsum``, ``nansum``, ``nancumprod``.

    >>> jnp.nancumsum(jnp.array([1., jnp.nan, 5.]))
    Array([1., 1., 6.], dtype=float32)
    """
    return _cumulate("nancumsum", cumsum_p, without_nan("nancumsum", a, 0), axis, dtype, out)


@at_once
def nancumprod(a: ArrayLike, axis: int | None = None,
               dtype: DTypeLike | None = None, out: Any = None) -> Array:
    """As ``cumprod``, with NaN treated as one.

    >>> jnp.nancumprod(jnp.array([2., jnp.nan, 5.]))
    Array([ 2.,  2., 10.], dtype=float32)
    """
    return _cumulate("nancumprod", cumprod_p, without_nan("nancumprod", a, 1), axis, dtype, out)


def _cumulative(name: str, primitive: Primitive, start: int, x: Any, axis: Any, dtype: Any,
                include_initial: bool) -> Array:
    x = as_array(x, name)
    if x.ndim == 0:
        kind = "sum" if name == "cumulative_sum" else "product"
        raise ValueError(f"The input must be non-scalar to take a cumulative {kind}, "
                         "however a scalar value or scalar array was given.")
    if axis is None:
        if x.ndim > 1:
            raise ValueError("The input array has rank "
                             f"{x.ndim}, however axis was not set to an explicit value. The axis "
                             "argument is only optional for one-dimensional arrays.")
        axis = 0
    index = canonical_axis(axis, x.ndim)
    if dtype is None and name == "cumulative_sum":
        dtype = wide_integer(x.dtype)
    result = _cumulate(name, primitive, x, index, dtype, None)
    if not include_initial:
        return result
    padding = [(0, 0, 0)] * x.ndim
    padding[index] = (1, 0, 0)
    return pad(result, start, padding)


@at_once
def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None,
                   dtype: DTypeLike | None = None, include_initial: bool = False) -> Array:
    """Cumulative sums along ``axis``, starting with 0 if ``include_initial``.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("cumulative_sum", cumsum_p, 0, x, axis, dtype, include_initial)


@at_once
def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None,
                    dtype: DTypeLike | None = None, include_initial: bool = False) -> Array:
    """Cumulative products along ``axis``, starting with 1 if ``include_initial``.

    >>> jnp.cumulative_prod(jnp.array([2, 3, 4]), include_initial=True)
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _cumulative("cumulative_prod", cumprod_p, 1, x, axis, dtype, include_initial)
