"""What lowerings share in every backend: composition, and shapes that need no backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import caches, config, dtypes
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from maxjax._ir.primitive import Primitive, op_spec
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._max.operations import LoweringError, Operations, V
from maxjax._transforms.simplify import simplify

if TYPE_CHECKING:
    from maxjax._ir.rule_protocols import Lower


class Lowering(Operations[V]):
    """Lowers equations with a backend's operations, which a subclass defines.

    Attributes:
      eqn: the equation that is being lowered, if any.
    """

    eqn: JaxprEqn | None = None

    @property
    def in_avals(self) -> Sequence[ShapedArray]:
        """The types of the operands of the equation that is being lowered."""
        return () if self.eqn is None else [atom.aval for atom in self.eqn.invars]

    @property
    def out_avals(self) -> Sequence[ShapedArray]:
        """The types of its results."""
        return () if self.eqn is None else [var.aval for var in self.eqn.outvars]

    def rule_of(self, primitive: Primitive) -> Lower:
        """How an equation of a primitive is lowered: a function of this, values and parameters.

        Raises:
          LoweringError: it is not.
        """
        if primitive.lower is None:
            raise LoweringError(f"{primitive.name} has no lowering")
        return primitive.lower

    def decompose(self, function: Callable[..., Any], *xs: V) -> Any:
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

    def lower_closed(self, closed: ClosedJaxpr, xs: Sequence[V]) -> list[V]:
        # NumPy has no array of keys.
        consts = [self.constant(value.dense() if isinstance(value.dtype, dtypes.KeyDType)
                                else np.asarray(value)) for value in closed.consts]
        return self.lower_jaxpr(closed.jaxpr, consts, xs)

    def lower_jaxpr(self, jaxpr: Jaxpr, consts: Sequence[V], xs: Sequence[V]) -> list[V]:
        """The outputs of a jaxpr for given values of its inputs."""
        values: dict[Atom, V] = dict(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, xs, strict=True))

        def values_of(atoms: Iterable[Atom]) -> list[V]:
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


def reduction_identity(kind: str, dtype: Any) -> Any:
    low, high = dtypes.extremes(dtype)
    if kind in ("sum", "or", "xor"):
        return 0
    if kind == "prod":
        return 1
    if kind == "and":
        return True if dtype == dtypes.bool_ else -1
    return low if kind == "max" else high
