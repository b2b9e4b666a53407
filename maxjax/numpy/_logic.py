"""Comparison of whole arrays, selection among several, vectorization of scalar functions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.errors import ShardingTypeError
from maxjax._higher_order.named_calls import named
from maxjax._ir.dimensions import broadcast_shapes
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import broadcasting
from maxjax._primitives.convert import convert_element_type
from maxjax._transforms.vmap import vmap
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import explicit_mesh, partitions
from maxjax.numpy import _creation as creation
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import (
    RANK_PROMOTION_LINK,
    as_array,
    cast,
    check_arraylike,
    judge_ranks,
    promote_args,
    promote_dtypes,
    promote_inexact,
    promote_shapes,
    type_of,
)
from maxjax.numpy._special_values import isfinite, isnan
from maxjax.numpy._where import as_bool, where
from maxjax.numpy._whole import whole

__all__ = [
    "allclose", "apply_along_axis", "apply_over_axes", "array_equal", "array_equiv", "isclose",
    "isscalar", "iterable", "piecewise", "select", "vectorize",
]


# The defaults, told apart from numbers that are given by what they are, not by their values.
_RTOL, _ATOL = 1e-05, 1e-08


@at_once
def isclose(a: ArrayLike, b: ArrayLike, rtol: Any = _RTOL, atol: Any = _ATOL,
            equal_nan: bool = False) -> Array:
    """Whether |a - b| <= atol + rtol * |b|.

    Args:
      a, b: arrays or scalars of shapes that broadcast.
      rtol: the tolerance in proportion to ``b``, which makes the two not exchangeable.
      atol: the tolerance around 0.
      equal_nan: whether NaN is close to NaN.

    Returns:
      An array of booleans of the common shape; infinities are close only to themselves.

    Raises:
      TypeError: the shapes do not broadcast, or an argument is a list.

    See also: ``allclose``, ``array_equal``, ``equal``.

    >>> jnp.isclose(jnp.array([1., 1.1]), jnp.array([1.000001, 1.2]))
    Array([ True, False], dtype=bool)
    """
    a, b = promote_args("isclose", a, b)
    return _isclose(a, b, *_tolerances(rtol, atol), equal_nan=bool(equal_nan))


def _tolerances(rtol: Any, atol: Any) -> tuple[Any, ...]:
    """Those that are given: others are no operands of the call in a jaxpr."""
    if atol is not _ATOL:
        return rtol, atol
    return () if rtol is _RTOL else (rtol,)


@named("isclose", "equal_nan")
def _isclose(a: Any, b: Any, rtol: Any = _RTOL, atol: Any = _ATOL, *, equal_nan: bool) -> Array:
    if dtypes.is_opaque(type_of(a)[0]):
        return ufuncs.equal(a, b)
    # Integers as floats: their differences would wrap, and the least of them has no absolute value.
    a, b = (as_array(x) for x in promote_inexact("isclose", a, b))
    real = dtypes.real_dtype(a.dtype)
    return _close(a, b, cast(rtol, real), cast(atol, real), equal_nan=equal_nan)


@whole("isclose", rules.isclose)
def _close(a: Array, b: Array, rtol: Any, atol: Any, *, equal_nan: bool) -> Array:
    both_nan = isnan(a) & isnan(b)
    is_finite = isfinite(b)
    in_range = ufuncs.abs(a - b) <= atol + rtol * ufuncs.abs(b)
    result = (a == b) | (is_finite & in_range)
    return result | both_nan if equal_nan else result


@at_once
def allclose(a: ArrayLike, b: ArrayLike, rtol: Any = _RTOL, atol: Any = _ATOL,
             equal_nan: bool = False) -> Array:
    """Whether all elements are close: see ``isclose``.

    Args:
      a, b: arrays or scalars of shapes that broadcast.
      rtol: the tolerance in proportion to ``b``.
      atol: the tolerance around 0.
      equal_nan: whether NaN is close to NaN.

    Returns:
      A scalar array of booleans, not Python's ``bool``; so it can be traced.

    Raises:
      TypeError: the shapes do not broadcast.

    See also: ``isclose``, ``array_equal``, ``all``.

    >>> jnp.allclose(jnp.array([1., 2.]), jnp.array([1.000001, 2.]))
    Array(True, dtype=bool)
    """
    check_arraylike("allclose", a, b)
    equal_nan = bool(equal_nan)
    if (type(rtol) is float and type(atol) is float and isinstance(a, (Array, np.ndarray))
            and isinstance(b, (Array, np.ndarray)) and type_of(a) == type_of(b)):
        return _allclose_at_once(a, b, relative=rtol, absolute=atol, equal_nan=equal_nan)
    return _allclose(a, b, *_tolerances(rtol, atol), equal_nan=equal_nan)


@whole("allclose", rules.allclose)
def _allclose_at_once(a: Any, b: Any, *, relative: float, absolute: float, equal_nan: bool
                      ) -> Array:
    return _allclose(a, b, *_tolerances(relative, absolute), equal_nan=equal_nan)


@named("allclose", "equal_nan")
def _allclose(a: Any, b: Any, rtol: Any = _RTOL, atol: Any = _ATOL, *, equal_nan: bool) -> Array:
    a, b = promote_args("isclose", a, b)
    return reductions.all(_isclose(a, b, rtol, atol, equal_nan=equal_nan))


@at_once
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether the shapes and all elements are equal.

    Args:
      a1, a2: arrays, scalars or lists.
      equal_nan: whether NaN equals NaN.

    Returns:
      A scalar array of booleans; False for shapes that differ.

    See also: ``array_equiv``, ``allclose``, ``equal``.

    >>> jnp.array_equal(jnp.arange(3), jnp.array([0, 1, 2]))
    Array(True, dtype=bool)
    """
    a1, a2 = creation.asarray(a1), creation.asarray(a2)
    if a1.shape != a2.shape:
        return as_array(np.False_)
    equal = a1 == a2
    if equal_nan:
        equal = equal | (isnan(a1) & isnan(a2))
    return reductions.all(equal)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether one array broadcasts to the other and the elements are equal.

    >>> jnp.array_equiv(jnp.array([[1, 2], [1, 2]]), jnp.array([1, 2]))
    Array(True, dtype=bool)
    """
    a1, a2 = creation.asarray(a1), creation.asarray(a2)
    try:
        broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        if a1.ndim == a2.ndim:
            raise TypeError("eq got incompatible shapes for broadcasting: "
                            f"{a1.shape}, {a2.shape}.") from None
        return as_array(np.False_)
    return reductions.all(ufuncs.equal(*promote_shapes("", a1, a2)))


def isscalar(element: Any) -> bool:
    """Whether ``element`` is a number or a zero-dimensional array.

    Args:
      element: any object.

    Returns:
      A Python boolean. Numbers, text and zero-dimensional arrays and tracers count; of these NumPy
      counts no arrays.

    See also: ``ndim``, ``isrealobj``, ``iscomplexobj``.

    >>> jnp.isscalar(3.0), jnp.isscalar(jnp.array(3)), jnp.isscalar(jnp.array([3]))
    (True, True, False)
    """
    if np.isscalar(element):
        return True
    if isinstance(element, (Array, np.ndarray)) or hasattr(element, "__jax_array__"):
        return as_array(element).ndim == 0
    return False


def iterable(y: Any) -> bool:
    """Whether ``y`` is iterable.

    >>> jnp.iterable(jnp.arange(3)), jnp.iterable(jnp.array(3))
    (True, False)
    """
    if isinstance(y, Array):
        return y.ndim > 0
    return np.iterable(y)


@at_once
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """The elements of the first choice whose condition holds, ``default`` where none does.

    Args:
      condlist: arrays of booleans.
      choicelist: as many arrays; all broadcast, and promote to one dtype.
      default: where no condition holds.

    Returns:
      An array of the common shape.

    Raises:
      ValueError: the lists differ in length, or are empty.

    See also: ``where``, ``piecewise``, ``choose``, ``lax.select_n``.

    >>> x = jnp.arange(5)
    >>> jnp.select([x < 2, x > 3], [x, 10 * x], default=-1)
    Array([ 0,  1, -1, -1, 40], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError("condlist must have length equal to choicelist "
                         f"({len(condlist)} vs {len(choicelist)})")
    condlist, choicelist = list(condlist), list(choicelist)
    if not condlist:
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    *choices, result = promote_dtypes("select", *choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return as_array(result)


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Elementwise, the last function whose condition holds (an extra function is the default).

    The functions are of single elements.

    Args:
      x: an array.
      condlist: arrays of booleans, in the shape of ``x``.
      funclist: a function, or a number, for each, and perhaps one more.
      args, kw: passed to each function.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      ValueError: there are too few or too many functions.

    See also: ``where``, ``select``, ``lax.switch``.

    >>> x = jnp.array([-2., 0., 3.])
    >>> jnp.piecewise(x, [x < 0, x > 0], [-1., lambda v: v * v, 7.])
    Array([-1.,  7.,  9.], dtype=float32)
    """
    check_arraylike("piecewise", x)
    if isinstance(condlist, (bool, np.bool_)) or (
            isinstance(condlist, (Array, np.ndarray)) and not condlist.shape):
        condlist = [condlist]
    conditions = [as_bool(creation.asarray(c)) for c in condlist]
    functions = list(funclist)
    count = len(conditions)
    if len(functions) == count:
        functions = [0, *functions]
    elif len(functions) == count + 1:
        functions = [functions[-1], *functions[:-1]]
    else:
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are "
                         "expected")
    x = as_array(x)

    def value(function: Any) -> Any:
        if not callable(function):
            return cast(function, x.dtype)

        def mapped(element: Array) -> Any:
            return cast(function(element, *args, **kw), x.dtype)

        for _ in range(x.ndim):
            mapped = vmap(mapped)
        return mapped(x)

    values = [value(function) for function in functions]
    # What each function gives for an element, behind the array's own dimensions.
    shapes_of_values = [result.shape[x.ndim:] if callable(function) else result.shape
                        for function, result in zip(functions, values, strict=True)]
    own = shapes_of_values[0]
    if any(shape != own for shape in shapes_of_values):
        raise TypeError("the functions of piecewise must give arrays of one shape for an element, "
                        f"got shapes {shapes_of_values}")
    for result in values:
        if explicit_mesh(x) is not None and any(partitions(x)) and (
                partitions(result) != partitions(x)):
            raise ShardingTypeError(
                "Of an array that is split over Explicit axes, the functions of piecewise have to "
                f"give arrays that are split like it. Got {getattr(result, 'aval', result)} for "
                f"an array of type {x.aval}")
    values = [convert_element_type(result, x.dtype) if type_of(result)[1] else result
              for result in values]
    result = shapes.broadcast_to(as_array(values[0]), (*x.shape, *own))
    for condition, chosen in zip(conditions, values[1:], strict=True):
        result = where(shapes.reshape(condition, (*condition.shape, *[1] * len(own))) if own
                       else condition, chosen, result)
    return result


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any,
                     **kwargs: Any) -> Array:
    """``func1d`` of each one-dimensional slice along ``axis``.

    Args:
      func1d: a function of a vector, traceable by ``vmap``.
      axis: along which.
      arr: an array.
      args, kwargs: passed to each call.

    Returns:
      An array in which the result's dimensions stand in place of the axis.

    See also: ``vectorize``, ``apply_over_axes``, ``jax.vmap``.

    >>> jnp.apply_along_axis(lambda row: row / row.sum(), 1, jnp.array([[1., 3.], [2., 2.]]))
    Array([[0.25, 0.75],
           [0.5 , 0.5 ]], dtype=float32)
    """
    check_arraylike("apply_along_axis", arr)
    x = as_array(arr)
    index = canonical_axis(axis, x.ndim)

    def function(line: Array) -> Any:
        return func1d(line, *args, **kwargs)

    for i in range(1, x.ndim - index):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(index):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(x)


def apply_over_axes(func: Callable[[Array, int], Array], a: ArrayLike, axes: Any) -> Array:
    """``func(a, axis)`` applied for each axis in turn; it may keep or remove the axis.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), [0, 2])
    Array([[[8.],
            [8.],
            [8.]]], dtype=float32)
    """
    check_arraylike("apply_over_axes", a)
    x = as_array(a)
    for axis in axes:
        result = func(x, axis)
        if result.ndim == x.ndim - 1:
            result = shapes.expand_dims(result, axis)
        elif result.ndim != x.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        x = result
    return x


# --- vectorize ------------------------------------------------------------------------------------

_NAME = r"\w+(?:\?)?"
_CORE = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SIGNATURE = rf"^{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*$"


def parse_signature(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The core dimensions of operands and results.

    Raises:
      ValueError: that is no signature.
    """
    text = signature.replace(" ", "")
    if not re.match(_SIGNATURE, text):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    inputs, outputs = (
        [tuple(re.findall(_NAME, core)) for core in re.findall(_CORE, side)]
        for side in text.split("->"))
    return inputs, outputs


def vectorize(pyfunc: Callable[..., Any], *, excluded: Any = frozenset(),
              signature: str | None = None) -> Callable[..., Any]:
    """Makes a function of scalars (or, by ``signature``, of small arrays) broadcast.

    Args:
      pyfunc: a function of arrays of the dimensions in ``signature``, traceable by ``vmap``.
      excluded: positions and names of arguments that are passed unchanged.
      signature: the dimensions of one call, like ``"(n,m),(m)->(n)"``.

    Returns:
      A function whose arguments broadcast in their leading dimensions. It is vectorized by
      ``vmap``, unlike NumPy's, which loops.

    Raises:
      ValueError: at a call: an argument has too few dimensions, or core dimensions differ in size.

    See also: ``jax.vmap``, ``apply_along_axis``, ``frompyfunc``.

    >>> matvec = jnp.vectorize(jnp.dot, signature='(n,m),(m)->(n)')
    >>> matvec(jnp.ones((5, 2, 3)), jnp.ones(3)).shape
    (5, 2)
    """
    if any(not isinstance(item, (str, int)) for item in excluded):
        raise TypeError(f"jax.numpy.vectorize can only exclude integer or string arguments, but "
                        f"excluded={set(excluded)!r}")
    if any(isinstance(item, int) and item < 0 for item in excluded):
        raise ValueError(f"excluded={set(excluded)!r} contains negative numbers")

    hint = f" on vectorized function with excluded={excluded!r} and signature={signature!r}"

    @functools.wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        kept_names = {name: value for name, value in kwargs.items() if name in excluded}
        names = [name for name in kwargs if name not in excluded]
        nothing = {i for i, value in enumerate(args) if value is None and i not in excluded}
        if nothing and signature is not None:
            raise ValueError(f"Cannot pass None at locations {nothing} with {signature=!r}")
        # Without a signature None is passed on.
        positions = [i for i, value in enumerate(args) if i not in excluded
                     and value is not None]
        arrays = [creation.asarray(args[i]) for i in positions]
        arrays += [creation.asarray(kwargs[name]) for name in names]

        def function(*values: Any) -> Any:
            arguments = list(args)
            for i, value in zip(positions, values, strict=False):
                arguments[i] = value
            named = dict(zip(names, values[len(positions):], strict=True))
            return pyfunc(*arguments, **named, **kept_names)

        if signature is None:
            cores: list[tuple[str, ...]] = [()] * len(arrays)
            outputs = None
        else:
            cores, outputs = parse_signature(signature)
        batches, sizes = input_dimensions([x.shape for x in arrays], cores, hint)
        batch = shapes.broadcast_shapes(*batches)
        judge_ranks(batches, lambda: (
            f"operands with shapes {[x.shape for x in arrays]} require rank promotion for "
            f"jnp.vectorize function with signature {signature}. Set the jax_numpy_rank_promotion "
            "config option to 'allow' to disable this message; for more information, see "
            f"{RANK_PROMOTION_LINK}"))
        checked = function if outputs is None else output_checked(function, outputs, sizes, hint)
        return _mapped(checked, arrays, batches, batch)

    return wrapped


def _mapped(function: Callable[..., Any], arrays: Sequence[Array],
            batches: Sequence[tuple[int, ...]], batch: tuple[int, ...]) -> Any:
    """A function mapped over the batch dimensions of arrays, which broadcast to ``batch``."""
    operands, in_axes = [], []
    for x, own in zip(arrays, batches, strict=True):
        # Dimensions of size 1 that broadcast against others are removed, not mapped.
        missing = len(batch) - len(own)
        mapped = [size == batch[missing + i] and size != 1 or batch[missing + i] == 1
                  for i, size in enumerate(own)]
        drop = tuple(i for i, keep in enumerate(mapped) if not keep)
        operands.append(shapes.squeeze(x, drop) if drop else x)
        in_axes.append([False] * missing + mapped)
    for level in reversed(range(len(batch))):
        axes = tuple(0 if flags[level] else None for flags in in_axes)
        if all(axis is None for axis in axes):
            function = _repeated(function, batch[level])
        else:
            function = vmap(function, in_axes=axes)
    return function(*operands)


def input_dimensions(given: Sequence[Any], cores: Sequence[tuple[str, ...]], hint: str
                     ) -> tuple[list[Any], dict[str, int]]:
    """The dimensions of each operand that are broadcast, and the sizes of the core ones.

    Args:
      given: the operands' shapes.
      hint: ends the errors' messages.

    Raises:
      TypeError, ValueError: the shapes do not go with the signature.
    """
    if len(cores) != len(given):
        raise TypeError(f"wrong number of positional arguments: expected {len(cores)}, got "
                        f"{len(given)}{hint}")
    sizes: dict[str, int] = {}
    batches = []
    for shape, core in zip(given, cores, strict=True):
        if len(shape) < len(core):
            raise ValueError(f"input with shape {shape} does not have enough dimensions for "
                             f"all core dimensions {core}{hint}")
        split = len(shape) - len(core)
        batches.append(shape[:split])
        for name, size in zip(core, shape[split:], strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"inconsistent size for core dimension {name!r}: {size} vs "
                                 f"{sizes[name]}{hint}")
    return batches, sizes


def _repeated(function: Callable[..., Any], size: int) -> Callable[..., Any]:
    def repeated(*values: Any) -> Any:
        return pytree.map(lambda x: broadcasting.broadcast_leading(as_array(x), size),
                                 function(*values))
    return repeated


def output_checked(function: Callable[..., Any], cores: list[tuple[str, ...]],
                   sizes: dict[str, int], hint: str) -> Callable[..., Any]:
    """The function, whose results have the core dimensions; others raise an error."""
    def checked(*values: Any) -> Any:
        result = function(*values)
        if len(cores) > 1 and not isinstance(result, tuple):
            raise TypeError("output must be a tuple when multiple outputs are expected, got: "
                            f"{result!r}\n{hint.lstrip()}")
        outputs = result if isinstance(result, tuple) else (result,)
        if len(outputs) != len(cores):
            raise TypeError(f"wrong number of output arguments: expected {len(cores)}, got "
                            f"{len(outputs)}{hint}")
        known = dict(sizes)
        for x, core in zip(outputs, cores, strict=True):
            # Any pytree that NumPy sees a shape of: a wrapper of arrays may say its own.
            shape = tuple(np.shape(x))
            if len(shape) != len(core):
                raise ValueError(f"output shape {shape} does not match core dimensions {core}"
                                 f"{hint}")
            for name, size in zip(core, shape, strict=True):
                if known.setdefault(name, size) != size:
                    raise ValueError(f"inconsistent size for core dimension {name!r}: {size} vs "
                                     f"{known[name]}{hint}")
        return result
    return checked
