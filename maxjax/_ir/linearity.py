"""In which operands an operation is linear: said once, on the primitive.

Transposition, ``linear_transpose``, the parts of sums that the sharding engine may leave unsummed,
and sparse arrays derive what they do from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from maxjax._ir.types import ShapedArray

# ``(in_avals, out_avals, params)`` -> whether the parts of a sum may go through an application.
PartsRule = Callable[[Sequence[ShapedArray], Sequence[ShapedArray], dict[str, Any]], bool]


class Linearity(NamedTuple):
    """In which operands an operation is linear, its parameters being fixed.

    Attributes:
      operands: which.
      each: it is linear in each of them while the others are fixed, as a product is; else in all of
        them together, as a sum is.
      moves: elements are only moved, so that parts that combine in any way (sums, maxima) go
        through.
      parts: where the parts of a sum go through, summed afterwards; None where they always do.
    """

    operands: slice = slice(None)
    each: bool = False
    moves: bool = False
    parts: PartsRule | None = None

    def positions(self, count: int) -> range:
        """The linear operands among so many."""
        return range(*self.operands.indices(count))


def summed_first(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
                  params: dict[str, Any]) -> bool:
    """Parts never go through: it communicates, rounds, or fixes where a value lies."""
    return False


SUM = Linearity()
PRODUCT = Linearity(each=True)
FIRST = Linearity(slice(1), each=True)      # in the first operand; the others choose or scale
MOVEMENT = Linearity(moves=True)
SUMMED_FIRST = Linearity(slice(1), parts=summed_first)
ALL_SUMMED_FIRST = Linearity(parts=summed_first)
