"""The elementwise kernels of our own, as the primitives that they compute name them.

A kernel is a Mojo struct in ``maxjax/_max/kernels/``. Everything else about it follows from its
``Kernel``: the tables of ``maxjax/_max/graph/kernel_library.py``, the tests over them, and the
exports of the pack (with ``widths.vectorized``, which says from which size tier 0 calls it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering

NUMBERS = (*dtypes.FLOATS, *dtypes.INTS)
ALL = (*NUMBERS, dtypes.bool_)


@dataclass(frozen=True)
class Kernel:
    """An elementwise kernel.

    Attributes:
      name: ``"erf_inv"`` is the struct ``ErfInv``, registered as ``maxjax_erf_inv``.
      dtypes: those that its operands may have; all operands have the same one.
      operands: how many.
      results: the dtypes that the result may have, of the operands' dtype; None: that one.
    """

    name: str
    dtypes: tuple[np.dtype, ...]
    operands: int = 1
    results: Callable[[np.dtype], tuple[np.dtype, ...]] | None = None

    @property
    def struct(self) -> str:
        """The name of the Mojo struct."""
        return struct_name(self.name)

    def __call__(self, ctx: Lowering, *values: tuple[int, ...], **params: object) -> Any:
        """Lowers an application of the primitive: the default of ``lower``."""
        return ctx.kernel(self.name, *values)


def struct_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def to_bool(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return (dtypes.bool_,)
