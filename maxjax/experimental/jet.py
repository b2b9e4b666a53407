"""jax.experimental.jet: derivatives of higher order, by Taylor series.

``jet`` moves the first terms of a function's arguments along a curve to those of its results, in
one pass: to order K that is about K**2 times the work of the function, where K nested ``jvp`` take
2**K times.

A rule (an entry of ``jet_rules``) takes the primal operands of a primitive and for each the list of
its derivatives, and returns the same of the result. Those of ``_taylor_rules.py`` compute with the
coefficients ``c[k]`` of the powers of t, the derivatives divided by k!. For ``v = g(u)`` with a
known derivative, ``v' = g'(u) u'`` gives ``k v[k] = sum_j j u[j] g'(u)[k - j]``; products of series
are convolutions. A primitive without a rule is differentiated as often as the order demands.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from maxjax import lax, tree_util
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.jit import jit_p
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Trace, Tracer, aval_of, context, current_trace, leaked_tracer_error
from maxjax._transforms.jvp import instantiate
from maxjax.experimental import _power_series as power
from maxjax.experimental import _taylor_rules as taylor
from maxjax.experimental._power_series import Series
from maxjax.experimental._taylor_rules import Rule

explain_missing_names(__name__)

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
            rule = jet_rules.get(primitive) or functools.partial(taylor.by_derivatives, primitive)
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


# --- the rules ------------------------------------------------------------------------------------

def _jit_taylor(primals_in: Series, series_in: Sequence[Series], *, jaxpr: Any,
                **_: Any) -> tuple[Any, Any]:
    return jet(lambda *args: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args), primals_in, series_in)


jet_rules.update(taylor.SERIES)
jet_rules[jit_p] = _jit_taylor
for _prim in taylor.CONSTANT:
    defzero(_prim)
for _prim in taylor.LINEAR:
    deflinear(_prim)
for _prim, _slope in taylor.SLOPES.items():
    def_deriv(_prim, _slope)
for _prim, _function in taylor.COMPOSITIONS.items():
    def_comp(_prim, _function)
