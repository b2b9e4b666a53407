"""Collectives that native code does by itself: a table of what MPI's functions are called with.

``maxjax/_max/mojo/pack/collectives.mojo`` reads the words, whose names are there. It does what
``Group`` does, message for message, so that each process may do it either way.
"""

from __future__ import annotations

import ctypes
import enum
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import spans
from maxjax._base.errors import InternalError
from maxjax._base.lazy import mpi as MPI
from maxjax._distributed.communicator import Unanswered

if TYPE_CHECKING:
    from maxjax._distributed.group import Group
    from maxjax._distributed.mpi import MPICommunicator

# The words by their positions.
(READY, BLOCKED, CALLS, IN_PYTHON, ATTEND, EVENT, NANOSECONDS, COMM, BYTE_TYPE, ELEMENT_TYPE, SUM,
 ISEND, IRECV, TESTALL, START, SIZE, RANK, MESSAGE, MESSAGES, REQUESTS, REQUEST_BYTES, STATUSES,
 FLAG, NBYTES, BLOCK_BYTES, COUNT, KIND, DTYPE, IS_SMALL, TARGET, SOURCE) = range(31)
_FUNCTIONS = ("MPI_Isend", "MPI_Irecv", "MPI_Testall")
_WAITS, _DIFFERS = 1, 2
_NOBODY = -1
# What small values of are added up; the number of each is its position.
DTYPES = ("float32", "float64", "int32", "int64", "uint32", "uint64")
# Not less than that of MPI's statuses, in bytes.
_STATUS_BYTES = 64

# A word that is not 0 while a profile is recorded, in which Python has to be.
_blocked = np.zeros(1, np.int64)


@spans.on_change.append
def _block() -> None:
    _blocked[0] = spans.state.record is not None


class NativeKind(enum.IntEnum):
    """What a collective does; the numbers are those of ``collectives.mojo``."""

    GATHER = 0
    SUM = 1
    SCATTERED_SUM = 2
    TRANSPOSE = 3
    PERMUTATION = 4

    @property
    def adds(self) -> bool:
        return self in (NativeKind.SUM, NativeKind.SCATTERED_SUM)


# What starts each; a permutation sends and receives.
_STARTS = {NativeKind.GATHER: "MPI_Iallgather", NativeKind.SUM: "MPI_Iallreduce",
           NativeKind.SCATTERED_SUM: "MPI_Ireduce_scatter_block",
           NativeKind.TRANSPOSE: "MPI_Ialltoall"}


class NativeCollective:
    """The words of one collective.

    Attributes:
      words: native code may go by them once they are ready.
    """

    def __init__(self) -> None:
        self.words = np.zeros(SOURCE + 1, np.int64)
        self.words[BLOCKED] = _blocked.ctypes.data
        self._memory: list[np.ndarray] = []
        self._group: Group | None = None
        self._text = ""

    def prepare(self, group: Group, engine: MPICommunicator, kind: NativeKind, text: str,
                message: np.ndarray, value: np.ndarray, is_small: bool,
                peers: tuple[int | None, int | None]) -> None:
        """Makes the words ready.

        Args:
          text: what the group says that it does.
          message: its message, without the number of the call.
          value: what is sent, or like it.
          is_small: its messages have the value.
          peers: of a permutation: who it goes to, and who another comes from.
        """
        comm, words = engine.comm, self.words
        count = 2 * engine.size
        self._group, self._text, self._engine = group, text, engine
        self._messages = np.zeros((engine.size, message.size), np.uint8)
        self._requests = np.zeros(count * MPI._sizeof(MPI.REQUEST_NULL), np.uint8)
        self._memory = [message, self._messages, self._requests,
                        np.zeros(count * _STATUS_BYTES, np.uint8), np.zeros(1, np.int64)]
        if MPI._sizeof(MPI.Status) > _STATUS_BYTES:
            raise InternalError(f"a status of MPI has more than {_STATUS_BYTES} bytes")
        words[MESSAGE], words[MESSAGES], words[REQUESTS], words[STATUSES], words[FLAG] = [
            array.ctypes.data for array in self._memory]
        words[REQUEST_BYTES] = MPI._sizeof(MPI.REQUEST_NULL)
        words[CALLS] = group.calls.ctypes.data
        words[COMM] = _handle(comm)
        words[BYTE_TYPE], words[SUM] = _handle(MPI.BYTE), _handle(MPI.SUM)
        if kind.adds:
            words[ELEMENT_TYPE] = _handle(MPI._typedict[value.dtype.char])
            words[DTYPE] = DTYPES.index(value.dtype.name)
        library = ctypes.CDLL(MPI.__file__)
        words[ISEND:TESTALL + 1] = [_address(library, name) for name in _FUNCTIONS]
        if kind in _STARTS:
            words[START] = _address(library, _STARTS[kind])
        words[SIZE], words[RANK] = engine.size, engine.rank
        words[TARGET], words[SOURCE] = [_NOBODY if peer is None else peer for peer in peers]
        # What a block is: of what each process gets a part, it is that part.
        parts = engine.size if kind in (NativeKind.SCATTERED_SUM, NativeKind.TRANSPOSE) else 1
        words[NBYTES], words[BLOCK_BYTES] = value.nbytes, value.nbytes // parts
        words[COUNT] = value.size // parts
        words[KIND], words[IS_SMALL] = kind, is_small
        group.natives.add(self)
        words[READY] = 1

    def attend(self) -> None:
        """Does what native code cannot: other threads and signals have their turn while it waits.

        Raises:
          JaxRuntimeError: another process does something else, or none does within the timeout.
        """
        group, event = self._group, self.words[EVENT]
        assert group is not None
        if event == _DIFFERS:
            group._compare(self._messages, self._text)
        elif event == _WAITS:
            time.sleep(0)
            if self.words[NANOSECONDS] > self._engine.timeout * 1e9:
                group._fail(self._text, Unanswered(
                    f"no answer within {self._engine.timeout:g} s", self._missing()))
        else:
            group._fail(self._text, Unanswered("MPI has failed"))

    def _missing(self) -> int | None:
        """The rank of a process whose message has not come."""
        numbers = np.ascontiguousarray(self._messages[:, 16:24]).view(np.int64)[:, 0]
        return next(map(int, np.flatnonzero(numbers == 0)), None)


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _handle(value: Any) -> int:
    """A handle as an integer of 64 bits with its bits."""
    handle = MPI._handleof(value)
    return handle - (1 << 64) if handle >= 1 << 63 else handle


Natives = weakref.WeakSet[NativeCollective]
