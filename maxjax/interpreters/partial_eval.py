"""jax.interpreters.partial_eval: tracing functions to jaxprs, and dead code elimination."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.control import chosen
from maxjax._higher_order.jit import jit_p
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from maxjax._ir.liveness import needed_equations, read_variables, variables
from maxjax._ir.staging import DynamicJaxprTracer as DynamicJaxprTracer
from maxjax._ir.staging import StagingTrace
from maxjax._ir.trace import CompileTimeTrace, aval_of, context, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._transforms.autodiff import operands_of
from maxjax.extend.linear_util import WrappedFun

if TYPE_CHECKING:
    from maxjax._ir.typing import Value

__all__ = ["DynamicJaxprTracer", "PartialVal", "abstract_eval_fun", "convert_constvars_jaxpr",
           "dce_jaxpr", "dce_jaxpr_consts", "move_binders_to_back", "trace_to_jaxpr_dynamic",
           "trace_to_jaxpr_nounits"]


class PartialVal(tuple):
    """A known value, ``(None, value)``, or one with only a known type, ``(type, None)``.

    >>> jax.interpreters.partial_eval.PartialVal.known(2.0).get_known()
    2.0
    """

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        """The value; None if it is not known."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> ShapedArray:
        return aval_of(operands_of([self[1]])[0]) if self.is_known() else self[0]


# --- tracing --------------------------------------------------------------------------------------

def trace_to_jaxpr_dynamic(fun: WrappedFun, in_avals: Sequence[ShapedArray], *,
                           keep_inputs: Sequence[bool] | None = None, lower: bool = False,
                           auto_dce: bool = False) -> tuple[
                               Jaxpr, list[ShapedArray], list[Any]]:
    """The jaxpr of a function of flat arguments and results.

    Args:
      keep_inputs: which inputs to keep; by default all.
      lower: accepted as in JAX.
      auto_dce: remove equations that no result needs.

    Returns:
      The jaxpr, whose first inputs are its constants, the types of its results, and the values of
      the constants.

    >>> fun = jax.extend.linear_util.wrap_init(lambda x: [jnp.sin(x)])
    >>> jax.interpreters.partial_eval.trace_to_jaxpr_dynamic(fun, [jax.typeof(1.0)])[0]
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    trace = StagingTrace(fun.__name__)
    inputs = [trace.new_input(aval) for aval in in_avals]
    with current_trace(trace):
        outputs = operands_of(fun.call_wrapped(*inputs))
    closed = trace.close(outputs)
    jaxpr, consts = closed.jaxpr, closed.consts
    if keep_inputs is not None:
        jaxpr = jaxpr.replace(invars=chosen(jaxpr.invars, keep_inputs))
    if auto_dce:
        jaxpr, used, _ = dce_jaxpr_consts(jaxpr, [True] * len(outputs), True)
        consts = chosen(consts, used)
    jaxpr = jaxpr.replace(constvars=[], invars=jaxpr.all_invars)
    return jaxpr, jaxpr.out_avals, consts


def trace_to_jaxpr_nounits(fun: WrappedFun, pvals: Sequence[PartialVal],
                           instantiate: bool | Sequence[bool] = False) -> tuple[
                               Jaxpr, list[PartialVal], list[Any]]:
    """Evaluates the known part of a function of flat arguments, and traces the rest.

    Args:
      pvals: the arguments; those that are unknown are the jaxpr's inputs.
      instantiate: which known results the jaxpr also returns.

    Returns:
      The jaxpr of the unknown results, all results as partial values, and the jaxpr's constants.

    >>> pe = jax.interpreters.partial_eval
    >>> fun = jax.extend.linear_util.wrap_init(lambda x, y: [2 * x, x + y])
    >>> pvals = [pe.PartialVal.known(1.0), pe.PartialVal.unknown(jax.typeof(1.0))]
    >>> jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(fun, pvals)
    >>> len(jaxpr.outvars), outs[0]
    (1, (None, Array(2., dtype=float32, weak_type=True)))
    """
    trace = StagingTrace(fun.__name__)
    args = [p.get_known() if p.is_known() else trace.new_input(p.get_aval()) for p in pvals]
    known = _KnownTrace(trace, context.trace)
    with current_trace(trace), current_trace(known):
        outputs = operands_of(fun.call_wrapped(*args))
    kept = _flags(instantiate, len(outputs))
    unknown = [known.is_unknown(x) or keep for x, keep in zip(outputs, kept, strict=True)]
    closed = trace.close(chosen(outputs, unknown))
    results = [PartialVal.unknown(aval_of(x)) if is_unknown else PartialVal.known(x)
               for x, is_unknown in zip(outputs, unknown, strict=True)]
    return closed.jaxpr, results, closed.consts


class _KnownTrace(CompileTimeTrace):
    """Runs what no unknown takes part in where it was called: the tracers of there are known."""

    __slots__ = ()

    def is_unknown(self, value: Value) -> bool:
        return isinstance(value, DynamicJaxprTracer) and value._trace is self.outer

    def _target(self, args: Sequence[Value], is_traced: bool = False) -> current_trace:
        return current_trace(self.outer if any(map(self.is_unknown, args)) else self.base)


# --- dead code ------------------------------------------------------------------------------------

def dce_jaxpr(jaxpr: Jaxpr, used_outputs: bool | Sequence[bool],
              instantiate: bool | Sequence[bool] = False,
              live_inputs: bool | Sequence[bool] = True) -> tuple[Jaxpr, list[bool]]:
    """A jaxpr without unused results and the equations that only they need.

    Args:
      used_outputs: which results are used.
      instantiate: which inputs to keep even if unused.
      live_inputs: which references may be read afterwards; writes to others stay as well.

    Returns:
      The jaxpr, and which of the inputs remain.

    >>> jaxpr = jax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(1.0, 1.0).jaxpr
    >>> jax.interpreters.partial_eval.dce_jaxpr(jaxpr, [True, False])
    ({ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }, [True, False])
    """
    used_outputs = _flags(used_outputs, len(jaxpr.outvars))
    outvars = chosen(jaxpr.outvars, used_outputs)
    needed = set(variables(outvars))

    def pruned(eqn: JaxprEqn) -> JaxprEqn:
        used = [var in needed for var in eqn.outvars]
        if eqn.primitive is jit_p:
            return _pruned_call(eqn, used)
        if not all(used) and eqn.primitive.inner.dead_code is not None:
            return eqn.primitive.inner.dead_code(eqn, used)
        return eqn

    eqns = needed_equations(jaxpr.eqns, needed, pruned=pruned)
    stays = [var in needed or keep for var, keep in zip(
        jaxpr.invars, _flags(instantiate, len(jaxpr.invars)), strict=True)]
    return jaxpr.replace(invars=chosen(jaxpr.invars, stays), outvars=outvars, eqns=eqns), stays


def dce_jaxpr_consts(jaxpr: Jaxpr, used_outputs: Sequence[bool],
                     instantiate: bool | Sequence[bool] = False) -> tuple[
                         Jaxpr, list[bool], list[bool]]:
    """``dce_jaxpr`` that also leaves out unused constants.

    Returns:
      The jaxpr, and which of the constants and of the inputs remain.

    >>> jaxpr = jax.make_jaxpr(lambda x: (x, x + np.arange(2.0)))(1.0).jaxpr
    >>> jax.interpreters.partial_eval.dce_jaxpr_consts(jaxpr, [True, False])[1:]
    ([False], [True])
    """
    pruned, stays = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = read_variables(pruned.eqns, pruned.outvars)
    used = [var in read for var in jaxpr.constvars]
    return pruned.replace(constvars=chosen(jaxpr.constvars, used)), used, stays


# --- binders --------------------------------------------------------------------------------------

def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """A jaxpr whose first inputs are its constants.

    >>> jaxpr = jax.make_jaxpr(lambda x: x + np.arange(2.0))(1.0).jaxpr
    >>> len(jax.interpreters.partial_eval.convert_constvars_jaxpr(jaxpr).invars)
    2
    """
    return jaxpr.replace(constvars=[], invars=jaxpr.all_invars)


def move_binders_to_back(closed_jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """A jaxpr whose last inputs are those that are chosen.

    >>> closed = jax.make_jaxpr(lambda x, y: x - y)(1.0, 2)
    >>> moved = jax.interpreters.partial_eval.move_binders_to_back(closed, [True, False])
    >>> [aval.str_short() for aval in moved.in_avals]
    ['int32[]', 'float32[]']
    """
    jaxpr = closed_jaxpr.jaxpr
    invars = [*chosen(jaxpr.invars, [not flag for flag in to_move]),
              *chosen(jaxpr.invars, to_move)]
    return closed_jaxpr.replace(invars=invars)


def abstract_eval_fun(fun: Callable[..., Any], *avals: ShapedArray, debug_info: Any,
                      **params: Any) -> list[ShapedArray]:
    """The types of the results of a function of flat arguments and results.

    >>> jax.interpreters.partial_eval.abstract_eval_fun(
    ...     lambda x: [jnp.sin(x)], jax.typeof(1.0), debug_info=None)
    [ShapedArray(float32[], weak_type=True)]
    """
    trace = StagingTrace(getattr(fun, "__name__", "fun"))
    inputs = [trace.new_input(aval) for aval in avals]
    with current_trace(trace):
        outputs = operands_of(fun(*inputs, **params))
    return [aval_of(x) for x in outputs]


def _pruned_call(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
    closed = eqn.params["jaxpr"]
    jaxpr, consts, inputs = dce_jaxpr_consts(closed.jaxpr, used)
    return eqn.replace(
        invars=chosen(eqn.invars, inputs), outvars=chosen(eqn.outvars, used),
        params={**eqn.params, "jaxpr": ClosedJaxpr(jaxpr, chosen(closed.consts, consts))})


def _flags(given: bool | Sequence[bool], count: int) -> list[bool]:
    flags = [given] * count if isinstance(given, bool) else list(given)
    if len(flags) != count:
        raise ValueError(f"{len(flags)} flags for {count} values")
    return flags


explain_missing_names(__name__)
