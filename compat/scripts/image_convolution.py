"""Image filters: Sobel edges, a separable blur, a bilateral filter, learned deconvolution."""
import jax
import jax.numpy as jnp
from jax import lax, vmap

SIZE = 24
y, x = jnp.mgrid[:SIZE, :SIZE]
image = jnp.where((x - 12) ** 2 + (y - 12) ** 2 < 49, 1.0, 0.2) + 0.02 * x.astype(jnp.float32)


def filter2d(img, kernel, padding="SAME"):
    return lax.conv_general_dilated(
        img[None, None], kernel[None, None], (1, 1), padding)[0, 0]


sobel = jnp.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
gx, gy = filter2d(image, sobel, "VALID"), filter2d(image, sobel.T, "VALID")
magnitude = jnp.hypot(gx, gy)
direction = jnp.arctan2(gy, gx)
print("edges", magnitude.shape, "sum %.4f" % magnitude.sum(), "max %.5f" % magnitude.max())
histogram, bin_edges = jnp.histogram((direction + 0.1) % jnp.pi, bins=4, range=(0.0, jnp.pi),
                                     weights=magnitude)
print("weighted directions", histogram, bin_edges)


@jax.jit
def gaussian_blur(img, sigma):
    offsets = jnp.arange(-4, 5)
    k = jnp.exp(-0.5 * (offsets / sigma) ** 2)
    k = k / k.sum()
    rows = vmap(lambda row: jnp.convolve(row, k, mode="same"))(img)
    return vmap(lambda col: jnp.convolve(col, k, mode="same"), in_axes=1, out_axes=1)(rows)


blurred = gaussian_blur(image, 1.5)
print("blurred centre", blurred[12, 10:14])
print("derivative by sigma %.6f" % jax.grad(lambda s: gaussian_blur(image, s).var())(1.5))


def bilateral(img, radius=2, space=1.5, colour=0.1):
    padded = jnp.pad(img, radius, mode="edge")

    def at(i, j):
        patch = lax.dynamic_slice(padded, (i, j), (2 * radius + 1, 2 * radius + 1))
        d = jnp.arange(-radius, radius + 1)
        weight = jnp.exp(-(d[:, None] ** 2 + d ** 2) / (2 * space ** 2)
                         - (patch - img[i, j]) ** 2 / (2 * colour ** 2))
        return jnp.sum(weight * patch) / jnp.sum(weight)

    rows, cols = jnp.arange(img.shape[0]), jnp.arange(img.shape[1])
    return vmap(vmap(at, (None, 0)), (0, None))(rows, cols)


smooth = jax.jit(bilateral)(image)
print("bilateral", smooth[5, 3:7], "keeps edges:", bool(jnp.ptp(smooth) > 0.9 * jnp.ptp(image)))

# Which 3x3 kernel made the sharpened image? Least squares through the convolution's gradient.
truth = jnp.array([[0.0, -1.0, 0.0], [-1.0, 5.0, -1.0], [0.0, -1.0, 0.0]])
target = filter2d(image, truth)
residual = lambda k: jnp.mean((filter2d(image, k) - target) ** 2)
hessian = jax.hessian(residual)(jnp.zeros((3, 3))).reshape(9, 9)
gradient = jax.grad(residual)(jnp.zeros((3, 3))).ravel()
print("hessian diagonal", jnp.diag(hessian)[:5])
found = -jnp.linalg.solve(hessian, gradient).reshape(3, 3)
print("kernel is found:", bool(jnp.allclose(found, truth, atol=0.05)))

pooled = lax.reduce_window(image, 0.0, lax.add, (4, 4), (4, 4), "VALID") / 16
print("mean pooling", pooled[2])
