"""Threefry2x32 on NumPy arrays, counter by counter as JAX has it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from maxjax._base import native
from maxjax._primitives.generators import other_generator

PARITY = np.uint32(0x1BD11BDA)
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
# Elements that are generated at a time: their buffers stay in the cache.
_CHUNK = 32768
# Up to this many numbers are drawn by Python's arithmetic.
_FEW = 5
_LOW = np.uint64(0xFFFFFFFF)
_WORD = np.dtype(np.uint32)


def threefry2x32(key1: np.ndarray | np.integer, key2: np.ndarray | np.integer,
                 count1: np.ndarray | np.integer, count2: np.ndarray | np.integer
                 ) -> tuple[np.ndarray, np.ndarray]:
    """Two words for each pair of counters; all arguments uint32, broadcast."""
    size = math.prod(np.broadcast_shapes(*map(np.shape, (key1, key2, count1, count2))))
    if size >= native.FEWEST and (function := native.find("threefry2x32", _WORD, size)):
        return _native_threefry(function, key1, key2, count1, count2)
    x, y = (np.array(part, np.uint32)
            for part in np.broadcast_arrays(count1, count2, key1, key2)[:2])
    _mix(x, y, np.asarray(key1, np.uint32), np.asarray(key2, np.uint32), np.empty_like(x))
    return x, y


def _native_threefry(function: native.Function, key1: np.ndarray | np.integer,
                     key2: np.ndarray | np.integer, count1: np.ndarray | np.integer,
                     count2: np.ndarray | np.integer) -> tuple[np.ndarray, np.ndarray]:
    arrays = [np.asarray(part, np.uint32) for part in (key1, key2, count1, count2)]
    shape = np.broadcast_shapes(*[array.shape for array in arrays])
    one_key = arrays[0].size == arrays[1].size == 1
    counted = [np.ascontiguousarray(np.broadcast_to(array, shape))
               for array in arrays[2 * one_key:]]
    out = np.empty((2, *shape), np.uint32)
    size = math.prod(shape)
    function((*arrays[:2 * one_key], *counted, *out), (1 if one_key else size, size), size)
    return out[0], out[1]


# (rotation, 32 - rotation) for each of the twenty rounds, four to a step.
_SHIFTS = tuple(
    tuple((np.uint32(r), np.uint32(32 - r)) for r in ROTATIONS[step % 2]) for step in range(5))
_STEPS = tuple(np.uint32(step + 1) for step in range(5))


def _mix(x: np.ndarray, y: np.ndarray, key1: np.ndarray, key2: np.ndarray, scratch: np.ndarray
         ) -> None:
    """Twenty rounds, in place."""
    add, left, right, either, differ = (
        np.add, np.left_shift, np.right_shift, np.bitwise_or, np.bitwise_xor)
    keys = (key1, key2, differ(differ(key1, key2), PARITY))
    add(x, key1, x)
    add(y, key2, y)
    for step in range(5):
        for rotation, rest in _SHIFTS[step]:
            add(x, y, x)
            left(y, rotation, scratch)
            right(y, rest, y)
            either(y, scratch, y)
            differ(y, x, y)
        add(x, keys[(step + 1) % 3], x)
        add(y, add(keys[(step + 2) % 3], _STEPS[step]), y)


def _mix_one(key1: int, key2: int, x: int, y: int) -> tuple[int, int]:
    """Twenty rounds on Python's integers: faster than NumPy's calls for a few numbers."""
    keys = (key1, key2, key1 ^ key2 ^ 0x1BD11BDA)
    x = (x + key1) & 0xFFFFFFFF
    y = (y + key2) & 0xFFFFFFFF
    for step in range(5):
        for rotation in ROTATIONS[step % 2]:
            x = (x + y) & 0xFFFFFFFF
            y = ((y << rotation) & 0xFFFFFFFF | y >> (32 - rotation)) ^ x
        x = (x + keys[(step + 1) % 3]) & 0xFFFFFFFF
        y = (y + keys[(step + 2) % 3] + step + 1) & 0xFFFFFFFF
    return x, y


def _few(keys: np.ndarray, counts: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """The words at a few counters of a few keys: shape ``keys.shape + (len(counts),)``."""
    pairs = [_mix_one(key & 0xFFFFFFFF, key >> 32, *count)
             for key in keys.ravel().tolist() for count in counts]
    words = np.array(pairs, np.uint32).reshape((*keys.shape, len(counts), 2))
    return words[..., 0], words[..., 1]


def words_of(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two words of keys."""
    keys = np.asarray(keys, np.uint64)
    return (keys & _LOW).astype(np.uint32), (keys >> np.uint64(32)).astype(np.uint32)


def keys_of(word1: np.ndarray, word2: np.ndarray) -> np.ndarray:
    return word1.astype(np.uint64) | (word2.astype(np.uint64) << np.uint64(32))


def _blocks(key1: np.ndarray, key2: np.ndarray, size: int,
            combine: Callable[[np.ndarray, np.ndarray], np.ndarray], dtype: np.dtype) -> np.ndarray:
    """``combine(word1, word2)`` at the 64-bit counters 0, 1, ..., size - 1 of one key."""
    out = np.empty(size, dtype)
    width = min(size, _CHUNK)
    x, y, scratch = (np.empty(width, np.uint32) for _ in range(3))
    function = native.find("threefry2x32", _WORD, size) if size >= native.FEWEST else None
    keys = (np.asarray(key1, np.uint32), np.asarray(key2, np.uint32))
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        if stop - start != width:
            x, y, scratch = (buffer[:stop - start] for buffer in (x, y, scratch))
        counts = np.arange(start, stop, dtype=np.uint64)
        np.right_shift(counts, np.uint64(32), out=x, casting="unsafe")
        y[...] = counts & _LOW
        if function:
            function((*keys, x, y, x, y), (1, len(x)), len(x))
        else:
            _mix(x, y, key1, key2, scratch)
        out[start:stop] = combine(x, y)
    return out


def _each_key(keys: np.ndarray, size: int, combine: Callable[[np.ndarray, np.ndarray], np.ndarray],
              dtype: np.dtype) -> np.ndarray:
    """``_blocks`` for an array of keys: shape ``keys.shape + (size,)``."""
    keys = np.asarray(keys, np.uint64)
    if 0 < keys.size * size <= _FEW:
        return combine(*_few(keys, [(0, count) for count in range(size)])).astype(
            dtype, copy=False)
    if keys.size and size >= 256:
        flat = np.stack([_blocks(*words_of(key), size, combine, dtype) for key in keys.ravel()])
        return flat.reshape(*keys.shape, size)
    key1, key2 = (word[..., None] for word in words_of(keys))
    counts = np.arange(size, dtype=np.uint64)
    x, y = threefry2x32(key1, key2, (counts >> np.uint64(32)).astype(np.uint32),
                        (counts & _LOW).astype(np.uint32))
    return combine(x, y).astype(dtype, copy=False)


def _sequence(keys: np.ndarray, count: int) -> np.ndarray:
    """The old layout: counters 0 .. count - 1 in two halves, first words before second ones."""
    half = (count + 1) // 2
    counts = np.arange(2 * half, dtype=np.uint32)
    if count % 2:
        counts[-1] = 0
    key1, key2 = (word[..., None] for word in words_of(keys))
    x, y = threefry2x32(key1, key2, counts[:half], counts[half:])
    return np.concatenate([x, y], -1)[..., :count]


def unsigned(width: int) -> np.dtype:
    return np.dtype(f"uint{width}")


def random_bits(keys: np.ndarray, size: int, width: int, partitionable: bool) -> np.ndarray:
    """``size`` random unsigned integers of ``width`` bits for each key."""
    if (other := other_generator(keys)) is not None:
        return other.bits(keys, size, width)
    dtype = unsigned(width)
    if partitionable:
        if width == 64:
            return _each_key(keys, size, lambda x, y: keys_of(y, x), dtype)
        return _each_key(keys, size, np.bitwise_xor, np.dtype(np.uint32)).astype(dtype, copy=False)
    words = _sequence(keys, -(-width * size // 32))
    if width == 64:
        half = words.shape[-1] // 2
        return keys_of(words[..., half:], words[..., :half])
    if width == 32:
        return words
    parts = 32 // width
    shifts = np.uint32(width) * np.arange(parts, dtype=np.uint32)
    return (words[..., None] >> shifts).astype(dtype).reshape(
        *words.shape[:-1], -1)[..., :size]


def split_keys(keys: np.ndarray, count: int, partitionable: bool) -> np.ndarray:
    """``count`` new keys for each key."""
    if (other := other_generator(keys)) is not None:
        return other.split(keys, count, partitionable)
    if partitionable:
        return _each_key(keys, count, keys_of, np.dtype(np.uint64))
    words = _sequence(keys, 2 * count)
    return keys_of(words[..., 0::2], words[..., 1::2])


def fold_in_keys(keys: np.ndarray, data: np.ndarray) -> np.ndarray:
    if (other := other_generator(keys)) is not None:
        return other.fold_in(keys, data)
    if np.ndim(keys) == np.ndim(data) == 0:
        first, second = _few(np.asarray(keys, np.uint64), [(0, int(data))])
        return keys_of(first, second)[0]
    return keys_of(*threefry2x32(*words_of(keys), np.uint32(0), np.asarray(data, np.uint32)))
