"""Small tools on lists."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from maxjax._base.signatures import wraps

T = TypeVar("T")


def safe_map(f: Callable[..., T], *args: Iterable[Any]) -> list[T]:
    """``map`` over arguments of one length, as a list.

    Raises:
      ValueError: their lengths differ.
      TypeError: there are none.
    """
    if not args:
        raise TypeError("safe_map requires at least 2 arguments")
    lists = list(map(list, args))
    for n, values in enumerate(lists[1:], 2):
        if len(values) != len(lists[0]):
            length = "longer" if len(values) > len(lists[0]) else "shorter"
            raise ValueError(f"safe_map() argument {n} is {length} than argument 1")
    return list(map(f, *lists))


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """``zip`` of arguments of one length, as a list.

    Raises:
      ValueError: their lengths differ.
      TypeError: there are none.
    """
    if not args:
        raise TypeError("safe_zip requires at least 1 argument")
    lists = list(map(list, args))
    lengths = tuple(map(len, lists))
    for n, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(f"safe_zip() argument {n} has length {length} but argument 0 has "
                             f"length {lengths[0]}. All lengths: {lengths}")
    return list(zip(*lists, strict=True))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first and the second elements of pairs."""
    pairs = list(pairs)
    return tuple(first for first, _ in pairs), tuple(second for _, second in pairs)


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """The first, second and third elements of triples."""
    triples = list(triples)
    return tuple(tuple(triple[n] for triple in triples) for n in range(3))


def concatenate(lists: Iterable[Sequence[T]]) -> list[T]:
    """The elements of all lists."""
    return [x for values in lists for x in values]


def curry(f: Callable[..., T]) -> Callable[..., Callable[..., T]]:
    """``f`` as a function of its first arguments that gives one of the others.

    >>> curry(lambda x, y: x - y)(3)(2)
    1
    """
    return wraps(f)(functools.partial(functools.partial, f))


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
