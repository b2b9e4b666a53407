"""jax.extend.random: the random bit generators themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from maxjax import lax
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array
from maxjax._primitives.random_bits import THREEFRY as threefry_prng_impl
from maxjax._primitives.random_bits import Generator
from maxjax._primitives.random_bits import threefry2x32_p as threefry2x32_p
from maxjax._transforms.autodiff import operands_of
from maxjax.random import key as _key

__all__ = ["define_prng_impl", "random_seed", "seed_with_impl", "threefry2x32_p",
           "threefry_2x32", "threefry_prng_impl"]


def threefry_2x32(keypair: Any, count: Any) -> Array:
    """Random words from counters, by Threefry-2x32.

    Args:
      keypair: the two words of a key: shape (2,) and dtype uint32, or a pair of scalars.
      count: counters of dtype uint32. Elements of the first and second halves form the generator's
        pairs; an odd number is padded with a zero.

    Returns:
      Words of the shape of ``count``.

    Raises:
      TypeError: a dtype differs.

    >>> key, count = jnp.arange(2, dtype="uint32"), jnp.arange(5, dtype="uint32")
    >>> jax.extend.random.threefry_2x32(key, count)
    Array([3568232559,  713140391, 1958986954, 2761185182, 2442350529],      dtype=uint32)
    """
    key1, key2 = operands_of([keypair[0], keypair[1]])
    count, = operands_of([count])
    found = (key1.dtype, key2.dtype, count.dtype)
    if any(dtype != dtypes.uint32 for dtype in found):
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {list(found)}")
    flat = lax.reshape(count, (count.size,))
    odd = count.size % 2
    if odd:
        flat = lax.pad(flat, np.uint32(0), [(0, 1, 0)])
    half = flat.shape[0] // 2
    words = lax.concatenate(threefry2x32_p.bind(
        lax.full((half,), key1), lax.full((half,), key2), flat[:half], flat[half:]), 0)
    return lax.reshape(words[:count.size], count.shape)


def random_seed(seeds: Any, impl: Generator) -> Array:
    """A typed key from an integer.

    >>> jax.extend.random.random_seed(3, jax.extend.random.threefry_prng_impl)
    Array((), dtype=key<fry>) overlaying:
    [0 3]
    """
    return _key(seeds, impl=impl)


def seed_with_impl(impl: Generator, seed: Any) -> Array:
    """The same with the arguments in another order.

    >>> jax.extend.random.seed_with_impl(jax.extend.random.threefry_prng_impl, 3)
    Array((), dtype=key<fry>) overlaying:
    [0 3]
    """
    return _key(seed, impl=impl)


def define_prng_impl(*, key_shape: tuple[int, ...], seed: Callable[..., Any],
                     split: Callable[..., Any], random_bits: Callable[..., Any],
                     fold_in: Callable[..., Any], name: str = "<unnamed>",
                     tag: str = "?") -> Hashable:
    """Not supported: maxjax's generators are its own.

    Raises:
      NotImplementedError: always.

    >>> jax.extend.random.define_prng_impl(key_shape=(2,), seed=None, split=None,
    ...                                    random_bits=None, fold_in=None)
    Traceback (most recent call last):
    NotImplementedError: maxjax has no generators of the user's
    """
    raise NotImplementedError(
        f"maxjax has no generators of the user's, such as {name!r}: its keys are of its own "
        "generators (jax.random.key(seed, impl=...)). Random bits of another generator are plain "
        "arrays: compute them in a function of the generator's state")


explain_missing_names(__name__)
