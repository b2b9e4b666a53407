"""Transposes of linear functions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from maxjax._base import dtypes, pytree
from maxjax._base.partial import Partial
from maxjax._base.pytree import PyTree
from maxjax._base.tracebacks import boundary
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.control import operands_of, traced
from maxjax._higher_order.custom_jvp import custom_jvp_call_p
from maxjax._higher_order.jit import jit_p
from maxjax._higher_order.shape_struct import abstract_leaf
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from maxjax._ir.liveness import dependent_equations, eliminate_dead_code
from maxjax._ir.trace import as_given
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.rules import Linear
from maxjax._transforms.simplify import called, called_by, inline_calls
from maxjax._transforms.transpose import missing_transpose, transpose_partly


@boundary
def linear_transpose(fun: Callable[..., PyTree], *primals: PyTree,
                     reduce_axes: Sequence[Hashable] = ()) -> Callable[..., Any]:
    """The transpose of a linear function.

    Args:
      fun: linear in its arguments, up to a constant; of floating-point and complex numbers, or of
        integers.
      primals: arrays, or shapes and dtypes, of the arguments.
      reduce_axes: must be empty.

    Returns:
      A function of a cotangent of the result that gives a tuple of cotangents of the arguments. It
      is a pytree, whose leaves are the arrays that it holds.

    Raises:
      TypeError: arguments or results of integers and others; a cotangent of another type.
      NotImplementedError: when the transpose is called: ``fun`` is not linear.

    See also: ``jax.vjp``, ``jax.linearize``, ``jax.grad``.

    >>> jax.linear_transpose(lambda x, y: 2 * x - y, 1.0, 1.0)(3.0)
    (Array(6., dtype=float32, weak_type=True), Array(-3., dtype=float32, weak_type=True))
    """
    if not callable(fun):
        raise TypeError("the first argument must be callable")
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to transpose is deprecated")
    leaves, tree = pytree.flatten(primals)
    avals = [abstract_leaf(leaf) for leaf in leaves]
    body = traced(fun, "linear_transpose", tree, avals)
    out_avals = body.closed.out_avals
    in_dtypes, out_dtypes = [x.dtype for x in avals], [x.dtype for x in out_avals]
    if not (all(map(dtypes.is_inexact, in_dtypes + out_dtypes))
            or all(map(dtypes.is_integer, in_dtypes + out_dtypes))):
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer "
            f"-> integer functions, but got {in_dtypes} -> {out_dtypes}.")
    closed = eliminate_dead_code(_with_calls_inlined(body.closed, len(body.consts)))
    linear = list(map(Linear, avals))

    @boundary
    def transposed(consts: Sequence[Value], captured: Sequence[Value], out_cotangent: PyTree
                   ) -> Any:
        given, given_tree = pytree.flatten(out_cotangent)
        if given_tree != body.tree:
            raise TypeError("cotangent tree does not match function output, expected "
                            f"{PyTreeDef(body.tree)} but got {PyTreeDef(given_tree)}")
        values = operands_of(given)
        if any((x.shape, x.dtype, x.aval.vma) != (aval.shape, aval.dtype, aval.vma)
               for x, aval in zip(values, out_avals, strict=True)):
            raise TypeError(f"cotangent type does not match function output, expected "
                            f"{tuple(out_avals)} but got {given}")
        _check_linear(closed.jaxpr, len(captured))
        results = transpose_partly(closed.jaxpr, consts, [*captured, *linear], values)
        passes = as_given if not closed.jaxpr.eqns else lambda x: x
        return pytree.unflatten(tree, [
            _zeros(aval) if x is None else passes(x)
            for x, aval in zip(results, avals, strict=True)])

    return Partial(transposed, tuple(closed.consts), tuple(body.consts))


def _with_calls_inlined(closed: ClosedJaxpr, num_consts: int) -> ClosedJaxpr:
    """Without calls, and without custom rules of what depends on the arguments: it is linear. What
    is computed of closed-over values keeps its rules, for derivatives by those."""
    while True:
        closed = inline_calls(closed, called_by(jit_p))
        ruled = {eqn: called(eqn) for eqn in dependent_equations(
            closed.eqns, set(closed.invars[num_consts:])) if eqn.primitive is custom_jvp_call_p}
        if not ruled:
            return closed
        closed = inline_calls(closed, ruled.get)


def _zeros(aval: ShapedArray) -> Any:
    return convert_element_type(full(aval.shape, 0, aval.dtype), aval.dtype, aval.weak_type)


def _check_linear(jaxpr: Jaxpr, num_consts: int) -> None:
    """Raises where an equation is not linear in what depends on the arguments."""
    linear: set[Var] = set(jaxpr.invars[num_consts:])
    is_real = any(dtypes.is_inexact(var.aval.dtype) for var in linear)
    for eqn in dependent_equations(jaxpr.eqns, linear):
        dependent = [atom for atom in eqn.invars if atom in linear]
        if eqn.primitive.transpose is None:
            raise missing_transpose(eqn.primitive)
        linearity = eqn.primitive.linearity
        if linearity is not None:
            allowed = linearity.positions(len(eqn.invars))
            places = [place for place, atom in enumerate(eqn.invars) if atom in dependent]
            if linearity.each and len(places) > 1:
                raise _not_linear(eqn, "has two operands that depend on the arguments")
            if not set(places) <= set(allowed):
                raise _not_linear(eqn, "is not linear in the operand that depends on the arguments")
        if is_real and not all(dtypes.is_inexact(atom.aval.dtype) for atom in dependent):
            raise _not_linear(eqn, "has an integer operand that depends on the arguments")


def _not_linear(eqn: JaxprEqn, why: str) -> AssertionError:
    return AssertionError(
        f"linear_transpose takes a linear function, but '{eqn.primitive.name}' {why}, at "
        f"{eqn.source}")
