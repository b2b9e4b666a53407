"""The functions of the pack that the vector machine's instructions call, by their names."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.dtypes import name_of
from maxjax._max.mojo.structure import BOOL


def operation(name: str, kind: np.dtype, result: np.dtype) -> str:
    """The function that computes an elementwise operation; ``kind`` is its first operand's."""
    if name in ("convert", "bitcast"):
        return f"vector_{name}_{name_of(kind)}_{name_of(result)}"
    if name == "select":
        return f"vector_select_{8 * result.itemsize}"
    return f"vector_{name}_{name_of(kind)}"


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
    kind = "uint8" if dtype == BOOL else name_of(dtype)
    return f"vector_{'columns' if columns else 'lines'}_{name}_{kind}"


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
