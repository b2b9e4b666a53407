"""Primitives of sparse arrays: each stands for what other primitives compute of its buffers.

Transformations, both tiers and sharding go by that composition; a jaxpr shows the primitive, with
JAX's name and parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax import numpy as jnp
from maxjax._base import caches
from maxjax._base import config as options
from maxjax._higher_order.composed import HIDDEN, bind_closed, composed
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import aval_of

Function = Callable[..., Any]

_closed: dict[Any, Any] = caches.cache()


class SparsePrimitive(Primitive):
    """A composed primitive that is bound with the parameters that its composition takes."""

    function: Function
    results: bool       # whether there are several

    def bind(self, *args: Any, **params: Any) -> Any:
        if HIDDEN in params:
            return super().bind(*args, **params)
        operands = [jnp.asarray(arg) for arg in args]
        avals = tuple([aval_of(x) for x in operands])
        key = (self, avals, tuple(params.items()), options.trace_state())
        closed = _closed.get(key)
        if closed is None:
            def flat(*xs: Any) -> list[Any]:
                # Ranks and dtypes are those of the composition, not the user's.
                with options.rank_promotion("allow"), options.dtype_promotion("standard"):
                    out = self.function(*xs, **params)
                return list(out) if self.results else [out]

            closed = trace_to_jaxpr(flat, list(avals), self.name, self.name)
            _closed[key] = closed
        out = bind_closed(self, closed, operands, **params)
        return out if self.results else out[0]


def sparse_primitive(name: str, function: Function, several: bool = False) -> SparsePrimitive:
    """A primitive that computes what a function does with arrays and static parameters.

    Args:
      several: whether the function returns a tuple.
    """
    primitive = composed(name, kind=SparsePrimitive)
    assert isinstance(primitive, SparsePrimitive)
    primitive.function = function
    primitive.results = several
    return primitive
