"""An interrupt at any moment of tracing leaves nothing behind: no trace, option, scope or lock."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import config, threads
from maxjax._base.source import scopes
from maxjax._ir.runtime import installed
from maxjax._ir.trace import context
from tests.support.raising import Interrupt, Stop

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)


def body(x):
    with maxjax.named_scope("scope"), maxjax.default_matmul_precision("float32"):
        y = maxjax.vmap(jnp.sin)(x) * x
    y = lax.fori_loop(0, 2, lambda i, y: maxjax.checkpoint(jnp.cos)(y), y)
    return maxjax.jit(jnp.sum)(y)


def program():
    """Traced anew each time."""
    return maxjax.jit(maxjax.grad(lambda x: body(x)))(X)


def state():
    return (context.trace, context.axis_env, context.manual, context.kept_scalars,
            dict(config._overrides.values), scopes.names, scopes.source_line,
            dict(threads.unforked._inside))


def held_locks():
    """The locks that another thread does not get."""
    held = []

    def look():
        for lock in list(threads._locks):
            if lock.acquire(blocking=False):
                lock.release()
            else:
                held.append(lock)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return held


def check(chosen, most):
    expected, clean = np.asarray(program()), state()
    assert clean[0] is installed.runtime
    program()
    with Interrupt(None, chosen) as counted:
        program()
    count = counted.count
    numbers = range(count)
    if most is not None and count > most:
        numbers = sorted(np.random.default_rng(0).choice(count, most, replace=False))
    for number in map(int, numbers):
        with Interrupt(number, chosen) as raiser:
            try:
                program()
            except Stop:
                pass
        if raiser.where is None:        # what was in a cache
            continue
        assert state() == clean, raiser.where
        assert not held_locks(), raiser.where
        np.testing.assert_allclose(np.asarray(program()), expected, rtol=1e-6,
                                   err_msg=raiser.where)
        np.testing.assert_array_equal(jnp.asarray(X) + 1, X + 1, raiser.where)
    assert count > 30


def enters_or_leaves(code):
    return ("/maxjax/_" in code.co_filename or "contextlib" in code.co_filename) \
        and code.co_name in ("__enter__", "__exit__", "leave_scopes", "close_scope", "open_scope")


def is_own(code):
    return "/maxjax/_" in code.co_filename or "contextlib" in code.co_filename


def test_entries_and_exits_of_contexts():
    check(enters_or_leaves, 120)


def test_moments_of_tracing():
    check(is_own, 40)


@pytest.mark.extended
def test_many_moments_of_tracing():
    check(is_own, 3000)


@pytest.mark.extended
def test_all_entries_and_exits():
    check(enters_or_leaves, None)
