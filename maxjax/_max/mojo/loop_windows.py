"""Windows of arrays in loops over few elements: where their lines lie.

What ``dynamic_slice`` reads and ``dynamic_update_slice`` writes is some lines, each of elements
that lie together, and each at a known distance from the first. So a line is one instruction, of an
index that all lines share.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

# Lines that are moved by one instruction each.
MOST_LINES = 16


@dataclass(frozen=True)
class Window:
    """Where a window may be in a row-major array.

    Attributes:
      axes: the dimensions of which it is a part; along others it begins at 0.
      strides: how far positions along those are apart, in elements.
      lasts: the last positions along those at which it may begin.
      run: how many elements of a line lie together.
      lines: where lines begin, from where the window does.
    """

    axes: tuple[int, ...]
    strides: tuple[int, ...]
    lasts: tuple[int, ...]
    run: int
    lines: tuple[int, ...]

    @property
    def stride(self) -> int:
        """How far those that an index counts are apart: positions, if along one dimension."""
        return self.strides[0] if len(self.axes) == 1 else 1

    @property
    def places(self) -> int:
        """How many values that index has."""
        span = sum(last * stride for last, stride in zip(self.lasts, self.strides, strict=True))
        return span // self.stride + 1


def lines_of(part: Sequence[int], whole: Sequence[int]) -> int:
    """How many lines a window of that shape has in an array."""
    last = max((axis for axis, (size, bound) in enumerate(zip(part, whole, strict=True))
                if size != bound), default=0)
    return math.prod(part[:last])


def window(integers: Sequence[int]) -> Window:
    """The window of a call of ``read_window`` or ``write_window``, of its integers."""
    rank = integers[0]
    part, strides, _, whole = (integers[1 + k * rank:1 + (k + 1) * rank] for k in range(4))
    axes = tuple(axis for axis in range(rank) if part[axis] != whole[axis])
    last = max(axes, default=0)
    return Window(
        axes, tuple(strides[axis] for axis in axes),
        tuple(whole[axis] - part[axis] for axis in axes), math.prod(part[last:]),
        tuple(sum(place * stride for place, stride in zip(at, strides, strict=False))
              for at in itertools.product(*map(range, part[:last]))))
