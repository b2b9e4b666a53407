# libraries: optax
# tolerance: 1e-3 (training amplifies the rounding)
"""Optax: many optimisers, masks, partitions, accumulation, schedules, losses, line search."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
x = jnp.asarray(rng.standard_normal((64, 6)), jnp.float32)
y = jnp.asarray(rng.integers(0, 3, 64))
start = {"dense": {"w": jnp.asarray(0.3 * rng.standard_normal((6, 3)), jnp.float32),
                   "b": jnp.zeros(3)}, "scale": jnp.ones(3)}


def loss_fn(params):
    logits = (x @ params["dense"]["w"] + params["dense"]["b"]) * params["scale"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def train(tx, steps=12):
    @jax.jit
    def step(params, state):
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state
    params, state = start, tx.init(start)
    for _ in range(steps):
        params, state = step(params, state)
    return params, state


def is_weight(params):
    return jax.tree.map(lambda p: p.ndim > 1, params)


labels = {"dense": {"w": "fast", "b": "slow"}, "scale": "frozen"}
schedule = optax.join_schedules(
    [optax.linear_schedule(0.0, 0.1, 4), optax.cosine_decay_schedule(0.1, 8)], [4])
for name, tx in {
        "sgd": optax.sgd(0.1, momentum=0.9, nesterov=True),
        "adamw masked": optax.adamw(0.03, weight_decay=0.1, mask=is_weight),
        "lion": optax.lion(0.01), "adafactor": optax.adafactor(0.05),
        "lamb": optax.lamb(0.05), "rmsprop": optax.rmsprop(0.01, centered=True),
        "adagrad": optax.adagrad(0.3), "nadam": optax.nadam(0.03), "adabelief":
        optax.adabelief(0.03), "novograd": optax.novograd(0.05), "yogi": optax.yogi(0.03),
        "schedule": optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(schedule),
                                optax.scale(-1.0)),
        "partition": optax.partition({"fast": optax.adam(0.05), "slow": optax.sgd(0.01),
                                      "frozen": optax.set_to_zero()}, labels),
        "accumulated": optax.MultiSteps(optax.adam(0.05), every_k_schedule=3),
        "clipped": optax.chain(optax.adaptive_grad_clip(0.1), optax.sgd(0.3)),
        "noisy": optax.chain(optax.add_noise(0.01, 0.55, 0), optax.sgd(0.1)),
        "injected": optax.inject_hyperparams(optax.adam)(learning_rate=schedule),
        "if finite": optax.apply_if_finite(optax.adam(0.03), 2)}.items():
    params, state = train(tx)
    print(f"{name:14}", float(loss_fn(params)), float(optax.global_norm(params)))

tx = optax.lbfgs()
value_and_grad = optax.value_and_grad_from_state(loss_fn)
params, state = start, tx.init(start)
for _ in range(6):
    value, grad = value_and_grad(params, state=state)
    updates, state = tx.update(grad, state, params, value=value, grad=grad, value_fn=loss_fn)
    params = optax.apply_updates(params, updates)
print("lbfgs", float(loss_fn(params)))
tx = optax.lookahead(optax.sgd(0.2), sync_period=3, slow_step_size=0.5)
params = optax.LookaheadParams.init_synced(start)
state = tx.init(params)
for _ in range(6):
    updates, state = tx.update(jax.grad(loss_fn)(params.fast), state, params)
    params = optax.apply_updates(params, updates)
print("lookahead", float(loss_fn(params.slow)))
print("found", int(optax.tree.get(train(optax.adam(0.1), 5)[1], "count")))
logits = jnp.linspace(-2, 2, 6)
print("losses", np.asarray(optax.sigmoid_focal_loss(logits, jnp.arange(6) % 2)),
      float(optax.losses.kl_divergence(jax.nn.log_softmax(logits), jax.nn.softmax(-logits))),
      np.asarray(optax.ctc_loss(jnp.ones((1, 4, 3)), jnp.zeros((1, 4)), jnp.array([[1, 2]]),
                                jnp.zeros((1, 2)))))
print("hessian diagonal", np.asarray(optax.second_order.hessian_diag(
    lambda p, x, y: jnp.sum(jnp.tanh(x @ p) * y), jnp.ones(6) / 3, x[:4], jnp.ones(4))))
