"""Specs of pytrees whose dictionaries have their keys in order, as JAX's have."""

from __future__ import annotations

import collections
import functools
import types
from collections.abc import Iterable, Sequence
from typing import Any

from maxjax._base.kept_optree import NAMESPACE, optree

PyTreeSpec = optree.PyTreeSpec

# What stands for the specs equal to one: a canonical one; True where each is canonical itself;
# False where each needs its own, as equal metadata can differ (1 and True), and a tree keeps its.
_canonical: dict[PyTreeSpec, PyTreeSpec | bool] = {}
_CANONICAL_LIMIT = 4096
# The types whose equal values are interchangeable.
_ALIKE = (str, bytes, type(None), type, types.FunctionType)


def canonical(spec: PyTreeSpec) -> PyTreeSpec:
    """An equal spec that rebuilds dictionaries with their keys in order, as JAX does.

    optree would restore the order in which the keys were inserted.

    Raises:
      ValueError, TypeError: keys of a dictionary that cannot be ordered.
    """
    try:
        known = _canonical.get(spec)
    except Exception:      # metadata of a node that cannot be hashed or compared
        return spec.transform(_sort_keys, None)
    if known is None:
        if len(_canonical) >= _CANONICAL_LIMIT:
            _canonical.clear()
        known = _canonical[spec] = _canonical_for_equal_ones(spec)
    if isinstance(known, bool):
        return spec if known else _with_sorted_keys(spec)
    return known


def _canonical_for_equal_ones(spec: PyTreeSpec) -> PyTreeSpec | bool:
    has_dictionary, alike = False, True

    def note(kind: type, metadata: object, children: Sequence[object]) -> None:
        nonlocal has_dictionary, alike
        has_dictionary = has_dictionary or kind is dict or kind is collections.defaultdict
        alike = alike and _is_alike(metadata)

    spec.walk(range(spec.num_leaves), note)
    if not has_dictionary:
        return True
    found = spec.transform(_sort_keys, None)
    return found if alike else False


def _with_sorted_keys(spec: PyTreeSpec) -> PyTreeSpec:
    """The spec with its own metadata; its keys are known to have an order."""
    return _restated(spec) if _can_restate() else spec.transform(_sort_keys, None)


def _restated(spec: PyTreeSpec) -> PyTreeSpec:
    """By what the spec pickles: the order of insertion is a node's last part, if it has one."""
    state: Any = spec.__getstate__()
    nodes, *rest = state
    made: Any = PyTreeSpec.__new__(PyTreeSpec)
    made.__setstate__((tuple(
        node if node[-1] is None else (*node[:-1], sorted(node[-1])) for node in nodes), *rest))
    return made


@functools.cache
def _can_restate() -> bool:
    """Whether this optree's pickles are as expected; they are not documented."""
    tree: Any = {"b": 1, "a": [collections.defaultdict(list, {3: 4, 2: 5}), (6, None)]}
    found, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
    try:
        made = _restated(spec)
        return made == spec and str(made.unflatten(found)) == str(
            spec.transform(_sort_keys, None).unflatten(found))
    except Exception:      # whatever another layout makes of it
        return False


def _is_alike(metadata: Any) -> bool:
    if type(metadata) in (tuple, list):
        return all(_is_alike(part) for part in metadata)
    return type(metadata) in _ALIKE


def check_keys(dictionary: type, keys: Iterable[Any]) -> None:
    """Raises where keys have no order: optree would take an order of its own."""
    try:
        sorted(keys)
    except Exception as error:      # whatever the user's class raises
        if dictionary is not dict:
            raise
        raise ValueError(
            "Comparator raised exception while sorting pytree dictionary keys.") from error


def _sort_keys(node: PyTreeSpec) -> PyTreeSpec:
    if node.type is dict or node.type is collections.defaultdict:
        check_keys(node.type, node.entries())
    if node.type is dict:
        return optree.treespec_dict(
            dict(zip(node.entries(), node.children(), strict=True)), namespace=NAMESPACE)
    if node.type is collections.defaultdict:
        factories: list[Any] = []

        def note(kind: type, data: Any, children: Sequence[object]) -> None:
            factories.append(data[0])

        node.walk(range(node.num_leaves), note)
        return optree.treespec_defaultdict(
            factories[0], dict(zip(node.entries(), node.children(), strict=True)),
            namespace=NAMESPACE)
    return node
