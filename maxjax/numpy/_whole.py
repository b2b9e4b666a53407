"""Functions of several operations that one NumPy rule computes, if no transformation is active."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import caches, dtypes
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Host, Inner
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr, traces_eager_call
from maxjax._ir.trace import context
from maxjax._ir.types import ShapedArray
from maxjax._runtime.array import ArrayImpl, shows_sharding
from maxjax._transforms.simplify import simplify_once
from maxjax.numpy import _often as often

FLOATS = (dtypes.float32, dtypes.float64)
WORDS = (dtypes.bool_, *dtypes.INTS, *FLOATS)
_LIMIT = 1024     # of cached jaxprs


def whole(name: str, evaluate: Callable[..., Any], accepts: tuple[Any, ...] = FLOATS,
          outputs: int = 1, moves: bool = False
          ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of arrays a single operation, outside transformations.

    Under a transformation the function is unchanged, as are its jaxpr, its derivatives and its
    batching. Compiling eager operations also uses the function's jaxpr.

    Args:
      evaluate: the NumPy rule, ``(*arrays, **params)``: the function's results, up to rounding;
        None where the function's own operations must be used.
      accepts: the dtypes that the rule supports.
      outputs: the number of results; a tuple if more than one.
      moves: elements are moved or positions found: nothing is rounded.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        jaxprs: dict[Any, ClosedJaxpr] = caches.cache()

        def jaxpr_of(avals: Sequence[ShapedArray], params: dict[str, Any]) -> ClosedJaxpr:
            key = (*avals, *params.items())
            known = jaxprs.get(key)
            if known is None:
                if len(jaxprs) >= _LIMIT:
                    jaxprs.clear()
                known = jaxprs[key] = trace_to_jaxpr(
                    lambda *tracers: _as_tuple(function(*tracers, **params)), avals, name, name)
            return known

        def abstract(*avals: ShapedArray, **params: Any) -> Any:
            out_avals = jaxpr_of(avals, params).out_avals
            return out_avals[0] if outputs == 1 else tuple(out_avals)

        def specialize(in_avals: Any, params: dict[str, Any], out_avals: Any) -> Any:
            operations: Any = None

            def run(*arrays: Any) -> Any:
                nonlocal operations
                results = evaluate(*map(np.asarray, arrays), **params)
                if results is None:
                    if operations is None:
                        operations = often.function_of(simplify_once(jaxpr_of(in_avals, params)))
                    results = operations(*arrays)
                    return results[0] if outputs == 1 else results
                return results

            return run

        primitive = Primitive(
            f"whole_{name}", abstract=abstract, host=Host(specialize=specialize),
            multiple_results=outputs > 1,
            derivative=Derivative(missing="transformations see the operations that it stands for"),
            inner=Inner(expand=jaxpr_of))

        if moves:
            often.exact.add(primitive)

        @functools.wraps(function)
        def call(*arrays: Any, **params: Any) -> Any:
            # An Explicit sharding is of the operations' types, which one rule does not have.
            if (context.trace is installed.runtime or traces_eager_call()) and all(
                    getattr(x, "dtype", None) in accepts
                    and not (x.__class__ is ArrayImpl and shows_sharding(x)) for x in arrays):
                results = primitive.bind(*arrays, **params)
                return results if outputs == 1 else tuple(results)
            return function(*arrays, **params)

        return call

    return decorate


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)
