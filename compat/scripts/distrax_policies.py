# libraries: distrax rlax optax
# tolerance: 1e-3 (training amplifies the rounding)
"""Distrax policies: a Gaussian actor squashed by a bijector, a categorical one, RLax targets."""
import distrax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import rlax


def actor(params, observation):
    h = jnp.tanh(observation @ params["w"] + params["b"])
    mean, raw = jnp.split(h @ params["out"], 2, axis=-1)
    normal = distrax.MultivariateNormalDiag(mean, 0.3 + jax.nn.softplus(raw))
    return distrax.Transformed(normal, distrax.Block(distrax.Tanh(), ndims=1))


keys = jr.split(jr.key(0), 3)
params = {"w": jr.normal(keys[0], (3, 16)) / 2, "b": jnp.zeros(16),
          "out": jr.normal(keys[1], (16, 4)) / 4}
observations = jr.normal(keys[2], (64, 3))
goal = jnp.tanh(observations[:, :2] - observations[:, 2:])


def objective(params, key):
    policy = actor(params, observations)
    action, log_prob = policy.sample_and_log_prob(seed=key)
    reward = -jnp.sum((action - goal) ** 2, axis=-1)
    return -jnp.mean(reward - 0.01 * log_prob)


tx = optax.adam(1e-2)
opt_state = tx.init(params)


@jax.jit
def step(params, opt_state, key):
    loss, grads = jax.value_and_grad(objective)(params, key)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


for i, key in enumerate(jr.split(jr.key(1), 40)):
    params, opt_state, loss = step(params, opt_state, key)
    if i % 10 == 9:
        print("step", i + 1, "loss", float(loss))

logits = jr.normal(jr.key(2), (5, 4))
policy = distrax.Categorical(logits=logits)
greedy = distrax.EpsilonGreedy(logits, epsilon=0.1)
print("actions", policy.sample(seed=jr.key(3), sample_shape=(6,)).tolist())
print("entropy", np.asarray(policy.entropy()), np.asarray(greedy.prob(policy.mode())))
print("KL", np.asarray(policy.kl_divergence(distrax.Categorical(logits=logits[::-1]))))
print("mixture", np.asarray(distrax.MixtureSameFamily(
    distrax.Categorical(probs=jnp.array([0.3, 0.7])),
    distrax.Normal(jnp.array([-1.0, 2.0]), jnp.array([0.5, 1.0]))).log_prob(jnp.arange(3.0))))
flow = distrax.Chain([distrax.ScalarAffine(1.0, 2.0), distrax.RationalQuadraticSpline(
    jr.normal(jr.key(4), (10,)), -2.0, 2.0)])
y, log_det = flow.forward_and_log_det(jnp.linspace(-1.5, 1.5, 4))
print("flow", np.asarray(y), np.asarray(log_det), np.asarray(flow.inverse(y)))

rewards = jr.normal(jr.key(5), (6,))
values = jr.normal(jr.key(6), (7,))
discounts = jnp.full(6, 0.9)
print("lambda", np.asarray(rlax.lambda_returns(rewards, discounts, values[1:], 0.8)))
print("GAE", np.asarray(rlax.truncated_generalized_advantage_estimation(
    rewards, discounts, 0.95, values)))
trace = rlax.vtrace_td_error_and_advantage(
    values[:-1], values[1:], rewards, discounts, jnp.exp(0.3 * rewards))
print("V-trace", np.asarray(trace.errors), np.asarray(trace.pg_advantage))
print("policy gradient", float(rlax.policy_gradient_loss(
    logits, jnp.argmax(logits, -1), values[:5], jnp.ones(5))))
print("Q", np.asarray(jax.vmap(rlax.q_learning)(
    logits[:4], jnp.array([0, 1, 2, 3]), rewards[:4], discounts[:4], logits[1:])))
