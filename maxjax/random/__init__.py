"""jax.random: random numbers from keys, bit for bit the same as JAX's."""

from __future__ import annotations

from typing import NewType

from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array
from maxjax._primitives.random_rejection import random_gamma_p as random_gamma_p
from maxjax.random._binomial import binomial as binomial
from maxjax.random._binomial import multinomial as multinomial
from maxjax.random._choice import categorical as categorical
from maxjax.random._choice import choice as choice
from maxjax.random._choice import permutation as permutation
from maxjax.random._discrete import geometric as geometric
from maxjax.random._discrete import poisson as poisson
from maxjax.random._distributions import ball as ball
from maxjax.random._distributions import beta as beta
from maxjax.random._distributions import chisquare as chisquare
from maxjax.random._distributions import dirichlet as dirichlet
from maxjax.random._distributions import double_sided_maxwell as double_sided_maxwell
from maxjax.random._distributions import f as f
from maxjax.random._distributions import gamma as gamma
from maxjax.random._distributions import generalized_normal as generalized_normal
from maxjax.random._distributions import loggamma as loggamma
from maxjax.random._distributions import lognormal as lognormal
from maxjax.random._distributions import maxwell as maxwell
from maxjax.random._distributions import multivariate_normal as multivariate_normal
from maxjax.random._distributions import orthogonal as orthogonal
from maxjax.random._distributions import t as t
from maxjax.random._distributions import wald as wald
from maxjax.random._inversion import cauchy as cauchy
from maxjax.random._inversion import exponential as exponential
from maxjax.random._inversion import gumbel as gumbel
from maxjax.random._inversion import laplace as laplace
from maxjax.random._inversion import logistic as logistic
from maxjax.random._inversion import pareto as pareto
from maxjax.random._inversion import rayleigh as rayleigh
from maxjax.random._inversion import triangular as triangular
from maxjax.random._inversion import weibull_min as weibull_min
from maxjax.random._keys import PRNGKey as PRNGKey
from maxjax.random._keys import clone as clone
from maxjax.random._keys import fold_in as fold_in
from maxjax.random._keys import key as key
from maxjax.random._keys import key_data as key_data
from maxjax.random._keys import key_dtype as key_dtype
from maxjax.random._keys import key_impl as key_impl
from maxjax.random._keys import split as split
from maxjax.random._keys import wrap_key_data as wrap_key_data
from maxjax.random._normal import normal as normal
from maxjax.random._normal import truncated_normal as truncated_normal
from maxjax.random._uniform import bernoulli as bernoulli
from maxjax.random._uniform import bits as bits
from maxjax.random._uniform import rademacher as rademacher
from maxjax.random._uniform import randint as randint
from maxjax.random._uniform import uniform as uniform

# The type of keys, for annotations.
Key = NewType("Key", Array)

explain_missing_names(__name__)
