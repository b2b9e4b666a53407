"""Pending graphs: recording, execution, and what must never happen."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import signal
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

import maxjax
import maxjax.lax
import maxjax.numpy as jnp
from maxjax._ir.primitive import Primitive, registry
from maxjax._ir.rule_groups import Derivative, Host
from maxjax._runtime import cells
from maxjax._runtime import pending as pending_module
from maxjax._runtime import program as program_module
from maxjax._runtime.cells import pending
from maxjax._runtime.pending import MAX_BYTES, MAX_OPERATIONS

X = np.array([0.5, -1.25, 2.0], np.float32)
ran: list[str] = []


def probe(name, **rules):
    """A test primitive, made once."""
    known = registry.get(name)
    return known or Primitive(name, abstract=lambda x, **params: x, host=Host(reason="a test"),
                              derivative=Derivative(missing="a test"), **rules)


def record(x, *, label):
    ran.append(label)
    return x


def fail(x, *, when):
    if when:
        failing[0] -= 1
        if failing[0] >= 0:
            raise error_to_raise[0]
    return x


failing = [0]
error_to_raise: list[BaseException] = [ValueError("in the middle")]
probe_p = probe("test_probe", evaluate=record)
failing_p = probe("test_failing", evaluate=fail)
pair_p = registry.get("test_pair") or Primitive(
    "test_pair", abstract=lambda x: (x, x), evaluate=lambda x: (record(x, label="pair"), x * 2),
    multiple_results=True, host=Host(reason="a test"),
    derivative=Derivative(missing="a test"))


@pytest.fixture(autouse=True)
def empty():
    """No other test's operations are pending, and no test leaves its primitives behind."""
    pending.flush()
    ran.clear()
    failing[0] = 0
    yield
    pending.flush()


@pytest.fixture(scope="module", autouse=True)
def without_the_tests_primitives():
    yield
    for name in ("test_probe", "test_failing", "test_pair"):
        registry.pop(name, None)


def array(value=X):
    return jnp.asarray(value)


def probed(x, label):
    return probe_p.bind(x, label=label)


# --- recording and running ------------------------------------------------------------------------

def test_nothing_runs_before_a_look():
    x = array()
    y = probed(x, "a")
    z = probed(y * 2, "b")
    assert ran == [] and not y.is_ready() and not z.is_ready()
    np.testing.assert_array_equal(np.asarray(z), X * 2)
    assert ran == ["a", "b"] and y.is_ready() and z.is_ready()
    np.asarray(z), np.asarray(y)
    assert ran == ["a", "b"]


@pytest.mark.parametrize("look", [
    np.asarray, repr, str, lambda y: y.tolist(), lambda y: float(y[0]), lambda y: bool(y[0] > 0),
    lambda y: y.block_until_ready(), lambda y: y.copy_to_host_async(), lambda y: int(y[1]),
    lambda y: y[0].item(), lambda y: list(map(float, y)), lambda y: np.add(y, 1), pickle.dumps,
    lambda y: memoryview(np.asarray(y)), lambda y: f"{y[0]:.2f}", np.from_dlpack, copy.deepcopy])
def test_each_look_runs(look):
    y = probed(array(), "a")
    look(y)
    assert ran == ["a"] and y.is_ready()


@pytest.mark.parametrize("ask", [
    lambda y: y.shape, lambda y: y.dtype, len, lambda y: y.ndim, lambda y: y.is_ready(),
    lambda y: y.devices(), lambda y: y.nbytes, lambda y: y.weak_type, copy.copy,
    lambda y: y.is_deleted(), lambda y: y.reshape(3, 1), lambda y: y + y, lambda y: y[None]])
def test_what_the_type_tells_runs_nothing(ask):
    y = probed(array(), "a")
    ask(y)
    assert ran == [] and not y.is_ready()


def test_a_pending_array_is_awaited():
    async def wait(y):
        return await y
    y = array() + 1
    np.testing.assert_array_equal(np.asarray(asyncio.run(wait(y))), X + 1)


def test_dead_results_are_not_computed():
    x = array()
    dead = probed(x, "dead")
    probed(dead, "dead too")
    used = probed(x, "used")
    result = probed(used, "result")
    del dead, used
    np.asarray(result)
    assert ran == ["used", "result"]


def test_a_result_whose_array_died_is_computed_for_others():
    x = probed(array(), "a")
    y = probed(x, "b")
    del x
    np.asarray(y)
    assert ran == ["a", "b"]


def test_several_results():
    first, second = pair_p.bind(array())
    total = first + second
    assert not first.is_ready()
    np.testing.assert_array_equal(np.asarray(total), X * 3)
    assert ran == ["pair"] and first.is_ready() and second.is_ready()
    np.testing.assert_array_equal(np.asarray(second), X * 2)


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("heavy", [False, True])
def test_one_of_several_results(kept, heavy, monkeypatch):
    if heavy:
        monkeypatch.setattr(cells, "LIGHT_BYTES", -1)
    result = pair_p.bind(array() + 1)[kept]
    np.testing.assert_array_equal(np.asarray(result * 2), (X + 1) * 2 * (kept + 1))
    assert ran == ["pair"]


def test_no_several_results_are_computed_for_nobody():
    pair_p.bind(array())
    np.asarray(array() + 1)
    assert ran == []


def test_an_array_of_one_graph_in_another():
    x = array() + 1
    y = x * 2
    np.asarray(y)
    z = x * 3 + y
    np.testing.assert_array_equal(np.asarray(z), (X + 1) * 5)
    np.testing.assert_array_equal(np.asarray(x), X + 1)


def test_results_wait_without_their_look():
    values = [array() * n for n in range(50)]
    np.asarray(values[10])
    for number, value in enumerate(values):
        assert value.is_ready()
        np.testing.assert_array_equal(np.asarray(value), X * number)


# --- bounds ---------------------------------------------------------------------------------------

def test_a_loop_that_never_looks_is_bounded_in_length():
    x = array()
    for _ in range(3 * MAX_OPERATIONS):
        x = x + 1
        assert len(pending.cells) <= MAX_OPERATIONS
    np.testing.assert_array_equal(np.asarray(x), X + 3 * MAX_OPERATIONS)


def test_a_loop_that_never_looks_is_bounded_in_memory(monkeypatch):
    monkeypatch.setattr(pending_module, "MAX_BYTES", 1 << 20)
    x = jnp.zeros(1 << 16, jnp.float32)      # 256 KB
    most = 0
    for _ in range(50):
        x = x + 1
        most = max(most, pending.bytes)
    assert most <= 1 << 20 < MAX_BYTES
    assert float(x[5]) == 50


def test_intermediate_values_are_freed():
    alive = []
    x = array(np.ones(1 << 16, np.float32))
    for _ in range(5):
        x = x * 2
        alive.append(weakref.ref(x))
    np.asarray(x)
    gc.collect()
    assert [ref() is not None for ref in alive] == [False] * 4 + [True]
    assert not pending.cells


def test_a_dead_chain_is_not_recursive():
    x = array()
    for _ in range(MAX_OPERATIONS - 10):
        x = x + 1
    del x
    gc.collect()
    np.asarray(array() + 1)
    assert not pending.cells


def test_a_long_chain_outside_the_graph_is_not_recursive(monkeypatch):
    """The remainder of an interrupted run is computed from its ancestors."""
    x = array()
    for _ in range(3000):
        x = x + 1
    pending.take()
    np.testing.assert_array_equal(np.asarray(x), X + 3000)


# --- heavy graphs ---------------------------------------------------------------------------------

def test_a_heavy_graph_that_repeats_is_one_program(monkeypatch):
    monkeypatch.setattr(cells, "LIGHT_BYTES", 1 << 10)
    monkeypatch.setattr(program_module, "_graph_programs", {})
    weights = jnp.ones((64, 64), jnp.float32)
    np.asarray(weights)

    def step(w, rate):
        return w - rate * jnp.sin(w @ w)

    for number in range(6):
        weights = step(weights, 0.01 * number)      # a value, and no part of the key
        np.asarray(weights)
    programs = list(program_module._graph_programs.values())
    assert len(programs) == 1
    assert programs[0].interpreted_calls == 6 and programs[0].heat > 0
    reference = np.ones((64, 64), np.float32)
    for number in range(6):
        reference = reference - np.float32(0.01 * number) * np.sin(reference @ reference)
    np.testing.assert_allclose(np.asarray(weights), reference, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("one,two", [
    (lambda x, y: (x * x) + 1, lambda x, y: (x * y) + 1),
    (lambda x, y: (x - y) * 2, lambda x, y: (y - x) * 2),
    (lambda x, y: (x + 1).sum(-1), lambda x, y: (x + 1).sum(-2)),
    (lambda x, y: (x * 2) + y, lambda x, y: (x * 2) + (y + 1)),
    (lambda x, y: (x * 1, y * 1)[0], lambda x, y: (x * 1, y * 1)[1]),
])
def test_graphs_that_differ_are_different_programs(one, two, monkeypatch):
    monkeypatch.setattr(cells, "LIGHT_BYTES", -1)
    monkeypatch.setattr(program_module, "_graph_programs", {})
    x, y = np.arange(9, dtype=np.float32).reshape(3, 3), np.full((3, 3), 0.5, np.float32)
    for fun in (one, two, one):
        np.testing.assert_allclose(
            np.asarray(fun(jnp.asarray(x), jnp.asarray(y))), fun(x, y), rtol=1e-6)


def test_the_wanted_results_belong_to_the_key(monkeypatch):
    monkeypatch.setattr(cells, "LIGHT_BYTES", -1)
    for keep in (False, True, False, True):
        x = array()
        y = x + 1
        z = y * 2
        if not keep:
            del y
        np.testing.assert_array_equal(np.asarray(z), (X + 1) * 2)
        if keep:
            assert y.is_ready()
            np.testing.assert_array_equal(np.asarray(y), X + 1)


def test_an_input_that_is_used_twice(monkeypatch):
    monkeypatch.setattr(cells, "LIGHT_BYTES", -1)
    x, y = array(), array(X + 1)
    for a, b in ((x, x), (x, y), (y, x), (x, x)):
        np.testing.assert_array_equal(
            np.asarray((a - b) * 2 + a), (np.asarray(a) - np.asarray(b)) * 2 + np.asarray(a))


# --- exceptions -----------------------------------------------------------------------------------

@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("error", [ValueError("in the middle"), KeyboardInterrupt()])
def test_an_exception_in_a_run_leaves_the_rest_computable(error, heavy, monkeypatch):
    if heavy:
        monkeypatch.setattr(cells, "LIGHT_BYTES", -1)
    error_to_raise[0] = error
    failing[0] = 1      # the first time only
    x = array()
    before = x + 1
    bad = failing_p.bind(before, when=True)
    dependent = bad * 2
    after = x * 3
    with pytest.raises(type(error)):
        np.asarray(after)
    np.testing.assert_array_equal(np.asarray(after), X * 3)
    np.testing.assert_array_equal(np.asarray(before), X + 1)
    np.testing.assert_array_equal(np.asarray(dependent), (X + 1) * 2)
    np.testing.assert_array_equal(np.asarray(after + before), X * 4 + 1)


def test_what_always_fails_raises_at_each_look():
    error_to_raise[0] = ValueError("in the middle")
    failing[0] = 1 << 30
    bad = failing_p.bind(array() + 1, when=True)
    other = array() + 5
    for _ in range(2):
        with pytest.raises(ValueError, match="in the middle"):
            np.asarray(bad)
    np.testing.assert_array_equal(np.asarray(other), X + 5)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("heavy", [False, True])
def test_interrupts_at_many_moments(heavy, monkeypatch):
    """Wherever an interrupt occurs, in recording or running, the recorded graph stays valid."""
    class Struck(Exception):
        pass

    def strike(*_):
        raise Struck

    if heavy:
        monkeypatch.setattr(cells, "LIGHT_BYTES", -1)
    jitted = maxjax.jit(lambda x: jnp.sin(x) * 2)
    np.asarray(jitted(X))
    delays = np.random.default_rng(0).uniform(1e-6, 1.2e-3, 400)
    struck = 0
    previous = signal.signal(signal.SIGALRM, strike)
    try:
        for delay in delays:
            values = []
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                try:
                    values.append(array())
                    for _ in range(12):
                        values.append(values[-1] * 0.5 + 1)
                    for value in (values[-1], jitted(X), *values):
                        np.asarray(value)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Struck:
                struck += 1
            reference = X
            for value in values:
                np.testing.assert_allclose(np.asarray(value), reference, rtol=1e-6)
                reference = reference * np.float32(0.5) + 1
            assert float(maxjax.grad(lambda x: x * x)(3.0)) == 6
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert struck > 0


def test_an_interrupt_by_signal():
    """Ctrl-C at some moment of a run: nothing is lost."""
    x = array(np.ones(1 << 18, np.float32))
    for _ in range(5):
        values = [x]
        for _ in range(150):
            values.append(jnp.sin(values[-1]))
        timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            timer.start()
            try:
                np.asarray(values[-1])
                timer.join()
            except KeyboardInterrupt:
                pass
        except KeyboardInterrupt:
            pass
        finally:
            try:
                timer.join()
            except KeyboardInterrupt:
                pass
            signal.signal(signal.SIGINT, previous)
    expected = np.ones(1, np.float32)
    for number in range(150):
        if number % 50 == 0:
            np.testing.assert_allclose(np.asarray(values[number])[:1], expected, rtol=1e-5)
        expected = np.sin(expected)
    np.testing.assert_allclose(np.asarray(values[-1])[:1], expected, rtol=1e-5)


# --- memory ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("use", [
    lambda a: jnp.asarray(a), lambda a: jnp.array(a), lambda a: jnp.asarray(a) * 1,
    lambda a: jnp.add(a, 0), lambda a: jnp.ravel(jnp.asarray(a)), lambda a: jnp.sin(a) * 0
    + a, lambda a: jnp.asarray(X) * a / X, lambda a: a * jnp.asarray(X) / X,
    lambda a: jnp.where(True, a, 0), lambda a: jnp.concatenate([a, a])[:3],
    lambda a: jnp.zeros(3).at[:].set(a), lambda a: maxjax.jit(lambda x: x)(a),
    lambda a: maxjax.jit(lambda x: x.reshape(3, 1))(a).reshape(3),
    lambda a: maxjax.vmap(lambda x: x)(a), lambda a: maxjax.vmap(lambda x: x + 0)(a),
    lambda a: maxjax.grad(lambda x: jnp.sum(x * a))(a), lambda a: maxjax.jvp(
        lambda x: x, (a,), (a,))[1], lambda a: maxjax.vjp(lambda x: x, a)[1](a)[0],
    lambda a: maxjax.lax.mul(a, np.ones(3, np.float32)), lambda a: jnp.asarray(a)[::1],
    lambda a: jnp.broadcast_to(a, (1, 3))[0], lambda a: jnp.stack([a])[0],
    lambda a: jnp.take(a, np.arange(3))])
def test_a_later_write_to_the_callers_array_changes_nothing(use):
    mine = X.copy()
    result = use(mine)
    mine[:] = 99
    np.testing.assert_allclose(np.asarray(result), X, rtol=1e-6)


def test_a_later_write_to_indices_changes_nothing():
    where = np.array([2, 0, 1])
    taken, jitted = array()[where], maxjax.jit(lambda x: x[where])
    first = jitted(X)
    where[:] = 0
    np.testing.assert_array_equal(np.asarray(taken), X[[2, 0, 1]])
    np.testing.assert_array_equal(np.asarray(first), X[[2, 0, 1]])


def test_numpy_views_are_read_only_and_share():
    x = array() + 1
    view = np.asarray(x)
    assert not view.flags.writeable and np.shares_memory(view, np.asarray(x))
    with pytest.raises(ValueError):
        view[0] = 3
    mine = np.array(x)
    mine[:] = 0
    np.testing.assert_array_equal(np.asarray(x), X + 1)
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(TypeError):
        x[0] = 1


@pytest.mark.parametrize("dtype", [
    "bool", "int8", "uint16", "int32", "float16", "float32", "complex64"])
def test_dlpack_shares_the_memory(dtype):
    values = np.array([[0, 1, 1], [1, 0, 0]]).astype(dtype)
    x = jnp.asarray(values)
    out = np.from_dlpack(x)
    np.testing.assert_array_equal(out, values)
    assert out.dtype == values.dtype and np.shares_memory(out, np.asarray(x))
    transposed = np.from_dlpack(x.T)
    np.testing.assert_array_equal(transposed, values.T)
    if hasattr(jnp, "from_dlpack"):
        back = jnp.from_dlpack(values)
        np.testing.assert_array_equal(np.asarray(back), values)
        assert back.dtype == values.dtype


def test_an_exported_array_is_not_written_to():
    x = array() + 1
    exported = np.from_dlpack(x)
    if exported.flags.writeable:
        exported[:] = 7
        np.testing.assert_array_equal(np.asarray(x), X + 1)


@pytest.mark.parametrize("value", [
    X, np.float32(1.5), np.arange(4, dtype=np.int8), np.zeros((0, 2), bool),
    np.array([1 + 2j], np.complex64), X.astype(ml_dtypes.bfloat16)])
def test_pickle_and_copy(value):
    x = jnp.asarray(value)
    for again in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert type(again) is type(x) and again.aval is x.aval
        np.testing.assert_array_equal(np.asarray(again), value)
    weak = jnp.asarray(1.5)
    assert pickle.loads(pickle.dumps(weak)).weak_type == weak.weak_type


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: x.copy(), jnp.array])
@pytest.mark.parametrize("make", [array, lambda: array() * 2, lambda: maxjax.random.key(1),
                                  lambda: maxjax.device_put(array(), maxjax.devices()[0])])
def test_a_copy_is_there_when_the_array_is_deleted(make, copied):
    x = make()
    again, expected = copied(x), repr(make())
    assert again is not x and again.sharding == x.sharding and again.committed == x.committed
    x.delete()
    assert not again.is_deleted() and repr(again) == expected


def test_pickle_of_a_pending_array_and_a_view():
    x = pickle.loads(pickle.dumps((array() + 1)[::2]))
    np.testing.assert_array_equal(np.asarray(x), (X + 1)[::2])


# --- deletion -------------------------------------------------------------------------------------

@pytest.mark.parametrize("use", [
    np.asarray, lambda x: np.asarray(x + 1), float, lambda x: x.devices(),
    lambda x: maxjax.jit(lambda y: y * 2)(x), pickle.dumps])
def test_a_deleted_array_cannot_be_used(use):
    x = jnp.asarray(1.5) + 1
    x.delete()
    assert x.is_deleted() and x.shape == ()
    with pytest.raises(RuntimeError, match="Array has been deleted with shape"):
        use(x)


def test_deleting_a_pending_operand_leaves_its_dependents():
    x = array() + 1
    y = x * 2
    x.delete()
    np.testing.assert_array_equal(np.asarray(y), (X + 1) * 2)


def test_a_deleted_array_can_be_printed():
    x = array() + 1
    x.delete()
    try:
        text = repr(x)
    except RuntimeError as error:
        text = str(error)
    assert "deleted" in text


@pytest.mark.skipif(not hasattr(maxjax, "device_put"), reason="device_put is not there yet")
def test_device_put_and_get():
    tree = {"a": X, "b": (1.5, None)}
    there = maxjax.device_put(tree)
    assert set(there) == {"a", "b"}
    X_copy = maxjax.device_get(there)
    assert isinstance(X_copy["a"], np.ndarray)
    np.testing.assert_array_equal(X_copy["a"], X)
    x = maxjax.device_put(X, maxjax.devices()[0])
    assert x.committed and x.devices() == {maxjax.devices()[0]}
    assert (x + 1).committed
