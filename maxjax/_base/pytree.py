"""Pytrees: optree's, with JAX's rules, in a namespace of maxjax's own.

Inside maxjax a treedef is optree's ``PyTreeSpec``; ``maxjax._base.treedef`` gives it JAX's face.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import dataclasses
import difflib
import functools
import textwrap
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from maxjax._base.canonical_specs import canonical, check_keys
from maxjax._base.kept_optree import NAMESPACE, optree

PyTreeSpec = optree.PyTreeSpec
T = TypeVar("T")
# Nested containers with leaves of any type: no annotation says more.
PyTree = Any
IsLeaf = Callable[[PyTree], bool]
# A key for each level, from the root.
KeyPath = tuple[Hashable, ...]
# The children and metadata of a node, and a node of them.
Flatten = Callable[[PyTree], tuple[Iterable[PyTree], Any]]
Unflatten = Callable[[Any, PyTree], PyTree]


# --- flattening -----------------------------------------------------------------------------------

# Types whose instances are leaves for sure. optree looks each element up in its registries, at five
# times the cost of asking here whether a list or tuple has anything else in it.
_leaf_types: set[type] = {bool, int, float, complex, str, bytes, np.ndarray,
                          *np.sctypeDict.values()}


def leaf_type(cls: type[T]) -> type[T]:
    """Decorates a class whose instances are always leaves."""
    _leaf_types.add(cls)
    return cls


@functools.lru_cache(maxsize=4096)
def _flat_spec(is_list: bool, length: int) -> PyTreeSpec:
    node = optree.treespec_list if is_list else optree.treespec_tuple
    return node([optree.treespec_leaf(namespace=NAMESPACE)] * length, namespace=NAMESPACE)


def _is_flat(tree: PyTree) -> bool:
    kind = type(tree)
    return (kind is list or kind is tuple) and _leaf_types.issuperset(builtins.map(type, tree))


def flatten(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[
        list[Any], PyTreeSpec]:
    if is_leaf is None and _is_flat(tree):
        return list(tree), _flat_spec(type(tree) is list, len(tree))
    return optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)


def leaves(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[Any]:
    if is_leaf is None and _is_flat(tree):
        return list(tree)
    return optree.tree_leaves(tree, is_leaf, namespace=NAMESPACE)


def structure(tree: PyTree, is_leaf: IsLeaf | None = None) -> PyTreeSpec:
    if is_leaf is None and _is_flat(tree):
        return _flat_spec(type(tree) is list, len(tree))
    return optree.tree_structure(tree, is_leaf, namespace=NAMESPACE)


def is_named_tuple(node: PyTreeSpec) -> bool:
    """Whether a node is a named tuple, of a class that gives its elements as tuples do."""
    return node.kind is optree.PyTreeKind.NAMEDTUPLE and (
        getattr(node.type, "__iter__", None) is tuple.__iter__
        and getattr(node.type, "__len__", None) is tuple.__len__)


def unflatten(spec: PyTreeSpec, tree_leaves: Iterable[object]) -> Any:
    return canonical(spec).unflatten(tree_leaves)


def tuple_of(*specs: PyTreeSpec) -> PyTreeSpec:
    """The spec of a tuple of trees of these specs."""
    return optree.treespec_tuple(specs, namespace=NAMESPACE)


def numbered(spec: PyTreeSpec) -> Any:
    """The tree with the numbers of its leaves, in order.

    Classes of the user's that check their leaves may refuse numbers, or take them for no leaves.
    Their nodes are tuples then.
    """
    numbers = range(spec.num_leaves)
    try:
        tree = unflatten(spec, numbers)
        if not spec.num_leaves or leaves(tree) == list(numbers):
            return tree
    except Exception:      # whatever the user's class raises
        pass
    return unflatten(spec.transform(_without_classes, None), numbers)


def _without_classes(node: PyTreeSpec) -> PyTreeSpec:
    if node.type in registered:
        return optree.treespec_tuple(node.children(), namespace=NAMESPACE)
    return node


def map(function: Callable[..., object], tree: PyTree, *rest: PyTree,
        is_leaf: IsLeaf | None = None) -> Any:
    """``function`` of the leaves of ``tree`` and what stands in their places in ``rest``.

    Raises:
      ValueError: ``tree`` is no prefix of one of ``rest``.
    """
    tree_leaves, spec = flatten(tree, is_leaf)
    columns = [tree_leaves]
    for other in rest:
        try:
            columns.append(spec.flatten_up_to(other))
        except (ValueError, TypeError):
            raise structure_error(tree, other, "tree_map tree", is_leaf) from None
    return unflatten(spec, [function(*row) for row in zip(*columns, strict=True)])


# --- key paths ------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The place of an element of a list or tuple.

    >>> str(jax.tree_util.SequenceKey(1))
    '[1]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class DictKey:
    """The place of a value of a dictionary.

    >>> str(jax.tree_util.DictKey('a'))
    "['a']"
    """

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The place of an attribute: of a namedtuple, a dataclass, a class of the user's.

    >>> str(jax.tree_util.GetAttrKey('a'))
    '.a'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """The place of a child of a registered class that names none.

    >>> str(jax.tree_util.FlattenedIndexKey(1))
    '[<flat index 1>]'
    """

    key: int

    def __hash__(self) -> int:
        return hash((FlattenedIndexKey, self.key))      # other than an equal index in a sequence

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


# --- users' classes -------------------------------------------------------------------------------

class Registration(NamedTuple):
    flatten: Flatten
    unflatten: Unflatten
    flatten_with_keys: Flatten | None


registered: dict[type, Registration] = {}

_BUILT_IN = (list, tuple, dict, type(None), collections.OrderedDict, collections.defaultdict)


class _NodeTypes(Mapping[type, Any]):
    """The classes whose instances are nodes."""

    def __getitem__(self, cls: type) -> Any:
        return cls if cls in _BUILT_IN else registered[cls]

    def __iter__(self) -> Iterator[type]:
        return iter((*_BUILT_IN, *registered))

    def __len__(self) -> int:
        return len(_BUILT_IN) + len(registered)


node_types = _NodeTypes()


def _checked(flatten_function: Flatten) -> Flatten:
    """The function, whose result is two things, and not three, which optree takes too."""
    @functools.wraps(flatten_function)
    def flatten_checked(node: PyTree) -> tuple[Iterable[PyTree], Any]:
        result = flatten_function(node)
        if isinstance(result, tuple) and len(result) == 2:
            kind = type(result[0])
            if kind is tuple or kind is list or hasattr(kind, "__iter__"):
                return result
            where = " where 'children' is iterable"
        else:
            where = ""
        raise ValueError("The to_iterable function for a custom PyTree node should return a "
                         f"(children, aux_data) tuple{where}, got {result!r}")

    return flatten_checked


def register(cls: type, flatten_function: Flatten,
             unflatten_function: Unflatten,
             flatten_with_keys: Flatten | None = None) -> None:
    """Makes instances of ``cls`` nodes.

    Raises:
      ValueError: ``cls`` is registered already.
    """
    if not isinstance(cls, type) or not callable(flatten_function) or not callable(
            unflatten_function):
        raise TypeError(
            f"register_pytree_node takes a class and two functions, got {cls!r}, "
            f"{flatten_function!r} and {unflatten_function!r}")
    if cls in node_types:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {cls}.")
    flatten_function = _checked(flatten_function)
    with warnings.catch_warnings():     # of classes derived from namedtuples
        warnings.simplefilter("ignore", UserWarning)
        optree.register_pytree_node(
            cls, flatten_function, unflatten_function, namespace=NAMESPACE)
    _leaf_types.discard(cls)
    registered[cls] = Registration(flatten_function, unflatten_function, flatten_with_keys)


# --- one level at a time --------------------------------------------------------------------------

class Node(NamedTuple):
    keys: Sequence[Any]
    children: Sequence[Any]
    metadata: Any


def one_level(tree: PyTree) -> Node | None:
    """The keys, children and metadata of a node; None for a leaf."""
    kind = type(tree)
    # optree's deques are nodes, where JAX has leaves.
    if kind is tuple or kind is list or kind is collections.deque:
        return Node([SequenceKey(i) for i in range(len(tree))], tree, None)
    if tree is None:
        return Node((), (), None)
    if kind is dict or kind is collections.defaultdict or kind is collections.OrderedDict:
        names: Any = (list(tree) if kind is collections.OrderedDict
                 else optree.tree_flatten_one_level(tree, namespace=NAMESPACE)[1])
        metadata: Any = tuple(names)
        if kind is not collections.OrderedDict:
            check_keys(kind, tree)
        if kind is collections.defaultdict:
            names = names[1]
            metadata = (tree.default_factory, tuple(names))
        return Node([DictKey(name) for name in names], [tree[name] for name in names], metadata)
    entry = registered.get(kind)
    if entry is not None:
        if entry.flatten_with_keys is not None:
            pairs, metadata = entry.flatten_with_keys(tree)
            pairs = list(pairs)
            return Node([key for key, _ in pairs], [child for _, child in pairs], metadata)
        children, metadata = entry.flatten(tree)
        children = list(children)
        return Node([FlattenedIndexKey(i) for i in range(len(children))], children, metadata)
    if is_namedtuple(kind):
        return Node([GetAttrKey(name) for name in tree._fields], tree, kind)
    return None


def is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


# The paths of the leaves of structures met before; None where a class of the user's names its keys
# anew each time.
_known_paths: dict[PyTreeSpec, list[tuple[Any, ...]] | None] = {}
_MOST_PATHS = 4096


def flatten_with_path(tree: PyTree, is_leaf: Callable[..., bool] | None = None,
                      is_leaf_takes_path: bool = False) -> tuple[
                          list[tuple[Any, ...]], list[Any], PyTreeSpec]:
    """Paths (tuples of keys), leaves, and the treedef."""
    if is_leaf is not None and is_leaf_takes_path:
        paths, found, _ = _visit(tree, is_leaf)
        return paths, found, _structure_by_path(tree, set(paths))
    stop = None if is_leaf is None else lambda path, node: is_leaf(node)
    found, spec = flatten(tree, is_leaf)
    try:
        known = _known_paths[spec]
    except Exception:      # a new structure, or metadata that cannot be hashed or compared
        known, _, lasting = _visit(tree, stop)
        with contextlib.suppress(Exception):
            if len(_known_paths) >= _MOST_PATHS:
                _known_paths.clear()
            _known_paths[spec] = known if lasting else None
        return list(known), found, spec
    return list(known) if known is not None else _visit(tree, stop)[0], found, spec


def _visit(tree: PyTree, is_leaf: Callable[[KeyPath, PyTree], bool] | None) -> tuple[
        list[tuple[Any, ...]], list[Any], bool]:
    """Paths, leaves, and whether the paths follow from the structure alone."""
    paths: list[tuple[Any, ...]] = []
    found: list[Any] = []
    lasting = True

    def visit(node: PyTree, path: KeyPath) -> None:
        nonlocal lasting
        level = None if is_leaf is not None and is_leaf(path, node) else one_level(node)
        if level is None:
            paths.append(path)
            found.append(node)
            return
        entry = registered.get(type(node))
        # Equal keys can differ: 1 and True.
        lasting = lasting and (entry is None or entry.flatten_with_keys is None) and all(
            type(key) is not DictKey or type(key.key) is str for key in level.keys)
        for key, child in zip(level.keys, level.children, strict=True):
            visit(child, (*path, key))

    visit(tree, ())
    return paths, found, lasting


def _structure_by_path(tree: PyTree, leaf_paths: set[KeyPath]) -> PyTreeSpec:
    def mark(node: PyTree, path: KeyPath) -> Any:
        level = None if path in leaf_paths else one_level(node)
        if level is None:
            return optree.treespec_leaf(namespace=NAMESPACE)
        children = [mark(child, (*path, key))
                    for key, child in zip(level.keys, level.children, strict=True)]
        top = structure(node, lambda x: x is not node)
        return _with_children(top, children)

    return mark(tree, ())


def _with_children(top: PyTreeSpec, children: list[PyTreeSpec]) -> PyTreeSpec:
    """A spec of one level with the given specs in the places of its leaves."""
    given = iter(children)
    return top.transform(None, lambda leaf: next(given))


def path_string(path: Iterable[Hashable]) -> str:
    """``['a'][0].field`` for a path of keys."""
    return "".join(str(key) for key in path)


# --- prefixes -------------------------------------------------------------------------------------

def broadcast_prefix(prefix: PyTree, tree: PyTree, is_leaf: IsLeaf | None = None,
                     what: str = "prefix") -> list[Any]:
    """One value of ``prefix`` for each leaf of ``tree``; ``None`` in the prefix is a value."""
    result: list[Any] = []

    def is_prefix_leaf(node: PyTree) -> bool:
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


def structure_error(prefix: PyTree, full: PyTree, name: str,
                    is_leaf: IsLeaf | None = None) -> ValueError:
    """The error for a ``prefix`` that is no prefix of ``full``: names the first place."""
    message = next(_differences(prefix, full, name, (), is_leaf), None)
    return ValueError(message or f"{name} is no prefix of the other tree")


def prefix_error(prefix: PyTree, full: PyTree, what: str, is_leaf: IsLeaf | None = None,
                 specification: str = "", hint: str = "") -> ValueError:
    """The error for an argument that is no prefix of a value: names all places.

    Args:
      what: the function and the argument.
      specification: the same, as the message begins, if other than that.
      hint: what follows the first sentence.
    """
    errors = structure_errors(prefix, full, what, is_leaf)
    details = "\n  ".join(map(str, errors))
    return ValueError(
        f"{specification or what} specification must be a tree prefix of the corresponding value; "
        f"{hint}\n  Mismatch details ({len(errors)} found):\n  {details}")


class PytreeLeaf:
    """Stands for a leaf of a function's result in messages about prefixes of it."""


def structure_errors(prefix: PyTree, full: PyTree, name: str,
                     is_leaf: IsLeaf | None = None) -> list[str]:
    """All places where a ``prefix`` is no prefix of ``full``, in words."""
    return list(_differences(prefix, full, name, (), is_leaf))


def _differences(prefix: PyTree, full: PyTree, name: str, path: KeyPath,
                 is_leaf: IsLeaf | None) -> Iterator[str]:
    message = _difference_here(prefix, full, name, path, is_leaf)
    if message is not None:
        yield message
        return
    mine, other = one_level(prefix), one_level(full)
    if mine is None or other is None or (is_leaf is not None and is_leaf(prefix)):
        return
    for key, child, other_child in zip(mine.keys, mine.children, other.children, strict=True):
        yield from _differences(child, other_child, name, (*path, key), is_leaf)


def _difference_here(prefix: PyTree, full: PyTree, name: str, path: KeyPath,
                     is_leaf: IsLeaf | None) -> str | None:
    if is_leaf is not None and is_leaf(prefix):
        return None
    mine = one_level(prefix)
    if mine is None:
        return None
    place = f"{name}{path_string(path)}"
    if type(prefix) is not type(full):
        return (f"pytree structure error: different types at key path\n    {place}\n"
                f"At that key path, the prefix pytree {name} has a subtree of type\n"
                f"    {type(prefix)}\n"
                "but at the same key path the full pytree has a subtree of different type\n"
                f"    {type(full)}.")
    other = one_level(full)
    if other is None:
        return None
    if isinstance(prefix, (list, tuple)) and len(prefix) != len(full):
        kind = type(prefix).__name__
        return (f"pytree structure error: different lengths of {kind} at key path\n    {place}\n"
                f"At that key path, the prefix pytree {name} has a subtree of type {kind} of "
                f"length {len(prefix)}, but the full pytree has a subtree of the same type but of "
                f"length {len(full)}.")
    if len(mine.children) != len(other.children):
        keys, other_keys = ([str(key) for key in node.keys] for node in (mine, other))
        return (f"pytree structure error: different numbers of pytree children at key path\n"
                f"    {place}\n"
                f"At that key path, the prefix pytree {name} has a subtree of type\n"
                f"    {type(prefix)}\nwith {len(keys)} child keys\n    {' '.join(keys)}\n"
                "but at the same key path the full pytree has a subtree of the same type but with "
                f"{len(other_keys)} child keys\n    {' '.join(other_keys)}\n"
                "so the symmetric difference on key sets is\n"
                f"    {' '.join(sorted(set(keys) ^ set(other_keys)))}")
    if not _equal(mine.metadata, other.metadata):
        texts = str(mine.metadata), str(other.metadata)
        difference = "\n".join(difflib.ndiff(texts[0].splitlines(), texts[1].splitlines()))
        return (f"pytree structure error: different pytree metadata at key path\n    {place}\n"
                f"At that key path, the prefix pytree {name} has a subtree of type\n"
                f"    {type(prefix)}\nwith metadata\n    {texts[0]}\n"
                "but at the same key path the full pytree has a subtree of the same type but with "
                f"metadata\n    {texts[1]}\n"
                "so the diff in the metadata at these pytree nodes is\n"
                f"{textwrap.indent(difference, '    ')}")
    return None


def _equal(left: object, right: object) -> bool:
    try:
        return bool(left == right)
    except Exception:      # arrays and the like, which give no truth value
        return left is right
