# libraries: optimistix lineax
# tolerance: 1e-3 (iterations stop where rounding decides)
# absolute: 1e-5 (errors at the optimum)
"""Optimistix and Lineax: roots, least squares, minima, fixed points, linear solves, gradients."""
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
import numpy as np
import optimistix as optx


def system(y, args):
    a, b = y
    return jnp.tanh(b) + 1 - args * a, a ** 2 - jnp.sinh(b + 1)


guess = (jnp.array(0.5), jnp.array(0.1))
for solver in (optx.Newton(1e-5, 1e-5), optx.Chord(1e-5, 1e-5), optx.Dogleg(1e-5, 1e-5)):
    found = optx.root_find(system, solver, guess, jnp.array(1.2), throw=False)
    print(type(solver).__name__, float(found.value[0]), float(found.value[1]))
slope = jax.grad(lambda a: optx.root_find(system, optx.Newton(1e-5, 1e-5), guess, a).value[0])
print("derivative", float(slope(jnp.array(1.2))))


def decay(params, args):
    t, z = args
    return params["scale"] * jnp.exp(-params["rate"] * t) + params["floor"] - z


t = jnp.linspace(0, 4, 30)
z = 2.0 * jnp.exp(-0.9 * t) + 0.3 + 0.01 * jr.normal(jr.key(0), (30,))
first = {"scale": jnp.array(1.0), "rate": jnp.array(0.5), "floor": jnp.array(0.0)}
for solver in (optx.LevenbergMarquardt(1e-5, 1e-6), optx.GaussNewton(1e-5, 1e-6),
               optx.Dogleg(1e-5, 1e-6)):
    fit = optx.least_squares(decay, solver, first, (t, z))
    print(type(solver).__name__, {k: round(float(v), 4) for k, v in sorted(fit.value.items())})


def quartic(y, args):
    return jnp.sum((y - args) ** 4 + 0.5 * (y - args) ** 2) + 0.1 * y[0] * y[1]


target = jnp.array([1.0, -0.5])
for solver in (optx.BFGS(1e-5, 1e-6), optx.DFP(1e-5, 1e-6), optx.NonlinearCG(1e-4, 1e-5),
               optx.LBFGS(1e-5, 1e-6), optx.NelderMead(1e-4, 1e-4)):
    best = optx.minimise(quartic, solver, jnp.zeros(2), target, max_steps=500)
    print(type(solver).__name__, np.asarray(best.value))
point = optx.fixed_point(lambda y, a: jnp.cos(a * y), optx.FixedPointIteration(1e-5, 1e-6),
                         jnp.array(0.5), jnp.array(0.9))
print("fixed point", float(point.value))
print("bisection", float(optx.root_find(
    lambda y, _: y ** 3 - y - 2, optx.Bisection(1e-5, 1e-5), jnp.array(1.5),
    options={"lower": 1.0, "upper": 2.0}).value))

matrix = jr.normal(jr.key(1), (5, 5)) + 4 * jnp.eye(5)
vector = jr.normal(jr.key(2), (5,))
general = lx.MatrixLinearOperator(matrix)
definite = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)
for operator, solver in ((general, lx.LU()), (general, lx.QR()), (general, lx.SVD()),
                         (general, lx.GMRES(1e-5, 1e-5)), (definite, lx.Cholesky()),
                         (definite, lx.CG(1e-5, 1e-5)), (general, lx.AutoLinearSolver(True))):
    answer = lx.linear_solve(operator, vector, solver)
    print(type(solver).__name__, np.asarray(answer.value))
tall = lx.MatrixLinearOperator(jr.normal(jr.key(3), (8, 3)))
print("least squares", np.asarray(lx.linear_solve(tall, jnp.arange(8.0), lx.QR()).value))
band = lx.TridiagonalLinearOperator(jnp.full(5, 4.0), jnp.ones(4), jnp.ones(4))
print("tridiagonal", np.asarray(lx.linear_solve(band, vector).value))
jacobian = lx.JacobianLinearOperator(lambda y, _: jnp.sin(y) + 2 * y, vector)
print("Jacobian", np.asarray(lx.linear_solve(jacobian, vector, lx.GMRES(1e-5, 1e-5)).value))
print("gradient", np.asarray(jax.jit(jax.grad(lambda m: jnp.sum(lx.linear_solve(
    lx.MatrixLinearOperator(m), vector).value ** 2)))(matrix))[0])
print("batch", np.asarray(jax.vmap(lambda v: lx.linear_solve(general, v).value)(jnp.eye(5)))[0])
