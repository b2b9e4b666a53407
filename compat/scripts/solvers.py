# libraries: jaxopt optimistix lineax
# tolerance: 1e-3 (iterations to convergence amplify the rounding)
# absolute: 2e-4 (what vanishes at a solution)
"""JAXopt, Optimistix and Lineax: minima, roots, fixed points, and gradients of their solutions."""
import warnings

import jax
import jax.numpy as jnp
import jax.random as jr
import jaxopt
import lineax as lx
import numpy as np
import optimistix as optx

warnings.simplefilter("ignore")
x = jr.normal(jr.key(0), (60, 4))
truth = jnp.array([1.0, -2.0, 0.0, 0.5])
y = x @ truth + 0.1 * jr.normal(jr.key(1), (60,))
labels = (y > 0).astype(jnp.int32)


def ridge(w, strength, x, y):
    return jnp.mean((x @ w - y) ** 2) + strength * jnp.sum(w**2)


for solver in (jaxopt.LBFGS(ridge, maxiter=50), jaxopt.BFGS(ridge, maxiter=50),
               jaxopt.NonlinearCG(ridge, maxiter=100),
               # By default it stops far off, early, like the one below.
               jaxopt.GradientDescent(ridge, maxiter=500, tol=1e-5)):
    found = solver.run(jnp.zeros(4), 0.1, x, y)
    print(type(solver).__name__, np.asarray(found.params))
    slope = jax.jacobian(lambda s, run=solver.run: run(jnp.zeros(4), s, x, y).params)(0.1)
    print("  by strength", np.asarray(slope))

lasso = jaxopt.ProximalGradient(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso,
                                maxiter=200)
print("lasso", np.asarray(lasso.run(jnp.zeros(4), 0.3, (x, y)).params))
box = jaxopt.ProjectedGradient(jaxopt.objective.least_squares, jaxopt.projection.projection_box,
                               maxiter=500, tol=1e-5)
print("box", np.asarray(box.run(jnp.zeros(4), (-0.8, 0.8), (x, y)).params))
print("simplex", np.asarray(jaxopt.projection.projection_simplex(jnp.array([0.4, 1.2, -0.3]))))
logistic = jaxopt.LBFGS(jaxopt.objective.binary_logreg, maxiter=5)
print("logistic", np.asarray(logistic.run(jnp.zeros(4), (x, labels)).params))
fixed = jaxopt.FixedPointIteration(lambda x, a: jnp.cos(a * x), maxiter=200, implicit_diff=True)
print("fixed point", float(fixed.run(1.0, 0.7).params),
      float(jax.grad(lambda a: fixed.run(1.0, a).params)(0.7)))
anderson = jaxopt.AndersonAcceleration(lambda x, a: jnp.cos(a * x), maxiter=50)
print("Anderson", np.asarray(anderson.run(jnp.ones(3), jnp.array([0.3, 0.6, 0.9])).params))
bisection = jaxopt.Bisection(lambda x, a: x**3 - x - a, 1.0, 2.0, maxiter=40)
print("bisection", float(bisection.run(None, 1.0).params),
      float(jax.grad(lambda a: bisection.run(None, a).params)(1.0)))
program = jaxopt.OSQP(maxiter=500)
answer = program.run(params_obj=(jnp.eye(2) * 2.0, jnp.array([-2.0, -5.0])),
                     params_ineq=(jnp.array([[1.0, 1.0]]), jnp.array([1.0]))).params.primal
print("quadratic program", np.asarray(answer))

times = jnp.linspace(0.0, 2.0, 30)
seen = 2.5 * jnp.exp(-1.3 * times) + 0.05 * jnp.sin(9 * times)


def residual(p, seen):
    return p["height"] * jnp.exp(-p["rate"] * times) - seen


start = {"height": jnp.array(1.0), "rate": jnp.array(0.5)}
for solver in (optx.LevenbergMarquardt(1e-5, 1e-5), optx.GaussNewton(1e-5, 1e-5),
               optx.Dogleg(1e-5, 1e-5)):
    found = optx.least_squares(residual, solver, start, args=seen)
    print(type(solver).__name__, float(found.value["height"]), float(found.value["rate"]),
          found.result == optx.RESULTS.successful)
fitted = jaxopt.LevenbergMarquardt(lambda p: residual({"height": p[0], "rate": p[1]}, seen))
print("JAXopt's", np.asarray(fitted.run(jnp.array([1.0, 0.5])).params))


def rosenbrock(p, args):
    return (1 - p[0]) ** 2 + args * (p[1] - p[0] ** 2) ** 2


for solver in (optx.BFGS(1e-5, 1e-6), optx.DFP(1e-5, 1e-6), optx.NelderMead(1e-5, 1e-6)):
    found = optx.minimise(rosenbrock, solver, jnp.array([-0.5, 1.0]), args=5.0, max_steps=2000)
    print(type(solver).__name__, np.round(np.asarray(found.value), 2))


def equations(p, args):
    return jnp.stack([p[0] ** 2 + p[1] ** 2 - args, p[0] - p[1] ** 3])


for solver in (optx.Newton(1e-5, 1e-5), optx.Chord(1e-5, 1e-5)):
    def root(radius, solver=solver):
        return optx.root_find(equations, solver, jnp.array([1.2, 0.9]), args=radius).value
    print(type(solver).__name__, np.asarray(root(2.0)), np.asarray(jax.jacobian(root)(2.0)))
point = optx.fixed_point(lambda x, a: jnp.cos(a * x), optx.FixedPointIteration(1e-6, 1e-6), 1.0,
                         args=0.7)
print("fixed point", float(point.value))
roots = jax.vmap(lambda a: optx.root_find(
    lambda x, a: x**3 - x - a, optx.Bisection(1e-6, 1e-6), 1.5, args=a,
    options={"lower": 1.0, "upper": 2.0}).value)(jnp.array([0.5, 1.0, 2.0]))
print("bisection", np.asarray(roots))

matrix = x[:4] @ x[:4].T + jnp.eye(4)
for solver in (lx.LU(), lx.QR(), lx.SVD(), lx.Cholesky(), lx.CG(1e-6, 1e-6),
               lx.GMRES(1e-6, 1e-6), lx.BiCGStab(1e-6, 1e-6)):
    operator = lx.MatrixLinearOperator(matrix, lx.positive_semidefinite_tag)
    print(type(solver).__name__, np.asarray(lx.linear_solve(operator, truth, solver).value))
