"""Primitives defined by a class: ``jax.experimental.hijax.VJPHiPrimitive``, on arrays.

A call outside programs and transformations is ``expand``, as it stands. In a program it is one
equation, whose parameter is the primitive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.calls import call_primitive
from maxjax._higher_order.constants import hoist_tracers
from maxjax._higher_order.custom_primitive import CustomPrimitive, Zero
from maxjax._higher_order.hi_types import HiValue, hooks, refuse_hitypes
from maxjax._higher_order.jit import jit_p
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, Trace, Tracer, all_as_given, aval_of, context, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Value
from maxjax._primitives.broadcasting import reduce_sum
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.rules import Linear, call_factors
from maxjax._primitives.varying import like_type
from maxjax._transforms.autodiff import operands_of
from maxjax._transforms.jvp import instantiate
from maxjax._transforms.vmap import vmap

# --- what the methods are given -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class AxisData:
    """What a batching rule knows of the mapped axis."""

    name: Hashable
    size: int
    spmd_name: Hashable = None
    explicit_mesh_axis: Hashable = None


class NullAccum:
    """The cotangent of an argument that is not differentiated: what is added is dropped."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def accum(self, x: object) -> None:
        """Does nothing."""


class ValAccum(NullAccum):
    """The cotangent of an argument, which a backward rule adds to.

    Attributes:
      value: the sum so far; None is zero.
    """

    __slots__ = ("value",)

    def __init__(self, aval: ShapedArray):
        super().__init__(aval)
        self.value: Any = None

    def accum(self, x: object) -> None:
        """Adds an array of the argument's shape; None and ``Zero`` are zero."""
        if x is None or type(x) is Zero or getattr(x, "dtype", None) == dtypes.float0:
            return
        value, = operands_of([x])
        expected = self.aval.cotangent()
        if aval_of(value).shape != expected.shape:
            raise ValueError(f"the cotangent of an argument of type {self.aval.str_short()} has "
                             f"the shape {aval_of(value).shape}")
        self.value = add_tangents(self.value, like_type(value, expected))


def _is_zero(x: object) -> bool:
    return type(x) is Zero


def _leaves(tree: PyTreeSpec, value: PyTree, what: str) -> list[Any]:
    """The leaves of a value that a method gave, ``Zero`` among them.

    Raises:
      AssertionError: its structure is another.
    """
    leaves, found = pytree.flatten(value, _is_zero)
    if found != tree:
        raise AssertionError(f"{what} has the structure {PyTreeDef(found)}, which ought to be "
                             f"{PyTreeDef(tree)}")
    return leaves


# --- the class ------------------------------------------------------------------------------------


class VJPHiPrimitive:
    """The base of primitives with rules for the transformations that they are used under.

    A subclass sets, before it calls ``super().__init__()``: ``in_avals``, a tuple with the type of
    each argument, or a pytree of types; ``out_aval``, that of the result; and ``params``, a
    dictionary of hashable values, which become attributes. Calling an instance applies it.

    >>> class Double(jax.experimental.hijax.VJPHiPrimitive):
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
    in_tree: Any
    out_tree: Any

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        if self._has("vjp_bwd") and self._has("vjp_bwd_retval"):
            raise AttributeError(f"subclass {type(self)} should not override both `vjp_bwd` and "
                                 "`vjp_bwd_retval`")
        self.in_avals_flat, in_tree = pytree.flatten(self.in_avals)
        self.out_avals_flat, out_tree = pytree.flatten(self.out_aval)
        self._in_spec, self._out_spec = in_tree, out_tree
        self.in_tree, self.out_tree = PyTreeDef(in_tree), PyTreeDef(out_tree)
        # Whether an argument or the result is of a type above arrays.
        self._is_high = False
        for aval in (*self.in_avals_flat, *self.out_avals_flat):
            if not isinstance(aval, ShapedArray):
                if getattr(aval, "has_qdd", True):
                    refuse_hitypes(type(self).__name__)
                self._is_high = True
        self.__dict__.update(self.params)
        self._traced: dict[Any, ClosedJaxpr] = {}

    # --- what subclasses define ---
    def expand(self, *args: PyTree) -> Any:
        """What the primitive computes."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: PyTree, /, *args: PyTree) -> Any:
        """A pair: the result, and what ``vjp_bwd`` gets. ``nzs_in`` says which arguments are
        differentiated."""
        self._missing("grad", "`vjp_fwd`")

    def vjp_bwd(self, res: PyTree, outgrad: PyTree, /, *arg_accums: Any) -> None:
        """Adds the cotangent of each argument to its accumulator."""
        result = self.vjp_bwd_retval(res, outgrad)
        problem = pytree.structure_errors(result, arg_accums, "cotangents", lambda x: x is None)
        if problem:
            raise ValueError(problem[0])
        leaves, prefix = pytree.flatten(result, lambda x: x is None or _is_zero(x))
        subtrees: list[Any] = prefix.flatten_up_to(arg_accums)      # type: ignore[arg-type]
        for leaf, accums in zip(leaves, subtrees, strict=True):
            for accum in pytree.leaves(accums):
                accum.accum(leaf)

    def vjp_bwd_retval(self, res: PyTree, outgrad: PyTree, /) -> Any:
        """A tuple with the cotangent of each argument; None is zero."""
        self._missing("grad", "`vjp_bwd` or `vjp_bwd_retval`")

    def jvp(self, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]) -> Any:
        """The result and its tangent; tangents may be ``Zero``."""
        self._missing("jvp", "`jvp`")

    def lin(self, nzs_in: PyTree, *primals: PyTree) -> Any:
        """A pair: the result, and what ``linearized`` gets."""
        self._missing("linearize", "`lin` and `linearized`")

    def linearized(self, residuals: PyTree, *tangents: PyTree) -> Any:
        """The tangent of the result."""
        self._missing("linearize", "`lin` and `linearized`")

    def transpose(self, out_ct: PyTree, *maybe_accums: Any) -> None:
        """Of a primitive that is linear in arguments: adds their cotangents to the accumulators
        that stand in their places."""
        self._missing("transpose", "`transpose`")

    def batch(self, axis_data: AxisData, args: tuple[PyTree, ...], dims: tuple[PyTree, ...]) -> Any:
        """The result of batched arguments, and its batch dimension."""
        out_dim = self.batch_dim_rule(axis_data, dims)
        return VmapOf(self, axis_data, dims, out_dim)(*args), out_dim

    def batch_dim_rule(self, axis_data: AxisData, dims: tuple[PyTree, ...], /) -> Any:
        """Where the result has the batch dimension, from where the arguments have it."""
        self._missing("vmap", "`batch` or `batch_dim_rule`")

    def _missing(self, transformation: str, methods: str) -> NoReturn:
        raise NotImplementedError(
            f"for {transformation} support, subclass {type(self)} must implement {methods}")

    def _has(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(VJPHiPrimitive, method)

    # --- application ---
    def __call__(self, *args: PyTree) -> Any:
        if self._is_high and not (context.trace is installed.runtime and not any(
                x.__class__ is HiValue
                for x in pytree.leaves(args, lambda x: x.__class__ is HiValue))):
            return hooks.apply(self, args)
        leaves = _leaves(self._in_spec, args, f"the tuple of arguments of {self!r}")
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
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> tuple[Any, ...]:
        return (type(self), self._in_spec, tuple(self.in_avals_flat), self._out_spec,
                tuple(self.out_avals_flat), tuple(self.params.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VJPHiPrimitive) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _is_evaluated() -> bool:
    """Whether operations that no transformation concerns are computed, not recorded."""
    trace = context.trace
    while (outer := getattr(trace, "parent", None)) is not None:
        trace = outer
    return trace is installed.runtime


# --- rules ----------------------------------------------------------------------------------------


def _flat_expand(*operands: Value, _prim: VJPHiPrimitive) -> list[Any]:
    result = _prim.expand(*pytree.unflatten(_prim._in_spec, operands))
    outs = operands_of(_leaves(_prim._out_spec, result, f"`expand` of {_prim!r}: the result"))
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
call_hi_primitive_p.def_abstract_eval(lambda *avals, _prim: list(_prim.out_avals_flat))
call_hi_primitive_p.def_composition(_flat_expand)


def _without_zeros(leaves: Sequence[object]) -> list[Any]:
    return [None if _is_zero(x) or getattr(x, "dtype", None) == dtypes.float0
            else operands_of([x])[0] for x in leaves]


def _jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *, _prim: VJPHiPrimitive
         ) -> tuple[list[Any], list[Any]]:
    given = [Zero(aval_of(x).tangent()) if t is None else t
             for x, t in zip(primals, tangents, strict=True)]
    out, tangent = _prim.jvp(pytree.unflatten(_prim._in_spec, all_as_given(primals)),
                             pytree.unflatten(_prim._in_spec, all_as_given(given)))
    what = f"`jvp` of {_prim!r} gives a result or tangent that"
    return (operands_of(_leaves(_prim._out_spec, out, what)),
            _without_zeros(_leaves(_prim._out_spec, tangent, what)))


class _Residuals:
    """Residuals of a rule: arrays, and Python's own numbers, which a rule may branch on."""

    def __init__(self, residuals: PyTree):
        leaves, self.spec = pytree.flatten(residuals, _is_zero)
        self.fixed = {n: dtypes.typed_number(x) for n, x in enumerate(leaves)
                      if isinstance(x, (bool, int, float, complex, Zero))}
        self.arrays = operands_of([x for n, x in enumerate(leaves) if n not in self.fixed])

    def rebuilt(self, arrays: Sequence[Value]) -> Any:
        given = iter(arrays)
        return pytree.unflatten(self.spec, [
            self.fixed[n] if n in self.fixed else next(given)
            for n in range(self.spec.num_leaves)])


def _linearize(trace: Trace, primals: Sequence[Array], tangents: Sequence[Array | None], *,
               _prim: VJPHiPrimitive) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(t is not None for t in tangents)
    flags = pytree.unflatten(_prim._in_spec, nonzero)
    args = pytree.unflatten(_prim._in_spec, all_as_given(primals))
    directions = [t for t in tangents if t is not None]
    operands: list[Any] = []
    backward = None
    has_lin, has_vjp = _prim._has("lin"), _prim._has("vjp_fwd")
    if has_vjp or not has_lin:
        out, residuals = _prim.vjp_fwd(flags, *args)
        outs = operands_of(_leaves(_prim._out_spec, out, f"`vjp_fwd` of {_prim!r}: the result"))
        saved = _Residuals(residuals)
        operands.extend(saved.arrays)
        # The object, not its arrays, which may be tracers of a trace that ends before.
        saved.arrays = []
        backward = _Backward(_prim, nonzero, saved, len(operands))
    out_avals = tuple(aval.tangent() for aval in _prim.out_avals_flat)
    if not has_lin:
        found = hi_vjp_p.bind(*operands, *directions, _prim=_prim, backward=backward,
                              out_avals=out_avals)
    else:
        out, residuals = _prim.lin(flags, *args)
        if backward is None:
            outs = operands_of(_leaves(_prim._out_spec, out, f"`lin` of {_prim!r}: the result"))
        known = _Residuals(residuals)
        count = len(operands)
        operands.extend(known.arrays)
        end, zeros = len(operands), [Zero(aval_of(x).tangent()) for x in primals]

        def linearized(*xs: Value) -> list[Any]:
            moving = iter(xs[end:])
            given = pytree.unflatten(_prim._in_spec, [
                next(moving) if flag else zero
                for flag, zero in zip(nonzero, zeros, strict=True)])
            tangent = _prim.linearized(known.rebuilt(xs[count:end]), *given)
            found = _without_zeros(_leaves(
                _prim._out_spec, tangent, f"`linearized` of {_prim!r}: the tangent"))
            return [instantiate(x, aval) for x, aval in zip(
                found, _prim.out_avals_flat, strict=True)]

        closed = trace_to_jaxpr(
            linearized, [aval_of(x) for x in (*operands, *directions)], "linearized")
        closed, captured = hoist_tracers(closed)
        found = hi_linearized_p.bind(
            *captured, *operands, *directions, _prim=_prim, closed=closed, out_avals=out_avals,
            backward=dataclasses.replace(backward, start=len(captured)) if backward else None)
    return outs, [direction if dtypes.has_tangents(aval.dtype) else None
                  for direction, aval in zip(found, _prim.out_avals_flat, strict=True)]


@dataclasses.dataclass(eq=False)
class _Backward:
    """The backward pass of one application.

    Attributes:
      saved: how the residuals are put together from arrays.
      count: of those arrays; they start at operand ``start``.
    """

    prim: VJPHiPrimitive
    nonzero: tuple[bool, ...]
    saved: _Residuals
    count: int
    start: int = 0

    def __call__(self, cotangents: Sequence[Array | None], operands: Sequence[Any],
                 out_avals: Sequence[ShapedArray]) -> list[Any]:
        prim = self.prim
        given = [Zero(aval) if ct is None else ct
                 for ct, aval in zip(cotangents, out_avals, strict=True)]
        accums = [ValAccum(aval) if flag else NullAccum(aval)
                  for flag, aval in zip(self.nonzero, prim.in_avals_flat, strict=True)]
        residuals = self.saved.rebuilt(operands[self.start:self.start + self.count])
        prim.vjp_bwd(residuals, pytree.unflatten(prim._out_spec, all_as_given(given)),
                     *pytree.unflatten(prim._in_spec, accums))
        found = [accum.value for accum in accums if isinstance(accum, ValAccum)]
        return [*(None,) * (len(operands) - len(found)), *found]


def _pull_back(cotangents: Sequence[Array | None], *operands: Any, _prim: VJPHiPrimitive,
               backward: _Backward | None, out_avals: tuple[ShapedArray, ...], **_: Any
               ) -> list[Any]:
    if backward is None:
        _prim._missing("grad", "`vjp_fwd`")
    return backward(cotangents, operands, out_avals)


def _only_transposed(*_: object, _prim: VJPHiPrimitive, **__: object) -> NoReturn:
    _prim._missing("linearize", "`lin` and `linearized`")


def _only_transposed_rule(*_: object, **params: Any) -> NoReturn:
    _only_transposed(_prim=params["_prim"])


# The tangents of an application that has only rules for reverse mode.
hi_vjp_p = Primitive(
    "hi_vjp",
    abstract=lambda *avals, out_avals, **params: out_avals,
    evaluate=_only_transposed,
    eager=_only_transposed_rule,
    jvp=_only_transposed_rule,
    batch=_only_transposed_rule,
    host_reason="it is never run",
    transpose=_pull_back,
    factors=call_factors,
    multiple_results=True,
    cacheable=False,
    shown=lambda params: {"_prim": params["_prim"]},
    registered=False,      # as users' primitives: no stored program names it
)

# Those of one with rules for linearization, and perhaps for reverse mode.
hi_linearized_p = call_primitive(
    "hi_linearized", "closed", follow=("jvp", "linearize", "batch"),
    apply=lambda params, jaxpr, operands: list(
        jit_p.bind(*operands, jaxpr=jaxpr, name="linearized")),
    partly=None,      # its transpose is the user's
    transpose=_pull_back,
    shown=lambda params: {"_prim": params["_prim"]},
    registered=False,      # as users' primitives: no stored program names it
)


def _transpose(cotangents: Sequence[Array | None], *operands: Any, _prim: VJPHiPrimitive
               ) -> list[Any]:
    given = [Zero(aval.tangent()) if ct is None else ct
             for ct, aval in zip(cotangents, _prim.out_avals_flat, strict=True)]
    accums = [ValAccum(x.aval) if type(x) is Linear else x for x in operands]
    _prim.transpose(pytree.unflatten(_prim._out_spec, given),
                    *pytree.unflatten(_prim._in_spec, accums))
    return [x.value if type(x) is ValAccum else None for x in accums]


def _batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *,
           _prim: VJPHiPrimitive) -> tuple[list[Any], list[int | None]]:
    data = AxisData(context.batch_axis, size)
    out, out_dim = _prim.batch(data, pytree.unflatten(_prim._in_spec, operands),
                               pytree.unflatten(_prim._in_spec, axes))
    leaves = operands_of(_leaves(_prim._out_spec, out, f"`batch` of {_prim!r}: the result"))
    return leaves, _dims(_prim._out_spec, out_dim)


def _dims(spec: PyTreeSpec, dims: PyTree) -> list[int | None]:
    """The batch dimension of each leaf, from a prefix pytree."""
    marks = pytree.unflatten(spec, range(spec.num_leaves))
    leaves, prefix = pytree.flatten(dims, lambda x: x is None)
    found: list[int | None] = []
    for dim, subtree in zip(leaves, prefix.flatten_up_to(marks), strict=True):
        found.extend([dim] * pytree.structure(subtree).num_leaves)
    return found


call_hi_primitive_p.jvp = _jvp
call_hi_primitive_p.linearize = _linearize
call_hi_primitive_p.transpose = _transpose
call_hi_primitive_p.batch = _batch


# --- vmap -----------------------------------------------------------------------------------------


def _with_dim(aval: ShapedArray, dim: int | None, size: int) -> ShapedArray:
    if dim is None:
        return aval
    dim %= aval.ndim + 1
    return ShapedArray((*aval.shape[:dim], size, *aval.shape[dim:]), aval.dtype, aval.weak_type)


class VmapOf(VJPHiPrimitive):
    """A primitive with its methods under ``vmap``.

    Args:
      prim: the primitive.
      axis_data: of the mapped axis.
      in_dims, out_dim: where arguments and result have it; pytrees.
    """

    prim: VJPHiPrimitive
    axis_data: AxisData
    in_dims: Any
    out_dim: Any

    def __init__(self, prim: VJPHiPrimitive, axis_data: AxisData, in_dims: PyTree,
                 out_dim: PyTree):
        self._flat_in = _dims(prim._in_spec, in_dims)
        self._flat_out = _dims(prim._out_spec, out_dim)
        size = axis_data.size
        self.in_avals = pytree.unflatten(prim._in_spec, [
            _with_dim(aval, dim, size)
            for aval, dim in zip(prim.in_avals_flat, self._flat_in, strict=True)])
        self.out_aval = pytree.unflatten(prim._out_spec, [
            _with_dim(aval, dim, size)
            for aval, dim in zip(prim.out_avals_flat, self._flat_out, strict=True)])
        self.params = {"prim": prim, "axis_data": axis_data, "in_dims": in_dims,
                       "out_dim": out_dim}
        super().__init__()

    def _has(self, method: str) -> bool:
        # Both backward methods of the primitive become this one's ``vjp_bwd_retval``.
        return method == "vjp_fwd" and self.params["prim"]._has(method)

    def _map(self, function: Callable[..., Any], in_axes: Any, out_axes: Any) -> Any:
        return vmap(function, in_axes=in_axes, out_axes=out_axes, axis_size=self.axis_data.size,
                    axis_name=self.axis_data.name)

    def expand(self, *args: PyTree) -> Any:
        outs = self._map(lambda leaves: _flat_expand(*leaves, _prim=self.prim),
                         (self._flat_in,), self._flat_out)(pytree.leaves(args))
        return pytree.unflatten(self._out_spec, outs)

    def vjp_fwd(self, nzs_in: PyTree, /, *args: PyTree) -> Any:
        kept: dict[str, Any] = {}

        def forward(leaves: list[Value]) -> Any:
            out, residuals = self.prim.vjp_fwd(nzs_in, *pytree.unflatten(self._in_spec, leaves))
            kept["saved"] = saved = _Residuals(residuals)
            return operands_of(_leaves(self._out_spec, out, "the result")), saved.arrays

        outs, arrays = self._map(forward, (self._flat_in,), (self._flat_out, 0))(
            pytree.leaves(args))
        kept["saved"].arrays = []
        return pytree.unflatten(self._out_spec, outs), (_Static(kept["saved"], nzs_in), arrays)

    def vjp_bwd_retval(self, res: PyTree, outgrad: PyTree, /) -> Any:
        static, arrays = res
        prim, nonzero = self.prim, pytree.leaves(static.nzs_in)
        given = _leaves(self._out_spec, outgrad, "the cotangent")
        zeros = [Zero(aval.tangent()) if _is_zero(x) else None
                 for x, aval in zip(given, prim.out_avals_flat, strict=True)]
        moving = [x for x in given if not _is_zero(x)]
        moving_dims = [dim for x, dim in zip(given, self._flat_out, strict=True)
                       if not _is_zero(x)]

        def backward(residuals: list[Value], cotangents: list[Value]) -> list[Any]:
            whole = iter(cotangents)
            accums = [ValAccum(aval) if flag else NullAccum(aval)
                      for flag, aval in zip(nonzero, prim.in_avals_flat, strict=True)]
            prim.vjp_bwd(static.saved.rebuilt(residuals),
                         pytree.unflatten(self._out_spec, [
                             next(whole) if zero is None else zero for zero in zeros]),
                         *pytree.unflatten(self._in_spec, accums))
            return [instantiate(accum.value, accum.aval.cotangent()) for accum in accums
                    if isinstance(accum, ValAccum)]

        wanted = [dim for dim, flag in zip(self._flat_in, nonzero, strict=True) if flag]
        found = self._map(backward, (0, moving_dims),
                          [0 if dim is None else dim for dim in wanted])(arrays, moving)
        # An argument that is the same for all elements gets the sum.
        summed = iter([reduce_sum(x, (0,)) if dim is None else x
                       for x, dim in zip(found, wanted, strict=True)])
        return pytree.unflatten(self._in_spec, [
            next(summed) if flag else Zero(aval.tangent())
            for flag, aval in zip(nonzero, self.in_avals_flat, strict=True)])

    def jvp(self, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]) -> Any:
        prim = self.prim
        given = _leaves(self._in_spec, tangents, "the tangents")
        zeros = [Zero(aval.tangent()) if _is_zero(x) else None
                 for x, aval in zip(given, prim.in_avals_flat, strict=True)]
        moving = [x for x in given if not _is_zero(x)]
        moving_dims = [dim for x, dim in zip(given, self._flat_in, strict=True)
                       if not _is_zero(x)]

        def forward(leaves: list[Value], directions: list[Value]) -> Any:
            whole = iter(directions)
            out, tangent = prim.jvp(
                pytree.unflatten(self._in_spec, leaves),
                pytree.unflatten(self._in_spec, [
                    next(whole) if zero is None else zero for zero in zeros]))
            found = _without_zeros(_leaves(self._out_spec, tangent, "the tangent"))
            return (operands_of(_leaves(self._out_spec, out, "the result")),
                    [instantiate(x, aval) for x, aval in zip(
                        found, prim.out_avals_flat, strict=True)])

        outs, found = self._map(forward, (self._flat_in, moving_dims),
                                (self._flat_out, self._flat_out))(
            pytree.leaves(primals), moving)
        return (pytree.unflatten(self._out_spec, outs), pytree.unflatten(self._out_spec, found))

    def batch_dim_rule(self, axis_data: AxisData, dims: tuple[PyTree, ...], /) -> Any:
        inside = [None if dim is None else dim - (mine is not None and mine < dim)
                  for dim, mine in zip(_dims(self._in_spec, dims), self._flat_in, strict=True)]
        out = self.prim.batch_dim_rule(axis_data, pytree.unflatten(self._in_spec, inside))
        moved = [None if dim is None else dim + (mine is not None and mine <= dim)
                 for dim, mine in zip(_dims(self._out_spec, out), self._flat_out, strict=True)]
        return pytree.unflatten(self._out_spec, moved)


@dataclasses.dataclass(eq=False)
class _Static:
    """What a mapped forward rule hands on besides arrays: no leaves of its own."""

    saved: _Residuals
    nzs_in: PyTree


pytree.register(_Static, lambda static: ((), static), lambda static, _: static)
