"""Arrays over the devices of several processes: made, looked at and moved as in JAX."""

from __future__ import annotations

import pytest

from tests.distributed.running import ENGINES, START, lines, run

pytestmark = pytest.mark.slow

_ARRAYS = START + r"""
import re
import jax.numpy as jnp
from jax.experimental import multihost_utils as mu
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
i = jax.process_index()
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
def at(*spec):
    return NamedSharding(mesh, P(*spec))
def show(name, function):
    try:
        said = str(function())
    except Exception as error:
        said = f"{type(error).__name__} {error}"
    # Sets of devices have no order.
    said = re.sub(r"\{[^{}]*\}", lambda m: "".join(sorted(m[0])), said.replace("\n", " "))
    said = re.sub(r"'[\w.]*ArrayImpl'", "", said)
    sys.stdout.write(f"* {i} {name} {said}\n")
    sys.stdout.flush()
def parts(x):
    return [(s.device.id, s.index, s.replica_id, np.asarray(s.data).tolist())
            for s in x.addressable_shards]
x = jax.device_put(np.arange(8.), at("x"))
r = jax.device_put(np.arange(3), at())
show("text", lambda: repr(x) + str(x))
show("weak text", lambda: repr(x * 1) + repr(jax.device_put(2., at())))
for look in (np.asarray, float, bool, jax.device_get, lambda x: x.item(), lambda x: x.tolist(),
             lambda x: __import__("pickle").dumps(x)):
    show("look", lambda: look(x))
show("here", lambda: (x.is_fully_addressable, x.is_fully_replicated, x.committed, x.shape))
show("addressable", lambda: parts(x))
show("global", lambda: sorted((s.device.id, s.index, s.replica_id, s.data is None)
                              for s in x.global_shards))
show("sharding", lambda: (len(x.sharding.device_set), x.sharding.addressable_devices,
                          x.sharding.is_fully_addressable, x.sharding.has_addressable_devices))
show("indices", lambda: (x.sharding.addressable_devices_indices_map((8,)),
                         x.sharding.devices_indices_map((8,))))
show("replicated", lambda: (repr(r), r.is_fully_addressable, np.asarray(r), parts(r)))
show("scalar", lambda: (float(x[3]), float(x.sum()), int(r.sum()), x[0].sharding))
show("results", lambda: ((x + 1).sharding, (x + jnp.arange(8.)).sharding))
show("elsewhere", lambda: x + jax.device_put(np.ones(8), jax.local_devices()[0]))
show("different", lambda: jax.device_put(np.arange(8.) + i, at("x")))
show("different array", lambda: jax.device_put(jnp.arange(8.) + i, at("x")))
show("other device", lambda: repr(jax.device_put(1.0, jax.devices()[2 - 2 * i])))
show("local mesh", lambda: jax.device_put(np.arange(4.), NamedSharding(
    Mesh(np.array(jax.local_devices()), "l"), P("l"))))
show("half of the devices", lambda: repr(jax.device_put(np.arange(4.), NamedSharding(
    Mesh(np.array(jax.devices()[:2]), "l"), P("l")))))
show("to one device", lambda: jax.device_put(x, jax.local_devices()[0]))
show("whole", lambda: jax.device_put(x, at()))
show("of processes", lambda: parts(jax.make_array_from_process_local_data(
    at("x"), np.arange(4.) + 10 * i)))
show("of processes, replicated", lambda: jax.make_array_from_process_local_data(
    at(), np.arange(4.)))
show("of processes, columns", lambda: parts(jax.make_array_from_process_local_data(
    at(None, "x"), np.arange(8.).reshape(2, 4) + 10 * i)))
show("of processes, whole", lambda: parts(jax.make_array_from_process_local_data(
    at("x"), np.arange(8.), (8,))))
show("of processes, wrong", lambda: jax.make_array_from_process_local_data(
    at("x"), np.arange(6.), (8,)))
show("of shards", lambda: parts(jax.make_array_from_single_device_arrays(
    (8,), at("x"), [jax.device_put(np.arange(2.), d) for d in jax.local_devices()])))
show("of too few shards", lambda: jax.make_array_from_single_device_arrays(
    (8,), at("x"), [jax.device_put(np.arange(2.), d) for d in jax.local_devices()[:1]]))
asked = []
show("of a callback", lambda: parts(jax.make_array_from_callback(
    (8,), at("x"), lambda index: (asked.append(index), np.arange(8.)[index])[1])))
show("asked", lambda: asked)
show("gathered", lambda: mu.process_allgather({"x": x, "r": r}, tiled=True))
show("not tiled", lambda: mu.process_allgather(x))
show("broadcast", lambda: mu.broadcast_one_to_all(r))
show("broadcast of parts", lambda: mu.broadcast_one_to_all(x))
show("host to all", lambda: parts(mu.host_local_array_to_global_array(
    np.arange(4.) + 10 * i, mesh, P("x"))))
show("host to all, replicated", lambda: mu.host_local_array_to_global_array(
    np.arange(4.), mesh, P()))
here = mu.global_array_to_host_local_array(x, mesh, P("x"))
show("to host", lambda: (here, here.sharding.spec, here.is_fully_addressable))
show("local mesh", lambda: mesh.local_mesh)
show("made", lambda: parts(jax.jit(lambda: jnp.arange(8.), out_shardings=at("x"))()))
show("host input", lambda: jax.jit(lambda a: a * 2, in_shardings=at("x"))(np.arange(8.)))
show("closed over", lambda: jax.jit(lambda a: a + x)(1.0))
show("in a gradient", lambda: jax.grad(lambda a: (a * x).sum())(2.0))
double = jax.jit(lambda x: x * 2, donate_argnums=0)
show("donated", lambda: (parts(double(x)), x.is_deleted()))
show("after", lambda: np.asarray(x))
mu.sync_global_devices("end")
jax.distributed.shutdown()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_as_in_jax(engine):
    found, expected = lines(run(engine, _ARRAYS)), lines(run("jax", _ARRAYS))
    assert len(found) == len(expected) > 80
    assert [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]] == []


def test_keys_over_processes():
    results = run("gloo", START + """
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",))
keys = jax.random.split(jax.random.key(3), 4)
spread = jax.device_put(keys, NamedSharding(mesh, P("x")))
print("*", repr(spread), [np.array_equal(jax.random.key_data(s.data), jax.random.key_data(
    keys[s.index])) for s in spread.addressable_shards], flush=True)
from jax.experimental import multihost_utils as mu
same = mu.process_allgather(jax.random.key_data(spread), tiled=True)
assert np.array_equal(same, jax.random.key_data(keys))
draws = jax.vmap(lambda k: jax.random.normal(k))(spread)
assert np.allclose(mu.process_allgather(draws, tiled=True), jax.vmap(jax.random.normal)(keys))
jax.distributed.shutdown()
""")
    assert lines(results) == ["* Array(shape=(4,), dtype=key<fry>) [True, True]"] * 2


_PLACES = START + r"""
import jax.numpy as jnp
from jax.experimental import multihost_utils as mu
from jax.sharding import *
P, i = PartitionSpec, jax.process_index()
def show(name, function):
    try:
        said = str(function())
    except Exception as error:
        said = f"{type(error).__name__} {str(error).splitlines()[0]}"
    if not i:
        sys.stdout.write(f"* {name} {said}\n".replace("\n", " ") + "\n")
        sys.stdout.flush()
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))
x = np.arange(8, dtype="f").reshape(4, 2)
there = SingleDeviceSharding(jax.devices()[2])
one = jax.make_array_from_callback((4, 2), there, lambda index: x[index], dtype="float32")
show("operation", lambda: ((one + 1).sharding, (one * 2).shape, jnp.sin(one).dtype))
show("program", lambda: jax.jit(lambda y: (y * 2, y.sum()))(one)[1].sharding)
show("its parts", lambda: len(jax.jit(lambda y: y * 2)(one).addressable_shards))
moved = jax.jit(lambda y: y, out_shardings=rows)
show("elsewhere", lambda: moved(one))
double = lambda *args: jax.jit(lambda y: (y * 2, y.sum()), **dict(args))
for value in (x, jnp.asarray(x)):
    show("results elsewhere", lambda: [(y.sharding, len(y.addressable_shards)) for y in double(
        ("out_shardings", (there, None)))(value)])
everywhere = NamedSharding(mesh, P())
for value in (jax.device_put(x, jax.local_devices()[1]), one):
    for sharding in (rows, everywhere):
        show("operand for all", lambda: double(("in_shardings", sharding))(value)[1].sharding)
explicit = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(explicit):
    y = jax.device_put(x, NamedSharding(explicit, P("x")))
    squares = jax.jit(lambda y: jnp.einsum("xy,xz->yz", y, y, out_sharding=P(unreduced={"x"})))
    whole = NamedSharding(explicit, P())
    show("unreduced", lambda: (squares(y).sharding, jax.typeof(squares(y))))
    show("reduced", lambda: jax.sharding.reshard(squares(y), P()))
    show("sum", lambda: jax.sharding.reshard(squares(y) + squares(y), P()))
    show("in a program", lambda: jax.jit(lambda y: jax.sharding.reshard(squares(y), P()))(y))
    show("put", lambda: jax.device_put(squares(y), whole))
    show("gradient", lambda: mu.process_allgather(jax.grad(
        lambda y: jax.sharding.reshard(squares(y), P()).sum())(y), tiled=True))
with jax.debug_nans(True):
    z = jax.device_put(np.array([1, 0, 2, 2], "f"), rows)
    show("no nans", lambda: mu.process_allgather(jnp.log(z + 1) > 0, tiled=True))
    show("nans", lambda: jnp.log(z - 1))
    show("nans of a program", lambda: jax.jit(lambda z: 2 * jnp.log(z - 1))(z))
with jax.debug_infs(True):
    show("infinities", lambda: jax.jit(lambda z: 1 / z)(z))
jax.distributed.shutdown()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_other_shardings_unreduced_arrays_and_checks_as_in_jax(engine):
    assert lines(run(engine, _PLACES)) == lines(run("jax", _PLACES))
