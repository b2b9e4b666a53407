"""What carries arrays between processes: one interface, behind which MPI or Gloo does the work.

An engine moves bytes and adds numbers; it knows nothing of programs. ``Group`` (``group.py``)
stands above it, and makes sure that all processes are in the same collective.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

Array = np.ndarray


def own_address(other: str) -> str:
    """The address of this machine that a process at another address sees."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((other, 1))       # sends nothing
        return probe.getsockname()[0]


class Unanswered(Exception):
    """A collective did not end.

    Attributes:
      process: the rank, within the communicator, of a process known to be missing; None: unknown.
    """

    def __init__(self, reason: str, process: int | None = None):
        super().__init__(reason)
        self.process = process


class Communicator(ABC):
    """A group of processes. Operands are contiguous NumPy arrays of the same shape and dtype on
    each; every method is called by all processes of the group.

    Attributes:
      rank: this process's number in the group.
      size: how many processes there are.
      summed: the dtypes that ``all_reduce`` adds.
      address: of this process, as the others reach it.
      tagged: collectives with different tags, of 32 bits, never exchange anything: each waits for
        the others until its timeout. Without it tags have no effect.

    All methods raise ``Unanswered`` where other processes do not take part within the timeout.
    """

    tagged = False

    address: str
    rank: int
    size: int
    summed: frozenset[str]

    @abstractmethod
    def exchange(self, message: Array) -> Array:
        """The small messages of all processes, stacked; says who is missing where it can."""

    @abstractmethod
    def all_reduce(self, value: Array, tag: int, result: Array | None = None) -> Array:
        """The sum over the processes, in ``result`` if there is one."""

    @abstractmethod
    def all_gather(self, value: Array, tag: int, result: Array | None = None) -> Array:
        """The values of all processes, stacked along a new first dimension; in ``result`` if there
        is one."""

    @abstractmethod
    def all_to_all(self, blocks: Array, tag: int) -> Array:
        """Block i of the result is what process i has as block ``rank``."""

    @abstractmethod
    def reduce_scatter(self, blocks: Array, tag: int) -> Array:
        """The sum over the processes of block ``rank``."""

    @abstractmethod
    def broadcast(self, value: Array, root: int, tag: int) -> Array:
        """The value of process ``root``."""

    @abstractmethod
    def permute(self, sent: Mapping[int, Array], received: Mapping[int, Array],
                lanes: Sequence[tuple[int, int]], tag: int) -> None:
        """Sends to some processes and fills the arrays that come from some, without a copy for
        those that neither send nor receive.

        Args:
          sent: what goes to each process.
          received: for each process that sends something here, where to put it.
          lanes: all pairs of a process that sends and another that receives, the same everywhere.
        """

    @abstractmethod
    def subgroup(self, members: Sequence[int], name: str) -> Communicator:
        """The group of some of the processes, which alone call this."""

    def reports(self, text: str) -> dict[int, str | None] | None:
        """After a failure, what each process of the job says that it was doing.

        Ends the communication, so that others fail too, wherever they wait.

        Args:
          text: what this process was doing.

        Returns:
          by the processes' numbers in the job a text, None for one that does not answer; without
          those that were not asked. None: nobody can be.
        """
        return None

    @abstractmethod
    def close(self, failed: bool) -> None:
        """Ends the communication; ``failed``: without waiting for the others."""
