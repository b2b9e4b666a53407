"""Updates that a mask may undo, of a whole array or of some examples of a batch, without a copy.

A loop over a batch runs until no example wants to go on; those that are done keep what they have.
So an update of one element of each example's array becomes

    new = scatter(old, indices, updates)
    out = select(goes_on, new, old)

of which the second line reads and writes everything. The same is an update that leaves out the
examples that are done:

    out = scatter(old, select(goes_on, indices, -1), updates)       # -1 is dropped

and for a slice at one place in all examples, an update with what they have there. So is an update
that one condition undoes, which bounded loops of libraries make of each of their steps, and one of
several places, one after the other. Copies between them, which libraries make of what loops carry,
are what they copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array
from maxjax._ir.typing import Value
from maxjax._primitives.arithmetic import maximum, minimum
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_in_dim_p
from maxjax._primitives.comparison import not_p, select, select_n_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from maxjax._primitives.gather_plan import GatherScatterMode, window_sizes
from maxjax._primitives.indexing import (
    SCATTERS,
    gather_p,
    scatter_add_p,
    scatter_mul_p,
    scatter_sub_p,
    scatter_to_gather,
)
from maxjax._primitives.layout import copy_p


class _Masked(NamedTuple):
    """Updates whose result is chosen for some examples: the equations, one after the other, the
    variable that says for which, of the first dimensions, and whether it says for which not."""

    updates: tuple[JaxprEqn, ...]
    mask: Var
    negated: bool


def mask_updates(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces choices between an array and its update by updates of a part."""
    found = _masked(closed)
    if not found or closed.effects:
        return closed
    updates = {id(update) for masked in found.values() for update in masked.updates}
    chosen = {update.outvars[0] for masked in found.values() for update in masked.updates}
    copied = _copied(closed)
    values: dict[Atom, Any] = {}

    def rule(eqn: JaxprEqn, operands: list[Value]) -> Sequence[Any]:
        values.update(zip(eqn.invars, operands, strict=True))
        if id(eqn) in updates or eqn.outvars and copied.get(eqn.outvars[0]) in chosen:
            return [None]       # nothing else reads it
        masked = found.get(eqn.outvars[0]) if eqn.outvars else None
        if masked is None:
            return apply_equation(eqn, operands)
        mask = values[masked.mask]
        if masked.negated:
            mask = not_p.bind(mask)
        array = values[masked.updates[0].invars[0]]
        for update in masked.updates:
            write: Any = _way(masked.mask, update)
            array = write(update, mask, array, *[values[atom] for atom in update.invars[1:]])
        return [array]

    def flat(*values: Value) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *values, rule=rule)

    return trace_to_jaxpr(flat, closed.in_avals, closed.jaxpr.debug_info)


def _copied(closed: ClosedJaxpr) -> dict[Atom, Atom]:
    """What each copy is of, in the end."""
    found: dict[Atom, Atom] = {}
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive is copy_p:
            operand, = eqn.invars
            found[eqn.outvars[0]] = found.get(operand, operand)
    return found


def _masked(closed: ClosedJaxpr) -> dict[Var, _Masked]:
    jaxpr = closed.jaxpr
    updates: dict[Atom, JaxprEqn] = {}
    masks: dict[Atom, JaxprEqn] = {}
    choices: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive in SCATTERS or eqn.primitive is dynamic_update_slice_p:
            updates[eqn.outvars[0]] = eqn
        elif eqn.primitive is broadcast_in_dim_p:
            masks[eqn.outvars[0]] = eqn
        elif eqn.primitive is select_n_p and len(eqn.invars) == 3 and updates:
            choices.append(eqn)
    if not choices:
        return {}
    copied = _copied(closed)
    uses = Counter(copied.get(atom, atom) for eqn in jaxpr.eqns if eqn.primitive is not copy_p
                   for atom in eqn.invars)
    uses.update(copied.get(atom, atom) for atom in jaxpr.outvars)

    def between(old: Atom, new: Atom) -> tuple[JaxprEqn, ...]:
        """The updates that lead from an array to another, which nothing else reads; or none."""
        chain: list[JaxprEqn] = []
        old, new = copied.get(old, old), copied.get(new, new)
        while new is not old:
            update = updates.get(new)
            if update is None or uses[new] != 1:
                return ()
            chain.append(update)
            new = copied.get(update.invars[0], update.invars[0])
        return tuple(reversed(chain))

    found: dict[Var, _Masked] = {}
    for eqn in choices:
        which, *cases = eqn.invars
        mask = which if not which.aval.ndim else masks[which].invars[0] if which in masks else None
        dims = () if which not in masks or which is mask else tuple(
            masks[which].params["broadcast_dimensions"])
        if mask is None or not isinstance(mask, Var) or mask.aval.dtype != dtypes.bool_:
            continue
        for negated, (old, new) in ((False, cases), (True, cases[::-1])):
            chain = between(old, new)
            if chain and eqn.outvars[0].aval is old.aval and dims == tuple(
                    range(mask.aval.ndim)) and all(_way(mask, update) for update in chain):
                found[eqn.outvars[0]] = _Masked(chain, mask, negated)
                break
    return found


def _way(mask: Var, update: JaxprEqn) -> Callable[..., Any] | None:
    """How an array is updated where a mask of its first dimensions (none: of all of it) says so;
    None: not without the choice, which is needed where an example has no part of the update."""
    rank = mask.aval.ndim
    array = update.invars[0].aval
    shape = array.shape
    if not shape or not array.plain or mask.aval.shape != shape[:rank] or 0 in shape:
        return None
    if update.primitive is dynamic_update_slice_p:
        return _slice_of_some if update.invars[1].aval.shape[:rank] == shape[:rank] else None
    numbers = update.params["dimension_numbers"]
    _, indices, updates = (atom.aval for atom in update.invars)
    if not indices.shape[-1] or 0 in updates.shape:
        return None
    if numbers.operand_batching_dims[:rank] == tuple(range(rank)) and dtypes.is_signed(
            indices.dtype):
        return _scatter_of_some
    sizes = window_sizes(shape, updates.shape, numbers)
    whole = (sizes[:rank] == shape[:rank] and not dtypes.is_complex(array.dtype)
             and not {*numbers.inserted_window_dims, *numbers.operand_batching_dims}.intersection(
                 range(rank)))
    return _windows_of_some if whole else None


def _slice_of_some(eqn: JaxprEqn, mask: Array, x: Array, update: Array, *starts: Value) -> Any:
    """A slice that is written for some examples; the others get what they have."""
    old = dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(update.shape))
    which = broadcast_in_dim(mask, update.shape, range(mask.ndim))
    return dynamic_update_slice_p.bind(x, select(which, old, update), *starts)


def _scatter_of_some(eqn: JaxprEqn, mask: Array, x: Array, indices: Array, updates: Array) -> Any:
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


def _windows_of_some(eqn: JaxprEqn, mask: Array, x: Array, indices: Array, updates: Array) -> Any:
    """A scatter of windows that lie at the same places in all examples: the others' parts of them
    change nothing."""
    params = eqn.params
    numbers = params["dimension_numbers"]
    unchanging = _UNCHANGING.get(eqn.primitive)
    if unchanging is None:
        # What is out of bounds is not written, whatever is read in its place.
        old = gather_p.bind(
            x, indices, dimension_numbers=scatter_to_gather(numbers),
            slice_sizes=window_sizes(x.shape, updates.shape, numbers),
            mode=GatherScatterMode.CLIP, fill_value=None, unique_indices=False,
            indices_are_sorted=False)
    else:
        old = full(updates.shape, unchanging, updates.dtype)
    which = broadcast_in_dim(mask, updates.shape, numbers.update_window_dims[:mask.ndim])
    return eqn.primitive.bind(x, indices, select(which, old, updates), **params)


# What changes no number: x + -0.0 is x, also where x is -0.0.
_UNCHANGING: dict[Primitive, float] = {scatter_add_p: -0.0, scatter_sub_p: 0.0, scatter_mul_p: 1.0}
