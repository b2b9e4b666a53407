"""The order of a program's steps in which fewer large values live at a time.

Steps come in the order in which results need them. Where that holds much memory, it is changed
twice:

- What makes more than it frees waits until something reads what it makes: zeros for a scatter are
  not there all the forward pass long.
- What frees more than it makes runs as soon as it can, with what it is needed for: a weight's
  gradient, and the update that reads it and writes to donated memory, when the layer's cotangent is
  there. The cotangent and the layer's input are free then.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maxjax._max.mojo.nodes import Call, Loop, Node

if TYPE_CHECKING:
    from maxjax._max.mojo.part import Part

# A program whose values take less is left as it is, and so is one of more steps.
LEAST_BYTES = 1 << 26
MOST_STEPS = 20_000
# So much less memory is worth another order.
_WORTH_BYTES = 1 << 18
# Steps that are looked at together: the gradients of a layer, and what reads them; and of how many
# the last readers of a value they may be.
_MOST_TOGETHER = 12
_MOST_LAST = 4


@dataclass(slots=True)
class Life:
    """A value in memory.

    Attributes:
      nbytes: 0 for what takes no memory of its own.
      makers, readers: numbers of steps.
    """

    nbytes: int
    makers: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)


def in_order(count: int, lives: Sequence[Life], before: Mapping[int, set[int]]) -> list[int]:
    """An order of steps, which are numbers in the order that they have now.

    Args:
      before: for a step, others that it has to follow, besides those that make what it reads.
    """
    steps = _Steps(count, lives, before)
    return steps.soonest(steps.latest())


def peak(order: Sequence[int], lives: Sequence[Life]) -> int:
    """The most bytes that live at a time."""
    place = {step: number for number, step in enumerate(order)}
    changes = [0] * (len(order) + 1)
    for life in lives:
        steps = [place[step] for step in (*life.makers, *life.readers)]
        changes[min(steps)] += life.nbytes
        changes[max(steps) + 1] -= life.nbytes
    return max(itertools.accumulate(changes))


def reordered(part: Part) -> list[tuple[Any, Any]] | None:
    """The units of a program in an order in which values take less memory at a time; None if that
    is the one they have."""
    units = part.units
    held = part.held()
    if sum(held.values()) < LEAST_BYTES or len(units) > MOST_STEPS:
        return None
    lives = {owner: Life(held.get(owner, 0)) for owner in part.first}
    before: dict[int, set[int]] = {}
    ordered = None
    for number, (unit, detail) in enumerate(units):
        for owner in map(part.owner, part.makes(unit, detail)):
            lives[owner].makers.append(number)
        for owner in map(part.owner, part.reads(unit, detail)):
            if owner in lives:
                lives[owner].readers.append(number)
        if isinstance(unit, Loop) or isinstance(unit, Call) and unit.host is not None:
            # Steps of the host, within loops as well, are seen from outside.
            if ordered is not None:
                before.setdefault(number, set()).add(ordered)
            ordered = number
    readers: dict[Node, list[int]] = {}
    for number, (unit, detail) in enumerate(units):
        for node in map(part.owner, part.reads(unit, detail)):
            readers.setdefault(node, []).append(number)
    # What overwrites a value comes after all that read it, as it does now.
    for node, overwritten in part.reuse.overwrites():
        writer = part.first[node]
        before.setdefault(writer, set()).update(
            number for number in readers.get(overwritten, ()) if number < writer)
    values = list(lives.values())
    order = in_order(len(units), values, before)
    now = peak(range(len(units)), values)
    return [units[number] for number in order] if peak(order, values) < 0.98 * now else None


class _Steps:
    def __init__(self, count: int, lives: Sequence[Life], before: Mapping[int, set[int]]):
        self.count = count
        self.lives = lives
        self.made: list[list[int]] = [[] for _ in range(count)]     # lives, by number
        self.read: list[list[int]] = [[] for _ in range(count)]
        self.needs: list[set[int]] = [{*before.get(step, ())} for step in range(count)]
        for number, life in enumerate(lives):
            life.readers = sorted({*life.readers} - {*life.makers})
            for step, following in zip(life.makers, life.makers[1:], strict=False):
                self.needs[following].add(step)
            for step in life.makers:
                self.made[step].append(number)
            for step in life.readers:
                self.read[step].append(number)
                self.needs[step].update(life.makers[-1:])
        self.users: list[list[int]] = [[] for _ in range(count)]
        for step, needed in enumerate(self.needs):
            for other in needed:
                self.users[other].append(step)

    def latest(self) -> list[int]:
        """The order in which steps that make more than they free wait for what needs them."""
        freed = self._freed()
        # The step before which each is done: itself, unless it waits.
        place = list(range(self.count))
        waiting: list[list[int]] = [[] for _ in range(self.count)]
        for step in range(self.count - 1, -1, -1):
            users = self.users[step]
            if not users:
                continue
            first = min(place[user] for user in users)
            made = sum(self.lives[number].nbytes for number in self.made[step])
            if first > step + 1 and made - freed[step] > _WORTH_BYTES:
                place[step] = first
        for step in range(self.count):
            waiting[place[step]].append(step)
        order: list[int] = []
        for steps in waiting:
            order += steps      # what waits has a smaller number than what it waits for
        return order

    def _freed(self) -> list[int]:
        """What each step frees, by the bytes that have to be held instead while it waits: what
        another makes for it alone can wait with it."""
        found = [0] * self.count
        for step in range(self.count):
            for life in [self.lives[number] for number in self.read[step]]:
                if life.readers[-1] == step:
                    maker = life.makers[0]
                    waits = len(life.makers) == 1 and all(
                        user == step for user in self.users[maker])
                    found[step] += min(life.nbytes, found[maker]) if waits else life.nbytes
        return found

    def soonest(self, order: Sequence[int]) -> list[int]:
        """The order in which steps that free more than they make run as soon as they can."""
        left = [len(needed) for needed in self.needs]
        unread = [len(life.readers) for life in self.lives]
        done = [False] * self.count
        found: list[int] = []

        def gain(start: int) -> tuple[int, list[int]]:
            """What a step, with what follows it at once, frees at most; and the steps."""
            run = [start]
            reads: dict[int, int] = {}
            met: dict[int, int] = {}
            total, best, length = 0, 0, 0
            position = 0

            def follow(user: int) -> None:
                if len(run) < _MOST_TOGETHER and user not in run:
                    run.append(user)

            while position < len(run):
                step = run[position]
                position += 1
                total -= sum([self.lives[number].nbytes for number in self.made[step]
                              if self.lives[number].makers[0] == step])
                for number in self.read[step]:
                    reads[number] = reads.get(number, 0) + 1
                    if reads[number] == unread[number]:
                        total += self.lives[number].nbytes
                    elif self.lives[number].nbytes > _WORTH_BYTES and unread[number] <= _MOST_LAST:
                        for other in self.lives[number].readers:
                            if not done[other] and not left[other]:
                                follow(other)
                if total > best:
                    best, length = total, position
                for user in self.users[step]:
                    met[user] = met.get(user, 0) + 1
                    if met[user] == left[user]:
                        follow(user)
            return best, run[:length]

        def run(step: int) -> None:
            stack = [step]
            looked: dict[int, None] = {}
            while stack:
                step = stack.pop()
                if done[step]:
                    continue
                done[step] = True
                found.append(step)
                for number in self.read[step]:
                    unread[number] -= 1
                    if self.lives[number].nbytes > _WORTH_BYTES and unread[number] <= _MOST_LAST:
                        looked.update(dict.fromkeys(self.lives[number].readers))
                for user in self.users[step]:
                    left[user] -= 1
                    looked[user] = None
                if stack:
                    continue
                looked = {x: None for x in looked if not done[x]}
                ready = [x for x in looked if not left[x]]
                best, steps = max(map(gain, ready), key=lambda x: x[0], default=(0, []))
                if best > _WORTH_BYTES:
                    stack = steps[::-1]

        for step in order:
            run(step)
        return found
