"""jax.extend.core.primitives: maxjax's own primitives, under JAX's names."""

from __future__ import annotations

import maxjax._primitives.all  # noqa: F401  # the registry is full
from maxjax import lax as _lax
from maxjax._base.missing import attribute_error as _attribute_error
from maxjax._higher_order import checkpoint as _checkpoint  # noqa: F401
from maxjax._higher_order import custom_vjp as _custom_vjp  # noqa: F401
from maxjax._higher_order.custom_primitive import CustomPrimitive as _CustomPrimitive
from maxjax._ir.primitive import Primitive as _Primitive
from maxjax._ir.primitive import registry as _registry

# Libraries give these rules. No program has them: maxjax's calls are those of jit.
call_p = _CustomPrimitive("call")
call_p.multiple_results = call_p.call_primitive = True
closed_call_p = _CustomPrimitive("closed_call")
closed_call_p.multiple_results = closed_call_p.call_primitive = True

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
