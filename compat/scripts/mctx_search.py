# libraries: mctx
"""mctx: MuZero's and Gumbel MuZero's searches on a small chain, batched, under jit."""
import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np

BATCH, ACTIONS, LENGTH = 4, 3, 7


def reward_of(position, action):
    """At the chain's right end is a reward; going left gives a little at once."""
    at_end = (position >= LENGTH - 1) & (action == 2)
    return jnp.where(at_end, 1.0, jnp.where(action == 0, 0.05, 0.0))


def value_of(params, position):
    return params["value"][position]


def prior_of(params, position):
    return params["prior"][position]


def recurrent_fn(params, key, action, embedding):
    position = jnp.clip(embedding["position"] + action - 1, 0, LENGTH - 1)
    output = mctx.RecurrentFnOutput(
        reward=reward_of(embedding["position"], action),
        discount=jnp.full_like(params["value"][position], 0.95),
        prior_logits=prior_of(params, position), value=value_of(params, position))
    return output, {"position": position, "depth": embedding["depth"] + 1}


def root_of(params, positions):
    return mctx.RootFnOutput(
        prior_logits=prior_of(params, positions), value=value_of(params, positions),
        embedding={"position": positions, "depth": jnp.zeros_like(positions)})


@functools.partial(jax.jit, static_argnames="simulations")
def gumbel(params, key, positions, simulations):
    return mctx.gumbel_muzero_policy(
        params, key, root_of(params, positions), recurrent_fn, simulations, max_depth=8,
        qtransform=functools.partial(mctx.qtransform_completed_by_mix_value, value_scale=0.5))


@jax.jit
def muzero(params, key, positions):
    invalid = jnp.zeros((BATCH, ACTIONS)).at[:, 0].set(positions == 0)
    return mctx.muzero_policy(params, key, root_of(params, positions), recurrent_fn, 24,
                              invalid_actions=invalid, dirichlet_fraction=0.1)


keys = jax.random.split(jax.random.key(0), 4)
params = {"value": jax.random.uniform(keys[0], (LENGTH,)),
          "prior": jax.random.normal(keys[1], (LENGTH, ACTIONS))}
positions = jnp.array([0, 2, 4, 6])
for name, output in (("gumbel", gumbel(params, keys[2], positions, 16)),
                     ("muzero", muzero(params, keys[3], positions))):
    summary = output.search_tree.summary()
    print(name, "actions", output.action.tolist())
    print(" weights", np.asarray(output.action_weights))
    print(" visits", summary.visit_counts.tolist())
    print(" values", np.asarray(summary.value), np.asarray(summary.qvalues))
    print(" nodes", output.search_tree.node_visits.sum(-1).tolist(),
          output.search_tree.embeddings["depth"].max(-1).tolist())


@jax.jit
def improve(params, key):
    """Values of the search become the table's: a few steps of policy iteration."""
    everywhere = jnp.arange(LENGTH)
    output = mctx.gumbel_muzero_policy(
        params, key, root_of(params, everywhere), recurrent_fn, 12)
    new = output.search_tree.summary().value
    logits = jnp.log(output.action_weights + 1e-3)
    return {"value": 0.5 * (params["value"] + new), "prior": logits}


for key in jax.random.split(jax.random.key(1), 4):
    params = improve(params, key)
print("values", np.asarray(params["value"]))
print("policy", jnp.argmax(params["prior"], -1).tolist())
