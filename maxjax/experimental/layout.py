"""jax.experimental.layout: requests for the layout of arrays in memory.

Layouts do not change values. maxjax's arrays are row-major; a request is checked, and has no
effect.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from maxjax import numpy as jnp
from maxjax._base.missing import explain_missing_names
from maxjax.tree_util import tree_leaves


class _Auto:
    def __repr__(self) -> str:
        return "AUTO"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The order of an array's axes in memory, from the outermost to the innermost.

    Args:
      major_to_minor: a permutation of the axes.

    >>> Layout((1, 0))
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: ClassVar[Any] = _Auto()


@dataclasses.dataclass(frozen=True)
class Format:
    """A layout together with a sharding.

    Raises:
      TypeError: ``layout`` is not a layout.
      ValueError: there is a layout but no sharding.

    >>> Format(jax.experimental.layout.Layout.AUTO)
    Format(layout=AUTO, sharding=None)
    """

    layout: Any = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if not (self.layout is None or self.layout is Layout.AUTO
                or isinstance(self.layout, Layout)):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, "
                f"`Layout.AUTO` or an instance of `Layout`. Got {self.layout} of type "
                f"{type(self.layout)}")
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {Layout}. Please pass a "
                "`jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` to the "
                f"sharding argument. Got sharding {self.sharding}")


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
