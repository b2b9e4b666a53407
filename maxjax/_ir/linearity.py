"""In which operands an operation is linear: said once, on the primitive.

Transposition, ``linear_transpose``, sparse arrays, and the sharding engine, which may leave values
unreduced, derive what they do from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    from maxjax._ir.typing import Params

# ``(in_avals, out_avals, params)`` -> whether an application may leave its result unreduced.
UnreducedRule = Callable[[Sequence[ShapedArray], Sequence[ShapedArray], dict[str, Any]], bool]


class Linearity(NamedTuple):
    """In which operands an operation is linear, its parameters being fixed.

    Attributes:
      operands: the operands that it is linear in.
      each: it is linear in each of them while the others are fixed, as a product is; or else in all
        of them together, as a sum is.
      moves: elements are only moved, so that a value may stay unreduced however its partial results
        combine (sums, maxima).
      unreduced: where the result may be left unreduced; None: everywhere.
    """

    operands: slice = slice(None)
    each: bool = False
    moves: bool = False
    unreduced: UnreducedRule | None = None

    def positions(self, count: int) -> range:
        """The linear operands, given the number of operands."""
        return range(*self.operands.indices(count))


def reduced_first(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
                  params: Params) -> bool:
    """Never unreduced: the operation communicates, rounds, or fixes where a value lies."""
    return False


SUM = Linearity()
PRODUCT = Linearity(each=True)
FIRST = Linearity(slice(1), each=True)      # in the first operand; the others choose or scale
MOVEMENT = Linearity(moves=True)
REDUCED_FIRST = Linearity(slice(1), unreduced=reduced_first)
ALL_REDUCED_FIRST = Linearity(unreduced=reduced_first)
