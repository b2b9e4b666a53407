"""custom_gradient, closure_convert and linear_call: rules given as functions that close over
values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.calls import call_primitive
from maxjax._higher_order.control import Traced, handed_on, operands_of, traced
from maxjax._higher_order.custom_vjp import custom_vjp
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.staging import DynamicJaxprTracer, trace_to_jaxpr
from maxjax._ir.trace import Array, Tracer, aval_of
from maxjax._ir.typing import Value
from maxjax._primitives.rules import is_linear
from maxjax._transforms.autodiff import leaf_operand
from maxjax._transforms.batching import BatchTracer
from maxjax._transforms.jvp import JVPTracer, instantiate

# --- custom_gradient ------------------------------------------------------------------------------


class _Rule:
    """A gradient function as a jaxpr. The values it closes over are its leaves, residuals."""

    def __init__(self, closed: ClosedJaxpr, out_tree: PyTreeSpec, consts: Sequence[Value]):
        self.closed = closed
        self.out_tree = out_tree
        self.consts = consts


pytree.register(_Rule, lambda rule: (rule.consts, (rule.closed, rule.out_tree)),
                lambda data, consts: _Rule(data[0], data[1], list(consts)))


def custom_gradient(fun: Callable[..., PyTree]) -> Callable[..., Any]:
    """A function that returns its own gradient function.

    Args:
      fun: gives a pair: a result, and a function from its cotangent to a tuple of those of the
        arguments (to one, for a single argument). That function may use what was computed.

    >>> @jax.custom_gradient
    ... def square(x):
    ...     return x ** 2, lambda cotangent: (cotangent * x,)
    >>> jax.grad(square)(3.)
    Array(3., dtype=float32, weak_type=True)
    """
    @custom_vjp
    def wrapped_fun(*args: PyTree, **kwargs: PyTree) -> Any:
        return fun(*args, **kwargs)[0]

    def fwd(*args: PyTree, **kwargs: PyTree) -> Any:
        result, rule = fun(*args, **kwargs)
        leaves, tree = pytree.flatten((result,))
        out_tree: Any = None

        def flat(*cotangents: Value) -> list[Any]:
            nonlocal out_tree
            found, out_tree = pytree.flatten(rule(*pytree.unflatten(tree, cotangents)))
            return operands_of(found)

        avals = [leaf_operand(leaf).aval.tangent() for leaf in leaves]
        closed = trace_to_jaxpr(flat, avals, "custom_gradient", "custom_gradient")
        return result, _Rule(ClosedJaxpr(closed.jaxpr), out_tree, closed.consts)

    def bwd(rule: _Rule, cotangents: PyTree) -> Any:
        found = pytree.unflatten(rule.out_tree, eval_jaxpr(
            rule.closed.jaxpr, rule.consts, *pytree.leaves((cotangents,))))
        return (found,) if rule.out_tree.is_leaf() else found

    wrapped_fun.defvjp(fwd, bwd)
    return wrapped_fun


# --- closure_convert ------------------------------------------------------------------------------


def closure_convert(fun: Callable[..., PyTree], *example_args: PyTree) -> tuple[
        Callable[..., Any], list[Any]]:
    """``fun`` with the differentiable values that it closes over as further arguments.

    Args:
      fun: a pure function.
      example_args: arguments of the types that it will be called with.

    Returns:
      A function that takes the arguments of ``fun`` and then the values, and the list of values.

    >>> def apply(x):
    ...     function, values = jax.closure_convert(lambda y: x * y, 1.)
    ...     return function(2., *values), len(values)
    >>> jax.grad(apply, has_aux=True)(3.)
    (Array(2., dtype=float32, weak_type=True), 1)
    """
    leaves, tree = pytree.flatten(example_args)
    found = traced(fun, "closure_convert", tree, [x.aval for x in operands_of(leaves)])
    perturbed = [_may_be_perturbed(value) for value in found.consts]
    hoisted = [value for value, flag in zip(found.consts, perturbed, strict=True) if flag]
    count = len(hoisted)

    def converted_fun(*args: PyTree) -> Any:
        split = len(args) - count
        given = iter(operands_of(args[split:]))
        consts = [next(given) if flag else value
                  for value, flag in zip(found.consts, perturbed, strict=True)]
        values, in_tree = pytree.flatten(args[:split])
        if in_tree != tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the same Pytree "
                "structure as the example arguments passed when closure_convert was called. "
                f"Expected {PyTreeDef(tree)}, but got {PyTreeDef(in_tree)}")
        closed = found.closed
        return pytree.unflatten(found.tree, eval_jaxpr(
            closed.jaxpr, closed.consts, *consts, *operands_of(values)))

    return converted_fun, hoisted


def _may_be_perturbed(value: Value) -> bool:
    """Whether a value may carry a tangent, now or later."""
    if isinstance(value, JVPTracer):
        return value.tangent is not None or _may_be_perturbed(value.primal)
    if isinstance(value, BatchTracer):
        return _may_be_perturbed(value.value)
    if isinstance(value, DynamicJaxprTracer):
        return dtypes.has_tangents(value.aval.dtype)
    return isinstance(value, Tracer)


# --- linear_call ----------------------------------------------------------------------------------


class _Transpose:
    """The transpose of a linear call, traced when it is first asked for."""

    __slots__ = ("make", "made")

    def __init__(self, make: Callable[[], tuple[ClosedJaxpr, Sequence[Value]]]):
        self.make = make
        self.made: tuple[ClosedJaxpr, Sequence[Any]] | None = None

    __name__ = "transpose_thunk"

    def __call__(self) -> tuple[ClosedJaxpr, Sequence[Any]]:
        if self.made is None:
            self.made = self.make()
        return self.made


def _jvp(primals: Sequence[Array], tangents: Sequence[Array | None], **params: Any) -> Any:
    start = params["num_callee_consts"] + params["num_res"]
    if any(tangent is not None for tangent in tangents[:start]):
        raise AssertionError("linear_call is not differentiated by its residuals")
    given = [instantiate(t, aval_of(x)) for x, t in zip(
        primals[start:], tangents[start:], strict=True)]
    return (linear_call_p.bind(*primals, **params),
            linear_call_p.bind(*primals[:start], *given, **params))


def _transpose(cotangents: Sequence[Array | None], *operands: Any, callee: ClosedJaxpr,
               transpose_thunk: _Transpose, num_callee_consts: int, num_res: int) -> list[Any]:
    closed, consts = transpose_thunk()
    start = num_callee_consts + num_res
    own = list(operands[:num_callee_consts])
    residuals = operands[num_callee_consts:start]
    given = [instantiate(cotangent, aval)
             for cotangent, aval in zip(cotangents, callee.out_avals, strict=True)]
    found = linear_call_p.bind(
        *consts, *residuals, *given, callee=closed,
        transpose_thunk=_Transpose(lambda: (callee, own)), num_callee_consts=len(consts),
        num_res=num_res)
    return [*(None,) * start, *(cotangent if is_linear(x) else None for cotangent, x in zip(
        found, operands[start:], strict=True))]


linear_call_p = call_primitive("linear_call", "callee", jvp=_jvp, transpose=_transpose)


def linear_call(fun: Callable[[PyTree, PyTree], PyTree],
                fun_transpose: Callable[[PyTree, PyTree], PyTree], residual_args: PyTree,
                linear_args: PyTree) -> Any:
    """Calls a linear function that comes with its transpose.

    Args:
      fun: ``(residuals, x) -> y``, linear in ``x``. Pytrees all.
      fun_transpose: ``(residuals, cotangent of y) -> cotangent of x``.
      residual_args, linear_args: what ``fun`` is called with.

    Returns:
      ``fun(residual_args, linear_args)``.

    Raises:
      TypeError: when it is transposed, and the transpose's result is structured unlike
        ``linear_args``.

    >>> from maxjax.custom_derivatives import linear_call
    >>> divide = lambda r, x: x / r
    >>> jax.grad(lambda x: linear_call(divide, divide, 4., x))(1.)
    Array(0.25, dtype=float32, weak_type=True)
    """
    res_leaves, res_tree = pytree.flatten(residual_args)
    lin_leaves, lin_tree = pytree.flatten(linear_args)
    residuals, values = operands_of(res_leaves), operands_of(lin_leaves)
    res_avals = [x.aval for x in residuals]
    function = traced(fun, "linear_call fun", pytree.structure((residual_args, linear_args)),
                      [*res_avals, *(x.aval for x in values)])

    def transpose() -> tuple[ClosedJaxpr, Sequence[Any]]:
        out_avals = function.closed.out_avals
        tree = pytree.structure((
            pytree.unflatten(res_tree, res_avals), pytree.unflatten(function.tree, out_avals)))
        result: Traced = traced(fun_transpose, "linear_call fun_transpose", tree,
                                [*res_avals, *out_avals])
        if result.tree != lin_tree:
            raise TypeError(
                "transpose output pytree structure must match that of linear inputs, got output "
                f"structure {PyTreeDef(result.tree)} and input structure {PyTreeDef(lin_tree)}.")
        return result.closed, result.consts

    outs = linear_call_p.bind(
        *function.consts, *residuals, *values, callee=function.closed,
        transpose_thunk=_Transpose(transpose), num_callee_consts=len(function.consts),
        num_res=len(residuals))
    return pytree.unflatten(function.tree, handed_on(
        outs, [*res_leaves, *lin_leaves], function.closed, len(function.consts)))
