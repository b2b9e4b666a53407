"""Collectives that native code does by itself: a table of what MPI's functions are called with.

``maxjax/_max/mojo/pack/collectives.mojo`` reads the words, by the same names
(``_max/mojo/abi.py``). It does what ``Group`` does, message for message, so that each process may
do it either way.
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

# A message of a collective: a digest, the number of the collective, a description, and what is left
# for a small value.
MESSAGE_BYTES = 1024
NUMBER_AT, TEXT_AT, VALUE_AT = 16, 24, 256
_FUNCTIONS = ("MPI_Isend", "MPI_Irecv", "MPI_Testall")
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


class Word(enum.IntEnum):
    """The words of a collective, by their positions."""

    READY = 0
    BLOCKED = enum.auto()
    CALLS = enum.auto()
    IN_PYTHON = enum.auto()
    ATTEND = enum.auto()
    EVENT = enum.auto()
    NANOSECONDS = enum.auto()
    COMM = enum.auto()
    BYTE_TYPE = enum.auto()
    ELEMENT_TYPE = enum.auto()
    SUM = enum.auto()
    ISEND = enum.auto()
    IRECV = enum.auto()
    TESTALL = enum.auto()
    START = enum.auto()
    SIZE = enum.auto()
    RANK = enum.auto()
    MESSAGE = enum.auto()
    MESSAGES = enum.auto()
    REQUESTS = enum.auto()
    REQUEST_BYTES = enum.auto()
    STATUSES = enum.auto()
    FLAG = enum.auto()
    NBYTES = enum.auto()
    BLOCK_BYTES = enum.auto()
    COUNT = enum.auto()
    KIND = enum.auto()
    DTYPE = enum.auto()
    IS_SMALL = enum.auto()
    TARGET = enum.auto()
    SOURCE = enum.auto()


class Event(enum.IntEnum):
    """What Python is told."""

    WAITS = 1
    DIFFERS = 2
    FAILS = 3


class NativeKind(enum.IntEnum):
    """What a collective does."""

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
        self.words = np.zeros(len(Word), np.int64)
        self.words[Word.BLOCKED] = _blocked.ctypes.data
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
        words[[Word.MESSAGE, Word.MESSAGES, Word.REQUESTS, Word.STATUSES, Word.FLAG]] = [
            array.ctypes.data for array in self._memory]
        words[Word.REQUEST_BYTES] = MPI._sizeof(MPI.REQUEST_NULL)
        words[Word.CALLS] = group.calls.ctypes.data
        words[Word.COMM] = _handle(comm)
        words[Word.BYTE_TYPE], words[Word.SUM] = _handle(MPI.BYTE), _handle(MPI.SUM)
        if kind.adds:
            words[Word.ELEMENT_TYPE] = _handle(MPI._typedict[value.dtype.char])
            words[Word.DTYPE] = DTYPES.index(value.dtype.name)
        library = ctypes.CDLL(MPI.__file__)
        words[Word.ISEND:Word.TESTALL + 1] = [_address(library, name) for name in _FUNCTIONS]
        if kind in _STARTS:
            words[Word.START] = _address(library, _STARTS[kind])
        words[Word.SIZE], words[Word.RANK] = engine.size, engine.rank
        words[[Word.TARGET, Word.SOURCE]] = [_NOBODY if peer is None else peer for peer in peers]
        # What a block is: of what each process gets a part, it is that part.
        parts = engine.size if kind in (NativeKind.SCATTERED_SUM, NativeKind.TRANSPOSE) else 1
        words[Word.NBYTES], words[Word.BLOCK_BYTES] = value.nbytes, value.nbytes // parts
        words[Word.COUNT] = value.size // parts
        words[Word.KIND], words[Word.IS_SMALL] = kind, is_small
        group.natives.add(self)
        words[Word.READY] = 1

    def attend(self) -> None:
        """Does what native code cannot: other threads and signals have their turn while it waits.

        Raises:
          JaxRuntimeError: another process does something else, or none does within the timeout.
        """
        group, event = self._group, self.words[Word.EVENT]
        assert group is not None
        if event == Event.DIFFERS:
            group._compare(self._messages, self._text)
        elif event == Event.WAITS:
            time.sleep(0)
            if self.words[Word.NANOSECONDS] > self._engine.timeout * 1e9:
                group._fail(self._text, Unanswered(
                    f"no answer within {self._engine.timeout:g} s", self._missing()))
        else:
            group._fail(self._text, Unanswered("MPI has failed"))

    def _missing(self) -> int | None:
        """The rank of a process whose message has not come."""
        numbers = np.ascontiguousarray(self._messages[:, NUMBER_AT:TEXT_AT]).view(np.int64)[:, 0]
        return next(map(int, np.flatnonzero(numbers == 0)), None)


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _handle(value: Any) -> int:
    """A handle as an integer of 64 bits with its bits."""
    handle = MPI._handleof(value)
    return handle - (1 << 64) if handle >= 1 << 63 else handle


Natives = weakref.WeakSet[NativeCollective]
