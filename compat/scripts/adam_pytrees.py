# tolerance: 1e-4 (the rounding of 100 steps of Adam adds up)
"""Optimisers from scratch over pytrees: custom nodes, schedules, masks, exponential averages."""
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import tree_util


@tree_util.register_pytree_node_class
class Dense:
    def __init__(self, kernel, bias, activation):
        self.kernel, self.bias, self.activation = kernel, bias, activation

    def __call__(self, x):
        return self.activation(x @ self.kernel + self.bias)

    def tree_flatten(self):
        return (self.kernel, self.bias), self.activation

    @classmethod
    def tree_unflatten(cls, activation, children):
        return cls(*children, activation)


@tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    layers: list
    scale: jax.Array
    name: str = dataclasses.field(metadata={"static": True}, default="model")

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.scale * x


class AdamState(NamedTuple):
    count: jax.Array
    mu: Any
    nu: Any
    average: Any


def identity(x):
    return x


def make_model(key):
    sizes = [1, 16, 16, 1]
    layers = []
    for i, k in enumerate(jax.random.split(key, 3)):
        w = jax.random.truncated_normal(k, -2, 2, (sizes[i], sizes[i + 1])) / sizes[i] ** 0.5
        layers.append(Dense(w, jnp.zeros(sizes[i + 1]), jnp.tanh if i < 2 else identity))
    return Model(layers, jnp.ones(()), "sine")


def schedule(count, peak=0.02, warmup=10, total=100):
    ramp = peak * count / warmup
    decay = peak * 0.5 * (1 + jnp.cos(jnp.pi * (count - warmup) / (total - warmup)))
    return jnp.where(count < warmup, ramp, decay)


def adam_init(params):
    zeros = tree_util.tree_map(jnp.zeros_like, params)
    return AdamState(jnp.zeros([], jnp.int32), zeros, zeros, params)


def is_kernel(path, _):
    return "kernel" in tree_util.keystr(path) or path[-1] == tree_util.FlattenedIndexKey(0)


def adamw(grads, state, params, b1=0.9, b2=0.99, decay=1e-2):
    count = state.count + 1
    mu = tree_util.tree_map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, grads)
    nu = tree_util.tree_map(lambda v, g: b2 * v + (1 - b2) * jnp.square(g), state.nu, grads)
    rate = schedule(count)
    mask = tree_util.tree_map_with_path(is_kernel, params)

    def update(p, m, v, decayed):
        direction = (m / (1 - b1 ** count)) / (jnp.sqrt(v / (1 - b2 ** count)) + 1e-6)
        return p - rate * (direction + decay * decayed * p)

    params = tree_util.tree_map(update, params, mu, nu, mask)
    average = jax.tree.map(lambda a, p: 0.95 * a + 0.05 * p, state.average, params)
    return params, AdamState(count, mu, nu, average)


def loss(model, x, y):
    return jnp.mean(jnp.square(model(x) - y))


@jax.jit
def step(model, state, x, y):
    value, grads = jax.value_and_grad(loss)(model, x, y)
    model, state = adamw(grads, state, model)
    return model, state, value


x = jnp.linspace(-1, 3, 64)[:, None]
y = jnp.sin(2 * x) + 0.3 * x
model = make_model(jax.random.key(0))
state = adam_init(model)
print(tree_util.tree_structure([1, {"b": 2, "a": (3, None)}]))
print("leaves", [leaf.shape for leaf in tree_util.tree_leaves(model)])
print("decayed", tree_util.tree_leaves(tree_util.tree_map_with_path(is_kernel, model)))
for i in range(100):
    model, state, value = step(model, state, x, y)
    if i % 25 == 24:
        print(f"step {i + 1}: {value:.6f}, rate {schedule(state.count):.6f}")
print("averaged model %.6f" % loss(state.average, x, y))
print("count", state.count, "name", model.name, "scale", model.scale)
norms = tree_util.tree_map(lambda p: round(float(jnp.linalg.norm(p)), 3), model)
print("largest norm below 10:", max(tree_util.tree_leaves(norms)) < 10)
leaves, treedef = tree_util.tree_flatten(model)
print(tree_util.tree_unflatten(treedef, leaves)(jnp.array([[0.5]])))
outer = tree_util.tree_structure([0, 0])
inner = tree_util.tree_structure({"a": 0})
print(tree_util.tree_transpose(outer, inner, [{"a": 1}, {"a": 2}]))
