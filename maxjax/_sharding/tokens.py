"""The order of exchanges by tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn
from maxjax._sharding.exchange import communication_effect, exchange_p, ordered_exchange_p
from maxjax._transforms.simplify import simplify_once
from maxjax._transforms.tokens import is_in_control_flow, with_token


def with_tokens(closed: ClosedJaxpr) -> ClosedJaxpr | None:
    """The program of a process with a token as one more result; None where its exchanges stay in
    order by their effects: it has other effects too, or calls what is neither loop nor branch."""
    closed = simplify_once(closed)
    if closed.effects != {communication_effect} or not is_in_control_flow(closed, _is_exchange):
        return None
    return with_token(closed, _apply)


def _is_exchange(eqn: JaxprEqn) -> bool:
    return eqn.primitive is exchange_p


def _apply(eqn: JaxprEqn, operands: Sequence[Any], token: Any) -> Sequence[Any]:
    return ordered_exchange_p.bind(*operands, token, **eqn.params)
