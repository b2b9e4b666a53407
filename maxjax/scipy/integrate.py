"""jax.scipy.integrate: integrals of samples."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.function_stages import add_stages
from maxjax._ir.trace import Array

explain_missing_names(__name__)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral along an axis, by the trapezoidal rule.

    Args:
      x: the sample points; ``dx`` apart by default.

    >>> jax.scipy.integrate.trapezoid(jnp.array([1., 2., 3.]))
    Array(4., dtype=float32)
    """
    return jnp.trapezoid(y, x, dx=dx, axis=axis)


add_stages(globals(), "trapezoid")
