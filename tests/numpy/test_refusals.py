"""What functions say of arguments that are no arrays, beside JAX."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
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
# What these give for an integer does not depend on it: JAX, once it has compiled that, takes one of
# any width.
UNREAD = ("imag", "isfinite", "isnan")


CALLS: list[Callable[[Any], Any]] = [
    lambda jax: jax.jit(lambda x: x)(np.array("x")),
    lambda jax: jax.jit(lambda x: x)(np.array([None])),
    lambda jax: jax.jit(lambda x: x)(np.float32),
    lambda jax: jax.jit(lambda x: x)(np.datetime64("2020-01-01")),
    # References, whose values were meant.
    *[lambda jax, name=name: getattr(jax.numpy, name)(jax.new_ref(FLOATS)) for name in (
        "sin", "sum", "cumsum", "asarray", "array", "expand_dims", "transpose")],
    lambda jax: jax.numpy.add(1, jax.new_ref(FLOATS)),
    lambda jax: jax.numpy.where(jax.new_ref(FLOATS), 1, 2),
    lambda jax: jax.numpy.concatenate([jax.new_ref(FLOATS)]),
    lambda jax: jax.numpy.linalg.det(jax.new_ref(FLOATS)),
    lambda jax: jax.numpy.fft.fft(jax.new_ref(FLOATS)),
    lambda jax: jax.lax.sin(jax.new_ref(FLOATS)),
    lambda jax: jax.lax.add(1.0, jax.new_ref(FLOATS)),
    lambda jax: jax.jit(jax.numpy.sin)(jax.new_ref(FLOATS)),
    lambda jax: jax.numpy.isin(FLOATS, FLOATS, method="other"),
    lambda jax: jax.numpy.fft.ihfft(FLOATS, norm="other"),
    lambda jax: jax.numpy.fft.rfft(FLOATS, norm="other"),
    lambda jax: jax.numpy.broadcast_to(FLOATS, "text"),
    *[lambda jax, dtype=dtype: jax.numpy.argsort(FLOATS, dtype=dtype)
      for dtype in (str, object, complex, np.uint64)],
    lambda jax: jax.numpy.pad(np.float32(1), True),
    lambda jax: jax.numpy.pad(np.float32(1), 1.5),
    lambda jax: jax.numpy.pad(FLOATS, True),
    # Small integers as indices into what they do not reach the end of.
    *[lambda jax, index=index: jax.numpy.zeros(200)[index(jax)] for index in (
        lambda jax: np.int8([1]), lambda jax: jax.numpy.int8([1]), lambda jax: np.int8(5),
        lambda jax: jax.numpy.int8(5), lambda jax: np.uint8([1]), lambda jax: np.int16([1]))],
    lambda jax: jax.jit(lambda i: jax.numpy.zeros(200)[i])(np.int8([1])),
    lambda jax: jax.numpy.zeros((200, 3))[jax.numpy.int8(5), jax.numpy.array([1, 2])],
    lambda jax: jax.numpy.zeros((3, 200))[1, np.int8([1])],
    lambda jax: jax.numpy.zeros(127)[np.int8([1])],
    lambda jax: jax.numpy.zeros(200).at[np.int8([1])].set(1),
    lambda jax: jax.numpy.zeros(200).at[np.int8([5])].get(mode="clip"),
    lambda jax: jax.numpy.zeros(200).at[np.int8([5])].get(
        mode="promise_in_bounds", wrap_negative_indices=False),
    *[lambda jax, mode=mode: jax.numpy.take(jax.numpy.arange(200), np.int8([1, 7]), mode=mode)
      for mode in ("fill", "clip", "wrap")],
    lambda jax: jax.numpy.take_along_axis(jax.numpy.arange(200), np.int8([1, -1]), 0),
    # A sampler's parameters.
    *[lambda jax, value=value, name=name: getattr(jax.random, name)(jax.random.key(0), value)
      for name in ("lognormal", "pareto", "rayleigh", "chisquare", "t", "wald")
      for value in (2j, "text", None, [1.0], np.float64(2), 3, True)],
    *[lambda jax, value=value, dtype=dtype: jax.random.lognormal(
        jax.random.key(0), value, (2,), dtype)
      for dtype in (np.float16, np.complex64, int)
      for value in (2j, np.float32(2), np.float16(2), 2.0)],
    lambda jax: jax.random.beta(jax.random.key(0), 2j, 1.0),
    lambda jax: jax.random.f(jax.random.key(0), 1.0, 2j),
    lambda jax: jax.random.triangular(jax.random.key(0), 0.0, 1j, 2.0),
]


def _required(name: str) -> int:
    """How many arguments the function needs; the ufuncs' signatures do not say."""
    parameters = inspect.signature(getattr(jax.numpy, name)).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return getattr(getattr(jax.numpy, name), "nin", 1)
    return sum(parameter.default is parameter.empty for parameter in parameters)


def _called(name: str, arguments: list[Any], library: Any) -> Any:
    return getattr(library.numpy, name)(*arguments)


def _outcome(library: Any, call: Callable[[Any], Any]) -> tuple[str, Any]:
    try:
        result = call(library)
    except Exception as error:
        text = str(error).replace("maxjax", "jax")
        # JAX jits private functions of other names; a set of types is in no order.
        text = re.sub(r"<(function|jnp.ufunc) [^>]*>", "<function>", text)
        text = re.sub(r" at 0x[0-9a-f]+", "", text)     # of what is within another function
        return type(error).__name__, re.sub(r"subtypes of .*", "", text)
    return "no error", [(leaf.dtype, leaf.shape, np.asarray(leaf)) for leaf in
                        library.tree.leaves(result)]


def _check(call: Callable[[Any], Any], *case: Any) -> None:
    ours, theirs = _outcome(maxjax, call), _outcome(jax, call)
    if ours[0] != "no error" or theirs[0] != "no error":
        assert ours == theirs, case
        return
    for (dtype, shape, values), (their_dtype, their_shape, their_values) in zip(
            ours[1], theirs[1], strict=True):
        assert (dtype, shape) == (their_dtype, their_shape), case
        np.testing.assert_allclose(values, their_values, rtol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_refusals(name: str) -> None:
    for position in range(_required(name)):
        for value in VALUES:
            if name in UNREAD and value == 2**70:
                continue
            arguments: list[Any] = [FLOATS] * _required(name)
            arguments[position] = value
            _check(functools.partial(_called, name, arguments), position, value)


@pytest.mark.parametrize("call", CALLS)
def test_calls(call: Callable[[Any], Any]) -> None:
    _check(call)
