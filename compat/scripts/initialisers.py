"""Initialisers of weights: their scales, and how far a signal gets through a deep network."""

import jax
import jax.numpy as jnp
from jax.nn import initializers as init

WAYS = {
    "zeros": init.zeros, "ones": init.ones, "constant": init.constant(0.5),
    "uniform": init.uniform(0.1), "normal": init.normal(0.02),
    "truncated": init.truncated_normal(0.02),
    "glorot uniform": init.glorot_uniform(), "glorot normal": init.glorot_normal(),
    "lecun uniform": init.lecun_uniform(), "lecun normal": init.lecun_normal(),
    "he uniform": init.he_uniform(), "he normal": init.he_normal(),
    "scaling": init.variance_scaling(2.0, "fan_avg", "truncated_normal"),
    "fan out": init.variance_scaling(1.0, "fan_out", "uniform"),
    "orthogonal": init.orthogonal(),
}
key = jax.random.key(11)
for name, way in WAYS.items():
    w = way(jax.random.fold_in(key, len(name)), (48, 32), jnp.float32)
    print(f"{name:15} {w.mean():+.5f} {w.std():.5f} {jnp.abs(w).max():.5f}")

kernel = init.he_normal(in_axis=-2, out_axis=-1)(key, (3, 3, 16, 32))
stacked = init.glorot_normal(batch_axis=0)(key, (4, 20, 10))
print("kernel", f"{kernel.std():.5f}", "stacked", [f"{v:.4f}" for v in stacked.std((1, 2))])
identity = init.delta_orthogonal()(key, (3, 3, 4, 8))
print("delta", f"{jnp.abs(identity[1, 1]).sum():.4f}", bool((identity[0] == 0).all()))
q = init.orthogonal(scale=2.0)(key, (16, 16))
print("orthogonal", bool(jnp.abs(q.T @ q - 4 * jnp.eye(16)).max() < 1e-4))
half = init.lecun_normal(dtype=jnp.bfloat16)(key, (64, 64))
print(half.dtype, f"{half.astype(jnp.float32).std():.3f}")


def depth(way, activation, key, layers=20, width=64):
    """The scale of the signal, and of its gradient, through so many layers."""
    weights = jax.vmap(lambda k: way(k, (width, width), jnp.float32))(jax.random.split(key, layers))

    def signal(x):
        return jax.lax.scan(lambda h, w: (activation(h @ w), None), x, weights)[0]

    x = jax.random.normal(key, (8, width))
    out, pullback = jax.vjp(signal, x)
    return out.std(), pullback(out / out.size)[0].std()


for name in ("lecun normal", "he normal", "glorot uniform", "orthogonal"):
    for label, activation in (("tanh", jnp.tanh), ("relu", jax.nn.relu), ("gelu", jax.nn.gelu)):
        forward, backward = jax.jit(depth, static_argnums=(0, 1))(WAYS[name], activation, key)
        print(f"{name:15} {label} {forward:.2e} {backward:.2e}")
