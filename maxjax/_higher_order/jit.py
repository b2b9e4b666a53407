"""The primitive that calls a jaxpr: ``jit``."""

from __future__ import annotations

from collections.abc import Sequence

from maxjax._higher_order.calls import call_primitive, without_dead_code
from maxjax._ir.costs import ENTERED
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.rule_groups import Derivative, Inner, Printed
from maxjax._ir.typing import Params
from maxjax._transforms.linearize import by_linearization


def _without_dead_code(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    return eqn if all(used) else without_dead_code(eqn, used)


def _shown(params: Params) -> Params:
    return {name: value for name, value in params.items()
            if not (name == "donated_invars" and not any(value))
            and not (name in ("inline", "keep_unused") and not value)}


jit_p = call_primitive(
    "jit", "jaxpr", follow=("jvp", "linearize", "transpose", "batch"),
    inner=Inner("jaxpr", dead_code=_without_dead_code,
                scope=lambda params: f"jit({params['name']})"),
    derivative=Derivative(partly=by_linearization),
    printed=Printed(_shown, names_inputs=True),
    cost=ENTERED,
)
