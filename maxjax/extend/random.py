"""jax.extend.random: the random bit generators themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from maxjax import lax
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array
from maxjax._primitives.generators import THREEFRY as threefry_prng_impl
from maxjax._primitives.generators import AnyGenerator, DefinedGenerator, generators
from maxjax._primitives.random_bits import threefry2x32_p as threefry2x32_p
from maxjax._transforms.autodiff import operands_of
from maxjax.random import key as _key

__all__ = ["define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl",
           "threefry2x32_p", "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl"]

rbg_prng_impl, unsafe_rbg_prng_impl = generators["rbg"], generators["unsafe_rbg"]


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


def random_seed(seeds: Any, impl: AnyGenerator) -> Array:
    """A typed key from an integer.

    >>> jax.extend.random.random_seed(3, jax.extend.random.threefry_prng_impl)
    Array((), dtype=key<fry>) overlaying:
    [0 3]
    """
    return _key(seeds, impl=impl)


def seed_with_impl(impl: AnyGenerator, seed: Any) -> Array:
    """A typed key from an integer: ``random_seed`` with its arguments exchanged.

    >>> jax.extend.random.seed_with_impl(jax.extend.random.threefry_prng_impl, 3)
    Array((), dtype=key<fry>) overlaying:
    [0 3]
    """
    return _key(seed, impl=impl)


_unique = itertools.count()


def define_prng_impl(*, key_shape: tuple[int, ...], seed: Callable[..., Any],
                     split: Callable[..., Any], random_bits: Callable[..., Any],
                     fold_in: Callable[..., Any], name: str = "<unnamed>",
                     tag: str = "?") -> Hashable:
    """A generator of one's own, for ``jax.random.key(seed, impl=...)``.

    Args:
      key_shape: the shape of a key's words, of dtype uint32.
      seed: ``seed(integer)`` makes a key's words.
      split: ``split(words, shape)`` makes those of new keys: shape ``(*shape, *key_shape)``.
      random_bits: ``random_bits(words, bit_width, shape)`` gives unsigned integers.
      fold_in: ``fold_in(words, integer)`` makes the words of a new key.
      name, tag: by which the generator, and the dtype of its keys, are shown.

    >>> counting = jax.extend.random.define_prng_impl(
    ...     key_shape=(1,), tag="count", seed=lambda n: n.astype("uint32")[None],
    ...     split=lambda k, shape: k + jnp.arange(2, dtype="uint32")[:, None],
    ...     random_bits=lambda k, width, shape: jnp.full(shape, k[0]),
    ...     fold_in=lambda k, n: k + n)
    >>> jax.random.split(jax.random.key(3, impl=counting))
    Array((2,), dtype=key<count>) overlaying:
    [[3]
     [4]]
    """
    shape = tuple(key_shape)
    physical = np.dtype([(f"{name}{next(_unique)}", f"V{4 * math.prod(shape)}")])
    return DefinedGenerator(dtypes.KeyDType(name, tag, shape, physical), seed=seed, split=split,
                            random_bits=random_bits, fold_in=fold_in)


explain_missing_names(__name__)
