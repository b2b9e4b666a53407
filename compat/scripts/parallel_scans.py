"""Associative scans: running products of matrices, a linear recurrence, Horner, bracket depth."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

rng = np.random.RandomState(6)
a = jnp.array(rng.uniform(0.5, 0.99, 200), jnp.float32)
b = jnp.array(rng.randn(200), jnp.float32)


# h[t] = a[t] h[t-1] + b[t]
def combine(left, right):
    return left[0] * right[0], right[0] * left[1] + right[1]


@jax.jit
def recurrence_parallel(a, b):
    return lax.associative_scan(combine, (a, b))[1]


@jax.jit
def recurrence_serial(a, b):
    def step(h, ab):
        h = ab[0] * h + ab[1]
        return h, h
    return lax.scan(step, 0.0, (a, b))[1]


h = recurrence_parallel(a, b)
print("last", h[-1], "agree:", bool(jnp.allclose(h, recurrence_serial(a, b), atol=1e-4)))
gradients = [jax.jit(jax.grad(lambda a, f=f: f(a, b)[-1]))(a)
             for f in (recurrence_parallel, recurrence_serial)]
print("gradients agree:", bool(jnp.allclose(*gradients, atol=1e-4)), gradients[0][-3:])

# Fibonacci numbers as running products of a matrix
M = jnp.broadcast_to(jnp.array([[1, 1], [1, 0]], jnp.int32), (20, 2, 2))
powers = jax.jit(lambda M: lax.associative_scan(jnp.matmul, M))(M)
print("fibonacci", powers[:, 0, 1])

# rotations compose; reverse scans too
angles = jnp.linspace(0.0, 0.3, 16)
R = jnp.stack([jnp.stack([jnp.cos(angles), -jnp.sin(angles)], -1),
               jnp.stack([jnp.sin(angles), jnp.cos(angles)], -1)], -2)
product = lambda x, y: jnp.einsum("...ij,...jk->...ik", x, y)
total = jax.jit(lambda R: lax.associative_scan(product, R))(R)[-1]
print("rotation", jnp.arctan2(total[1, 0], total[0, 0]), "expected", angles.sum())
suffix = jax.jit(lambda b: lax.associative_scan(jnp.maximum, b, reverse=True))(b)
print("suffix maxima", jnp.unique(suffix)[-4:])

# cumulative functions against each other
x = jnp.array(rng.rand(50), jnp.float32)
print("cumsum", bool(jnp.allclose(jnp.cumsum(x), lax.associative_scan(jnp.add, x), rtol=1e-5)),
      "cumprod", jnp.cumprod(0.5 + x)[-1], "cummax", lax.cummax(x)[10:13],
      "cumlogsumexp", lax.cumlogsumexp(x)[-1])

# depth of brackets, the longest balanced part
text = "(()(()))())(((())))(()"
delta = jnp.array([1 if c == "(" else -1 for c in text])
depth = jnp.cumsum(delta)
print("depth", depth, "deepest", depth.max(), "first below zero", int(jnp.argmax(depth < 0)))

# a self-attending running softmax: (max, sum, weighted sum), as in flash attention
scores, values = 3 * b[:64], x[:32].repeat(2)


def merge(p, q):
    m = jnp.maximum(p[0], q[0])
    sp, sq = jnp.exp(p[0] - m), jnp.exp(q[0] - m)
    return m, p[1] * sp + q[1] * sq, p[2] * sp + q[2] * sq


m, s, w = jax.jit(lambda *p: lax.associative_scan(merge, p))(scores, jnp.ones(64), values)
print("running softmax", (w / s)[15::16])
print("direct", jax.nn.softmax(scores) @ values)
segments = jnp.array([0, 0, 1, 1, 1, 2])
print("segments", jnp.zeros(3).at[segments].add(x[:6]), jnp.zeros(3).at[segments].max(x[:6]))
