# tolerance: 1e-4 (conjugate gradients and power iterations magnify the rounding)
"""Hessian-vector products four ways; Newton-CG, the top eigenvalue and the trace of a Hessian."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jvp, lax, vjp
from jax.flatten_util import ravel_pytree

rng = np.random.RandomState(0)
inputs = jnp.array(rng.randn(64, 6), jnp.float32)
targets = jnp.sin(inputs.sum(axis=1)) + 0.5
params = {"layer1": {"w": jnp.array(0.5 * rng.randn(6, 8), jnp.float32), "b": jnp.zeros(8)},
          "layer2": {"w": jnp.array(0.5 * rng.randn(8), jnp.float32), "b": jnp.zeros(())}}


def loss(params):
    h = jnp.tanh(inputs @ params["layer1"]["w"] + params["layer1"]["b"])
    out = h @ params["layer2"]["w"] + params["layer2"]["b"]
    return jnp.mean((out - targets) ** 2)


flat, unravel = ravel_pytree(params)
f = lambda v: loss(unravel(v))
v = jnp.cos(jnp.arange(flat.size, dtype=jnp.float32))


def forward_over_reverse(f, x, v):
    return jvp(grad(f), (x,), (v,))[1]


def reverse_over_forward(f, x, v):
    return grad(lambda x: jvp(f, (x,), (v,))[1])(x)


def reverse_over_reverse(f, x, v):
    _, pullback = vjp(grad(f), x)
    return pullback(v)[0]


def with_the_whole_hessian(f, x, v):
    return jax.hessian(f)(x) @ v


print("parameters", flat.shape, "loss %.6f" % f(flat))
for method in (forward_over_reverse, reverse_over_forward, reverse_over_reverse,
               with_the_whole_hessian):
    product = jax.jit(method, static_argnums=0)(f, flat, v)
    print(method.__name__, product[:3], "norm %.5f" % jnp.linalg.norm(product))


def conjugate_gradients(matvec, b, steps):
    def body(state, _):
        x, r, p, rr = state
        Ap = matvec(p)
        alpha = rr / jnp.vdot(p, Ap)
        x, r = x + alpha * p, r - alpha * Ap
        new = jnp.vdot(r, r)
        return (x, r, r + new / rr * p, new), new
    start = (jnp.zeros_like(b), b, b, jnp.vdot(b, b))
    return lax.scan(body, start, None, length=steps)[0][0]


@jax.jit
def newton_cg(x):
    value, g = jax.value_and_grad(f)(x)
    # Damping keeps the system positive definite.
    direction = conjugate_gradients(
        lambda p: forward_over_reverse(f, x, p) + 1.0 * p, g, 5)
    return x - direction, value


x = flat
for i in range(12):
    x, value = newton_cg(x)
    if i % 3 == 0:
        print(f"Newton-CG {i}: {value:.6f}")

_, linear = jax.linearize(grad(f), flat)


@jax.jit
def top_eigenvalue(v):
    def body(v, _):
        w = linear(v)
        return w / jnp.linalg.norm(w), jnp.vdot(v, w)
    return lax.scan(body, v / jnp.linalg.norm(v), None, length=40)[1][-1]


print("top eigenvalue %.5f" % top_eigenvalue(v),
      "exact %.5f" % jnp.linalg.eigvalsh(jax.hessian(f)(flat))[-1])
probes = jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, (64, flat.size)), 1.0, -1.0)
estimates = jax.vmap(lambda p: p @ linear(p))(probes)
print("trace %.5f" % estimates.mean(), "exact %.5f" % jnp.trace(jax.hessian(f)(flat)))
