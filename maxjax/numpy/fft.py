"""jax.numpy.fft: discrete Fourier transforms of one or several axes.

All of them take ``norm``: "backward" (the default) divides inverse transforms by the number of
elements, "forward" divides the others, "ortho" both, by its root. They are linear, and have
derivatives of every order. SciPy computes them, in the precision of the argument.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import least
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.fft import FftType
from maxjax.lax import _fft as lax_fft
from maxjax.lax._operands import canonical_axis
from maxjax.numpy import _complex as complex_parts
from maxjax.numpy import _creation as creation
from maxjax.numpy import _padding as padding
from maxjax.numpy import _placement as placement
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _repeating as repeating
from maxjax.numpy import _shape as shapes
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import as_array, inexact_dtype

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]


# --- one, two and all axes ------------------------------------------------------------------------

def _transform(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    """``kind`` over ``axes`` (None: the last ``len(s)``, or all), cropped or padded to ``s``."""
    full_name = f"jax.numpy.fft.{name}"
    x = as_array(a, full_name)
    if s is not None:
        s = tuple(map(operator.index, s))
        if any(size <= 0 for size in s):
            raise ValueError("Shape should be positive.")
        if axes is not None and len(s) != len(axes):
            raise ValueError("Shape and axes have different lengths.")
    moved = axes
    count = x.ndim if axes is None and s is None else len(s if axes is None else axes)
    if axes is not None and len(set(axes)) != count:
        raise ValueError(f"{full_name} does not support repeated axes. Got axes {axes}.")
    if axes is None and count > x.ndim:
        raise ValueError(f"FFT input shape {x.shape} must have at least as many input dimensions "
                         f"as fft_lengths {s}.")
    last = tuple(range(x.ndim - count, x.ndim))
    if moved is not None:
        moved = tuple([canonical_axis(axis, x.ndim) for axis in moved])
        if len(set(moved)) != count:
            raise TypeError(f"{full_name} does not support repeated axes. Got axes {axes}.")
        x = shapes.moveaxis(x, moved, last)
    if s is None:
        lengths = x.shape[x.ndim - count:]
        if kind == FftType.IRFFT and count:
            lengths = (*lengths[:-1], max(0, 2 * (lengths[-1] - 1)))
    else:
        lengths = s
        x = _resized(x, (*s[:-1], s[-1] // 2 + 1) if kind == FftType.IRFFT and s else s)
    result = lax_fft.fft(x, kind, lengths)
    if norm is not None:
        scale = _scale(name, norm, lengths)
        result = result if scale == 1 else result * scale
    return result if moved is None else shapes.moveaxis(result, last, moved)


def _resized(x: Array, sizes: tuple[int, ...]) -> Array:
    """Crops or pads with zeros the last axes of ``x``."""
    lead = x.ndim - len(sizes)
    wanted = (*x.shape[:lead], *sizes)
    if any(want != have and least(want - have) < 0
           for want, have in zip(wanted, x.shape, strict=True)):
        x = x[tuple(slice(size) for size in wanted)]
    if x.shape != wanted:
        x = padding.pad(x, [(0, want - have) for want, have in zip(wanted, x.shape, strict=True)])
    return x


def _scale(name: str, norm: Any, lengths: Sequence[int]) -> float:
    """The factor for a transform that is normalised backward."""
    if norm == "backward":
        return 1
    if norm not in ("ortho", "forward"):
        raise ValueError(
            f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    count: float = math.prod(lengths)
    if norm == "ortho":
        count = math.sqrt(count)
    if name.startswith("i"):      # also ihfft, as in JAX
        return count
    return 1 / count if count else math.inf


def _one_axis(name: str, kind: FftType, a: Any, n: Any, axis: Any, norm: Any) -> Array:
    _check_axis(name, axis)
    return _transform(name, kind, a, None if n is None else [n],
                      None if axis is None else [axis], norm)


def _check_axis(name: str, axis: Any) -> None:
    if isinstance(axis, (list, tuple)):
        full_name = f"jax.numpy.fft.{name}"
        raise ValueError(f"{full_name} does not support multiple axes. Please use {full_name}n. "
                         f"Got axis = {axis!r}.")


def _two_axes(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    if len(axes) != 2:
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
    return _transform(name, kind, a, s, axes, norm)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along an axis: ``sum_j a_j exp(-2 pi i j k / n)`` for all k.

    Args:
      a: real or complex numbers; float32 and narrower give complex64.
      n: the axis is cropped or padded with zeros to this size first.
      axis: along which.
      norm: "backward", "ortho" or "forward"; see the module.

    Returns:
      An array of complex numbers, of size ``n`` along the axis.

    Raises:
      ValueError: ``n`` is not positive, or ``axis`` is out of bounds.

    See also: ``fft.ifft``, ``fft.rfft``, ``fft.fft2``, ``fft.fftn``, ``fft.fftfreq``.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.fft(jnp.array([1., 2., 3., 4.]))
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    >>> jnp.fft.fft(jnp.ones(2), n=4)
    Array([2.+0.j, 1.-1.j, 0.+0.j, 1.+1.j], dtype=complex64)
    """
    return _one_axis("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``fft`` along an axis; divides by its size.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.ifft(jnp.array([10, -2 + 2j, -2, -2 - 2j]))
    Array([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j], dtype=complex64)
    """
    return _one_axis("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first ``n // 2 + 1`` entries of ``fft`` of real numbers; the rest are their conjugates.

    Args:
      a: real numbers.
      n: the axis is cropped or padded with zeros to this size first.
      axis: along which.
      norm: "backward", "ortho" or "forward"; see the module.

    Returns:
      An array of complex numbers, of size ``n // 2 + 1`` along the axis.

    Raises:
      ValueError: ``a`` is complex, or narrower than float32.

    See also: ``fft.irfft``, ``fft.fft``, ``fft.rfftfreq``.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.rfft(jnp.array([1., 2., 3., 4.]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _one_axis("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``rfft``: ``n`` real numbers, by default ``2 (size - 1)``.

    The imaginary parts of the first entry, and of the last where ``n`` is even, are ignored.

    Args:
      a: complex numbers, the first half of a spectrum.
      n: the size of the result; None: ``2 (size - 1)``.
      axis: along which.
      norm: "backward", "ortho" or "forward"; see the module.

    Returns:
      An array of real floats, of size ``n`` along the axis.

    Raises:
      ValueError: ``n`` is not positive, or ``axis`` is out of bounds.

    See also: ``fft.rfft``, ``fft.ifft``, ``fft.hfft``.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.irfft(jnp.array([10, -2 + 2j, -2]))
    Array([1., 2., 3., 4.], dtype=float32)
    >>> jnp.fft.irfft(jnp.array([6, -1.5]), n=3).shape
    (3,)
    """
    return _one_axis("irfft", FftType.IRFFT, a, n, axis, norm)


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """``fft`` of a signal with ``a[-j] = conj(a[j])``, given by its first half: real numbers.

    Args:
      n: the size of the result, by default ``2 (size - 1)``.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.hfft(jnp.array([2., 1 + 1j, 0.]))
    Array([4., 4., 0., 0.], dtype=float32)
    """
    mirrored = complex_parts.conj(a)
    _check_axis("hfft", axis)
    size = (mirrored.shape[axis] - 1) * 2 if n is None else n
    return _one_axis("hfft", FftType.IRFFT, mirrored, n, axis, norm) * size


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``hfft``: the first half of a signal, from real numbers.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.ihfft(jnp.array([4., 4., 0., 0.]))
    Array([2.+0.j, 1.+1.j, 0.+0.j], dtype=complex64)
    """
    x = creation.asarray(a)
    _check_axis("ihfft", axis)
    size = x.shape[axis] if n is None else n
    return complex_parts.conj(_one_axis("ihfft", FftType.RFFT, x, n, axis, norm)) * (1 / size)


def fft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
         norm: str | None = None) -> Array:
    """``fftn`` over two axes.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.fft2(jnp.array([[1., 2.], [3., 4.]]))
    Array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _two_axes("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """``ifftn`` over two axes.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.ifft2(jnp.array([[10, -2], [-4, 0]]))
    Array([[1.+0.j, 2.+0.j],
           [3.+0.j, 4.+0.j]], dtype=complex64)
    """
    return _two_axes("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """``rfftn`` over two axes.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.rfft2(jnp.ones((2, 4)))
    Array([[8.+0.j, 0.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _two_axes("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
           norm: str | None = None) -> Array:
    """``irfftn`` over two axes.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.irfft2(jnp.array([[8., 0., 0.], [0., 0., 0.]]))
    Array([[1., 1., 1., 1.],
           [1., 1., 1., 1.]], dtype=float32)
    """
    return _two_axes("irfft2", FftType.IRFFT, a, s, axes, norm)


def fftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: str | None = None) -> Array:
    """The discrete Fourier transform over several axes.

    Args:
      s: the sizes to which the axes are first cropped or padded with zeros.
      axes: by default the last ``len(s)``, or all.

    Raises:
      ValueError: a size is not positive, an axis is repeated or out of bounds, or ``s`` and
        ``axes`` differ in length.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.fftn(jnp.array([[1., 2.], [3., 4.]]), axes=(0,))
    Array([[ 4.+0.j,  6.+0.j],
           [-2.+0.j, -2.+0.j]], dtype=complex64)
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:
    """The inverse of ``fftn``; divides by the number of elements.

    >>> import maxjax.numpy as jnp
    >>> x = jnp.arange(8.).reshape(2, 2, 2)
    >>> bool(jnp.allclose(jnp.fft.ifftn(jnp.fft.fftn(x)), x))
    True
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:
    """``fftn`` of real numbers, with the first half of the last of the axes.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.rfftn(jnp.ones((2, 3, 4))).shape
    (2, 3, 3)
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
           norm: str | None = None) -> Array:
    """The inverse of ``rfftn``; ``s`` contains the sizes of the result.

    >>> import maxjax.numpy as jnp
    >>> x = jnp.arange(6.).reshape(2, 3)
    >>> bool(jnp.allclose(jnp.fft.irfftn(jnp.fft.rfftn(x), s=x.shape), x, atol=1e-6))
    True
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


# --- frequencies ----------------------------------------------------------------------------------

def _check_frequencies(name: str, n: Any, d: Any) -> None:
    full_name = f"jax.numpy.fft.{name}"
    if isinstance(n, (list, tuple)):
        raise ValueError(f"The n argument of {full_name} only takes an int. Got n = {list(n)}.")
    if isinstance(d, (list, tuple)):
        raise ValueError(
            f"The d argument of {full_name} only takes a single value. Got d = {list(d)}.")


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of the entries of ``fft`` of ``n`` samples at distance ``d``.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    _check_frequencies("fftfreq", n, d)
    wanted = dtypes.canonical(dtypes.as_dtype(float if dtype is None else dtype))
    real = dtypes.real_dtype(inexact_dtype(wanted))
    steps = ranges.arange(n, dtype=real)
    steps = (steps + n // 2) % n - n // 2
    result = steps / creation.array(_period(d, n), dtype=real)
    placement.check_device(d, result, device)
    return placement.on_device(result.astype(wanted), device)


def _period(d: Any, n: int) -> Any:
    return np.asarray(d) * n if isinstance(d, np.ndarray) else d * n


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of the entries of ``rfft`` of ``n`` samples at distance ``d``.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.rfftfreq(5)
    Array([0. , 0.2, 0.4], dtype=float32)
    """
    _check_frequencies("rfftfreq", n, d)
    wanted = dtypes.canonical(dtypes.as_dtype(float if dtype is None else dtype))
    steps = ranges.arange(0, n // 2 + 1, dtype=wanted)
    result = steps / creation.array(_period(d, n), dtype=wanted)
    placement.check_device(d, result, device)
    return placement.on_device(result, device)


# --- shifts ---------------------------------------------------------------------------------------

def _halves(x: Array, axes: Any) -> tuple[Any, Any]:
    """The axes, and half of the size of each."""
    if axes is None:
        return tuple(range(x.ndim)), [size // 2 for size in x.shape]
    if isinstance(axes, (int, np.integer)):
        return axes, x.shape[axes] // 2
    return axes, [x.shape[axis] // 2 for axis in axes]


@at_once
def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Array:
    """Shifts the zero frequency to the middle of the axes, by default of all.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.fftshift(jnp.fft.fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    x = as_array(x, "fftshift")
    axes, half = _halves(x, axes)
    return repeating.roll(x, half, axes)


@at_once
def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Array:
    """Undoes ``fftshift``; the two differ for odd sizes.

    >>> import maxjax.numpy as jnp
    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    x = as_array(x, "ifftshift")
    axes, half = _halves(x, axes)
    return repeating.roll(x, -half if isinstance(half, int) else [-h for h in half], axes)
