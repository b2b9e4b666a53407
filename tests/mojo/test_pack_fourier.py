"""The kernels of the pack that compute Fourier transforms.

`test_within_bounds` runs everything a second time,
in a process of its own, on buffers that end at an inaccessible page.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

pytest.importorskip("max.engine")

from maxjax._primitives import fourier
from maxjax._primitives.fourier import Kind, Lines
from tests.mojo.pack_calls import GUARDED, THREADS, call, empty, guarded, run_guarded

# All small lengths; factors with and without butterflies of their own, convolutions.
LENGTHS = (*range(1, 34), 49, 64, 97, 100, 121, 169, 360, 512, 1000, 1009, 1331, 2018)
COMPLEX = {"float32": "complex64", "float64": "complex128"}
# (outer, inner): one line, some, more than are side by side, lines whose numbers lie apart.
STACKS = ((1, 1), (3, 1), (37, 1), (1, 5), (2, 35))


def numbers(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(shape)
    if dtype.startswith("complex"):
        return guarded((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype))
    return guarded(rng.standard_normal(shape).astype(dtype))


def transformed(x: np.ndarray, kind: Kind, n: int, inverse: bool, threads: int, scale: float = 1.0,
                lanes: int | None = None) -> np.ndarray:
    """Along the middle axis of (outer, n, inner)."""
    outer, _, inner = x.shape
    part = x.real.dtype
    made = fourier.call_of(Lines(kind, outer, n, inner, inverse), scale, part, threads)
    integers = [*made.integers]
    tasks = integers[8] = 3
    lanes = integers[5] = lanes or integers[5]
    size = max(integers[4] + 1, integers[7])
    shape = (outer, n // 2 + 1, 1) if kind.is_from_real else (outer, n, inner)
    out = empty(part if kind.is_to_real else COMPLEX[part.name], *shape)
    call("fourier", f"fourier_{part}", [
        x, guarded(made.table), out, empty(part, tasks * 4 * size * lanes)], *integers)
    return out


def check(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Within some rounding of the largest number of each line."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    rounding = np.finfo(ours.dtype).eps * (8 + np.log2(ours.shape[1]))
    scale = np.sqrt(np.mean(np.abs(theirs) ** 2, axis=1, keepdims=True))
    assert (np.abs(ours - theirs) <= 2 * rounding * scale).all(), np.max(
        np.abs(ours - theirs) / scale / rounding)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("inverse", (False, True))
def test_complex_transforms_agree_with_scipy(dtype: str, inverse: bool) -> None:
    theirs = scipy.fft.ifft if inverse else scipy.fft.fft
    for n in LENGTHS:
        for outer, inner in STACKS if n < 100 or n == 1000 else STACKS[1:4:2]:
            x = numbers(COMPLEX[dtype], outer, n, inner)
            for threads in THREADS:
                check(transformed(x, Kind.COMPLEX, n, inverse, threads, 1 / n if inverse else 1.0),
                      theirs(x, axis=1))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_real_transforms_agree_with_scipy(dtype: str) -> None:
    for n in LENGTHS:
        for outer, _ in STACKS[:3]:
            x = numbers(dtype, outer, n, 1)
            kind = Kind.FROM_ODD_REAL if n % 2 else Kind.FROM_REAL
            check(transformed(x, kind, n, False, 1), scipy.fft.rfft(x, axis=1))
            # The imaginary parts of what is its own mirror image do not count.
            z = numbers(COMPLEX[dtype], outer, n // 2 + 1, 1)
            kind = Kind.TO_ODD_REAL if n % 2 else Kind.TO_REAL
            check(transformed(z, kind, n, True, 2, 1 / n), scipy.fft.irfft(z, n, axis=1))


@pytest.mark.parametrize("lanes", (1, 2, 3, 4, 7, 16, 21))
@pytest.mark.parametrize("dtype", COMPLEX)
def test_any_number_of_lines_side_by_side(dtype: str, lanes: int) -> None:
    for n in (6, 14, 64, 1009):
        for outer, inner in ((25, 1), (1, 25)):
            x = numbers(COMPLEX[dtype], outer, n, inner)
            check(transformed(x, Kind.COMPLEX, n, False, 1, lanes=lanes), scipy.fft.fft(x, axis=1))
        x = numbers(dtype, 25, n, 1)
        kind = Kind.FROM_ODD_REAL if n % 2 else Kind.FROM_REAL
        check(transformed(x, kind, n, False, 1, lanes=lanes), scipy.fft.rfft(x, axis=1))


def test_a_line_knows_nothing_of_others() -> None:
    x = numbers("complex64", 9, 24, 1)
    x[3, 5], x[7, 0] = np.nan, np.inf
    out = transformed(x, Kind.COMPLEX, 24, False, 1)
    assert np.isnan(out[3]).all() and not np.isfinite(out[7]).any()
    rest = [row for row in range(9) if row not in (3, 7)]
    check(out[rest], scipy.fft.fft(x[rest], axis=1))


@pytest.mark.parametrize("n", (64, 1000, 1001, 1009, 4096))
@pytest.mark.parametrize("dtype", COMPLEX)
def test_is_as_accurate_as_scipy(dtype: str, n: int) -> None:
    x = numbers(COMPLEX[dtype], 1, n, 1)
    exact = scipy.fft.fft(x.astype(np.clongdouble), axis=1)
    ours, theirs = (np.linalg.norm(y - exact) for y in (
        transformed(x, Kind.COMPLEX, n, False, 1), scipy.fft.fft(x, axis=1)))
    assert ours <= 1.3 * theirs


@pytest.mark.skipif(GUARDED, reason="this is the process that the test starts")
def test_within_bounds() -> None:
    run_guarded(__file__)
