# libraries: chex absl-py
"""Chex: a test case with all variants, assertions, dataclasses, fake jit and a trace counter."""
import sys
import unittest

import chex
import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import parameterized


@chex.dataclass(frozen=True)
class Moments:
    mean: chex.Array
    variance: chex.Array

    @classmethod
    def of(cls, x):
        return cls(mean=x.mean(0), variance=x.var(0))


class Tests(chex.TestCase):
    @chex.all_variants
    @parameterized.named_parameters(("small", 3), ("large", 100))
    def test_moments(self, n):
        x = jax.random.normal(jax.random.key(n), (n, 2))
        moments = self.variant(Moments.of)(x)
        chex.assert_shape([moments.mean, moments.variance], (2,))
        chex.assert_trees_all_close(moments, Moments.of(np.asarray(x)), rtol=1e-4, atol=1e-6)
        chex.assert_tree_all_finite(moments)

    @chex.variants(with_jit=True, without_jit=True)
    def test_static(self):
        @self.variant(static_argnums=1)
        def power(x, n):
            return x ** n
        chex.assert_equal(float(power(jnp.float32(3.0), 2)), 9.0)

    def test_fake_jit_and_vmap(self):
        with chex.fake_pmap_and_jit():
            out = jax.pmap(lambda x: jax.jit(jnp.sin)(x) * 2)(jnp.ones((3, 2)))
        chex.assert_trees_all_close(out, 2 * jnp.sin(jnp.ones((3, 2))))

    def test_traces(self):
        chex.clear_trace_counter()

        @jax.jit
        @chex.assert_max_traces(n=1)
        def f(x):
            return x + 1
        f(1.0)
        f(2.0)
        with self.assertRaisesRegex(AssertionError, "traced > 1 times"):
            f(jnp.ones(2))

    def test_refusals(self):
        with self.assertRaises(AssertionError):
            chex.assert_rank(jnp.ones((2, 3)), 1)
        with self.assertRaises(AssertionError):
            chex.assert_type(jnp.ones(2), jnp.int32)
        with self.assertRaises(AssertionError):
            chex.assert_trees_all_equal_shapes({"a": jnp.ones(2)}, {"a": jnp.ones(3)})
        with self.assertRaises(AssertionError):
            chex.assert_tree_all_finite({"a": jnp.array([1.0, jnp.nan])})

    def test_checks_on_values(self):
        @chex.chexify
        @jax.jit
        def safe_log(x):
            chex.assert_trees_all_close(x, x)
            chex.assert_tree_all_finite(x)
            return jnp.log(x)
        safe_log(jnp.ones(2))
        safe_log.wait_checks()

    def test_gradients(self):
        chex.assert_numerical_grads(lambda x: jnp.sum(jnp.tanh(x) ** 2), (jnp.arange(3.0),), 1)


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Tests)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2).run(suite)
    print("run", result.testsRun, "skipped", len(result.skipped))
    for kind in (result.failures, result.errors):
        for test, trace in kind:
            print(test.id(), trace.splitlines()[-1])
    moments = jax.vmap(Moments.of)(jnp.arange(24.0).reshape(2, 4, 3))
    print(moments.mean.tolist(), moments.replace(mean=0.0).mean, sorted(moments.keys()))
    print(chex.Dimensions(B=3, T=5)["BT"], jax.tree.map(jnp.shape, moments).to_tuple())
