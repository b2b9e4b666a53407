"""An interrupt at any moment of tracing leaves nothing behind: no trace, option, scope or lock."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
import time
import warnings
from types import FunctionType

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import collection, config, meshes, options, threads
from maxjax._base.interrupts import context_manager
from maxjax._base.source import scopes
from maxjax._ir.runtime import installed
from maxjax._ir.trace import context
from maxjax._runtime import transfer_guard
from maxjax._transforms import backward_logs
from maxjax.experimental import checkify, xla_metadata
from maxjax.experimental import pallas as pl
from maxjax.experimental.pallas import _call, _grid
from maxjax.extend import source_info_util
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
    """What contexts change, of this thread."""
    this = threads.this.number
    return (dict(vars(context)), dict(options._overrides.values), config.trace_state(),
            scopes.names, scopes.names.metadata, scopes.source_line, meshes.around(),
            dict(vars(transfer_guard._state)), dict(vars(_grid._point)), _call._forced,
            backward_logs._current.logs, gc.isenabled(), collection.stopped._inside.get(this),
            threads.unforked._inside.get(this), np.geterr())


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


def check(chosen, most, program=program, least=30):
    expected, clean = np.asarray(program()), state()
    assert context.trace is installed.runtime and gc.isenabled()
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
    assert count >= least


def enters_or_leaves(code):
    """Also the steps of contexts that are generators."""
    return ("/maxjax/" in code.co_filename or "contextlib" in code.co_filename) and (
        code.co_name in ("__enter__", "__exit__", "put_back", "enter", "set_around", "changed")
        or code in GENERATORS)


def generators():
    """The code of the functions under `context_manager`."""
    made = context_manager(generators).__code__
    return {value.__wrapped__.__code__ for value in gc.get_objects()
            if value.__class__ is FunctionType and value.__code__ is made
            and value.__wrapped__.__class__ is FunctionType}


GENERATORS = generators()


def is_own(code):
    return "/maxjax/_" in code.co_filename or "contextlib" in code.co_filename


def test_entries_and_exits_of_contexts():
    check(enters_or_leaves, 60)


def test_moments_of_tracing():
    check(is_own, 40)


@pytest.mark.extended
def test_many_moments_of_tracing():
    check(is_own, 500)


@pytest.mark.extended
def test_all_entries_and_exits():
    check(enters_or_leaves, 600)


# --- each context, and what enters it -------------------------------------------------------------
MESH = maxjax.make_mesh((1,), ("x",), axis_types=(maxjax.sharding.AxisType.Auto,))


@maxjax.custom_jvp
def with_jvp(x):
    return jnp.sin(x)


with_jvp.defjvp(lambda primals, tangents: (with_jvp(*primals), jnp.cos(primals[0]) * tangents[0]))


@maxjax.custom_vjp
def with_vjp(x):
    return jnp.sin(x)


with_vjp.defvjp(lambda x: (with_vjp(x), x), lambda x, g: (jnp.cos(x) * g,))


def checked(x):
    checkify.check(x.sum() > 0, "negative")
    return jnp.log(x)


def summed(x):
    return maxjax.shard_map(lambda x: lax.psum(jnp.sin(x), "x"), mesh=MESH,
                            in_specs=maxjax.P("x"), out_specs=maxjax.P())(x)


def with_constant(x):
    with maxjax.ensure_compile_time_eval():
        constant = jnp.sin(jnp.ones(3)).sum()
    return x * constant


def with_ref(x):
    ref = maxjax.new_ref(jnp.zeros(3))
    ref[...] = x
    ref[...] += 1.0
    return ref[...]


def doubled(x):
    def kernel(x, out):
        out[...] = 2 * x[...] + pl.program_id(0)
    return pl.pallas_call(kernel, maxjax.ShapeDtypeStruct((3,), jnp.float32), grid=(3,),
                          in_specs=[pl.BlockSpec((1,), lambda i: (i,))],
                          out_specs=pl.BlockSpec((1,), lambda i: (i,)), interpret=True)(x)


def called(x):
    return maxjax.pure_callback(lambda x: 2 * np.asarray(x),
                                maxjax.ShapeDtypeStruct(x.shape, x.dtype), x)


def branched(x):
    x = lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)
    x, _ = lax.scan(lambda x, _: (x * 1.5, None), x, None, length=2)
    return lax.while_loop(lambda x: x.sum() < 0, lambda x: x + 1, x)


def exported(x):
    shape = maxjax.export.symbolic_shape("b")
    return maxjax.export.export(maxjax.jit(lambda x: jnp.sin(x)))(
        maxjax.ShapeDtypeStruct(shape, jnp.float32)).call(x)


def jit(function):
    """Traced anew each time."""
    return lambda: maxjax.jit(lambda x: function(x))(X)


PROGRAMS = {
    "jit": jit(jnp.sin), "grad": jit(maxjax.grad(lambda x: jnp.sin(x).sum())),
    "vmap": jit(maxjax.vmap(lambda x: lax.psum(x, "i") * x, axis_name="i")),
    "custom_jvp": jit(maxjax.grad(lambda x: with_jvp(x).sum())),
    "custom_vjp": jit(maxjax.grad(lambda x: with_vjp(x).sum())),
    "checkify": jit(lambda x: checkify.checkify(checked, errors=checkify.all_checks)(x)[1]),
    "shard_map": jit(summed), "shard_map of values": lambda: summed(X),
    "grad of shard_map": jit(maxjax.grad(lambda x: summed(x).sum())),
    "checkpoint": jit(maxjax.grad(lambda x: maxjax.checkpoint(jnp.sin)(x).sum())),
    "ensure_compile_time_eval": jit(with_constant), "refs": jit(with_ref),
    "pallas": jit(doubled), "callback": jit(called), "callback of values": lambda: called(X),
    "control": jit(branched), "export": lambda: exported(X),
    "linearize": lambda: maxjax.linearize(jnp.sin, X)[1](X),
    "compiled": lambda: maxjax.jit(lambda x: jnp.sin(x)).lower(X).compile()(X),
    "device_put": lambda: maxjax.device_put(X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_interrupted_programs_leave_no_state(name):
    check(enters_or_leaves, 6, PROGRAMS[name], least=1)


@pytest.mark.extended
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_entries_and_exits_of_programs(name):
    check(enters_or_leaves, 80, PROGRAMS[name], least=1)


@pytest.mark.extended
@pytest.mark.parametrize("name", PROGRAMS)
def test_moments_of_programs(name):
    check(is_own, 25, PROGRAMS[name], least=1)


CONTEXTS = {
    "enable_x64": lambda: maxjax.enable_x64(True), "disable_jit": maxjax.disable_jit,
    "transfer_guard": lambda: maxjax.transfer_guard("disallow"),
    "transfer_guard of one": lambda: maxjax.transfer_guard_host_to_device("disallow"),
    "named_scope": lambda: maxjax.named_scope("scope"),
    "default_matmul_precision": lambda: maxjax.default_matmul_precision("float32"),
    "default_device": lambda: maxjax.default_device(maxjax.devices()[0]),
    "debug_nans": lambda: maxjax.debug_nans(True),
    "numpy_dtype_promotion": lambda: maxjax.numpy_dtype_promotion("strict"),
    "ensure_compile_time_eval": maxjax.ensure_compile_time_eval,
    "use_abstract_mesh": lambda: maxjax.sharding.use_abstract_mesh(MESH.abstract_mesh),
    "with mesh": lambda: MESH,
    "set_xla_metadata": lambda: xla_metadata.set_xla_metadata(a=1),
    "extend_name_stack": lambda: source_info_util.extend_name_stack("layer"),
    "reset_name_stack": source_info_util.reset_name_stack,
    "explicit": transfer_guard.explicit, "interpreted": _call.interpreted,
    "point of a grid": lambda: _grid.at((1,), (2,)), "logs": backward_logs.collected,
    "stopped": lambda: collection.stopped, "unforked": lambda: threads.unforked,
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)     # of `with mesh`
        yield


def as_program(name):
    def run():
        with CONTEXTS[name]():
            pass
        return X
    return run


@pytest.mark.parametrize("name", CONTEXTS)
def test_interrupted_contexts_leave_no_state(name):
    check(enters_or_leaves, None, as_program(name), least=0)


@pytest.mark.parametrize("name", [*CONTEXTS, "set_mesh"])
def test_contexts_under_errors_of_another_thread(name, seconds=0.3):
    """As Python itself raises them, and `KeyboardInterrupt`: wherever it looks for them."""
    make = CONTEXTS.get(name)
    if make is not None:
        with make():        # some make what they change when they are entered first
            pass
    clean, this, raised = state(), threads.this.number, 0
    asked, ended = threading.Event(), threading.Event()

    def disturb():
        while not ended.is_set():
            if asked.is_set():
                asked.clear()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(this), ctypes.py_object(Stop))
            time.sleep(5e-5)

    def enter():
        for _ in range(1000):
            if make is not None:
                with make():
                    pass
            else:
                # What making it sets, as in JAX, nobody can put back but who has it.
                made = maxjax.sharding.set_mesh.__new__(maxjax.sharding.set_mesh)
                made._previous = meshes.around()
                with made:
                    meshes.set_around(meshes.Around(MESH.abstract_mesh, MESH))

    thread = threading.Thread(target=disturb)
    thread.start()
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            try:
                try:
                    asked.set()
                    while asked.is_set():
                        enter()
                    enter()
                finally:
                    asked.clear()
            except Stop:
                raised += 1
                assert state() == clean, raised
    finally:
        ended.set()
        while True:
            with contextlib.suppress(Stop):
                thread.join()
                break
    assert raised
