"""What an application costs, as we count it, XLA (``cost_analysis``) and JAX's ``roofline``.

A primitive says it (``Primitive.cost``) where it is not what most cost.
``maxjax/_higher_order/cost_analysis.py`` and ``roofline.py`` add it up over programs;
``maxjax/_primitives/costs.py`` has what several primitives share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    from maxjax._ir import rule_protocols as rules

Avals = Sequence[ShapedArray]
# ``(in_avals, out_avals, params)`` -> how many.
Count = Callable[[Avals, Avals, dict[str, Any]], float]
# ``(operand, sizes, params)`` -> bytes over a link of a torus of these sizes, and steps.
Links = Callable[[ShapedArray, list[int], dict[str, Any]], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class XlaCost:
    """What XLA counts for an application.

    Attributes:
      flops: operations; None: ``Primitive.flops_of``. Those of jaxprs inside are added to them.
      transcendentals: transcendental operations for each element of the result.
      moved: the bytes that it reads and writes by itself; None: those of all operands and results.
      takes_part: also when compiled it reads and writes no more than ``moved``.
      spreads: a scalar among arrays is spread over their shape first.
      reduces: it begins at a value, which it reads, and no operation that reads its result is fused
        with it.
      alone: it is fused neither with what it reads nor with what reads it.
      views: an operation that is not fused with what it reads reads this one's operand instead.
      chooses: of the jaxprs inside the dearest counts; otherwise all do.
      turns: operations that count the turns of a loop.
    """

    flops: Count | None = None
    transcendentals: int = 0
    moved: Count | None = None
    takes_part: bool = False
    spreads: bool = True
    reduces: bool = False
    alone: bool = False
    views: bool = False
    chooses: bool = False
    turns: float = 0.0


@dataclass(frozen=True, slots=True)
class Roofline:
    """What JAX's roofline counts for an application.

    Attributes:
      flops: arithmetic, each operation by itself.
      moved: what is moved to and from memory, by types; None: all operands and results.
      multiplies: it is a product of matrices, the only operation whose costs stay when operations
        are fused. Each operand is moved unless it is pinned.
      links: of a collective: what goes between devices.
      enters: it calls a jaxpr, whose costs are the application's.
    """

    flops: Count | None = None
    moved: Callable[[Avals, Avals], Avals] | None = None
    multiplies: bool = False
    links: Links | None = None
    enters: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """What an application costs.

    Attributes:
      flops: ``(in_avals, out_avals, **params)`` -> its floating-point operations; one for each
        element of the results if absent.
      xla: what XLA counts.
      roofline: what JAX's roofline counts, which is nothing if absent.
    """

    flops: rules.Flops | None = None
    xla: XlaCost = XlaCost()
    roofline: Roofline | None = None


def size_of(avals: Iterable[object]) -> int:
    """How many elements there are in arrays of these types."""
    return sum(aval.size for aval in avals if isinstance(aval, ShapedArray))


def bytes_of(avals: Iterable[object]) -> int:
    """How many bytes they have."""
    return sum(aval.nbytes for aval in avals if isinstance(aval, ShapedArray))


MOST = Cost()
ALONE = Cost(xla=XlaCost(alone=True))
ENTERED = Cost(roofline=Roofline(enters=True))
