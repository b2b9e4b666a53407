"""The functions that JAX has as ``jax.numpy.ufunc`` objects: they have reduce, at and so on."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.primitive import registry
from maxjax._ir.trace import Array
from maxjax.numpy import _joining as joining
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._elementwise import binary, described, unary
from maxjax.numpy._promotion import (
    as_array,
    canonical_axis,
    cast,
    promote_args_inexact,
    promote_dtypes,
    promote_shapes,
    resolve,
)
from maxjax.numpy._where import as_bool, where

_where = where      # the name is an argument below

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "frompyfunc", "gcd", "lcm", "logaddexp",
    "logaddexp2", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
    "negative", "subtract", "ufunc",
]


class ufunc:
    """A function of scalars, applied elementwise, with NumPy's reduce, accumulate, at and outer.

    Args:
      func: the function of arrays.
      nin, nout: the numbers of arguments and results.
      identity: the result of reducing nothing, or None.
      reduce, accumulate, at: fast ways, where there are any.
    """

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, *,
                 name: str | None = None, nargs: int | None = None, identity: Any = None,
                 call: Callable[..., Any] | None = None,
                 reduce: Callable[..., Any] | None = None,
                 accumulate: Callable[..., Any] | None = None, at: str | None = None,
                 reduceat: Callable[..., Any] | None = None):
        self.__name__ = name or func.__name__
        self.__doc__ = func.__doc__
        self._call = call or func
        self.nin = operator.index(nin)
        self.nout = operator.index(nout)
        self.nargs = operator.index(nargs or nin)
        self.identity = identity
        self._reduce = reduce
        self._accumulate = accumulate
        self._at = at

    def __call__(self, *args: Any, out: Any = None, where: Any = None) -> Any:
        """The function of arrays."""
        if out is not None:
            raise NotImplementedError(f"out argument of {self}")
        if where is not None:
            raise NotImplementedError(f"where argument of {self}")
        return self._call(*args)

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def __hash__(self) -> int:
        return hash((self._call, self.__name__))

    def __eq__(self, other: Any) -> bool:
        return (isinstance(other, ufunc)
                and (self._call, self.__name__) == (other._call, other.__name__))

    def _check_two(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for functions with 2 inputs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions with 1 output")

    def reduce(self, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
               keepdims: bool = False, initial: Any = None, where: Any = None) -> Array:
        """The function applied between all elements along ``axis``."""
        self._check_two("jnp.ufunc.reduce")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduce()")
        if self._reduce is not None:
            options = {} if dtype is None else {"dtype": dtype}
            if initial is not None:
                options["initial"] = initial
            return self._reduce(a, axis=axis, keepdims=keepdims, where=where, **options)
        x = as_array(a, f"{self.__name__}.reduce")
        if dtype is not None:
            x = x.astype(dtype)
        if isinstance(axis, tuple):
            raise NotImplementedError("reduce over several axes of a ufunc without its own rule")
        if axis is None:
            shape = x.shape
            x = shapes.ravel(x)
            index, kept_axes = 0, tuple(range(len(shape)))
        else:
            index = canonical_axis(axis, x.ndim)
            shape, kept_axes = x.shape, (index,)
        rows = joining.unstack(x, axis=index)
        if not rows and initial is None:
            if self.identity is None:
                raise ValueError(
                    f"zero-size array to reduction operation {self.__name__} which has no identity")
            rest = x.shape[:index] + x.shape[index + 1:]
            return shapes.broadcast_to(as_array(cast(self.identity, x.dtype)), rest)
        if where is not None:
            start = self.identity if initial is None else initial
            if start is None:
                raise ValueError(
                    f"reduction operation {self.__name__!r} does not have an identity, so to use a "
                    "where mask one has to specify 'initial'.")
            masks = joining.unstack(shapes.broadcast_to(where, x.shape), axis=index)
            result = cast(start, x.dtype)
            for row, mask in zip(rows, masks, strict=True):
                result = _where(mask, self._call(result, row), result)
        else:
            items = rows if initial is None else (cast(initial, x.dtype), *rows)
            result = functools.reduce(self._call, items)
        return reductions.keep_axes(result, shape, kept_axes) if keepdims else result

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Array:
        """The running results of ``reduce``."""
        self._check_two("jnp.ufunc.accumulate")
        if self._accumulate is not None:
            return self._accumulate(a, axis=axis, dtype=dtype)
        x = as_array(a, f"{self.__name__}.accumulate")
        if dtype is not None:
            x = x.astype(dtype)
        index = canonical_axis(axis, x.ndim)
        results: list[Any] = []
        for row in joining.unstack(x, axis=index):
            results.append(self._call(results[-1], row) if results else row)
        return joining.stack(results, index) if results else x

    def at(self, a: Any, indices: Any, b: Any = None, *, inplace: bool = True) -> Array:
        """``a`` with the function applied at ``indices``, to it and ``b``."""
        if inplace:
            raise NotImplementedError(_NOT_IN_PLACE)
        x = as_array(a)
        if self.nin == 1:
            return x.at[indices].apply(self._call)
        if self._at is not None:
            return getattr(x.at[indices], self._at)(b)
        raise NotImplementedError(f"at() of {self.__name__}")

    def outer(self, A: Any, B: Any, /) -> Array:
        """The function of all pairs of elements."""
        self._check_two("jnp.ufunc.outer")
        a, b = as_array(A), as_array(B)
        return self._call(shapes.reshape(a, a.shape + (1,) * b.ndim), b)

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None,
                 out: Any = None) -> Array:
        """Reductions of the slices that begin at ``indices``."""
        self._check_two("jnp.ufunc.reduceat")
        x = as_array(a)
        index = canonical_axis(axis, x.ndim)
        starts = np.asarray(indices).tolist()
        parts = []
        for position, start in enumerate(starts):
            stop = starts[position + 1] if position + 1 < len(starts) else x.shape[index]
            part = joining.split(x, [start, max(stop, start + 1)], axis=index)[1]
            parts.append(self.reduce(part, axis=index, dtype=dtype))
        return joining.stack(parts, index)


_NOT_IN_PLACE = (
    "JAX arrays are immutable: use inplace=False, which returns the updated array.")


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *,
               identity: Any = None) -> ufunc:
    """A ufunc of a function that works on arrays elementwise."""
    return ufunc(func, nin, nout, identity=identity, call=func)


# The plain functions: operators call them without the object in between.
add_function = binary("add", "add", primitive_of_bool="or")
subtract_function = binary("subtract", "sub")
multiply_function = binary("multiply", "mul", primitive_of_bool="and")
negative_function = unary("negative", "neg")
bitwise_and_function = binary("bitwise_and", "and")
bitwise_or_function = binary("bitwise_or", "or")
bitwise_xor_function = binary("bitwise_xor", "xor")


def _logical(name: str, primitive_name: str) -> Callable[[Any, Any], Array]:
    def function(x: Any, y: Any, /) -> Array:
        x, y = (as_bool(v) for v in resolve(name, (x, y)))
        return registry[primitive_name].bind(*promote_shapes(name, x, y))
    return described(function, name, ("x", "y"))


def _log_sum(x1: Any, x2: Any, name: str, base_two: bool) -> Array:
    x1, x2 = promote_args_inexact(name, x1, x2)
    x1, x2 = as_array(x1), as_array(x2)
    exponential = ufuncs.exp2 if base_two else ufuncs.exp
    if dtypes.is_complex(x1.dtype):
        larger = where(ufuncs.real(x1) > ufuncs.real(x2), x1, x2)
        smaller = where(ufuncs.real(x1) > ufuncs.real(x2), x2, x1)
        term = ufuncs.log1p(exponential(smaller - larger))
        return larger + (term / np.log(2) if base_two else term)
    return (_log2_sum if base_two else _log_e_sum)(x1, x2)


def _log_sum_of_reals(x1: Array, x2: Array, base_two: bool) -> Array:
    # The greater one plus a correction; at equal infinities the difference is NaN.
    difference = x1 - x2
    term = ufuncs.log1p((ufuncs.exp2 if base_two else ufuncs.exp)(-ufuncs.abs(difference)))
    if base_two:
        term = term * cast(1 / np.log(2), term.dtype, term.weak_type)
    return where(difference != difference, x1 + x2, maximum_function(x1, x2) + term)


def _with_shares(name: str, base_two: bool) -> Any:
    """The function with its derivative, the share of each operand: exp(x - out).

    The general rules would differentiate a maximum and an absolute value where they have edges.
    """
    def function(x1: Array, x2: Array) -> Array:
        return _log_sum_of_reals(x1, x2, base_two)

    function.__name__ = name
    custom = custom_jvp(function)

    @custom.defjvp
    def jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
        out = custom(*primals)
        exponential = ufuncs.exp2 if base_two else ufuncs.exp

        def finite(x: Array) -> Array:
            return where(x == np.inf, 0, x)

        first, second = (tangent * exponential(finite(x) - finite(out))
                         for x, tangent in zip(primals, tangents, strict=True))
        return out, first + second

    jvp.__name__ = f"{name}_jvp"
    return custom


_log_e_sum, _log2_sum = _with_shares("logaddexp", False), _with_shares("logaddexp2", True)


def _logaddexp(x1: Any, x2: Any, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow."""
    return _log_sum(x1, x2, "logaddexp", False)


def _logaddexp2(x1: Any, x2: Any, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow."""
    return _log_sum(x1, x2, "logaddexp2", True)


maximum_function, minimum_function = ufuncs._maximum, ufuncs._minimum


add = ufunc(add_function, 2, 1, name="add", identity=0, reduce=reductions.sum,
            accumulate=reductions.cumsum, at="add")
subtract = ufunc(subtract_function, 2, 1, name="subtract", at="subtract")
multiply = ufunc(multiply_function, 2, 1, name="multiply", identity=1, reduce=reductions.prod,
                 accumulate=reductions.cumprod, at="multiply")
negative = ufunc(negative_function, 1, 1, name="negative")
maximum = ufunc(maximum_function, 2, 1, name="maximum", reduce=reductions.max, at="max")
minimum = ufunc(minimum_function, 2, 1, name="minimum", reduce=reductions.min, at="min")
bitwise_and = ufunc(bitwise_and_function, 2, 1, name="bitwise_and", identity=-1)
bitwise_or = ufunc(bitwise_or_function, 2, 1, name="bitwise_or", identity=0)
bitwise_xor = ufunc(bitwise_xor_function, 2, 1, name="bitwise_xor", identity=0)
logical_and = ufunc(_logical("logical_and", "and"), 2, 1, identity=True,
                    reduce=reductions.all)
logical_or = ufunc(_logical("logical_or", "or"), 2, 1, identity=False,
                   reduce=reductions.any)
logical_xor = ufunc(_logical("logical_xor", "xor"), 2, 1, identity=False)
logaddexp = ufunc(_logaddexp, 2, 1, name="logaddexp", identity=-np.inf)
logaddexp2 = ufunc(_logaddexp2, 2, 1, name="logaddexp2", identity=-np.inf)


def gcd(x1: Any, x2: Any) -> Array:
    """The greatest common divisor."""
    x, y = _integers("gcd", x1, x2)
    # Euclid's algorithm takes the most steps on Fibonacci numbers: 1.44 a bit.
    for _ in range(int(1.4405 * 8 * x.dtype.itemsize) + 2):
        rest = registry["rem"].bind(x, where(y == 0, 1, y))
        x, y = where(y == 0, x, y), where(y == 0, 0, rest)
    return x


def lcm(x1: Any, x2: Any) -> Array:
    """The least common multiple."""
    x, y = _integers("lcm", x1, x2)
    divisor = gcd(x, y)
    safe = where(divisor == 0, 1, divisor)
    return where(divisor == 0, 0, registry["div"].bind(x, safe) * y)


def _integers(name: str, x1: Any, x2: Any) -> tuple[Array, Array]:
    x1, x2 = resolve(name, (x1, x2))
    x1, x2 = promote_shapes(name, *promote_dtypes(name, x1, x2))
    if not dtypes.is_integer(x1.dtype):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    x1, x2 = ufuncs.abs(x1), ufuncs.abs(x2)
    sizes = shapes.broadcast_shapes(x1.shape, x2.shape)
    return shapes.broadcast_to(x1, sizes), shapes.broadcast_to(x2, sizes)
