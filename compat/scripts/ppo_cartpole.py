# libraries: flax optax distrax chex
# tolerance: 5e-3 (an action that rounding decides changes an episode)
"""PPO on a cart pole written in jnp: Flax policy, Distrax, Optax, everything under one jit."""
import chex
import distrax
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState
from jax import lax

ENVS, STEPS, EPOCHS, MINIBATCHES, UPDATES = 8, 32, 2, 2, 6


@chex.dataclass
class Env:
    x: chex.Array
    time: chex.Array


def reset(key):
    return Env(x=jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05), time=jnp.int32(0))


def env_step(key, env, action):
    x, v, angle, spin = env.x
    force = jnp.where(action == 1, 10.0, -10.0)
    c, s = jnp.cos(angle), jnp.sin(angle)
    inner = (force + 0.05 * spin ** 2 * s) / 1.1
    turn = (9.8 * s - c * inner) / (0.5 * (4.0 / 3.0 - 0.1 * c ** 2 / 1.1))
    push = inner - 0.05 * turn * c / 1.1
    x = jnp.stack([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn])
    done = (jnp.abs(x[0]) > 2.4) | (jnp.abs(x[2]) > 0.2095) | (env.time >= 199)
    following = Env(x=x, time=env.time + 1)
    following = jax.tree.map(lambda a, b: jnp.where(done, a, b), reset(key), following)
    return following, jnp.float32(1.0), done


class ActorCritic(nn.Module):
    @nn.compact
    def __call__(self, x):
        orthogonal = nn.initializers.orthogonal
        a = nn.tanh(nn.Dense(32, kernel_init=orthogonal(1.4))(x))
        v = nn.tanh(nn.Dense(32, kernel_init=orthogonal(1.4))(x))
        logits = nn.Dense(2, kernel_init=orthogonal(0.01))(a)
        return distrax.Categorical(logits=logits), nn.Dense(1)(v)[..., 0]


def collect(state, env, key):
    def one(env, key):
        act, move = jax.random.split(key)
        policy, value = state.apply_fn(state.params, env.x)
        action, log_prob = policy.sample_and_log_prob(seed=act)
        following, reward, done = jax.vmap(env_step)(jax.random.split(move, ENVS), env, action)
        return following, dict(x=env.x, action=action, log_prob=log_prob, value=value,
                               reward=reward, done=done)
    return lax.scan(one, env, jax.random.split(key, STEPS))


def advantages(rollout, last):
    def one(carry, t):
        gae, following = carry
        going = 1.0 - t["done"]
        delta = t["reward"] + 0.99 * following * going - t["value"]
        gae = delta + 0.99 * 0.95 * going * gae
        return (gae, t["value"]), gae
    _, gae = lax.scan(one, (jnp.zeros(ENVS), last), rollout, reverse=True)
    return gae


def loss_fn(params, apply, batch):
    policy, value = apply(params, batch["x"])
    ratio = jnp.exp(policy.log_prob(batch["action"]) - batch["log_prob"])
    gae = (batch["gae"] - batch["gae"].mean()) / (batch["gae"].std() + 1e-8)
    gain = jnp.minimum(ratio * gae, jnp.clip(ratio, 0.8, 1.2) * gae).mean()
    return 0.5 * jnp.mean((value - batch["target"]) ** 2) - gain - 0.01 * policy.entropy().mean()


@jax.jit
def update(state, env, key):
    roll, shuffle = jax.random.split(key)
    env, rollout = collect(state, env, roll)
    gae = advantages(rollout, state.apply_fn(state.params, env.x)[1])
    batch = dict(rollout, gae=gae, target=gae + rollout["value"])
    batch = jax.tree.map(lambda a: a.reshape(ENVS * STEPS, *a.shape[2:]), batch)

    def epoch(state, key):
        order = jax.random.permutation(key, ENVS * STEPS).reshape(MINIBATCHES, -1)

        def minibatch(state, rows):
            part = jax.tree.map(lambda a: a[rows], batch)
            loss, grads = jax.value_and_grad(loss_fn)(state.params, state.apply_fn, part)
            return state.apply_gradients(grads=grads), loss
        return lax.scan(minibatch, state, order)
    state, losses = lax.scan(epoch, state, jax.random.split(shuffle, EPOCHS))
    return state, env, {"loss": losses.mean(), "episodes": rollout["done"].sum()}


key = jax.random.key(0)
model = ActorCritic()
params = model.init(jax.random.key(1), jnp.zeros(4))
tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(2.5e-3, eps=1e-5))
state = TrainState.create(apply_fn=model.apply, params=params, tx=tx)
env = jax.vmap(reset)(jax.random.split(key, ENVS))
for i in range(UPDATES):
    key, sub = jax.random.split(key)
    state, env, metrics = update(state, env, sub)
    print("update", i + 1, "loss", float(metrics["loss"]), "episodes", int(metrics["episodes"]))
print("steps", int(state.step), "norm", float(optax.global_norm(state.params)))
