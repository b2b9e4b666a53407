"""The dimensions that a kernel's call goes through, as few as describe its operands' elements."""

from __future__ import annotations

from collections.abc import Sequence

from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.gather import Kernel
from maxjax._max.mojo.layout import MOST_DIMENSIONS
from maxjax._max.operations import LoweringError


def walks(group: Group, kernel: Kernel) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """The dimensions of points and of rows, and the swept one: each a size, and operands' strides.

    Raises:
      LoweringError: there are more than kernels support.
    """
    def dimension(dim: int) -> list[int]:
        return [group.space[dim], *[x.access.strides[dim] for x in kernel.operands]]

    points, rows = (_collapsed([dimension(dim) for dim in dims])
                    for dims in (kernel.points, kernel.rows))
    inner = dimension(kernel.inner) if kernel.inner >= 0 else [1] + [0] * len(kernel.operands)
    outer = rows if kernel.kind == "rows" else points
    while outer and _follows(outer[-1], inner):
        inner[0] *= outer.pop()[0]
    if max(len(points), len(rows)) > MOST_DIMENSIONS:
        raise LoweringError(f"a kernel goes through {len(group.space)} dimensions of which "
                            f"more than {MOST_DIMENSIONS} cannot be one with another")
    return points, rows, inner


def _collapsed(dims: list[list[int]]) -> list[list[int]]:
    """Merges neighbouring dimensions that are contiguous in all operands."""
    result: list[list[int]] = []
    for dim in dims:
        if result and _follows(result[-1], dim):
            size = result[-1][0] * dim[0]
            result[-1] = [size, *dim[1:]]
        else:
            result.append(list(dim))
    return result


def _follows(outer: Sequence[int], inner: Sequence[int]) -> bool:
    return all(a == inner[0] * b for a, b in zip(outer[1:], inner[1:], strict=True))
