"""Discrete Fourier transforms over the last dimensions: by SciPy on the host, and natively
(``fourier.py``)."""

from __future__ import annotations

import enum
import functools
import math
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.lazy import scipy_fft
from maxjax._base.threads import Event, process
from maxjax._ir.contract import SHAPE, instance, takes
from maxjax._ir.costs import Avals, Cost, XlaCost
from maxjax._ir.linearity import SUM
from maxjax._ir.rule_groups import Compiled, Host, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Value
from maxjax._primitives import fitting, fourier
from maxjax._primitives.arithmetic import conj, div, mul
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.fourier import Kind
from maxjax._primitives.layout import move_axis
from maxjax._primitives.rules import FactorRule, factor_rule, linear_primitive, scalar_like

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.rules import Linear


class FftType(enum.IntEnum):
    """The kinds of discrete Fourier transforms that ``lax.fft`` computes.

    >>> lax.fft(jnp.array([1.0, 2.0, 3.0]), lax.FftType.RFFT, (3,)).shape
    (2,)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_TRANSFORMS = {FftType.FFT: "fftn", FftType.IFFT: "ifftn", FftType.RFFT: "rfftn",
               FftType.IRFFT: "irfftn"}

# From this many elements on, threads save more than they cost.
_THREADED_SIZE = 1 << 16

# From this many elements on, some tenths of a second, an interrupt does not wait for the end.
_LONG_SIZE = 1 << 25
# How often it is looked whether the process has forked meanwhile, which a handler may do.
_FORK_POLL_SECONDS = 1.0


def _abstract(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    taken = (dtypes.float32, dtypes.float64) if fft_type == FftType.RFFT else dtypes.COMPLEX
    if x.dtype not in taken:
        raise TypeError(f"fft of type {fft_type.name} does not accept dtype {x.dtype}")
    if fft_type == FftType.RFFT:
        shape = (*x.shape[:-1], fft_lengths[-1] // 2 + 1)
        return ShapedArray(shape, dtypes.complex_dtype(x.dtype))
    if fft_type == FftType.IRFFT:
        return ShapedArray((*x.shape[:-1], fft_lengths[-1]), dtypes.real_dtype(x.dtype))
    return x


def _specialize(in_avals: Sequence[ShapedArray], params: Params,
                out_avals: Sequence[ShapedArray]) -> Callable[[Any], np.ndarray]:
    (x,), (out,) = in_avals, out_avals
    lengths = params["fft_lengths"]
    name = _TRANSFORMS[params["fft_type"]]
    if not x.size or not out.size:
        empty = np.zeros(out.shape, out.dtype)
        return lambda x: empty
    workers = (os.cpu_count() or 1) if x.size >= _THREADED_SIZE else None
    if len(lengths) == 1:       # half the time to call
        transform = getattr(scipy_fft, name.rstrip("n"))
        # A length that is not told needs no looking at.
        length = lengths[0] if name == "irfftn" or x.shape[-1] != lengths[0] else None

        def compute(x: np.ndarray) -> np.ndarray:
            return transform(x, length, workers=workers)
    else:
        transform, axes = getattr(scipy_fft, name), tuple(range(-len(lengths), 0))

        def compute(x: np.ndarray) -> np.ndarray:
            return transform(x, lengths, axes, workers=workers)
    return functools.partial(_apart, compute) if max(x.size, out.size) >= _LONG_SIZE else compute


def _apart(compute: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Its result, computed by another thread, while this one can be interrupted.

    One call of SciPy may take minutes, and no signal's handler runs before it returns. As in JAX,
    what nobody waits for any more is still computed to its end. The operand lives as long: what
    lies in memory that a program frees when it is interrupted is copied.
    """
    owner = x
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not owner.flags.owndata:
        x = x.copy()
    forks, ended = process.forks, Event()
    results: list[np.ndarray] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(compute(x))
        except BaseException as error:      # raised where it is waited for
            errors.append(error)
        ended.set()

    try:
        # A daemon: the interpreter does not wait at its end for what nobody waits for.
        threading.Thread(target=run, name="maxjax-fft", daemon=True).start()
    except RuntimeError:        # no more threads
        return compute(x)
    while not ended.wait(_FORK_POLL_SECONDS):
        if process.forks != forks:      # in a handler: the thread is the parent's
            return compute(x)
    if errors:
        raise errors[0]
    return results[0]


def _multiplicity(x: Array, length: int) -> Any:
    """How many entries of the whole spectrum each entry of the stored half stands for: 2, but 1
    for the first and, where the length is even, the last."""
    size = length // 2 + 1
    counts = np.full(size, 2, x.dtype)
    counts[0] = 1
    if length % 2 == 0:
        counts[-1] = 1
    return broadcast_in_dim(counts, x.shape, (len(x.shape) - 1,))


def _transpose(cotangent: Array, x: Linear, *, fft_type: FftType, fft_lengths: tuple[int, ...]
               ) -> list[Any]:
    """The transposes, without conjugation: the matrix of a Fourier transform is symmetric."""
    count = math.prod(fft_lengths)
    if fft_type == FftType.RFFT:
        # The real part of the transform of the cotangent, padded with zeros: irfft adds to each
        # entry its mirror image, which the division takes back.
        half = div(conj(cotangent), _multiplicity(cotangent, fft_lengths[-1]))
        whole = fft(half, FftType.IRFFT, fft_lengths)
        return [mul(whole, scalar_like(count, whole.dtype))]
    if fft_type == FftType.IRFFT:
        half = conj(fft(cotangent, FftType.RFFT, fft_lengths))
        half = mul(half, _multiplicity(half, fft_lengths[-1]))
        return [mul(half, scalar_like(1 / count, half.dtype))]
    return [fft(cotangent, fft_type, fft_lengths)]


def _batch(size: int, operands: Sequence[Array], axes: Sequence[int], *, fft_type: FftType,
           fft_lengths: tuple[int, ...]) -> tuple[Any, int]:
    x, axis = operands[0], axes[0]
    if axis >= len(x.shape) - len(fft_lengths):
        x, axis = move_axis(x, axis, 0), 0
    return fft(x, fft_type, fft_lengths), axis


def _factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
             fft_type: FftType, fft_lengths: tuple[int, ...]) -> FactorRule:
    """The transformed dimensions are wanted whole; the last may change its size."""
    last = in_avals[0].ndim - 1
    changed = in_avals[0].shape != out_avals[0].shape
    transformed = [*range(last + 1 - len(fft_lengths), last + 1)]
    return factor_rule([range(last + 1)], [[*range(last), "out" if changed else last]], in_avals,
                       out_avals, replicated=frozenset({*transformed, *["out"] * changed}))


def _lower(ctx: Lowering, x: object, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    """One axis after the other: what is real is the first, or the last, that is transformed."""
    inverse = fft_type in (FftType.IFFT, FftType.IRFFT)
    last, count = len(ctx.shape(x)) - 1, len(fft_lengths)
    n, odd = fft_lengths[-1], fft_lengths[-1] % 2 == 1
    scale = 1 / math.prod(fft_lengths) if inverse else 1.0

    def complex_axes(x: object, axes: Sequence[int], scale: float) -> Any:
        for axis in axes:
            x = ctx.fourier(x, Kind.COMPLEX, ctx.shape(x)[axis], axis, inverse, scale)
            scale = 1.0
        return x

    others = range(last + 1 - count, last)
    if fft_type == FftType.RFFT:
        x = ctx.fourier(x, Kind.FROM_ODD_REAL if odd else Kind.FROM_REAL, n, last, False, 1.0)
        return complex_axes(x, others, 1.0)
    if fft_type == FftType.IRFFT:
        x = complex_axes(x, others, 1.0)
        return ctx.fourier(x, Kind.TO_ODD_REAL if odd else Kind.TO_REAL, n, last, True, scale)
    return complex_axes(x, [last, *others], scale)


def _why_on_host(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> str | None:
    if not x.size or not all(fft_lengths):
        return "it has no elements"
    return "its lines are long" if max(fft_lengths) > fourier.LONGEST else None


def _xla_flops(ins: Avals, outs: Avals, params: Params) -> float:
    """Two operations for each of the four products of a complex one."""
    lengths = math.prod(max(length, 1) for length in params["fft_lengths"])
    return 8 * math.log2(lengths) * ins[0].size


fft_p = linear_primitive(
    "fft",
    contract=takes(1, fitting.transform, fft_type=instance(FftType), fft_lengths=SHAPE),
    linearity=SUM,
    abstract=_abstract,
    host=Host("MAX has no Fourier transform", _why_on_host, _specialize),
    lower=_lower, compiled=Compiled(takes_complex=dtypes.COMPLEX),
    transpose=_transpose, batch=_batch, factors=_factors,
    values=Values(may_give_nan=True),
    cost=Cost(xla=XlaCost(_xla_flops, alone=True)))


def fft(x: Value, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=fft_lengths)
