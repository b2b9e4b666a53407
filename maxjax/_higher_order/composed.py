"""Primitives that stand for what other primitives compute, by a jaxpr among their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._higher_order.constants import hoist_tracers
from maxjax._higher_order.jit import jit_p
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import aval_of
from maxjax._primitives.rules import call_factors
from maxjax._transforms import simplify

HIDDEN = "decomposition"


def composed(name: str, **rules: Any) -> Primitive:
    """A primitive whose rules are those of the jaxpr in its parameter ``decomposition``.

    Its other parameters are there to be read. ``rules`` replace those of the jaxpr.
    """
    def jaxpr_of(rule: Callable[..., Any] | None) -> Callable[..., Any] | None:
        if rule is None:
            return None
        return lambda *args, decomposition, **params: rule(
            *args, jaxpr=decomposition, name=name)

    return Primitive(
        name,
        abstract=lambda *avals, decomposition, **params: tuple(decomposition.out_avals),
        evaluate=lambda *values, decomposition, **params: interpreter(
            simplify.simplify_once(decomposition))(*values),
        lower=lambda ctx, *values, decomposition, **params: ctx.lower_closed(
            decomposition, values),
        **{"jvp": jaxpr_of(jit_p.jvp), "linearize": jaxpr_of(jit_p.linearize),
           "transpose": jaxpr_of(jit_p.transpose), "batch": jaxpr_of(jit_p.batch),
           "shown": lambda params: {
               key: value for key, value in params.items() if key != HIDDEN},
           **rules},
        factors=call_factors,
        multiple_results=True,
        cacheable=False,
        calls=HIDDEN,
    )


def bind_composed(primitive: Primitive, function: Callable[..., Sequence[Any]],
                  operands: Sequence[Any], **params: Any) -> list[Any]:
    """Applies a composed primitive to what ``function`` does with the operands."""
    closed = trace_to_jaxpr(function, [aval_of(x) for x in operands], primitive.name,
                            primitive.name)
    return bind_closed(primitive, closed, operands, **params)


def bind_closed(primitive: Primitive, closed: ClosedJaxpr, operands: Sequence[Any],
                **params: Any) -> list[Any]:
    closed, captured = hoist_tracers(closed)
    return list(primitive.bind(*captured, *operands, decomposition=closed, **params))


# --- the primitives -------------------------------------------------------------------------------

reduce_p = composed("reduce", may_give_nan=True)
reduce_window_p = composed("reduce_window", may_give_nan=True)
select_and_scatter_p = composed("select_and_scatter")
approx_top_k_p = composed("approx_top_k")
ragged_dot_general_p = composed("ragged_dot_general")
scaled_dot_p = composed(
    "scaled_dot", jvp=None, linearize=None, transpose=None,
    no_derivative="a scaled product has no derivative in JAX either")


def _composite_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    raise ValueError("JVP rule for composite not implemented. You can use `jax.custom_jvp` to add "
                     "support. See https://docs.jax.dev/en/latest/_autosummary/jax.custom_jvp.html")


def _composite_batch(size: Any, operands: Any, axes: Any, **params: Any) -> Any:
    raise NotImplementedError("Batching rule for 'composite' not implemented")


composite_p = composed("composite", jvp=_composite_jvp, linearize=None, transpose=None,
                       batch=_composite_batch)
