# tolerance: 1e-4 (the rounding of 40 updates adds up)
"""REINFORCE with a baseline on a windy grid; episodes are scans, batches are vmapped."""
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random

HEIGHT, WIDTH, HORIZON, BATCH = 3, 4, 16, 32
MOVES = jnp.array([[-1, 0], [1, 0], [0, -1], [0, 1]])
GOAL = jnp.array([2, 3])


class State(NamedTuple):
    position: jax.Array
    done: jax.Array


def reset():
    return State(jnp.array([0, 0]), jnp.array(False))


def step(state, action, key):
    wind = random.bernoulli(key, 0.2)
    move = lax.cond(wind, lambda: MOVES[0], lambda: MOVES[action])
    position = jnp.clip(state.position + move, 0, jnp.array([HEIGHT - 1, WIDTH - 1]))
    position = jnp.where(state.done, state.position, position)
    arrived = jnp.all(position == GOAL)
    reward = jnp.where(state.done, 0.0, jnp.where(arrived, 1.0, -0.02))
    return State(position, state.done | arrived), reward


def policy(params, position):
    return params[position[0], position[1]]


def rollout(params, key):
    def one(state, key):
        k_action, k_wind = random.split(key)
        action = random.categorical(k_action, policy(params, state.position))
        new, reward = step(state, action, k_wind)
        return new, (state.position, action, reward, ~state.done)
    _, trajectory = lax.scan(one, reset(), random.split(key, HORIZON))
    return trajectory


def discounted(rewards, gamma=0.95):
    def back(carry, r):
        carry = r + gamma * carry
        return carry, carry
    return lax.scan(back, 0.0, rewards, reverse=True)[1]


@partial(jax.jit, static_argnames="batch")
def update(params, key, batch=BATCH):
    positions, actions, rewards, alive = jax.vmap(rollout, (None, 0))(
        params, random.split(key, batch))
    returns = jax.vmap(discounted)(rewards)
    baseline = jnp.sum(returns * alive, axis=0) / jnp.maximum(alive.sum(axis=0), 1)
    advantage = lax.stop_gradient(returns - baseline)

    def objective(params):
        logits = jax.vmap(jax.vmap(partial(policy, params)))(positions)
        logp = jax.nn.log_softmax(logits)
        chosen = jnp.take_along_axis(logp, actions[..., None], axis=-1)[..., 0]
        entropy = -jnp.sum(jnp.exp(logp) * logp, axis=-1)
        return jnp.sum(alive * (chosen * advantage + 0.01 * entropy)) / batch

    gradient = jax.grad(objective)(params)
    return params + 2.0 * gradient, rewards.sum(axis=1).mean()


params = jnp.zeros((HEIGHT, WIDTH, 4))
key = random.key(2024)
history = []
for i in range(40):
    key, k = random.split(key)
    params, score = update(params, k)
    history.append(float(score))
# Means of multiples of 0.02 over 32: to four places they would be ties, which rounding decides.
print("returns", " ".join(f"{r:.6f}" for r in history[::8]))
print("it learns:", sum(history[-5:]) > sum(history[:5]) + 0.5)
greedy = jnp.argmax(params, axis=-1)
print("greedy moves from the start", greedy[0, :3])
print("probabilities at the start", jax.nn.softmax(params[0, 0]))
visited, _, rewards, alive = jax.jit(rollout)(20 * params, random.key(0))
print("an episode of", int(alive.sum()), "steps ends at", visited[alive][-1],
      f"{rewards.sum():.4f}")
