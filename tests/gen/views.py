"""Random programs that read the same few arrays through many views.

A value is computed, and then read as it is, reshaped, transposed, sliced, reversed and broadcast,
by operations whose results and reductions are wanted beside it: what is computed in one pass must
not be read in it from where it is still to be written. Values are small whole numbers, so that
results are compared bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import maxjax.numpy as jnp
from maxjax import lax

SIZES = (2, 3, 4, 5, 7, 8, 12, 16, 31, 40)
MOST_ELEMENTS = 40_000      # of a value


class Program:
    """The program of a seed: a function, and inputs for each call.

    Attributes:
      shape: of the inputs.
      count: how many there are.
      loops: how often there is a loop.
    """

    OPERATIONS: tuple[Callable[..., Any], ...] = (
        jnp.maximum, jnp.minimum, jnp.add, jnp.subtract, jnp.equal,
        lambda x, y: jnp.where(x > y, x, -y))
    REDUCTIONS: tuple[Callable[..., Any], ...] = (jnp.max, jnp.min, jnp.sum, jnp.any)

    def __init__(self, seed: int, loops: float = 0.25):
        self.seed = seed
        self.loops = loops
        draw = np.random.default_rng(seed)
        rank = draw.integers(1, 4)
        self.shape = tuple(int(draw.choice(SIZES[:10 if rank < 3 else 6])) for _ in range(rank))
        self.count = int(draw.integers(1, 3))

    def inputs(self, call: int) -> list[np.ndarray]:
        draw = np.random.default_rng((self.seed, call))
        return [draw.integers(-9, 10, self.shape).astype(np.float32) for _ in range(self.count)]

    def function(self, *inputs: Any) -> list[Any]:
        draw = np.random.default_rng((self.seed, 1 << 20))
        bases = [x * 2 - 1 for x in inputs]
        if draw.random() < 0.5:
            bases.append(jnp.abs(bases[0]) + bases[-1])
        if draw.random() < 0.3:
            bases.append(jnp.max(bases[0], int(draw.integers(len(self.shape))), keepdims=True))
        made = []
        for _ in range(draw.integers(1, 5)):
            operands = [self._view(draw, bases[draw.integers(len(bases))]) for _ in range(2)]
            value = self._combined(draw, *operands)
            if value is not None:
                made.append(value)
                if value.size <= 2000 and draw.random() < 0.3:
                    bases.append(value)
        if draw.random() < self.loops:
            made += self._loop(draw, bases[0])
        kept = [x for x in bases if draw.random() < 0.7]
        return [*made, *kept] or bases

    def _loop(self, draw: np.random.Generator, x: Any) -> list[Any]:
        """A loop whose carry, and what is computed from it, is read through views."""
        seed = int(draw.integers(1 << 30))

        def body(carry: Any, _: Any) -> Any:
            drawn = np.random.default_rng(seed)
            changed = jnp.clip(carry - jnp.max(carry) + 3, -20, 20)
            source = changed if drawn.random() < 0.7 else carry
            if drawn.random() < 0.4:
                source = lax.rev(source, range(source.ndim))
            value = self._combined(drawn, self._view(drawn, changed), self._view(drawn, source))
            value = carry if value is None else value.astype(np.float32)
            return changed + jnp.sign(jnp.sum(value)), jnp.max(value)

        return [*lax.scan(body, x, None, length=3)]

    def _view(self, draw: np.random.Generator, x: Any) -> Any:
        for _ in range(draw.integers(0, 4)):
            kind = draw.integers(9)
            if kind == 0:
                x = x.reshape(-1)
            elif kind == 1 and x.ndim > 1:
                x = x.reshape(x.shape[::-1])
            elif kind == 2:
                x = x.T
            elif kind == 3:
                x = x[..., None]
            elif kind == 4 and x.ndim:
                x = x[::-1]
            elif kind == 5 and x.ndim:
                x = x[tuple(slice(None, None, int(draw.integers(1, 3))) for _ in x.shape)]
            elif kind == 6 and x.ndim:
                x = x.ravel()[int(draw.integers(x.size))]
            elif kind == 7 and x.ndim > 1:
                x = x.reshape(x.shape[0], -1)
            elif kind == 8 and x.dtype == np.float32:
                x = lax.bitcast_convert_type(x, np.int32).astype(np.int8).astype(np.float32)
        return x

    def _combined(self, draw: np.random.Generator, x: Any, y: Any) -> Any:
        x, y = (z if z.dtype == np.float32 else z.astype(np.float32) for z in (x, y))
        try:
            shape = np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            x, y = x.reshape(-1, 1), y.reshape(-1)
            shape = np.broadcast_shapes(x.shape, y.shape)
        if math.prod(shape) > MOST_ELEMENTS:
            return None
        value = self.OPERATIONS[draw.integers(len(self.OPERATIONS))](x, y)
        if value.ndim and draw.random() < 0.6:
            axes = tuple(axis for axis in range(value.ndim) if draw.random() < 0.5) or (-1,)
            value = self.REDUCTIONS[draw.integers(len(self.REDUCTIONS))](value, axes)
        return value
