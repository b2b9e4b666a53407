"""Pytrees: optree's, with JAX's rules, in a namespace of maxjax's own.

Inside maxjax a treedef is optree's ``PyTreeSpec``; ``maxjax.tree_util`` gives it JAX's face.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import optree

NAMESPACE = "maxjax"
PyTreeSpec = optree.PyTreeSpec


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeSpec]:
    return optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    return optree.tree_leaves(tree, is_leaf, namespace=NAMESPACE)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeSpec:
    return optree.tree_structure(tree, is_leaf, namespace=NAMESPACE)


def unflatten(spec: PyTreeSpec, tree_leaves: Iterable[Any]) -> Any:
    return optree.tree_unflatten(spec, tree_leaves)


def map(function: Callable[..., Any], tree: Any, *rest: Any,
        is_leaf: Callable[[Any], bool] | None = None) -> Any:
    return optree.tree_map(function, tree, *rest, is_leaf=is_leaf, namespace=NAMESPACE)


def flatten_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None):
    """Paths (tuples of optree accessor entries), leaves, and the treedef."""
    accessors, tree_leaves, spec = optree.tree_flatten_with_accessor(
        tree, is_leaf, namespace=NAMESPACE)
    return [tuple(accessor) for accessor in accessors], tree_leaves, spec


def path_string(path: Iterable[Any]) -> str:
    """``['a'][0].field`` for a path of optree accessor entries."""
    return "".join(entry.codify("") for entry in path)


def broadcast_prefix(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] | None = None,
                     what: str = "prefix") -> list[Any]:
    """One value of ``prefix`` for each leaf of ``tree``; ``None`` in the prefix is a value."""
    result: list[Any] = []

    def is_prefix_leaf(node: Any) -> bool:
        return node is None or (is_leaf is not None and is_leaf(node))

    prefix_leaves, prefix_spec = flatten(prefix, is_prefix_leaf)
    try:
        subtrees = prefix_spec.flatten_up_to(tree)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{what} must be a tree prefix of the corresponding value: {error}") from None
    for value, subtree in zip(prefix_leaves, subtrees, strict=True):
        result.extend([value] * structure(subtree).num_leaves)
    return result
