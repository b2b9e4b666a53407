"""What `tests/numpy/test_sum_errors.py` asks, of native programs with and without kernels."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import config
from maxjax._runtime.program import Program
from tests.support import mojo_programs
from tests.support.long_sums import OPERATIONS, PRODUCTS, LongSum, check, long_sums
from tests.support.mojo_programs import Item
from tests.support.selection import extended_but

pytestmark = [pytest.mark.xdist_group("mojo"), pytest.mark.slow]
# What MAX has.
DTYPES = ("float32", "float64", "bfloat16", "float16", "complex64")


def planned(one: LongSum, x: np.ndarray) -> Item:
    closed = maxjax.jit(one.of)._lookup((jnp.asarray(x),), {}).closed
    item = Item(str(one), Program(closed), [*Program(closed).consts, x]).plan()
    if item.problem is not None:
        raise item.problem
    return item


def by_kernels(one: LongSum, x: np.ndarray) -> np.ndarray:
    item = planned(one, x)
    mojo_programs.build([item])
    return mojo_programs.run(item, item.values)[0]


def by_the_machine(one: LongSum, x: np.ndarray) -> np.ndarray:
    item = planned(one, x)
    return mojo_programs.run(item, item.values)[0]


@pytest.mark.parametrize("name", [*OPERATIONS, *PRODUCTS])
@pytest.mark.parametrize("count", extended_but([300], [300, 100_000]))
def test_without_kernels(name, count, monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    check(long_sums(count, [name], DTYPES), by_the_machine)


@pytest.mark.parametrize("name", ["sum", "cumsum", "windows", *PRODUCTS])
def test_a_million_without_kernels(name, monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    check(long_sums(1_000_000, [name], ["float32", "float64"]), by_the_machine)


def test_a_million_with_kernels():
    check(long_sums(1_000_000, ["sum"], ["float32", "float64"]), by_kernels)


@pytest.mark.extended
@pytest.mark.parametrize("name", OPERATIONS)
def test_with_kernels(name):
    check(long_sums(100_000, [name], DTYPES), by_kernels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape, axis", [((70_000, 2), 0), ((140_000,), 0), ((3, 50_000), 1)])
def test_infinities_and_nan(shape, axis, dtype, monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    one = LongSum("sum", shape, axis, dtype, "normal")
    rng = np.random.default_rng(5)
    with maxjax.enable_x64(True):
        for values in ([np.inf], [-np.inf], [np.inf, -np.inf], [np.nan],
                       [np.finfo(dtype).max] * 3):
            x = one.values()
            for value in values:
                x[tuple(rng.integers(0, shape))] = value
            with np.errstate(all="ignore"):
                expected = x.sum(axis)
            np.testing.assert_array_equal(
                np.isfinite(by_the_machine(one, x)), np.isfinite(expected))
            np.testing.assert_array_equal(np.isnan(by_the_machine(one, x)), np.isnan(expected))


@pytest.mark.parametrize("function", ["cumsum", "cumprod"])
def test_native_running_sums_give_the_bits_of_interpreted_ones(function, calls):
    """float32 by float64 in both, so that `random.choice` draws alike."""
    x = np.random.default_rng(1).random(5000).astype(np.float32) + np.float32(0.5)
    over = np.ones(5000, np.float32)
    over[[100, 200, 300, 2000]] = 3e38, 3e38, -3e38, 0
    for values in (x, x.reshape(50, 100), over):
        for axis in range(values.ndim):
            native = np.asarray(getattr(lax, function)(values, axis))
            assert any(name.startswith(function) for name in calls), [*calls]
            with config.compile_mode("never"):
                interpreted = np.asarray(getattr(lax, function)(values, axis))
            np.testing.assert_array_equal(native, interpreted)
