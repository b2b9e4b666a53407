"""Functions that become one operation when they are called often behave as in their first calls."""

from __future__ import annotations

from typing import Any

import jax
import jax.scipy.linalg
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
import maxjax.scipy.linalg
from compat.evaluate import Prepared, own, surroundings
from compat.spec import X64
from compat.tables import tables
from maxjax._base.meshes import use as mesh_use
from maxjax._ir.primitive import registry
from maxjax._runtime.cells import pending
from maxjax.numpy import _at_once

X = np.random.default_rng(0).normal(size=12).astype(np.float32)
X[3], X[5], X[7] = np.nan, np.inf, -0.0
Y = np.random.default_rng(1).normal(size=12).astype(np.float32)
SYMMETRIC = np.asarray([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]], np.float32)
COUNTS = np.arange(12, dtype=np.int32) - 4

# Relative differences of narrow floats: one rounding, where programs leave one out.
RTOL = {"float16": 1e-3, "bfloat16": 8e-3}

# Calls of x and y (floats), m and s (matrices), i (integers), n (numpy), l (scipy.linalg).
CALLS = """
    n.nanmax(x) | n.nanmin(m, axis=1) | n.nanmean(x, keepdims=True) | n.nansum(m, 0)
    n.nanprod(x) | n.nanstd(m, axis=1) | n.nanvar(x, ddof=1) | n.nanargmax(x) | n.nanargmin(m, 0)
    n.median(y) | n.nanmedian(m, axis=1) | n.quantile(y, 0.3) | n.percentile(y, 30)
    n.nanquantile(x, 0.3, axis=0) | n.nanpercentile(x, 30) | n.mean(i) | n.mean(m, axis=(0, 1))
    n.average(y) | n.average(y, weights=y * y) | n.var(m, axis=0, ddof=1) | n.std(y)
    n.count_nonzero(x) | n.ptp(m, axis=1) | n.all(x) | n.any(m, axis=0) | n.angle(x) | n.log10(y)
    n.bitwise_count(i) | n.logical_not(x) | n.reciprocal(x) | n.heaviside(x, y) | n.isreal(x)
    n.iscomplex(x) | n.nan_to_num(x) | n.isinf(x) | n.fmax(x, y) | n.fmin(x, y) | n.signbit(x)
    n.copysign(x, y) | n.remainder(x, y) | n.remainder(i, 3) | n.fmod(x, y) | n.float_power(i, 2)
    n.floor_divide(x, y) | n.floor_divide(i, -3) | n.right_shift(i, 1) | n.vdot(x, y)
    n.dot(m, m.T) | n.inner(x, y) | n.kron(x, y) | n.cross(m[:, :3], m[:, 1:]) | n.outer(x, y)
    n.tensordot(m, m, 2) | n.vecdot(x, y) | n.matvec(m, y[:4]) | n.vecmat(y[:3], m)
    n.matmul(m, y[:4]) | n.convolve(x, y) | n.correlate(x, y, "same") | n.diff(x)
    n.gradient(y) | n.trapezoid(y) | n.i0(y) | n.polyval(y[:3], x)
    n.cov(m) | n.corrcoef(m) | n.tri(3, 4, 1) | n.vander(y[:4], 3) | n.trace(m) | n.diagonal(m)
    n.diag(m) | n.diag(y) | n.tril(m) | n.triu(m, 1) | n.eye(4) | n.identity(3)
    n.linspace(0.0, 1.0, 7) | n.linspace(x, y, 3) | n.logspace(0, 1, 5) | n.geomspace(1, 10, 5)
    n.argsort(x) | n.argsort(m, axis=0) | n.append(x, y) | n.ediff1d(y)
    n.partition(y, 3) | n.argpartition(y, 3) | n.pad(x, 2) | n.pad(m, 1, mode="edge")
    n.roll(m, 1, axis=1) | n.rot90(m) | n.tile(m, (2, 2)) | n.repeat(m, 2, axis=1)
    n.resize(x, (5,)) | n.linalg.norm(m, axis=1) | n.linalg.norm(y, 1) | n.linalg.norm(m[:, :3], 2)
    n.block([[s, s], [s, s]]) | n.linalg.multi_dot([m, m.T, m]) | n.linalg.lstsq(m, y[:3])
    l.cholesky(s) | l.lu(s) | l.qr(m) | l.svd(m) | l.eigh(s) | l.hessenberg(s) | l.schur(s)
    l.cho_solve((s, True), y[:3]) | l.solve_triangular(s, y[:3], lower=True) | l.lu_factor(s)
    l.lu_solve(l.lu_factor(s), y[:3]) | l.solve(s, y[:3]) | l.inv(s) | l.det(s)
    l.block_diag(s, m) | l.toeplitz(y[:3])
    n.linalg.det(s) | n.linalg.slogdet(s) | n.linalg.inv(s) | n.linalg.solve(s, y[:3])
    n.linalg.pinv(m) | n.linalg.matrix_rank(m) | n.linalg.cond(s) | n.linalg.matrix_power(s, 3)
    n.linalg.vector_norm(y) | n.linalg.matrix_norm(m) | n.linalg.tensorinv(s, 1)
    n.linalg.tensorsolve(s, y[:3]) | n.linalg.cholesky(s) | n.linalg.eigvalsh(s)
    n.linalg.svdvals(m) | n.linalg.qr(m) | n.linalg.svd(m) | n.linalg.eigh(s) | n.modf(y)
    n.divmod(x, y) | n.minmax(y) | n.take(y, 3)
    n.take(m, i[4:8], axis=1) | n.take(y, n.asarray([0, 99, -99]))
    n.take_along_axis(m, i.reshape(3, 4), 1) | n.take_along_axis(y, n.argsort(y), 0)
    n.put_along_axis(m, i.reshape(3, 4) % 4, 1.5, 1, inplace=False)
    n.searchsorted(n.sort(y), x) | n.digitize(y, n.sort(y)) | n.isclose(x, y) | n.array_equal(x, y)
    n.divide(i, 3) | n.true_divide(i, i + 9) | n.sqrt(i * i) | n.arctan2(i, 2.5)
    n.logaddexp(x, y) | n.logaddexp2(i, y) | n.sum(x, where=y > 0)
    n.max(m, 0, where=m > 0, initial=0) | n.prod(m, axis=1, initial=2)
    n.min(x, initial=-1, where=y > 0, keepdims=True)
    n.take_along_axis(m, i.reshape(3, 4) % 3, 0) | n.correlate(y, y[:3]) | n.convolve(y[:3], y)
    n.sinc(x) + n.var(x) | n.fft.fftshift(x) | n.fft.ifftshift(x)
"""
TEXTS = [text.strip() for line in CALLS.strip().splitlines() for text in line.split("|")]


@pytest.fixture(autouse=True)
def without_meshes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in which a mesh was ever set, as by another test, does without such operations."""
    monkeypatch.setattr(mesh_use, "ever_set", False)


def decorated(name: str) -> bool:
    """Whether a public name is a function that becomes one operation."""
    try:
        return any(own().find(name) is function for function in _at_once.decorated)
    except AttributeError:
        return False


def computed(text: str, library: Any) -> Any:
    numpy = library.numpy
    x, y, i = numpy.asarray(X), numpy.asarray(Y), numpy.asarray(COUNTS)
    return eval(text, {"n": numpy, "l": library.scipy.linalg, "x": x, "y": y,
                       "m": y.reshape(3, 4), "i": i,
                       "s": numpy.asarray(SYMMETRIC)})


def operations(text: str) -> list[str]:
    """The operations that a call waits for."""
    pending.flush()
    result = computed(text, maxjax)
    names = [cell.spec.primitive.name for cell in pending.cells]
    del result
    return names


@pytest.mark.parametrize("text", TEXTS)
def test_repeated_calls_are_as_the_first_and_as_jax(text: str) -> None:
    first = computed(text, maxjax)
    for _ in range(_at_once._CALLS + 1):
        last = computed(text, maxjax)
    assert any(name.startswith("repeated_") for name in operations(text))
    theirs = computed(text, jax)
    for a, b, c in zip(*map(jax.tree.leaves, (first, last, theirs)), strict=True):
        assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type)
        assert (c.dtype, c.shape, c.weak_type) == (b.dtype, b.shape, b.weak_type)
        np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=3e-7, atol=1e-7)
        np.testing.assert_allclose(np.asarray(b), np.asarray(c), rtol=5e-6, atol=2e-6)


# Calls of functions with quotients by what is the same for many elements; also in functions that
# are compiled when they are called outside others, and in those with derivatives of their own.
QUOTIENTS = """
    n.round(a, 3) | n.round(a[0], 3) | n.round(a[:1], 3) | n.linspace(a[0], a[1], 7)
    n.linspace(a, a + 3, 7) | n.logspace(a[0], a[1], 6) | n.histogram2d(a, a, 5) | n.mean(a)
    n.mean(a, keepdims=True) | n.mean(m, 1) | n.std(m, 0) | n.var(a) | n.average(a, weights=a * a)
    n.interp(a, n.sort(a), a) | n.sinc(a) | n.sinc(a[0]) | n.gradient(a, 0.3) | n.trapezoid(a, dx=3)
    n.quantile(a, 0.3) | n.cov(m) | n.corrcoef(m) | n.linalg.pinv(m) | n.logaddexp2(a, a + 1)
    n.log10(a) | n.rad2deg(a) | stax.standardize(m) | nn.standardize(m) | nn.softmax(m, 1)
    special.lpmn(3, 3, m[0] / 100) | stats.norm.logpdf(a, 1, 3) | stats.logistic.cdf(a, 1, 3)
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("text", [
    text.strip() for line in QUOTIENTS.strip().splitlines() for text in line.split("|")])
def test_quotients_are_the_same_in_all_calls(text: str, dtype: str) -> None:
    with maxjax.enable_x64(dtype == "float64"):
        a = jnp.asarray([7.0, 11.0, 3.1, 0.7, 13.0, 5.3]).astype(dtype)
        names = {"n": jnp, "nn": maxjax.nn, "stax": maxjax.example_libraries.stax,
                 "special": maxjax.scipy.special, "stats": maxjax.scipy.stats, "a": a,
                 "m": a.reshape(2, 3)}
        if dtype == "float16" and ("pinv" in text or "lpmn" in text):
            with pytest.raises(TypeError, match="float16"):      # as in JAX
                eval(text, names)
            return
        first = eval(text, names)
        last = called(eval, text, names)
        for x, y in zip(*map(maxjax.tree.leaves, (first, last)), strict=True):
            np.testing.assert_array_equal(x, y)


PUBLIC = [name for name in tables() if name.startswith("jax.") and decorated(name)]


@pytest.mark.parametrize("text", [
    "number * x", "x * mask", "n.multiply(mask, x) + 1", "number * (x + 1)", "n.cumsum(mask * x)",
    "(x - mask) * number", "mask * number / 0"])
def test_booleans_that_one_operation_converts_and_another_multiplies(
        text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one operation a product with a boolean is a choice, which NaN and infinities show."""
    monkeypatch.setattr(_at_once, "decorated", [])

    def function(n: Any, mask: Any, x: Any) -> Any:
        return eval(text, {"n": n, "mask": mask, "x": x, "number": mask.astype(np.float32)})

    repeated = _at_once.at_once(lambda mask, x: function(jnp, mask, x))
    mask, x = np.asarray([False, True, False, True]), np.asarray([np.inf, np.inf, np.nan, 2], "f4")
    expected = function(jax.numpy, *map(jax.numpy.asarray, (mask, x)))
    for _ in range(40):
        np.testing.assert_array_equal(repeated(*map(jnp.asarray, (mask, x))), expected)


@pytest.mark.parametrize("name", PUBLIC)
def test_repeated_rows_are_as_the_first(name: str) -> None:
    """The rows of the compat suite, which compares their first calls with JAX's."""
    for case in tables()[name]:
        if "eager" not in case.modes:
            continue
        with surroundings(own(), case.dtype in X64):
            row = Prepared(own(), case)
            first = outcome(row)
            for _ in range(_at_once._CALLS + 1):
                last = outcome(row)
            for a, b in zip(first, last, strict=True):
                assert type(a) is type(b), case
                if not isinstance(a, maxjax.Array):
                    assert a is b or str(a) == str(b), case
                    continue
                assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type), case
                rtol = 3e-6 if case.tolerance == "iterative" else RTOL.get(a.dtype.name, 3e-7)
                exact = jnp.complex128 if jnp.iscomplexobj(a) else jnp.float64
                with maxjax.enable_x64(True):
                    a, b = (np.asarray(x.astype(exact)) for x in (a, b))
                np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-6, err_msg=str(case))


def outcome(row: Prepared) -> list[Any]:
    """The leaves of a row's result, or the type and the words of its error."""
    try:
        return row.flat(*row.args)
    except Exception as error:
        return [type(error), str(error)]


def test_every_one_is_tested() -> None:
    tested = {text.split("(")[0].rpartition(".")[2] for text in TEXTS}
    tested |= {name.rpartition(".")[2] for name in PUBLIC} | {"reduce"}      # sum and others
    # Functions of one operation, after integers have become floats, are made in one place.
    assert not {function.__name__.strip("_") for function in _at_once.decorated
                if function.__module__ != "maxjax.numpy._elementwise"} - tested


def called(function: Any, *args: Any, **options: Any) -> Any:
    for _ in range(_at_once._CALLS + 2):
        result = function(*args, **options)
    return result


def test_calls_that_differ_are_told_apart() -> None:
    x = jnp.asarray(Y.reshape(3, 4))
    for options in ({"axis": 0}, {"axis": 1}, {"axis": False}, {"ddof": 1}, {"keepdims": True}):
        result = called(jnp.var, x, **options)
        np.testing.assert_allclose(result, jax.numpy.var(Y.reshape(3, 4), **options), rtol=1e-6)
    for value in (1, 1.0, True, 0.0, -0.0, 2):
        ours = called(jnp.copysign, x, value)
        theirs = jax.numpy.copysign(Y.reshape(3, 4), value)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_options_are_part_of_a_call() -> None:
    counts = jnp.arange(4)
    assert called(jnp.mean, counts).dtype == "float32"
    with maxjax.enable_x64(True):
        assert called(jnp.mean, jnp.arange(4)).dtype == "float64"
        assert called(jnp.linspace, 0, 1, 5).dtype == "float64"
    assert called(jnp.linspace, 0, 1, 5).dtype == "float32"
    with maxjax.numpy_rank_promotion("raise"), pytest.raises(ValueError):
        called(jnp.fmax, jnp.ones((2, 3)), jnp.ones(3))


def test_errors_stay() -> None:
    for _ in range(_at_once._CALLS + 2):
        with pytest.raises(ValueError, match="axis 3 is out of bounds"):
            jnp.median(jnp.ones(3), axis=3)
        with pytest.raises(TypeError, match="requires ndarray or scalar arguments, got"):
            jnp.mean([1.0])


@pytest.mark.parametrize("text", ["n.eye(3, dtype='int64')", "n.tri(3, dtype='int64')",
                                  "n.identity(3, 'float64')", "n.mean(x, dtype='float64')"])
def test_warnings_stay(text: str) -> None:
    for _ in range(_at_once._CALLS + 2):
        with pytest.warns(UserWarning, match="Explicitly requested dtype"):
            computed(text, maxjax)


def test_another_number_each_time_is_not_traced() -> None:
    x = jnp.asarray(Y)
    before = len(registry)
    for step in range(_at_once._LIMIT + 50):
        result = jnp.remainder(x, 1.0 + step / 64)
    assert len(registry) == before
    np.testing.assert_allclose(result, jax.numpy.remainder(Y, 1.0 + step / 64), rtol=1e-6)


def test_under_transformations_the_function_is_itself() -> None:
    x = jnp.asarray(Y)
    called(jnp.var, x)
    assert "repeated" not in str(maxjax.make_jaxpr(jnp.var)(x))
    np.testing.assert_allclose(maxjax.grad(jnp.var)(x), jax.grad(jax.numpy.var)(Y), rtol=1e-5,
                               atol=1e-7)
    np.testing.assert_allclose(maxjax.vmap(jnp.var)(x.reshape(3, 4)),
                               jax.vmap(jax.numpy.var)(Y.reshape(3, 4)), rtol=1e-6)


def test_arrays_that_lie_elsewhere_keep_their_place() -> None:
    device = maxjax.devices()[0]
    x = maxjax.device_put(jnp.asarray(Y), device)
    assert called(jnp.median, x).committed


def test_invalid_values_are_found_where_they_are_looked_for() -> None:
    x = jnp.zeros(3)
    called(jnp.reciprocal, x)
    with maxjax.debug_nans(True), pytest.raises(FloatingPointError):
        called(jnp.nanstd, jnp.asarray([np.inf, 1.0])).block_until_ready()
