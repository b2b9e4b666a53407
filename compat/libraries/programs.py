"""Programs of libraries, as users write them, that are timed on JAX and on maxjax.

    python [-m maxjax] -m compat.libraries.programs NAME SECONDS

prints, as JSON, the seconds from the process' start to the first result, and of a call after that:
the lower quartile of those that fit into so many seconds.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# A call of what is returned is timed, up to its result.
Made = Callable[[], Any]
PROGRAMS: dict[str, Callable[[], Made]] = {}


def program(make: Callable[[], Made]) -> Callable[[], Made]:
    PROGRAMS[make.__name__] = make
    return make


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def classes(x: np.ndarray) -> np.ndarray:
    return (x @ np.linspace(-1, 1, x.shape[1]) > 0).astype(np.int32)


# --- samplers -------------------------------------------------------------------------------------


def regression(x: np.ndarray, y: np.ndarray) -> None:
    import numpyro
    import numpyro.distributions as dist

    weights = numpyro.sample("weights", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=x @ weights), obs=y)


@program
def numpyro_nuts() -> Made:
    from numpyro.infer import MCMC, NUTS

    x = normal(200, 5)
    sampler = MCMC(NUTS(regression), num_warmup=200, num_samples=300, progress_bar=False)

    def run() -> Any:
        sampler.run(jax.random.key(0), x, classes(x))
        return sampler.get_samples()["weights"]

    return run


@program
def numpyro_svi_step() -> Made:
    import numpyro
    from numpyro.infer import SVI, Trace_ELBO, autoguide

    x = normal(200, 5)
    svi = SVI(regression, autoguide.AutoNormal(regression), numpyro.optim.Adam(1e-2), Trace_ELBO())
    state = svi.init(jax.random.key(0), x, classes(x))
    update = jax.jit(svi.update)
    return lambda: update(state, x, classes(x))


@program
def blackjax_nuts() -> Made:
    import blackjax

    x = normal(200, 5)
    y = classes(x)

    def log_density(weights: Any) -> Any:
        logits = x @ weights
        return jnp.sum(y * logits - jnp.logaddexp(0.0, logits)) - 0.5 * jnp.sum(weights**2)

    sampler = blackjax.nuts(log_density, step_size=0.2, inverse_mass_matrix=jnp.ones(5))
    start = sampler.init(jnp.zeros(5))

    @jax.jit
    def run(key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            state, _ = sampler.step(key, state)
            return state, state.position

        return jax.lax.scan(step, start, jax.random.split(key, 300))[1]

    return lambda: run(jax.random.key(0))


# --- solvers --------------------------------------------------------------------------------------


def lorenz(t: Any, y: Any, a: Any) -> Any:
    return jnp.stack([a * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def chemistry(t: Any, y: Any, a: Any) -> Any:
    """Robertson's stiff reactions."""
    first, last = -a * y[0] + 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return jnp.stack([first, -first - last, last])


def solved(field: Any, solver: Any, end: float, start: Any, tolerance: float) -> Any:
    import diffrax

    return lambda a: diffrax.diffeqsolve(
        diffrax.ODETerm(field), solver, 0.0, end, 1e-4, start, args=a, max_steps=4096,
        stepsize_controller=diffrax.PIDController(1e-5, tolerance)).ys[-1]


@program
def diffrax_solve() -> Made:
    import diffrax

    solve = jax.jit(solved(lorenz, diffrax.Tsit5(), 5.0, jnp.ones(3), 1e-5))
    return lambda: solve(10.0)


@program
def diffrax_gradient() -> Made:
    import diffrax

    solve = solved(lorenz, diffrax.Tsit5(), 2.0, jnp.ones(3), 1e-5)
    gradient = jax.jit(jax.grad(lambda a: solve(a).sum()))
    return lambda: gradient(10.0)


@program
def diffrax_implicit() -> Made:
    import diffrax

    start = jnp.array([1.0, 0.0, 0.0])
    solve = jax.jit(solved(chemistry, diffrax.Kvaerno5(), 100.0, start, 1e-6))
    return lambda: solve(0.04)


@program
def diffrax_stochastic() -> Made:
    import diffrax

    def path(key: Any) -> Any:
        noise = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, (), key)
        terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, args: -y),
                                  diffrax.ControlTerm(lambda t, y, args: 0.3, noise))
        return diffrax.diffeqsolve(terms, diffrax.EulerHeun(), 0.0, 1.0, 0.02, 1.0).ys[-1]

    paths = jax.jit(jax.vmap(path))
    keys = jax.random.split(jax.random.key(0), 100)
    return lambda: paths(keys)


@program
def optimistix_least_squares() -> Made:
    import optimistix

    times = jnp.linspace(0.0, 1.0, 50)
    solver = optimistix.LevenbergMarquardt(1e-5, 1e-5)
    fit = jax.jit(lambda y: optimistix.least_squares(
        lambda p, args: p[0] * jnp.exp(-p[1] * times) - y, solver, jnp.ones(2)).value)
    y = 2 * np.exp(-3 * np.linspace(0, 1, 50, dtype=np.float32))
    return lambda: fit(y)


@program
def optimistix_root_gradient() -> Made:
    import optimistix

    def root(a: Any) -> Any:
        return optimistix.root_find(lambda y, a: jnp.tanh(y @ y + a) - y / 2,
                                    optimistix.Newton(1e-5, 1e-5), jnp.eye(3) / 10, a).value

    gradient = jax.jit(jax.grad(lambda a: root(a).sum()))
    return lambda: gradient(0.1)


@program
def lineax_cg() -> Made:
    import lineax

    matrix = normal(100, 100)
    matrix = matrix @ matrix.T + 100 * np.eye(100, dtype=np.float32)
    solve = jax.jit(lambda b: lineax.linear_solve(
        lineax.MatrixLinearOperator(jnp.asarray(matrix), lineax.positive_semidefinite_tag), b,
        lineax.CG(1e-5, 1e-5)).value)
    return lambda: solve(matrix[0])


# --- networks -------------------------------------------------------------------------------------


@program
def optax_many_leaves() -> Made:
    """A step of AdamW for 300 matrices."""
    import optax

    params = {f"p{n}": jnp.full((32, 32), n, jnp.float32) for n in range(300)}
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    state = optimizer.init(params)

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        updates, state = optimizer.update(params, state, params)
        return optax.apply_updates(params, updates), state

    return lambda: step(params, state)


def nnx_model() -> Any:
    from flax import nnx

    rngs = nnx.Rngs(0)
    layers: list[Any] = []
    for _ in range(12):
        layers += [nnx.Linear(32, 32, rngs=rngs), nnx.relu, nnx.LayerNorm(32, rngs=rngs)]
    return nnx.Sequential(*layers)


@program
def nnx_training_step() -> Made:
    import optax
    from flax import nnx

    model = nnx_model()
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    x = normal(64, 32)

    @nnx.jit
    def step(model: Any, optimizer: Any) -> Any:
        loss, grads = nnx.value_and_grad(lambda model: jnp.mean((model(x) - x) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    return lambda: step(model, optimizer)


@program
def nnx_split_and_merge() -> Made:
    from flax import nnx

    model = nnx_model()
    return lambda: nnx.state(nnx.merge(*nnx.split(model)))


@program
def equinox_training_step() -> Made:
    import equinox
    import optax

    model = equinox.nn.MLP(8, 1, 64, 3, key=jax.random.key(0))
    optimizer = optax.adam(1e-3)
    state = optimizer.init(equinox.filter(model, equinox.is_array))
    x = normal(128, 8)

    @equinox.filter_jit
    def step(model: Any, state: Any) -> Any:
        loss, grads = equinox.filter_value_and_grad(
            lambda model: jnp.mean((jax.vmap(model)(x) - x[:, :1]) ** 2))(model)
        updates, state = optimizer.update(grads, state)
        return equinox.apply_updates(model, updates), state, loss

    return lambda: step(model, state)[2]


@program
def haiku_lstm_gradient() -> Made:
    import haiku

    def total(x: Any) -> Any:
        lstm = haiku.LSTM(32)
        return haiku.dynamic_unroll(lstm, x, lstm.initial_state(16))[0].sum()

    function = haiku.without_apply_rng(haiku.transform(total))
    x = normal(40, 16, 8)
    params = function.init(jax.random.key(0), x)
    gradient = jax.jit(jax.grad(function.apply))
    return lambda: gradient(params, x)


def age() -> float:
    """Seconds since this process began."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def main(name: str, seconds: float) -> None:
    call = PROGRAMS[name]()
    jax.block_until_ready(call())
    first = age()
    taken: list[float] = []
    while age() < first + seconds or len(taken) < 3:
        begin = time.perf_counter()
        jax.block_until_ready(call())
        taken.append(time.perf_counter() - begin)
    print(json.dumps({"first": first, "call": statistics.quantiles(taken, n=4)[0]}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
