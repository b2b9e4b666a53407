"""jax.experimental.jet: Taylor series against JAX's, and against repeated derivatives."""

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax.experimental.jet import jet
from tests.support.against_jax import agree, errors_of

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.2, 0.8, (2, 2, 3)).astype("float32")
TERMS = RNG.normal(size=(2, 3, 2, 3)).astype("float32")

UNARY = ("exp expm1 log log1p sin cos sinh cosh tanh sqrt arcsinh arctanh square abs floor sign "
         "max min sum cumsum cumprod fft.fft").split()
FUNCTIONS = {
    **{name: lambda j, x, name=name: _named(j.numpy, name)(x) for name in UNARY},
    **{name: lambda j, x, name=name: getattr(j.lax, name)(x)
       for name in ("erf", "erfc", "erf_inv", "rsqrt", "logistic", "stop_gradient")},
    "acosh": lambda j, x: j.numpy.arccosh(x + 1),
    "powers": lambda j, x: (x ** 3, x ** 7, x ** -2, x ** 0, x ** 0.3),
    "indices": lambda j, x: (x[1:], x[:, ::-1], x[j.numpy.array([0, 1, 1])], x.at[0].add(x[1])),
    "dynamic": lambda j, x: (j.lax.dynamic_slice(x, (0, 1), (2, 1)),
                             j.lax.dynamic_update_slice(x, x[:1] * 2, (1, 0))),
    "extremes": lambda j, x: (x.max(1), x.min(0), j.lax.cummax(x)),
    "clamp": lambda j, x: j.lax.clamp(0.3 + 0 * x, x, 0.6 + 0 * x),
    "jit": lambda j, x: j.jit(lambda y: y * j.numpy.sin(x))(x),
    "constant": lambda j, x: (j.numpy.ones(2), x),
    "select": lambda j, x: j.numpy.where(x > 0.5, x * x, j.numpy.sin(x)),
}
BINARY = {
    "products": lambda j, x, y: (x * y, x @ y.T, x + y, x - y, x / y),
    "powers": lambda j, x, y: (x ** y, j.numpy.arctan2(x, y), j.lax.rem(y, x)),
    "extrema": lambda j, x, y: (j.lax.max(x, y), j.lax.min(x, y), j.numpy.stack([x, y], 1)),
    "complex": lambda j, x, y: j.numpy.abs(j.lax.complex(x, y).real) + j.lax.complex(x, y).imag,
}


def _named(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def _jet(j):
    if j is maxjax:
        return jet
    from jax.experimental.jet import jet as theirs
    return theirs


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scaled", [True, False])
def test_series_of_one_operand(name, scaled):
    agree(lambda j, x: _jet(j)(lambda x: FUNCTIONS[name](j, x), (x,), (list(TERMS[0]),),
                               factorial_scaled=scaled),
          X, kind="loose", weak=False)


@pytest.mark.parametrize("name", BINARY)
def test_series_of_two_operands(name):
    agree(lambda j, x, y: _jet(j)(lambda x, y: BINARY[name](j, x, y), (x, y),
                                  (list(TERMS[0]), list(TERMS[1]))),
          X, Y, kind="loose", weak=False)


@pytest.mark.parametrize("function", [
    lambda x: maxjax.lax.scan(lambda c, y: (c * y, c + y), x[0], x)[1],
    lambda x: maxjax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    lambda x: jnp.linalg.inv(x @ x.T + jnp.eye(2)),
    lambda x: maxjax.scipy.special.gammaln(x),
    lambda x: maxjax.nn.softplus(x),
    lambda x: maxjax.checkpoint(jnp.sin)(x)])
def test_what_has_no_rule_in_jax_is_differentiated(function):
    def along(t):
        return function(X + t * TERMS[0, 0] + t ** 2 / 2 * TERMS[0, 1])

    value, (first, second) = jet(function, (X,), (list(TERMS[0, :2]),))
    np.testing.assert_allclose(value, along(0.0), 1e-5)
    np.testing.assert_allclose(first, maxjax.jacfwd(along)(0.0), 1e-4, 1e-5)
    np.testing.assert_allclose(second, maxjax.jacfwd(maxjax.jacfwd(along))(0.0), 1e-3, 1e-4)


def test_under_other_transformations():
    def series(j, x):
        return _jet(j)(lambda x: j.numpy.sin(x) * x, (x,), ([1.0, 0.5],))[1]

    agree(lambda j: j.jit(lambda x: series(j, x))(0.3), weak=False)
    agree(lambda j, x: j.vmap(lambda x: series(j, x))(x), X[0], weak=False)
    agree(lambda j: j.grad(lambda x: series(j, x)[1])(0.3), weak=False)


def test_truth_values_have_terms_of_floats():
    agree(lambda j: _jet(j)(lambda x: (x > 0.5, x), (X,), (list(TERMS[0]),)),
          weak=False)


@pytest.mark.parametrize("call", [
    lambda j: _jet(j)(j.numpy.add, (1., 2.), ([1., 0.], [1.])),
    lambda j: _jet(j)(lambda d: d, ({"a": 1.},), ([1.],)),
    lambda j: _jet(j)(lambda x: 1. if x > 0 else 2., (1.,), ([1.],))])
def test_errors_are_those_of_jax(call):
    ours, theirs = errors_of(call)
    assert type(ours).__name__ == type(theirs).__name__
    assert str(ours).split("\n")[0] == str(theirs).split("\n")[0]
