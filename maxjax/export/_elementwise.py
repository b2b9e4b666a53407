"""StableHLO's operations on elements, and on shapes: what each is in ``jax.lax``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax._primitives.comparison import eq_to_p, le_to_p, lt_to_p
from maxjax._stablehlo.program import Dense, Operation, Unreadable
from maxjax.export._reader import (
    Reader,
    Rule,
    attribute,
    checked_bind,
    integers,
    is_floating,
    known_sizes,
    result_type,
    word,
)

_UNARY: dict[str, Callable[[Any], Any]] = {
    "abs": lax.abs, "cbrt": lax.cbrt, "ceil": lax.ceil, "cosine": lax.cos,
    "count_leading_zeros": lax.clz, "exponential": lax.exp, "exponential_minus_one": lax.expm1,
    "floor": lax.floor, "imag": lax.imag, "is_finite": lax.is_finite, "log": lax.log,
    "log_plus_one": lax.log1p, "logistic": lax.logistic, "negate": lax.neg,
    "not": lax.bitwise_not, "popcnt": lax.population_count, "real": lax.real, "rsqrt": lax.rsqrt,
    "sign": lax.sign, "sine": lax.sin, "sqrt": lax.sqrt, "tan": lax.tan, "tanh": lax.tanh,
    "round_nearest_afz": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_nearest_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lax.add, "and": lax.bitwise_and, "atan2": lax.atan2, "complex": lax.complex,
    "divide": lax.div, "maximum": lax.max, "minimum": lax.min, "multiply": lax.mul,
    "or": lax.bitwise_or, "power": lax.pow, "remainder": lax.rem, "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical, "subtract": lax.sub, "xor": lax.bitwise_xor,
}
# XLA's sum of booleans is "or", its product "and".
_OF_BOOLEANS = {"add": lax.bitwise_or, "multiply": lax.bitwise_and}
_CLIENT: dict[str, Callable[..., Any]] = {
    "acos": lax.acos, "acosh": lax.acosh, "asin": lax.asin, "asinh": lax.asinh, "atan": lax.atan,
    "atanh": lax.atanh, "bessel_i1e": lax.bessel_i1e, "conj": lax.conj, "cosh": lax.cosh,
    "digamma": lax.digamma, "erf": lax.erf, "erf_inv": lax.erf_inv, "erfc": lax.erfc,
    "lgamma": lax.lgamma, "sinh": lax.sinh, "square": lax.square, "tan": lax.tan,
    "zeta": lax.zeta, "polygamma": lax.polygamma, "next_after": lax.nextafter, "mulhi": lax.mulhi,
}


def _same_shapes(operation: Operation, operands: list[Any], count: int) -> list[Any]:
    """Operands of one shape and dtype: none is spread over another."""
    if len(operands) != count or len({(np.shape(x), x.dtype) for x in operands}) > 1:
        raise Unreadable(operation.where, f"{operation.name} of operands that differ, or not of "
                                          f"{count}")
    return operands


def _unary(function: Callable[[Any], Any]) -> Rule:
    def rule(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
        x, = _same_shapes(operation, operands, 1)
        return function(x)
    return rule


def _binary(name: str, function: Callable[..., Any]) -> Rule:
    def rule(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
        x, y = _same_shapes(operation, operands, 2)
        if x.dtype == bool and name in _OF_BOOLEANS:
            return _OF_BOOLEANS[name](x, y)
        return function(x, y)
    return rule


def _client(function: Callable[..., Any]) -> Rule:
    def rule(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
        return function(*_same_shapes(operation, operands, len(operands)))
    return rule


_COMPARISONS = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}
# The primitive, and whether its operands are exchanged.
_TOTAL = {"EQ": (eq_to_p, False), "NE": (eq_to_p, False), "LT": (lt_to_p, False),
          "LE": (le_to_p, False), "GT": (lt_to_p, True), "GE": (le_to_p, True)}


def _compare(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, y = _same_shapes(operation, operands, 2)
    direction = word(operation, "comparison_direction")
    kind = word(operation, "compare_type", "NOTYPE")
    if kind == "TOTALORDER":
        if not is_floating(np.dtype(x.dtype)):
            raise Unreadable(operation.where, f"a total order of {x.dtype}")
        primitive, exchanged = _TOTAL[direction]
        result = checked_bind(primitive, operation, [y, x] if exchanged else [x, y])
        return lax.bitwise_not(result) if direction == "NE" else result
    return _COMPARISONS[direction](x, y)


def _convert(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    dtype = result_type(operation).dtype
    if np.dtype(x.dtype).kind == "c" and dtype.kind != "c":
        x = lax.real(x)
    return lax.convert_element_type(x, dtype)


def _select(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    which, yes, no = operands
    if which.dtype != bool:
        raise Unreadable(operation.where, f"a selection by {which.dtype}")
    _same_shapes(operation, [yes, no], 2)
    return lax.select_n(which, no, yes)


def _clamp(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    low, x, high = operands
    return lax.clamp(low, x, high)


def _reduce_precision(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    return lax.reduce_precision(x, attribute(operation, "exponent_bits", int),
                                attribute(operation, "mantissa_bits", int))


def _bitcast(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    return lax.bitcast_convert_type(x, result_type(operation).dtype)


# --- constants ------------------------------------------------------------------------------------

# What is repeated more often is an operation, not a constant in memory.
_REPEATED = 4096


def _constant(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    value = operation.attributes.get("value")
    if not isinstance(value, Dense):
        raise Unreadable(operation.where, "a constant that is no tensor")
    if value.elements.shape == value.shape:
        return value.elements
    if np.prod(value.shape, dtype=object) > _REPEATED:
        return lax.broadcast_in_dim(value.elements, value.shape, ())
    return np.ascontiguousarray(value.array()).reshape(value.shape)


def _iota(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    type = result_type(operation)
    dimension = attribute(operation, "iota_dimension", int)
    if operands:
        shape = known_sizes(reader, operation, operands[0])
    else:
        shape = tuple([-1 if size is None else size for size in type.shape])
    if not 0 <= dimension < len(shape):
        raise Unreadable(operation.where, f"an iota along dimension {dimension} of {shape}")
    return lax.broadcasted_iota(type.dtype, shape, dimension)


# --- shapes ---------------------------------------------------------------------------------------

def _operand_and_shape(reader: Reader, operation: Operation,
                       operands: list[Any]) -> tuple[Any, tuple[int, ...]]:
    """The operand and the result's shape: its type's, or for a ``dynamic_`` operation the second
    operand."""
    if operation.name.startswith("stablehlo.dynamic_"):
        x, sizes = operands
        return x, known_sizes(reader, operation, sizes)
    x, = operands
    return x, tuple([size or 0 for size in result_type(operation).shape])


def _broadcast_in_dim(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, shape = _operand_and_shape(reader, operation, operands)
    return lax.broadcast_in_dim(x, shape, integers(operation, "broadcast_dimensions"))


def _reshape(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    return lax.reshape(*_operand_and_shape(reader, operation, operands))


def _transpose(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    return lax.transpose(x, integers(operation, "permutation"))


def _reverse(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    return lax.rev(x, integers(operation, "dimensions"))


def _concatenate(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    dimension = attribute(operation, "dimension", int)
    if not operands or not 0 <= dimension < np.ndim(operands[0]):
        raise Unreadable(operation.where, "a concatenation along no dimension")
    return lax.concatenate(operands, dimension)


def _slice(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    return lax.slice(x, *(integers(operation, name)
                          for name in ("start_indices", "limit_indices", "strides")))


def _real_dynamic_slice(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, *bounds = operands
    return lax.slice(x, *(known_sizes(reader, operation, bound, "a bound") for bound in bounds))


def _pad(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    if operation.name == "stablehlo.dynamic_pad":
        x, value, *known = operands
        widths = [reader.known(width, operation, "a width").tolist() for width in known]
    else:
        x, value = operands
        widths = [list(integers(operation, name)) for name in (
            "edge_padding_low", "edge_padding_high", "interior_padding")]
    return lax.pad(x, value, list(zip(*widths, strict=True)))


def _dynamic_slice(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, *starts = operands
    if operation.name == "stablehlo.dynamic_slice":
        return lax.dynamic_slice(x, starts, integers(operation, "slice_sizes"),
                                 allow_negative_indices=False)
    update, *starts = starts
    return lax.dynamic_update_slice(x, update, starts, allow_negative_indices=False)


def _get_dimension_size(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    return np.array(np.shape(x)[attribute(operation, "dimension", int)], np.int32)


def _fft(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    return lax.fft(x, word(operation, "fft_type"), integers(operation, "fft_length"))


def _optimization_barrier(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    return list(lax.optimization_barrier(tuple(operands)))


def _same(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    return operands[:1]


def _top_k(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    return lax.top_k(x, attribute(operation, "k", int),
                     is_stable=attribute(operation, "is_stable", bool, True))


_ALGORITHMS = {"DEFAULT": lax.RandomAlgorithm.RNG_DEFAULT,
               "THREE_FRY": lax.RandomAlgorithm.RNG_THREE_FRY,
               "PHILOX": lax.RandomAlgorithm.RNG_PHILOX}


def _rng_bit_generator(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    state, = operands
    return bit_generator(
        operation, state, [size or 0 for size in result_type(operation, 1).shape])


def bit_generator(operation: Operation, state: Any, shape: Sequence[int]) -> list[Any]:
    words = state
    if state.dtype == np.uint64:
        words = lax.reshape(lax.bitcast_convert_type(state, np.dtype(np.uint32)), (4,))
    moved, bits = lax.rng_bit_generator(
        words, tuple(shape), result_type(operation, 1).dtype,
        _ALGORITHMS[word(operation, "rng_algorithm")])
    if state.dtype == np.uint64:
        moved = lax.bitcast_convert_type(lax.reshape(moved, (2, 2)), np.dtype(np.uint64))
    return [moved, bits]


def _rng(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    low, high, sizes = operands
    if word(operation, "rng_distribution") != "UNIFORM":
        raise Unreadable(operation.where, "random numbers that are not of a uniform distribution")
    return lax.rng_uniform(low, high, known_sizes(reader, operation, sizes))


ELEMENTWISE: dict[str, Rule] = {
    **{f"stablehlo.{name}": _unary(function) for name, function in _UNARY.items()},
    **{f"stablehlo.{name}": _binary(name, function) for name, function in _BINARY.items()},
    **{f"chlo.{name}": _client(function) for name, function in _CLIENT.items()},
    "stablehlo.compare": _compare, "stablehlo.convert": _convert, "stablehlo.select": _select,
    "stablehlo.clamp": _clamp, "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.bitcast_convert": _bitcast, "stablehlo.constant": _constant,
    "stablehlo.iota": _iota, "stablehlo.dynamic_iota": _iota,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast_in_dim, "stablehlo.reshape": _reshape,
    "stablehlo.dynamic_reshape": _reshape, "stablehlo.transpose": _transpose,
    "stablehlo.reverse": _reverse, "stablehlo.concatenate": _concatenate,
    "stablehlo.slice": _slice, "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.pad": _pad, "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_slice": _dynamic_slice, "stablehlo.dynamic_update_slice": _dynamic_slice,
    "stablehlo.get_dimension_size": _get_dimension_size, "stablehlo.fft": _fft,
    "stablehlo.optimization_barrier": _optimization_barrier, "chlo.top_k": _top_k,
    "stablehlo.rng_bit_generator": _rng_bit_generator, "stablehlo.rng": _rng,
    "sdy.sharding_constraint": _same,
}
