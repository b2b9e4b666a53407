"""Special functions over their domains, against SciPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as scipy_special

import maxjax
import maxjax.numpy as jnp
from maxjax.scipy import special
from tests.support.elementwise import SPECIAL

COUNT = 400
RNG = np.random.default_rng(5)


def line(low, high):
    return np.linspace(low, high, COUNT).astype(np.float32)


def units_off(value, true):
    """The difference in units in the last place of the true float32."""
    nearest = true.astype(np.float32)
    unit = np.spacing(np.maximum(np.abs(nearest), np.finfo(np.float32).tiny))
    with np.errstate(invalid="ignore"):
        units = np.abs(np.asarray(value).astype(np.float64) - true) / unit
    return np.where(np.isfinite(nearest), units, np.where(np.asarray(value) == nearest, 0, np.inf))


# A row of the table and the operands of one of its ranges.
ROWS = [pytest.param(row, args, id=row.name) for row in SPECIAL.values()
        for args in row.measured(COUNT, endless=True)]


@pytest.mark.parametrize("row, args", ROWS)
def test_special_functions_are_accurate(row, args):
    narrow = [arg if arg.dtype == np.int32 else arg.astype(np.float32) for arg in args]
    wide = [arg if arg.dtype == np.int32 else arg.astype(np.float64) for arg in narrow]
    values = getattr(special, row.name)(*map(jnp.asarray, narrow), *row.static)
    true = getattr(scipy_special, row.name)(*wide, *row.static)
    if not isinstance(true, tuple):
        values, true = (values,), (true,)
    for value, exact in zip(values, true, strict=True):
        off = units_off(value, exact)
        worst = int(np.argmax(off))
        assert off[worst] <= row.units, (
            f"{off[worst]:.3g} at {[float(arg[worst]) for arg in narrow]}")


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
