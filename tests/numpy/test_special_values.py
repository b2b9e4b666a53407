"""Special functions over their domains, against SciPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as scipy_special

import maxjax
import maxjax.numpy as jnp
from maxjax.scipy import special

COUNT = 400
RNG = np.random.default_rng(5)


def line(low, high):
    return np.linspace(low, high, COUNT).astype(np.float32)


def powers(low, high):
    return np.geomspace(low, high, COUNT).astype(np.float32)


def signed(values):
    return np.concatenate([-values[::-1], values])


def spread(low, high):
    return np.exp(RNG.uniform(np.log(low), np.log(high), COUNT)).astype(np.float32)


def units_off(value, true):
    """How far apart, in units in the last place of the true float32."""
    nearest = true.astype(np.float32)
    unit = np.spacing(np.maximum(np.abs(nearest), np.finfo(np.float32).tiny))
    with np.errstate(invalid="ignore"):
        units = np.abs(np.asarray(value).astype(np.float64) - true) / unit
    return np.where(np.isfinite(nearest), units, np.where(np.asarray(value) == nearest, 0, np.inf))


WIDE = signed(powers(1e-30, 1e4))
ORDERS = RNG.integers(0, 6, COUNT).astype(np.int32)
# Names, units in the last place, arguments.
ROWS = [
    ("gammaln", 1, powers(1e-30, 1e30)), ("gammaln", 1, line(-19.9, -1e-3)),
    ("digamma", 1, powers(1e-20, 1e20)), ("digamma", 1, line(-19.9, -1e-3)),
    ("gamma", 1, powers(1e-30, 34)), ("gamma", 1, line(-19.9, -1e-3)),
    ("erf", 1, WIDE), ("erfc", 1, signed(powers(1e-10, 9))), ("erfcx", 1, signed(powers(1e-10, 9))),
    # XLA's polynomial, of which JAX's normal variates are made.
    ("erfinv", 6, line(-0.999, 0.999)),
    ("dawsn", 1, WIDE), ("i0e", 1, WIDE), ("i1e", 1, WIDE),
    ("i0", 4, signed(powers(1e-10, 80))), ("i1", 4, signed(powers(1e-10, 80))),
    ("entr", 2, powers(1e-30, 1e30)), ("expit", 3, signed(powers(1e-10, 80))),
    ("exp1", 1, powers(1e-20, 80)), ("expi", 1, signed(powers(1e-20, 80))),
    ("log_ndtr", 1, signed(powers(1e-10, 1e4))), ("ndtri", 1, powers(1e-30, 0.5)),
    ("spence", 1, powers(1e-10, 1e10)),
    ("gammainc", 1, spread(0.01, 100), spread(0.01, 100)),
    ("gammaincc", 1, spread(0.01, 100), spread(0.01, 100)),
    ("xlogy", 2, line(-5, 5), spread(1e-10, 1e10)),
    ("xlog1py", 2, line(-5, 5), spread(1e-10, 1e10)),
    ("owens_t", 1, line(-5, 5), RNG.uniform(-5, 5, COUNT).astype(np.float32)),
    ("zeta", 1, spread(1.05, 20), spread(0.1, 50)),
    ("polygamma", 2, ORDERS, spread(0.05, 100)), ("expn", 1, ORDERS, spread(0.01, 50)),
    ("betainc", 1, spread(0.1, 20), spread(0.1, 20), line(0, 1)),
    ("hyp1f1", 1, spread(0.1, 10), spread(0.1, 10), line(-10, 10)),
    ("ndtr", 2, line(-12, 6)), ("logit", 3, line(1e-3, 0.999)), ("factorial", 2, line(0, 33.5)),
    ("rel_entr", 3, line(1e-3, 1), line(1e-3, 1.003)),
    ("boxcox", 3, spread(0.01, 100), line(-3, 3)),
    ("comb", 1, RNG.integers(0, 19, COUNT).astype(np.float32),
     RNG.integers(0, 19, COUNT).astype(np.float32)),
    ("hyp2f1", 1, spread(0.1, 5), spread(0.1, 5), spread(0.1, 5), line(-0.9, 0.9)),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_values(row):
    name, units, *args = row
    wide = [arg if arg.dtype == np.int32 else arg.astype(np.float64) for arg in args]
    off = units_off(getattr(special, name)(*map(jnp.asarray, args)),
                    getattr(scipy_special, name)(*wide))
    worst = int(np.argmax(off))
    assert off[worst] <= units, f"{off[worst]:.3g} at {[float(arg[worst]) for arg in args]}"


def test_pairs_of_values():
    x = powers(1e-10, 1e3)
    for value, true in zip(special.fresnel(x) + special.sici(x),
                           scipy_special.fresnel(x.astype(float))
                           + scipy_special.sici(x.astype(float)), strict=True):
        assert units_off(value, true).max() <= 1


def test_bessel_functions_of_all_orders():
    x = line(0.05, 40)
    for order, value in enumerate(special.bessel_jn(jnp.asarray(x), v=4)):
        assert units_off(value, scipy_special.jv(order, x.astype(float))).max() <= 1


@pytest.mark.parametrize("name", ["gamma", "loggamma", "wofz"])
def test_complex_plane(name):
    z = (RNG.uniform(-5, 5, COUNT) + 1j * RNG.uniform(-5, 5, COUNT)).astype(np.complex64)
    true = getattr(scipy_special, name)(z.astype(np.complex128))
    value = np.asarray(getattr(maxjax.scipy.special, name)(jnp.asarray(z)))
    assert (np.abs(value - true) / np.abs(true)).max() < 1e-7
