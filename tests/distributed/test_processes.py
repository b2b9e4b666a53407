"""Processes meet, exchange values, and notice when one is missing: as in JAX, side by side."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys

import pytest

from tests.distributed.running import ENGINES, START, environment, lines, run
from tests.support import trace_processor

pytestmark = pytest.mark.slow

_VALUES = START + r"""
from jax.experimental import multihost_utils as mu
i = jax.process_index()
def show(*what):
    sys.stdout.write(" ".join(map(str, ("*", i, *what))) + "\n")     # at once: outputs mix
    sys.stdout.flush()
show(jax.devices(), jax.local_devices(), jax.local_devices(1 - i))
show(jax.process_count(), list(jax.process_indices()), jax.device_count(),
     jax.local_device_count(), [d.process_index for d in jax.devices()])
show(repr(mu.process_allgather(np.arange(2) + i)))
show(mu.process_allgather({"a": np.float32(3) + i}, tiled=True))
show(repr(mu.process_allgather(np.arange(2.) + i, tiled=True)))
show(float(mu.process_allgather(np.arange(5000.) + i).sum()))
show(mu.broadcast_one_to_all({"a": np.arange(2) + i}))
show(repr(mu.broadcast_one_to_all(np.arange(2) + i, is_source=i == 1)))
mu.sync_global_devices("here")
mu.assert_equal({"a": 1, "b": np.arange(3)}, "equal")
for call in (lambda: mu.sync_global_devices(f"place {i}"),
             lambda: mu.assert_equal({"a": 1, "b": np.arange(3) + i}, "different"),
             lambda: jax.local_devices(7)):
    try:
        call()
    except (AssertionError, ValueError) as error:
        show(type(error).__name__, error)
jax.distributed.shutdown()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_values_of_all_processes_as_in_jax(engine):
    assert lines(run(engine, _VALUES)) == lines(run("jax", _VALUES))


_RAGGED = START + r"""
from jax.experimental import multihost_utils as mu
from tests.sharding.test_ragged_all_to_all import by_definition, setting
count = jax.device_count()
mesh = jax.make_mesh((count,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
rows = jax.sharding.NamedSharding(mesh, jax.P("x"))
values = setting(0, count)
operands = [jax.make_array_from_callback(x.shape, rows, lambda index, x=x: x[index])
            for x in values]
f = jax.shard_map(lambda *xs: jax.lax.ragged_all_to_all(*[x[0] for x in xs], axis_name="x")[None],
                  mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
for call in (f, jax.jit(f)):
    got = mu.process_allgather(call(*operands), tiled=True)
    assert np.array_equal(got, by_definition(*values))
sys.stdout.write("* fine\n")
jax.distributed.shutdown()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_ragged_all_to_all(engine):
    assert lines(run(engine, _RAGGED)) == ["* fine"] * 2


_REDUCTIONS = START + r"""
from maxjax._distributed.start import connection
import ml_dtypes
group, i = connection.everybody(), jax.process_index()
for dtype in ("float32", "float64", "int8", "int16", "int32", "uint32", "int64", "complex64",
              "float16", ml_dtypes.bfloat16):
    for size in (3, 3000):
        x = (np.arange(size) % 5 + i).astype(dtype)
        both = [(np.arange(size) % 5 + n).astype(dtype) for n in range(group.size)]
        for function in (np.add, np.maximum, np.minimum):
            got = group.all_reduce(x, function, "test")
            expected = both[0]
            for other in both[1:]:
                expected = function(expected, other)
            assert got.dtype == x.dtype and np.array_equal(got, expected), (dtype, function)
        blocks = np.stack([x + np.array(10 * n, dtype) for n in range(group.size)])
        expected = sum(b.astype("complex128") + 10 * i for b in both).astype(dtype)
        if dtype not in ("float16", ml_dtypes.bfloat16):
            assert np.array_equal(group.reduce_scatter(blocks, "test"), expected), dtype
        assert np.array_equal(group.all_to_all(blocks, "test"),
                              np.stack([b + np.array(10 * i, dtype) for b in both]))
        assert np.array_equal(group.broadcast(x, 1, "test"), both[1])
        assert np.array_equal(group.all_gather(x, "test"), np.stack(both))
nan = np.array([np.nan, 1.0] if i else [0.0, np.nan], "float32")
assert np.isnan(group.all_reduce(nan, np.maximum, "test")).all()
if i < 2:
    pair = connection.among((0, 1))
    assert pair.all_reduce(np.ones(2000), np.add, "pair")[0] == 2
sys.stdout.write("* fine\n")
jax.distributed.shutdown()
"""


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_collectives_of_all_dtypes(engine, count):
    assert lines(run(engine, _REDUCTIONS, count)) == ["* fine"] * count


_FAILURE = START + """
import os, sys, time
from jax.experimental import multihost_utils as mu
mu.sync_global_devices("start")
if jax.process_index() == 1:
    {action}
started = time.monotonic()
try:
    mu.sync_global_devices("later")
except Exception as error:
    print("*", type(error).__name__, error, flush=True)
    print("* soon", time.monotonic() - started < 10, flush=True)
    sys.exit(4)
"""


@pytest.mark.parametrize("action", [
    "os._exit(3)", "raise ValueError('x')", "sys.exit(0)", "time.sleep(12); os._exit(0)"])
def test_a_missing_process_is_an_error_of_the_others(action):
    first, _ = run("gloo", _FAILURE.format(action=action), MAXJAX_COLLECTIVE_TIMEOUT="3")
    assert first.returncode == 4
    assert "UNAVAILABLE: process 0 waited in all_gather of uint32[] (process_allgather) for " \
        "process 1" in first.stdout
    assert "* soon True" in first.stdout


@pytest.mark.parametrize("action", [
    "os._exit(3)", "os.kill(os.getpid(), 9)", "raise ValueError('x')", "time.sleep(12)"])
def test_a_missing_process_ends_an_mpi_job(action):
    result, = run("mpi", _FAILURE.format(action=action), MAXJAX_COLLECTIVE_TIMEOUT="3")
    assert result.returncode != 0
    if "sleep" in action:
        assert "process 1, which has ended, hangs" in result.stdout


@pytest.mark.parametrize("engine", ENGINES)
def test_processes_of_different_programs_are_told(engine):
    results = run(engine, START + """
from jax.experimental import multihost_utils as mu
try:
    mu.process_allgather(np.arange(2 + jax.process_index()))
except Exception as error:
    if not jax.process_index():     # one alone: lines of two can mix
        print("*", error, flush=True)
""")
    said = "".join(result.stdout for result in results)
    assert "process 0 is at its collective 2, all_gather of int32[2] (process_allgather), and " \
        "process 1 at all_gather of int32[3] (process_allgather)" in said


def test_the_launcher_prefixes_output_and_ends_all(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import sys, time, jax
jax.distributed.initialize()
print("hello from", jax.process_index())
if len(sys.argv) > 1:
    if jax.process_index():
        sys.exit(7)
    time.sleep(60)
""")
    command = [sys.executable, "-m", "maxjax.distributed", "-n", "2", str(script)]
    good = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300,
                          check=False)
    assert good.returncode == 0, good.stdout
    assert sorted(good.stdout.splitlines()) == ["[0] hello from 0", "[1] hello from 1"]
    bad = subprocess.run([*command, "fail"], env=environment(), capture_output=True, text=True,
                         timeout=50, check=False)
    assert bad.returncode == 7


_STEPS = START + """
import os, time
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",))
def body(x):
    return lax.fori_loop(0, 3, lambda n, c: jnp.sin(c) + lax.psum(c, "x"), x)
step = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
x = jax.make_array_from_callback((8,), jax.NamedSharding(mesh, P("x")), lambda i: np.ones(2, "f"))
x = step(x)
if jax.process_index() == 1:
    {action}
started = time.monotonic()
try:
    for _ in range(3):
        x = step(x)
except Exception as error:
    print("*", jax.process_index(), type(error).__name__, error, flush=True)
    print("* soon", time.monotonic() - started < 10, flush=True)
    sys.exit(4)
"""
_NAMED = r"all_reduce add of float32\[1, 2\] \(psum over x in body \[[0-9a-f]{8}\]\)"


@pytest.mark.parametrize("action", [
    "os._exit(3)", "raise ValueError('x')", "time.sleep(12); os._exit(0)",
    "os.kill(os.getpid(), 2)"])
def test_a_process_missing_in_a_program_is_an_error_of_the_others(action):
    first, _ = run("gloo", _STEPS.format(action=action), MAXJAX_COLLECTIVE_TIMEOUT="3")
    assert first.returncode == 4, first.stderr
    assert re.search("JaxRuntimeError UNAVAILABLE: process 0 waited in " + _NAMED
                     + " for process 1", first.stdout), first.stdout
    assert "* soon True" in first.stdout


def test_a_process_missing_in_a_program_ends_an_mpi_job():
    result, = run("mpi", _STEPS.format(action="time.sleep(12)"), MAXJAX_COLLECTIVE_TIMEOUT="3")
    assert result.returncode != 0
    assert re.search("waited in " + _NAMED + " for process 1", result.stdout), result.stdout


@pytest.mark.parametrize("engine", ENGINES)
def test_processes_that_run_different_programs_are_told(engine):
    action = """step = jax.jit(jax.shard_map(
        lambda c: lax.psum(c * 2, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))"""
    results = run(engine, _STEPS.format(action=action))
    said = "".join(result.stdout for result in results)
    assert all(result.returncode for result in results)
    assert re.search(r"FAILED_PRECONDITION: the processes do not run the same program: process \d "
                     r"is at its collective \d+, .*psum over x in \S+ \[[0-9a-f]{8}\]\), and "
                     r"process \d at .*psum over x in \S+ \[[0-9a-f]{8}\]", said), said


# Collectives of more than a message, which have been compared before; then {action} in process 1.
_COMPARED = START + """
import os, time
from maxjax._distributed.start import connection
group, i, x = connection.everybody(), jax.process_index(), np.ones(4096, "f")
both = group
if {pairs}:
    both = [connection.among(pair) for pair in ((0, 1), (1, 2)) if i in pair][-1]
for what in ("one", "two") * 2:
    assert group.all_reduce(x, np.add, what)[0] == 3
    group.permute({{(i + 1) % 3: x}}, {{(i + 2) % 3: x.copy()}}, [(0, 1), (1, 2), (2, 0)], what)
what = "one"
if i == {who}:
    {action}
try:
    both.all_reduce(x, np.add, what)
except Exception as error:
    sys.stdout.write(f"* {{i}} {{error}}\\n")
    sys.stdout.flush()
    sys.exit(4)
"""


@pytest.mark.parametrize("action, said", [
    ("os._exit(3)", "process {} waited in {} (one) for process 1, which has ended"),
    ("time.sleep(12)", "process {} waited in {} (one) for process 1, which has ended, hangs"),
    ("what = 'two'", "process {} is at its collective 10, {} (one), and process 1 at collective "
                     "10 of processes [0, 1, 2], {} (two)")])
def test_a_compared_collective_names_who_is_missing_or_elsewhere(action, said):
    results = run("gloo", _COMPARED.format(action=action, pairs=False, who=1), 3, 1,
                  MAXJAX_COLLECTIVE_TIMEOUT="3")
    for number in (0, 2):
        assert said.format(number, *["all_reduce add of float32[4096]"] * 2) in \
            results[number].stdout, [result.stdout for result in results]


def test_who_waits_for_a_waiting_process_is_told_who_is_missing():
    results = run("gloo", _COMPARED.format(action="os._exit(3)", pairs=True, who=2), 3, 1,
                  MAXJAX_COLLECTIVE_TIMEOUT="3")
    for number in (0, 1):
        assert f"process {number} waited in all_reduce add of float32[4096] (one) for process 2," \
            in results[number].stdout, [result.stdout for result in results]


def test_an_interrupt_ends_a_process_that_waits():
    first, _ = run("gloo", START + """
import os, time
from jax.experimental import multihost_utils as mu
first = int(mu.process_allgather(np.array(os.getpid()))[0])
if jax.process_index():
    time.sleep(2)
    os.kill(first, 2)
    time.sleep(2)
    os._exit(0)
mu.sync_global_devices("nobody else comes")
""")
    assert first.returncode == -signal.SIGINT


_TRACED = START + r"""
mesh = jax.make_mesh((jax.device_count(),), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
x = jax.device_put(np.arange(4000.), jax.NamedSharding(mesh, jax.P("a")))
with jax.profiler.trace(FOLDER):
    print(float(jax.jit(lambda x: x.sum())(x)))
jax.distributed.shutdown()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_profiles_have_the_collectives_of_each_process(engine, tmp_path):
    for result in run(engine, _TRACED.replace("FOLDER", repr(str(tmp_path)))):
        assert result.returncode == 0, result.stderr
    paths = sorted(tmp_path.rglob("*.trace.json.gz"))
    assert [path.name.split(".")[0][-2:] for path in paths] == ["-0", "-1"]
    for path in paths:
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        spans = [event for event in events if event.get("cat") == "collective"]
        assert [span["name"] for span in spans].count("all_reduce add") == 1
        assert all(span["dur"] > 0 and span["args"]["processes"] == "[0, 1]" for span in spans)
        if not trace_processor.missing():
            with trace_processor.opened(path) as profile:
                assert trace_processor.lost(profile) == {}
                row, = profile.query("select count(*) as found from slice "
                                     "where category = 'collective' and dur > 0")
                assert row.found == len(spans)
