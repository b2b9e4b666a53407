# tolerance: 2e-4 (sums in another order)
"""A small network of stax trained with Adam; attention with heads, masks and windows; images."""
import jax
import jax.image
import jax.numpy as jnp
from jax.example_libraries import optimizers, stax

init, predict = stax.serial(
    stax.Conv(4, (3, 3), padding="SAME"), stax.Relu, stax.MaxPool((2, 2), (2, 2)),
    stax.Flatten, stax.Dense(3), stax.LogSoftmax)
images = jax.random.normal(jax.random.key(0), (6, 8, 8, 1))
labels = jax.nn.one_hot(jnp.array([0, 1, 2, 0, 1, 2]), 3)
shape, params = init(jax.random.key(1), (-1, 8, 8, 1))
opt_init, opt_update, get_params = optimizers.adam(0.01)


def loss(params):
    return -jnp.mean(jnp.sum(predict(params, images) * labels, axis=1))


state = opt_init(params)
for step in range(5):
    value, gradients = jax.value_and_grad(loss)(get_params(state))
    state = opt_update(step, optimizers.clip_grads(gradients, 1.0), state)
    print(step, "%.3f" % value)

q, k, v = jax.random.normal(jax.random.key(2), (3, 2, 6, 4, 8))
for options in ({}, {"is_causal": True}, {"local_window_size": (2, 0)}):
    print(options, jax.nn.dot_product_attention(q, k, v, **options)[0, :2, 0, :3])
print("grouped", jax.nn.dot_product_attention(q, k[:, :, :2], v[:, :, :2])[1, 3, 3, :3])
for method in ("nearest", "linear", "cubic", "lanczos3"):
    print(method, jax.image.resize(images[0, :, :, 0], (4, 5), method)[0])
for name in ("glorot_normal", "he_uniform", "orthogonal"):
    print(name, jnp.abs(getattr(jax.nn.initializers, name)()(jax.random.key(3), (3, 3)))[0])
print("segments", jax.ops.segment_sum(jnp.arange(5.0), jnp.array([0, 1, 0, 2, 1])))
