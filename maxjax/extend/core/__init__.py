"""jax.extend.core: custom primitives, and jaxprs to inspect, change and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import (
    ConcretizationTypeError,
    InternalError,
)
from maxjax._base.errors import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
)
from maxjax._base.errors import JaxprTypeError as JaxprTypeError
from maxjax._base.interrupts import context_manager
from maxjax._base.missing import explain_missing_names
from maxjax._base.source import SourceLine
from maxjax._higher_order.custom_primitive import CustomPrimitive
from maxjax._ir import check as _check
from maxjax._ir import primitive as _ir_primitive
from maxjax._ir.effects import Effect as Effect
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import DropVar as DropVar
from maxjax._ir.jaxpr import Jaxpr as ClosedJaxpr
from maxjax._ir.jaxpr import Jaxpr as Jaxpr
from maxjax._ir.jaxpr import JaxprEqn as JaxprEqn
from maxjax._ir.jaxpr import Literal as Literal
from maxjax._ir.jaxpr import Var as Var
from maxjax._ir.jaxpr import subjaxprs as _subjaxprs
from maxjax._ir.runtime import installed
from maxjax._ir.staging import enclosing_traces, is_staging
from maxjax._ir.trace import Array, Trace, Tracer, context, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._transforms.autodiff import operands_of
from maxjax._transforms.batching import BatchTrace
from maxjax.core import AbstractValue as AbstractValue
from maxjax.extend.core import primitives as primitives

Effects = frozenset
no_effects: frozenset[Effect] = frozenset()
array_types = {np.ndarray, np.generic, Array}


class _AnyPrimitive(type):
    """The primitives that maxjax comes with are instances too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _ir_primitive.Primitive)


class Primitive(CustomPrimitive, metaclass=_AnyPrimitive):
    """A custom operation, which transformations handle through the rules it is given.

    ``def_abstract_eval`` gives the type of its result, and ``def_impl``, a function of NumPy
    arrays, computes it. Derivatives and batching: ``maxjax.interpreters.ad`` and
    ``batching``. A kernel: ``maxjax.extend.mojo``. ``examples/custom_op.py`` has all of them.

    Args:
      name: its name in jaxprs.

    Raises:
      ValueError: it is the name of a primitive that contains jaxprs, such as "scan".

    >>> double_p = jax.extend.core.Primitive("double")
    >>> impl = double_p.def_impl(lambda x: 2 * x)
    >>> rule = double_p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
    >>> jax.interpreters.ad.deflinear2(double_p, lambda cotangent, x: [double_p.bind(cotangent)])
    >>> jax.jit(jax.grad(lambda x: double_p.bind(x) ** 2))(3.0)
    Array(24., dtype=float32)
    """


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Callable[..., list[Any]]:
    """A jaxpr as a function of arrays that returns the list of its results.

    Args:
      args: its first arguments, if they are already known.

    >>> closed = jax.make_jaxpr(lambda x: 2 * x)(1.0)
    >>> jax.extend.core.jaxpr_as_fun(closed)(3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    count = len(closed_jaxpr.jaxpr.invars)

    def run(*rest: Any) -> list[Any]:
        given = (*args, *rest)
        if len(given) != count:
            raise ValueError(f"the jaxpr has {count} inputs, not {len(given)}")
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *operands_of(given))

    return run


def new_jaxpr_eqn(invars: Sequence[Any], outvars: Sequence[Var], primitive: Any,
                  params: dict[str, Any], effects: Any,
                  source_info: SourceLine | None = None, ctx: Any = None) -> JaxprEqn:
    """An equation; its effects are the primitive's, whatever ``effects`` says.

    >>> x, y = [jax.extend.core.Var(jax.core.ShapedArray((), jnp.float32)) for _ in range(2)]
    >>> sine = jax.extend.core.new_jaxpr_eqn([x], [y], lax.sin_p, {}, set())
    >>> jax.extend.core.Jaxpr([], [x], [y], [sine])
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    return JaxprEqn(primitive, invars, params, outvars, source_info)


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that returns a new variable of a type.

    >>> new = jax.extend.core.gensym()
    >>> aval = jax.core.ShapedArray((3,), jnp.float32)
    >>> new(aval) == new(aval), new(aval).aval
    (False, ShapedArray(float32[3]))
    """
    return Var


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Checks that a jaxpr is well formed.

    Raises:
      JaxprTypeError: it is not; names the equation.

    >>> jax.extend.core.check_jaxpr(jax.make_jaxpr(jnp.sin)(1.0).jaxpr)
    """
    try:
        _check.check_jaxpr(jaxpr)
    except InternalError as error:
        raise JaxprTypeError(error.problem) from None


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs in the parameters of a jaxpr's equations.

    >>> len(list(jax.extend.core.subjaxprs(jax.make_jaxpr(jax.jit(jnp.sin))(1.0).jaxpr)))
    1
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs among an equation's parameters.

    >>> eqn, = jax.make_jaxpr(jax.jit(jnp.sin))(1.0).eqns
    >>> list(jax.extend.core.jaxprs_in_params(eqn.params))
    [{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }]
    """
    for inner in _subjaxprs(params):
        yield inner.jaxpr


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one element along an axis.

    >>> jax.extend.core.mapped_aval(3, 0, jax.core.ShapedArray((3, 2), jnp.float32))
    ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise AssertionError(f"axis {axis} of {aval.str_short()} has not the size {size}")
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1:]))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray,
                  explicit_mesh_axis: Any = None) -> ShapedArray:
    """The type of a number of elements along an axis.

    Raises:
      NotImplementedError: ``explicit_mesh_axis`` is given; shardings are not tracked here.

    >>> jax.extend.core.unmapped_aval(3, 0, jax.core.ShapedArray((2,), jnp.float32))
    ShapedArray(float32[3,2])
    """
    if explicit_mesh_axis is not None:
        raise NotImplementedError("unmapped_aval does not take explicit_mesh_axis")
    if axis is None:
        return aval
    if not 0 <= axis <= len(aval.shape):
        raise AssertionError(f"no axis {axis} can be put into {aval.str_short()}")
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents of values of a dtype: float0 for integers.

    >>> jax.extend.core.primal_dtype_to_tangent_dtype(jnp.dtype("int32")) == jax.float0
    True
    """
    return dtypes.tangent_dtype(dtypes.as_dtype(primal_dtype))


def valid_jaxtype(x: Any) -> bool:
    """Whether something is an array or a number.

    >>> jax.extend.core.valid_jaxtype(1.0), jax.extend.core.valid_jaxtype("text")
    (True, False)
    """
    try:
        installed.runtime.operand(x)
    except TypeError:
        return False
    return True


class DebugInfo(NamedTuple):
    """What a function is traced for, its location, and the names of its arguments.

    >>> jax.api_util.debug_info("jit", min, (1, 2), {}).traced_for
    'jit'
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None
    result_paths: Any


# --- the state of tracing -------------------------------------------------------------------------

def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """``force(val)``, or ``val`` itself if ``force`` is None, for a value that is not traced.

    Args:
      context: additional text for an error.

    Raises:
      ConcretizationTypeError: the value is traced.

    >>> jax.extend.core.concrete_or_error(int, jnp.int32(3))
    3
    """
    if isinstance(val, Tracer):
        known = val.concrete()
        if known is None:
            raise ConcretizationTypeError(val, context)
        val = known
    return val if force is None else force(val)


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """A state to compare with ``==``: equal under the same transformations.

    >>> state = jax.extend.core.get_opaque_trace_state()
    >>> state == jax.extend.core.get_opaque_trace_state()
    True
    """
    return OpaqueTraceState(id(context.trace), context.axis_env)


class OpaqueTraceState(NamedTuple):
    """The current trace and the named axes around it."""

    trace: int
    axes: tuple[Any, ...]


def find_top_trace(_: Any) -> Trace:
    """The trace that operations go to.

    >>> isinstance(jax.extend.core.find_top_trace([1.0]), jax.core.Trace)
    True
    """
    return context.trace


class TraceTag:
    """What the tracers of one use of a trace have in common, for traces of your own
    (``jax.core.Trace``). They are told apart by ``is``: all are equal.

    >>> jax.extend.core.TraceTag() == jax.extend.core.TraceTag()
    True
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceTag)

    def __hash__(self) -> int:
        return hash(TraceTag)


@context_manager
def take_current_trace() -> Iterator[Trace]:
    """The previous trace; inside the context, operations are evaluated at once.

    >>> with jax.extend.core.take_current_trace() as trace:
    ...     isinstance(trace, jax.core.Trace)
    True
    """
    trace = context.trace
    with current_trace(installed.runtime):
        yield trace


@context_manager
def set_current_trace(trace: Trace, check_leaks: bool = False) -> Iterator[None]:
    """Operations inside go to this trace.

    >>> with jax.extend.core.take_current_trace() as trace:
    ...     with jax.extend.core.set_current_trace(trace):
    ...         int(jnp.int32(1) + 1)
    2
    """
    with current_trace(trace):
        yield


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a function is being traced to a jaxpr.

    >>> jax.extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE()
    False
    """
    return is_staging()


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is being mapped.

    >>> jax.extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE()
    False
    """
    return any(isinstance(trace, BatchTrace) for trace in enclosing_traces())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the enclosing mapped axes.

    >>> jax.extend.core.unsafe_get_axis_names_DO_NOT_USE()
    []
    """
    return [name for name, _ in context.axis_env]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether there are any.

    >>> jax.extend.core.nonempty_axis_env_DO_NOT_USE()
    False
    """
    return bool(context.axis_env)


explain_missing_names(__name__)
