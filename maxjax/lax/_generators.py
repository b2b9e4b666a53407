"""XLA's own generators of random bits."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.constraints import resharded
from maxjax._ir.trace import Array
from maxjax._primitives.bit_generator import rng_bit_generator_p, rng_uniform_p
from maxjax._primitives.rules import nonnegative
from maxjax.lax._operands import integers
from maxjax.lax._operands import operand as as_operand

__all__ = [
    "RandomAlgorithm", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p",
]


class RandomAlgorithm(enum.IntEnum):
    """The generators of ``rng_bit_generator``; the default is Philox.

    >>> lax.RandomAlgorithm.RNG_THREE_FRY
    <RandomAlgorithm.RNG_THREE_FRY: 1>
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def rng_bit_generator(key: Any, shape: Sequence[int], dtype: Any = np.uint32,
                      algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT, *,
                      out_sharding: Any = None) -> tuple[Array, Array]:
    """Random bits, and the state of the generator after them.

    Args:
      key: the state: (4,) uint32 or (2,) uint64, a key and a counter.
      shape: of the bits.
      dtype: an unsigned integer dtype of 8 bits or more.
      out_sharding: the bits' sharding along Explicit axes of a mesh.
      algorithm: Philox4x32-10 or Threefry2x32; both give XLA's bits.

    Raises:
      TypeError: the dtype is invalid, ``key`` is not a state, or a size is negative.

    >>> state, bits = lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (2,))
    >>> state, bits
    (Array([0, 1, 3, 3], dtype=uint32), Array([ 895509795, 3230209149], dtype=uint32))
    """
    wanted = dtypes.argument(dtype, "rng_bit_generator")
    if wanted not in (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64):
        raise TypeError(f"rng_bit_generator: unsupported dtype {wanted}")
    state = as_operand(key, "rng_bit_generator")
    if (state.shape, state.dtype) not in (((4,), dtypes.uint32), ((2,), dtypes.uint64)):
        raise TypeError("rng_bit_generator: the key must be of type uint32[4] or uint64[2], got "
                        f"{state.aval.str_short()}.")
    state, bits = rng_bit_generator_p.bind(
        state, shape=nonnegative("rng_bit_generator", integers(shape)), dtype=wanted,
        algorithm=RandomAlgorithm(algorithm), out_sharding=None)
    return state, bits if out_sharding is None else resharded(bits, out_sharding)


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Array:
    """Random numbers in [a, b), different at each call; ``jax.random`` gives reproducible ones.

    Args:
      a, b: scalars of one dtype; ``a < b``.
      shape: of the result.

    Raises:
      ValueError: ``a`` and ``b`` are not scalars, or have different dtypes.

    >>> numbers = lax.rng_uniform(0., 1., (100,))
    >>> bool(numbers.min() >= 0), bool(numbers.max() < 1)
    (True, True)
    """
    low, high = as_operand(a, "rng_uniform"), as_operand(b, "rng_uniform", 1)
    if low.dtype != high.dtype:
        raise ValueError("Arguments to rng_uniform must have identical dtypes, got "
                         f"{low.dtype} and {high.dtype}.")
    if low.shape or high.shape:
        raise ValueError("Arguments to rng_uniform must be scalars; got shapes "
                         f"{low.shape} and {high.shape}.")
    return rng_uniform_p.bind(low, high, shape=integers(shape))
