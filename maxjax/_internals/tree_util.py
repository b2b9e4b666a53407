"""The registered classes of nodes, nodes one level at a time, and where prefixes differ."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from maxjax import tree_util as _public
from maxjax._base import pytree
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


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
                  ) -> list[Callable[[str], ValueError]]:
    """For each place where a tree is no prefix of another: what makes its error, of the name that
    the message gives the prefix."""
    def error(name: str, place: int) -> ValueError:
        return ValueError(pytree.structure_errors(prefix_tree, full_tree, name, is_leaf)[place])

    return [functools.partial(error, place=place) for place in range(
        len(pytree.structure_errors(prefix_tree, full_tree, "prefix", is_leaf)))]


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
