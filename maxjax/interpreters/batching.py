"""jax.interpreters.batching: vmap rules for custom primitives."""

from __future__ import annotations

from typing import Any

from maxjax._higher_order.custom_primitive import CustomPrimitive, batch_elementwise
from maxjax._higher_order.custom_primitive import (
    axis_primitive_batchers as axis_primitive_batchers,
)
from maxjax._higher_order.custom_primitive import primitive_batchers as primitive_batchers
from maxjax._transforms.batching import to_axis
from maxjax._transforms.vmappable import register_vmappable as register_vmappable
from maxjax._transforms.vmappable import unregister_vmappable as unregister_vmappable


def defvectorized(prim: CustomPrimitive) -> None:
    """For elementwise primitives: operands and results have the same shape.

    >>> sine_p = jax.extend.core.Primitive("sine")
    >>> impl = sine_p.def_impl(np.sin)
    >>> rule = sine_p.def_abstract_eval(lambda x: x)
    >>> jax.interpreters.batching.defvectorized(sine_p)
    >>> jax.vmap(sine_p.bind)(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    batch_elementwise(prim)


def defbroadcasting(prim: CustomPrimitive) -> None:
    """For elementwise primitives of several operands, of which some may not be mapped.

    >>> plus_p = jax.extend.core.Primitive("plus")
    >>> impl = plus_p.def_impl(np.add)
    >>> rule = plus_p.def_abstract_eval(lambda x, y: x)
    >>> jax.interpreters.batching.defbroadcasting(plus_p)
    >>> jax.vmap(plus_p.bind, (0, None))(jnp.zeros(2), 1.0)
    Array([1., 1.], dtype=float32)
    """
    batch_elementwise(prim)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """An operand with its batch axis first; one without is repeated.

    >>> jax.interpreters.batching.bdim_at_front(jnp.ones((2, 3)), 1, 3).shape
    (3, 2)
    """
    return to_axis(x, bdim, 0, size)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """An array repeated along a new axis.

    >>> jax.interpreters.batching.broadcast(jnp.ones(2), 3, 1).shape
    (2, 3)
    """
    return to_axis(x, None, axis, sz)
