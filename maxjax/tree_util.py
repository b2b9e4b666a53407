"""jax.tree_util: pytrees and registration of their node classes."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.canonical_specs import canonical
from maxjax._base.partial import Partial as Partial
from maxjax._base.pytree import DictKey as DictKey
from maxjax._base.pytree import FlattenedIndexKey as FlattenedIndexKey
from maxjax._base.pytree import GetAttrKey as GetAttrKey
from maxjax._base.pytree import SequenceKey as SequenceKey
from maxjax._base.treedef import PyTreeDef as PyTreeDef
from maxjax._base.treedef import tuple_of as treedef_tuple
from maxjax._ir.typing import Class, Result

KeyEntry = Any
KeyPath = tuple[Any, ...]
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
    canonical(spec)
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


# --- paths ----------------------------------------------------------------------------------------

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


# --- classes --------------------------------------------------------------------------------------

def register_pytree_node(nodetype: type, flatten_func: Callable[[Any], tuple[Any, Any]],
                         unflatten_func: Callable[[Any, Any], Any],
                         flatten_with_keys_func: Callable[[Any], tuple[Any, Any]] | None = None
                         ) -> None:
    """Registers a class whose instances are nodes of pytrees.

    Args:
      nodetype: the class; subclasses are not registered with it.
      flatten_func: returns (children, metadata) of an instance; metadata is hashable.
      unflatten_func: returns an instance from (metadata, children).
      flatten_with_keys_func: returns (pairs (key, child), metadata).

    Returns:
      None.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_pytree_node_class``, ``jax.tree_util.register_dataclass``,
    ``jax.tree_util.register_pytree_with_keys``, ``jax.tree_util.register_static``.

    >>> class Pair(list):
    ...     pass
    >>> jax.tree_util.register_pytree_node(Pair, lambda p: (tuple(p), None), lambda _, p: Pair(p))
    >>> jax.tree_util.tree_map(abs, Pair([-1, -2]))
    [1, 2]
    """
    pytree.register(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: Class) -> Class:
    """Decorates a class with methods ``tree_flatten`` and (class) ``tree_unflatten``.

    Args:
      cls: the class. ``tree_flatten(self)`` returns (children, metadata); ``tree_unflatten(cls,
        metadata, children)`` an instance, and runs with tracers and other objects as children, so
        that it should not check them.

    Returns:
      The class.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_pytree_node``, ``jax.tree_util.register_dataclass``,
    ``jax.tree_util.register_pytree_with_keys_class``.

    >>> @jax.tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten(self):
    ...         return (self.value,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children):
    ...         return cls(*children)
    >>> jax.tree_util.tree_leaves(Box((1, 2)))
    [1, 2]
    """
    node: Any = cls
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), node.tree_unflatten)
    return cls


def register_pytree_with_keys(nodetype: type,
                              flatten_with_keys: Callable[[Any], tuple[Any, Any]],
                              unflatten_func: Callable[[Any, Any], Any],
                              flatten_func: Callable[[Any], tuple[Any, Any]] | None = None
                              ) -> None:
    """Registers a class whose instances are nodes of pytrees with keyed children.

    Args:
      nodetype: the class.
      flatten_with_keys: returns (pairs (key, child), metadata) of an instance.
      unflatten_func: returns an instance from (metadata, children).
      flatten_func: returns (children, metadata), where no keys are asked for; None: by the first.

    Returns:
      None.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_pytree_with_keys_class``,
    ``jax.tree_util.register_pytree_node``, ``jax.tree.flatten_with_path``.

    >>> class Named(list):
    ...     pass
    >>> key = jax.tree_util.GetAttrKey('only')
    >>> jax.tree_util.register_pytree_with_keys(
    ...     Named, lambda n: ([(key, n[0])], None), lambda _, n: Named(n))
    >>> jax.tree_util.keystr(jax.tree_util.tree_leaves_with_path(Named([5]))[0][0])
    '.only'
    """
    if flatten_func is None:
        def flatten_func(tree: Any) -> tuple[Any, Any]:
            pairs, metadata = flatten_with_keys(tree)
            return [child for _, child in pairs], metadata
    pytree.register(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Decorates a class with methods ``tree_flatten_with_keys`` and (class) ``tree_unflatten``.

    Args:
      cls: the class. ``tree_flatten_with_keys`` returns (pairs (key, child), metadata).

    Returns:
      The class.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_pytree_with_keys``,
    ``jax.tree_util.register_pytree_node_class``.

    >>> @jax.tree_util.register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten_with_keys(self):
    ...         return ((jax.tree_util.GetAttrKey('value'), self.value),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children):
    ...         return cls(*children)
    >>> jax.tree_util.keystr(jax.tree_util.tree_leaves_with_path(Box(1))[0][0])
    '.value'
    """
    node: Any = cls
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls, operator.methodcaller("tree_flatten_with_keys"), node.tree_unflatten, flatten)
    return cls


def register_dataclass(nodetype: Class, data_fields: Sequence[str] | None = None,
                       meta_fields: Sequence[str] | None = None,
                       drop_fields: Sequence[str] = ()) -> Class:
    """Registers a dataclass as a node of pytrees; also a decorator.

    Args:
      nodetype: the class. Left out: a decorator is returned.
      data_fields: the fields that are children. Default: all those without the metadata
        ``static=True``.
      meta_fields: the fields that are part of the structure.
      drop_fields: fields with defaults, which are dropped.

    Returns:
      The class. Instances are rebuilt without ``__init__``.

    Raises:
      TypeError: only one of ``data_fields`` and ``meta_fields`` is given.
      ValueError: the fields do not match the class.

    See also: ``jax.tree_util.register_pytree_node``, ``jax.tree_util.register_static``.

    >>> import dataclasses
    >>> @jax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = dataclasses.field(metadata={'static': True}, default='first')
    >>> jax.tree_util.tree_leaves(Layer(0.5))
    [0.5]
    """
    if data_fields is None or meta_fields is None:
        if (data_fields is None) != (meta_fields is None):
            raise TypeError("register_dataclass: data_fields and meta_fields must both be specified"
                            f" when either is specified. Got {data_fields=} {meta_fields=}.")
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not "
                f"a dataclass. Got {nodetype=}.")
        fields = [field for field in dataclasses.fields(nodetype)
                  if field.name not in drop_fields]
        data_fields = [field.name for field in fields if not field.metadata.get("static", False)]
        meta_fields = [field.name for field in fields if field.metadata.get("static", False)]
    data, meta = tuple(data_fields), tuple(meta_fields)
    if overlap := {*data} & {*meta}:
        raise ValueError("data_fields and meta_fields must not overlap. Overlapping fields: "
                         f"{overlap}.")
    if dataclasses.is_dataclass(nodetype):
        expected = {field.name for field in dataclasses.fields(nodetype) if field.init}
        if expected != {*data, *meta, *drop_fields} & expected or not {*data, *meta} <= expected:
            missing = expected - {*data, *meta, *drop_fields}
            extra = {*data, *meta} - expected
            raise ValueError(
                "data_fields and meta_fields must include all dataclass fields with ``init=True`` "
                "and only them."
                + (f" Missing fields: {missing}. Add them to drop_fields to suppress this error."
                   if missing else "")
                + (f" Unexpected fields: {extra}." if extra else ""))

    def flatten(tree: Any) -> tuple[Any, Any]:
        return (tuple(getattr(tree, name) for name in data),
                tuple(getattr(tree, name) for name in meta))

    def flatten_with_keys(tree: Any) -> tuple[Any, Any]:
        return ([(GetAttrKey(name), getattr(tree, name)) for name in data],
                tuple(getattr(tree, name) for name in meta))

    def unflatten(metadata: Any, children: Any) -> Any:
        return nodetype(**dict(zip(meta, metadata, strict=True)),
                        **dict(zip(data, children, strict=True)))

    pytree.register(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def register_static(cls: Class) -> Class:
    """Decorates a hashable class: its instances are part of the structure, without leaves.

    Args:
      cls: a class whose instances hash and compare by value.

    Returns:
      The class.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_dataclass``, ``jax.tree_util.register_pytree_node``,
    ``jax.jit``.

    >>> @jax.tree_util.register_static
    ... class Mode(str):
    ...     pass
    >>> jax.tree_util.tree_leaves((Mode('train'), 1))
    [1]
    """
    pytree.register(cls, lambda value: ((), value), lambda value, children: value,
                    lambda value: ((), value))
    return cls


class _Registry:
    """The registry of node classes, with the methods of JAX's that libraries call."""

    flatten_one_level = staticmethod(lambda tree: (
        None if pytree.one_level(tree) is None else flatten_one_level(tree)))
    flatten = staticmethod(tree_flatten)
    register_node = staticmethod(register_pytree_node)


default_registry = _Registry()
