"""Forks a process repeatedly while its threads are busy, each with code that uses locks.

Every child computes the same as its parent's threads, and more, and must end by itself in time.
Prints the outcome as JSON; runs in a separate process, without JAX, which does not support forks.

    python -m tests.runtime.forking COUNT SEED
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable

import numpy as np

import maxjax as jax
import maxjax.numpy as jnp
from maxjax._max.mojo import toolchain

CHILD_SECONDS = 90
COMPILE_SECONDS = 300       # the compiler has a low priority, and the threads are busy
WRONG = 3

X = np.linspace(0.1, 2.0, 400_000, dtype=np.float32).reshape(400, 1000)
A = np.eye(6, dtype=np.float32) + 0.1


def hot(x):
    """Compiled ahead of time; large enough for the crew, with memory allocated by kernels."""
    return jnp.sort(jnp.cumsum(jnp.sin(x) * jnp.cos(x), 1), 1)[:, ::50]


def chain(number: int) -> Callable:
    """A function with its own kernels for every number."""
    def function(x):
        for bit in range(8):
            x = jnp.sin(x) + 1 if number >> bit & 1 else jnp.cos(x) * 2
        return x
    return function


def in_numpy(number: int, x: np.ndarray) -> np.ndarray:
    for bit in range(8):
        x = np.sin(x) + np.float32(1) if number >> bit & 1 else np.cos(x) * np.float32(2)
    return x


EXPECTED_HOT = np.sort(np.cumsum(np.sin(X) * np.cos(X), 1), 1)[:, ::50]
# How often each thread has done its work.
done: dict[str, int] = {}
failures: list[str] = []
stopping = threading.Event()
hot_jitted = jax.jit(hot)
calls = iter(range(1 << 30))


def close(actual, expected) -> None:
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-4, atol=2e-4)


def compiled() -> None:
    close(hot_jitted(X), EXPECTED_HOT)


def eager() -> None:
    y = jnp.linspace(0, 1, 2000) + next(calls)
    assert (jnp.sort(jnp.sin(y)) <= 1).all()
    close(jnp.linalg.solve(A, A), np.eye(6))


def large_eager() -> None:
    x = jnp.asarray(X)
    assert float((jnp.tanh(x) @ x.T).max()) > 0


def plans() -> None:
    """New programs, too cheap to be compiled but expensive enough to be looked up."""
    number = next(calls)

    def program(x):
        for step in range(40):
            x = jnp.sin(x) * (step + number % 7) + jnp.cumsum(x, 1)
        return x
    jax.jit(program)(X[:, :4 + number % 5]).block_until_ready()


def compiles() -> None:
    number = next(calls)
    x = X[:2, :50]
    close(jax.jit(chain(number)).lower(x).compile()(x), in_numpy(number, x))


def draws() -> None:
    low, high = jnp.float32(0), jnp.float32(1)
    numbers = jax.lax.rng_uniform(low, high, (100_000,))
    assert 0 <= float(numbers.min()) and float(numbers.max()) < 1
    jax.random.normal(jax.random.key(next(calls)), (5000,)).block_until_ready()


def options() -> None:
    with jax.enable_x64(True), jax.debug_nans(True):
        assert jnp.arange(next(calls) % 50 + 1.0).sum().dtype == np.float64


BUSY = (compiled, eager, large_eager, plans, compiles, draws, options)


def busy(work: Callable[[], None]) -> None:
    try:
        while not stopping.is_set():
            work()
            time.sleep(0.005)       # lets a low-priority compiler make progress
            done[work.__name__] = done.get(work.__name__, 0) + 1
    except BaseException:
        failures.append(traceback.format_exc())


def compiles_too(number: int) -> bool:
    return number % 50 == 49


def check(number: int) -> None:
    """The child's work, in an order given by the number: any part may hang."""
    def new_jit() -> None:
        close(jax.jit(chain(0))(X[:2, :50]), in_numpy(0, X[:2, :50]))
        gradient = jax.jit(jax.grad(lambda x: (jnp.sin(x) * 3).sum()))(X[0])
        close(gradient, np.cos(X[0]) * 3)

    def random_numbers() -> None:
        assert np.array_equal(jax.random.normal(jax.random.key(7), (4,)), NORMAL)
        assert 0 <= float(jax.lax.rng_uniform(jnp.float32(0), jnp.float32(1), ())) < 1

    def special() -> None:
        close(jax.scipy.special.gammaln(jnp.float32(5)), np.log(np.float32(24)))
        assert jnp.einsum("ij,jk,kl->il", A, A, A).shape == (6, 6)

    parts = [compiled, eager, large_eager, options, new_jit, random_numbers, special]
    parts = parts[number % len(parts):] + parts[:number % len(parts)]
    if compiles_too(number):
        parts.append(compiles)
    for part in parts:
        part()


def child(number: int) -> None:
    """Ends the process."""
    faulthandler.dump_traceback_later(
        COMPILE_SECONDS if compiles_too(number) else CHILD_SECONDS, exit=True)
    try:
        check(number)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(WRONG)
    faulthandler.cancel_dump_traceback_later()


def fork(number: int) -> int:
    """The child's exit status: every second child exits normally, with all exit handlers."""
    pid = os.fork()
    if pid == 0:
        child(number)
        if number % 2:
            os._exit(0)
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork_in_a_callback(number: int) -> int:
    """A program is running at the same time, on the thread that forks."""
    status = []

    def call(x):
        pid = os.fork()
        if pid == 0:
            child(number)
            os._exit(0)
        status.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        return x

    jax.pure_callback(call, jax.ShapeDtypeStruct((), np.float32),
                      jnp.float32(1) + number).block_until_ready()
    return status[0]


def multiprocess(number: int) -> int:
    process = multiprocessing.get_context("fork").Process(target=child, args=(number,))
    process.start()
    process.join()
    return process.exitcode


def run_program(number: int) -> int:
    """By `vfork`, and by a fork that calls Python."""
    hook = os.getpid if number % 2 else None
    return subprocess.run(["true"], preexec_fn=hook, timeout=CHILD_SECONDS, check=False).returncode


KINDS = (fork, fork, multiprocess, fork_in_a_callback, fork, run_program)


def main(count: int, seed: int) -> None:
    global NORMAL
    warnings.simplefilter("ignore", DeprecationWarning)     # newer Pythons warn of forks
    NORMAL = np.asarray(jax.random.normal(jax.random.key(7), (4,)))
    hot_jitted.lower(X).compile()
    for _ in range(10):
        compiled()
    check(0)        # now everything that children need is compiled
    threads = [threading.Thread(target=busy, args=(work,), daemon=True) for work in BUSY]
    for thread in threads:
        thread.start()
    while len(done) < len(BUSY) - 2 and not failures:      # those that compile take seconds
        time.sleep(0.05)
    moments = random.Random(seed)
    statuses: dict[str, int] = {}
    worst = 0.0
    for number in range(count):
        time.sleep(moments.random() * 0.01)
        kind = KINDS[number % len(KINDS)]
        start = time.monotonic()
        status = kind(number)
        worst = max(worst, time.monotonic() - start)
        name = "well" if status == 0 else "wrong" if status == WRONG else f"hung ({status})"
        statuses[name] = statuses.get(name, 0) + 1
    stopping.set()
    deadline = time.monotonic() + CHILD_SECONDS
    stuck = [work.__name__ for work in BUSY]
    while stuck and time.monotonic() < deadline:
        time.sleep(0.05)
        # Waiting for a running compiler does not count as stuck.
        stuck = [work.__name__ for work, thread in zip(BUSY, threads, strict=True)
                 if thread.is_alive() and not (work is compiles and toolchain._running)]
    if stuck:
        faulthandler.dump_traceback()
    statistics = jax.debug.statistics(hot_jitted)
    print(json.dumps({
        "children": statuses, "slowest": round(worst, 2), "failures": failures, "stuck": stuck,
        "done": done, "compiled_calls": statistics.compiled_calls}))
    sys.stdout.flush()
    os._exit(0)     # however stuck threads are


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
