"""Fourier transforms."""

from __future__ import annotations

import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)


def real(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


def pair(*shape, dtype=np.complex64):
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


def row(name, function, x, *args, **keywords):
    options = {key: keywords.pop(key) for key in ("x64", "vmappable") if key in keywords}
    return Case(name, lambda j, x: getattr(j.numpy.fft, function)(x, *args, **keywords), (x,),
                tolerance="iterative", signed_zeros=False, linear=True, smooth=False, **options)


CASES = [
    *(row(f"{name}-{n}", name, pair(2, n)) for name in ("fft", "ifft", "irfft", "hfft")
      for n in (5, 8)),
    *(row(f"real-{name}-{n}", name, real(2, n)) for name in ("fft", "rfft", "ihfft")
      for n in (1, 2, 5, 8)),
    *(row(f"irfft-to-{n}", "irfft", pair(4, 3), n, 0) for n in (1, 2, 5, 6, 9)),
    *(row(f"rfft-to-{n}", "rfft", real(4, 3), n, 0) for n in (1, 2, 5, 6)),
    *(row(f"{name}-{norm}", name, x, norm=norm)
      for name, x in (("fft", pair(6)), ("ifft", pair(6)), ("rfft", real(6)), ("irfft", pair(4)),
                      ("hfft", pair(4)), ("ihfft", real(6)), ("fftn", pair(3, 2)))
      for norm in ("ortho", "forward", "backward")),
    row("fft-axis", "fft", pair(3, 4, 2), 5, 1),
    row("fft2", "fft2", pair(2, 3, 4)), row("ifft2", "ifft2", pair(2, 3, 4), axes=(0, 2)),
    row("rfft2", "rfft2", real(2, 3, 4)), row("rfft2-odd", "rfft2", real(3, 5), axes=(1, 0)),
    row("irfft2", "irfft2", pair(2, 3, 3)), row("irfft2-odd", "irfft2", pair(3, 3), (4, 5)),
    row("fftn-4", "fftn", pair(2, 3, 2, 2)), row("rfftn-4", "rfftn", real(2, 3, 2, 4)),
    row("irfftn-4", "irfftn", pair(2, 3, 2, 3)), row("ifftn-sizes", "ifftn", pair(3, 4), (2, 5)),
    row("rfftn-axes", "rfftn", real(3, 4, 2), (5, 3), (2, 0)),
    row("fft-double", "fft", pair(6, dtype=np.complex128), x64=True),
    row("rfft-double", "rfft", real(6, dtype=np.float64), x64=True),
    row("fft-empty", "fft", pair(0, 4)),
    *(Case(f"fft-of-{np.dtype(t).name}", lambda j, x: j.numpy.fft.fft(x), (np.arange(5).astype(t),),
           tolerance="iterative", differentiable=False, signed_zeros=False)
      for t in (np.int32, bool, np.float16)),
    Case("lax", lambda j, x, z: [
        j.lax.fft(x, "RFFT", (3, 4)), j.lax.fft(z, j.lax.FftType.IRFFT, (3, 4)),
        j.lax.fft(z, "ifft", (3,)), j.lax.fft(x, "FFT", ())], (real(2, 3, 4), pair(2, 3, 3)),
         tolerance="iterative", signed_zeros=False, linear=True, smooth=False),
    *(Case(f"{name}-{n}-{dtype}", lambda j, n=n, name=name, dtype=dtype: getattr(
        j.numpy.fft, name)(n, 0.5, dtype=dtype), (), differentiable=False, vmappable=False)
      for name in ("fftfreq", "rfftfreq") for n in (1, 4, 5)
      for dtype in (None, "float16", "complex64")),
    Case("shifts", lambda j, x: [
        shift(x, axes) for shift in (j.numpy.fft.fftshift, j.numpy.fft.ifftshift)
        for axes in (None, 0, (1,), (-1, 0))], (real(3, 4),)),
    Case("filter", lambda j, x: j.numpy.fft.irfft(
        j.numpy.fft.rfft(x) * j.numpy.exp(-j.numpy.fft.rfftfreq(8)), n=8), (real(3, 8),),
        tolerance="iterative"),
    Case("power", lambda j, x: j.numpy.abs(j.numpy.fft.fft(x)) ** 2, (real(3, 8),),
         tolerance="iterative"),
]

X = np.ones((2, 4), np.float32)
ERRORS = {
    "size": lambda j: j.numpy.fft.fft(X, 0), "axis": lambda j: j.numpy.fft.fft(X, axis=2),
    "axes": lambda j: j.numpy.fft.rfft(X, axis=(0, 1)),
    "complex": lambda j: j.numpy.fft.rfft(X * 1j), "list": lambda j: j.numpy.fft.fft([1.0]),
    "repeated": lambda j: j.numpy.fft.fftn(X, axes=(0, 0)),
    "lengths": lambda j: j.numpy.fft.fftn(X, (2,), (0, 1)),
    "two": lambda j: j.numpy.fft.fft2(X, axes=(0,)), "rank": lambda j: j.numpy.fft.fft2(X[0]),
    "half": lambda j: j.numpy.fft.rfft(X.astype(np.float16)),
    "kind": lambda j: j.lax.fft(X, "DCT", (4,)), "shape": lambda j: j.lax.fft(X, "FFT", (3,)),
    "deep": lambda j: j.lax.fft(X, "FFT", (1, 2, 4)),
    "inverse": lambda j: j.lax.fft(X, "IRFFT", (3, 6)),
    "n": lambda j: j.numpy.fft.fftfreq([4]), "d": lambda j: j.numpy.fft.rfftfreq(4, [1.0]),
}
CASES += [Case(f"error-{name}", lambda j, fun=fun: fun(j), (), raises=True)
          for name, fun in ERRORS.items()]
