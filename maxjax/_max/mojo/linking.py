"""Writes a program's calls as integers: with the addresses of functions, tapes and codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from maxjax._max.host_step import HostStep
from maxjax._max.mojo import scalar_code
from maxjax._max.mojo.abi import TapeCall
from maxjax._max.mojo.bytecode import MACHINE, Code
from maxjax._max.mojo.forms import Form, GroupCode
from maxjax._max.mojo.scalar_code import LoopCode
from maxjax._max.mojo.tape import Step, Tape
from maxjax._primitives.lapack import Routine

Places = Sequence[tuple[int, int]]


class HostLinker(Protocol):
    """What becomes of steps of the host."""

    def call(self, step: HostStep, integers: Sequence[int]) -> tuple[int, list[int]]:
        """The address of a step's function and the integers of its call; ``integers`` are the
        places of operands and results."""
        ...

    def function(self, step: HostStep, places: Places) -> int:
        """The address of a step's own function."""
        ...


class Linker:
    """Writes tapes.

    Args:
      addresses: of functions by their names, and of kernels.
      keep: stores integers for as long as the program, and returns where they are.

    Attributes:
      missing: where the vector machine stands for a kernel: the address of a tape, and which of
        its integers.
    """

    def __init__(self, addresses: Mapping[Any, int], keep: Callable[[list[int]], int],
                 host: HostLinker):
        self._addresses = addresses
        self._keep = keep
        self._host = host
        self._codes: dict[Code, int] = {}       # addresses
        self.missing: list[tuple[int, int, Form]] = []

    def tape(self, tape: Tape) -> tuple[int, int]:
        """Where a tape is, and how many integers it has."""
        flat: list[int] = []
        missing: list[tuple[int, Form]] = []
        for step in tape.steps:
            address, integers = self._call(step)
            if step.kernel is not None and step.kernel not in self._addresses:
                missing.append((len(flat), step.kernel))
            flat += (*TapeCall(address, len(integers)), *integers)
        place = self._keep(flat or [0])
        self.missing += [(place, position, kernel) for position, kernel in missing]
        return place, len(flat)

    def _call(self, step: Step) -> tuple[int, list[int]]:
        addresses = self._addresses
        integers: list[int] = []
        for x in step.integers:
            if isinstance(x, Tape):
                integers += self.tape(x)
            elif isinstance(x, GroupCode):
                integers.append(self._group(x))
            elif isinstance(x, LoopCode):
                integers.append(self._loop(x, step.kernel))
            elif not isinstance(x, HostStep):
                integers.append(x if isinstance(x, Routine) else int(x))
        host = step.integers[-1] if step.integers else None
        if isinstance(host, HostStep):
            return self._host.call(host, integers)
        function: Any = step.function if step.kernel is None else step.kernel
        if step.kernel is not None and step.kernel not in addresses:
            function = step.function or (
                scalar_code.MACHINE if isinstance(host, LoopCode) else MACHINE)
        return addresses[function], integers

    def _group(self, group: GroupCode) -> int:
        """The address of a group's code; 0 if it is not needed."""
        code = group.code if MACHINE in self._addresses else None
        if code is None or not self._addresses.keys() >= code.functions.keys():
            return 0
        place = self._codes.get(code)
        if place is None:
            place = self._codes[code] = self._keep(code.words(self._addresses))
        return place

    def _loop(self, code: LoopCode, kernel: Form | None) -> int:
        """The address of a loop's code; 0 if nothing can run it."""
        if kernel not in self._addresses and not self._addresses.keys() >= code.functions.keys():
            return 0
        return self._keep(code.words(self._addresses, self._keep, self._host.function))
