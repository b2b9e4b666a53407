"""Equations that the host computes in a compiled program: between its pieces, or within one; and
Python functions that a lowering has called there, on the memory of operands and results."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from maxjax._base import dtypes
from maxjax._distributed.native import ATTEND, DONE, IN_PYTHON
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._transforms.partition import Piece

# What the driver calls: the address of the slots and of the call's integers.
_CALLED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

_Word = ctypes.c_int64

Place = tuple[int, int]     # slot, byte offset
Kind = tuple[tuple[int, ...], np.dtype]


class HostStep:
    """The equations of a piece by their NumPy rules, a function from NumPy arrays to NumPy arrays.

    Attributes:
      inputs, outputs: the shapes and dtypes that memory has.
      reasons: why the host computes them.
    """

    # Of the pack's function that is called instead.
    native_name: str | None = None

    def __init__(self, piece: Piece):
        jaxpr = piece.jaxpr
        self._jaxpr = jaxpr
        self._run: Callable[..., list[Any]] | None = None     # made for the first call
        self.reasons = piece.reasons
        self.inputs, self.outputs = (
            [(var.aval.shape, dtypes.physical(var.aval.dtype)) for var in variables]
            for variables in (jaxpr.invars, jaxpr.outvars))

    def __call__(self, values: Sequence[Any]) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return self._computed(values)

    def _computed(self, values: Sequence[Any]) -> list[np.ndarray]:
        run = self._run
        if run is None:
            run = self._run = interpreter(ClosedJaxpr(self._jaxpr))
        results = [np.asarray(x) for x in run(*values)]
        # Compiled code reads memory as these types: nothing else may reach it.
        assert [(x.shape, x.dtype) for x in results] == self.outputs, \
            f"a host step of {self._jaxpr}"
        return results

    def _arrays(self, places: Sequence[Place]) -> list[_Memory]:
        return [_Memory(place, *kind) for place, kind in zip(
            places, (*self.inputs, *self.outputs), strict=True)]

    def __str__(self) -> str:
        return "; ".join(self.reasons)

    def native(self, places: Sequence[Place], failures: Failures) -> Any:
        """A native function that runs it within a tape, which runs with NumPy's warnings off: to
        switch them off takes as long as a small step.

        Args:
          places: of the operands, then of the results.
        """
        arrays = self._arrays(places)
        reads, writes = arrays[:len(self.inputs)], arrays[len(self.inputs):]

        def call(slots: int, _: int) -> None:
            try:
                # A rule writes to no operand, and callbacks copy them: this is all a user sees.
                for memory, result in zip(writes, self._computed(
                        [memory.at(slots) for memory in reads]), strict=True):
                    memory.at(slots)[...] = result
            except BaseException as error:
                failures.add(slots, error)
        return _CALLED(call)


class Called(Protocol):
    """What a lowering has called on the host: a function that writes to arrays of results.

    Attributes:
      native_name: of the pack's function that is called instead; None: none is.
    """

    native_name: str | None

    def __call__(self, *arrays: np.ndarray, native: Any = None) -> None:
        """Computes.

        Args:
          arrays: of operands, then of results.
          native: of ``native``; it may be made ready, so that the next call is not here.
        """
        ...

    def native(self) -> Any:
        """For one place where the pack's function is called: an object with ``words``, an array of
        int64 whose address it is given after the operands' and results' places, and ``attend``, a
        function of Python. The positions of both functions' addresses are those of
        ``maxjax._distributed.native``."""
        ...


class CalledStep(HostStep):
    """A step of the host that is a ``Called``."""

    def __init__(self, called: Called, inputs: Sequence[Kind], outputs: Sequence[Kind],
                 reason: str):
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.reasons = [reason]
        self._called = called
        self.native_name = called.native_name

    def __call__(self, values: Sequence[Any]) -> list[np.ndarray]:
        results = [np.empty(*kind) for kind in self.outputs]
        self._called(*values, *results)
        return results

    def native(self, places: Sequence[Place], failures: Failures) -> Any:
        arrays, called = self._arrays(places), self._called

        def call(slots: int, _: int) -> None:
            try:
                called(*[memory.at(slots) for memory in arrays])
            except BaseException as error:
                failures.add(slots, error)
        return _CALLED(call)

    def by_pack(self, places: Sequence[Place], failures: Failures) -> tuple[int, list[Any]]:
        """The address of the words for the pack's function, and what has to live as long."""
        native = self._called.native()
        arrays = self._arrays(places)

        def in_python(slots: int, _: int) -> None:
            try:
                self._called(*[memory.at(slots) for memory in arrays], native=native)
            except BaseException as error:
                failures.add(slots, error)
            native.words[DONE] = 1

        def attend(slots: int, _: int) -> None:
            # An interrupt may come before the first line: then nothing says that this is done.
            try:
                native.attend()
            except BaseException as error:
                failures.add(slots, error)
            native.words[DONE] = 1

        functions = [_CALLED(in_python), _CALLED(attend)]
        native.words[[IN_PYTHON, ATTEND]] = [
            ctypes.cast(function, ctypes.c_void_p).value for function in functions]
        return native.words.ctypes.data, [native, *functions]


class Failures:
    """The errors of host steps in the calls that are running, which end the tapes that met them."""

    def __init__(self) -> None:
        self._errors: dict[int, BaseException] = {}     # by the addresses of slots

    def add(self, slots: int, error: BaseException) -> None:
        self._errors[slots] = error
        _Word.from_address(slots - 8).value = 1        # the driver's stop word

    def take(self, slots: int) -> BaseException | None:
        """The error that ended the call with these slots, if one did."""
        error = self._errors.pop(slots, None)
        if error is None and _Word.from_address(slots - 8).value:
            return KeyboardInterrupt()      # it was raised where nothing could keep it
        return error


class _Memory:
    """The memory at a place, as an array, which must not outlive the call."""

    # Loops read and write the same few addresses again and again.
    KEPT = 8

    def __init__(self, place: Place, shape: tuple[int, ...], dtype: np.dtype):
        slot, self._offset = place
        self._slot = 8 * slot
        self._kind = shape, dtype
        self._bytes = ctypes.c_char * (math.prod(shape) * dtype.itemsize)
        self._known: dict[int, np.ndarray] = {}

    def at(self, slots: int) -> np.ndarray:
        address = _Word.from_address(slots + self._slot).value
        known = self._known.get(address)
        if known is None:
            data: Any = self._bytes.from_address(address + self._offset)
            known = np.ndarray(*self._kind, data)
            if len(self._known) >= self.KEPT:
                self._known = {}
            self._known[address] = known
        return known
