"""Pytrees as vectors."""

from maxjax.flatten_util import ravel_pytree as ravel_pytree
