"""jax.numpy.linalg: determinants, with their derivatives."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import iota_p
from maxjax._primitives.linalg_factors import geqrf_p
from maxjax._transforms.autodiff import jvp
from maxjax.lax import linalg as lax_linalg
from maxjax.numpy import _contraction as contraction
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining
from maxjax.numpy import _matrices as matrices
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import real
from maxjax.numpy._decompositions import square_matrices
from maxjax.numpy._linear_systems import solve
from maxjax.numpy._special_values import isfinite
from maxjax.numpy._where import where

__all__ = ["det", "slogdet"]


class SlogdetResult(NamedTuple):
    """The results of ``slogdet``."""

    sign: Array
    logabsdet: Array


def _places(x: Array) -> Array:
    """The place of each element along the last axis."""
    return iota_p.bind(dtype=dtypes.int32, shape=x.shape, dimension=x.ndim - 1)


def _parity(pivots: Array) -> Array:
    """The parity of the row exchanges: 1 if odd, 0 if even."""
    moved = ufuncs.not_equal(pivots, _places(pivots))
    return reductions.sum(moved, -1, dtype=np.int32) & 1


@at_once
@boundary
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices ``(..., n, n)``.

    Args:
      a: matrices ``(..., n, n)``.

    Returns:
      An array ``(...)`` of a float or complex dtype.

    Raises:
      ValueError: the matrices are not square.

    See also: ``linalg.slogdet``, ``linalg.inv``, ``linalg.matrix_rank``.

    >>> jnp.linalg.det(jnp.array([[1., 2.], [3., 4.]]))
    Array(-2., dtype=float32)
    """
    a = square_matrices("det", a, "_det()")
    n = a.shape[-1]
    if n == 0:
        return filled.ones(a.shape[:-2], a.dtype)
    if n == 1:
        return convert_element_type(_written_out(a), a.dtype)   # strongly typed, as of all sizes
    if n == 2:
        return _written_out(a)
    if n == 3:
        return (a[..., 0, 0] * a[..., 1, 1] * a[..., 2, 2]
                + a[..., 0, 1] * a[..., 1, 2] * a[..., 2, 0]
                + a[..., 0, 2] * a[..., 1, 0] * a[..., 2, 1]
                - a[..., 0, 2] * a[..., 1, 1] * a[..., 2, 0]
                - a[..., 0, 0] * a[..., 1, 2] * a[..., 2, 1]
                - a[..., 0, 1] * a[..., 1, 0] * a[..., 2, 2])
    return _det(a)


def _written_out(a: Array) -> Array:
    if a.shape[-1] == 1:
        return a[..., 0, 0]
    return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]


@custom_jvp
def _det(a: Array) -> Array:
    factors, pivots, _ = lax_linalg.lu(a)
    product = reductions.prod(matrices.diagonal(factors, 0, -2, -1), -1)
    return where(_parity(pivots) == 1, -product, product)


@_det.defjvp
def _det_jvp(primals: Any, tangents: Any) -> Any:
    """det(a)' = trace(det(a) a^-1 a'), which is finite at matrices of rank n - 1 too."""
    a, tangent = primals[0], tangents[0]
    factors, pivots, rows = lax_linalg.lu(a)
    diagonal = matrices.diagonal(factors, 0, -2, -1)
    sign = where(_parity(pivots) == 1, -1, 1).astype(a.dtype)
    minor = sign * reductions.prod(diagonal[..., :-1], -1)      # det without the last factor
    value = minor * diagonal[..., -1]
    chosen = ufuncs.equal(rows[..., :, None], _places(rows)[..., None, :]).astype(a.dtype)
    image = lax_linalg.triangular_solve(
        factors, contraction.matmul(chosen, tangent), left_side=True, lower=True,
        unit_diagonal=True)
    # The last row of U x = det(a) image, divided by U's last element, is minor * image.
    image = _joining.concatenate([image[..., :-1, :] * value[..., None, None],
                                image[..., -1:, :] * minor[..., None, None]], -2)
    last = np.zeros(a.shape[-2:], bool)
    last[-1, -1] = True
    upper = where(last, 1, factors)
    # For rank n - 2 and less the derivative is zero. The condition may not depend on the tangent,
    # and the system to solve must be regular there, for the transpose.
    probe = lax_linalg.triangular_solve(
        upper, filled.ones((*a.shape[:-1], 1), a.dtype), left_side=True)
    regular = reductions.all(isfinite(probe), (-2, -1), keepdims=True)
    upper = where(regular, upper, ranges.eye(a.shape[-1], dtype=a.dtype))
    image = where(regular, lax_linalg.triangular_solve(upper, image, left_side=True), 0)
    return value, matrices.trace(image, 0, -2, -1)


@at_once
@boundary
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The signs (phases) of the determinants, and the logarithms of their magnitudes.

    Args:
      a: matrices ``(..., n, n)``.
      method: the decomposition, "lu" (None) or "qr" (real matrices).

    Returns:
      A named tuple of ``sign`` and ``logabsdet``, arrays ``(...)``; 0 and minus infinity for
      singular ones.

    Raises:
      ValueError: the matrices are not square, or there is no such ``method``.

    See also: ``linalg.det``, ``linalg.cholesky``.

    >>> jnp.linalg.slogdet(jnp.array([[1., 2.], [2., 3.]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    a = square_matrices("slogdet", a, "slogdet()")
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' "
                         "(`None`), and 'qr'.")
    if method == "qr" and dtypes.is_complex(a.dtype):
        raise NotImplementedError("slogdet method='qr' not implemented for complex inputs")
    if method != "qr" and a.shape[-1] in (1, 2):
        return SlogdetResult(*_slogdet_written_out(a))
    return SlogdetResult(*(
        convert_element_type(x, x.dtype) for x in _slogdet(a, method == "qr")))


@custom_jvp
def _slogdet_written_out(a: Array) -> tuple[Array, Array]:
    """Of matrices of at most two rows, which need no decomposition."""
    value = _written_out(a)
    return ufuncs.sign(value), ufuncs.log(ufuncs.abs(value))


@_slogdet_written_out.defjvp
def _slogdet_written_out_jvp(primals: Any, tangents: Any) -> Any:
    """As ``_slogdet_jvp``, by the derivative of the determinant itself."""
    value, change = jvp(_written_out, primals, tangents)
    return _rotated(*_slogdet_written_out(primals[0]), change / value)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _slogdet(a: Array, by_qr: bool) -> tuple[Array, Array]:
    if by_qr:
        packed, taus = geqrf_p.bind(*lax_linalg._lapack_operands(geqrf_p, a))
        # Each reflection has the determinant -1; a tau of 0 means there is none.
        exchanges = reductions.sum(taus != 0, -1, dtype=np.int32) % 2
    else:
        packed, pivots, _ = lax_linalg.lu(a)
        exchanges = _parity(pivots)
    diagonal = matrices.diagonal(packed, 0, -2, -1)
    sign = reductions.prod(ufuncs.sign(diagonal), -1)
    sign = where(exchanges == 1, -sign, sign)
    return sign, reductions.sum(ufuncs.log(ufuncs.abs(diagonal)), -1)


@_slogdet.defjvp
def _slogdet_jvp(by_qr: bool, primals: Any, tangents: Any) -> Any:
    """log(det(a))' = trace(a^-1 a'), whose imaginary part rotates the phase."""
    sign, logarithm = _slogdet(primals[0], by_qr)
    change = matrices.trace(solve(primals[0], tangents[0]), 0, -2, -1)
    return _rotated(sign, logarithm, change)


def _rotated(sign: Array, logarithm: Array, change: Array) -> Any:
    """The results of ``slogdet`` and their tangents, of which ``change`` is log(det(a))'s."""
    if not dtypes.is_complex(change.dtype):
        return (sign, logarithm), (filled.zeros_like(sign), change)
    of_modulus = real(change)
    return (sign, logarithm), ((change - of_modulus.astype(change.dtype)) * sign, of_modulus)
