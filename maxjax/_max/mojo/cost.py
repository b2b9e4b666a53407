"""Estimates kernels' cost, to decide how many threads share a call; constants are measured."""

from __future__ import annotations

from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.nodes import Reduce

# Nanoseconds on one thread, for one element of a vector.
_CHEAP = 0.03
_EXPENSIVE = 0.6
_MEMORY = 0.1
# Work, in nanoseconds, that justifies another thread: sharing a call with a running thread costs 1
# us, and waking one 5 us; its first reads come from another core's cache.
_SHARING = 15_000


def nanoseconds(group: Group, elements: int) -> float:
    cost = _MEMORY * (1 + len(group.homes))
    for node in group.maps:
        cost += _CHEAP if isinstance(node, Reduce) or node.name in CHEAP else _EXPENSIVE
    return cost * elements


def threads_for(group: Group, elements: int, cores: int) -> int:
    return int(max(1, min(cores, nanoseconds(group, elements) // _SHARING)))
