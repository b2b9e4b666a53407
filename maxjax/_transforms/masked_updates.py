"""Updates of those examples of a batch that go on, without a copy of all.

A loop over a batch runs until no example wants to go on; those that are done keep what they have.
So an update of one element of each example's array becomes

    new = scatter(old, indices, updates)
    out = select(goes_on, new, old)

of which the second line reads and writes everything. The same is an update that leaves out the
examples that are done:

    out = scatter(old, select(goes_on, indices, -1), updates)       # -1 is dropped

and for a slice at one place in all examples, an update with what they have there. A choice by one
number is the same, of a step that may be undone: ``jnp.where(i < limit, x.at[i].set(y), x)``, as
where a bounded loop stands for an unbounded one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._primitives.arithmetic import maximum, minimum
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_in_dim_p
from maxjax._primitives.comparison import not_p, select, select_n_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from maxjax._primitives.gather_plan import GatherScatterMode, window_sizes
from maxjax._primitives.indexing import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)

_SCATTERS = (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)


class _Masked(NamedTuple):
    """An update whose result is chosen for some examples: the equation, and the variable that
    says for which, of the first dimensions, or for which not."""

    update: JaxprEqn
    mask: Atom
    is_negated: bool


def mask_updates(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces choices between an array and its update by updates of a part."""
    found = _masked(closed)
    if not found or closed.effects:
        return closed
    updates = {id(masked.update) for masked in found.values()}
    values: dict[Atom, Any] = {}

    def rule(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
        values.update(zip(eqn.invars, operands, strict=True))
        if id(eqn) in updates:
            return [None]       # nothing else reads it
        masked = found.get(eqn.outvars[0]) if eqn.outvars else None
        if masked is None:
            return apply_equation(eqn, operands)
        given = [values[atom] for atom in masked.update.invars]
        write = _slice_of_some if masked.update.primitive is dynamic_update_slice_p \
            else _scatter_of_some
        mask = values[masked.mask]
        return [write(masked.update, not_p.bind(mask) if masked.is_negated else mask, *given)]

    def flat(*values: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *values, rule=rule)

    return trace_to_jaxpr(flat, closed.in_avals, closed.jaxpr.debug_info)


def _masked(closed: ClosedJaxpr) -> dict[Var, _Masked]:
    jaxpr = closed.jaxpr
    updates: dict[Atom, JaxprEqn] = {}
    masks: dict[Atom, JaxprEqn] = {}
    found: dict[Var, _Masked] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive in _SCATTERS or eqn.primitive is dynamic_update_slice_p:
            updates[eqn.outvars[0]] = eqn
        elif eqn.primitive is broadcast_in_dim_p:
            masks[eqn.outvars[0]] = eqn
        elif eqn.primitive is select_n_p and len(eqn.invars) == 3:
            which, *cases = eqn.invars
            for is_negated, (old, new) in ((False, cases), (True, cases[::-1])):
                update = updates.get(new)
                if update is not None and update.invars[0] is old \
                        and eqn.outvars[0].aval is old.aval:
                    mask = _mask_of(which, masks.get(which), update)
                    if mask is not None:
                        found[eqn.outvars[0]] = _Masked(update, mask, is_negated)
    if not found:
        return found
    uses = Counter(atom for eqn in jaxpr.eqns for atom in eqn.invars)
    uses.update(jaxpr.outvars)
    return {var: masked for var, masked in found.items()
            if uses[masked.update.outvars[0]] == 1}


def _mask_of(which: Atom, broadcast: JaxprEqn | None, update: JaxprEqn) -> Atom | None:
    """What says for the first dimensions of an array, or none, whether they are updated.

    Args:
      broadcast: what the operand of the choice is made by.
    """
    mask = which if broadcast is None else broadcast.invars[0]
    dims = range(mask.aval.ndim)
    if not isinstance(mask, Var) or mask.aval.dtype != bool or (
            bool(dims) if broadcast is None
            else tuple(broadcast.params["broadcast_dimensions"]) != tuple(dims)):
        return None
    return mask if _has_parts(update, mask.aval.shape) else None


def _has_parts(update: JaxprEqn, mask: Sequence[int]) -> bool:
    """Whether an update has a part for each of an array's first dimensions, of a mask's shape."""
    rank, shape = len(mask), update.invars[0].aval.shape
    if not shape or not update.invars[0].aval.plain or tuple(mask) != shape[:rank] or 0 in shape:
        return False
    if update.primitive is dynamic_update_slice_p:
        return update.invars[1].aval.shape[:rank] == shape[:rank]
    numbers = update.params["dimension_numbers"]
    return (tuple(numbers.operand_batching_dims[:rank]) == tuple(range(rank))
            and bool(update.invars[1].aval.shape[-1])
            and dtypes.is_signed(update.invars[1].aval.dtype))


def _slice_of_some(eqn: JaxprEqn, mask: Any, x: Any, update: Any, *starts: Any) -> Any:
    """A slice that is written for some examples; the others get what they have."""
    old = dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(update.shape))
    which = broadcast_in_dim(mask, update.shape, range(mask.ndim))
    return dynamic_update_slice_p.bind(x, select(which, old, update), *starts)


def _scatter_of_some(eqn: JaxprEqn, mask: Any, x: Any, indices: Any, updates: Any) -> Any:
    """A scatter whose windows are out of bounds for some examples, and so dropped."""
    params = eqn.params
    numbers = params["dimension_numbers"]
    if indices.dtype.itemsize < 4:
        indices = convert_element_type(indices, dtypes.int32)
    if params["mode"] is GatherScatterMode.CLIP:
        sizes = window_sizes(x.shape, updates.shape, numbers)
        limits = np.array([min(x.shape[dim] - sizes[dim], np.iinfo(indices.dtype).max)
                           for dim in numbers.scatter_dims_to_operand_dims], indices.dtype)
        indices = maximum(minimum(indices, broadcast_in_dim(
            limits, indices.shape, (indices.ndim - 1,))), full(indices.shape, 0, indices.dtype))
    which = broadcast_in_dim(
        mask, indices.shape, numbers.scatter_indices_batching_dims[:mask.ndim])
    indices = select(which, full(indices.shape, -1, indices.dtype), indices)
    return eqn.primitive.bind(x, indices, updates, **{
        **params, "mode": GatherScatterMode.FILL_OR_DROP, "indices_are_sorted": False})
