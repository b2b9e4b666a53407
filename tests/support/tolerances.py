"""How far results may be from those of real JAX: the only place that says so.

A case names its class; the class and the dtype of a result give the bound
``|actual - expected| <= relative * |expected| + absolute``.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

# Units in the last place of the dtype.
ULPS: dict[str, float] = {
    "exact": 0.0,           # bit for bit: movement of data, integers, comparisons, float32 + - * /
    "elementwise": 4.0,     # one function of one element
    "loose": 64.0,          # special functions, and derivatives that cancel
    "accumulate": 64.0,     # sums, products and contractions of up to some hundred elements
    "iterative": 4096.0,    # decompositions, solvers
}
# In units of the last place of 1.0: results near zero, of terms that are not.
ABSOLUTE_ULPS: dict[str, float] = {
    "exact": 0.0,
    "elementwise": 0.5,
    "loose": 16.0,
    "accumulate": 64.0,
    "iterative": 4096.0,
}
# A derivative is a few more roundings than its function.
DERIVATIVE_FACTOR = 4.0
# The narrow floats round each step of a derivative, and XLA may fuse some of these away.
NARROW_DERIVATIVE_FACTOR = 4.0

FINITE_DIFFERENCE_STEP = 1e-6
FINITE_DIFFERENCE_RELATIVE = 1e-5
FINITE_DIFFERENCE_ABSOLUTE = 1e-6


def epsilon(dtype: np.dtype) -> float:
    """The distance from 1 to the next number; 0 for what is exact."""
    dtype = real(dtype)
    if dtype.kind in "biu" or "int" in dtype.name:
        return 0.0
    return float(ml_dtypes.finfo(dtype).eps)


def tiny(dtype: np.dtype) -> float:
    """The least normal number: below it JAX flushes to zero, and NumPy does not."""
    dtype = real(dtype)
    if dtype.kind in "biu" or "int" in dtype.name:
        return 0.0
    return float(ml_dtypes.finfo(dtype).smallest_normal)


def real(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def bounds(kind: str, dtype: np.dtype, derivative: bool) -> tuple[float, float]:
    """(relative, absolute) for results of ``dtype`` in class ``kind``."""
    unit = epsilon(dtype)
    factor = 1.0
    if derivative:
        factor = DERIVATIVE_FACTOR
        if unit > 1e-6:
            factor *= NARROW_DERIVATIVE_FACTOR
        if kind == "exact":
            kind = "elementwise"
    return (ULPS[kind] * unit * factor,
            ABSOLUTE_ULPS[kind] * unit * factor + tiny(dtype))
