"""Random keys of the generators "rbg" and "unsafe_rbg": four words, bits by Philox.

A key is the state of ``rng_bit_generator``. "rbg" splits and folds by threefry, on either half of
the key; "unsafe_rbg" by the generator itself, of whose bits it takes one row in ten. Under vmap
the first key draws for all of a batch, as ``rng_bit_generator`` does.
"""

from __future__ import annotations

import math

import numpy as np

from maxjax._primitives import generators, threefry
from maxjax._primitives.bit_generator import _philox_bits

# "unsafe_rbg" takes one row of its bits in so many.
STRIDE = 10


class Rbg(generators.OpaqueKeys):
    """A generator of NumPy arrays of keys; the safe one."""

    def __init__(self, name: str):
        self.generator = generators.Generator(name)
        super().__init__(self.generator.dtype)

    def seed(self, words: np.ndarray) -> np.ndarray:
        """Keys from (..., 2) words of threefry."""
        return self.keys_of(np.concatenate([words, words], -1))

    def bits(self, keys: np.ndarray, size: int, width: int) -> np.ndarray:
        dtype = np.dtype(f"uint{width}")
        keys = np.asarray(keys, self.physical)
        if not keys.size:
            return np.zeros((*keys.shape, size), dtype)
        state, counter = (int(x) for x in self.words_of(keys.reshape(-1)[0]).view(np.uint64))
        return _philox_bits(state, counter, (*keys.shape, size), dtype)[0]

    def _halves(self, keys: np.ndarray) -> np.ndarray:
        """(..., 2) keys of threefry."""
        return self.words_of(keys).view(np.uint64)

    def split(self, keys: np.ndarray, count: int, partitionable: bool) -> np.ndarray:
        new = threefry.split_keys(self._halves(keys), count, partitionable)
        return self.keys_of(np.ascontiguousarray(np.swapaxes(new, -1, -2)).view(np.uint32))

    def fold_in(self, keys: np.ndarray, data: np.ndarray) -> np.ndarray:
        new = threefry.fold_in_keys(self._halves(keys), np.asarray(data)[..., None])
        return self.keys_of(new.view(np.uint32))


class UnsafeRbg(Rbg):
    """The one that splits by its own bits."""

    def _rows(self, keys: np.ndarray, count: int) -> np.ndarray:
        """(..., count, 4) words."""
        shape = np.shape(keys)
        return self.bits(keys, math.prod((count, 4)), 32).reshape(*shape, count, 4)

    def split(self, keys: np.ndarray, count: int, partitionable: bool) -> np.ndarray:
        return self.keys_of(self._rows(keys, STRIDE * count)[..., ::STRIDE, :])

    def fold_in(self, keys: np.ndarray, data: np.ndarray) -> np.ndarray:
        seeds = np.asarray(data, np.uint32)
        words = np.stack([np.zeros_like(seeds), seeds], -1)
        noise = self._rows(self.seed(words), STRIDE)[..., -1, :]
        return self.keys_of(self.words_of(keys) ^ noise)


for _kind, _name in ((Rbg, "rbg"), (UnsafeRbg, "unsafe_rbg")):
    _generator = _kind(_name)
    generators.other_generators[_generator.physical] = _generator
    generators.generators[_name] = _generator.generator
