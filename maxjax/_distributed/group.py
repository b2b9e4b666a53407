"""Groups of processes in which everybody is known to do the same.

A collective begins with a short message from each process to each, which says what it is about to
do: so a process that is elsewhere in the program, or runs another one, is an error on all, and
never a wrong sum. The values of small collectives travel in that message. Where an engine keeps
collectives of different tags apart, a greater one has the message once, and later a tag that says
the same: processes that are at different ones meet nobody, and tell one another afterwards.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from maxjax._base import spans
from maxjax._base.errors import JaxRuntimeError
from maxjax._distributed.communicator import (
    Array,
    Communicator,
    Messages,
    Unanswered,
    combined,
)
from maxjax._distributed.mpi import MPICommunicator
from maxjax._distributed.native import (
    DTYPES,
    MESSAGE_BYTES,
    NUMBER_AT,
    TEXT_AT,
    VALUE_AT,
    NativeCollective,
    NativeKind,
    Natives,
    Word,
)

_NOTHING = np.zeros(0, np.uint8)
# Collectives of a group whose messages are kept, and processes of one that keeps memory for them.
_MOST_SAID, _FEW = 256, 16
_REDUCES: dict[np.ufunc, str] = {function: f"all_reduce {function.__name__}"
                                 for function in (np.add, np.maximum, np.minimum)}


class _Said:
    """What a process says of a collective.

    Attributes:
      text: in words.
      message: without its number and its value.
      kind: shape and dtype of a value that travels in the message; None: none does.
      rooms: memory for messages that is not in use.
    """

    def __init__(self, text: str, processes: tuple[int, ...],
                 kind: tuple[tuple[int, ...], np.dtype] | None):
        self.text = text
        self.message = np.zeros(MESSAGE_BYTES, np.uint8)
        self.message[:NUMBER_AT] = np.frombuffer(hashlib.blake2b(
            f"{processes} {text}".encode(), digest_size=NUMBER_AT).digest(), np.uint8)
        shown = np.frombuffer(text.encode()[:VALUE_AT - TEXT_AT], np.uint8)
        self.message[TEXT_AT:TEXT_AT + len(shown)] = shown
        self.kind = kind
        self.rooms: list[_Room] = []


class _Room(Messages):
    """Memory for the messages of one collective.

    Attributes:
      numbers: of the collective, in the messages to all.
      own, compared: what is compared, in the messages to each and in those of all.
      values, stacked: the value in the messages to all, and those in their messages.
    """

    def __init__(self, said: _Said, size: int):
        super().__init__(np.tile(said.message, (size, 1)))
        self.numbers = self.sent[:, NUMBER_AT:TEXT_AT].view(np.int64)
        self.own = self.sent[0, :TEXT_AT]
        self.compared = self.received[:, :TEXT_AT]
        if said.kind is not None:
            shape, dtype = said.kind
            strides = MESSAGE_BYTES, *np.empty(shape, dtype).strides
            self.values, self.stacked = [
                np.ndarray((size, *shape), dtype, messages, VALUE_AT, strides)
                for messages in (self.sent, self.received)]


class Group:
    """Some processes of the job, in the order of their numbers along an axis.

    Attributes:
      processes: their numbers in the job.
      position: this process's position among them.
      calls: how many collectives there were.
      natives: those of them that native code does.
    """

    def __init__(self, engine: Communicator, processes: Sequence[int],
                 on_failure: Callable[[], None]):
        self.processes = tuple(processes)
        self.position = engine.rank
        self._engine = engine
        self._on_failure = on_failure
        # The number of the collective, for native code as well; what does some there.
        self.calls = np.zeros(1, np.int64)
        self.natives = Natives()
        # The collectives that have been compared; what is said of each.
        self._known: set[str] = set()
        self._said: dict[Any, _Said] = {}

    @property
    def size(self) -> int:
        return len(self.processes)

    # --- collectives ---
    # All take these: ``what`` says what a collective is for, and must be the same everywhere;
    # ``result`` is where to put what comes of it; ``native`` is made ready to do it from now on, if
    # it can.
    def all_gather(self, value: Array, what: str, result: Array | None = None,
                   native: NativeCollective | None = None) -> Array:
        """The values of all processes, stacked along a new first dimension.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        value = np.asarray(value, order="C")
        return self._run("all_gather", value, what, lambda stacked: _put(stacked, result),
                         lambda whole, tag: self._engine.all_gather(whole, tag, result),
                         native, NativeKind.GATHER)

    def all_reduce(self, value: Array, function: np.ufunc, what: str, result: Array | None = None,
                   native: NativeCollective | None = None) -> Array:
        """The sum (np.add), maximum (np.maximum) and so on over the processes, elementwise.

        Small values, and all but common sums, are combined in the order of the processes.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        value = np.asarray(value, order="C")

        def combine(stacked: Array) -> Array:
            return combined(stacked, function, result)

        def by_engine(whole: Array, tag: int) -> Array:
            if function is np.add and value.dtype.name in self._engine.summed:
                return self._engine.all_reduce(whole, tag, result)
            return combine(self._engine.all_gather(whole, tag))

        return self._run(
            _REDUCES[function], value, what, combine, by_engine,
            native if function is np.add else None, NativeKind.SUM)

    def reduce_scatter(self, blocks: Array, what: str, result: Array | None = None,
                       native: NativeCollective | None = None) -> Array:
        """The sum over the processes of the block, along the first dimension, of this process's
        position.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        blocks = np.asarray(blocks, order="C")

        def combine(stacked: Array) -> Array:
            return combined(stacked, np.add, result)

        def by_engine(whole: Array, tag: int) -> Array:
            if blocks.dtype.name in self._engine.summed:
                return self._engine.reduce_scatter(whole, tag, result)
            return combine(self._engine.all_to_all(whole, tag))

        return self._run(
            "reduce_scatter", blocks, what,
            lambda stacked: combine(stacked[:, self.position]),
            by_engine, native, NativeKind.SCATTERED_SUM)

    def all_to_all(self, blocks: Array, what: str, result: Array | None = None,
                   native: NativeCollective | None = None) -> Array:
        """Block i of the result is the block of this process's position in process i.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        blocks = np.asarray(blocks, order="C")
        return self._run(
            "all_to_all", blocks, what,
            lambda stacked: _put(stacked[:, self.position], result),
            lambda whole, tag: self._engine.all_to_all(whole, tag, result),
            native, NativeKind.TRANSPOSE)

    def broadcast(self, value: Array, root: int, what: str) -> Array:
        """The value of the process at position ``root``.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        value = np.asarray(value, order="C")
        return self._run(f"broadcast from {root}", value, what,
                         lambda stacked: _put(stacked[root], None),
                         lambda whole, tag: self._engine.broadcast(whole, root, tag))

    def permute(self, sent: Mapping[int, Array], received: Mapping[int, Array],
                lanes: Sequence[tuple[int, int]], what: str,
                native: NativeCollective | None = None) -> None:
        """Sends arrays to some processes, and fills arrays with what comes from some.

        Args:
          sent: by the position of the process that it goes to.
          received: to be filled, by the position of the process that it comes from.
          lanes: all pairs of positions between which something goes.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        collective = f"permutation {sorted(lanes)}"
        self._run(collective, _NOTHING, what, None,
                  lambda _, tag: self._engine.permute(sent, received, lanes, tag))
        if native is not None and max(len(sent), len(received)) == 1:
            moved = next(iter([*sent.values(), *received.values()]))
            said = self._say((collective, _NOTHING.dtype, _NOTHING.shape, what))
            self._prepare(native, NativeKind.PERMUTATION, said, moved,
                          (next(iter(sent), None), next(iter(received), None)))

    def barrier(self, what: str) -> None:
        """Waits for all processes.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        self.all_gather(np.zeros(0, np.uint8), what)

    def subgroup(self, processes: Sequence[int]) -> Group:
        """The group of some of these processes, which alone call this."""
        members = [self.processes.index(process) for process in processes]
        name = "group " + " ".join(map(str, processes))
        try:
            engine = self._engine.subgroup(members, name)
        except Unanswered as error:
            self._fail(f"meeting of processes {list(processes)}", error)
        return Group(engine, processes, self._on_failure)

    # --- what they have in common ---
    def _run(self, collective: str, value: Array, what: str,
             small: Callable[[Array], Array] | None, large: Callable[[Array, int], Any],
             native: NativeCollective | None = None, kind: NativeKind | None = None) -> Any:
        """
        Args:
          small: makes the result of the values of all processes, if these fit into a message.
          large: makes it of this process's value and a tag.
          kind: what ``native`` is.
        """
        self.calls += 1
        key = collective, value.dtype, value.shape, what
        said = self._said.get(key) or self._say(key, small is not None)
        begun = spans.clock() if spans.state.record is not None else 0
        try:
            result = self._met(said, value, small, large)
        except Unanswered as error:
            self._fail(said.text, error)
        if begun:
            spans.add(collective, "collective", begun, what=what, bytes=value.nbytes,
                      processes=list(self.processes))
        if native is not None and kind is not None:
            self._prepare(native, kind, said, value)
        return result

    def _say(self, key: tuple[str, np.dtype, tuple[int, ...], str], small: bool = False) -> _Said:
        collective, dtype, shape, what = key
        if len(self._said) >= _MOST_SAID:
            self._said.clear()
        fits = small and math.prod(shape) * dtype.itemsize <= MESSAGE_BYTES - VALUE_AT
        found = self._said[key] = _Said(
            f"{collective} of {dtype.name}{list(shape)} ({what})", self.processes,
            (shape, dtype) if fits else None)
        return found

    def _met(self, said: _Said, value: Array, small: Callable[[Array], Array] | None,
             large: Callable[[Array, int], Any]) -> Any:
        tag = 0
        fits = said.kind is not None
        if not fits and self._engine.tagged:
            tag = int.from_bytes(hashlib.blake2b(
                f"{self.calls[0]} {self.processes} {said.text}".encode(), digest_size=4
            ).digest(), "little") | 1      # 0 is that of messages
            if said.text in self._known:
                return large(value, tag)
        room = said.rooms.pop() if said.rooms else _Room(said, self.size)
        room.numbers[...] = self.calls
        if fits:
            room.values[...] = value
        self._engine.exchange(room)
        if room.compared.tobytes() != room.own.tobytes() * self.size:
            self._compare(room.received, said.text)
        if fits:
            assert small is not None
            result = small(room.stacked)
        if self.size <= _FEW:
            said.rooms.append(room)
        if fits:
            return result
        if self._engine.tagged:
            self._known.add(said.text)
        return large(value, tag)

    def _prepare(self, native: NativeCollective, kind: NativeKind, said: _Said, value: Array,
                 peers: tuple[int | None, int | None] = (None, None)) -> None:
        """Has native code do a collective from now on, where it can: by MPI, among few processes.

        Args:
          value: what is sent, or like it.
          peers: of a permutation: who it goes to, and who another comes from.
        """
        if (isinstance(self._engine, MPICommunicator) and self._engine.names_missing
                and (not kind.adds or value.dtype.name in DTYPES)):
            native.prepare(self, self._engine, kind, said.text, said.message.copy(), value,
                           kind is not NativeKind.PERMUTATION
                           and value.nbytes <= MESSAGE_BYTES - VALUE_AT, peers)

    def retire(self) -> None:
        """Nothing native goes by this group any more."""
        for native in self.natives:
            native.words[Word.READY] = 0

    def _compare(self, messages: Array, text: str) -> None:
        """Raises JaxRuntimeError where another process is about to do something else."""
        compared = messages[:, :TEXT_AT]
        same = (compared == compared[self.position]).all(1)
        if same.all():
            return
        other = int(same.argmin())
        theirs = bytes(messages[other][TEXT_AT:VALUE_AT]).rstrip(b"\0").decode(
            errors="replace")
        self._engine.reports(self._place(text))
        self._differ(text, other, theirs)

    def _place(self, text: str) -> str:
        return f"collective {self.calls[0]} of processes {list(self.processes)}, {text}"

    def _differ(self, text: str, other: int, theirs: str) -> NoReturn:
        self.retire()
        self._on_failure()
        raise JaxRuntimeError(
            "FAILED_PRECONDITION: the processes do not run the same program: process "
            f"{self.processes[self.position]} is at its collective {self.calls[0]}, {text}, and "
            f"process {self.processes[other]} at {theirs}")

    def _fail(self, text: str, error: Unanswered) -> NoReturn:
        self.retire()
        self._on_failure()
        place = self._place(text)
        reports = self._engine.reports(place)
        missing = [] if error.process is None else [self.processes[error.process]]
        if reports is not None:
            missing = [number for number in self.processes if reports.get(number, "") is None]
            different = next((n for n, number in enumerate(self.processes)
                              if reports.get(number, place) != place), None)
            if not missing and different is not None:
                theirs = str(reports[self.processes[different]])
                # A process that waits in another group may wait for one that is missing there.
                missing = [] if f"of processes {list(self.processes)}" in theirs else [
                    number for number, said in reports.items() if said is None]
                if not missing:
                    self._differ(text, different, theirs)
        if len(missing) == 1:
            others = f"process {missing[0]}"
        else:
            others = "one of the processes " + str(missing or [
                n for n in self.processes if n != self.processes[self.position]])
        raise JaxRuntimeError(
            f"UNAVAILABLE: process {self.processes[self.position]} waited in {text} for {others}, "
            f"which has ended, hangs or is elsewhere in its program: {error}") from error


def _put(value: Array, result: Array | None) -> Array:
    if result is None:
        return np.array(value, order="C")
    result[...] = value
    return result
