# absolute: 1e-5 (rounding of sums of 512 terms of size 1)
"""Filtering with Fourier transforms: noise removal, convolution, spectra, an image."""
import jax
import jax.numpy as jnp
from jax import random

RATE, N = 256.0, 512
t = jnp.arange(N) / RATE
clean = jnp.sin(2 * jnp.pi * 5 * t) + 0.5 * jnp.cos(2 * jnp.pi * 20 * t)
signal = clean + 0.3 * random.normal(random.PRNGKey(0), (N,))

spectrum = jnp.fft.rfft(signal)
frequencies = jnp.fft.rfftfreq(N, d=1 / RATE)
power = jnp.abs(spectrum) ** 2 / N
peaks = jax.lax.top_k(power, 2)[1]
print("peaks at", frequencies[peaks], "Hz; power", power[peaks])
print("Parseval: %.4f %.4f" % (jnp.sum(signal ** 2),
                               (2 * power.sum() - power[0] - power[-1])))


@jax.jit
def low_pass(x, cutoff):
    f = jnp.fft.rfftfreq(x.shape[-1], d=1 / RATE)
    gain = 1.0 / (1.0 + (f / cutoff) ** 8)
    return jnp.fft.irfft(jnp.fft.rfft(x) * gain, n=x.shape[-1])


filtered = low_pass(signal, 30.0)
print("error before %.5f after %.5f" % (jnp.std(signal - clean), jnp.std(filtered - clean)))
print("filtered", filtered[:4])
cutoffs = jnp.array([8.0, 30.0, 100.0])
errors = jax.vmap(lambda c: jnp.mean((low_pass(signal, c) - clean) ** 2))(cutoffs)
print("errors by cutoff", errors)
print("derivative by the cutoff %.6f" % jax.grad(
    lambda c: jnp.mean((low_pass(signal, c) - clean) ** 2) * 1000)(10.0))

# convolution theorem
kernel = jnp.exp(-jnp.linspace(-2, 2, 17) ** 2)
kernel = kernel / kernel.sum()
direct = jnp.convolve(signal, kernel, mode="full")
n = N + len(kernel) - 1
fast = jnp.fft.ifft(jnp.fft.fft(signal, n) * jnp.fft.fft(kernel, n)).real
print("convolution theorem:", bool(jnp.allclose(direct, fast, atol=1e-4)), direct[100:103])

# an image: a centred high-pass in two dimensions
yy, xx = jnp.meshgrid(jnp.arange(32), jnp.arange(32), indexing="ij")
image = jnp.exp(-((xx - 12) ** 2 + (yy - 18) ** 2) / 40.0) + 0.2 * ((xx // 4 + yy // 4) % 2)
F = jnp.fft.fftshift(jnp.fft.fft2(image))
radius = jnp.hypot(xx - 16.0, yy - 16.0)
high = jnp.fft.ifft2(jnp.fft.ifftshift(jnp.where(radius > 3, F, 0)))
print("imaginary part is small:", bool(jnp.abs(high.imag).max() < 1e-5))
print("high-pass", high.real[10, 8:12], "energy %.5f" % jnp.sum(high.real ** 2))
