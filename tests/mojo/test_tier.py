"""Programs on the Mojo backend as users run them, in processes of their own.

The pack is built once, in the user's cache; what a test builds goes to a cache of the test's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.mojo import toolchain
from maxjax._max.mojo.backend import MojoBackend
from maxjax._max.mojo.emitter import HEADER
from maxjax._max.mojo.forms import Form
from maxjax._max.mojo.store import KernelStore
from maxjax._runtime.program import Program
from tests import ROOT
from tests.support import mojo_programs, trace_processor

pytestmark = [
    pytest.mark.slow, pytest.mark.xdist_group("mojo"),
    pytest.mark.skipif(sys.platform != "linux", reason="provoked with Linux's means")]

DRIVER = "MODULAR_MOJO_MAX_DRIVER_PATH"  # names another compiler

# Every script begins with this. The graph backend fails, so that no test waits for MAX.
PRELUDE = """
import os, signal, sys, threading, time, warnings
import numpy as np
warned = []
warnings.showwarning = lambda message, *rest: warned.append(str(message))
warnings.simplefilter("always")
import maxjax
import maxjax.numpy as jnp
from maxjax import debug, lax
from maxjax._base import config
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.mojo import store
from maxjax._runtime.tiering import tiering

class NoCompiler:
    cache = ArtifactCache()
    def submit(self, key, program, done, priority, place):
        done(None, "the graph compiler is off")
    def wait(self, job, progress):
        pass
tiering.backends["graph"]._service = NoCompiler()

builds, built = [], []      # begun, and done
build_library = store.build_library
def counted(source, *rest, **options):
    builds.append(source)
    build_library(source, *rest, **options)
    built.append(source)
store.build_library = counted

def assert_close(actual, expected, tolerance=1e-5):
    actual, expected = maxjax.tree.leaves(actual), maxjax.tree.leaves(expected)
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (ours, theirs)
        np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64),
                                   rtol=tolerance, atol=tolerance)

def state(function, compiled=None, interpreted=0):
    found = debug.statistics(function)
    assert found.state == "compiled" and found.interpreted_calls == interpreted, found
    assert compiled in (None, found.compiled_calls), found
"""


# --- programs whose kernels are built once for all tests ------------------------------------------

def dense(x, w, b):
    return jnp.tanh(x @ w + b)


def interrupted(a, b):
    """A host step between two pieces."""
    return jnp.sum(maxjax.scipy.special.gammainc(a * a + 1, jnp.ones_like(a)) * 3 @ b, axis=0)


def scanned(state, xs):
    return lax.scan(lambda c, x: (jnp.sin(c + x), c * x), state, xs)


def looped(x):
    def body(state):
        count, x = state
        return count + 1, lax.cond(count % 2 == 0, lambda x: x * 3 + 1, lambda x: x / 2, x)
    return lax.while_loop(lambda state: jnp.sum(state[1]) < 100, body, (0, x))


def mixed(x):
    """Temporaries in the arena, an argument as a result, a constant as a result."""
    y = jnp.exp(x)
    z = y @ y
    return x, z @ y, jnp.max(z, axis=1), jnp.ones(3, np.float32)


def scaled(x):
    return jnp.where(x > 0, x * 2, x + x)


def total(x):
    return jnp.sum(x * x, axis=1)


def inverted(x):
    return ~x


def wide(x, y):
    """Enough work for two threads."""
    return jnp.exp(jnp.sin(x) * jnp.cos(y))


def f32(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def arguments() -> dict[str, list[tuple[Any, ...]]]:
    """Arguments of each program above, for some signatures."""
    scaled_dtypes = ["float32", "float64", "bfloat16", "float16", "uint64", "int8"]
    return {
        "dense": [(f32(8, 4), f32(4, 4), f32(4))],
        "interrupted": [(f32(4, 4), f32(4, 3))],
        "scanned": [(f32(200), f32(7, 200))],
        "looped": [(f32(200) + 2,)],
        "mixed": [(f32(4, 4),)],
        "scaled": [(np.ones(shape, jnp.dtype(name)),) for name in scaled_dtypes
                   for shape in ((3, 5), (), (0, 3))],
        "total": [(f32(6, 8),)],
        "inverted": [(np.array([True, False, True]),), (np.array(True),)],
        "wide": [(f32(400, 1000), f32(400, 1000))],
    }


def kernels() -> list[Form]:
    backend = MojoBackend()
    forms: dict[Form, None] = {}
    with maxjax.enable_x64(True):
        for name, signatures in arguments().items():
            for args in signatures:
                operands = tuple(jnp.asarray(x) for x in args)
                closed = maxjax.jit(globals()[name])._lookup(operands, {}).closed
                program = Program(closed)
                for plan in backend.prepare(program.opened.jaxpr).plans.values():
                    forms.update(plan.kernels)
    return list(forms)


@pytest.fixture(scope="session")
def pack_only(tmp_path_factory) -> Path:
    """A cache with the pack and nothing else."""
    folder = tmp_path_factory.mktemp("pack") / "cache"
    folder.mkdir(mode=0o700)
    pack = mojo_programs.pack()
    cache = pack.libraries.cache
    for unit in pack.units:
        path = cache.lookup(unit.key)
        assert path is not None, f"{unit.name} is not kept"
        for name in (path.name, path.name.partition("-")[0] + ".key"):
            shutil.copy2(cache.directory / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def warm(pack_only, tmp_path_factory) -> Path:
    """A cache with the pack and the kernels of the programs above."""
    folder = tmp_path_factory.mktemp("warm") / "cache"
    shutil.copytree(pack_only, folder)
    error = KernelStore(HEADER, ArtifactCache(folder), per_library=256).build(kernels())
    assert error is None, error
    return folder


def run(script: str, cache: Path, mode: str = "always", **environment: str) -> list[str]:
    """What a script prints, run in a process of its own with the names of this file."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)], capture_output=True, text=True,
        timeout=300, check=False,
        env={**os.environ, "MAXJAX_COMPILE": mode, "MAXJAX_BACKEND": "mojo",
             "MAXJAX_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT),
             **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


# --- builds, and doing without --------------------------------------------------------------------

FIRST = """
import jax

def network(xp):
    return lambda x, w, b: xp.tanh(x @ w + b) * 2

def normal(size):
    rng = np.random.default_rng(size)
    return [rng.standard_normal(shape).astype(np.float32) for shape in (
        (size, 64), (64, 512), (512,))]

f = maxjax.jit(network(jnp))
assert_close(f(*normal(128)), jax.jit(network(jax.numpy))(*normal(128)))
assert len(builds) == 1, len(builds)
assert_close(f(*normal(100)), jax.jit(network(jax.numpy))(*normal(100)))
other = maxjax.jit(lambda x, w, b: jnp.tanh(x @ w + b) * 3)
assert_close(other(*normal(128)), jax.jit(network(jax.numpy))(*normal(128)) * 1.5)
assert len(builds) == 1, "another size or constant was built"
state(f, 2), state(other, 1)
assert not warned, warned
"""

SECOND = """
rng = np.random.default_rng(0)
x, w, b = [rng.standard_normal(shape).astype(np.float32) for shape in (
    (300, 64), (64, 512), (512,))]
f = maxjax.jit(lambda x, w, b: jnp.tanh(x @ w + b) * 2)
assert_close(f(x, w, b), np.tanh(x @ w + b) * 2)
state(f, 1)
# A new program, whose kernel is the other's: it too begins compiled.
new = maxjax.jit(lambda b, x: jnp.tanh(jnp.cumsum(x, axis=0) + b) * 5)
assert_close(new(b, x @ w), np.tanh(np.cumsum(x @ w, axis=0) + b) * 5, 1e-3)
state(new, 1)
# A small program is interpreted: planning it would take longer than it takes.
small = maxjax.jit(lambda x, w, b: jnp.tanh(x @ w + b) * 2)
small(x[:2], w[:, :4], b[:4])
assert debug.statistics(small).interpreted_calls == 1
assert not builds and not warned, (builds, warned)
"""


def test_kernels_are_built_once_and_serve_other_sizes_constants_programs_processes(
        pack_only, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(pack_only, cache)
    run(FIRST, cache)
    run(SECOND, cache, "auto")


def test_a_hot_program_is_compiled_in_the_background(warm):
    run("""
        from tests.mojo.test_tier import wide, f32
        tiering.HOT_NANOSECONDS = 0
        tiering.LOOKUP_NANOSECONDS = tiering.EAGER_LOOKUP_SECONDS = 1 << 62
        tiering.LEAST_LOOKUP_NANOSECONDS = 1 << 62
        f, args = maxjax.jit(wide), [f32(400, 1000)] * 2
        expected = f(*args)
        for _ in range(200):
            assert_close(f(*args), expected)
            if debug.statistics(f).compiled_calls:
                break
            time.sleep(0.05)
        found = debug.statistics(f)
        assert found.state == "compiled" and found.interpreted_calls >= 2, (found, builds)
        assert found.compile_seconds > 0 and not builds and not warned
        """, warm, "auto")


def test_perfetto_shows_compiles_that_overlap(warm, tmp_path):
    run("""
        from tests.mojo.test_tier import wide, interrupted, f32
        tiering.HOT_NANOSECONDS = 0
        tiering.LOOKUP_NANOSECONDS = tiering.EAGER_LOOKUP_SECONDS = 1 << 62
        calls = [(maxjax.jit(wide), [f32(400, 1000)] * 2),
                 (maxjax.jit(interrupted), [f32(4, 4), f32(4, 3)])]
        with maxjax.profiler.trace("FOLDER"):
            for _ in range(200):
                for f, args in calls:
                    f(*args).block_until_ready()
                if all(debug.statistics(f).compiled_calls for f, _ in calls):
                    break
                time.sleep(0.05)
        """.replace("FOLDER", str(tmp_path)), warm, "auto")
    if trace_processor.missing():
        pytest.skip(trace_processor.missing())
    path, = tmp_path.rglob("*.trace.json.gz")
    with trace_processor.opened(path) as profile:
        assert trace_processor.lost(profile) == {}
        found = {(row.category, row.name) for row in profile.query(
            "select category, name from slice where dur >= 0")}
    assert {("compile", "compile wide"), ("compile", "compile interrupted"),
            ("plan", "plan wide"), ("trace", "trace wide"), ("tier 0", "wide (tier 0)"),
            ("tier 1", "wide (tier 1)"), ("tier 1", "interrupted (tier 1)"),
            ("host step", "host step 1"), ("compiled piece", "compiled piece 2")} <= found


def test_two_threads_compile_and_call_at_once(pack_only, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(pack_only, cache)
    run("""
        f = maxjax.jit(lambda x: jnp.sin(x) * 2 + x)
        g = maxjax.jit(lambda x: jnp.cos(x) - x)
        x = np.linspace(-2, 2, 10000, dtype=np.float32)
        barrier, failures = threading.Barrier(4), []

        def work(function, expected):
            try:
                barrier.wait()
                for _ in range(20):
                    assert_close(function(x), expected)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=args) for args in 2 * [
            (f, np.sin(x) * 2 + x), (g, np.cos(x) - x)]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures
        # No kernel twice; one that is being built is given up for one that somebody waits for.
        assert len(built) <= 2, built
        state(f), state(g)
        # Two threads may both trace a function, and then one call is of the program not kept.
        assert all(debug.statistics(h).compiled_calls in (39, 40) for h in (f, g))
        assert not warned, warned
        """, cache)


# --- what runs ------------------------------------------------------------------------------------

def test_programs_agree_with_tier_0(warm):
    run("""
        from tests.mojo import test_tier as programs
        with maxjax.enable_x64(True):
            for name, signatures in programs.arguments().items():
                function = maxjax.jit(getattr(programs, name))
                for args in signatures:
                    compiled = function(*args)
                    with config.compile_mode("never"):
                        assert_close(compiled, function(*args), 1e-2 if "16" in str(
                            args[0].dtype) else 1e-5)
                found = debug.statistics(function)
                assert found.compiled_calls and found.state == "compiled", (name, found)
        assert config.check_tiers.value and not builds and not warned, (builds, warned)
        """, warm, MAXJAX_CHECK_TIERS="1")


def test_programs_are_cut_into_the_pieces_expected(warm):
    run("""
        from tests.mojo.test_tier import looped, scanned, interrupted, arguments
        with maxjax.enable_x64(True):
            for function in (looped, scanned):
                args, = arguments()[function.__name__]
                found = debug.explain(function, *args, source=True)
                assert [place for place, _, _ in found.pieces] == ["MAX"], found
                assert found.backend == "mojo" and found.cached, found
                assert "@export" in str(found) and "tape_" in found.source.partition("calls:")[2]
            args, = arguments()["interrupted"]
            found = debug.explain(interrupted, *args)
            assert [place for place, _, _ in found.pieces] == ["MAX", "host", "MAX"], found
        """, warm)


def test_arguments_of_all_sorts(warm):
    run("""
        import ml_dtypes
        from tests.mojo.test_tier import inverted, scaled, total
        f, g, h = maxjax.jit(scaled), maxjax.jit(total), maxjax.jit(inverted)
        x = np.arange(-20, 28, dtype=np.float32).reshape(6, 8)
        sorts = {
            "transposed": np.ascontiguousarray(x.T).T, "strided": np.repeat(x, 2, axis=1)[:, ::2],
            "reversed": np.ascontiguousarray(x[::-1])[::-1],
            "broadcast": np.broadcast_to(x[0], (6, 8))}
        misaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
        misaligned[...] = x
        sorts["misaligned"] = misaligned
        sorts["read-only"] = x.copy()
        sorts["read-only"].flags.writeable = False
        for name, value in sorts.items():
            before = value.copy()
            assert_close(g(value), np.sum(before * before, axis=1))
            np.testing.assert_array_equal(value, before)
        state(g, len(sorts))
        for dtype in ("float32", "bfloat16", "float16", "int8"):
            for value in (np.ones((3, 5)), np.float64(3), np.zeros((0, 3))):
                value = np.asarray(value, jnp.dtype(dtype))
                assert_close(f(value), value * np.asarray(2, value.dtype))
        with maxjax.enable_x64(True):
            big = np.full((3, 5), 2**63 + 5, np.uint64)
            np.testing.assert_array_equal(np.asarray(f(big)), big + big)
            np.testing.assert_array_equal(np.asarray(f(2.5 * np.ones((3, 5)))), 5.0)
        np.testing.assert_array_equal(
            np.asarray(h(np.array([True, False, True]))), [False, True, False])
        assert np.asarray(h(np.array(True))) == False
        state(h, 2)
        assert not builds and not warned, (len(builds), warned)
        """, warm)


def test_results_are_their_own(warm):
    """They share no memory with the arena nor, unless it is an argument, with another call."""
    run("""
        from tests.mojo.test_tier import mixed
        f = maxjax.jit(mixed)
        args = [np.full((4, 4), k / 4, np.float32) for k in range(6)]
        results = [f(x) for x in args]
        for x, (same, product, largest, ones) in zip(args, results):
            y = np.exp(x)
            assert_close((same, product, largest, ones),
                         (x, y @ y @ y, np.max(y @ y, axis=1), np.ones(3, np.float32)))
        program = f._lookup((args[0],), {}).closed.made.programs[()]
        first, second = program.compiled([args[1]]), program.compiled([args[1]])
        assert first[0] is args[1]
        for a, b in zip(first[1:3], second[1:3]):
            assert a.flags.writeable and a.flags.owndata and not np.shares_memory(a, b)
        # What the caller does with his array later does not reach the results.
        mine = args[2].copy()
        result = f(mine)
        mine[...] = 9
        assert_close(result[0], args[2])
        # Nor does what he does with a result's NumPy array reach the next call's.
        np.array(f(args[2])[3])[...] = 7
        assert_close(f(args[2])[3], np.ones(3, np.float32))
        """, warm)


def test_donated_arguments(warm):
    run("""
        from tests.mojo.test_tier import total
        f = maxjax.jit(total, donate_argnums=0)
        for scale in (1, 2, 3):
            x = jnp.full((6, 8), np.float32(scale))
            assert_close(f(x), np.full(6, 8.0 * scale * scale, np.float32))
        state(f, 3)
        """, warm)


def test_a_fork_has_threads_of_its_own(warm):
    run("""
        from tests.mojo.test_tier import f32, wide
        f, args = maxjax.jit(wide), [f32(400, 1000)] * 2
        expected = np.exp(np.sin(args[0]) * np.cos(args[1]))
        assert_close(f(*args), expected)
        assert len(os.sched_getaffinity(0)) == 1 or "threads" in debug.explain(f, *args).source
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(60)
                assert_close(f(*args), expected)
                state(f, 2)
                os._exit(0)
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert_close(f(*args), expected)
        """, warm)


# --- what fails -----------------------------------------------------------------------------------

def compiler(folder: Path, commands: str) -> str:
    """A shell script in the compiler's place."""
    path = folder / "mojo"
    path.write_text(f"#!/bin/sh\necho run >> {folder}/runs\n{commands}\n")
    path.chmod(0o755)
    return str(path)


FALLBACK = """
f = maxjax.jit(lambda x: jnp.sin(x) * 2)
g = maxjax.jit(lambda x: jnp.cos(x) * 3)
x = np.linspace(-2, 2, 1000, dtype=np.float32)
for _ in range(3):
    assert_close(f(x), np.sin(x) * 2)
    assert_close(g(x), np.cos(x) * 3)
for function in (f, g):
    for _ in range(100):
        found = debug.statistics(function)
        if found.reason not in (None, "it is being compiled"):
            break
        time.sleep(0.05)
        function(x)
    assert found.state == "interpreted" and found.compiled_calls == 0, found
    assert {expected!r} in found.reason, found
    assert ("the graph compiler is off" in found.reason) == {turns!r}, found
    assert found.reason in str(debug.explain(function, x))
print(*warned, sep="\\n")
"""


@pytest.mark.parametrize("mode", ["always", "auto"])
@pytest.mark.parametrize("commands, expected", [
    (None, "no Mojo compiler"),
    ("echo 'mojo: error: no such thing'; exit 1", "the Mojo compiler failed: no such thing"),
    ("kill -SEGV $$", "the Mojo compiler was ended by SIGSEGV")])
def test_without_native_code_programs_stay_interpreted(pack_only, tmp_path, mode, commands,
                                                       expected):
    cache = tmp_path / "cache"
    shutil.copytree(pack_only, cache)
    driver = str(tmp_path / "none") if commands is None else compiler(tmp_path, commands)
    hot = ("tiering.HOT_NANOSECONDS = 0\nfor backend in tiering.backends.values():\n"
           "    backend.DISPATCH_NANOSECONDS = 0\n")
    # A missing compiler does not make a program wait minutes for the graph backend.
    turns = commands is not None or mode == "auto"
    said = run(hot + FALLBACK.replace("{expected!r}", repr(expected)).replace(
        "{turns!r}", repr(turns)), cache, mode, **{DRIVER: driver})
    assert len(said) == 1 and expected in said[0], said


def test_a_cache_that_cannot_be_written_costs_a_warning_only(tmp_path):
    (tmp_path / "file").write_text("")
    said = run("""
        f = maxjax.jit(lambda x: jnp.sin(x) * 2)
        x = np.linspace(-2, 2, 1000, dtype=np.float32)
        for _ in range(2):
            assert_close(f(x), np.sin(x) * 2)
        state(f, 2)
        print(*warned, sep="\\n")
        """, tmp_path / "file" / "cache")
    assert len(said) == 1 and "not kept for other processes" in said[0], said


def test_on_a_full_disk_what_is_compiled_ahead_of_time_stays_interpreted(pack_only, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(pack_only, cache)
    driver = compiler(tmp_path, "echo 'LLVM ERROR: IO failure: No space left on device'; exit 1")
    said = run("""
        x = np.linspace(-2, 2, 1000, dtype=np.float32)
        f = maxjax.jit(lambda x: jnp.sin(x) * 2).lower(x).compile()
        for _ in range(3):
            assert_close(f(x), np.sin(x) * 2)
        print(*warned, sep="\\n")
        """, cache, "auto", **{DRIVER: driver})
    assert len(said) == 1 and "no space left" in said[0], said


def test_an_interrupted_wait_leaves_the_process_usable(pack_only, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(pack_only, cache)
    real = Path(toolchain.compiler_folder()) / "modular" / "bin" / "mojo"
    driver = compiler(tmp_path, f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done\n"
                                f'exec {real} "$@"')
    run(f"""
        def interrupt():
            while not os.path.exists("{tmp_path}/runs"):
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)
        f = maxjax.jit(lambda x: jnp.sin(x) * 2 + x / 3)
        x = np.linspace(-2, 2, 1000, dtype=np.float32)
        expected = np.sin(x) * 2 + x / np.float32(3)
        threading.Thread(target=interrupt).start()
        try:
            f(x)
            raise AssertionError("it was not interrupted")
        except KeyboardInterrupt:
            pass
        with config.compile_mode("never"):
            assert_close(f(x), expected)
        assert_close(jnp.cos(x) + 1, np.cos(x) + 1)
        open("{tmp_path}/go", "w").close()
        while debug.statistics(f).state != "compiled":
            time.sleep(0.05)
        assert_close(f(x), expected)
        assert debug.statistics(f).compiled_calls == 1 and len(builds) == 1
        assert not warned, warned
        """, cache, MAXJAX_STANDARD_LIBRARY="small", **{DRIVER: driver})
