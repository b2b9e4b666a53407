"""The errors of a jitted function's arguments that are no arrays."""

from __future__ import annotations


def not_abstract(function: object, leaf: object, path: str) -> TypeError:
    """The error for a leaf of a jitted function's arguments that is no array."""
    return TypeError(
        f"Error interpreting argument to {function} as an abstract array. The problematic value is "
        f"of type {type(leaf)} and was passed to the function at path {path}.\nThis typically "
        "means that a jit-wrapped function was called with a non-array argument, and this argument "
        "was not marked as static using the static_argnums or static_argnames parameters of "
        "jax.jit.")


def overflow_of(leaf: object, path: str) -> OverflowError:
    """The error for a Python integer among them that is too large."""
    return OverflowError(
        "An overflow was encountered while parsing an argument to a jitted computation, whose "
        f"argument path is {path}. Got {type(leaf)} with value {leaf}")
