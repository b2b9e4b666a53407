# libraries: flax optax orbax-checkpoint
# tolerance: 1e-3 (25 steps of AdamW amplify the rounding)
# absolute: 1e-4 (a logit near zero)
"""A small vision transformer of Flax NNX on shapes, trained by Optax, with an Orbax checkpoint."""
import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx

SIDE, PATCH, WIDTH, HEADS, LAYERS, CLASSES = 16, 4, 32, 4, 2, 3


def shapes(seed, count):
    """Noisy images of a square, a cross or a diagonal."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    images = 0.2 * rng.standard_normal((count, SIDE, SIDE, 1)).astype(np.float32)
    for image, label in zip(images, labels):
        r, c = rng.integers(2, 8, 2)
        if label == 0:
            image[r:r + 6, c:c + 6] += 1
        elif label == 1:
            image[r + 2:r + 4, c:c + 6] += 1
            image[r:r + 6, c + 2:c + 4] += 1
        else:
            for i in range(6):
                image[r + i, c + i] += 1.5
    return images, labels


class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm1 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(
            num_heads=HEADS, in_features=WIDTH, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs)
        self.down = nnx.Linear(2 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class ViT(nnx.Module):
    def __init__(self, rngs):
        patches = (SIDE // PATCH) ** 2
        self.embed = nnx.Conv(1, WIDTH, (PATCH, PATCH), strides=(PATCH, PATCH), rngs=rngs)
        self.cls = nnx.Param(jnp.zeros((1, 1, WIDTH)))
        self.position = nnx.Param(0.02 * jax.random.normal(rngs.params(), (1, patches + 1, WIDTH)))
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.head = nnx.Linear(WIDTH, CLASSES, rngs=rngs)

    def __call__(self, images):
        x = self.embed(images).reshape(images.shape[0], -1, WIDTH)
        cls = jnp.broadcast_to(self.cls[...], (x.shape[0], 1, WIDTH))
        x = jnp.concatenate([cls, x], axis=1) + self.position[...]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


@nnx.jit
def train_step(model, optimizer, images, labels):
    def loss_fn(model):
        logits = model(images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def accuracy(model, images, labels):
    return jnp.mean(jnp.argmax(model(images), -1) == labels)


model = ViT(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adamw(3e-3, weight_decay=1e-4), wrt=nnx.Param)
print("parameters", sum(x.size for x in jax.tree.leaves(nnx.state(model, nnx.Param))))
images, labels = shapes(0, 256)
for step in range(24):
    batch = slice(64 * (step % 4), 64 * (step % 4 + 1))
    loss = train_step(model, optimizer, images[batch], labels[batch])
    if step % 6 == 5:
        print("step", step + 1, "loss", float(loss))
print("train accuracy", float(accuracy(model, images, labels)))

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder).absolute() / "vit"
    _, state = nnx.split(model)
    with ocp.StandardCheckpointer() as saver:
        saver.save(path, state)
    graph, abstract = nnx.split(nnx.eval_shape(lambda: ViT(nnx.Rngs(1))))
    with ocp.StandardCheckpointer() as loader:
        restored = nnx.merge(graph, loader.restore(path, abstract))
    test_images, test_labels = shapes(1, 64)
    same = jnp.array_equal(restored(test_images), model(test_images))
    print("the restored model agrees:", bool(same))
    print("test logits", np.asarray(restored(test_images[:2])))
