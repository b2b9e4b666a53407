"""The functions of automatic differentiation: arguments, auxiliary data, complex numbers, integers,
errors."""

from __future__ import annotations

from compat.spec import case, cases, check, floats

FB = "fwd, bwd = f(lambda x, y: jnp.sin(x) * y, {argnums}); o, r = fwd(x, x + 1); (o, bwd(r, x))"
HOLOMORPHIC = "f(lambda x: x * x{extra}, holomorphic=True)"


def refused(*texts: str, says: str | bool = True, **options: str):
    return cases(*texts, raises=says, **options)


TABLE = {
    "jax.grad": (
        check("f(lambda x: x ** 2)(3.0)", "f(lambda x, y: x * y, (0, 1))(1.0, 2.0)",
              "f(lambda x, y: x * y, [0, 1])(1.0, 2.0)", "f(lambda x, y: x * y, -1)(1.0, 2.0)",
              "f(lambda x: x.sum() * 1., allow_int=True)(jnp.arange(3)).dtype",
              "f(lambda d: d['a'] * d['b'], allow_int=True)({'a': 2, 'b': 3.0})['b']",
              "f(lambda x: (x, 1), has_aux=True)(1.0)",
              "f(lambda x: (x, 'text'), has_aux=True)(1.)",
              "f(lambda x: (x, [x * 2, 2, None]), has_aux=True)(1.0)",
              "f(lambda x: x * x, holomorphic=True)(1.0 + 2j)",
              "f(lambda x: jnp.abs(x) ** 2)(1.0 + 2j)", "f(lambda x: jnp.real(x * x))(1.0 + 2j)",
              "f(lambda x: jnp.sin(x) * np.float32(2))(1.0)", "f(lambda x: 3.)(1.)",
              "f(lambda x, y: x * y)(1.0, y=2.0)", "f(lambda x: x.astype('float16'))(1.)",
              "f(lambda x: x).__name__", "f(lambda x: x, reduce_axes=())(1.0)")
        + cases("f(lambda x: (jnp.sin(x) ** 2).sum())(x)",
                "f(lambda x: f(lambda y: (y * x).sum() * y[0])(x)[1])(x)", x=floats(3))
        + refused("f(lambda x: (x, x))(1.)", "f(lambda x: x)(jnp.ones(2))", "f(lambda x: None)(1.)",
                  says="Gradient only defined for scalar-output functions")
        + refused("f(lambda x: x)(1)", "f(lambda x: x)(jax.random.key(0))",
                  says="If you want to use Boolean- or integer-valued inputs")
        + refused("f(lambda x: x, holomorphic=True)(1.0)", "f(lambda x: x)(1.0 + 2j)",
                  "f(lambda x: jnp.real(x), holomorphic=True)(1.0 + 2j)",
                  "f(lambda x: 3)(1.)", "f(lambda x: True)(1.)", "f(lambda x: 'a')(1.)",
                  "f(lambda x: x)('a')", "f(lambda x: x)(x=1.)", "f(3)",
                  "f(lambda x: x, argnums='a')",
                  "f(lambda x: x, argnums=1)(1.)", "f(lambda x: x, argnums=-2)(1.)",
                  "f(lambda x, y: x * y, argnums=())(1., 2.)",
                  "f(lambda x: x, has_aux=True)(1.)", "f(lambda x: (x, x, 1), has_aux=True)(1.)")),
    "jax.value_and_grad": (
        check("f(lambda x: (x * 2, {'a': x * 3}), has_aux=True)(1.)",
              "f(lambda x, y: x * y, (0, 1))(1.0, 2.0)", "f(lambda x: x * 2, 0, False, True)(1j)")
        + case("f(lambda x, y: (jnp.sin(x) * y).sum(), (0, 1))(x, y)", x=floats(3), y=floats(3))),
    "jax.jvp": (
        check("f(lambda x: x * 2, (1.,), (1.,))", "f(lambda x: x * 2, [1.], [1.])",
              "f(lambda x: (x * 2, {'a': x * 3, 'b': 'q'}), (1.,), (1.,), has_aux=True)",
              "f(lambda x: None, (1.,), (1.,))", "f(lambda x: x > 0, (1.,), (1.,))[0]")
        + case("f(lambda x: {'s': jnp.sin(x)}, (x,), (x * 2,))", x=floats(3))
        + refused("f(lambda x: x, (1.,), (1,))", "f(lambda x: x, (1,), (1,))",
                  "f(lambda x: x, 1., 1.)", "f(lambda x: x, (1.,), (1., 1.))",
                  "f(lambda x: x, (jnp.ones(2),), (jnp.ones(3),))",
                  "f(lambda x: x, (1.,), (1.,), has_aux=True)", "f(3, (1.,), (1.,))",
                  "f(lambda x: 'a', (1.,), (1.,))", "f(lambda x: x, ('a',), ('b',))")),
    "jax.linearize": (
        check("f(lambda x: x * 2, 1.)[1](2.)", "f(lambda x: (x * 2, 3), 1., has_aux=True)[2]",
              "jax.jit(lambda x: f(jnp.sin, x))(1.)[1](2.)",
              "jax.tree.structure(f(lambda x: x * 2, 1.)[1]).num_leaves")
        + case("f(lambda x: jnp.sin(x) * x, x)[1](2 * x)", x=floats(3))
        + refused("f(lambda x: x, 1.)[1](2)", "f(lambda x: x, 1)[1](2.)",
                  "f(lambda x: x * 2, jnp.ones(2))[1](jnp.ones(3))",
                  says="linearized function called on tangent values inconsistent")
        + refused("f(lambda x: x, 1.)[1]()", "f(lambda x: x, 1.)[1]((2.,))", "f(3, 2.)",
                  "f(lambda x: 'a', 2.)", "f(lambda x: x * 2, 1., has_aux=True)")),
    "jax.vjp": (
        check("f(lambda x: (x * 2, x * 3), 2., has_aux=True)[2]",
              "f(lambda x: (x * 2, {'b': 'text'}), 2., has_aux=True)[2]",
              "f(lambda x, n: x * n, 1., 2)[1](3.)[0]", "f(lambda x: None, 2.)[0]",
              "jax.jit(lambda x: f(jnp.sin, x))(1.)[1](2.)",
              "jax.jit(lambda pullback, ct: pullback(ct))(f(jnp.sin, 1.)[1], 2.)",
              "jax.tree.leaves(f(jnp.sin, 1.)[1])", "type(f(jnp.sin, 1.)[1]).__name__",
              "f(lambda x, y: x * y, 1., 2.)[1](jnp.float32(1))",
              "f(lambda x: jnp.abs(x), 2 + 1j)[1](1.)")
        + case("o, pullback = f(lambda x, y: jnp.sin(x) * y, x, x + 1); pullback(o)", x=floats(3))
        + refused("f(lambda x: (x, x), 2.)[1](1.0)", "f(lambda x: x, 2.)[1]((1.0,))",
                  says="unexpected tree structure")
        + refused("f(lambda x: x, 2.)[1](1)", "f(lambda x: x, 2.)[1](np.ones(2, np.float32))",
                  says="unexpected JAX type")
        + refused("f(lambda x: x, 2.)[1](1.0, 2.0)", says="must be called with a single argument")
        + refused("f(lambda x: x, 2.)[1]()", "f(3, 1.)", "f(lambda x: 'a', 1.)",
                  "f(lambda x: x, 2., has_aux=True)", "f(lambda x: x, 2., reduce_axes=('i',))")),
    "jax.fwd_and_bwd": (
        cases(FB.format(argnums=0), FB.format(argnums=(0, 1)), FB.format(argnums=(1,)),
              FB.format(argnums="0, jitted=False"), x=floats(3))
        + check("fwd, bwd = f(lambda x: (x * 2, 3), 0, has_aux=True); o, r, a = fwd(1.); "
                "(o, a, bwd(r, 1.))")
        + check("f(lambda x, y: x * y, 0)[0](1., y=2.)[0]")
        + refused("f(lambda x, y: x, 3)[0](1., 2.)",
                  "fwd, bwd = f(lambda x: x, 0); bwd(fwd(1.)[1], jnp.ones(2))")),
    "jax.jacfwd": (
        check("f(lambda x: (x, x * 2), has_aux=True)(jnp.ones(2))",
              HOLOMORPHIC.format(extra="") + "(jnp.ones(2) + 1j)", "f(lambda x: x + 1j)(1.)",
              "f(lambda x: x.astype('int32'))(1.)", "f(lambda x: None)(1.)", "f(lambda x: 3.)(1.)",
              "f(lambda x, y: x * y, (0, 1))(jnp.ones(2), 2.)", "f(f(lambda x: x ** 3))(2.)",
              "f(lambda d: {'s': d['a'] * d['b']})({'a': jnp.ones(2), 'b': 2.})",
              "f(lambda x: x)(jnp.ones((2, 0)))")
        + case("f(lambda x: jnp.sin(x) * x[0])(x)", x=floats(3))
        + refused("f(lambda x: x)(1)", "f(lambda x: x)(1j)", "f(lambda x: x)(True)",
                  HOLOMORPHIC.format(extra="") + "(jnp.ones(2))", "f(lambda x: x, argnums=3)(1.)",
                  "f(lambda x: x)(jax.random.key(0))", "f(lambda x: x)('a')", "f(3)",
                  "f(lambda x: 'a')(1.)", "f(lambda x: x, has_aux=True)(1.)",
                  "f(lambda x: (x, 'text'), has_aux=True)(1.)")),
    "jax.jacrev": (
        check("f(lambda x: (x * 1, x * 2), has_aux=True)(jnp.ones(2))",
              "f(lambda x: (x * 1, 'text'), has_aux=True)(1.)", "f(lambda x: jnp.real(x))(1 + 1j)",
              HOLOMORPHIC.format(extra="") + "(jnp.ones(2) + 1j)",
              "f(lambda x: x * 1., allow_int=True)(2)",
              "f(lambda x: x * 1., allow_int=True)(jnp.arange(3))",
              "f(lambda x, y: x * y, (0, 1), allow_int=True)(2, jnp.ones(2))",
              "f(lambda x, y: x * y, (0, 1))(jnp.ones(2), 2.)",
              "f(lambda x: (x * 1, 3.))(jnp.ones(2))",
              "f(lambda d: {'s': d['a'] * d['b']})({'a': jnp.ones(2), 'b': 2.})")
        + case("f(lambda x: jnp.sin(x) * x[0])(x)", x=floats(3))
        + refused("f(lambda x: x)(1)", "f(lambda x: x)(1j)", "f(lambda x: x.astype('int32'))(1.)",
                  "f(lambda x: x + 1j)(1.)", "f(lambda x: x, argnums=-2)(1.)", "f(3)",
                  "f(lambda x: (x * 1., x), allow_int=True)(2)", "f(lambda x: 'a')(1.)",
                  "f(lambda x: x, has_aux=True)(1.)", "f(lambda x: x)(jax.random.key(0))")),
    "jax.hessian": (
        check("f(lambda x: x ** 2)(3.)", "f(lambda x, y: x * y, (0, 1))(3., 4.)",
              "f(lambda x: (x.sum() ** 2, x * 2), has_aux=True)(jnp.ones(2))",
              "f(lambda x: (x * x).sum(), holomorphic=True)(jnp.ones(2) + 1j)",
              "f(lambda d: (d['a'] * d['b']).sum() ** 2)({'a': jnp.ones(2), 'b': 2.})")
        + case("f(lambda x: (jnp.sin(x) * x[0]).sum())(x)", x=floats(3))
        + refused("f(lambda x: x ** 2)(3)", "f(lambda x: x * 2)(2j)",
                  "f(lambda x: x * 2, holomorphic=True)(2.)")),
    "jax.linear_transpose": (
        check("f(lambda x: 2 * x, 1.)(1.)", "f(lambda x: 2 * x + 1, 1.)(1.)",
              "f(lambda x: 2 * x, 1)(1)",
              "f(lambda x: (2 * x, x.sum()), jnp.ones(3))((jnp.ones(3), 2.0))",
              "f(lambda x: 2 * x, jax.ShapeDtypeStruct((2,), np.float32))(jnp.ones(2))",
              "f(lambda x: x + 1, jnp.arange(3))(jnp.arange(3))",
              "f(lambda d: d['a'] * 2 + d['b'], {'a': 1., 'b': 2.})(2.)",
              "f(lambda x: 1.0, 1.0)(1.0)",
              "f(lambda x: x * (1 + 2j), 1 + 0j)(1. + 0j)", "f(lambda x: jnp.real(x), 1 + 0j)(1.)",
              "f(lambda x: x.at[0].set(1.), jnp.ones(2))(jnp.ones(2))",
              "f(jax.jit(lambda x: 2 * x), jnp.ones(2))(jnp.ones(2))",
              "f(jax.checkpoint(lambda x: 2 * x), jnp.ones(2))(jnp.ones(2))",
              "g = jax.custom_jvp(lambda x: 2 * x); g.defjvp(lambda p, t: (p[0], t[0])); "
              "f(g, jnp.ones(2))(jnp.ones(2))",
              "f(lambda x: lax.scan(lambda c, _: (c * 2, None), x, None, length=3)[0], "
              "jnp.ones(3))(jnp.ones(3))")
        + cases("f(lambda y: 3 * y[::2], x)(x[:2])", "f(lambda y: jnp.cos(x) * y, x)(x)",
                x=floats(3))
        + refused("f(lambda x: jnp.sin(x), 1.)(1.)", "f(lambda x: jnp.maximum(x, 0.), 1.)(1.)",
                  says="Transpose rule")
        + refused("f(lambda x: x * x, 1.)(1.)", "f(lambda x: jax.jit(lambda y: y * y)(x), 1.)(1.)",
                  "f(lambda x, y: x @ y, jnp.ones(2), jnp.ones(2))(1.)",
                  "g = jax.custom_vjp(lambda x: 2 * x); g.defvjp(lambda x: (x, None), "
                  "lambda r, c: (c,)); f(g, jnp.ones(2))(jnp.ones(2))")
        + refused("f(lambda x: x.astype('int32'), 1.)", "f(lambda x: x * 2., jnp.arange(3))",
                  "f(lambda x, n: x, 1., 2)", says="linear_transpose only supports")
        + refused("f(lambda x: 2 * x, jnp.ones(3))(jnp.ones(2))", "f(lambda x: x, 1.)(1)",
                  "f(lambda x: 2 * x, jnp.ones(3))((jnp.ones(3),))", says="cotangent")
        + refused("f(lambda x: x, 'a')", "f(3, 1.)", "f(lambda x: x, 1., reduce_axes=('i',))")),
    "jax.checkpoint": (
        refused("jax.grad(f(lambda x: jax.experimental.io_callback(lambda v: v, "
                "jax.ShapeDtypeStruct((), np.float32), lax.stop_gradient(x)) * x))(1.0)",
                "jax.linearize(f(lambda x: jax.experimental.io_callback(lambda v: v, "
                "jax.ShapeDtypeStruct((), np.float32), lax.stop_gradient(x), ordered=True) * x), "
                "1.)",
                says="Effects not supported in partial-eval")
        + check("f(lambda x: jax.experimental.io_callback(lambda v: v, "
                "jax.ShapeDtypeStruct((), np.float32), x))(1.0)")),
    "jax.test_util.check_grads": (
        cases("f(lambda x: jnp.sin(x) * x, (x,), 3)",
              "f(lambda x: jnp.sin(x), (x,), 2, modes='rev')",
              "f(lambda d: {'o': d['a'] * jnp.exp(d['b'])}, ({'a': x, 'b': x},), 2)",
              x=floats(3, low=-1, high=1), modes="eager")
        + refused("f(lambda x: lax.stop_gradient(x) * x, (1.5,), 1)",
                  "f(lambda x: jnp.floor(x) * x, (np.float32(2.0),), 1)", modes="eager")),
    "jax.test_util.check_jvp": case("f(jnp.sin, lambda x, t: (jnp.sin(*x), jnp.cos(*x) * t[0]), "
                                    "(np.float32(0.5),))", modes="eager")
    + refused("f(jnp.sin, lambda x, t: (jnp.sin(*x), jnp.sin(*x) * t[0]), (np.float32(0.5),))",
              modes="eager"),
    "jax.test_util.check_vjp": case("f(jnp.sin, lambda x: jax.vjp(jnp.sin, x), (np.float32(.5),))",
                                    modes="eager")
    + refused("f(jnp.sin, lambda x: jax.vjp(jnp.cos, x), (np.float32(0.5),))", modes="eager"),
}
