"""Long sums and their errors, in units of what one rounding may cost: eps * sum|x|.

The reference is NumPy's pairwise sum of long doubles.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import ml_dtypes
import numpy as np

import maxjax
import maxjax.numpy as jnp
from maxjax import lax

DTYPES = ("float32", "float64", "bfloat16", "float16", "complex64", "complex128")
# Terms alike in size, all the same (whose errors all have one sign), and of both signs.
TERMS = ("near", "same", "normal")
Operation = Callable[[Any, int], Any]
Exact = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def along(x: np.ndarray, axis: int) -> np.ndarray:
    """Long doubles, the axis last in memory, along which NumPy's sums are pairwise."""
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    return np.ascontiguousarray(np.moveaxis(x.astype(wide), axis, -1))


def _sum(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    x = along(x, axis)
    return x.sum(-1), np.abs(x).sum(-1)


def _mean(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    total, weight = _sum(x, axis)
    return total / x.shape[axis], weight / x.shape[axis]


def _variance(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Its differences from the mean are as far off as the terms themselves are rounded."""
    x = along(x, axis)
    mean = x.mean(-1, keepdims=True)
    value = (np.abs(x - mean) ** 2).mean(-1)
    return value, value + np.abs(mean[..., 0]) * np.sqrt(value)


def _norm(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    value = np.sqrt((np.abs(along(x, axis)) ** 2).sum(-1))
    return value, value


def _log_sum(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    value = np.log(np.exp(along(x, axis)).sum(-1))
    return value, np.maximum(np.abs(value), 1)


def _running_sums(x: np.ndarray) -> np.ndarray:
    """Along the last axis, in blocks: of ten million long doubles one after the other the last are
    hundreds of float64's roundings off."""
    block = int(x.shape[-1] ** 0.5) + 1
    if x.shape[-1] < 2 * block:
        return x.cumsum(-1)
    whole = x.shape[-1] // block * block
    parts = x[..., :whole].reshape(*x.shape[:-1], -1, block).cumsum(-1)
    totals = parts[..., -1].cumsum(-1)
    parts[..., 1:, :] += totals[..., :-1, None]
    rest = totals[..., -1:] + x[..., whole:].cumsum(-1)
    return np.concatenate([parts.reshape(*x.shape[:-1], whole), rest], -1)


def _running(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    x = along(x, axis)
    return tuple(np.moveaxis(_running_sums(y), -1, axis) for y in (x, np.abs(x)))


def _running_log(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    value = np.moveaxis(np.log(_running_sums(np.exp(along(x, axis)))), -1, axis)
    return value, np.maximum(np.abs(value), 1)


def _windows(x: Any, axis: int) -> Any:
    window, strides = [1] * x.ndim, [1] * x.ndim
    window[axis], strides[axis] = _window(x.shape[axis])
    return lax.reduce_window(
        x, np.zeros((), x.dtype), lax.add, tuple(window), tuple(strides), "VALID")


def _window(size: int) -> tuple[int, int]:
    return max(1, size // 2), max(1, size // 10)


def _window_sums(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    size, (width, stride) = x.shape[axis], _window(x.shape[axis])
    x = along(x, axis)
    parts = [x[..., first:first + width] for first in range(0, size - width + 1, stride)]
    return tuple(np.stack([part.sum(-1) for part in y], axis)
                 for y in (parts, [np.abs(part) for part in parts]))


OPERATIONS: dict[str, tuple[Operation, Exact, str]] = {
    "sum": (lambda x, axis: x.sum(axis), _sum, ""),
    "mean": (lambda x, axis: jnp.mean(x, axis), _mean, ""),
    "var": (lambda x, axis: jnp.var(x, axis), _variance, "near"),
    "norm": (lambda x, axis: jnp.linalg.norm(x, axis=axis), _norm, "near"),
    "logsumexp": (lambda x, axis: maxjax.nn.logsumexp(x, axis), _log_sum, "real"),
    "cumsum": (lambda x, axis: jnp.cumsum(x, axis), _running, ""),
    "cumlogsumexp": (lambda x, axis: lax.cumlogsumexp(x, axis), _running_log, "real"),
    "windows": (_windows, _window_sums, ""),
    "gradient": (lambda x, axis: maxjax.vjp(
        lambda y: jnp.broadcast_to(y, x.shape), x.take(0, axis))[1](x)[0]
        if axis == 0 else x.sum(axis), _sum, ""),
}
# What adds many products: by BLAS where it is interpreted.
PRODUCTS: dict[str, tuple[Operation, Exact, str]] = {
    "vector product": (lambda x, axis: jnp.tensordot(
        x, jnp.ones(x.shape[axis], x.dtype), ((axis,), (0,))), _sum, ""),
}


@dataclasses.dataclass(frozen=True)
class LongSum:
    name: str
    shape: tuple[int, ...]
    axis: int
    dtype: str
    terms: str

    def __str__(self) -> str:
        return f"{self.name} of {self.dtype}{self.shape} along {self.axis}, {self.terms}"

    def values(self) -> np.ndarray:
        dtype, rng = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype)), np.random.default_rng(7)
        x = (1 + rng.random(self.shape) / 1000 if self.terms == "near" else
             np.full(self.shape, 1 / 3) if self.terms == "same" else
             rng.standard_normal(self.shape))
        if self.dtype == "float16":
            x /= 1 << 12         # that the sums are finite
        return (x + 1j * x if dtype.kind == "c" else x).astype(dtype)

    def of(self, x: Any) -> Any:
        return _table(self.name)[0](x, self.axis)

    def error(self, x: np.ndarray, result: np.ndarray) -> float:
        value, weight = _table(self.name)[1](x, self.axis)
        eps = ml_dtypes.finfo(x.dtype if x.dtype.kind != "c" else x.real.dtype).eps
        return float(np.max(np.abs(result.astype(value.dtype) - value) / (float(eps) * weight)))

    @property
    def bound(self) -> float:
        """That of a pairwise sum is half of log2(count), that of one in blocks a few times that."""
        return 4 + 1.5 * np.log2(self.shape[self.axis])


def _table(name: str) -> tuple[Operation, Exact, str]:
    return OPERATIONS.get(name) or PRODUCTS[name]


def long_sums(count: int, names: Any = OPERATIONS, dtypes: Any = DTYPES) -> Iterator[LongSum]:
    """Sums of so many terms, or a few times fewer, along every kind of axis."""
    shapes = [((count,), 0), ((count, 2), 0), ((count // 3, 3), 0), ((count // 16, 16), 0),
              ((count // 100, 100), 0), ((2, count), 1), ((3, count // 6, 2), 1)]
    for name, dtype, (shape, axis), terms in itertools.product(names, dtypes, shapes, TERMS):
        kind = _table(name)[2]
        if (not shape[axis]
                # Of equal terms the variance is nothing, as bfloat16's near ones are.
                or kind == "near" and (terms != "near" or dtype.endswith("16")
                                       or shape[axis] == 1)
                or kind == "real" and (dtype.startswith("complex") or terms == "normal")
                # The sum is beyond the largest float16.
                or name == "logsumexp" and dtype == "float16" and count > 10_000):
            continue
        yield LongSum(name, shape, axis, dtype, terms)


def check(sums: Any, run: Callable[[LongSum, np.ndarray], np.ndarray]) -> None:
    """``run`` gives the results of all of them, none further off than a sum in blocks."""
    failures = []
    with maxjax.enable_x64(True), jax.enable_x64(True):
        for one in sums:
            x = one.values()
            error = one.error(x, np.asarray(run(one, x)))
            if not error <= one.bound:
                failures.append(f"{one}: {error:.1f}, not {one.bound:.1f}")
    assert not failures, f"{len(failures)} sums are rounded too often:\n" + "\n".join(failures)
