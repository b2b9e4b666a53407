"""``PyTreeDef``: the structure of a pytree, with JAX's face."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from maxjax._base import pytree, tree_equality
from maxjax._base.kept_optree import NAMESPACE, optree
from maxjax._base.pytree import PyTree, PyTreeSpec

# What optree says of a tree that does not have a structure, and what JAX says.
_MISMATCHES = tuple((re.compile(pattern, re.DOTALL), words) for pattern, words in (
    (r"Expected an instance of collections\.namedtuple, got (.*)", r"Expected named tuple, got \1"),
    (r"Expected an instance of (\w+)(?:,[^;]*defaultdict)?, got (.*)", r"Expected \1, got \2"),
    (r"dictionary key mismatch; expected key\(s\): (\[.*?\]), got key\(s\): (\[.*?\]), .*; "
     r"dict: .*",
     r"Dict key mismatch; expected keys: \1; present keys: \2."),
    (r"list arity mismatch; expected: (\d+), got: (\d+); (.*)",
     r"List arity mismatch: \2 != \1; \3"),
    (r"tuple arity mismatch; expected: (\d+), got: (\d+); (.*)",
     r"Tuple arity mismatch: \2 != \1; \3"),
    (r"namedtuple type mismatch; expected type: (.*), got type: .*; tuple: (.*)",
     r"Named tuple type mismatch: expected type: \1, tuple: \2"),
    (r"Mismatch custom node data; expected: (.*), got: (.*); value: (.*)",
     r"Mismatch custom node data: \1 != \2; value: \3"),
    (r"Custom node type mismatch; expected type: (.*), got type: .*; value: (.*)",
     r"Custom node type mismatch: expected type: \1, value: \2"),
))


def _in_jaxs_words(message: str) -> str:
    for pattern, words in _MISMATCHES:
        match = pattern.fullmatch(message)
        if match is not None:
            return match.expand(words)
    return message



class PyTreeDef:
    """The structure of a pytree: its nodes, and ``*`` where it has leaves.

    >>> jax.tree_util.tree_structure({'b': 1, 'a': (2, None)})
    PyTreeDef({'a': (*, None), 'b': *})
    """

    __slots__ = ("spec",)

    def __init__(self, spec: PyTreeSpec):
        self.spec = spec

    @property
    def num_leaves(self) -> int:
        return self.spec.num_leaves

    @property
    def num_nodes(self) -> int:
        return self.spec.num_nodes

    def unflatten(self, leaves: Iterable[object]) -> Any:
        """The pytree of this structure with the given leaves.

        Raises:
          ValueError: there are too few leaves or too many.
        """
        values = list(leaves)
        if len(values) < self.num_leaves:
            raise ValueError(f"Too few leaves for PyTreeDef; expected {self.num_leaves}, got "
                             f"{len(values)}")
        if len(values) > self.num_leaves:
            raise ValueError(f"Too many leaves for PyTreeDef; expected {self.num_leaves}.")
        return pytree.unflatten(self.spec, values)

    def flatten_up_to(self, tree: PyTree) -> list[Any]:
        """The subtrees of ``tree`` that stand where this structure has leaves."""
        try:
            return self.spec.flatten_up_to(tree)
        except ValueError as error:
            raise ValueError(_in_jaxs_words(str(error))) from None

    def children(self) -> list[PyTreeDef]:
        return [PyTreeDef(child) for child in self.spec.children()]

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with ``inner`` in the place of each leaf."""
        return PyTreeDef(self.spec.compose(inner.spec))

    def node_data(self) -> tuple[type, Any] | None:
        """The type and metadata of the root; None for a leaf."""
        if self.spec.is_leaf():
            return None
        found: list[Any] = []
        one: Any = self.spec.one_level()
        one.walk(range(one.num_leaves), lambda kind, data, children: found.append((kind, data)))
        kind, data = found[0]
        if kind is OrderedDict:
            data = tuple(data)
        elif kind is defaultdict:
            data = (data[0], tuple(data[1]))
        elif data is kind:
            data = None
        return kind, data

    def walk(self, f_node: Callable[[tuple[PyTree, ...], Any], PyTree],
             f_leaf: Callable[[PyTree], PyTree] | None, leaves: Iterable[object]) -> Any:
        """Rebuilds bottom up: ``f_node(children, node_data)`` and ``f_leaf(leaf)``."""
        return self.spec.walk(
            list(leaves), lambda kind, data, children: f_node(tuple(children), data), f_leaf)

    def from_iterable_tree(self, tree: PyTree) -> Any:
        """The pytree of this structure from nested iterables of its children."""
        def build(definition: PyTreeDef, node: PyTree) -> Any:
            if definition.spec.is_leaf():
                return node
            parts = [build(child, part)
                     for child, part in zip(definition.children(), node, strict=True)]
            top: Any = definition.spec.one_level()
            return top.unflatten(parts)

        return build(self, tree)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PyTreeDef):
            return False
        try:
            return bool(self.spec == other.spec)
        except Exception as error:      # whatever comparing the metadata of the user's nodes raises
            tree_equality.check_comparable(self.spec, [other.spec], error)
            raise

    def __hash__(self) -> int:
        return hash(self.spec)

    def __reduce__(self):
        return (PyTreeDef, (self.spec,))

    def __repr__(self) -> str:
        return f"PyTreeDef({self.spec.walk(['*'] * self.num_leaves, _node_text, None)})"


def _node_text(kind: type, data: Any, children: tuple[str, ...]) -> str:
    inside = ", ".join(children)
    if kind is tuple:
        return f"({inside},)" if len(children) == 1 else f"({inside})"
    if kind is list:
        return f"[{inside}]"
    if kind is type(None):
        return "None"
    if kind is dict:
        pairs = (f"{key!r}: {child}" for key, child in zip(data, children, strict=True))
        return "{" + ", ".join(pairs) + "}"
    if kind is OrderedDict:
        label = f"OrderedDict[{tuple(data)}]"
    elif kind is defaultdict:
        label = f"defaultdict[{(data[0], tuple(data[1]))}]"
    elif data is kind and pytree.is_namedtuple(kind):
        label = f"namedtuple[{kind.__name__}]"
    else:
        label = f"{kind.__name__}[{data}]"
    return f"CustomNode({label}, [{inside}])"


def tuple_of(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of the given structures.

    >>> parts = [jax.tree_util.tree_structure([1, 2]), jax.tree_util.tree_structure(0)]
    >>> jax.tree_util.treedef_tuple(parts)
    PyTreeDef(([*, *], *))
    """
    return PyTreeDef(optree.treespec_tuple(
        [definition.spec for definition in treedefs], namespace=NAMESPACE))
