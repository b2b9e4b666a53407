"""Primitives defined by a class: ``jax.experimental.hijax.HiPrim``, on arrays.

A call outside programs and transformations is ``expand``, as it stands. In a program it is one
equation, whose parameter is the primitive.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Sequence
from typing import Any, NoReturn

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.calls import call_primitive
from maxjax._higher_order.constants import hoist_tracers
from maxjax._higher_order.custom_primitive import CustomPrimitive, Zero
from maxjax._higher_order.hi_accums import GradAccum, NullAccum, ValAccum
from maxjax._higher_order.hi_rules import AxisData, is_zero, leaves_of, transposes_lin
from maxjax._higher_order.hi_types import Aval, HiValue, hooks
from maxjax._higher_order.jit import jit_p
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Effectful, Host, Outside, Printed
from maxjax._ir.runtime import installed
from maxjax._ir.staging import StagingTrace, trace_to_jaxpr
from maxjax._ir.trace import Array, Trace, Tracer, all_as_given, aval_of, context, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Value
from maxjax._primitives.rules import Linear, call_factors
from maxjax._transforms.autodiff import operands_of
from maxjax._transforms.batching import BatchTrace
from maxjax._transforms.flags import flags_for
from maxjax._transforms.jvp import instantiate

# --- the class ------------------------------------------------------------------------------------

_LIN = ("`lin` and `linearized`, or derive them from its `jvp` rule by setting `lin, linearized = "
        "linearize_from_jvp`")


class HiPrim:
    """The base of primitives with rules for the transformations that they are used under.

    A subclass sets, before it calls ``super().__init__()``: ``in_avals``, a tuple with the type of
    each argument, or a pytree of types; ``out_aval``, that of the result; and ``params``, a
    dictionary of hashable values, which become attributes. Calling an instance applies it.

    >>> class Double(jax.experimental.hijax.HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return 2 * x
    ...     def vjp_fwd(self, nonzeros, x):
    ...         return self(x), None
    ...     def vjp_bwd_retval(self, residuals, cotangent):
    ...         return (10 * cotangent,)
    >>> jax.grad(lambda x: Double(jax.typeof(x))(x))(1.)
    Array(10., dtype=float32, weak_type=True)
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]
    effects: frozenset[Any] = frozenset()
    skip_linearization_on_zero_tangents = False
    in_tree: Any
    out_tree: Any

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        self.in_avals_flat, in_tree = pytree.flatten(self.in_avals)
        self.out_avals_flat, out_tree = pytree.flatten(self.out_aval)
        self._in_spec, self._out_spec = in_tree, out_tree
        self.in_tree, self.out_tree = PyTreeDef(in_tree), PyTreeDef(out_tree)
        # Whether an argument or the result is of a type above arrays.
        self._is_high = False
        for aval in (*self.in_avals_flat, *self.out_avals_flat):
            if not isinstance(aval, ShapedArray):
                self._is_high = True
        self.__dict__.update(self.params)
        self._traced: dict[Any, ClosedJaxpr] = {}
        self.check(*self.in_avals)

    # --- what subclasses define ---
    def expand(self, *args: PyTree) -> Any:
        """What the primitive computes."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: PyTree, /, *args: PyTree) -> Any:
        """A tuple: the result, and what ``vjp_bwd`` gets; then, if the rule has more to say, which
        results are differentiated, and structured residuals, an argument of ``vjp_bwd`` of their
        own. ``nzs_in`` says which arguments are differentiated."""
        raise NotImplementedError(
            f"for grad support, subclass {type(self)} must implement `vjp_fwd`, or derive its "
            "reverse-mode rules from its jvp or lin rules by setting `vjp_fwd, vjp_bwd_retval = "
            "vjp_from_jvp` (or `= vjp_from_lin`)")

    def vjp_bwd(self, res: PyTree, outgrad: PyTree, /, *arg_accums: PyTree) -> Any:
        """Adds the cotangent of each argument to its accumulator."""
        accums, tree = pytree.flatten(arg_accums)
        found = PyTreeDef(tree).flatten_up_to(self.vjp_bwd_retval(res, outgrad))
        for accum, cotangent in zip(accums, found, strict=True):
            if isinstance(accum, GradAccum):
                accum.accum(cotangent)

    def vjp_bwd_retval(self, res: PyTree, outgrad: PyTree, /) -> Any:
        """A tuple with the cotangent of each argument; None is zero."""
        raise NotImplementedError(
            f"for grad support, subclass {type(self)} must implement `vjp_bwd` or "
            "`vjp_bwd_retval`, or derive its reverse-mode rules by setting `vjp_fwd, "
            "vjp_bwd_retval = vjp_from_jvp` (or `= vjp_from_lin`)")

    def jvp(self, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]) -> Any:
        """The result and its tangent; tangents may be ``Zero``."""
        self._missing("jvp", "`jvp`")

    def lin(self, nzs_in: PyTree, *primals: PyTree) -> Any:
        """Like ``vjp_fwd``, for ``linearized``."""
        self._missing("linearize", _LIN)

    def linearized(self, residuals: PyTree, *tangents: PyTree) -> Any:
        """The tangent of the result; tangents may be ``Zero``."""
        self._missing("linearize", _LIN)

    def transpose(self, out_ct: PyTree, *maybe_accums: PyTree) -> Any:
        """Adds the cotangents of the arguments that the primitive is linear in to the accumulators
        that stand in their places."""
        self._missing("transpose", "`transpose`")

    def batch(self, axis_data: AxisData, args: tuple[PyTree, ...], dims: tuple[PyTree, ...]) -> Any:
        """The result of batched arguments, and its batch dimensions."""
        self._missing("vmap", "`batch`")

    def dce(self, used_outs: PyTree, live_ins: PyTree) -> Any:
        """What is left where only some results are used: which arguments it takes, which results
        it gives, and the primitive of these; None for it: nothing."""
        if self.effects or any(pytree.leaves(used_outs)):
            return True, True, self
        return False, False, None

    def staging(self, trace: Trace, source_info: object, *args: PyTree) -> Any:
        """Records an application in a program, and gives its result.

        ``trace`` is what records it. ``source_info`` is None: where a program's operations come
        from, maxjax keeps by itself.
        """
        return self._applied(args)

    def check(self, *arg_tys: PyTree) -> None:
        """Raises where the types of arguments are not right."""

    def pp_params(self) -> dict[str, Any]:
        """The parameters that a printed jaxpr shows."""
        return {name: value for name, value in self.params.items() if not name.startswith("_")}

    def _missing(self, transformation: str, methods: str) -> NoReturn:
        raise NotImplementedError(
            f"for {transformation} support, subclass {type(self)} must implement {methods}")

    def _has(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(HiPrim, method)

    @property
    def shown_as(self) -> HiPrim:
        """What a printed jaxpr shows."""
        return self

    @property
    def _transposes_lin(self) -> bool:
        return transposes_lin(type(self))

    # --- application ---
    def __call__(self, *args: PyTree) -> Any:
        if isinstance(context.trace, StagingTrace) and self._has("staging"):
            return self.staging(context.trace, None, *args)
        return self._applied(args)

    def _applied(self, args: tuple[PyTree, ...]) -> Any:
        if self._is_high and not (context.trace is installed.runtime and not any(
                x.__class__ is HiValue
                for x in pytree.leaves(args, lambda x: x.__class__ is HiValue))):
            return hooks.apply(self, args)
        leaves = leaves_of(self._in_spec, args, f"the tuple of arguments of {self!r}")
        if context.trace is installed.runtime:
            return self.expand(*self._typed(args))
        if _is_evaluated() and not any(isinstance(leaf, Tracer) for leaf in leaves):
            # On values a rule of a derivative computes at once, and may branch on them.
            with current_trace(installed.runtime):
                return self.expand(*self._typed(args))
        operands = operands_of(leaves)
        for operand, aval in zip(operands, self.in_avals_flat, strict=True):
            found = aval_of(operand)
            if found.shape != aval.shape or found.dtype != aval.dtype:
                raise TypeError(f"{self!r} is declared for an argument of type {aval.str_short()}, "
                                f"and got one of type {found.str_short()}")
        return pytree.unflatten(self._out_spec, all_as_given(
            call_hi_primitive_p.bind(*operands, _prim=self)))

    @staticmethod
    def _typed(args: tuple[PyTree, ...]) -> tuple[Any, ...]:
        return tuple([dtypes.typed_number(arg) if arg.__class__ in dtypes.PYTHON_SCALARS else
                      pytree.map(dtypes.typed_number, arg) for arg in args])

    def __repr__(self) -> str:
        params = " ".join([f"{name}={value}" for name, value in _shown_params(self).items()])
        return f"{type(self).__name__}[{params}]" if params else type(self).__name__

    def _key(self) -> tuple[Any, ...]:
        return (type(self), self._in_spec, tuple(self.in_avals_flat), self._out_spec,
                tuple(self.out_avals_flat), tuple(self.params.items()), self.effects)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HiPrim) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _shown_params(prim: HiPrim) -> dict[str, Any]:
    """The parameters as a printed jaxpr shows them: functions by their names, types in short."""
    prim = prim.shown_as
    return {
        name: value.str_short(short_dtypes=True) if isinstance(value, ShapedArray)
        else value.__name__ if isinstance(value, (types.FunctionType, functools.partial))
        and hasattr(value, "__name__") else value
        for name, value in prim.pp_params().items()}


def _is_evaluated() -> bool:
    """Whether operations that no transformation concerns are computed, not recorded."""
    trace = context.trace
    while (outer := getattr(trace, "parent", None)) is not None:
        if isinstance(trace, BatchTrace):       # the rule ``batch`` is asked of everything
            return False
        trace = outer
    return trace is installed.runtime


# --- rules ----------------------------------------------------------------------------------------


def _flat_expand(*operands: Value, _prim: HiPrim) -> list[Any]:
    result = _prim.expand(*pytree.unflatten(_prim._in_spec, operands))
    outs = operands_of(leaves_of(_prim._out_spec, result, f"`expand` of {_prim!r}: the result"))
    for out, aval in zip(outs, _prim.out_avals_flat, strict=True):
        found = aval_of(out)
        if found.shape != aval.shape or found.dtype != aval.dtype:
            raise TypeError(f"`expand` of {_prim!r} gives {found.str_short()}, declared is "
                            f"{aval.str_short()}")
    return outs


class _CallHiPrimitive(CustomPrimitive):
    """Traces ``expand`` once for each application in a program."""

    def _as_jaxpr(self, in_avals: Sequence[ShapedArray], params: Params) -> ClosedJaxpr:
        traced = params["_prim"]._traced
        key = tuple(in_avals)
        if key not in traced:
            traced[key] = super()._as_jaxpr(in_avals, params)
        return traced[key]


call_hi_primitive_p = _CallHiPrimitive("call_hi_primitive")
call_hi_primitive_p.multiple_results = True
call_hi_primitive_p.rule_for_all = True
call_hi_primitive_p.effects = Effectful(lambda *, _prim: _prim.effects or None)
call_hi_primitive_p.printed = Printed(
    lambda params: _shown_params(params["_prim"]),
    name=lambda params: type(params["_prim"].shown_as).__name__)
call_hi_primitive_p.def_abstract_eval(lambda *avals, _prim: list(_prim.out_avals_flat))
call_hi_primitive_p.def_composition(_flat_expand)


def _without_zeros(leaves: Sequence[object]) -> list[Any]:
    return [None if is_zero(x) or getattr(x, "dtype", None) == dtypes.float0
            else operands_of([x])[0] for x in leaves]


def _jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *, _prim: HiPrim
         ) -> tuple[list[Any], list[Any]]:
    given = [Zero(aval_of(x).tangent()) if t is None else t
             for x, t in zip(primals, tangents, strict=True)]
    out, tangent = _prim.jvp(pytree.unflatten(_prim._in_spec, all_as_given(primals)),
                             pytree.unflatten(_prim._in_spec, all_as_given(given)))
    what = f"`jvp` of {_prim!r} gives a result or tangent that"
    return (operands_of(leaves_of(_prim._out_spec, out, what)),
            _without_zeros(leaves_of(_prim._out_spec, tangent, what)))


class _Residuals:
    """Residuals of a rule: arrays, and Python's own numbers, which a rule may branch on."""

    def __init__(self, residuals: PyTree):
        leaves, self.spec = pytree.flatten(residuals, is_zero)
        self.fixed = {n: dtypes.typed_number(x) for n, x in enumerate(leaves)
                      if isinstance(x, (bool, int, float, complex, Zero))}
        self.arrays = operands_of([x for n, x in enumerate(leaves) if n not in self.fixed])

    def rebuilt(self, arrays: Sequence[Value]) -> Any:
        given = iter(arrays)
        return pytree.unflatten(self.spec, [
            self.fixed[n] if n in self.fixed else next(given)
            for n in range(self.spec.num_leaves)])


@dataclasses.dataclass(frozen=True)
class _Forward:
    """What a rule gives that runs the primitive and keeps what its derivative needs.

    Attributes:
      outs: the results.
      nonzero: which of them are differentiated.
      residuals: a tuple: what the other rule gets before tangents or cotangents.
    """

    outs: list[Any]
    nonzero: list[bool]
    residuals: tuple[Any, ...]


def _forward(prim: HiPrim, method: str, flags: PyTree, args: tuple[PyTree, ...]) -> _Forward:
    out, residuals, *rest = getattr(prim, method)(flags, *args)
    outs = operands_of(leaves_of(prim._out_spec, out, f"`{method}` of {prim!r}: the result"))
    structured = rest[1] if len(rest) > 1 else None
    if structured is not None and method == "vjp_fwd" and not prim._has("vjp_bwd"):
        raise TypeError(
            f"{type(prim).__name__} returned structured residuals from `vjp_fwd`, which requires "
            "overriding `vjp_bwd(res, sres, outgrad, *arg_accums)`")
    nonzero = [True] * len(outs) if not rest else flags_for(
        rest[0], pytree.numbered(prim._out_spec), "nzs_out",
        f"the nzs_out returned by {type(prim.shown_as).__name__}.{method}")
    return _Forward(outs, nonzero, (residuals,) if structured is None else (residuals, structured))


def _linearize(trace: Trace, primals: Sequence[Array], tangents: Sequence[Array | None], *,
               _prim: HiPrim) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(t is not None for t in tangents)
    flags = pytree.unflatten(_prim._in_spec, nonzero)
    args = pytree.unflatten(_prim._in_spec, all_as_given(primals))
    directions = [t for t in tangents if t is not None]
    out_avals = tuple(aval.tangent() for aval in _prim.out_avals_flat)
    operands: list[Any] = []
    backward: _Backward | None = None
    if not _prim._has("lin"):
        forward, backward, operands = _reverse(_prim, nonzero, flags, args)
        found = hi_vjp_p.bind(*operands, *directions, _prim=_prim, backward=backward,
                              out_avals=out_avals)
    elif _prim._transposes_lin:
        # The rules say that the transpose is that of the operations of ``linearized``.
        forward = _forward(_prim, "lin", flags, args)
        found = _tangents(_prim, nonzero, forward.residuals, directions)
    else:
        forward = linear = _forward(_prim, "lin", flags, args)
        if _prim._has("vjp_fwd"):
            forward, backward, operands = _reverse(_prim, nonzero, flags, args)
        known = _Residuals(linear.residuals)
        start, end = len(operands), len(operands) + len(known.arrays)
        operands = [*operands, *known.arrays]
        closed = trace_to_jaxpr(
            lambda *xs: [instantiate(x, aval) for x, aval in zip(
                _tangents(_prim, nonzero, known.rebuilt(xs[start:end]), xs[end:]),
                _prim.out_avals_flat, strict=True)],
            [aval_of(x) for x in (*operands, *directions)], "linearized")
        closed, captured = hoist_tracers(closed)
        found = hi_linearized_p.bind(
            *captured, *operands, *directions, _prim=_prim, closed=closed, out_avals=out_avals,
            backward=dataclasses.replace(backward, start=len(captured)) if backward else None)
    return forward.outs, [
        direction if flag and dtypes.has_tangents(aval.dtype) else None
        for direction, flag, aval in zip(found, forward.nonzero, _prim.out_avals_flat, strict=True)]


def _reverse(prim: HiPrim, nonzero: tuple[bool, ...], flags: PyTree, args: tuple[PyTree, ...]
             ) -> tuple[_Forward, _Backward, list[Any]]:
    """The forward pass of reverse mode, the backward pass, and the arrays that that gets."""
    forward = _forward(prim, "vjp_fwd", flags, args)
    saved = _Residuals(forward.residuals)
    arrays = saved.arrays
    # The object, not its arrays, which may be tracers of a trace that ends before.
    saved.arrays = []
    return forward, _Backward(prim, nonzero, saved, len(arrays)), arrays


def _tangents(prim: HiPrim, nonzero: Sequence[bool], residuals: Sequence[PyTree],
              directions: Sequence[PyTree]) -> list[Any]:
    """The tangents of the results, by ``linearized``."""
    moving = iter(directions)
    tangent = prim.linearized(*residuals, *pytree.unflatten(prim._in_spec, [
        next(moving) if flag else Zero(aval.to_tangent_aval())
        for flag, aval in zip(nonzero, prim.in_avals_flat, strict=True)]))
    return _without_zeros(leaves_of(
        prim._out_spec, tangent, f"`linearized` of {prim!r}: the tangent"))


@dataclasses.dataclass(eq=False)
class _Backward:
    """The backward pass of one application.

    Attributes:
      saved: how the residuals are put together from arrays.
      count: of those arrays; they start at operand ``start``.
    """

    prim: HiPrim
    nonzero: tuple[bool, ...]
    saved: _Residuals
    count: int
    start: int = 0

    def __call__(self, cotangents: Sequence[Array | None], operands: Sequence[Value],
                 out_avals: Sequence[ShapedArray]) -> list[Any]:
        prim = self.prim
        given = [Zero(aval) if ct is None else ct for ct, aval in zip(
            cotangents, _cotangent_avals(prim.out_avals_flat), strict=True)]
        accums = [(ValAccum if flag else NullAccum)(aval) for flag, aval in zip(
            self.nonzero, _cotangent_avals(prim.in_avals_flat), strict=True)]
        residuals = self.saved.rebuilt(operands[self.start:self.start + self.count])
        _check_logs(prim, "vjp_bwd", prim.vjp_bwd(
            *residuals, pytree.unflatten(prim._out_spec, all_as_given(given)),
            *pytree.unflatten(prim._in_spec, accums)))
        found = [_sum_in(accum) for accum in accums if isinstance(accum, ValAccum)]
        return [*(None,) * (len(operands) - len(found)), *found]


def _cotangent_avals(avals: Sequence[Aval]) -> list[Any]:
    return [aval.to_ct_aval() for aval in avals]


def _sum_in(accum: ValAccum) -> Any:
    return None if is_zero(accum.val) else accum.val


def _check_logs(prim: HiPrim, method: str, result: object) -> None:
    """Raises TypeError where a rule gives anything but nothing, or what is to be logged."""
    if result is not None and type(result) is not dict:
        raise TypeError(f"{type(prim).__name__}.{method} should return None or a dict of "
                        f"backward-pass log entries, got {type(result).__name__}")


def _pull_back(cotangents: Sequence[Array | None], *operands: PyTree, _prim: HiPrim,
               backward: _Backward | None, out_avals: tuple[ShapedArray, ...], **_: object
               ) -> list[Any]:
    if backward is None:
        return HiPrim.vjp_fwd(_prim, ())        # says that it is missing
    return backward(cotangents, operands, out_avals)


def _only_transposed(*_: object, _prim: HiPrim, **__: object) -> NoReturn:
    _prim._missing("linearize", _LIN)


def _only_transposed_rule(*_: object, **params: Any) -> NoReturn:
    _only_transposed(_prim=params["_prim"])


def _linearized_name(params: Params) -> str:
    return f"{type(params['_prim'].shown_as).__name__}.linearized"


# The tangents of an application that has only rules for reverse mode.
hi_vjp_p = Primitive(
    "hi_vjp",
    abstract=lambda *avals, out_avals, **params: out_avals,
    evaluate=_only_transposed,
    outside=Outside(eager=_only_transposed_rule),
    jvp=_only_transposed_rule,
    batch=_only_transposed_rule,
    host=Host(reason="it is never run"),
    transpose=_pull_back,
    factors=call_factors,
    multiple_results=True,
    cacheable=False,
    printed=Printed(lambda params: {}, name=_linearized_name),
    registered=False,      # as users' primitives: no stored program names it
)

# Those of one with rules for linearization, and perhaps for reverse mode.
hi_linearized_p = call_primitive(
    "hi_linearized", "closed", follow=("jvp", "linearize", "batch"),
    apply=lambda params, jaxpr, operands: list(
        jit_p.bind(*operands, jaxpr=jaxpr, name="linearized")),
    derivative=Derivative(),      # its transpose is the user's
    transpose=_pull_back,
    printed=Printed(lambda params: {}, name=_linearized_name),
    registered=False,      # as users' primitives: no stored program names it
)


def _transpose(cotangents: Sequence[Array | None], *operands: PyTree, _prim: HiPrim) -> list[Any]:
    given = [Zero(aval) if ct is None else ct for ct, aval in zip(
        cotangents, _cotangent_avals(_prim.out_avals_flat), strict=True)]
    accums = [ValAccum(x.aval.cotangent()) if type(x) is Linear else x for x in operands]
    _check_logs(_prim, "transpose", _prim.transpose(
        pytree.unflatten(_prim._out_spec, given), *pytree.unflatten(_prim._in_spec, accums)))
    return [_sum_in(x) if type(x) is ValAccum else None for x in accums]


def _batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *, _prim: HiPrim
           ) -> tuple[list[Any], list[int | None]]:
    data = AxisData(context.batch_axis, size, context.batch_spmd_axis, context.batch_entry)
    out, out_dims = _prim.batch(data, pytree.unflatten(_prim._in_spec, operands),
                                pytree.unflatten(_prim._in_spec, axes))
    leaves = operands_of(leaves_of(_prim._out_spec, out, f"`batch` of {_prim!r}: the result"))
    found: list[Any] = _prim._out_spec.flatten_up_to(out_dims)
    return leaves, found


def _dead_code(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    """By the primitive's ``dce``."""
    prim: HiPrim = eqn.params["_prim"]
    if type(prim).dce is HiPrim.dce:
        return eqn
    taken, given, rest = prim.dce(pytree.unflatten(prim._out_spec, used),
                                  pytree.unflatten(prim._in_spec, [True] * len(eqn.invars)))
    if rest is None:
        return eqn      # nothing needs it, and it is dropped
    what = f"return value of {type(prim).__name__}.dce"
    takes = flags_for(taken, pytree.numbered(prim._in_spec), "used_ins",
                      f"the first (used inputs) {what}")
    gives = flags_for(given, pytree.numbered(prim._out_spec), "produced_outs",
                      f"the second (produced outputs) {what}")
    return eqn.replace(
        invars=[var for var, flag in zip(eqn.invars, takes, strict=True) if flag],
        outvars=[var for var, flag in zip(eqn.outvars, gives, strict=True) if flag],
        params={"_prim": rest})


call_hi_primitive_p.inner = dataclasses.replace(call_hi_primitive_p.inner, dead_code=_dead_code)
call_hi_primitive_p.jvp = _jvp
call_hi_primitive_p.derivative = Derivative(linearize=_linearize)
call_hi_primitive_p.transpose = _transpose
call_hi_primitive_p.batch = _batch
