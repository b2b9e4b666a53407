"""Cells: values that are still to be computed, and the pending graph that they make.

An array without a value yet holds its cell (``maxjax._runtime.array``). Running the graph gives the
array its value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes, float_errors, spans, threads
from maxjax._base.errors import InternalError
from maxjax._ir.primitive import OpSpec
from maxjax._ir.types import ShapedArray
from maxjax._runtime.memory import out_of_memory
from maxjax._runtime.program import run_heavy

# Below this many bytes of results a graph is interpreted straight away, without being looked up:
# the look-up would cost more than compiling could save.
LIGHT_BYTES = 1 << 20
# In graphs whose operations have less than this part of them each, the operations themselves cost
# most. A plan takes some 30 times as long as running them, and an eager loop may bring another
# graph each time: so such a graph becomes a program when it has come often.
_SMALL_PART = 128
_SMALL_GRAPHS_RUNS = 16


# Operands and results of operations on the host: scalars stay scalars.
HostValue = np.ndarray | np.generic


class Cell:
    """One value in the pending graph.

    An operation is a cell with a ``spec`` and ``inputs`` (cells or NumPy values). The further
    results of an operation with several are cells of their own, whose ``origin`` it is.
    """

    __slots__ = ("array", "done", "inputs", "origin", "parts", "spec", "value")

    def __init__(self, spec: OpSpec | None, inputs: list[Cell | HostValue] | None):
        # A cell of a further result has neither.
        self.spec: Any = spec
        self.inputs: Any = inputs
        self.value: Any = None
        self.done = False
        self.array: Any = None      # a weak reference to the array that waits for the value
        self.parts: list[Cell] | None = None
        self.origin: Cell | None = None


class PendingGraph:
    """The operations that have been recorded and not run; one for the process."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.bytes = 0
        # Reentrant: running a graph may look at arrays (a host callback does).
        self.lock = threads.lock()

    def take(self) -> list[Cell]:
        cells = self.cells
        self.cells = []
        self.bytes = 0
        return cells

    def force(self, cell: Cell) -> None:
        """Runs all that is pending, ``cell`` included."""
        with self.lock:
            if cell.done:
                return
            self.run(self.take())
            if not cell.done:
                # Another thread was recording it while the graph was taken, or a run was
                # interrupted: compute just what it needs.
                self.run(_ancestors(cell))

    def flush(self) -> None:
        with self.lock:
            self.run(self.take())

    def run(self, cells: list[Cell]) -> None:
        """Runs operations that are in order.

        Raises:
          JaxRuntimeError: out of memory.
        """
        try:
            self._run(cells)
        except MemoryError as error:
            raise out_of_memory(error) from error

    def _run(self, cells: list[Cell]) -> None:
        if len(cells) > 1:
            cells = _needed(cells)
            weight = sum([cell.spec.weight for cell in cells])
            if weight > LIGHT_BYTES:
                is_small = weight < len(cells) * (LIGHT_BYTES // _SMALL_PART)
                results = run_heavy(cells, _SMALL_GRAPHS_RUNS if is_small else 0)
                if results is not None:
                    for cell, value in results:
                        settle(cell, value)
                    return
        errors = float_errors.state()
        try:
            float_errors.ignore()
            if spans.state.record is not None:
                _run_recorded(cells)
                return
            for position, cell in enumerate(cells):
                run_cell(cell)
                cells[position] = None      # type: ignore[call-overload]  # frees what it held
        finally:
            float_errors.restore(errors)


def _run_recorded(cells: list[Cell]) -> None:
    for cell in cells:
        start = spans.clock()
        run_cell(cell)
        spans.add(cell.spec.primitive.name, "operation", start)


def run_cell(cell: Cell) -> None:
    if cell.done:
        return
    spec = cell.spec
    values = []
    for operand in cell.inputs:
        if operand.__class__ is Cell:
            if not operand.done:
                for ancestor in _ancestors(operand):
                    run_cell(ancestor)
            operand = operand.value
        values.append(operand)
    result = spec.alone(*values)
    if cell.parts is None:
        settle(cell, result)
    else:
        for part, value in zip(cell.parts, result, strict=True):
            settle(part, value)
        cell.done = True
        cell.inputs = None


def settle(cell: Cell, value: HostValue) -> None:
    """Gives a cell, and the array that waits for it, its value."""
    cell.value = value
    cell.done = True
    cell.inputs = None
    waiting = cell.array() if cell.array is not None else None
    if waiting is not None and waiting._cell is cell:
        waiting._value = checked(value, waiting.aval)
        waiting._cell = None


def _needed(cells: list[Cell]) -> list[Cell]:
    """Without the operations whose results nobody can look at any more."""
    needed: set[Cell] = set()
    kept = []
    for cell in reversed(cells):
        if cell.done:
            continue
        if cell.parts is None:
            alive = cell in needed or cell.array() is not None
        else:
            alive = any(part in needed or part.array() is not None for part in cell.parts)
        if not alive:
            continue
        kept.append(cell)
        for operand in cell.inputs:
            if operand.__class__ is Cell and not operand.done:
                needed.add(operand)
                if operand.origin is not None:
                    needed.add(operand.origin)
    kept.reverse()
    return kept


def _ancestors(cell: Cell) -> list[Cell]:
    """The operations that ``cell`` waits for, itself last, in an order to run them in."""
    order: list[Cell] = []
    seen: set[Cell] = set()
    stack: list[tuple[Cell, bool]] = [(cell.origin or cell, False)]
    while stack:
        current, expanded = stack.pop()
        if current.done:
            continue
        if expanded:
            order.append(current)
            continue
        if current in seen:
            continue
        seen.add(current)
        stack.append((current, True))
        for operand in current.inputs:
            if operand.__class__ is Cell and not operand.done:
                stack.append((operand.origin or operand, False))
    return order


pending = PendingGraph()


def checked(value: HostValue, aval: ShapedArray) -> np.ndarray:
    """A computed value, which nobody else writes to, as what an array of type ``aval`` holds.

    Raises:
      InternalError: its dtype or shape is not what the type says.
    """
    if value.__class__ is not np.ndarray:
        value = np.asarray(value)
    if value.dtype is aval.dtype and value.shape == aval.shape:
        return value
    # Equal dtypes need not be one object; random keys have a physical one.
    if value.shape != aval.shape or value.dtype != dtypes.physical(aval.dtype):
        raise InternalError(f"an array of type {aval.str_short()} was given a value of dtype "
                            f"{value.dtype} and shape {value.shape}")
    return value
