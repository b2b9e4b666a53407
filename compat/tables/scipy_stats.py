"""jax.scipy.stats."""

from __future__ import annotations

from compat.spec import Case, array, case, cases, check, floats, ints

TABLE: dict[str, list[Case]] = {}
FUNCTIONS = {
    "norm cauchy": "pdf logpdf cdf logcdf sf logsf ppf isf",
    "expon gumbel_l gumbel_r pareto": "pdf logpdf cdf logcdf sf logsf ppf",
    "gamma chi2 beta truncnorm": "pdf logpdf cdf logcdf sf logsf",
    "logistic": "pdf logpdf cdf sf ppf isf", "uniform": "pdf logpdf cdf ppf",
    "laplace gennorm": "pdf logpdf cdf", "t vonmises wrapcauchy": "pdf logpdf",
    "bernoulli": "pmf logpmf cdf ppf", "poisson": "pmf logpmf cdf",
    "geom binom nbinom betabinom": "pmf logpmf",
}
SHAPES = {"gamma": "2.0, ", "chi2": "3.0, ", "beta": "2.0, 3.0, ", "pareto": "1.5, ", "t": "4.0, ",
          "truncnorm": "-1.0, 1.5, ", "gennorm": "1.5", "vonmises": "1.2", "wrapcauchy": "0.4",
          "bernoulli": "0.3", "geom": "0.3", "binom": "5, 0.3", "nbinom": "4, 0.3",
          "betabinom": "5, 2.0, 3.0", "poisson": "2.5"}
DISCRETE = "bernoulli geom binom nbinom betabinom poisson".split()

for _names, _functions in FUNCTIONS.items():
    for _name in _names.split():
        for _function in _functions.split():
            shape = SHAPES.get(_name, "")
            if _name in DISCRETE:
                x = (floats(4, low=0.1, high=0.9) if _function == "ppf"
                     else array([0, 1, 2, 3], "int32"))
                rows = case(f"f(x, {shape})", x=x, grad=False, tol="accumulate")
            elif _name in ("gennorm", "vonmises", "wrapcauchy"):
                rows = case(f"f(x, {shape})", x=floats(4, low=0.2, high=0.9), tol="accumulate")
            else:
                scale = "0.0, 0.15" if _name == "pareto" and _function != "ppf" else "0.1, 1.5"
                rows = cases(f"f(x, {shape}{scale})", f"f(x, {shape.rstrip(', ')})",
                             x=floats(4, low=0.2, high=0.9), tol="accumulate")
            TABLE[f"jax.scipy.stats.{_name}.{_function}"] = rows

S = "jax.scipy.stats"
for _function in ("ppf", "isf"):
    TABLE[f"{S}.cauchy.{_function}"] += check("f(jnp.array([0.3 + 0.1j]))")
TABLE |= {
    f"{S}.poisson.entropy": case("f(m)", m=array([0.5, 2.5, 8.0], "float32"), modes="eager jit",
                                 tol="iterative"),
    f"{S}.dirichlet.logpdf": case("f(x, a)", x=array([0.2, 0.3, 0.5], "float32").fix(),
                                  a=floats(3, low=1.0, high=3.0), tol="accumulate"),
    f"{S}.dirichlet.pdf": case("f(x, a)", x=array([0.2, 0.3, 0.5], "float32").fix(),
                               a=floats(3, low=1.0, high=3.0), tol="accumulate"),
    f"{S}.multinomial.logpmf": case("f(x, 4, p)", x=array([1, 2, 1], "int32").fix(),
                                    p=array([0.2, 0.3, 0.5], "float32"), tol="accumulate"),
    f"{S}.multinomial.pmf": case("f(x, 4, p)", x=array([1, 2, 1], "int32").fix(),
                                 p=array([0.2, 0.3, 0.5], "float32"), tol="accumulate"),
    f"{S}.mode": cases("f(x)", "f(x, axis=1, keepdims=True)", "f(x, axis=None)",
                       x=ints(4, 5, low=0, high=2), modes="eager jit"),
    f"{S}.rankdata": cases(*(f"f(x, {method!r}, axis={axis})" for axis in (None, 0) for method in (
        "average", "min", "max", "dense", "ordinal")), x=ints(4, 3, low=0, high=3),
        modes="eager jit") + case("f(x, 'a')", x=ints(3), raises=True),
    f"{S}.sem": cases("f(x)", "f(x, 1, keepdims=True)", "f(x, None, ddof=0)",
                      "f(x, 1, nan_policy='omit')", x=floats(3, 4), tol="accumulate"),
    f"{S}.gaussian_kde": cases(
        "f(x)(y)", "f(x, 0.7).logpdf(y)", "f(x, 'silverman').integrate_gaussian(y[:, 0], "
        "jnp.eye(2))", "f(x[0]).integrate_box_1d(-0.5, 1.0)", "f(x).integrate_kde(f(x * 2))",
        "f(x, weights=jnp.arange(1., 9.)).evaluate(y)", x=floats(2, 8), y=floats(2, 3),
        modes="eager jit", tol="iterative"),
}
COV = {"x": floats(3, 2), "m": floats(2), "c": array([[2.0, 0.5], [0.5, 1.0]], "float32")}
for _function in ("logpdf", "pdf"):
    TABLE[f"{S}.multivariate_normal.{_function}"] = (
        cases("f(x, m, c)", "f(x, m, 2.0)", "f(x, 0.5, 2.0)", **COV, grad="x m", vmap="x",
              tol="accumulate"))
