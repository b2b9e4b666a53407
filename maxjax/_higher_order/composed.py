"""Primitives that stand for what other primitives compute, by a jaxpr among their parameters."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

from maxjax._base import caches, config
from maxjax._higher_order.calls import call_primitive
from maxjax._higher_order.constants import hoist_tracers
from maxjax._higher_order.jit import jit_p
from maxjax._ir.costs import ENTERED, Cost, XlaCost
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Printed, Values
from maxjax._ir.staging import is_staging, trace_to_jaxpr
from maxjax._ir.trace import Array, aval_of
from maxjax._ir.typing import FlatFunction
from maxjax._transforms import simplify

HIDDEN = "decomposition"

_traced: dict[Any, ClosedJaxpr] = caches.cache()
_LIMIT = 512


def composed(name: str, follow: Collection[str] = ("jvp", "linearize", "transpose", "batch"),
             **rules: Any) -> Primitive:
    """A primitive that computes what the jaxpr in its parameter ``decomposition`` does.

    Its other parameters are only for readers. ``follow`` names the rules that follow from the
    jaxpr; they result in ordinary calls. ``rules`` are the others.
    """
    return call_primitive(
        name, HIDDEN, follow=follow,
        apply=lambda params, jaxpr, operands: jit_p.bind(*operands, jaxpr=jaxpr, name=name),
        **{"evaluate": lambda *values, decomposition, **params: interpreter(
               simplify.simplify_once(decomposition))(*values),
           "printed": Printed(lambda params: {
               key: value for key, value in params.items() if key != HIDDEN}),
           **rules})


def bind_composed(primitive: Primitive, function: FlatFunction, operands: Sequence[Array], *,
                  known_by: Hashable = None, **params: object) -> list[Any]:
    """Applies a composed primitive to what ``function`` does with the operands.

    Args:
      known_by: all that ``function`` depends on besides the types of the operands: calls outside
        programs then trace it once. None: each call traces.
    """
    avals = tuple([aval_of(x) for x in operands])
    # A program's equations tell where, and in which scopes, each call of its own was made.
    key = None if known_by is None or is_staging() else (
        primitive, known_by, avals, config.trace_state())
    closed = None if key is None else _traced.get(key)
    if closed is None:
        closed = trace_to_jaxpr(function, avals, primitive.name, primitive.name)
        if key is not None:
            if len(_traced) >= _LIMIT:
                _traced.clear()
            _traced[key] = closed
    return bind_closed(primitive, closed, operands, **params)


def bind_closed(primitive: Primitive, closed: ClosedJaxpr, operands: Sequence[Array],
                **params: object) -> list[Any]:
    closed, captured = hoist_tracers(closed)
    return list(primitive.bind(*captured, *operands, decomposition=closed, **params))


# --- the primitives -------------------------------------------------------------------------------

reduce_p = composed("reduce", values=Values(may_give_nan=True), cost=ENTERED)
reduce_window_p = composed("reduce_window", values=Values(may_give_nan=True),
                           cost=Cost(xla=XlaCost(reduces=True), roofline=ENTERED.roofline))
select_and_scatter_p = composed("select_and_scatter")
approx_top_k_p = composed("approx_top_k")
ragged_dot_general_p = composed("ragged_dot_general")
scaled_dot_p = composed(
    "scaled_dot", follow=("batch",),
    derivative=Derivative(missing="a scaled product has no derivative in JAX either"))


def _composite_jvp(primals: Sequence[Array], tangents: Sequence[Array | None],
                   **params: object) -> Any:
    raise ValueError("JVP rule for composite not implemented. You can use `jax.custom_jvp` to add "
                     "support. See https://docs.jax.dev/en/latest/_autosummary/jax.custom_jvp.html")


def _composite_batch(size: int, operands: Sequence[Array], axes: Sequence[int | None],
                     **params: object) -> Any:
    raise NotImplementedError("Batching rule for 'composite' not implemented")


composite_p = composed("composite", follow=(), jvp=_composite_jvp, batch=_composite_batch,
                       cost=ENTERED)
