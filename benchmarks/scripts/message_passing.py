"""Training of a graph network that sends messages along edges: the number is the loss.

usage: message_passing.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
nodes, edges, width, rounds = (20, 60, 4, 2) if small else (4_000, 20_000, 32, 3)

sender_key, receiver_key, feature_key, *layer_keys = jax.random.split(
    jax.random.key(0), 4 + 2 * rounds
)
senders = jax.random.randint(sender_key, (edges,), 0, nodes)
receivers = jax.random.randint(receiver_key, (edges,), 0, nodes)
features = jax.random.normal(feature_key, (nodes, width))
degrees = jax.ops.segment_sum(jnp.ones(edges), receivers, nodes)
# What a round of messages can learn: the mean feature of a node's neighbours, clipped.
neighbours = jax.ops.segment_sum(features[senders, 0], receivers, nodes)
targets = jnp.tanh(neighbours / jnp.maximum(degrees, 1))


def initialize():
    shape = (2 * width, width)
    matrices = [jax.random.normal(key, shape) * (2 * width) ** -0.5 for key in layer_keys]
    return list(zip(matrices[0::2], matrices[1::2], strict=False)), matrices[-1][:width, 0]


def loss(parameters):
    layers, head = parameters
    states = features
    for message, update in layers:
        pairs = jnp.concatenate([states[senders], states[receivers]], -1)
        received = jax.ops.segment_sum(jax.nn.relu(pairs @ message), receivers, nodes)
        received = received / jnp.maximum(degrees, 1)[:, None]
        states = states + jnp.tanh(jnp.concatenate([states, received], -1) @ update)
    return jnp.mean((states @ head - targets) ** 2)


@jax.jit
def train(parameters):
    value, gradients = jax.value_and_grad(loss)(parameters)
    return jax.tree.map(lambda p, g: p - 0.05 * g, parameters, gradients), value


parameters = initialize()
for step in range(steps):
    parameters, value = train(parameters)
    print(step, float(value))
