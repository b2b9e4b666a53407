"""Primitives: one object holds everything that maxjax knows about an operation.

The rules, all optional but the first two, and their contracts (``_ir/rule_protocols.pyi`` has
their signatures for type checkers):

``abstract(*avals, **params)``
    The type of the result (a tuple of types where ``multiple_results``).
``evaluate(*arrays, **params)``
    The NumPy rule: the reference that every lowering is checked against. Arrays are NumPy's
    (or NumPy scalars, for rank 0); keys are arrays of their physical dtype.
``specialize(in_avals, params, out_avals)``
    A faster callable of the arrays for given types; ``evaluate`` with its params bound if absent.
``lower(ctx, *values, **params)``
    The lowering, through what the backend's context offers; None means a host step, and then
    ``host_reason`` says why. With both, the graph backend alone leaves it to the host.
``jvp(primals, tangents, **params)``
    (result, tangent); a tangent of None is zero.
``linearize(trace, primals, tangents, **params)``
    For higher-order primitives, which must be split into a known and a linear part.
``partly(trace, primitive, args, **params)``
    The results of an application of which only some operands are known: known results under the
    trace's parent, the others recorded. If absent, none is known.
``transpose(cotangent, *operands, **params)``
    One cotangent (None: zero) for each operand; operands to transpose are ``Linear`` marks.
``zero_is_cotangent``
    True where the transposition may make something of cotangents that are all zero: it is asked,
    where another primitive's would be left out.
``batch(size, operands, axes, **params)``
    (result, its batch axis); an axis of None is not batched.
``axis_names(**params)``
    The named axes that an application communicates over (``maxjax._ir.axes``).
``batch_named(name, size, operands, axes, **params)``
    ``batch`` for an axis whose name is one of those; there may be no batched operand.
``varies(axes, **params)``
    Over which manual mesh axes the results vary where the operands vary over ``axes``; the same
    if absent.
``factors(in_avals, out_avals, **params)``
    The sharding rule (``FactorRule`` of ``_primitives/rules.py``).
``shard_params(params, in_avals, in_shapes, out_shape)``
    The parameters on one shard, of those shapes, where they hold sizes.
``on_shard``
    What a shard computes by itself though dimensions do not correspond (``OnShard`` of
    ``_primitives/rules.py``).
``linearity``
    In which operands it is linear (``maxjax._ir.linearity``); None where it is not, or where the
    jaxprs inside decide.
``passes_unreduced``
    The operands (a slice) that JAX lets be unreduced along mesh axes in types, all along the
    same ones; the results then are too. None: no operand may be.
``split_alike``
    The operands (a slice) that must lie alike along the Explicit axes of a mesh; None: their types
    decide. Under ``vmap`` those that are not mapped are repeated, and split like the mapped axis.
``accepts``, ``same_dtypes``
    The dtypes that operands may have, and those of them (a slice; None: all) that share one.
    Operations check it of their operands, ``check_operands`` in programs that were read.
``contract``
    What an application must be given (``maxjax._ir.contract``): operations see to it, and
    ``check_operands`` asks it of programs that were read. None: none of those may hold one.
``bodies(*avals, **params)``
    Of a higher-order primitive: each of its jaxprs, with the types of the operands that it is
    called with and those that its results must have (None: any). For loops and branches
    ``control_flow`` says it.
``joins_scalars``
    True of elementwise operations in which a scalar operand may stand for an array filled with it.
``keeps_zero``
    True of functions of one operand that are applied to a sparse array's data alone: they give zero
    for zero (or JAX does as if).
``may_give_nan``
    True where ``checkify``'s checks of floats look at the results, as JAX's do.
``on_mesh``
    True where ``abstract`` itself gives the mesh part of the types of results. Otherwise it gets
    plain types, and ``mesh_rules`` add to its results.
``calls``
    Of a primitive that only calls a jaxpr, whose equations replace the call: the parameter that
    holds it, or a function that makes it from the parameters. ``guarded(eqn)`` says which operands
    of an inlined call stand behind a barrier, so that a recomputation is not merged with the
    original.
``inlined_late``
    True of calls that compute less where not all of their results are used: they are inlined after
    the others, and after dead code is eliminated.
``expand(in_avals, params)``
    The jaxpr of a primitive that stands for several operations until it is compiled.
``control_flow``
    Of loops and branches: what their operands are, and how jaxprs and results correspond to them
    (``ControlFlow`` of ``maxjax._ir.control_flow``).
``dead_code(eqn, used)``
    Of primitives with jaxprs inside: an equation of the used results (and others that they need),
    with only the operands that it needs.
``kernels``
    The elementwise kernels of our own that compute it (``Kernel`` of ``_primitives/kernels.py``).
``cheap``
    True where an element takes a few instructions: recomputing a value costs less than storing it.
``expression(avals, operands)``
    The application as a Python expression for tier 0, where that is cheaper than a call of a NumPy
    function; None where the NumPy rule is called. ``avals`` are of operands and results.
``known(params)``
    The value of a primitive without operands, once the sizes in its parameters are known.
``shown(params)``, ``names_inputs``
    The parameters as a printed jaxpr shows them; whether the jaxpr among them is printed with the
    names of the operands and results.
``flops(in_avals, out_avals, **params)``
    The floating-point operations of an application; absent: one for each element of the results.
``xla_cost``, ``roofline``
    What XLA counts for an application, and JAX's roofline, which counts nothing if absent
    (``maxjax._ir.costs``).
``effects(**params)``
    The ``Effect``s of an application, which is never dropped, merged with another or moved past
    one, even where there are none of them; None: it is like one without this rule.
``ordered_by_operands``
    True where each application takes a result of the one before it, and its last is a result of the
    program: passes need not know of its effects.
``placement(**params)``
    The sharding that the result of an application outside programs has, or one for each result; a
    device, or None, where nothing is said.
``eager(operands, **params)``
    What an application outside programs does at once, on arrays: NumPy values of the results.
``program(**params)``
    What an application outside programs runs: (a jaxpr of global values, the sharding of each
    result or None).

``takes_complex``
    The dtypes of complex values that ``lower`` takes as they lie in memory: parts become such
    values, or come of them, a routine of LAPACK is called, or elements are only moved. Other
    applications get parts (``_transforms/complex_parts.py``), or are the host's.

``stepwise``
    True where an application outside programs, of a jaxpr that puts values on devices, applies its
    equations one by one: within a program a device has no effect.

``calls_blas``
    True where NumPy calls BLAS, whose number of threads follows what else runs. It does not survive
    a fork during a call that uses them: forks wait for it.
``uses_one_thread(in_avals, out_avals, **params)``
    Whether BLAS uses no threads for operands of these types.

Parameters are hashable, compare by value and hold no floats: 0.0 equals -0.0, and 1 equals 1.0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import caches, threads
from maxjax._base.blas import blas_threads
from maxjax._base.errors import InternalError
from maxjax._ir import costs
from maxjax._ir.control_flow import ControlFlow
from maxjax._ir.dimensions import state as dimensions
from maxjax._ir.linearity import Linearity
from maxjax._ir.trace import Trace, context, current_trace
from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    import numpy as np

    from maxjax._ir import rule_protocols as rules
    from maxjax._ir.contract import Contract
    from maxjax._ir.jaxpr import ClosedJaxpr
    from maxjax._ir.typing import HostValue, Params, Value
    from maxjax._primitives.kernels import Kernel
    from maxjax._primitives.rules import OnShard

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


class Primitive:
    """See the module's description.

    Attributes:
      call_primitive: libraries that interpret jaxprs ask it: whether the parameter ``call_jaxpr``
        is a function to go into.
    """

    call_primitive = False

    def __init__(self, name: str, *,
                 abstract: rules.Abstract,
                 evaluate: rules.Evaluate | None = None,
                 specialize: rules.Specialize | None = None,
                 lower: rules.Lower | None = None,
                 host_reason: str | None = None,
                 host_condition: rules.HostCondition | None = None,
                 jvp: rules.Jvp | None = None,
                 linearize: rules.Linearize | None = None,
                 partly: rules.Partly | None = None,
                 transpose: rules.Transpose | None = None,
                 zero_is_cotangent: bool = False,
                 batch: rules.Batch | None = None,
                 axis_names: rules.AxisNames | None = None,
                 batch_named: rules.BatchNamed | None = None,
                 varies: rules.Varies | None = None,
                 factors: rules.Factors | None = None,
                 shard_params: rules.ShardParams | None = None,
                 on_shard: OnShard | None = None,
                 effects: rules.Effects | None = None,
                 ordered_by_operands: bool = False,
                 placement: rules.Placement | None = None,
                 eager: rules.Eager | None = None,
                 program: rules.Program | None = None,
                 stepwise: bool = False,
                 flops: rules.Flops | None = None,
                 xla_cost: costs.XlaCost = costs.MOST,
                 roofline: costs.Roofline | None = None,
                 accepts: rules.Accepts | None = None,
                 multiple_results: bool = False,
                 no_derivative: str | None = None,
                 cacheable: bool = True,
                 calls_blas: bool = False,
                 uses_one_thread: rules.UsesOneThread | None = None,
                 joins_scalars: bool = False,
                 keeps_zero: bool = False,
                 may_give_nan: bool = False,
                 on_mesh: bool = False,
                 linearity: Linearity | None = None,
                 passes_unreduced: slice | None = None,
                 split_alike: slice | None = None,
                 calls: str | rules.Called | None = None,
                 guarded: rules.Guarded | None = None,
                 inlined_late: bool = False,
                 expand: rules.Expand | None = None,
                 control_flow: ControlFlow | None = None,
                 dead_code: rules.DeadCode | None = None,
                 expression: rules.Expression | None = None,
                 known: rules.Known | None = None,
                 shown: rules.Shown | None = None,
                 names_inputs: bool = False,
                 same_dtypes: slice | None = None,
                 bodies: rules.Bodies | None = None,
                 contract: Contract | None = None,
                 kernels: tuple[Kernel, ...] = (),
                 cheap: bool = False,
                 takes_complex: Collection[np.dtype] = (),
                 registered: bool = True):
        if registered and name in registry:
            raise InternalError(f"two primitives are called {name!r}")
        self.name = name
        self.abstract = abstract
        self.evaluate = evaluate
        self.specialize = specialize
        self.lower = lower
        self.host_reason = host_reason
        # ``(*avals, **params)`` -> why this application runs on the host, or None.
        self.host_condition = host_condition
        self.takes_complex = takes_complex
        self.jvp = jvp
        self.linearize = linearize
        self.partly = partly
        self.transpose = transpose
        self.zero_is_cotangent = zero_is_cotangent
        self.batch = batch
        self.axis_names = axis_names
        self.batch_named = batch_named
        self.varies = varies
        self.factors = factors
        self.shard_params = shard_params
        self.on_shard = on_shard
        self.effects = effects
        self.ordered_by_operands = ordered_by_operands
        self.placement = placement
        self.eager = eager
        self.program = program
        self.stepwise = stepwise
        self.flops = flops
        self.xla_cost = xla_cost
        self.roofline = roofline
        self.calls_blas = calls_blas
        self.uses_one_thread = uses_one_thread
        self.accepts = accepts                # dtypes of the operands, for the operations to check
        self.multiple_results = multiple_results
        self.no_derivative = no_derivative    # why there is no jvp, as the error says it
        self.cacheable = cacheable            # False where params hold jaxprs
        self.joins_scalars = joins_scalars
        self.keeps_zero = keeps_zero
        self.may_give_nan = may_give_nan
        self.on_mesh = on_mesh or not cacheable
        self.linearity = linearity
        self.passes_unreduced = passes_unreduced
        self.split_alike = split_alike
        self.calls = calls
        self.guarded = guarded
        self.inlined_late = inlined_late
        self.expand = expand
        self.control_flow = control_flow
        self.dead_code = dead_code
        self.expression = expression
        self.known = known
        self.shown = shown
        # True of classes of users' that have a batching rule: it is asked even where no operand is
        # mapped, and knows how values of types above arrays are.
        self.rule_for_all = False
        # The name that a printed jaxpr shows, by the parameters; None: the primitive's.
        self.shown_name: Callable[[Params], str] | None = None
        self.names_inputs = names_inputs
        self.same_dtypes = same_dtypes
        self.bodies = bodies
        self.contract = contract
        self.kernels = kernels
        self.cheap = cheap
        # Of a user's primitive that is composed of others: their jaxpr, by types and parameters.
        self.composed: Callable[..., ClosedJaxpr] | None = None
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
        if self.calls is None:
            return None
        return params[self.calls] if isinstance(self.calls, str) else self.calls(params)

    def flops_of(self, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
                 params: Params) -> float:
        """The floating-point operations of an application, those of jaxprs inside left out: as many
        as results have elements, unless the primitive says otherwise."""
        if self.flops is not None:
            return self.flops(in_avals, out_avals, **params)
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

    __slots__ = ("in_avals", "out_aval", "out_avals", "params", "primitive", "run", "weight")

    def __init__(self, primitive: Primitive, in_avals: tuple[ShapedArray, ...],
                 params: Params):
        self.primitive = primitive
        self.in_avals = in_avals
        self.params = params
        self.out_avals = abstract_results(primitive, in_avals, params)
        self.out_aval = None if primitive.multiple_results else self.out_avals[0]
        self.run = _runner(primitive, tuple([aval.off_mesh() for aval in in_avals]), params,
                           self.out_avals)
        # Bytes of the results: what a pending graph holds when it has run.
        self.weight = sum([aval.nbytes for aval in self.out_avals])


# BLAS uses no threads where the product of the operands' sizes is not above this.
_SMALL_PRODUCT = 1 << 13


def _runner(primitive: Primitive, in_avals: tuple[ShapedArray, ...], params: Params,
            out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    run = _own_runner(primitive, in_avals, params, out_avals)
    if run is None or not primitive.calls_blas:
        return run
    sizes = [aval.size for aval in in_avals]
    if len(sizes) > 1 and all(type(size) is int for size in sizes) and (
            math.prod(sizes) <= _SMALL_PRODUCT or primitive.uses_one_thread is not None
            and primitive.uses_one_thread(in_avals, out_avals, **params)):
        return run

    def run_with_blas(*arrays: np.ndarray) -> HostValue | Sequence[HostValue]:
        blas_threads.look()
        with threads.unforked:
            return run(*arrays)
    return run_with_blas


def _own_runner(primitive: Primitive, in_avals: tuple[ShapedArray, ...], params: Params,
                out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    if primitive.specialize is not None:
        run = primitive.specialize(in_avals, params, out_avals)
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
    if not dimensions.open_scopes:
        return op_spec(primitive, in_avals, params).out_avals
    # Symbolic sizes have types and nothing that runs.
    return abstract_results(primitive, in_avals, params)


def abstract_results(primitive: Primitive, in_avals: tuple[ShapedArray, ...],
                     params: Params) -> tuple[ShapedArray, ...]:
    """The types of the results, with their mesh part."""
    if primitive.on_mesh or all(aval.plain for aval in in_avals):
        out: Any = primitive.abstract(*in_avals, **params)
        return tuple(out) if primitive.multiple_results else (out,)
    out = primitive.abstract(*[aval.off_mesh() for aval in in_avals], **params)
    results = tuple(out) if primitive.multiple_results else (out,)
    results = mesh_rules.varying(primitive, in_avals, params, results)
    return mesh_rules.sharding(primitive, in_avals, params, results)
