# tolerance: 1e-4 (the rounding of 40 steps of training adds up)
"""A small GPT is trained on a short text, character by character, and continues a sentence."""
import math
import pathlib
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

text = (pathlib.Path(__file__).parent / "data" / "river.txt").read_text()
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = np.array([stoi[c] for c in text], dtype=np.int32)
V, T, D, H, L = len(chars), 32, 48, 4, 2


def init(key):
    keys = iter(jax.random.split(key, 3 + 4 * L))
    dense = lambda shape: jax.random.normal(next(keys), shape) * 0.02
    blocks = []
    for _ in range(L):
        blocks.append({
            "ln1": {"g": jnp.ones(D), "b": jnp.zeros(D)},
            "qkv": dense((D, 3 * D)), "proj": dense((D, D)),
            "ln2": {"g": jnp.ones(D), "b": jnp.zeros(D)},
            "up": dense((D, 4 * D)), "down": dense((4 * D, D)),
        })
    return {"wte": dense((V, D)), "wpe": dense((T, D)), "blocks": blocks,
            "lnf": {"g": jnp.ones(D), "b": jnp.zeros(D)}}


def layer_norm(p, x, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + eps) * p["g"] + p["b"]


def attention(p, x):
    B, n, _ = x.shape
    q, k, v = jnp.split(x @ p["qkv"], 3, axis=-1)
    q, k, v = (z.reshape(B, n, H, D // H).transpose(0, 2, 1, 3) for z in (q, k, v))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(D // H)
    mask = jnp.tril(jnp.ones((n, n), dtype=bool))
    scores = jnp.where(mask, scores, -1e9)
    out = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)
    return out.transpose(0, 2, 1, 3).reshape(B, n, D) @ p["proj"]


def gpt(params, tokens):
    x = params["wte"][tokens] + params["wpe"][: tokens.shape[1]]
    for p in params["blocks"]:
        x = x + attention(p, layer_norm(p["ln1"], x))
        x = x + jax.nn.gelu(layer_norm(p["ln2"], x) @ p["up"]) @ p["down"]
    return layer_norm(params["lnf"], x) @ params["wte"].T


def loss_fn(params, x, y):
    logp = jax.nn.log_softmax(gpt(params, x))
    return -jnp.take_along_axis(logp, y[..., None], axis=-1).mean()


@partial(jax.jit, donate_argnums=(0, 1))
def step(params, opt, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    m, v, t = opt
    t = t + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
    params = jax.tree.map(
        lambda p, m, v: p - 3e-3 * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.99 ** t)) + 1e-5),
        params, m, v)
    return params, (m, v, t), loss


rng = np.random.default_rng(0)
params = init(jax.random.key(0))
zeros = lambda: jax.tree.map(jnp.zeros_like, params)
opt = (zeros(), zeros(), jnp.zeros((), jnp.float32))
print("vocabulary", V, "parameters", sum(x.size for x in jax.tree_util.tree_leaves(params)))
for i in range(40):
    starts = rng.integers(0, len(data) - T - 1, 16)
    x = np.stack([data[s:s + T] for s in starts])
    y = np.stack([data[s + 1:s + T + 1] for s in starts])
    params, opt, loss = step(params, opt, x, y)
    if i % 10 == 9:
        print(f"step {i + 1} loss {loss:.5f}")

context = jnp.array([[stoi[c] for c in "The river does not hurry. It has"]])
logits = jax.jit(gpt)(params, context)
top, which = jax.lax.top_k(logits[0, -1], 3)
print("after the text", [chars[int(i)] for i in which])
print("perplexity %.4f" % jnp.exp(loss_fn(params, context[:, :-1], context[:, 1:])))
