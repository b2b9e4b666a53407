"""Native functions in tier 0: each primitive returns the same as its NumPy rule.

The thresholds are lowered, so that small operands of every kind take the native path.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import native
from maxjax._base.config import compile_mode
from maxjax._ir.primitive import op_spec, registry
from maxjax._ir.types import ShapedArray
from maxjax._max.elementwise_kernels import KERNELS
from maxjax._primitives import (
    comparison,
    cumulative,
    indexing,
    random_bits,
    reduction,
    rows,
    sorting,
    threefry,
)
from maxjax._primitives.contraction import dot_general_p, integer_matmul
from maxjax._primitives.layout import reshape_p
from tests.mojo.native_calls import (
    FLOATS,
    INTEGERS,
    arrangements,
    both,
    close,
    dtype_of,
    same,
    values,
)
from tests.support.elementwise import TABLE

# The primitives whose kernels are in the pack, and their permitted errors.
UNARY, PAIRS = ({name: registry[name] for name, kernel in KERNELS.items()
                 if kernel.operands == count and np.dtype(np.float32) in native.LEAST.get(name, ())}
                for count in (1, 2))
ACCURACY = {name: row.kernel for row in TABLE for name in row.primitives
            if row.kernel is not None}


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *FLOATS])
def test_native_sorts_agree_with_numpy(calls, name):
    for shape, dimension in (((2000,), 0), ((3, 70), 1), ((70, 3), 0), ((2, 40, 3), 1)):
        x = values(name, shape, special=True)
        for operand in arrangements(x):
            both(sorting.sort_p, [operand], dimension=dimension, is_stable=True, num_keys=1)
            positions = np.arange(x.size, dtype=np.int32).reshape(shape)
            both(sorting.sort_p, [operand, positions], dimension=dimension, is_stable=True,
                 num_keys=1)
    expected = {"sort", "argsort"} - {
        kind for kind in ("sort", "argsort") if dtype_of(name) not in native.LEAST[kind]}
    assert {call.split("_")[0] for call in calls} == expected


def test_native_top_k_agrees_with_numpy(calls):
    for name in ("int8", "float16", "float32", "int64"):
        both(sorting.top_k_p, [values(name, (3, 50), special=True)], k=20, axis=1, is_stable=True)
    assert calls


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "logsumexp"])
def test_cumulative(calls, kind, name):
    if kind == "logsumexp" and name not in FLOATS or name == "bool" and kind in ("sum", "prod"):
        pytest.skip("not for this dtype")
    primitive = getattr(cumulative, f"cum{kind}_p")
    exact = kind in ("max", "min")
    for shape, axis in (((1500,), 0), ((3, 70), 1), ((70, 30), 0), ((4, 20, 6), 1)):
        x = values(name, shape)
        if kind == "prod" and name in FLOATS:
            x = (1 + x / 32).astype(x.dtype)
        for operand in arrangements(x):
            for reverse in (False, True):
                both(primitive, [operand], same if exact else close, axis=axis, reverse=reverse)
    assert bool(calls) == any(
        dtype_of(name) in native.LEAST.get(table, ())
        for table in (f"cum{kind}", f"cum{kind} columns"))


def test_cumulative_of_nan(calls):
    for kind in ("sum", "prod", "max", "min", "logsumexp"):
        x = values("float32", (50, 40))
        x[20, 7], x[0, 3], x[30, 3] = np.nan, np.inf, -np.inf
        for axis in (0, 1):
            both(getattr(cumulative, f"cum{kind}_p"), [x], close, axis=axis, reverse=False)
    assert calls


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *FLOATS])
def test_positions_of_extremes(calls, name):
    for primitive in (reduction.argmax_p, reduction.argmin_p):
        for shape, axis in (((2000,), 0), ((3, 70), 1), ((70, 9), 1), ((70, 30), 0),
                            ((4, 20, 6), 1)):
            for with_special in (False, True):
                for operand in arrangements(values(name, shape, special=with_special)):
                    for index in (np.int32, np.int8, np.int64):
                        both(primitive, [operand], axes=(axis,), index_dtype=np.dtype(index))
    assert set(calls) == {f"{kind}_{name}" for kind in ("argmax", "argmin")}


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("kind", ["add", "mul", "min", "max", "set"])
def test_scatter_rows(calls, kind, name):
    for height, width, count in ((40, 8, 200), (40, 1, 900), (1, 3, 5), (300, 30, 50)):
        x = values(name, (height, width))
        updates = values(name, (count, width), 1)
        if name in FLOATS:
            # NumPy's maximum or minimum of zeros of both signs may be either.
            x, updates = x + dtype_of(name).type(0), updates + dtype_of(name).type(0)
            x[0, 0] = updates[3, 0] = np.nan
            updates[1, 0] = np.inf
        places = np.random.default_rng(2).integers(0, height + 2, count).astype(np.int32)
        places = np.minimum(places, height)         # the last means dropped
        for operand, update in zip(arrangements(x), arrangements(updates), strict=True):
            both(rows.scatter_rows_p, [operand, places, update], kind=kind)
    assert calls


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "min", "max"])
def test_native_scatters_agree_with_numpy(calls, kind):
    """With JAX's dimension numbers, and indices out of bounds."""
    numbers = indexing.ScatterDimensionNumbers((1,), (0,), (0,), (), ())
    primitive = getattr(indexing, f"scatter_{kind}_p")
    indices = np.random.default_rng(0).integers(-3, 23, (100, 1)).astype(np.int32)
    for mode in (indexing.CLIP, indexing.FILL_OR_DROP):
        for unique in (False, True):
            both(primitive, [values("float32", (20, 5)), indices, values("float32", (100, 5), 1)],
                 dimension_numbers=numbers, mode=mode, unique_indices=unique,
                 indices_are_sorted=False)
    assert bool(calls) == (kind != "sub")


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_products(calls, name):
    plain = (((1,), (0,)), ((), ()))
    for left, right, numbers in (
            ((20, 30), (30, 10), plain),
            ((70, 60), (60, 80), plain),
            ((1, 60), (60, 50), plain),
            ((60, 60), (60, 1), plain),
            ((30, 20), (10, 30), (((0,), (1,)), ((), ()))),
            ((3, 20, 30), (3, 30, 40), (((2,), (1,)), ((0,), (0,)))),
            ((2, 3, 20, 30), (3, 30, 40, 2), (((3,), (1,)), ((0, 1), (3, 0)))),
            ((20, 30), (4, 30, 5), (((1,), (1,)), ((), ())))):
        for x in arrangements(values(name, left)):
            for y in arrangements(values(name, right, 1)):
                both(dot_general_p, [x, y], dimension_numbers=numbers, precision=None,
                     preferred_element_type=None)
    assert bool(calls) == (name != "uint8")


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_products_wrap(name):
    """Also where the exact product is beyond the dtype: NumPy's rule against Python's integers."""
    bits = 8 * dtype_of(name).itemsize
    for magnitude in range(4, bits, 4):
        x, y = (np.random.default_rng(seed).integers(0, 1 << magnitude, (32, 32)).astype(name)
                for seed in (0, 1))
        with compile_mode("never"):
            ours = integer_matmul(x, y)
        exact = x.astype(object) @ y.astype(object)
        same(ours, (exact & ((1 << bits) - 1)).astype(f"uint{bits}").view(name))


def test_small_wide_products_stay_with_blas(calls):
    """64-bit products that float64 holds exactly are BLAS's."""
    x = np.arange(6400).reshape(80, 80)
    both(dot_general_p, [x, x], dimension_numbers=(((1,), (0,)), ((), ())), precision=None,
         preferred_element_type=None)
    assert not calls


def test_native_copies_agree_with_numpy(calls):
    for name in ("bool", "int8", "float16", "bfloat16", "float32", "uint32", "float64"):
        for shape, order in (((50, 40), (1, 0)), ((6, 50, 40), (0, 2, 1)), ((4, 5, 6), (2, 0, 1)),
                             ((40, 30, 2), (1, 0, 2))):
            x = values(name, shape, special=True)
            for view in (x.transpose(order), x.transpose(order)[::-1, ::2],
                         np.broadcast_to(x.transpose(order), (3, *x.transpose(order).shape))):
                both(reshape_p, [view], new_sizes=(view.size,), dimensions=None)
    assert set(calls) == {"copy_8", "copy_16", "copy_32"}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(calls, name):
    """As accurate as the kernel claims, compared with the rule for float64, for any layout."""
    accuracy = ACCURACY[name]

    def run(operand: np.ndarray) -> np.ndarray:
        aval = ShapedArray(operand.shape, operand.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(op_spec(UNARY[name], (aval,), {}).run(operand))

    random = np.random.default_rng(0)
    x = np.concatenate([
        random.uniform(-20, 20, 3000), random.uniform(-1, 1, 1000), random.uniform(-100, 100, 500),
        random.standard_normal(400) * 1e-4, 1 + random.uniform(0, 1e-3, 100),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 3.4e38, -3.4e38, 1e-45, -1e-45],
    ]).astype(np.float32)
    if name in ("sin", "cos", "tan"):      # where turns cancel
        turns = np.concatenate([np.arange(1, 2000), 2**random.uniform(10, 100, 2000)])
        near = (turns * np.pi / 2).astype(np.float32)
        x = np.concatenate([x, near, np.nextafter(-near, np.float32(0))])
    exact = run(x.astype(np.float64))
    assert not calls
    if accuracy.xla_bits:
        with compile_mode("never"):
            exact = run(x).astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
    unit = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, np.float32(1))))
    for operand in arrangements(x):
        calls.clear()
        ours = run(operand)
        assert calls == [f"{name}_float32"] * operand.flags.c_contiguous
        assert ours.dtype == np.float32 and ours.shape == x.shape
        finite = np.isfinite(rounded) & np.isfinite(ours)
        np.testing.assert_array_equal(np.where(finite, 0, ours), np.where(finite, 0, rounded))
        error = np.abs(ours[finite].astype(np.float64) - exact[finite]) / unit[finite]
        flushed = (ours[finite] == 0) & (np.abs(rounded[finite]) < np.finfo(np.float32).tiny)
        error[flushed & accuracy.flushes] = 0
        worst = np.argmax(error)
        assert error[worst] <= accuracy.in_pack, (
            x[finite][worst], ours[finite][worst], exact[finite][worst])
        zero = rounded == 0
        np.testing.assert_array_equal(np.signbit(ours[zero]), np.signbit(rounded[zero]))
    for shape in ((0,), (), (2, 0)):
        assert run(np.zeros(shape, np.float32)).shape == shape


@pytest.mark.parametrize("name", [*PAIRS, "hypot", "logaddexp", "logaddexp2"])
def test_functions_of_two_operands(calls, name):
    """Within 3 units in the last place of the operands or the result, for any layout; for a
    primitive, as accurate as the kernel claims."""
    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            if name not in PAIRS:
                return np.asarray(getattr(jnp, name)(jnp.asarray(x), jnp.asarray(y)))
            avals = tuple(ShapedArray(operand.shape, operand.dtype) for operand in (x, y))
            return np.asarray(op_spec(PAIRS[name], avals, {}).run(x, y))

    random = np.random.default_rng(0)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -3, 0.5, 3e38, -3e38, 1e-45, -1e-39]
    x, y = (np.concatenate([grid.ravel(), random.uniform(-20, 20, 2000), random.normal(size=500),
                            np.exp(random.uniform(-80, 80, 500))]).astype(np.float32)
            for grid in np.meshgrid(odd, odd))
    y = np.concatenate([y[:len(odd) ** 2], random.permutation(y[len(odd) ** 2:])])
    y[500:1000] = np.round(y[500:1000])
    with compile_mode("never"):
        plain = run(x, y)
    with np.errstate(all="ignore"):
        if name not in PAIRS:
            truth = getattr(np, name)
        else:
            truth = ACCURACY[name].truth
        exact = plain if truth is None else truth(*np.longdouble([x, y])).astype(np.float64)
    assert not calls
    for one, other in zip(arrangements(x), arrangements(y)[::-1], strict=True):
        calls.clear()
        ours = run(one, other)
        assert calls == [f"{name}_float32"]
        assert ours.dtype == np.float32 and ours.shape == x.shape
        # NumPy's rule decides what is NaN, infinite or a zero of which sign.
        whole = np.isfinite(plain) & np.isfinite(ours)
        np.testing.assert_array_equal(np.where(whole, 0, ours), np.where(whole, 0, plain))
        zero = whole & (plain == 0) & (ours == 0)
        np.testing.assert_array_equal(np.signbit(ours[zero]), np.signbit(plain[zero]))
        scale = np.abs(plain[whole])
        if name.startswith("log"):      # of the greater operand, which the correction is added to
            for operand in (x[whole], y[whole]):
                scale = np.where(np.isfinite(operand), np.maximum(scale, np.abs(operand)), scale)
        error = np.abs(ours[whole] - exact[whole]) / np.spacing(np.minimum(scale, np.float32(3e38)))
        bound = ACCURACY[name].in_pack if name in PAIRS else 3
        assert error.max() <= bound, (x[whole][error.argmax()], y[whole][error.argmax()])
    calls.clear()
    with np.errstate(all="ignore"):
        same(run(x, np.float32(2.5).reshape(1)), run(x, np.full(x.shape, np.float32(2.5))))
    assert len(calls) == 2


def test_parts_of_floats(calls):
    x = np.concatenate([values("float32", 3000, special=True), np.float32(
        [1e-45, -1e-39, 3.4e38, 1.1754944e-38, np.inf, np.nan])])
    for function in (jnp.spacing, jnp.frexp):
        ours = list(map(np.asarray, maxjax.tree.leaves(function(jnp.asarray(x)))))
        with compile_mode("never"):
            same(ours, list(map(np.asarray, maxjax.tree.leaves(function(jnp.asarray(x))))))
    assert calls == ["spacing_float32", "frexp_float32"]


@pytest.mark.parametrize("name", ("bool", *INTEGERS, *FLOATS))
def test_selection(calls, name):
    for shape in ((5000,), (70, 90)):
        which, x, y = (values(kind, shape, seed, special=True)
                       for seed, kind in enumerate(("bool", name, name)))
        scalar = np.broadcast_to(values(name, ()), shape)
        for cases in ((x, y), (scalar, x), (x, scalar), (scalar, scalar), (x.T.copy().T, y)):
            both(comparison.select_n_p, [which, *cases])
        both(comparison.select_n_p, [which[::-1], x, y])
    assert set(calls) == {f"select_{8 * dtype_of(name).itemsize}"}


@pytest.mark.parametrize("name", ("int32", "uint32"))
def test_integer_powers(calls, name):
    x, y = values(name, 3000), np.random.default_rng(1).integers(0, 70, 3000).astype(name)
    x[::7], y[::11] = 0, 0
    ours = np.asarray(jnp.power(jnp.asarray(x), jnp.asarray(y)))
    assert calls == [f"integer_power_{name}"]
    with compile_mode("never"):
        same(ours, np.asarray(jnp.power(jnp.asarray(x), jnp.asarray(y))))


@pytest.mark.parametrize("name", ("int32", "float32", "float64"))
def test_native_searches_agree_with_numpy(calls, name):
    """As NumPy's; of lines that are not sorted, as JAX's bisection."""
    y = values(name, 3000, special=True)
    for size in (1, 2, 7, 8, 1000):
        x = np.sort(values(name, size, seed=1))
        for side in ("left", "right"):
            calls.clear()
            with maxjax.enable_x64(name == "float64"):
                ours = np.asarray(jnp.searchsorted(jnp.asarray(x), jnp.asarray(y), side))
            assert calls == [f"searchsorted_{name}"]
            same(ours, np.searchsorted(x, y, side).astype(np.int32))


def test_random_words(calls):
    for shapes in (((), (), (50,), (50,)), ((1, 1), (1, 1), (7, 30), (7, 30)),
                   ((5, 1), (5, 1), (1, 20), (1, 20)), ((40,), (40,), (40,), (40,)),
                   ((30,), (30,), (), ()), ((), (), (1500,), ())):
        words = [values("uint32", shape, seed) for seed, shape in enumerate(shapes)]
        both(random_bits.threefry2x32_p, [np.asarray(word) for word in words], tuple_of_same)
    keys = values("uint64", (3,))
    for size in (1, 300, 40_000):
        for width in (8, 16, 32, 64):
            for partitionable in (True, False):
                ours = threefry.random_bits(keys, size, width, partitionable)
                with compile_mode("never"):
                    same(ours, threefry.random_bits(keys, size, width, partitionable))
        ours = threefry.split_keys(keys, size, True)
        with compile_mode("never"):
            same(ours, threefry.split_keys(keys, size, True))
    assert set(calls) == {"threefry2x32"}


def tuple_of_same(ours: Any, theirs: Any) -> None:
    same(tuple(map(np.asarray, ours)), tuple(map(np.asarray, theirs)))


def test_empty_and_single_elements(calls):
    for shape in ((0,), (0, 4), (4, 0), (1,), (1, 1)):
        for name in ("int8", "float16", "int32"):
            x = values(name, shape)
            for axis in range(x.ndim):
                both(sorting.sort_p, [x], dimension=axis, is_stable=True, num_keys=1)
                both(sorting.sort_p, [x, x], dimension=axis, is_stable=True, num_keys=1)
                both(cumulative.cumsum_p, [x], close, axis=axis, reverse=True)
                both(cumulative.cummax_p, [x], axis=axis, reverse=False)
                if x.shape[axis]:
                    both(reduction.argmax_p, [x], axes=(axis,), index_dtype=np.dtype(np.int32))
            both(reshape_p, [x.T], new_sizes=(x.size,), dimensions=None)
    both(reshape_p, [np.float32(3)], new_sizes=(1,), dimensions=None)
    for left, right in (((0, 3), (3, 4)), ((3, 0), (0, 4)), ((3, 4), (4, 0))):
        both(dot_general_p, [values("int32", left), values("int32", right)],
             dimension_numbers=(((1,), (0,)), ((), ())), precision=None,
             preferred_element_type=None)
    for count in (0, 1):
        both(rows.scatter_rows_p, [values("int8", (3, 2)), np.zeros(count, np.int32),
                                   values("int8", (count, 2))], kind="add")


def test_native_isclose_agrees_with_numpy(calls):
    x = values("float32", 3000, special=True)
    near = x * (1 + values("float32", 3000, 1) * np.float32(2e-5))
    y = np.where(np.arange(3000) % 3 == 0, x, near)
    for options in ({}, {"rtol": 1e-3, "atol": 0.01}, {"equal_nan": True}, {"rtol": 0.0}):
        ours = np.asarray(jnp.isclose(jnp.asarray(x), jnp.asarray(y), **options))
        with compile_mode("never"):
            same(ours, np.asarray(jnp.isclose(jnp.asarray(x), jnp.asarray(y), **options)))
    assert calls == ["isclose_float32"] * 4


def test_reduced_precision(calls):
    edges = np.float32([1e-45, -1e-39, 1.1754944e-38, 3.4e38, -3.4e38, 65504, 65519.99, 65520,
                        6e-5, 6.1035156e-5, 448, 464, 465])
    x = np.concatenate([values("float32", 3000, special=True), edges, -edges,
                        np.exp(np.random.default_rng(2).uniform(-80, 80, 500)).astype(np.float32)])
    for bits in ((8, 23), (8, 7), (5, 10), (4, 3), (5, 2), (8, 0), (2, 20), (1, 4)):
        ours = np.asarray(lax.reduce_precision(jnp.asarray(x), *bits))
        with compile_mode("never"):
            same(ours, np.asarray(lax.reduce_precision(jnp.asarray(x), *bits)))
    assert calls == ["reduce_precision_float32"] * 8


def test_complex_numbers(calls):
    """Within 4 units in the last place of each part; NaN, infinities, zeros as NumPy's rule."""
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 80, -100, 3e38, -3e38, 1e-30]
    random = np.random.default_rng(0)
    grid = np.array([complex(a, b) for a in odd for b in odd], np.complex64)
    x = np.concatenate([grid, random.normal(size=3000) * 5 + 1j * random.normal(size=3000) * 40])
    x = x.astype(np.complex64)
    for function, name in ((jnp.abs, "abs"), (jnp.exp, "exp")):
        calls.clear()
        ours = np.asarray(function(jnp.asarray(x)))
        assert calls == [f"{name}_complex64"]
        with compile_mode("never"), np.errstate(all="ignore"):
            plain = np.asarray(function(jnp.asarray(x)))
            exact = getattr(np, name)(x.astype(np.complex128))
        assert ours.dtype == plain.dtype and ours.shape == plain.shape
        for a, b, c in ((ours.real, plain.real, exact.real), (ours.imag, plain.imag, exact.imag)):
            whole = np.isfinite(b)
            np.testing.assert_array_equal(np.where(whole, 0, a), np.where(whole, 0, b))
            np.testing.assert_array_equal(np.signbit(a[b == 0]), np.signbit(b[b == 0]))
            error = np.abs(a[whole].astype(np.float64) - c[whole])
            wrong = error > 4 * np.spacing(np.abs(b[whole]))
            assert not wrong.any(), (x[whole][wrong], a[whole][wrong], c[whole][wrong])
