"""Sums are rounded as seldom as pairwise ones, along every axis."""

from __future__ import annotations

import jax
import jax.numpy
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import config
from maxjax._primitives.sums import FEW, accumulated, sum_of
from tests.support.long_sums import OPERATIONS, LongSum, check, long_sums


def interpreted(one: LongSum, x: np.ndarray) -> np.ndarray:
    with config.compile_mode("never"):
        return np.asarray(maxjax.jit(one.of)(x))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("count", [10, 300, 10_000])
def test_interpreted(name, count):
    check(long_sums(count, [name]), interpreted)


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.extended if name == "windows" else ())
    for name in OPERATIONS])
def test_a_million_interpreted(name):
    check(long_sums(1_000_000, [name], ["float32", "float64"]), interpreted)


@pytest.mark.extended
@pytest.mark.parametrize("name", ["sum", "cumsum"])
def test_ten_million_interpreted(name):
    check(long_sums(10_000_000, [name], ["float32", "float64"]), interpreted)


LAYOUTS = [
    ("transposed", lambda x: x.T, (0,)), ("transposed", lambda x: x.T, (1,)),
    ("backwards", lambda x: x[::-1, ::-1], (0,)), ("apart", lambda x: x[::2, ::3], (0,)),
    ("apart", lambda x: x[::2, ::3], (0, 1)), ("repeated", lambda x: np.broadcast_to(
        x[:, None], (x.shape[0], 3, x.shape[1])), (0,)),
    ("repeated", lambda x: np.broadcast_to(x[0], (5000, *x.shape[1:])), (0,)),
    ("in three", lambda x: x.reshape(-1, 7, x.shape[1]), (0, 2)),
    ("in three", lambda x: x.reshape(-1, 7, x.shape[1]).transpose(1, 2, 0), (1, 2)),
    ("in four", lambda x: x.reshape(7, -1, 2, x.shape[1] // 2), (1, 3)),
    ("none", lambda x: x[:, :0], (0,)), ("none", lambda x: x[:0], (0,)),
    ("none", lambda x: x[:, :0], (0, 1)), ("one row", lambda x: x[:1], (0,)),
    ("no axis", lambda x: x, ()),
]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 31])
def test_products_with_vectors_do_not_show_how_arrays_lie(size):
    rng = np.random.default_rng(size)
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((size, size), size))
    rows, columns, turned = map(jnp.asarray, (a, np.asfortranarray(a), a.T.copy()))
    close, apart = jnp.asarray(b), jnp.asarray(np.stack([b, b], 1))[:, 0]
    for one, other in [
            (rows @ close, columns @ close), (rows @ close, turned.T @ apart),
            (close @ rows, apart @ columns), (rows @ close[:, None], columns @ apart[:, None]),
            (close @ close, apart @ apart), (lax.dot(rows, close), lax.dot(turned.T, close))]:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name, layout, axes", LAYOUTS)
def test_whatever_lies_in_memory(name, layout, axes, dtype):
    x = layout((1 / 3 + np.zeros((7 * 1000, 6))).astype(dtype))
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    expected = np.moveaxis(x.astype(wide), axes, range(-len(axes), 0)).reshape(
        *(size for axis, size in enumerate(x.shape) if axis not in axes),
        int(np.prod([x.shape[axis] for axis in axes]))).sum(-1)
    actual = sum_of(x, axes)
    assert actual.shape == expected.shape and actual.dtype == x.dtype
    np.testing.assert_allclose(actual.astype(wide), expected, rtol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("count", [*range(FEW - 1, FEW + 3), 97, 1023, 4096, 4097, 5003, 66_666])
@pytest.mark.parametrize("inner", [1, 2, 7, 300, 5000])
def test_every_row_counts_once(count, inner):
    if count * inner > 10_000_000:
        pytest.skip("large")
    x = np.arange(count * inner, dtype=np.float64).reshape(count, inner)
    np.testing.assert_array_equal(sum_of(x, (0,)), x.astype(np.int64).sum(0))
    two = np.stack([x, x + 1])
    np.testing.assert_array_equal(sum_of(two, (1,)), two.astype(np.int64).sum(1))
    running = accumulated(np.add, x, 0)
    np.testing.assert_array_equal(running, x.astype(np.int64).cumsum(0))


def specials(dtype: str, shape: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    found = []
    for values in ([np.inf], [-np.inf], [np.inf, -np.inf], [np.nan], [np.nan, np.inf]):
        x = rng.standard_normal(shape).astype(dtype)
        for value in values:
            x[tuple(rng.integers(0, shape))] = value
        found.append(x)
    found.append(np.full(shape, np.finfo(dtype).max, dtype))
    found.append(-found[-1])
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(500, 2), (1500,), (3, 700)])
@pytest.mark.parametrize("name", ["sum", "cumsum"])
def test_infinities_and_nan_as_in_jax(name, shape, dtype):
    with jax.enable_x64(True), maxjax.enable_x64(True):
        for x in specials(dtype, shape):
            for axis in range(x.ndim):
                expected = np.asarray(getattr(jax.numpy, name)(x, axis))
                with config.compile_mode("never"):
                    actual = np.asarray(getattr(jnp, name)(x, axis))
                for test in (np.isnan, np.isposinf, np.isneginf):
                    np.testing.assert_array_equal(test(actual), test(expected), f"{x} {axis}")


@pytest.mark.parametrize("function, ufunc", [("cumsum", np.add), ("cumprod", np.multiply)])
@pytest.mark.parametrize("count", [3, 200])
def test_what_has_become_infinite_or_zero_stays_so(function, ufunc, count):
    """JAX has that of three elements, forwards; of more, its blocks give NaN where one element
    after the other does not."""
    big, places = np.float32(3e38), np.arange(3) * (count // 3)
    x = np.ones((4, count), np.float32)
    x[:, places] = [[big, big, -big], [1e30, 1e30, 1e-30], [1e-30, -1e-30, 1e30], [-big, big, 0]]
    for turned, axis in ((x, 1), (x.T, 0)):
        for reverse in (False, True):
            with np.errstate(all="ignore"):
                expected = np.flip(ufunc.accumulate(np.flip(turned, axis), axis), axis) \
                    if reverse else ufunc.accumulate(turned, axis)
            ours = np.asarray(getattr(lax, function)(turned, axis, reverse=reverse))
            np.testing.assert_allclose(ours, expected, rtol=1e-5)
            np.testing.assert_array_equal(np.signbit(ours), np.signbit(expected))
            if count == 3 and not reverse:
                theirs = np.asarray(getattr(jax.lax, function)(turned, axis, reverse=reverse))
                np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_the_mean_lies_among_its_terms():
    x = (1000 + np.random.default_rng(0).random((1_000_000, 2))).astype(np.float32)
    for tier in ("never", "auto"):
        with config.compile_mode(tier):
            assert np.all(abs(jnp.mean(x, 0) - 1000.5) < 0.01)
            assert np.all(abs(jnp.std(x, 0) - 0.2887) < 0.001)
