"""The rules of primitives for Taylor series, without those that ``jet`` has to run functions for.

A rule takes the primal operands of a primitive and for each the list of its derivatives, and
returns the same of the result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import maxjax
from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import aval_of
from maxjax._primitives.arithmetic import (
    abs_p,
    add_p,
    ceil_p,
    complex_p,
    conj_p,
    div_p,
    floor_p,
    imag_p,
    integer_pow_p,
    is_finite_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    real_p,
    rem_p,
    round_p,
    sign_p,
    square_p,
    sub_p,
)
from maxjax._primitives.broadcasting import broadcast_in_dim_p, reduce_sum_p
from maxjax._primitives.builders import add_any_p
from maxjax._primitives.comparison import (
    and_p,
    clamp_p,
    eq_p,
    ge_p,
    gt_p,
    le_p,
    lt_p,
    ne_p,
    not_p,
    or_p,
    select_n_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.convert import (
    bitcast_convert_type_p,
    convert_element_type_p,
    stop_gradient_p,
)
from maxjax._primitives.convolution import conv_general_dilated_p
from maxjax._primitives.cumulative import cummax_p, cummin_p, cumprod_p, cumsum_p
from maxjax._primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from maxjax._primitives.fft import fft_p
from maxjax._primitives.indexing import gather_p, scatter_add_p
from maxjax._primitives.joining import concatenate_p, split_p
from maxjax._primitives.layout import copy_p, reshape_p, rev_p, squeeze_p, transpose_p
from maxjax._primitives.reduction import reduce_max_p, reduce_min_p
from maxjax._primitives.sharding import device_put_p, reshard_p
from maxjax._primitives.slicing import pad_p, slice_p
from maxjax._primitives.special import erf_inv_p, erf_p, erfc_p
from maxjax._primitives.stacking import stack_p, tile_p, unstack_p
from maxjax._primitives.transcendental import (
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cos_p,
    cosh_p,
    exp_p,
    expm1_p,
    log1p_p,
    log_p,
    logistic_p,
    pow_p,
    rsqrt_p,
    sin_p,
    sinh_p,
    sqrt_p,
    tan_p,
    tanh_p,
)
from maxjax._primitives.window import reduce_window_sum_p
from maxjax.experimental import _power_series as power
from maxjax.experimental._power_series import Series

# ``(primals, series, **params) -> (primal, terms)``; of several results, lists of both.
Rule = Callable[..., tuple[Any, Any]]

# Functions that are constant almost everywhere, and those that are linear in all their operands.
CONSTANT = (le_p, lt_p, gt_p, ge_p, eq_p, ne_p, not_p, and_p, or_p, xor_p, floor_p, ceil_p, round_p,
            sign_p, stop_gradient_p, is_finite_p, shift_left_p, shift_right_arithmetic_p,
            shift_right_logical_p, bitcast_convert_type_p)
LINEAR = (neg_p, real_p, complex_p, imag_p, conj_p, add_p, add_any_p, sub_p, convert_element_type_p,
          broadcast_in_dim_p, concatenate_p, split_p, pad_p, reshape_p, squeeze_p, rev_p,
          transpose_p, slice_p, reduce_sum_p, reduce_window_sum_p, fft_p, copy_p, device_put_p,
          stack_p, unstack_p, tile_p, reshard_p, cumsum_p)
# The derivatives of functions of one operand.
SLOPES: dict[Primitive, Callable[[Any], Any]] = {
    erf_p: lambda x: (2 / math.sqrt(math.pi)) * lax.exp(-x * x),
    erfc_p: lambda x: (-2 / math.sqrt(math.pi)) * lax.exp(-x * x),
    asinh_p: lambda x: lax.rsqrt(x * x + 1),
    acosh_p: lambda x: lax.rsqrt(x - 1) * lax.rsqrt(x + 1),     # NaN below -1 as well
    atanh_p: lambda x: 1 / ((1 - x) * (1 + x)),
    asin_p: lambda x: lax.rsqrt((1 - x) * (1 + x)),
    atan_p: lambda x: 1 / (1 + x * x),
    tan_p: lambda x: 1 / (lax.cos(x) * lax.cos(x)),
}


def _of_one(function: Callable[[Any, Series], list[Any]]) -> Rule:
    """The rule of a function of one operand: ``(value, its coefficients) -> coefficients``."""
    def rule(primals_in: Series, series_in: Sequence[Series], **_: Any) -> tuple[Any, list[Any]]:
        (u,), (terms,) = primals_in, series_in
        return power.result(function(u, power.coefficients(u, terms)))
    return rule


def by_derivatives(primitive: Primitive, primals: Series, series: Sequence[Series],
                   **params: Any) -> tuple[Any, Any]:
    """The rule of whatever has a derivative: of the function of t, as many as there are terms."""
    order = len(series[0])
    inexact = [np.issubdtype(terms[0].dtype, np.inexact) and aval_of(primal).tangent().dtype !=
               dtypes.float0 for primal, terms in zip(primals, series, strict=True)]

    def along(t: Any) -> list[Any]:
        given = []
        for primal, terms, moves in zip(primals, series, inexact, strict=True):
            if moves:
                for k in range(order, 0, -1):
                    power = lax.convert_element_type(t, primal.dtype) ** k
                    primal = primal + terms[k - 1] * (power / math.factorial(k))
            given.append(primal)
        out = primitive.bind(*given, **params)
        return list(out) if primitive.multiple_results else [out]

    def derivative(function: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
        return lambda t: [slope if slope.dtype != dtypes.float0 else jnp.zeros(slope.shape)
                          for slope in maxjax.jvp(function, (t,), (jnp.ones_like(t),))[1]]

    start = jnp.zeros((), dtypes.canonical(np.float64))
    functions: list[Callable[[Any], list[Any]]] = [along]
    for _ in range(order):
        functions.append(derivative(functions[-1]))
    rows = [function(start) for function in functions]
    columns = [list(column) for column in zip(*rows, strict=True)]
    outs = [column[0] for column in columns]
    terms = [column[1:] for column in columns]
    return (outs, terms) if primitive.multiple_results else (outs[0], terms[0])


# --- rules of single primitives -------------------------------------------------------------------

def _bilinear_rule(prim: Any, primals_in: Series, series_in: Sequence[Series],
                   **params: Any) -> tuple[Any, list[Any]]:
    u, w = map(power.coefficients, primals_in, series_in)
    return power.result(power.product(u, w, functools.partial(prim.bind, **params)))


def _div_taylor(primals_in: Series, series_in: Sequence[Series],
                **_: Any) -> tuple[Any, list[Any]]:
    return power.result(
        power.quotient(*map(power.coefficients, primals_in, series_in)))


def _integer_pow_taylor(primals_in: Series, series_in: Sequence[Series], *,
                        y: int) -> tuple[Any, list[Any]]:
    (x,), (terms,) = primals_in, series_in
    if y == 0:
        return jnp.ones_like(x), [jnp.zeros_like(term) for term in terms]
    u = power.coefficients(x, terms)
    if y < 0:
        one = [jnp.ones_like(x), *[jnp.zeros_like(term) for term in terms]]
        u = power.quotient(one, u)
    return power.result(power.power(u, abs(y)))


def _pow_taylor(primals_in: Series, series_in: Sequence[Series],
                **_: Any) -> tuple[Any, list[Any]]:
    (x, y), (x_terms, y_terms) = primals_in, series_in
    if not np.issubdtype(y.dtype, np.inexact):
        y = lax.convert_element_type(y, x.dtype)
        y_terms = [lax.convert_element_type(term, x.dtype) for term in y_terms]
    logarithm = power.log_series(lax.log(x), power.coefficients(x, x_terms))
    exponent = power.product(logarithm, power.coefficients(y, y_terms))
    return power.result(power.exp_series(lax.pow(x, y), exponent))


def _atan2_taylor(primals_in: Series, series_in: Sequence[Series],
                  **_: Any) -> tuple[Any, list[Any]]:
    """The series of ``v = atan2(y, x)``, by ``v' = (x y' - y x') / (x**2 + y**2)``."""
    y, x = map(power.coefficients, primals_in, series_in)
    if len(y) == 1:
        return lax.atan2(*primals_in), []
    radius = [a + b for a, b in zip(
        power.product(x, x), power.product(y, y), strict=True)]
    start = lax.atan2(*primals_in)
    left = power.integral(start, y, power.quotient(x, radius))
    right = power.integral(start, x, power.quotient(y, radius))
    return power.result(
        [start, *[a - b for a, b in zip(left[1:], right[1:], strict=True)]])


def _abs_taylor(primals_in: Series, series_in: Sequence[Series],
                **params: Any) -> tuple[Any, Any]:
    (x,), (terms,) = primals_in, series_in
    if np.issubdtype(x.dtype, np.complexfloating):
        return by_derivatives(abs_p, primals_in, series_in, **params)
    sign = lax.sign(x)
    return lax.abs(x), [lax.mul(sign, term) for term in terms]


def _extremum_rule(prim: Any, first: Callable[[Any, Any], Any], primals_in: Series,
                   series_in: Sequence[Series], **params: Any) -> tuple[Any, list[Any]]:
    """Each term is that of the chosen operand; the mean of both where they are equal."""
    x, y = primals_in
    chosen, equal = first(x, y), lax.eq(x, y)
    return prim.bind(x, y, **params), [
        jnp.where(equal, (a + b) / 2, jnp.where(chosen, a, b))
        for a, b in zip(*series_in, strict=True)]


def _reduction_rule(prim: Any, primals_in: Series, series_in: Sequence[Series], *, axes: Any,
                    **params: Any) -> tuple[Any, list[Any]]:
    """The mean over the places of the extremum."""
    (x,), (terms,) = primals_in, series_in
    out = prim.bind(x, axes=axes, **params)
    places = lax.eq(x, lax.broadcast_in_dim(
        out, x.shape, [axis for axis in range(x.ndim) if axis not in axes])).astype(x.dtype)
    count = jnp.sum(places, axes)
    return out, [jnp.sum(term * places, axes) / count for term in terms]


def _rem_taylor(primals_in: Series, series_in: Sequence[Series],
                **params: Any) -> tuple[Any, list[Any]]:
    (x, y), (x_terms, y_terms) = primals_in, series_in
    quotient = lax.div(x, y)
    whole = lax.sign(quotient) * lax.floor(lax.abs(quotient))
    return rem_p.bind(x, y, **params), [
        a - whole * b for a, b in zip(x_terms, y_terms, strict=True)]


def _clamp(low: Any, x: Any, high: Any) -> Any:
    low, high = (jnp.broadcast_to(bound, x.shape) for bound in (low, high))
    return lax.min(lax.max(low, x), high)


def _select_taylor(primals_in: Series, series_in: Sequence[Series],
                   **params: Any) -> tuple[Any, list[Any]]:
    which = primals_in[0]
    return select_n_p.bind(*primals_in, **params), [
        select_n_p.bind(which, *column, **params) for column in zip(*series_in[1:], strict=True)]


def _at_fixed_places(prim: Any, arrays: Sequence[int], primals_in: Series,
                     series_in: Sequence[Series], **params: Any) -> tuple[Any, list[Any]]:
    """The rule of what is linear in some of its operands, and the others are integers."""
    order = len(series_in[0])
    return prim.bind(*primals_in, **params), [
        prim.bind(*[series_in[i][k] if i in arrays else primal
                    for i, primal in enumerate(primals_in)], **params) for k in range(order)]


SERIES: dict[Primitive, Rule] = {
    **{prim: functools.partial(_bilinear_rule, prim)
       for prim in (mul_p, dot_general_p, conv_general_dilated_p)},
    div_p: _div_taylor,
    integer_pow_p: _integer_pow_taylor,
    square_p: _of_one(lambda x, u: power.product(u, u)),
    sqrt_p: _of_one(lambda x, u: power.real_power(lax.sqrt(x), u, 0.5)),
    rsqrt_p: _of_one(lambda x, u: power.real_power(lax.rsqrt(x), u, -0.5)),
    exp_p: _of_one(lambda x, u: power.exp_series(lax.exp(x), u)),
    expm1_p: _of_one(power.expm1_series),
    log_p: _of_one(lambda x, u: power.log_series(lax.log(x), u)),
    log1p_p: _of_one(lambda x, u: power.log_series(lax.log1p(x), [1 + x, *u[1:]])),
    sin_p: _of_one(lambda x, u: power.waves(lax.sin(x), lax.cos(x), u, -1)[0]),
    cos_p: _of_one(lambda x, u: power.waves(lax.sin(x), lax.cos(x), u, -1)[1]),
    sinh_p: _of_one(lambda x, u: power.waves(lax.sinh(x), lax.cosh(x), u, 1)[0]),
    cosh_p: _of_one(lambda x, u: power.waves(lax.sinh(x), lax.cosh(x), u, 1)[1]),
    tanh_p: _of_one(lambda x, u: power.slope_of_result(lax.tanh(x), u, power.tanh_slope)),
    logistic_p: _of_one(
        lambda x, u: power.slope_of_result(lax.logistic(x), u, power.logistic_slope)),
    erf_inv_p: _of_one(
        lambda x, u: power.slope_of_result(lax.erf_inv(x), u, power.erf_inv_slope)),
    pow_p: _pow_taylor,
    atan2_p: _atan2_taylor,
    abs_p: _abs_taylor,
    max_p: functools.partial(_extremum_rule, max_p, lax.gt),
    min_p: functools.partial(_extremum_rule, min_p, lax.lt),
    reduce_max_p: functools.partial(_reduction_rule, reduce_max_p),
    reduce_min_p: functools.partial(_reduction_rule, reduce_min_p),
    rem_p: _rem_taylor,
    select_n_p: _select_taylor,
    gather_p: functools.partial(_at_fixed_places, gather_p, (0,)),
    scatter_add_p: functools.partial(_at_fixed_places, scatter_add_p, (0, 2)),
    dynamic_slice_p: functools.partial(_at_fixed_places, dynamic_slice_p, (0,)),
    dynamic_update_slice_p: functools.partial(_at_fixed_places, dynamic_update_slice_p, (0, 1)),
}


def _cumulative(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda x, *, axis, reverse: lax.associative_scan(combine, x, reverse=reverse, axis=axis)


# Functions that compute the same by others.
COMPOSITIONS: dict[Primitive, Callable[..., Any]] = {
    clamp_p: _clamp,
    cumprod_p: _cumulative(lax.mul),
    cummax_p: _cumulative(lax.max),
    cummin_p: _cumulative(lax.min),
}
