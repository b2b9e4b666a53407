# libraries: flax optax
# tolerance: 1e-3 (training amplifies the rounding)
"""Flax Linen's lifted transforms: an RNN of nn.scan, layers by nn.scan of nn.remat, nn.vmap."""
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Recurrent(nn.Module):
    @functools.partial(nn.transforms.scan, variable_broadcast="params", in_axes=1, out_axes=1,
                       split_rngs={"params": False})
    @nn.compact
    def __call__(self, carry, x):
        return nn.LSTMCell(features=16)(carry, x)


class Residual(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return x + nn.Dense(16)(nn.tanh(nn.LayerNorm()(x))), None


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        carry = nn.LSTMCell(features=16, parent=None).initialize_carry(
            jax.random.key(0), x[:, 0].shape)
        _, h = Recurrent()(carry, x)
        stack = nn.scan(nn.remat(Residual), variable_axes={"params": 0},
                        split_rngs={"params": True}, length=3)
        h, _ = stack()(h, None)
        heads = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True},
                        in_axes=None, out_axes=-1, axis_size=2)
        return heads(features=1)(h)[..., 0, :].mean(-1)


rng = np.random.default_rng(0)
x = rng.standard_normal((32, 20, 2)).astype(np.float32)
y = np.cumsum(x[..., 0] * (x[..., 1] > 0), axis=1) / 5
model = Model()
params = model.init(jax.random.key(1), x)
print(jax.tree.map(jnp.shape, params))
tx = optax.adam(5e-3)
opt_state = tx.init(params)


@jax.jit
def step(params, opt_state):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, x) - y) ** 2))(params)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


for i in range(30):
    params, opt_state, loss = step(params, opt_state)
    if i % 6 == 5:
        print("loss", float(loss))

cell = nn.RNN(nn.GRUCell(features=8), return_carry=True)
variables = cell.init(jax.random.key(2), x)
carry, outputs = cell.apply(variables, x, seq_lengths=jnp.arange(32) % 20 + 1)
print("GRU", float(carry.sum()), float(jnp.square(outputs).sum()))
