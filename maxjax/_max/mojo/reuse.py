"""Which values take over the memory of an operand that is not read any more.

An elementwise kernel may write where it reads, element by element; a scatter, which then only
writes its rows; and a loop or a choice, whose carried values and results are where their first
values were. So a chain of updates is one piece of memory. In the body of a loop such a chain from a
carried value to its next one updates the carry in place:

    x' = scatter(x, i, sin(gather(x, j)))       # the gather is done before, then x is overwritten

A next value that is not computed from the carry by such steps is in place too, if the carry was
read for the last time before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.nodes import (
    Apply,
    Call,
    Computed,
    Constant,
    Empty,
    Input,
    Iota,
    Loop,
    Node,
    Overlay,
    Result,
    base_of,
    is_update,
    strided,
)
from maxjax._max.mojo.overlays import may_overwrite
from maxjax._primitives.dynamic_slice import dynamic_update_slice_p
from maxjax._primitives.indexing import SCATTERS
from maxjax._primitives.rows import scatter_rows_p

if TYPE_CHECKING:
    from maxjax._ir.control_flow import Structure
    from maxjax._max.mojo.part import Draft, Part

# Equations that change some elements of their first operand.
_UPDATES = (*SCATTERS, scatter_rows_p, dynamic_update_slice_p)


class Reuse:
    """What the values of a part take over; see the module's description.

    Attributes:
      of: values, and the operand whose memory each takes.
      inputs: outputs whose memory is that of an input, and that input.
    """

    def __init__(self, part: Part):
        self.part = part
        self.of: dict[Node, Node] = {}
        self.inputs: dict[Node, Node] = {}
        self._overlaid: set[Node] = set()       # which are read after that as well
        self._sources = set(part.carried.values())
        for number, (unit, detail) in enumerate(part.units):
            taken: set[Node] = set()
            if isinstance(unit, Loop) and not unit.flow.is_loop:
                self._choice(unit, number, taken)
                continue
            for node in part.makes(unit, detail):
                if part.owner(node) is node and part.first[node] == number:
                    for operand in self._operands(unit, node):
                        if operand not in taken and self._ends(operand, node, unit, number):
                            taken.add(operand)
                            self.of[node] = operand
                            break
        for output, source in part.carried.items():
            if self._may_share(output, source):
                self.inputs[output] = source
        # The memory of an input is taken only for the output that is to be there.
        kept: dict[Node, Node] = {}
        for output, source in self.inputs.items():
            chain = list(self.chain(output))
            if len(chain) > 1 and chain[-1] is source:
                kept[chain[-2]] = source
        self.of = {node: operand for node, operand in self.of.items()
                   if not isinstance(operand, Input) or kept.get(node) is operand}

    def chain(self, node: Node) -> Iterator[Node]:
        """A value, the operand whose memory it takes, and so on."""
        yield node
        while node in self.of:
            node = self.of[node]
            yield node

    def overwrites(self) -> Iterator[tuple[Node, Node]]:
        """Values, and those that they overwrite."""
        yield from self.of.items()
        for output, source in self.inputs.items():
            *links, root = self.chain(output)
            if root is not source:
                yield (links[-1] if isinstance(root, Input) else root), source

    def _may_share(self, output: Node, source: Node) -> bool:
        """Whether an output may take the memory of an input, at the end of its chain or because
        the input is read only before the chain begins."""
        part = self.part
        *links, root = self.chain(output)
        if root is source:
            return True
        if isinstance(root, Input):
            root = links[-1]
        return root in part.first and part.last.get(source, -1) < part.first[root]

    def _operands(self, unit: Any, node: Node) -> list[Node]:
        """The operands whose memory a unit could write a value to, the carried one first."""
        part = self.part
        if isinstance(unit, Group):
            kernel = part.kernels[unit]
            if kernel.kind != "map":
                return []
            output = next(x for x in kernel.operands if x.is_output and x.node is node)
            found = [x.node for x in kernel.operands
                     if not x.is_output and not isinstance(x.node, Iota)
                     and x.access == output.access]
            wanted = part.carried.get(node)
            return sorted(found, key=lambda x: x is not wanted)
        operand = updated_operand(node)
        return [] if operand is None else [base_of(operand)]

    def _choice(self, unit: Loop, number: int, taken: set[Node]) -> None:
        """The results of a choice that each branch leaves in their operand's memory or updates
        there."""
        part = self.part
        origins = updated_inputs(unit.flow)
        carried: dict[int, int] = {}
        for node in part.results_of(unit):
            for operand in origins[node.number]:
                x = whole(unit.inputs[operand])
                if x is not None and base_of(x) not in taken and self._ends(
                        base_of(x), node, unit, number):
                    taken.add(base_of(x))
                    carried[node.number] = operand
                    break
        drafts = draft_branches(part, unit, carried)
        part.choices[unit] = drafts
        for node in part.results_of(unit):
            if node.number in drafts[0].carried:
                self.of[node] = base_of(unit.inputs[carried[node.number]])

    def _ends(self, operand: Node, node: Node, unit: Any, number: int) -> bool:
        """Whether a unit is the last to read an operand, reads it once, and may overwrite it."""
        part = self.part
        if isinstance(operand, Input):
            if operand not in self._sources:
                return False
        elif operand not in part.first or operand in part.outputs:
            return False
        if part.owner(operand) is not operand or operand.nbytes != node.nbytes \
                or operand in self._overlaid:
            return False
        if isinstance(node, Overlay):
            if not may_overwrite(part, node, operand, number):
                return False
            self._overlaid.add(operand)
            return True
        return part.last[operand] == number and reads(part, unit).count(operand) == 1


def updated_operand(node: Node) -> Node | None:
    """The operand that a scatter, an overlay or a loop turns into a result, element by element."""
    if isinstance(node, Overlay):
        return whole(node.ground)
    if not isinstance(node, Result):
        return None
    unit = node.inputs[0]
    if isinstance(unit, Call):
        return whole(unit.inputs[0]) if is_update(unit) else None
    assert isinstance(unit, Loop)
    flow = unit.flow
    if not flow.is_loop or node.number >= len(flow.carries):
        return None
    return whole(unit.inputs[flow.carries[node.number]])


def first_update(output: Node) -> Node:
    """The first of the values that an output is at the end of, each an update of the one before.
    """
    while True:
        operand = updated_operand(output)
        base = output if operand is None else base_of(operand)
        if base is output or not isinstance(base, (Computed, Result, Overlay)):
            return output
        output = base


def updated_inputs(flow: Structure) -> list[list[int]]:
    """For each result of a choice, the operands that a branch returns, or updates and returns."""
    found: list[dict[int, None]] = [{} for _ in flow.bodies[0].jaxpr.outvars]
    for body in flow.bodies:
        jaxpr = body.jaxpr.jaxpr
        inputs: dict[Any, int] = dict(zip(jaxpr.invars, body.takes, strict=True))
        for eqn in jaxpr.eqns:
            if eqn.primitive in _UPDATES and eqn.invars[0] in inputs:
                inputs[eqn.outvars[0]] = inputs[eqn.invars[0]]
        for operands, atom in zip(found, jaxpr.outvars, strict=True):
            if atom in inputs:
                operands[inputs[atom]] = None
    return [list(operands) for operands in found]


def draft_branches(part: Part, unit: Loop, carried: dict[int, int]) -> list[Draft]:
    """The branches of a choice, results in the memory of operands where each branch allows it.

    Args:
      carried: for positions of results, the operands whose memory they could take.
    """
    flow = unit.flow
    read = {node.number for node in part.results_of(unit)}
    while True:
        drafts = []
        for body in flow.bodies:
            place = {number: position for position, number in enumerate(body.takes)}
            drafts.append(part.draft(
                body.jaxpr, {position for position in range(len(body.jaxpr.outvars))
                             if position not in read},
                {position: place[number] for position, number in carried.items()}))
        possible = {position: number for position, number in carried.items()
                    if all(position in draft.in_place for draft in drafts)}
        if len(possible) == len(carried):
            return drafts
        carried = possible


# So many nodes are looked through for the inputs that an output is computed of, element by element.
_MOST_LOOKED = 64


def heirs(outputs: Sequence[Node], given: Sequence[Node]) -> dict[Node, Node]:
    """For outputs, the inputs whose memory each is to take, of as many bytes: one that it is an
    update of, if there is one. As far as that leaves a choice, it is the one at the same place
    among those of its type."""
    left = dict.fromkeys(node for node in given if node.nbytes)
    fellows: dict[Any, list[Node]] = {}
    of_size: dict[int, list[Node]] = {}
    for node in reversed(left):
        fellows.setdefault((node.dtype, node.shape), []).append(node)
        of_size.setdefault(node.nbytes, []).append(node)
    partners = [fellows[kind].pop() if fellows.get(kind) else None
                for kind in ((output.dtype, output.shape) for output in outputs)]
    sources = [_updated(output) for output in outputs]
    found: dict[Node, Node] = {}

    def pair(candidates: Callable[[int], Iterable[Node | None]]) -> None:
        for number, output in enumerate(outputs):
            for source in () if base_of(output) in found else candidates(number):
                if source in left and source.nbytes == output.nbytes:
                    found[base_of(output)] = source
                    del left[source]
                    break

    pair(lambda number: [partners[number]] if partners[number] in sources[number] else ())
    pair(lambda number: sources[number])
    pair(lambda number: (partners[number], *reversed(of_size.get(outputs[number].nbytes, ()))))
    return found


def _updated(output: Node) -> dict[Node | None, None]:
    """The inputs that an output is computed of in such a way that it could overwrite them."""
    found: dict[Node | None, None] = {}
    stack, entered = [base_of(output)], {base_of(output)}
    while stack and len(entered) < _MOST_LOOKED:
        node = stack.pop()
        if isinstance(node, Input):
            found[node] = None
            continue
        operand = updated_operand(node)
        operands = node.inputs if isinstance(node, Apply) else [] if operand is None else [operand]
        for x in map(base_of, operands):
            if x.nbytes == output.nbytes and x not in entered:
                entered.add(x)
                stack.append(x)
    return found


def whole(x: Node) -> Node | None:
    """An operand that is row-major in memory, if it is all of its base."""
    base = base_of(x)
    if isinstance(base, (Constant, Empty)) or x.size != base.size or strided(x).offset:
        return None
    return x


def reads(part: Part, unit: Any) -> list[Node]:
    """The buffers that a unit reads, as often as it does."""
    if isinstance(unit, Group):
        nodes = [x.node for x in part.kernels[unit].operands
                 if not x.is_output and not isinstance(x.node, Iota)]
    else:
        nodes = [base_of(x) for x in unit.inputs]
    return [part.owner(node) for node in nodes]
