"""jax.scipy.signal: convolutions and trends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array
from maxjax._primitives.convert import convert_element_type
from maxjax.lax._operands import canonical_axis
from maxjax.numpy._promotion import check_arraylike, promote_inexact
from maxjax.scipy._spectral import csd as csd
from maxjax.scipy._spectral import istft as istft
from maxjax.scipy._spectral import stft as stft
from maxjax.scipy._spectral import welch as welch

explain_missing_names(__name__)


def _direct(x: Any, y: Any, mode: str, precision: Any) -> Any:
    """The convolution of arrays of any rank, with lax."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of ['full', 'same', 'valid'], got {mode!r}")
    x, y = (jnp.asarray(v) for v in promote_inexact("convolve", x, y))
    if x.ndim != y.ndim:
        raise ValueError("in1 and in2 must have the same number of dimensions")
    if x.size == 0 or y.size == 0:
        raise ValueError("zero-size arrays not supported in convolutions, got shapes "
                         f"{x.shape} and {y.shape}.")
    if any(a < b for a, b in zip(x.shape, y.shape)):
        if any(a > b for a, b in zip(x.shape, y.shape)):
            raise ValueError("One input must be smaller than the other in every dimension.")
        if mode == "valid":
            x, y = y, x
    sizes = y.shape
    padding = {"valid": [(0, 0) for n in sizes],
               "same": [(n // 2, n - n // 2 - 1) for n in sizes],
               "full": [(n - 1, n - 1) for n in sizes]}[mode]
    kernel = jnp.flip(y)
    out = lax.conv_general_dilated(x[None, None], kernel[None, None], (1,) * x.ndim, padding,
                                   precision=precision)
    return out[0, 0]


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto",
             precision: Any = None) -> Array:
    """The convolution of arrays of one rank.

    Args:
      mode: "full", "same" (the size of ``in1``) or "valid".
      method: "auto" and "direct": by summation; "fft": by Fourier transforms.
      precision: of the products.

    >>> jax.scipy.signal.convolve(jnp.array([1., 2.]), jnp.array([1., 3.]))
    Array([1., 5., 6.], dtype=float32)
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode=mode)
    if method not in ("direct", "auto"):
        raise ValueError(f"Got {method=}; expected 'auto', 'fft', or 'direct'.")
    return _direct(in1, in2, mode, precision)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto",
              precision: Any = None) -> Array:
    """The cross-correlation: the convolution with ``in2`` reversed and conjugated.

    >>> jax.scipy.signal.correlate(jnp.array([1., 2.]), jnp.array([1., 3.]))
    Array([3., 7., 2.], dtype=float32)
    """
    check_arraylike("correlate", in1, in2)
    return convolve(in1, jnp.flip(jnp.conj(jnp.asarray(in2))), mode, method, precision)


def _two_dimensional(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill",
               fillvalue: float = 0, precision: Any = None) -> Array:
    """The convolution of matrices; see ``convolve``.

    >>> jax.scipy.signal.convolve2d(jnp.ones((1, 2)), jnp.ones((1, 2)))
    Array([[1., 2., 1.]], dtype=float32)
    """
    _two_dimensional("convolve2d", in1, in2, boundary, fillvalue)
    return _direct(in1, in2, mode, precision)


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill",
                fillvalue: float = 0, precision: Any = None) -> Array:
    """The cross-correlation of matrices; see ``correlate``.

    In mode "same", for an even size of ``in2`` the centre is one further than for ``correlate``, as
    in SciPy.

    >>> jax.scipy.signal.correlate2d(jnp.ones((1, 2)), jnp.ones((1, 2)))
    Array([[1., 2., 1.]], dtype=float32)
    """
    _two_dimensional("correlate2d", in1, in2, boundary, fillvalue)
    if mode != "same":
        return correlate(in1, in2, mode, "direct", precision)
    whole = correlate(in1, in2, "full", "direct", precision)
    first = [size // 2 for size in np.shape(in2)]
    return whole[tuple(slice(start, start + size)
                       for start, size in zip(first, np.shape(in1), strict=True))]


def fftconvolve(in1: Any, in2: Any, mode: str = "full",
                axes: int | Sequence[int] | None = None) -> Array:
    """The convolution along axes, by Fourier transforms.

    >>> jax.scipy.signal.fftconvolve(jnp.array([1., 2.]), jnp.array([1., 3.])).round(4)
    Array([1., 5., 6.], dtype=float32)
    """
    check_arraylike("fftconvolve", in1, in2)
    x, y = (jnp.asarray(v) for v in promote_inexact("fftconvolve", in1, in2))
    if x.ndim != y.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if mode not in ("full", "same", "valid"):
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    chosen = list(range(x.ndim)) if axes is None else [
        canonical_axis(axis, x.ndim) for axis in ([axes] if isinstance(axes, int) else axes)]
    if any(x.shape[i] != y.shape[i] for i in range(x.ndim) if i not in chosen):
        raise ValueError("mapped axes must have same shape; got in1.shape="
                         f"{x.shape} in2.shape={y.shape} axes={tuple(chosen)}")
    if mode == "valid" and any(x.shape[a] < y.shape[a] for a in chosen):
        if any(x.shape[a] > y.shape[a] for a in chosen):
            raise ValueError("For 'valid' mode, One input must be at least as large as the other "
                             "in every dimension.")
        x, y = y, x
    full = [x.shape[a] + y.shape[a] - 1 for a in chosen]
    if not chosen:
        return x * y
    if dtypes.is_complex(x.dtype):
        out = jnp.fft.ifftn(jnp.fft.fftn(x, full, chosen) * jnp.fft.fftn(y, full, chosen),
                            full, chosen)
    else:
        out = jnp.fft.irfftn(jnp.fft.rfftn(x, full, chosen) * jnp.fft.rfftn(y, full, chosen),
                             full, chosen)
    if mode != "full":
        for axis, have in zip(chosen, full):
            want = x.shape[axis] if mode == "same" else x.shape[axis] - y.shape[axis] + 1
            start = (have - want) // 2
            out = lax.slice_in_dim(out, start, start + want, axis=axis)
    return out.astype(x.dtype)


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0,
            overwrite_data: None = None) -> Array:
    """Removes a trend from data along an axis.

    Args:
      type: "constant": the mean; "linear": the least-squares line.
      bp: breakpoints of the trend, for "linear".

    >>> jax.scipy.signal.detrend(jnp.array([1., 3.]), type="constant")
    Array([-1.,  1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    data, = promote_inexact("detrend", jnp.asarray(data))
    if type == "constant":
        return data - data.mean(axis, keepdims=True)
    size = data.shape[axis]
    breaks = np.unique(np.array([0, *np.atleast_1d(np.asarray(bp)), size]).astype(int))
    if np.any(breaks > size):
        raise ValueError("Breakpoints must be non-negative and less than length of data along "
                         "given axis.")
    data = jnp.moveaxis(data, axis, 0)
    parts = []
    for start, stop in zip(breaks[:-1], breaks[1:]):
        part = data[start:stop]
        count = stop - start
        line = np.stack([np.ones(count), np.arange(1, count + 1) / count], axis=1)
        flat = part.reshape(count, -1)
        fit = jnp.asarray(line @ np.linalg.pinv(line), data.dtype)
        parts.append((flat - fit @ flat).reshape(part.shape))
    result = jnp.moveaxis(jnp.concatenate(parts), 0, axis)
    return convert_element_type(result, result.dtype, data.weak_type)
