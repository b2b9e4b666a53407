"""The primitives of custom_vjp: the call with its rule, its linear part, and remat of both."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from maxjax._base import dtypes
from maxjax._base.pytree import PyTree
from maxjax._higher_order.calls import call_primitive, only_shown
from maxjax._higher_order.composed import HIDDEN, composed
from maxjax._higher_order.constants import hoist_tracers
from maxjax._higher_order.custom_rules import (
    SymbolicZero,
    batched_call,
    name_of,
    zero_tangent,
)
from maxjax._ir.axes import ANY_AXIS
from maxjax._ir.costs import ENTERED
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn
from maxjax._ir.liveness import eliminate_dead_code
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Communication, Derivative, Host, Inner, Outside, Printed
from maxjax._ir.staging import StagingTrace, trace_to_jaxpr
from maxjax._ir.trace import Array, aval_of
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import FlatFunction, FlatVjp, Value
from maxjax._primitives.rules import Linear, call_factors, is_linear
from maxjax._transforms.batching import batch_jaxpr

Backward = Callable[[list[Any], list[Any]], list[Any]]


class CustomVJPException(Exception):
    """A custom_vjp function was differentiated with respect to a value that it closes over."""

    def __init__(self) -> None:
        super().__init__(
            "Detected differentiation of a custom_vjp function with respect to a closed-over "
            "value. That isn't supported because the custom VJP rule only specifies how to "
            "differentiate the custom_vjp function with respect to explicit input parameters. Try "
            "passing the closed-over value into the custom_vjp function as an argument, and "
            "adapting the custom_vjp fwd and bwd rules.")


def _refuse_forward_mode(*_: object, **__: object) -> NoReturn:
    raise TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function.")


def _lin_transpose(cotangents: Sequence[Array | None], *operands: Array | Linear,
                   backward: Backward, in_zeros: tuple[bool, ...], num_res: int,
                   out_avals: tuple[ShapedArray, ...], symbolic_zeros: bool) -> list[Any]:
    given = [cotangent if cotangent is not None else SymbolicZero(aval) if symbolic_zeros
             else zero_tangent(aval)
             for cotangent, aval in zip(cotangents, out_avals, strict=True)]
    found = backward(list(operands[:num_res]), given)
    nonzero = [x for x, is_zero in zip(found, in_zeros, strict=True) if not is_zero]
    return [*(None,) * num_res,
            *(x if is_linear(operand) else None
              for x, operand in zip(nonzero, operands[num_res:], strict=True))]


custom_lin_p = Primitive(
    "custom_lin",
    abstract=lambda *avals, out_avals, **params: out_avals,
    evaluate=_refuse_forward_mode,
    outside=Outside(eager=_refuse_forward_mode),
    host=Host(reason="it is never run"),
    transpose=_lin_transpose,
    derivative=Derivative(zero_is_cotangent=True),
    batch=_refuse_forward_mode,
    factors=call_factors,
    multiple_results=True,
    cacheable=False,
    printed=Printed(lambda params: {
        "bwd": name_of(params["backward"]), "in_zeros": list(params["in_zeros"]),
        "num_res": params["num_res"], "symbolic_zeros": params["symbolic_zeros"]}),
)


def differentiate(rule: FlatVjp, primals: list[Value], tangents: list[Value | None], *,
                  symbolic_zeros: bool) -> tuple[list[Any], list[Any]]:
    """The results and their tangents (None where zero), under the current trace."""
    perturbed = tuple(tangent is not None for tangent in tangents)
    outs, residuals, backward = rule(primals, perturbed)
    out_avals = tuple(aval_of(out).tangent() for out in outs)
    directions = custom_lin_p.bind(
        *residuals, *(t for t in tangents if t is not None), backward=backward,
        in_zeros=tuple(not flag for flag in perturbed), num_res=len(residuals),
        out_avals=out_avals, symbolic_zeros=symbolic_zeros)
    return outs, [direction if dtypes.has_tangents(aval.dtype) else None
                  for direction, aval in zip(directions, out_avals, strict=True)]


class VJPRule:
    """A rule of flat lists, under its name."""

    __slots__ = ("__name__", "function")

    def __init__(self, function: FlatVjp, name: str):
        self.function = function
        self.__name__ = name

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, primals: list[Value], perturbed: tuple[bool, ...]) -> Any:
        return self.function(primals, perturbed)


def _call_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *, fwd: VJPRule,
              num_consts: int, symbolic_zeros: bool, **params: object
              ) -> tuple[list[Any], list[Any]]:
    if any(tangent is not None for tangent in tangents[:num_consts]):
        raise CustomVJPException()
    return differentiate(fwd, list(primals[num_consts:]), list(tangents[num_consts:]),
                         symbolic_zeros=symbolic_zeros)


def _call_batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *,
                call_jaxpr: ClosedJaxpr, fwd: VJPRule, bwd: Callable[..., PyTree], num_consts: int,
                name: str, symbolic_zeros: bool) -> Any:
    hooks = hooks_of(name, fwd.__name__, bwd, symbolic_zeros)
    return batched_call(
        size, operands, axes, call_jaxpr, num_consts,
        lambda trace, function, args: trace.apply_custom_vjp(function, fwd, args, **hooks))


custom_vjp_call_p = call_primitive(
    "custom_vjp_call", "call_jaxpr",
    jvp=_call_jvp,
    batch=_call_batch,
    communication=Communication(axis_names=lambda **params: (ANY_AXIS,)),
    printed=Printed(lambda params: {
        **only_shown("name", "call_jaxpr", "fwd", "symbolic_zeros")(params),
        "bwd": name_of(params["bwd"])}),
    cost=ENTERED,
)


def hooks_of(name: str, rule_name: str, bwd: Callable[..., PyTree], symbolic_zeros: bool
           ) -> dict[str, Any]:
    """What traces call: to differentiate the call, and to stage it."""
    return {"differentiate": functools.partial(differentiate, symbolic_zeros=symbolic_zeros),
            "stage": functools.partial(stage, name=name, rule_name=rule_name, bwd=bwd,
                                       symbolic_zeros=symbolic_zeros)}


def stage(trace: StagingTrace, function: FlatFunction, rule: FlatVjp, args: Sequence[Value], *,
          name: str, rule_name: str, bwd: Callable[..., PyTree], symbolic_zeros: bool) -> list[Any]:
    """Stages the call as an equation that keeps the rule."""
    closed = trace_to_jaxpr(function, [aval_of(arg) for arg in args], name, "custom_vjp")
    closed, captured = hoist_tracers(closed)
    return trace.apply(custom_vjp_call_p, (*captured, *args), {
        "name": name, "call_jaxpr": closed, "fwd": VJPRule(rule, rule_name), "bwd": bwd,
        "symbolic_zeros": symbolic_zeros, "num_consts": len(captured)})


def _without_residuals(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    kept = eqn.params["kept"]
    if any(flag for n, flag in enumerate(used) if n not in kept):
        return eqn
    primal = eqn.params["primal"]
    return eqn.replace(outvars=[eqn.outvars[n] for n in kept], params={
        "decomposition": primal, "primal": primal, "kept": tuple(range(len(kept)))})


# The forward rule of a function with ``optimize_remat``, as one operation: where no residual is
# used, it is the function itself, which is its parameter ``primal``.
def _remat_opt_batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *,
                     decomposition: ClosedJaxpr, primal: ClosedJaxpr, kept: tuple[int, ...]
                     ) -> tuple[list[Any], list[int]]:
    batched = {name: batch_jaxpr(closed, size, tuple(axes), True)[0]
               for name, closed in (("decomposition", decomposition), ("primal", primal))}
    results = remat_opt_p.bind(*operands, **batched, kept=kept)
    return results, [0] * len(results)


remat_opt_p = composed(
    "remat_opt",
    batch=_remat_opt_batch,
    inner=Inner(HIDDEN, inlined_late=True, dead_code=_without_residuals),
    printed=Printed(lambda params: {}))


def bind_remat_opt(function: FlatFunction, forward: FlatFunction,
                    primals: Sequence[Value]) -> list[Any]:
    results: list[Any] = []

    def both(*xs: Value) -> list[Any]:
        results[:] = function(*xs)
        return [*results, *forward(*xs)]

    closed = trace_to_jaxpr(both, [aval_of(x) for x in primals], "remat_opt", "remat_opt")
    closed, captured = hoist_tracers(closed)
    jaxpr, count = closed.jaxpr, len(results)
    outs, forward_outs = jaxpr.outvars[:count], jaxpr.outvars[count:]
    # A residual that is an argument needs no forward rule.
    free = [n for n, var in enumerate(forward_outs) if n >= count and var in jaxpr.invars]
    primal, decomposition = (
        eliminate_dead_code(closed.replace(outvars=chosen))
        for chosen in ([*outs, *(forward_outs[n] for n in free)], forward_outs))
    return list(remat_opt_p.bind(
        *captured, *primals, decomposition=decomposition, primal=primal,
        kept=(*range(count), *free)))
