"""Programs and their tiers: with a stand-in for MAX, and once with MAX itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import debug
from maxjax._base import config
from maxjax._base.errors import CompileError
from maxjax._ir.check import check_jaxpr
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.serialize import decode
from maxjax._ir.types import ShapedArray
from maxjax._max import warning as warning_module
from maxjax._max.graph import session
from maxjax._runtime import cells
from maxjax._runtime import program as program_module
from maxjax._runtime.agreement import disagreement
from maxjax._runtime.program import BEING_COMPILED, Program
from maxjax._runtime.tiering import tiering
from tests.support import harness

X = np.array([0.5, -1.25, 2.0], np.float32)


# --- a stand-in for the compile service and for MAX -----------------------------------------------

class Cache:
    directory = Path("/nowhere")

    def __init__(self):
        self.entries: dict[bytes, str] = {}
        self.discarded = []

    def lookup(self, key):
        return self.entries.get(key)

    def discard(self, key):
        self.discarded.append(key)
        self.entries.pop(key, None)


class Service:
    """Takes requests, and answers when the test tells it to; an artifact is the program's text."""

    def __init__(self):
        self.cache = Cache()
        self.requests = []
        self.answer_at_once = None

    def submit(self, key, program, done, priority=0.0, options=None):
        self.requests.append((key, program, done, priority))
        return len(self.requests) - 1

    def wait(self, job, progress=None, timeout=None):
        key, program, done, _ = self.requests[job]
        error = self.answer_at_once
        if error is None:
            self.finish(job)
            return program
        done(None, error)
        raise CompileError(error)

    def finish(self, job=-1, error=None):
        key, program, done, _ = self.requests[job]
        if error is not None:
            done(None, error)
            return
        self.cache.entries[key] = program
        done(program, None)


class Model:
    """A piece that 'MAX' runs: its text, read back, by the interpreter."""

    calls = 0
    change = staticmethod(lambda results: results)
    delay = 0.0

    def __init__(self, data):
        jaxpr = decode(data)
        check_jaxpr(jaxpr)
        self.run = interpreter(ClosedJaxpr(jaxpr))

    def __call__(self, arrays):
        type(self).calls += 1
        time.sleep(self.delay)
        with np.errstate(all="ignore"):
            return type(self).change([np.asarray(x) for x in self.run(*arrays)])


@pytest.fixture
def service(monkeypatch):
    fake = Service()
    monkeypatch.setattr(tiering.backends["graph"], "_service", fake)
    monkeypatch.setattr(tiering, "HOT_NANOSECONDS", 0, raising=False)
    monkeypatch.setattr(tiering, "HOT_CALLS", 1, raising=False)
    monkeypatch.setattr(tiering.backends["graph"], "DISPATCH_NANOSECONDS", 0)
    monkeypatch.setattr(tiering, "LOOKUP_NANOSECONDS", 1 << 62)
    monkeypatch.setattr(session, "load", lambda path: {
        name: Model(data) for name, data in json.loads(path)["pieces"]})
    monkeypatch.setattr(session, "Executable", lambda model: model)
    monkeypatch.setattr(Model, "calls", 0)
    monkeypatch.setattr(Model, "delay", 0.0)
    monkeypatch.setattr(Model, "change", staticmethod(lambda results: results))
    monkeypatch.setattr(warning_module, "_warned", False)
    with config.compile_mode("auto"), config.backend("graph"):
        yield fake


def function(scale=2.0):
    return maxjax.jit(lambda x: jnp.sin(x) * scale + 1)


def expected(scale=2.0):
    return np.sin(X) * np.float32(scale) + 1


def assert_right(value, scale=2.0):
    np.testing.assert_allclose(np.asarray(value), expected(scale), rtol=1e-6)


def program_of(jitted) -> Program:
    return next(iter(jitted._entries.values())).closed.made.programs[()]


# --- heat, request, swap --------------------------------------------------------------------------

def test_a_hot_program_is_requested_once_and_swapped_in(service):
    jitted = function()
    for _ in range(5):
        assert_right(jitted(X))
    assert len(service.requests) == 1 and Model.calls == 0
    assert debug.statistics(jitted).reason == BEING_COMPILED
    service.finish()
    for _ in range(3):
        assert_right(jitted(X))
    found = debug.statistics(jitted)
    assert Model.calls == 3
    assert (found.interpreted_calls, found.compiled_calls, found.state, found.reason) == (
        5, 3, "compiled", None)
    assert found.compile_seconds > 0
    assert len(service.requests) == 1


def test_a_cold_program_is_not_requested(service, monkeypatch):
    monkeypatch.setattr(tiering, "HOT_NANOSECONDS", 1 << 60, raising=False)
    jitted = function()
    for _ in range(20):
        jitted(X)
    assert not service.requests and program_of(jitted).state == "cold"
    assert program_of(jitted).heat > 0


def test_what_is_estimated_to_take_long_is_requested_at_its_first_call(service, monkeypatch):
    monkeypatch.setattr(tiering, "HOT_NANOSECONDS", 1 << 60, raising=False)
    quick = function()
    quick(X)
    assert not service.requests
    monkeypatch.setattr(tiering, "LONG_SECONDS", 0.0, raising=False)
    jitted = function(3.0)
    assert_right(jitted(X), 3.0)
    assert len(service.requests) == 1 and debug.statistics(jitted).reason == BEING_COMPILED
    service.finish()
    assert_right(jitted(X), 3.0)
    assert debug.statistics(jitted).compiled_calls == 1


def test_the_hotter_goes_first(service):
    jitted = function()
    jitted(X)
    assert service.requests[0][3] == pytest.approx(program_of(jitted).heat, rel=0.5)


def test_what_costs_less_than_a_dispatch_is_not_compiled(service, monkeypatch):
    monkeypatch.setattr(tiering.backends["graph"], "DISPATCH_NANOSECONDS", 1 << 50)
    jitted = function()
    for _ in range(3):
        assert_right(jitted(X))
    found = debug.statistics(jitted)
    assert not service.requests and found.state == "interpreted" and "dispatch" in found.reason


def test_a_failing_compile_leaves_the_program_interpreted(service, caplog):
    caplog.set_level("INFO", "maxjax")
    jitted = function()
    jitted(X)
    with pytest.warns(RuntimeWarning, match="no such op"):
        service.finish(error="ValueError: no such op")
    for _ in range(3):
        assert_right(jitted(X))
    found = debug.statistics(jitted)
    assert found.state == "interpreted" and "no such op" in found.reason
    assert len(service.requests) == 1 and Model.calls == 0
    assert "no such op" in caplog.text
    assert "no such op" in str(debug.explain(jitted, X))


def test_an_artifact_that_cannot_be_loaded_is_thrown_away(service, monkeypatch, caplog):
    def broken(path):
        raise RuntimeError("damaged")

    monkeypatch.setattr(session, "load", broken)
    caplog.set_level("INFO", "maxjax")
    jitted = function()
    jitted(X)
    with pytest.warns(RuntimeWarning, match="damaged"):
        service.finish()
    assert_right(jitted(X))
    assert program_of(jitted).state == "failed"
    assert service.cache.discarded == [program_of(jitted).prepared.key]
    assert "damaged" in caplog.text


def test_a_slower_tier_is_given_up(service, monkeypatch):
    monkeypatch.setattr(Model, "delay", 0.002)
    jitted = function()
    jitted(X)
    service.finish()
    for _ in range(10):
        assert_right(jitted(X))
    found = debug.statistics(jitted)
    assert found.state == "interpreted" and "the interpreter" in found.reason
    assert 2 <= Model.calls < 10


def test_a_faster_tier_stays(service, monkeypatch):
    monkeypatch.setattr(Model, "delay", 0.0001)
    jitted = maxjax.jit(lambda x: jnp.sin(x))
    jitted(X)
    program = program_of(jitted)
    service.finish()
    program.best_interpreted = 1_000_000_000
    for _ in range(20):
        jitted(X)
    assert debug.statistics(jitted).state == "compiled" and Model.calls == 20


def test_short_calls_have_to_be_faster_twice(service, monkeypatch):
    """The interpreter's time may have been another process's."""
    monkeypatch.setattr(tiering, "SHORT_NANOSECONDS", 10_000_000)
    monkeypatch.setattr(Model, "delay", 0.0005)
    jitted = maxjax.jit(lambda x: jnp.sin(x))
    jitted(X)
    program = program_of(jitted)
    service.finish()
    program.best_interpreted = 1_000_000_000
    for _ in range(8):
        jitted(X)
    assert Model.calls == 8 and debug.statistics(jitted).reason == "the interpreter is tried"
    for _ in range(20):
        jitted(X)
    found = debug.statistics(jitted)
    assert Model.calls == 16 and "MAX took" in found.reason and program.best_interpreted < 500_000


def test_what_was_never_interpreted_is_tried_so(service, monkeypatch):
    """As what is compiled ahead of time."""
    monkeypatch.setattr(tiering, "SHORT_NANOSECONDS", 10_000_000)
    monkeypatch.setattr(Model, "delay", 0.0005)
    jitted = function()
    compiled = jitted.lower(X).compile()
    for _ in range(40):
        assert_right(compiled(X))
    assert Model.calls == 16 and "MAX took" in debug.statistics(jitted).reason


def test_always_waits_for_the_compiler(service, monkeypatch):
    monkeypatch.setattr(Model, "delay", 0.001)
    with config.compile_mode("always"):
        jitted = function()
        for _ in range(10):
            assert_right(jitted(X))
        found = debug.statistics(jitted)
    assert found.interpreted_calls == 0 and found.compiled_calls == 10
    assert service.requests[0][3] == float("inf")


def test_always_warns_of_what_the_compiler_says(service):
    service.answer_at_once = "ValueError: no such op"
    jitted = function()
    with config.compile_mode("always"), pytest.warns(RuntimeWarning, match="no such op"):
        assert_right(jitted(X))
    assert_right(jitted(X))
    assert program_of(jitted).state == "failed" and len(service.requests) == 1


def test_ahead_of_time_raises_what_the_compiler_says(service):
    service.answer_at_once = "ValueError: no such op"
    lowered = function().lower(X)
    with pytest.warns(RuntimeWarning, match="no such op"), pytest.raises(
            CompileError, match="no such op"):
        lowered.compile()


@pytest.fixture
def broken_planning(service, monkeypatch):
    def prepare(jaxpr, donated=frozenset()):
        raise ZeroDivisionError("no plan")

    monkeypatch.setattr(tiering.backends["graph"], "prepare", prepare)
    monkeypatch.delenv("MAXJAX_STRICT", raising=False)
    return service


def test_ahead_of_time_raises_where_planning_fails(broken_planning):
    lowered = function().lower(X)
    with pytest.warns(RuntimeWarning, match="no plan"), pytest.raises(
            CompileError, match="planning failed: ZeroDivisionError: no plan"):
        lowered.compile()
    with pytest.raises(CompileError, match="no plan"):
        lowered.compile()


@pytest.mark.parametrize("mode", ["auto", "always"])
def test_a_warning_tells_that_planning_failed(broken_planning, mode):
    jitted = function()
    with config.compile_mode(mode), pytest.warns(RuntimeWarning, match="planning failed: Zero"):
        for _ in range(5):
            assert_right(jitted(X))
    assert not broken_planning.requests and "no plan" in program_of(jitted).reason


def test_never_asks_nobody(service):
    with config.compile_mode("never"):
        jitted = function()
        for _ in range(5):
            assert_right(jitted(X))
    assert not service.requests and program_of(jitted).state == "cold"
    assert_right(jitted(X))
    assert len(service.requests) == 1
    service.finish()
    with config.compile_mode("never"):
        assert_right(jitted(X))
    assert Model.calls == 0


def test_ahead_of_time(service):
    jitted = function()
    compiled = jitted.lower(X).compile()
    assert len(service.requests) == 1
    assert_right(compiled(X))
    assert Model.calls == 1
    with pytest.raises(TypeError):
        compiled(X[:2])


def test_a_substantial_program_finds_its_artifact_at_once(service, monkeypatch):
    first = function()
    first(X)
    service.finish()
    monkeypatch.setattr(tiering, "EAGER_LOOKUP_SECONDS", -1.0, raising=False)
    again = function()
    assert_right(again(X))
    found = debug.statistics(again)
    assert (found.interpreted_calls, found.compiled_calls) == (0, 1)
    assert len(service.requests) == 1
    other = function(3.0)
    assert_right(other(X), 3.0)
    assert debug.statistics(other).compiled_calls == 0


def test_a_program_swaps_while_threads_call_it(service):
    import threading
    jitted = function()
    jitted(X)
    errors = []

    def work():
        try:
            for _ in range(100):
                assert_right(jitted(X))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    service.finish()
    for thread in threads:
        thread.join(30)
    assert not errors and program_of(jitted).state in ("compiled", "slower")


def test_eager_code_that_repeats_is_compiled(service, monkeypatch):
    monkeypatch.setattr(cells, "LIGHT_BYTES", -1)
    monkeypatch.setattr(program_module, "_graph_programs", {})

    def step(x):
        return jnp.sin(x) * 2 + 1

    x = jnp.asarray(X)
    for _ in range(3):
        assert_right(step(x))
    assert len(service.requests) == 1
    service.finish()
    for _ in range(3):
        assert_right(step(x))
    assert Model.calls == 3


# --- checking, explaining -------------------------------------------------------------------------

def test_check_tiers_accepts_what_is_right_and_rounding(service, monkeypatch):
    monkeypatch.setattr(Model, "change", staticmethod(lambda results: [
        np.nextafter(x, np.float32(9)) for x in results]))
    jitted = function()
    jitted(X)
    service.finish()
    with config.check_tiers(True):
        for _ in range(3):
            assert_right(jitted(X))


def test_parts_of_complex_numbers_are_held_against_the_whole():
    right = np.array([3 + 0j, -4 + 0j], np.complex64)
    aval = ShapedArray((2,), right.dtype)
    assert disagreement(right + np.complex64(1e-5j), right, aval) is None
    assert disagreement(right + np.complex64(1j), right, aval)
    assert disagreement(right + np.complex64(1), right, aval)
    assert disagreement(right * np.array([1, complex(1, np.nan)], np.complex64), right, aval)


@pytest.mark.parametrize("change", [
    lambda x: x + 1, lambda x: np.where(np.arange(x.size) == 1, np.float32(np.nan), x),
    lambda x: np.where(np.arange(x.size) == 1, np.float32(np.inf), x), lambda x: x[:2],
    lambda x: x.astype(np.float64)])
def test_check_tiers_raises_on_a_wrong_result(service, monkeypatch, change):
    monkeypatch.setattr(Model, "change", staticmethod(lambda results: [
        change(x) for x in results]))
    jitted = function()
    jitted(X)
    service.finish()
    with config.check_tiers(True), pytest.raises(AssertionError, match="the tiers differ"):
        jitted(X)


def test_check_tiers_of_integers_is_exact(service, monkeypatch):
    monkeypatch.setattr(Model, "change", staticmethod(lambda results: [x + 1 for x in results]))
    jitted = maxjax.jit(lambda x: x * 1000)
    jitted(np.arange(3, dtype=np.int32))
    service.finish()
    with config.check_tiers(True), pytest.raises(AssertionError, match="3 of 3 elements"):
        jitted(np.arange(3, dtype=np.int32))


def test_statistics():
    with pytest.raises(TypeError, match="jit"):
        debug.statistics(lambda x: x)
    jitted = function()
    assert debug.statistics(jitted) == (0, 0, "interpreted", None, 0.0)
    for size in (2, 3, 2):
        jitted(np.ones(size, np.float32))
    assert debug.statistics(jitted).interpreted_calls == 3


def test_explain_names_pieces_and_reasons(service):
    table = np.ones((300, 300), np.float32)

    @jax_name
    def named(x):
        return jnp.sum(jnp.sin(x) @ table), jnp.asarray(x[0], jnp.complex64) * 2

    found = debug.explain(named, np.ones((300, 300), np.float32)[0])
    text = str(found)
    assert found.constant_bytes == table.nbytes and str(table.nbytes) in text
    assert "named" in text and "complex64" in text and "piece 0" in text
    assert not found.cached and not service.requests
    assert {place for place, _, _ in found.pieces} == {"MAX", "host"}
    assert found.interpreted_calls == 0


def jax_name(fun):
    return maxjax.jit(fun)


def test_explain_tells_of_the_disk(service):
    jitted = function()
    jitted(X)
    service.finish()
    assert debug.explain(jitted, X).cached
    assert "on the disk: yes" in str(debug.explain(jitted, X))


# --- texts and keys -------------------------------------------------------------------------------

def key_of(fun, *args):
    jitted = maxjax.jit(fun)
    program = Program(jitted._lookup(args, {}).closed)
    assert tiering.prepare(program), program.reason
    return program.prepared.key


def test_large_constants_are_inputs(service):
    table = np.arange(1 << 16, dtype=np.float32)
    closed = maxjax.jit(lambda x: x * table)._lookup((table,), {}).closed
    program = Program(closed)
    tiering.prepare(program)
    assert len(program.prepared.text) < 2000
    assert [const.nbytes for const in program.consts] == [table.nbytes]
    result, = program.run([table])
    np.testing.assert_array_equal(result, table * table)
    other = np.zeros(1 << 16, np.float32)
    assert key_of(lambda x: x * table, table) == key_of(lambda x: x * other, table)


SQUARE = np.ones((3, 3), np.float32)
DIFFERENT = {
    "wiring": (lambda x, y: (x * x) - y, lambda x, y: (x * y) - y),
    "signed zeros": (lambda x, y: x * np.float32(0.0), lambda x, y: x * np.float32(-0.0)),
    "literals": (lambda x, y: x * 2.0, lambda x, y: x * 3.0),
    "literals that print alike": (
        lambda x, y: x * np.float32(0.1), lambda x, y: x * np.nextafter(
            np.float32(0.1), np.float32(1))),
    "dtypes of literals": (lambda x, y: x.astype("int32") * 1, lambda x, y: x.astype("int8") * 1),
    "1 and True": (lambda x, y: jnp.sum(x * 1), lambda x, y: jnp.sum(x * 1, keepdims=True)),
    "axes": (lambda x, y: jnp.sum(x, axis=-1), lambda x, y: jnp.sum(x, axis=-2)),
    "cumulative axes": (lambda x, y: jnp.cumsum(x, axis=-1), lambda x, y: jnp.cumsum(x, axis=-2)),
    "number of results": (lambda x, y: x + 1, lambda x, y: (x + 1, x + 2)),
    "dtypes": (lambda x, y: x.astype("float16"), lambda x, y: x.astype("bfloat16")),
    "indices": (lambda x, y: x[0], lambda x, y: x[1]),
    "strides": (lambda x, y: x[::2] + 1, lambda x, y: x[:2] + 1),
    "permutations": (lambda x, y: x.T + y, lambda x, y: x + y.T),
    "infinities": (lambda x, y: x * np.float32(np.inf), lambda x, y: x * np.float32(-np.inf)),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_programs_have_different_keys(service, name):
    one, two = DIFFERENT[name]
    assert key_of(one, SQUARE, SQUARE) != key_of(two, SQUARE, SQUARE)
    assert key_of(one, SQUARE, SQUARE) == key_of(one, SQUARE, SQUARE)


@pytest.mark.parametrize("one,two", [
    (lambda x, y: x - y, lambda x, y: y - x),
    (lambda x, y: (x + 1, y + 1), lambda x, y: (y + 1, x + 1)),
    (lambda x, y: x + 1, lambda x, y: (x + 1, x + 1)),
    (lambda x, y: (x - y, x), lambda x, y: (y, x - y, 2.0))])
def test_programs_that_share_an_artifact_keep_their_own_wiring(service, one, two):
    x, y = X, X[::-1].copy()
    assert key_of(one, x, y) == key_of(two, x, y)
    for fun in (one, two):
        jitted = maxjax.jit(fun)
        jitted(x, y)
        service.finish(len(service.requests) - 1)
        for a, b in zip(harness.leaves(jitted(x, y)), harness.leaves(fun(x, y)), strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)
        assert debug.statistics(jitted).compiled_calls == 1


def test_different_types_have_different_keys(service):
    keys = {key_of(lambda x: x + x, arg) for arg in (
        SQUARE, SQUARE[:2], SQUARE[0], SQUARE.astype(np.float16), SQUARE.astype(np.int32),
        SQUARE.reshape(1, 9))}
    assert len(keys) == 6


def test_the_function_does_not_belong_to_the_key(service):
    def renamed(first):
        product = jnp.sin(first)
        return product * 2.0

    assert key_of(renamed, X) == key_of(lambda x: jnp.sin(x) * 2.0, X)


# --- MAX itself -----------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
import maxjax
import maxjax.numpy as jnp
from maxjax import debug

f = maxjax.jit(lambda x, y: jnp.sin(x) * y + 1)
x = np.linspace(-2, 2, 20, dtype=np.float32).reshape(4, 5)
for scale in (2.0, 3.0):
    out = np.asarray(f(x, np.float32(scale)))
    np.testing.assert_allclose(out, np.sin(x) * np.float32(scale) + 1, rtol=1e-6, atol=1e-6)
found = debug.statistics(f)
assert (found.interpreted_calls, found.compiled_calls) == (0, 2), found
print(f"{found.compile_seconds:.3f}")
"""

INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import maxjax
import maxjax.numpy as jnp
from maxjax import debug
from maxjax._base import config

f = maxjax.jit(lambda x: jnp.cos(x) * 5 + x)
x = np.ones(3, np.float32)
timer = threading.Timer(4.0, lambda: os.kill(os.getpid(), signal.SIGINT))
timer.start()
try:
    f(x)
    print("too fast")
except KeyboardInterrupt:
    pass
with config.compile_mode("never"):
    np.testing.assert_allclose(np.asarray(f(x)), np.cos(x) * 5 + x, rtol=1e-6)
np.testing.assert_allclose(np.asarray(jnp.sin(x) + 1), np.sin(x) + 1, rtol=1e-6)
print("usable")
"""


def run_script(script, directory, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "MAXJAX_COMPILE": "always", "MAXJAX_CACHE_DIR": str(directory),
             "MAXJAX_BACKEND": "graph",
             **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.extended
@pytest.mark.tier1
@pytest.mark.xdist_group("graph")
def test_compiled_by_max_found_again_and_repaired(tmp_path):
    directory = tmp_path / "cache"
    seconds = run_script(SCRIPT, directory)
    assert float(seconds) > 0.5
    # The next process finds it: nothing is compiled.
    seconds = run_script(SCRIPT, directory)
    assert float(seconds) == 0.0
    # Both tiers agree.
    run_script(SCRIPT, directory, MAXJAX_CHECK_TIERS="1")
    damaged = 0
    for path in directory.rglob("*.mef"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.chmod(0o600)
        path.write_bytes(bytes(content))
        damaged += 1
    assert damaged
    # A damaged one is not run but compiled again.
    seconds = run_script(SCRIPT, directory)
    assert float(seconds) > 0.0
    seconds = run_script(SCRIPT, directory)
    assert float(seconds) == 0.0


@pytest.mark.tier1
@pytest.mark.xdist_group("graph")
@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name != "posix", reason="needs signals")
def test_an_interrupted_wait_leaves_the_process_usable(tmp_path):
    out = run_script(INTERRUPTED, tmp_path / "cache")
    assert out.splitlines()[-1] == "usable"
    assert "too fast" not in out
