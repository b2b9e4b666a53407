"""Spectra of windowed signals, for ``jax.scipy.signal``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.lazy import scipy_signal
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import check_arraylike, promote_inexact

# --- windows --------------------------------------------------------------------------------------

def _window(window: Any, nperseg: int | None, length: int, name: str) -> tuple[Any, int]:
    """The window's values and its length.

    Raises:
      ValueError: they are inconsistent with each other, or with the signal.
    """
    if nperseg is not None and nperseg < 1:
        raise ValueError(f"nperseg must be a positive integer, got {nperseg}")
    if isinstance(window, (str, tuple)):
        size = length if nperseg is None else int(nperseg)
        if size > length:
            warnings.warn(f"nperseg={size} is greater than input_length={length}, using "
                          f"nperseg={length}", stacklevel=4)
            size = length
        return jnp.asarray(scipy_signal.get_window(window, size)), size
    window = jnp.asarray(window)
    if window.ndim != 1:
        raise ValueError("window must be 1-D")
    size = window.shape[0]
    if size > length:
        raise ValueError("window is longer than input signal")
    if nperseg is not None and nperseg != size:
        raise ValueError("value specified for nperseg is different from length of window")
    return window, size


def _overlap(noverlap: int | None, nperseg: int) -> int:
    if noverlap is None:
        return nperseg // 2
    if noverlap >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    return int(noverlap)


def _transform_size(nfft: int | None, nperseg: int) -> int:
    if nfft is None:
        return nperseg
    if nfft < nperseg:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    return int(nfft)


# --- parts ----------------------------------------------------------------------------------------

def _segments(x: Any, nperseg: int, step: int) -> Any:
    """(..., segments, nperseg) of (..., n)."""
    count = (x.shape[-1] - nperseg) // step + 1
    return x[..., np.arange(count)[:, None] * step + np.arange(nperseg)]


def _extended(x: Any, boundary: Any, width: int) -> Any:
    if boundary is None or not width:
        return x
    pads = [(0, 0)] * (x.ndim - 1) + [(width, width)]
    if boundary == "zeros":
        return jnp.pad(x, pads)
    if boundary == "constant":
        return jnp.pad(x, pads, mode="edge")
    return jnp.pad(x, pads, mode="reflect", reflect_type=boundary)


def _detrended(x: Any, kind: Any) -> Any:
    """Segments minus their mean, or minus the best-fitting line."""
    if kind is False:
        return x
    if callable(kind):
        return kind(x)
    if kind not in ("constant", "linear"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    x = x - jnp.mean(x, -1, keepdims=True)
    if kind == "linear":
        size = x.shape[-1]
        t = np.arange(size) - (size - 1) / 2
        t = t.astype(x.dtype)[(None,) * (x.ndim - 1)]
        x = x - jnp.sum(x * t, -1, keepdims=True) / float((t * t).sum() or 1.0) * t
    return x


def _windowed(x: Any, values: Any) -> Any:
    """Each line of the last axis times the values of a window."""
    return x * values.astype(x.dtype)[(None,) * (x.ndim - 1)]


def _signals(name: str, x: Any, y: Any, axis: int) -> tuple[list[Array], tuple[int, ...]]:
    """One or two signals of equal length along their last axis, and their common shape.

    Raises:
      ValueError: there is no such axis, or the two are inconsistent.
    """
    same = y is None or y is x
    check_arraylike(name, x, x if same else y)
    x, *rest = (jnp.asarray(v) for v in promote_inexact(name, x, *(() if same else (y,))))
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {x.ndim}")
    x = jnp.moveaxis(x, axis, -1)
    if not rest:
        return [x], x.shape
    if rest[0].ndim != x.ndim:
        raise ValueError(f"two-arguments must have the same rank ({x.ndim} vs {rest[0].ndim}).")
    y = jnp.moveaxis(rest[0], axis, -1)
    try:
        outer = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    except ValueError:
        raise ValueError("x and y cannot be broadcast together.") from None
    shape = (*outer, min(x.shape[-1], y.shape[-1]))
    if x.size and y.size:
        longest = max(x.shape[-1], y.shape[-1])
        x, y = (_padded(v, 0, longest - v.shape[-1]) for v in (x, y))
    return [x, y], shape


def _padded(x: Array, before: int, after: int) -> Array:
    """The array padded with zeros at the ends of its last axis."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)])


def _spectra(name: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any,
             nfft: Any, detrend: Any, return_onesided: bool, scaling: str, axis: int,
             psd: bool, boundary: Any, padded: bool) -> tuple[Array, Array, Array]:
    """Frequencies, times and the spectrum of each segment: (..., frequencies, segments)."""
    if boundary not in ("even", "odd", "constant", "zeros", None):
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: "
                         "['even', 'odd', 'constant', 'zeros', None]")
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling!r}")
    signals, shape = _signals(name, x, y, axis)
    if not all(signal.size for signal in signals):
        empty = jnp.zeros(np.moveaxis(np.empty(shape), -1, axis).shape)
        return empty, empty, empty
    dtype = signals[0].dtype
    values, nperseg = _window(window, nperseg, np.shape(x)[axis], name)
    nfft = _transform_size(nfft, nperseg)
    step = nperseg - _overlap(noverlap, nperseg)
    real = dtypes.finfo(dtype).dtype
    values = values.astype(real)
    if boundary is not None:
        signals = [_extended(v, boundary, nperseg // 2) for v in signals]
    if padded:
        extra = -(signals[0].shape[-1] - nperseg) % step % nperseg
        signals = [_padded(v, 0, extra) for v in signals]
    length = signals[0].shape[-1]
    onesided = return_onesided and not dtypes.is_complex(dtype)
    if onesided != return_onesided:
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=3)
    transform = jnp.fft.rfft if onesided else jnp.fft.fft
    spectra = [transform(_windowed(_detrended(_segments(v, nperseg, step), detrend), values),
                         n=nfft)
               for v in signals]
    weight = fs * jnp.sum(values * values) if scaling == "density" else jnp.sum(values) ** 2
    if psd:
        result = _power(spectra, weight, onesided, nfft)
    else:
        result = spectra[0] / jnp.sqrt(weight).astype(spectra[0].dtype)
    frequencies = (jnp.fft.rfftfreq if onesided else jnp.fft.fftfreq)(nfft, 1 / fs)
    times = np.arange(nperseg / 2, length - nperseg / 2 + 1, step)
    if boundary is not None:
        times = times - nperseg / 2
    # (..., segments, frequencies): the frequencies replace the signal's axis.
    if axis < 0:
        axis -= 1
    return (frequencies.astype(real), jnp.asarray(times).astype(real) / fs,
            jnp.moveaxis(jnp.swapaxes(result, -1, -2), -2, axis))


def _power(spectra: list[Array], weight: Any, onesided: bool, nfft: int) -> Array:
    """The power spectrum of one signal, or the cross spectrum of two."""
    power = jnp.conj(spectra[0]) * spectra[-1]
    power = power / weight.astype(power.dtype)
    if not onesided:
        return power
    # All except zero and the highest of an even number also represent their negatives.
    return power.at[..., 1:-1 if nfft % 2 == 0 else None].multiply(2)


# --- the functions --------------------------------------------------------------------------------

def stft(x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int = 256,
         noverlap: int | None = None, nfft: int | None = None, detrend: Any = False,
         return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
         axis: int = -1) -> tuple[Array, Array, Array]:
    """The Fourier transforms of a signal's segments.

    Args:
      x: the signal, real or complex, along ``axis``.
      fs: its sampling rate.
      window: a name that ``scipy.signal.get_window`` knows, or an array.
      nperseg: samples per segment; None for all.
      noverlap: how many of them adjacent segments share; by default half.
      nfft: length of the transforms; segments are padded to it.
      detrend: "constant", "linear", a function of segments, or False.
      return_onesided: omit the negative frequencies of a real signal.
      boundary: how the signal is extended by half a segment at its ends: "zeros", "even", "odd",
        "constant", or None for no extension.
      padded: pad the last segment with zeros.

    Returns:
      Frequencies, times, and the transforms, with the frequencies at ``axis``, the segments last.

    Raises:
      ValueError: lengths or options are inconsistent.

    >>> x = jnp.sin(jnp.arange(32.0))
    >>> f, t, z = jax.scipy.signal.stft(x, nperseg=8)
    >>> z.shape, t[:3]
    ((5, 9), Array([0., 4., 8.], dtype=float32))
    """
    return _spectra("stft", x, None, fs, window, nperseg, noverlap, nfft, detrend,
                    return_onesided, "spectrum", axis, False, boundary, padded)


def csd(x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None,
        noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
        return_onesided: bool = True, scaling: str = "density", axis: int = -1,
        average: str = "mean") -> tuple[Array, Array]:
    """The cross spectral density of two signals, by Welch's method.

    Args:
      x, y: the signals; None for ``y`` means ``x``. The others are those of ``stft``, except that
        by default there is one segment, of the length of ``x``.
      scaling: "density", in units ** 2 / Hz, or "spectrum", in units ** 2.
      average: over segments, "mean" or "median".

    Returns:
      Frequencies and, at ``axis``, the density: complex, or real where ``y`` is None.

    Raises:
      ValueError: lengths or options are inconsistent.

    >>> x = jnp.sin(jnp.arange(32.0))
    >>> f, p = jax.scipy.signal.csd(x, x, nperseg=8)
    >>> p.shape, int(jnp.argmax(jnp.abs(p)))
    ((5,), 1)
    """
    frequencies, _, density = _spectra(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
        True, None, False)
    if density.ndim >= 2 and density.size:
        if average not in ("mean", "median"):
            raise ValueError(f"Got unexpected average={average!r}")
        if average == "median":
            count = density.shape[-1]
            # The ratio of the median to the mean, for squares of normal variates.
            odd = 2 * np.arange(1.0, (count - 1) // 2 + 1)
            bias = 1 + np.sum(1 / (odd + 1) - 1 / odd)
            middle = jnp.median(density.real, -1)
            if y is not None and y is not x:
                middle = middle + 1j * jnp.median(density.imag, -1)
            density = (middle / bias).astype(density.dtype)
        else:
            density = jnp.mean(density, -1)
    return frequencies, density.real if y is None else density


def welch(x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
          return_onesided: bool = True, scaling: str = "density", axis: int = -1,
          average: str = "mean") -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method: the real ``csd(x, x)``.

    Args: those of ``csd``.

    Returns:
      Frequencies and, at ``axis``, the density: real.

    >>> x = jnp.sin(jnp.arange(32.0))
    >>> f, p = jax.scipy.signal.welch(x, nperseg=8)
    >>> p.shape, p.dtype.name
    ((5,), 'float32')
    """
    frequencies, density = csd(x, None, fs, window, nperseg, noverlap, nfft, detrend,
                               return_onesided, scaling, axis, average)
    return frequencies, density


def istft(Zxx: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
          boundary: bool = True, time_axis: int = -1,
          freq_axis: int = -2) -> tuple[Array, Array]:
    """The signal whose ``stft`` is ``Zxx``.

    Args:
      Zxx: the transforms, of rank 2 or more. The others are those of ``stft``.
      boundary: remove the half segments that ``stft`` added at the ends.

    Returns:
      Times, one for each element of the signal's first axis, as in JAX; and the signal, real if
      ``input_onesided``.

    Raises:
      ValueError: lengths or axes are inconsistent.

    >>> x = jnp.sin(jnp.arange(32.0))
    >>> t, y = jax.scipy.signal.istft(jax.scipy.signal.stft(x, nperseg=8)[2], nperseg=8)
    >>> bool(jnp.allclose(x, y, atol=1e-5))
    True
    """
    check_arraylike("istft", Zxx)
    z = jnp.asarray(Zxx)
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    freq_axis, time_axis = (a + z.ndim if a < 0 else a for a in (freq_axis, time_axis))
    if freq_axis == time_axis:
        raise ValueError("Must specify differing time and frequency axes!")
    z = jnp.moveaxis(z, (freq_axis, time_axis), (-2, -1))
    z = z.astype(dtypes.complex128 if z.dtype in (dtypes.float64, dtypes.complex128)
                 else dtypes.complex64)
    count, lines = z.shape[-1], z.shape[-2]
    natural = 2 * (lines - 1) if input_onesided else lines
    if nperseg is not None and nperseg < 1:
        raise ValueError("nperseg must be a positive integer")
    nperseg = natural if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = nperseg if input_onesided and nperseg == natural + 1 else natural
    elif nfft < nperseg:
        raise ValueError(f"FFT length ({nfft}) must be longer than nperseg ({nperseg}).")
    step = nperseg - _overlap(noverlap, nperseg)
    values, _ = _window(window, nperseg, nperseg, "istft")
    values = values.astype(dtypes.finfo(z.dtype).dtype)
    inverse = jnp.fft.irfft if input_onesided else jnp.fft.ifft
    parts = inverse(jnp.swapaxes(z, -1, -2), n=nfft)[..., :nperseg]
    parts = _windowed(parts, values * jnp.sum(values))
    places = (np.arange(count)[:, None] * step + np.arange(nperseg)).reshape(-1)
    length = nperseg + (count - 1) * step
    flat = parts.reshape(*parts.shape[:-2], -1)
    signal = jnp.zeros((*flat.shape[:-1], length), flat.dtype).at[..., places].add(flat)
    norm = jnp.zeros(length, values.dtype).at[places].add(jnp.tile(values * values, count))
    if boundary:
        kept = slice(nperseg // 2, length - nperseg // 2)
        signal, norm = signal[..., kept], norm[kept]
    signal = _windowed(signal, 1 / jnp.where(norm > 1e-10, norm, 1.0))
    # The signal's axis: where the frequencies were, once the times are removed.
    if signal.ndim > 1:
        signal = jnp.moveaxis(signal, -1, freq_axis - (time_axis < freq_axis))
    # As in SciPy and JAX: one time for each element of the first axis, also in a batch.
    times = jnp.arange(signal.shape[0], dtype=jnp.result_type(float)) / fs
    return times.astype(values.dtype), signal
