"""Runs tapes: one foreign call a program, without the GIL."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._max.mojo.plan import Plan, Tape

# Arenas up to this size are kept between calls, a few of them for calls at the same time.
_KEPT_ARENA_BYTES = 1 << 30
_KEPT_ARENAS = 4


class Executable:
    """A linked program, called with NumPy arrays and answering with NumPy arrays.

    Calls from several threads run at the same time: each has its own slots and its own arena.

    Raises, when called:
      ValueError: an array is of another shape or dtype than the program's argument.
    """

    def __init__(self, plan: Plan, types: Sequence[tuple[tuple[int, ...], np.dtype]],
                 addresses: Mapping[str, int], run: Callable[..., int]):
        self._run = run
        self._types = types
        self._tapes: list[np.ndarray] = []
        tape = self._link(plan.tape, addresses)
        self._tape, self._length = tape.ctypes.data, len(tape)
        self._constants = np.frombuffer(
            bytearray(plan.constants or b"\0") , np.uint8)
        self.arena_bytes = plan.arena
        self._arenas: list[np.ndarray] = []
        self._inputs = len(types)
        self._written = plan.written
        self._results = [
            x if type(x) is int or isinstance(x, np.ndarray) else (x[0], x[1])
            for x in plan.outputs]
        self._objects = ctypes.c_int64 * (self._inputs + self._written + 1)
        slots = np.zeros(plan.slots, np.int64)
        slots[plan.constant_slot] = self._constants.ctypes.data
        self._slots = ctypes.c_int64 * plan.slots
        self._template = slots.tobytes()
        self._constant_slot = plan.constant_slot

    def _link(self, tape: Tape, addresses: Mapping[str, int]) -> np.ndarray:
        """A tape's integers, with the addresses of its functions and of nested tapes."""
        flat: list[int] = []
        for step in tape.steps:
            integers: list[int] = []
            for x in step.integers:
                if isinstance(x, Tape):
                    nested = self._link(x, addresses)
                    integers += (nested.ctypes.data, len(nested))
                else:
                    integers.append(int(x))
            flat += (addresses[step.kernel or step.function], len(integers), *integers)
        linked = np.array(flat or [0], np.int64)
        self._tapes.append(linked)
        return linked[:len(flat)]

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        arrays = list(arrays)
        for array, (shape, dtype) in zip(arrays, self._types, strict=True):
            if array.shape != shape or array.dtype != dtype:
                raise ValueError(f"expected an array of {dtype}{list(shape)}, got "
                                 f"{array.dtype}{list(array.shape)}")
        outputs = []
        results: list[Any] = []
        for result in self._results:
            if type(result) is tuple:
                array = np.empty(result[0], result[1])
                outputs.append(array)
                results.append(array)
            else:
                results.append(result)
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = np.empty(max(self.arena_bytes, 1), np.uint8)
        slots = self._slots.from_buffer_copy(self._template)
        objects = self._objects(*map(id, arrays), *map(id, outputs), id(arena))
        count = len(objects)
        status = self._run(objects, count, slots, self._tape, self._length)
        if status:
            # An argument that is strided or misaligned: from a copy.
            arrays = [np.array(x, order="C") for x in arrays]
            objects = self._objects(*map(id, arrays), *map(id, outputs), id(arena))
            status = self._run(objects, count, slots, self._tape, self._length)
            assert not status, f"argument {status - 1} cannot be read"
        if len(self._arenas) < _KEPT_ARENAS and self.arena_bytes <= _KEPT_ARENA_BYTES:
            self._arenas.append(arena)
        return [arrays[x] if type(x) is int else x for x in results]


def runner(address: int) -> Callable[..., int]:
    """The driver of the pack as a Python function, which releases the GIL."""
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, pointer, ctypes.c_int64, pointer, pointer,
                            ctypes.c_int64)
    return kind(address)
