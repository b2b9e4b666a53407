"""What ``jax.clear_caches`` empties besides traces: caches that only save time."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

_clearers: list[Callable[[], None]] = []


def cache() -> dict[Any, Any]:
    """A dictionary that ``clear`` empties. Its readers must cope with entries that are gone."""
    known: dict[Any, Any] = {}
    _clearers.append(known.clear)
    return known


def cache_by_owner() -> weakref.WeakKeyDictionary[Any, dict[Any, Any]]:
    """A dictionary for each of many objects, which lives as long as the object; ``clear`` empties
    it."""
    known: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
    _clearers.append(known.clear)
    return known


def memoized(function: Callable[..., Result]) -> Callable[..., Result]:
    """Decorates a function of hashable arguments: ``clear`` forgets its results."""
    cached = functools.lru_cache(maxsize=4096)(function)
    _clearers.append(cached.cache_clear)
    return cached


def clear() -> None:
    """Empties all of them."""
    for clearer in _clearers:
        clearer()
