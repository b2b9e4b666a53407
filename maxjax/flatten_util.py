"""jax.flatten_util: pytrees as one vector."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base import pytree as _trees
from maxjax._ir.trace import Array


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """All leaves as one vector, and the function that rebuilds the pytree from such a vector.

    Args:
      pytree: arrays and numbers in any structure.

    Returns:
      A pair: a vector of the dtype to which theirs promote, in the order of ``jax.tree.leaves``,
      and a function of such a vector, which converts each leaf back to its dtype.

    Raises:
      TypeError: a leaf is no array or number.
      ValueError: when the function is called: a vector of another size.

    See also: ``jax.tree.flatten``, ``jnp.ravel``, ``jax.jacfwd``.

    >>> vector, unravel = ravel_pytree({'a': 1.0, 'b': [2.0]})
    """
    leaves, spec = _trees.flatten(pytree)
    arrays = [jnp.asarray(leaf) for leaf in leaves]
    if not arrays:
        return jnp.zeros(0), _Unravel(spec, jnp.zeros(0).dtype, (), ())
    dtype = jnp.result_type(*arrays)
    flat_arrays = [array.reshape(-1) for array in arrays]
    # A single leaf is unchanged, weakly typed or not.
    vector = flat_arrays[0] if len(arrays) == 1 else jnp.concatenate(
        [array.astype(dtype) for array in flat_arrays])
    return vector, _Unravel(spec, dtype, tuple([array.shape for array in arrays]),
                            tuple([array.dtype for array in arrays]))


@dataclasses.dataclass(frozen=True)
class _Unravel:
    """Rebuilds a pytree from a vector; equal for pytrees of equal structure, shapes and dtypes."""

    spec: Any
    dtype: Any
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[Any, ...]

    def __call__(self, flat: Any) -> Any:
        flat = jnp.asarray(flat)
        ends = list(itertools.accumulate(map(math.prod, self.shapes), initial=0))
        mixed = any(kind != self.dtype for kind in self.kinds)
        if flat.shape != (ends[-1],):
            raise ValueError("unravel function expected a vector of shape "
                             f"{(ends[-1],)}, got shape {flat.shape}")
        if flat.dtype != self.dtype and mixed:
            raise TypeError(f"unravel function given array of dtype {flat.dtype}, but expected "
                            f"dtype {self.dtype}")
        parts = [flat[start:end].reshape(shape) for start, end, shape in zip(
            ends, ends[1:], self.shapes, strict=False)]
        if mixed:
            parts = [part.real.astype(kind) if dtypes.is_complex(part.dtype)
                     and not dtypes.is_complex(kind) else part.astype(kind)
                     for part, kind in zip(parts, self.kinds, strict=True)]
        return _trees.unflatten(self.spec, parts)
