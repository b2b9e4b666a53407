"""The interface of a backend: compiling programs, and finding those compiled before.

A backend cuts a program into pieces, of which it compiles some; the others run on the host. It
knows nothing about the program's life (calls, heat, which tier runs): it takes a jaxpr and returns
functions of NumPy arrays, one for each compiled piece.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from maxjax._ir.jaxpr import Jaxpr
from maxjax._transforms.partition import Piece

# Runs one compiled piece: physical values of its inputs to those of its outputs.
Run = Callable[[Sequence[np.ndarray]], "list[np.ndarray]"]
# The compiled pieces of a program, by their numbers.
Runs = Mapping[int, Run]
# Called once with the compiled pieces, or with the reason why there are none.
Done = Callable[["Runs | None", "str | None"], None]
# Called now and then with the seconds waited so far.
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Prepared:
    """A program prepared for compilation; each backend adds what it needs.

    Attributes:
      pieces: the program's pieces, in order.
      reason: why none of it can be compiled, or None.
      failed: whether that is an error of planning, not what the program is.
    """

    pieces: Sequence[Piece] = ()
    reason: str | None = None
    failed: bool = field(default=False, kw_only=True)

    def reasons(self, number: int) -> list[str]:
        """Why the host computes a piece, or something in the loops of a compiled one."""
        return self.pieces[number].reasons

    @property
    def peak_bytes(self) -> int:
        """Memory that a call takes besides its arguments, if the backend knows."""
        return 0

    @property
    def uncompiled_source(self) -> str:
        """What runs before anything is compiled, as text; "" if nothing does."""
        return ""

    @property
    def source(self) -> str:
        """The compiled code as readable text, if the backend has one."""
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
      name: as in `config.backend` and `jax.debug.explain`.
      DISPATCH_NANOSECONDS: the least cost of a call of a compiled program: a program that tier 0
        runs in less is never compiled.
    """

    name: str
    DISPATCH_NANOSECONDS: int

    @property
    @abstractmethod
    def directory(self) -> str:
        """Where it stores what it compiled."""

    @property
    def broken(self) -> str | None:
        """Why nothing can be compiled, once a build has shown that there is no compiler."""
        return None

    @property
    def lacks_place(self) -> bool:
        """Whether a build has found no place where it stores what it compiled."""
        return False

    def why_unavailable(self) -> str | None:
        """Why what it has compiled cannot run in this process, or None."""
        return None

    @abstractmethod
    def prepare(self, jaxpr: Jaxpr, donated: tuple[int, ...] = ()) -> P:
        """Cuts a program into pieces and plans those that are compiled.

        Args:
          jaxpr: the program, with its constants as inputs.
          donated: inputs that a piece may overwrite, where their value is not read-only.
        """

    @abstractmethod
    def is_kept(self, prepared: P) -> bool:
        """Whether everything the program needs has been compiled before, by any process."""

    @abstractmethod
    def find(self, prepared: P) -> Runs | None:
        """The loaded pieces, if everything they need has been compiled.

        Raises:
          RuntimeError: a stored artifact cannot be loaded; it is forgotten.
        """

    def find_uncompiled(self, prepared: P) -> Runs | None:
        """The pieces as they can run before anything of them is compiled, if they can."""
        return None

    def can_run_uncompiled(self, prepared: P) -> bool:
        """Whether the pieces can run so once the kernel pack is there."""
        return False

    def charge(self, prepared: P, nanoseconds: float) -> float:
        """Records how long a program ran uncompiled.

        Returns:
          what that of it which is not compiled has cost so far, in any program.
        """
        return 0.0

    def compile_cost(self, prepared: P) -> float:
        """What it takes to compile what is missing, in the Mojo backend's time for one kernel."""
        return 8.0

    @abstractmethod
    def submit(self, prepared: P, priority: float, done: Done) -> J:
        """Compiles a program in the background; the highest priority first."""

    @abstractmethod
    def wait(self, job: J, progress: Progress | None) -> None:
        """Returns when the job has ended, successfully or not; ``done`` was called before."""
