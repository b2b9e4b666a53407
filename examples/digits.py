"""Trains an MLP and a small convolutional network on handwritten digits.

    python examples/digits.py            # maxjax
    python examples/digits.py --jax      # the same program on JAX

Only the imports differ. The digits are scikit-learn's `load_digits`: 1,797 images of 8 by 8.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from sklearn.datasets import load_digits

if "--jax" in sys.argv:
    import jax
    import jax.numpy as jnp
    from jax import lax
else:
    import maxjax as jax
    import maxjax.numpy as jnp
    from maxjax import lax

BATCH = 128
TEST_IMAGES = 360
WAIT_SECONDS = 900.0  # the first program of a machine waits for the kernel pack
console = Console()


# --- the networks: (B, 8, 8, 1) images to (B, 10) logits -----------------------------------------


def dense(key, inputs, outputs):
    weight = jax.random.normal(key, (inputs, outputs)) * jnp.sqrt(2.0 / inputs)
    return {"weight": weight, "bias": jnp.zeros(outputs)}


def kernel(key, inputs, outputs):
    weight = jax.random.normal(key, (3, 3, inputs, outputs)) * jnp.sqrt(2.0 / (9 * inputs))
    return {"weight": weight, "bias": jnp.zeros(outputs)}


def init_mlp(key):
    keys = jax.random.split(key, 3)
    sizes = [(64, 512), (512, 512), (512, 10)]
    return [dense(key, *size) for key, size in zip(keys, sizes)]


def mlp(layers, images):
    hidden = images.reshape(images.shape[0], 64)
    for layer in layers[:-1]:
        hidden = jax.nn.relu(hidden @ layer["weight"] + layer["bias"])
    return hidden @ layers[-1]["weight"] + layers[-1]["bias"]


def init_cnn(key):
    first, second, last = jax.random.split(key, 3)
    return [kernel(first, 1, 16), kernel(second, 16, 32), dense(last, 2 * 2 * 32, 10)]


def max_pool(images):
    return lax.reduce_window(images, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def cnn(layers, images):
    *convolutions, last = layers
    for layer in convolutions:
        images = lax.conv_general_dilated(
            images, layer["weight"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        images = max_pool(jax.nn.relu(images + layer["bias"]))
    return images.reshape(images.shape[0], -1) @ last["weight"] + last["bias"]


NETWORKS = {"mlp": (init_mlp, mlp), "cnn": (init_cnn, cnn)}


# --- training ------------------------------------------------------------------------------------


def cross_entropy(logits, label):
    """Of one example: (10,) logits and its label."""
    return -jax.nn.log_softmax(logits)[label]


def make_step(network, rate=0.1, momentum=0.9):
    def loss(layers, images, labels):
        return jnp.mean(jax.vmap(cross_entropy)(network(layers, images), labels))

    @jax.jit
    def step(layers, velocity, images, labels):
        value, gradients = jax.value_and_grad(loss)(layers, images, labels)
        velocity = jax.tree.map(lambda v, g: momentum * v - rate * g, velocity, gradients)
        return jax.tree.map(jnp.add, layers, velocity), velocity, value

    return step


def make_predict(network):
    """The digits in (B, 8, 8, 1) images: written for one image, made a batch's by vmap."""

    def predict(layers, image):
        return jnp.argmax(network(layers, image[None])[0])

    return jax.jit(jax.vmap(predict, in_axes=(None, 0)))


def batches(key, count):
    """Indices of batches, in a new order each epoch, without end."""
    while True:
        key, epoch = jax.random.split(key)
        order = np.asarray(jax.random.permutation(epoch, count))
        yield from order[: count - count % BATCH].reshape(-1, BATCH)


@dataclass
class Training:
    """The state of a run, and what became of each of its steps."""

    name: str
    layers: object
    velocity: object
    losses: list[float] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # by the tier that ran the step


def compiled_calls(step):
    return 0 if jax.__name__ == "jax" else jax.debug.statistics(step).compiled_calls


class SignOfLife:
    """Says a line every ten seconds where the output is no terminal, which shows what moves."""

    def __init__(self):
        self.last = time.perf_counter()

    def say(self, text):
        if not console.is_terminal and time.perf_counter() - self.last > 10:
            self.last = time.perf_counter()
            console.print(text)
            sys.stdout.flush()


def train(run, step, data, indices, steps):
    """Runs `steps` steps, each up to its realised loss, under a progress bar."""
    images, labels = data
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TextColumn("loss {task.fields[loss]:.4f}"), console=console) as bar:
        life = SignOfLife()
        task = bar.add_task(run.name, total=steps, loss=float("nan"))
        for _ in range(steps):
            index = next(indices)
            before, start = compiled_calls(step), time.perf_counter()
            run.layers, run.velocity, loss = step(
                run.layers, run.velocity, images[index], labels[index]
            )
            run.losses.append(float(loss))
            elapsed = time.perf_counter() - start
            on_max = compiled_calls(step) > before
            tier = "JAX" if jax.__name__ == "jax" else "MAX" if on_max else "interpreter"
            run.seconds.setdefault(tier, []).append(elapsed)
            bar.update(task, advance=1, loss=run.losses[-1])
            life.say(f"{run.name}: step {len(run.losses)}, loss {run.losses[-1]:.4f}")


def is_being_compiled(step):
    return jax.debug.statistics(step).reason == "it is being compiled"


def wait_for_max(run, step, data, indices, steps):
    """Trains until the step is hot, waits while MAX compiles it, then trains on it."""
    for _ in range(5):
        if not is_being_compiled(step) and not compiled_calls(step):
            train(run, step, data, indices, steps)
    start, life = time.perf_counter(), SignOfLife()
    with console.status("MAX is compiling the training step (training could as well go on)"):
        while is_being_compiled(step) and time.perf_counter() - start < WAIT_SECONDS:
            time.sleep(0.1)
            life.say(f"waiting for MAX's compile: {time.perf_counter() - start:.0f} s")
    train(run, step, data, indices, steps)


def report(run, step, test_loss, accuracy):
    console.print(
        f"[bold]{run.name}[/]: {len(run.losses)} steps, training loss {run.losses[-1]:.4f}, "
        f"test loss {test_loss:.4f}, test accuracy {accuracy:.3f}"
    )
    for tier, seconds in run.seconds.items():
        # The first step on a tier also traces, or loads what was compiled.
        steady = 1 / np.median(seconds[1:] or seconds)
        console.print(f"  on {tier}: {len(seconds)} steps, {steady:.0f} a second")
    if jax.__name__ != "jax":
        statistics = jax.debug.statistics(step)
        about = statistics.reason or f"compiling took {statistics.compile_seconds:.1f} s"
        console.print(f"  now {statistics.state} ({about})")


def save_picture(path, images, labels, predictions, columns=10, rows=4, scale=8):
    """Draws test images, each above its prediction: green if right, else red with the truth."""
    cell = 8 * scale
    picture = Image.new("RGB", (columns * cell, rows * (cell + 20)), "white")
    draw = ImageDraw.Draw(picture)
    for position in range(columns * rows):
        left, top = position % columns * cell, position // columns * (cell + 20)
        shades = np.uint8(255 - 255 * images[position, :, :, 0])
        picture.paste(Image.fromarray(shades).resize((cell, cell), Image.NEAREST), (left, top))
        truth, guess = labels[position], predictions[position]
        text, colour = (f"{guess}", "green") if truth == guess else (f"{guess}, is {truth}", "red")
        draw.text((left + 4, top + cell + 4), text, fill=colour)
    picture.save(path)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", action="store_true", help="run on JAX instead of maxjax")
    parser.add_argument("--steps", type=int, default=300, help="training steps of each network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", choices=["mlp", "cnn", "both"], default="both")
    parser.add_argument(
        "--wait", action="store_true", help="wait for MAX's compile, then run as many steps again"
    )
    parser.add_argument("--losses", type=Path, help="write every step's loss to this JSON file")
    parser.add_argument("--picture", type=Path, default=Path(__file__).with_name("digits.png"))
    return parser.parse_args()


def main():
    options = parse_arguments()
    digits = load_digits()
    images = np.float32(digits.images / 16)[..., None]
    labels = np.int32(digits.target)
    training_data = images[TEST_IMAGES:], labels[TEST_IMAGES:]
    test_images, test_labels = images[:TEST_IMAGES], labels[:TEST_IMAGES]

    losses = {}
    for name in NETWORKS if options.model == "both" else [options.model]:
        init, network = NETWORKS[name]
        init_key, order_key = jax.random.split(jax.random.key(options.seed))
        layers = init(init_key)
        run = Training(name, layers, jax.tree.map(jnp.zeros_like, layers))
        step = make_step(network)
        indices = batches(order_key, len(training_data[0]))
        train(run, step, training_data, indices, options.steps)
        if options.wait and jax.__name__ != "jax":
            wait_for_max(run, step, training_data, indices, options.steps)

        predictions = np.asarray(make_predict(network)(run.layers, test_images))
        entropies = jax.vmap(cross_entropy)(network(run.layers, test_images), test_labels)
        report(run, step, float(jnp.mean(entropies)), np.mean(predictions == test_labels))
        save_picture(options.picture, test_images, test_labels, predictions)
        losses[name] = run.losses

    console.print(f"predictions are in {options.picture}")
    if options.losses:
        options.losses.write_text(json.dumps(losses))


if __name__ == "__main__":
    main()
