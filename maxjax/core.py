"""jax.core: the internals that libraries on top of JAX use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as _np

from maxjax._base.missing import Moved, explain_missing_names
from maxjax._higher_order.custom_trace import CustomTrace as Trace  # noqa: F401
from maxjax._ir.dimensions import larger as _larger
from maxjax._ir.dimensions import smaller as _smaller
from maxjax._ir.evaluate import eval_jaxpr as _eval_jaxpr
from maxjax._ir.jaxpr import Jaxpr as Jaxpr
from maxjax._ir.jaxpr import JaxprEqn as JaxprEqn
from maxjax._ir.jaxpr import Literal as Literal
from maxjax._ir.jaxpr import Var as Var
from maxjax._ir.runtime import installed
from maxjax._ir.trace import CompileTimeTrace, context, current_trace
from maxjax._ir.trace import Tracer as Tracer
from maxjax._ir.types import ShapedArray as ShapedArray
from maxjax._transforms.autodiff import operands_of

AbstractValue = ShapedArray
Atom = Var | Literal


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any,
               propagate_source_info: bool = True) -> list[Any]:
    """The results of a jaxpr for these constants and arguments, operation by operation."""
    return _eval_jaxpr(jaxpr, operands_of(consts), *operands_of(args))


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Operations inside run at once, even while a function is being traced.

    Operations on traced values are still traced.
    """
    outer, runtime = context.trace, installed.runtime
    with current_trace(outer if outer is runtime else CompileTimeTrace(outer, runtime)):
        yield


def max_dim(d1: int, d2: int) -> int:
    """The larger of two sizes of dimensions."""
    return _larger(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two sizes of dimensions."""
    return _smaller(d1, d2)


Value = Any
ParamDict = dict
# Libraries register classes that act as arrays; here ``__jax_array__`` is what makes one.
_pytype_aval_mappings: dict[type, Any] = {
    _np.ndarray: lambda value: ShapedArray(value.shape, value.dtype)}
eval_context = ensure_compile_time_eval


def _is_constant_dim(d: Any) -> bool:
    """Whether a size is a number, and not a symbol."""
    return isinstance(d, int)


def _is_constant_shape(s: Sequence[Any]) -> bool:
    return all(map(_is_constant_dim, s))


def _is_concrete(x: Any) -> bool:
    """Whether a value is known, and not traced."""
    return not isinstance(x, Tracer)


_EXTEND, _ERRORS = "extend.core", "errors"
# Where JAX has moved names to, some of them long enough ago to be gone from here.
_MOVED = {
    _EXTEND: ("DebugInfo", "DropVar", "Effect", "Effects", "check_jaxpr", "concrete_or_error",
              "find_top_trace", "gensym", "get_opaque_trace_state", "jaxprs_in_params",
              "new_jaxpr_eqn", "no_effects", "primal_dtype_to_tangent_dtype", "valid_jaxtype"),
    _ERRORS: ("InconclusiveDimensionOperation", "JaxprTypeError")}
_OTHERS = ("nonempty_axis_env_DO_NOT_USE", "unsafe_am_i_under_a_jit_DO_NOT_USE",
           "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE")
_REMOVED = {
    **dict.fromkeys(("AbstractToken", "TraceTag", "call_impl", "mapped_aval", "set_current_trace",
                     "subjaxprs", "take_current_trace", "unmapped_aval"),
                    ". Use jax.extend.core.{}."),
    "get_aval": "; use jax.typeof instead.", "traverse_jaxpr_params": "."}

explain_missing_names(__name__, {
    name: f"jax.core.{name} was deprecated in JAX v0.8.2 and removed in JAX v0.10.0"
          f"{then.format(name)}" for name, then in _REMOVED.items()
}, deprecated={
    **{name: (Moved(f"maxjax.{module}", name),
              f"jax.core.{name} is deprecated. Use jax.{module}.{name}.")
       for module, names in _MOVED.items() for name in names},
    **{name: (Moved("maxjax.extend.core", name), f"jax.core.{name} is deprecated.")
       for name in _OTHERS},
    **{name: (value, f"jax.core.{name} is deprecated.") for name, value in (
        ("is_concrete", _is_concrete), ("is_constant_dim", _is_constant_dim),
        ("is_constant_shape", _is_constant_shape),
        ("pytype_aval_mappings", _pytype_aval_mappings))}})
