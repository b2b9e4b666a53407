"""Primitives: one object holds everything that maxjax knows about an operation.

The rules that most primitives have stand on the primitive itself, all optional but the first:

``abstract(*avals, **params)``
    The type of the result (a tuple of types where ``multiple_results``).
``evaluate(*arrays, **params)``
    The NumPy rule: the reference that every lowering is checked against. Arrays are NumPy's
    (or NumPy scalars, for rank 0); keys are arrays of their physical dtype.
``lower(ctx, *values, **params)``
    The lowering, through what the backend's context offers (``_max/lowering.py``); None means a
    host step, and then ``host`` gives the reason.
``jvp(primals, tangents, **params)``
    (result, tangent); a tangent of None is zero.
``transpose(cotangent, *operands, **params)``
    One cotangent (None: zero) for each operand; operands to transpose are ``Linear`` marks.
``batch(size, operands, axes, **params)``
    (result, its batch axis); an axis of None is not batched.
``factors(in_avals, out_avals, **params)``
    The sharding rule (``FactorRule`` of ``_primitives/rules.py``).
``linearity``
    In which operands it is linear (``maxjax._ir.linearity``); None where it is not, or where the
    jaxprs inside decide.
``contract``
    What an application must be given (``maxjax._ir.contract``): operations see to it, and
    ``check_operands`` asks it of programs that were read. None: none of those may hold one.

What fewer have is in groups, by who reads it: ``values``, ``host``, ``compiled``, ``derivative``,
``communication``, ``sharded``, ``effects``, ``outside``, ``inner``, ``printed`` and ``cost``
(``_ir/rule_groups.py``, ``_ir/costs.py``). ``_ir/rule_protocols.pyi`` has the signatures for type
checkers.

The rules stand by themselves because all passes read them, and because JAX's tables of rules
(``interpreters.ad``, ``batching``) set them one by one. ``communication`` and ``effects`` are None
where there is none, which is what most passes ask.

Parameters are hashable, compare by value and hold no floats: 0.0 equals -0.0, and 1 equals 1.0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import caches, threads
from maxjax._base.blas import blas_threads
from maxjax._base.errors import InternalError
from maxjax._ir.costs import MOST, Cost
from maxjax._ir.linearity import Linearity
from maxjax._ir.rule_groups import (
    Communication,
    Compiled,
    Derivative,
    Effectful,
    Host,
    Inner,
    Outside,
    Printed,
    Sharded,
    Values,
)
from maxjax._ir.size_scopes import state as dimensions
from maxjax._ir.trace import Trace, context, current_trace
from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    import numpy as np

    from maxjax._ir import rule_protocols as rules
    from maxjax._ir.contract import Contract
    from maxjax._ir.jaxpr import ClosedJaxpr
    from maxjax._ir.typing import HostValue, Params, Value

registry: dict[str, Primitive] = {}

# What a mesh adds to the types of results, from what it adds to those of operands:
# ``(primitive, in_avals, params, out_avals) -> out_avals``. Asked where a type is not plain.
MeshTypes = Callable[["Primitive", tuple[ShapedArray, ...], dict[str, Any],
                      tuple[ShapedArray, ...]], tuple[ShapedArray, ...]]


class _MeshRules:
    """The rules for both things that a mesh adds to types; the modules that define them set them.

    Attributes:
      varying: over which manual axes results vary.
      sharding: how they lie over explicit axes, and what is unreduced.
      as_cotangent: a value with the sharding that a cotangent has of a value of the given type.
    """

    __slots__ = ("as_cotangent", "sharding", "varying")
    varying: MeshTypes
    sharding: MeshTypes
    as_cotangent: Callable[[Any, ShapedArray], Any]


mesh_rules = _MeshRules()


# Groups of rules in which nothing is set, shared by the primitives without such rules.
_VALUES, _HOST, _COMPILED, _DERIVATIVE = Values(), Host(), Compiled(), Derivative()
_SHARDED, _OUTSIDE, _INNER = Sharded(), Outside(), Inner()
_PRINTED = Printed()


class Primitive:
    """See the module's description.

    Attributes:
      call_primitive: libraries that interpret jaxprs ask it: whether the parameter ``call_jaxpr``
        is a function to go into.
    """

    call_primitive = False

    # Only users' primitives set these. ``rule_for_all``: the batching rule is called even where no
    # operand is mapped, and handles values of types above arrays. ``composed``: gives the jaxpr
    # that the primitive stands for, by types and parameters.
    rule_for_all = False
    composed: Callable[..., ClosedJaxpr] | None = None

    def __init__(self, name: str, *,
                 abstract: rules.Abstract,
                 evaluate: rules.Evaluate | None = None,
                 lower: rules.Lower | None = None,
                 jvp: rules.Jvp | None = None,
                 transpose: rules.Transpose | None = None,
                 batch: rules.Batch | None = None,
                 factors: rules.Factors | None = None,
                 linearity: Linearity | None = None,
                 contract: Contract | None = None,
                 multiple_results: bool = False,
                 cacheable: bool = True,
                 values: Values = _VALUES,
                 host: Host = _HOST,
                 compiled: Compiled = _COMPILED,
                 derivative: Derivative = _DERIVATIVE,
                 communication: Communication | None = None,
                 sharded: Sharded = _SHARDED,
                 effects: Effectful | None = None,
                 outside: Outside = _OUTSIDE,
                 inner: Inner = _INNER,
                 printed: Printed = _PRINTED,
                 cost: Cost = MOST,
                 registered: bool = True):
        if registered and name in registry:
            raise InternalError(f"two primitives are called {name!r}")
        self.name = name
        self.abstract = abstract
        self.evaluate = evaluate
        self.lower = lower
        self.jvp = jvp
        self.transpose = transpose
        self.batch = batch
        self.factors = factors
        self.linearity = linearity
        self.contract = contract
        self.multiple_results = multiple_results
        self.cacheable = cacheable            # False where params hold jaxprs
        self.values = values
        self.host = host
        self.compiled = compiled
        self.derivative = derivative
        self.communication = communication
        self.sharded = sharded
        self.effects = effects
        self.outside = outside
        self.inner = inner
        self.printed = printed
        self.cost = cost
        self.is_own = not registered          # a user's; only the Mojo backend lowers it
        if registered:
            registry[name] = self

    def bind(self, *args: Value, **params: object) -> Any:
        """Applies the primitive under the current trace; operands are trusted."""
        return context.trace.apply(self, args, params)

    def bind_with_trace(self, trace: Trace, args: Sequence[Value], *rest: Params) -> Any:
        """Applies the primitive under a trace; after ``args`` come their types, if the caller
        gives them, and the parameters."""
        with current_trace(trace):
            return self.bind(*args, **rest[-1])

    def called(self, params: Params) -> ClosedJaxpr | None:
        """The jaxpr that an application only calls, None if it does more."""
        calls = self.inner.calls
        if calls is None:
            return None
        return params[calls] if isinstance(calls, str) else calls(params)

    def scope(self, params: Params) -> str:
        """What an application is called among the scopes of what it calls."""
        scope = self.inner.scope
        if scope is None:
            return self.name
        return scope if isinstance(scope, str) else scope(params)

    def flops_of(self, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
                 params: Params) -> float:
        """The floating-point operations of an application, those of jaxprs inside left out: as many
        as results have elements, unless the primitive says otherwise."""
        if self.cost.flops is not None:
            return self.cost.flops(in_avals, out_avals, **params)
        if self.linearity is not None and self.linearity.moves:
            return 0.0
        return float(sum([aval.size for aval in out_avals]))

    def get_bind_params(self, params: Params) -> Params:
        """The parameters of an equation as ``bind`` takes them."""
        return dict(params)

    def __repr__(self) -> str:
        return self.name

    def without_rule(self) -> Exception:
        """What is wrong where a program would run it, and it has no NumPy rule."""
        return InternalError(f"{self.name} has no NumPy rule")


class OpSpec:
    """A primitive at given operand types and parameters: everything that is computed only once."""

    __slots__ = ("alone", "in_avals", "out_aval", "out_avals", "params", "primitive", "run",
                 "weight")

    def __init__(self, primitive: Primitive, in_avals: tuple[ShapedArray, ...],
                 params: Params):
        self.primitive = primitive
        self.in_avals = in_avals
        self.params = params
        self.out_avals = abstract_results(primitive, in_avals, params)
        self.out_aval = None if primitive.multiple_results else self.out_avals[0]
        plain = tuple([aval.off_mesh() for aval in in_avals])
        self.run = _runner(primitive, plain, params, self.out_avals)
        alone = primitive.host.alone
        # What runs it outside a program.
        self.alone = (None if alone is None else alone(plain, params, self.out_avals)) or self.run
        # Bytes of the results: what a pending graph holds when it has run.
        self.weight = sum([aval.nbytes for aval in self.out_avals])


# BLAS uses no threads where the product of the operands' sizes is not above this.
_SMALL_PRODUCT = 1 << 13


def _runner(primitive: Primitive, in_avals: tuple[ShapedArray, ...], params: Params,
            out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    run = _own_runner(primitive, in_avals, params, out_avals)
    host = primitive.host
    if run is None or not host.calls_blas:
        return run
    sizes = [aval.size for aval in in_avals]
    if len(sizes) > 1 and all(type(size) is int for size in sizes) and (
            math.prod(sizes) <= _SMALL_PRODUCT or host.uses_one_thread is not None
            and host.uses_one_thread(in_avals, out_avals, **params)):
        return run

    def run_with_blas(*arrays: np.ndarray) -> HostValue | Sequence[HostValue]:
        blas_threads.look()
        with threads.unforked:
            return run(*arrays)
    return run_with_blas


def _own_runner(primitive: Primitive, in_avals: tuple[ShapedArray, ...], params: Params,
                out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    if primitive.host.specialize is not None:
        run = primitive.host.specialize(in_avals, params, out_avals)
        if run is not None:
            return run
    if primitive.evaluate is None:
        return None
    return functools.partial(primitive.evaluate, **params) if params else primitive.evaluate


_specs: dict[Any, OpSpec] = caches.cache()
_SPEC_LIMIT = 50_000


def forget_specs() -> None:
    """After a rule has changed."""
    _specs.clear()


def op_spec(primitive: Primitive, in_avals: tuple[ShapedArray, ...],
            params: Params) -> OpSpec:
    """The spec of an application; equal applications share one object.

    Dropping old specs is safe: a comparison by identity then only misses a hit.
    """
    if not primitive.cacheable:
        return OpSpec(primitive, in_avals, params)
    key = (primitive, in_avals, tuple(params.items())) if params else (primitive, in_avals)
    try:
        spec = _specs.get(key)
    except TypeError:
        _check_hashable(primitive, params)
        raise
    if spec is None:
        if len(_specs) >= _SPEC_LIMIT:
            _specs.clear()
        spec = _specs[key] = OpSpec(primitive, in_avals, params)
    return spec


def _check_hashable(primitive: Primitive, params: Params) -> None:
    """Raises TypeError if a parameter cannot be part of a key."""
    for name, value in params.items():
        try:
            hash(value)
        except TypeError as error:
            raise TypeError(
                "As of JAX v0.7, parameters to jaxpr equations must have __hash__ and __eq__ "
                f"methods. In a call to primitive {primitive.name}, the value of parameter {name} "
                f"was not hashable: {value}") from error


def result_types(primitive: Primitive, in_avals: tuple[ShapedArray, ...],
                 params: Params) -> tuple[ShapedArray, ...]:
    """The types of the results of an application that is only staged."""
    if primitive.cacheable and not dimensions.open_scopes:
        return op_spec(primitive, in_avals, params).out_avals
    # A call is like no other, and symbolic sizes have types and nothing that runs.
    return abstract_results(primitive, in_avals, params)


def abstract_results(primitive: Primitive, in_avals: tuple[ShapedArray, ...],
                     params: Params) -> tuple[ShapedArray, ...]:
    """The types of the results, with their mesh part."""
    if primitive.sharded.on_mesh or not primitive.cacheable or all(aval.plain for aval in in_avals):
        out: Any = primitive.abstract(*in_avals, **params)
        return tuple(out) if primitive.multiple_results else (out,)
    out = primitive.abstract(*[aval.off_mesh() for aval in in_avals], **params)
    results = tuple(out) if primitive.multiple_results else (out,)
    results = mesh_rules.varying(primitive, in_avals, params, results)
    return mesh_rules.sharding(primitive, in_avals, params, results)
