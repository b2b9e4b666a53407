"""Forward-mode differentiation: each value carries its tangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.meshes import get_abstract_mesh
from maxjax._base.specs import PartitionSpec, spec_axes
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, derived
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import NO_DERIVATIVES, Ref
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import (
    Array,
    Trace,
    Tracer,
    as_given,
    context,
    current_trace,
    leaked_tracer_error,
)
from maxjax._ir.types import ManualAxisType, ShapedArray
from maxjax._ir.typing import FlatFunction, FlatJvp, FlatVjp, Params, Value
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.sharding import reshard_p
from maxjax._primitives.varying import like_type


class JVPTracer(Tracer):
    """A value and its tangent; a tangent of None is zero.

    >>> seen = []
    >>> _ = jax.jvp(lambda x: seen.append(type(x)) or x, (1.0,), (1.0,))
    >>> seen == [jax.interpreters.ad.JVPTracer]
    True
    """

    __slots__ = ("primal", "tangent")
    _trace: JVPTrace

    def __init__(self, trace: JVPTrace, primal: Value, tangent: Value):
        self._trace = trace
        self.aval = primal.aval if hasattr(primal, "aval") else ShapedArray(
            primal.shape, primal.dtype)
        self.primal = primal
        self.tangent = tangent

    def concrete(self) -> Any:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal

    def is_python_number(self) -> bool:
        """Whether it stands for a number of Python's, which is handed on as one."""
        primal = self.primal
        if isinstance(primal, JVPTracer):
            return primal.is_python_number()
        return not isinstance(primal, Tracer) and as_given(primal) is not primal

    def is_known(self) -> bool:
        return self.primal.is_known() if isinstance(self.primal, Tracer) else True

    def origin(self) -> str:
        return self.primal.origin() if isinstance(self.primal, Tracer) else ""

    def kind(self) -> str:
        return "LinearizeTracer" if self._trace.linearizing else "JVPTracer"

    def __repr__(self) -> str:
        if self._trace.linearizing:
            return (f"GradTracer(primal={self.primal}, "
                    f"typeof(tangent)={self.aval.tangent().str_short(True)})")
        return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"


class JVPTrace(Trace):
    """Applies each primitive's jvp rule under the parent trace.

    >>> issubclass(jax.interpreters.ad.JVPTrace, jax.core.Trace)
    True
    """

    __slots__ = ("linearizing", "parent")
    parent: Any

    def __init__(self, parent: Trace, linearizing: bool = False):
        super().__init__()
        self.parent = parent
        self.linearizing = linearizing     # the parent records what is linear

    def dual(self, value: Value) -> tuple[Any, Any]:
        if type(value) is JVPTracer:
            if value._trace is self:
                return value.primal, value.tangent
            if not value._trace.live:
                raise leaked_tracer_error(value)
        return value, None

    def write_outside(self, ref: Ref, value: Value, operation: str) -> Any:
        primal, tangent = self.dual(value)
        if tangent is not None and ref.aval.kind != NO_DERIVATIVES:
            raise Exception(
                f"performing {operation} operation with a differentiated value on a "
                f"non-differentiated array reference of type {ref.aval}. Move the array reference "
                "to be an argument of the differentiated function?")
        return primal

    def apply(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        if context.manual is not None:
            args = context.manual.align(self, primitive, args)
        primals: list[Any] = []
        tangents: list[Any] = []
        active = False
        for arg in args:
            if type(arg) is JVPTracer and arg._trace is self:
                primals.append(arg.primal)
                tangents.append(arg.tangent)
                active = True
            else:
                primals.append(self.dual(arg)[0])
                tangents.append(None)
        if not active:
            return self.parent.apply(primitive, tuple(primals), params)
        if primitive.jvp is None:
            raise missing_derivative(primitive)
        previous = context.trace     # not always self: a trace above may have passed this on
        context.trace = self.parent
        try:
            if self.linearizing and primitive.derivative.linearize is not None:
                out, tangent = self.parent.linearized(primitive, primals, tangents, params)
            else:
                out, tangent = primitive.jvp(primals, tangents, **params)
        finally:
            context.trace = previous
        if primitive.multiple_results:
            if tangent is None:
                return out
            return [o if t is None else JVPTracer(self, o, t)
                    for o, t in zip(out, tangent, strict=True)]
        if tangent is None:
            return out
        if not isinstance(tangent, Tracer) and hasattr(tangent, "_number") and (
                not primitive.is_own):      # a user's rule hands it on
            tangent = installed.runtime.operand(tangent._number)      # it is a result here
        return JVPTracer(self, out, tangent)

    def apply_custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp,
                         args: list[Value], **params: Any) -> list[Any]:
        primals, tangents = zip(*map(self.dual, args), strict=True) if args else ((), ())
        if all(tangent is None for tangent in tangents):
            with current_trace(self.parent):    # the function may close over a tangent
                return self.parent.apply_custom_jvp(function, jvp, list(primals), **params)
        with current_trace(self.parent):
            outs, out_tangents = jvp(list(primals), list(tangents))
        return [o if t is None else JVPTracer(self, o, t)
                for o, t in zip(outs, out_tangents, strict=True)]

    def apply_custom_vjp(self, function: Callable[..., list[Value]], rule: FlatVjp,
                         args: list[Value], **params: Any) -> list[Any]:
        primals, tangents = zip(*map(self.dual, args), strict=True) if args else ((), ())
        if all(tangent is None for tangent in tangents):
            with current_trace(self.parent):    # the function may close over a tangent
                return self.parent.apply_custom_vjp(function, rule, list(primals), **params)
        with current_trace(self.parent):
            outs, out_tangents = params["differentiate"](rule, list(primals), list(tangents))
        return [o if t is None else JVPTracer(self, o, t)
                for o, t in zip(outs, out_tangents, strict=True)]


def missing_derivative(primitive: Primitive) -> Exception:
    if primitive.derivative.missing:
        return NotImplementedError(
            f"Differentiation rule for '{primitive.name}' not implemented: "
            f"{primitive.derivative.missing}")
    return NotImplementedError(f"Differentiation rule for '{primitive.name}' not implemented")


def jvp_flat(function: FlatFunction, primals: Sequence[Value],
             tangents: Sequence[Value | None]) -> tuple[list[Any], list[Any]]:
    """Results and tangents (None where zero) of a function of flat lists."""
    parent = context.trace
    trace = JVPTrace(parent)
    try:
        with current_trace(trace):
            duals = [primal if tangent is None else JVPTracer(trace, primal, tangent)
                     for primal, tangent in zip(primals, tangents, strict=True)]
            outputs = function(*duals)
        pairs = [trace.dual(output) for output in outputs]
    finally:
        trace.live = False
    return [primal for primal, _ in pairs], [tangent for _, tangent in pairs]


def _can_reshard(spec: PartitionSpec) -> bool:
    """Whether a new value gets this spec: outside of programs only a mesh that is set is known."""
    if not (any(spec_axes(spec)) or spec.unreduced or spec.reduced):
        return False
    return context.trace is not installed.runtime or not get_abstract_mesh().empty


def instantiate(tangent: Array | np.ndarray | None, aval: ShapedArray) -> Any:
    """A tangent as an array: None becomes zeros, as weakly typed as the value."""
    if tangent is None:
        aval = aval.tangent()
        if aval.dtype == dtypes.float0:
            return np.zeros(aval.shape, dtypes.float0)
        if not aval.plain and aval.manual_axis_type != ManualAxisType():
            return like_type(instantiate(None, aval.off_mesh()), aval)
        if aval.mesh_spec is not None and _can_reshard(aval.mesh_spec[1]):
            return reshard_p.bind(instantiate(None, aval.off_mesh()), dst_sharding=aval.sharding)
        if aval.shape or dtypes.is_user_defined(aval.dtype):
            return convert_element_type(
                full(aval.shape, 0, aval.dtype), aval.dtype, aval.weak_type)
        tangent = np.zeros((), aval.dtype)
    elif isinstance(tangent, Array):
        return like_type(tangent, aval)
    return like_type(installed.runtime.constant(tangent, aval.tangent().off_mesh()), aval)


@derived
def jvp_jaxpr(closed: ClosedJaxpr, nonzero: tuple[bool, ...],
              instantiated: tuple[bool, ...] | bool = False
              ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The jaxpr of (primals, nonzero tangents) -> (results, nonzero tangents of the results).

    ``instantiated`` names the results whose tangents are wanted even where they are zero.
    """
    in_avals = closed.in_avals
    tangent_avals = [aval.tangent() for aval, is_nonzero in zip(in_avals, nonzero, strict=True)
                     if is_nonzero]
    wanted: list[bool] = []

    def function(*args: Value) -> list[Any]:
        primals = args[:len(in_avals)]
        given = iter(args[len(in_avals):])
        tangents = [next(given) if is_nonzero else None for is_nonzero in nonzero]
        outs, out_tangents = jvp_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents)
        force = (instantiated,) * len(outs) if isinstance(instantiated, bool) else instantiated
        out_tangents = [
            instantiate(tangent, aval) if forced else tangent
            for tangent, aval, forced in zip(out_tangents, closed.out_avals, force, strict=True)]
        wanted.extend(tangent is not None for tangent in out_tangents)
        return [*outs, *(tangent for tangent in out_tangents if tangent is not None)]

    result = trace_to_jaxpr(function, [*in_avals, *tangent_avals], closed.jaxpr.debug_info)
    return result, tuple(wanted)


