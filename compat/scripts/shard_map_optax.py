# libraries: optax orbax-checkpoint
# tolerance: 1e-3 (training amplifies the rounding)
"""Data parallel training by shard_map with Optax on 8 devices; the checkpoint is read onto 4."""
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import pathlib
import tempfile
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
rng = np.random.default_rng(0)
x = rng.standard_normal((128, 8)).astype(np.float32)
y = np.sin(x @ rng.standard_normal(8)).astype(np.float32)


def init(key):
    a, b = jax.random.split(key)
    return {"w1": jax.random.normal(a, (8, 32)) / 3, "b1": jnp.zeros(32),
            "w2": jax.random.normal(b, (32,)) / 6}


def predict(params, x):
    return jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"]


tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2), optax.ema(0.9))


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P(), P(), P("data"), P("data")),
         out_specs=(P(), P(), P(), P("data")))
def step(params, opt_state, x, y):
    def loss_fn(params):
        return jnp.mean((predict(params, x) - y) ** 2)
    # A copy of the parameters a device, so that the gradients are that device's own.
    own = jax.tree.map(lambda p: jax.lax.pcast(p, "data", to="varying"), params)
    loss, grads = jax.value_and_grad(loss_fn)(own)
    grads = jax.lax.pmean(grads, "data")
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, jax.lax.pmean(loss, "data"), loss[None]


replicated, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
params = jax.device_put(init(jax.random.key(0)), replicated)
opt_state = tx.init(params)
data = jax.device_put((x, y), split)
for i in range(20):
    params, opt_state, loss, losses = step(params, opt_state, *data)
    if i % 5 == 4:
        print("step", i + 1, "loss", float(loss), "on a device", float(jax.device_get(losses)[3]))
print("shards", [s.data.shape for s in losses.addressable_shards][:2], losses.sharding.spec)

# The same by the compiler's own partitioning: parameters sharded, batch sharded.
shardings = {"w1": NamedSharding(mesh, P(None, "data")), "b1": split, "w2": split}
sharded = jax.device_put(init(jax.random.key(0)), shardings)


@jax.jit
def automatic(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((predict(p, x) - y) ** 2))(params)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


state = tx.init(sharded)
for _ in range(20):
    sharded, state, loss = automatic(sharded, state, *data)
print("automatic", float(loss), float(jnp.abs(sharded["w1"] - params["w1"]).max()) < 1e-3)

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder).absolute() / "state"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, {"params": sharded, "state": state})
        checkpointer.wait_until_finished()
        small = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))
        places = {"w1": P("a", "b"), "b1": P("a"), "w2": P(("a", "b"))}

        def on_small(path, leaf):
            name = next((k.key for k in path if getattr(k, "key", None) in places), None)
            spec = places.get(name, P())
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(small, spec))
        target = jax.tree_util.tree_map_with_path(on_small, {"params": sharded, "state": state})
        restored = checkpointer.restore(path, target)
w1 = restored["params"]["w1"]
print("restored", w1.sharding.spec, len(w1.addressable_shards), w1.addressable_shards[0].data.shape)
print("equal", all(np.array_equal(a, b) for a, b in zip(
    jax.tree.leaves(restored), jax.tree.leaves({"params": sharded, "state": state}))))
