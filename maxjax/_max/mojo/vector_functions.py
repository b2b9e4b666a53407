"""The functions of the pack that the vector machine's instructions call, by their names."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.dtypes import name_of
from maxjax._max.mojo.structure import BOOL

# What wraps around, or looks at bits, is the same with and without a sign: one function is enough.
_SIGNLESS = frozenset((
    "add", "sub", "mul", "neg", "eq", "ne", "and", "or", "xor", "not", "shift_left",
    "shift_right_logical", "shift_right_arithmetic", "population_count", "clz"))
_SIGNLESS_REDUCTIONS = frozenset(("sum", "prod", "and", "or", "xor"))


def signed(dtype: np.dtype) -> np.dtype:
    """The integers with a sign of the same size, where they are without one."""
    return dtypes.SIGNED[dtypes.UNSIGNED.index(dtype)] if dtype in dtypes.UNSIGNED else dtype


def operation(name: str, kind: np.dtype, result: np.dtype) -> str:
    """The function that computes an elementwise operation; ``kind`` is its first operand's."""
    if name in ("convert", "bitcast"):
        if name == "bitcast" or kind not in dtypes.FLOATS:
            # Only where numbers become longer does a sign matter, and it is the operand's.
            if result == BOOL or result in dtypes.INTS and result.itemsize <= kind.itemsize:
                kind = signed(kind)
            result = signed(result)
        return f"vector_{name}_{name_of(kind)}_{name_of(result)}"
    if name == "select":
        return f"vector_select_{8 * result.itemsize}"
    return f"vector_{name}_{name_of(signed(kind) if name in _SIGNLESS else kind)}"


def ramp(dtype: np.dtype) -> str:
    """The function that counts."""
    return f"vector_ramp_{name_of(signed(dtype))}"


def accumulated(name: str, dtype: np.dtype) -> np.dtype:
    """What partial results of a reduction are gathered in."""
    if dtype == BOOL:
        return np.dtype(np.uint8)
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return np.dtype(np.float32)
    if name == "sum" and dtype == np.float32:
        return np.dtype(np.float64)
    return dtype


# Sums of float64 from tile to tile, which no wider type holds: each with its error beside it, and
# what becomes of both in the end.
COMPENSATED, SETTLE = "compensated", "vector_settle_float64"


def reduction(name: str, dtype: np.dtype, columns: bool) -> str:
    kind = np.dtype(np.uint8) if dtype == BOOL else dtype
    kind = signed(kind) if name in _SIGNLESS_REDUCTIONS else kind
    return f"vector_{'columns' if columns else 'lines'}_{name}_{name_of(kind)}"


class Joint(NamedTuple):
    """Two arithmetic operations as one function, each rounded: the second's operands are what the
    first computes of two registers, and a third one, or if ``right`` the other way round."""

    function: str
    dtype: np.dtype
    first: str
    then: str
    right: bool


@functools.cache
def joint_operations(kinds: tuple[np.dtype, ...] = (np.dtype(np.float32),)
                     ) -> dict[tuple[str, str, bool], Joint]:
    """Those of some dtypes, by the two functions and ``right``. A sum of two products goes through
    memory once less."""
    found = {}
    for dtype in kinds:
        for first, then in itertools.product(("add", "sub", "mul"), repeat=2):
            for right in (False, True):
                end = "_right" if right else ""
                found[operation(first, dtype, dtype), operation(then, dtype, dtype), right] = Joint(
                    f"vector_{first}_{then}{end}_{name_of(dtype)}", dtype, first, then, right)
    return found
