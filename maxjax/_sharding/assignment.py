"""The axes over which an operation's factors are split when it is computed.

The values around it propose axes; where they differ, each order of the proposals gives a candidate.
The cheapest is taken, counting moving operands there, computing, and moving results back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maxjax._ir.jaxpr import Atom, JaxprEqn
from maxjax._primitives.rules import FactorRule
from maxjax._sharding.cost_model import CostModel
from maxjax._sharding.projection import Factor, project, rivals, rule_of, unproject
from maxjax._sharding.reshard import Layout, cheapest_path
from maxjax._sharding.specs import Axes, Dims, Mesh, product


@dataclass
class Assignment:
    """How one equation is computed.

    Attributes:
      axes: factor -> the axes that split it.
      operands, results: the dimensions' axes that follow, of each value.
      unreduced: axis -> how the partial results combine.
      seconds: by the model: moving operands and results, and computing.
    """

    rule: FactorRule
    axes: dict[Any, Axes]
    operands: list[Dims]
    results: list[Dims]
    unreduced: dict[str, str]
    seconds: float = 0.0

    @property
    def used(self) -> set[str]:
        return {axis for axes in self.axes.values() for axis in axes}

    @property
    def result(self) -> Layout:
        return Layout(self.results[0], tuple(sorted(self.unreduced.items())))


def computed_rule(eqn: JaxprEqn) -> FactorRule:
    """The rule as a shard can compute it by itself, without its neighbours' elements."""
    rule = rule_of(eqn)
    on_shard = eqn.primitive.sharded.on_shard
    if on_shard is not None and on_shard.computed is not None:
        on_shard.computed(eqn, rule)
    else:
        rule.replicated = rule.replicated | rule.permutation
    return rule


def finished(eqn: JaxprEqn, rule: FactorRule, axes: Mapping[Factor, Axes], mesh: Mesh
             ) -> Assignment:
    """The assignment with the given axes, except those that cannot split some value."""
    axes = {factor: found for factor, found in axes.items() if found}
    values = [*rule.operands, *rule.results]
    avals = [atom.aval for atom in (*eqn.invars, *eqn.outvars)]
    while True:
        dims = [unproject(axes, factors, rule.sizes, mesh) for factors in values]
        bad = {factor for factors, cut in zip(values, dims, strict=True)
               for factor, found in project(cut, factors, rule.sizes, mesh).items()
               if axes.get(factor, ()) != found}
        bad.update(factor for factors, cut, aval in zip(values, dims, avals, strict=True)
                   for names, here, size in zip(factors, cut, aval.shape, strict=True)
                   if size % product(here, mesh) for factor in names)
        bad &= axes.keys()
        if not bad:
            break
        axes = {factor: found for factor, found in axes.items() if factor not in bad}
    unreduced = {axis: rule.reduction[factor] for factor, found in axes.items()
             if factor in rule.reduction for axis in found}
    return Assignment(rule, axes, dims[:len(rule.operands)], dims[len(rule.operands):], unreduced)


def candidates(eqn: JaxprEqn, rule: FactorRule, dims_of: Callable[[Atom], Dims],
               mesh: Mesh) -> Iterator[Assignment]:
    """Candidate assignments, those that follow operands first."""
    atoms = [*eqn.invars, *eqn.outvars]
    proposals = [project(dims_of(atom), factors, rule.sizes, mesh)
                 for atom, factors in zip(atoms, [*rule.operands, *rule.results], strict=True)]
    displaced = dict.fromkeys(axis for found in proposals for factor, axes in found.items()
                              if factor in rule.replicated for axis in axes)
    proposals = [{factor: axes for factor, axes in found.items()
                  if axes and factor not in rule.replicated} for found in proposals]
    against = rivals(rule)
    numbers = [number for number, found in enumerate(proposals) if found]
    numbers.sort(key=lambda number: -atoms[number].aval.nbytes)
    seen: list[dict[Any, Axes]] = []

    def combined(order: Sequence[int]) -> dict[Any, Axes]:
        axes: dict[Any, Axes] = {}
        for number in order:
            for factor, found in proposals[number].items():
                here = axes.get(factor, ())
                if found[:len(here)] != here:
                    continue
                taken = {axis for rival in against[factor] for axis in axes.get(rival, ())}
                for axis in found[len(here):]:
                    if axis in taken or axis in axes.get(factor, ()):
                        break
                    axes[factor] = (*axes.get(factor, ()), axis)
        return axes

    orders = [[number, *(other for other in numbers if other != number)] for number in numbers]
    options = [combined(order) for order in orders[:8]] or [{}]
    results = [number for number in numbers if number >= len(eqn.invars)]
    if len(results) < len(numbers):
        options.append(combined(results))
    options += [{factor: axes for factor, axes in option.items() if factor not in rule.reduction}
                for option in options if option.keys() & rule.reduction.keys()]
    if displaced:
        options.append(_moved(rule, options[0], displaced, mesh))
    for option in [*options, {}]:
        if option not in seen:
            seen.append(option)
            yield finished(eqn, rule, option, mesh)


def _moved(rule: FactorRule, axes: Mapping[Factor, Axes], displaced: Iterable[str],
           mesh: Mesh) -> dict[Any, Axes]:
    """With the axes of dimensions that must not be split put to use on others: on the factor of
    which the largest part is left, of those that all operands and results have."""
    result = dict(axes)
    everywhere = [factor for factor in rule.sizes if factor not in rule.replicated and all(
        any(factor in dim for dim in value)
        for value in (*rule.operands, *rule.results) if value)]
    for axis in displaced:
        if any(axis in found for found in result.values()):
            continue
        fitting = {factor: rule.sizes[factor] // product(result.get(factor, ()), mesh)
                   for factor in everywhere}
        fitting = {factor: size for factor, size in fitting.items() if size % mesh[axis] == 0}
        if fitting:
            best = max(fitting, key=lambda factor: fitting[factor])
            result[best] = (*result.get(best, ()), axis)
    return result


def assign(eqn: JaxprEqn, dims_of: Callable[[Atom], Dims], mesh: Mesh,
           model: CostModel) -> Assignment:
    """The cheapest candidate, the earliest among equals; the first is taken at once if it moves
    nothing."""
    best = None
    for option in candidates(eqn, computed_rule(eqn), dims_of, mesh):
        moving = moves(option, eqn, dims_of, mesh, model)
        option.seconds = moving + model.computation(eqn, product(option.used, mesh))
        if best is None or option.seconds < best.seconds:
            if best is None and not moving:
                return option
            best = option
    assert best is not None
    return best


def moves(assignment: Assignment, eqn: JaxprEqn, dims_of: Callable[[Atom], Dims], mesh: Mesh,
          model: CostModel) -> float:
    """Seconds to move operands to where they are needed, and results to where they go."""
    items = tuple(mesh.items())
    total = 0.0
    for atom, dims in dict.fromkeys(zip(eqn.invars, assignment.operands, strict=True)):
        if dims and (here := dims_of(atom)) != dims:
            total += cheapest_path(Layout(here), Layout(dims), atom.aval.nbytes, items, model)[0]
    unreduced = tuple(sorted(assignment.unreduced.items()))
    for var, dims in zip(eqn.outvars, assignment.results, strict=True):
        if unreduced or dims_of(var) != dims:
            total += cheapest_path(Layout(dims, unreduced), Layout(dims_of(var)), var.aval.nbytes,
                                   items, model)[0]
    return total
