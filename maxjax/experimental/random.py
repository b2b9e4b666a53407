"""jax.experimental.random: a random generator that keeps its own state."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax import random
from maxjax._base.missing import explain_missing_names
from maxjax._ir.refs import Ref
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, context
from maxjax.random._keys import is_key_array
from maxjax.ref import addupdate, new_ref
from maxjax.tree_util import GetAttrKey, register_pytree_with_keys

__all__ = ["StatefulPRNG", "stateful_rng"]
explain_missing_names(__name__)

Size = int | Sequence[int] | None


def _shape_of(size: Size, *parameters: Any) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*map(np.shape, parameters))
    if isinstance(size, (int, np.integer)):
        return (operator.index(size),)
    return tuple(map(operator.index, size))


@dataclasses.dataclass(frozen=True, slots=True)
class StatefulPRNG:
    """A random generator whose state is an array reference: ``stateful_rng`` makes it.

    Each draw counts; the draw's key is the generator's own, with the count folded in. A pytree.

    >>> rng = jax.experimental.random.stateful_rng(42)
    >>> rng.uniform(), rng.uniform()
    (Array(0.5302608, dtype=float32), Array(0.72766423, dtype=float32))
    """

    _base_key: Any
    _counter: Any

    def __post_init__(self) -> None:
        if not is_key_array(self._base_key):
            raise ValueError(f"Expected base_key to be a typed PRNG key; got {self._base_key}")
        if not isinstance(self._counter, Ref):
            raise ValueError(f"Expected counter to be a scalar integer ref; got {self._counter}")

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key, or an array of them; the generator counts on.

        Raises:
          ValueError: the generator is split.
        """
        if self._base_key.shape:
            raise ValueError("cannot operate on split stateful generator")
        key = random.fold_in(self._base_key, self._counter[...])
        addupdate(self._counter, ..., 1)
        count = _shape_of(shape)
        return random.split(key, count) if count else key

    def random(self, size: Size = None, dtype: Any = float) -> Array:
        """Random numbers from 0 (included) to 1."""
        return random.uniform(self.key(), _shape_of(size), dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Size = None, *, dtype: Any = float
                ) -> Array:
        """Random numbers from ``low`` (included) to ``high``; of their shape, without ``size``."""
        return random.uniform(self.key(), _shape_of(size, low, high), dtype, low, high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Size = None, *, dtype: Any = float
               ) -> Array:
        """Normal random numbers with that mean and deviation; of their shape, without ``size``."""
        numbers = random.normal(self.key(), _shape_of(size, loc, scale), dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * numbers).astype(dtype)

    def integers(self, low: Any, high: Any = None, size: Size = None, *, dtype: Any = int
                 ) -> Array:
        """Random integers from ``low`` (included) to ``high``, or from 0 to ``low``."""
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape_of(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """An array of independent generators as one, to be mapped by ``vmap``.

        >>> rng = jax.experimental.random.stateful_rng(123)
        >>> jax.vmap(lambda rng, x: x + rng.uniform())(rng.split(3), jnp.zeros(3))
        Array([0.35525954, 0.21937883, 0.5336956 ], dtype=float32)
        """
        return StatefulPRNG(self.key(num), new_ref(jnp.zeros(num, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of independent generators."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


_FIELDS = ("_base_key", "_counter")


def _with_keys(rng: StatefulPRNG) -> tuple[Any, None]:
    return [(GetAttrKey(name), getattr(rng, name)) for name in _FIELDS], None


def _restored(_: None, leaves: Sequence[Any]) -> StatefulPRNG:
    """The generator with other leaves, which may stand for values."""
    rng = object.__new__(StatefulPRNG)
    for name, leaf in zip(_FIELDS, leaves, strict=True):
        object.__setattr__(rng, name, leaf)
    return rng


register_pytree_with_keys(StatefulPRNG, _with_keys, _restored)


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A random generator that keeps its own state.

    Args:
      seed: an integer; None, outside transformations: another one each time.
      impl: the name of the generator of keys.

    Raises:
      TypeError: there is no seed, under a transformation.

    >>> jax.experimental.random.stateful_rng(0).key()
    Array((), dtype=key<fry>) overlaying:
    [1797259609 2579123966]
    """
    if seed is None:
        if context.trace is not installed.runtime:
            raise TypeError(
                "When used within transformed code, jax.experimental.random.stateful_rng() "
                "requires an explicit seed to be set.")
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
        seed = np.int64(entropy & np.iinfo(np.int64).max)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))
