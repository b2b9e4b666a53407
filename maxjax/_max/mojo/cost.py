"""Estimates of what calls cost: how many threads share one, and what part of a program's time each
kernel takes while it is not compiled. Constants are measured."""

from __future__ import annotations

from collections.abc import Sequence

from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.nodes import Call, Node, Reduce, Unit

# Nanoseconds on one thread, for one element of a vector.
_CHEAP = 0.03
_EXPENSIVE = 0.6
_MEMORY = 0.1
# The same where the data are in the caches of the core that has them from the call before.
_CACHED = 0.05
# Work, in nanoseconds, that justifies another thread: sharing a call with a running thread costs 1
# us, and waking one 5 us; its first reads come from another core's cache.
_SHARING = 15_000
# A call of the vector machine, and each of its instructions, for any number of elements.
_CALL = 40.0
_INSTRUCTION = 8.0
# The pack's functions, for each byte that they read or write, and for a product's each two flops.
_BYTE = 0.25
_SORTED_BYTE = 10.0
_PRODUCT = 0.04
# Rows of fewer elements fill few vectors of a kernel, and the vector machine gathers them to long
# lines: it is the faster of the two where there are so many elements. Columns are blocks anyway.
_SHORT_ROW = {"map": 32, "rows": 32, "columns": 8}
_LEAST_IN_SHORT_ROWS = 512
# A step of the host, in Python, and the bytes that its rules read or write.
_HOST_STEP = 20_000.0
_HOST_BYTE = 2.0


def nanoseconds(group: Group, elements: int, memory: float = _MEMORY) -> float:
    cost = memory * (1 + len(group.homes))
    for node in group.maps:
        cost += _CHEAP if isinstance(node, Reduce) or node.name in CHEAP else _EXPENSIVE
    return cost * elements


def threads_for(group: Group, elements: int, cores: int) -> int:
    return int(max(1, min(cores, nanoseconds(group, elements, _CACHED) // _SHARING)))


def machine_nanoseconds(group: Group, elements: int, threads: int) -> float:
    """What a call of a group takes where its kernel is not compiled."""
    return _CALL + _INSTRUCTION * len(group.maps) + nanoseconds(group, elements) / threads


def suits_machine(kind: str, points: int, rows: int, length: int) -> bool:
    """Whether a group is for the vector machine, and not for a kernel.

    Args:
      rows: of each point; the machine goes through a point at a time where a line is several.
      length: of a row.
    """
    count = points * rows
    return (length < _SHORT_ROW[kind] and count > 1 and count * length >= _LEAST_IN_SHORT_ROWS
            and (kind != "rows" or rows == 1))


def pack_nanoseconds(unit: Unit, read: Sequence[Node], results: Sequence[Node]) -> float:
    """What a call of the pack takes: one for each piece of an array that is composed of several."""
    if not isinstance(unit, Call):
        return _CALL + _BYTE * sum(x.nbytes for x in read)
    if unit.host is not None:
        return _HOST_STEP + _HOST_BYTE * sum(x.nbytes for x in (*read, *results))
    if unit.function.startswith("matmul_"):
        return _CALL + _PRODUCT * unit.inputs[0].size * unit.inputs[1].shape[-1]
    byte = _SORTED_BYTE if "sort" in unit.function else _BYTE
    return _CALL + byte * sum(x.nbytes for x in (*read, *results))
