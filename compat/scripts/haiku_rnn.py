# libraries: dm-haiku optax
# tolerance: 1e-3 (training amplifies the rounding)
"""Haiku: an LSTM and a GRU by dynamic_unroll, state, random keys, stacked layers."""
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
STEPS, BATCH = 24, 16
phase = rng.uniform(0, 2 * np.pi, (1, BATCH))
speed = rng.uniform(0.2, 0.6, (1, BATCH))
series = np.sin(phase + speed * np.arange(STEPS + 1)[:, None])[..., None].astype(np.float32)
inputs, targets = series[:-1], series[1:]


def network(x, is_training):
    core = hk.DeepRNN([hk.LSTM(16), jax.nn.tanh, hk.GRU(12)])
    state = core.initial_state(x.shape[1])
    outputs, _ = hk.dynamic_unroll(core, x, state)
    outputs = hk.LayerNorm(-1, create_scale=True, create_offset=True)(outputs)
    if is_training:
        outputs = hk.dropout(hk.next_rng_key(), 0.1, outputs)
    count = hk.get_state("calls", (), jnp.int32, init=jnp.zeros)
    hk.set_state("calls", count + 1)
    return hk.BatchApply(hk.nets.MLP([16, 1]))(outputs)


model = hk.transform_with_state(network)
params, state = model.init(jax.random.PRNGKey(0), inputs, True)
print(hk.data_structures.tree_size(params), "parameters")
for name, shapes in sorted(jax.tree.map(jnp.shape, params).items()):
    print(" ", name, sorted(shapes.items()))
tx = optax.chain(optax.clip(1.0), optax.rmsprop(3e-3, momentum=0.5))
opt_state = tx.init(params)


def loss_fn(params, state, key):
    predicted, state = model.apply(params, state, key, inputs, True)
    return optax.huber_loss(predicted, targets).mean(), state


@jax.jit
def step(params, state, opt_state, key):
    (loss, state), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, state, key)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), state, opt_state, loss


keys = hk.PRNGSequence(1)
for i in range(30):
    params, state, opt_state, loss = step(params, state, opt_state, next(keys))
    if i % 6 == 5:
        print("step", i + 1, "loss", float(loss))
print("calls", int(state["~"]["calls"]))
predicted, _ = model.apply(params, state, None, inputs, False)
print("error", float(jnp.mean((predicted - targets) ** 2)))


@hk.transform
def deep(x):
    stack = hk.experimental.layer_stack(3)(lambda h: h + jax.nn.relu(hk.Linear(4)(h)))
    return hk.remat(lambda y: jnp.tanh(stack(y)))(x)


weights = deep.init(jax.random.PRNGKey(2), jnp.ones((2, 4)))
print("stacked", jax.tree.map(jnp.shape, weights))
print("gradient", float(optax.global_norm(jax.grad(
    lambda w: deep.apply(w, None, jnp.ones((2, 4))).sum())(weights))))
trainable, fixed = hk.data_structures.partition(lambda m, n, v: n == "w", weights)
print(hk.data_structures.tree_size(trainable), hk.data_structures.tree_size(fixed))
