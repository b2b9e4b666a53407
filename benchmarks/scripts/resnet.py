"""Training of a small residual network on images, by momentum: the number is the loss.

usage: resnet.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
size, batch, stages = (8, 2, (4,)) if small else (32, 16, (16, 32, 64))
classes = 10


def convolve(x, kernel, stride=1):
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def normalize(x, scale, shift):
    mean = x.mean((0, 1, 2))
    variance = jnp.mean((x - mean) ** 2, (0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def initialize(key):
    def kernel(extent, features_in, features_out):
        nonlocal key
        key, used = jax.random.split(key)
        shape = (extent, extent, features_in, features_out)
        return jax.random.normal(used, shape) * (2 / (extent**2 * features_in)) ** 0.5

    def normalized(extent, features_in, features_out):
        ones, zeros = jnp.ones(features_out), jnp.zeros(features_out)
        return kernel(extent, features_in, features_out), ones, zeros

    blocks, features = [], stages[0]
    for width in stages:
        first, second = normalized(3, features, width), normalized(3, width, width)
        blocks.append((first, second, kernel(1, features, width)))
        features = width
    return normalized(3, 3, stages[0]), blocks, kernel(1, features, classes)[0, 0]


def loss(parameters, images, labels):
    (kernel, *normal), blocks, head = parameters
    x = jax.nn.relu(normalize(convolve(images, kernel), *normal))
    for number, (first, second, shortcut) in enumerate(blocks):
        stride = 1 if number == 0 else 2
        y = jax.nn.relu(normalize(convolve(x, first[0], stride), *first[1:]))
        y = normalize(convolve(y, second[0]), *second[1:])
        x = jax.nn.relu(y + convolve(x, shortcut, stride))
    logits = jax.nn.log_softmax(x.mean((1, 2)) @ head)
    return -jnp.mean(jnp.sum(logits * jax.nn.one_hot(labels, classes), -1))


@jax.jit
def train(parameters, momentum, images, labels):
    value, gradients = jax.value_and_grad(loss)(parameters, images, labels)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    parameters = jax.tree.map(lambda p, m: p - 1e-3 * m, parameters, momentum)
    return parameters, momentum, value


parameters = initialize(jax.random.key(0))
momentum = jax.tree.map(jnp.zeros_like, parameters)
prototypes = jax.random.normal(jax.random.key(1), (classes, size, size, 3))
for step in range(steps):
    label_key, noise_key = jax.random.split(jax.random.fold_in(jax.random.key(2), step))
    labels = jax.random.randint(label_key, (batch,), 0, classes)
    images = prototypes[labels] + jax.random.normal(noise_key, (batch, size, size, 3))
    parameters, momentum, value = train(parameters, momentum, images, labels)
    print(step, float(value))
