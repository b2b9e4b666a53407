"""Equations that the host computes in a compiled program: between its pieces, or within one; and
Python functions that a lowering has called there, on the memory of operands and results."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from maxjax._base import dtypes, float_errors
from maxjax._base.errors import InternalError, JaxRuntimeError
from maxjax._base.interrupts import entered_at_once
from maxjax._distributed.native import Word
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._transforms.partition import Piece

# What the driver calls: with the address of the slots and a number, which is returned at the end.
_CALLED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)

_Word = ctypes.c_int64

Place = tuple[int, int]     # slot, byte offset
Kind = tuple[tuple[int, ...], np.dtype]


class HostStep:
    """The equations of a piece by their NumPy rules, a function from NumPy arrays to NumPy arrays.

    Attributes:
      inputs, outputs: the shapes and dtypes that memory has.
      reasons: why the host computes them.
    """

    # The name of a function of the pack that computes the same, if there is one.
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
        errors = float_errors.state()
        try:
            float_errors.ignore()
            return self._computed(values)
        finally:
            float_errors.restore(errors)

    def _computed(self, values: Sequence[Any]) -> list[np.ndarray]:
        run = self._run
        if run is None:
            run = self._run = interpreter(ClosedJaxpr(self._jaxpr))
        results = [np.asarray(x) for x in run(*values)]
        # Compiled code reads memory as these types: nothing else may reach it.
        kinds = [(x.shape, x.dtype) for x in results]
        if kinds != self.outputs:
            raise InternalError(f"a host step computes {kinds}, not {self.outputs}: {self._jaxpr}")
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

        def call(slots: int) -> None:
            # A rule writes to no operand, and callbacks copy them: this is all a user sees.
            for memory, result in zip(writes, self._computed(
                    [memory.at(slots) for memory in reads]), strict=True):
                memory.at(slots)[...] = result
        return native_step(call, failures)


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

        return native_step(
            lambda slots: called(*[memory.at(slots) for memory in arrays]), failures)

    def by_pack(self, places: Sequence[Place], failures: Failures) -> tuple[int, list[Any]]:
        """The address of the words for the pack's function, and what has to live as long."""
        native = self._called.native()
        arrays = self._arrays(places)
        functions = [native_step(call, failures) for call in (
            lambda slots: self._called(*[memory.at(slots) for memory in arrays], native=native),
            lambda slots: native.attend())]
        native.words[[Word.IN_PYTHON, Word.ATTEND]] = [
            ctypes.cast(function, ctypes.c_void_p).value for function in functions]
        return native.words.ctypes.data, [native, *functions]


def native_step(run: Callable[[int], None], failures: Failures) -> Any:
    """A native function that calls ``run`` with the address of the slots.

    It returns its number if ``run`` has come to its end, and only then: whatever else happens, at
    whichever instruction, the native code that called it stops the program (``kernels/host.mojo``).
    """
    @entered_at_once
    def call(slots: int, number: int) -> int:
        try:
            run(slots)
            return number
        except BaseException as error:
            failures.add(slots, error)
        return 0
    return _CALLED(call)


# How Python names the function of a native step that raises an error.
_STEP = f"<function {native_step.__qualname__}.<locals>.call at "


class Failures:
    """The errors of host steps in the calls that are running, which end the tapes that met them."""

    def __init__(self) -> None:
        self._errors: dict[int, BaseException] = {}     # by the addresses of slots

    def add(self, slots: int, error: BaseException) -> None:
        self._errors[slots] = error

    def watched(self, run: Callable[..., int]) -> Callable[..., int]:
        """The driver for programs with steps of the host: it raises what ended the program.

        It runs with NumPy's warnings off. A signal's handler may raise an error before a step's
        first line; Python gives such errors to ``sys.unraisablehook`` alone, which is replaced
        where handlers are called: in the main thread, whose calls lie one within the other.
        """
        def watch(objects: int, count: int, slots: int, tape: int, length: int) -> int:
            self._errors.pop(slots, None)       # of a call that an interrupt ended after its steps
            hook = sys.unraisablehook

            def keep(unraisable: Any) -> None:
                if threading.current_thread() is threading.main_thread() and \
                        _STEP in f"{unraisable.err_msg} {unraisable.object!r}":
                    self.add(slots, unraisable.exc_value)
                else:
                    hook(unraisable)

            is_main = threading.current_thread() is threading.main_thread()
            try:
                if is_main:
                    sys.unraisablehook = keep
                with np.errstate(all="ignore"):
                    status = run(objects, count, slots, tape, length)
            finally:
                if is_main:
                    sys.unraisablehook = hook
            if _Word.from_address(slots - 8).value:        # the driver's stop word
                raise self._taken(slots)
            return status
        return watch

    def _taken(self, slots: int) -> BaseException:
        error = self._errors.pop(slots, None)
        if error is not None:
            return error
        if threading.current_thread() is threading.main_thread():
            return KeyboardInterrupt()      # as a rule it is one that nothing could keep
        return JaxRuntimeError("INTERNAL: a function of Python that a program called has raised an "
                               "error that nothing could catch: Python has printed it")


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
