"""What carries arrays between processes: one interface, behind which MPI or Gloo does the work.

An engine moves bytes and adds numbers; it knows nothing of programs. ``Group`` (``group.py``)
stands above it, and makes sure that all processes are in the same collective.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

Array = np.ndarray


def combined(stacked: Array, function: np.ufunc, result: Array | None = None) -> Array:
    """The values along the first dimension, combined in order; in ``result`` if there is one."""
    dtype = stacked.dtype
    if function in (np.add, np.multiply) and dtype.kind not in "biuc" and dtype.itemsize < 4:
        total = stacked[0].astype(np.float32)
        for value in stacked[1:]:
            total = function(total, value.astype(np.float32)).astype(np.float32, copy=False)
        value = total.astype(dtype, copy=False)
        if result is None:
            return value
        result[...] = value
        return result
    if result is None:
        result = np.empty(stacked.shape[1:], dtype)
    if len(stacked) == 1:
        result[...] = stacked[0]
        return result
    function(stacked[0], stacked[1], out=result)
    for value in stacked[2:]:
        function(result, value, out=result)
    return result


class Unanswered(Exception):
    """A collective did not end.

    Attributes:
      process: the rank, within the communicator, of a process known to be missing; None: unknown.
    """

    def __init__(self, reason: str, process: int | None = None):
        super().__init__(reason)
        self.process = process


class Messages:
    """Memory for what the processes of a group tell one another.

    Attributes:
      sent: (processes, bytes), a message to each.
      received: (processes, bytes), those of all.
      addresses: of both.
    """

    def __init__(self, sent: Array):
        self.sent, self.received = sent, np.empty_like(sent)
        self.addresses = sent.ctypes.data, self.received.ctypes.data


class Communicator(ABC):
    """A group of processes. Operands are contiguous NumPy arrays of the same shape and dtype on
    each; every method is called by all processes of the group. ``result``, if there is one, is
    where to put what comes of it.

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
    def exchange(self, messages: Messages) -> None:
        """Sends and receives small messages; says who is missing where it can."""

    @abstractmethod
    def all_reduce(self, value: Array, tag: int, result: Array | None = None) -> Array:
        """The sum over the processes."""

    @abstractmethod
    def all_gather(self, value: Array, tag: int, result: Array | None = None) -> Array:
        """The values of all processes, stacked along a new first dimension."""

    @abstractmethod
    def all_to_all(self, blocks: Array, tag: int, result: Array | None = None) -> Array:
        """Block i of the result is what process i has as block ``rank``."""

    @abstractmethod
    def reduce_scatter(self, blocks: Array, tag: int, result: Array | None = None) -> Array:
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
