# libraries: equinox optax
# tolerance: 1e-3 (training amplifies the rounding)
"""Equinox: modules, filter_jit and filter_grad, state, serialisation, ensembles by filter_vmap."""
import io

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax


class Net(eqx.Module):
    layers: list
    norm: eqx.nn.BatchNorm
    head: eqx.nn.Linear
    scale: jax.Array
    activation: callable = eqx.field(static=True)

    def __init__(self, key):
        a, b, c = jr.split(key, 3)
        self.layers = [eqx.nn.Linear(2, 24, key=a), eqx.nn.Linear(24, 24, key=b)]
        self.norm = eqx.nn.BatchNorm(24, "batch", mode="batch")
        self.head = eqx.nn.Linear(24, "scalar", key=c)
        self.scale = jnp.ones(())
        self.activation = jax.nn.silu

    def __call__(self, x, state):
        x = self.activation(self.layers[0](x))
        x, state = self.norm(x, state)
        x = self.activation(self.layers[1](x))
        return self.scale * self.head(x), state


def logits_of(model, state, x):
    batched = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    return batched(x, state)


def loss_fn(model, state, x, y):
    logits, state = logits_of(model, state, x)
    return optax.sigmoid_binary_cross_entropy(logits, y).mean(), state


@eqx.filter_jit
def step(model, state, opt_state, optim, x, y):
    value = eqx.filter_value_and_grad(loss_fn, has_aux=True)
    (loss, state), grads = value(model, state, x, y)
    updates, opt_state = optim.update(grads, opt_state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, opt_state, loss


rng = np.random.default_rng(0)
angle = rng.uniform(0, 3 * np.pi, 256)
side = rng.integers(0, 2, 256)
x = np.stack([angle * np.cos(angle + np.pi * side), angle * np.sin(angle + np.pi * side)], -1)
x, y = (x / 5).astype(np.float32), side.astype(np.float32)

model, state = eqx.nn.make_with_state(Net)(jr.key(0))
optim = optax.adam(1e-2)
opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))
for i in range(40):
    model, state, opt_state, loss = step(model, state, opt_state, optim, x, y)
    if i % 8 == 7:
        print("step", i + 1, "loss", float(loss))
inference = eqx.nn.inference_mode(model)
logits, _ = logits_of(inference, state, x)
print("accuracy", float(jnp.mean((logits > 0) == (y > 0.5))))

file = io.BytesIO()
eqx.tree_serialise_leaves(file, (model, state))
file.seek(0)
like = eqx.nn.make_with_state(Net)(jr.key(9))
model2, state2 = eqx.tree_deserialise_leaves(file, like)
print("read back:", bool(eqx.tree_equal(model, model2)))

frozen = eqx.tree_at(lambda m: m.scale, model, replace_fn=lambda s: 2 * s)
dynamic, static = eqx.partition(frozen, eqx.is_array)
joined = eqx.combine(dynamic, static)
print("doubled", float(logits_of(joined, state, x)[0][0] / logits_of(model, state, x)[0][0]))


@eqx.filter_vmap
def ensemble(key):
    return eqx.nn.MLP(2, 1, 8, 2, key=key)


members = ensemble(jr.split(jr.key(3), 5))
outputs = eqx.filter_vmap(lambda m, x: jax.vmap(m)(x), in_axes=(eqx.if_array(0), None))(members, x)
print("ensemble", outputs.shape, np.asarray(outputs.std(axis=0)[:3, 0]))


@eqx.filter_jit
def checked(x):
    return eqx.error_if(jnp.sqrt(x), x < 0, "negative")


print("checked", float(checked(jnp.float32(4.0))))
try:
    checked(jnp.float32(-1.0)).block_until_ready()
except Exception as error:
    print("refused:", "negative" in str(error))
