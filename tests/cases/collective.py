"""Collectives over dimensions alone, and over named axes that vmap maps."""

from __future__ import annotations

import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)
X = RNG.permutation(24).astype(np.float32).reshape(2, 3, 4) / 8 - 1.4
SQUARE = RNG.normal(size=(3, 3, 2)).astype(np.float32)
SHIFT = ((0, 1), (1, 2), (2, 0))


def over(body):
    """``body(lax, x)`` on each element along an axis ``i``."""
    return lambda j, x: j.vmap(lambda element: body(j.lax, element), axis_name="i")(x)


def broadcast(j, x):
    """A jaxpr that holds the collective (which JAX cannot map); the result is another's."""
    jaxpr = j.make_jaxpr(lambda y: j.lax.pbroadcast(y, "i", 1), axis_env=[("i", 3)])(x)
    return x * len(jaxpr.eqns)


def ragged(j, x):
    """A jaxpr that holds the collective (which JAX's CPU backend does not run)."""
    slices = [np.arange(3, dtype=np.int32)] * 4
    jaxpr = j.make_jaxpr(lambda y: j.lax.ragged_all_to_all(y, y, *slices, axis_name="i"),
                         axis_env=[("i", 3)])(x)
    return x * len(jaxpr.eqns)


COLLECTIVES = {
    "psum": lambda lax, x: lax.psum(x, "i"),
    "pmax": lambda lax, x: lax.pmax(x, "i"),
    "pmin": lambda lax, x: lax.pmin(x, "i"),
    "ppermute": lambda lax, x: lax.ppermute(x, "i", SHIFT),
    "all_gather": lambda lax, x: lax.all_gather(x, "i", axis=1),
    "reduce_scatter": lambda lax, x: lax.psum_scatter(x, "i"),
    "all_to_all": lambda lax, x: lax.all_to_all(x, "i", 0, 1),
    "axis_index": lambda lax, x: x * lax.axis_index("i"),
}

CASES = [
    *(Case(name, over(body), (SQUARE,), differentiable=name not in ("pmax", "pmin"),
           linear=name not in ("pmax", "pmin"), tolerance="accumulate", primitives=(name,))
      for name, body in COLLECTIVES.items()),
    Case("pbroadcast-bound", broadcast, (X[0],), tolerance="exact", primitives=("pbroadcast",)),
    Case("ragged_all_to_all-bound", ragged, (X[0],), tolerance="exact",
         primitives=("ragged_all_to_all",)),
    *(Case(f"{name}-dimensions", lambda j, x, name=name: getattr(j.lax, name)(x, (0, 2)), (X,),
           differentiable=name == "psum", linear=name == "psum", tolerance="accumulate")
      for name in ("psum", "pmax", "pmin")),
    Case("psum-integers", over(lambda lax, x: lax.psum(x, "i")), (np.arange(6).reshape(3, 2),),
         differentiable=False, tolerance="exact"),
]
