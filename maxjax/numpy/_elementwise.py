"""Makes elementwise functions of jax.numpy from primitives, with a fast path for arrays."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from maxjax._base import caches, config, dtypes
from maxjax._base.tracebacks import is_boundary, shorten
from maxjax._ir.primitive import Primitive
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.widths import refuse_float0
from maxjax._runtime.array import ArrayImpl
from maxjax.numpy._at_once import at_once
from maxjax.numpy._elementwise_docs import docstring
from maxjax.numpy._promotion import (
    NO_PARAMS,
    bind,
    cast,
    check_accepts,
    inexact_type,
    promote_shapes,
    resolve,
    type_of,
)

# A function may be called millions of times on a few types. The result of promotion for a pair of
# types is cached for as long as the options it depends on are unchanged.
_CACHE_LIMIT = 4096


# function of one primitive -> what makes it by another name, for errors to say
_makers: dict[Callable[..., Any], Callable[[str], Callable[..., Any]]] = {}


def alias(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function under another name, as one of its own: it costs no further call."""
    if function in _makers:
        made = _makers[function](name)
        made.__doc__ = function.__doc__
        return made
    copy = types.FunctionType(function.__code__, function.__globals__, name, function.__defaults__,
                              function.__closure__)
    functools.update_wrapper(copy, function)
    del copy.__wrapped__        # type: ignore[attr-defined]
    if hasattr(function, "__wrapped__"):        # which has the signature
        copy.__wrapped__ = function.__wrapped__     # type: ignore[attr-defined]
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__name__ = copy.__qualname__ = name
    return copy


def unary(name: str, primitive: Primitive, *, inexact: bool = False,
          integers: Callable[[Any], Any] | None = None) -> Callable[[ArrayLike], Array]:
    """A function of one array that binds one primitive.

    Args:
      inexact: integers and booleans are computed in floats.
      integers: the function to apply to integers and booleans instead.
    """
    ready: dict[ShapedArray, Primitive] = caches.cache()

    @is_boundary
    def function(x: Any, /) -> Array:
        try:
            if x.__class__ is ArrayImpl:
                known = ready.get(x.aval)
                if known is not None:
                    return context.trace.apply(known, (x,), NO_PARAMS)
            return prepared(x)
        except Exception as error:
            shorten(error)
            raise

    def first(x: Any) -> Array:
        (x,) = resolve(name, (x,))
        dtype, weak = type_of(x)
        refuse_float0(name, dtype)
        if integers is not None and (dtypes.is_integer(dtype) or dtype == dtypes.bool_):
            return integers(cast(x, dtype, weak))
        if inexact:
            dtype, weak = inexact_type(dtype, weak)
        operand = cast(x, dtype, weak)
        if operand is x and x.__class__ is ArrayImpl:
            check_accepts(primitive, (x,))
            if len(ready) > _CACHE_LIMIT:
                ready.clear()
            ready[x.aval] = primitive
        return bind(primitive, operand)

    # What is converted first is two operations.
    first.__name__ = name
    prepared = at_once(first) if inexact else first
    _makers[function] = lambda other: unary(other, primitive, inexact=inexact, integers=integers)
    return described(function, name, ("x",), inexact)


def binary(name: str, primitive: Primitive, *, inexact: bool = False, bool_as_int: bool = False,
           primitive_of_bool: Primitive | None = None, parameters: tuple[str, ...] = ("x", "y"),
           composed: Callable[[Any, Any], Any] | None = None,
           masked: Callable[[Any, Any], Any] | None = None, said: str = ""
           ) -> Callable[[ArrayLike, ArrayLike], Array]:
    """A function of two arrays that promotes them and binds one primitive.

    Args:
      inexact: integers and booleans are computed in floats.
      bool_as_int: booleans are computed in the default integer type.
      primitive_of_bool: the primitive for booleans.
      parameters: the names of the two in the signature.
      composed: a function of the promoted operands, called instead of binding a primitive.
      masked: a function of the operands, called instead if one of the two is boolean.
      said: the name in errors, where it is another.
    """
    said = said or name
    # type -> the primitive, if operands of that type and dtype need no preparation
    ready: dict[ShapedArray, Primitive] = caches.cache()
    # (type, Python scalar's class, its value) -> (the primitive, the scalar as an operand)
    scalars: dict[Any, Any] = caches.cache()
    # (left type, right type) -> how to prepare the operands
    plans: dict[Any, Any] = caches.cache()
    plans_state: Any = None      # the options under which the plans were made
    # A 64-bit array and a scalar give another dtype once 64 bits are disabled.
    config.enable_x64.on_change.append(scalars.clear)

    @is_boundary
    def function(x: Any, y: Any, /) -> Array:
        try:
            if x.__class__ is ArrayImpl:
                kind = y.__class__
                if kind is ArrayImpl:
                    aval = x.aval
                    if aval is y.aval and (known := ready.get(aval)) is not None:
                        return context.trace.apply(known, (x, y), NO_PARAMS)
                elif kind is float or kind is int:
                    # 0.0 and -0.0 would be the same key.
                    known = scalars.get((x.aval, kind, y if y or kind is int else str(y)))
                    if known is not None:
                        return context.trace.apply(known[0], (x, known[1]), NO_PARAMS)
                elif kind is x.aval.dtype.type and (known := ready.get(x.aval)) is not None:
                    return context.trace.apply(known, (x, y), NO_PARAMS)
            elif y.__class__ is ArrayImpl and ((kind := x.__class__) is float or kind is int):
                known = scalars.get((kind, x if x or kind is int else str(x), y.aval))
                if known is not None:
                    return context.trace.apply(known[0], (known[1], y), NO_PARAMS)
            return prepared(x, y)
        except Exception as error:
            shorten(error)
            raise

    def general(x: Any, y: Any) -> Array:
        nonlocal plans_state
        x_is_array, y_is_array = isinstance(x, Array), isinstance(y, Array)
        if x_is_array and y_is_array:
            now = config.trace_state()
            if now is not plans_state:
                plans_state = now
                plans.clear()
            plan = plans.get((x.aval, y.aval))
            if plan is not None:
                planned, dtype, x_weak, y_weak, ranks_differ = plan
                if x_weak is not None:
                    x = cast(x, dtype, x_weak)
                if y_weak is not None:
                    y = cast(y, dtype, y_weak)
                if ranks_differ:
                    x, y = promote_shapes(said, x, y)
                return context.trace.apply(planned, (x, y), NO_PARAMS)
        else:
            x, y = resolve(said, (x, y))
            x_is_array, y_is_array = isinstance(x, Array), isinstance(y, Array)
        given = type_of(x), type_of(y)
        refuse_float0(said, given[0][0], given[1][0])
        if masked is not None and (given[0][0] == dtypes.bool_) != (given[1][0] == dtypes.bool_):
            return masked(x, y)
        if dtypes.is_opaque(given[0][0]) != dtypes.is_opaque(given[1][0]):
            raise TypeError(f"{said} does not accept dtypes "
                            f"{', '.join(str(kind) for kind, _ in given)}.")
        dtype, weak = dtypes.promote(given)
        chosen = primitive
        if dtype == dtypes.bool_:
            if bool_as_int:
                dtype, weak = dtypes.int32, False
            elif primitive_of_bool is not None:
                chosen = primitive_of_bool
        if inexact:
            dtype, weak = inexact_type(dtype, weak)
        left, right = cast(x, dtype, weak), cast(y, dtype, weak)
        left, right = promote_shapes(said, left, right)
        if composed is not None:
            return composed(left, right)
        check_accepts(chosen, (left, right))
        if x_is_array and y_is_array:
            if left is x and right is y and x.aval is y.aval:
                ready[x.aval] = chosen
            if len(plans) > _CACHE_LIMIT:
                plans.clear()
            if config.rank_promotion.value == "allow":
                plans[x.aval, y.aval] = (
                    chosen, dtype, weak if _is_cast(x.aval, dtype, weak) else None,
                    weak if _is_cast(y.aval, dtype, weak) else None,
                    left.shape != x.shape or right.shape != y.shape)
        elif x_is_array and left is x and not isinstance(right, Array):
            ready[x.aval] = chosen
            if (kind := y.__class__) is float or kind is int:
                if len(scalars) > _CACHE_LIMIT:
                    scalars.clear()
                scalars[x.aval, kind, y if y or kind is int else str(y)] = (chosen, right)
        elif y_is_array and right is y and not isinstance(left, Array):
            if (kind := x.__class__) is float or kind is int:
                if len(scalars) > _CACHE_LIMIT:
                    scalars.clear()
                scalars[kind, x if x or kind is int else str(x), y.aval] = (chosen, left)
        elif not y_is_array and not isinstance(left, Array) and not isinstance(right, Array):
            left = installed.runtime.operand(left)
        return context.trace.apply(chosen, (left, right), NO_PARAMS)

    # What is converted first is two or three operations.
    general.__name__ = name
    prepared = at_once(general) if inexact else general
    _makers[function] = lambda other: binary(
        other, primitive, inexact=inexact, bool_as_int=bool_as_int,
        primitive_of_bool=primitive_of_bool, parameters=parameters, composed=composed,
        masked=masked)
    return described(function, name, parameters, inexact)


def _is_cast(aval: ShapedArray, dtype: Any, weak: bool) -> bool:
    """Whether ``cast`` may give something else for an operand of that type."""
    return aval.dtype != dtype or (aval.weak_type and not weak)


def described(function: Callable[..., Any], name: str, parameters: tuple[str, ...],
              inexact: bool = False) -> Callable[..., Any]:
    """Gives a generated function a name, signature and documentation."""
    described_: Any = function      # mypy does not know __signature__
    described_.__name__ = described_.__qualname__ = name
    described_.__module__ = "jax.numpy"
    described_.__doc__ = docstring(name, parameters, inexact)
    described_.__signature__ = inspect.Signature(
        [inspect.Parameter(parameter, inspect.Parameter.POSITIONAL_ONLY, annotation="ArrayLike")
         for parameter in parameters], return_annotation="Array")
    return function
