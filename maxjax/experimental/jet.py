"""jax.experimental.jet: derivatives of higher order, by Taylor series.

``jet`` moves the first terms of a function's arguments along a curve to those of its results, in
one pass: to order K that is about K**2 times the work of the function, where K nested ``jvp`` take
2**K times.

A rule (an entry of ``jet_rules``) takes the primal operands of a primitive and for each the list of
its derivatives, and returns the same of the result. The rules here compute with the coefficients
``c[k]`` of the powers of t, the derivatives divided by k!. For ``v = g(u)`` with a known
derivative, ``v' = g'(u) u'`` gives ``k v[k] = sum_j j u[j] g'(u)[k - j]``; products of series are
convolutions. A primitive without a rule is differentiated as often as the order demands.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import maxjax
from maxjax import lax, tree_util
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.jit import jit_p
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Trace, Tracer, aval_of, context, current_trace, leaked_tracer_error
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
from maxjax._transforms.jvp import instantiate
from maxjax.experimental import _power_series as power
from maxjax.experimental._power_series import Series

explain_missing_names(__name__)

# ``(primals, series, **params) -> (primal, terms)``; of several results, lists of both.
Rule = Callable[..., tuple[Any, Any]]

jet_rules: dict[Any, Rule] = {}


class ZeroTerm:
    """A term that is zero.

    >>> from maxjax.experimental import jet
    >>> isinstance(jet.zero_term, jet.ZeroTerm)
    True
    """


class ZeroSeries:
    """A series whose terms are all zero.

    >>> from maxjax.experimental import jet
    >>> isinstance(jet.zero_series, jet.ZeroSeries)
    True
    """


zero_term = ZeroTerm()
zero_series = ZeroSeries()


def fact(n: Any) -> Any:
    """The factorial of a number, as a float.

    >>> from maxjax.experimental import jet
    >>> jet.fact(4).round()
    Array(24., dtype=float32, weak_type=True)
    """
    return lax.exp(lax.lgamma(n + 1.))


# --- the transformation ---------------------------------------------------------------------------

class JetTracer(Tracer):
    """A value and the derivatives along its curve.

    Attributes:
      primal: the value.
      terms: a list of its derivatives, or ``zero_series``.

    >>> from maxjax.experimental import jet
    >>> seen = []
    >>> _ = jet.jet(lambda x: seen.append(x.terms) or x, (1.0,), ([2.0],))
    >>> seen
    [[Array(2., dtype=float32, weak_type=True)]]
    """

    __slots__ = ("primal", "terms")

    def __init__(self, trace: JetTrace, primal: Any, terms: Any):
        super().__init__(trace, aval_of(primal))
        self.primal = primal
        self.terms = terms


class JetTrace(Trace):
    """Applies each primitive's rule under the parent trace.

    Args:
      tag: whatever tells it from others.
      parent_trace: where the rules' operations go.
      order: the number of terms.

    >>> from maxjax.experimental import jet
    >>> issubclass(jet.JetTrace, jax.core.Trace)
    True
    """

    __slots__ = ("order", "parent", "tag")

    def __init__(self, tag: Any, parent_trace: Trace, order: int):
        super().__init__()
        self.tag = tag
        self.parent = parent_trace
        self.order = order

    def to_primal_terms_pair(self, value: Any) -> tuple[Any, Any]:
        """A value and its terms."""
        if type(value) is JetTracer:
            if value._trace is self:
                return value.primal, value.terms
            if not value._trace.live:
                raise leaked_tracer_error(value)
        return value, zero_series

    def apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        pairs = [self.to_primal_terms_pair(arg) for arg in args]
        primals = tuple([primal for primal, _ in pairs])
        if all(terms is zero_series for _, terms in pairs):
            return self.parent.apply(primitive, primals, params)
        with current_trace(self.parent):
            series = [[_zero_like(primal)] * self.order if terms is zero_series else
                      [_zero_like(primal) if term is zero_term else term for term in terms]
                      for primal, terms in pairs]
            rule = jet_rules.get(primitive) or functools.partial(_by_derivatives, primitive)
            out, out_terms = rule(primals, series, **params)
        if not primitive.multiple_results:
            return self._tracer(out, out_terms)
        return [self._tracer(o, terms) for o, terms in zip(out, out_terms, strict=True)]

    def _tracer(self, primal: Any, terms: Any) -> Any:
        if terms is not zero_series:
            zero = _zero_like(primal)     # floats, of integers too
            terms = [term if dtypes.is_inexact(term.dtype)
                     else term.astype(zero.dtype) for term in terms]
        return JetTracer(self, primal, terms)

    def apply_custom_jvp(self, function: Callable[..., list[Any]], jvp: Any, args: list[Any],
                         **params: Any) -> list[Any]:
        return function(*args)      # the rule of its own is only for first derivatives

    def apply_custom_vjp(self, function: Callable[..., list[Any]], rule: Any, args: list[Any],
                         **params: Any) -> list[Any]:
        return function(*args)


def _zero_like(primal: Any) -> Any:
    aval = aval_of(primal)
    if aval.tangent().dtype == dtypes.float0:
        return jnp.zeros(aval.shape)
    return instantiate(None, aval)


def jet(fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any],
        factorial_scaled: bool = True, **_: Any) -> tuple[Any, Any]:
    """The value of a function and the first terms of its Taylor series along a curve.

    Args:
      fun: a function of arrays; its results may be a pytree.
      primals: where the curve is at t = 0.
      series: for each primal the list of the curve's derivatives at t = 0, of orders 1, 2, ...
      factorial_scaled: whether terms are derivatives; otherwise the coefficients of the powers of
        t, derivatives divided by factorials.

    Returns:
      The value, and for each of its leaves the list of as many terms.

    Raises:
      ValueError: a primal is not an array, or the numbers of terms differ.

    >>> from maxjax.experimental.jet import jet
    >>> f0, (f1, f2) = jet(jnp.square, (3.0,), ([1.0, 0.0],))
    >>> float(f0), float(f1), float(f2)
    (9.0, 6.0, 2.0)
    """
    try:
        order, = {len(terms) for terms in series}
    except ValueError:
        raise ValueError("jet terms have inconsistent lengths for different arguments") from None
    for position, primal in enumerate(primals):
        if not tree_util.all_leaves([primal]) or primal is None:
            raise ValueError(f"primal value at position {position} is not an array")
    values = [jnp.asarray(primal) for primal, _ in zip(primals, series, strict=False)]

    def derivatives(primal: Any, terms: Sequence[Any]) -> list[Any]:
        zero = _zero_like(primal)
        made = [zero if term is zero_term else _like(term, zero) for term in terms]
        return made if factorial_scaled else power.scaled(made, math.factorial)

    given = [derivatives(primal, terms) for primal, terms in zip(values, series, strict=False)]
    parent = context.trace
    trace = JetTrace("jet", parent, order)
    try:
        with current_trace(trace):
            result = fun(*[JetTracer(trace, *pair) for pair in zip(values, given, strict=True)])
        leaves, tree = tree_util.tree_flatten(result)
        pairs = [trace.to_primal_terms_pair(leaf) for leaf in leaves]
    finally:
        trace.live = False
    out_terms = []
    for primal, terms in pairs:
        if terms is zero_series:
            terms = [_zero_like(jnp.asarray(primal))] * order
        out_terms.append(list(terms) if factorial_scaled
                         else power.scaled(terms, lambda k: 1 / math.factorial(k)))
    return (tree_util.tree_unflatten(tree, [primal for primal, _ in pairs]),
            tree_util.tree_unflatten(tree, out_terms))


def _like(term: Any, zero: Any) -> Any:
    term = jnp.asarray(term)
    if term.dtype != zero.dtype and not (dtypes.is_floating(term.dtype) or
                                         dtypes.is_complex(term.dtype)):
        term = term.astype(zero.dtype)
    return term if term.shape == zero.shape else jnp.broadcast_to(term, zero.shape)


def _of_one(function: Callable[[Any, Series], list[Any]]) -> Rule:
    """The rule of a function of one operand: ``(value, its coefficients) -> coefficients``."""
    def rule(primals_in: Series, series_in: Sequence[Series], **_: Any) -> tuple[Any, list[Any]]:
        (u,), (terms,) = primals_in, series_in
        return power.result(function(u, power.coefficients(u, terms)))
    return rule


# --- kinds of rules -------------------------------------------------------------------------------

def zero_prop(prim: Any, primals_in: Series, series_in: Sequence[Series],
              **params: Any) -> tuple[Any, Any]:
    """The rule of a function that is constant almost everywhere.

    >>> from maxjax.experimental import jet
    >>> jet.zero_prop(jax.lax.floor_p, (1.5,), ([1., 0.],))[0]
    Array(1., dtype=float32, weak_type=True)
    """
    out = prim.bind(*primals_in, **params)
    return out, [zero_series] * len(out) if prim.multiple_results else zero_series


def linear_prop(prim: Any, primals_in: Series, series_in: Sequence[Series],
                **params: Any) -> tuple[Any, Any]:
    """The rule of a linear function of all its operands.

    >>> from maxjax.experimental import jet
    >>> jet.linear_prop(jax.lax.neg_p, (1.5,), ([1.],))
    (Array(-1.5, dtype=float32, weak_type=True), [Array(-1., dtype=float32, weak_type=True)])
    """
    out = prim.bind(*primals_in, **params)
    terms = [prim.bind(*column, **params) for column in zip(*series_in, strict=True)]
    if not prim.multiple_results:
        return out, terms
    return out, [[term[i] for term in terms] for i in range(len(out))]


def deriv_prop(prim: Any, deriv: Callable[[Any], Any], primals_in: Series,
               series_in: Sequence[Series]) -> tuple[Any, list[Any]]:
    """The rule of a function of one operand whose derivative is known.

    >>> from maxjax.experimental import jet
    >>> jet.deriv_prop(jax.lax.sin_p, jnp.cos, (0.,), ([1., 0.],))[1][0]
    Array(1., dtype=float32, weak_type=True)
    """
    (u,), (terms,) = primals_in, series_in
    slope = power.coefficients(*jet(deriv, (u,), (list(terms[:-1]),))) if terms else []
    return power.result(
        power.integral(prim.bind(u), power.coefficients(u, terms), slope))


def defzero(prim: Any) -> None:
    """Gives a primitive the rule ``zero_prop``.

    >>> from maxjax.experimental import jet
    >>> mine = jax.extend.core.Primitive('mine')
    >>> jet.defzero(mine)
    """
    jet_rules[prim] = functools.partial(zero_prop, prim)


def deflinear(prim: Any) -> None:
    """Gives a primitive the rule ``linear_prop``.

    >>> from maxjax.experimental import jet
    >>> mine = jax.extend.core.Primitive('mine')
    >>> jet.deflinear(mine)
    """
    jet_rules[prim] = functools.partial(linear_prop, prim)


def def_deriv(prim: Any, deriv: Callable[[Any], Any]) -> None:
    """Gives a primitive of one operand the rule ``deriv_prop`` with its derivative.

    Args:
      deriv: a function of the operand, itself of primitives that have rules.

    >>> from maxjax.experimental import jet
    >>> mine = jax.extend.core.Primitive('mine')
    >>> jet.def_deriv(mine, jnp.cos)
    """
    jet_rules[prim] = lambda primals_in, series_in, **_: deriv_prop(
        prim, deriv, primals_in, series_in)


def def_comp(prim: Any, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Gives a primitive the rule of a function that computes the same by others.

    >>> from maxjax.experimental import jet
    >>> mine = jax.extend.core.Primitive('mine')
    >>> jet.def_comp(mine, lambda x: jnp.exp(x) - 1)
    """
    jet_rules[prim] = lambda primals_in, series_in, **params: jet(
        functools.partial(comp, **kwargs, **params), primals_in, series_in)


def _by_derivatives(primitive: Primitive, primals: Series, series: Sequence[Series],
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


# --- the rules ------------------------------------------------------------------------------------

for _prim in (le_p, lt_p, gt_p, ge_p, eq_p, ne_p, not_p, and_p, or_p, xor_p, floor_p, ceil_p,
              round_p, sign_p, stop_gradient_p, is_finite_p, shift_left_p,
              shift_right_arithmetic_p, shift_right_logical_p, bitcast_convert_type_p):
    defzero(_prim)

for _prim in (neg_p, real_p, complex_p, imag_p, conj_p, add_p, add_any_p, sub_p,
              convert_element_type_p, broadcast_in_dim_p, concatenate_p, split_p, pad_p, reshape_p,
              squeeze_p, rev_p, transpose_p, slice_p, reduce_sum_p, reduce_window_sum_p, fft_p,
              copy_p, device_put_p, stack_p, unstack_p, tile_p, reshard_p, cumsum_p):
    deflinear(_prim)


def _bilinear_rule(prim: Any, primals_in: Series, series_in: Sequence[Series],
                   **params: Any) -> tuple[Any, list[Any]]:
    u, w = map(power.coefficients, primals_in, series_in)
    return power.result(power.product(u, w, functools.partial(prim.bind, **params)))


for _prim in (mul_p, dot_general_p, conv_general_dilated_p):
    jet_rules[_prim] = functools.partial(_bilinear_rule, _prim)


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


_logistic_taylor = _of_one(
    lambda x, u: power.slope_of_result(lax.logistic(x), u, power.logistic_slope))
jet_rules.update({
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
    logistic_p: _logistic_taylor,
    erf_inv_p: _of_one(
        lambda x, u: power.slope_of_result(lax.erf_inv(x), u, power.erf_inv_slope)),
})

def_deriv(erf_p, lambda x: (2 / math.sqrt(math.pi)) * lax.exp(-x * x))
def_deriv(erfc_p, lambda x: (-2 / math.sqrt(math.pi)) * lax.exp(-x * x))
def_deriv(asinh_p, lambda x: lax.rsqrt(x * x + 1))
def_deriv(acosh_p, lambda x: lax.rsqrt(x - 1) * lax.rsqrt(x + 1))     # NaN below -1 as well
def_deriv(atanh_p, lambda x: 1 / ((1 - x) * (1 + x)))
def_deriv(asin_p, lambda x: lax.rsqrt((1 - x) * (1 + x)))
def_deriv(atan_p, lambda x: 1 / (1 + x * x))
def_deriv(tan_p, lambda x: 1 / (lax.cos(x) * lax.cos(x)))


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
        return _by_derivatives(abs_p, primals_in, series_in, **params)
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


def _jit_taylor(primals_in: Series, series_in: Sequence[Series], *, jaxpr: Any,
                **_: Any) -> tuple[Any, Any]:
    return jet(lambda *args: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args), primals_in, series_in)


jet_rules.update({
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
    jit_p: _jit_taylor,
})


def _cumulative(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda x, *, axis, reverse: lax.associative_scan(combine, x, reverse=reverse, axis=axis)


def_comp(clamp_p, _clamp)
def_comp(cumprod_p, _cumulative(lax.mul))
def_comp(cummax_p, _cumulative(lax.max))
def_comp(cummin_p, _cumulative(lax.min))
