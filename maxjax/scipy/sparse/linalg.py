"""jax.scipy.sparse.linalg: linear systems with a matrix given by its products.

Vectors are pytrees. The solutions are differentiable in ``b`` and in the values that ``A`` closes
over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import lax, tree_util
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._primitives.convert import convert_element_type
from maxjax.flatten_util import ravel_pytree

explain_missing_names(__name__)

_map = tree_util.tree_map


def _dot(x: Any, y: Any) -> Any:
    parts = _map(lambda a, b: jnp.vdot(a, b, precision=lax.Precision.HIGHEST), x, y)
    return sum(tree_util.tree_leaves(parts))


def _square(x: Any) -> Any:
    parts = [jnp.vdot(a.real, a.real) + (jnp.vdot(a.imag, a.imag)
                                         if dtypes.is_complex(a.dtype) else 0)
             for a in tree_util.tree_leaves(x)]
    return sum(parts)


def _scaled(factor: Any, x: Any) -> Any:
    return _map(lambda a: factor * a, x)


def _add(x: Any, y: Any) -> Any:
    return _map(lambda a, b: a + b, x, y)


def _sub(x: Any, y: Any) -> Any:
    return _map(lambda a, b: a - b, x, y)


def _function(A: Any) -> Callable[[Any], Any]:
    if callable(A):
        return A
    if isinstance(A, np.ndarray) or hasattr(A, "shape"):
        if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
            raise ValueError("linear operator must be a square matrix, but has shape: "
                             f"{A.shape}")
        return lambda x: A @ x
    raise TypeError(f"linear operator must be either a function or ndarray: {A}")


def _shapes(tree: Any) -> list[Any]:
    return [jnp.shape(leaf) for leaf in tree_util.tree_leaves(tree)]


def _prepared(A: Any, b: Any, x0: Any, maxiter: Any, M: Any) -> Any:
    if x0 is None:
        x0 = _map(jnp.zeros_like, b)
    b, x0 = _map(jnp.asarray, (b, x0))
    if maxiter is None:
        maxiter = 10 * sum(leaf.size for leaf in tree_util.tree_leaves(b))
    if tree_util.tree_structure(x0) != tree_util.tree_structure(b):
        raise ValueError("x0 and b must have matching tree structure: "
                         f"{tree_util.tree_structure(x0)} vs {tree_util.tree_structure(b)}")
    if _shapes(x0) != _shapes(b):
        raise ValueError("arrays in x0 and b must have matching shapes: "
                         f"{_shapes(x0)} vs {_shapes(b)}")
    return _function(A), b, x0, maxiter, (lambda x: x) if M is None else _function(M)


def _implicit(A: Any, b: Any, run: Callable[[Any, Any], Any], symmetric: bool) -> Any:
    """The solution, with the derivatives of ``A @ x = b``."""
    # The wrapped solver gets its operator as an argument: the transposed one, in the backward pass.
    real = all(not dtypes.is_complex(leaf.dtype) for leaf in tree_util.tree_leaves(b))

    def solve(A: Any, b: Any) -> Any:
        # The solution is weakly typed if the right side is, as in JAX, except for `cg`.
        return _map(lambda x, like: convert_element_type(
            x, x.dtype, like.weak_type and not symmetric), run(A, b), b)

    return lax.custom_linear_solve(A, b, solve=solve, transpose_solve=solve,
                                   symmetric=symmetric and real)


def cg(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
       maxiter: Any = None, M: Any = None) -> Any:
    """Solves ``A @ x = b`` by conjugate gradients, for Hermitian, positive definite ``A``.

    Args:
      A: a matrix, or a function that multiplies by it.
      b: a pytree of arrays.
      x0: the starting point; zeros by default.
      tol, atol: converged when the residual's norm is below ``max(tol * norm(b), atol)``.
      maxiter: the maximum number of steps; ten times the number of unknowns by default.
      M: an approximation of the inverse of ``A``.

    Returns:
      The solution, and None.

    >>> A = jnp.array([[2., 1.], [1., 3.]])
    >>> jax.scipy.sparse.linalg.cg(A, jnp.array([3., 4.]))[0].round(4)
    Array([1., 1.], dtype=float32)
    """
    A, b, x0, maxiter, M = _prepared(A, b, x0, maxiter, M)

    def run(A: Any, b: Any) -> Any:
        limit = jnp.maximum(jnp.square(tol) * _square(b), jnp.square(atol))
        residual = _sub(b, A(x0))
        z = M(residual)
        gamma = _dot(residual, z).astype(jnp.result_type(*tree_util.tree_leaves(b)))

        def unfinished(state: Any) -> Any:
            _, r, gamma, _, k = state
            size = gamma.real if plain else _square(r)
            return (size > limit) & (k < maxiter)

        def step(state: Any) -> Any:
            x, r, gamma, p, k = state
            Ap = A(p)
            alpha = gamma / _dot(p, Ap).astype(gamma.dtype)
            x, r = _add(x, _scaled(alpha, p)), _sub(r, _scaled(alpha, Ap))
            z = M(r)
            new = _dot(r, z).astype(gamma.dtype)
            return x, r, new, _add(z, _scaled(new / gamma, p)), k + 1

        return lax.while_loop(unfinished, step, (x0, residual, gamma, z, 0))[0]

    plain = M(b) is b
    return _implicit(A, b, run, True), None


def bicgstab(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
             maxiter: Any = None, M: Any = None) -> Any:
    """Solves ``A @ x = b`` by the biconjugate gradient stabilized method (van der Vorst, 1992).

    See ``cg`` for the arguments; ``A`` need not be symmetric.

    >>> A = jnp.array([[2., 1.], [0., 3.]])
    >>> jax.scipy.sparse.linalg.bicgstab(A, jnp.array([3., 3.]))[0].round(4)
    Array([1., 1.], dtype=float32)
    """
    A, b, x0, maxiter, M = _prepared(A, b, x0, maxiter, M)

    def run(A: Any, b: Any) -> Any:
        limit = jnp.maximum(jnp.square(tol) * _square(b), jnp.square(atol))
        r0 = _sub(b, A(x0))
        one = jnp.ones((), jnp.result_type(*tree_util.tree_leaves(b)))

        def unfinished(state: Any) -> Any:
            return (_square(state[1]) > limit) & (state[-1] < maxiter) & (state[-1] >= 0)

        def step(state: Any) -> Any:
            x, r, alpha, omega, rho, p, q, k = state
            new = _dot(r0, r).astype(one.dtype)
            beta = new / rho * alpha / omega
            p = _add(r, _scaled(beta, _sub(p, _scaled(omega, q))))
            phat = M(p)
            q = A(phat)
            alpha = new / _dot(r0, q).astype(one.dtype)
            s = _sub(r, _scaled(alpha, q))
            early = _square(s) < limit
            shat = M(s)
            t = A(shat)
            omega = _dot(t, s).astype(one.dtype) / _dot(t, t).astype(one.dtype)
            half = _add(x, _scaled(alpha, phat))
            x = _map(lambda a, c: jnp.where(early, a, a + omega * c), half, shat)
            r = _map(lambda a, c: jnp.where(early, a, a - omega * c), s, t)
            k = jnp.where((omega == 0) | (alpha == 0), -11, k + 1)
            return x, r, alpha, omega, new, p, q, jnp.where(new == 0, -10, k)

        state = (x0, r0, one, one, one, r0, r0, 0)
        return lax.while_loop(unfinished, step, state)[0]

    return _implicit(A, b, run, False), None


def gmres(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
          restart: int = 20, maxiter: Any = None, M: Any = None,
          solve_method: str = "batched") -> Any:
    """Solves ``A @ x = b`` by the generalized minimal residual method (Saad and Schultz, 1986).

    See ``cg`` for the arguments; ``A`` need not be symmetric.

    Args:
      restart: the dimension of a Krylov space.
      maxiter: the number of restarts.
      solve_method: "batched" or "incremental", which are the same here.

    >>> A = jnp.array([[2., 1.], [0., 3.]])
    >>> jax.scipy.sparse.linalg.gmres(A, jnp.array([3., 3.]))[0].round(4)
    Array([1., 1.], dtype=float32)
    """
    A, b, x0, maxiter, M = _prepared(A, b, x0, maxiter, M)
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or "
                         "'batched'")

    def run(A: Any, b: Any) -> Any:
        flat, unravel = ravel_pytree(b)
        size = min(restart, flat.shape[0])
        norm_b = jnp.linalg.norm(ravel_pytree(M(b))[0])
        limit = jnp.maximum(tol * norm_b, atol)

        def product(v: Any) -> Any:
            return ravel_pytree(M(A(unravel(v))))[0].astype(flat.dtype)

        def residual(x: Any) -> Any:
            return ravel_pytree(M(_sub(b, A(unravel(x)))))[0].astype(flat.dtype)

        def orthogonal(v: Any, basis: Any) -> Any:
            """Gram-Schmidt orthogonalization, done twice: the remainder, and the components."""
            first = jnp.conj(basis) @ v
            v = v - basis.T @ first
            second = jnp.conj(basis) @ v
            return v - basis.T @ second, first + second

        def sweep(state: Any) -> Any:
            x, r, norm, k = state
            basis = jnp.zeros((size + 1, flat.shape[0]), flat.dtype).at[0].set(
                r / jnp.where(norm > 0, norm, 1).astype(flat.dtype))
            H = jnp.zeros((size + 1, size), flat.dtype)

            def extend(i: Any, pair: Any) -> Any:
                basis, H = pair
                v = product(basis[i])
                before = jnp.linalg.norm(v)
                v, parts = orthogonal(v, basis)
                length = jnp.linalg.norm(v)
                # A remainder below rounding is zero: the space is invariant.
                closed = length <= jnp.finfo(flat.dtype).eps * before
                v = jnp.where(closed, 0, v / jnp.where(closed, 1, length).astype(flat.dtype))
                parts = parts.at[i + 1].add(jnp.where(closed, 0, length).astype(parts.dtype))
                return basis.at[i + 1].set(v), H.at[:, i].set(parts)

            basis, H = lax.fori_loop(0, size, extend, (basis, H))
            target = jnp.zeros(size + 1, flat.dtype).at[0].set(norm.astype(flat.dtype))
            y = jnp.linalg.lstsq(H, target)[0]
            x = x + basis[:-1].T @ y
            r = residual(x)
            return x, r, jnp.linalg.norm(r), k + 1

        def unfinished(state: Any) -> Any:
            return (state[2] > limit) & (state[3] < maxiter)

        start = ravel_pytree(x0)[0].astype(flat.dtype)
        r = residual(start)
        return unravel(lax.while_loop(unfinished, sweep, (start, r, jnp.linalg.norm(r), 0))[0])

    return _implicit(A, b, run, False), None
