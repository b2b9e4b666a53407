"""jax.scipy.optimize: minimization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base.missing import missing_names
from maxjax._transforms.autodiff import value_and_grad
from maxjax.numpy._promotion import promote_inexact

__getattr__ = missing_names(__name__)


class OptimizeResults(NamedTuple):
    """What a minimization gave.

    Attributes:
      x, fun, jac: the place, and there the value and the gradient.
      success, status: whether it converged; 0, 1 for too many steps, 3 and more for a failed
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


class _Search(NamedTuple):
    """A line search that brackets a step: a 0 b is known to hold one that Wolfe accepts."""

    step: Any
    low: Any
    high: Any
    bracketed: Any
    done: Any
    count: Any
    value: Any
    gradient: Any


_ARMIJO, _CURVATURE = 1e-4, 0.9


def _line_search(fun: Any, x: Any, direction: Any, value: Any, gradient: Any,
                 limit: int) -> _Search:
    """A step with Wolfe's strong conditions: doubling until one is bracketed, then bisection."""
    slope = gradient @ direction

    def unfinished(s: _Search) -> Any:
        return ~s.done & (s.count < limit)

    def attempt(s: _Search) -> _Search:
        f, g = fun(x + s.step * direction)
        new_slope = g @ direction
        # NaN counts as too far.
        enough = f <= value + _ARMIJO * s.step * slope
        flat = jnp.abs(new_slope) <= -_CURVATURE * slope
        too_far = ~enough | (new_slope > 0)
        done = enough & flat
        low = jnp.where(too_far, s.low, s.step)
        high = jnp.where(too_far, s.step, s.high)
        bracketed = s.bracketed | too_far
        step = jnp.where(bracketed, (low + high) / 2, 2 * s.step)
        return _Search(jnp.where(done, s.step, step), low, high, bracketed, done, s.count + 1,
                       f, g)

    zero = jnp.zeros_like(value)
    start = _Search(jnp.ones_like(value), zero, zero + np.inf, jnp.array(False),
                    jnp.array(False), jnp.array(0), value, gradient)
    return lax.while_loop(unfinished, attempt, start)


def _bfgs(fun: Any, x0: Any, maxiter: int, gtol: float, norm: Any, line_search: int) -> Any:
    identity = jnp.eye(x0.shape[0], dtype=x0.dtype)
    both = value_and_grad(fun)
    value, gradient = both(x0)

    def size(g: Any) -> Any:
        return jnp.linalg.norm(g, ord=norm)

    def unfinished(state: Any) -> Any:
        return ~state[5] & ~state[6] & (state[4] < maxiter)

    def step(state: Any) -> Any:
        x, f, g, H, k, _, _, evaluations, _ = state
        found = _line_search(both, x, -(H @ g), f, g, line_search)
        change = found.step * -(H @ g)
        difference = found.gradient - g
        product = difference @ change
        rho = jnp.where(product == 0, 0, 1 / jnp.where(product == 0, 1, product))
        left = identity - rho * jnp.outer(change, difference)
        new_H = left @ H @ left.T + rho * jnp.outer(change, change)
        new_H = jnp.where(jnp.isfinite(rho) & found.done, new_H, H)
        keep = found.done
        x = jnp.where(keep, x + change, x)
        f = jnp.where(keep, found.value, f)
        g = jnp.where(keep, found.gradient, g)
        return (x, f, g, new_H, k + 1, size(g) < gtol, ~keep, evaluations + found.count,
                jnp.where(keep, 0, 3))

    state = (x0, value, gradient, identity, jnp.array(0), size(gradient) < gtol,
             jnp.array(False), jnp.array(1), jnp.array(0))
    x, f, g, H, k, converged, failed, evaluations, status = lax.while_loop(unfinished, step, state)
    status = jnp.where(converged, 0, jnp.where(k >= maxiter, 1, status))
    return OptimizeResults(x, converged & ~failed, status, f, g, H, evaluations, evaluations, k)


def minimize(fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str,
             tol: float | None = None, options: Mapping[str, Any] | None = None
             ) -> OptimizeResults:
    """Minimizes a function of a vector, by the method of Broyden, Fletcher, Goldfarb and Shanno.

    Args:
      fun: ``fun(x, *args)`` gives a scalar.
      x0: where to begin, shape ``(N,)``.
      method: "BFGS".
      tol: of the norm of the gradient; 1e-5 by default.
      options: "gtol", "maxiter" (200 N), "norm" (inf), "line_search_maxiter" (10).

    Raises:
      TypeError: ``args`` is no tuple.
      ValueError: there is no such method.

    >>> result = jax.scipy.optimize.minimize(lambda x: ((x - 3.) ** 2).sum(), jnp.zeros(2),
    ...                                      method="BFGS")
    >>> result.x.round(3)
    Array([3., 3.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() != "bfgs":
        raise ValueError(f"Method {method} not recognized")
    chosen = dict(options or {})
    x, = promote_inexact("minimize", x0)
    x = lax.convert_element_type(jnp.asarray(x), jnp.asarray(x).dtype)
    if x.ndim != 1:
        raise ValueError(f"x0 must be a vector, got the shape {x.shape}")
    gtol = chosen.get("gtol", 1e-5 if tol is None else tol)
    maxiter = chosen.get("maxiter")
    unknown = set(chosen) - {"gtol", "maxiter", "norm", "line_search_maxiter"}
    if unknown:
        raise TypeError(f"minimize has no options {sorted(unknown)}")
    return _bfgs(lambda x: fun(x, *args), x, x.size * 200 if maxiter is None else maxiter, gtol,
                 chosen.get("norm", np.inf), max(30, chosen.get("line_search_maxiter", 10)))
