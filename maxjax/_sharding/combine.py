"""Joins small all-reduces that do not wait for one another.

A collective takes time to start, a copy does not: reductions over the same axes are concatenated,
reduced together and cut apart if they are small enough for that to be quicker. They must be
independent, also through other joined reductions: so they are joined only if no other reduction
needs their results, or if they have the same depth (reductions on the longest path to them).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from maxjax._base.errors import InternalError
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from maxjax._ir.liveness import has_effects, needed_equations
from maxjax._ir.primitive import Primitive
from maxjax._ir.types import ShapedArray
from maxjax._primitives.collective import named
from maxjax._primitives.joining import concatenate_p
from maxjax._primitives.layout import reshape_p
from maxjax._primitives.slicing import slice_p
from maxjax._sharding.cost_model import CostModel
from maxjax._sharding.local import REDUCTIONS

_COPIES = 4      # read and written before, read and written after


def joined_reductions(closed: ClosedJaxpr, model: CostModel) -> tuple[
        ClosedJaxpr, dict[Var, tuple[Var, ...]]]:
    """The program with small reductions joined, and for the result of each joined one the results
    that it stands for."""
    jaxpr = closed.jaxpr
    groups = [group for group in _groups(jaxpr, model) if len(group) > 1]
    if not groups or any(map(has_effects, jaxpr.eqns)):
        return closed, {}
    together: dict[Var, tuple[Var, ...]] = {}
    nodes: dict[int, list[JaxprEqn]] = {}      # by the position of the last of a group
    gone: set[int] = set()
    for group in groups:
        eqns = [jaxpr.eqns[number] for number in group]
        nodes[group[-1]], result = _join(eqns)
        together[result] = tuple(eqn.outvars[0] for eqn in eqns)
        gone.update(group)
    blocks = [nodes.get(number, [] if number in gone else [eqn])
              for number, eqn in enumerate(jaxpr.eqns)]
    return closed.replace(eqns=_sorted(jaxpr, blocks)), together


def _reduces(eqn: JaxprEqn) -> bool:
    """Whether it is a reduction between shards, not along dimensions alone."""
    return eqn.primitive in REDUCTIONS.values() and bool(named(eqn.params["axes"]))


def _groups(jaxpr: Jaxpr, model: CostModel) -> list[list[int]]:
    depth: dict[Atom, int] = {}
    needed: set[Var] = set()      # what some reduction depends on
    needed_equations(jaxpr.eqns, needed, keeps=_reduces)
    found: dict[Any, list[int]] = {}
    for number, eqn in enumerate(jaxpr.eqns):
        level = max((depth.get(atom, 0) for atom in eqn.invars), default=0)
        if _reduces(eqn):
            level += 1
            aval = eqn.outvars[0].aval
            if _COPIES * aval.nbytes / model.memory < model.latency:
                last = eqn.outvars[0] not in needed
                key = (eqn.primitive, eqn.params["axes"], aval.dtype, -1 if last else level)
                found.setdefault(key, []).append(number)
        depth.update(dict.fromkeys(eqn.outvars, level))
    return list(found.values())


def _join(eqns: Sequence[JaxprEqn]) -> tuple[list[JaxprEqn], Var]:
    """The equations of a joined reduction, and the variable of what it reduces to."""
    made: list[JaxprEqn] = []

    def apply(primitive: Primitive, operands: Sequence[Atom], out: ShapedArray | Var,
              **params: object) -> Var:
        var = out if isinstance(out, Var) else Var(out)
        made.append(JaxprEqn(primitive, operands, params, [var], eqns[0].source))
        return var

    flat = []
    for eqn in eqns:
        operand, = eqn.invars
        aval = operand.aval
        flat.append(apply(reshape_p, [operand], aval.update(shape=(aval.size,)),
                          new_sizes=(aval.size,), dimensions=None))
    total = sum(var.aval.size for var in flat)
    joined = apply(concatenate_p, flat, flat[0].aval.update(shape=(total,)), dimension=0)
    reduced = apply(eqns[0].primitive, [joined], joined.aval, **eqns[0].params)
    start = 0
    for eqn, part in zip(eqns, flat, strict=True):
        end = start + part.aval.size
        piece = apply(slice_p, [reduced], part.aval, start_indices=(start,), limit_indices=(end,),
                      strides=None)
        shape = eqn.outvars[0].aval.shape
        apply(reshape_p, [piece], eqn.outvars[0], new_sizes=shape, dimensions=None)
        start = end
    if start != math.prod(reduced.aval.shape):
        raise InternalError(f"{start} elements are taken of a sum of {reduced.aval.shape}")
    return made, reduced


def _sorted(jaxpr: Jaxpr, blocks: Sequence[Sequence[JaxprEqn]]) -> list[JaxprEqn]:
    """The blocks' equations in an order that computes everything before it is used, as close to
    the given order as that allows."""
    makers: Mapping[Atom, int] = {
        var: number for number, block in enumerate(blocks) for eqn in block for var in eqn.outvars}
    result: list[JaxprEqn] = []
    done: set[int] = set()
    for first in range(len(blocks)):
        stack = [first]
        while stack:
            number = stack[-1]
            if number in done:
                stack.pop()
                continue
            waiting = {makers[atom] for eqn in blocks[number] for atom in eqn.invars
                       if atom in makers} - done - {number}
            if waiting:
                stack.extend(sorted(waiting, reverse=True))
            else:
                stack.pop()
                done.add(number)
                result.extend(blocks[number])
    return result
