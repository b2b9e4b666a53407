"""Donated arguments of programs: which are used up."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from maxjax._base.errors import JaxRuntimeError
from maxjax._base.shardings import NamedSharding
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.on_mesh import Leaf


def check_donated_once(leaves: Sequence[Leaf], donated: Sequence[int]) -> None:
    """Raises JaxRuntimeError where an argument is donated and used a second time."""
    first: dict[int, int] = {}
    given = {id(leaves[position]) for position in donated}
    for position, leaf in enumerate(leaves):
        if id(leaf) in given and isinstance(leaf, ArrayImpl):
            if id(leaf) in first:
                raise JaxRuntimeError(
                    "INVALID_ARGUMENT: Attempt to use a buffer that was previously donated in "
                    f"the same call to Execute() (flattened argument {position}, replica 0, "
                    f"partition 0, first use: {first[id(leaf)]}). Toy example for this bug: "
                    "`f(donate(a), a)`.")
            first[id(leaf)] = position


def fitting(leaves: Sequence[Leaf], donated: Sequence[int], results: Sequence[ArrayImpl]
            ) -> Sequence[int]:
    """The donated arguments of whose memory a result takes as much on each device."""
    given = [leaves[position] for position in donated]
    if all(x.__class__ is not ArrayImpl or x._placement.__class__ is not NamedSharding
            for x in (*given, *results)):
        return donated
    room = Counter([_bytes_on_a_device(x) for x in results])
    fitting = []
    for position, leaf in zip(donated, given, strict=True):
        size = _bytes_on_a_device(leaf) if leaf.__class__ is ArrayImpl else 0
        if room[size]:
            room[size] -= 1
            fitting.append(position)
    return fitting


def _bytes_on_a_device(array: Any) -> int:
    placement = array._placement
    if placement.__class__ is not NamedSharding:
        return array.nbytes
    return array.nbytes // _parts(placement, array.ndim)


@functools.lru_cache(maxsize=4096)
def _parts(sharding: NamedSharding, ndim: int) -> int:
    """Into how many different parts an array is cut."""
    return math.prod(sharding._tiling(ndim)[0])
