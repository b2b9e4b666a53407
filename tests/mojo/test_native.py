"""Native functions in tier 0: each primitive returns the same as its NumPy rule.

The thresholds are lowered, so that small operands of every kind take the native path.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import native
from maxjax._base.config import compile_mode, config
from maxjax._ir.primitive import op_spec, registry
from maxjax._ir.types import ShapedArray
from maxjax._max.elementwise_kernels import pack_kernels
from maxjax._max.mojo import crew
from maxjax._primitives import (
    comparison,
    cumulative,
    indexing,
    linalg_factors,
    linalg_solve,
    linalg_spectral,
    random_bits,
    reduction,
    rows,
    sorting,
)
from maxjax._primitives.contraction import dot_general_p, integer_matmul
from maxjax._primitives.layout import reshape_p
from maxjax._runtime.native_functions import NativeFunctions
from maxjax._runtime.native_functions import functions as installed
from tests.mojo.native_calls import (
    FLOATS,
    INTEGERS,
    BuiltPack,
    Calls,
    arrangements,
    both,
    close,
    dtype_of,
    same,
    values,
)
from tests.support.elementwise import TABLE

# The primitives whose kernels are in the pack, and their permitted errors.
UNARY, PAIRS = ({kernel.name: registry[kernel.name] for kernel in pack_kernels()
                 if kernel.operands == count} for count in (1, 2))
ACCURACY = {name: row.kernel for row in TABLE for name in row.primitives
            if row.kernel is not None}


@pytest.fixture
def restored():
    yield
    native.install(installed)


@pytest.fixture(scope="module")
def provider() -> Calls:
    return Calls()


@pytest.fixture
def calls(provider, monkeypatch, restored):
    """Native functions from the first element on, and from there on threads."""
    monkeypatch.setattr(native, "FEWEST", 1)
    monkeypatch.setattr(native, "COLUMNS", 2)
    monkeypatch.setattr(native, "WIDE_COLUMNS", 2)
    monkeypatch.setattr(native, "SET_WIDTHS", range(2, 100))
    monkeypatch.setattr(native, "LEAST", {
        kind: dict.fromkeys(table, 0) for kind, table in native.LEAST.items()})
    monkeypatch.setattr(native, "PARALLEL", 1000)
    provider.names.clear()
    native.install(provider)
    with compile_mode("auto"):
        yield provider.names


# --- each primitive -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *FLOATS])
def test_sort(calls, name):
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


def test_top_k(calls):
    for name in ("int8", "float16", "float32", "int64"):
        both(sorting.top_k_p, [values(name, (3, 50), special=True)], k=20, axis=1)
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
def test_scatter(calls, kind):
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


def test_copies(calls):
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


@pytest.mark.parametrize("name", ("int32", "float32"))
def test_searches(calls, name):
    """As NumPy's; of lines that are not sorted, as JAX's bisection."""
    y = values(name, 3000, special=True)
    for size in (1, 2, 7, 8, 1000):
        x = np.sort(values(name, size, seed=1))
        for side in ("left", "right"):
            calls.clear()
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
                ours = random_bits.random_bits(keys, size, width, partitionable)
                with compile_mode("never"):
                    same(ours, random_bits.random_bits(keys, size, width, partitionable))
        ours = random_bits.split_keys(keys, size, True)
        with compile_mode("never"):
            same(ours, random_bits.split_keys(keys, size, True))
    assert set(calls) == {"threefry2x32"}


def tuple_of_same(ours: Any, theirs: Any) -> None:
    same(tuple(map(np.asarray, ours)), tuple(map(np.asarray, theirs)))


def matrices(name: str, *shape: int) -> np.ndarray:
    random = np.random.default_rng(shape)
    x = random.standard_normal(shape)
    if name.startswith("complex"):
        x = x + 1j * random.standard_normal(shape)
    return x.astype(name)


def definite(name: str, *shape: int) -> np.ndarray:
    x = matrices(name, *shape)
    return x @ x.conj().swapaxes(-1, -2) + 2 * np.eye(shape[-1], dtype=name)


def close_matrices(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, (list, tuple)):
        for a, b in zip(ours, theirs, strict=True):
            close_matrices(a, b)
        return
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    bound = 2000 * np.finfo(ours.dtype).eps if ours.dtype.kind in "fc" else 0
    np.testing.assert_allclose(ours, theirs, rtol=bound, atol=bound)


def magnitudes(ours: Any, theirs: Any) -> None:
    """Of vectors whose phases are free."""
    close_matrices([np.abs(x) for x in ours], [np.abs(x) for x in theirs])


LINALG_DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("name", LINALG_DTYPES)
@pytest.mark.parametrize("size", (1, 4, 9, 40))
def test_factorizations(calls, name, size):
    """Stacks of matrices, some of which have no factors, in every layout."""
    for shape in ((2, 3, size, size), (70, size, size + 1), (5, size + 2, size)):
        for x in arrangements(matrices(name, *shape)):
            both(linalg_factors.lu_p, [x], close_matrices)
            both(linalg_factors.geqrf_p, [x], close_matrices)
            for full in (False, True):
                both(linalg_factors.qr_p, [x], close_matrices, full_matrices=full,
                     pivoting=False, use_magma=None)
    x = definite(name, 70, size, size)
    both(linalg_factors.cholesky_p, [x], close_matrices)
    x[3], x[7, 0, 0] = -x[3], np.nan
    x[9] = 0
    both(linalg_factors.cholesky_p, [x], close_matrices)
    both(linalg_factors.lu_p, [x[8:12]], close_matrices)
    bits = np.dtype(name).itemsize * 8
    assert set(calls) == {f"{kind}_{bits}" for kind in ("getrf", "geqrf", "orgqr", "potrf")}


@pytest.mark.parametrize("name", LINALG_DTYPES)
@pytest.mark.parametrize("size", (1, 4, 20))
def test_systems(calls, name, size):
    a = definite(name, 70, size, size) / size
    for columns in (1, 3, 20):
        b = matrices(name, 70, size, columns)
        both(linalg_solve.solve_p, [a, b], close_matrices)
        for x in (a, np.asfortranarray(a)):
            for left, lower, transpose, conjugate, unit in itertools.product((False, True),
                                                                              repeat=5):
                both(linalg_solve.triangular_solve_p, [x, b if left else b.swapaxes(1, 2)],
                     close_matrices, left_side=left, lower=lower, transpose_a=transpose,
                     conjugate_a=conjugate, unit_diagonal=unit)
    # Singular matrices divide by zero.
    a[1] = 0
    with np.errstate(all="ignore"):
        ours = op_spec(linalg_solve.solve_p, tuple(
            ShapedArray(x.shape, x.dtype) for x in (a, b)), {}).run(a, b)
    assert not np.isfinite(ours[1]).any() and np.isfinite(ours[2:]).all()
    bits = np.dtype(name).itemsize * 8
    assert set(calls) == {f"trsm_{bits}", f"getrs_{bits}"}


@pytest.mark.parametrize("name", LINALG_DTYPES)
@pytest.mark.parametrize("size", (1, 4, 30))
def test_spectra(calls, name, size):
    x = definite(name, 8, size, size) * np.arange(1, size + 1).astype(name)[:, None]
    x = x + x.conj().swapaxes(1, 2)
    for lower in (False, True):
        both(linalg_spectral.eigh_p, [x], magnitudes, lower=lower, sort_eigenvalues=True,
             subset_by_index=None, algorithm=None)
    for shape in ((8, size, size), (2, 3, size + 2, size), (5, size, size + 1)):
        for full, vectors in ((False, True), (True, True), (False, False)):
            a = matrices(name, *shape)
            both(linalg_spectral.svd_p, [a], magnitudes if not full else compare_values,
                 full_matrices=full, compute_uv=vectors, subset_by_index=None, algorithm=None)
    bad = x.copy()
    bad[2] = np.nan
    values = both(linalg_spectral.svd_p, [bad], close_matrices, full_matrices=False,
                  compute_uv=False, subset_by_index=None, algorithm=None)[0]
    assert np.isnan(values[2]).all() and np.isfinite(values[3]).all()
    bits = np.dtype(name).itemsize * 8
    assert set(calls) == {f"{kind}_{bits}" for kind in ("syevd", "gesdd", "gesdd_values")}


def compare_values(ours: Any, theirs: Any) -> None:
    """Singular values; beyond as many, vectors are any of those that are left."""
    close_matrices(ours[0], theirs[0])
    for x in ours[1:]:
        product = x @ x.conj().swapaxes(-1, -2)
        close_matrices(product, np.broadcast_to(
            np.eye(product.shape[-1], dtype=x.dtype), product.shape).copy())


def test_single_matrices_stay_with_scipy(calls):
    x = matrices("float32", 1, 40, 40)
    both(linalg_factors.lu_p, [x])
    assert not calls


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


# --- when they are used ---------------------------------------------------------------------------


def big(size: int = 5000) -> np.ndarray:
    return values("int8", size)


def sort(x: np.ndarray) -> np.ndarray:
    return op_spec(sorting.sort_p, (ShapedArray(x.shape, x.dtype),), {
        "dimension": 0, "is_stable": True, "num_keys": 1}).run(x)[0]


def test_thresholds(provider, restored):
    provider.names.clear()
    native.install(provider)
    least = native.LEAST["sort"][np.dtype(np.int8)]
    with compile_mode("auto"):
        sort(big(least - 1))
        assert provider.names == []
        sort(big(least))
        assert provider.names == ["sort_int8"]
    for table in native.LEAST.values():
        assert min(table.values(), default=native.FEWEST) >= native.FEWEST


def test_options(calls):
    x = big()
    with compile_mode("never"):
        sort(x)
    assert calls == []
    config.update("check_tiers", True)
    try:
        sort(x)         # the reference of the comparison
        assert calls == []
    finally:
        config.update("check_tiers", False)
    sort(x)
    assert calls == ["sort_int8"]
    # An option that one thread sets for itself does not affect another.
    with compile_mode("never"), ThreadPoolExecutor(1) as other:
        def elsewhere() -> None:
            with compile_mode("auto"):
                sort(x)
        other.submit(elsewhere).result()
        assert len(calls) == 2
        sort(x)
        assert len(calls) == 2


def test_no_provider(restored):
    native.install(None)
    with compile_mode("auto"):
        same(sort(big()), np.sort(big()))


def test_provider_that_fails(restored):
    asked = []

    def failing(name: str) -> None:
        asked.append(name)
        raise OSError("the disk is gone")

    native.install(failing)
    with compile_mode("auto"):
        for _ in range(3):
            same(sort(big()), np.sort(big()))
    assert asked == ["sort_int8"]


def test_nobody_waits_for_the_pack(restored):
    """The pack is opened in the background; missing functions are not searched again at once."""
    looks, go = [], threading.Event()

    class Slow:
        def address(self, name: str) -> int | None:
            looks.append(name)
            assert go.wait(30)
            return BuiltPack().address(name) if name == "sort_int8" else None

    functions = NativeFunctions(Slow)
    native.install(functions)
    with compile_mode("auto"):
        for _ in range(3):
            same(sort(big()), np.sort(big()))
        go.set()
        functions._loading.join(30)
        assert looks == ["sort_int8"]
        assert native.find("sort", np.dtype(np.int8), 5000) is not None
        same(sort(big()), np.sort(big()))
        for _ in range(3):
            assert native.find("sort", np.dtype(np.int16), 5000) is None
            functions._loading.join(30)
        assert looks == ["sort_int8", "sort_int16"]


def test_pack_that_cannot_be_opened(restored):
    def broken() -> Any:
        raise RuntimeError("no pack")

    functions = NativeFunctions(broken)
    native.install(functions)
    with compile_mode("auto"):
        same(sort(big()), np.sort(big()))
        functions._loading.join(30)
        same(sort(big()), np.sort(big()))


def test_threads_are_for_large_operands_alone(monkeypatch):
    monkeypatch.setattr(crew, "cores", lambda: 4)
    started = []
    monkeypatch.setattr(crew, "start", lambda pack: started.append(pack))
    functions = NativeFunctions(BuiltPack)
    assert functions.load("sort_int8")
    x = big(1 << 20)
    out = np.empty_like(x)
    functions("sort_int8")((x[:5000], out[:5000]), (1, 5000), 5000)
    assert not started
    functions("sort_int8")((x, out), (1, x.size), x.size)
    assert len(started) == 1 and functions.threads() == 4
    same(out, np.sort(x))


def test_many_threads(calls):
    x = values("float16", (300, 50))
    sums = np.add.accumulate(x.astype(np.float32), 0).astype(x.dtype)
    expected = np.sort(x, axis=0, kind="stable"), sums

    def work(_: int) -> None:
        with compile_mode("auto"):
            for _ in range(20):
                same(sort(x), expected[0])
                close(cumulative.cumsum_p.evaluate(x, axis=0, reverse=False), expected[1])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(calls) == 8 * 20 * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_a_fork(calls):
    """The crew stayed behind, and the child has one of its own."""
    x = big(1 << 20)
    expected = np.sort(x)
    same(sort(x), expected)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            calls.clear()
            before = crew._cell[0]
            right = np.array_equal(sort(x), expected) and calls == ["sort_int8"]
            status = 0 if right and not before and (crew._cell[0] or crew.cores() == 1) else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + 60
    done, status = os.waitpid(child, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(0.05)
        done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done and status == 0


def test_finding_is_cheap(provider, restored):
    """Far below a microsecond, so that it is negligible."""
    native.install(provider)
    kind = np.dtype(np.int8)

    def nanoseconds(size: int) -> float:
        best = float("inf")
        for _ in range(50):
            start = time.perf_counter_ns()
            for _ in range(200):
                native.find("sort", kind, size)
            best = min(best, (time.perf_counter_ns() - start) / 200)
        return best

    with compile_mode("auto"):
        assert native.find("sort", kind, 1 << 20) is not None
        assert nanoseconds(1 << 20) < 1500
        assert nanoseconds(10) < 1000


def test_import_looks_at_nothing():
    """Importing maxjax and small operands open no pack and do not import MAX."""
    program = ("import sys, maxjax, maxjax.numpy as jnp\n"
               "from maxjax._runtime.native_functions import functions\n"
               "print(jnp.sort(jnp.arange(50))[:2])\n"
               "assert functions._loading is None and not functions._addresses\n"
               "assert not any(name == 'max' or name.startswith('max.') for name in sys.modules)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "MAXJAX_COMPILE": "auto"})
    assert done.returncode == 0, done.stderr


def test_isclose(calls):
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
