"""Loops and conditionals of jax.lax."""

from __future__ import annotations

from compat.spec import array, case, cases, floats, ints

CUMULATE = "f(lambda c, x: (c + jnp.sin(x), c * x), c, xs{})"

TABLE = {
    "jax.lax.custom_root": cases(
        "f(lambda y: y ** 3 - x, 1.0,"
        " lambda g, y: jax.lax.while_loop(lambda y: abs(g(y)) > 1e-6,"
        " lambda y: y - g(y) / jax.grad(g)(y), y), lambda g, y: y / g(1.0))",
        x=floats(low=1.0, high=3.0), tol="iterative"),
    "jax.lax.custom_linear_solve": (
        cases("f(lambda v: a * v, b, lambda matvec, b: b / a, lambda vecmat, b: b / a)",
              "f(lambda v: a * v, b, lambda matvec, b: b / a, symmetric=True)",
              a=floats(3, low=1.0, high=2.0), b=floats(3))
        + case("f(lambda v: v[:2], b, lambda matvec, b: b)", b=floats(3), raises=True)
    ),
    "jax.lax.scan": (
        cases(CUMULATE.format(""), CUMULATE.format(", reverse=True"),
              CUMULATE.format(", unroll=2"), CUMULATE.format(", length=4"),
              c=floats(3), xs=floats(4, 3))
        + case("f(lambda c, _: (c * 0.5 + 1, None), c, length=5)", c=floats(2))
        + case("f(lambda c, x: ({'a': c['a'] + x}, (c['a'], x > 0)), {'a': c}, xs)",
               c=floats(), xs=floats(5))
        + case("f(lambda c, x: (c, x), c, xs)", c=floats(), xs=floats(0, 2), modes="eager jit")
        + case("f(lambda c, x: (c + x, c), 0., xs)", xs=ints(3), modes="eager jit")
        + case("f(lambda c, x: (c[None], c), 0., xs)", xs=floats(3), raises=True)
        + case("f(lambda c, x: (c, x), 0., (xs, xs[1:]))", xs=floats(3), raises=True)
        + case("f(lambda c, x: (c, x), 0., None)", raises=True)
    ),
    "jax.lax.while_loop": (
        cases("f(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5 + x), (0, x))",
              x=floats(3), grad=False)
        + case("f(lambda c: c.sum() < 20., lambda c: c * 2., x)", x=floats(2, low=0.5),
               grad=False)
        + case("f(lambda c: c < 5., lambda c: c * 2., x)", x=floats(low=0.5), modes="grad")
        + case("f(lambda c: c, lambda c: c + 1, x)", x=floats(), raises=True)
        + case("f(lambda c: c < 5, lambda c: (c, c), x)", x=floats(), raises=True)
    ),
    "jax.lax.fori_loop": (
        cases("f(0, 4, lambda i, c: c * 0.5 + i, x)", "f(2, 5, lambda i, c: jnp.sin(c + i), x)",
              "f(0, 0, lambda i, c: c + 1, x)", x=floats(3), tol="loose")
        + case("f(0, n, lambda i, c: c + i, x)", x=floats(2), n=ints(low=1, high=4), grad=False)
        + case("f(0, 3, lambda i, c: c > 0, x)", x=floats(2), raises=True)
    ),
    "jax.lax.cond": (
        cases("f(x.sum() > 0, jnp.sin, jnp.cos, x)",
              "f(True, lambda x: x * 2, lambda x: x, x)",
              "f(x[0] > 0, lambda: x * 2, lambda: x - 1)",
              "f(x[0] > 0, lambda x, y: (x + y, {'b': y}), lambda x, y: (x - y, {'b': x}), x, y)",
              x=floats(3), y=floats(3))
        + case("f(p, lambda x: x * 3, lambda x: -x, x)", p=array(True, "bool"), x=floats(2))
        + case("f(x.sum() > 0, lambda x: x, lambda x: x[0], x)", x=floats(3), raises=True)
        + case("f(x > 0, jnp.sin, jnp.cos, x)", x=floats(3), raises=True)
    ),
    "jax.lax.switch": (
        case("f(i, [jnp.sin, jnp.cos, lambda x: x * 2], x)", i=ints(high=2), x=floats(3))
        + cases("f(9, [jnp.sin, jnp.cos], x)", "f(-1, [jnp.sin, jnp.cos], x)",
                "f(0, [jnp.tanh], x)", x=floats(3))
        + case("f(0.5, [jnp.sin, jnp.cos], x)", x=floats(3), raises=True)
        + case("f(0, [], x)", x=floats(3), raises=True)
    ),
    "jax.lax.map": (
        cases("f(lambda x: jnp.sin(x) * 2, xs)", "f(lambda x: (x.sum(), x), xs)",
              "f(lambda x: x * 2, xs, batch_size=2)", xs=floats(5, 2))
        + case("f(lambda p: p[0] * p[1], (x, y))", x=floats(3), y=floats(3, 2))
    ),
    "jax.lax.associative_scan": (
        cases("f(jnp.add, x)", "f(jnp.multiply, x, reverse=True)", "f(jnp.maximum, x, axis=1)",
              x=floats(5, 4), tol="accumulate")
        + case("f(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (x, y))", x=floats(6),
               y=floats(6), tol="accumulate")
        + case("f(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (x, y), reverse=True)",
               x=floats(6), y=floats(6), tol="accumulate")
        + case("f(jnp.add, x)", x=floats(1, 2), modes="eager jit")
        + case("f(3, x)", x=floats(3), raises=True)
    ),
}
