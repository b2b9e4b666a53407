"""What kernels cost, to decide how many threads are worth waking; constants as measured."""

from __future__ import annotations

from maxjax._max.mojo.fusion import CHEAP, Group

# Nanoseconds on one thread, for one element of a vector.
_CHEAP = 0.03
_EXPENSIVE = 0.6
_MEMORY = 0.1
# Work, in nanoseconds, that is worth waking a thread for: MAX's pool takes 20 us for it when the
# thread finds a free core, and 300 when it does not.
_WAKING = 150_000


def nanoseconds(group: Group, elements: int) -> float:
    cost = _MEMORY * (1 + len(group.homes))
    for node in group.maps:
        cost += _CHEAP if node.kind == "reduce" or node.name in CHEAP else _EXPENSIVE
    return cost * elements


def threads_for(group: Group, elements: int, cores: int) -> int:
    return int(max(1, min(cores, nanoseconds(group, elements) // _WAKING)))
