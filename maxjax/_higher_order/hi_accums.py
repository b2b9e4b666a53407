"""Accumulators of cotangents, which rules of ``jax.experimental.hijax.HiPrim`` are given."""

from __future__ import annotations

from typing import Any, NoReturn

from maxjax._base import dtypes
from maxjax._higher_order.custom_primitive import Zero
from maxjax._higher_order.hi_types import Aval
from maxjax._ir.trace import aval_of
from maxjax._ir.types import ShapedArray
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.varying import like_type
from maxjax._transforms.autodiff import operands_of


class GradAccum:
    """What the cotangent of an argument is added to.

    Attributes:
      aval: the type of the cotangent.

    >>> issubclass(jax.experimental.hijax.ValAccum, jax.experimental.hijax.GradAccum)
    True
    """

    aval: Any

    def accum(self, x: object) -> None:
        """Adds a cotangent; None and ``Zero`` are zero."""
        raise AssertionError

    def freeze(self) -> Any:
        """The sum."""
        raise AssertionError


class NullAccum(GradAccum):
    """The cotangent of an argument that is not differentiated: what is added is dropped.

    >>> jax.experimental.hijax.NullAccum(jax.typeof(1.)).accum(2.)
    """

    def __init__(self, aval: Aval | None):
        self.aval = aval

    def __repr__(self) -> str:
        return f"NullAccum({self.aval})"

    def accum(self, x: object) -> None:
        """Does nothing."""

    def freeze(self) -> NoReturn:
        """There is no sum."""
        raise AssertionError


class ValAccum(GradAccum):
    """The cotangent of an argument, as a value.

    Attributes:
      val: the sum so far, which may be a ``Zero``.

    >>> total = jax.experimental.hijax.ValAccum(jax.typeof(1.))
    >>> total.accum(2.)
    >>> total.accum(3.)
    >>> total.freeze()
    Array(5., dtype=float32, weak_type=True)
    """

    def __init__(self, aval: Any, val: object = None):
        self.aval = aval
        self.val = Zero(aval) if val is None else val
        check_cotangent(aval, self.val)

    def __repr__(self) -> str:
        return f"ValAccum({self.aval})"

    def accum(self, x: object) -> None:
        """Adds a cotangent; None and ``Zero`` are zero.

        Raises:
          ValueError: it has another shape.
        """
        if x is None:
            return
        check_cotangent(self.aval, x)
        if type(x) is Zero or getattr(x, "dtype", None) == dtypes.float0:
            return
        self.val = summed(self.aval, self.val, x)

    def freeze(self) -> Any:
        """The sum."""
        return self.val


def summed(aval: Aval, so_far: Any, x: object) -> Any:
    """A sum of cotangents, of which the first may be a ``Zero``."""
    if not isinstance(aval, ShapedArray):
        return x if type(so_far) is Zero else aval.vspace_add(so_far, x)
    if type(so_far) is Zero:
        so_far = None
    return add_tangents(so_far, like_type(operands_of([x])[0], aval))


def check_cotangent(aval: Aval, x: object) -> None:
    """Raises ValueError where a cotangent is of another type; dtypes do not count."""
    if not isinstance(aval, ShapedArray):
        return
    found = x.aval if type(x) is Zero else aval_of(operands_of([x])[0])
    if getattr(found, "shape", None) != aval.shape:
        raise ValueError(f"Expected cotangent type {aval.str_short()} but got {found.str_short()}")
