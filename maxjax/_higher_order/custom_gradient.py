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
from maxjax._higher_order.custom_primitive import Zero
from maxjax._higher_order.custom_rules import SymbolicZero, zero_tangent
from maxjax._higher_order.custom_vjp import custom_vjp, custom_vjp_primal_tree_values
from maxjax._higher_order.hi_accums import NullAccum, ValAccum
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

    def __call__(self, cotangents: PyTree) -> Any:
        return pytree.unflatten(self.out_tree, eval_jaxpr(
            self.closed.jaxpr, self.consts, *pytree.leaves((cotangents,))))

    def of_one(self, with_logs: bool) -> bool:
        """Whether it gives a single cotangent, for a single argument."""
        tree = self.out_tree.children()[0] if with_logs else self.out_tree
        return tree.is_leaf()


pytree.register(_Rule, lambda rule: (rule.consts, (rule.closed, rule.out_tree)),
                lambda data, consts: _Rule(data[0], data[1], list(consts)))


def custom_gradient(fun: Callable[..., PyTree] | None = None, *, with_logs: bool = False,
                    remat: bool = False, with_accums: object = None) -> Callable[..., Any]:
    """A function that returns its own gradient function.

    Args:
      fun: gives a pair: a result, and a function from its cotangent to a tuple of those of the
        arguments (to one, for a single argument). That function may use what was computed.
        Without it, this is a decorator.
      with_logs: the gradient function gives a pair of that and a dict of what it logs, by names
        that are unique in a backward pass, or None. ``vjp(f, x)[1].with_logs`` gives the logs with
        the cotangents; otherwise they are dropped.
      with_accums: the gradient function takes the cotangent and then, for each leaf of the
        arguments, an accumulator, to which it adds (``accum``); it gives None or logs. A pytree
        prefix of the arguments, with ``jax.experimental.hijax.ValAccum`` as leaves. Arguments that
        are not differentiated have a ``NullAccum``.
      remat: JAX has it with ``jax_custom_vjp3`` alone, and maxjax has it not.

    Raises:
      NotImplementedError: with ``remat``, when it is called: for what is to be saved in
        ``jax.checkpoint`` there is its ``policy``.

    >>> @jax.custom_gradient
    ... def square(x):
    ...     return x ** 2, lambda cotangent: (cotangent * x,)
    >>> jax.grad(square)(3.)
    Array(3., dtype=float32, weak_type=True)
    >>> @jax.custom_gradient(with_logs=True)
    ... def logged(x):
    ...     return x ** 2, lambda cotangent: (2 * cotangent * x, {"arrived": cotangent})
    >>> jax.vjp(logged, 3.)[1].with_logs(jnp.float32(5))
    ((Array(30., dtype=float32),), {'arrived': Array(5., dtype=float32)})
    """
    if fun is None:
        return lambda f: custom_gradient(f, with_logs=with_logs, remat=remat,
                                         with_accums=with_accums)
    if with_accums is not None and remat:
        raise NotImplementedError(
            "custom_gradient doesn't yet support with_accums together with remat")

    def wrapped(*args: PyTree, **kwargs: PyTree) -> Any:
        if remat:
            raise NotImplementedError(
                "custom_vjp.defremat requires the jax_custom_vjp3 implementation, which maxjax "
                "does not have: say what jax.checkpoint is to save by its policy")
        return fun(*args, **kwargs)[0]

    wrapped.__name__ = getattr(fun, "__name__", "<unnamed>")
    wrapped.__qualname__ = getattr(fun, "__qualname__", "<unnamed>")
    wrapped_fun = custom_vjp(wrapped)

    def fwd(*args: PyTree, **kwargs: PyTree) -> Any:
        result, rule = fun(*args, **kwargs)
        return result, _traced_rule(_checked_pair(rule) if with_logs else rule, result)

    def bwd(rule: _Rule, cotangents: PyTree) -> Any:
        found = rule(cotangents)
        logs: Any = None
        if with_logs:
            found, logs = found
        if rule.of_one(with_logs):
            found = (found,)
        return (found, logs) if with_logs else found

    def accumulating_fwd(*primals: PyTree) -> Any:
        args = custom_vjp_primal_tree_values(primals)
        marks, tree = pytree.flatten(primals)
        result, rule = fun(*args)
        kinds = [kind if mark.perturbed else NullAccum for kind, mark in zip(
            _accumulator_kinds(with_accums, args), marks, strict=True)]
        avals = [leaf_operand(mark.value).aval.cotangent() for mark in marks]

        def accumulated(cotangent: PyTree) -> Any:
            accums = [kind(aval) for kind, aval in zip(kinds, avals, strict=True)]
            logs = rule(cotangent, *pytree.unflatten(tree, accums))
            if logs is not None and type(logs) is not dict:
                raise TypeError(
                    "custom_gradient function used with with_accums must return a VJP function "
                    f"that returns None or a dict of logs, but got {type(logs).__name__}.")
            values = [x.freeze() if type(x) is ValAccum else None for x in accums]
            return pytree.unflatten(tree, [
                None if type(value) is Zero else value for value in values]), logs

        return result, _traced_rule(accumulated, result)

    if with_accums is not None:
        wrapped_fun.defvjp_with_logs(accumulating_fwd, _apply_rule, symbolic_zeros=True)
    elif with_logs:
        wrapped_fun.defvjp_with_logs(fwd, bwd)
    else:
        wrapped_fun.defvjp(fwd, bwd)
    return wrapped_fun


def _traced_rule(rule: Callable[[PyTree], PyTree], result: PyTree) -> _Rule:
    """A function of the cotangent of ``result`` as a jaxpr."""
    leaves, tree = pytree.flatten((result,))
    out_tree: Any = None

    def flat(*cotangents: Value) -> list[Any]:
        nonlocal out_tree
        found, out_tree = pytree.flatten(rule(*pytree.unflatten(tree, cotangents)))
        return operands_of(found)

    avals = [leaf_operand(leaf).aval.tangent() for leaf in leaves]
    closed = trace_to_jaxpr(flat, avals, "custom_gradient", "custom_gradient")
    return _Rule(ClosedJaxpr(closed.jaxpr), out_tree, closed.consts)


def _apply_rule(rule: _Rule, cotangents: PyTree) -> Any:
    """Its results, where cotangents that are known to be zero may be symbols."""
    return rule(pytree.map(
        lambda x: zero_tangent(x.aval) if isinstance(x, SymbolicZero) else x, cotangents))


def _checked_pair(rule: Callable[[PyTree], PyTree]) -> Callable[[PyTree], PyTree]:
    """A gradient function whose result is checked to be a pair of cotangents and logs."""
    def with_logs(cotangent: PyTree) -> Any:
        pair = rule(cotangent)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                "custom_gradient function used with with_logs=True must return a VJP function "
                "producing a pair (in_cts, logs), but the VJP function returned "
                f"{pair}.")
        if pair[1] is not None and type(pair[1]) is not dict:
            raise TypeError(
                "custom_gradient function used with with_logs=True must return a VJP function "
                "whose second output is None or a dict of backward-pass log entries, but got "
                f"{type(pair[1]).__name__}.")
        return tuple(pair)

    return with_logs


def _accumulator_kinds(spec: PyTree, args: PyTree) -> list[Any]:
    """For each leaf of the arguments, the kind of its accumulator."""
    kinds = pytree.broadcast_prefix(spec, args)
    for kind in kinds:
        if kind is not ValAccum:
            raise TypeError(
                "custom_gradient's with_accums must be a pytree prefix of the function's arguments "
                f"with ValAccum leaves (maxjax has no RefAccum), but got a leaf {kind}.")
    return kinds


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
