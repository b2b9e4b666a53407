"""custom_jvp: functions that come with a derivative rule of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.jit import check_outputs, hoist_tracers, jit_p, signature_of
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import StagingTrace, eval_jaxpr, trace_to_jaxpr
from maxjax._ir.trace import Array, aval_of, base_trace, context
from maxjax._ir.types import ShapedArray
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.rules import call_factors, is_linear
from maxjax._transforms.batching import BatchTrace
from maxjax._transforms.jvp import instantiate
from maxjax._transforms.transpose import transpose_jaxpr

# --- the primitive --------------------------------------------------------------------------------


class JvpRule:
    """A derivative rule of flat lists: ``(primals, tangents) -> (results, tangents)``."""

    __slots__ = ("__name__", "function")

    def __init__(self, function: Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]],
                 name: str):
        self.function = function
        self.__name__ = name

    def __call__(self, primals: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
        return self.function(primals, tangents)


def _call_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call_jaxpr: ClosedJaxpr,
              jvp: JvpRule, num_consts: int, **params: Any) -> Any:
    # Values that the function closed over are constants to its rule.
    return jvp(list(primals[num_consts:]), list(tangents[num_consts:]))


def _call_batch(size: int, operands: Sequence[Any], axes: Sequence[Any], *,
                call_jaxpr: ClosedJaxpr, jvp: JvpRule, num_consts: int, name: str,
                symbolic_zeros: bool) -> Any:
    trace = BatchTrace(context.trace, size)
    boxed = [trace.box(x, axis) for x, axis in zip(operands, axes, strict=True)]
    consts, args = boxed[:num_consts], boxed[num_consts:]
    outs = trace.apply_custom_jvp(
        lambda *xs: eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *consts, *xs), jvp, args,
        stage=functools.partial(
            stage, name=name, rule_name=jvp.__name__, symbolic_zeros=symbolic_zeros))
    pairs = [trace.unbox(out) for out in outs]
    return [value for value, _ in pairs], [axis for _, axis in pairs]


def _call_transpose(cotangents: Sequence[Any], *operands: Any, call_jaxpr: ClosedJaxpr, name: str,
                    **params: Any) -> list[Any]:
    linear = tuple(map(is_linear, operands))
    given = tuple(cotangent is not None for cotangent in cotangents)
    transposed, nonzero = transpose_jaxpr(call_jaxpr, linear, given)
    results = iter(jit_p.bind(
        *(x for x, is_lin in zip(operands, linear, strict=True) if not is_lin),
        *(ct for ct in cotangents if ct is not None), jaxpr=transposed, name=name))
    flags = iter(nonzero)
    return [(next(results) if next(flags) else None) if is_lin else None for is_lin in linear]


custom_jvp_call_p = Primitive(
    "custom_jvp_call",
    abstract=lambda *avals, call_jaxpr, **params: tuple(call_jaxpr.out_avals),
    evaluate=lambda *values, call_jaxpr, **params: interpreter(call_jaxpr)(*values),
    lower=lambda ctx, *values, call_jaxpr, **params: ctx.lower_closed(call_jaxpr, values),
    jvp=_call_jvp,
    transpose=_call_transpose,
    batch=_call_batch,
    factors=call_factors,
    multiple_results=True,
    cacheable=False,
)


def stage(trace: StagingTrace, function: Callable[..., list[Any]], jvp: Any, args: Sequence[Any],
          *, name: str, rule_name: str, symbolic_zeros: bool) -> list[Any]:
    """Writes the call down as an equation that keeps the rule."""
    closed = trace_to_jaxpr(function, [aval_of(arg) for arg in args], name, "custom_jvp")
    closed, captured = hoist_tracers(closed)
    return trace.apply(custom_jvp_call_p, (*captured, *args), {
        "name": name, "call_jaxpr": closed, "jvp": JvpRule(jvp, rule_name),
        "symbolic_zeros": symbolic_zeros, "num_consts": len(captured)})


# --- the decorator --------------------------------------------------------------------------------


class SymbolicZero:
    """A tangent that is known to be zero, for rules defined with ``symbolic_zeros``."""

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


class custom_jvp:
    """A function with a rule for its Jacobian-vector products.

    Args:
      fun: a function of arrays or pytrees of them.
      nondiff_argnums: the positional arguments that are not differentiated; the rule takes them
        first.

    >>> @custom_jvp
    ... def f(x):
    ...     return x
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(*primals), tangents[0]
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] | int = (),
                 nondiff_argnames: Iterable[str] | str = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(
            nondiff_argnames)
        if names:
            parameters = list(signature_of(fun).parameters)      # type: ignore[union-attr]
            numbers = tuple(sorted({*numbers, *map(parameters.index, names)}))
        self.nondiff_argnums = numbers
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Defines the rule: ``jvp(*nondiff, primals, tangents)`` gives (result, its tangent)."""
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Defines a rule for each argument: ``rule(tangent, result, *primals)``; None is zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            result = self(*primals)
            total = None
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is None:
                    continue
                term = rule(tangent, result, *primals)
                total = term if total is None else pytree.map(_add, total, term)
            if total is None:
                total = pytree.map(lambda x: instantiate(None, aval_of(x)), result)
            return result, total

        self.defjvp(jvp)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Methods bind like functions."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = getattr(self.fun, "__name__", str(self.fun))
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name} using defjvp.")
        if kwargs:
            args = _positional(self.fun, args, kwargs)
        numbers = {n if n >= 0 else n + len(args) for n in self.nondiff_argnums}
        fixed = {n: args[n] for n in sorted(numbers)}
        given = tuple(arg for n, arg in enumerate(args) if n not in numbers)
        leaves, tree = pytree.flatten(given)
        base = base_trace[0]
        operands = [leaf if isinstance(leaf, Array) else base.operand(leaf) for leaf in leaves]
        call = _FlatCall(self, name, len(args), fixed, tree)
        outs = context.trace.apply_custom_jvp(
            call.function, call.rule, operands,
            stage=functools.partial(
                stage, name=name, rule_name=getattr(self.jvp, "__name__", "jvp"),
                symbolic_zeros=self.symbolic_zeros))
        return pytree.unflatten(call.out_tree, outs)


class _FlatCall:
    """One call: the function and its rule on flat lists."""

    def __init__(self, custom: custom_jvp, name: str, count: int, fixed: dict[int, Any],
                 tree: Any):
        self.custom = custom
        self.name = name
        self.count = count
        self.fixed = fixed
        self.tree = tree
        self.out_tree: Any = None

    def function(self, *leaves: Any) -> list[Any]:
        given = iter(pytree.unflatten(self.tree, leaves))
        args = [self.fixed[n] if n in self.fixed else next(given) for n in range(self.count)]
        outs, self.out_tree = pytree.flatten(self.custom.fun(*args))
        return check_outputs(outs, self.name, "custom_jvp")

    def rule(self, primals: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
        zero = self._symbolic_zero if self.custom.symbolic_zeros else self._zero
        filled = [zero(aval_of(primal)) if tangent is None else tangent
                  for primal, tangent in zip(primals, tangents, strict=True)]
        jvp = self.custom.jvp
        assert jvp is not None
        result = jvp(*self.fixed.values(), pytree.unflatten(self.tree, primals),
                     pytree.unflatten(self.tree, filled))
        rule = f"Custom JVP rule {getattr(jvp, '__name__', jvp)} for function {self.name}"
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
        self.out_tree = out_tree
        outs = check_outputs(outs, self.name, "custom_jvp")
        return outs, [_check_tangent(aval_of(out), tangent)
                      for out, tangent in zip(outs, out_tangents, strict=True)]

    @staticmethod
    def _zero(aval: ShapedArray) -> Any:
        if not dtypes.is_inexact(aval.dtype):
            return np.zeros(aval.shape, dtypes.float0)
        return instantiate(None, aval)

    @staticmethod
    def _symbolic_zero(aval: ShapedArray) -> Any:
        return SymbolicZero(aval.tangent())


def _check_tangent(aval: ShapedArray, tangent: Any) -> Any:
    """A tangent that a rule gave, or None where it is zero."""
    if isinstance(tangent, SymbolicZero):
        return None
    expected = aval.tangent()
    if isinstance(tangent, np.ndarray) and tangent.dtype == dtypes.float0:
        found, value = ShapedArray(tangent.shape, dtypes.float0), None
    else:
        value = base_trace[0].operand(tangent)
        found = value.aval
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise TypeError(
            "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and "
            f"dtypes. Expected {expected.str_short()} (tangent type of {aval.str_short()}) but got "
            f"{found.str_short()}.")
    return value


def _add(x: Any, y: Any) -> Any:
    base = base_trace[0]
    return add_tangents(base.operand(x), base.operand(y))


def _positional(function: Callable[..., Any], args: tuple[Any, ...],
                kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position, defaults included.

    Raises:
      TypeError: they cannot all be given by position.
    """
    signature = signature_of(function)
    if signature is None:
        raise TypeError(f"keyword arguments of {function} have no position")
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError("keyword arguments could not be resolved to positions")
    return bound.args
