"""What functions say of arguments that are no arrays, beside JAX."""

from __future__ import annotations

import inspect
import re
from typing import Any

import jax
import jax.numpy
import numpy as np
import pytest

import maxjax
import maxjax.numpy

FUNCTIONS = """
    abs absolute acos acosh add all allclose amax amin any arccos arccosh arcsin arcsinh
    arctan arctan2 arctanh argmax argmin argsort around asin asinh atan atan2 atanh atleast_1d
    bitwise_and bitwise_count bitwise_left_shift cbrt ceil conj conjugate
    convolve copysign corrcoef cos count_nonzero cov cumprod cumsum deg2rad degrees diagonal diff
    digitize divide divmod dot ediff1d equal exp exp2 expm1 fabs flip float_power
    floor floor_divide fmod gcd greater heaviside hypot i0 imag inner interp invert
    isclose isfinite isnan kron lcm left_shift less linspace log logaddexp logical_and
    logical_not matmul max maximum mean median min mod multiply nan_to_num nanmax nanmedian
    nansum negative nextafter nonzero outer percentile polyval positive prod quantile rad2deg
    radians ravel real reciprocal remainder right_shift rint rot90 round
    searchsorted sign sin sinc sort spacing sqrt square squeeze subtract sum take tan
    trace transpose trapezoid tril true_divide trunc unwrap vander vdot where
""".split()
VALUES = ["text", None, [1.0], {"a": 1}, object(), np.array("x"), np.array([None]), 2**70, b"bytes",
          slice(1)]
FLOATS = np.ones((3, 3), np.float32)


def _required(name: str) -> int:
    """How many arguments the function needs; the ufuncs' signatures do not say."""
    parameters = inspect.signature(getattr(jax.numpy, name)).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return getattr(getattr(jax.numpy, name), "nin", 1)
    return sum(parameter.default is parameter.empty for parameter in parameters)


def _outcome(library: Any, name: str, arguments: list[Any]) -> tuple[str, str]:
    try:
        getattr(library.numpy, name)(*arguments)
    except Exception as error:
        text = str(error).replace("maxjax", "jax")
        # JAX jits private functions of other names; a set of types is in no order.
        text = re.sub(r"<(function|jnp.ufunc) [^>]*>", "<function>", text)
        return type(error).__name__, re.sub(r"subtypes of .*", "", text)
    return "no error", ""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_refusals(name: str) -> None:
    for position in range(_required(name)):
        for value in VALUES:
            arguments: list[Any] = [FLOATS] * _required(name)
            arguments[position] = value
            assert _outcome(maxjax, name, arguments) == _outcome(jax, name, arguments), (
                position, value)
