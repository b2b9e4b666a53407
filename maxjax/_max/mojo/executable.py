"""Runs tapes: one foreign call per program, without the GIL."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base.errors import InternalError
from maxjax._max.host_step import CalledStep, Failures, HostStep
from maxjax._max.mojo.abi import PLAIN_FLAGS, ArrayObject
from maxjax._max.mojo.forms import Form
from maxjax._max.mojo.linking import Linker
from maxjax._max.mojo.plan import Plan
from maxjax._max.mojo.result_memory import LEAST_BYTES, arenas, memory
from maxjax._max.mojo.tape import CALL_PYTHON

# Frames with arenas up to this size are reused between calls, several for concurrent calls.
_KEPT_ARENA_BYTES = 1 << 30
_KEPT_FRAMES = 4
# Arenas of so many bytes are lent by `arenas` for a call: it keeps some of these for good.
_LENT_BYTES = range(LEAST_BYTES, 1 << 26)

_empty = np.empty       # replaced in tests
_NO_ARENA = np.empty(1, np.uint8)


class Executable:
    """A linked program, a function from NumPy arrays to NumPy arrays.

    The arrays must have the shapes and dtypes of the program's arguments: this is not checked.
    A result that takes the memory of an argument (``Plan.overwritten``) is written to a copy of it
    where the argument is read-only.
    Calls from several threads run concurrently: each has a frame, of slots and an arena.
    """

    def __init__(self, plan: Plan, types: Sequence[tuple[tuple[int, ...], np.dtype]],
                 addresses: Mapping[Any, int], run: Callable[..., int]):
        self._run = run
        self._words: dict[int, np.ndarray] = {}     # tapes and codes, by their addresses
        self._host_steps: list[Any] = []        # what the tapes call by address
        self._failures = Failures()
        self._addresses = addresses
        linker = Linker(addresses, self._keep, self)
        self._tape, self._length = linker.tape(plan.tape)
        # Tapes, and where in them the vector machine stands for which kernel.
        self._without_kernels = [(self._words[place], position, kernel)
                                 for place, position, kernel in linker.missing]
        if self._host_steps:
            self._run = self._failures.watched(run)
        self._constants = _empty(max(len(plan.constants), 1), np.uint8)
        self._constants[:len(plan.constants)] = np.frombuffer(plan.constants, np.uint8)
        self.arena_bytes = plan.arena
        self._borrows = plan.arena in _LENT_BYTES
        self._frames: list[Frame] = []
        self._written = [x for x in plan.outputs if type(x) is tuple]
        sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in self._written]
        self._large = ([(shape, dtype, size) for (shape, dtype), size in
                        zip(self._written, sizes, strict=True)]
                       if max(sizes, default=0) >= LEAST_BYTES else None)
        # The results that are written to an argument's memory, by number; and the others.
        self._overwritten = [(number, source, *kind) for number, (source, kind) in enumerate(
            zip(plan.overwritten, self._written, strict=True)) if source is not None]
        if self._overwritten:
            self._new = [(number, shape, dtype, size) for number, ((shape, dtype), size) in
                         enumerate(zip(self._written, sizes, strict=True))
                         if plan.overwritten[number] is None]
        # Which argument or which written array each result is.
        written = iter(range(len(types), len(types) + len(self._written)))
        self._results: list[Any] = [next(written) if type(x) is tuple else x for x in plan.outputs]
        self._count = len(types) + len(self._written) + 1
        self._pack = struct.Struct(f"{self._count - 1}q").pack_into
        slots = np.zeros(plan.slots, np.int64)
        slots[plan.constant_slot] = self._constants.ctypes.data
        self._slots = slots

    def _results_in_place(self, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The arrays of results, of which some are arguments'."""
        results: list[Any] = [None] * len(self._written)
        for number, shape, dtype, size in self._new:
            results[number] = _empty(shape, dtype) if size < LEAST_BYTES else memory.empty(
                shape, dtype, size)
        for number, source, shape, dtype in self._overwritten:
            x = arguments[source]
            if not (x.flags.writeable and _is_plain(x)):
                x = np.array(x, order="C")
            if x.shape != shape or x.dtype != dtype:
                x = x.reshape(-1).view(dtype).reshape(shape)
            results[number] = x
        return results

    def _large_results(self) -> list[np.ndarray]:
        assert self._large is not None
        return [_empty(shape, dtype) if size < LEAST_BYTES else memory.empty(shape, dtype, size)
                for shape, dtype, size in self._large]

    def call(self, step: HostStep, integers: Sequence[int]) -> tuple[int, list[int]]:
        """What calls a step of the host, as ``HostLinker`` says."""
        places = [*zip(integers[::2], integers[1::2], strict=True)]
        if isinstance(step, CalledStep) and step.native_name is not None:
            words, kept = step.by_pack(places, self._failures)
            self._host_steps += kept
            return self._addresses[step.native_name], [*integers, words]
        return self._addresses[CALL_PYTHON], [self.function(step, places)]

    def function(self, step: HostStep, places: Sequence[tuple[int, int]]) -> int:
        """The address of a step's function."""
        function = step.native(places, self._failures)
        self._host_steps.append(function)
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        return address

    def _keep(self, integers: Sequence[int]) -> int:
        """Where integers are stored, for as long as the program."""
        words = np.array(integers, np.int64)
        self._words[words.ctypes.data] = words
        return words.ctypes.data

    @property
    def is_complete(self) -> bool:
        """Whether all its kernels are compiled."""
        return not self._without_kernels

    def exchange(self, kernels: Mapping[Form, int]) -> None:
        """Puts kernels' addresses in the place of the vector machine's, in running calls too.

        A call's integers are those of the kernel, with the address of the code behind them.
        """
        left = []
        for tape, position, kernel in self._without_kernels:
            if kernel in kernels:
                tape[position] = kernels[kernel]
            else:
                left.append((tape, position, kernel))
        self._without_kernels = left

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        arrays = [*arrays, *(
            self._results_in_place(arrays) if self._overwritten
            else [_empty(shape, dtype) for shape, dtype in self._written] if self._large is None
            else self._large_results())]
        try:
            # One whose call raises, and which may say that it is stopped, does not come back.
            frame = self._frames.pop()
        except IndexError:
            frame = Frame(self._count, self._slots, 0 if self._borrows else self.arena_bytes)
        if self._borrows:
            frame.set_arena(arenas.take(self.arena_bytes))
        self._pack(frame.objects, 0, *map(id, arrays))
        status = self._run(frame.objects_address, self._count, frame.slots_address,
                           self._tape, self._length)
        if status:
            # A strided or misaligned argument is copied.
            arrays = [x if _is_plain(x) else np.array(x, order="C") for x in arrays]
            self._pack(frame.objects, 0, *map(id, arrays))
            status = self._run(frame.objects_address, self._count, frame.slots_address,
                               self._tape, self._length)
            if status:
                raise InternalError(f"argument {status - 1} cannot be read")
        if self._borrows:
            arenas.give_back(frame.arena)
            frame.set_arena(_NO_ARENA)
        if len(self._frames) < _KEPT_FRAMES and self.arena_bytes <= _KEPT_ARENA_BYTES:
            self._frames.append(frame)
        return [arrays[x] if type(x) is int else x for x in self._results]


class Frame:
    """The private state of a running program: temporaries, slots, its arrays' addresses.

    Slots of constants are never written, and all others are set before they are read, so that a
    frame can be reused for one call after another. An arena that is lent is in it for one call.
    """

    __slots__ = ("arena", "objects", "objects_address", "slots_address", "_numbers", "_words")

    def __init__(self, count: int, slots: np.ndarray, arena_bytes: int):
        objects = self._numbers = np.zeros(count, np.int64)
        self.set_arena(_empty(max(arena_bytes, 1), np.uint8))
        self.objects = objects.data.cast("B")
        self.objects_address = objects.ctypes.data
        # Before the slots there is the word that stops the driver.
        self._words = np.concatenate([np.zeros(1, np.int64), slots])
        self.slots_address = self._words.ctypes.data + 8

    def set_arena(self, arena: np.ndarray) -> None:
        self.arena = arena
        self._numbers[-1] = id(arena)


def _is_plain(array: np.ndarray) -> bool:
    return array.flags.c_contiguous and array.flags.aligned


def _reads_arrays(layout: ArrayObject | None = None) -> bool:
    """Whether NumPy's array objects are laid out as the driver reads them.

    That they are is a fact of CPython and NumPy, not a promise: objects of free-threaded Python
    begin with a longer header.
    """
    layout = layout or ArrayObject()
    # The object's own size bounds what is read of it.
    if np.ndarray.__basicsize__ < layout.flags + 4:
        return False
    whole = np.zeros((4, 4))
    for array, plain in ((whole, True), (whole[:, 1:3], False)):
        data = ctypes.c_int64.from_address(id(array) + layout.data).value
        flags = ctypes.c_int32.from_address(id(array) + layout.flags).value
        if data != array.ctypes.data or (flags & PLAIN_FLAGS == PLAIN_FLAGS) != plain:
            return False
    return True


def runner(address: int) -> Callable[..., int]:
    """The driver of the pack as a Python function, which releases the GIL.

    Raises:
      RuntimeError: the driver cannot read the arrays of this interpreter's NumPy.
    """
    if not _reads_arrays():
        raise RuntimeError(
            "native code does not run: it reads NumPy's array objects, which are laid out in "
            "another way in this interpreter")
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, pointer, ctypes.c_int64, pointer, pointer,
                            ctypes.c_int64)
    return kind(address)
