"""custom_jvp: functions that come with a derivative rule of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.tracebacks import boundary
from maxjax._base.treedef import PyTreeDef
from maxjax._base.wrapped_function import wrap_init
from maxjax._higher_order.calls import call_primitive, only_shown
from maxjax._higher_order.constants import hoist_tracers
from maxjax._higher_order.custom_rules import (
    Positional,
    Results,
    SymbolicZero,
    batched_call,
    check_results,
    fixed_numbers,
    forwarded,
    handing_on,
    name_of,
    zero_tangent,
)
from maxjax._higher_order.jit import jit_p
from maxjax._higher_order.outputs import check_outputs
from maxjax._ir.axes import ANY_AXIS
from maxjax._ir.costs import ENTERED
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Communication, Derivative, Printed
from maxjax._ir.runtime import installed
from maxjax._ir.staging import StagingTrace, trace_to_jaxpr
from maxjax._ir.trace import Array, Tracer, all_as_given, as_given, aval_of, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, FlatJvp, Params, Result, Value
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.convert import stop_gradient_p
from maxjax._transforms.autodiff import leaf_operand, operands_of
from maxjax._transforms.linearize import LinearTrace

# --- the primitive --------------------------------------------------------------------------------


class JvpRule:
    """A derivative rule of flat lists: ``(primals, tangents) -> (results, tangents)``."""

    __slots__ = ("__name__", "function")

    def __init__(self, function: FlatJvp, name: str):
        self.function = function
        self.__name__ = name

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, primals: list[Value], tangents: list[Value | None]
                 ) -> tuple[list[Any], list[Any]]:
        return self.function(primals, tangents)


def _call_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *,
              call_jaxpr: ClosedJaxpr, jvp: JvpRule, num_consts: int, **params: object) -> Any:
    # Values that the function closed over are constants to its rule.
    return jvp(list(primals[num_consts:]), list(tangents[num_consts:]))


def _call_batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *,
                call_jaxpr: ClosedJaxpr, jvp: JvpRule, num_consts: int, name: str,
                symbolic_zeros: bool) -> Any:
    staged = functools.partial(
        stage, name=name, rule_name=jvp.__name__, symbolic_zeros=symbolic_zeros)
    return batched_call(
        size, operands, axes, call_jaxpr, num_consts,
        lambda trace, function, args: trace.apply_custom_jvp(function, jvp, args, stage=staged))


def _call_partly(trace: LinearTrace, primitive: Primitive, args: Sequence[Value], *,
                 call_jaxpr: ClosedJaxpr, **params: object) -> list[Any]:
    # Tangents are not differentiated again: the rule has done its part.
    return eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)


class _CustomJvpCall(Primitive):
    """The primitive, which is also bound as JAX's is: to a function and its rule."""

    def get_bind_params(self, params: Params) -> Params:
        """``symbolic_zeros`` and ``subfuns``: wrapped functions of the operands, and of those and
        their tangents."""
        call, jvp = params["call_jaxpr"], params["jvp"]
        consts, count = params["num_consts"], len(call.in_avals)

        def jaxpr_as_fun(*args: ArrayLike) -> list[Any]:
            return eval_jaxpr(call.jaxpr, call.consts, *operands_of(args))

        def rule(*both: ArrayLike) -> list[Any]:
            values = operands_of(both)
            outs, tangents = jvp(values[consts:count], values[count + consts:])
            return [*outs, *(zero_tangent(aval_of(out)) if tangent is None else tangent
                             for out, tangent in zip(outs, tangents, strict=True))]

        rule.__name__ = "jvp"
        return {"symbolic_zeros": params["symbolic_zeros"],
                "subfuns": (wrap_init(jaxpr_as_fun), wrap_init(rule))}

    def bind(self, *args: Any, **params: Any) -> Any:
        if "subfuns" not in params:
            return super().bind(*args, **params)
        function, rule = params["subfuns"]

        def jvp(primals: list[Value], tangents: list[Value | None]) -> tuple[list[Any], list[Any]]:
            found = operands_of(rule.call_wrapped(*primals, *(
                zero_tangent(aval_of(x)) if t is None else t
                for x, t in zip(primals, tangents, strict=True))))
            return found[:len(found) // 2], found[len(found) // 2:]

        return context.trace.apply_custom_jvp(
            lambda *xs: operands_of(function.call_wrapped(*xs)), jvp, operands_of(args),
            stage=functools.partial(
                stage, name=name_of(function), rule_name=name_of(rule),
                symbolic_zeros=params["symbolic_zeros"]))


custom_jvp_call_p = call_primitive(
    "custom_jvp_call", "call_jaxpr", follow=("transpose",), kind=_CustomJvpCall,
    apply=lambda params, jaxpr, operands: jit_p.bind(*operands, jaxpr=jaxpr, name=params["name"]),
    jvp=_call_jvp,
    batch=_call_batch,
    derivative=Derivative(partly=_call_partly),
    communication=Communication(axis_names=lambda **params: (ANY_AXIS,)),
    printed=Printed(only_shown("name", "call_jaxpr", "jvp", "symbolic_zeros")),
    cost=ENTERED,
)


def stage(trace: StagingTrace, function: Callable[..., list[Value]], jvp: FlatJvp,
          args: Sequence[Value], *, name: str, rule_name: str, symbolic_zeros: bool) -> list[Any]:
    """Stages the call as an equation that keeps the rule."""
    closed = trace_to_jaxpr(function, [aval_of(arg) for arg in args], name, "custom_jvp")
    closed, captured = hoist_tracers(closed)
    return trace.apply(custom_jvp_call_p, (*captured, *args), {
        "name": name, "call_jaxpr": closed, "jvp": JvpRule(jvp, rule_name),
        "symbolic_zeros": symbolic_zeros, "num_consts": len(captured)})


# --- the decorator --------------------------------------------------------------------------------


class custom_jvp(Generic[Result]):
    """A function with a rule for its Jacobian-vector products.

    It is called as ``fun`` is. The rule, given by ``defjvp``, takes the tuples of primals and of
    tangents, and returns the pair of the result and its tangent, which is linear in the tangents.
    Reverse mode follows from it.

    Args:
      fun: a function of arrays or pytrees of them.
      nondiff_argnums, nondiff_argnames: the arguments that are not differentiated; the rule takes
        them first.

    Raises:
      AttributeError: at a call that is differentiated, no rule was given.
      TypeError: the rule's results have another structure or type than those of ``fun``.

    See also: ``jax.custom_vjp``, ``jax.jvp``, ``jax.custom_batching.custom_vmap``,
    ``jax.pure_callback``.

    >>> @jax.custom_jvp
    ... def f(x):
    ...     return x
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(*primals), 2 * tangents[0]
    >>> jax.grad(f)(3.)
    Array(2., dtype=float32, weak_type=True)
    """

    def __init__(self, fun: Callable[..., Result], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._handing_on = handing_on(fun)
        self.nondiff_argnums = fixed_numbers(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self._positional: Positional | None = None

    if not TYPE_CHECKING:      # which would hide misspelt names
        def __getattr__(self, name: str) -> Any:
            return forwarded(self, name)

    def defjvp(self, jvp: Callable[..., PyTree], symbolic_zeros: bool = False
               ) -> Callable[..., Any]:
        """Defines the rule: ``jvp(*nondiff, primals, tangents)`` gives (result, its tangent).

        Args:
          symbolic_zeros: tangents that are known to be zero are ``SymbolicZero``, not arrays.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., PyTree] | None) -> None:
        """Defines a rule for each argument: ``rule(tangent, result, *primals)``; None is zero.

        >>> product = jax.custom_jvp(lambda x, y: x * y)
        >>> product.defjvps(lambda t, out, x, y: t * y, None)
        >>> jax.grad(product, (0, 1))(2., 3.)
        (Array(3., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Sequence[PyTree], tangents: Sequence[PyTree]) -> tuple[Any, Any]:
            result = self(*primals)
            total = None
            for rule, tangent in zip(jvps, tangents, strict=False):
                if rule is not None:
                    term = rule(tangent, result, *primals)
                    total = term if total is None else pytree.map(_add, total, term)
            if total is None:
                total = pytree.map(lambda x: zero_tangent(aval_of(x)), result)
            return result, total

        self.defjvp(jvp)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Methods bind like functions."""
        return self if instance is None else functools.partial(self, instance)

    @boundary
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Result:
        name = name_of(self.fun)
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name} using defjvp.")
        positional = self._positional
        if positional is None:
            positional = self._positional = Positional(self.fun, "custom_jvp")
        args = positional(args, kwargs)
        numbers = {n if n >= 0 else n + len(args) for n in self.nondiff_argnums}
        fixed = {n: _without_tangents(args[n]) for n in sorted(numbers)}
        given = tuple(arg for n, arg in enumerate(args) if n not in numbers)
        leaves, tree = pytree.flatten(given)
        operands = [leaf_operand(dtypes.typed_number(as_given(leaf))) for leaf in leaves]
        call = _FlatCall(self, name, len(args), fixed, tree)
        outs = context.trace.apply_custom_jvp(
            call.function, call.rule, operands,
            stage=functools.partial(
                stage, name=name, rule_name=name_of(self.jvp),
                symbolic_zeros=self.symbolic_zeros))
        return pytree.unflatten(call.out_tree, all_as_given(outs))


def _without_tangents(argument: object) -> Any:
    return pytree.map(
        lambda x: stop_gradient_p.bind(x) if isinstance(x, Tracer) else x, argument)


class _FlatCall:
    """One call: the function and its rule on flat lists."""

    def __init__(self, custom: custom_jvp, name: str, count: int, fixed: dict[int, PyTree],
                 tree: PyTreeSpec):
        self.custom = custom
        self.name = name
        self.count = count
        self.fixed = fixed
        self.tree = tree
        self.out_tree: Any = None
        self.results: Results | None = None

    def function(self, *leaves: Value) -> list[Any]:
        given = iter(pytree.unflatten(self.tree, self.custom._handing_on(leaves)))
        args = [self.fixed[n] if n in self.fixed else next(given) for n in range(self.count)]
        outs, self.out_tree = pytree.flatten(self.custom.fun(*args))
        outs = check_outputs(outs, self.name, "custom_jvp")
        self.results = Results(self.out_tree, outs)
        return outs

    def rule(self, primals: list[Value], tangents: list[Value | None]
             ) -> tuple[list[Any], list[Any]]:
        zero = self._symbolic_zero if self.custom.symbolic_zeros else zero_tangent
        filled = [zero(aval_of(primal)) if tangent is None else tangent
                  for primal, tangent in zip(primals, tangents, strict=True)]
        jvp = self.custom.jvp
        assert jvp is not None
        given, directions = map(self.custom._handing_on, (primals, filled))
        result = jvp(*self.fixed.values(), pytree.unflatten(self.tree, given),
                     pytree.unflatten(self.tree, directions))
        rule = f"Custom JVP rule {name_of(jvp)} for function {self.name}"
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(
                f"{rule} must produce a pair (list or tuple of length two) representing primal "
                f"and tangent outputs, but got {result}.")
        outs, out_tree = pytree.flatten(result[0])
        out_tangents, tangent_tree = pytree.flatten(result[1])
        if out_tree != tangent_tree:
            raise TypeError(
                f"{rule} must produce primal and tangent outputs with equal container (pytree) "
                f"structures, but got {PyTreeDef(out_tree)} and {PyTreeDef(tangent_tree)} "
                "respectively.")
        outs = [leaf_operand(out) for out in outs]
        start = (
            f"{rule} must produce a pair (list or tuple of length two) where the first element "
            "represents the primal output (equal in value to the output of the "
            f"custom_jvp-decorated function {self.name}, and in particular ")
        check_results(
            Results(out_tree, outs), self.results,
            (start, "of the same container/pytree structure), but instead the JVP rule",
             "with leaves of the same shape/dtype), but instead the JVP rule"),
            f"custom_jvp-decorated function {self.name}")
        self.out_tree = out_tree
        return outs, _checked_tangents([aval_of(out) for out in outs], out_tangents)

    @staticmethod
    def _symbolic_zero(aval: ShapedArray) -> Any:
        return SymbolicZero(aval.tangent())


def _checked_tangents(avals: list[ShapedArray], tangents: Sequence[object]) -> list[Any]:
    """The tangents that a rule gave; None where they are zero."""
    values, found = [], []
    for tangent in tangents:
        value = None
        if isinstance(tangent, SymbolicZero):
            found.append(tangent.aval)
        elif isinstance(tangent, np.ndarray) and tangent.dtype == dtypes.float0:
            found.append(ShapedArray(tangent.shape, dtypes.float0))
        else:
            value = leaf_operand(tangent)
            found.append(aval_of(value))
        values.append(value)
    expected = [aval.tangent() for aval in avals]
    wrong = [n for n, (want, have) in enumerate(zip(expected, found, strict=True))
             if want.shape != have.shape or want.dtype != have.dtype or want.vma != have.vma]
    if not wrong:
        return values
    message = ("Custom JVP rule must produce primal and tangent outputs with corresponding shapes "
               "and dtypes")
    if len(avals) == 1:
        raise TypeError(
            f"{message}. Expected {expected[0].str_short()} (tangent type of "
            f"{avals[0].str_short()}) but got {found[0].str_short()}.")
    lines = [f"  primal {avals[n].str_short()} with tangent {found[n].str_short()}, expecting "
             f"tangent {expected[n].strip_weak_type()}" for n in wrong]
    raise TypeError(f"{message}, but got:\n" + "\n".join(lines))


def _add(x: PyTree, y: PyTree) -> Any:
    runtime = installed.runtime
    return add_tangents(runtime.operand(x), runtime.operand(y))
