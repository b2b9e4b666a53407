"""Small tools on lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def safe_map(f: Callable[..., T], *args: Iterable[Any]) -> list[T]:
    """``map`` over arguments of one length, as a list.

    Raises:
      ValueError: their lengths differ.
    """
    return [f(*values) for values in safe_zip(*args)]


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """``zip`` of arguments of one length, as a list.

    Raises:
      ValueError: their lengths differ.
    """
    return list(zip(*args, strict=True))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first and the second elements of pairs."""
    pairs = list(pairs)
    return tuple(first for first, _ in pairs), tuple(second for _, second in pairs)


def split_list(args: Sequence[T], ns: Sequence[int]) -> list[list[T]]:
    """Parts of the given lengths, and the rest."""
    parts, start = [], 0
    for n in ns:
        parts.append(list(args[start:start + n]))
        start += n
    return [*parts, list(args[start:])]


def partition_list(bs: Sequence[bool], values: Sequence[T]) -> tuple[list[T], list[T]]:
    """The values at False, and those at True."""
    pairs = safe_zip(bs, values)
    return [x for b, x in pairs if not b], [x for b, x in pairs if b]


def merge_lists(bs: Sequence[bool], on_false: Iterable[T], on_true: Iterable[T]) -> list[T]:
    """The inverse of ``partition_list``."""
    false, true = iter(on_false), iter(on_true)
    return [next(true if b else false) for b in bs]
