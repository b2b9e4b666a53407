"""A user's program, for type checkers: read once with JAX and once with maxjax in its place.

Never run. What `reveal_type` shows must be the same for both, up to the modules' names.
"""

from typing import NamedTuple, reveal_type

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike


class Parameters(NamedTuple):
    weight: Array
    bias: Array


def loss(parameters: Parameters, x: Array) -> Array:
    return jnp.mean((x @ parameters.weight + parameters.bias) ** 2)


@jax.jit
def step(parameters: Parameters, x: Array) -> Parameters:
    gradient = jax.grad(loss)(parameters, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient)


@jax.custom_jvp
def clipped(x: Array) -> Array:
    return jnp.clip(x, -1, 1)


@clipped.defjvp
def clipped_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return clipped(*primals), tangents[0]


@jax.custom_vjp
def scaled(x: Array) -> Array:
    return 2 * x


def takes(x: ArrayLike) -> Array:
    return jnp.asarray(x)


x = jnp.ones((3, 3))
parameters = Parameters(x, x)

# --- transformations
reveal_type(step)
reveal_type(step(parameters, x))
reveal_type(jax.jit(loss))
reveal_type(jax.jit(static_argnums=0))
reveal_type(jax.jit(loss, static_argnames=("x",), donate_argnums=0, inline=True))
reveal_type(jax.vmap(loss))
reveal_type(jax.vmap(loss, in_axes=(None, 0))(parameters, x))
reveal_type(jax.grad(loss))
reveal_type(jax.grad(loss)(parameters, x))
reveal_type(jax.value_and_grad(loss))
reveal_type(jax.value_and_grad(loss, argnums=(0, 1))(parameters, x))
reveal_type(jax.jacfwd(loss))
reveal_type(jax.hessian(loss))
reveal_type(jax.vjp(loss, parameters, x))
reveal_type(jax.vjp(lambda x: (x, 1), x, has_aux=True))
reveal_type(jax.jvp(loss, (parameters, x), (parameters, x)))
reveal_type(jax.linearize(loss, parameters, x))
reveal_type(jax.checkpoint(loss))
reveal_type(jax.make_jaxpr(loss))
reveal_type(jax.make_jaxpr(loss)(parameters, x))
reveal_type(clipped(x))
reveal_type(scaled(x))
reveal_type(jax.named_call(loss, name="loss"))
reveal_type(jax.eval_shape(loss, parameters, x))

# --- pytrees
reveal_type(jax.tree.map)
reveal_type(jax.tree.map(jnp.sin, parameters))
reveal_type(jax.tree.leaves(parameters))
reveal_type(jax.tree.flatten(parameters))
reveal_type(jax.tree.structure(parameters))
reveal_type(jax.tree.all(parameters))
reveal_type(jax.tree.reduce(lambda total, leaf: total + leaf.size, parameters, 0))
reveal_type(jax.tree.map_with_path)
reveal_type(jax.tree_util.register_pytree_node_class(Parameters))

# --- random numbers
key = random.key(0)
reveal_type(key)
reveal_type(random.split(key))
reveal_type(random.split(key, 3))
reveal_type(random.fold_in(key, 1))
reveal_type(random.normal(key, (2,)))
reveal_type(random.uniform(key))
reveal_type(random.randint(key, (2,), 0, 3))
reveal_type(random.bernoulli(key))
reveal_type(random.choice(key, x))
reveal_type(random.permutation(key, 3))
reveal_type(random.categorical(key, x))
reveal_type(random.truncated_normal(key, -1, 1))
reveal_type(random.bits(key))

# --- arrays
reveal_type(x.at)
reveal_type(x.at[0])
reveal_type(x.at[0].set(1))
reveal_type(x.at[0, 1:].add(x, mode="drop"))
reveal_type(x.at[0].get())
reveal_type(x.at[0].apply(jnp.sin))
reveal_type(x + x)
reveal_type(x - 1)
reveal_type(x / 2.0)
reveal_type(x @ x)
reveal_type(x ** 2)
reveal_type(2.0 * x)
reveal_type(1 - x)
reveal_type(-x)
reveal_type(abs(x))
reveal_type(x == x)
reveal_type(x < 1)
reveal_type((x > 0) & (x < 1))
reveal_type(divmod(x, 2))
reveal_type(x[0])
reveal_type(x[..., None])
reveal_type(len(x))
reveal_type([row for row in x])
reveal_type(float(x))
reveal_type(int(x))
reveal_type(bool(x))
reveal_type(x.sum())
reveal_type(x.mean(axis=0, keepdims=True))
reveal_type(x.max(axis=(0, 1)))
reveal_type(x.reshape(3, -1))
reveal_type(x.transpose(1, 0))
reveal_type(x.astype(jnp.bfloat16))
reveal_type(x.nonzero())
reveal_type(x.item())
reveal_type(x.T)
reveal_type(x.shape)
reveal_type(x.dtype)
reveal_type(x.ndim)
reveal_type(x.size)
reveal_type(x.weak_type)
reveal_type(x.block_until_ready())
reveal_type(x.sharding)
reveal_type(takes(1.0))
reveal_type(takes)

# --- functions of arrays
reveal_type(jnp.sin(x))
reveal_type(jnp.add(x, 1))
reveal_type(jnp.maximum(x, 0))
reveal_type(jnp.add.reduce(x))
reveal_type(jnp.where(x > 0, x, 0))
reveal_type(jnp.where(x))
reveal_type(jnp.zeros((2, 3), jnp.int8))
reveal_type(jnp.arange(3))
reveal_type(jnp.linspace(0, 1))
reveal_type(jnp.linspace(0, 1, retstep=True))
reveal_type(jnp.concatenate([x, x]))
reveal_type(jnp.split(x, 3))
reveal_type(jnp.meshgrid(x, x))
reveal_type(jnp.atleast_2d(x))
reveal_type(jnp.atleast_2d(x, x))
reveal_type(jnp.average(x, returned=True))
reveal_type(jnp.einsum("ij,jk->ik", x, x))
reveal_type(jnp.argsort(x))
reveal_type(jnp.unique(x))
reveal_type(jnp.result_type(x, 1.0))
reveal_type(jnp.issubdtype(x.dtype, jnp.floating))
reveal_type(jnp.finfo(x.dtype))
reveal_type(jnp.pi)
reveal_type(jnp.linalg.qr(x))
reveal_type(jnp.linalg.svd(x, compute_uv=False))
reveal_type(jnp.fft.fft(x))
reveal_type(lax.exp(x))
reveal_type(lax.add(x, x))
reveal_type(lax.select(x > 0, x, x))
reveal_type(lax.sort(x))
reveal_type(lax.stop_gradient(parameters))
reveal_type(lax.psum(x, "batch"))
reveal_type(lax.while_loop(lambda x: x[0] > 0, lambda x: x - 1, x))
reveal_type(lax.fori_loop(0, 3, lambda i, x: x, x))
reveal_type(lax.scan(lambda carry, x: (carry, x), x, x))
reveal_type(lax.cond(True, lambda: x, lambda: x))
reveal_type(lax.map(jnp.sin, x))
reveal_type(jax.nn.relu(x))
reveal_type(jax.nn.gelu(x))
reveal_type(jax.nn.softmax(x, axis=-1))
reveal_type(jax.nn.logsumexp(x))
reveal_type(jax.nn.one_hot(x, 3))
reveal_type(jax.nn.initializers.he_normal()(key, (2, 2)))
reveal_type(jax.scipy.special.gammaln(x))
reveal_type(ravel_pytree(parameters))

# --- devices
reveal_type(jax.device_put(x))
reveal_type(jax.device_count())
reveal_type(jax.ShapeDtypeStruct((2,), jnp.float32))
reveal_type(jax.process_index())
