"""What a backend is: how the runtime has programs compiled, and finds those that were.

A backend cuts a program into pieces, of which it compiles some; the others run on the host. It
knows nothing of the program's life (calls, heat, which tier runs): it is given a jaxpr and gives
functions of NumPy arrays, one for each compiled piece.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from maxjax._ir.jaxpr import Jaxpr
from maxjax._transforms.partition import Piece

# Runs one compiled piece: its inputs' physical values, its outputs'.
Run = Callable[[Sequence[np.ndarray]], "list[np.ndarray]"]
# The compiled pieces of a program, by their numbers.
Runs = Mapping[int, Run]
# Called once with what was compiled, or with why it could not be.
Done = Callable[["Runs | None", "str | None"], None]
# Called now and then with the seconds waited so far.
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Prepared:
    """A program as a backend compiles it; each backend adds what it needs.

    Attributes:
      pieces: the program's pieces, in order.
      reason: why none of it can be compiled, or None.
    """

    pieces: Sequence[Piece] = ()
    reason: str | None = None

    @property
    def peak_bytes(self) -> int:
        """Memory that a call takes beside its arguments, where the backend knows."""
        return 0

    @property
    def source(self) -> str:
        """What is compiled, as text, where the backend has one to read."""
        return ""


def nothing_compiled(pieces: Sequence[Piece]) -> str | None:
    """Why none of the pieces can be compiled; None if one can."""
    if not all(piece.on_host for piece in pieces):
        return None
    return "; ".join(reason for piece in pieces for reason in piece.reasons) \
        or "there is nothing to compute"


P = TypeVar("P", bound=Prepared)
J = TypeVar("J")        # a program that is being compiled


class Backend(ABC, Generic[P, J]):
    """Compiles programs.

    Attributes:
      name: as `config.backend` and `jax.debug.explain` have it.
      DISPATCH_NANOSECONDS: what a call of a compiled program costs at least: a program that tier 0
        runs in less is never compiled.
    """

    name: str
    DISPATCH_NANOSECONDS: int

    @property
    @abstractmethod
    def directory(self) -> str:
        """Where it keeps what it compiled."""

    @property
    def broken(self) -> str | None:
        """Why nothing can be compiled, where a build has shown that: no compiler is there."""
        return None

    def why_unavailable(self) -> str | None:
        """Why what it has compiled cannot run in this process, or None."""
        return None

    @abstractmethod
    def prepare(self, jaxpr: Jaxpr) -> P:
        """Cuts a program into pieces and plans those that are compiled.

        Args:
          jaxpr: of the program, with its constants as inputs.
        """

    @abstractmethod
    def is_kept(self, prepared: P) -> bool:
        """Whether all that the program needs has been compiled before, by whatever process."""

    @abstractmethod
    def find(self, prepared: P) -> Runs | None:
        """The pieces, loaded, if all that they need has been compiled.

        Raises:
          RuntimeError: what was kept cannot be loaded; it is forgotten.
        """

    @abstractmethod
    def submit(self, prepared: P, priority: float, done: Done) -> J:
        """Has a program compiled in the background; the greatest priority first."""

    @abstractmethod
    def wait(self, job: J, progress: Progress | None) -> None:
        """Returns when the job has ended, well or not; ``done`` was called before."""
