# libraries: diffrax optax
# tolerance: 1e-3 (the rounding in adaptive steps and in their gradients adds up)
"""Diffrax: solvers, three adjoints, dense output, events, an SDE, and fitting parameters."""
import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax


def lotka_volterra(t, y, args):
    a, b, c, d = args
    prey, predator = y
    return a * prey - b * prey * predator, c * prey * predator - d * predator


args = jnp.array([1.1, 0.4, 0.1, 0.4])
y0 = (jnp.array(10.0), jnp.array(5.0))
term = dfx.ODETerm(lotka_volterra)
times = jnp.linspace(0.0, 8.0, 9)
saveat = dfx.SaveAt(ts=times)
for solver in (dfx.Euler(), dfx.Heun(), dfx.Tsit5(), dfx.Dopri8()):
    solution = dfx.diffeqsolve(term, solver, 0.0, 8.0, 0.01, y0, args, saveat=saveat)
    print(type(solver).__name__, np.asarray(solution.ys[0][::4]))
controller = dfx.PIDController(rtol=1e-4, atol=1e-6)
solution = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 8.0, None, y0, args, saveat=saveat,
                           stepsize_controller=controller)
print("adaptive", np.asarray(solution.ys[1]), solution.result == dfx.RESULTS.successful)


def final(args, adjoint, solver, controller, dt):
    return dfx.diffeqsolve(term, solver, 0.0, 2.0, dt, y0, args, adjoint=adjoint,
                           stepsize_controller=controller, max_steps=256).ys[0][-1]


constant = dfx.ConstantStepSize()
for adjoint, solver, steps, dt in (
        (dfx.RecursiveCheckpointAdjoint(), dfx.Tsit5(), controller, None),
        (dfx.RecursiveCheckpointAdjoint(checkpoints=4), dfx.Heun(), constant, 0.02),
        (dfx.BacksolveAdjoint(), dfx.Tsit5(), controller, None),
        (dfx.DirectAdjoint(), dfx.Tsit5(), constant, 0.05)):
    grads = jax.jit(jax.grad(final), static_argnums=(1, 2, 3, 4))(args, adjoint, solver, steps, dt)
    print(type(adjoint).__name__, np.asarray(grads))
forward = dfx.ForwardMode()
print("ForwardMode", np.asarray(
    jax.jit(jax.jacfwd(lambda a: final(a, forward, dfx.Tsit5(), constant, 0.05)))(args)))

stiff = dfx.ODETerm(lambda t, y, args: -args * (y - jnp.cos(t)))
implicit = dfx.diffeqsolve(stiff, dfx.Kvaerno3(), 0.0, 2.0, 0.05, jnp.array([0.0]), 50.0,
                           stepsize_controller=dfx.PIDController(rtol=1e-3, atol=1e-5))
print("Kvaerno3", np.asarray(implicit.ys))
event = dfx.Event(lambda t, y, args, **kwargs: y[0] < 0.0)
fall = dfx.ODETerm(lambda t, y, args: jnp.stack([y[1], -9.8]))
landed = dfx.diffeqsolve(fall, dfx.Tsit5(), 0.0, 10.0, 0.05, jnp.array([5.0, 0.0]), event=event)
print("event", np.asarray(landed.ts), landed.result == dfx.RESULTS.event_occurred)
brownian = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(2,), key=jr.key(0))
sde = dfx.MultiTerm(dfx.ODETerm(lambda t, y, args: -y),
                    dfx.ControlTerm(lambda t, y, args: 0.3 * jnp.eye(2), brownian))
path = dfx.diffeqsolve(sde, dfx.Euler(), 0.0, 1.0, 0.05, jnp.ones(2),
                       saveat=dfx.SaveAt(ts=jnp.linspace(0, 1, 4)))
print("SDE", np.asarray(path.ys))
dense = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 2.0, 0.05, y0, args, saveat=dfx.SaveAt(dense=True))
print("dense", float(dense.evaluate(1.234)[0]), float(dense.derivative(0.5)[1]))


@eqx.filter_jit
def step(guess, opt_state):
    def loss(guess):
        ys = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 8.0, 0.1, y0, guess, saveat=saveat).ys
        return sum(jnp.mean((a - b) ** 2) for a, b in zip(ys, solution.ys))
    value, grads = jax.value_and_grad(loss)(guess)
    updates, opt_state = optim.update(grads, opt_state)
    return optax.apply_updates(guess, updates), opt_state, value


optim = optax.adam(0.01)
guess = jnp.array([1.0, 0.45, 0.12, 0.38])
opt_state = optim.init(guess)
for _ in range(25):
    guess, opt_state, value = step(guess, opt_state)
print("fitted", float(value), np.asarray(guess))
