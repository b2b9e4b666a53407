"""Special matrices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.lazy import scipy_linalg
from maxjax._ir.trace import Array
from maxjax._primitives.convert import convert_element_type
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import check_arraylike, promote_dtypes, promote_inexact
from maxjax.numpy._reductions import strong


def _float(value: Any) -> Array:
    return jnp.asarray(value, dtypes.canonical(dtypes.float64))


@at_once
def block_diag(*arrs: Any) -> Array:
    """A block-diagonal matrix of arrays with at most two axes.

    Args:
      arrs: matrices, vectors (one row) and scalars.

    Returns:
      A matrix of the promoted dtype, whose sizes are the sums of theirs.

    Raises:
      ValueError: one has more than two dimensions.

    See also: ``jnp.block``, ``jnp.diag``, ``jnp.kron``.

    >>> jax.scipy.linalg.block_diag(jnp.ones((1, 2)), 3.0)
    Array([[1., 1., 0.],
           [0., 0., 3.]], dtype=float32)
    """
    if not arrs:
        arrs = (jnp.zeros((1, 0)),)
    blocks = [strong(jnp.asarray(x)) for x in promote_dtypes("block_diag", *arrs)]
    bad = [i for i, block in enumerate(blocks) if block.ndim > 2]
    if bad:
        raise ValueError("Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, "
                         f"got {blocks[bad[0]]} at argument {bad[0]}.")
    blocks = [jnp.atleast_2d(block) for block in blocks]
    total = sum(block.shape[1] for block in blocks)
    rows, start = [], 0
    for block in blocks:
        end = start + block.shape[1]
        rows.append(jnp.pad(block, ((0, 0), (start, total - end))))
        start = end
    return jnp.concatenate(rows, axis=0)


# Elsewhere a scalar is a vector of one element.
_SCALARS_REFUSED = ("hankel",)


def _vectors(function: Callable[..., Array]) -> Callable[..., Array]:
    """Applies a function of vectors along the last axes of arrays."""
    @functools.wraps(function)
    def apply(*args: Any, **options: Any) -> Array:
        check_arraylike(function.__name__, *[x for x in args if x is not None])
        name = function.__name__
        if name in _SCALARS_REFUSED and any(x is not None and not jnp.ndim(x) for x in args):
            raise ValueError(f"{name}: c must be at least 1-dimensional, got a scalar.")
        arrays = [None if x is None else jnp.atleast_1d(jnp.asarray(x)) for x in args]
        if all(x is None or x.ndim == 1 for x in arrays):
            return function(*arrays, **options)
        given = [x for x in arrays if x is not None]
        if name in _SCALARS_REFUSED:        # of any ranks, whatever the option says of them
            most = max(x.ndim for x in given)
            given = [x.reshape((1,) * (most - x.ndim) + x.shape) for x in given]
        signature = ",".join(f"(n{i})" for i in range(len(given))) + "->(a,b)"
        return jnp.vectorize(lambda *parts: function(*parts, **options),
                             signature=signature)(*given)

    return apply


@at_once
@_vectors
def toeplitz(c: Any, r: Any = None) -> Array:
    """The matrix that is constant along each diagonal, from its first column and row.

    >>> jax.scipy.linalg.toeplitz(jnp.array([1, 2]), jnp.array([1, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], dtype=int32)
    """
    if r is None:
        r = jnp.conj(c)
    c, r = promote_dtypes("toeplitz", c, r)
    values = strong(jnp.concatenate([jnp.flip(c), r[1:]]))
    m, n = c.shape[0], r.shape[0]
    return values[(m - 1 - np.arange(m))[:, None] + np.arange(n)[None, :]]


@_vectors
def hankel(c: Any, r: Any = None) -> Array:
    """The matrix that is constant along each antidiagonal, from its first column and last row.

    >>> jax.scipy.linalg.hankel(jnp.array([1, 2]), jnp.array([9, 5, 6]))
    Array([[1, 2, 5],
           [2, 5, 6]], dtype=int32)
    """
    if r is None:
        r = jnp.zeros_like(c)
    c, r = promote_dtypes("hankel", c, r)
    values = strong(jnp.concatenate([c, r[1:]]))
    return values[np.arange(c.shape[0])[:, None] + np.arange(r.shape[0])[None, :]]


@_vectors
def circulant(c: Any) -> Array:
    """The matrix in which each column is the previous one rotated by one.

    >>> jax.scipy.linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    n = c.shape[0]
    return c[(np.arange(n)[:, None] - np.arange(n)[None, :]) % n]


@_vectors
def companion(a: Any) -> Array:
    """The companion matrix of a polynomial, highest power first.

    >>> jax.scipy.linalg.companion(jnp.array([2., 4., 6.]))
    Array([[-2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    a, = promote_inexact("companion", a)
    if a.shape[0] < 2:
        raise ValueError("The length of `a` along the last axis must be at least 2; got shape "
                         f"{a.shape}.")
    row = -a[1:] / a[0]
    return jnp.concatenate([row[None], jnp.eye(a.shape[0] - 2, a.shape[0] - 1, dtype=a.dtype)])


@_vectors
def fiedler(a: Any) -> Array:
    """The matrix of absolute differences.

    >>> jax.scipy.linalg.fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    return jnp.abs(a[:, None] - a[None, :])


@_vectors
def fiedler_companion(a: Any) -> Array:
    """The pentadiagonal companion matrix of a polynomial, highest power first.

    >>> jax.scipy.linalg.fiedler_companion(jnp.array([1., 2., 3.]))
    Array([[-2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    a, = promote_inexact("fiedler_companion", a)
    if not a.shape[0]:
        raise ValueError("fiedler_companion requires the last axis of 'a' to have nonzero length, "
                         f"but got an array of shape {a.shape}.")
    if a.shape[0] <= 1:
        return convert_element_type(jnp.zeros((0, 0), a.dtype), a.dtype, a.weak_type)
    if a.shape[0] == 2:
        return (-a[1] / a[0])[None, None]
    a = a / a[0]
    n = a.shape[0] - 1
    matrix = jnp.zeros((n, n), a.dtype)
    matrix = matrix.at[np.arange(3, n, 2), np.arange(1, n - 2, 2)].set(1)
    matrix = matrix.at[np.arange(2, n, 2), np.arange(1, n - 1, 2)].set(-a[3::2])
    matrix = matrix.at[np.arange(0, n - 2, 2), np.arange(2, n, 2)].set(1)
    matrix = matrix.at[np.arange(0, n - 1, 2), np.arange(1, n, 2)].set(-a[2::2])
    return matrix.at[0, 0].set(-a[1]).at[1, 0].set(1)


def leslie(f: Any, s: Any) -> Array:
    """The Leslie matrix of fecundities and survival rates.

    >>> jax.scipy.linalg.leslie(jnp.array([0.5, 2.]), jnp.array([0.25]))
    Array([[0.5 , 2.  ],
           [0.25, 0.  ]], dtype=float32)

    Raises:
      ValueError: ``f`` has less than two, or other than one more than ``s``.
    """
    check_arraylike("leslie", f, s)
    f, s = jnp.atleast_1d(f), jnp.atleast_1d(s)
    if f.shape[-1] < 2:
        raise ValueError(
            f"The length of f along the last axis must be at least 2; got shape {f.shape}.")
    if s.shape[-1] != f.shape[-1] - 1:
        raise ValueError("Incorrect lengths for f and s. The length of s along the last axis must "
                         f"be one less than the length of f; got f shape {f.shape} and s shape "
                         f"{s.shape}.")
    return _leslie(f, s)


@_vectors
def _leslie(f: Any, s: Any) -> Array:
    f, s = promote_dtypes("leslie", f, s)
    return jnp.diag(s, -1).at[0].set(f)


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector of length ``n`` is the convolution with ``a``.

    >>> jax.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    a = jnp.asarray(a)
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    if not a.ndim:
        raise ValueError("convolution_matrix: a must be at least 1-dimensional, got a scalar.")
    if not a.shape[-1]:
        raise ValueError(f"len(a) must be at least 1; got shape {a.shape}.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    return _convolution_matrix(a, n=n, mode=mode)


@_vectors
def _convolution_matrix(a: Any, *, n: int, mode: str) -> Array:
    m = a.shape[0]
    column = jnp.pad(a, (0, n - 1))
    whole = toeplitz(column, jnp.pad(a[:1], (0, n - 1)))
    if mode == "full":
        return whole
    size = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
    start = (m + n - 1 - size) // 2 if mode == "same" else min(m, n) - 1
    return whole[start:start + size]


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """The matrix of the discrete Fourier transform; ``scale`` None, "sqrtn" or "n" divides it.

    >>> jax.scipy.linalg.dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; {scale!r} is not valid.")
    if dtype is not None and not dtypes.is_complex(dtypes.as_dtype(dtype)):
        raise ValueError(
            f"dtype must be a complex floating-point type; got {dtypes.as_dtype(dtype)}.")
    n = max(n, 0)
    index = np.arange(n)
    matrix = np.exp(-2j * np.pi / n * ((index[:, None] * index) % n)) if n else np.zeros((0, 0))
    matrix = matrix / {None: 1, "sqrtn": math.sqrt(n), "n": n}[scale]
    return jnp.asarray(matrix, dtypes.canonical(dtypes.complex128) if dtype is None else dtype)


def hadamard(n: int, dtype: Any = int) -> Array:
    """Sylvester's Hadamard matrix; ``n`` is a power of two.

    >>> jax.scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    matrix = np.ones((1, 1), np.int64)
    while matrix.shape[0] < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return jnp.asarray(matrix, dtype)


def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix; without its first row unless ``full``.

    >>> jax.scipy.linalg.helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    matrix = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    index = np.arange(n)
    matrix[0] = 1
    norms = index * (index + 1)
    norms[0] = n
    matrix = matrix / np.sqrt(norms)[:, None]
    return _float(matrix if full else matrix[1:])


def hilbert(n: int) -> Array:
    """The Hilbert matrix, with entries ``1 / (i + j + 1)``.

    >>> jax.scipy.linalg.hilbert(2)[0]
    Array([1. , 0.5], dtype=float32)
    """
    index = np.arange(n)
    return _float(1.0 / (index[:, None] + index + 1))


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix.

    >>> jax.scipy.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    return _float(scipy_linalg.invhilbert(max(n, 0)))


def pascal(n: int, kind: str | None = None) -> Array:
    """The Pascal matrix of binomials: symmetric by default, or "lower" or "upper".

    >>> jax.scipy.linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    if kind is None:
        kind = "symmetric"
    if kind not in ("symmetric", "lower", "upper"):
        raise ValueError("Expected kind to be on of: ['symmetric', 'lower', 'upper']; "
                         f"got {kind}")
    return jnp.asarray(scipy_linalg.pascal(max(n, 0), kind=kind, exact=True), dtypes.float32)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of the Pascal matrix.

    >>> jax.scipy.linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    if kind is None:
        kind = "symmetric"
    if kind not in ("symmetric", "lower", "upper"):
        raise ValueError("Expected kind to be one of: ['symmetric', 'lower', 'upper']; "
                         f"got {kind}")
    return _float(scipy_linalg.invpascal(max(n, 0), kind=kind, exact=True))
