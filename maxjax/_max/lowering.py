"""What lowerings share in every backend: composition, and shapes that need no backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._base import caches, config, dtypes
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from maxjax._ir.primitive import Primitive, op_spec
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._transforms.simplify import simplify


class Lowering:
    """Lowers equations with a backend's operations, which a subclass defines.

    Attributes:
      eqn: the equation that is being lowered, if any.
      selects_in_windows: whether ``sliding`` has kernels that select an element of each window.
    """

    eqn: JaxprEqn | None = None
    selects_in_windows = True

    @property
    def in_avals(self) -> Sequence[ShapedArray]:
        """The types of the operands of the equation that is being lowered."""
        return () if self.eqn is None else [atom.aval for atom in self.eqn.invars]

    @property
    def out_avals(self) -> Sequence[ShapedArray]:
        """The types of its results."""
        return () if self.eqn is None else [var.aval for var in self.eqn.outvars]

    def __getattr__(self, name: str) -> Any:
        raise LoweringError(f"the {type(self).__name__} has no operation {name}")

    def memory_dtype(self, dtype: Any) -> np.dtype:
        """The dtype that values of a dtype have here."""
        return dtypes.physical(dtype)

    def rule_of(self, primitive: Primitive) -> Any:
        """How an equation of a primitive is lowered: a function of this, values and parameters."""
        return primitive.lower

    def sort_values(self, x: Any) -> Any:
        """Each row of a matrix sorted; None where ``sort_permutation`` must be used."""
        return None

    def first_of_sorted(self, x: Any, count: int) -> Any:
        """The first ``count`` columns of the permutation that sorts each row, of integers."""
        return self.slice(self.sort_permutation(x), (0, 0), (self.shape(x)[0], count), None)

    def read_window(self, x: Any, starts: Sequence[Any], shape: Sequence[int]) -> Any:
        """The part of ``x`` of a shape that begins at ``starts``, or as near as it fits; None where
        a gather is to be used."""
        return None

    def write_window(self, x: Any, update: Any, starts: Sequence[Any]) -> Any:
        """``x`` with an update in the place that ``read_window`` reads; None where a scatter is to
        be used."""
        return None

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
        """Lowers the primitives that ``function`` applies to ``xs``.

        An equation's types and parameters say all that its rule's functions depend on: each is
        traced once for equal ones.
        """
        avals = tuple([ShapedArray(self.shape(x), self.dtype(x)) for x in xs])
        key: Any = None
        if self.eqn is not None:
            # Alive with the key, so that no other function has its identity.
            code = getattr(function, "func", function).__code__
            key = (op_spec(self.eqn.primitive, tuple(self.in_avals), self.eqn.params), code, avals,
                   config.trace_state())
        known = _decompositions.get(key)
        if known is None:
            known = _decomposed(function, avals)
            if key is not None:
                if len(_decompositions) >= _MOST_DECOMPOSITIONS:
                    _decompositions.clear()
                _decompositions[key] = known
        closed, single = known
        results = self.lower_closed(closed, xs)
        return results[0] if single else results

    def lower_closed(self, closed: ClosedJaxpr, xs: Sequence[Any]) -> list[Any]:
        # NumPy has no array of keys.
        consts = [self.constant(value.dense() if isinstance(value.dtype, dtypes.KeyDType)
                                else np.asarray(value)) for value in closed.consts]
        return self.lower_jaxpr(closed.jaxpr, consts, xs)

    def lower_jaxpr(self, jaxpr: Jaxpr, consts: Sequence[Any],
                    xs: Sequence[Any]) -> list[Any]:
        """The outputs of a jaxpr for given values of its inputs."""
        values: dict[Atom, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, xs, strict=True))

        def values_of(atoms: Iterable[Atom]) -> list[Any]:
            return [self.constant(np.asarray(atom.val)) if isinstance(atom, Literal)
                    else values[atom] for atom in atoms]

        outer = self.eqn
        for eqn in jaxpr.eqns:
            self.eqn, primitive = eqn, eqn.primitive
            operands = values_of(eqn.invars)
            try:
                result = self.rule_of(primitive)(self, *operands, **eqn.params)
            except Exception as error:
                raise LoweringError(
                    f"lowering {primitive.name} of "
                    f"{', '.join(atom.aval.str_short() for atom in eqn.invars)} failed: "
                    f"{type(error).__name__}: {error}") from error
            results = result if primitive.multiple_results else (result,)
            for var, value in zip(eqn.outvars, results, strict=True):
                shape, dtype = self.shape(value), self.dtype(value)
                if shape != var.aval.shape or dtype != self.memory_dtype(var.aval.dtype):
                    raise LoweringError(f"{primitive.name} lowered to {dtype}{shape}, not "
                                        f"{var.aval.str_short()}")
                values[var] = value
        self.eqn = outer
        return values_of(jaxpr.outvars)


# What functions that lower equations trace to, and whether they return one array.
_decompositions: dict[Any, tuple[ClosedJaxpr, bool]] = caches.cache()
_MOST_DECOMPOSITIONS = 4096


def _decomposed(function: Callable[..., Any], avals: Sequence[ShapedArray]
                ) -> tuple[ClosedJaxpr, bool]:
    single = True

    def flat(*tracers: Any) -> Sequence[Any]:
        nonlocal single
        result = function(*tracers)
        single = not isinstance(result, (tuple, list))
        return [result] if single else result

    return simplify(trace_to_jaxpr(flat, avals, "a lowering")), single


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
