"""jax.interpreters.ad: differentiation rules for custom primitives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.custom_primitive import CustomPrimitive
from maxjax._higher_order.custom_primitive import Zero as Zero
from maxjax._higher_order.custom_primitive import primitive_jvps as primitive_jvps
from maxjax._higher_order.custom_primitive import primitive_transposes as primitive_transposes
from maxjax._ir.trace import aval_of
from maxjax._ir.types import ShapedArray
from maxjax._primitives.builders import add_any_p as add_jaxvals_p
from maxjax._primitives.rules import Linear as UndefinedPrimal
from maxjax._primitives.rules import is_linear as is_undefined_primal
from maxjax._transforms.jvp import JVPTrace as JVPTrace
from maxjax._transforms.jvp import JVPTracer as JVPTracer
from maxjax._transforms.jvp import instantiate

__all__ = ["UndefinedPrimal", "add_jaxvals_p", "is_undefined_primal"]


def defjvp(primitive: CustomPrimitive, *jvprules: Callable[..., Any] | None) -> None:
    """Gives a primitive with one result its derivative, operand by operand.

    Args:
      jvprules: for each operand ``(tangent, *primals, **params)``, the contribution of its tangent
        to the result's; None if there is none.

    >>> square_p = jax.extend.core.Primitive("square")
    >>> impl = square_p.def_impl(lambda x: x * x)
    >>> rule = square_p.def_abstract_eval(lambda x: x)
    >>> jax.interpreters.ad.defjvp(square_p, lambda t, x: 2 * t * x)
    >>> jax.grad(square_p.bind)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    defjvp2(primitive, *(rule and _without_answer(rule) for rule in jvprules))


def _without_answer(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda t, answer, *primals, **params: rule(t, *primals, **params)


def defjvp2(primitive: CustomPrimitive, *jvprules: Callable[..., Any] | None) -> None:
    """Like ``defjvp``; the rules are ``(tangent, result, *primals, **params)``.

    >>> exp_p = jax.extend.core.Primitive("own_exp")
    >>> impl = exp_p.def_impl(np.exp)
    >>> rule = exp_p.def_abstract_eval(lambda x: x)
    >>> jax.interpreters.ad.defjvp2(exp_p, lambda t, y, x: t * y)
    >>> jax.grad(exp_p.bind)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        parts = [rule(t, out, *primals, **params)
                 for rule, t in zip(jvprules, tangents, strict=True)
                 if rule is not None and type(t) is not Zero]
        return out, functools.reduce(add_tangents, parts, Zero(aval_of(out).tangent()))

    primitive_jvps[primitive] = jvp


def deflinear(primitive: CustomPrimitive, transpose_rule: Callable[..., Any]) -> None:
    """Like ``deflinear2``, with a rule ``(cotangent, **params)``.

    >>> negative_p = jax.extend.core.Primitive("negative")
    >>> impl = negative_p.def_impl(np.negative)
    >>> rule = negative_p.def_abstract_eval(lambda x: x)
    >>> jax.interpreters.ad.deflinear(negative_p, lambda cotangent: [-cotangent])
    >>> jax.grad(negative_p.bind)(1.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    deflinear2(primitive, lambda cotangent, *_, **params: transpose_rule(cotangent, **params))


def deflinear2(primitive: CustomPrimitive, transpose_rule: Callable[..., Any]) -> None:
    """Makes a primitive linear in all of its operands together.

    Args:
      transpose_rule: ``(cotangent, *operands, **params)`` to the list of the operands' cotangents.

    >>> double_p = jax.extend.core.Primitive("double")
    >>> impl = double_p.def_impl(lambda x: 2 * x)
    >>> rule = double_p.def_abstract_eval(lambda x: x)
    >>> jax.interpreters.ad.deflinear2(double_p, lambda cotangent, x: [double_p.bind(cotangent)])
    >>> jax.grad(double_p.bind)(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, Zero(aval_of(out).tangent())
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose_rule


def defbilinear(prim: CustomPrimitive, lhs_rule: Callable[..., Any],
                rhs_rule: Callable[..., Any]) -> None:
    """Makes a primitive linear in each of its two operands.

    Args:
      lhs_rule, rhs_rule: ``(cotangent, x, y, **params)``, the cotangent of that operand, which is
        passed as an ``UndefinedPrimal``.

    >>> times_p = jax.extend.core.Primitive("times")
    >>> impl = times_p.def_impl(np.multiply)
    >>> rule = times_p.def_abstract_eval(lambda x, y: x)
    >>> jax.interpreters.ad.defbilinear(times_p, lambda cotangent, x, y: times_p.bind(cotangent, y),
    ...                                 lambda cotangent, x, y: times_p.bind(x, cotangent))
    >>> jax.grad(times_p.bind)(2.0, 3.0)
    Array(3., dtype=float32)
    """
    def transpose(cotangent: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        if is_undefined_primal(x) == is_undefined_primal(y):
            raise AssertionError(f"{prim.name} is linear in one operand at a time")
        if is_undefined_primal(x):
            return [lhs_rule(cotangent, x, y, **params), None]
        return [None, rhs_rule(cotangent, x, y, **params)]

    defjvp(prim, lambda t, x, y, **params: prim.bind(t, y, **params),
           lambda t, x, y, **params: prim.bind(x, t, **params))
    primitive_transposes[prim] = transpose


def get_primitive_transpose(p: Any) -> Callable[..., Any]:
    """A primitive's transpose rule.

    Raises:
      NotImplementedError: it has none.

    >>> callable(jax.interpreters.ad.get_primitive_transpose(lax.neg_p))
    True
    """
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError("Transpose rule (for reverse-mode differentiation) for "
                                  f"'{p}' not implemented") from None


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be a ``Zero``.

    >>> jax.interpreters.ad.add_tangents(1.0, jax.interpreters.ad.Zero.from_primal_value(2.0))
    1.0
    """
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    return add_jaxvals(x, y)


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two arrays of one type.

    >>> jax.interpreters.ad.add_jaxvals(jnp.ones(2), jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    return add_jaxvals_p.bind(x, y)


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as an array: zeros for a ``Zero``.

    >>> jax.interpreters.ad.instantiate_zeros(jax.interpreters.ad.Zero.from_primal_value(1.0))
    Array(0., dtype=float32, weak_type=True)
    """
    return tangent.instantiate() if type(tangent) is Zero else tangent


def zeros_like_aval(aval: ShapedArray) -> Any:
    """Zeros of a type.

    >>> jax.interpreters.ad.zeros_like_aval(jax.core.ShapedArray((2,), jnp.float32))
    Array([0., 0.], dtype=float32)
    """
    return instantiate(None, aval)


explain_missing_names(__name__)
