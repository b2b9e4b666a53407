"""The constants of a traced function: what it captured of functions around it, and bytes."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import config, pytree
from maxjax._base.source import is_own
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr
from maxjax._ir.trace import Array, Tracer
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
    facts = closed.facts.of_other_inputs()._replace(
        captured=[isinstance(value, Tracer) for _, value in pairs])
    return (ClosedJaxpr(hoisted, [value for _, value in kept], closed.refs, facts),
            [value for _, value in captured])


def with_constants(closed: ClosedJaxpr, values: Sequence[Value]) -> ClosedJaxpr:
    """A jaxpr whose first inputs become constants: the reverse of ``hoist_tracers``."""
    if not values:
        return closed
    jaxpr, count = closed.jaxpr, len(values)
    captured = zip(jaxpr.invars[:count], values, strict=True)
    kept = zip(jaxpr.constvars, closed.consts, strict=True)
    order = closed.facts.captured or [True] * count + [False] * len(closed.consts)
    pairs = [next(captured if is_captured else kept) for is_captured in order]
    return ClosedJaxpr(
        Jaxpr([var for var, _ in pairs], jaxpr.invars[count:], jaxpr.outvars, jaxpr.eqns,
              jaxpr.debug_info), [value for _, value in pairs])


def closed_over_scalars(function: object) -> dict[int, Any]:
    """The scalar arrays that a function closes over, by id: in its cells and defaults, in what it
    is bound to or wraps, in the variables of its module, in trees of those, and in attributes of
    those that its code names."""
    found: dict[int, Any] = {}
    seen: dict[int, object] = {}
    names: set[str] = set()      # what the code of the functions so far names
    modules: list[Any] = []      # the variables of their modules
    left: list[object] = [function]
    holders: list[object] = []
    asked: set[tuple[int, str]] = set()
    while left or holders:
        if not left:
            fresh = [(holder, name) for holder in holders for name in names
                     if (id(holder), name) not in asked]
            if not fresh:
                break
            asked.update((id(holder), name) for holder, name in fresh)
            # What is computed when it is asked for is no attribute here.
            left = [x for x in [inspect.getattr_static(*pair, None) for pair in fresh]
                    if _is_of(modules, x)]
            continue
        value = left.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value     # kept alive: nothing else gets its id
        if isinstance(value, Array):
            if not isinstance(value, Tracer) and not value.aval.shape:
                found[id(value)] = value
        elif isinstance(value, types.FunctionType):
            left += [*(cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)),
                     *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
            if is_own(value.__code__):
                continue      # a wrapper of maxjax's: the user's function is in its cells
            mine = _names(value.__code__)
            names |= mine
            if not any(value.__globals__ is module for module in modules):
                modules.append(value.__globals__)
            left += [x for x in [value.__globals__.get(name) for name in mine]
                     if _is_of(modules, x)]
        elif isinstance(value, types.MethodType):
            left += [value.__func__, value.__self__]
        elif isinstance(value, functools.partial):
            left += [value.func, value.args, value.keywords]
        else:
            left += pytree.leaves(value)
            if callable(value):
                left.append(getattr(value, "__wrapped__", None))
            if not isinstance(value, _PLAIN):
                holders.append(value)
    return found


# What has no attributes that hold arrays.
_PLAIN = (type(None), bool, int, float, complex, str, bytes, tuple, list, dict, np.ndarray,
          np.generic, np.dtype, np.ufunc, types.FunctionType, types.BuiltinFunctionType)


def _names(code: types.CodeType) -> set[str]:
    """The global variables and attributes that code names, functions inside included."""
    inner = [_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*inner)


def _is_of(modules: Sequence[types.ModuleType], value: object) -> bool:
    """Whether a variable or attribute may lead to arrays of the user's: functions of other modules
    than theirs are a library's."""
    function = value if isinstance(value, types.FunctionType) else getattr(
        value, "__dict__", {}).get("__wrapped__")
    if isinstance(function, types.FunctionType):
        return any(function.__globals__ is module for module in modules)
    return isinstance(value, (tuple, list, dict)) or not isinstance(value, _PLAIN)


def _is_full(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:      # the variable has no value yet
        return False


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
