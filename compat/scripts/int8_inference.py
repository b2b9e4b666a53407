# tolerance: 1e-4 (training amplifies the rounding)
"""A network quantised to int8 by channels, after training: products in int32, scales beside them.

Checked to a relative 1e-4, with keys 4 to 6: losses, ranges and errors; sums of int8 and int32, and how
often both networks agree, exactly.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

SIZES = (16, 64, 64, 4)


def data(key, n):
    k1, k2 = random.split(key)
    label = random.randint(k1, (n,), 0, 4)
    centre = jnp.sin(jnp.arange(16.0)[None] * (1 + label[:, None]))
    return centre + 0.4 * random.normal(k2, (n, 16)), label


def forward(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


@jax.jit
def train(params, x, y):
    def step(params, _):
        loss, grads = jax.value_and_grad(lambda p: -jnp.mean(
            jax.nn.log_softmax(forward(p, x))[jnp.arange(y.size), y]))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss
    return lax.scan(step, params, None, 40)


def by_channel(w):
    scale = jnp.abs(w).max(0) / 127
    return jnp.clip(jnp.round(w / scale), -127, 127).astype(jnp.int8), scale


def quantised(layers, ranges, x):
    for number, ((w, scale, bias), high) in enumerate(zip(layers, ranges)):
        step = high / 127
        q = jnp.clip(jnp.round(x / step), -128, 127).astype(jnp.int8)
        total = lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        total = total + jnp.round(bias / (step * scale)).astype(jnp.int32)
        x = total.astype(jnp.float32) * (step * scale)
        if number < len(layers) - 1:
            x = jax.nn.relu(x)
    return x


def convolved(image, kernel):
    """An int8 convolution, accumulated in int32."""
    return lax.conv_general_dilated(image, kernel, (1, 1), "SAME", preferred_element_type=jnp.int32)


key = random.key(4)
params = [(random.normal(k, (m, n)) * (2 / m) ** 0.5, jnp.zeros(n))
          for k, m, n in zip(random.split(key, 3), SIZES[:-1], SIZES[1:])]
x, y = data(random.key(5), 256)
params, losses = train(params, x, y)
print("loss", *losses[::10].tolist())
layers = [(*by_channel(w), b) for w, b in params]
ranges, h = [], x
for w, b in params:
    ranges.append(float(jnp.quantile(jnp.abs(h), 0.999)))
    h = jax.nn.relu(h @ w + b)
print("ranges", *ranges)
test, labels = data(random.key(6), 512)
exact = jax.jit(forward)(params, test)
small = jax.jit(lambda x: quantised(layers, ranges, x))(test)
print("accuracy", float((exact.argmax(1) == labels).mean()), float((small.argmax(1) == labels).mean()))
print("error", float(jnp.abs(exact - small).mean()), "agree", int((exact.argmax(1) == small.argmax(1)).sum()))
print("weights", [int(w.astype(jnp.int32).sum()) for w, _, _ in layers], [str(w.dtype) for w, _, _ in layers])
image = jnp.asarray(np.arange(2 * 3 * 9 * 9).reshape(2, 3, 9, 9) % 251 - 120, jnp.int8)
kernel = jnp.asarray(np.arange(4 * 3 * 3 * 3).reshape(4, 3, 3, 3) % 200 - 100, jnp.int8)
out = jax.jit(convolved)(image, kernel)
print("convolution", out.dtype, out.sum(), out[1, 2, 4, 4], out[0, 3, 0, 0])
packed = (layers[1][0].astype(jnp.uint8) >> 4) & 15
nibbles = packed[::2] | (packed[1::2] << 4)
print("nibbles", nibbles.dtype, nibbles.shape, int(nibbles.astype(jnp.int32).sum()))
wrapped = jnp.int8(127) + jnp.arange(3, dtype=jnp.int8)
print("wraps", wrapped.tolist(), lax.population_count(nibbles).astype(jnp.int32).sum())
