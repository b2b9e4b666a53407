# libraries: diffrax equinox optax optimistix
# tolerance: 1e-3 (40 steps of Adam through a solver amplify the rounding)
"""Diffrax: adaptive, stiff and stochastic solves, and a neural ODE by three adjoints."""
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import optimistix


def predator(t, y, parameters):
    a, b, c, d = parameters
    return jnp.stack([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])


parameters = jnp.array([1.1, 0.4, 0.4, 0.1])
times = jnp.linspace(0.0, 8.0, 5)


def solve(parameters, adjoint, solver=None):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(predator), solver or diffrax.Tsit5(), 0.0, 8.0, 0.1, jnp.array([10.0, 5.0]),
        args=parameters, saveat=diffrax.SaveAt(ts=times), adjoint=adjoint,
        stepsize_controller=diffrax.ConstantStepSize(), max_steps=128).ys


for solver in (diffrax.Euler(), diffrax.Heun(), diffrax.Tsit5(), diffrax.Dopri8()):
    print(type(solver).__name__, np.asarray(solve(parameters, diffrax.DirectAdjoint(), solver)[-1]))

for adjoint in (diffrax.RecursiveCheckpointAdjoint(), diffrax.DirectAdjoint(),
                diffrax.BacksolveAdjoint()):
    gradient = jax.jit(jax.grad(
        lambda p, adjoint=adjoint: jnp.mean(solve(p, adjoint)[1:] ** 2)))(parameters)
    print(type(adjoint).__name__, np.asarray(gradient))
tangent = jax.jvp(lambda p: solve(p, diffrax.ForwardMode())[-1], (parameters,),
                  (jnp.ones_like(parameters),))[1]
print("ForwardMode", np.asarray(tangent))


def robertson(t, y, args):
    r1, r2, r3 = 0.04 * y[0], 3e7 * y[1] ** 2, 1e4 * y[1] * y[2]
    return jnp.stack([r3 - r1, r1 - r2 - r3, r2])


stiff = diffrax.diffeqsolve(
    diffrax.ODETerm(robertson), diffrax.Kvaerno5(), 0.0, 10.0, 1e-4, jnp.array([1.0, 0.0, 0.0]),
    stepsize_controller=diffrax.PIDController(1e-4, 1e-6))
print("stiff", np.round(np.asarray(stiff.ys[0]), 3), stiff.result == diffrax.RESULTS.successful)

path = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-3, (), jr.key(0))
terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, args: -y),
                          diffrax.ControlTerm(lambda t, y, args: 0.3, path))
noisy = diffrax.diffeqsolve(terms, diffrax.EulerHeun(), 0.0, 1.0, 0.05, jnp.array(1.0),
                            saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 5)))
print("stochastic", np.asarray(noisy.ys))

falling = diffrax.diffeqsolve(
    diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -9.8])), diffrax.Tsit5(), 0.0, 10.0, 0.1,
    jnp.array([10.0, 0.0]), stepsize_controller=diffrax.PIDController(1e-5, 1e-5),
    event=diffrax.Event(lambda t, y, args, **rest: y[0],
                        root_finder=optimistix.Newton(1e-5, 1e-5)))
print("event", np.asarray(falling.ts))


class Field(eqx.Module):
    network: eqx.nn.MLP

    def __init__(self, key):
        self.network = eqx.nn.MLP(2, 2, 16, 2, jax.nn.softplus, key=key)

    def __call__(self, t, y, args):
        return self.network(y)


angle = jnp.linspace(0.0, 2.0, 6)
starts = jr.normal(jr.key(1), (8, 2))
turned = jax.vmap(lambda y: jnp.stack([jnp.cos(angle) * y[0] - jnp.sin(angle) * y[1],
                                       jnp.sin(angle) * y[0] + jnp.cos(angle) * y[1]], 1))(starts)


def trajectory(field, y):
    return diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 2.0, 0.2, y,
                               saveat=diffrax.SaveAt(ts=angle)).ys


@eqx.filter_value_and_grad
def loss_of(field):
    return jnp.mean((jax.vmap(lambda y: trajectory(field, y))(starts) - turned) ** 2)


field = Field(jr.key(2))
optimizer = optax.adam(1e-2)
state = optimizer.init(eqx.filter(field, eqx.is_inexact_array))


@eqx.filter_jit
def train(field, state):
    loss, gradient = loss_of(field)
    updates, state = optimizer.update(gradient, state)
    return eqx.apply_updates(field, updates), state, loss


for step in range(40):
    field, state, loss = train(field, state)
    if step % 10 == 9:
        print("step", step + 1, "loss", float(loss))
