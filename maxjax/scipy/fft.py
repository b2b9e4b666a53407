"""jax.scipy.fft: cosine transforms."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array
from maxjax.lax._operands import canonical_axis
from maxjax.numpy._promotion import promote_inexact

explain_missing_names(__name__)


def _prepared(name: str, x: Any, type: int, sizes: Any, axes: Any, norm: Any) -> tuple[Any, Any]:
    if type != 2:
        raise NotImplementedError("Only DCT type 2 is implemented.")
    if norm is not None and norm not in ("backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: norm={norm!r} is not implemented")
    x, = promote_inexact(name, x)
    x = jnp.asarray(x)
    if x.dtype == dtypes.float16:
        x = x.astype(np.float32)
    axes = [canonical_axis(axis, x.ndim) for axis in axes]
    for axis, size in zip(axes, sizes or ()):
        if size is None:
            continue
        if size < 0:
            raise ValueError(f"jax.scipy.fft.{name}: the length {size} is negative.")
        have = x.shape[axis]
        if size <= have:
            x = x[(slice(None),) * axis + (slice(0, size),)]
        else:
            x = jnp.pad(x, [(0, size - have if i == axis else 0) for i in range(x.ndim)])
    if any(not x.shape[axis] for axis in axes):
        raise TypeError(f"jax.scipy.fft.{name}: the length of the transform must be positive, got "
                        f"an array of shape {x.shape} and axes {tuple(axes)}.")
    return x, axes


def _along(values: Any, axis: int, rank: int) -> Any:
    return values.reshape([-1 if i == axis else 1 for i in range(rank)])


def _dct(x: Any, axis: int, norm: Any) -> Any:
    """2 sum x_n cos(pi k (2n + 1) / 2N): the FFT of the even elements, then the odd ones reversed,
    rotated by half a step."""
    n = x.shape[axis]
    order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
    spectrum = jnp.fft.fft(jnp.take(x, order, axis=axis), axis=axis)
    turn = np.exp(-0.5j * np.pi * np.arange(n) / n).astype(spectrum.dtype)
    result = 2 * (spectrum * _along(turn, axis, x.ndim)).real
    if norm == "ortho":
        scale = np.full(n, 1 / math.sqrt(2 * n))
        scale[:1] = 1 / math.sqrt(4 * n)
        result = result * _along(scale.astype(result.dtype), axis, x.ndim)
    return result.astype(x.dtype)


def _idct(x: Any, axis: int, norm: Any) -> Any:
    n = x.shape[axis]
    scale = np.full(n, 1 / (2 * n))
    if norm == "ortho":
        scale = np.full(n, math.sqrt(2 * n) / (2 * n))
        scale[:1] = math.sqrt(4 * n) / (2 * n)
    x = x * _along((2 * scale).astype(x.dtype), axis, x.ndim)
    # x_n = sum' c_k cos(pi k (2n + 1) / 2N), the first term halved: the conjugate rotation, and the
    # inverse.
    halves = np.ones(n)
    halves[:1] = 0.5
    turn = (halves * np.exp(0.5j * np.pi * np.arange(n) / n)).astype(
        dtypes.complex128 if x.dtype == dtypes.float64 else dtypes.complex64)
    turned = x.astype(turn.dtype) * _along(turn, axis, x.ndim)
    values = (jnp.fft.ifft(turned, axis=axis) * n).real
    # values[m] are the elements 0, 2, 4 ... and then the odd ones in reverse.
    order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
    return jnp.take(values, np.argsort(order), axis=axis).astype(x.dtype)


def _along_axes(transform: Callable[..., Any], x: Any, axes: Sequence[int], norm: Any) -> Any:
    """A transform of reals along axes; of complex numbers, part by part."""
    if dtypes.is_complex(x.dtype):
        return lax.complex(_along_axes(transform, x.real, axes, norm),
                           _along_axes(transform, x.imag, axes, norm))
    for axis in axes:
        x = transform(x, axis, norm)
    return x


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1,
        norm: str | None = None) -> Array:
    """The cosine transform of type 2 along an axis.

    Args:
      n: the length: ``x`` is cropped or padded with zeros.
      norm: None or "backward"; "ortho" makes it orthogonal.

    Raises:
      NotImplementedError: ``type`` is not 2.

    >>> jax.scipy.fft.dct(jnp.array([1., 1.]))
    Array([4., 0.], dtype=float32)
    """
    return _along_axes(_dct, *_prepared("dct", x, type, (n,), (axis,), norm), norm)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1,
         norm: str | None = None) -> Array:
    """The inverse of ``dct``.

    >>> jax.scipy.fft.idct(jnp.array([4., 0.]))
    Array([1., 1.], dtype=float32)
    """
    return _along_axes(_idct, *_prepared("idct", x, type, (n,), (axis,), norm), norm)


def _lengths(s: Any) -> Any:
    """One length is that along the first of the axes, or the last one of the array."""
    return s if s is None or np.ndim(s) else [operator.index(s)]


def _axes(x: Any, s: Any, axes: Any) -> Any:
    rank = jnp.ndim(x)
    if axes is not None:
        axes = tuple(canonical_axis(axis, rank) for axis in (axes if np.ndim(axes) else (axes,)))
        if len(set(axes)) < len(axes):
            raise ValueError(f"repeated axis: {axes}")
    if s is not None and len(s) > rank:
        raise ValueError(f"s must have at most x.ndim ({rank}) elements, got {len(s)}")
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    return list(axes)


def dctn(x: Any, type: int = 2, s: Sequence[int] | None = None,
         axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """``dct`` along several axes, all by default.

    >>> jax.scipy.fft.dctn(jnp.ones((1, 2)))
    Array([[8., 0.]], dtype=float32)
    """
    s = _lengths(s)
    return _along_axes(_dct, *_prepared("dctn", x, type, s, _axes(x, s, axes), norm), norm)


def idctn(x: Any, type: int = 2, s: Sequence[int] | None = None,
          axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of ``dctn``.

    >>> jax.scipy.fft.idctn(jnp.array([[8., 0.]]))
    Array([[1., 1.]], dtype=float32)
    """
    s = _lengths(s)
    return _along_axes(_idct, *_prepared("idctn", x, type, s, _axes(x, s, axes), norm), norm)
