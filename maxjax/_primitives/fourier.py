"""How Fourier transforms of a length are computed natively: the passes, and the numbers that they
need, as ``_max/mojo/pack/fourier.mojo`` reads them."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Kind(enum.IntEnum):
    """What lines are in memory, before and after."""

    COMPLEX = 0
    FROM_REAL = 1           # of an even number of numbers
    FROM_ODD_REAL = 2
    TO_REAL = 3
    TO_ODD_REAL = 4

    @property
    def is_from_real(self) -> bool:
        return self in (Kind.FROM_REAL, Kind.FROM_ODD_REAL)

    @property
    def is_to_real(self) -> bool:
        return self in (Kind.TO_REAL, Kind.TO_ODD_REAL)

    @property
    def is_halved(self) -> bool:
        """Whether two real numbers are computed with as one complex number."""
        return self in (Kind.FROM_REAL, Kind.TO_REAL)


class Passes(NamedTuple):
    """The transform of a line.

    Attributes:
      length: complex numbers that are transformed.
      chirp: the length of the convolution that the transform is; 0: it is none.
      factors: of the length, or of the convolution's, in the order of the passes.
      table: the numbers for the kernel, without the scale in front, in double precision.
    """

    length: int
    chirp: int
    factors: tuple[int, ...]
    table: np.ndarray


def passes(n: int, kind: Kind) -> Passes:
    """The transform of lines of ``n`` numbers."""
    length = n // 2 if kind.is_halved else n
    chirp, factors = _lengths(length)
    parts = [_roots_of_passes(chirp or length, factors)]
    if kind.is_halved:
        parts.append(_parts(np.arange(length + 1), n))
    if chirp:
        parts += _chirp(length, chirp)
    return Passes(length, chirp, factors, np.concatenate(parts))


# Longer lines are the host's: the native transform is no faster, and its table is large.
LONGEST = 1 << 20
# Factors above that are computed as convolutions, if that is faster.
_LARGEST = 5
# What a convolution costs beside its two transforms.
_CONVOLUTION = 1.5
# The cost of a factor without a butterfly of its own, relative to one that has one.
_ODD_FACTOR = 1.1


@functools.lru_cache(maxsize=1024)
def _lengths(n: int) -> tuple[int, tuple[int, ...]]:
    """The length of a convolution, 0 if there is none, and the factors of what is transformed."""
    own = _factors(n)
    if max(own, default=1) <= _LARGEST:
        return 0, own
    chirp = min((_smooth(2 * n - 1, step) for step in (1, 3, 5, 9, 15)),
                key=lambda size: size * sum(_factors(size)))
    if 2 * _CONVOLUTION * _cost(chirp) < _cost(n):
        return chirp, _factors(chirp)
    return 0, own


def _smooth(least: int, multiple: int) -> int:
    """The first power of two times a number that is not smaller."""
    while multiple < least:
        multiple *= 2
    return multiple


def _cost(n: int) -> float:
    return n * sum(factor if factor <= _LARGEST else _ODD_FACTOR * factor for factor in _factors(n))


@functools.lru_cache(maxsize=1024)
def _factors(n: int) -> tuple[int, ...]:
    """Fours first: the first pass fills vectors by them, and the second has them side by side."""
    found = []
    for factor in (4, 2, 3, 5):
        while n % factor == 0:
            found.append(factor)
            n //= factor
    factor = 7
    while n > 1:
        while n % factor == 0:
            found.append(factor)
            n //= factor
        factor += 2
        if factor * factor > n > 1:
            factor = n
    return tuple(found)


def _parts(numerators: np.ndarray, n: int) -> np.ndarray:
    """Real parts of ``exp(-2 pi i numerators / n)``, then imaginary parts."""
    roots = _roots(n)[numerators % n]
    return np.concatenate([roots.real, roots.imag])


@functools.lru_cache(maxsize=4)
def _roots(n: int) -> np.ndarray:
    """The roots of unity ``exp(-2 pi i k / n)``.

    By quarters of a turn: the angles left are small, and their sines and cosines are rounded once.
    """
    turns = 4 * np.arange(n // 2 + 1)
    quarters = (2 * turns + n) // (2 * n)
    angles = (turns - quarters * n).astype(np.longdouble) * (_PI / (2 * n))
    cosines, sines = np.cos(angles), np.sin(angles)
    roots = np.empty(n, np.complex128)
    half = roots[:n // 2 + 1]       # all of it, if n is 1
    half.real = np.choose(quarters, (cosines, -sines, -cosines))[:len(half)]
    half.imag = -np.choose(quarters, (sines, cosines, -sines))[:len(half)]
    roots[n // 2 + 1:] = np.conj(roots[(n - 1) // 2:0:-1])
    return roots


_PI = np.longdouble("3.14159265358979323846264338327950288")


def _roots_of_passes(n: int, factors: Sequence[int]) -> np.ndarray:
    """Those of a part of the length are some of the length's."""
    whole = n
    parts = [np.zeros(0)]
    for factor in factors:
        m = n // factor
        step = whole // n
        parts += [_parts(step * k * np.arange(m), whole) for k in range(1, factor)]
        if factor > _LARGEST:
            cosines, sines = np.split(_parts(np.arange(factor), factor), 2)
            parts += [cosines, -sines]
        n = m
    return np.concatenate(parts)


def _chirp(n: int, size: int) -> list[np.ndarray]:
    """``exp(-pi i k k / n)``, and the transform, divided by its length, of the inverses of these
    from the first one on and, backwards, from the end."""
    squares = np.arange(n) ** 2 % (2 * n)
    chirp = _parts(squares, 2 * n)
    real, imaginary = np.split(chirp, 2)
    inverse = np.zeros(size, np.complex128)
    inverse[:n] = real - 1j * imaginary
    inverse[size - n + 1:] = inverse[n - 1:0:-1]
    filters = np.fft.fft(inverse) / size
    return [chirp, filters.real, filters.imag]


# --- lines side by side ---------------------------------------------------------------------------

_VECTOR_BYTES = 64          # of the widest vectors; two narrower ones
_CACHE_BYTES = 1 << 18      # for what a task works on
_MOST_TASKS = 8
_LEAST_SHARED = 1 << 15     # numbers that are worth another thread


def lanes(lines: int, size: int, itemsize: int, apart: bool) -> int:
    """How many lines of a size are transformed side by side.

    Args:
      apart: whether a line's numbers lie apart, and those of different lines next to one another.
    """
    vector = _VECTOR_BYTES // itemsize
    room = _CACHE_BYTES // (4 * size * itemsize)
    if room >= vector:
        count = min(2 * vector if apart else vector, room - room % vector)
    else:
        count = vector if apart else vector // 2 if room >= vector // 2 else 1
    return max(1, min(lines, count))


class Lines(NamedTuple):
    """Lines of ``n`` numbers along the middle axis of (outer, n, inner), where they are numbers
    that are transformed, or become such; ``inner`` is 1 unless both are complex."""

    kind: Kind
    outer: int
    n: int
    inner: int
    inverse: bool


class Call(NamedTuple):
    """A call of the kernel.

    Attributes:
      table: its numbers.
      integers: behind the places of operands and results.
      scratch: numbers of memory that it needs.
    """

    table: np.ndarray
    integers: tuple[int, ...]
    scratch: int


def call_of(lines: Lines, scale: float, part: np.dtype, threads: int) -> Call:
    """The call for lines, whose transforms are multiplied by a scale.

    Args:
      part: the dtype of real and imaginary parts.
    """
    kind, outer, n, inner, inverse = lines
    way = passes(n, kind)
    size = max(way.length + 1, way.chirp)
    apart = inner > 1
    side_by_side = lanes(inner if apart else outer, size, part.itemsize, apart)
    items = outer * -(-inner // side_by_side) if apart else -(-outer // side_by_side)
    tasks = max(1, min(_MOST_TASKS, items, 2 * outer * inner * n // _LEAST_SHARED))
    return Call(
        np.concatenate([[scale], way.table]).astype(part),
        (int(kind), outer, n, inner, way.length, side_by_side, int(inverse), way.chirp, tasks,
         threads, len(way.factors), *way.factors), tasks * 4 * size * side_by_side)


def extents(n: Sequence[int], part: int) -> tuple[int, int, int, int] | None:
    """How many numbers a call reads of the array and of the table, and how many bytes of results
    and of scratch it writes; None if these are the integers of no call.

    Args:
      n: the integers of the call.
      part: the bytes of a part of a complex number.
    """
    kind, (outer, count, inner, length, side_by_side, _, chirp, tasks) = Kind(n[0]), n[1:9]
    factors, half, whole = n[11:], count // 2 + 1, chirp or length
    if math.prod(factors) != whole or length != (count // 2 if kind.is_halved else count) \
            or kind and inner != 1 or kind.is_halved and count % 2 \
            or 0 < chirp < 2 * length - 1:
        return None
    table = 1 + _size_of_roots(whole, factors)
    table += 2 * (length + 1) if kind.is_halved else 0
    table += 2 * (length + chirp) if chirp else 0
    return (outer * inner * (half if kind.is_to_real else count), table,
            outer * inner * (2 * half if kind.is_from_real else
                             count if kind.is_to_real else 2 * count) * part,
            4 * tasks * max(length + 1, chirp) * side_by_side * part)


def _size_of_roots(n: int, factors: Sequence[int]) -> int:
    """The numbers of the table that the passes have."""
    total = 0
    for factor in factors:
        n //= factor
        total += 2 * (factor - 1) * n + (2 * factor if factor > _LARGEST else 0)
    return total
