"""jax.experimental.layout: requests for the layout of arrays in memory.

Layouts do not change values. maxjax's arrays are row-major; a request is checked, and has no
effect.
"""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._base.layouts import Format as Format
from maxjax._base.layouts import Layout as Layout
from maxjax._base.missing import explain_missing_names
from maxjax.tree_util import tree_leaves


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Returns ``x``; the layouts are checked against its shape and have no effect.

    Args:
      x: a pytree of arrays.
      layouts: one ``Layout`` for all, or a pytree of them.

    Raises:
      ValueError: a layout is invalid, or its rank differs from its array's.

    >>> wish = jax.experimental.layout.Layout((1, 0))
    >>> with_layout_constraint(jnp.ones((2, 3)), wish).shape
    (2, 3)
    """
    leaves = tree_leaves(x)
    wishes = tree_leaves(layouts, is_leaf=lambda leaf: leaf is None)
    if not all(isinstance(wish, Layout) for wish in wishes):
        raise ValueError("layouts passed to `with_layout_constraint` must be of type `Layout`. "
                         f"Got {[type(wish) for wish in wishes]}")
    if len(wishes) == 1:
        wishes = wishes * len(leaves)
    for leaf, wish in zip(leaves, wishes, strict=True):
        if len(wish.major_to_minor) != jnp.ndim(leaf):
            raise ValueError(
                "One of with_layout_constraint arguments is incompatible with its layout "
                f"annotation {wish}: Length of major_to_minor and the rank of the value should "
                f"match. Got major_to_minor={wish.major_to_minor} and shape={jnp.shape(leaf)}")
    return x


explain_missing_names(__name__)
