"""Locks, and what a fork does to them: all by which one thread waits for another is made here.

`os.fork` copies a process with all its memory, but of its threads only the one that forks. A lock
that another thread holds is held for ever in the child, and a thread that was waited for is not
there. So

- every lock is one of ``lock()``: in the child all are renewed, but for those that the forking
  thread holds itself (a callback may fork while a program runs), which it goes on to release;
- what else has to change in a child is registered with ``after_fork``;
- threads are waited for by ``Event``, which holds no lock;
- what a child could neither renew nor do without is done ``with unforked``: importing a module,
  loading a library, starting a process, calling BLAS. A fork waits for that, some milliseconds as
  a rule.

Nothing else is waited for before a fork: plans and compiles take seconds, and holding many locks
takes an order among them. Instead, what a lock protects must be usable as a copy at any moment,
half-way through a change too: a change becomes visible by one assignment at its end, or the child
begins it anew, or ``after_fork`` puts it in order. A result that the parent's thread was about to
give is computed again.

`tools/check_layers.py` reports locks that are made elsewhere.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from maxjax._base.interrupts import entered_at_once

_Result = TypeVar("_Result")

_POLL_SECONDS = 0.01
_SHORT_POLL_SECONDS = 0.0005
# A fork goes on after this long, whatever holds it up.
_LONGEST_WAIT_SECONDS = 10.0

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_calls: list[Callable[[], Callable[[], None] | None]] = []


@functools.cache
def cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Process:
    """This process.

    Attributes:
      forks: how many forks it is away from the first process: what belongs to a process is kept
        with this number.
    """

    __slots__ = ("forks",)

    def __init__(self) -> None:
        self.forks = 0


process = _Process()


class _This(threading.local):
    """The running thread.

    Attributes:
      number: as ``threading.get_ident`` gives it, with no call, behind which an interrupt may come.
    """

    def __init__(self) -> None:
        self.number = threading.get_ident()


this = _This()


class _Unforked:
    """A context that many threads may be in, and that other threads' forks wait for.

    It holds no lock: each thread changes an entry of its own, before it looks whether one forks;
    and one that forks says so before it looks for entries.
    """

    def __init__(self) -> None:
        self._inside: dict[int, int] = {}       # how often, by threads
        self._forking: set[int] = set()

    def __enter__(self) -> None:
        thread = this.number
        inside = self._inside.get(thread, 0)
        self._inside[thread] = inside + 1
        if self._forking and not inside and thread not in self._forking:
            try:
                while self._forking:
                    del self._inside[thread]
                    time.sleep(_SHORT_POLL_SECONDS)
                    self._inside[thread] = 1
            except BaseException:       # an interrupt: nobody calls `__exit__`
                self._inside.pop(thread, None)
                raise

    @entered_at_once
    def __exit__(self, *error: object) -> None:
        thread = this.number
        inside = self._inside[thread] - 1
        if inside:
            self._inside[thread] = inside
        else:
            del self._inside[thread]

    def before_fork(self) -> None:
        self._forking.add(this.number)
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        # Not for those that fork too, as they may wait for this one.
        while set(self._inside) - self._forking and time.monotonic() < deadline:
            time.sleep(_SHORT_POLL_SECONDS)

    def after_fork_in_parent(self) -> None:
        self._forking.discard(this.number)

    def after_fork_in_child(self) -> None:
        thread = this.number
        self._forking.clear()
        self._inside = {thread: self._inside[thread]} if thread in self._inside else {}


unforked = _Unforked()


def lock() -> Any:
    """A reentrant lock. Reentrant, as a signal's handler may come amid whatever a lock protects."""
    made = threading.RLock()
    _locks.add(made)
    return made


def condition(of: threading.RLock) -> threading.Condition:
    """A condition on a lock that ``lock`` has made."""
    return threading.Condition(of)


class Event:
    """Something that happens once, and can be waited for.

    Waiting looks again and again: it leaves nothing locked, whenever it is interrupted or forked.
    """

    __slots__ = ("_happened",)

    def __init__(self) -> None:
        self._happened = False

    def set(self) -> None:
        self._happened = True

    def clear(self) -> None:
        self._happened = False

    def is_set(self) -> bool:
        return self._happened

    def wait(self, timeout: float) -> bool:
        """Whether it has happened within so many seconds."""
        deadline = time.monotonic() + timeout
        while not self._happened and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return self._happened


class cached(Generic[_Result]):
    """A method without arguments as an attribute that is computed at its first use.

    Unlike `functools.cached_property`, which has a lock in some releases of Python, two threads
    may compute it; both get the object of the first that is done.
    """

    def __init__(self, compute: Callable[[Any], _Result]):
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached[_Result]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Result: ...

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.compute(instance))


def after_fork(call: Callable[[], None]) -> Callable[[], None]:
    """Registers a function to be called in every forked child, after the locks are renewed.

    Calls come in the order in which they were registered. A method does not keep its object alive.
    """
    _calls[:] = [known for known in _calls if known() is not None]
    _calls.append(weakref.WeakMethod(call) if hasattr(call, "__self__") else lambda: call)
    return call


def _after_fork_in_child() -> None:
    process.forks += 1
    unforked.after_fork_in_child()
    for made in list(_locks):
        if not made._is_owned():
            made._at_fork_reinit()
    for reference in _calls:
        call = reference()
        if call is not None:
            call()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=unforked.before_fork, after_in_child=_after_fork_in_child,
                        after_in_parent=unforked.after_fork_in_parent)
