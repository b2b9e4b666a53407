"""Groups of processes in which everybody is known to do the same.

A collective begins with a short message from each process to each, which says what it is about to
do: so a process that is elsewhere in the program, or runs another one, is an error on all, and
never a wrong sum. The values of small collectives travel in that message. Where an engine keeps
collectives of different tags apart, a greater one has the message once, and later a tag that says
the same: processes that are at different ones meet nobody, and tell one another afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from maxjax._base import spans
from maxjax._base.errors import JaxRuntimeError
from maxjax._distributed.communicator import Array, Communicator, Unanswered
from maxjax._distributed.mpi import MPICommunicator
from maxjax._distributed.native import DTYPES, READY, NativeCollective, Natives

# A message: a digest, the number of the collective, a description, and what is left for a small
# value.
_SIZE, _DIGEST, _NUMBER, _TEXT = 1024, 16, 8, 232
_START = _DIGEST + _NUMBER + _TEXT
_NOTHING = np.zeros(0, np.uint8)


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
        # The collectives that have been compared.
        self._known: set[str] = set()

    @property
    def size(self) -> int:
        return len(self.processes)

    # --- collectives: ``what`` says what a collective is for, and must be the same everywhere ---
    def all_gather(self, value: Array, what: str, result: Array | None = None) -> Array:
        """The values of all processes, stacked along a new first dimension.

        Args:
          result: where to put it.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        value = np.asarray(value, order="C")
        return self._run("all_gather", value, what, lambda stacked: _put(stacked, result),
                         lambda whole, tag: self._engine.all_gather(whole, tag, result))

    def all_reduce(self, value: Array, function: np.ufunc, what: str,
                   result: Array | None = None) -> Array:
        """The sum (np.add), maximum (np.maximum) and so on over the processes, elementwise.

        Small values, and all but common sums, are combined in the order of the processes.

        Args:
          result: where to put it.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        value = np.asarray(value, order="C")

        def combine(stacked: Array) -> Array:
            return _put(combined(stacked, function), result)

        native = function is np.add and value.dtype.name in self._engine.summed
        return self._run(f"all_reduce {function.__name__}", value, what, combine,
                         (lambda whole, tag: self._engine.all_reduce(whole, tag, result)) if native
                         else lambda whole, tag: combine(self._engine.all_gather(whole, tag)))

    def reduce_scatter(self, blocks: Array, what: str) -> Array:
        """The sum over the processes of the block, along the first dimension, of this process's
        position.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        blocks = np.asarray(blocks, order="C")

        def combine(stacked: Array) -> Array:
            return combined(np.ascontiguousarray(stacked[:, self.position]), np.add)

        native = blocks.dtype.name in self._engine.summed
        return self._run("reduce_scatter", blocks, what, combine,
                         self._engine.reduce_scatter if native
                         else lambda whole, tag: combined(
                             self._engine.all_to_all(whole, tag), np.add))

    def all_to_all(self, blocks: Array, what: str) -> Array:
        """Block i of the result is the block of this process's position in process i.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        blocks = np.asarray(blocks, order="C")
        return self._run("all_to_all", blocks, what,
                         lambda stacked: np.ascontiguousarray(stacked[:, self.position]),
                         self._engine.all_to_all)

    def broadcast(self, value: Array, root: int, what: str) -> Array:
        """The value of the process at position ``root``.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        value = np.asarray(value, order="C")
        return self._run(f"broadcast from {root}", value, what, lambda stacked: stacked[root],
                         lambda whole, tag: self._engine.broadcast(whole, root, tag))

    def permute(self, sent: Mapping[int, Array], received: Mapping[int, Array],
                lanes: Sequence[tuple[int, int]], what: str) -> None:
        """Sends arrays to some processes, and fills arrays with what comes from some.

        Args:
          sent: by the position of the process that it goes to.
          received: to be filled, by the position of the process that it comes from.
          lanes: all pairs of positions between which something goes.

        Raises:
          JaxRuntimeError: another process is missing, or does something else.
        """
        self._run(f"permutation {sorted(lanes)}", _NOTHING, what, None,
                  lambda _, tag: self._engine.permute(sent, received, lanes, tag))

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
             small: Callable[[Array], Array] | None, large: Callable[[Array, int], Any]) -> Any:
        """
        Args:
          small: makes the result of the values of all processes, if these fit into a message.
          large: makes it of this process's value and a tag.
        """
        self.calls += 1
        text = _text(collective, value, what)
        begun = spans.clock() if spans.state.record is not None else 0
        result = self._met(text, value, small, large)
        if begun:
            spans.add(collective, "collective", begun, what=what, bytes=value.nbytes,
                      processes=list(self.processes))
        return result

    def _met(self, text: str, value: Array, small: Callable[[Array], Array] | None,
             large: Callable[[Array, int], Any]) -> Any:
        fits = small is not None and value.nbytes <= _SIZE - _START
        tag = 0
        if not fits and self._engine.tagged:
            tag = int.from_bytes(hashlib.blake2b(
                f"{self.calls[0]} {self.processes} {text}".encode(), digest_size=4
            ).digest(), "little") | 1      # 0 is that of messages
        try:
            if not fits and text in self._known:
                return large(value, tag)
            message = self._message(text)
            message[_DIGEST:_DIGEST + _NUMBER] = self.calls.view(np.uint8)
            if fits:
                message[_START:_START + value.nbytes] = value.reshape(-1).view(np.uint8)
            messages = self._engine.exchange(message)
            self._compare(messages, text)
            if not fits:
                if self._engine.tagged:
                    self._known.add(text)
                return large(value, tag)
        except Unanswered as error:
            self._fail(text, error)
        assert small is not None
        stacked = np.ascontiguousarray(messages[:, _START:_START + value.nbytes])
        return small(stacked.view(value.dtype).reshape(self.size, *value.shape)
                     if value.nbytes else np.zeros((self.size, *value.shape), value.dtype))

    def _message(self, text: str) -> Array:
        """A message without its number and its value."""
        message = np.zeros(_SIZE, np.uint8)
        message[:_DIGEST] = np.frombuffer(hashlib.blake2b(
            f"{self.processes} {text}".encode(), digest_size=_DIGEST).digest(), np.uint8)
        shown = np.frombuffer(text.encode()[:_TEXT], np.uint8)
        message[_DIGEST + _NUMBER:_DIGEST + _NUMBER + len(shown)] = shown
        return message

    def prepare(self, native: NativeCollective, value: Array, function: np.ufunc | None,
                what: str) -> None:
        """Has native code do an ``all_reduce``, or an ``all_gather`` (None), from now on, where it
        can: by MPI, among few processes."""
        collective = "all_gather" if function is None else f"all_reduce {function.__name__}"
        if (isinstance(self._engine, MPICommunicator) and self._engine.names_missing
                and (function is None or function is np.add and value.dtype.name in DTYPES)):
            text = _text(collective, value, what)
            native.prepare(self, self._engine, text, self._message(text), value,
                           function is not None, value.nbytes <= _SIZE - _START)

    def retire(self) -> None:
        """Nothing native goes by this group any more."""
        for native in self.natives:
            native.words[READY] = 0

    def _compare(self, messages: Array, text: str) -> None:
        """Raises JaxRuntimeError where another process is about to do something else."""
        compared = messages[:, :_DIGEST + _NUMBER]
        same = (compared == compared[self.position]).all(1)
        if same.all():
            return
        other = int(same.argmin())
        theirs = bytes(messages[other][_DIGEST + _NUMBER:_START]).rstrip(b"\0").decode(
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


def _text(collective: str, value: Array, what: str) -> str:
    return f"{collective} of {value.dtype.name}{list(value.shape)} ({what})"


def _put(value: Array, result: Array | None) -> Array:
    if result is None:
        return value
    result[...] = value
    return result


def combined(stacked: Array, function: np.ufunc) -> Array:
    """The values along the first dimension, combined in order."""
    dtype = stacked.dtype
    narrow = function in (np.add, np.multiply) and dtype.kind not in "biuc" and dtype.itemsize < 4
    total = stacked[0].astype(np.float32) if narrow else stacked[0].copy()
    for value in stacked[1:]:
        total = function(total, value.astype(np.float32) if narrow else value).astype(
            total.dtype, copy=False)
    return total.astype(dtype, copy=False)
