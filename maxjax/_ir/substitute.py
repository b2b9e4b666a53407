"""Sizes for the symbols of a jaxpr: the program of one size from the trace of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base.errors import InternalError
from maxjax._ir.dimensions import Dimension
from maxjax._ir.evaluate import eval_jaxpr, itself
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.types import ShapedArray


def with_sizes(closed: ClosedJaxpr, sizes: Mapping[str, int]) -> ClosedJaxpr:
    """The jaxpr with each symbol replaced by its size.

    Raises:
      InternalError: an equation's results would not have the types that its rule gives.
    """
    return _Substitution(sizes).closed(closed)


class _Substitution:
    def __init__(self, sizes: Mapping[str, int]):
        self.sizes = sizes
        self.avals: dict[ShapedArray, ShapedArray] = {}
        self.jaxprs: dict[Any, Any] = {}        # one that is used twice stays a single object

    def aval(self, aval: ShapedArray) -> ShapedArray:
        known = self.avals.get(aval)
        if known is None:
            known = self.avals[aval] = aval.update(shape=self.value(aval.shape))
        return known

    def value(self, value: object) -> Any:
        """A parameter, or a part of one."""
        if value.__class__ is Dimension:
            return value.value(self.sizes)
        if isinstance(value, tuple):
            items = [self.value(item) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return tuple(items) if type(value) is tuple else type(value)(*items)
        if isinstance(value, ShapedArray):
            return self.aval(value)
        if isinstance(value, ClosedJaxpr):
            return self.closed(value)
        if isinstance(value, Jaxpr):
            return self.jaxpr(value)
        return value

    def closed(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        known = self.jaxprs.get(closed)
        if known is None:
            known = self.jaxprs[closed] = ClosedJaxpr(
                self.jaxpr(closed.jaxpr), closed.consts, facts=closed.facts)
        return known

    def jaxpr(self, jaxpr: Jaxpr) -> Jaxpr:
        known = self.jaxprs.get(jaxpr)
        if known is None:
            known = self.jaxprs[jaxpr] = self._jaxpr(jaxpr)
        return known

    def _jaxpr(self, jaxpr: Jaxpr) -> Jaxpr:
        eqns = []

        def sized(var: Var) -> Var:
            return type(var)(self.aval(var.aval))

        def write(eqn: JaxprEqn, invars: Sequence[Atom]) -> Sequence[Atom]:
            params = {name: self.value(value) for name, value in eqn.params.items()}
            if eqn.primitive.values.known is not None:
                aval = eqn.outvars[0].aval
                value = eqn.primitive.values.known(params)
                return [Literal(np.asarray(value, aval.dtype)[()], aval)]
            outvars = list(map(sized, eqn.outvars))
            new = eqn.replace(invars=invars, outvars=outvars, params=params)
            _check(new)
            eqns.append(new)
            return outvars

        constvars = list(map(sized, jaxpr.constvars))
        invars = list(map(sized, jaxpr.invars))
        outvars = eval_jaxpr(jaxpr, constvars, *invars, rule=write, literal=itself)
        return jaxpr.replace(constvars=constvars, invars=invars, eqns=eqns, outvars=outvars)


def _check(eqn: JaxprEqn) -> None:
    """A trace for all sizes must give what tracing for these sizes would have given."""
    expected: Any = eqn.primitive.abstract(*[atom.aval for atom in eqn.invars], **eqn.params)
    expected = list(expected) if eqn.primitive.multiple_results else [expected]
    found = [var.aval for var in eqn.outvars]
    if expected != found:
        raise InternalError(
            f"{eqn.primitive.name}, traced for all sizes, gives {found} where its rule says "
            f"{expected} at these")
