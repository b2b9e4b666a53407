"""Staging: running a function on tracers to record the jaxpr of what it does."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import config, pytree
from maxjax._base.source import current_line, outside_scopes, scopes
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.liveness import needed_equations, read_variables
from maxjax._ir.primitive import Primitive, result_types
from maxjax._ir.refs import Ref, RefState, RefsTouched, RefUse, check_not_both
from maxjax._ir.runtime import installed
from maxjax._ir.trace import (
    Array,
    CompileTimeTrace,
    Trace,
    Tracer,
    check_leaks,
    context,
    current_trace,
    is_scalar,
    leaked_tracer_error,
)
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import FlatJvp, FlatVjp

if TYPE_CHECKING:
    from maxjax._ir.typing import FlatFunction, Params, Value


@pytree.leaf_type
class DynamicJaxprTracer(Tracer):
    """A variable of a jaxpr that is being written.

    >>> seen = []
    >>> jaxpr = jax.make_jaxpr(lambda x: seen.append(x) or x)(1.0)
    >>> isinstance(seen[0], jax.interpreters.partial_eval.DynamicJaxprTracer)
    True
    """

    # A literal is the value of a scalar constant: equations that read it contain it.
    __slots__ = ("_var",)
    _trace: StagingTrace

    def __init__(self, trace: StagingTrace, var: Any):
        self._trace = trace
        self.aval = var.aval
        self._var = var

    def origin(self) -> str:
        return self._trace.origin(self._var)

    def leak(self) -> str:
        return self._trace.leak(self._var)

    def literal(self) -> Any:
        return self._var.val if self._var.__class__ is Literal else None

    def is_known(self) -> bool:
        return self._trace.is_known(self._var)

    def concrete(self) -> Any:
        return self._trace.concrete(self._var)

    def __repr__(self) -> str:
        return self._trace.text(self._var)


# One for each input of a trace, or what gives them: looking at signatures takes time.
ArgumentNames = Sequence[str] | Callable[[], Sequence[str]] | None


class StagingTrace(Trace):
    """Records each operation as an equation of a new jaxpr."""

    __slots__ = ("argument_names", "constants", "debug_info", "dropped", "eqns", "invars", "kind",
                 "refs")

    def __init__(self, debug_info: str = "", kind: str = "jit",
                 argument_names: ArgumentNames = None):
        super().__init__()
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        # Values that the function closes over, by identity; they are kept alive, so that no other
        # value gets their ids.
        self.constants: dict[int, tuple[Var, Any]] = {}
        self.debug_info = debug_info
        self.kind = kind
        self.argument_names = argument_names
        # Results that nothing used, and their equations: a leaked one is looked up here.
        self.dropped: dict[Var, JaxprEqn] = {}
        # Array references from outside, by what they refer to.
        self.refs: dict[Any, RefState] = {}

    def new_input(self, aval: ShapedArray) -> DynamicJaxprTracer:
        var = Var(aval)
        self.invars.append(var)
        return DynamicJaxprTracer(self, var)

    def new_arg(self, aval: ShapedArray, source_info: object = None) -> DynamicJaxprTracer:
        """``new_input``, by the name that libraries know, who read values from outside so."""
        return self.new_input(aval)

    def atom(self, value: Value) -> Atom:
        """The variable or literal that stands for an operand."""
        if type(value) is DynamicJaxprTracer and value._trace is self:
            return value._var
        if isinstance(value, Tracer):
            if not value._trace.live:
                raise leaked_tracer_error(value)
        elif isinstance(value, Array):
            kept = context.kept_scalars
            if not (value.aval.shape or (kept and id(value) in kept)) and (
                    scalar := value.literal()) is not None:
                return Literal(scalar, value.aval)
        elif is_scalar(value):
            return Literal(value, ShapedArray((), value.dtype))
        else:
            return self.atom(installed.runtime.concrete(value))
        known = self.constants.get(id(value))
        if known is None:
            known = self.constants[id(value)] = (Var(value.aval), value)
        return known[0]

    def constant(self, value: Array) -> Array:
        """A new array as a value of the program."""
        return DynamicJaxprTracer(self, self.atom(value))

    def apply(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        if context.manual is not None:
            args = context.manual.align(self, primitive, args)
        atoms = [self.atom(arg) for arg in args]
        types = result_types(primitive, tuple([atom.aval for atom in atoms]), params)
        outvars = [Var(aval) for aval in types]
        self.eqns.append(JaxprEqn(primitive, atoms, params, outvars, current_line()))
        if primitive.multiple_results:
            return [DynamicJaxprTracer(self, var) for var in outvars]
        return DynamicJaxprTracer(self, outvars[0])

    def apply_custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp,
                         args: list[Value], **params: Any) -> list[Any]:
        return params["stage"](self, function, jvp, args)

    def apply_custom_vjp(self, function: Callable[..., list[Value]], rule: FlatVjp,
                         args: list[Value], **params: Any) -> list[Any]:
        return params["stage"](self, function, rule, args)

    def reference(self, ref: Ref) -> RefState:
        state = self.refs.get(ref._storage)
        if state is None:
            tracer = DynamicJaxprTracer(self, Var(ref.aval.inner_aval))
            state = self.refs[ref._storage] = RefState(ref, tracer, tracer)
        elif state.ref is None:
            state.ref = ref
        elif state.ref is not ref:
            check_not_both(state.ref, ref, self.debug_info, self.kind)
        return state

    def origin(self, var: Var) -> str:
        context_line = (
            f"The error occurred while tracing the function {self.debug_info} for {self.kind}."
            if self.debug_info else f"The error occurred while tracing for {self.kind}.")
        arguments, operations = self._ancestry(var)
        names = self.argument_names
        if callable(names):
            names = names() if arguments else None
        if arguments and names is not None and arguments[-1] < len(names):
            chosen = [names[position] for position in arguments]
            what = (f"value of the argument {chosen[0]}" if len(chosen) == 1 else
                    f"values of the arguments {enumeration(chosen)}")
            return (f"{context_line} This concrete value was not available in Python because "
                    f"it depends on the {what}.")
        if arguments:
            return context_line
        if not operations:
            return f"{context_line} "       # where JAX names what it depends on
        lines = [f"  operation {eqn}" + (
            f"\n    from line {eqn.source.with_column()}" if eqn.source else "")
            for eqn in operations[-5:]]
        return (f"{context_line} This value became a tracer due to JAX operations on these "
                "lines:\n\n" + "\n\n".join(lines))

    def is_known(self, var: Var) -> bool:
        """Whether a variable has a value here."""
        return False

    def concrete(self, var: Var) -> Any:
        """A variable's value, where it has one here."""
        return None

    def text(self, var: Var) -> str:
        """What a variable's tracer prints as."""
        weak = "~" if var.aval.weak_type else ""
        return f"JitTracer({weak}{var.aval.str_short()})"

    def _ancestry(self, var: Var) -> tuple[list[int], list[JaxprEqn]]:
        """The positions of the inputs that a variable depends on, and the operations between."""
        needed = {var}
        operations = needed_equations(
            self.eqns, needed, keeps=lambda eqn: self.dropped.get(var) is eqn)
        return [n for n, invar in enumerate(self.invars) if invar in needed], operations

    def leak(self, var: Var) -> str:
        """Where a value that has escaped was made."""
        if not self.debug_info:
            return ""
        eqn = self.dropped.get(var) or next(
            (eqn for eqn in self.eqns if var in eqn.outvars), None)
        text = ("The function being traced when the value leaked was "
                f"{self.debug_info} traced for {self.kind}.")
        if eqn is not None and eqn.source is not None:
            text += (f"\nThe leaked intermediate value was created on line {eqn.source}, by the "
                     f"operation {eqn.primitive.name}.")
        return text

    def drop_unused(self, eqns: Sequence[JaxprEqn], outvars: Sequence[Atom]) -> Collection[Var]:
        """Drops the results that neither equations nor outputs read; returns what they do read."""
        used = read_variables(eqns, outvars)
        for eqn in eqns:
            unused = [var for var in eqn.outvars if var not in used]
            if unused:
                self.dropped.update(dict.fromkeys(unused, eqn))
                eqn.outvars = [var if var in used else DropVar(var.aval) for var in eqn.outvars]
        return used

    def close(self, outputs: Sequence[Value], with_refs: bool = False) -> ClosedJaxpr:
        """The finished jaxpr that gives ``outputs`` (tracers or concrete values).

        Raises:
          RefsTouched: references were touched, and the caller does not deal with them.
        """
        captured = [state for state in self.refs.values() if state.initial is not None]
        written = [state for state in captured if state.operation]
        outvars = [self.atom(value) for value in [*outputs, *(x.value for x in written)]]
        invars = [*self.invars, *(state.initial._var for state in captured)]
        self.live = False
        used = self.drop_unused(self.eqns, outvars)
        constvars, consts = [], []
        for var, value in self.constants.values():
            if var in used:
                constvars.append(var)
                consts.append(value)
        uses = tuple(RefUse(x.ref, x.operation) for x in captured if x.ref is not None)
        if uses and not with_refs:
            raise RefsTouched(self.kind, uses)
        return ClosedJaxpr(
            Jaxpr(constvars, invars, outvars, self.eqns, self.debug_info), consts, uses)


def enclosing_traces() -> Iterator[Trace]:
    """The current trace and those that it passes operations on to, outwards."""
    trace: Any = context.trace
    while trace is not None:
        yield trace
        trace = trace.outwards()


def is_staging() -> bool:
    """Whether a function is being traced to a jaxpr."""
    return any(isinstance(trace, StagingTrace) for trace in enclosing_traces())


# The kind of a trace that is run as eager calls are, and never shown nor transformed.
EAGER = "a repeated eager call"


def traces_eager_call() -> bool:
    """Whether what is called now is written into the program of an eager call: functions that have
    a NumPy rule are one operation there, as they are outside programs."""
    trace = context.trace
    return trace.__class__ is StagingTrace and trace.kind is EAGER


def program_written() -> StagingTrace | None:
    """The jaxpr that what is called now is written into, if there is one."""
    trace = context.trace
    if trace.__class__ is StagingTrace:      # most often
        return trace
    if trace is installed.runtime:
        return None
    for outer in enclosing_traces():
        if isinstance(outer, StagingTrace):
            return outer
        if isinstance(outer, CompileTimeTrace):
            break
    return None


def within_program() -> bool:
    """Whether what is called now is written into a jaxpr."""
    return program_written() is not None


def staged(value: Array) -> Array:
    """An array made of host data, as a value of the program that is being traced, if there is one.
    As of all values of programs, code then sees no more than its type."""
    program = program_written()
    return value if program is None else program.constant(value)


def enumeration(names: Sequence[str]) -> str:
    """``a and b``, or ``a, b, and c``."""
    if len(names) < 3:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"


def trace_to_jaxpr(function: FlatFunction, in_avals: Sequence[ShapedArray], debug_info: str = "",
                   kind: str = "jit", argument_names: ArgumentNames = None,
                   with_refs: bool = False) -> ClosedJaxpr:
    """The jaxpr of ``function``, which takes and returns flat sequences of arrays.

    Args:
      with_refs: the caller deals with the ``refs`` of the jaxpr.

    Raises:
      RefsTouched: the function touches array references from outside, and the caller does not.
    """
    closed, reference = _traced(function, in_avals, debug_info, kind, argument_names, with_refs)
    if config.check_tracer_leaks.value:
        check_leaks(reference)
    return closed


def _traced(function: FlatFunction, in_avals: Sequence[ShapedArray], debug_info: str, kind: str,
            argument_names: ArgumentNames, with_refs: bool
            ) -> tuple[ClosedJaxpr, weakref.ref[Trace]]:
    trace = StagingTrace(debug_info, kind, argument_names)
    tracers = [trace.new_input(aval) for aval in in_avals]
    left = scopes.names, scopes.source_line
    outside = outside_scopes()
    try:
        scopes.names, scopes.source_line = outside
        with current_trace(trace):
            outputs = function(*tracers)
        return trace.close(outputs, with_refs), weakref.ref(trace)
    finally:
        trace.live = False
        scopes.names, scopes.source_line = left
