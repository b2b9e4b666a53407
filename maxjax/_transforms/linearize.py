"""Linearization: run a function once, write down the linear map of its tangents.

A jvp whose tangents are tracers of a ``LinearTrace``: operations on known values run at once
under the parent trace, operations on tangents become equations. Known operands of those
equations are the residuals, and stand in them as values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._ir.jaxpr import ClosedJaxpr, derived
from maxjax._ir.primitive import Primitive, result_types
from maxjax._ir.staging import StagingTrace, eval_jaxpr
from maxjax._ir.trace import Trace, Tracer, aval_of, context, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._transforms.jvp import JVPTrace, JVPTracer, instantiate


class LinearVar:
    """A variable of a linear map."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval


class LinearTracer(Tracer):
    """A tangent that is being written down."""

    __slots__ = ("_var",)

    def __init__(self, trace: LinearTrace, var: LinearVar):
        self._trace = trace
        self.aval = var.aval
        self._var = var


class LinearEquation:
    """``outvars = primitive[params] operands``: each a ``LinearVar`` or a residual's value."""

    __slots__ = ("operands", "outvars", "params", "primitive")

    def __init__(self, primitive: Primitive, operands: list[Any], params: dict[str, Any],
                 outvars: list[LinearVar]):
        self.primitive = primitive
        self.operands = operands
        self.params = params
        self.outvars = outvars


class LinearTrace(Trace):
    """Writes operations on tangents down and passes all others to the parent."""

    __slots__ = ("equations", "parent")

    def __init__(self, parent: Trace):
        super().__init__()
        self.parent = parent
        self.equations: list[LinearEquation] = []

    def new_input(self, aval: ShapedArray) -> LinearTracer:
        return LinearTracer(self, LinearVar(aval))

    def apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if context.manual is not None:
            args = context.manual.align(self, primitive, args)
        operands = []
        linear = False
        for arg in args:
            if type(arg) is LinearTracer and arg._trace is self:
                operands.append(arg._var)
                linear = True
            else:
                operands.append(arg)
        if not linear:
            previous = context.trace     # not always self: a trace above may have passed this on
            context.trace = self.parent
            try:
                return self.parent.apply(primitive, args, params)
            finally:
                context.trace = previous
        types = result_types(primitive, tuple([aval_of(arg) for arg in args]), params)
        outvars = [LinearVar(aval) for aval in types]
        self.equations.append(LinearEquation(primitive, operands, params, outvars))
        if primitive.multiple_results:
            return [LinearTracer(self, var) for var in outvars]
        return LinearTracer(self, outvars[0])

    def apply_custom_jvp(self, function: Any, jvp: Any, args: list[Any],
                         **params: Any) -> list[Any]:
        if any(type(arg) is LinearTracer and arg._trace is self for arg in args):
            return function(*args)
        with current_trace(self.parent):
            return self.parent.apply_custom_jvp(function, jvp, args, **params)

    def apply_custom_vjp(self, function: Any, rule: Any, args: list[Any],
                         **params: Any) -> list[Any]:
        if any(type(arg) is LinearTracer and arg._trace is self for arg in args):
            return params["stage"](self, function, rule, args)
        with current_trace(self.parent):
            return self.parent.apply_custom_vjp(function, rule, args, **params)


class LinearMap:
    """The linear map that a linearization has written down.

    ``outputs`` are ``LinearVar``s, or None where the result does not depend on the inputs.
    """

    __slots__ = ("equations", "inputs", "outputs")

    def __init__(self, inputs: list[LinearVar], equations: list[LinearEquation],
                 outputs: list[LinearVar | None]):
        self.inputs = inputs
        self.equations = equations
        self.outputs = outputs

    def __call__(self, *tangents: Any) -> list[Any]:
        """The results (None where zero) for given tangents, under the current trace."""
        values: dict[LinearVar, Any] = dict(zip(self.inputs, tangents, strict=True))
        for eqn in self.equations:
            operands = tuple([values[x] if type(x) is LinearVar else x for x in eqn.operands])
            result = context.trace.apply(eqn.primitive, operands, eqn.params)
            results = result if eqn.primitive.multiple_results else [result]
            values.update(zip(eqn.outvars, results, strict=True))
        return [None if var is None else values[var] for var in self.outputs]


def linearize_flat(function: Callable[..., Sequence[Any]], primals: Sequence[Any],
                   active: Sequence[bool] | None = None) -> tuple[list[Any], LinearMap]:
    """Results at ``primals`` and the linear map of the tangents of the active ones."""
    parent = context.trace
    linear = LinearTrace(parent)
    trace = JVPTrace(linear, linearizing=True)
    inputs: list[LinearVar] = []
    args = []
    for position, primal in enumerate(primals):
        if active is not None and not active[position]:
            args.append(primal)
            continue
        tangent = linear.new_input(aval_of(primal).tangent())
        inputs.append(tangent._var)
        args.append(JVPTracer(trace, primal, tangent))
    try:
        context.trace = trace
        try:
            outputs = function(*args)
        finally:
            context.trace = parent
        pairs = [trace.dual(output) for output in outputs]
    finally:
        trace.live = linear.live = False
    outs = [primal for primal, _ in pairs]
    # A tangent that does not depend on the inputs can only be zero.
    out_vars = [
        tangent._var if type(tangent) is LinearTracer and tangent._trace is linear else None
        for _, tangent in pairs]
    return outs, LinearMap(inputs, linear.equations, out_vars)


@derived
def linearize_jaxpr(closed: ClosedJaxpr, nonzero: tuple[bool, ...],
                    instantiated: tuple[bool, ...] | bool = False) -> tuple[
        ClosedJaxpr, ClosedJaxpr, tuple[bool, ...]]:
    """Splits a jaxpr for linearization.

    ``instantiated`` names the outputs whose tangents are wanted even where they are zero.

    Returns:
      A jaxpr inputs -> (outputs, residuals); a jaxpr (residuals, nonzero tangents) -> nonzero
      tangents of the outputs; and which of the outputs have one.
    """
    forward = StagingTrace(closed.jaxpr.debug_info)
    primals = [forward.new_input(aval) for aval in closed.in_avals]
    with current_trace(forward):
        outs, linear_map = linearize_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, nonzero)
    residuals: dict[int, Any] = {}
    for eqn in linear_map.equations:
        for operand in eqn.operands:
            if type(operand) is not LinearVar and _is_residual(operand):
                residuals[id(operand)] = operand
    kept = list(residuals.values())
    force = ((instantiated,) * len(outs) if isinstance(instantiated, bool) else instantiated)
    out_nonzero = tuple(var is not None or forced
                        for var, forced in zip(linear_map.outputs, force, strict=True))

    backward = StagingTrace(closed.jaxpr.debug_info)
    residual_inputs = [backward.new_input(aval_of(value)) for value in kept]
    replaced = dict(zip(residuals, residual_inputs, strict=True))
    tangents = [backward.new_input(var.aval) for var in linear_map.inputs]
    with current_trace(backward):
        moved = LinearMap(linear_map.inputs, [
            LinearEquation(
                eqn.primitive,
                [x if type(x) is LinearVar else replaced.get(id(x), x) for x in eqn.operands],
                eqn.params, eqn.outvars)
            for eqn in linear_map.equations], linear_map.outputs)
        out_tangents = [
            instantiate(tangent, aval) if forced else tangent
            for tangent, aval, forced in zip(
                moved(*tangents), closed.out_avals, force, strict=True)]
    linear_jaxpr = backward.close([tangent for tangent in out_tangents if tangent is not None])
    forward_jaxpr = forward.close([*outs, *kept])
    return forward_jaxpr, linear_jaxpr, out_nonzero


def _is_residual(operand: Any) -> bool:
    """Scalars of NumPy's stand in the linear jaxpr as literals; all else is passed over."""
    return isinstance(operand, Tracer) or bool(operand.shape) or hasattr(operand, "aval")
