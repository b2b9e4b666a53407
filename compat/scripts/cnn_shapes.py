# tolerance: 1e-4 (the rounding of 40 steps of training adds up)
"""A small convolutional network tells squares, crosses and discs apart."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

SIZE, CLASSES = 16, 3


def draw(rng, n):
    images = np.zeros((n, SIZE, SIZE, 1), np.float32)
    labels = rng.randint(0, CLASSES, n)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    for i, label in enumerate(labels):
        r, c = rng.randint(5, SIZE - 5, 2)
        dr, dc = np.abs(rows - r), np.abs(columns - c)
        if label == 0:
            mask = np.maximum(dr, dc) == 3
        elif label == 1:
            mask = (dr == dc) & (dr <= 3)
        else:
            mask = dr ** 2 + dc ** 2 <= 9
        images[i, mask, 0] = 1.0
    return images + 0.2 * rng.randn(*images.shape).astype(np.float32), labels


def init(key):
    k1, k2, k3 = random.split(key, 3)
    he = jax.nn.initializers.he_normal()
    return {
        "conv1": {"kernel": he(k1, (3, 3, 1, 8)), "bias": jnp.zeros(8)},
        "conv2": {"kernel": he(k2, (3, 3, 8, 16)), "bias": jnp.zeros(16)},
        "dense": {"kernel": 0.05 * random.normal(k3, (256, CLASSES)), "bias": jnp.zeros(CLASSES)},
    }


def conv(p, x):
    y = lax.conv_general_dilated(x, p["kernel"], window_strides=(1, 1), padding="SAME",
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p["bias"]


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def forward(params, x):
    x = max_pool(jax.nn.relu(conv(params["conv1"], x)))
    x = max_pool(jax.nn.relu(conv(params["conv2"], x)))
    x = x.reshape(x.shape[0], -1)
    return x @ params["dense"]["kernel"] + params["dense"]["bias"]


def loss_fn(params, x, labels):
    logits = forward(params, x)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -picked.mean(), logits


@jax.jit
def train_step(params, x, labels):
    (loss, logits), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, x, labels)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return params, loss, jnp.mean(logits.argmax(-1) == labels)


rng = np.random.RandomState(0)
params = init(random.key(7))
print(jax.tree.map(jnp.shape, params))
for step in range(40):
    x, labels = draw(rng, 64)
    params, loss, accuracy = train_step(params, jnp.array(x), jnp.array(labels))
    if step % 10 == 0:
        print(f"step {step} loss {loss:.6f}")
x, labels = draw(rng, 200)
test_loss, logits = jax.jit(loss_fn)(params, x, labels)
print("test loss", test_loss)
print("test accuracy above 0.8:", bool((logits.argmax(-1) == labels).mean() > 0.8))
