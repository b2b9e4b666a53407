# tolerance: 2e-3 (updates by policy gradients amplify the rounding)
# absolute: 1e-3 (losses near zero)
"""Proximal policy optimisation in one jitted scan that prints its progress by callbacks.

Checked to the tolerances above, with key 7: rewards, values, gradient norms; which updates were seen, exactly.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random

ENVS, LENGTH, UPDATES, EPOCHS, BATCHES = 16, 32, 12, 3, 4
GAMMA, LAMBDA, CLIP, RATE = 0.98, 0.95, 0.2, 3e-3
seen_by_python = []


class State(NamedTuple):
    angle: jax.Array
    speed: jax.Array
    time: jax.Array


class Step(NamedTuple):
    seen: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array


def reset(key):
    angle, speed = random.uniform(key, (2,), minval=-1.0, maxval=1.0)
    return State(angle * jnp.pi, speed, jnp.int32(0))


def observe(state):
    return jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle), state.speed / 8])


def move(key, state, action):
    torque = jnp.clip(2 * action[0], -2, 2)
    wrapped = (state.angle + jnp.pi) % (2 * jnp.pi) - jnp.pi
    cost = wrapped**2 + 0.1 * state.speed**2 + 0.001 * torque**2
    speed = jnp.clip(state.speed + 0.05 * (15 * jnp.sin(state.angle) + 3 * torque), -8, 8)
    after = State(state.angle + 0.05 * speed, speed, state.time + 1)
    done = after.time >= 50
    after = lax.cond(done, lambda: reset(key), lambda: after)
    return after, -0.1 * cost, done


def mlp(layers, x):
    for w, b in layers[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ layers[-1][0] + layers[-1][1]


def init(key):
    def layers(key, sizes, last):
        ks = random.split(key, len(sizes))
        make, scales = jax.nn.initializers.orthogonal, [2**0.5] * (len(sizes) - 2) + [last]
        return [(make(s)(k, (m, n)), jnp.zeros(n)) for k, m, n, s in zip(ks, sizes, sizes[1:], scales)]
    k1, k2 = random.split(key)
    return {"policy": layers(k1, (3, 32, 32, 1), 0.01), "value": layers(k2, (3, 32, 32, 1), 1.0),
            "log_std": jnp.zeros(1)}


def log_prob_of(params, seen, action):
    mean, std = mlp(params["policy"], seen), jnp.exp(params["log_std"])
    return jax.scipy.stats.norm.logpdf(action, mean, std).sum(-1)


def loss_of(params, part):
    step, advantage, target = part
    ratio = jnp.exp(log_prob_of(params, step.seen, step.action) - step.log_prob)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage).mean()
    value_loss = jnp.mean((mlp(params["value"], step.seen)[..., 0] - target) ** 2)
    return -gain + 0.5 * value_loss - 0.005 * params["log_std"].sum(), (gain, value_loss)


def clipped(grads):
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads)))
    return jax.tree.map(lambda g: g * jnp.minimum(1.0, 0.5 / norm), grads), norm


def update(carry, number):
    params, moments, states, key = carry
    key, rolling, mixing = random.split(key, 3)

    def act(states, key):
        k1, k2 = random.split(key)
        seen = jax.vmap(observe)(states)
        mean = mlp(params["policy"], seen)
        action = mean + jnp.exp(params["log_std"]) * random.normal(k1, mean.shape)
        after, reward, done = jax.vmap(move)(random.split(k2, ENVS), states, action)
        value = mlp(params["value"], seen)[:, 0]
        return after, Step(seen, action, log_prob_of(params, seen, action), value, reward, done)
    states, steps = lax.scan(act, states, random.split(rolling, LENGTH))
    last = mlp(params["value"], jax.vmap(observe)(states))[:, 0]

    def back(carry, step):
        advantage, following = carry
        keep = 1.0 - step.done
        advantage = step.reward + GAMMA * following * keep - step.value + GAMMA * LAMBDA * keep * advantage
        return (advantage, step.value), advantage
    gains = lax.scan(back, (jnp.zeros(ENVS), last), steps, reverse=True)[1]
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (steps, gains, gains + steps.value))

    def epoch(carry, key):
        order = random.permutation(key, ENVS * LENGTH).reshape(BATCHES, -1)

        def minibatch(carry, rows):
            params, (m, v, t) = carry
            (loss, parts), grads = jax.value_and_grad(loss_of, has_aux=True)(
                params, jax.tree.map(lambda x: x[rows], flat))
            grads, norm = clipped(grads)
            m, t = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads), t + 1
            v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, grads)
            params = jax.tree.map(lambda p, m, v: p - RATE * (m / (1 - 0.9**t)) / (
                jnp.sqrt(v / (1 - 0.999**t)) + 1e-5), params, m, v)
            return (params, (m, v, t)), (loss, norm, *parts)
        return lax.scan(minibatch, carry, order)
    (params, moments), found = lax.scan(epoch, (params, moments), random.split(mixing, EPOCHS))
    found = jax.tree.map(jnp.mean, found)
    jax.debug.callback(lambda n, r, x: seen_by_python.append((int(n), float(r), float(x))),
                       number, steps.reward.mean(), found[0], ordered=True)

    @jax.named_call
    def tell(_):
        jax.debug.print("update {n}: reward {r:.3f}", n=number, r=steps.reward.mean(), ordered=True)
    lax.cond(number % 4 == 3, tell, lambda _: None, None)
    return (params, moments, states, key), (steps.reward.mean(), *found)


@jax.jit
def run(key):
    k1, k2, k3 = random.split(key, 3)
    params, states = init(k1), jax.vmap(reset)(random.split(k2, ENVS))
    zeros = jax.tree.map(jnp.zeros_like, params)
    return lax.scan(update, (params, (zeros, zeros, 0.0), states, k3), jnp.arange(UPDATES))


(params, *_), (rewards, losses, norms, gains, values) = run(random.key(7))
jax.effects_barrier()
print("rewards", rewards[::3].tolist(), "values", values[::3].tolist(), "norms", norms[::3].tolist())
print("seen", [n for n, _, _ in seen_by_python], sum(r for _, r, _ in seen_by_python),
      max(abs(a - float(b)) for (_, a, _), b in zip(seen_by_python, rewards)) < 1e-6)
print("std", jnp.exp(params["log_std"]).tolist())
