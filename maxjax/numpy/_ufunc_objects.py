"""The functions that are ``jax.numpy.ufunc`` objects in JAX, with reduce, at and so on."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.tracebacks import is_boundary, shorten
from maxjax._higher_order.api import eval_shape
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._higher_order.jit_function import make_jit
from maxjax._higher_order.scan import scan
from maxjax._higher_order.while_loop import while_loop
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import add_p, complex_p, div_p, mul_p, neg_p, rem_p, sub_p
from maxjax._primitives.comparison import and_p, or_p, select_n_p, xor_p
from maxjax._primitives.convert import convert_element_type
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import whole_along
from maxjax.numpy import _creation as creation
from maxjax.numpy import _cumulative as cumulative
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining as joining
from maxjax.numpy import _logic as logic
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import imag, real
from maxjax.numpy._division import remainder
from maxjax.numpy._elementwise import binary, described, unary
from maxjax.numpy._promotion import (
    as_array,
    canonical_axes,
    cast,
    constant,
    promote_args_inexact,
    promote_dtypes,
    promote_shapes,
    resolve,
    type_of,
    weak_scalar,
)
from maxjax.numpy._ufunc_reductions import extreme, truth
from maxjax.numpy._where import as_bool, where
from maxjax.numpy._whole import whole

_where = where      # the name is an argument below

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "frompyfunc", "gcd", "lcm", "logaddexp",
    "logaddexp2", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
    "negative", "subtract", "ufunc",
]


class ufunc:
    """A function of scalars, applied elementwise, with NumPy's reduce, accumulate, at and outer.

    Args:
      func: the function of scalars.
      nin, nout: the numbers of arguments and results.
      identity: the result of an empty reduction, or None.
      call: the function of arrays, if its elementwise form is known.
      reduce, accumulate: fast implementations, if any.
      at: the corresponding method of ``x.at[...]``.

    >>> isinstance(jnp.add, jnp.ufunc), jnp.add.nin, jnp.add.identity
    (True, 2, 0)
    >>> jnp.maximum.outer(jnp.array([1, 5]), jnp.array([2, 3]))
    Array([[2, 3],
           [5, 5]], dtype=int32)
    """

    __slots__ = ("__dict__", "__weakref__", "_counts", "_identity")

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, *,
                 name: str | None = None, nargs: int | None = None, identity: Any = None,
                 call: Callable[..., Any] | None = None,
                 reduce: Callable[..., Any] | None = None,
                 accumulate: Callable[..., Any] | None = None, at: str | None = None,
                 reduceat: Callable[..., Any] | None = None):
        self.__name__ = name or func.__name__
        self.__doc__ = func.__doc__
        self._call = call or logic.vectorize(func)
        self._scalars = func
        self._counts = operator.index(nin), operator.index(nout), operator.index(nargs or nin)
        self._identity = identity
        self._reduce = reduce
        self._accumulate = accumulate
        self._at = at
        self._reduces_integers_alone = False
        self._identity_is_neutral = call is not None      # a user may say what is not

    @property
    def nin(self) -> int:
        return self._counts[0]

    @property
    def nout(self) -> int:
        return self._counts[1]

    @property
    def nargs(self) -> int:
        return self._counts[2]

    @property
    def identity(self) -> Any:
        return self._identity

    @property
    def _func(self) -> Callable[..., Any]:
        return self._scalars

    def _key(self) -> tuple[Any, ...]:
        return self._scalars, self.__name__, self._identity, self._counts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @is_boundary
    def __call__(self, *args: Any, out: Any = None, where: Any = None) -> Any:
        """The function of arrays."""
        try:
            if out is not None:
                raise NotImplementedError(f"out argument of {self}")
            if where is not None:
                raise NotImplementedError(f"where argument of {self}")
            return self._call(*args)
        except Exception as error:
            shorten(error)
            raise

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def _check_two(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for functions with 2 inputs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions with 1 output")

    def _converted(self, x: Array, dtype: Any, name: str) -> Array:
        """The operand of a loop in ``dtype``, or in the dtype of the function's results."""
        dtype = self._result_dtype(x, x) if dtype is None else dtypes.argument(dtype, name)
        return convert_element_type(x, dtype)

    def _result_dtype(self, *operands: Array) -> Any:
        """The dtype of the function's results."""
        ones = [as_array(constant(1, x.dtype, x.weak_type)) for x in operands]
        return eval_shape(self._call, *ones).dtype

    def _step(self, carry: Array, row: Array) -> Array:
        return convert_element_type(as_array(self._call(carry, row)), carry.dtype)

    def reduce(self, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
               keepdims: bool = False, initial: Any = None, where: Any = None) -> Array:
        """The function applied between all elements along ``axis``.

        >>> jnp.add.reduce(jnp.array([[1, 2], [3, 4]]))
        Array([4, 6], dtype=int32)
        """
        self._check_two("jnp.ufunc.reduce")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduce()")
        if where is not None and self.identity is None and initial is None:
            raise ValueError(
                f"reduction operation {self.__name__!r} does not have an identity, so to use a "
                "where mask one has to specify 'initial'.")
        if self._reduces_integers_alone:
            given = as_array(a, f"{self.__name__}.reduce").dtype
            if not dtypes.is_integer(given) and given != dtypes.bool_:
                raise ValueError(f"integer argument required; got dtype={given}")
        if self._reduce is not None:
            options = {} if initial is None else {"initial": initial}
            if dtype is not None:
                dtype = dtypes.argument(dtype, f"{self.__name__}.reduce")
            return self._reduce(
                a, axis=axis, dtype=dtype, keepdims=keepdims, where=where, **options)
        return self._reduce_by_scan(a, axis, dtype, keepdims, initial, where)

    def _reduce_by_scan(self, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any,
                        mask: Any) -> Array:
        name = f"{self.__name__}.reduce"
        if isinstance(axis, tuple) and self.identity is None:
            raise NotImplementedError(f"{name} over several axes: their order would count.")
        x = as_array(a, name)
        axes = canonical_axes(axis, x.ndim)
        x = self._converted(x, dtype, name)
        if mask is not None:      # which widens the operand
            x, mask = shapes.broadcast_arrays(x, as_bool(mask))
        shape = x.shape
        x = _leading(whole_along(x, axes), axes)
        mask = None if mask is None else _leading(mask, axes)
        length = x.shape[0]
        start = initial
        if initial is None and (
                mask is not None or not length or not self._identity_is_neutral):
            start = self.identity
        if start is None:
            if not length:
                raise ValueError(
                    f"zero-size array to reduction operation {self.__name__} which has no identity")
            result, x = x[0], x[1:]
        else:
            result = shapes.broadcast_to(as_array(cast(start, x.dtype)), x.shape[1:])

        def body(carry: Array, row: Any) -> tuple[Array, None]:
            if mask is None:
                return self._step(carry, row), None
            row, chosen = row
            return _where(chosen, self._step(carry, row), carry), None

        if x.shape[0]:
            result, _ = scan(body, result, x if mask is None else (x, mask))
        return reductions.keep_axes(result, shape, axes) if keepdims else result

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Array:
        """The cumulative results of ``reduce``.

        >>> jnp.multiply.accumulate(jnp.array([1, 2, 3, 4]))
        Array([ 1,  2,  6, 24], dtype=int32)
        """
        self._check_two("jnp.ufunc.accumulate")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.accumulate()")
        if axis is None or isinstance(axis, tuple):
            raise ValueError("accumulate does not allow multiple axes")
        if self._accumulate is not None:
            return self._accumulate(a, axis=axis, dtype=dtype)
        name = f"{self.__name__}.accumulate"
        x = as_array(a, name)
        index = canonical_axis(axis, x.ndim)
        x = shapes.moveaxis(self._converted(x, dtype, name), index, 0)
        if x.shape[0]:
            def body(carry: Array, row: Array) -> tuple[Array, Array]:
                result = self._step(carry, row)
                return result, result
            _, rest = scan(body, x[0], x[1:])
            x = joining.concatenate([x[:1], rest])
        return shapes.moveaxis(x, 0, index)

    def at(self, a: Any, indices: Any, b: Any = None, *, inplace: bool = True) -> Array:
        """``a`` with the function applied to it and ``b`` at ``indices``; once for each repetition
        of an index.

        >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.5, inplace=False)
        Array([3. , 0. , 1.5], dtype=float32)
        """
        if inplace:
            raise NotImplementedError(_NOT_IN_PLACE)
        x = as_array(a, f"{self.__name__}.at")
        if self._at is not None:
            if x.dtype != dtypes.bool_ or self._at == "subtract":
                return getattr(x.at[indices], self._at)(b)
            b = convert_element_type(as_array(b), dtypes.bool_)
            numbers = getattr(x.astype(np.int32).at[indices], self._at)(b.astype(np.int32))
            return as_bool(numbers)
        operands = (x,) if b is None else (x, as_array(b))
        dtype = self._result_dtype(*operands)
        x, *others = (convert_element_type(operand, dtype) for operand in operands)
        places = shapes.reshape(ranges.arange(x.size), x.shape)
        places = places.at[indices].get(mode="fill", fill_value=x.size)
        values = None if b is None else shapes.ravel(
            shapes.broadcast_to(others[0], places.shape))

        def body(flat: Array, item: Any) -> tuple[Array, None]:
            place, *value = item
            result = as_array(self._call(flat[place], *value))
            return flat.at[place].set(result.astype(flat.dtype), mode="drop"), None

        rows = (shapes.ravel(places),) if values is None else (shapes.ravel(places), values)
        flat = convert_element_type(shapes.ravel(x), x.dtype)
        return shapes.reshape(scan(body, flat, rows)[0], x.shape)

    def outer(self, A: Any, B: Any, /) -> Array:
        """The function of all pairs of elements.

        >>> jnp.multiply.outer(jnp.array([1, 2]), jnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
        """
        self._check_two("jnp.ufunc.outer")
        a, b = as_array(A), as_array(B)
        a, b = promote_shapes("", shapes.reshape(a, a.shape + (1,) * b.ndim), b)
        return self._call(a, b)

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None,
                 out: Any = None) -> Array:
        """Reductions of the slices that begin at ``indices``, each up to the next one; of one
        element if the next one is not greater.

        >>> jnp.add.reduceat(jnp.arange(6), jnp.array([0, 4]))
        Array([6, 9], dtype=int32)
        """
        self._check_two("jnp.ufunc.reduceat")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduceat()")
        if axis is None or isinstance(axis, tuple):
            raise ValueError("reduceat requires a single integer axis.")
        name = f"{self.__name__}.reduceat"
        x, starts = as_array(a, name), as_array(creation.asarray(indices), name)
        if starts.ndim != 1 or not dtypes.is_integer(starts.dtype):
            raise TypeError("indices must be one-dimensional and of integers")
        index = canonical_axis(axis, x.ndim)
        x = shapes.moveaxis(self._converted(x, dtype, name), index, 0)
        length = x.shape[0]
        if not length:
            raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
        if not starts.shape[0]:
            return shapes.moveaxis(x[:0], 0, index)
        stops = joining.concatenate([starts[1:], filled.full((1,), length, starts.dtype)])
        column = (starts.shape[0],) + (1,) * (x.ndim - 1)
        starts, stops = shapes.reshape(starts, column), shapes.reshape(stops, column)
        first = x.at[shapes.ravel(starts)].get(mode="clip")

        def body(carry: Array, item: Any) -> tuple[Array, None]:
            row, position = item
            inside = (position > starts) & (position < stops)
            return _where(inside, self._step(carry, shapes.broadcast_to(row, carry.shape)),
                          carry), None

        result, _ = scan(body, first, (x, ranges.arange(length)))
        return shapes.moveaxis(result, 0, index)


def _leading(x: Array, axes: tuple[int, ...]) -> Array:
    """The axes merged into the first axis."""
    x = shapes.moveaxis(x, axes, tuple(range(len(axes))))
    return shapes.reshape(x, (-1 if x.size else math.prod(x.shape[:len(axes)]),
                              *x.shape[len(axes):]))


_NOT_IN_PLACE = (
    "JAX arrays are immutable: use inplace=False, which returns the updated array.")


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *,
               identity: Any = None) -> ufunc:
    """Makes a ufunc from a function of scalars.

    Args:
      nin, nout: the numbers of its arguments and results.
      identity: the result of an empty reduction.

    >>> larger = jnp.frompyfunc(lambda x, y: jax.lax.cond(x > y, lambda: x, lambda: y), 2, 1)
    >>> larger.reduce(jnp.array([3, 7, 5]))
    Array(7, dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)


# The plain functions: operators call them directly, without the object.
add_function = binary("add", add_p, primitive_of_bool=or_p)
subtract_function = binary("subtract", sub_p)
# Compiled, a product with a boolean is a choice, which ``inf * False`` shows.
multiply_function = binary(
    "multiply", mul_p, primitive_of_bool=and_p,
    masked=make_jit(binary("multiply", mul_p, primitive_of_bool=and_p), inline=True))
negative_function = unary("negative", neg_p)
bitwise_and_function = binary("bitwise_and", and_p)
bitwise_or_function = binary("bitwise_or", or_p)
bitwise_xor_function = binary("bitwise_xor", xor_p)


def _logical(name: str, primitive: Primitive) -> Callable[[Any, Any], Array]:
    def function(x: Any, y: Any, /) -> Array:
        x, y = resolve(name, (x, y))
        kinds = type_of(x), type_of(y)
        dtype, weak = dtypes.promote(kinds)     # refuses what cannot be promoted
        # Nobody sees what concrete operands are converted to, which is one conversion less.
        if isinstance(x, Tracer) or isinstance(y, Tracer) or kinds[0][1] or kinds[1][1]:
            x, y = cast(x, dtype, weak), cast(y, dtype, weak)
        x, y = as_bool(x), as_bool(y)
        return primitive.bind(*map(weak_scalar, promote_shapes(name, x, y)))
    return described(function, name, ("x", "y"))


def _log_sum(x1: Any, x2: Any, name: str, base_two: bool) -> Array:
    x1, x2 = promote_args_inexact(name, x1, x2)
    x1, x2 = as_array(x1), as_array(x2)
    return (_log2_sum if base_two else _log_e_sum)(x1, x2)


def _log_sum_of_complex(x1: Array, x2: Array, base_two: bool) -> Array:
    """The imaginary part is within half a period of the exponential."""
    larger = maximum_function(x1, x2)
    term = ufuncs.log1p((ufuncs.exp2 if base_two else ufuncs.exp)(x1 + x2 - 2 * larger))
    log2 = math.log(2)
    half = np.pi / log2 if base_two else np.pi
    result = larger + (term / log2 if base_two else term)
    turned = remainder(imag(result) + half, 2 * half) - half
    return weak_scalar(complex_p.bind(real(result), turned))


def _log_sum_of_reals(x1: Array, x2: Array, base_two: bool) -> Array:
    # The greater one plus a correction; the difference of equal infinities is NaN.
    largest, difference = maximum_function(x1, x2), x1 - x2
    cancels, total = difference != difference, x1 + x2
    term = ufuncs.log1p((ufuncs.exp2 if base_two else ufuncs.exp)(-ufuncs.abs(difference)))
    if base_two:
        term = weak_scalar(term) * cast(
            1 / math.log(2), term.dtype, term.weak_type and not term.ndim)
    return select_n_p.bind(cancels, largest + term, total)


def _with_shares(name: str, base_two: bool) -> Any:
    """The function with its derivative, each operand's share: exp(x - out).

    The general rules would differentiate a maximum and an absolute value where they have kinks.
    """
    @whole(name, rules.logaddexp2 if base_two else rules.logaddexp)
    def function(x1: Array, x2: Array) -> Array:
        rule = _log_sum_of_complex if dtypes.is_complex(x1.dtype) else _log_sum_of_reals
        return rule(x1, x2, base_two)

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

    jvp.__name__ = f"_{name}_jvp"
    return custom


_log_e_sum, _log2_sum = _with_shares("logaddexp", False), _with_shares("logaddexp2", True)


@at_once
def _logaddexp(x1: Any, x2: Any, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow.

    Args:
      x1, x2: arrays or scalars of shapes that broadcast; integers become floats.

    Returns:
      An array of the common shape, of a float or complex dtype.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``logaddexp``, ``logaddexp2``, ``jax.scipy.special.logsumexp``, ``exp``.

    >>> jnp.logaddexp(jnp.array([0., 1000.]), 1000.).round(2)
    Array([1000.  , 1000.69], dtype=float32)
    """
    return _log_sum(x1, x2, "logaddexp", False)


@at_once
def _logaddexp2(x1: Any, x2: Any, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow.

    Args:
      x1, x2: arrays or scalars of shapes that broadcast; integers become floats.

    Returns:
      An array of the common shape, of a float or complex dtype.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``logaddexp``, ``logaddexp2``, ``jax.scipy.special.logsumexp``, ``exp``.

    >>> jnp.logaddexp2(jnp.array([3., 1000.]), jnp.array([3., 0.]))
    Array([   4., 1000.], dtype=float32)
    """
    return _log_sum(x1, x2, "logaddexp2", True)


maximum_function, minimum_function = ufuncs._maximum, ufuncs._minimum


if TYPE_CHECKING:
    class BinaryUfunc(ufunc):
        """A ufunc of two operands, with one result."""

        def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Array: ...


def _unary(function: Callable[..., Any], name: str) -> Callable[[ArrayLike], Array]:
    return ufunc(function, 1, 1, call=function, name=name)


def _binary(function: Callable[..., Any], *, integral: bool = False, **options: Any
            ) -> BinaryUfunc:
    made: Any = ufunc(function, 2, 1, call=function, **options)
    made._reduces_integers_alone = integral
    return made


add = _binary(add_function, name="add", identity=0, reduce=reductions.sum,
            accumulate=cumulative.cumsum, at="add")
subtract = _binary(subtract_function, name="subtract", at="subtract")
multiply = _binary(multiply_function, name="multiply", identity=1, reduce=reductions.prod,
                 accumulate=cumulative.cumprod, at="multiply")
negative = _unary(negative_function, "negative")
maximum = _binary(maximum_function, name="maximum", reduce=extreme(reductions.max))
minimum = _binary(minimum_function, name="minimum", reduce=extreme(reductions.min))
bitwise_and = _binary(bitwise_and_function, name="bitwise_and", integral=True, identity=-1)
bitwise_or = _binary(bitwise_or_function, name="bitwise_or", integral=True, identity=0)
bitwise_xor = _binary(bitwise_xor_function, name="bitwise_xor", integral=True, identity=0)
logical_and = _binary(_logical("logical_and", and_p), identity=True,
                      reduce=truth(reductions.all, and_p))
logical_or = _binary(_logical("logical_or", or_p), identity=False,
                     reduce=truth(reductions.any, or_p))
logical_xor = _binary(_logical("logical_xor", xor_p), identity=False)
logaddexp = _binary(_logaddexp, name="logaddexp", identity=-np.inf)
logaddexp2 = _binary(_logaddexp2, name="logaddexp2", identity=-np.inf)


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor.

    Args:
      x1, x2: integers of shapes that broadcast.

    Returns:
      An array of the common shape, of the promoted dtype; not negative.

    Raises:
      ValueError: the arguments are no integers.

    See also: ``gcd``, ``lcm``.

    >>> jnp.gcd(jnp.array([12, 7]), 18)
    Array([6, 1], dtype=int32)
    """
    return _gcd(*_integers("gcd", x1, x2))


@make_jit
def _gcd(x: Array, y: Array) -> Array:
    """Euclid's algorithm."""
    def unfinished(pair: Any) -> Array:
        return reductions.any(pair[1] != 0)

    def step(pair: Any) -> tuple[Array, Array]:
        x, y = pair
        done = y == 0
        rest = rem_p.bind(x, where(done, 1, y))
        return where(done, x, y), where(done, 0, rest)

    # The least integer is its own absolute value, so that remainders by it are negative.
    return ufuncs.abs(while_loop(unfinished, step, (x, y))[0])


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple.

    Args:
      x1, x2: integers of shapes that broadcast.

    Returns:
      An array of the common shape, of the promoted dtype; not negative.

    Raises:
      ValueError: the arguments are no integers.

    See also: ``gcd``, ``lcm``.

    >>> jnp.lcm(jnp.array([4, 7]), 6)
    Array([12, 42], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = _gcd(x, y)
    safe = where(divisor == 0, 1, divisor)
    return where(divisor == 0, 0, div_p.bind(x, safe) * y)


def _integers(name: str, x1: Any, x2: Any) -> tuple[Array, Array]:
    x1, x2 = resolve(name, (x1, x2))
    x1, x2 = promote_shapes(name, *promote_dtypes(name, x1, x2))
    if not dtypes.is_integer(x1.dtype):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    x1, x2 = ufuncs.abs(x1), ufuncs.abs(x2)
    sizes = shapes.broadcast_shapes(x1.shape, x2.shape)
    return weak_scalar(shapes.broadcast_to(x1, sizes)), weak_scalar(shapes.broadcast_to(x2, sizes))
