"""jax.extend.core.primitives: maxjax's own primitives, under JAX's names."""

from __future__ import annotations

from typing import Any as _Any

import maxjax._primitives.all  # noqa: F401  # the registry is full
from maxjax import lax as _lax
from maxjax._base.missing import attribute_error as _attribute_error
from maxjax._higher_order import checkpoint as _checkpoint  # noqa: F401
from maxjax._higher_order import custom_vjp as _custom_vjp  # noqa: F401
from maxjax._higher_order.custom_primitive import CustomPrimitive as _CustomPrimitive
from maxjax._ir.evaluate import eval_jaxpr as _eval_jaxpr
from maxjax._ir.jaxpr import Jaxpr as _Jaxpr
from maxjax._ir.primitive import Primitive as _Primitive
from maxjax._ir.primitive import registry as _registry


class _EvalJaxpr(_CustomPrimitive):
    """A call of a jaxpr. Libraries give it rules; no program has it, as maxjax's calls are those of
    jit: where it is applied, it is what the jaxpr does."""

    __slots__ = ()
    multiple_results = True

    def bind(self, *args: _Any, **params: _Any) -> list[_Any]:
        """The results of the jaxpr ``call_jaxpr``."""
        call_jaxpr: _Jaxpr = params["call_jaxpr"]
        return _eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)


call_p = closed_call_p = _EvalJaxpr("eval_jaxpr")

# Those with another name here.
_OTHERS = {"add_jaxvals_p": "add_any", "remat_p": "remat2"}


def __getattr__(name: str) -> _Primitive:
    found = getattr(_lax, name, None) if name.endswith("_p") else None
    if found is None and name.endswith("_p"):
        found = _registry.get(_OTHERS.get(name, name.removesuffix("_p")))
    if found is None:
        raise _attribute_error(__name__, name)
    return found


def __dir__() -> list[str]:
    return sorted({"call_p", "closed_call_p", *_OTHERS,
                   *(name for name in dir(_lax) if name.endswith("_p")),
                   *(f"{name}_p" for name in _registry if name.isidentifier())})
