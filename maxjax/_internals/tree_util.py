"""The registered classes of nodes, and nodes one level at a time."""

from __future__ import annotations

from typing import Any

from maxjax import tree_util as _public
from maxjax._base.pytree import node_types as _registry
from maxjax._base.pytree import one_level

__all__ = ["_registry", "flatten_one_level"]


def flatten_one_level(tree: Any) -> tuple[Any, Any]:
    """The children of a node, and its metadata.

    Raises:
      ValueError: it is a leaf.
    """
    node = one_level(tree)
    if node is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return node.children, node.metadata


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
