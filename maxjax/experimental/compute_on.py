"""jax.experimental.compute_on: where operations run, which is always the host."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import maxjax
from maxjax._base import pytree
from maxjax._base.missing import explain_missing_names
from maxjax._base.pytree import PyTree
from maxjax.memory import Space


def _check(compute_type: str) -> None:
    if not isinstance(compute_type, str):
        raise TypeError("`compute_on`'s compute_type argument must be a string.")
    if compute_type not in ("device_host", "device", "tpu_sparsecore") and not (
            compute_type.startswith("gpu_stream:")):
        raise ValueError(f"Invalid compute type {compute_type}. Current supported values are "
                         "`device_host`, `device`, `tpu_sparsecore`, and `gpu_stream:#`.")


def compute_on(f: Callable[..., PyTree] | None = None, *, compute_type: str,
               out_memory_spaces: PyTree,
               compiler_options: dict[str, Any] | None = None) -> Any:
    """``f``, whose results lie in the memory that is named; it runs on the host, as all does.

    Args:
      f: a function of arrays; None: a decorator is returned.
      compute_type: "device_host", "device", "tpu_sparsecore", or "gpu_stream:" and a number.
      out_memory_spaces: a ``jax.memory.Space`` for each result, a prefix of their pytree.
      compiler_options: without effect.

    Raises:
      TypeError: the compute type is no string.
      ValueError: there is no such compute type, or ``out_memory_spaces`` is no prefix of the
        results.

    >>> @compute_on(compute_type="device_host", out_memory_spaces=jax.memory.Space.Device)
    ... def double(x):
    ...     return 2 * x
    >>> double(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if f is None:
        return functools.partial(compute_on, compute_type=compute_type,
                                 out_memory_spaces=out_memory_spaces,
                                 compiler_options=compiler_options)
    _check(compute_type)

    @functools.wraps(f)
    def wrapped(*args: PyTree, **kwargs: PyTree) -> Any:
        out = f(*args, **kwargs)
        if pytree.structure_errors(out_memory_spaces, out, "compute_on out_memory_spaces"):
            raise pytree.prefix_error(out_memory_spaces, out, "compute_on out_memory_spaces")
        spaces = pytree.broadcast_prefix(out_memory_spaces, out)
        leaves, tree = pytree.flatten(out)
        return pytree.unflatten(tree, [
            maxjax.device_put(x, space) if space is Space.Host else maxjax.numpy.asarray(x)
            for x, space in zip(leaves, spaces, strict=True)])

    return wrapped


explain_missing_names(__name__)
