"""jax.tree_util: pytrees and registration of their node classes."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from maxjax._base import canonical_specs, pytree
from maxjax._base.partial import Partial as Partial
from maxjax._base.pytree import DictKey as DictKey
from maxjax._base.pytree import FlattenedIndexKey as FlattenedIndexKey
from maxjax._base.pytree import GetAttrKey as GetAttrKey
from maxjax._base.pytree import SequenceKey as SequenceKey
from maxjax._base.treedef import PyTreeDef as PyTreeDef
from maxjax._base.treedef import tuple_of as treedef_tuple
from maxjax._ir.typing import Result
from maxjax.tree_util._key_paths import KeyPath as KeyPath
from maxjax.tree_util._key_paths import keystr as keystr
from maxjax.tree_util._key_paths import tree_flatten_with_path as tree_flatten_with_path
from maxjax.tree_util._key_paths import tree_leaves_with_path as tree_leaves_with_path
from maxjax.tree_util._key_paths import tree_map_with_path as tree_map_with_path
from maxjax.tree_util._registration import register_dataclass as register_dataclass
from maxjax.tree_util._registration import register_pytree_node as register_pytree_node
from maxjax.tree_util._registration import register_pytree_node_class as register_pytree_node_class
from maxjax.tree_util._registration import register_pytree_with_keys as register_pytree_with_keys
from maxjax.tree_util._registration import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from maxjax.tree_util._registration import register_static as register_static

KeyEntry = Any
_MISSING: Any = object()

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "default_registry", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]


# --- flattening -----------------------------------------------------------------------------------

def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[
        list[Any], PyTreeDef]:
    """The leaves of a pytree, and its structure.

    Args:
      tree: a pytree: nested tuples, lists, dictionaries, registered classes; None has no leaves.
        Anything else is a leaf.
      is_leaf: a predicate; a node for which it is true is a leaf. It is asked for each node.

    Returns:
      A pair of the list of leaves and the structure, a ``PyTreeDef``. Dictionaries are read in the
      order of their keys.

    Raises:
      ValueError, TypeError: a dictionary whose keys have no order.

    See also: ``jax.tree.unflatten``, ``jax.tree.leaves``, ``jax.tree.structure``,
    ``jax.tree.flatten_with_path``.

    >>> jax.tree_util.tree_flatten({'b': 1, 'a': (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    leaves, spec = pytree.flatten(tree, is_leaf)
    canonical_specs.canonical(spec)
    return leaves, PyTreeDef(spec)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The pytree with a given structure and leaves; inverse of ``tree_flatten``.

    Args:
      treedef: the structure, from ``tree_flatten`` or ``tree_structure``.
      leaves: any objects, in order.

    Returns:
      A pytree.

    Raises:
      ValueError: the number of leaves differs from the structure's.

    See also: ``jax.tree.flatten``, ``jax.tree.structure``.

    >>> jax.tree_util.tree_unflatten(jax.tree_util.tree_structure({'a': 1, 'b': (2, 3)}), [4, 5, 6])
    {'a': 4, 'b': (5, 6)}
    """
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a pytree.

    Args:
      tree: a pytree.
      is_leaf: a predicate; a node for which it is true is a leaf. It is asked for each node.

    Returns:
      A list, in the order of ``tree_flatten``; without None.

    Raises:
      ValueError, TypeError: a dictionary whose keys have no order.

    See also: ``jax.tree.flatten``, ``jax.tree.structure``, ``jax.tree.map``,
    ``jax.tree_util.tree_leaves_with_path``.

    >>> jax.tree_util.tree_leaves({'a': 1, 'b': (2, 3)})
    [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a pytree.

    Args:
      tree: a pytree.
      is_leaf: a predicate; a node for which it is true is a leaf. It is asked for each node.

    Returns:
      A ``PyTreeDef``: compares, hashes, and has ``num_leaves``.

    Raises:
      ValueError, TypeError: a dictionary whose keys have no order.

    See also: ``jax.tree.flatten``, ``jax.tree.unflatten``, ``jax.tree_util.PyTreeDef``.

    >>> jax.tree_util.tree_structure({'a': 1, 'b': (2, 3)})
    PyTreeDef({'a': *, 'b': (*, *)})
    """
    return tree_flatten(tree, is_leaf)[1]


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether each item is a leaf.

    Args:
      iterable: any objects.
      is_leaf: a predicate; a node for which it is true is a leaf. It is asked for each node.

    Returns:
      A Python boolean; None is no leaf.

    See also: ``jax.tree.leaves``, ``jax.tree_util.treedef_is_leaf``.

    >>> jax.tree_util.all_leaves([1, 2])
    True
    >>> jax.tree_util.all_leaves([1, (2,)])
    False
    """
    return all(pytree.structure(item, is_leaf).is_leaf() for item in iterable)


def is_tree_node(typ: type) -> bool:
    """Whether instances of a class are nodes of pytrees.

    >>> jax.tree_util.is_tree_node(list), jax.tree_util.is_tree_node(int)
    (True, False)
    """
    if not isinstance(typ, type):
        return False
    return (typ in (list, tuple, dict, type(None)) or typ in pytree.registered
            or typ.__name__ in ("OrderedDict", "defaultdict") or pytree.is_namedtuple(typ))


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children of a node and its metadata.

    Raises:
      ValueError: ``tree`` is a leaf.

    >>> jax.tree_util.flatten_one_level({'a': 1, 'b': (2, 3)})
    ((1, (2, 3)), ('a', 'b'))
    """
    entry = pytree.registered.get(type(tree))
    if entry is not None:
        return entry.flatten(tree)
    node = _node(tree)
    kind = (list if isinstance(tree, (list, collections.OrderedDict))
            or pytree.is_namedtuple(type(tree)) else tuple)
    return kind(node.children), node.metadata


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """The children of a node with their keys, and its metadata.

    >>> jax.tree_util.flatten_one_level_with_keys([5, (6,)])
    (((SequenceKey(idx=0), 5), (SequenceKey(idx=1), (6,))), None)
    """
    node = _node(tree)
    kind = list if type(tree) in pytree.registered else tuple
    return kind(zip(node.keys, node.children, strict=True)), node.metadata


def _node(tree: Any) -> pytree.Node:
    node = pytree.one_level(tree)
    if node is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return node


# --- map and reduce -------------------------------------------------------------------------------

def tree_map(f: Callable[..., Any], tree: Any, *rest: Any,
             is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A pytree like ``tree`` of ``f(leaf, *subtrees)``.

    Args:
      f: takes a leaf of ``tree`` and the subtree at its position in each of ``rest``.
      tree: a pytree.
      rest: pytrees of which ``tree`` is a prefix.
      is_leaf: a predicate for nodes that count as leaves.

    Returns:
      A pytree of the structure of ``tree``; None stays, since it has no leaves.

    Raises:
      ValueError: ``tree`` is not a prefix of one of ``rest``; names the position.

    See also: ``jax.tree.map_with_path``, ``jax.tree.leaves``, ``jax.tree.reduce``, ``jax.vmap``.

    >>> jax.tree_util.tree_map(lambda x, y: x + y, {'a': 1, 'b': (2, 3)}, {'a': 1, 'b': (2, 3)})
    {'a': 2, 'b': (4, 6)}
    """
    return pytree.map(f, tree, *rest, is_leaf=is_leaf)


def tree_reduce(function: Callable[[Result, Any], Result], tree: Any,
                initializer: Result = _MISSING,
                is_leaf: Callable[[Any], bool] | None = None) -> Result:
    """``functools.reduce`` over the leaves.

    Args:
      function: takes the value so far and a leaf.
      tree: a pytree.
      initializer: the first value; otherwise the first leaf.
      is_leaf: a predicate; a node for which it is true is a leaf. It is asked for each node.

    Returns:
      The last value.

    Raises:
      TypeError: there are no leaves and no ``initializer``.

    See also: ``jax.tree.leaves``, ``jax.tree.map``, ``jax.tree.all``.

    >>> jax.tree_util.tree_reduce(lambda x, y: x + y, {'a': 1, 'b': (2, 3)})
    6
    """
    leaves = pytree.leaves(tree, is_leaf)
    if initializer is _MISSING:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(operation: Callable[[Result, Result], Result], tree: Any, *,
                            identity: Result = _MISSING,
                            is_leaf: Callable[[Any], bool] | None = None) -> Result:
    """The leaves combined by an associative operation, in a tree of minimal depth.

    Raises:
      TypeError: there are no leaves and no ``identity``.

    >>> jax.tree_util.tree_reduce_associative(lambda x, y: x + y, {'a': 1, 'b': (2, 3)})
    6
    """
    values = pytree.leaves(tree, is_leaf)
    if not values:
        if identity is _MISSING:
            raise TypeError("Must specify identity for parallel reduction of empty sequence.")
        return identity

    def combine(items: list[Any]) -> Any:
        if len(items) == 1:
            return items[0]
        half = len(items) // 2
        return operation(combine(items[:half]), combine(items[half:]))

    return combine(values)


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true.

    Args:
      tree: a pytree.
      is_leaf: a predicate; a node for which it is true is a leaf. It is asked for each node.

    Returns:
      A Python boolean; True without leaves. Leaves must have known values.

    See also: ``jax.tree.reduce``, ``jax.tree.leaves``, ``jnp.all``.

    >>> jax.tree_util.tree_all({'a': True, 'b': False})
    False
    """
    return all(pytree.leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None,
                   pytree_to_transpose: Any) -> Any:
    """Turns a tree with the outer structure outermost into one with the inner structure outermost.

    Args:
      outer_treedef: the structure that is outermost now; None is allowed for the inner one only.
      inner_treedef: the structure of each of its leaves; None: that of the first.
      pytree_to_transpose: the tree.

    Returns:
      A pytree of the inner structure, whose leaves have the outer one.

    Raises:
      TypeError: the tree has other leaves than ``outer_treedef`` with ``inner_treedef`` at each.

    See also: ``jax.tree.map``, ``jax.tree.structure``, ``jax.vmap``.

    >>> outer, inner = jax.tree_util.tree_structure([0, 0]), jax.tree_util.tree_structure({'a': 0})
    >>> jax.tree_util.tree_transpose(outer, inner, [{'a': 1}, {'a': 2}])
    {'a': [1, 2]}
    """
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
        inner_treedef = tree_structure(subtrees[0])
    if not outer_treedef.num_leaves:
        raise ValueError("a tree without leaves has no transpose")
    width = inner_treedef.num_leaves
    # The metadata of a node may be about what is below it: only the numbers of leaves can be told.
    if treedef.num_leaves != width * outer_treedef.num_leaves:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(f"Mismatch\n{treedef}\n != \n{expected}")
    return inner_treedef.unflatten(
        [outer_treedef.unflatten(leaves[column::width]) for column in range(width)])


def tree_broadcast(prefix_tree: Any, full_tree: Any,
                   is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The leaves of ``prefix_tree`` repeated to the structure of ``full_tree``.

    Raises:
      ValueError: the first is not a prefix of the second.

    >>> jax.tree_util.tree_broadcast({'a': 1, 'b': 2}, {'a': 0, 'b': (0, 0)})
    {'a': 1, 'b': (2, 2)}
    """
    leaves, spec = pytree.flatten(prefix_tree, is_leaf)
    try:
        subtrees = spec.flatten_up_to(full_tree)
    except (ValueError, TypeError):
        raise pytree.structure_error(
            prefix_tree, full_tree, "broadcast_prefix prefix_tree", is_leaf) from None
    return pytree.unflatten(spec, [pytree.map(lambda _, leaf=leaf: leaf, subtree)
                                   for leaf, subtree in zip(leaves, subtrees, strict=True)])


# --- structures -----------------------------------------------------------------------------------

def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of the root.

    >>> jax.tree_util.treedef_children(jax.tree_util.tree_structure({'a': 1, 'b': (2, 3)}))
    [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is that of a single leaf.

    Args:
      treedef: a ``PyTreeDef``.

    Returns:
      A Python boolean; True of None and of empty containers, too, which are one node.

    See also: ``jax.tree.structure``, ``jax.tree_util.all_leaves``.

    >>> jax.tree_util.treedef_is_leaf(jax.tree_util.tree_structure(0))
    True
    """
    return treedef.num_nodes == 1


# --- the registry ---------------------------------------------------------------------------------

class _Registry:
    """The registry of node classes, with the methods of JAX's that libraries call."""

    flatten_one_level = staticmethod(lambda tree: (
        None if pytree.one_level(tree) is None else flatten_one_level(tree)))
    flatten = staticmethod(tree_flatten)
    register_node = staticmethod(register_pytree_node)


default_registry = _Registry()

# Of whichever file they are, help and pickles name the module in which users find them.
for _function in (keystr, register_dataclass, register_pytree_node, register_pytree_node_class,
                  register_pytree_with_keys, register_pytree_with_keys_class, register_static,
                  tree_flatten_with_path, tree_leaves_with_path, tree_map_with_path):
    _function.__module__ = __name__
