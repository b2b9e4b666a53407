# libraries: jaxopt
# tolerance: 1e-3 (iterations stop where rounding decides)
# absolute: 1e-5 (errors at the optimum)
"""JAXopt: unconstrained, constrained, proximal and root solvers, and implicit derivatives."""
import jax
import jax.numpy as jnp
import jax.random as jr
import jaxopt
import numpy as np
from jaxopt import objective, projection, prox

rng = np.random.default_rng(0)
X = jnp.asarray(rng.standard_normal((60, 5)), jnp.float32)
w = jnp.array([1.0, -2.0, 0.0, 0.5, 0.0])
y = X @ w + 0.1 * jnp.asarray(rng.standard_normal(60), jnp.float32)
labels = (y > 0).astype(jnp.int32)


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


start = jnp.array([-1.0, 1.2])
print("LBFGS", np.asarray(jaxopt.LBFGS(rosenbrock, maxiter=60, tol=1e-4).run(start).params))
print("BFGS", np.asarray(jaxopt.BFGS(rosenbrock, maxiter=60, tol=1e-4).run(start).params))
ridge = objective.ridge_regression
gd = jaxopt.GradientDescent(ridge, maxiter=200, tol=1e-4)
print("ridge", np.asarray(gd.run(jnp.zeros(5), l2reg=0.1, data=(X, y)).params))
print("nonlinear CG", np.asarray(jaxopt.NonlinearCG(ridge, maxiter=50).run(
    jnp.zeros(5), l2reg=0.1, data=(X, y)).params))
lasso = jaxopt.ProximalGradient(objective.least_squares, prox.prox_lasso, maxiter=200, tol=1e-4)
print("lasso", np.asarray(lasso.run(jnp.zeros(5), hyperparams_prox=0.1, data=(X, y)).params))
box = jaxopt.ProjectedGradient(objective.least_squares, projection.projection_box, maxiter=200)
print("box", np.asarray(box.run(jnp.zeros(5), hyperparams_proj=(-0.5, 0.7), data=(X, y)).params))
print("simplex", np.asarray(projection.projection_simplex(jnp.array([0.3, 1.2, -0.5, 0.4]))))
print("l1 ball", np.asarray(projection.projection_l1_ball(w, 1.5)))
logistic = jaxopt.LBFGS(objective.l2_multiclass_logreg, maxiter=50, tol=1e-3)
print("logistic", np.asarray(logistic.run(jnp.zeros((5, 2)), l2reg=0.5, data=(X, labels)).params))


def solution(l2reg):
    solver = jaxopt.GradientDescent(ridge, maxiter=300, tol=1e-5, implicit_diff=True)
    return solver.run(jnp.zeros(5), l2reg=l2reg, data=(X, y)).params


print("derivative", np.asarray(jax.jacobian(solution)(0.1)))
root = jaxopt.Bisection(lambda x, a: x ** 3 - x - a, 1.0, 2.0, maxiter=40, tol=1e-5)
print("bisection", float(root.run(None, 2.0).params), float(
    jax.grad(lambda a: root.run(None, a).params)(2.0)))
fixed = jaxopt.FixedPointIteration(lambda x, a: jnp.cos(a * x), maxiter=100, tol=1e-6)
print("fixed point", float(fixed.run(jnp.float32(0.5), 0.8).params))
anderson = jaxopt.AndersonAcceleration(lambda x: jnp.cos(x), maxiter=30, tol=1e-5)
print("Anderson", float(anderson.run(jnp.ones(1)).params[0]))


def residual(p, t, z):
    return p[0] * jnp.exp(-p[1] * t) - z


t = jnp.linspace(0, 3, 20)
z = 2.0 * jnp.exp(-0.7 * t) + 0.01 * jr.normal(jr.key(0), (20,))
for solver in (jaxopt.GaussNewton(residual, maxiter=20),
               jaxopt.LevenbergMarquardt(residual, maxiter=30)):
    print(type(solver).__name__, np.asarray(solver.run(jnp.array([1.0, 1.0]), t=t, z=z).params))
qp = jaxopt.OSQP(maxiter=500, tol=1e-4)
Q, c = 2 * jnp.eye(2), jnp.array([-2.0, -5.0])
G, h = jnp.array([[1.0, 2.0], [-1.0, 0.0]]), jnp.array([3.0, 0.0])
print("OSQP", np.asarray(qp.run(params_obj=(Q, c), params_ineq=(G, h)).params.primal))
