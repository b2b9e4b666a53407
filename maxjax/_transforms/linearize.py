"""Linearization: run a function once, and record the linear jaxpr of its tangents.

A jvp whose tangents are tracers of a ``LinearTrace``: operations on known values run at once
under the parent trace, operations on tangents become equations. The known operands of those
equations, the residuals, are the constants of that jaxpr.

A call, a loop or a branch that takes a tangent may compute known values too, where a custom_jvp
rule computes both in one: it is divided (``partial_jaxpr``), so that only what depends on tangents
is recorded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from maxjax._base import config, dtypes
from maxjax._base.source import JVP, current_line, scopes
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, derived
from maxjax._ir.liveness import eliminate_dead_code
from maxjax._ir.primitive import Primitive, result_types
from maxjax._ir.runtime import Runtime
from maxjax._ir.staging import StagingTrace
from maxjax._ir.trace import Array, Trace, Tracer, aval_of, context, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import FlatFunction, FlatJvp, FlatVjp, Params, Value
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.generators import generator_of_keys
from maxjax._primitives.random_bits import random_wrap_p
from maxjax._primitives.varying import like_type
from maxjax._transforms.jvp import JVPTrace, JVPTracer, instantiate

UNKNOWN_PRIMALS = (
    "Linearization failed to produce known values for all output primals. This is typically caused "
    "by attempting to differentiate a function uses an operation that does not support "
    "reverse-mode autodiff.")


class JaxprTracer(Tracer):
    """A tangent of which a ``LinearTrace`` records the operations."""

    __slots__ = ("_var",)

    def __init__(self, trace: LinearTrace, var: Var):
        self._trace = trace
        self.aval = var.aval
        self._var = var

    def __repr__(self) -> str:
        return f"Traced<{'~' if self.aval.weak_type else ''}{self.aval.str_short()}:JaxprTrace>"


class LinearTrace(Trace):
    """Records operations on tangents and passes all others to the parent."""

    __slots__ = ("consts", "constvars", "dividing", "eqns", "names_lines", "outer_names", "parent")

    def __init__(self, parent: Trace):
        super().__init__()
        self.parent = parent
        # Only what is looked for may cost: a derivative that is computed at once, and not checked,
        # names no line.
        self.names_lines = (not isinstance(parent, Runtime) or config.debug_nans.value
                            or config.debug_infs.value)
        # The linear program may be called in other scopes.
        self.outer_names = len(scopes.names) - 1 if scopes.names[-1:] == (JVP,) else 0
        self.eqns: list[JaxprEqn] = []
        # How a primitive that a rule is dividing is divided: what the rule applies is recorded as
        # it is.
        self.dividing: Division | None = None
        # The residuals, which stay alive here, and the variable of each, by its id.
        self.consts: list[Any] = []
        self.constvars: dict[int, Var] = {}

    def new_input(self, aval: ShapedArray) -> JaxprTracer:
        return JaxprTracer(self, Var(aval))

    def known(self, value: Value) -> Atom:
        """The atom for a known operand: a literal for a NumPy scalar."""
        if not isinstance(value, Array) and not value.shape:
            return Literal(value, aval_of(value))
        var = self.constvars[id(value)] = Var(aval_of(value))
        self.consts.append(value)
        return var

    @property
    def division(self) -> Division:
        """For a rule ``linearize``: how it divides."""
        assert self.dividing is not None
        return self.dividing

    def records(self, value: Value) -> bool:
        """Whether a value is one that is not known."""
        return type(value) is JaxprTracer and value._trace is self

    def atom(self, value: Value) -> Atom:
        return (value._var if type(value) is JaxprTracer and value._trace is self
                else self.constvars.get(id(value)) or self.known(value))

    def apply(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        if context.manual is not None:
            args = context.manual.align(self, primitive, args)
        for arg in args:
            if type(arg) is JaxprTracer and arg._trace is self:
                break
        else:
            previous = context.trace     # not always self: a trace above may have passed this on
            context.trace = self.parent
            try:
                return self.parent.apply(primitive, args, params)
            finally:
                context.trace = previous
        if primitive.derivative.partly is not None and self.dividing is None:
            with current_trace(self):
                return primitive.derivative.partly(self, primitive, args, **params)
        return self.record(primitive, args, params)

    def record(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Any:
        """Applies a primitive to tangents, and to known values as residuals."""
        atoms = [self.atom(arg) for arg in args]
        types = result_types(primitive, tuple([atom.aval for atom in atoms]), params)
        source = current_line() if self.names_lines else None
        if self.outer_names and source is not None and scopes.source_line.__class__ is str:
            source = source.without(self.outer_names)
        if not primitive.multiple_results:
            var = Var(types[0])
            self.eqns.append(JaxprEqn(primitive, atoms, params, (var,), source))
            return JaxprTracer(self, var)
        outvars = [Var(aval) for aval in types]
        self.eqns.append(JaxprEqn(primitive, atoms, params, outvars, source))
        return [JaxprTracer(self, var) for var in outvars]

    def linearized(self, primitive: Primitive, primals: Sequence[Any],
                   tangents: Sequence[Value | None], params: Params,
                   division: Division | None = None) -> tuple[Any, Any]:
        """The results and tangents by a primitive's rule ``linearize``."""
        assert primitive.derivative.linearize is not None
        outer = self.dividing
        self.dividing = division or LINEARIZATION
        try:
            return primitive.derivative.linearize(self, primals, tangents, **params)
        finally:
            self.dividing = outer

    def apply_custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp,
                         args: list[Value], **params: Any) -> list[Any]:
        if any(type(arg) is JaxprTracer and arg._trace is self for arg in args):
            return function(*args)
        with current_trace(self.parent):
            return self.parent.apply_custom_jvp(function, jvp, args, **params)

    def apply_custom_vjp(self, function: Callable[..., list[Value]], rule: FlatVjp,
                         args: list[Value], **params: Any) -> list[Any]:
        if any(type(arg) is JaxprTracer and arg._trace is self for arg in args):
            return params["stage"](self, function, rule, args)
        with current_trace(self.parent):
            return self.parent.apply_custom_vjp(function, rule, args, **params)


def linearize_flat(
        function: FlatFunction, primals: Sequence[Value],
        active: Sequence[bool] | None = None) -> tuple[list[Any], ClosedJaxpr, list[bool]]:
    """Linearizes a function of flat lists at ``primals``.

    Returns:
      The results; the jaxpr, with residuals as constants, of the tangents of the active primals ->
      the nonzero tangents of the results; and which of the results have one.
    """
    parent = context.trace
    linear = LinearTrace(parent)
    trace = JVPTrace(linear, linearizing=True)
    inputs: list[Var] = []
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
    outs, nonzero, outvars = [], [], []
    for primal, tangent in pairs:
        if linear.records(primal):      # a rule gave a tangent for a value
            raise ValueError(UNKNOWN_PRIMALS)
        outs.append(primal)
        # A tangent that does not depend on the inputs can only be zero.
        depends = type(tangent) is JaxprTracer and tangent._trace is linear
        nonzero.append(depends)
        if depends:
            outvars.append(tangent._var)
    jaxpr = Jaxpr([*linear.constvars.values()], inputs, outvars, linear.eqns)
    return outs, ClosedJaxpr(jaxpr, linear.consts), nonzero


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
        outs, linear, out_nonzero = linearize_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, nonzero)
    linear = eliminate_dead_code(linear, inside=False)
    force = (instantiated,) * len(outs) if isinstance(instantiated, bool) else instantiated

    backward = StagingTrace(closed.jaxpr.debug_info)
    residuals = [backward.new_input(var.aval) for var in linear.constvars]
    tangents = [backward.new_input(var.aval) for var in linear.invars]
    out_tangents = []
    with current_trace(backward):
        given = iter(eval_jaxpr(linear.jaxpr, residuals, *tangents))
        for aval, is_nonzero, forced in zip(closed.out_avals, out_nonzero, force, strict=True):
            tangent = next(given) if is_nonzero else None
            if forced:
                tangent = instantiate(tangent, aval)
            if tangent is not None:
                out_tangents.append(tangent)
    return (eliminate_dead_code(forward.close([*outs, *linear.consts]), inside=False),
            backward.close(out_tangents),
            tuple(is_nonzero or forced
                  for is_nonzero, forced in zip(out_nonzero, force, strict=True)))


# --- programs of known values and tangents --------------------------------------------------------


def placeholder(aval: ShapedArray) -> Any:
    """A value of a type, for a place whose value nobody looks at."""
    if dtypes.has_tangents(aval.dtype):
        return instantiate(None, aval)
    if dtypes.is_key(aval.dtype):
        words = full((*aval.shape, aval.dtype.words), 0, dtypes.uint32)
        return like_type(random_wrap_p.bind(words, impl=generator_of_keys(aval.dtype)), aval)
    return like_type(convert_element_type(
        full(aval.shape, 0, aval.dtype), aval.dtype, aval.weak_type), aval)


@derived
def partial_jaxpr(closed: ClosedJaxpr, unknown: tuple[bool, ...],
                  instantiated: tuple[bool, ...] | bool = False) -> tuple[
        ClosedJaxpr, ClosedJaxpr, tuple[bool, ...]]:
    """Divides a jaxpr of known and unknown inputs, as ``linearize_jaxpr`` does one of primals.

    ``instantiated`` names the outputs that are wanted among the unknown ones, known or not.

    Returns:
      A jaxpr inputs -> (outputs, residuals), which does not read the unknown inputs, and gives
      placeholders for the unknown outputs; a jaxpr (residuals, unknown inputs) -> unknown outputs;
      and which of the outputs are unknown.
    """
    forward = StagingTrace(closed.jaxpr.debug_info)
    linear = LinearTrace(forward)
    args: list[Any] = []
    inputs: list[Var] = []
    for aval, is_unknown in zip(closed.in_avals, unknown, strict=True):
        value: Any = forward.new_input(aval)
        if is_unknown:
            value = linear.new_input(aval)
            inputs.append(value._var)
        args.append(value)
    with current_trace(linear):
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
    linear.live = False
    out_unknown = [linear.records(out) for out in outs]
    force = (instantiated,) * len(outs) if isinstance(instantiated, bool) else instantiated
    wanted = tuple(map(operator.or_, out_unknown, force))
    outvars = [linear.atom(out) for out, flag in zip(outs, wanted, strict=True) if flag]
    with current_trace(forward):
        known = [placeholder(aval) if flag else out
                 for out, aval, flag in zip(outs, closed.out_avals, out_unknown, strict=True)]
    jaxpr = Jaxpr([], [*linear.constvars.values(), *inputs], outvars, linear.eqns,
                  closed.jaxpr.debug_info)
    return forward.close([*known, *linear.consts]), ClosedJaxpr(jaxpr), wanted


@dataclass(frozen=True, eq=False)
class Division:
    """How a rule ``linearize`` divides an application.

    Attributes:
      divide: what divides its jaxprs, ``linearize_jaxpr`` or ``partial_jaxpr``.
      partly: whether the application is of known and unknown operands, and not of primals and
        tangents. Then the unknown operands are the tangents of a rule, and their primals None; a
        known result has no tangent, and an unknown one is its tangent: its primal may be anything.
    """

    divide: Callable[..., tuple[ClosedJaxpr, ClosedJaxpr, tuple[bool, ...]]]
    partly: bool

    def start(self, primal: Value, tangent: Array | None) -> Any:
        """The first value of a carry that is a tangent, or unknown, in later iterations."""
        if not self.partly:
            return instantiate(tangent, aval_of(primal))
        return primal if tangent is None else tangent

    def known(self, out_nonzero: Sequence[bool]) -> tuple[bool, ...]:
        """Which results of the first part, without its residuals, are of use."""
        return tuple([not (flag and self.partly) for flag in out_nonzero])


LINEARIZATION = Division(linearize_jaxpr, False)
PARTIAL_EVALUATION = Division(partial_jaxpr, True)


def by_linearization(trace: LinearTrace, primitive: Primitive, args: Sequence[Value],
                     **params: Any) -> list[Any]:
    """A rule ``partly`` that follows from the primitive's rule ``linearize``."""
    unknown = [trace.records(arg) for arg in args]
    outs, tangents = trace.linearized(
        primitive, [None if flag else arg for arg, flag in zip(args, unknown, strict=True)],
        [arg if flag else None for arg, flag in zip(args, unknown, strict=True)], params,
        PARTIAL_EVALUATION)
    return [out if tangent is None else tangent
            for out, tangent in zip(outs, tangents, strict=True)]
