"""jax.tree: the functions of ``maxjax.tree_util`` under short names."""

from __future__ import annotations

import dataclasses
from typing import Any

from maxjax.tree_util import tree_all as all
from maxjax.tree_util import tree_broadcast as broadcast
from maxjax.tree_util import tree_flatten as flatten
from maxjax.tree_util import tree_flatten_with_path as flatten_with_path
from maxjax.tree_util import tree_leaves as leaves
from maxjax.tree_util import tree_leaves_with_path as leaves_with_path
from maxjax.tree_util import tree_map as map
from maxjax.tree_util import tree_map_with_path as map_with_path
from maxjax.tree_util import tree_reduce as reduce
from maxjax.tree_util import tree_reduce_associative as reduce_associative
from maxjax.tree_util import tree_structure as structure
from maxjax.tree_util import tree_transpose as transpose
from maxjax.tree_util import tree_unflatten as unflatten

__all__ = ["all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
           "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
           "unflatten"]


def static(**kwargs: Any) -> Any:
    """A field of a dataclass that is part of the structure: see ``register_dataclass``.

    >>> import dataclasses
    >>> @jax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = jax.tree.static(default='first')
    >>> jax.tree.leaves(Layer(0.5))
    [0.5]
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)
