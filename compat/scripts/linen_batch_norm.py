# libraries: flax optax
# tolerance: 2e-3 (biases before a batch norm get gradients of pure rounding, which Adam enlarges)
"""Flax Linen: convolution, batch norm and dropout in a TrainState, training and evaluation."""
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state


class Net(nn.Module):
    classes: int = 4

    @nn.compact
    def __call__(self, x, train: bool):
        for features in (8, 16):
            x = nn.Conv(features, (3, 3), use_bias=False)(x)
            x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
            x = nn.relu(x)
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = x.mean(axis=(1, 2))
        x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(self.classes)(x)


class TrainState(train_state.TrainState):
    batch_stats: Any
    key: jax.Array


def data(seed, count):
    """Stripes of four directions."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, count)
    y, x = np.mgrid[:12, :12]
    angles = labels * np.pi / 4
    phase = rng.uniform(0, 2 * np.pi, count)
    waves = np.sin(1.5 * (x[None] * np.cos(angles)[:, None, None]
                          + y[None] * np.sin(angles)[:, None, None]) + phase[:, None, None])
    noise = 0.3 * rng.standard_normal(waves.shape)
    return (waves + noise)[..., None].astype(np.float32), labels


def create(key):
    net = Net()
    variables = net.init({"params": key}, jnp.zeros((1, 12, 12, 1)), train=False)
    tx = optax.sgd(optax.exponential_decay(0.2, 10, 0.8), momentum=0.9, nesterov=True)
    return TrainState.create(apply_fn=net.apply, params=variables["params"], tx=tx,
                             batch_stats=variables["batch_stats"], key=jax.random.key(7))


@jax.jit
def train_step(state, images, labels):
    dropout = jax.random.fold_in(state.key, state.step)

    def loss_fn(params):
        logits, updates = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats}, images, train=True,
            mutable=["batch_stats"], rngs={"dropout": dropout})
        one_hot = optax.smooth_labels(jax.nn.one_hot(labels, 4), 0.05)
        return optax.softmax_cross_entropy(logits, one_hot).mean(), (logits, updates)

    (loss, (logits, updates)), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    state = state.apply_gradients(grads=grads)
    state = state.replace(batch_stats=updates["batch_stats"])
    return state, {"loss": loss, "accuracy": (logits.argmax(-1) == labels).mean()}


@jax.jit
def evaluate(state, images):
    variables = {"params": state.params, "batch_stats": state.batch_stats}
    return state.apply_fn(variables, images, train=False)


state = create(jax.random.key(0))
print(jax.tree.map(jnp.shape, state.params))
images, labels = data(0, 192)
for step in range(18):
    part = slice(64 * (step % 3), 64 * (step % 3 + 1))
    state, metrics = train_step(state, images[part], labels[part])
    if step % 6 == 5:
        print(int(state.step), {k: round(float(v), 5) for k, v in sorted(metrics.items())})
logits = evaluate(state, data(1, 128)[0])
print("test accuracy", float(jnp.mean(logits.argmax(-1) == data(1, 128)[1])))
print("running means", np.asarray(state.batch_stats["BatchNorm_0"]["mean"]))
