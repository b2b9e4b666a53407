"""jax.experimental.jet: Taylor series."""

from __future__ import annotations

from compat.spec import cases, floats

JET = "jax.experimental.jet"
X = {"x": floats(3, low=0.2, high=0.8), "s": floats(3), "t": floats(3)}

TABLE = {
    f"{JET}.jet": cases(
        "f(jnp.sin, (x,), ([s, t],))", "f(lambda x: jnp.exp(x) / (1 + x * x), (x,), ([s, t, s],))",
        "f(jnp.log, (x,), ([s, t],), factorial_scaled=False)",
        "f(lambda x, y: jnp.dot(x, jnp.tanh(y)), (x, s), ([s, t], [t, x]))", tol="accumulate", **X)
        + cases("f(jnp.add, (1., 2.), ([1.], [1., 2.]))", raises=True),
    f"{JET}.fact": cases("f(4)", "f(x)", tol="accumulate", **X),
}
