# tolerance: 1e-4 (sums of blocks in another order)
# absolute: 1e-6 (entries near zero)
"""Kernels of Pallas, interpreted: a blocked product, softmax over rows, attention by blocks."""
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def matmul_kernel(x_ref, y_ref, z_ref, total, *, activation):
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += x_ref[...] @ y_ref[...]

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        z_ref[...] = activation(total[...])


def matmul(x, y, block=16, activation=jax.nn.gelu):
    m, k = x.shape
    n = y.shape[1]
    return pl.pallas_call(
        functools.partial(matmul_kernel, activation=activation),
        jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(pl.cdiv(m, block), pl.cdiv(n, block), k // block),
        in_specs=[pl.BlockSpec((block, block), lambda i, j, k: (i, k)),
                  pl.BlockSpec((block, block), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((block, block), jnp.float32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")),
        interpret=True)(x, y)


def softmax_kernel(x_ref, o_ref):
    row = x_ref[...]
    row = jnp.exp(row - row.max())
    o_ref[...] = row / row.sum()


def softmax(x):
    row = pl.BlockSpec((None, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(softmax_kernel, x, grid=x.shape[0], in_specs=[row], out_specs=row,
                          interpret=True)(x)


def attention_kernel(q_ref, k_ref, v_ref, o_ref, *, block):
    """The keys pass by in blocks, with a running maximum and sum."""
    q = q_ref[...]

    def body(n, carry):
        total, top, weight = carry
        keys = k_ref[pl.ds(n * block, block), :]
        scores = q @ keys.T / q.shape[-1] ** 0.5
        new_top = jnp.maximum(top, scores.max(1))
        shrink = jnp.exp(top - new_top)
        part = jnp.exp(scores - new_top[:, None])
        total = total * shrink[:, None] + part @ v_ref[pl.ds(n * block, block), :]
        return total, new_top, weight * shrink + part.sum(1)

    start = jnp.zeros(q.shape), jnp.full(q.shape[0], -jnp.inf), jnp.zeros(q.shape[0])
    total, _, weight = jax.lax.fori_loop(0, k_ref.shape[0] // block, body, start)
    o_ref[...] = total / weight[:, None]


def attention(q, k, v, block=8):
    whole = pl.BlockSpec(k.shape, lambda i: (0, 0))
    rows = pl.BlockSpec((block, q.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        functools.partial(attention_kernel, block=block), q, grid=(q.shape[0] // block,),
        in_specs=[rows, whole, whole], out_specs=rows, interpret=True)(q, k, v)


def show(name, x):
    print(name, x.shape, *(f"{float(value):.6g}" for value in x.reshape(-1)[::97]))


keys = jax.random.split(jax.random.key(0), 5)
x, y = jax.random.normal(keys[0], (40, 48)), jax.random.normal(keys[1], (48, 24))
show("product", jax.jit(matmul)(x, y))
print("as jnp:", bool(jnp.allclose(matmul(x, y), jax.nn.gelu(x @ y), rtol=1e-4, atol=1e-4)))
show("softmax", softmax(x))
show("mapped", jax.vmap(softmax)(jax.random.normal(keys[2], (3, 5, 7))))
q, k, v = jax.random.normal(keys[3], (3, 4, 32, 16))
show("attention", jax.jit(jax.vmap(attention))(q, k, v))
expected = jax.vmap(lambda q, k, v: jax.nn.softmax(q @ k.T / 4.0) @ v)(q, k, v)
print("as jnp:", bool(jnp.allclose(jax.vmap(attention)(q, k, v), expected, atol=1e-5)))
tangent = jax.jvp(softmax, (x,), (jnp.ones_like(x) * jnp.arange(48.0),))[1]
show("tangent", tangent)
