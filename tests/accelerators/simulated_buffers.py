"""Arrays, transfers and programs on two simulated accelerators; run by ``test_simulated``."""

from __future__ import annotations

import copy
import gc
import pickle

import ml_dtypes
import numpy as np
import pytest

import maxjax as jax
import maxjax.numpy as jnp
from maxjax._base import config
from maxjax._max import device_memory
from maxjax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding
from tests.accelerators.stand_in import compiled_at_once, gpu  # noqa: F401  (a fixture)

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def at_once(compiled_at_once):  # noqa: F811
    for device in jax.devices("gpu"):
        device.accelerator.transfers = device_memory.Transfers()


def moved(number: int = 0) -> tuple[int, int]:
    transfers = gpu(number).accelerator.transfers
    return transfers.to_device, transfers.to_host


def test_between_calls_nothing_moves():
    x = jax.device_put(X, gpu())
    assert moved() == (1, 0)
    f = jax.jit(lambda x: jnp.tanh(x) * 2 + x)
    y = f(f(f(x)))
    assert moved() == (1, 0)
    expected = X
    for _ in range(3):
        expected = np.tanh(expected) * 2 + expected
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-6)
    assert moved() == (1, 1)
    assert str(y) == str(np.asarray(y)) and float(y[0, 0]) == 0
    assert moved() == (1, 1)        # the first look is kept


def test_waiting_copies_nothing():
    x = jax.device_put(X, gpu())
    y = jax.jit(jnp.sin)(x).block_until_ready()
    jax.block_until_ready([x, y, y + 1])
    assert moved() == (1, 1)        # an operation outside jit is the host's
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x.block_until_ready()


def test_where_arrays_are():
    x = jax.device_put(X, gpu(1))
    assert x.devices() == {gpu(1)} and x.device is gpu(1) and x.committed
    assert x.sharding == SingleDeviceSharding(gpu(1))
    y = jax.jit(jnp.sin)(x)
    assert y.devices() == {gpu(1)} and y.committed and not y.is_deleted()
    shard, = y.addressable_shards
    assert shard.device is gpu(1) and shard.data.devices() == {gpu(1)}
    assert (y + 1).devices() == {gpu(1)}
    assert jax.jit(jnp.sin)(y + 1).devices() == {gpu(1)}
    back = jax.device_put(y, jax.devices("cpu")[0])
    assert back.devices() == {jax.devices("cpu")[0]}
    np.testing.assert_array_equal(back, y)
    across = jax.device_put(y, gpu(0))
    assert across.devices() == {gpu(0)}
    np.testing.assert_array_equal(across, y)


@pytest.mark.parametrize("value", [
    np.float32(2.5), np.zeros((0, 3), np.int8), np.array(True), np.array([True, False]),
    np.array([1 + 2j, 3 - 1j], np.complex64), np.array([1, 2], ml_dtypes.bfloat16),
    np.array([1, 2], ml_dtypes.float8_e4m3fn), np.arange(12, dtype=np.uint16).reshape(3, 4).T])
def test_values_of_every_kind_come_back(value):
    x = jax.device_put(value, gpu())
    assert x._value is None
    assert np.asarray(x).dtype == value.dtype
    np.testing.assert_array_equal(np.asarray(x), value)


def test_random_keys():
    key = jax.device_put(jax.random.key(3), gpu())
    np.testing.assert_array_equal(jax.random.key_data(key),
                                  jax.random.key_data(jax.random.key(3)))
    drawn = jax.jit(lambda key: jax.random.normal(key, (5,)))(key)
    assert drawn.devices() == {gpu()}
    np.testing.assert_allclose(drawn, jax.random.normal(jax.random.key(3), (5,)), rtol=1e-6)


def test_the_host_may_write_to_what_it_gave():
    given = X.copy()
    x = jax.device_put(given, gpu())
    given[:] = 7
    np.testing.assert_array_equal(x, X)


def test_donation_deletes():
    x = jax.device_put(X, gpu())
    held = gpu().memory_stats()["bytes_in_use"]
    y = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match="deleted"):
        jax.jit(lambda x: x + 1)(x)
    np.testing.assert_array_equal(y, X * 2)
    assert gpu().memory_stats()["bytes_in_use"] == held


def test_memory_statistics():
    gc.collect()
    before = gpu().memory_stats()["bytes_in_use"]
    x = jax.device_put(np.zeros(1000, np.float32), gpu())
    assert gpu().memory_stats()["bytes_in_use"] == before + 4000
    assert gpu().memory_stats()["peak_bytes_in_use"] >= before + 4000
    assert any(x is y for y in jax.live_arrays("gpu"))
    assert not any(x is y for y in jax.live_arrays("cpu"))
    x.delete()
    assert gpu().memory_stats()["bytes_in_use"] == before and x.is_deleted()
    assert not any(x is y for y in jax.live_arrays("gpu"))
    assert jax.devices("cpu")[0].memory_stats() is None


def test_constants_and_host_arguments_move_once():
    table = np.linspace(0, 1, 3).astype(np.float32)
    f = jax.jit(lambda x, y: x * jnp.asarray(table) + y)
    x = jax.device_put(X, gpu())
    y = jnp.asarray(X)
    first = f(x, y)
    after_first = moved()
    np.testing.assert_allclose(f(x, y), X * table + X)
    assert first.devices() == {gpu()}
    assert moved() == (after_first[0], 1)


def test_a_host_step_is_moved_to_and_named():
    f = jax.jit(lambda x: jnp.sort(jnp.sin(x)) * 2)
    x = jax.device_put(X[:, ::-1], gpu())
    y = f(x)
    assert moved() == (2, 1)
    np.testing.assert_allclose(y, np.sort(np.sin(X)) * 2, rtol=1e-6)
    text = str(jax.debug.explain(f, x))
    assert "on the host" in text and "sort: maxjax's sorting kernel" in text and "gpu:0" in text


def test_a_training_step_with_convolutions_stays_there():
    def loss(weights, x):
        y = jax.lax.conv_general_dilated(x, weights, (1, 1), "SAME",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = jax.lax.reduce_window(jax.nn.relu(y), -jnp.inf, jax.lax.max, (1, 2, 2, 1),
                                  (1, 2, 2, 1), "VALID")
        y = jax.lax.dynamic_update_slice(y, y[:, :1] * 2, (0, 1, 0, 0))
        return jnp.mean(jnp.cumsum(y, axis=1) ** 2)

    def step(weights, x):
        return weights - 0.1 * jax.grad(loss)(weights, x)

    generator = np.random.default_rng(0)
    start = generator.standard_normal((3, 3, 2, 4)).astype(np.float32)
    images = generator.standard_normal((2, 8, 8, 2)).astype(np.float32)
    expected = start
    for _ in range(3):
        expected = np.asarray(jax.jit(step)(expected, images))
    weights, x = jax.device_put((start, images), gpu())
    there = jax.jit(step, donate_argnums=0)
    assert "on the host" not in str(jax.debug.explain(there, weights, x))
    before = moved()
    for _ in range(3):
        donated, weights = weights, there(weights, x)
        assert donated.is_deleted()
    assert moved() == before
    np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-6)
    assert moved() == (before[0], before[1] + 1)


def test_control_flow_and_callbacks():
    x = jax.device_put(X, gpu())

    @jax.jit
    def f(x):
        total, _ = jax.lax.scan(lambda c, row: (c + row.sum(), None), jnp.float32(0), x)
        y = jax.pure_callback(lambda v: np.asarray(v) + 1, jax.ShapeDtypeStruct((), jnp.float32),
                              total)
        return jax.lax.while_loop(lambda v: v < 100, lambda v: v * 2, y)

    assert f(x).devices() == {gpu()}
    np.testing.assert_allclose(f(x), 128)


def test_gradients_and_vmap():
    x = jax.device_put(X, gpu())
    g = jax.jit(jax.grad(lambda x: (jnp.tanh(x) ** 2).sum()))
    assert g(x).devices() == {gpu()}
    np.testing.assert_allclose(g(x), jax.grad(lambda x: (jnp.tanh(x) ** 2).sum())(jnp.asarray(X)),
                               rtol=1e-5)
    v = jax.jit(jax.vmap(jnp.dot))(x, x)
    np.testing.assert_allclose(v, (X * X).sum(1))


def test_different_devices_are_an_error():
    x, y = jax.device_put(X, gpu(0)), jax.device_put(X, gpu(1))
    cpu = jax.device_put(X, jax.devices("cpu")[0])
    for other in (y, cpu):
        with pytest.raises(ValueError, match="Received incompatible devices for jitted computation"
                                             r".*device ids \[0\] on platform GPU"):
            jax.jit(lambda a, b: a + b)(x, other)
    assert (x + jnp.asarray(X)).devices() == {gpu(0)}       # that one is not committed


def test_default_device():
    with jax.default_device(gpu(1)):
        x = jnp.arange(3.0)
        assert x.devices() == {gpu(1)} and not x.committed
        y = jax.jit(lambda x: x + 1)(x)
        assert y.devices() == {gpu(1)} and y._value is None
    assert (jnp.arange(3.0)).devices() == {jax.devices("cpu")[0]}
    assert jax.jit(lambda x: x + 1)(jax.device_put(y, gpu(0))).devices() == {gpu(0)}


def test_a_mesh_of_accelerators():
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices("gpu"))
    x = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, PartitionSpec("x")))
    assert x.devices() == set(jax.devices("gpu"))
    y = jax.jit(lambda x: x * 2)(x)
    assert y.sharding.device_set == set(jax.devices("gpu"))
    assert [shard.device for shard in y.addressable_shards] == jax.devices("gpu")
    np.testing.assert_array_equal(y, np.arange(8.0) * 2)


def test_collectives_over_a_mesh_of_accelerators():
    mesh = jax.make_mesh((2,), ("x",), (jax.sharding.AxisType.Auto,), devices=jax.devices("gpu"))
    x = jax.device_put(X.T, NamedSharding(mesh, PartitionSpec(None, "x")))
    total = jax.shard_map(lambda part: jax.lax.psum(part * 2, "x"), mesh=mesh,
                          in_specs=PartitionSpec(None, "x"), out_specs=PartitionSpec())
    for y in (total(x), jax.jit(total)(x)):
        assert y.sharding.device_set == set(jax.devices("gpu"))
        np.testing.assert_array_equal(y, X.T.sum(axis=1, keepdims=True) * 2)
    gradient = jax.jit(jax.grad(lambda x: (x @ x.T).sum()))(x)
    assert gradient.sharding == x.sharding
    np.testing.assert_allclose(gradient, 2 * X.sum(axis=1) * np.ones((3, 1)), rtol=1e-6)
    # One device's part, as an array of that device.
    part = x.addressable_shards[1].data
    assert part.devices() == {gpu(1)} and jax.jit(jnp.sum)(part).devices() == {gpu(1)}


def test_copies_and_pickles():
    x = jax.device_put(X, gpu())
    for other in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), x.copy()):
        np.testing.assert_array_equal(other, X)
    assert copy.deepcopy(x).devices() == {gpu()}
    assert x.on_device_size_in_bytes() == X.nbytes


def test_a_buffer_is_not_read_by_the_host():
    x = jax.device_put(X, gpu(0))
    with pytest.raises(TypeError, match="not in the host's memory"):
        np.asarray(x._stored)
    with pytest.raises(ValueError, match="not in the memory of gpu:1"):
        gpu(1).accelerator.load(x._stored)


def test_never_computes_on_the_host():
    x = jax.device_put(X, gpu())
    with config.compile_mode("never"):
        y = jax.jit(lambda x: x * 3)(x)
    assert y.devices() == {gpu()} and y._value is not None
    np.testing.assert_array_equal(y, X * 3)


def test_nans_are_looked_for_by_the_host():
    x = jax.device_put(-X, gpu())
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="invalid value"):
        jax.jit(jnp.log)(x)


def test_devices_have_the_names_of_their_platform():
    assert [str(device) for device in jax.devices("gpu")] == ["cuda:0", "cuda:1"]
    assert repr(gpu()) == "CudaDevice(id=0)" and gpu().platform == "gpu"
    assert jax.devices("cuda") == jax.devices("gpu")
    assert jax.devices()[0].platform == jax.default_backend() == "cpu"
    with pytest.raises(RuntimeError, match="Unknown backend rocm"):
        jax.devices("rocm")
