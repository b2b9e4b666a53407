"""Keys of generators that functions define: ``define_prng_impl``, and those of JAX that are rare.

The functions see one key's words; for arrays of keys they are mapped.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.trace import Array
from maxjax._primitives.generators import DefinedGenerator, generators
from maxjax._primitives.random_bits import random_unwrap_p, random_wrap_p
from maxjax._primitives.threefry import PARITY
from maxjax._transforms.vmap import vmap


def seed(generator: DefinedGenerator, seeds: Any) -> Any:
    """A key for each seed."""
    return _wrapped(generator, _mapped(generator.seed, seeds.ndim)(seeds))


def split(generator: DefinedGenerator, keys: Any, shape: tuple[int, ...]) -> Any:
    """An array of new keys for each key."""
    return _wrapped(generator, _mapped(lambda words: generator.split(words, shape), keys.ndim)(
        words_of(keys)))


def fold_in(generator: DefinedGenerator, keys: Any, data: Any) -> Any:
    """A new key for each key."""
    return _wrapped(generator, _mapped(generator.fold_in, keys.ndim)(words_of(keys), data))


def bits(generator: DefinedGenerator, keys: Any, width: int, shape: tuple[int, ...]) -> Any:
    """Random unsigned integers for each key."""
    return _mapped(lambda words: generator.random_bits(words, width, shape), keys.ndim)(
        words_of(keys))


def words_of(keys: Any) -> Any:
    """The words of keys: shape ``(*keys.shape, *key_shape)``."""
    words = random_unwrap_p.bind(keys)
    shape = keys.dtype.key_shape
    return words if len(shape) == 1 else jnp.reshape(words, (*keys.shape, *shape))


def _wrapped(generator: DefinedGenerator, words: Any) -> Any:
    shape = generator.dtype.key_shape
    batch = words.shape[:len(words.shape) - len(shape)]
    if words.shape[len(batch):] != shape or words.dtype != dtypes.uint32:
        raise TypeError(f"The generator {generator.name} needs keys of shape {shape} and dtype "
                        f"uint32, got {words.dtype}{list(words.shape)}")
    flat = words if len(shape) == 1 else jnp.reshape(words, (*batch, math.prod(shape)))
    return random_wrap_p.bind(flat, impl=generator)


def _mapped(function: Callable[..., Any], ndim: int) -> Callable[..., Any]:
    for _ in range(ndim):
        function = vmap(function)
    return function


# --- generators by counters -----------------------------------------------------------------------
# J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"; keys and counters as JAX's.

Words = tuple[Any, ...]
_ROUNDS, _WEYL = 10, (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
_PHILOX_2, _PHILOX_4 = np.uint32(0xD256D193), (np.uint32(0xD2511F53), np.uint32(0xCD9E8D57))
_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_ZERO = np.uint32(0)


def _product(factor: np.uint32, x: Any) -> tuple[Any, Any]:
    """The low and the high word, by halves of words."""
    half, sixteen = np.uint32(0xFFFF), np.uint32(16)
    a, b = np.uint32(int(factor) >> 16), np.uint32(int(factor) & 0xFFFF)
    x = jnp.asarray(x)
    high, low = x >> sixteen, x & half
    first = a * low + (b * low >> sixteen)
    second = b * high + (first & half)
    return factor * x, a * high + (first >> sixteen) + (second >> sixteen)


def _philox2(key: Words, counter: Words) -> Words:
    (k,), (x, y) = key, counter
    for turn in range(_ROUNDS):
        low, high = _product(_PHILOX_2, x)
        x, y = high ^ y ^ (k + np.uint32(turn * int(_WEYL[0]) & 0xFFFFFFFF)), low
    return x, y


def _philox4(key: Words, counter: Words) -> Words:
    x, y, z, w = counter
    for turn in range(_ROUNDS):
        k, m = (part + np.uint32(turn * int(step) & 0xFFFFFFFF)
                for part, step in zip(key, _WEYL, strict=True))
        (low, high), (low2, high2) = _product(_PHILOX_4[0], x), _product(_PHILOX_4[1], z)
        x, y, z, w = high2 ^ y ^ k, low2, high ^ w ^ m, low
    return x, y, z, w


def _rotated(x: Any, count: int) -> Any:
    return (x << np.uint32(count)) | (x >> np.uint32(32 - count))


def _threefry4(key: Words, counter: Words) -> Words:
    keys = (*key, functools.reduce(lambda a, b: a ^ b, key) ^ PARITY)
    x = [jnp.asarray(a) + b for a, b in zip(counter, key, strict=True)]
    for turn in range(2 * _ROUNDS):
        # Words 1 and 3 change places at every other turn.
        second, fourth = (1, 3) if turn % 2 == 0 else (3, 1)
        for into, word, count in zip((0, 2), (second, fourth), _ROTATIONS[turn % 8], strict=True):
            x[into] = x[into] + x[word]
            x[word] = x[into] ^ _rotated(x[word], count)
        if turn % 4 == 3:
            step = turn // 4 + 1
            x = [a + keys[(step + n) % 5] for n, a in enumerate(x)]
            x[3] = x[3] + np.uint32(step)
    return tuple(x)


def _counters(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The high and the low words of the linear indices of an array."""
    size = math.prod(shape)
    if size > 1 << 32:
        raise NotImplementedError("random bits of more than 2 ** 32 elements at a time, by this "
                                  "generator")
    low = jnp.reshape(lax.iota(dtypes.uint32, size), shape)
    return jnp.zeros_like(low), low


class _ByCounters:
    """The functions of a generator that mixes the words of a key with a counter.

    ``seed_words`` says where the two halves of a seed go, among the words of key and counter;
    ``wide`` which words make the high and the low half of 64 bits.
    """

    def __init__(self, mix: Callable[[Words, Words], Words], words: int, counters: int,
                 seed_at: int, wide: tuple[tuple[int, ...], tuple[int, ...]]):
        self._mix, self._words, self._counters = mix, words, counters
        self._seed_at, self._wide = seed_at, wide
        self.seed = make_jit(self._seed, inline=True)
        self.split = make_jit(self._split, static_argnums=1, inline=True)
        self.fold_in = make_jit(self._fold_in, inline=True)
        self.random_bits = make_jit(self._random_bits, static_argnums=(1, 2), inline=True)

    def _seed(self, seed: Array) -> Array:
        wide = seed.dtype.itemsize == 8
        high = lax.shift_right_logical(seed, lax.full_like(seed, 32)) if wide else jnp.zeros_like(
            seed)
        words: list[Any] = [_ZERO] * (self._words + self._counters)
        words[self._seed_at:self._seed_at + 2] = [
            x.astype(dtypes.uint32) for x in (high, seed)]
        return self._key(self._mix(tuple(words[:self._words]), tuple(words[self._words:])))

    def _key(self, words: Words) -> Array:
        return jnp.stack(words[:self._words], axis=-1)

    def _split(self, key: Array, shape: tuple[int, ...]) -> Array:
        return self._key(self._mix(self._spread(key, shape), self._last(*_counters(shape))))

    def _last(self, *words: Any) -> Words:
        """A counter whose last words are given."""
        zeros = lax.full_like(words[-1], _ZERO)
        return (*[zeros] * (self._counters - len(words)), *words)

    def _spread(self, key: Array, shape: tuple[int, ...]) -> Words:
        return tuple(jnp.broadcast_to(key[n], shape) for n in range(self._words))

    def _fold_in(self, key: Array, data: Array) -> Array:
        return self._key(self._mix(self._spread(key, ()), self._last(data.astype(dtypes.uint32))))

    def _random_bits(self, key: Array, width: int, shape: tuple[int, ...]) -> Array:
        high, low = _counters(shape)
        counter = (high, low, *[jnp.zeros_like(low)] * (self._counters - 2))
        words = self._mix(self._spread(key, shape), counter)

        def joined(numbers: tuple[int, ...]) -> Any:
            return functools.reduce(lambda a, b: a ^ b, [words[n] for n in numbers])

        if width == 64:
            first, second = (joined(part).astype(dtypes.uint64) for part in self._wide)
            return (first << jnp.asarray(32, first.dtype)) | second      # 32 bits without x64
        return joined(tuple(range(self._counters))).astype(np.dtype(f"uint{width}"))


for _name, _functions in (
        ("philox2x32", _ByCounters(_philox2, 1, 2, 1, ((0,), (1,)))),
        ("philox4x32", _ByCounters(_philox4, 2, 4, 2, ((0,), (1,)))),
        ("threefry4x32", _ByCounters(_threefry4, 4, 4, 0, ((0, 2), (1, 3))))):
    generators[_name] = DefinedGenerator(
        dtypes.key_dtype(_name), seed=_functions.seed, split=_functions.split,
        random_bits=_functions.random_bits, fold_in=_functions.fold_in)
