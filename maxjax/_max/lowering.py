"""What lowerings share in every backend: composition, and shapes that need no backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._transforms.simplify import simplify


class Lowering:
    """Lowers equations with a backend's operations, which a subclass defines.

    Attributes:
      in_avals, out_avals: the types of the equation that is being lowered.
    """

    in_avals: Sequence[ShapedArray] = ()
    out_avals: Sequence[ShapedArray] = ()

    def __getattr__(self, name: str) -> Any:
        raise LoweringError(f"the {type(self).__name__} has no operation {name}")

    def rule_of(self, primitive: Primitive) -> Any:
        """How an equation of a primitive is lowered: a function of this, values and parameters."""
        return primitive.lower

    def sort_values(self, x: Any) -> Any:
        """Each row of a matrix sorted; None where ``sort_permutation`` must be used."""
        return None

    def first_of_sorted(self, x: Any, count: int) -> Any:
        """The first ``count`` columns of the permutation that sorts each row, of integers."""
        return self.slice(self.sort_permutation(x), (0, 0), (self.shape(x)[0], count), None)

    def convolve(self, x: Any, weights: Any, result: Sequence[int], window: Sequence[int],
                 strides: Sequence[int], low: Sequence[int], window_dilation: Sequence[int]
                 ) -> Any:
        """The windows of x (outer, height, width, inner), each ``window`` high and wide, times
        ``weights`` (K inner, outputs): (outer, rows, columns, outputs); None where unfolding and
        a product are to be used."""
        return None

    def is_column_index(self, x: Any) -> bool:
        """Whether each element of a matrix is known to be its column's number."""
        return False

    def multiply_add(self, x: Any, y: Any, z: Any) -> Any:
        """``x * y + z``; a backend may round once."""
        return self.native("add", self.native("mul", x, y), z)

    def decompose(self, function: Callable[..., Any], *xs: Any) -> Any:
        """Lowers the primitives that ``function`` applies to ``xs``."""
        avals = [ShapedArray(self.shape(x), self.dtype(x)) for x in xs]
        single = True

        def flat(*tracers: Any) -> Sequence[Any]:
            nonlocal single
            result = function(*tracers)
            single = not isinstance(result, (tuple, list))
            return [result] if single else result

        closed = simplify(trace_to_jaxpr(flat, avals, "a lowering"))
        results = self.lower_closed(closed, xs)
        return results[0] if single else results

    def lower_closed(self, closed: ClosedJaxpr, xs: Sequence[Any]) -> list[Any]:
        consts = [self.constant(np.asarray(value)) for value in closed.consts]
        return self.lower_jaxpr(closed.jaxpr, consts, xs)

    def lower_jaxpr(self, jaxpr: Jaxpr, consts: Sequence[Any],
                    xs: Sequence[Any]) -> list[Any]:
        """The outputs of a jaxpr for given values of its inputs."""
        def lowered(eqn: JaxprEqn, operands: Sequence[Any]) -> Sequence[Any]:
            self.in_avals = [atom.aval for atom in eqn.invars]
            self.out_avals = [var.aval for var in eqn.outvars]
            try:
                result = self.rule_of(eqn.primitive)(self, *operands, **eqn.params)
            except Exception as error:
                raise LoweringError(
                    f"lowering {eqn.primitive.name} of "
                    f"{', '.join(aval.str_short() for aval in self.in_avals)} failed: "
                    f"{type(error).__name__}: {error}") from error
            results = result if eqn.primitive.multiple_results else [result]
            for var, value in zip(eqn.outvars, results, strict=True):
                shape, dtype = self.shape(value), self.dtype(value)
                if shape != var.aval.shape or dtype != dtypes.physical(var.aval.dtype):
                    raise LoweringError(f"{eqn.primitive.name} lowered to {dtype}{shape}, not "
                                        f"{var.aval.str_short()}")
            return results

        outer = self.in_avals, self.out_avals
        results = eval_jaxpr(
            jaxpr, consts, *xs, rule=lowered,
            literal=lambda literal: self.constant(np.asarray(literal.val)))
        self.in_avals, self.out_avals = outer
        return results


class LoweringError(Exception):
    """An equation could not be lowered."""


def reduction_identity(kind: str, dtype: Any) -> Any:
    low, high = dtypes.extremes(dtype)
    if kind in ("sum", "or", "xor"):
        return 0
    if kind == "prod":
        return 1
    if kind == "and":
        return True if dtype == dtypes.bool_ else -1
    return low if kind == "max" else high
