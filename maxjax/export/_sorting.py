"""StableHLO's sort: which of the orders of ``jax.lax`` a comparison is."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import lax
from maxjax._stablehlo.program import Operation, Tensor, Unreadable, Value
from maxjax.export._reader import Reader, attribute, compare_kind, expression


def sort(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    dimension = attribute(operation, "dimension", int, -1)
    is_stable = attribute(operation, "is_stable", bool, False)
    found = expression(reader, operation.regions[0]) if len(operation.regions) == 1 else None
    for number in range(1, len(operands) + 1):
        if found == [_order(operation, number)]:
            return list(lax.sort(tuple(operands), dimension, is_stable, number))
    for key in range(len(operands)):
        kind = compare_kind(operation.operands[key])
        total = kind == "FLOAT" and operands[key].dtype.kind != "c"
        for direction in ("LT", "GT"):
            if found == [("compare", direction, kind, 2 * key, 2 * key + 1)]:
                return _sorted_by(operands, key, direction == "GT", dimension, is_stable)
            if total and found == [("compare", direction, "TOTALORDER", 2 * key, 2 * key + 1)]:
                return _sorted_by([*operands, _in_total_order(operands[key])], len(operands),
                                  direction == "GT", dimension, is_stable)[:-1]
    raise Unreadable(operation.where, "sort by a comparison that is none of JAX's")


def _in_total_order(x: Any) -> Any:
    """Integers in the order of floats' bits: negative ones reversed, zeros apart, NaN outside."""
    width = 8 * np.dtype(x.dtype).itemsize
    bits = lax.bitcast_convert_type(x, np.dtype(f"int{width}"))
    sign = lax.shift_right_arithmetic(bits, lax.full_like(bits, width - 1))
    return lax.bitwise_xor(bits, lax.bitwise_and(sign, lax.full_like(bits, 2**(width - 1) - 1)))


def _sorted_by(operands: list[Any], key: int, descending: bool, dimension: int, is_stable: bool
               ) -> list[Any]:
    """Sorted by one operand; equal elements stay in order in a reversed order, too."""
    order = [key, *(number for number in range(len(operands)) if number != key)]
    arrays = [operands[number] for number in order]
    axis = dimension % max(1, np.ndim(arrays[0]))
    if descending:
        arrays = [lax.rev(x, (axis,)) for x in arrays]
    results = [lax.rev(x, (axis,)) if descending else x
               for x in lax.sort(tuple(arrays), axis, is_stable, 1)]
    return [results[order.index(number)] for number in range(len(operands))]


def _order(operation: Operation, count: int) -> Any:
    """JAX's comparison by the first operands, as ``expression`` gives it."""
    result: Any = None
    for number in reversed(range(count)):
        for left, right, kind in reversed(_keys(operation.operands[number], 2 * number)):
            less = ("compare", "LT", kind, left, right)
            if result is None:
                result = less
                continue
            equal = ("compare", "EQ", kind, left, right)
            both = ("and", *sorted((equal, result), key=repr))
            result = ("or", *sorted((less, both), key=repr))
    return result


def _keys(operand: Value, number: int) -> list[tuple[Any, Any, str]]:
    """What is compared of two elements, and how: zeros are equal, NaN last; parts one by one."""
    kind = compare_kind(operand)
    if kind != "FLOAT":
        return [(number, number + 1, kind)]

    def canonical(x: Any) -> Any:
        zeros = ("select", ("compare", "EQ", "FLOAT", x, ("constant", 0.0)), ("constant", 0.0), x)
        return ("select", ("compare", "NE", "FLOAT", x, x), ("constant", "nan"), zeros)

    dtype = operand.type.dtype if isinstance(operand.type, Tensor) else np.dtype(bool)
    if dtype.kind == "c":
        return [(canonical((part, number)), canonical((part, number + 1)), "TOTALORDER")
                for part in ("real", "imag")]
    return [(canonical(number), canonical(number + 1), "TOTALORDER")]
