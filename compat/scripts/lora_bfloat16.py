# tolerance: 1e-1 (bfloat16: two to three digits, and updates amplify them)
# absolute: 1e-3 (differences of losses)
"""LoRA over a frozen transformer in bfloat16: low-rank updates in float32, merged at the end.

Checked to the tolerances above, with keys 0 to 2: losses, and the merged weights' loss; that the frozen
ones are as before, exactly.
"""
import functools

import jax
import jax.numpy as jnp
from jax import lax, random

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, RANK = 48, 64, 4, 2, 24, 4
TARGETS = ("q", "v", "up")


def frozen(key):
    shapes = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH),
              "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    keys = random.split(key, len(shapes) + 1)
    layers = {name: (random.normal(k, (LAYERS, *shape)) * shape[0] ** -0.5).astype(jnp.bfloat16)
              for (name, shape), k in zip(shapes.items(), keys)}
    return {"embed": (0.5 * random.normal(keys[-1], (VOCABULARY, WIDTH))).astype(jnp.bfloat16),
            "layers": layers}


def adapters(key, base):
    made = {}
    for name, k in zip(TARGETS, random.split(key, len(TARGETS))):
        _, n_in, n_out = base["layers"][name].shape
        made[name] = {"a": random.normal(k, (LAYERS, n_in, RANK)) / n_in**0.5,
                      "b": jnp.zeros((LAYERS, RANK, n_out))}
    return made


def norm(x):
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def project(weights, lora, name, x):
    y = x @ weights[name]
    if name in lora:
        low = lora[name]
        y = y + (2.0 * (x @ low["a"].astype(x.dtype)) @ low["b"].astype(x.dtype))
    return y


def layer(x, inputs):
    weights, lora = inputs
    h = norm(x)
    q, k, v = (project(weights, lora, n, h).reshape(*x.shape[:-1], HEADS, -1) for n in "qkv")
    x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ weights["o"]
    return x + jax.nn.gelu(project(weights, lora, "up", norm(x))) @ weights["down"], None


def logits_of(base, lora, tokens):
    x, _ = lax.scan(jax.checkpoint(layer), base["embed"][tokens], (base["layers"], lora))
    return (norm(x) @ base["embed"].T).astype(jnp.float32)


def loss_of(lora, base, tokens):
    logits = logits_of(base, lora, tokens[:, :-1])
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train(lora, moments, base, tokens, t):
    loss, grads = jax.value_and_grad(loss_of)(lora, base, tokens)
    moments = jax.tree.map(lambda m, g: (0.9 * m[0] + 0.1 * g, 0.95 * m[1] + 0.05 * g * g), moments, grads,
                           is_leaf=lambda x: isinstance(x, tuple))
    lora = jax.tree.map(lambda p, m: p - 1e-2 * (m[0] / (1 - 0.9**t)) / (
        jnp.sqrt(m[1] / (1 - 0.95**t)) + 1e-6), lora, moments, is_leaf=lambda x: isinstance(x, tuple))
    return lora, moments, loss


base = frozen(random.key(0))
lora = adapters(random.key(1), base)
moments = jax.tree.map(lambda p: (jnp.zeros_like(p), jnp.zeros_like(p)), lora)
starts = random.randint(random.key(2), (16, 1), 0, VOCABULARY)
tokens = (starts + 5 * jnp.arange(LENGTH)) % VOCABULARY
before = jax.tree.map(lambda x: float(jnp.abs(x.astype(jnp.float32)).sum()), base)
for t in range(1, 25):
    lora, moments, loss = train(lora, moments, base, tokens, jnp.float32(t))
    if t % 8 == 0:
        print("step", t, "loss", float(loss))
print("frozen", before == jax.tree.map(lambda x: float(jnp.abs(x.astype(jnp.float32)).sum()), base),
      {name: str(x.dtype) for name, x in base["layers"].items()})
merged = {"embed": base["embed"], "layers": {
    name: (w.astype(jnp.float32) + 2.0 * lora[name]["a"] @ lora[name]["b"]).astype(jnp.bfloat16)
    if name in lora else w for name, w in base["layers"].items()}}
empty = {}
print("merged", float(jax.jit(loss_of)(empty, merged, tokens)), "trained", sum(
    x.size for x in jax.tree.leaves(lora)), "of", sum(x.size for x in jax.tree.leaves(base)))
