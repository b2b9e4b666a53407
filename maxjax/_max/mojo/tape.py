"""Tapes as planned: calls, and what people read of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._max.mojo.forms import Form
from maxjax._max.mojo.nodes import Node

# The pack's function that runs a step of the host which the pack has no function for.
CALL_PYTHON = "tape_call_python"


class Step(NamedTuple):
    """A call: of a pack's function by its name, or of a generated kernel; until that is compiled,
    of the function if there is one, and of a machine otherwise."""

    function: str
    kernel: Form | None
    integers: list[Any]     # integers, Tapes, which become their address and length, and
                            # GroupCodes and LoopCodes, their address; a HostStep
    note: object = ""       # for people to read, as text


class Signature(NamedTuple):
    """Types of a call's operands, which become text only when somebody reads them."""

    inputs: list[tuple[np.dtype, tuple[int, ...]]]
    outputs: list[tuple[np.dtype, tuple[int, ...]]]
    threads: int = 1

    def __str__(self) -> str:
        before, after = (", ".join(f"{dtypes.name_of(dtype)}[{_sizes(shape)}]"
                                   for dtype, shape in types)
                         for types in (self.inputs, self.outputs))
        text = f"{before} -> {after}" if before else after
        return f"{text}, {self.threads} threads" if self.threads > 1 else text


class Copied(NamedTuple):
    """What a copy moves, as `Signature`."""

    dtype: np.dtype
    shape: Sequence[int]
    strides: Sequence[int]
    target_strides: Sequence[int]

    def __str__(self) -> str:
        return (f"{self.dtype}[{_sizes(self.shape)}], strides [{_sizes(self.strides)}] to "
                f"[{_sizes(self.target_strides)}]")


class WindowUpdate(NamedTuple):
    """Three steps of a tape, by their numbers: a window is read, computed anew, and written."""

    read: int
    group: int
    write: int


class RowWrite(NamedTuple):
    """Two steps of a tape, by their numbers: a row is computed, and scattered to its place."""

    group: int
    write: int


class WindowRead(NamedTuple):
    """Steps of a tape, by their numbers: a window, or a row, is read, and groups, which alone need
    it, compute with it while the array is as it was."""

    read: int
    groups: list[int]


class Tape:
    """Calls in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.updates: list[WindowUpdate] = []
        self.reads: list[WindowRead] = []
        self.rows: list[RowWrite] = []


def signature(inputs: Sequence[Node], outputs: Sequence[Node], threads: int = 1) -> Signature:
    return Signature([(node.dtype, node.shape) for node in inputs],
                     [(node.dtype, node.shape) for node in outputs], threads)


def _sizes(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
