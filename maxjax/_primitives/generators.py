"""Generators of random bits: threefry, the others that JAX has, and those that users define."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.trace import Array


class Generator(NamedTuple):
    """A kind of generator: the parameter ``impl`` of primitives that make keys."""

    name: str

    @property
    def dtype(self) -> dtypes.KeyDType:
        return dtypes.key_dtype(self.name)

    def __repr__(self) -> str:
        return self.dtype.tag


class OpaqueKeys:
    """Keys of a generator as records of their words."""

    def __init__(self, dtype: dtypes.KeyDType):
        self.physical = dtype.physical
        self._words = dtype.words

    def keys_of(self, words: np.ndarray) -> np.ndarray:
        """Keys from (..., words) words."""
        words = np.ascontiguousarray(words, np.uint32)
        return words.view(self.physical).reshape(words.shape[:-1])

    def words_of(self, keys: np.ndarray) -> np.ndarray:
        keys = np.asarray(keys, self.physical)
        return np.ascontiguousarray(keys).view(np.uint32).reshape(*keys.shape, self._words)


class DefinedGenerator:
    """A generator given by functions of one key's words, uint32 arrays of shape ``key_shape``.

    Its keys are made and used by these functions, which are traced like the caller's own.
    """

    def __init__(self, dtype: dtypes.KeyDType, *, seed: Callable[..., Array],
                 split: Callable[..., Array], random_bits: Callable[..., Array],
                 fold_in: Callable[..., Array]):
        self.dtype = dtype
        self.name = dtype.impl
        self.seed = seed
        self.split = split
        self.random_bits = random_bits
        self.fold_in = fold_in
        defined_generators[dtype] = self
        other_generators[dtype.physical] = OpaqueKeys(dtype)

    def __repr__(self) -> str:
        return f"PRNGSpec({self.name!r})"

    def __str__(self) -> str:
        return self.dtype.tag


THREEFRY = Generator("threefry2x32")
AnyGenerator = Generator | DefinedGenerator
generators: dict[str, AnyGenerator] = {THREEFRY.name: THREEFRY}
# Those of the dtypes of keys that functions define.
defined_generators: dict[dtypes.KeyDType, DefinedGenerator] = {}
# What draws bits from keys that are not threefry's, by their dtype on the host.
other_generators: dict[np.dtype, Any] = {}
THREEFRY_KEYS = np.dtype(np.uint64)


def generator_of_keys(dtype: dtypes.KeyDType) -> AnyGenerator:
    """The generator whose keys have that dtype."""
    return defined_generators.get(dtype) or Generator(dtype.impl)


def other_generator(keys: np.ndarray) -> Any:
    """What draws from these keys; None for threefry."""
    return None if keys.dtype is THREEFRY_KEYS else other_generators.get(keys.dtype)
