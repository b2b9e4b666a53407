"""An interrupt while a thread is started or waited for: who waits next does not wait for ever, and
where there are no more threads programs go on without. What takes long is waited for so that it can
be interrupted."""

from __future__ import annotations

import hashlib
import signal
import threading
import time

import numpy as np
import pytest

from tests.support.raising import Interrupt, Stop
from tests.support.waiting import until

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax._max.mojo import store
from maxjax._max.mojo.store import Job, Queue
from maxjax._primitives import fft
from maxjax._runtime import tiering
from maxjax._runtime.long_calls import LongCalls

SECONDS = 10


def in_time(function):
    """Its result, or an error if it does not come."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert results, "it waits for ever"
    return results[0]


def chosen(code):
    """Not all that `threading` does inside, whose locks make a RuntimeError of what is raised."""
    return (code.co_filename == store.__file__ and code.co_name in ("hasten", "wait", "_thread_for")
            or code is threading.Thread.start.__code__)


def trial(number):
    """A job that is waited for, and again where that was interrupted."""
    queue, done = Queue("a test"), []
    job = Job(lambda pace: done.append(pace), lambda error: None, 0.0)
    with queue._lock:       # as if the queue's own thread had something better to do
        queue._jobs.append(job)
    with Interrupt(number, chosen) as raiser:
        try:
            assert queue.wait(job) is None
        except Stop:
            pass
    assert in_time(lambda: queue.wait(job)) is None, raiser.where
    until(lambda: not queue.unfinished())
    assert len(done) == 1, raiser.where
    return raiser.count


def test_a_build_that_is_waited_for():
    count = min(trial(None), 60)
    assert count > 3
    for number in range(count):
        trial(number)


def test_programs_run_where_there_are_no_more_threads(monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    watch = LongCalls(lambda program, nanoseconds: None)
    monkeypatch.setattr(tiering.tiering, "long_calls", watch)
    program = object()
    watch.begin(program)
    assert watch.end(program) == 0
    x = np.arange(50_000, dtype=np.float32)
    function = maxjax.jit(lambda x: jnp.sin(x).sum() + 1)
    for _ in range(5):
        np.testing.assert_allclose(float(function(x)), np.sin(x).sum() + 1, rtol=1e-3, atol=1e-1)


@pytest.fixture
def long_transforms(monkeypatch):
    """Every transform is a long one, and SciPy's takes at least half a second in one call."""
    def slow(*args, **kwargs):
        hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)
        return real(*args, **kwargs)

    real = fft.scipy_fft.irfft
    monkeypatch.setattr(fft, "_LONG_SIZE", 1)
    monkeypatch.setattr(fft.scipy_fft, "irfft", slow)


def test_a_long_transform_is_interrupted(long_transforms):
    x = np.ones(5, np.complex64)

    def transform(x):
        return np.asarray(jnp.fft.irfft(x, 23))     # a length that no other test has

    before = time.perf_counter()
    np.testing.assert_allclose(transform(x), np.fft.irfft(x, 23), atol=1e-6)
    whole = time.perf_counter() - before

    def interrupt(*_):
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, interrupt)
    try:
        before = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, whole / 20)
        with pytest.raises(KeyboardInterrupt):
            transform(x)
        assert time.perf_counter() - before < whole / 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    np.testing.assert_allclose(transform(x), np.fft.irfft(x, 23), atol=1e-6)


def test_a_long_transform_of_memory_that_is_not_its_own(long_transforms):
    """The thread may outlive the program that the operand belongs to."""
    seen = []
    memory = bytearray(np.ones(5, np.complex64))
    result = fft._apart(lambda x: seen.append(x) or x + 1, np.frombuffer(memory, np.complex64)[1:])
    np.testing.assert_array_equal(result, np.full(4, 2, np.complex64))
    assert seen[0].flags.owndata


def test_an_error_in_a_long_transform_is_raised(long_transforms):
    def fail(x):
        raise MemoryError("no memory")

    with pytest.raises(MemoryError, match="no memory"):
        fft._apart(fail, np.ones(3))
