"""Trains a digits classifier, and writes it as a library that a program in C calls.

    python examples/digits_in_c.py --path out
    cc -O2 -Iout examples/digits_in_c.c -Lout -lclassify -Wl,-rpath,'$ORIGIN' -o out/digits
    out/digits out/images

The library holds the network, its weights included, and needs neither Python nor maxjax. It takes
up to 64 images in a call.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

import digits
import numpy as np
from sklearn.datasets import load_digits

import maxjax as jax
import maxjax.numpy as jnp
from maxjax import export


def train(images, labels, steps):
    init_key, order_key = jax.random.split(jax.random.key(0))
    layers = digits.init_mlp(init_key)
    velocity = jax.tree.map(jnp.zeros_like, layers)
    step = digits.make_step(digits.mlp)
    for index in islice(digits.batches(order_key, len(images)), steps):
        layers, velocity, loss = step(layers, velocity, images[index], labels[index])
    return layers, float(loss)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--path", type=Path, default=Path("out"), help="the folder to write to")
    options = parser.parse_args()
    data = load_digits()
    images = np.float32(data.images / 16)
    test = digits.TEST_IMAGES
    layers, loss = train(images[test:], np.int32(data.target[test:]), options.steps)

    def classify(images):
        """The digits in (n, 8, 8) images, and how sure that is."""
        shares = jax.nn.softmax(digits.mlp(layers, images))
        return jnp.argmax(shares, 1).astype(jnp.int32), jnp.max(shares, 1)

    (n,) = export.symbolic_shape("n", constraints=["n <= 64"])
    files = export.library(
        classify, jax.ShapeDtypeStruct((n, 8, 8), np.float32), path=options.path
    )
    (options.path / "images").write_bytes(images[:test].tobytes())
    found = np.asarray(classify(images[:test])[0])
    accuracy = np.mean(found == data.target[:test])
    print(f"loss {loss:.4f}, test accuracy {accuracy:.3f}")
    print(f"{files.library}: {files.library.stat().st_size} bytes")
    (options.path / "digits.txt").write_text("".join(f"{digit}\n" for digit in found))


if __name__ == "__main__":
    main()
