"""Products with a boolean that was converted to a number are choices.

    mul(x, convert_element_type(mask))     is     select_n(mask, 0, x)

XLA rewrites them so, and programs count on it: ``inf * False`` is 0 in them, not NaN. The mask has
the shape of the product; one that is broadcast first is multiplied, as in XLA.
"""

from __future__ import annotations

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import mul_p
from maxjax._primitives.broadcasting import broadcast_in_dim_p
from maxjax._primitives.comparison import select_n_p
from maxjax._primitives.convert import convert_element_type_p

_DTYPES = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def select_products(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces products with converted booleans by choices."""
    masks: dict[Atom, Atom] = {}
    eqns: list[JaxprEqn] = []
    changed = False
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive is convert_element_type_p:
            mask = eqn.invars[0]
            if mask.aval.dtype == dtypes.bool_ and _is_chosen(eqn.outvars[0].aval):
                masks[eqn.outvars[0]] = mask
        elif eqn.primitive is mul_p and masks:
            x, y = eqn.invars
            shape = eqn.outvars[0].aval.shape
            for factor, other in (x, y), (y, x):
                # Operands may have dimensions of size 1 in the place of longer ones.
                if (factor in masks and factor.aval.shape == shape
                        and other.aval.shape in (shape, ())):
                    eqns += _choice(eqn, masks[factor], other)
                    changed = True
                    break
            else:
                eqns.append(eqn)
            continue
        eqns.append(eqn)
    return closed.replace(eqns=eqns) if changed else closed


def _is_chosen(aval: ShapedArray) -> bool:
    """Whether a product of this type is a choice. One of bfloat16 or float8 is computed in float32,
    with more conversions between; one of integers has the same value anyway."""
    return aval.plain and aval.dtype in _DTYPES


def _choice(eqn: JaxprEqn, mask: Atom, other: Atom) -> list[JaxprEqn]:
    """The equations of a choice between ``other`` and zero."""
    out = eqn.outvars[0].aval
    scalar = out.update(shape=(), weak_type=False)
    eqns: list[JaxprEqn] = []

    def whole(atom: Atom) -> Atom:
        if atom.aval.shape == out.shape:
            return atom
        var = Var(out)
        eqns.append(JaxprEqn(broadcast_in_dim_p, [atom], {
            "shape": out.shape, "broadcast_dimensions": ()}, [var], eqn.source))
        return var

    cases = whole(Literal(np.zeros((), out.dtype)[()], scalar)), whole(other)
    return [*eqns, JaxprEqn(select_n_p, [mask, *cases], {}, eqn.outvars, eqn.source)]
