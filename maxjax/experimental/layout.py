"""jax.experimental.layout: requests for the layout of arrays in memory.

Layouts do not change values. An array lies in memory as it was asked to outside of programs, by
``device_put``, ``jit``'s ``out_shardings`` and such, and otherwise row by row; what programs are
asked is checked, and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax import numpy as jnp
from maxjax._base import pytree
from maxjax._base.layouts import Format as Format
from maxjax._base.layouts import Layout as Layout
from maxjax._base.layouts import check_layout
from maxjax._base.missing import explain_missing_names
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Tracer
from maxjax.tree_util import tree_flatten, tree_unflatten


def _is_leaf(node: Any) -> bool:
    return node is None or isinstance(node, Layout)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """``x`` in the layouts, which within programs have no effect.

    Args:
      x: a pytree of arrays.
      layouts: a ``Layout``, or a prefix pytree of them.

    Raises:
      ValueError: a layout is invalid, or its rank differs from its array's.

    >>> wish = jax.experimental.layout.Layout((1, 0))
    >>> with_layout_constraint(jnp.ones((2, 3)), wish).format.layout.major_to_minor
    (1, 0)
    """
    leaves, tree = tree_flatten(x)
    try:
        wishes = pytree.broadcast_prefix(layouts, x, _is_leaf)
    except ValueError:
        raise pytree.prefix_error(layouts, x, "with_layout_constraint layouts", _is_leaf) from None
    if not all(isinstance(wish, Layout) for wish in wishes):
        raise ValueError("layouts passed to `with_layout_constraint` must be of type `Layout`. "
                         f"Got {[type(wish) for wish in wishes]}")
    results = []
    for leaf, wish in zip(leaves, wishes, strict=True):
        check_layout(wish, jnp.shape(leaf), "with_layout_constraint arguments")
        value = installed.runtime.operand(leaf)
        results.append(value if isinstance(value, Tracer) else
                       installed.runtime.lay_out(value, wish))
    return tree_unflatten(tree, results)


def explicit_layout(f: Callable[..., Any] | None = None, /, *, in_layouts: Any = None
                    ) -> Callable[..., Any]:
    """The function with layouts in the types of its values, of which maxjax's types have none.

    JAX has it for layouts of kernels on TPUs and GPUs alone.

    Raises:
      TypeError: when it is called, if no ``in_layouts`` are given at all.
      NotImplementedError: when it is called: ``jit`` takes ``in_shardings`` with a ``Format``.

    >>> explicit_layout(jnp.sin)(jnp.ones(2))
    Traceback (most recent call last):
    TypeError: Missing required keyword argument: 'in_layouts'
    """
    if f is None:
        return lambda g: explicit_layout(g, in_layouts=in_layouts)

    def refused(*args: Any, **kwargs: Any) -> Any:
        if in_layouts is None and "in_layouts" not in kwargs:
            raise TypeError("Missing required keyword argument: 'in_layouts'")
        raise NotImplementedError(
            "explicit_layout: types have no layouts in maxjax; ask for those of arguments and "
            "results by in_shardings and out_shardings of jit, with a Format")

    return refused


explain_missing_names(__name__)
