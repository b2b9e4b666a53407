"""The integers of calls of the pack that follow from shapes and strides."""

from __future__ import annotations

import math
from collections.abc import Sequence


def matmul_integers(a: Sequence[int], left: Sequence[int], b: Sequence[int],
                    right: Sequence[int], threads: int) -> list[int]:
    """The sizes and strides for a call that multiplies stacks of matrices, into row-major ones.

    Args:
      a, b: shapes.
      left, right: their strides.
    """
    def stack(shape: Sequence[int], strides: Sequence[int]) -> int:
        """The one stride of the leading dimensions."""
        wide = [dim for dim in range(len(shape) - 2) if shape[dim] != 1]
        return strides[wide[-1]] if wide else 0

    m, k, n = *a[-2:], b[-1]
    return [math.prod(a[:-2]), m, n, k, stack(a, left), left[-2], left[-1],
            stack(b, right), right[-2], right[-1], m * n, n, threads]


def merged(dims: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Dimensions (sizes, and strides of two arrays) of which none can be one with the next."""
    found: list[tuple[int, int, int]] = []
    for size, first, second in dims:
        if size == 1:
            continue
        if found and found[-1][1:] == (size * first, size * second):
            found[-1] = (found[-1][0] * size, first, second)
        else:
            found.append((size, first, second))
    return found
