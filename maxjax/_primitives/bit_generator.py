"""rng_bit_generator and rng_uniform: XLA's generators of random bits.

Philox4x32-10 and Threefry2x32 (J. K. Salmon and others, "Parallel random numbers: as easy as 1, 2,
3"), with state and layout of XLA: the state is a key and a counter of 64 bits each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import DTYPE, NONE, OPTION, SHAPE, takes
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Effectful, Host, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Shape
from maxjax._primitives import fitting
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import move_axis, squeeze_p
from maxjax._primitives.rules import nonnegative, replicated_factors
from maxjax._primitives.slicing import slice_in_dim
from maxjax._primitives.threefry import threefry2x32

THREEFRY = 1

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85


def _counters(start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The low and high words of ``count`` counters from ``start`` on."""
    values = np.uint64(start) + np.arange(count, dtype=np.uint64)
    return values & _LOW, values >> _HALF


def _philox(key: int, start: int, count: int) -> np.ndarray:
    """(count, 4) words; the upper half of each counter of 128 bits is the key."""
    keys = [key & 0xFFFFFFFF, key >> 32]
    c0, c1 = _counters(start, count)
    upper = np.full(count, key, np.uint64)
    upper += (c0 | c1 << _HALF) < np.uint64(start)       # the counter wrapped around: carry
    c2, c3 = upper & _LOW, upper >> _HALF
    for number in range(10):
        k0, k1 = (np.uint64((word + number * step) & 0xFFFFFFFF)
                  for word, step in zip(keys, _WEYL, strict=True))
        left, right = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = ((right >> _HALF) ^ c1 ^ k0, right & _LOW,
                          (left >> _HALF) ^ c3 ^ k1, left & _LOW)
    return np.stack([c0, c1, c2, c3], 1).astype(np.uint32)


def _philox_bits(key: int, start: int, shape: tuple[int, ...],
                 dtype: np.dtype) -> tuple[np.ndarray, int]:
    size = math.prod(shape)
    words = size * max(1, dtype.itemsize // 4)
    blocks = -(-words // 4)
    flat = _philox(key, start, blocks).reshape(-1)[:words]
    if dtype.itemsize == 8:
        flat = flat[0::2].astype(np.uint64) | flat[1::2].astype(np.uint64) << _HALF
    return flat.astype(dtype).reshape(shape), blocks


def _threefry(key: int, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    low, high = (part.astype(np.uint32) for part in _counters(start, count))
    first, second = (np.uint32(word) for word in (key & 0xFFFFFFFF, key >> 32))
    return threefry2x32(first, second, low, high)


def _threefry_bits(key: int, start: int, shape: tuple[int, ...],
                   dtype: np.dtype) -> tuple[np.ndarray, int]:
    """A block gives two words, neighbours along the first even dimension, or the largest one."""
    size = math.prod(shape)
    if dtype.itemsize == 8:
        x, y = _threefry(key, start, size)
        return (x.astype(np.uint64) | y.astype(np.uint64) << _HALF).reshape(shape), size
    if not shape:
        x, _ = _threefry(key, start, 1)
        return x.astype(dtype).reshape(shape), 1
    even = [dim for dim, width in enumerate(shape) if width % 2 == 0]
    axis = even[0] if even else max(range(len(shape)), key=lambda dim: shape[dim])
    half = -(-shape[axis] // 2)
    halved = (*shape[:axis], half, *shape[axis + 1:])
    blocks = math.prod(halved)
    pair = [words.reshape(halved) for words in _threefry(key, start, blocks)]
    padded = (*shape[:axis], 2 * half, *shape[axis + 1:])
    joined = np.stack(pair, axis + 1).reshape(padded)
    kept = joined[(*(slice(None),) * axis, slice(shape[axis]))]
    return kept.astype(dtype), blocks


def _evaluate(state: np.ndarray, *, shape: Shape, dtype: np.dtype, algorithm: int,
              **params: object) -> list[np.ndarray]:
    key, counter = (int(word) for word in np.ascontiguousarray(state).view(np.uint64))
    generate = _threefry_bits if algorithm == THREEFRY else _philox_bits
    bits, blocks = generate(key, counter, shape, dtype)
    moved = np.array([key, (counter + blocks) & (1 << 64) - 1], np.uint64)
    return [moved.view(state.dtype), bits]


def _batch(size: int, operands: Sequence[Array], axes: Sequence[int], *, shape: Shape,
           **params: object) -> tuple[list[Array], list[int]]:
    """As in JAX, the first state gives the bits of all; the others stay as they are."""
    states = move_axis(operands[0], axes[0], 0)
    first = squeeze_p.bind(slice_in_dim(states, 0, 1, 0), dimensions=(0,))
    moved, bits = rng_bit_generator_p.bind(first, shape=(size, *shape), **params)
    return [concatenate([expand_axis(moved, 0), slice_in_dim(states, 1, size, 0)], 0), bits], [0, 0]


rng_bit_generator_p = Primitive(
    "rng_bit_generator",
    contract=takes(
        1, fitting.state_of, shape=SHAPE, dtype=DTYPE, algorithm=OPTION, out_sharding=NONE),
    abstract=lambda state, *, shape, dtype, **params: [
        state.update(weak_type=False), ShapedArray(shape, dtype)],
    evaluate=_evaluate,
    host=Host(reason="XLA's own generators of random bits are NumPy's work here"),
    jvp=lambda primals, tangents, **params: (
        rng_bit_generator_p.bind(*primals, **params), [None, None]),
    batch=_batch,
    factors=replicated_factors,
    multiple_results=True,
)

# --- rng_uniform ----------------------------------------------------------------------------------

_calls = itertools.count()


def _uniform(low: np.ndarray, high: np.ndarray, *, shape: Shape) -> np.ndarray:
    """New numbers at each call, from a generator of that call: a shared one has a lock."""
    dtype = np.asarray(low).dtype
    generator = np.random.default_rng(next(_calls))
    if dtypes.is_integer(dtype) or dtypes.is_bool(dtype):
        if not low < high:
            return np.full(shape, low, dtype)
        return generator.integers(int(low), int(high), shape).astype(dtype)
    wide = np.float64 if dtype.itemsize == 8 else np.float32
    unit = generator.random(shape, wide)
    result = (unit * (wide(high) - wide(low)) + wide(low)).astype(dtype)
    below = np.nextafter(dtype.type(high), dtype.type(low)) if dtype.itemsize > 2 else high
    return np.where(result >= high, below, result).astype(dtype)


def _no_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *, shape: Shape
              ) -> tuple[Array, int]:
    raise NotImplementedError("Batching rule for 'rng_uniform' not implemented")


rng_uniform_p = Primitive(
    "rng_uniform",
    contract=takes(2, fitting.NO_KEYS, fitting.alike(), fitting.scalars, shape=SHAPE),
    abstract=lambda low, high, *, shape: ShapedArray(
        nonnegative("rng_uniform", shape), low.dtype),
    evaluate=_uniform,
    host=Host(reason="it draws from a generator that keeps its state in the process"),
    derivative=Derivative(missing="random numbers have no derivative"),
    batch=_no_batch,
    factors=replicated_factors,
    # Never dropped, never taken for another call's numbers.
    effects=Effectful(lambda **params: frozenset()),
    values=Values(may_give_nan=True),
)
