"""Operations that compute nothing: barriers, sinks, tokens, and functions under a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base import dtypes, pytree
from maxjax._base.errors import UnexpectedTracerError
from maxjax._higher_order.composed import bind_closed, composite_p
from maxjax._higher_order.constraints import with_sharding_constraint
from maxjax._higher_order.control import operands_of
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, Tracer
from maxjax._primitives.identities import (
    after_all_p,
    create_token_p,
    dce_sink_p,
    optimization_barrier_p,
)
from maxjax._primitives.sharding import device_put_p, sharding_constraint_p
from maxjax.lax._operands import operand as as_operand

__all__ = [
    "after_all", "after_all_p", "composite", "create_token", "create_token_p", "dce_sink",
    "device_put_p", "optimization_barrier", "optimization_barrier_p",
    "sharding_constraint_p", "with_sharding_constraint",
]


def optimization_barrier(operand: Any, /) -> Any:
    """The leaves of a pytree, unchanged; nothing is moved or merged across it.

    Args:
      operand: a pytree of arrays.

    Returns:
      A pytree of the same values.

    See also: ``jax.checkpoint``, ``jax.block_until_ready``.

    >>> lax.optimization_barrier({"a": jnp.arange(2)})
    {'a': Array([0, 1], dtype=int32)}
    """
    leaves, tree = pytree.flatten(operand)
    values = [as_operand(x, "optimization_barrier", i) for i, x in enumerate(leaves)]
    return pytree.unflatten(tree, optimization_barrier_p.bind(*values) if values else [])


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Accepts a pytree of arrays, and does nothing with it.

    >>> lax.dce_sink(jnp.arange(2))
    """
    values = [as_operand(x, "dce_sink", i) for i, x in enumerate(pytree.leaves(val))]
    dce_sink_p.bind(*values, prevent_mlir_dce=bool(prevent_mlir_dce))


def create_token(_: Any = None) -> Array:
    """A token: an empty array, which orders effects. The argument is ignored.

    >>> lax.create_token().shape
    (0,)
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Array:
    """A token that comes after all of ``operands``.

    Raises:
      TypeError: an operand is no token.

    >>> lax.after_all(lax.create_token(), lax.create_token()).shape
    (0,)
    """
    tokens = [as_operand(x, "after_all", i) for i, x in enumerate(operands)]
    if any(x.shape != (0,) or x.dtype != dtypes.bool_ for x in tokens):
        raise TypeError("Arguments to after_all must be tokens")
    return after_all_p.bind(*tokens)


def composite(decomposition: Callable[..., Any], name: str,
              version: int = 0) -> Callable[..., Any]:
    """``decomposition`` as one named operation, which jaxprs show.

    Args:
      decomposition: a function of arrays or pytrees; its keyword arguments are static.
      name, version: of the operation.

    Returns:
      A function with the signature of ``decomposition``. It has no derivative and cannot be mapped
      by ``vmap``; ``custom_jvp`` can provide a derivative. It raises UnexpectedTracerError for
      keyword arguments that are traced, and for traced values from outside in ``decomposition``.

    >>> double = lax.composite(lambda x, *, times=2: x * times, name="my.multiply")
    >>> double(jnp.arange(3), times=3)
    Array([0, 3, 6], dtype=int32)
    """
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(leaf, Tracer) for leaf in pytree.leaves(kwargs)):
            raise _traced_part("an attribute", name, (
                "\n\nNote: If you are passing jax arrays as attributes, use numpy arrays instead."))
        leaves, tree = pytree.flatten(args)
        out_tree: Any = None

        def flat(*values: Any) -> list[Any]:
            nonlocal out_tree
            results, out_tree = pytree.flatten(
                decomposition(*pytree.unflatten(tree, values), **kwargs))
            return operands_of(results)

        attributes = tuple((key, value) for key, value in kwargs.items() if value is not None)
        operands = operands_of(leaves)
        closed = trace_to_jaxpr(flat, [x.aval for x in operands], composite_p.name,
                                composite_p.name)
        if any(isinstance(value, Tracer) for value in closed.consts):
            raise _traced_part("a constant", name)
        outs = bind_closed(composite_p, closed, operands, name=name, version=version,
                           attributes=attributes)
        return pytree.unflatten(out_tree, outs)

    return call


def _traced_part(part: str, name: str, note: str = "") -> UnexpectedTracerError:
    return UnexpectedTracerError(
        f"Found a JAX Tracer as {part} in the decomposition for the composite op {name!r}. This "
        "means that the decomposition function closes over a value that is involved in a JAX "
        "transformation. Any values that aren't explicitly known at compile time must be "
        f"explicitly passed as arguments to the composite.{note}")
