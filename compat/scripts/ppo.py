# libraries: flax optax distrax
# tolerance: 2e-3 (updates by policy gradients amplify the rounding)
# absolute: 1e-4 (losses near zero)
"""Proximal policy optimisation in one jitted scan: Flax, Distrax, Optax, a pole on a cart."""
from typing import NamedTuple

import distrax
import flax.linen as nn
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from flax.linen.initializers import constant, orthogonal
from flax.training.train_state import TrainState

ENVS, STEPS, UPDATES, EPOCHS, BATCHES = 8, 32, 4, 2, 4
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2


class Cart(NamedTuple):
    y: jax.Array
    time: jax.Array


def reset(key):
    y = jr.uniform(key, (4,), minval=-0.05, maxval=0.05)
    return y, Cart(y, jnp.int32(0))


def step_env(key, state, action):
    x, v, angle, turn = state.y
    force = jnp.where(action == 1, 10.0, -10.0)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    pushed = (force + 0.05 * turn**2 * sin) / 1.1
    turning = (9.8 * sin - cos * pushed) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    moving = pushed - 0.05 * turning * cos / 1.1
    y = state.y + 0.02 * jnp.stack([v, moving, turn, turning])
    time = state.time + 1
    done = (jnp.abs(y[0]) > 2.4) | (jnp.abs(y[2]) > 0.2095) | (time >= 200)
    fresh, start = reset(key)
    after = jax.tree.map(lambda a, b: jnp.where(done, a, b), start, Cart(y, time))
    return jnp.where(done, fresh, y), after, 1.0, done


class ActorCritic(nn.Module):
    @nn.compact
    def __call__(self, x):
        def layers(x, out, scale):
            for _ in range(2):
                x = nn.tanh(nn.Dense(32, kernel_init=orthogonal(2**0.5),
                                     bias_init=constant(0.0))(x))
            return nn.Dense(out, kernel_init=orthogonal(scale))(x)
        return distrax.Categorical(logits=layers(x, 2, 0.01)), layers(x, 1, 1.0).squeeze(-1)


class Transition(NamedTuple):
    done: jax.Array
    action: jax.Array
    value: jax.Array
    reward: jax.Array
    log_prob: jax.Array
    seen: jax.Array


def act(carry, _):
    train, state, seen, key = carry
    key, choose, move = jr.split(key, 3)
    policy, value = train.apply_fn(train.params, seen)
    action, log_prob = policy.sample_and_log_prob(seed=choose)
    after, state, reward, done = jax.vmap(step_env)(jr.split(move, ENVS), state, action)
    kept = Transition(done, action, value, reward, log_prob, seen)
    return (train, state, after, key), kept


def advantages_of(kept, last):
    def back(carry, t):
        advantage, following = carry
        delta = t.reward + GAMMA * following * (1 - t.done) - t.value
        advantage = delta + GAMMA * LAMBDA * (1 - t.done) * advantage
        return (advantage, t.value), advantage
    return jax.lax.scan(back, (jnp.zeros_like(last), last), kept, reverse=True, unroll=4)[1]


def loss_of(params, apply, t, advantage, target):
    policy, value = apply(params, t.seen)
    clipped = t.value + jnp.clip(value - t.value, -CLIP, CLIP)
    value_loss = 0.5 * jnp.maximum((value - target) ** 2, (clipped - target) ** 2).mean()
    ratio = jnp.exp(policy.log_prob(t.action) - t.log_prob)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage).mean()
    entropy = policy.entropy().mean()
    return -gain + 0.5 * value_loss - 0.01 * entropy, (value_loss, gain, entropy)


def update(carry, _):
    (train, state, seen, key), kept = jax.lax.scan(act, carry, None, STEPS)
    advantage = advantages_of(kept, train.apply_fn(train.params, seen)[1])
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]),
                        (kept, advantage, advantage + kept.value))

    def epoch(carry, _):
        train, key = carry
        key, mix = jr.split(key)
        order = jr.permutation(mix, ENVS * STEPS).reshape(BATCHES, -1)

        def batch(train, rows):
            parts = jax.tree.map(lambda x: x[rows], flat)
            found, grads = jax.value_and_grad(loss_of, has_aux=True)(
                train.params, train.apply_fn, *parts)
            return train.apply_gradients(grads=grads), found
        train, losses = jax.lax.scan(batch, train, order)
        return (train, key), losses
    (train, key), losses = jax.lax.scan(epoch, (train, key), None, EPOCHS)
    means = jax.tree.map(lambda x: x.mean(), losses)
    return (train, state, seen, key), (means, kept.done.sum())


@jax.jit
def run(key):
    key, initial, starts = jr.split(key, 3)
    network = ActorCritic()
    schedule = optax.linear_schedule(1e-3, 0.0, UPDATES * EPOCHS * BATCHES)
    train = TrainState.create(
        apply_fn=network.apply, params=network.init(initial, jnp.zeros(4)),
        tx=optax.chain(optax.clip_by_global_norm(0.5), optax.adam(schedule, eps=1e-5)))
    seen, state = jax.vmap(reset)(jr.split(starts, ENVS))
    return jax.lax.scan(update, (train, state, seen, key), None, UPDATES)


(train, *_), ((losses, parts), falls) = run(jr.key(0))
for step in range(UPDATES):
    print("update", step, "loss", float(losses[step]), *(float(x[step]) for x in parts),
          "falls", int(falls[step]))
print("steps", int(train.step), "norm", float(optax.global_norm(train.params)))
many = jax.jit(jax.vmap(run))(jr.split(jr.key(1), 2))[1]
print("two seeds", many[0][0][:, 0].tolist(), many[1].tolist())
