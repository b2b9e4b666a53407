"""Primitives of random keys and bits: threefry2x32, counter by counter as JAX has it.

One key is one element of dtype ``key<fry>``, on the host a uint64 whose low half is the first
key word. The generator is J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import FLAG, SHAPE, Kind, one_of, takes
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Host, Printed
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Params, Shape, Value
from maxjax._primitives import costs, fitting
from maxjax._primitives.arithmetic import mul_p
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_leading, expand_axis
from maxjax._primitives.builders import elementwise
from maxjax._primitives.comparison import or_p, shift_left_p, xor_p
from maxjax._primitives.convert import bitcast_convert_type_p, convert_element_type
from maxjax._primitives.creation import full, iota
from maxjax._primitives.generators import (
    THREEFRY,
    THREEFRY_KEYS,
    AnyGenerator,
    Generator,
    other_generator,
    other_generators,
)
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import move_axis, reshape
from maxjax._primitives.rules import (
    FactorRule,
    batch_factors,
    broadcast_shape,
    replicated_factors,
)
from maxjax._primitives.slicing import slice_in_dim
from maxjax._primitives.threefry import (
    fold_in_keys,
    keys_of,
    random_bits,
    split_keys,
    threefry2x32,
    unsigned,
    words_of,
)

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering


# --- threefry with primitives, for lowering -------------------------------------------------------

def _u32(value: int) -> Any:
    return np.uint32(value)


def _key_words(keys: np.ndarray, rank: int) -> tuple[Any, Any]:
    """The words of keys, with ``rank`` dimensions of size 1 appended (scalars stay scalars)."""
    words = bitcast_convert_type_p.bind(keys, new_dtype=dtypes.uint32)
    last = len(keys.shape)
    parts = [reshape(slice_in_dim(words, i, i + 1, last), keys.shape) for i in (0, 1)]
    if keys.shape and rank:
        shape = (*keys.shape, *(1,) * rank)
        parts = [broadcast_in_dim(part, shape, tuple(range(last))) for part in parts]
    return parts[0], parts[1]


def _counters(batch: int, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The words of the 64-bit linear index of each element of ``shape``."""
    size = math.prod(shape)
    wide = (1,) * batch + shape
    if size < 1 << 32:
        low = reshape(iota(dtypes.uint32, (size,), 0), wide)
        return full(wide, 0, dtypes.uint32), low
    rows = -(-size >> 32)
    high = iota(dtypes.uint32, (rows, 1 << 32), 0)
    low = iota(dtypes.uint32, (rows, 1 << 32), 1)
    return tuple(
        reshape(slice_in_dim(reshape(part, (rows << 32,)), 0, size, 0), wide)
        for part in (high, low))


def _bits_program(keys: np.ndarray, shape: tuple[int, ...], width: int) -> Any:
    high, low = threefry2x32_p.bind(
        *_key_words(keys, len(shape)), *_counters(len(keys.shape), shape))
    if width == 64:
        wide = [convert_element_type(part, dtypes.uint64) for part in (high, low)]
        return or_p.bind(shift_left_p.bind(wide[0], np.uint64(32)), wide[1])
    return convert_element_type(xor_p.bind(high, low), unsigned(width))


def _join_words(high: Array, low: Array) -> Any:
    """Keys from their words."""
    rank = len(high.shape)
    words = [broadcast_in_dim(part, (*part.shape, 1), tuple(range(rank))) for part in (high, low)]
    return bitcast_convert_type_p.bind(concatenate(words, rank), new_dtype=THREEFRY.dtype)


def _split_program(keys: np.ndarray, shape: tuple[int, ...]) -> Any:
    return _join_words(*threefry2x32_p.bind(
        *_key_words(keys, len(shape)), *_counters(len(keys.shape), shape)))


def _fold_in_program(keys: np.ndarray, data: np.ndarray) -> Any:
    zero = full(data.shape, 0, dtypes.uint32) if data.shape else _u32(0)
    return _join_words(*threefry2x32_p.bind(*_key_words(keys, 0), zero, data))


def _seed_program(seeds: Array) -> Any:
    if seeds.dtype.itemsize == 8:
        words = bitcast_convert_type_p.bind(seeds, new_dtype=dtypes.uint32)
        last = len(seeds.shape)
        low, high = (reshape(slice_in_dim(words, i, i + 1, last), seeds.shape) for i in (0, 1))
        return _join_words(high, low)
    low = convert_element_type(seeds, dtypes.uint32)
    return _join_words(full(seeds.shape, 0, dtypes.uint32), low)


# --- primitives -----------------------------------------------------------------------------------

def _lowered(program: Callable[..., object]) -> Any:
    """Lowers by ``program(keys, shape, ...)``."""
    def lower(ctx: Lowering, keys: object, *, shape: Shape, partitionable: bool, **params: object
              ) -> Any:
        return ctx.decompose(lambda k: program(k, shape, *params.values()), keys)
    return lower


def _old_layout(keys: np.ndarray, *, partitionable: bool, **params: object) -> str | None:
    """The condition under which a draw runs on the host."""
    return None if partitionable else (
        "the layout of counters of jax_threefry_partitionable=False is NumPy's alone")


def _leading_batch(primitive: Primitive) -> Any:
    """The batching rule of a primitive whose results follow the dimensions of its keys."""
    def batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], **params: object
              ) -> tuple[Any, Any]:
        moved = [broadcast_leading(x, size) if axis is None else move_axis(x, axis, 0)
                 for x, axis in zip(operands, axes, strict=True)]
        out = primitive.bind(*moved, **params)
        return out, [0] * len(out) if primitive.multiple_results else 0
    return batch


def _threefry_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis]
                    ) -> tuple[Any, list[int]]:
    rank = max(len(x.shape) - (axis is not None) for x, axis in zip(operands, axes, strict=True))
    moved = []
    for x, axis in zip(operands, axes, strict=True):
        if axis is None:
            moved.append(expand_axis(x, 0) if x.shape else x)
            continue
        x = move_axis(x, axis, 0)
        if len(x.shape) == 1 and rank:      # a scalar for each element, among arrays
            x = broadcast_in_dim(x, (size, *(1,) * rank), (0,))
        moved.append(x)
    return threefry2x32_p.bind(*moved), [0, 0]


def _factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], **params: object
             ) -> FactorRule:
    """Each key has its own results."""
    avals = (*in_avals, *out_avals)
    batch = min(in_avals[0].ndim, out_avals[0].ndim)
    if len({aval.shape[:batch] for aval in avals}) > 1 or any(
            dtypes.is_key(aval.dtype) and aval.dtype.physical != THREEFRY_KEYS for aval in avals):
        return replicated_factors(in_avals, out_avals)
    return batch_factors(in_avals, out_avals, batch=batch)


def _primitive(name: str, **rules: Any) -> Primitive:
    primitive = Primitive(
        name, derivative=Derivative(missing="random keys have no derivative"),
        factors=_factors, **rules)
    primitive.batch = _leading_batch(primitive)
    # Keys and bits are not differentiable: their tangents are zero.
    primitive.jvp = lambda primals, tangents, **params: (primitive.bind(*primals, **params), None)
    return primitive


def without_layout(params: Params) -> dict[str, Any]:
    """The parameters as JAX prints them."""
    return {name: value for name, value in params.items() if name != "partitionable"}


def _seed_evaluate(seeds: np.ndarray, *, impl: Generator) -> np.ndarray:
    seeds = np.asarray(seeds)
    if seeds.dtype.itemsize == 8:
        low, high = words_of(seeds.astype(np.uint64))
    else:
        low = seeds.astype(np.uint32)
        high = np.zeros_like(low)
    other = other_generators.get(impl.dtype.physical)
    return keys_of(high, low) if other is None else other.seed(np.stack([high, low], -1))


def _wrap_evaluate(words: np.ndarray, *, impl: AnyGenerator) -> np.ndarray:
    other = other_generators.get(impl.dtype.physical)
    return keys_of(words[..., 0], words[..., 1]) if other is None else other.keys_of(words)


def _unwrap_evaluate(keys: np.ndarray) -> np.ndarray:
    other = other_generator(keys)
    return np.stack(words_of(keys), -1) if other is None else other.words_of(keys)


GENERATOR = Kind("a generator of random numbers", lambda value, avals: (
    type(value) is Generator and value.name in dtypes.KEY_GENERATORS))

random_seed_p = _primitive(
    "random_seed",
    contract=takes(1, fitting.seeds, impl=GENERATOR),
    abstract=lambda seeds, *, impl: ShapedArray(seeds.shape, impl.dtype),
    evaluate=_seed_evaluate,
    lower=lambda ctx, seeds, *, impl: ctx.decompose(_seed_program, seeds),
    cost=costs.FREE,
)

random_wrap_p = _primitive(
    "random_wrap",
    contract=takes(1, fitting.wraps, impl=GENERATOR),
    abstract=lambda words, *, impl: ShapedArray(words.shape[:-1], impl.dtype),
    evaluate=_wrap_evaluate,
    lower=lambda ctx, words, *, impl: ctx.bitcast(words, impl.dtype),
    cost=costs.FREE,
)

random_clone_p = _primitive(
    "random_clone",
    contract=takes(1, fitting.keys()),
    abstract=lambda keys: keys,
    evaluate=lambda keys: keys,
    lower=lambda ctx, keys: keys,
)

random_unwrap_p = _primitive(
    "random_unwrap",
    contract=takes(1, fitting.keys()),
    abstract=lambda keys: ShapedArray((*keys.shape, keys.dtype.words), dtypes.uint32),
    evaluate=_unwrap_evaluate,
    lower=lambda ctx, keys: ctx.bitcast(keys, dtypes.uint32),
    cost=costs.FREE,
)


def _bits_evaluate(keys: np.ndarray, *, bit_width: int, shape: Shape, partitionable: bool
                   ) -> np.ndarray:
    keys = np.asarray(keys)
    return random_bits(keys, math.prod(shape), bit_width, partitionable).reshape(
        (*keys.shape, *shape))


def _bits_abstract(keys: ShapedArray, *, bit_width: int, shape: Shape, partitionable: bool
                   ) -> ShapedArray:
    if any(type(size) is int and size < 0 for size in shape):
        raise TypeError("the shape of random numbers must have every element be nonnegative, got "
                        f"{shape}.")
    return ShapedArray((*keys.shape, *shape), unsigned(bit_width))


random_bits_p = _primitive(
    "random_bits",
    contract=takes(
        1, fitting.keys(), bit_width=one_of(8, 16, 32, 64), shape=SHAPE, partitionable=FLAG),
    printed=Printed(without_layout),
    abstract=_bits_abstract,
    evaluate=_bits_evaluate,
    lower=_lowered(_bits_program),
    host=Host(condition=_old_layout),
    cost=costs.each(36),
)

random_split_p = _primitive(
    "random_split",
    contract=takes(1, fitting.keys(), shape=SHAPE, partitionable=FLAG),
    printed=Printed(without_layout),
    abstract=lambda keys, *, shape, partitionable: ShapedArray((*keys.shape, *shape), keys.dtype),
    evaluate=lambda keys, *, shape, partitionable: split_keys(
        keys, math.prod(shape), partitionable).reshape((*np.shape(keys), *shape)),
    lower=_lowered(_split_program),
    host=Host(condition=_old_layout),
)

random_fold_in_p = _primitive(
    "random_fold_in",
    contract=takes(2, fitting.keys(), fitting.indices(1), fitting.same_shapes),
    abstract=lambda keys, data: ShapedArray(keys.shape, keys.dtype),
    evaluate=fold_in_keys,
    lower=lambda ctx, keys, data: ctx.decompose(_fold_in_program, keys, data),
)


def _fold_in_batch(size: int, operands: Sequence[Array], axes: Sequence[Any]) -> tuple[Any, int]:
    keys, data = operands
    if keys.aval.dtype.impl == "unsafe_rbg" and axes[1] is None:
        # One number for all of the batch is one draw of bits, and not one for each.
        return random_fold_in_p.bind(move_axis(keys, axes[0], 0), data), 0
    return _leading_batch(random_fold_in_p)(size, operands, axes)


random_fold_in_p.batch = _fold_in_batch


def _threefry_abstract(*avals: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    shape = broadcast_shape("threefry2x32", [aval.shape for aval in avals])
    return ShapedArray(shape, dtypes.uint32), ShapedArray(shape, dtypes.uint32)


def _threefry_lower(ctx: Lowering, *words: object) -> list[Any]:
    """By the kernel, which takes vectors and one key or as many keys as counters."""
    shape = broadcast_shape("threefry2x32", [aval.shape for aval in ctx.in_avals])
    size = math.prod(shape)
    if not size:
        empty = ctx.full(shape, 0, dtypes.uint32)
        return [empty, empty]
    one_key = all(math.prod(ctx.shape(key)) == 1 for key in words[:2])

    def flat(x: object) -> Any:
        if ctx.shape(x) != shape:
            rank = len(ctx.shape(x))
            x = ctx.broadcast(x, shape, tuple(range(rank)))
        return ctx.reshape(x, (size,))

    keys = [ctx.reshape(key, (1,)) if one_key else flat(key) for key in words[:2]]
    return [ctx.reshape(part, shape) for part in ctx.threefry(*keys, *map(flat, words[2:]))]


threefry2x32_p = _primitive(
    "threefry2x32",
    contract=takes(4, fitting.of_dtypes("uint32", lambda dtype: dtype == dtypes.uint32)),
    abstract=_threefry_abstract,
    evaluate=threefry2x32,
    lower=_threefry_lower,
    multiple_results=True,
    cost=costs.each(70),
)
# Operands of rank 0 join any shape, also where the others are batched.
threefry2x32_p.batch = _threefry_batch


# --- x * y + z with one rounding ------------------------------------------------------------------

def _multiply_add_evaluate(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    dtype = x.dtype
    if y.size == 1 and abs(math.frexp(float(np.ravel(y)[0]))[0]) == 0.5 or (
            z.size == 1 and np.ravel(z)[0] == 0):
        # The product, or the sum, is exact.
        return np.add(np.multiply(x, y), z)
    if dtype != np.float32:
        return np.add(np.multiply(x, y), z)
    # float64 holds the product exactly.
    product = np.multiply(x, y, dtype=np.float64)
    return np.asarray(product + np.asarray(z, np.float64)).astype(dtype)


multiply_add_p = elementwise(
    "multiply_add",
    evaluate=_multiply_add_evaluate,
    lower=lambda ctx, x, y, z: ctx.multiply_add(x, y, z), cheap=True,
    jvp=(lambda t, x, y, z, out: mul_p.bind(t, y), lambda t, x, y, z, out: mul_p.bind(x, t),
         lambda t, x, y, z, out: t),
)


def multiply_add(x: Value, y: Value, z: Value) -> Any:
    """``x * y + z``, rounded once where the dtype is float32, as XLA does it."""
    broadcast_shape("mul", (x.shape, y.shape))
    return multiply_add_p.bind(x, y, z)
