"""Special functions of several arguments."""

from __future__ import annotations

from typing import Any

from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import incomplete, special
from maxjax._primitives.rules import broadcast_shape
from maxjax.lax._elementwise import _binary
from maxjax.lax._operands import check_accepted, same_dtypes_error
from maxjax.lax._operands import operand as as_operand

__all__ = [
    "betainc", "igamma", "igamma_grad_a", "igammac", "polygamma", "random_gamma_grad", "zeta",
]

_igamma = _binary(incomplete.igamma_p, "igamma")
_igammac = _binary(incomplete.igammac_p, "igammac")
_igamma_grad_a = _binary(incomplete.igamma_grad_a_p, "igamma_grad_a")
_random_gamma_grad = _binary(incomplete.random_gamma_grad_p, "random_gamma_grad")
_polygamma = _binary(special.polygamma_p, "polygamma")
_zeta = _binary(special.zeta_p, "zeta")


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order ``m``, a float with an integral value, of ``digamma`` at ``x``.

    >>> lax.polygamma(1., 1.)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    return _polygamma(m, x)


def zeta(x: ArrayLike, q: Any) -> Array:
    """The Hurwitz zeta function: the sum of ``(q + k) ** -x`` over ``k >= 0``.

    >>> lax.zeta(2., 1.)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    return _zeta(x, q)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function.

    It is the probability that a gamma variate with the parameter ``a`` is at most ``x``.
    Differentiable in both.

    >>> lax.igamma(2., 1.5).round(4)
    Array(0.4422, dtype=float32, weak_type=True)
    """
    return _igamma(a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function: ``1 - igamma(a, x)``, exact near 0.

    >>> lax.igammac(2., 30.)
    Array(2.9008631e-12, dtype=float32, weak_type=True)
    """
    return _igammac(a, x)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of ``igamma`` in its first argument; it has no derivative itself.

    >>> lax.igamma_grad_a(2., 1.5).round(4)
    Array(-0.3135, dtype=float32, weak_type=True)
    """
    return _igamma_grad_a(a, x)


def random_gamma_grad(*args: Any) -> Array:
    """The derivative of a gamma variate in its parameter, at a fixed quantile.

    Args:
      args: the parameter and the variate, positive arrays of one shape.

    >>> lax.random_gamma_grad(jnp.array([2.]), jnp.array([1.5])).round(3)
    Array([0.937], dtype=float32)
    """
    return _random_gamma_grad(*args)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function.

    It is the probability that a beta variate with the parameters ``a`` and ``b`` is at most
    ``x``. Differentiable in ``x`` alone.

    Raises:
      ValueError: it is differentiated in ``a`` or ``b``.

    >>> lax.betainc(2., 3., 0.5)
    Array(0.6875, dtype=float32, weak_type=True)
    """
    primitive = incomplete.regularized_incomplete_beta_p
    operands = [as_operand(value, primitive.name, i) for i, value in enumerate((a, b, x))]
    avals = [operand.aval for operand in operands]
    broadcast_shape(primitive.name, [aval.shape for aval in avals])
    check_accepted(primitive, avals)
    if not avals[0].dtype == avals[1].dtype == avals[2].dtype:
        raise same_dtypes_error(primitive.name, avals)
    return primitive.bind(*operands)
