"""Propagation of shardings, forwards and backwards, to a fixed point.

Each step takes one operation: the dimensions' axes are projected onto its factors, each factor's
proposals are resolved to one, and the dimensions take what the resolved factors add to them. Axes
are only ever added, so this ends. What is settled first wins; the order is

1. user priorities: a dimension of priority p counts from round p on;
2. priorities of operations: elementwise operations and movement of data (0), contractions,
   reductions and broadcasts (1), factors that need replication to be computed (2);
3. the basic strategy before the aggressive one. Basic adds only what no proposal contradicts: of a
   factor the common part of the proposals; of an axis wanted by two dimensions of a value nothing.
   Aggressive takes the proposal of the value with most bytes, of equals the first operand's.

Closed dimensions and axes of explicit replication are never added to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from maxjax._ir.jaxpr import Var
from maxjax._sharding.graph import Operation
from maxjax._sharding.projection import Factor, project, unproject
from maxjax._sharding.specs import Axes, Dims, Mesh, Spec, product

BASIC, AGGRESSIVE = "basic", "aggressive"
_LAST = 2


def operation_priority(operation: Operation) -> int:
    """0 where all values have all dimensions: elements are moved, or each is computed from those at
    its position."""
    rule = operation.rule
    if operation.eqn is None:
        return 0
    if rule.reduction:
        return 1
    everywhere = set(rule.sizes)
    for value in (*rule.operands, *rule.results):
        here = {factor for dim in value for factor in dim}
        if here:
            everywhere &= here
    return 0 if len(everywhere) == len(rule.sizes) else 1


class State:
    """The sharding of one variable while it grows."""

    __slots__ = ("axes", "dims", "nbytes", "origins", "shape", "spec")

    def __init__(self, var: Var, spec: Spec | None, origin: str):
        self.spec = spec or Spec.unknown(var.aval.ndim)
        self.shape = var.aval.shape
        self.nbytes = var.aval.nbytes
        self.dims: list[Axes] = list(self.spec.axes)
        self.axes = {axis for axes in self.dims for axis in axes}
        self.origins: list[str] = [origin if axes else "" for axes in self.dims]

    def visible(self, round_: int) -> Dims:
        """The dimensions' axes in a round, without those of later priorities."""
        return tuple(axes if dim.priority <= round_ else ()
                     for axes, dim in zip(self.dims, self.spec.dims, strict=True))

    def may_grow(self, number: int, round_: int) -> bool:
        dim = self.spec.dims[number]
        return dim.open and dim.priority <= round_


class Propagation:
    """The shardings of all values of a program.

    Args:
      operations: of the program (``graph.operations``).
      fixed: the specs given for inputs, outputs and constrained values, and where each is from.
      mesh: atoms and sizes.
      strategy: ``"aggressive"`` (after basic) or ``"basic"`` alone.
    """

    def __init__(self, operations: Sequence[Operation], fixed: Mapping[Var, tuple[Spec, str]],
                 mesh: Mesh, strategy: str = AGGRESSIVE):
        self.operations = operations
        self.mesh = mesh
        self.states: dict[Var, State] = {}
        for operation in operations:
            for var, _ in operation.values:
                if var not in self.states:
                    self.states[var] = State(var, *fixed.get(var, (None, "")))
        for var, (spec, origin) in fixed.items():
            if var not in self.states:
                self.states[var] = State(var, spec, origin)
        self.users: dict[Var, list[int]] = {}
        for number, operation in enumerate(operations):
            for var in {var for var, _ in operation.values}:
                self.users.setdefault(var, []).append(number)
        self.agreed: set[int] = set()      # operations that have nothing more to propagate
        self.priorities = [operation_priority(operation) for operation in operations]
        rounds = {dim.priority for state in self.states.values() for dim in state.spec.dims}
        for round_ in sorted(rounds):
            for priority in range(_LAST + 1):
                self.fixed_point(round_, priority, False)
                if strategy == AGGRESSIVE:
                    self.fixed_point(round_, priority, True)

    def dims(self, var: Var) -> Dims:
        state = self.states.get(var)
        return tuple(state.dims) if state is not None else ((),) * var.aval.ndim

    def fixed_point(self, round_: int, priority: int, aggressive: bool) -> None:
        waiting = deque(number for number in range(len(self.operations))
                        if self.priorities[number] <= priority and number not in self.agreed)
        queued = set(waiting)
        while waiting:
            number = waiting.popleft()
            queued.discard(number)
            for var in self.step(number, round_, priority, aggressive):
                for user in self.users[var]:
                    self.agreed.discard(user)
                    if user not in queued and self.priorities[user] <= priority:
                        queued.add(user)
                        waiting.append(user)

    def step(self, number: int, round_: int, priority: int, aggressive: bool) -> list[Var]:
        """One operation: collect, resolve, update. Gives the variables that have changed."""
        operation = self.operations[number]
        rule, mesh = operation.rule, self.mesh
        proposals: dict[Any, list[tuple[Axes, int]]] = {}
        for var, factors in operation.values:
            state = self.states[var]
            if not state.axes:
                continue
            projected = project(state.visible(round_), factors, rule.sizes, mesh)
            for factor, axes in projected.items():
                if axes and (priority == _LAST or factor not in rule.replicated):
                    proposals.setdefault(factor, []).append((axes, state.nbytes))
        if not proposals:
            return []
        resolved = {factor: _resolve(lists, aggressive) for factor, lists in proposals.items()}
        strengths = {factor: max(size for _, size in lists)
                     for factor, lists in proposals.items()}
        changed, agreed = [], True
        for var, factors in operation.values:
            dims = unproject(resolved, factors, rule.sizes, mesh)
            if dims == tuple(self.states[var].dims):
                continue
            agreed = False
            if self.update(var, dims, factors, strengths, round_, aggressive, operation.name):
                changed.append(var)
        if agreed and not rule.replicated:
            self.agreed.add(number)
        return changed

    def update(self, var: Var, dims: Dims, factors: Sequence[Sequence[Factor]],
               strengths: Mapping[Factor, int], round_: int, aggressive: bool, name: str) -> bool:
        """Extends a variable's dimensions to the axes of the resolved factors, ``dims``."""
        state = self.states[var]
        wanted: dict[int, Axes] = {}
        for number, axes in enumerate(dims):
            old = state.dims[number]
            if (len(axes) > len(old) and axes[:len(old)] == old
                    and state.may_grow(number, round_)):
                wanted[number] = axes[len(old):]
        if not wanted:
            return False

        def strength(number: int) -> tuple[int, int]:
            return max((strengths.get(factor, 0) for factor in factors[number]), default=0), -number

        grown = False
        for number, axes in wanted.items():
            rivals = [other for other in wanted if other != number]
            for axis in axes:
                contested = [other for other in rivals if axis in wanted[other]]
                if axis in state.axes or axis in state.spec.replicated or (
                        contested and not (aggressive and all(
                            strength(number) > strength(other) for other in contested))):
                    break
                if state.shape[number] % product((*state.dims[number], axis), self.mesh):
                    break
                state.dims[number] = (*state.dims[number], axis)
                state.axes.add(axis)
                state.origins[number] = name
                grown = True
        return grown


def _resolve(proposals: Sequence[tuple[Axes, int]], aggressive: bool) -> Axes:
    """One list of axes for a factor.

    Lists that continue one another are no conflict: the longest holds. Otherwise the common part;
    aggressively, the list of the largest value.
    """
    longest = max((axes for axes, _ in proposals), key=len)
    if all(longest[:len(axes)] == axes for axes, _ in proposals):
        return longest
    if aggressive:
        return max(proposals, key=lambda proposal: proposal[1])[0]
    shared = 0
    while len({axes[:shared + 1] for axes, _ in proposals}) == 1:
        shared += 1
    return longest[:shared]
