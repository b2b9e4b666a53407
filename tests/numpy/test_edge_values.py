"""Values and derivatives at edges, against real JAX: zeros, infinities, NaN, empty arrays,
out-of-range parameters, separated indices, bounds that must be exact."""

from __future__ import annotations

import functools
import os
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MAXJAX_COMPILE", "never")

import jax
import jax.scipy.linalg
import jax.scipy.optimize
import jax.scipy.special
import jax.scipy.stats
import numpy as np
import pytest

import maxjax
import maxjax.lax
import maxjax.scipy.linalg
import maxjax.scipy.optimize
import maxjax.scipy.special
import maxjax.scipy.stats
from tests.support.against_jax import assert_tree_same, errors_of

EMPTY = "j.ones((3, 0)); j.ones((0, 3)); j.ones(0); j.ones((0, 0)); j.ones((2, 0, 3))"

# `j` is jax.numpy, `d` jax, `l` jax.lax, `s` jax.scipy.
EXPRESSIONS = """
d.jit(lambda x: l.select_n(j.int32(3), x, -x))(j.arange(3.))
d.jit(lambda x: l.select_n(j.int32(-1), x, -x))(j.arange(3.))
j.histogram(j.array([15, 15, 14]), bins=5, range=(0, 25))[0]
j.zeros(1, 'uint32').at[0].set(2**32 - 1); j.zeros(2, 'uint32').at[:].max(2**32 - 1)
j.full(2, 2**32 - 1, 'uint32'); j.zeros(3, bool).at[0].add(True); j.zeros(1, 'uint32').at[0].set(-1)
j.trapezoid(A, dx=j.array([[1., 2.], [3., 4.]]), axis=0); j.trapezoid(A, dx=[2., 3.], axis=0)
j.trapezoid(j.ones((3, 4, 5)), dx=j.ones((3, 5)), axis=1); j.trapezoid(A, dx=j.array([2.]), axis=1)
j.heaviside(j.array([0, 1]), .5); j.heaviside(.5, j.array([0, 1])); j.heaviside(0., .5)
j.hypot(j.array([3, 0]), 4.); j.hypot(3., 4.); j.hypot(True, 2.)
j.copysign(j.array(1.), np.float32(2))
j.ldexp(j.float32(0), 2**30); j.ldexp(j.float32(-0.), 5); j.ldexp(j.float32(1), 127)
j.ldexp(j.float32(.75), 128); j.ldexp(j.float32(1), 2**30); j.ldexp(j.float32(1), -2**30)
j.ldexp(j.array([j.inf, -j.inf, j.nan]), 3); j.ldexp(j.float16(3), -3); j.ldexp(3, j.int8(2))
j.linspace(-3e38, 3e38, 3); j.linspace(0, 3e38, 50)[-2] < j.inf; j.linspace(0, 1e-37, 5)
j.linspace(0, 100j, 5); j.linspace(1, 0, 1, retstep=True); j.linspace(0, 100, 27, dtype='int8')
j.linspace(j.array([[1], [2]]), j.array([3, 5]), 3, axis=1); j.linspace(0., j.nan, 3)
j.sinc(1.); j.sinc(j.array([0., -0., 1e-30, j.inf]))
s.special.sici(j.array([-j.inf, j.inf, 0., -2.]))
s.special.sici(1.); s.special.fresnel(1.); s.special.xlogy(0., j.nan); s.special.xlogy(0., 0.)
s.special.xlog1py(0., j.nan); s.special.xlog1py(0., -1.); s.special.xlogy(j.nan, 0.)
s.special.comb(j.array([0., 0., 5., -1.]), j.array([0., 1., 0., 0.]), repetition=True)
s.stats.beta.pdf(j.array([0., .5, 1.]), -1.1, -1.1); s.stats.beta.logpdf(.5, 1., 2., 0., -1.)
s.stats.expon.pdf(j.nan); s.stats.expon.logpdf(j.nan); s.stats.expon.cdf(j.array([-1., j.nan]))
s.stats.beta.pdf(j.array([-1., 2., .5]), 2., j.nan); s.stats.beta.pdf(.5, 0., 1.)
s.stats.rankdata(j.array([1., j.nan, 3.])); s.stats.rankdata(j.zeros((3, 0)), axis=1)
[s.stats.rankdata(j.array([[1., j.nan, 3.], [3., 1., 1.]]), m, axis=1) for m in ('min', 'dense')]
s.stats.cauchy.ppf(.5); s.stats.cauchy.ppf(j.array([0., .1, .25, .4, .75, 1., -.1, 1.1, j.nan]))
s.stats.cauchy.isf(j.array([.5, .3, -.1])); j.linalg.det(d.lax.broadcast(j.asarray(2.), (1, 1)))
s.stats.rankdata(j.array([3, 1, 1])); s.stats.poisson.entropy(1., j.ones(4))
s.stats.poisson.entropy(j.ones((2, 1)), j.ones(3))
[s.stats.sem(j.ones((5, 6)), axis=a, keepdims=k) for a in (None, 0) for k in (True, False)]
[s.stats.sem(A, axis=None, keepdims=k, nan_policy='omit') for k in (True, False)]
j.linalg.lstsq(j.zeros((2, 2)), j.ones((2, 2)))
j.linalg.lstsq(j.zeros((3, 2)), j.ones(3), rcond=0.)
s.linalg.rsf2csf(j.ones((1, 1)), j.ones((1, 1))); s.linalg.rsf2csf(M, M)
s.linalg.rsf2csf(B, j.eye(3))
j.cov(j.array([])); j.cov(j.ones((2, 0))); j.cov(j.ones((0, 2))); j.corrcoef(j.array([]))
j.cov(j.arange(3.).reshape(1, 3), rowvar=False); j.cov(j.arange(3.), rowvar=False)
j.corrcoef(j.arange(3.).reshape(1, 3), rowvar=False)
j.c_['-1', [1, 2, 3], [4, 5, 6]]; j.r_['0,4,-2', [1, 2, 3], [4, 5, 6]]; j.r_['0,2', 1, 2]
j.r_['1,3,0', [1, 2], [3, 4]]; j.c_['0,3,-3', [1, 2], [3, 4]]
j.r_['-1,2,1', [1, 2], j.ones((2, 1))]
j.r_['r', 1, 2]; j.c_['c', [1, 2]]; j.r_['0,3,1', 0:3, 5:8]; j.r_['x', 1]; j.r_[1, 'r']
j.zeros(64, 'uint8').view('int4').shape; j.arange(8).astype('int4').view('uint8')
j.arange(32).astype('int4').reshape(2, 16).view('int16'); j.arange(4, dtype='uint8').view('uint4')
j.zeros(3, 'int4').view('uint8'); j.zeros((), 'int4').view('uint4')
j.zeros((), 'int4').view('int8')
j.zeros((2, 0), 'int4').view('float32'); j.arange(4, dtype='float32').view('uint4').shape
[x.shape for x in j.unique(j.zeros((3, 0)), return_inverse=True)]
[l.dot(j.ones((2, 2), x), j.ones((2, 2), y)) for x, y in P]
l.reduce_window(C, j.inf, l.min, (2, 1), (2, 1), 'SAME', base_dilation=(2, 3))
l.reduce_window(C, 0., l.add, (2, 2), (1, 2), 'SAME', (2, 1), (1, 2))
l.reduce_window(C, -j.inf, l.max, (3, 2), (2, 2), 'SAME_LOWER', base_dilation=(1, 2))
[tuple(x) for x in j.einsum_path('ii->i', j.ones((4, 4)), optimize=False)[0]]
[tuple(x) for x in j.einsum_path('ij,jk', j.ones((4, 4)), j.ones((4, 4)), optimize=False)[0]]
j.unwrap(j.zeros(0, 'int8'), period=4); j.unwrap(j.zeros(0, 'int8')); j.unwrap(j.zeros((2, 0)))
j.unwrap(j.arange(7, dtype='int8') * 5 % 17, period=j.array(4))
j.unwrap(j.zeros(0, bool), period=4)
bool(d.random.key(0)); bool(d.random.split(d.random.key(0), 2))
[l.dot(I.astype(x), I.T.astype(y)) for x in ('int4', 'uint4') for y in ('int4', 'uint4')]
j.array(3) ** j.array(2); j.array(3) ** j.int8(2); 3 ** j.array(2); j.array(3) ** True
j.array(3) ** j.array(-1); j.array([1, 2]) ** np.array(-1); j.array(2.) ** j.array(True)
j.array(3, 'int8') ** j.array([2]); j.power(True, j.array(2, 'uint8')); j.array([2.]) ** j.array(-2)
d.vmap(lambda n: 2. ** n)(j.arange(3)); d.vmap(lambda x: x ** j.array(-1))(j.arange(3.))
d.value_and_grad(lambda x, n: x ** n)(0., 0); d.value_and_grad(lambda x, n: x ** n)(0., j.array(0))
d.jvp(lambda x: l.bitcast_convert_type(x, 'float32'), (2.,), (3.,))
l.bitcast_convert_type(True, bool); l.bitcast_convert_type(j.ones(2, 'int4'), 'int4')
s.stats.bernoulli.logpmf(Z, .3); s.stats.bernoulli.pmf(1., .3, j.nan); s.stats.geom.pmf(Z, .3)
s.stats.betabinom.logpmf(Z, 4., 1., j.array([[2.], [0.], [j.nan]])); s.stats.nbinom.pmf(Z, 2., .4)
s.stats.poisson.pmf(Z, 1.5); s.stats.poisson.pmf(1., 2., .5); s.stats.poisson.cdf(Z[:6], 1.5)
s.stats.poisson.cdf(j.nan, 1.5); s.stats.uniform.pdf(Z); s.stats.uniform.logpdf(.5, j.nan)
s.stats.expon.logcdf(Z); s.stats.expon.logcdf(1., j.nan); s.stats.expon.logcdf(0., 0., 0.)
[getattr(s.stats.pareto, f)(Z, 2.) for f in ('pdf', 'logpdf', 'cdf', 'logcdf', 'sf', 'logsf')]
[getattr(s.stats.pareto, f)(2., 2., j.array([j.nan, 0.]), 0.) for f in ('pdf', 'logcdf', 'sf')]
[getattr(s.stats.chi2, f)(Z, 3.) for f in ('pdf', 'logpdf', 'cdf', 'logcdf', 'sf', 'logsf')]
s.stats.chi2.pdf(1., 3., j.nan); s.stats.chi2.sf(-1., j.nan); s.stats.gamma.sf(Z, 0.)
s.stats.gamma.logsf(-1., j.array([0., -1., j.nan])); s.stats.gamma.sf(Z, 2.)
s.stats.t.pdf(Z, 3.); s.stats.t.logpdf(Z, 3., 0., -2.); s.stats.t.pdf(j.array([0., 2.]), 1e3)
s.stats.gumbel_l.ppf(.3, 1., -2.); s.stats.gumbel_r.ppf(.3, 1., j.array([0., -1.]))
s.stats.truncnorm.pdf(Z, -1., 2., 0., -1.); s.stats.truncnorm.logpdf(1., -1., 2., 0., 0.)
s.stats.truncnorm.cdf(j.array([-1., 0.]), 0., j.nan); s.stats.cauchy.ppf(j.array([.1, .5, .9]))
s.stats.cauchy.isf(j.array([.1, .25, .9, j.nan]), 1., 2.)
d.random.poisson(d.random.key(0), j.array([1e10, 3e9, 20., 0., j.nan]))
d.random.poisson(d.random.key(0), j.array([1e10, 200., 3.]), dtype='int8')
d.random.poisson(d.random.key(0), 300., dtype='uint8'); d.nn.logsumexp(C, where=C > 100)
""" + "\n".join(
    f"j.unique({x}, return_index=True, return_inverse=True, return_counts=True, axis={axis})"
    for x in EMPTY.split("; ") for axis in (None, 0))

CONSTANTS: dict[str, Any] = {
    "np": np, "A": np.arange(6, dtype=np.float32).reshape(3, 2),
    "C": np.arange(24, dtype=np.float32).reshape(4, 6),
    "I": np.arange(-8, 7, dtype=np.int8).reshape(3, 5),
    "Z": np.array([0, -0., 1, -1, .5, 2, 1e30, np.inf, -np.inf, np.nan], np.float32),
    "M": np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32),
    "B": np.random.default_rng(1).normal(size=(2, 3, 3)).astype(np.float32),
    "P": [("int16", "uint32"), ("uint32", "int32"), ("int8", "uint8"), ("bool", "int8"),
          ("float16", "bfloat16"), ("int32", "float16"), ("complex64", "float32")],
}


def expressions(text: str) -> list[str]:
    return [part.strip() for line in text.splitlines() for part in line.split("; ") if part.strip()]


def evaluated(library: Any, expression: str, constants: dict[str, Any]) -> Any:
    return eval(expression, {"j": library.numpy, "d": library, "l": library.lax,
                             "s": library.scipy, **constants})


def check(expression: str, constants: dict[str, Any] = CONSTANTS, **options: Any) -> None:
    """Both libraries give the same of an expression: values and types, or the type of an error."""
    try:
        expected = evaluated(jax, expression, constants)
    except Exception:
        ours, theirs = errors_of(lambda library: evaluated(library, expression, constants))
        assert type(ours).__name__ == type(theirs).__name__
        return
    assert_tree_same(evaluated(maxjax, expression, constants), expected, "iterative", **options)


@pytest.mark.parametrize("expression", expressions(EXPRESSIONS))
def test_a_value_at_an_edge_is_that_of_jax(expression: str) -> None:
    check(expression)


# A function of x, the points where it is differentiated, and the order of the derivative.
DERIVATIVES = """
4 | j.sinc(x) | 0. .5 -1.
2 | j.frexp(x)[0] | 10. .3 -1.
1 | s.special.zeta(x, 2.5) | 3. 1.1 10.
2 | s.special.zeta(x, q) | 2. 3.5
1 | s.special.zeta(2., x) | .5 3.
3 | x ** j.array(0) | 0. 2.
2 | x ** np.array(1) | 0.
1 | d.lax.bitcast_convert_type(x, 'float32') | 2.
2 | x ** j.array([0, 1, 2, 3]) | 0. -1.
2 | x ** np.array([0, 1, 2]) | 0.
2 | d.jit(lambda x, n: x ** n)(x, 0) | 0. 2.
1 | d.nn.logsumexp(x * j.array([0., 1., 1000.]), where=j.arange(3) < 2) | 1. 3.
1 | s.special.logsumexp(j.array([1., x, j.inf]), where=j.array([True, True, False])) | 0. 2.
1 | d.random.loggamma(d.random.key(0), x, (3,)) | 1e-5 1e-3 .5 20.
1 | d.random.beta(d.random.key(0), x, .5) | .01 1.
1 | s.special.xlogy(x, 2.) | 0. 1.
1 | s.special.xlog1py(0., x) | -.5 2.
1 | j.ldexp(x, 3) | 0. 2.
1 | d.lax.polygamma(x, 2.5) | 3.
"""


def derivatives() -> list[tuple[int, str, float]]:
    rows = []
    for line in DERIVATIVES.strip().splitlines():
        order, text, places = (part.strip() for part in line.split("|"))
        rows += [(int(order), text, float(place)) for place in places.split()]
    return rows


@pytest.mark.parametrize("order, text, place", [
    pytest.param(*row, marks=[pytest.mark.extended] if number % 3 else [])
    for number, row in enumerate(derivatives())], ids=str)
def test_derivative(order: int, text: str, place: float) -> None:
    def nth(library: Any) -> Any:
        def function(x: Any) -> Any:
            names = {"j": library.numpy, "d": library, "s": library.scipy, "np": np, "x": x,
                     "q": 1.5}
            return library.numpy.sum(eval(text, names))

        for _ in range(order):
            function = library.grad(function)
        return function(np.float32(place))

    try:
        expected = nth(jax)
    except Exception:
        ours, theirs = errors_of(nth)
        assert type(ours).__name__ == type(theirs).__name__
        return
    np.testing.assert_allclose(np.asarray(nth(maxjax)), np.asarray(expected), rtol=2e-4, atol=1e-6)


# --- linspace -------------------------------------------------------------------------------------

HALVES = np.array([0, 1, -1, 2, .5, -2.5, 7.5, 3, 25, 100, -14, 360])
STARTS, STOPS = (grid.ravel() for grid in np.meshgrid(HALVES, HALVES))


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("num", [0, 1, 2, 6, 11, 49, 200])
def test_linspace_is_exact_where_it_can_be(num: int, dtype: str, endpoint: bool) -> None:
    """JAX's values up to rounding, and exact where a float represents the value: counts of a
    histogram depend on the edges of its bins."""
    (ours, step), (theirs, their_step) = (
        library.numpy.linspace(STARTS, STOPS, num, endpoint, retstep=True, dtype=dtype)
        for library in (maxjax, jax))
    assert (ours.aval.str_short(), step.aval.str_short()) == (
        theirs.aval.str_short(), their_step.aval.str_short())
    ours, theirs, step, their_step = (
        np.asarray(x).astype(float) for x in (ours, theirs, step, their_step))
    tolerance = 3 * float(jax.numpy.finfo(dtype).eps)
    scale = np.maximum(np.abs(STARTS), np.abs(STOPS))
    assert (np.abs(ours - theirs) <= tolerance * scale).all()
    np.testing.assert_allclose(step, their_step, tolerance)
    steps, position = max(1, num - endpoint), np.arange(num)[:, None]
    products = STARTS * (steps - position) + STOPS * position
    held = (products / steps).astype(jax.numpy.dtype(dtype)).astype(float)
    known = held * steps == products
    np.testing.assert_array_equal(ours[known], held[known])
    assert num < 2 or known.mean() > .1
    for column in (0, 7, 100):
        line = maxjax.numpy.linspace(STARTS[column], STOPS[column], num, endpoint, dtype=dtype)
        np.testing.assert_array_equal(np.asarray(line).astype(float), ours[:, column])


@pytest.mark.parametrize("shape", [(), (3,)])
def test_many_values_are_the_same_at_once(shape: tuple[int, ...]) -> None:
    """The rule for many values rounds like the operations that it replaces."""
    start, stop = np.random.default_rng(2).normal(size=(2, *shape)).astype(np.float32)
    for endpoint in (True, False):
        call = functools.partial(maxjax.numpy.linspace, num=20_001, endpoint=endpoint)
        np.testing.assert_array_equal(call(start, stop), maxjax.jit(call)(start, stop))


# --- indices that stand apart ---------------------------------------------------------------------

ROW, GRID = np.array([0, 1]), np.array([[0, 1], [1, 0]])
INDICES = [
    (slice(None), ROW, ..., ROW), (ROW, ..., ROW), (ROW, ..., 0), (0, ..., ROW), (ROW, ..., ROW, 1),
    (..., ROW, ROW), (ROW, ROW, ...), (slice(None), ROW, None, ROW), (ROW, slice(1), ROW),
    (0, ..., slice(None), ROW), (GRID, ..., ROW, slice(None)), (slice(None), GRID, ..., 0),
    (np.array([True, False, True]), ..., ROW, ROW), (None, ROW, ..., ROW, ROW), (1, ..., 0, 1),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indices_apart(index: Any) -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)

    def answers(j: Any) -> list[Any]:
        x_ = j.numpy.asarray(x)
        taken = x_[index]
        values = j.numpy.arange(taken.size, dtype="float32").reshape(taken.shape)
        return [taken, x_.at[index].set(values), x_.at[index].add(values),
                x_.at[index].get(mode="fill"), x_.at[index].apply(j.numpy.square),
                j.grad(lambda x: (x[index] ** 2).sum())(x_), j.jit(lambda x: x[index])(x_)]

    assert_tree_same(answers(maxjax), answers(jax), "exact")


# --- minimization ---------------------------------------------------------------------------------

def rosenbrock(j: Any, x: Any) -> Any:
    return j.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


OBJECTIVES = {
    "rosenbrock": (rosenbrock, [-1.2, 1.]),
    "steep": (lambda j, x: j.mean((1e4 * x) ** 2), [1., 1.]),
    "unbounded": (lambda j, x: j.sum(x), [1., 1.]),
    "flat": (lambda j, x: j.sum(x * 0), [1., 1.]),
    "edge": (lambda j, x: j.sum(j.abs(x)), [1., -3.]),
    "not a number": (lambda j, x: j.sum(j.log(x)), [1., 1.]),
    "matyas": (lambda j, x: .26 * (x[0] ** 2 + x[1] ** 2) - .48 * x[0] * x[1], [1., 1.]),
}


def minimum(j: Any, objective: Any, start: Any, method: str, options: dict[str, Any]) -> Any:
    return j.scipy.optimize.minimize(
        lambda x: objective(j.numpy, x), j.numpy.array(start), method=method, options=options)


LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


@pytest.mark.parametrize("method, name, options", [
    *((method, name, {}) for method in ("BFGS", LIMITED) for name in OBJECTIVES),
    *(("BFGS", "rosenbrock", options) for options in ({"maxiter": 2}, {"line_search_maxiter": 3})),
    *((LIMITED, "rosenbrock", options) for options in (
        {"maxiter": 2}, {"maxfun": 3}, {"maxgrad": 3}, {"maxls": 3}, {"maxcor": 1},
        {"norm": 2, "gtol": 0.1}, {"ftol": 1.0}))], ids=str)
def test_minimization(method: str, name: str, options: dict[str, Any]) -> None:
    ours, theirs = (minimum(j, *OBJECTIVES[name], method, options) for j in (maxjax, jax))
    assert [x if x is None else x.dtype for x in ours] == [
        x if x is None else x.dtype for x in theirs]
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-3, atol=1e-4)
    assert (int(ours.status), bool(ours.success)) == (int(theirs.status), bool(theirs.success))


def test_minimization_of_complex_variables() -> None:
    start = np.array([1j, 2], np.complex64)
    ours, theirs = (minimum(
        j, lambda np_, z: np_.sum(np_.abs(z - (1 + 2j)) ** 2) + np_.abs(z[0]) ** 4, start, LIMITED,
        {"norm": 2, "gtol": 1e-2}) for j in (maxjax, jax))
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-3)
    assert ours.x.dtype == theirs.x.dtype and int(ours.status) == int(theirs.status) == 0


# --- a forward rule that is left out --------------------------------------------------------------

@pytest.mark.parametrize("dtype", [
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"])
def test_parts_of_narrow_floats(dtype: str) -> None:
    """NumPy's; JAX takes the exponents of some for IEEE's, and flushes subnormal numbers."""
    x = np.arange(256, dtype=np.uint8).view(dtype)
    mantissa, exponent = maxjax.numpy.frexp(x)
    assert (mantissa.dtype, exponent.dtype) == (x.dtype, np.int32)
    wide = x.astype(np.float32)
    expected, places = np.frexp(wide)
    np.testing.assert_array_equal(np.asarray(mantissa).astype(np.float32), expected)
    np.testing.assert_array_equal(exponent, np.where(np.isfinite(wide), places, 0))
    for shift in (-3, 0, 2):
        product = maxjax.numpy.ldexp(x, shift)
        assert product.dtype == x.dtype
        with np.errstate(over="ignore"):
            expected = np.ldexp(wide, shift).astype(dtype)
        np.testing.assert_array_equal(np.asarray(product).astype(np.float32),
                                      expected.astype(np.float32))


@pytest.mark.parametrize("function", [
    maxjax.numpy.frexp, lambda x: maxjax.numpy.ldexp(x, 1)], ids=["frexp", "ldexp"])
def test_mantissas_do_not_fit_into_four_bits(function) -> None:
    with pytest.raises(TypeError, match="does not hold mantissas"):
        function(maxjax.numpy.ones(2, "float4_e2m1fn"))


def test_a_mean_that_is_given_where_nothing_is_promoted() -> None:
    x = np.array([0.5, 2, 3.25], maxjax.numpy.bfloat16)
    results = []
    for module in (jax, maxjax):
        with module.numpy_dtype_promotion("strict"):
            results.append([np.asarray(function(module.numpy.asarray(x), mean=x[1:2]))
                            for function in (module.numpy.var, module.numpy.nanstd)])
    for expected, found in zip(*results, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("fractions", ["float32", "float16", "float8_e5m2", None])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn"])
def test_quantiles_are_computed_in_the_dtype_of_the_fractions(dtype: str, fractions: str | None
                                                              ) -> None:
    results = []
    for module in (jax, maxjax):
        j = module.numpy
        x = j.array([1, 3.7, 2, 4], dtype)
        q = 0.35 if fractions is None else j.array([0.35, 0.3], fractions)
        results.append([np.asarray(v) for v in (j.quantile(x, q), j.nanquantile(x, q),
                                                j.median(x), j.nanmedian(x, keepdims=True))])
    for expected, found in zip(*results, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2fnuz", "float8_e5m2", "float16"])
def test_extremes_without_nan_where_a_dtype_has_no_infinity(dtype: str) -> None:
    results = []
    for module in (jax, maxjax):
        j = module.numpy
        x = j.array([[1, np.nan, -3], [np.nan] * 3], dtype)
        results.append([np.asarray(v).astype(np.float32) for v in (
            j.nanmax(x), j.nanmin(x), j.nanmax(x, 1), j.nanmin(x, 0, keepdims=True),
            j.nanmax(x, 1, initial=-2), j.nanmin(x, 1, initial=2, where=j.isnan(x)))])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_cauchy_quantiles_at_the_ends() -> None:
    """Poles, where JAX's tangent of a rounded angle is a large number of the other sign."""
    stats = maxjax.scipy.stats.cauchy
    q = np.array([0, 1], np.float32)
    np.testing.assert_array_equal(stats.ppf(q), [-np.inf, np.inf])
    np.testing.assert_array_equal(stats.isf(q), [np.inf, -np.inf])


@pytest.mark.parametrize("residual", ["argument", "computed", "none"])
def test_optimized_remat_calls_the_function(residual: str) -> None:
    """A deliberately wrong rule shows which of the two has run."""
    def answers(j: Any) -> list[Any]:
        def forward(x: Any) -> Any:
            kept = {"argument": (x,), "computed": (j.numpy.exp(x),), "none": ()}[residual]
            return j.numpy.sin(x), kept

        f = j.custom_vjp(j.numpy.tan)
        f.defvjp(forward, lambda kept, cotangent: (cotangent * (kept[0] if kept else 2.),),
                 optimize_remat=True)
        square = {
            "remat": lambda x: j.remat(f)(x) ** 2,
            "around": j.remat(lambda x: f(x) ** 2),
            "jit": lambda x: j.jit(f)(x) ** 2,
            "jit inside": j.remat(lambda x: j.jit(f)(x) ** 2),
            "scan": lambda x: j.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
            "vmap inside": j.remat(lambda x: (j.vmap(f)(x * xs) ** 2).sum()),
            "both inside": j.remat(lambda x: (j.jit(j.vmap(f))(x * xs) ** 2).sum()),
        }
        xs = j.numpy.array([.3, 1.2, 3.2])
        return [[j.value_and_grad(g)(3.2) for g in square.values()],
                [j.vmap(j.value_and_grad(square[name]))(xs) for name in ("around", "jit inside")],
                [j.jit(j.value_and_grad(square[name]))(3.2) for name in ("remat", "vmap inside")]]

    assert_tree_same(answers(maxjax), answers(jax))
