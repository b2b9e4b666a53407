"""Between the dimensions of values and the factors of an operation.

The rules themselves stand beside the primitives (``maxjax._primitives.rules.FactorRule``). A
dimension that several factors make up, major first, gives its axes to them from the left: to the
second only when the first is split completely.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from maxjax._ir.jaxpr import JaxprEqn
from maxjax._primitives.rules import FactorRule, call_factors, replicated_factors
from maxjax._sharding.specs import Axes, Dims, Mesh

# The name of a factor in a rule.
Factor = Hashable
# How partial results combine in a collective; for other reductions the factor must not be split.
COMBINES = {"add": "psum", "max": "pmax", "min": "pmin"}


def rule_of(eqn: JaxprEqn) -> FactorRule:
    """The factor rule of an equation.

    Calls of jaxprs that are neither inlined nor loops of known form run on replicated values;
    reductions that no collective combines need replication.
    """
    in_avals = [atom.aval for atom in eqn.invars]
    out_avals = [var.aval for var in eqn.outvars]
    factors = eqn.primitive.factors
    if factors is None or factors is call_factors:
        factors = replicated_factors
    rule = factors(in_avals, out_avals, **eqn.params)
    on_shard = eqn.primitive.sharded.on_shard
    if on_shard is not None and on_shard.factors is not None:
        on_shard.factors(eqn, rule)
    odd = {factor for factor, kind in rule.reduction.items() if kind not in COMBINES}
    if odd:
        rule.replicated = rule.replicated | odd
        rule.reduction = {f: kind for f, kind in rule.reduction.items() if f not in odd}
    return rule


def project(dims: Dims, factors: Sequence[Sequence[Factor]], sizes: Mapping[Factor, int],
            mesh: Mesh) -> dict[Any, Axes]:
    """The axes of each factor of a value.

    Axes that no factor can take (a size that does not divide) are left out.
    """
    result: dict[Any, Axes] = {}
    for axes, names in zip(dims, factors, strict=True):
        if not axes:
            result.update(dict.fromkeys(names, ()))
            continue
        position = 0
        for number, factor in enumerate(names):
            rest, start = sizes[factor], position
            while position < len(axes) and rest % mesh[axes[position]] == 0:
                rest //= mesh[axes[position]]
                position += 1
            result[factor] = axes[start:position]
            if rest != 1:
                result.update(dict.fromkeys(names[number + 1:], ()))
                break
    return result


def unproject(axes_of: Mapping[Factor, Axes], factors: Sequence[Sequence[Factor]],
              sizes: Mapping[Factor, int], mesh: Mesh) -> Dims:
    """The axes of each dimension, as far as blocks of the factors are blocks of the dimension."""
    dims = []
    for names in factors:
        axes: list[str] = []
        for factor in names:
            rest = sizes[factor]
            for axis in axes_of.get(factor, ()):
                axes.append(axis)
                rest //= mesh[axis]
            if rest != 1:
                break
        dims.append(tuple(axes))
    return tuple(dims)


def rivals(rule: FactorRule) -> dict[Any, set[Any]]:
    """For each factor the others that may not use its axes: those beside it in some value, and
    those that are reduced."""
    found: dict[Any, set[Any]] = {factor: set() for factor in rule.sizes}
    for value in (*rule.operands, *rule.results):
        here = [factor for dim in value for factor in dim]
        for factor in here:
            found[factor].update(here)
    for factor in rule.reduction:
        found[factor].update(rule.sizes)
        for other in rule.sizes:
            found[other].add(factor)
    for factor, others in found.items():
        others.discard(factor)
    return found
