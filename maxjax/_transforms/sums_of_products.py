"""Sums of products of what is broadcast are products of matrices.

    d:f32[60,7,30] = broadcast_in_dim a:f32[60,7]
    e:f32[60,7,30] = broadcast_in_dim b:f32[7,30]          c:f32[60,30] = dot_general a b
    f:f32[60,7,30] = mul d e
    c:f32[60,30] = reduce_sum[axes=(1,)] f

A convolution that is written with ``vmap`` of a window, as ``sum(window[..., None] * weights)``, is
one, and so are linear layers in this form. A product reads each operand some times fewer than there
are terms.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from maxjax._base import dtypes
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var
from maxjax._primitives.arithmetic import mul_p
from maxjax._primitives.broadcasting import broadcast_in_dim_p, reduce_sum_p
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.layout import reshape_p, transpose_p

# Rows, columns and terms of a product, and its multiplications, for which it is worth its operands
# in memory; terms that may be added up one after the other.
_LEAST_SIDE, _LEAST_TERMS, _LEAST_WORK = 4, 8, 1 << 12
_MOST_TERMS = 1 << 12


def multiply_matrices(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces sums of products by products of matrices, where those are large enough."""
    jaxpr = closed.jaxpr
    if not any(eqn.primitive is reduce_sum_p for eqn in jaxpr.eqns):
        return closed
    uses = Counter([*(atom for eqn in jaxpr.eqns for atom in eqn.invars), *jaxpr.outvars])
    made: dict[Atom, JaxprEqn] = {}
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        terms = made.get(eqn.invars[0]) if eqn.primitive is reduce_sum_p else None
        product = None
        if terms is not None and terms.primitive is mul_p and uses[terms.outvars[0]] == 1:
            product = _product(eqn, terms, made)
        eqns += [eqn] if product is None else product
        made.update((var, eqn) for var in eqn.outvars)
    return closed.replace(eqns=eqns) if len(eqns) != len(jaxpr.eqns) or any(
        a is not b for a, b in zip(eqns, jaxpr.eqns, strict=True)) else closed


class _Spread(NamedTuple):
    """An array that is broadcast, and for each dimension of the whole its own; -1 where it has
    none."""

    array: Atom
    dims: tuple[int, ...]


def _spread(atom: Atom, shape: Sequence[int], made: Mapping[Atom, JaxprEqn]) -> _Spread:
    """What an operand of a product of a shape is broadcast from."""
    own = atom.aval.shape
    dims = tuple([dim if size == own[dim] else -1 for dim, size in enumerate(shape)])
    while (eqn := made.get(atom)) is not None and len(eqn.invars) == 1:
        source = eqn.invars[0]
        own = source.aval.shape
        if eqn.primitive is broadcast_in_dim_p:
            places = {dim: k for k, dim in enumerate(eqn.params["broadcast_dimensions"])}
            dims = tuple([places[dim] if dim in places and own[places[dim]] == atom.aval.shape[dim]
                          else -1 for dim in dims])
        elif eqn.primitive is reshape_p and _wide(own) == _wide(atom.aval.shape):
            before = [k for k, size in enumerate(own) if size != 1]
            places = dict(zip([dim for dim, size in enumerate(atom.aval.shape) if size != 1],
                              before, strict=True))
            dims = tuple([places.get(dim, -1) for dim in dims])
        else:
            break
        atom = source
    return _Spread(atom, dims)


def _wide(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _product(eqn: JaxprEqn, terms: JaxprEqn, made: Mapping[Atom, JaxprEqn]
             ) -> list[JaxprEqn] | None:
    """The equations of a product that a sum of terms is; None where it is none that is worth it."""
    whole, out = terms.outvars[0].aval, eqn.outvars[0].aval
    atoms = *terms.invars, terms.outvars[0], eqn.outvars[0]
    if whole.dtype not in (dtypes.float32, dtypes.float64) or not all(
            atom.aval.plain and atom.aval.dtype == whole.dtype for atom in atoms):
        return None
    if any(atom.aval.ndim != whole.ndim for atom in terms.invars):
        return None         # one is a scalar
    if any(map(is_dimension, whole.shape)):
        return None
    x, y = (_spread(atom, whole.shape, made) for atom in terms.invars)
    if not isinstance(x.array, Var) or not isinstance(y.array, Var):
        return None
    axes = eqn.params["axes"]
    both: list[int] = []
    alone: tuple[list[int], list[int]] = [], []
    summed = [dim for dim in axes if whole.shape[dim] != 1]
    for dim, size in enumerate(whole.shape):
        if size == 1:
            continue
        in_x, in_y = x.dims[dim] >= 0, y.dims[dim] >= 0
        if not (in_x and in_y if dim in axes else in_x or in_y):
            return None
        if dim not in axes:
            (both if in_x and in_y else alone[0] if in_x else alone[1]).append(dim)
    m, n, k = (math.prod([whole.shape[dim] for dim in dims]) for dims in (*alone, summed))
    if (min(m, n) < _LEAST_SIDE or not _LEAST_TERMS <= k <= _MOST_TERMS
            or m * n * k < _LEAST_WORK):
        return None
    if alone[0] > alone[1]:     # the one whose dimensions come first
        x, y, alone = y, x, (alone[1], alone[0])
    eqns: list[JaxprEqn] = []
    operands = [_of_wide(spread, eqns, eqn) for spread in (x, y)]
    dimension_numbers = tuple([tuple([tuple(map(dims.index, wanted)) for _, dims in operands])
                               for wanted in (summed, both)])
    order = [*both, *alone[0], *alone[1]]
    params = {"dimension_numbers": dimension_numbers, "precision": None,
              "preferred_element_type": whole.dtype}
    shape = tuple([whole.shape[dim] for dim in order])
    steps = [(dot_general_p, params, shape)]
    if order != sorted(order):
        turn = tuple(sorted(range(len(order)), key=order.__getitem__))
        shape = tuple([shape[k] for k in turn])
        steps.append((transpose_p, {"permutation": turn}, shape))
    if shape != out.shape:
        steps.append((reshape_p, _reshaping(out.shape), out.shape))
    inputs = [array for array, _ in operands]
    for number, (primitive, settings, shape) in enumerate(steps):
        var = eqn.outvars[0] if number == len(steps) - 1 else Var(out.update(shape=shape))
        eqns.append(JaxprEqn(primitive, inputs, settings, [var], eqn.source))
        inputs = [var]
    return eqns


def _reshaping(shape: tuple[int, ...]) -> dict[str, Any]:
    return {"new_sizes": shape, "dimensions": None}


def _of_wide(spread: _Spread, eqns: list[JaxprEqn], eqn: JaxprEqn) -> tuple[Atom, list[int]]:
    """An array without dimensions of size 1, and for each of its dimensions that of the whole."""
    array = spread.array
    places = {own: dim for dim, own in enumerate(spread.dims) if own >= 0}
    wide = [k for k, size in enumerate(array.aval.shape) if size != 1]
    if len(wide) != array.aval.ndim:
        shape = tuple(_wide(array.aval.shape))
        var = Var(array.aval.update(shape=shape))
        eqns.append(JaxprEqn(reshape_p, [array], _reshaping(shape), [var], eqn.source))
        array = var
    return array, [places[k] for k in wide]
