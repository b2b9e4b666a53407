"""BLAS uses as many threads as there are processors free."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import threadpoolctl

import maxjax.numpy as jnp
from maxjax._base import blas, threads
from maxjax._base.blas import BlasThreads, blas_threads


def allowed() -> int:
    return max(library["num_threads"] for library in threadpoolctl.threadpool_info()
               if library["user_api"] == "blas")


@pytest.fixture
def four(monkeypatch):
    """A machine with four processors, all free; the clock and what others use are given."""
    machine = {"now": 100.0, "used": 50.0, "load": 0.0}
    monkeypatch.setattr(blas.time, "monotonic", lambda: machine["now"])
    monkeypatch.setattr(blas, "used_by_others", lambda: machine["used"])
    monkeypatch.setattr(blas.os, "getloadavg", lambda: (machine["load"], 0.0, 0.0))
    return BlasThreads(4), machine


@pytest.mark.parametrize("busy, free", [(0.0, 4), (0.4, 4), (1.0, 3), (2.6, 1), (9.0, 1)])
def test_what_others_use_is_left_to_them(four, busy, free):
    blas_, machine = four
    blas_.look()
    machine["now"] += 0.5
    machine["used"] += 0.5 * busy
    blas_.look()
    assert blas_._set == free


def test_the_first_look_goes_by_the_load(four):
    blas_, machine = four
    machine["load"] = 1.2
    blas_.look()
    assert blas_._set == 3


def test_looks_are_rare(four):
    blas_, machine = four
    blas_.look()
    machine["now"] += 0.1
    machine["used"] += 1.0
    blas_.look()
    assert blas_._set == 4


def test_a_compiler_has_a_core(four):
    blas_, machine = four
    blas_.leave_core()
    blas_.leave_core()
    assert blas_._set == 3
    blas_.take_core_back()
    assert blas_._set == 3
    blas_.take_core_back()
    assert blas_._set == 4


def test_a_choice_of_fewer_threads_is_kept():
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        fresh = BlasThreads(4)
        fresh.leave_core()
        assert allowed() == 1
        fresh.take_core_back()
        assert allowed() == 1


@pytest.mark.skipif(threads.cores() == 1 or blas.used_by_others() is None,
                    reason="one processor, or the system does not say what others use")
def test_products_notice_a_busy_process():
    x = jnp.ones((200, 200))
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        end = time.monotonic() + 20
        while blas_threads._set == threads.cores() and time.monotonic() < end:
            (x @ x).block_until_ready()
            time.sleep(0.1)
        assert allowed() < threads.cores()
    finally:
        busy.kill()
        busy.wait()
