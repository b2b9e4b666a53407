"""Registers two pictures: resizing by every method, warping, and gradient descent through both."""

import jax
import jax.numpy as jnp
from jax.scipy.ndimage import map_coordinates

SIZE = 24


def picture(size):
    """Two soft discs and a bar."""
    y, x = jnp.meshgrid(jnp.linspace(-1, 1, size), jnp.linspace(-1, 1, size), indexing="ij")
    disc = jnp.exp(-8 * ((x - 0.3) ** 2 + (y + 0.2) ** 2))
    ring = jnp.exp(-30 * (jnp.hypot(x + 0.3, y - 0.2) - 0.4) ** 2)
    return disc + 0.5 * ring + 0.2 * (jnp.abs(x) < 0.1)


def moved(image, shift, angle):
    """The picture turned and shifted, sampled between its pixels."""
    n = image.shape[0]
    centre = (n - 1) / 2
    rows, columns = jnp.meshgrid(jnp.arange(n) - centre, jnp.arange(n) - centre, indexing="ij")
    c, s = jnp.cos(angle), jnp.sin(angle)
    coordinates = [c * rows - s * columns + centre + shift[0],
                   s * rows + c * columns + centre + shift[1]]
    return map_coordinates(image, coordinates, order=1, mode="nearest")


image = picture(SIZE)
for method in ("nearest", "linear", "cubic", "lanczos3", "lanczos5"):
    up = jax.image.resize(image, (41, 37), method)
    down = jax.image.resize(image, (9, 11), method)
    plain = jax.image.resize(image, (9, 11), method, antialias=False)
    print(f"{method:9} {up.sum():.3f} {up.max():.4f} {down.sum():.4f} {plain.sum():.4f} "
          f"{jnp.abs(jax.image.resize(up, image.shape, method) - image).mean():.5f}")

batch = jnp.stack([image, image.T, image[::-1]])[..., None]
resized = jax.jit(lambda x: jax.image.resize(x, (3, 12, 12, 1), "bilinear"))(batch)
print("batch", resized.shape, [f"{v:.4f}" for v in resized.mean((1, 2, 3))])
zoomed = jax.image.scale_and_translate(
    image, (SIZE, SIZE), (0, 1), jnp.array([1.5, 0.75]), jnp.array([-4.0, 2.5]), "cubic")
print("zoom", f"{zoomed.sum():.3f} {zoomed.std():.4f}")

target = moved(image, jnp.array([1.3, -0.7]), 0.2)


def loss(parameters):
    shift, angle = parameters[:2], parameters[2] / 10
    error = moved(image, shift, angle) - target
    coarse = jax.image.resize(error, (8, 8), "linear")
    return (error ** 2).mean() + (coarse ** 2).mean()


@jax.jit
def step(parameters, velocity):
    value, gradient = jax.value_and_grad(loss)(parameters)
    velocity = 0.8 * velocity - 20.0 * gradient
    return parameters + velocity, velocity, value


parameters, velocity = jnp.zeros(3), jnp.zeros(3)
for count in range(60):
    parameters, velocity, value = step(parameters, velocity)
    if count % 12 == 0:
        print(count, f"{value:.5f}")
print("found", [f"{v:.3f}" for v in parameters])
scales = jnp.array([0.5, 1.0, 2.0])
print("vmap", [f"{v:.4f}" for v in jax.vmap(lambda s: loss(s * parameters))(scales)])
