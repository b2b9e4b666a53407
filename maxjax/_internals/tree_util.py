"""The registered classes of nodes, nodes one level at a time, and where prefixes differ."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from maxjax import tree_util as _public
from maxjax._base import pytree

__all__ = ["_registry", "flatten_one_level"]


flatten_one_level = _public.flatten_one_level


class _RegistryEntry(NamedTuple):
    """How nodes of a class are taken apart, into children and metadata, and put together."""

    to_iter: Callable[[Any], tuple[Any, Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


def _node_of(kind: Any, metadata: Any, children: Iterable[Any]) -> Any:
    if isinstance(kind, pytree.Registration):
        return kind.unflatten(metadata, tuple(children))
    if kind is type(None):
        return None
    if kind is collections.defaultdict:
        factory, keys = metadata
        return kind(factory, zip(keys, children, strict=True))
    if issubclass(kind, dict):
        return kind(zip(metadata, children, strict=True))
    return kind(children)


class _Registry(Mapping[type, _RegistryEntry]):
    """By class."""

    def __getitem__(self, cls: type) -> _RegistryEntry:
        return _RegistryEntry(flatten_one_level, functools.partial(
            _node_of, pytree.node_types[cls]))

    def __iter__(self) -> Iterator[type]:
        return iter(pytree.node_types)

    def __len__(self) -> int:
        return len(pytree.node_types)

    def __contains__(self, cls: object) -> bool:
        return cls in pytree.node_types


_registry = _Registry()


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
