"""The polar decomposition by dynamically weighted Halley iterations (QDWH).

Y. Nakatsukasa, Z. Bai, F. Gygi, "Optimizing Halley's iteration for computing the matrix polar
decomposition", SIAM J. Matrix Anal. Appl. 31 (2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.while_loop import while_loop
from maxjax._ir.trace import Array
from maxjax._primitives import linalg_rules as rules
from maxjax._primitives.arithmetic import abs_, add, div, mul, sub
from maxjax._primitives.broadcasting import reduce_sum
from maxjax._primitives.comparison import ge, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full, iota
from maxjax._primitives.joining import concatenate
from maxjax._primitives.lapack import not_lapack
from maxjax._primitives.linalg_factors import cholesky_p, qr_p
from maxjax._primitives.linalg_solve import triangular_solve
from maxjax._primitives.rules import scalar_like
from maxjax._primitives.slicing import slice_in_dim
from maxjax.lax._elementwise import bitwise_and, bitwise_not, eq, gt, lt, max, rsqrt, sqrt
from maxjax.lax._operands import operand
from maxjax.lax._reductions import reduce_max


def _weights(eps: float, most: int) -> list[tuple[float, float, float]]:
    """Halley's weights (a, b, c) while the bound of the singular values is away from 1."""
    bound = eps
    result: list[tuple[float, float, float]] = []
    while bound + 10 * eps < 1 and len(result) < most:
        square = bound * bound
        d = (4 * (1 / square - 1) / square) ** (1 / 3)
        root = np.sqrt(1 + d)
        a = root + np.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        result.append((a, b, c))
        bound = bound * (a + b * square) / (1 + c * square)
    return result


def _scaled(value: Any, x: Any) -> Any:
    return mul(scalar_like(value, x.dtype), x)


def _norm(x: Any) -> Any:
    return sqrt(reduce_sum(_squares(x), (0, 1)))


def _squares(x: Any) -> Any:
    magnitude = abs_(x)
    return mul(magnitude, magnitude)


def _by_qr(x: Any, a: float, b: float, c: float) -> Any:
    """One step, stable for large ``c``: x (1 + c x^H x)^-1 from the QR of [sqrt(c) x; 1]."""
    m, n = x.shape
    eye = rules.eye_like(full((n, n), 0, x.dtype))
    q, _ = qr_p.bind(concatenate([_scaled(np.sqrt(c), x), eye], 0), full_matrices=False,
                     pivoting=False, use_magma=None)
    top, bottom = slice_in_dim(q, 0, m, 0), slice_in_dim(q, m, m + n, 0)
    product = rules.matmul(top, rules.adjoint(bottom))
    return add(_scaled(b / c, x), _scaled((a - b / c) / np.sqrt(c), product))


def _by_cholesky(x: Any, a: float, b: float, c: float) -> Any:
    """One step, cheaper but stable for small ``c`` alone: by the Cholesky factor of 1 + c x^H x."""
    gram = _scaled(c, rules.matmul(rules.adjoint(x), x))
    factor = cholesky_p.bind(add(gram, rules.eye_like(gram)))
    inner = triangular_solve(factor, rules.adjoint(x), left_side=True, lower=True)
    inner = triangular_solve(factor, inner, left_side=True, lower=True, transpose_a=True,
                             conjugate_a=True)
    return add(_scaled(b / c, x), _scaled(a - b / c, rules.adjoint(inner)))


def _masked(x: Array, shape: tuple[Any, Any]) -> Array:
    """Zeros outside the first rows and columns."""
    zero = full(x.shape, 0, x.dtype)
    for axis, size in enumerate(shape):
        last = sub(convert_element_type(operand(size, "qdwh"), dtypes.int32), np.int32(1))
        x = select(ge(last, iota(dtypes.int32, x.shape, axis)), zero, x)
    return x


def qdwh(x: Any, *, is_hermitian: bool = False, max_iterations: int | None = None,
         eps: float | None = None,
         dynamic_shape: tuple[int, int] | None = None) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition ``x = u h``: ``u`` with orthonormal columns, ``h`` Hermitian.

    Args:
      x: shape ``(m, n)``, m >= n, without batch dimensions.
      is_hermitian: ignored.
      max_iterations: 10 by default.
      eps: iterates until a step changes less than ``cbrt(5 eps)``; by default the dtype's epsilon.
      dynamic_shape: the valid part of ``x``; the rest of the results is zero.

    Returns:
      ``(u, h, the number of iterations, whether they have converged)``. It has no reverse-mode
      derivative.

    >>> u, h, iterations, converged = lax.linalg.qdwh(jnp.array([[0., -2.], [3., 0.]]))
    >>> abs(h).round(3)
    Array([[3.0000002, 0.       ],
           [0.       , 2.       ]], dtype=float32)
    """
    rows, columns = x.shape
    x = operand(x, "qdwh")
    if rows < columns:
        raise ValueError("The input matrix of shape M x N must have M >= N.")
    if not dtypes.is_inexact(x.dtype):
        raise ValueError(f"data type {x.dtype.name} not inexact")
    if x.dtype not in rules.LAPACK_DTYPES:
        raise not_lapack("qr", x.dtype)
    most = 10 if max_iterations is None else max_iterations
    eps = float(dtypes.finfo(x.dtype).eps) if eps is None else eps
    tolerance = scalar_like((5 * eps) ** (1 / 3), dtypes.real_dtype(x.dtype))
    if dynamic_shape is not None:
        x = _masked(x, dynamic_shape)

    magnitude = abs_(x)
    zero = scalar_like(0, magnitude.dtype)
    by_columns, by_rows = (
        max(zero, reduce_max(reduce_sum(magnitude, (axis,)), (0,))) if x.size else operand(
            zero, "qdwh") for axis in (0, 1))
    scale = mul(rsqrt(by_columns), rsqrt(by_rows))
    scale = select(eq(by_columns, zero), scale, scalar_like(1, magnitude.dtype))
    u = mul(x, convert_element_type(scale, x.dtype))

    unconverged = operand(np.True_, "qdwh")
    weights = _weights(eps, most)
    for a, b, c in weights:
        if c > 100:
            u = _by_qr(u, a, b, c)
            continue
        before, u = u, _by_cholesky(u, a, b, c)
        unconverged = gt(_norm(sub(u, before)), tolerance)

    def proceed(state: Any) -> Any:
        count, _, unconverged = state
        return bitwise_and(unconverged, lt(count, scalar_like(most, count.dtype)))

    def step(state: Any) -> Any:
        count, before, _ = state
        after = _by_cholesky(before, 3.0, 1.0, 3.0)
        return count + 1, after, gt(_norm(sub(after, before)), tolerance)

    initial: tuple[Any, Array, Array] = len(weights), u, unconverged
    count, u, unconverged = while_loop(proceed, step, initial)
    # One Newton-Schulz step restores the orthogonality lost to rounding.
    u = sub(_scaled(1.5, u), rules.matmul(_scaled(0.5, u), rules.matmul(rules.adjoint(u), u)))
    h = rules.matmul(rules.adjoint(u), x)
    h = div(add(h, rules.adjoint(h)), scalar_like(2, h.dtype))
    return u, h, count, bitwise_not(unconverged)
