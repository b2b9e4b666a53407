"""Primitives that call a jaxpr: what they have in common.

Their rules derive another jaxpr from the one that is called, and apply that: by the same primitive,
or by ``jit``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from maxjax._higher_order.control import chosen, forwarded, merged, rearranged
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, Var, derived
from maxjax._ir.liveness import eliminate_dead_code, needed_inputs
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import read_all, write_back
from maxjax._ir.rule_groups import Derivative, Inner
from maxjax._ir.trace import Array
from maxjax._ir.typing import Params
from maxjax._primitives.rules import call_factors, is_linear
from maxjax._transforms.batching import batch_jaxpr
from maxjax._transforms.jvp import jvp_jaxpr
from maxjax._transforms.linearize import LinearTrace, by_linearization
from maxjax._transforms.transpose import of_types, transpose_with_refs

# ``(params, jaxpr, operands) -> results``: how a jaxpr that is derived from a call's is applied.
Apply = Callable[[dict[str, Any], ClosedJaxpr, Sequence[Any]], list[Any]]


def call_primitive(name: str, param: str, *, follow: Collection[str] = (),
                   apply: Apply | None = None, per_operand: Mapping[str, object] | None = None,
                   kind: type[Primitive] = Primitive, derivative: Derivative | None = None,
                   inner: Inner | None = None, **rules: Any) -> Primitive:
    """A primitive that calls the jaxpr in one of its parameters.

    Args:
      param: the parameter.
      follow: the rules that follow from the jaxpr: of "jvp", "linearize", "transpose", "batch".
      apply: how the jaxprs that those derive are applied; None: by this primitive, with the other
        parameters as they are.
      per_operand: parameters that may be tuples, with something for each operand, and what they
        hold for the operands that those rules add.
      kind: the class of the primitive.
      derivative: with ``linearize`` from ``follow``; None: the jaxpr's.
      inner: with ``bodies``, those of calls; None: that ``param`` is called.
      rules: all others, which may replace those that calls have in common.
    """
    primitive: Primitive
    added = per_operand or {}

    def bind(params: Params, jaxpr: ClosedJaxpr, operands: Sequence[Array],
             kept: Sequence[int]) -> list[Any]:
        """Applies a jaxpr to operands: those numbered ``kept``, and others after them."""
        if apply is not None:
            return apply(params, jaxpr, operands)
        params = {**params, param: jaxpr}
        for key, value in added.items():
            if isinstance(params[key], tuple):
                params[key] = (*[params[key][number] for number in kept],
                               *(value,) * (len(operands) - len(kept)))
        return primitive.bind(*operands, **params)

    def jvp(primals: Sequence[Array], tangents: Sequence[Array | None],
            **params: Any) -> tuple[list[Any], list[Any]]:
        closed = params[param]
        both, out_nonzero = jvp_jaxpr(closed, tuple([t is not None for t in tangents]))
        results = bind(params, both, [*primals, *[t for t in tangents if t is not None]],
                       range(len(primals)))
        count = len(closed.out_avals)
        return results[:count], merged(out_nonzero, results[count:])

    def linearize(trace: LinearTrace, primals: Sequence[Array], tangents: Sequence[Array | None],
                  **params: Any) -> tuple[list[Any], list[Any]]:
        closed = params[param]
        forward, linear, out_nonzero = trace.division.divide(
            closed, tuple([t is not None for t in tangents]))
        count = len(closed.out_avals)
        known = (*trace.division.known(out_nonzero), *(True,) * (len(forward.outvars) - count))
        operands: Sequence[int] = range(len(primals))
        # All results may be known though an operand is not (None): that of a rounding, say, which
        # has no tangent whatever its argument's is.
        if not all(known) or any(primal is None for primal in primals):
            forward, operands = of_results(forward, known)
        forward, sources = computed_once(forward)
        given = [primals[number] for number in operands]
        computed = bind(params, forward, given, operands) if forward.eqns or forward.outvars else ()
        results = merged(known, [(given if is_input else computed)[number]
                                 for is_input, number in sources])
        outs, residuals = results[:count], results[count:]
        if not any(out_nonzero):
            return outs, [None] * count
        return outs, merged(out_nonzero, bind(
            params, linear, [*residuals, *[t for t in tangents if t is not None]], ()))

    def transpose(cotangents: Sequence[Array | None], *operands: Any, **params: Any) -> list[Any]:
        linear = tuple([is_linear(x) for x in operands])
        cotangents = of_types(cotangents, params[param].out_avals)
        transposed, nonzero = transpose_with_refs(
            params[param], linear, tuple([cotangent is not None for cotangent in cotangents]))
        uses = transposed.refs
        known = [number for number, flag in enumerate(linear) if not flag]
        results = bind(
            params, transposed,
            [*[operands[number] for number in known],
             *[cotangent for cotangent in cotangents if cotangent is not None], *read_all(uses)],
            known)
        return merged(linear, merged(nonzero, write_back(uses, results)))

    def batch(size: int, operands: Sequence[Array], axes: Sequence[int | None],
              **params: Any) -> tuple[list[Any], list[int | None]]:
        batched, out_batched = batch_jaxpr(params[param], size, tuple(axes))
        return (bind(params, batched, operands, range(len(operands))),
                [0 if flag else None for flag in out_batched])

    if derivative is None:
        derivative = Derivative(
            partly=by_linearization if apply is not None and "linearize" in follow else None)
    if "linearize" in follow:
        derivative = dataclasses.replace(derivative, linearize=linearize)
    following = {"jvp": jvp, "transpose": transpose, "batch": batch}
    common: dict[str, Any] = {
        "abstract": lambda *avals, **params: tuple(params[param].out_avals),
        "evaluate": lambda *values, **params: interpreter(params[param])(*values),
        "lower": lambda ctx, *values, **params: ctx.lower_closed(params[param], values),
        "factors": call_factors, "multiple_results": True, "cacheable": False,
        **{name: rule for name, rule in following.items() if name in follow}}
    primitive = kind(
        name, derivative=derivative, inner=dataclasses.replace(
            inner or Inner(param),
            bodies=lambda *avals, **params: [(params[param], avals, None)]),
        **{**common, **rules})
    return primitive


def only_shown(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What a printed equation shows of its parameters: these, in their order."""
    return lambda params: {name: params[name] for name in names if name in params}


@derived
def of_results(closed: ClosedJaxpr, used: tuple[bool, ...]) -> tuple[ClosedJaxpr, list[int]]:
    """The jaxpr of some of the results, and the numbers of the inputs that it has."""
    needed = needed_inputs(closed.jaxpr, used)
    inputs = chosen(range(len(needed)), needed)
    return eliminate_dead_code(rearranged(
        closed, tuple(inputs), tuple(chosen(range(len(used)), used)))), inputs


@derived
def computed_once(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[tuple[bool, int]]]:
    """The jaxpr of the results that are no inputs, each of them once; and for each result whether
    it is an input, and the number of that input or of the result that is left."""
    inputs = forwarded(closed)
    places: dict[Any, int] = {}
    kept: list[int] = []
    sources: list[tuple[bool, int]] = []
    for number, (atom, source) in enumerate(zip(closed.jaxpr.outvars, inputs, strict=True)):
        if source is not None:
            sources.append((True, source))
            continue
        key = atom if isinstance(atom, Var) else number
        if key not in places:
            places[key] = len(kept)
            kept.append(number)
        sources.append((False, places[key]))
    if len(kept) == len(sources):
        return closed, sources
    return rearranged(closed, tuple(range(len(closed.jaxpr.invars))), tuple(kept)), sources


def without_dead_code(eqn: JaxprEqn, used: Sequence[bool], param: str = "jaxpr",
                      per_operand: Collection[str] = (),
                      per_result: Collection[str] = ()) -> JaxprEqn:
    """A call of the used results, with the operands that they need.

    Args:
      param: the parameter that holds the jaxpr.
      per_operand, per_result: the parameters that may be tuples, with something for each.
    """
    body, inputs = of_results(eqn.params[param], tuple(used))
    if all(used) and len(inputs) == len(eqn.invars):
        return eqn
    needed = [number in inputs for number in range(len(eqn.invars))]
    params = {**eqn.params, param: body}
    for names, marks in ((per_operand, needed), (per_result, used)):
        for name in names:
            if isinstance(params[name], tuple):
                params[name] = tuple(chosen(params[name], marks))
    return eqn.replace(invars=chosen(eqn.invars, needed), outvars=chosen(eqn.outvars, used),
                       params=params)
