"""Rows of every sort, to copy from. The rest of the elementwise functions is in elementwise.py."""

from __future__ import annotations

from compat.spec import (
    array,
    case,
    cases,
    check,
    elementwise,
    floats,
    ints,
    positive_definite,
    reduction,
    scalar,
    shaped,
)

TABLE = {
    # A family does for most.
    "jax.numpy.sin": elementwise(1),
    "jax.numpy.log": elementwise(1, domain=(0.1, 5.0)),
    "jax.numpy.add": elementwise(2) + case("f(x, y)", x=floats(2), y=floats(3), raises=True),
    "jax.numpy.sum": reduction(initial=True, where=True, dtype=True),

    # Expressions; inputs are the arguments of jit, grad and vmap, all else is static.
    "jax.numpy.take": (
        cases("f(x, i)", "f(x, i, axis=1)", "f(x, i, axis=-1, mode='clip')",
              x=floats(3, 5), i=ints(2, 2, high=2))
        + case("f(x, i, axis=0)", x=shaped(3, 2), i=array([2, 0], "int32"),
               dtypes="int8 bool complex64", modes="eager jit")
        + case("f(x, i)", x=floats(3), i=floats(2), raises="integer")
        + case("f(x, 7, mode='fill')", x=floats(3))
    ),
    "jax.numpy.clip": (
        cases("f(x, -1, 1)", "f(x, low)", "f(x, max=low)", x=shaped(3, 4), low=scalar(0.5),
              dtypes="float32 bfloat16")
        + case("f(x, 2, 5)", x=shaped(3, 4), dtypes="int32 uint8")
    ),
    "jax.numpy.linalg.cholesky": (
        cases("f(x)", "f(x, upper=True)", x=positive_definite(4, 4), tol="iterative",
              dtypes="float32 complex64")
        + case("f(x)", x=positive_definite(2, 3, 3), dtypes="float64", tol="iterative")
    ),

    # Plain Python.
    "jax.numpy.finfo": check("f(jnp.float32).eps", "f('bfloat16').max", "f(jnp.float16).dtype")
    + check("f(jnp.int32)", raises=True),
    "jax.numpy.pi": check("f"),
    "jax.Array.T": cases("x.T", "x.T @ x", x=floats(3, 2), tol="accumulate"),
    "jax.Array.at[].set": cases("x.at[1].set(2.)", "x.at[:, i].set(y)", x=floats(3, 4),
                                y=floats(3, 2), i=array([3, 0], "int32")),
}
