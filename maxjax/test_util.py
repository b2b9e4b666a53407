"""jax.test_util: derivatives against finite differences, in one random direction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._transforms.autodiff import jvp, linearize, vjp
from maxjax.tree_util import tree_leaves, tree_map, tree_structure

EPS = 1e-4
# Relative and absolute tolerances, for each element of an array, by dtype: of values, and between
# derivatives and finite differences. Those of smaller floats are one number.
_VALUES = {"bfloat16": 1e-2, "float16": 1e-3, "float32": 1e-6, "float64": 1e-15,
           "complex64": 1e-6, "complex128": 1e-15}
_DERIVATIVES = {"bfloat16": 1e-1, "float16": 1e-2, "float32": 2e-3, "float64": 1e-5,
                "complex64": 1e-3, "complex128": 1e-5}
_SMALL = 1e-1
Tolerance = float | Mapping[Any, float] | None


def check_grads(f: Callable[..., Any], args: Sequence[Any], order: int,
                modes: str | Sequence[str] = ("fwd", "rev"), atol: Tolerance = None,
                rtol: Tolerance = None, eps: float | None = None) -> None:
    """Checks derivatives of ``f`` at ``args`` up to ``order`` against finite differences.

    Args:
      f: a function of arrays or pytrees of them.
      args: a tuple of arrays or pytrees.
      order: up to which.
      modes: of "fwd", "rev" and "lin", which is ``linearize``; in all combinations where the order
        is above one.
      atol, rtol: tolerances, of all dtypes or by dtype; by default they depend on the dtypes. They
        grow with the number of elements.
      eps: the step of the differences, to both sides; 1e-4 by default.

    Returns:
      None.

    Raises:
      AssertionError: a derivative is wrong.

    See also: ``jax.test_util.check_jvp``, ``jax.test_util.check_vjp``, ``jax.grad``.

    >>> jax.test_util.check_grads(lambda x: jnp.sin(x) ** 2, (0.5,), order=2)
    """
    _check(f, tuple(args), order, modes, atol, rtol, eps or EPS, "")


def _check(f: Callable[..., Any], args: tuple[Any, ...], order: int, modes: str | Sequence[str],
           atol: Tolerance, rtol: Tolerance, eps: float, of: str) -> None:
    for mode, forward in (("fwd", jvp), ("lin", _linearized)):
        if mode in modes:
            name = f"{'JVP' if mode == 'fwd' else 'LIN'}{of}"
            along = functools.partial(forward, f)
            check_jvp(f, along, args, atol, rtol, eps, name)
            if order > 1:
                _check(along, (args, args), order - 1, modes, atol, rtol, eps, f" of {name}")
    if "rev" in modes:
        name = f"VJP{of}"
        check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, name)
        if order > 1:
            def pulled_back(*args: Any) -> Any:
                value, pullback = vjp(f, *args)
                return pullback(value)

            _check(pulled_back, args, order - 1, modes, atol, rtol, eps, f" of {name}")


def _linearized(f: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    value, along = linearize(f, *primals)
    return value, along(*tangents)


def check_jvp(f: Callable[..., Any], f_jvp: Callable[..., Any], args: Sequence[Any],
              atol: Tolerance = None, rtol: Tolerance = None, eps: float = EPS,
              err_msg: str = "") -> None:
    """Checks a forward-mode derivative, ``f_jvp(args, tangents)``, against finite differences.

    Raises:
      AssertionError: value or tangent is wrong.

    >>> jax.test_util.check_jvp(jnp.sin, lambda x, t: (jnp.sin(*x), jnp.cos(*x) * t[0]), (0.5,))
    """
    args = tuple(args)
    tangents = _random_like(np.random.RandomState(0), args)
    value, tangent = f_jvp(args, tangents)
    _check_derivative(value, f(*args), atol, rtol, f"{err_msg} primal")
    _check_derivative(tangent, _difference(f, args, tangents, eps), atol, rtol,
                      f"{err_msg} tangent")


def check_vjp(f: Callable[..., Any], f_vjp: Callable[..., Any], args: Sequence[Any],
              atol: Tolerance = None, rtol: Tolerance = None, eps: float = EPS,
              err_msg: str = "") -> None:
    """Checks a reverse-mode derivative, ``f_vjp(*args)``, against finite differences.

    Raises:
      AssertionError: the value, or the product of the cotangents with a direction, is wrong.

    >>> jax.test_util.check_vjp(jnp.sin, lambda x: jax.vjp(jnp.sin, x), (0.5,))
    """
    random = np.random.RandomState(0)
    args = tuple(args)
    value, pullback = f_vjp(*args)
    _check_derivative(value, f(*args), atol, rtol, f"{err_msg} primal")
    tangents = _random_like(random, args)
    difference = _difference(f, args, tangents, eps)
    cotangents = _random_like(random, value)
    pulled_back = tree_map(_conjugate, pullback(tree_map(_conjugate, cotangents)))
    # Numbers of the dtypes of the arguments and of the value, which may differ.
    check_close(_inner(tangents, pulled_back), _inner(difference, cotangents), atol, rtol,
                f"{err_msg} cotangent projection".strip(), _DERIVATIVES)


# --- along a direction ----------------------------------------------------------------------------

def _dtype(value: Any) -> Any:
    return dtypes.canonical(getattr(value, "dtype", None) or np.asarray(value).dtype)


def _random_like(random: np.random.RandomState, tree: Any) -> Any:
    """Normal numbers, Python's of Python's; of integers, which have no other tangents, float0."""
    def leaf(value: Any) -> Any:
        dtype, shape = _dtype(value), np.shape(value)
        if not dtypes.is_inexact(dtype):
            return np.zeros(shape, dtypes.float0)
        if isinstance(value, (float, complex)) and not isinstance(value, np.generic):
            return random.randn() + (1j * random.randn() if isinstance(value, complex) else 0.0)
        noise = np.asarray(random.randn(*shape), dtypes.real_dtype(dtype))
        if dtypes.is_complex(dtype):
            noise = (noise + 1j * np.asarray(random.randn(*shape), noise.dtype)).astype(dtype)
        return noise

    return tree_map(leaf, tree)


def _difference(f: Callable[..., Any], args: tuple[Any, ...], tangents: Any, eps: float) -> Any:
    """The central difference of ``f`` along the tangents, in the precision of its results."""
    def moved(step: float) -> Any:
        def leaf(value: Any, tangent: Any) -> Any:
            if isinstance(tangent, (float, complex)) and not isinstance(tangent, np.generic):
                return value + tangent * step
            if tangent.dtype == dtypes.float0:
                return value
            return np.asarray(value, tangent.dtype) + tangent * np.asarray(step, tangent.dtype)
        return f(*tree_map(leaf, args, tangents))

    def difference(above: Any, below: Any) -> Any:
        above, below = np.asarray(above), np.asarray(below)
        if not dtypes.is_inexact(above.dtype):
            return np.zeros(above.shape, dtypes.float0)
        with np.errstate(invalid="ignore"):
            # Two equal infinities differ by nothing.
            change = np.where(above == below, np.zeros((), above.dtype), above - below)
        return change * np.asarray(0.5 / eps, above.dtype)

    return tree_map(difference, moved(eps), moved(-eps))


def _conjugate(value: Any) -> Any:
    return np.conj(value) if dtypes.is_complex(_dtype(value)) else value


def _inner(left: Any, right: Any) -> np.ndarray:
    """The real inner product of two pytrees."""
    products = [np.real(np.vdot(np.asarray(x), np.asarray(y)))
                for x, y in zip(tree_leaves(left), tree_leaves(right), strict=True)
                if dtypes.float0 not in (_dtype(x), _dtype(y))]
    return np.asarray(functools.reduce(np.add, products) if products else 0.0)


# --- comparison -----------------------------------------------------------------------------------

def _check_derivative(actual: Any, expected: Any, atol: Tolerance, rtol: Tolerance,
                      what: str) -> None:
    for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=False):
        assert _dtype(a) == _dtype(e) or dtypes.float0 in (_dtype(a), _dtype(e)), (
            f"{what}: dtype {_dtype(a)}, not {_dtype(e)}")
    check_close(actual, expected, atol, rtol, what.strip(), _DERIVATIVES)


def check_close(xs: Any, ys: Any, atol: Tolerance = None, rtol: Tolerance = None,
                err_msg: str = "", defaults: Mapping[str, float] = _VALUES) -> None:
    """Compares pytrees of arrays, by default to the precision of their dtypes.

    Args:
      atol, rtol: for each element of an array: they grow with their number.

    Raises:
      AssertionError: they differ.
    """
    assert tree_structure(xs) == tree_structure(ys), (
        f"{err_msg}: {tree_structure(xs)}, not {tree_structure(ys)}")
    for x, y in zip(tree_leaves(xs), tree_leaves(ys), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape, f"{err_msg}: shape {x.shape}, not {y.shape}"
        if dtypes.float0 in (x.dtype, y.dtype):
            continue
        absolute, relative = (x.size * max(_tolerance(array.dtype, given, defaults)
                                           for array in (x, y)) for given in (atol, rtol))
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(_wide(x), _wide(y), rtol=relative or 1e-7, atol=absolute,
                                       err_msg=err_msg)


def _tolerance(dtype: Any, given: Tolerance, defaults: Mapping[str, float]) -> float:
    """That of a dtype: as given, by default of its precision."""
    if given is not None and not isinstance(given, Mapping):
        return given
    chosen = {np.dtype(kind): value for kind, value in (given or {}).items()}
    dtype = dtypes.canonical(dtype)
    default = defaults.get(dtype.name, _SMALL if dtypes.is_inexact(dtype) else 0.0)
    return chosen.get(dtype, default)


def _wide(x: np.ndarray) -> np.ndarray:
    """Small floats as NumPy computes with them."""
    is_small = dtypes.is_inexact(x.dtype) and x.dtype.kind not in "fc"
    return x.astype(np.float32) if is_small else x


explain_missing_names(__name__)
