"""jax.core: the internals that libraries on top of JAX use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as _np

from maxjax._base.interrupts import context_manager
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.custom_trace import CustomTrace as Trace  # noqa: F401
from maxjax._higher_order.hi_types import HiValue as _HiValue
from maxjax._ir.dimensions import larger as _larger
from maxjax._ir.dimensions import smaller as _smaller
from maxjax._ir.evaluate import eval_jaxpr as _eval_jaxpr
from maxjax._ir.jaxpr import Jaxpr as _Jaxpr
from maxjax._ir.jaxpr import Literal as _Literal
from maxjax._ir.jaxpr import Var as _Var
from maxjax._ir.runtime import installed
from maxjax._ir.trace import CompileTimeTrace, context, current_trace
from maxjax._ir.trace import Tracer as _Tracer
from maxjax._ir.types import ShapedArray as ShapedArray
from maxjax._transforms.autodiff import operands_of


class _AnyTracer(type):
    """Traced values of types above arrays are instances too, and all traced arrays."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (_Tracer, _HiValue)) if cls is Tracer else (
            type.__instancecheck__(cls, instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, (_Tracer, _HiValue)) if cls is Tracer else (
            type.__subclasscheck__(cls, subclass))


class Tracer(_Tracer, metaclass=_AnyTracer):
    """Stands for a value while a function is being transformed.

    >>> seen = []
    >>> _ = jax.jit(lambda x: seen.append(isinstance(x, jax.core.Tracer)) or x)(1.)
    >>> seen, isinstance(jnp.ones(2), jax.core.Tracer)
    ([True], False)
    """


AbstractValue = ShapedArray
Atom = _Var | _Literal


def eval_jaxpr(jaxpr: _Jaxpr, consts: Sequence[Any], *args: Any,
               propagate_source_info: bool = True) -> list[Any]:
    """The results of a jaxpr for these constants and arguments, operation by operation.

    Constants may also be the first inputs of a jaxpr, as ``trace_to_jaxpr_dynamic`` has it.
    """
    values = operands_of([*consts, *args])
    if len(values) != len(jaxpr.constvars) + len(jaxpr.invars):
        raise ValueError(f"the jaxpr has {len(jaxpr.constvars) + len(jaxpr.invars)} constants and "
                         f"inputs, not {len(values)}")
    count = len(jaxpr.constvars)
    return _eval_jaxpr(jaxpr, values[:count], *values[count:])


@context_manager
def ensure_compile_time_eval() -> Iterator[None]:
    """Operations inside run at once, even while a function is being traced.

    Operations on traced values are still traced.

    Returns:
      A context manager.

    See also: ``jax.jit``, ``jax.disable_jit``.
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

explain_missing_names(__name__, deprecated={"pytype_aval_mappings": (
    _pytype_aval_mappings, "jax.core.pytype_aval_mappings is deprecated.")})
