"""How the operands, the jaxprs and the results of a loop or a choice correspond.

A primitive says it once, by the groups that its operands come in (``Inner.control_flow``):

    scan     constants, carries, scanned     the body takes all
    while    constants, constants, carries   the predicate takes the first and the carries, the body
                                             the second and the carries
    cond     the index, constants            each branch takes the constants

``structure_of(eqn)`` works that out for an equation. The first results are the carries, in
their order; those that follow are the other outputs of the body, stacked if it is a loop.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from maxjax._base import caches
from maxjax._base.errors import InternalError
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, Params
from maxjax._ir.types import ShapedArray

T = TypeVar("T")


class Role(enum.Enum):
    """What an operand is to the jaxprs inside."""

    INDEX = "index"            # which of the branches runs: no branch takes it
    CONSTANT = "constant"      # taken as it is, in each iteration
    CARRY = "carry"            # what the first iteration starts from
    SCANNED = "scanned"        # each iteration takes its slice, along the first dimension


@dataclass(frozen=True, slots=True)
class Group:
    """Operands of one role, next to one another.

    Attributes:
      count: how many: a number, or the name of the parameter that holds it. None: all operands
        that are in no other group; one group of a primitive may have this.
    """

    role: Role
    count: str | int | None = None


@dataclass(frozen=True, slots=True)
class BodyRule:
    """A parameter that holds a jaxpr, or a tuple of jaxprs of which one runs.

    Attributes:
      param: its name.
      label: what the jaxpr is called in pictures.
      takes: the groups of operands that the jaxpr takes, in their order.
      decides: whether it is a loop's predicate, whose only output says if there is another
        iteration; else the outputs are carries and results.
    """

    param: str
    label: str
    takes: tuple[int, ...]
    decides: bool = False


class Body(NamedTuple):
    """One jaxpr of an equation.

    Attributes:
      label: what it is called in pictures.
      groups: the operands that it takes, by their numbers.
      takes: for each input, the number of the operand that it is, starts from, or is a slice of.
      decides: see ``BodyRule``.
      jaxpr: the jaxpr.
    """

    label: str
    groups: tuple[range, ...]
    takes: tuple[int, ...]
    decides: bool
    jaxpr: ClosedJaxpr


@dataclass(frozen=True, slots=True, eq=False)
class Operands:
    """Which operands have which role: all that does not depend on the jaxprs.

    Attributes:
      description: the primitive's description.
      groups: the numbers of the operands of each group.
      roles: the role of each operand.
      bodies: for each jaxpr, the fields of a ``Body`` except the last.
      index, carries, scanned: the operands of those roles.
    """

    description: ControlFlow
    groups: tuple[range, ...]
    roles: tuple[Role, ...]
    bodies: tuple[tuple[str, tuple[range, ...], tuple[int, ...], bool], ...]
    index: range
    carries: range
    scanned: range


class Structure:
    """What the operands and results of an application are.

    Attributes:
      operands: their numbers.
      groups, roles, index, carries, scanned: as ``operands`` has them.
      bodies: its jaxprs, in the order in which they run.
      length: the number of iterations; None where it is not known, or where there are none.
      reverse: whether the first iteration takes the last slices.
    """

    __slots__ = ("bodies", "carries", "groups", "index", "length", "operands", "reverse", "roles",
                 "scanned")

    def __init__(self, operands: Operands, jaxprs: Iterable[ClosedJaxpr], length: int | None = None,
                 reverse: bool = False):
        self.operands = operands
        self.groups = operands.groups
        self.roles = operands.roles
        self.index = operands.index
        self.carries = operands.carries
        self.scanned = operands.scanned
        self.bodies = [Body(label, groups, takes, decides, jaxpr)
                       for (label, groups, takes, decides), jaxpr in zip(
                           operands.bodies, jaxprs, strict=True)]
        self.length = length
        self.reverse = reverse

    @property
    def is_loop(self) -> bool:
        return not self.index

    @property
    def predicate(self) -> Body | None:
        """What decides whether there is another iteration."""
        return next((body for body in self.bodies if body.decides), None)

    @property
    def producers(self) -> list[Body]:
        """The jaxprs that produce carries and results: a loop's body, or the branches."""
        return [body for body in self.bodies if not body.decides]

    def parts(self, values: Sequence[T]) -> list[list[T]]:
        """Something for each operand, by groups."""
        return [list(values[group.start:group.stop]) for group in self.groups]

    def inside(self, operand: int, aval: ShapedArray) -> ShapedArray:
        """The type of the input that an operand of some type is to a jaxpr."""
        return aval.without_dim(0) if self.roles[operand] is Role.SCANNED else aval

    def regrouped(self, params: Params, counts: Sequence[int],
                  jaxprs: Iterable[ClosedJaxpr]) -> dict[str, Any]:
        """The parameters of an application with other numbers of operands in the groups.

        Args:
          jaxprs: for those operands, in the order of ``bodies``.
        """
        description = self.operands.description
        new = description.with_jaxprs(params, jaxprs)
        for group, count in zip(description.groups, counts, strict=True):
            if isinstance(group.count, str):
                new[group.count] = count
        return new

    def out_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the results."""
        outs, count = self.producers[0].jaxpr.out_avals, len(self.carries)
        if self.length is None:
            return tuple(outs)
        return (*outs[:count], *(aval.with_leading(self.length) for aval in outs[count:]))


@dataclass(frozen=True, slots=True, eq=False)
class ControlFlow:
    """What a primitive says of its operands and jaxprs.

    A choice has an index; a loop has a jaxpr that decides, or a length.

    Attributes:
      groups: the operands; at most one group of each role, except constants.
      bodies: the parameters that hold jaxprs, in the order in which those run.
      length, reverse: the parameters that hold how many iterations there are, and whether they
        begin at the end. None: the number is not known; they do not.
    """

    groups: tuple[Group, ...]
    bodies: tuple[BodyRule, ...]
    length: str | None = None
    reverse: str | None = None

    def __post_init__(self) -> None:
        roles = [group.role for group in self.groups if group.role is not Role.CONSTANT]
        if len(set(roles)) < len(roles):
            raise InternalError("two groups of operands have the same role, and are no constants")
        ends = [Role.INDEX in roles, any(rule.decides for rule in self.bodies),
                self.length is not None]
        if sum(ends) != 1:
            raise InternalError("a choice has an index, a loop a jaxpr that decides or a length; "
                                f"this has {sum(ends)} of these")

    def jaxprs(self, params: Params) -> Iterator[ClosedJaxpr]:
        """The jaxprs of an application."""
        for rule in self.bodies:
            value = params[rule.param]
            yield from value if isinstance(value, tuple) else (value,)

    def with_jaxprs(self, params: Params,
                    jaxprs: Iterable[ClosedJaxpr]) -> dict[str, Any]:
        """The parameters with other jaxprs, in the order of ``jaxprs``."""
        given = iter(jaxprs)
        return {**params, **{
            rule.param: tuple([next(given) for _ in params[rule.param]])
            if isinstance(params[rule.param], tuple) else next(given) for rule in self.bodies}}

    def structure(self, params: Params, count: int) -> Structure:
        """What the operands of an application are, given their number."""
        jaxprs = [*self.jaxprs(params)]
        return Structure(
            self._operands(params, count, len(jaxprs)), jaxprs,
            None if self.length is None else params[self.length],
            self.reverse is not None and params[self.reverse])

    def _operands(self, params: Params, count: int, jaxprs: int) -> Operands:
        sizes = tuple([params[group.count] if isinstance(group.count, str) else group.count
                       for group in self.groups])
        key = (self, sizes, count, jaxprs)
        known = _operands.get(key)
        if known is None:
            if len(_operands) >= _OPERANDS_LIMIT:
                _operands.clear()
            known = _operands[key] = self._counted(params, sizes, count)
        return known

    def _counted(self, params: Params, sizes: Sequence[int | None],
                 count: int) -> Operands:
        rest = count - sum([size for size in sizes if size is not None])
        groups: list[range] = []
        roles: list[Role] = []
        of_role = {Role.INDEX: range(0), Role.CARRY: range(0), Role.SCANNED: range(0)}
        for group, size in zip(self.groups, sizes, strict=True):
            start = len(roles)
            roles += [group.role] * (rest if size is None else size)
            numbers = of_role[group.role] = range(start, len(roles))
            groups.append(numbers)
        bodies: list[tuple[str, tuple[range, ...], tuple[int, ...], bool]] = []
        for rule in self.bodies:
            value = params[rule.param]
            mine = tuple([groups[number] for number in rule.takes])
            takes = tuple([number for group in mine for number in group])
            labels = ([f"{rule.label} {number}" for number in range(len(value))]
                      if isinstance(value, tuple) else [rule.label])
            bodies += [(label, mine, takes, rule.decides) for label in labels]
        return Operands(
            self, tuple(groups), tuple(roles), tuple(bodies), index=of_role[Role.INDEX],
            carries=of_role[Role.CARRY], scanned=of_role[Role.SCANNED])


# The operands of applications, by the primitive's description and the numbers in each group.
_operands: dict[Any, Operands] = caches.cache()
_OPERANDS_LIMIT = 10_000


def _flow_of(eqn: JaxprEqn) -> ControlFlow:
    flow = eqn.primitive.inner.control_flow
    if flow is None:
        raise InternalError(f"{eqn.primitive} is neither a loop nor a choice")
    return flow


def structure_of(eqn: JaxprEqn) -> Structure:
    """What the operands and results of a loop or a choice are."""
    return _flow_of(eqn).structure(eqn.params, len(eqn.invars))


def bodies_of(eqn: JaxprEqn) -> Iterator[ClosedJaxpr]:
    """The jaxprs of a loop or a choice; none for other equations."""
    flow = eqn.primitive.inner.control_flow
    return iter(()) if flow is None else flow.jaxprs(eqn.params)


def with_bodies(eqn: JaxprEqn, jaxprs: Iterable[ClosedJaxpr]) -> dict[str, Any]:
    """The parameters of a loop or a choice with other jaxprs, in the order of ``bodies_of``."""
    return _flow_of(eqn).with_jaxprs(eqn.params, jaxprs)


# How many iterations of a while loop are assumed where a cost has to be estimated.
UNKNOWN_ITERATIONS = 64


def iterations(eqn: JaxprEqn, unknown: int = 1) -> int:
    """How often the jaxprs of an equation run; ``unknown`` where only running a loop tells."""
    flow = eqn.primitive.inner.control_flow
    if flow is None:
        return 1
    if flow.length is not None:
        return eqn.params[flow.length]
    return unknown if any(body.decides for body in flow.bodies) else 1
