"""jax.scipy.stats: distributions and statistics."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.function_stages import add_stages
from maxjax.numpy._at_once import all_at_once
from maxjax.scipy.stats import bernoulli as bernoulli
from maxjax.scipy.stats import beta as beta
from maxjax.scipy.stats import betabinom as betabinom
from maxjax.scipy.stats import binom as binom
from maxjax.scipy.stats import cauchy as cauchy
from maxjax.scipy.stats import chi2 as chi2
from maxjax.scipy.stats import dirichlet as dirichlet
from maxjax.scipy.stats import expon as expon
from maxjax.scipy.stats import gamma as gamma
from maxjax.scipy.stats import gennorm as gennorm
from maxjax.scipy.stats import geom as geom
from maxjax.scipy.stats import gumbel_l as gumbel_l
from maxjax.scipy.stats import gumbel_r as gumbel_r
from maxjax.scipy.stats import laplace as laplace
from maxjax.scipy.stats import logistic as logistic
from maxjax.scipy.stats import multinomial as multinomial
from maxjax.scipy.stats import multivariate_normal as multivariate_normal
from maxjax.scipy.stats import nbinom as nbinom
from maxjax.scipy.stats import norm as norm
from maxjax.scipy.stats import pareto as pareto
from maxjax.scipy.stats import poisson as poisson
from maxjax.scipy.stats import t as t
from maxjax.scipy.stats import truncnorm as truncnorm
from maxjax.scipy.stats import uniform as uniform
from maxjax.scipy.stats import vonmises as vonmises
from maxjax.scipy.stats import wrapcauchy as wrapcauchy
from maxjax.scipy.stats._kde import gaussian_kde as gaussian_kde
from maxjax.scipy.stats._statistics import mode as mode
from maxjax.scipy.stats._statistics import rankdata as rankdata
from maxjax.scipy.stats._statistics import sem as sem

explain_missing_names(__name__)

for _distribution in (
        bernoulli, beta, betabinom, binom, cauchy, chi2, dirichlet, expon, gamma, gennorm, geom,
        gumbel_l, gumbel_r, laplace, logistic, multinomial, multivariate_normal, nbinom, norm,
        pareto, poisson, t, truncnorm, uniform, vonmises, wrapcauchy):
    all_at_once(vars(_distribution), "log_density")

add_stages(globals(), "mode rankdata sem")
