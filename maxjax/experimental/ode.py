"""jax.experimental.ode: initial value problems of ordinary differential equations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import lax, tree_util
from maxjax import numpy as jnp
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.custom_gradient import closure_convert
from maxjax._higher_order.custom_vjp import custom_vjp
from maxjax._transforms.autodiff import vjp
from maxjax._transforms.vmap import vmap
from maxjax.flatten_util import ravel_pytree
from maxjax.numpy._promotion import promote_inexact

explain_missing_names(__name__)

# Dormand and Prince's coefficients (1980), and Shampine's for the middle of a step (1986).
_TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1., 1.])
_STAGES = np.array([
    [1 / 5, 0, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0]])
_SOLUTION = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
_ERROR = np.array([
    35 / 384 - 1951 / 21600, 0, 500 / 1113 - 22642 / 50085, 125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400, 11 / 84 - 649 / 6300, -1 / 60])
_MIDDLE = np.array([
    6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2, 187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2])


def _product(weights: Any, k: Any) -> Any:
    return jnp.dot(jnp.asarray(weights, k.dtype), k, precision=lax.Precision.HIGHEST)


def abs2(x: Any) -> Any:
    """The square of the absolute value.

    >>> jax.experimental.ode.abs2(3 + 4j)
    25.0
    """
    if jnp.iscomplexobj(x):
        return x.real ** 2 + x.imag ** 2
    return x ** 2


def fit_4th_order_polynomial(y0: Any, y1: Any, y_mid: Any, dy0: Any, dy1: Any, dt: Any) -> Any:
    """The coefficients, highest first, of the quartic in [0, 1] with these values and slopes.

    >>> coefficients = jax.experimental.ode.fit_4th_order_polynomial(0., 1., 0.5, 1., 1., 1.)
    >>> coefficients
    (0.0, 0.0, 0.0, 1.0, 0.0)
    """
    slope0, slope1 = dt * dy0, dt * dy1
    a = 2 * (slope1 - slope0) - 8 * (y1 + y0) + 16 * y_mid
    b = 5 * slope0 - 3 * slope1 + 18 * y0 + 14 * y1 - 32 * y_mid
    c = slope1 - 4 * slope0 - 11 * y0 - 5 * y1 + 16 * y_mid
    return a, b, c, slope0, y0


def interp_fit_dopri(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """The quartic that interpolates a step.

    >>> k = jnp.ones((7, 1))
    >>> jax.experimental.ode.interp_fit_dopri(jnp.zeros(1), jnp.ones(1), k, 1.0).shape
    (5, 1)
    """
    middle = y0 + dt * _product(_MIDDLE, k)
    return jnp.asarray(fit_4th_order_polynomial(y0, y1, middle, k[0], k[-1], dt))


def initial_step_size(fun: Callable[..., Any], t0: Any, y0: Any, order: int, rtol: Any, atol: Any,
                      f0: Any) -> Any:
    """The first step (Hairer, Nørsett and Wanner, II.4).

    >>> f = lambda y, t: -y
    >>> jax.experimental.ode.initial_step_size(f, 0., jnp.ones(1), 4, 1e-3, 1e-3, -jnp.ones(1)) > 0
    Array(True, dtype=bool)
    """
    y0, f0 = (jnp.asarray(x) for x in promote_inexact("odeint", y0, f0))
    scale = atol + jnp.abs(y0) * rtol
    size = jnp.linalg.norm(y0 / scale.astype(y0.dtype))
    slope = jnp.linalg.norm(f0 / scale.astype(f0.dtype))
    h0 = jnp.where((size < 1e-5) | (slope < 1e-5), 1e-6, 0.01 * size / slope)
    f1 = fun(y0 + h0.astype(y0.dtype) * f0, t0 + h0)
    curvature = jnp.linalg.norm((f1 - f0) / scale.astype(f0.dtype)) / h0
    flat = (slope <= 1e-15) & (curvature <= 1e-15)
    h1 = jnp.where(flat, jnp.maximum(1e-6, h0 * 1e-3),
                   (0.01 / jnp.maximum(slope, curvature)) ** (1. / (order + 1.)))
    return jnp.minimum(100. * h0, h1)


def runge_kutta_step(func: Callable[..., Any], y0: Any, f0: Any, t0: Any, dt: Any) -> Any:
    """A step of order 5: the value, its slope, the error estimate, and all slopes.

    >>> f = lambda y, t: jnp.ones_like(y)
    >>> jax.experimental.ode.runge_kutta_step(f, jnp.zeros(1), jnp.ones(1), 0., 0.5)[0]
    Array([0.5], dtype=float32)
    """
    def stage(i: Any, k: Any) -> Any:
        at = t0 + dt * jnp.asarray(_TIMES, jnp.result_type(dt))[i - 1]
        y = y0 + dt * jnp.dot(jnp.asarray(_STAGES, f0.dtype)[i - 1], k,
                              precision=lax.Precision.HIGHEST)
        return k.at[i, :].set(func(y, at))

    k = jnp.zeros((7, f0.shape[0]), f0.dtype).at[0, :].set(f0)
    k = lax.fori_loop(1, 7, stage, k)
    y1 = dt * _product(_SOLUTION, k) + y0
    return y1, k[-1], dt * _product(_ERROR, k), k


def mean_error_ratio(error_estimate: Any, rtol: Any, atol: Any, y0: Any, y1: Any) -> Any:
    """The root mean square of the errors in units of the tolerance.

    >>> jax.experimental.ode.mean_error_ratio(jnp.ones(2), 0., 1., jnp.zeros(2), jnp.zeros(2))
    Array(1., dtype=float32)
    """
    tolerance = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    ratio = error_estimate / tolerance.astype(error_estimate.dtype)
    return jnp.sqrt(jnp.mean(abs2(ratio)))


def optimal_step_size(last_step: Any, mean_error_ratio: Any, safety: float = 0.9,
                      ifactor: float = 10.0, dfactor: float = 0.2, order: float = 5.0) -> Any:
    """The next step.

    >>> jax.experimental.ode.optimal_step_size(1.0, jnp.zeros(()))
    Array(10., dtype=float32)
    """
    shrink = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    factor = jnp.minimum(ifactor, jnp.maximum(
        mean_error_ratio ** (-1.0 / order) * safety, shrink))
    return jnp.where(mean_error_ratio == 0, last_step * ifactor, last_step * factor)


def _integrate(func: Any, rtol: Any, atol: Any, mxstep: Any, hmax: Any, y0: Any,
               ts: Any, *args: Any) -> Any:
    """The values of a vector at the times ``ts``, shape ``(T, N)``."""
    def slope(y: Any, t: Any) -> Any:
        return func(y, t, *args)

    def advance(carry: Any, target: Any) -> Any:
        def unfinished(state: Any) -> Any:
            i, _, _, t, dt, *_ = state
            return (t < target) & (i < mxstep) & (dt > 0)

        def step(state: Any) -> Any:
            i, y, f, t, dt, last, poly = state
            new_y, new_f, error, k = runge_kutta_step(slope, y, f, t, dt)
            ratio = mean_error_ratio(error, rtol, atol, y, new_y)
            new_poly = interp_fit_dopri(y, new_y, k, dt)
            next_dt = jnp.clip(optimal_step_size(dt, ratio), 0., hmax).astype(dt.dtype)
            accepted = ratio <= 1
            old = (y, f, t, last, poly)
            new = (new_y, new_f, t + dt, t, new_poly)
            y, f, t, last, poly = [jnp.where(accepted, a, b) for a, b in zip(new, old)]
            return i + 1, y, f, t, next_dt, last, poly

        state = lax.while_loop(unfinished, step, (jnp.array(0), *carry))
        _, *carry = state
        y, _, t, _, last, poly = carry
        place = (target - last) / (t - last)
        return carry, jnp.polyval(poly, place.astype(poly.dtype))

    f0 = slope(y0, ts[0])
    dt = jnp.clip(initial_step_size(slope, ts[0], y0, 4, rtol, atol, f0), 0., hmax)
    carry = [y0, f0, ts[0], dt.astype(ts.dtype), ts[0], jnp.array([y0] * 5)]
    _, ys = lax.scan(advance, carry, ts[1:])
    return jnp.concatenate([y0[None], ys])


@functools.partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _odeint(func: Any, rtol: Any, atol: Any, mxstep: Any, hmax: Any, y0: Any, ts: Any,
            *args: Any) -> Any:
    flat, unravel = ravel_pytree(y0)

    def slope(y: Any, t: Any, *args: Any) -> Any:
        return ravel_pytree(func(unravel(y), t, *args))[0]

    values = _integrate(slope, rtol, atol, mxstep, hmax, flat, ts, *args)
    return vmap(unravel)(values)


def _forward(func: Any, rtol: Any, atol: Any, mxstep: Any, hmax: Any, y0: Any, ts: Any,
             *args: Any) -> Any:
    ys = _odeint(func, rtol, atol, mxstep, hmax, y0, ts, *args)
    return ys, (ys, ts, args)


def _backward(func: Any, rtol: Any, atol: Any, mxstep: Any, hmax: Any, residuals: Any,
              cotangent: Any) -> Any:
    """Solves for the adjoint backwards in time, from each observation to the one before."""
    ys, ts, args = residuals
    _, unravel = ravel_pytree(tree_util.tree_map(lambda x: x[0], ys))

    def slope(y: Any, t: Any, *args: Any) -> Any:
        """In the structure of the state: the function may give an array of all its numbers."""
        return unravel(ravel_pytree(func(y, t, *args))[0])

    def augmented(state: Any, t: Any, *args: Any) -> Any:
        y, adjoint, _, _ = state
        dy, pull = vjp(slope, y, -t, *args)
        by_y, by_t, *by_args = pull(adjoint)
        negative = tree_util.tree_map(lambda x: -x, dy)
        return negative, by_y, by_t, tuple(by_args)

    def at(tree: Any, i: Any) -> Any:
        return tree_util.tree_map(lambda x: x[i], tree)

    def back(carry: Any, observed: Any) -> Any:
        adjoint, t_bar, args_bar = carry
        y, t, moved, earlier, earlier_moved = observed
        parts = tree_util.tree_map(lambda a, b: jnp.sum(a * b), slope(y, t, *args), moved)
        # Times are real, and so is what they move, though the parts of the sum may be complex.
        by_time = jnp.real(sum(tree_util.tree_leaves(parts))).astype(ts.dtype)
        state = (y, adjoint, t_bar - by_time, args_bar)
        times = jnp.stack([-t, -earlier])
        solved = _odeint(augmented, rtol, atol, mxstep, hmax, state, times, *args)
        _, adjoint, t_bar, args_bar = at(solved, 1)
        adjoint = tree_util.tree_map(lambda a, b: a + b, adjoint, earlier_moved)
        return (adjoint, t_bar, args_bar), by_time

    later, earlier = slice(1, None), slice(None, -1)
    carry = (at(cotangent, -1), jnp.zeros((), ts.dtype), tree_util.tree_map(jnp.zeros_like, args))
    observed = (at(ys, later), ts[later], at(cotangent, later), ts[earlier], at(cotangent, earlier))
    (adjoint, t_bar, args_bar), by_times = lax.scan(back, carry, observed, reverse=True)
    return (adjoint, jnp.concatenate([t_bar[None], by_times]), *args_bar)


_odeint.defvjp(_forward, _backward)


def odeint(func: Callable[..., Any], y0: Any, t: Any, *args: Any, rtol: float = 1.4e-8,
           atol: float = 1.4e-8, mxstep: Any = jnp.inf, hmax: Any = jnp.inf) -> Any:
    """Solves ``dy/dt = func(y, t, *args)`` by the method of Dormand and Prince.

    Differentiable in ``y0``, ``t`` and ``args`` in reverse mode, by the adjoint equation.

    Args:
      y0: a pytree of arrays: the values at ``t[0]``.
      t: ascending times, shape ``(T,)``.
      *args: further arguments of ``func``, pytrees of arrays.
      rtol, atol: tolerances for the error of a step.
      mxstep: the maximum number of steps between two times.
      hmax: the longest step.

    Returns:
      A pytree like ``y0``, of arrays with a leading axis of ``T`` times.

    Raises:
      TypeError: an argument is not an array, or ``t`` does not have a floating dtype.

    >>> from maxjax.experimental.ode import odeint
    >>> odeint(lambda y, t: -y, jnp.array([1.0]), jnp.array([0.0, 1.0]), rtol=1e-6)[1].round(4)
    Array([0.3679], dtype=float32)
    """
    for arg in tree_util.tree_leaves(args):
        if not hasattr(arg, "dtype") and not isinstance(arg, (bool, int, float, complex)):
            raise TypeError("The contents of odeint *args must be arrays or scalars, but got "
                            f"\n{arg}.")
    t = jnp.asarray(t)
    if not jnp.issubdtype(t.dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    args = tree_util.tree_map(jnp.asarray, args)
    y0 = tree_util.tree_map(jnp.asarray, y0)
    converted, consts = closure_convert(func, y0, t[0], *args)
    return _odeint(converted, rtol, atol, mxstep, hmax, y0, t, *args, *consts)
