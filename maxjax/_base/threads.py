"""Locks, and what a fork makes of them: all that lets a thread wait for another is made here.

`os.fork` copies a process with all its memory, but of its threads only the one that forks. A lock
that another thread holds is held for ever in the child, and a thread that was waited for is not
there. So

- every lock is one of ``lock()``: in the child all are renewed, but for those that the forking
  thread holds itself (a callback may fork while a program runs), which it goes on to release;
- what else has to change in a child is said to ``after_fork``;
- threads are waited for by ``Event``, which holds no lock;
- what a child could neither renew nor do without is done ``with unforked``: importing a module,
  loading a library, starting a process. A fork waits for that, some milliseconds as a rule.

Nothing else is waited for before a fork: plans and compiles take seconds, and holding many locks
takes an order among them. Instead, what a lock protects must be usable as a copy at any moment,
half-way through a change too: a change becomes visible by one assignment at its end, or the child
begins it anew, or ``after_fork`` puts it in order. A result that the parent's thread was about to
give is computed again.

`tools/check_layers.py` reports locks that are made elsewhere.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Result = TypeVar("_Result")

_POLL_SECONDS = 0.01
# A fork goes on after this long: whatever holds it up, it is not to be for ever.
_LONGEST_WAIT_SECONDS = 10.0

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_calls: list[Callable[[], Callable[[], None] | None]] = []

# How many forks this process is away from the first: what belongs to a process is kept with this.
forks = [0]

unforked = threading.RLock()
_waited: dict[int, bool] = {}     # whether `unforked` was got, by threads that are forking


def lock() -> Any:
    """A reentrant lock. Reentrant, as a signal's handler may come amid whatever a lock protects."""
    made = threading.RLock()
    _locks.add(made)
    return made


def condition(of: Any) -> threading.Condition:
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

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.compute(instance))


def after_fork(call: Callable[[], None]) -> Callable[[], None]:
    """Has a function called in every forked child, after the locks are new.

    Calls come in the order in which they were registered. Of a method the object is not kept.
    """
    _calls[:] = [known for known in _calls if known() is not None]
    _calls.append(weakref.WeakMethod(call) if hasattr(call, "__self__") else lambda: call)
    return call


def _before_fork() -> None:
    _waited[threading.get_ident()] = unforked.acquire(timeout=_LONGEST_WAIT_SECONDS)


def _after_fork_in_parent() -> None:
    if _waited.pop(threading.get_ident()):
        unforked.release()


def _after_fork_in_child() -> None:
    forks[0] += 1
    _after_fork_in_parent()
    _waited.clear()
    for held in (unforked, *_locks):
        if not held._is_owned():  # type: ignore[attr-defined]
            held._at_fork_reinit()
    for reference in _calls:
        call = reference()
        if call is not None:
            call()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent,
                        after_in_child=_after_fork_in_child)
