# libraries: orbax-checkpoint flax optax
# tolerance: 1e-4 (ten steps of Adam amplify the rounding)
"""Orbax: a train state sharded over eight devices, saved, and restored and trained on over four."""
import logging
import os
import pathlib
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import flax.linen as nn
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax.training.train_state import TrainState
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

logging.disable(logging.WARNING)
print("devices", len(jax.devices()))


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(8)(nn.relu(nn.Dense(32)(x)))


def spec_of(leaf):
    return P("data", "model") if leaf.ndim == 2 else P("model") if leaf.ndim == 1 else P()


def sharded(tree, mesh):
    return jax.tree.map(lambda x: NamedSharding(mesh, spec_of(x)), tree)


network = Network()


def create(key):
    return TrainState.create(apply_fn=network.apply, params=network.init(key, jnp.zeros((1, 16))),
                             tx=optax.adam(1e-2))


@jax.jit
def train(state, x, y):
    def loss_of(params):
        return jnp.mean((state.apply_fn(params, x) - y) ** 2)
    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), loss


x = jr.normal(jr.key(1), (32, 16))
y = jnp.sin(x[:, :8])


def steps(state, mesh, count):
    rows = NamedSharding(mesh, P("data"))
    batch = jax.device_put((x, y), rows)
    for _ in range(count):
        state, loss = train(state, *batch)
    return state, float(loss)


eight = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
four = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))
shape = jax.eval_shape(create, jr.key(0))
state = jax.jit(create, out_shardings=sharded(shape, eight))(jr.key(0))
kernel = state.params["params"]["Dense_0"]["kernel"]
print("kernel", kernel.sharding.spec, kernel.addressable_shards[0].data.shape)
state, loss = steps(state, eight, 5)
print("loss at 5", loss)


def abstract(mesh):
    return jax.tree.map(lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s),
                        shape, sharded(shape, mesh))


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder).absolute()
    options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=1)
    with ocp.CheckpointManager(folder / "runs", options=options) as manager:
        for step in (3, 4, 5):
            manager.save(step, args=ocp.args.Composite(
                state=ocp.args.StandardSave(state), notes=ocp.args.JsonSave({"step": step})))
        manager.wait_until_finished()
        print("kept", sorted(manager.all_steps()), "latest", manager.latest_step())
        found = manager.restore(5, args=ocp.args.Composite(
            state=ocp.args.StandardRestore(abstract(four)), notes=ocp.args.JsonRestore()))
    print("notes", found.notes)
    fewer = found.state
    kernel = fewer.params["params"]["Dense_0"]["kernel"]
    print("restored", type(fewer).__name__, kernel.sharding.spec, len(kernel.sharding.device_set),
          kernel.addressable_shards[0].data.shape)
    print("same numbers:", all(np.array_equal(a, b) for a, b in
                               zip(jax.tree.leaves(state), jax.tree.leaves(fewer))))
    ours, loss = steps(fewer, four, 5)
    print("loss at 10 over four", loss)
    theirs, loss = steps(state, eight, 5)
    print("loss at 10 over eight", loss)
    print("close:", all(np.allclose(a, b, atol=1e-4) for a, b in
                        zip(jax.tree.leaves(ours.params), jax.tree.leaves(theirs.params))))

    with ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler()) as saver:
        saver.save(folder / "later", args=ocp.args.StandardSave(
            {"params": state.params, "key": jr.key_data(jr.key(3)),
             "half": jnp.arange(4, dtype=jnp.bfloat16)}))
    with ocp.StandardCheckpointer() as loader:
        plain = loader.restore(folder / "later")
    print("plain", sorted(plain), plain["half"].dtype, np.asarray(plain["key"]).tolist())

    with ocp.PyTreeCheckpointer() as saver:
        saver.save(folder / "tree", {"params": state.params, "step": 5, "name": "run"})
        whole = NamedSharding(four, P())
        arguments = jax.tree.map(lambda x: ocp.ArrayRestoreArgs(sharding=whole, dtype=x.dtype),
                                 {"params": state.params})
        part = saver.restore(folder / "tree", args=ocp.args.PyTreeRestore(
            item={"params": state.params}, restore_args=arguments, partial_restore=True))
    print("part", list(part), part["params"]["params"]["Dense_1"]["bias"].sharding.spec)
