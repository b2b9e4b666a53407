"""jax.random: random numbers from keys, bit for bit JAX's."""

from __future__ import annotations

from maxjax.random._basic import bernoulli as bernoulli
from maxjax.random._basic import bits as bits
from maxjax.random._basic import cauchy as cauchy
from maxjax.random._basic import exponential as exponential
from maxjax.random._basic import gumbel as gumbel
from maxjax.random._basic import laplace as laplace
from maxjax.random._basic import logistic as logistic
from maxjax.random._basic import normal as normal
from maxjax.random._basic import rademacher as rademacher
from maxjax.random._basic import randint as randint
from maxjax.random._basic import truncated_normal as truncated_normal
from maxjax.random._basic import uniform as uniform
from maxjax.random._choice import categorical as categorical
from maxjax.random._choice import choice as choice
from maxjax.random._choice import permutation as permutation
from maxjax.random._keys import PRNGKey as PRNGKey
from maxjax.random._keys import clone as clone
from maxjax.random._keys import fold_in as fold_in
from maxjax.random._keys import key as key
from maxjax.random._keys import key_data as key_data
from maxjax.random._keys import key_dtype as key_dtype
from maxjax.random._keys import key_impl as key_impl
from maxjax.random._keys import split as split
from maxjax.random._keys import wrap_key_data as wrap_key_data
