"""Shared by all tests: real JAX on the CPU, no compiling unless a test asks, fixed examples."""

from __future__ import annotations

import gc
import os
import signal

from tests.support import quick_jax

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MAXJAX_COMPILE", "never")
os.environ.setdefault("MAXJAX_STRICT", "1")
os.environ.setdefault("MAXJAX_DETACHED_BUILDS", "0")      # tests leave no process behind
os.environ["XLA_FLAGS"] = quick_jax.flags(os.environ.get("XLA_FLAGS", ""))

import hypothesis
import jax
import pytest

quick_jax.share_contexts()

# The same examples in every run: failures can be reproduced, and the time is known.
hypothesis.settings.register_profile(
    "fixed", derandomize=True, deadline=None, database=None,
    suppress_health_check=list(hypothesis.HealthCheck))
hypothesis.settings.load_profile("fixed")

# A shell's background jobs ignore interrupts, and would pass that on to processes of tests.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)      # of a plugin that not every environment has
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") == "loadgroup":
        from tests.support import distribution
        return distribution.Chunks(config, log)
    return None


def pytest_configure(config):
    config.addinivalue_line("markers", "tier1: MAX compiles a program; takes tens of seconds")


# JAX keeps what it has compiled, some gigabytes over all tests; what small programs of other
# modules share of it is a third of JAX's time.
JAX_MAY_KEEP = os.sysconf("SC_PHYS_PAGES") // 6
# Collecting among so many objects takes a tenth of the time; tests of leaks collect by themselves.
gc.set_threshold(20_000, 20, 20)


def resident_pages():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


@pytest.fixture(autouse=True, scope="module")
def jax_forgets():
    yield
    if resident_pages() > JAX_MAY_KEEP:
        jax.clear_caches()
