"""jax.nn against JAX: values, dtypes, gradients; the draws of the initializers."""

import jax
import numpy as np
import pytest

import maxjax
import maxjax.nn
import maxjax.numpy
import maxjax.random

LIBRARIES = (maxjax, jax)
VALUES = np.array([[-30.0, -3.0, -1.0, -0.5, 0.0, 1e-3], [0.3, 1.0, 2.5, 6.0, 7.0, 90.0]],
                  np.float32)
UNARY = ["relu", "relu6", "sigmoid", "silu", "swish", "mish", "softplus", "soft_sign",
         "log_sigmoid", "elu", "celu", "selu", "leaky_relu", "hard_tanh", "hard_sigmoid",
         "hard_silu", "hard_swish",
         "gelu", "squareplus", "sparse_plus", "sparse_sigmoid", "identity", "tanh",
         "glu", "softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"]
CALLS = {
    "exact gelu": lambda j, x: j.nn.gelu(x, approximate=False),
    "softmax of axis 0": lambda j, x: j.nn.softmax(x, axis=0),
    "softmax of both": lambda j, x: j.nn.softmax(x, axis=(0, 1)),
    "softmax where": lambda j, x: j.nn.softmax(x, where=x > -1),
    "log_softmax where": lambda j, x: j.nn.log_softmax(x, where=x > -1),
    "logsumexp keepdims": lambda j, x: j.nn.logsumexp(x, axis=1, keepdims=True),
    "logsumexp b": lambda j, x: j.nn.logsumexp(x, axis=0, b=x),
    "logsumexp sign": lambda j, x: j.nn.logsumexp(x, axis=0, b=x, return_sign=True)[0],
    "logsumexp where": lambda j, x: j.nn.logsumexp(x, axis=0, where=x > -1),
    "standardize mean": lambda j, x: j.nn.standardize(x, axis=0, mean=0.0, where=x > -4),
    "stable": lambda j, x: j.nn.standardize(x, algorithm="stable"),
    "elu alpha": lambda j, x: j.nn.elu(x, 0.3),
    "leaky slope": lambda j, x: j.nn.leaky_relu(x, 0.3),
    "one_hot": lambda j, x: j.nn.one_hot(np.array([0, 2, 5, -1]), 3) + x[0, 5] * 0,
    "one_hot axis": lambda j, x: j.nn.one_hot(np.array([[0, 2], [1, 1]]), 3, axis=0, dtype="int8"),
    "log1mexp": lambda j, x: j.nn.log1mexp(j.numpy.abs(x) + 0.1),
    **{name: (lambda j, x, name=name: getattr(j.nn, name)(x)) for name in UNARY},
}


def both(function, *args):
    results = [function(library, *args) for library in LIBRARIES]
    ours, theirs = ([np.asarray(leaf) for leaf in jax.tree.leaves(
        result if library is jax else maxjax.tree.map(np.asarray, result))]
        for library, result in zip(LIBRARIES, results))
    return ours, theirs


def check(ours, theirs, **tolerance):
    for one, two in zip(ours, theirs, strict=True):
        assert one.dtype == two.dtype and one.shape == two.shape
        np.testing.assert_allclose(one.astype(np.float64), two.astype(np.float64), **tolerance)


@pytest.mark.parametrize("name", CALLS)
def test_a_value_is_that_of_jax(name):
    check(*both(CALLS[name], VALUES), rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith("one_hot axis")])
def test_a_gradient_is_that_of_jax(name):
    def gradient(j, x):
        weights = np.linspace(-1, 2, 12, dtype=np.float32)

        def scalar(x):
            out = CALLS[name](j, x)
            return (out.reshape(-1) * weights[:out.size]).sum()

        return j.grad(scalar)(x), j.jit(j.grad(scalar))(x)

    check(*both(gradient, VALUES), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "bool"])
def test_other_dtypes(name, dtype):
    def function(j):
        return getattr(j.nn, name)(j.numpy.array([[-2, 0, 1, 3]]).astype(dtype))

    try:
        theirs = function(jax)
    except TypeError:
        with pytest.raises(TypeError):
            function(maxjax)
        return
    check(*both(function), rtol=2e-2, atol=1e-2)
    assert function(maxjax).weak_type == theirs.weak_type


def test_derivative_at_the_kink():
    assert float(maxjax.grad(maxjax.nn.relu)(0.0)) == 0.0
    assert float(maxjax.grad(maxjax.nn.relu6)(6.0)) == 0.0


INITIALIZERS = {
    **{name: (lambda n, name=name: getattr(n, name)()) for name in (
        "glorot_uniform", "glorot_normal", "lecun_uniform", "lecun_normal", "he_uniform",
        "he_normal", "xavier_normal", "kaiming_uniform", "uniform", "normal", "truncated_normal")},
    "zeros": lambda n: n.zeros, "ones": lambda n: n.ones, "constant": lambda n: n.constant(3),
    "scaled": lambda n: n.variance_scaling(2.0, "fan_geo_avg", "normal", in_axis=0, out_axis=1),
    "orthogonal": lambda n: n.orthogonal(2.0),
    "delta": lambda n: n.delta_orthogonal(),
}


@pytest.mark.parametrize("name", INITIALIZERS)
@pytest.mark.parametrize("shape", [(3, 4), (5, 2, 3)])
def test_initializer(name, shape):
    if name == "delta" and len(shape) == 2:
        pytest.skip("needs three dimensions")

    def draw(j):
        return INITIALIZERS[name](j.nn.initializers)(j.random.key(7), shape)

    check(*both(draw), rtol=1e-5, atol=1e-6)


def test_initializer_errors():
    for j in LIBRARIES:
        with pytest.raises(ValueError, match="1-dimensional weights tensor"):
            j.nn.initializers.glorot_normal()(j.random.key(0), (3,))
        with pytest.raises(ValueError, match="invalid mode"):
            j.nn.initializers.variance_scaling(1.0, "x", "normal")(j.random.key(0), (3, 3))


@pytest.mark.parametrize("options", [
    {}, {"is_causal": True}, {"scale": 0.3}, {"local_window_size": 1},
    {"key_value_seq_lengths": np.array([3, 5])}, {"local_window_size": (2, 0), "is_causal": True}])
def test_attention(options):
    numbers = np.random.default_rng(0)
    query = numbers.standard_normal((2, 5, 4, 8)).astype(np.float32)
    key, value = numbers.standard_normal((2, 2, 5, 2, 8)).astype(np.float32)
    check(*both(lambda j: j.nn.dot_product_attention(query, key, value, **options)),
          rtol=2e-5, atol=2e-5)
