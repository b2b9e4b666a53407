"""custom_vmap: functions that come with a batching rule of their own."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.tracebacks import boundary
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.calls import call_primitive
from maxjax._higher_order.control import operands_of, traced
from maxjax._higher_order.custom_rules import Positional, forwarded, name_of
from maxjax._higher_order.scan import scan_for
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.rule_groups import Derivative, Outside, Printed
from maxjax._ir.trace import Array, aval_of
from maxjax._ir.typing import Function, Value
from maxjax._primitives.layout import move_axis
from maxjax._transforms.autodiff import jvp, leaf_operand
from maxjax._transforms.batching import batch_flat
from maxjax._transforms.jvp import instantiate, jvp_jaxpr
from maxjax._transforms.linearize import UNKNOWN_PRIMALS

# --- the primitive --------------------------------------------------------------------------------
# The trees are those of (constants, arguments) and of the result; a rule is called with the size,
# and with such trees of booleans and of arrays.


def _to_front(value: Array, axis: int | None) -> Any:
    return value if axis is None else move_axis(value, axis, 0)


def _check_trees(rule: _Rule | _JVPRule, expected: PyTreeSpec, found: PyTreeSpec, batched: PyTree
                 ) -> None:
    if found != batched:
        raise ValueError(
            "structure of output value and output batching specification returned by custom vmap "
            f"rule ({name_of(rule)}) do not match.\nOutput values: {PyTreeDef(found)}\n"
            f"Batching spec: {PyTreeDef(batched)}")
    if found != expected:
        raise ValueError(
            f"structure of output returned by custom vmap rule ({name_of(rule)}) does not match "
            f"that of original custom-vmapped function.\nOriginal output: {PyTreeDef(expected)}\n"
            f"Rule output: {PyTreeDef(found)}")


def _batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *, call: ClosedJaxpr,
           rule: _Rule | _JVPRule, in_tree: PyTreeSpec, out_tree: PyTreeSpec
           ) -> tuple[list[Any], list[int | None]]:
    values = [_to_front(x, axis) for x, axis in zip(operands, axes, strict=True)]
    result = rule(size, pytree.unflatten(in_tree, [axis is not None for axis in axes]),
                  pytree.unflatten(in_tree, values))
    outs, tree = pytree.flatten(result[0])
    batched, batched_tree = pytree.flatten(result[1])
    _check_trees(rule, out_tree, tree, batched_tree)
    return [leaf_operand(x) for x in outs], [0 if flag else None for flag in batched]


class _Rule:
    """A user's rule."""

    __slots__ = ("__name__", "function")

    def __init__(self, function: Callable[..., PyTree]):
        self.function = function
        self.__name__ = name_of(function)

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, size: int, batched: PyTree, values: PyTree) -> Any:
        return self.function(size, list(batched[1]), *values[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rule) and self.function is other.function

    def __hash__(self) -> int:
        return hash((_Rule, id(self.function)))


class _JVPRule:
    """The rule of the derivative: the derivative of the rule, with ``vmap`` for arguments of which
    only the value or only the tangent is mapped."""

    __slots__ = ("__name__", "rule", "tree")

    def __init__(self, rule: _Rule | _JVPRule, tree: PyTreeSpec):
        self.rule = rule
        self.tree = tree      # of the function's result
        self.__name__ = name_of(rule)

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, size: int, batched: PyTree, values: PyTree) -> Any:
        primals_batched, tangents_batched = batched
        both = pytree.map(operator.and_, primals_batched, tangents_batched)
        leaves, tree = pytree.flatten(values)
        mapped = [flag and not other for flag, other in zip(
            pytree.leaves(batched), [*pytree.leaves(both)] * 2, strict=True)]
        results: dict[str, Any] = {}

        def apply(*primals: PyTree) -> Any:
            out, out_batched = self.rule(size, both, primals)
            found = pytree.structure(out)
            _check_trees(self.rule, self.tree, found, pytree.structure(out_batched))
            results["batched"] = pytree.leaves(out_batched)
            return out

        def derivative(*xs: Value) -> list[Any]:
            primals, tangents = pytree.unflatten(tree, xs)
            outs, results["tree"] = pytree.flatten(jvp(apply, tuple(primals), tuple(tangents)))
            return operands_of(outs)

        outs, axes = batch_flat(derivative, size, leaves, [0 if flag else None for flag in mapped])
        flags = [*results["batched"]] * 2
        return (pytree.unflatten(results["tree"], [
                    _to_front(x, axis) for x, axis in zip(outs, axes, strict=True)]),
                pytree.unflatten(results["tree"], [
                    axis is not None or flag for axis, flag in zip(axes, flags, strict=True)]))


def _pair(tree: PyTreeSpec) -> Any:
    """The tree of two like ``tree``."""
    marks = pytree.unflatten(tree, [0] * tree.num_leaves)
    return pytree.structure((marks, marks))


def _jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *, call: ClosedJaxpr,
         rule: _Rule | _JVPRule, in_tree: PyTreeSpec, out_tree: PyTreeSpec
         ) -> tuple[list[Any], list[Any]]:
    given = [instantiate(t, aval_of(x)) for x, t in zip(primals, tangents, strict=True)]
    both, _ = jvp_jaxpr(call, (True,) * len(given), True)
    results = custom_vmap_p.bind(
        *primals, *given, call=both, rule=_JVPRule(rule, out_tree), in_tree=_pair(in_tree),
        out_tree=_pair(out_tree))
    count = len(results) // 2
    return results[:count], results[count:]


def _linearize(*_: object, **__: object) -> Any:
    raise ValueError(UNKNOWN_PRIMALS)


custom_vmap_p = call_primitive(
    "custom_vmap_call", "call", outside=Outside(stepwise=True),
    jvp=_jvp,
    derivative=Derivative(linearize=_linearize),
    batch=_batch,
    printed=Printed(lambda params: {
        **params, "in_tree": PyTreeDef(params["in_tree"]),
        "out_tree": PyTreeDef(params["out_tree"])}),
)

# --- the decorators -------------------------------------------------------------------------------


class custom_vmap:
    """A function with a rule for ``vmap``. It has no reverse mode; ``custom_vjp`` around it gives
    it one.

    Args:
      fun: a function of arrays or pytrees of them.

    >>> @jax.custom_batching.custom_vmap
    ... def add(x, y):
    ...     return x + y
    >>> @add.def_vmap
    ... def rule(axis_size, in_batched, xs, ys):
    ...     return 10 * (xs + ys), True
    >>> jax.vmap(add)(jnp.arange(3), jnp.arange(3))
    Array([ 0, 20, 40], dtype=int32)
    """

    def __init__(self, fun: Callable[..., PyTree]):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None
        self._positional: Positional | None = None

    def __getattr__(self, name: str) -> Any:
        return forwarded(self, name)

    def def_vmap(self, vmap_rule: Function) -> Function:
        """Defines the rule: ``rule(axis_size, in_batched, *args)``.

        ``in_batched`` is a list with a pytree of booleans for each argument; what is batched has
        its batch axis first. The rule gives a pair: the result, and a pytree of booleans for it.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        positional = self._positional
        if positional is None:
            positional = self._positional = Positional(self.fun, "custom_vmap")
        args = positional(args, kwargs)
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name_of(self.fun)} using "
                "def_vmap.")
        leaves, tree = pytree.flatten(args)
        values = operands_of(leaves)
        body = traced(self.fun, "custom_vmap", tree, [x.aval for x in values])
        in_tree = pytree.structure((list(body.consts), args))
        outs = custom_vmap_p.bind(
            *body.consts, *values, call=body.closed, rule=_Rule(self.vmap_rule), in_tree=in_tree,
            out_tree=body.tree)
        return pytree.unflatten(body.tree, outs)


def sequential_vmap(f: Callable[..., PyTree]) -> custom_vmap:
    """``f``, which ``vmap`` calls for one element after the other, in a loop.

    >>> double = jax.custom_batching.sequential_vmap(lambda x: 2 * x)
    >>> jax.vmap(double)(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    function = custom_vmap(f)

    @function.def_vmap
    def rule(axis_size: int, in_batched: list[PyTree], *args: PyTree) -> Any:
        leaves, tree = pytree.flatten(list(args))
        flags = pytree.leaves(in_batched)
        mapped = [x for x, flag in zip(leaves, flags, strict=True) if flag]

        def on_element(carry: tuple[()], slices: list[PyTree]) -> Any:
            given = iter(slices)
            return carry, function(*pytree.unflatten(tree, [
                next(given) if flag else x for x, flag in zip(leaves, flags, strict=True)]))

        out = scan_for(on_element, (), mapped, None)[1]
        return out, pytree.map(lambda _: True, out)

    return function
