"""Pytrees with the path of each leaf, and paths as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base import pytree
from maxjax._base.pytree import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from maxjax._base.treedef import PyTreeDef

KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text.

    Args:
      keys: a path, such as ``tree_flatten_with_path`` gives.
      simple: the keys alone, without brackets, quotes and dots.
      separator: between keys.

    Returns:
      A text: by default what, after the pytree's name, leads to the leaf in Python.

    Raises:
      TypeError: ``keys`` is no sequence.

    See also: ``jax.tree.flatten_with_path``, ``jax.tree.map_with_path``, ``jax.tree_util.DictKey``.

    >>> path = (jax.tree_util.DictKey('a'), jax.tree_util.SequenceKey(0))
    >>> jax.tree_util.keystr(path)
    "['a'][0]"
    >>> jax.tree_util.keystr(path, simple=True, separator='/')
    'a/0'
    """
    if not simple:
        return separator.join(str(key) for key in keys)
    return separator.join(
        str(getattr(key, _FIELDS[type(key)])) if type(key) in _FIELDS else str(key)
        for key in keys)


_FIELDS = {SequenceKey: "idx", DictKey: "key", GetAttrKey: "name", FlattenedIndexKey: "key"}


def tree_flatten_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                           is_leaf_takes_path: bool = False) -> tuple[
                               list[tuple[KeyPath, Any]], PyTreeDef]:
    """Pairs (path, leaf), and the structure.

    Args:
      tree: a pytree.
      is_leaf: a predicate; a node for which it is true is a leaf. It is asked for each node.
      is_leaf_takes_path: whether ``is_leaf`` is called with the path and the node.

    Returns:
      A list of pairs and a ``PyTreeDef``. A path is a tuple of ``DictKey``, ``SequenceKey``,
      ``GetAttrKey`` and ``FlattenedIndexKey``.

    Raises:
      ValueError, TypeError: a dictionary whose keys have no order.

    See also: ``jax.tree.flatten``, ``jax.tree.map_with_path``, ``jax.tree_util.keystr``.

    >>> paths, _ = jax.tree_util.tree_flatten_with_path({'a': 1, 'b': (2, 3)})
    >>> [(jax.tree_util.keystr(path), leaf) for path, leaf in paths]
    [("['a']", 1), ("['b'][0]", 2), ("['b'][1]", 3)]
    """
    paths, leaves, spec = pytree.flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    return list(zip(paths, leaves, strict=True)), PyTreeDef(spec)


def tree_leaves_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> list[tuple[KeyPath, Any]]:
    """Pairs (path, leaf).

    Args:
      tree: a pytree.
      is_leaf: a predicate; a node for which it is true is a leaf. It is asked for each node.
      is_leaf_takes_path: whether ``is_leaf`` is called with the path and the node.

    Returns:
      A list of pairs, in the order of ``tree_leaves``.

    Raises:
      ValueError, TypeError: a dictionary whose keys have no order.

    See also: ``jax.tree.flatten_with_path``, ``jax.tree.leaves``, ``jax.tree_util.keystr``.

    >>> pairs = jax.tree_util.tree_leaves_with_path({'a': 1, 'b': (2, 3)})
    >>> [jax.tree_util.keystr(path) for path, _ in pairs]
    ["['a']", "['b'][0]", "['b'][1]"]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any,
                       is_leaf: Callable[..., bool] | None = None,
                       is_leaf_takes_path: bool = False) -> Any:
    """``tree_map`` with the path of each leaf as the first argument of ``f``.

    Args:
      f: takes the path of a leaf, the leaf, and the subtree at its position in each of ``rest``.
      tree: a pytree.
      rest: pytrees of which ``tree`` is a prefix.
      is_leaf: a predicate; a node for which it is true is a leaf. It is asked for each node.
      is_leaf_takes_path: whether ``is_leaf`` is called with the path and the node.

    Returns:
      A pytree of the structure of ``tree``.

    Raises:
      ValueError: ``tree`` is not a prefix of one of ``rest``.

    See also: ``jax.tree.map``, ``jax.tree.flatten_with_path``, ``jax.tree_util.keystr``.

    >>> jax.tree_util.tree_map_with_path(
    ...     lambda path, x: jax.tree_util.keystr(path) + str(x), {'a': 1, 'b': (2, 3)})
    {'a': "['a']1", 'b': ("['b'][0]2", "['b'][1]3")}
    """
    paths, leaves, spec = pytree.flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [leaves]
    for other in rest:
        try:
            columns.append(spec.flatten_up_to(other))
        except (ValueError, TypeError):
            raise pytree.structure_error(tree, other, "tree_map tree", None) from None
    return pytree.unflatten(spec, [f(*row) for row in zip(paths, *columns, strict=True)])
