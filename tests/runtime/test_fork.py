"""Forks of a process whose threads are busy: no child hangs, and all compute correctly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax._base import threads
from maxjax._ir.primitive import op_spec
from maxjax._max.graph import session
from maxjax._runtime.program import Program
from maxjax._runtime.tiering import Tiering
from tests import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def stress(count: int, seed: int, mode: str, seconds: float) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.runtime.forking", str(count), str(seed)], cwd=ROOT,
        capture_output=True, text=True, timeout=seconds, check=False,
        env={**os.environ, "MAXJAX_COMPILE": mode})
    assert run.stdout, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    print(told)
    assert told["children"] == {"well": count}, run.stderr
    assert not told["failures"] and not told["stuck"], (told, run.stderr)
    assert told["compiled_calls"] > count


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.xdist_group("mojo")
def test_children_of_a_busy_process():
    stress(24, 1, "auto", 300)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["auto", "always"])
@pytest.mark.parametrize("seed", range(2, 7))
def test_children_of_a_busy_process_500(mode, seed):
    stress(50, seed, mode, 1200)


@pytest.mark.parametrize("shapes, is_waited_for", [
    (((8, 64), (64, 64)), False), (((40, 40), (40, 40)), False), (((2, 3), (3, 4)), False),
    (((1, 200), (200, 200)), True), (((200, 200), (200,)), True), (((128, 128),) * 2, True),
    (((2, 40, 40), (2, 40, 40)), True)])
def test_forks_wait_for_products_that_may_use_threads(shapes, is_waited_for):
    product = maxjax.make_jaxpr(maxjax.lax.dot_general, static_argnums=2)(
        *[np.ones(shape, np.float32) for shape in shapes],
        (((len(shapes[0]) - 1,), (len(shapes[0]) - 2,)), ((0,), (0,)) if len(shapes[0]) > 2
         else ((), ())))
    equation, = product.eqns
    spec = op_spec(equation.primitive, tuple(x.aval for x in equation.invars), equation.params)
    inside = []

    class Operand(np.ndarray):
        """Notes whether forks wait when it is asked for its memory."""

        def __array_finalize__(self, obj):
            inside.append(bool(threads.unforked._inside))

    operands = [np.ones(shape, np.float32).view(Operand) for shape in shapes]
    inside.clear()
    spec.run(*operands)
    assert set(inside) == {is_waited_for}


# --- the registry ---------------------------------------------------------------------------------

def in_a_child(action, seconds: int = 120) -> bool:
    """Whether an action is true in a forked child."""
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        try:
            os._exit(0 if action() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def hold(lock, until: threading.Event) -> threading.Thread:
    """A thread that holds a lock."""
    held = threading.Event()

    def work() -> None:
        with lock:
            held.set()
            until.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    assert held.wait(60)
    return thread


def test_a_lock_that_another_thread_holds_is_free_in_the_child():
    lock, done = threads.lock(), threading.Event()
    thread = hold(lock, done)
    try:
        assert not lock.acquire(blocking=False)
        assert in_a_child(lambda: lock.acquire(blocking=False))
        assert not lock.acquire(blocking=False)
    finally:
        done.set()
        thread.join()


def test_a_lock_that_the_forking_thread_holds_stays_so():
    lock = threads.lock()

    def release() -> bool:
        lock.release()
        lock.release()
        return lock.acquire(blocking=False)

    with lock, lock:
        assert in_a_child(release)


def test_a_condition_is_new_with_its_lock():
    lock = threads.lock()
    condition = threads.condition(lock)

    def wait() -> None:
        with lock:
            condition.wait(30)

    thread = threading.Thread(target=wait)
    thread.start()

    def wake_oneself() -> bool:
        with lock:
            condition.notify_all()
            return not condition.wait(0.1)

    assert in_a_child(wake_oneself)
    with lock:
        condition.notify_all()
    thread.join()


def test_a_fork_waits_for_what_cannot_be_renewed():
    done = threading.Event()
    thread = hold(threads.unforked, done)
    timer = threading.Timer(0.3, done.set)
    timer.start()
    start = time.monotonic()
    assert in_a_child(lambda: thread.ident not in threads.unforked._inside)
    assert 0.2 < time.monotonic() - start < 20      # the thread holds it for 30 otherwise
    thread.join()
    with threads.unforked:      # by the forking thread itself
        assert in_a_child(lambda: sum(threads.unforked._inside.values()) == 1)
    assert not threads.unforked._inside


def test_a_fork_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(threads, "_LONGEST_WAIT_SECONDS", 0.2)
    done = threading.Event()
    thread = hold(threads.unforked, done)
    try:
        assert in_a_child(lambda: not threads.unforked._inside)
        assert list(threads.unforked._inside) == [thread.ident]
    finally:
        done.set()
        thread.join()


def test_calls_after_a_fork():
    """Only in the child, those of live objects."""
    class Counter:
        calls = 0

        def forked(self) -> None:
            Counter.calls += 1

    kept, dropped = Counter(), Counter()
    for counter in (kept, dropped):
        threads.after_fork(counter.forked)
    del dropped, counter
    before = threads.process.forks
    assert in_a_child(lambda: Counter.calls == 1 and threads.process.forks == before + 1)
    assert Counter.calls == 0 and threads.process.forks == before


def test_a_cached_attribute_is_one_object():
    """Also when threads compute it at the same time."""
    both = threading.Barrier(2)

    class Owner:
        @threads.cached
        def value(self) -> list:
            both.wait(60)
            return []

    owner, found = Owner(), []
    workers = [threading.Thread(target=lambda: found.append(owner.value)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found[0] is found[1] is owner.value


def test_an_event_is_waited_for():
    event = threads.Event()
    assert not event.is_set() and not event.wait(0.02)
    threading.Timer(0.05, event.set).start()
    assert event.wait(60) and event.is_set()


def test_no_thread_is_amid_what_forks_wait_for():
    """Many threads enter and leave, and none is blocked for long."""
    stop, counts = threading.Event(), [0] * 4

    def work(number: int) -> None:
        while not stop.is_set():
            with threads.unforked, threads.unforked:
                counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(counts))]
    for worker in workers:
        worker.start()
    try:
        for _ in range(20):
            assert in_a_child(lambda: not threads.unforked._inside)
        before = list(counts)
        time.sleep(0.3)
        assert all(count > earlier for count, earlier in zip(counts, before, strict=True))
    finally:
        stop.set()
        for worker in workers:
            worker.join()


# --- programs -------------------------------------------------------------------------------------

def program(state: str, backend: str) -> Program:
    made = Program(maxjax.make_jaxpr(jnp.sin)(np.ones(3, np.float32)))
    made.state, made.backend = state, backend
    made.compiled = made.proven = None if state == "queued" else object()
    return made


def test_programs_of_a_child(monkeypatch):
    """Programs in the parent's compiler become hot again; those that need its MAX session are
    interpreted."""
    monkeypatch.setattr(session, "_inherited", True)
    tiering = Tiering()
    queued, mojo, graph = programs = [
        program("queued", "mojo"), program("compiled", "mojo"), program("compiled", "graph")]
    tiering._submitted.update(programs)
    tiering._after_fork_in_child()
    assert queued.state == "cold"
    assert mojo.state == "compiled" and mojo.proven is not None
    assert graph.state == "host" and graph.compiled is graph.proven is None
    assert "forked" in graph.reason
    new = program("cold", "graph")
    assert not tiering.prepare(new) and "forked" in new.reason
