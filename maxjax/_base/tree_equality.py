"""Whether two pytrees are of one structure: where they differ, and where that cannot be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from maxjax._base.pytree import KeyPath, PyTree, PyTreeSpec, one_level


def check_comparable(spec: PyTreeSpec, others: Iterable[PyTreeSpec], cause: Exception) -> None:
    """Raises ValueError where metadata of the nodes cannot be compared with one of ``others``'."""
    for other in others:
        try:
            _ = spec == other
        except Exception:      # whatever the user's class raises
            raise ValueError(
                "Exception raised while checking equality of metadata fields of pytree node of "
                f"type {_incomparable(spec, other)}. Make sure that metadata fields are hashable "
                "and have simple equality semantics. (Note: arrays cannot be passed as metadata "
                "fields!)") from cause


def _incomparable(spec: PyTreeSpec, other: PyTreeSpec) -> Any:
    """The type of the first node whose metadata cannot be compared."""
    for mine, its in zip(spec.children(), other.children(), strict=False):
        try:
            _ = mine == its
        except Exception:
            return _incomparable(mine, its)
    return spec.type


def structure_differences(left: PyTree, right: PyTree, leaf: str = "", path: KeyPath = ()
                          ) -> Iterator[tuple[Any, ...]]:
    """Where two pytrees differ: path, what either has there, and in what they differ.

    Args:
      leaf: what leaves are called; by their types, if empty.
    """
    def described(node: PyTree, level: object) -> str:
        return f"a {leaf}" if leaf and level is None else f"a {type(node)}"

    mine, other = one_level(left), one_level(right)
    if mine is None and other is None:
        return
    if type(left) is not type(right):
        yield path, described(left, mine), described(right, other), "their Python types differ"
        return
    assert mine is not None and other is not None
    counts = len(mine.children), len(other.children)
    if type(left) in (tuple, list) and counts[0] != counts[1]:
        kind = type(left).__name__
        yield (path, f"a {kind} of length {counts[0]}", f"a {kind} of length {counts[1]}",
               "the lengths do not match")
        return
    if counts[0] != counts[1]:
        keys = {str(key) for key in mine.keys} ^ {str(key) for key in other.keys}
        if isinstance(left, dict):
            keys = set(left) ^ set(right)
        texts = [f"a {type(left)} with {count} child{'' if count == 1 else 'ren'}"
                 for count in counts]
        yield (path, *texts, "the numbers of children do not match, with the symmetric difference "
               f"of key sets: {keys}")
        return
    if mine.metadata != other.metadata:
        texts = [f"a {type(left)} with pytree metadata {node.metadata}" for node in (mine, other)]
        yield path, *texts, "the pytree node metadata does not match"
        return
    for key, child, other_child in zip(mine.keys, mine.children, other.children, strict=True):
        yield from structure_differences(child, other_child, leaf, (*path, key))
