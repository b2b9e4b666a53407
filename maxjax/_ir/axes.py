"""Named axes: which names are bound around the running code, and which a program uses.

Mapping a function over a named axis (``vmap``, ``make_jaxpr`` with an ``axis_env``, a mesh) binds
that name to its size while the function runs; ``context.axis_env`` holds the pairs.
A collective stays an equation with that name until the trace that maps the axis meets it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from maxjax._base.interrupts import entered_at_once
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, derived, subjaxprs
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import context

if TYPE_CHECKING:
    from maxjax._ir.typing import AxisName, Params

# Stands for unknown names: rules that are Python functions may use any.
ANY_AXIS = object()
_NONE: frozenset[Any] = frozenset()


class named_axes:
    """``with named_axes([("i", 4)]):`` binds names to sizes; an inner name hides an outer one."""

    __slots__ = ("pairs", "previous")

    def __init__(self, pairs: Iterable[tuple[AxisName, int]]):
        self.pairs = tuple((name, size) for name, size in pairs)

    def __enter__(self) -> None:
        self.previous = context.axis_env
        inner = dict(self.pairs)
        context.axis_env = (*(pair for pair in self.previous if pair[0] not in inner),
                            *inner.items())

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        context.axis_env = self.previous


def is_bound(name: AxisName) -> bool:
    return any(bound == name for bound, _ in context.axis_env)


def axis_size(name: AxisName) -> int:
    """The size of a named axis.

    Raises:
      NameError: the name is not bound.
    """
    for bound, size in context.axis_env:
        if bound == name:
            return size
    raise NameError(f"unbound axis name: {name}")


def axes_of(primitive: Primitive, params: Params) -> Iterable[Any]:
    """The named axes that an application communicates over, in jaxprs inside it too."""
    if primitive.communication is not None:
        return primitive.communication.axis_names(**params)
    if primitive.cacheable:      # no jaxprs among its parameters
        return _NONE
    found: set[Any] = set()
    for inner in subjaxprs(params):
        found.update(_used(inner) if isinstance(inner, ClosedJaxpr) else _of_all(inner.eqns))
    return found


def uses_axis(primitive: Primitive, params: Params, name: AxisName) -> bool:
    """Whether an application communicates over the axis of that name, or may do so."""
    names = axes_of(primitive, params)
    return name in names or ANY_AXIS in names


def jaxpr_uses_axis(closed: ClosedJaxpr, name: AxisName) -> bool:
    names = _used(closed)
    return name in names or ANY_AXIS in names


@derived
def _used(closed: ClosedJaxpr) -> frozenset[Any]:
    return _of_all(closed.jaxpr.eqns)


def _of_all(eqns: Iterable[JaxprEqn]) -> frozenset[Any]:
    return _NONE.union(*[axes_of(eqn.primitive, eqn.params) for eqn in eqns])
