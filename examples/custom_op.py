"""An operation of one's own: a NumPy rule, derivatives, batching and a kernel in Mojo.

    python examples/custom_op.py

The soft clip keeps values below a limit, smoothly:
``softclip(x) = limit * x / sqrt(limit^2 + x^2)``. Its primitive goes through grad, vmap and jit as
those of maxjax's do; in a compiled program the Mojo function is part of the program's fused loops.
"""

from __future__ import annotations

import numpy as np

import maxjax as jax
import maxjax.numpy as jnp
from maxjax.extend import mojo
from maxjax.extend.core import Primitive
from maxjax.interpreters import ad, batching

softclip_p = Primitive("softclip")


def softclip(x, limit: float = 1.0):
    """``x``, smoothly clipped to the interval from ``-limit`` to ``limit``."""
    return softclip_p.bind(jnp.asarray(x), limit=float(limit))


@softclip_p.def_abstract_eval
def _(x, *, limit):
    return jax.core.ShapedArray(x.shape, x.dtype)


@softclip_p.def_impl
def _(x, *, limit):
    """The NumPy rule: it computes until the kernel is there, and is what that is held against."""
    limit = np.asarray(limit, x.dtype)
    return limit * x / np.sqrt(limit * limit + x * x)


# The derivative: (limit / sqrt(limit^2 + x^2))^3.
ad.defjvp(softclip_p, lambda t, x, limit: t * (limit * jax.lax.rsqrt(limit ** 2 + x * x)) ** 3)
batching.defvectorized(softclip_p)
mojo.register_elementwise(softclip_p, lambda limit: f"""
@always_inline
def softclip[dtype: DType, width: SIMDLength](x: SIMD[dtype, width]) -> SIMD[dtype, width]:
    from std.math import sqrt

    var limit = SIMD[dtype, width]({limit!r})
    return limit * x / sqrt(limit * limit + x * x)
""")


def main() -> None:
    x = jnp.linspace(-3, 3, 7)
    print("values", softclip(x))
    print("derivatives", jax.vmap(jax.grad(softclip))(x))

    @jax.jit
    def loss(w, x):
        return jnp.mean(softclip(jnp.tanh(x @ w) * 3, 2.0) ** 2)

    w, xs = jnp.ones((4, 2)) / 8, jnp.arange(12.0).reshape(3, 4) / 10
    print(jax.make_jaxpr(loss)(w, xs))
    gradient = jax.jit(jax.value_and_grad(loss))
    print("compiled:", gradient.lower(w, xs).compile()(w, xs))
    print(jax.debug.explain(gradient, w, xs))


if __name__ == "__main__":
    main()
