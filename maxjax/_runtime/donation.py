"""Donated arguments of programs: which are used up, and which may be overwritten."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base.errors import JaxRuntimeError
from maxjax._base.ownership import is_alone, locked
from maxjax._base.shardings import NamedSharding
from maxjax._ir.types import ShapedArray
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.operand_devices import Leaf


def check_donated_once(leaves: Sequence[Leaf], donated: Sequence[int]) -> None:
    """Raises JaxRuntimeError where an argument is donated and used a second time."""
    if len(leaves) == 1 or len(set(map(id, leaves))) == len(leaves):
        return
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


_NOTHING = np.empty(0)


def give_up(leaves: Sequence[Leaf], values: list[np.ndarray], donated: Sequence[int]) -> None:
    """Deletes donated arguments, before the program runs: another thread may look at one.

    Args:
      values: of the arguments. One that something else refers to as well becomes read-only: nothing
        may overwrite it.
    """
    for position in donated:
        leaf = leaves[position]
        if leaf.__class__ is ArrayImpl:
            leaf.delete()
        # In a variable alone: that is how references are counted.
        value, values[position] = values[position], _NOTHING
        values[position] = value if is_alone(value) else locked(value)


def fitting(leaves: Sequence[Leaf], donated: Sequence[int],
            results: Sequence[tuple[ShapedArray, Any, bool]]) -> Sequence[int]:
    """The donated arguments of whose memory a result takes as much on each device.

    Args:
      results: their types and placements (``PlacedResults``).
    """
    given = [(leaf.aval, leaf._placement) if leaf.__class__ is ArrayImpl else None
             for leaf in map(leaves.__getitem__, donated)]
    if all(placement.__class__ is not NamedSharding for _, placement, *_ in
           (*filter(None, given), *results)):
        return donated
    room = Counter([_bytes_on_a_device(aval, placement) for aval, placement, _ in results])
    fitting = []
    for position, x in zip(donated, given, strict=True):
        size = 0 if x is None else _bytes_on_a_device(*x)
        if room[size]:
            room[size] -= 1
            fitting.append(position)
    return fitting


def _bytes_on_a_device(aval: ShapedArray, placement: Any) -> int:
    if placement.__class__ is not NamedSharding:
        return aval.nbytes
    return aval.nbytes // _parts(placement, len(aval.shape))


@functools.lru_cache(maxsize=4096)
def _parts(sharding: NamedSharding, ndim: int) -> int:
    """Into how many different parts an array is cut."""
    return math.prod(sharding._tiling(ndim)[0])
