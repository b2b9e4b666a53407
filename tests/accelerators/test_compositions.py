"""What stands in for our loops on an accelerator, with NumPy's operations in place of MAX's.

The operations of MAX that it is composed of are tested elsewhere; here the composition is, for
many sizes, against ``maxjax.lax`` on the host.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from maxjax import lax
from maxjax._base import config
from maxjax._max.graph import device_context

UFUNCS = {"max": np.maximum, "min": np.minimum, "add": np.add, "mul": np.multiply,
          "sub": np.subtract, "eq": np.equal, "ne": np.not_equal, "and": np.bitwise_and,
          "xor": np.bitwise_xor, "shift_right_arithmetic": np.right_shift}


class NumPyContext(device_context.DeviceContext):
    """The compositions, on NumPy arrays."""

    def __init__(self) -> None:
        pass

    def shape(self, x: Any) -> tuple[int, ...]:
        return np.shape(x)

    def dtype(self, x: Any) -> np.dtype:
        return x.dtype

    def scalar(self, value: Any, like: Any) -> Any:
        return np.asarray(value, like.dtype)

    def kernel(self, name: str, *xs: Any, out_dtype: Any = None) -> Any:
        return UFUNCS[name](*xs)

    native = kernel

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        return np.reshape(x, shape)

    def concatenate(self, xs: Sequence[Any], axis: int) -> Any:
        return np.concatenate(xs, axis)

    def slice(self, x: Any, starts: Sequence[int], limits: Sequence[int],
              strides: Sequence[int] | None) -> Any:
        assert all(0 <= start <= limit <= size for start, limit, size in zip(
            starts, limits, x.shape, strict=True))
        return x[tuple(map(slice, starts, limits, strides or (1,) * x.ndim))]

    def pad(self, x: Any, value: Any, config: Sequence[Any]) -> Any:
        return np.asarray(lax.pad(x, value, config))

    def gather_rows(self, x: Any, indices: Any, axis: int) -> Any:
        assert np.all((indices >= 0) & (indices < x.shape[axis]))
        return np.take(x, indices, axis)

    def select(self, which: Any, cases: Sequence[Any]) -> Any:
        return np.where(which, cases[1], cases[0])

    def iota(self, dtype: Any, shape: Sequence[int], dimension: int) -> Any:
        return lax.broadcasted_iota(dtype, shape, dimension).__array__()

    def convert(self, x: Any, dtype: Any) -> Any:
        return x.astype(dtype)

    def bitcast(self, x: Any, dtype: Any) -> Any:
        return x.view(dtype)

    def full(self, shape: Sequence[int], value: Any, dtype: Any) -> Any:
        return np.full(shape, value, dtype)

    def aligned(self, xs: Sequence[Any]) -> list[Any]:
        return list(np.broadcast_arrays(*xs))


@pytest.fixture(autouse=True)
def numpy_for_max(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(device_context, "ops", types.SimpleNamespace(logical_and=np.logical_and))
    with config.enable_x64(True), config.compile_mode("never"):
        yield


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_cumulative(kind):
    generator = np.random.default_rng(0)
    for size in range(1, 20):
        x = generator.integers(-9, 9, (3, size, 2))
        for reverse in (False, True):
            np.testing.assert_array_equal(
                NumPyContext().cumulative(kind, x, 1, reverse),
                getattr(lax, f"cum{kind}")(x, axis=1, reverse=reverse))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_a_window_is_written(dtype):
    generator = np.random.default_rng(1)
    for _ in range(60):
        shape = generator.integers(1, 7, 3)
        x = generator.integers(0, 9, shape)
        update = generator.integers(-9, 0, generator.integers(1, shape + 1))
        # What lies before or beyond the array begins as near as it fits.
        starts = [np.asarray(start, dtype) for start in generator.integers(0, 12, 3)]
        np.testing.assert_array_equal(NumPyContext().write_window(x, update, starts),
                                      lax.dynamic_update_slice(x, update, starts))
        before = [np.asarray(-5, dtype)] * 3
        np.testing.assert_array_equal(NumPyContext().write_window(x, update, before),
                                      lax.dynamic_update_slice(x, update, (0, 0, 0)))


def test_windows_and_convolutions():
    generator, done = np.random.default_rng(2), 0
    while done < 80:
        outer, height, width, inner = generator.integers(1, 8, 4).tolist()
        window, low, high = (generator.integers(*ends, 2).tolist()
                             for ends in ((1, 6), (-1, 4), (-1, 4)))
        strides, spread, base = (generator.integers(1, last, 2).tolist() for last in (4, 3, 3))
        padding = list(zip(low, high, strict=True))
        x = generator.integers(-9, 9, (outer, height, width, inner)).astype(np.float64)
        weights = generator.integers(-3, 3, (*window, inner, 2)).astype(np.float64)
        product = lax.conv_general_dilated(
            x, weights, strides, padding, base, spread,
            dimension_numbers=("NHWC", "HWIO", "NHWC"))
        if 0 in product.shape:
            continue
        done += 1
        geometry = (window, strides, low, spread, base)
        unfolded = NumPyContext().sliding(
            "unfold", [x], (*product.shape[:3], weights.size // 2), *geometry)
        np.testing.assert_array_equal(unfolded @ weights.reshape(-1, 2), product)
        for kind, operation, identity in (("sum", lax.add, 0.0), ("max", lax.max, -np.inf),
                                          ("min", lax.min, np.inf)):
            expected = lax.reduce_window(
                x, identity, operation, (1, *window, 1), (1, *strides, 1),
                [(0, 0), *padding, (0, 0)], (1, *base, 1), (1, *spread, 1))
            np.testing.assert_array_equal(
                NumPyContext().sliding(f"window_{kind}", [x], expected.shape, *geometry), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_by_integers(dtype):
    """NaN of either sign and with any bits wins, -0 is below 0, infinities are the ends."""
    context, generator = NumPyContext(), np.random.default_rng(3)
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3e38], dtype)
    nans = np.array([np.nan, -np.nan], dtype)
    nans = np.concatenate([nans, (nans.view(f"i{nans.itemsize}") + 12345).view(dtype)])
    for number in range(200):
        x = generator.standard_normal(9).astype(dtype)
        x[generator.integers(0, 9, 4)] = generator.choice(special, 4)
        if number % 2:
            x[generator.integers(0, 9)] = generator.choice(nans)
        for kind, extreme in (("max", lax.reduce_max), ("min", lax.reduce_min)):
            ordered = context._ordered(x, kind)
            found = context._from_ordered(getattr(np, kind)(ordered, keepdims=True), x.dtype)
            np.testing.assert_array_equal(found, extreme(x, (0,)))
            if not np.isnan(x).any():
                np.testing.assert_array_equal(context._from_ordered(ordered, x.dtype), x)


def truncated(x: np.ndarray) -> np.ndarray:
    """What the matrix units see."""
    return (x.view(np.int32) & np.int32(-1 << 13)).view(np.float32)


@pytest.mark.parametrize("seen", [truncated, np.copy])
def test_products_of_parts_are_as_exact_as_float32(seen, monkeypatch):
    """By matrix units, and where MAX does without them."""
    def product(self, a, b, transpose_a, transpose_b):
        return (seen(a).astype(np.float64) @ seen(b).astype(np.float64)).astype(np.float32)

    monkeypatch.setattr(device_context.GraphContext, "matmul", product)
    context, generator = NumPyContext(), np.random.default_rng(4)
    exact_product = types.SimpleNamespace(params={"precision": (lax.Precision.HIGHEST,) * 2})
    for scale in (1e-15, 1.0, 1e15):
        a, b = (generator.standard_normal((30, 30)).astype(np.float32) * np.float32(scale)
                for _ in range(2))
        exact = a.astype(np.float64) @ b.astype(np.float64)
        size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        context.eqn = exact_product
        assert np.abs((context.matmul(a, b) - exact) / size).max() < 2.0 ** -20
        context.eqn = types.SimpleNamespace(params={"precision": None})
        assert (np.abs((context.matmul(a, b) - exact) / size).max() > 2.0 ** -13) == (
            seen is truncated)
    ends = np.array([np.inf, -np.inf, np.nan, 3e38, 0, -0.0], np.float32)
    whole, upper, rest = context._parts(ends)
    np.testing.assert_array_equal(whole[:3], ends[:3])
    for part in (upper, rest):
        np.testing.assert_array_equal(part[:3], [0, 0, 0])
    np.testing.assert_array_equal(upper + rest, [0, 0, 0, np.float32(3e38), 0, 0])
