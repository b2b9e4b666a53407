"""jax.test_util: derivatives against finite differences, in one random direction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._transforms.autodiff import jvp, vjp
from maxjax.tree_util import tree_leaves, tree_map, tree_structure

EPS = 1e-4
# Relative and absolute tolerances between derivatives and finite differences, by dtype.
_TOLERANCE = {"bfloat16": 1e-1, "float16": 1e-2, "float32": 2e-3, "float64": 1e-5,
              "complex64": 1e-3, "complex128": 1e-5}
Tolerance = float | Mapping[Any, float] | None


def check_grads(f: Callable[..., Any], args: Sequence[Any], order: int,
                modes: str | Sequence[str] = ("fwd", "rev"), atol: Tolerance = None,
                rtol: Tolerance = None, eps: float | None = None) -> None:
    """Checks derivatives of ``f`` at ``args`` up to ``order`` against finite differences.

    Args:
      args: a tuple of arrays or pytrees.
      modes: "fwd", "rev" or both, in all combinations where the order is above one.
      atol, rtol: tolerances, of all dtypes or by dtype; by default they depend on the dtypes.
      eps: the step of the differences; by default the cube root of the dtypes' precision, which
        balances rounding and curvature errors.

    Raises:
      AssertionError: a derivative is wrong.

    >>> jax.test_util.check_grads(lambda x: jnp.sin(x) ** 2, (0.5,), order=2)
    """
    if isinstance(modes, str):
        modes = (modes,)
    args = tuple(args)
    step = _step(args) if eps is None else eps
    _check(f, args, order, modes, atol, rtol, step, "")


def _step(args: tuple[Any, ...]) -> float:
    precisions = [float(dtypes.finfo(dtype).eps) for dtype in map(_dtype, tree_leaves(args))
                  if dtypes.is_inexact(dtype)]
    return max(precisions, default=EPS) ** (1 / 3)


def _check(f: Callable[..., Any], args: tuple[Any, ...], order: int, modes: Sequence[str],
           atol: Tolerance, rtol: Tolerance, eps: float, path: str) -> None:
    rng = np.random.default_rng(0)
    if "fwd" in modes:
        forward = functools.partial(jvp, f)
        name = f"{path} JVP".strip()
        check_jvp(f, forward, args, atol, rtol, eps, name)
        if order > 1:
            tangents = _random_like(rng, args)
            _check(lambda *xs: forward(xs, tangents), args, order - 1, modes, atol, rtol, eps, name)
    if "rev" in modes:
        name = f"{path} VJP".strip()
        check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, name)
        if order > 1:
            cotangents = _random_like(rng, f(*args))
            _check(lambda *xs: _pulled_back(f, xs, cotangents), args, order - 1, modes, atol, rtol,
                   eps, name)


def _pulled_back(f: Callable[..., Any], args: tuple[Any, ...], cotangents: Any) -> Any:
    value, pullback = vjp(f, *args)
    return value, pullback(cotangents)


def check_jvp(f: Callable[..., Any], f_jvp: Callable[..., Any], args: Sequence[Any],
              atol: Tolerance = None, rtol: Tolerance = None, eps: float = EPS,
              err_msg: str = "") -> None:
    """Checks a forward-mode derivative, ``f_jvp(args, tangents)``, against finite differences.

    Raises:
      AssertionError: value or tangent is wrong.

    >>> jax.test_util.check_jvp(jnp.sin, lambda x, t: (jnp.sin(*x), jnp.cos(*x) * t[0]), (0.5,))
    """
    args = tuple(args)
    tangents = _random_like(np.random.default_rng(0), args)
    value, tangent = f_jvp(args, tangents)
    _assert_close(f(*args), value, atol, rtol, f"{err_msg} primal")
    _assert_close(_difference(f, args, tangents, eps), tangent, atol, rtol, f"{err_msg} tangent")


def check_vjp(f: Callable[..., Any], f_vjp: Callable[..., Any], args: Sequence[Any],
              atol: Tolerance = None, rtol: Tolerance = None, eps: float = EPS,
              err_msg: str = "") -> None:
    """Checks a reverse-mode derivative, ``f_vjp(*args)``, against finite differences.

    Raises:
      AssertionError: the value, or the product of the cotangents with a direction, is wrong.

    >>> jax.test_util.check_vjp(jnp.sin, lambda x: jax.vjp(jnp.sin, x), (0.5,))
    """
    rng = np.random.default_rng(0)
    args = tuple(args)
    value, pullback = f_vjp(*args)
    _assert_close(f(*args), value, atol, rtol, f"{err_msg} primal")
    tangents = _random_like(rng, args)
    cotangents = _random_like(rng, value)
    _assert_close(_inner(cotangents, _difference(f, args, tangents, eps)),
                  _inner(tangents, pullback(cotangents)), atol, rtol,
                  f"{err_msg} cotangent projection")


def _random_like(rng: np.random.Generator, tree: Any) -> Any:
    def leaf(value: Any) -> Any:
        dtype = _dtype(value)
        shape = np.shape(value)
        if not dtypes.is_inexact(dtype):
            return np.zeros(shape, dtypes.float0)
        noise = rng.normal(size=shape)
        if dtypes.is_complex(dtype):
            noise = noise + 1j * rng.normal(size=shape)
        return np.asarray(noise).astype(dtype)

    return tree_map(leaf, tree)


def _dtype(value: Any) -> Any:
    return dtypes.canonical(getattr(value, "dtype", None) or np.asarray(value).dtype)


def _difference(f: Callable[..., Any], args: tuple[Any, ...], tangents: Any, eps: float) -> Any:
    """The central difference of ``f`` along the tangents."""
    def moved(scale: float) -> Any:
        def leaf(value: Any, tangent: Any) -> Any:
            if tangent.dtype == dtypes.float0:
                return value
            return np.asarray(value + scale * tangent.astype(_wide(tangent.dtype)), tangent.dtype)
        return f(*tree_map(leaf, args, tangents))

    def difference(above: Any, below: Any) -> Any:
        if not dtypes.is_inexact(_dtype(above)):
            return np.zeros(np.shape(above), dtypes.float0)
        wide = _wide(_dtype(above))
        return (np.asarray(above).astype(wide) - np.asarray(below).astype(wide)) / eps

    return tree_map(difference, moved(eps / 2), moved(-eps / 2))


def _wide(dtype: Any) -> Any:
    return np.dtype(np.complex128 if dtypes.is_complex(dtype) else np.float64)


def _inner(left: Any, right: Any) -> np.ndarray:
    """The real inner product of two pytrees."""
    total = 0.0
    dtype: Any = np.dtype(np.float64)
    for x, y in zip(tree_leaves(left), tree_leaves(right), strict=True):
        if _dtype(x) == dtypes.float0 or _dtype(y) == dtypes.float0:
            continue
        narrow = _dtype(x) if _tolerance(_dtype(x)) >= _tolerance(_dtype(y)) else _dtype(y)
        dtype = max(dtype, narrow, key=_tolerance)
        wide = _wide(narrow)
        total += np.sum(np.asarray(x).astype(wide) * np.asarray(y).astype(wide)).real
    return np.asarray(total, dtypes.real_dtype(dtype))


def _tolerance(dtype: Any, given: Tolerance = None) -> float:
    """That of a dtype: as given, by default of its precision."""
    if given is not None and not isinstance(given, Mapping):
        return given
    chosen = {np.dtype(kind): value for kind, value in (given or {}).items()}
    dtype = np.dtype(dtype)
    return chosen.get(dtype, _TOLERANCE.get(dtype.name, 0.0))


def _assert_close(expected: Any, actual: Any, atol: Tolerance, rtol: Tolerance,
                  what: str) -> None:
    assert tree_structure(expected) == tree_structure(actual), (
        f"{what}: {tree_structure(actual)}, not {tree_structure(expected)}")
    for e, a in zip(tree_leaves(expected), tree_leaves(actual), strict=True):
        assert np.shape(e) == np.shape(a), f"{what}: shape {np.shape(a)}, not {np.shape(e)}"
        if dtypes.float0 in (_dtype(e), _dtype(a)):
            continue
        relative, absolute = (max(_tolerance(_dtype(a), given), _tolerance(_dtype(e), given))
                              for given in (rtol, atol))
        np.testing.assert_allclose(
            np.asarray(a).astype(_wide(_dtype(a))), np.asarray(e).astype(_wide(_dtype(e))),
            rtol=relative, atol=absolute, err_msg=what)


explain_missing_names(__name__)
