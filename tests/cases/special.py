"""What only jax.scipy.special has: functions of physics and of statistics."""

from __future__ import annotations

import jax.scipy.special  # JAX does not import it by itself
import numpy as np

from tests.support.elementwise import SPECIAL
from tests.support.harness import Case

RNG = np.random.default_rng(11)
X = RNG.uniform(0.5, 4, 6).astype(np.float32)
SIGNED = np.array([-3.2, -1.5, -0.4, 0.3, 1.7, 2.9], np.float32)
UNIT = RNG.uniform(0.1, 0.9, 6).astype(np.float32)
LOWER = RNG.uniform(2.5, 4, 6).astype(np.float32)
PLANE = np.array([0.5 + 1j, 2.0 - 0.3j, 1.5 + 0.25j], np.complex64)
ORDERS = np.array([1, 2, 3, 1, 2, 3], np.float32)
CASES: list[Case] = []


def add(name, args, linear_in=None, **options):
    """The function of that name, with derivatives by the arguments numbered (None: by all)."""
    def fun(j, *xs):
        xs = [x if linear_in is None or i in linear_in else j.lax.stop_gradient(x)
              for i, x in enumerate(xs)]
        return getattr(j.scipy.special, name)(*xs)

    CASES.append(Case(name, fun, args, **{"tolerance": "loose", "smooth": False, **options}))


# Those with primitives of their own.
for _row in SPECIAL.values():
    if _row.name == "spence":
        add("spence", (LOWER,))      # nearer to 1 JAX's derivative backwards is NaN
    elif _row.primitives and _row.domain:
        add(_row.name, tuple(np.roll(points, 2 * number).astype(np.float32)
                             for number, points in enumerate(_row.points())))
add("exp1", (X,))
add("expn", (ORDERS, X), (1,))
add("hyp1f1", (X, LOWER, SIGNED))
add("hyp2f1", (X, UNIT, LOWER, UNIT[::-1] / 2))
CASES += [
    Case("wofz", lambda j, z: j.scipy.special.wofz(z), (PLANE,), tolerance="loose", smooth=False),
    Case("gamma-complex", lambda j, z: j.scipy.special.gamma(z), (PLANE,), tolerance="loose",
         smooth=False),
    Case("loggamma-complex", lambda j, z: j.scipy.special.loggamma(z), (PLANE,),
         tolerance="loose", differentiable=False),      # JAX has no derivative backwards
    Case("bessel_jn", lambda j, z: j.scipy.special.bessel_jn(z, v=3), (X + 8,), tolerance="loose",
         smooth=False),
]
assert jax.scipy.special
