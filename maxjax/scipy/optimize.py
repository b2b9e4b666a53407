"""jax.scipy.optimize: minima of functions of vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._transforms.autodiff import value_and_grad
from maxjax.tree_util import tree_map

explain_missing_names(__name__)


class OptimizeResults(NamedTuple):
    """The result of a minimization.

    Attributes:
      x, fun, jac: the minimum's position, with the value and gradient there.
      success, status: whether it converged; 0 if so, 1 for too many steps, 2 and more for a failed
        line search.
      hess_inv: the approximate inverse of the Hessian.
      nfev, njev, nit: evaluations of function and gradient, and steps.

    >>> jax.scipy.optimize.OptimizeResults._fields[:3]
    ('x', 'success', 'status')
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


_DECREASE, _CURVATURE = 1e-4, 0.9      # the constants of Wolfe's conditions
_ZOOMS = 30


class _Point(NamedTuple):
    """A step along the search direction: its length, with the value and slope there."""

    step: Any
    value: Any
    slope: Any


class _Search(NamedTuple):
    """The first part of a line search: longer and longer steps, until they are too long.

    ``low`` and ``high`` bracket an acceptable step, if ``bracketed``.
    """

    count: Any
    last: _Point
    low: _Point
    high: _Point
    chosen: _Point
    gradient: Any
    accepted: Any
    bracketed: Any


class _Zoom(NamedTuple):
    """The second part: a shrinking bracket. ``recent`` is the end that was replaced."""

    count: Any
    low: _Point
    high: _Point
    recent: _Point
    chosen: _Point
    gradient: Any
    accepted: Any
    failed: Any


class _Step(NamedTuple):
    step: Any
    value: Any
    gradient: Any
    failed: Any
    status: Any
    evaluations: Any


def _choose(which: Any, this: Any, that: Any) -> Any:
    return tree_map(lambda x, y: jnp.where(which, x, y), this, that)


def _cubic_minimum(a: _Point, b: _Point, c: _Point) -> Any:
    """The minimum of the cubic through three points, with the slope at the first."""
    to_b, to_c = b.step - a.step, c.step - a.step
    rest_b = b.value - a.value - a.slope * to_b
    rest_c = c.value - a.value - a.slope * to_c
    scale = (to_b * to_c) ** 2 * (to_b - to_c)
    third = (to_c ** 2 * rest_b - to_b ** 2 * rest_c) / scale
    second = (to_b ** 3 * rest_c - to_c ** 3 * rest_b) / scale
    root = jnp.sqrt(second * second - 3 * third * a.slope)
    return a.step + (root - second) / (3 * third)


def _quadratic_minimum(a: _Point, b: _Point) -> Any:
    """The minimum of the parabola through two points, with the slope at the first."""
    to_b = b.step - a.step
    second = (b.value - a.value - a.slope * to_b) / (to_b * to_b)
    return a.step - a.slope / (2 * second)


def _line_search(fun: Any, x: Any, direction: Any, value: Any, gradient: Any, first: Any,
                 limit: int) -> _Step:
    """A step that satisfies the strong Wolfe conditions; ``first`` is tried first.

    J. Nocedal and S. Wright, "Numerical Optimization", algorithms 3.5 and 3.6, as in JAX, including
    its result if there is no such step.
    """
    slope = jnp.real(gradient @ direction)
    zero = jnp.zeros_like(value)
    origin = _Point(zero, value, slope)

    def at(step: Any) -> tuple[_Point, Any]:
        f, g = fun(x + step.astype(x.dtype) * direction)
        return _Point(step, f.astype(value.dtype), jnp.real(g @ direction)), g

    def too_high(point: _Point) -> Any:
        return point.value > value + _DECREASE * point.step * slope

    def flat(point: _Point) -> Any:
        return jnp.abs(point.slope) <= -_CURVATURE * slope

    def searching(s: _Search) -> Any:
        return ~(s.accepted | s.bracketed) & (s.count < limit)

    def longer(s: _Search) -> _Search:
        now, g = at(jnp.where(s.count == 0, first, 2 * s.last.step).astype(value.dtype))
        above = too_high(now) | ((now.value >= s.last.value) & (s.count > 0))
        accepted = flat(now) & ~above
        rising = (now.slope >= 0) & ~above & ~accepted
        chosen, gradient = _choose(accepted, (now, g), (s.chosen, s.gradient))
        low, high = _choose(above, (s.last, now), (now, s.last))
        return _Search(s.count + 1, now, low, high, chosen, gradient, accepted, above | rising)

    no, none = jnp.array(False), jnp.array(0)
    s = lax.while_loop(searching, longer, _Search(none, origin, origin, origin, origin, gradient,
                                                  no, no))

    least = 1e-10 if value.dtype.itemsize == 8 else 1e-5

    def zooming(z: _Zoom) -> Any:
        return s.bracketed & ~z.accepted & ~z.failed

    def closer(z: _Zoom) -> _Zoom:
        low, high = z.low, z.high
        width = high.step - low.step
        left, right = jnp.minimum(low.step, high.step), jnp.maximum(low.step, high.step)
        cubic = _cubic_minimum(low, high, z.recent)
        quadratic = _quadratic_minimum(low, high)
        # A comparison with NaN is false.
        by_cubic = (z.count > 0) & (cubic > left + 0.2 * width) & (cubic < right - 0.2 * width)
        by_quadratic = (quadratic > left + 0.1 * width) & (quadratic < right - 0.1 * width)
        now, g = at(jnp.where(by_cubic, cubic, jnp.where(
            by_quadratic, quadratic, (low.step + high.step) / 2)))
        above = too_high(now) | (now.value >= low.value)
        accepted = flat(now) & ~above
        turned = (now.slope * width >= 0) & ~above & ~accepted
        recent = _choose(above | turned, high, _choose(accepted, z.recent, low))
        chosen, gradient = _choose(accepted, (now, g), (z.chosen, z.gradient))
        count = z.count + 1
        return _Zoom(count, _choose(above | accepted, low, now),
                     _choose(above, now, _choose(turned, low, high)), recent, chosen, gradient,
                     accepted, (width <= least) | (count >= _ZOOMS))

    middle = _Point(*((a + b) / 2 for a, b in zip(s.low, s.high, strict=True)))
    z = lax.while_loop(zooming, closer, _Zoom(
        none, s.low, s.high, middle, s.low._replace(step=zero + 1), gradient, no, no))
    chosen, gradient = _choose(s.bracketed, (z.chosen, z.gradient), (s.chosen, s.gradient))
    zoom_failed = s.bracketed & z.failed
    step = chosen.step
    if step.dtype.itemsize < 8:     # a zero direction would never change
        step = jnp.where(jnp.abs(step) < 1e-8, jnp.sign(step) * 1e-8, step)
    status = jnp.where(zoom_failed, 1, jnp.where(s.count >= limit, 3, 0))
    return _Step(step.astype(x.dtype), chosen.value, gradient,
                 zoom_failed | ~(s.accepted | s.bracketed), status, s.count + z.count)


def _bfgs(fun: Any, x0: Any, maxiter: int, gtol: float, norm: Any, line_search: int) -> Any:
    identity = jnp.eye(x0.shape[0], dtype=x0.dtype)
    both = value_and_grad(fun)
    value, gradient = both(x0)

    def size(g: Any) -> Any:
        return jnp.linalg.norm(g, ord=norm)

    def unfinished(state: Any) -> Any:
        result, _, failed, _ = state
        return ~result.success & ~failed & (result.nit < maxiter)

    def advance(state: Any) -> Any:
        now, previous, _, _ = state
        direction = -(now.hess_inv @ now.jac)
        first = 1.01 * 2 * (now.fun - previous) / jnp.real(now.jac @ direction)
        found = _line_search(both, now.x, direction, now.fun, now.jac,
                             jnp.where(first > 1, 1, first), line_search)
        change = found.step * direction
        difference = found.gradient - now.jac
        rho = jnp.reciprocal(difference @ change)
        left = identity - rho * jnp.outer(change, difference)
        inverse = left @ now.hess_inv @ left.T + rho * jnp.outer(change, change)
        evaluations = now.nfev + found.evaluations
        return OptimizeResults(
            now.x + change, size(found.gradient) < gtol, now.status, found.value, found.gradient,
            jnp.where(jnp.isfinite(rho), inverse, now.hess_inv), evaluations, evaluations,
            now.nit + 1), now.fun, found.failed, found.status

    one, none = jnp.array(1), jnp.array(0)
    start = OptimizeResults(x0, size(gradient) < gtol, none, value, gradient, identity, one, one,
                            none)
    result, _, failed, status = lax.while_loop(unfinished, advance, (
        start, value + jnp.linalg.norm(gradient) / 2, jnp.array(False), none))
    status = jnp.where(result.success, 0, jnp.where(
        result.nit == maxiter, 1, jnp.where(failed, 2 + status, -1)))
    return result._replace(status=status, success=result.success & ~failed)


class _History(NamedTuple):
    """The last steps and changes of the gradient (rows, the newest last), and 1 / (their products).

    Rows that are not there yet are 0, and change nothing.
    """

    steps: Any
    changes: Any
    rho: Any

    def after(self, *newest: Any) -> _History:
        return _History(*(jnp.roll(rows, -1, axis=0).at[-1].set(row)
                          for rows, row in zip(self, newest, strict=True)))


def _limited_direction(gradient: Any, history: _History, gamma: Any) -> Any:
    """-(inverse Hessian) @ conj(gradient), by the steps that are remembered.

    J. Nocedal and S. Wright, "Numerical Optimization", algorithm 7.4.
    """
    def newest_first(q: Any, row: _History) -> Any:
        weight = row.rho * jnp.real(jnp.conj(row.steps) @ q).astype(q.dtype)
        return q - weight * jnp.conj(row.changes), weight

    def oldest_first(q: Any, row: Any) -> Any:
        (step, change, rho), weight = row
        return q + (weight - rho * jnp.real(change @ q).astype(q.dtype)) * step, None

    q, weights = lax.scan(newest_first, -jnp.conj(gradient), history, reverse=True)
    return lax.scan(oldest_first, gamma * q, (history, weights))[0]


def _lbfgs(fun: Any, x0: Any, *, maxiter: float | None = None, norm: Any = np.inf,
           maxcor: int = 10, ftol: float = 2.220446049250313e-09, gtol: float = 1e-05,
           maxfun: float | None = None, maxgrad: float | None = None, maxls: int = 20) -> Any:
    """Nocedal and Wright, algorithm 7.5; complex variables as L. Sorber, M. Van Barel and
    L. De Lathauwer (SIAM J. Optim. 22, 2012) have them."""
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = x0.size * 200
    limits = [np.inf if limit is None else limit for limit in (maxiter, maxfun, maxgrad)]
    both = value_and_grad(fun)

    def unfinished(state: Any) -> Any:
        now, _, _ = state
        return ~now.success & (now.status == 0)

    def advance(state: Any) -> Any:
        now, history, gamma = state
        direction = _limited_direction(now.jac, history, gamma)
        found = _line_search(both, now.x, direction, now.fun, now.jac,
                             jnp.ones_like(now.fun), maxls)
        step = found.step * direction
        change = found.gradient - now.jac
        product = jnp.real(change @ step)
        gamma = product / jnp.real(jnp.conj(change) @ change)
        converged = jnp.linalg.norm(found.gradient, ord=norm) < gtol
        status = jnp.where(now.fun - found.value < ftol, 4, 0)
        for number, (reached, limit) in enumerate(zip(
                (now.nit, now.nfev, now.njev), limits, strict=True), 1):
            # The first limit is the one that is told.
            status = jnp.where((reached >= limit) & ((status == 0) | (status > number)),
                               number, status)
        status = jnp.where(found.failed, 5, status)
        evaluations = now.nfev + found.evaluations
        return (OptimizeResults(
            now.x + step, converged, jnp.where(converged, 0, status), found.value, found.gradient,
            None, evaluations, evaluations, now.nit + 1),
            history.after(step, change, jnp.reciprocal(product).astype(x0.dtype)),
            gamma.astype(x0.dtype))

    value, gradient = both(x0)
    one, none = jnp.array(1), jnp.array(0)
    rows = jnp.zeros((maxcor, x0.size), x0.dtype)
    start = OptimizeResults(x0, jnp.array(False), none, value, gradient, None, one, one, none)
    return lax.while_loop(unfinished, advance, (
        start, _History(rows, rows, jnp.zeros(maxcor, x0.dtype)), jnp.ones((), x0.dtype)))[0]


_LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


def minimize(fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str,
             tol: float | None = None, options: Mapping[str, Any] | None = None
             ) -> OptimizeResults:
    """Minimizes a function of a vector by a BFGS method.

    Args:
      fun: ``fun(x, *args)`` returns a scalar.
      x0: the starting point, shape ``(N,)``.
      method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this": the inverse of the Hessian by
        the last few steps, for many variables. The latter takes complex ones too.
      tol: tolerance for the norm of the gradient; 1e-5 by default.
      options: of BFGS: "gtol", "maxiter" (200 N), "norm" (inf), "line_search_maxiter" (10). Of
        L-BFGS: "maxiter" (200 N), "norm" (inf), "maxcor" (10 steps are remembered), "ftol",
        "gtol", "maxfun", "maxgrad", "maxls" (20).

    Raises:
      TypeError: ``args`` is not a tuple, or the method has no such option.
      ValueError: there is no such method.

    >>> result = jax.scipy.optimize.minimize(lambda x: ((x - 3.) ** 2).sum(), jnp.zeros(2),
    ...                                      method="BFGS")
    >>> result.x.round(3)
    Array([3.0000002, 3.0000002], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() not in ("bfgs", _LIMITED):
        raise ValueError(f"Method {method} not recognized")
    chosen = dict(options or {})
    x = jnp.asarray(x0)
    if not dtypes.is_inexact(x.dtype):
        raise TypeError("minimize differentiates fun, and requires an x0 of floats or complex "
                        f"numbers, but got {x.dtype}.")
    x = lax.convert_element_type(x, x.dtype)
    if x.ndim != 1:
        raise ValueError(f"x0 must be a vector, got the shape {x.shape}")
    if method.lower() == _LIMITED:
        return _lbfgs(lambda x: fun(x, *args), x, **chosen)
    gtol = chosen.get("gtol", 1e-5 if tol is None else tol)
    maxiter = chosen.get("maxiter")
    unknown = set(chosen) - {"gtol", "maxiter", "norm", "line_search_maxiter"}
    if unknown:
        raise TypeError(f"minimize has no options {sorted(unknown)}")
    return _bfgs(lambda x: fun(x, *args), x, x.size * 200 if maxiter is None else maxiter, gtol,
                 chosen.get("norm", np.inf), chosen.get("line_search_maxiter", 10))
