"""The structure of a kernel: all that its text, and the vector machine's code for it, depend on.

Sizes, strides and places are integers of a call. What is left of a group are the values that it
computes from one another, and along which of the loops each operand's elements differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BOOL = np.dtype(bool)
# The loops: the sweep, the rows of a point, the points.
INNER, ROWS, POINTS = 1, 2, 4
# How far apart a swept operand's elements are: there is only one, they follow one another, or
# neither.
SAME, NEXT, STRIDED = range(3)


class ValueStructure(NamedTuple):
    """A value that a kernel computes.

    Attributes:
      kind: "apply", "reduce", "load" or "iota".
      name, source: of an operation, as in `Apply` and `Reduce`; otherwise "" and None.
      inputs: the numbers of the values that it is computed from.
      operand: which is read; -1 for what is computed.
    """

    kind: str
    name: str
    dtype: np.dtype
    inputs: tuple[int, ...] = ()
    operand: int = -1
    source: str | None = None


class OperandStructure(NamedTuple):
    """An operand of a kernel.

    Attributes:
      stride: SAME, NEXT or STRIDED; NEXT if nothing is swept.
      varies: the sum of the loops along which it has different elements; POINTS stands alone, for
        an input that has one element for each point.
    """

    dtype: np.dtype
    is_iota: bool
    is_output: bool
    stride: int
    varies: int


class KernelStructure(NamedTuple):
    """What tells one kernel from another.

    Attributes:
      kind: "map", "rows" or "columns".
      has_inner, has_rows: whether a dimension is swept, and whether points have rows.
      values: each after those that it is computed from.
      outputs: numbers of values, and of the operands that they are stored to.
    """

    kind: str
    has_inner: bool
    has_rows: bool
    values: tuple[ValueStructure, ...]
    operands: tuple[OperandStructure, ...]
    outputs: tuple[tuple[int, int], ...]
