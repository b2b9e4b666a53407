"""The discrete Fourier transform of jax.lax."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax._primitives import fft as primitives
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.fft import FftType, fft_p
from maxjax.lax._operands import operand as as_operand

__all__ = ["FftType", "fft", "fft_p"]

_NAMES = {name: kind for kind in FftType for name in (kind.name, kind.name.lower())}


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last ``len(fft_lengths)`` dimensions.

    Args:
      x: shape ``(..., *fft_lengths)``, of which the last is ``fft_lengths[-1] // 2 + 1`` for
        IRFFT. Integers and narrow floats become complex64; RFFT takes only real numbers.
      fft_type: an ``FftType`` or its name. IFFT and IRFFT divide by the number of elements.
      fft_lengths: a tuple of sizes of the real (untransformed) dimensions.

    Returns:
      An array of the shape of ``x``; its last size is ``fft_lengths[-1] // 2 + 1`` for RFFT,
      ``fft_lengths[-1]`` for IRFFT, which returns real numbers.

    Raises:
      ValueError: shapes and lengths do not fit, or the type is unknown.

    >>> import maxjax.numpy as jnp
    >>> from maxjax import lax
    >>> lax.fft(jnp.array([1., 2., 3., 4.]), "RFFT", (4,))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        if fft_type not in _NAMES:
            raise ValueError(f"Unknown FFT type '{fft_type}'")
        fft_type = _NAMES[fft_type]
    elif not isinstance(fft_type, FftType):
        raise TypeError(f"Unknown FFT type value '{fft_type}'")
    if not isinstance(fft_lengths, tuple):
        raise ValueError("Non-hashable static arguments are not supported: lax.fft takes the "
                         f"lengths as a tuple, got {fft_lengths!r}")
    return _fft(as_operand(x, "fft"), fft_type=fft_type,
                fft_lengths=tuple(map(operator.index, fft_lengths)))


@named("fft", "fft_type", "fft_lengths")
def _fft(operand: Array, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Array:
    lengths = fft_lengths
    if fft_type == FftType.RFFT:
        if dtypes.is_complex(operand.dtype):
            raise ValueError("only real valued inputs supported for rfft")
        operand = _as_inexact(operand)
    else:
        operand = convert_element_type(operand, dtypes.complex_dtype(_as_inexact(operand).dtype))
    if not lengths:
        return operand
    _check(operand, fft_type, lengths)
    return primitives.fft(operand, fft_type, lengths)


def _as_inexact(x: Array) -> Array:
    if dtypes.is_inexact(x.dtype):
        return convert_element_type(x, x.dtype)
    wide = dtypes.float64 if x.dtype.itemsize == 8 else dtypes.float32
    return convert_element_type(x, dtypes.canonical(wide))


def _check(x: Array, fft_type: FftType, lengths: tuple[int, ...]) -> None:
    rank = len(lengths)
    if rank > x.ndim:
        raise ValueError(f"FFT input shape {x.shape} must have at least as many input dimensions "
                         f"as fft_lengths {lengths}.")
    if fft_type == FftType.IRFFT:
        if x.shape[-rank:-1] != lengths[:-1]:
            raise ValueError(f"IRFFT input shape {x.shape} minor dimensions must be equal to all "
                             f"except the last fft_length, got fft_lengths={lengths}")
        if x.shape[-1] != (lengths[-1] // 2 + 1 if lengths[-1] else x.shape[-1]):
            raise ValueError(f"IRFFT input shape {x.shape} must end in fft_lengths[-1] // 2 + 1, "
                             f"got fft_lengths={lengths}")
        return
    name = "FFT"
    if fft_type == FftType.RFFT:
        name = "RFFT"
        if x.dtype not in (dtypes.float32, dtypes.float64):
            raise ValueError(f"RFFT input must be float32 or float64, got {x.dtype.name}")
        if not lengths[-1]:
            raise ValueError("RFFT of no elements is not defined")
    if x.shape[-rank:] != lengths:
        raise ValueError(f"{name} input shape {x.shape} minor dimensions must be equal to "
                         f"fft_lengths {lengths}")
