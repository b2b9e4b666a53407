"""The constants of a traced function: what it captured of functions around it, and bytes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from maxjax._base import config
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr
from maxjax._ir.trace import Tracer
from maxjax._ir.typing import Value


def hoist_tracers(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Makes the tracers among a jaxpr's constants its first inputs."""
    if not any(isinstance(value, Tracer) for value in closed.consts):
        return closed, []
    jaxpr = closed.jaxpr
    pairs = list(zip(jaxpr.constvars, closed.consts, strict=True))
    captured = [(var, value) for var, value in pairs if isinstance(value, Tracer)]
    kept = [(var, value) for var, value in pairs if not isinstance(value, Tracer)]
    hoisted = Jaxpr([var for var, _ in kept], [*(var for var, _ in captured), *jaxpr.invars],
                    jaxpr.outvars, jaxpr.eqns, jaxpr.debug_info)
    return (ClosedJaxpr(hoisted, [value for _, value in kept], closed.refs),
            [value for _, value in captured])


def with_constants(closed: ClosedJaxpr, values: Sequence[Value]) -> ClosedJaxpr:
    """A jaxpr whose first inputs become constants: the reverse of ``hoist_tracers``."""
    if not values:
        return closed
    jaxpr, count = closed.jaxpr, len(values)
    return ClosedJaxpr(
        Jaxpr([*jaxpr.invars[:count], *jaxpr.constvars], jaxpr.invars[count:], jaxpr.outvars,
              jaxpr.eqns, jaxpr.debug_info), [*values, *closed.consts])


def warn_of_constants(constants: Sequence[Value]) -> None:
    """Warns of more bytes of constants than ``jax_captured_constants_warn_bytes`` allows."""
    limit = config.captured_constants_warn_bytes.value
    if limit is None or limit < 0:
        return
    total = sum(getattr(constant, "nbytes", 0) for constant in constants)
    if total >= limit:
        warnings.warn(
            f"A large amount of constants were captured during lowering ({bytes_text(total)} "
            "total). If this is intentional, disable this warning by setting "
            "JAX_CAPTURED_CONSTANTS_WARN_BYTES=-1.", stacklevel=2)


def bytes_text(count: float) -> str:
    """A number of bytes, in a unit that suits it: "4.00KB"."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.2f}{unit}"
        count /= 1000
    return f"{count:.2f}TB"
