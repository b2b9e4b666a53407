"""Windows at regular places that do not overlap are a reshape.

``vmap`` of ``dynamic_slice(x, (2 * i, 2 * j), (2, 2))`` over the places of a grid, as pooling is
written with it, gathers each window. Where they begin is known before anything runs, and does not
depend on an input:

    gather x, starts            is       transpose (reshape (slice x))

so what is computed of the windows is fused with reading ``x``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._ir.dimensions import is_dimension
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal
from maxjax._ir.liveness import has_effects
from maxjax._ir.primitive import op_spec
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array
from maxjax._ir.typing import Value
from maxjax._primitives.gather_plan import fills_outside
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.layout import reshape, transpose
from maxjax._primitives.slicing import slice_in_dim

# Numbers of a value, and operations, that are computed to know where windows begin.
_MOST_NUMBERS, _MOST_EQUATIONS = 1 << 14, 64
_LEAST_WINDOWS = 4


class _Dim(NamedTuple):
    """Where windows begin along a dimension: the first, and how far apart ``times`` of them are
    along one of the dimensions of the places; -1 where there is one window."""

    first: int
    step: int
    times: int
    along: int


def cut_regularly(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces gathers of windows that lie side by side."""
    gathers = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive is gather_p]
    if not gathers or closed.effects:
        return closed
    made: dict[Atom, JaxprEqn] = {var: eqn for eqn in closed.jaxpr.eqns for var in eqn.outvars}
    found = {id(eqn): dims for eqn in gathers if (dims := _places(eqn, made)) is not None}
    if not found:
        return closed

    def rule(eqn: JaxprEqn, operands: list[Value]) -> Sequence[Any]:
        dims = found.get(id(eqn))
        if dims is None:
            return apply_equation(eqn, operands)
        x: Any = operands[0]
        return [_cut(eqn, x, dims)]

    def flat(*values: Value) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *values, rule=rule)

    return trace_to_jaxpr(flat, closed.in_avals, closed.jaxpr.debug_info)


def _places(eqn: JaxprEqn, made: Mapping[Atom, JaxprEqn]) -> list[_Dim] | None:
    """For each dimension of what is gathered from; None where windows overlap or are irregular."""
    x, indices = eqn.invars
    numbers, sizes, mode = (eqn.params[name] for name in ("dimension_numbers", "slice_sizes",
                                                          "mode"))
    places = indices.aval.shape[:-1]
    if not all(atom.aval.plain and not _is_symbolic(atom) for atom in (
            x, indices, eqn.outvars[0])):
        return None
    if numbers.operand_batching_dims or 0 in sizes or math.prod(places) < _LEAST_WINDOWS:
        return None
    starts = _known(indices, made)
    if starts is None:
        return None
    dims = []
    for dim, (whole, size) in enumerate(zip(x.aval.shape, sizes, strict=True)):
        first = np.zeros(places, np.int64)
        if dim in numbers.start_index_map:
            first = starts[..., numbers.start_index_map.index(dim)].astype(np.int64)
        if first.min() < 0 or first.max() > whole - size:
            if fills_outside(mode):
                return None
            first = first.clip(0, whole - size)
        found = _regular(first, size, whole)
        if found is None:
            return None
        dims.append(found)
    used = sorted(dim.along for dim in dims if dim.along >= 0)
    return dims if used == [k for k, count in enumerate(places) if count > 1] else None


def _is_symbolic(atom: Atom) -> bool:
    """Whether some of a value's sizes are not known yet."""
    return any(map(is_dimension, atom.aval.shape))


def _regular(first: np.ndarray, size: int, whole: int) -> _Dim | None:
    begin = int(first.flat[0])
    varies = [k for k, count in enumerate(first.shape)
              if count > 1 and (np.take(first, 1, k) != np.take(first, 0, k)).any()]
    if not varies:
        return _Dim(begin, 0, 1, -1) if (first == begin).all() else None
    along, count = varies[0], first.shape[varies[0]]
    step = int(np.take(first, 1, along).flat[0]) - begin
    shape = [count if k == along else 1 for k in range(first.ndim)]
    if (step < size or begin + (count - 1) * step + min(size, step) > whole
            or (first != begin + step * np.arange(count).reshape(shape)).any()
            or size > 1 and begin + count * step > whole):
        return None
    return _Dim(begin, step, count, along)


def _known(atom: Atom, made: Mapping[Atom, JaxprEqn]) -> np.ndarray | None:
    """The value of what depends on no input; None of others, and of what is rather not computed."""
    order: dict[Atom, JaxprEqn] = {}
    stack, visits = [atom], 0
    while stack:
        top = stack.pop()
        if isinstance(top, Literal):
            continue
        eqn = made.get(top)
        if (eqn is None or len(eqn.outvars) != 1 or has_effects(eqn)
                or eqn.primitive.inner.control_flow is not None
                or _is_symbolic(top) or any(map(is_dimension, eqn.params.values()))
                or top.aval.dtype.kind not in "iub" or top.aval.size > _MOST_NUMBERS):
            return None
        order.pop(top, None)
        order[top] = eqn        # what is read more than once is computed before its first reader
        visits += 1
        if visits > _MOST_EQUATIONS:
            return None
        stack += eqn.invars
    values: dict[Atom, np.ndarray] = {}
    for var, eqn in reversed(order.items()):
        run = op_spec(eqn.primitive, tuple([x.aval for x in eqn.invars]), eqn.params).run
        if run is None:
            return None
        values[var] = np.asarray(run(*[x.val if isinstance(x, Literal) else values[x]
                                       for x in eqn.invars]), var.aval.dtype)
    return values.get(atom)


def _cut(eqn: JaxprEqn, x: Array, dims: Sequence[_Dim]) -> Array:
    """The windows, by slices and reshapes."""
    sizes, numbers = eqn.params["slice_sizes"], eqn.params["dimension_numbers"]
    for dim, (size, (first, step, count, _)) in enumerate(zip(sizes, dims, strict=True)):
        strided = size == 1 and count > 1
        end = first + (count * step if count > 1 and not strided else
                       (count - 1) * step + size)
        if (first, end) != (0, x.shape[dim]) or strided and step > 1:
            x = slice_in_dim(x, first, end, dim, step if strided else 1)
    # Dimensions of windows follow those of their places.
    shape: list[int] = []
    own: dict[int, int] = {}            # by the dimensions of windows
    along: dict[int, int] = {}          # by those of places
    for dim, (size, place) in enumerate(zip(sizes, dims, strict=True)):
        if place.times > 1:
            along[place.along] = len(shape)
            shape.append(place.times)
        if dim not in numbers.collapsed_slice_dims:
            own[dim] = len(shape)
            shape.append(max(size, place.step) if size > 1 else 1)
    x = reshape(x, tuple(shape))
    for dim, (size, place) in enumerate(zip(sizes, dims, strict=True)):
        if place.times > 1 and 1 < size < place.step:
            x = slice_in_dim(x, 0, size, own[dim])
    out = eqn.outvars[0].aval
    windows, places = iter(own.values()), iter(range(out.ndim - len(numbers.offset_dims)))
    order = [next(windows) if dim in numbers.offset_dims else along.get(next(places), -1)
             for dim in range(out.ndim)]
    return reshape(transpose(x, [k for k in order if k >= 0]), out.shape)
