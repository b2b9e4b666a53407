"""What collectives cost between devices along axes of a mesh that form a torus, as JAX counts it.

Each rule gives the bytes that go over a link, and the steps that it takes. Rings along all axes
carry a part of the data each.
"""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np

from maxjax._ir.costs import Cost, Roofline
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params
from maxjax._primitives import costs


def _ring(part: int, sizes: list[int]) -> tuple[int, int]:
    """Bytes and steps for each device to get ``part`` bytes from all others."""
    return part // len(sizes) * (math.prod(sizes) - 1), max(sizes) * len(sizes)


def _all_gather(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    return _ring(operand.nbytes, sizes)


def _reduce_scatter(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    return _ring(operand.nbytes // math.prod(sizes), sizes)


def _psum(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    moved, steps = _reduce_scatter(operand, sizes, params)
    return 2 * moved, 2 * steps


def _extreme(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    return _ring(operand.dtype.itemsize, sizes)


def _all_to_all(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    """Half of the data cross the middle of the torus, whose rings are open where an axis is of two
    devices."""
    count = math.prod(sizes)
    links = (2 if min(sizes) > 2 else 1) * count // max(sizes)
    return int(operand.nbytes * count / (2 * links)), int(sum(size / 2 for size in sizes))


def _ppermute(operand: ShapedArray, sizes: list[int], params: Params) -> tuple[int, int]:
    """The most that goes over one link, along the axes one after the other, the short way round."""
    load: collections.Counter[Any] = collections.Counter()
    longest = 0
    for source, target in params["perm"]:
        here, there = [list(map(int, np.unravel_index(n, sizes))) for n in (source, target)]
        hops = 0
        for axis, size in enumerate(sizes):
            ahead = (there[axis] - here[axis]) % size
            step = 1 if 2 * ahead <= size else -1
            while here[axis] != there[axis]:
                before = tuple(here)
                here[axis] = (here[axis] + step) % size
                load[frozenset((before, tuple(here)))] += 1
                hops += 1
        longest = max(longest, hops)
    return max(load.values(), default=0) * operand.nbytes, longest


ALL_GATHER = Cost(roofline=Roofline(links=_all_gather))
REDUCE_SCATTER = Cost(xla=costs.REDUCTION.xla, roofline=Roofline(links=_reduce_scatter))
PSUM = Cost(roofline=Roofline(links=_psum))
EXTREME = Cost(roofline=Roofline(links=_extreme))
ALL_TO_ALL = Cost(roofline=Roofline(links=_all_to_all))
PPERMUTE = Cost(roofline=Roofline(links=_ppermute))
