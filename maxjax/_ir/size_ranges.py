"""Positions along a dimension, such as a slice's: ranges whose bounds may be symbolic sizes."""

from __future__ import annotations

from typing import Any

from maxjax._ir.dimensions import Size, is_dimension, larger, size_index, smaller


class SizeRange:
    """A range with a symbolic bound: its start, its step and how many numbers it has."""

    __slots__ = ("count", "start", "step")

    def __init__(self, start: Size, step: int, count: Size):
        self.start: Any = start
        self.step = step
        self.count: Any = count

    def __getitem__(self, position: int) -> Any:
        return self.start + (position + self.count if position < 0 else position) * self.step

    def reversed(self) -> SizeRange:
        return SizeRange(self.start + (self.count - 1) * self.step, -self.step, self.count)


def slice_range(entry: slice, size: Size) -> range | SizeRange:
    """The positions that a slice takes of a dimension of ``size``.

    Raises:
      ValueError: the slice's step is 0.
    """
    start, stop, step = (None if bound is None else size_index(bound)
                         for bound in (entry.start, entry.stop, entry.step))
    if not any(is_dimension(value) for value in (size, start, stop)):
        return range(*slice(start, stop, step).indices(size))
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def place(bound: Size | None, default: Size) -> Any:
        if bound is None:
            return default
        return larger(low, bound + size) if bound < 0 else smaller(high, bound)

    first, last = place(start, low if step > 0 else high), place(stop, high if step > 0 else low)
    difference = last - first if step > 0 else first - last
    return SizeRange(first, step, larger(0, (difference + abs(step) - 1) // abs(step)))


def count_of(numbers: range | SizeRange) -> Any:
    """How many positions there are, which may be a symbolic size."""
    return numbers.count if isinstance(numbers, SizeRange) else len(numbers)


def reversed_range(numbers: range | SizeRange) -> range | SizeRange:
    return numbers.reversed() if isinstance(numbers, SizeRange) else numbers[::-1]
