"""The steps of which jax.experimental.ode.odeint is made."""

from __future__ import annotations

from compat.spec import case, cases, floats

ODE = "jax.experimental.ode"
STEP = {"a": floats(4), "b": floats(4), "k": floats(7, 4)}
POSITIVE = {"e": floats(4, low=0.1, high=1.0), "a": floats(4, low=0.1, high=1.0)}

TABLE = {
    f"{ODE}.abs2": case("f(x)", x=floats(3)) + case("f(x)", x=floats(3, dtype="complex64"),
                                                    modes="eager jit"),
    f"{ODE}.fit_4th_order_polynomial": case(
        "f(a, b, k[0], k[1], k[2], jnp.float32(0.5))", **STEP, tol="loose"),
    f"{ODE}.interp_fit_dopri": case("f(a, b, k, jnp.float32(0.5))", **STEP, tol="accumulate"),
    f"{ODE}.initial_step_size": cases(
        "f(lambda y, t: -y, 0.0, a, 4, 1e-3, 1e-3, -a)",
        "f(lambda y, t: jnp.sin(y) * t, 0.5, a, 4, 1e-3, 1e-3, jnp.sin(a) * 0.5)",
        a=floats(4), modes="eager jit vmap", tol="accumulate"),
    f"{ODE}.runge_kutta_step": cases(
        "f(lambda y, t: -y, a, -a, jnp.float32(0.0), jnp.float32(0.25))",
        "f(lambda y, t: jnp.sin(y) * t, a, jnp.sin(a) * 0.5, jnp.float32(0.5), "
        "jnp.float32(0.1))",
        a=floats(4), tol="accumulate", grad=False),
    f"{ODE}.mean_error_ratio": case("f(e, 1e-2, 1e-3, a, -a)", **POSITIVE, tol="accumulate"),
    f"{ODE}.optimal_step_size": cases(
        "f(e[0], a[0])", "f(e[0], a[0] + 2.0)", "f(e[0], 0.0 * a[0])", "f(e[0], a[0], dfactor=0.5)",
        **POSITIVE, grad=False, tol="accumulate"),
}
