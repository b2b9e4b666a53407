"""Cases that show the known differences which the other tables do not meet."""

from __future__ import annotations

import numpy as np

from compat.spec import array, case, check

INF, NAN = float("inf"), float("nan")
ZEROS = {"x": array([-0.0, 0.0], "float32"), "y": array([0.0, -0.0], "float32")}
WINDOW = "jax.jvp(lambda x: f(x, -jnp.inf, lax.max, (2, 2), (1, 1), 'SAME'), (x,), (t,))[1]"

TABLE = {
    "jax.vmap": check("type(f(lambda x: x)(np.ones(3, 'float32'))).__name__"),
    "jax.Array.__array__": check("memoryview(jnp.ones(3)).format"),
    # A comparison, for rounding hides what is below the least normal number.
    "jax.numpy.multiply": case("f(x, 0.25) > 0", x=array([1.2e-38, -1.2e-38], "float32"),
                               modes="eager jit"),
    "jax.jvp": check("type(f(lambda x: x, (4.0,), (1.0,))[0]).__name__"),
    "jax.vjp": check("type(f(lambda x: x, 1.0)[1](1.0)[0]).__name__"),
    "jax.print_environment_info": check("'jaxlib' in f(return_string=True)"),
    "jax.scipy.linalg.polar": check("abs(f(jnp.ones((4, 4)))[0] @ f(jnp.ones((4, 4)))[0].T "
                                    "- jnp.eye(4)).max() < 1e-5"),
    "jax.numpy.maximum": case("jnp.signbit(f(x, y))", modes="eager jit", **ZEROS),
    "jax.numpy.minimum": case("jnp.signbit(f(x, y))", modes="eager jit", **ZEROS),
    "jax.numpy.max": case("f(x)", x=array([1.0, NAN, 2.0], "float32"), modes="grad"),
    "jax.lax.reduce_window": case(
        WINDOW, x=array([[1.0, 2.0, 2.0], [2.0, 2.0, 1.0]], "float32"),
        t=array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32"), modes="eager jit"),
    "jax.lax.digamma": case("f(x)", x=array([INF, -INF, -1.5, -2.25], "float32"), modes="grad"),
    "jax.lax.bessel_i1e": case("f(x)", x=array([NAN, 1.0], "float32"), modes="grad"),
    "jax.lax.population_count": case("f(x.astype('int4'))", x=array([-1, -8, 7], "int32"),
                                     modes="eager jit"),
    "jax.lax.select_n": case("f(w, x, y)", w=array([0, 2, 1], "int32"),
                             x=array([1.0, 2.0, 3.0], "float32"),
                             y=array([4.0, 5.0, 6.0], "float32"), modes="grad"),
    "jax.lax.clamp": case("f(low, x, high)", low=np.float32(-1), high=np.float32(1),
                          x=array([-2.0, 0.0, 3.0], "float32"), grad="low high", modes="grad"),
    "jax.random.multivariate_normal": check(
        "f(jax.random.key(0), jnp.zeros(2), jnp.eye(2) * 2, (4,), 'bfloat16')"),
    "jax.nn.softmax": check(
        "f(jnp.array([1.5, 2.5, -1.0]), where=jnp.ones((2, 3), bool))[0]"),
    "jax.numpy.linalg.slogdet": check("jnp.isfinite(f(jnp.eye(2) * 1e-30)[1])"),
    "jax.scipy.stats.uniform.cdf": check("f(jnp.nan)"),
    "jax.lax.scan": check(
        "h = jax.custom_jvp(lambda x: jnp.sin(x)); "
        "h.defjvp(lambda p, t: (h(p[0]), 3.0 * t[0])); "
        "g = jax.grad(lambda x: f(lambda c, _: (h(c) * c, None), x, None, length=2)[0]); "
        "jax.grad(g)(0.7)"),
    "jax.numpy.var": check("str(jax.make_jaxpr(lambda x: f(x))(np.ones(3, 'f')))"),
    "jax.numpy.any": check("f(jnp.array([1j]))"),
    "jax.numpy.all": check("f(jnp.array([1j]))"),
    "jax.lax.slice": check("f(2.0, (0,), (1,))"),
    "jax.numpy.linalg.multi_dot": check("f((2.0,))"),
    "jax.scipy.linalg.hessenberg": check("f(2.0)", "f(jnp.zeros((1, 0)))"),
    "jax.scipy.optimize.minimize": check(
        "f(lambda x: jnp.sum(x ** 2), jnp.float32(2), method='BFGS').x"),
    "jax.lax.broadcast_in_dim": check("f(jnp.ones((1, 3)), (2, 3), ()).shape"),
    "jax.nn.dot_product_attention": check("f(3, 3, 3)"),
    "jax.numpy.put": check("f(jnp.float32(2), 0, 1.0, inplace=False)"),
    "jax.numpy.unravel_index": check("f(3, 2.0)"),
    "jax.scipy.special.log_ndtr": check("jax.grad(f)(-1e5) > 9e4"),
    "jax.scipy.special.expi": check("f(jnp.array([jnp.inf, 90.]))"),
    "jax.scipy.special.i1": check("jax.grad(f)(1e5)"),
    "jax.scipy.special.kl_div": check("jax.grad(f, 1)(jnp.inf, jnp.inf)"),
    "jax.new_ref": check("str(jax.make_jaxpr(lambda r: r[...] + 1)(f(jnp.ones(3))))"),
    "jax.grad": check("f(jax.jit(lambda x, n: x ** n))(0.0, 0).weak_type"),
    "jax.memory": check(
        "str(jax.typeof(jax.device_put(jnp.ones(3), f.Space.Host)))",
        "x = jnp.ones(3); "
        "jax.jit(lambda x: jax.device_put(x, f.Space.Host))(x).sharding.memory_kind"),
    "jax.jit": check("(lambda x: f(lambda y: y)(x).unsafe_buffer_pointer() == "
                     "x.unsafe_buffer_pointer())(jnp.arange(3))",
                     "type(f(lambda x: x)(np.zeros(2, jax.dtypes.float0))).__name__",
                     "f(lambda x: x + 1).lower(1.0).as_text()",
                     "f(lambda x: x * 2).lower(1.0).compile().out_info"),
}
