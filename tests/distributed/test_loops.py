"""Loops with collectives between processes are compiled, with their exchanges in order."""

from __future__ import annotations

import numpy as np
import pytest

import maxjax as jax
from maxjax import lax
from maxjax._base.dtypes import float32
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import every_equation
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._sharding.exchange import Exchange, Kind, exchange_p, ordered_exchange_p
from maxjax._sharding.tokens import with_tokens
from maxjax._transforms.partition import host_reason
from maxjax._transforms.simplify import simplify_once
from tests.distributed.running import ENGINES, START, lines, run


def total(x):
    """The sum over two devices of this process, on both."""
    return x * 0 + exchange_p.bind(x, exchange=Exchange(Kind.SUM, ((0, 1),), (0, 0), "test"))


def scan(x):
    return lax.scan(lambda c, n: (c * 0.5 + total(c), total(c * n)), x, np.arange(3.))


def unread(x):
    def body(carry):
        total(carry)
        return carry + 1
    return [lax.fori_loop(0, 3, lambda _, carry: body(carry), x)]


def predicate(x):
    return [lax.while_loop(lambda c: total(c)[0, 0] < 100, lambda c: c + total(c), x)]


def choice(x):
    return [lax.cond(x[0, 0] > 0, lambda x: total(total(x)), lambda x: total(x) * 2, x)]


def nested(x):
    step = jax.jit(lambda c: lax.fori_loop(0, 2, lambda _, c: c + total(c), c))
    return [total(lax.scan(lambda c, _: (step(c), None), x, None, length=2)[0])]


@pytest.mark.parametrize("function", [scan, unread, predicate, choice, nested])
def test_exchanges_are_ordered_by_a_token(function):
    closed = trace_to_jaxpr(lambda x: list(jax.tree.leaves(function(x))),
                            [ShapedArray((2, 3), float32)])
    ordered = with_tokens(closed)
    assert ordered is not None and ordered.effects == closed.effects
    program = simplify_once(ordered)
    kinds = [eqn.primitive for eqn in every_equation(program)]
    assert kinds.count(ordered_exchange_p) >= sum(
        eqn.primitive is exchange_p for eqn in every_equation(closed))
    assert exchange_p not in kinds
    assert not [reason for eqn in program.jaxpr.eqns if eqn.primitive is not ordered_exchange_p
                and (reason := host_reason(eqn, control_flow=True))]
    x = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    expected = interpreter(closed)(x)
    *results, token = interpreter(program)(x)
    assert np.shape(token) == ()
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, value)


def test_other_effects_keep_their_order():
    def printing(x):
        jax.debug.print("{}", total(x))
        return [total(x + 1)]

    assert with_tokens(trace_to_jaxpr(printing, [ShapedArray((2, 3), float32)])) is None
    assert with_tokens(trace_to_jaxpr(lambda x: [x], [ShapedArray((2, 3), float32)])) is None


_LOOP = START + """
import os
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
from maxjax.debug import statistics
mesh = jax.make_mesh((4,), ("x",))

def until_large(x):
    step = lambda c: c * 0.5 + lax.psum(c, "x")
    for_ten = lambda c: lax.scan(lambda c, _: (step(c), lax.pmax(c, "x")), c, None, length=10)[0]
    return lax.while_loop(lambda c: lax.psum(c.sum(), "x") < 1e6, for_ten, x)

run = jax.jit(jax.shard_map(
    until_large, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
x = jax.make_array_from_callback((8,), NamedSharding(mesh, P("x")),
                                 lambda index: np.arange(8, dtype="float32")[index])
expected = np.arange(8, dtype="float32").reshape(4, 2)
while expected.sum() < 1e6:
    for _ in range(10):
        expected = expected * np.float32(0.5) + expected.sum(0)
result = np.concatenate([part.data for part in run(x).addressable_shards])
i = jax.process_index()
np.testing.assert_allclose(result, expected.reshape(2, 4)[i], 1e-6)
sys.stdout.write(f"* {i} {statistics(run).state} {statistics(run).compiled_calls}\\n")
sys.stdout.flush()
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_loops_are_compiled(engine):
    script = _LOOP + "jax.distributed.shutdown()\n"
    assert lines(run(engine, script, MAXJAX_COMPILE="always")) == [
        "* 0 compiled 1", "* 1 compiled 1"]


@pytest.mark.slow
def test_a_process_that_ends_ends_compiled_loops():
    script = _LOOP + """
if i == 1:
    os._exit(3)
try:
    run(x)
except jax.errors.JaxRuntimeError as error:
    assert "psum over x in until_large" in str(error) and "process 1" in str(error), error
    sys.stdout.write("* named\\n")
    sys.stdout.flush()
    os._exit(0)
"""
    first, second = run("gloo", script, MAXJAX_COMPILE="always")
    assert second.returncode == 3
    assert "* named" in first.stdout, first.stderr


_MIXED = START + """
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
from maxjax._base.config import compile_mode
count = jax.device_count()
mesh = jax.make_mesh((count,), ("x",))
whole = np.sin(np.arange(count * count * 600, dtype="float32")).reshape(count * count, 600)
bodies = {
    "psum": lambda x: lax.psum(x, "x"), "pmax": lambda x: lax.pmax(x, "x"),
    "all_gather": lambda x: lax.all_gather(x, "x", tiled=True).sum(0),
    "psum_scatter": lambda x: lax.psum_scatter(x, "x", tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "x", [(n, (n + 1) % count) for n in range(count)]),
    "all_to_all": lambda x: lax.all_to_all(x, "x", 0, 1, tiled=True)}
i = jax.process_index()
if count == 4:      # two groups of the same processes, and two within them
    plane = jax.make_mesh((2, 2), ("a", "b"))
    for axis in "ab":
        bodies[f"psum over {axis}"] = lambda x, axis=axis: lax.psum(x, axis)
        bodies[f"all_gather over {axis}"] = lambda x, axis=axis: lax.all_gather(x, axis).sum(0)
for name, body in bodies.items():
    results = []
    # One process interprets, the other does not; then both alike.
    for mode in ("never" if i else "always", "never"):
        jax.clear_caches()
        grid, spec = (plane, P(("a", "b"))) if "over" in name else (mesh, P("x"))
        x = jax.make_array_from_callback(whole.shape, NamedSharding(grid, spec),
                                         lambda index: whole[index])
        run = jax.jit(jax.shard_map(lambda x: body(x), mesh=grid, in_specs=spec,
                                    out_specs=spec, check_vma=False))
        with compile_mode(mode):
            for _ in range(2):      # the second call may be native
                result = run(x)
            results.append([np.asarray(part.data) for part in result.addressable_shards])
    for part, other in zip(*results):
        np.testing.assert_allclose(part, other, 1e-5, 1e-6)
sys.stdout.write(f"* {i}\\n")
sys.stdout.flush()
jax.distributed.shutdown()
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine, devices", [
    ("gloo", 1), pytest.param("gloo", 2, marks=pytest.mark.extended), ("mpi", 1),
    pytest.param("mpi", 2, marks=pytest.mark.extended)])
def test_processes_may_be_in_different_tiers(engine, devices):
    assert lines(run(engine, _MIXED, devices=devices)) == ["* 0", "* 1"]


_NATIVE = START + """
import os, time
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2,), ("x",))
i = jax.process_index()

def over(size):
    whole = np.arange(2 * size, dtype="float32") % 7
    return jax.make_array_from_callback(whole.shape, NamedSharding(mesh, P("x")),
                                        lambda index: whole[index]), whole.reshape(2, -1)

def step(x):
    total = lax.psum(x, "x")
    return total * 0.5 + lax.all_gather(x, "x").sum(0) * 0.25, total

def loop(x, count):
    return lax.fori_loop(0, count, lambda _, c: step(c)[0], x)

run = jax.jit(jax.shard_map(loop, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"),
                            check_vma=False))
for size in (4, 100, 3000):      # the first two fit into a message
    x, expected = over(size)
    for _ in range(4):
        expected = expected.sum(0) * np.float32(0.75) + 0 * expected
    found, = run(x, 4).addressable_shards
    np.testing.assert_allclose(found.data, expected[i], 1e-6)
def say(text):
    sys.stdout.write(f"* {i} {text}\\n")
    sys.stdout.flush()
"""


@pytest.mark.slow
def test_mpi_is_called_by_address(tmp_path):
    script = _NATIVE + """
from maxjax._distributed import group
calls = []
whole = group.Group._run
group.Group._run = lambda self, name, *args: (calls.append(name), whole(self, name, *args))[1]
run(x, 5)
say(f"in Python: {calls}")
from maxjax import profiler
with profiler.trace(sys.argv[1] if len(sys.argv) > 1 else os.environ["TRACE"]):
    run(x, 5)
say(f"while a profile is recorded: {calls.count('all_gather')}")
group.Group._run = whole
jax.distributed.shutdown()
"""
    assert lines(run("mpi", script, devices=1, MAXJAX_COMPILE="always", TRACE=str(tmp_path))) == [
        f"* {i} {line}" for i in range(2)
        for line in ("in Python: []", "while a profile is recorded: 5")]


_EACH_NATIVE = START + """
import os
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
from maxjax._distributed import group
count = jax.device_count()
mesh = jax.make_mesh((count,), ("x",))
around = [(n, (n + 1) % count) for n in range(count)]
bodies = {
    "psum": lambda x: lax.psum(x, "x"), "pmax": lambda x: lax.pmax(x, "x"),
    "all_gather": lambda x: lax.all_gather(x, "x").sum(0),
    "psum_scatter": lambda x: lax.psum_scatter(x, "x", scatter_dimension=0, tiled=True),
    "psum_scatter of columns": lambda x: lax.psum_scatter(
        x, "x", scatter_dimension=1, tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "x", 0, 1, tiled=True),
    "all_to_all of columns": lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "x", around),
    "ppermute of some": lambda x: lax.ppermute(x, "x", around[:1])}
i = jax.process_index()
calls = []
whole = group.Group._run
group.Group._run = lambda self, name, *args: (calls.append(name), whole(self, name, *args))[1]
for width in (8, 1200):      # the first fits into a message
    for dtype in ("float32", "int32", "float16"):
        x = np.arange(4 * count * width).reshape(count, 4, width) % 7
        x = x.astype(dtype)
        if dtype == "float32":
            x[1, 0, 3] = np.nan      # which MPI's maxima would ignore
        spread = jax.make_array_from_callback(
            (4 * count, width), NamedSharding(mesh, P("x")),
            lambda index: x.reshape(4 * count, width)[index])
        expected = {
            "psum": [x.sum(0)] * count, "all_gather": [x.sum(0)] * count,
            "pmax": [x.max(0)] * count,
            "psum_scatter": np.split(x.sum(0), count, 0),
            "psum_scatter of columns": np.split(x.sum(0), count, 1),
            "all_to_all": [np.concatenate(part, 1) for part in x.reshape(
                count, count, 4 // count, width).swapaxes(0, 1)],
            "all_to_all of columns": [np.concatenate(part, 0) for part in x.reshape(
                count, 4, count, -1).transpose(2, 0, 1, 3)],
            "ppermute": np.roll(x, 1, 0),
            "ppermute of some": [x[0] if n == 1 else 0 * x[0] for n in range(count)]}
        for name, body in bodies.items():
            run = jax.jit(jax.shard_map(lambda x: body(x), mesh=mesh, in_specs=P("x"),
                                        out_specs=P("x"), check_vma=False))
            for turn in range(3):
                calls.clear()
                result = run(spread)
                for n, part in zip(range(i * jax.local_device_count(), count),
                                   result.addressable_shards):
                    np.testing.assert_array_equal(part.data, expected[name][n], f"{name} {dtype}")
            is_native = not name.startswith("psum") or dtype != "float16"
            # Who takes no part in a permutation has nothing to do natively.
            if jax.local_device_count() == 1 and not (count > 2 and name.endswith("some")):
                assert (calls == []) == (is_native and bool(os.environ.get("NATIVE"))), (
                    name, dtype, calls)
sys.stdout.write(f"* {i}\\n")
sys.stdout.flush()
jax.distributed.shutdown()
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine, count, devices", [
    ("mpi", 2, 1), ("gloo", 2, 1), pytest.param("mpi", 2, 2, marks=pytest.mark.extended),
    pytest.param("mpi", 4, 1, marks=pytest.mark.extended),
    pytest.param("gloo", 2, 2, marks=pytest.mark.extended)])
def test_each_collective_by_address(engine, count, devices):
    native = {"NATIVE": "1"} if engine == "mpi" else {}
    assert lines(run(engine, _EACH_NATIVE, count, devices, MAXJAX_COMPILE="always", **native)) == [
        f"* {i}" for i in range(count)]


@pytest.mark.slow
def test_a_process_that_hangs_is_named_by_native_loops():
    script = _NATIVE + """
if i == 1:
    time.sleep(60)
try:
    run(x, 5)
except jax.errors.JaxRuntimeError as error:
    assert "process 0 waited in all_" in str(error) and "for process 1" in str(error), error
    say("named")
os._exit(0)
"""
    results = run("mpi", script, devices=1, MAXJAX_COMPILE="always",
                  MAXJAX_COLLECTIVE_TIMEOUT="2")
    assert "* 0 named" in results[0].stdout, results


@pytest.mark.slow
def test_a_process_in_another_program_is_found_by_native_loops():
    script = _NATIVE + """
try:
    run(x, 5) if i == 0 else jax.jit(jax.shard_map(
        lambda x: lax.pmax(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))(x)
    jax.block_until_ready(run(x, 5))
except jax.errors.JaxRuntimeError as error:
    assert "do not run the same program" in str(error), error
    say("found")
os._exit(0)
"""
    results = run("mpi", script, devices=1, MAXJAX_COMPILE="always")
    assert "found" in results[0].stdout, results


@pytest.mark.slow
def test_threads_run_and_ctrl_c_ends_while_native_code_waits():
    script = _NATIVE + """
import signal, threading
if i == 1:
    time.sleep(60)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    run(x, 5)
except KeyboardInterrupt:
    say(f"interrupted {time.monotonic() - begin < 30}")
os._exit(0)
"""
    results = run("mpi", script, devices=1, MAXJAX_COMPILE="always")
    assert "* 0 interrupted True" in results[0].stdout, results
