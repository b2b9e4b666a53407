"""Parts of plans: a program, or a loop's body, whose units are ordered, placed in memory and then
written as calls of a tape.
"""

from __future__ import annotations

import math
import types
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxjax._base.errors import InternalError
from maxjax._ir.control_flow import UNKNOWN_ITERATIONS
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._max.mojo.arena import Arena
from maxjax._max.mojo.bytecode import MACHINE
from maxjax._max.mojo.context import THREADS, MojoContext
from maxjax._max.mojo.cost import (
    machine_nanoseconds,
    pack_nanoseconds,
    suits_machine,
    threads_for,
)
from maxjax._max.mojo.forms import Form, GroupCode
from maxjax._max.mojo.fusion import Fusion, Group
from maxjax._max.mojo.gather import Kernel, Operand, gather
from maxjax._max.mojo.layout import KernelIntegers, KernelLayout
from maxjax._max.mojo.loops import emit_loop
from maxjax._max.mojo.memory_order import reordered
from maxjax._max.mojo.nodes import (
    COPIED,
    PARTS,
    Access,
    Alias,
    Apply,
    Call,
    Composed,
    Computed,
    Constant,
    Empty,
    Input,
    Iota,
    Loop,
    Node,
    Overlay,
    Piece,
    Result,
    Unit,
    View,
    base_of,
    is_copy,
    is_row_major,
    map_access,
    row_major,
    strided,
)
from maxjax._max.mojo.overlays import computed_there
from maxjax._max.mojo.pack_integers import matmul_integers
from maxjax._max.mojo.reuse import Reuse, first_update
from maxjax._max.mojo.row_writes import row_writes
from maxjax._max.mojo.schedule import check_memory
from maxjax._max.mojo.tape import CALL_PYTHON, Copied, Step, Tape, signature
from maxjax._max.mojo.walks import walks
from maxjax._max.mojo.window_reads import window_reads
from maxjax._max.mojo.window_updates import window_updates
from maxjax._transforms.simplify import simplify_once

if TYPE_CHECKING:
    from maxjax._max.mojo.plan import Plan

# Columns of a reduction accumulated together: their partial results stay in L1.
_BLOCK = 512

Place = tuple[int, int]     # slot, byte offset


class Part:
    """The steps of a program, or of a loop's body: ordered, then given places, then written.

    Attributes:
      carried: outputs that are to take the memory of an input if they can, and that input.
      outputs: what is computed here for others.
      tape: its calls.
      arena, arena_slot: the memory of its temporaries.
      places: the beginning of each buffer written here.
      windows: nodes written straight to their window of a composed array.
      units: executed one after the other: a group, a call or a loop; for an assembled array "fill"
        (its filler), a piece's number, or "done".
      first, last: the units that write a buffer first and read it last.
      kernels: of its groups.
      choices: drafts of the branches of its choices.
      reuse: which values take over the memory of others.
    """

    def __init__(self, plan: Plan, wanted: Sequence[Node], carried: Mapping[Node, Node]):
        self.plan = plan
        self.carried = carried
        self.outputs = dict.fromkeys(map(base_of, wanted))
        self.tape = Tape()
        self.arena = Arena()
        self.inputs: dict[int, Place] = {}
        self.places: dict[Node, Place] = {}
        self.fusion = Fusion(wanted, {
            first_update(output): source for output, source in carried.items()})
        self.windows: dict[Node, tuple[Composed, Access]] = {}
        self._find_windows()
        self.units = self._steps()
        self.first: dict[Node, int] = {}
        self.last: dict[Node, int] = {}
        self.kernels: dict[Group, Kernel] = {}
        self.choices: dict[Loop, list[Draft]] = {}
        self._live()
        self.reuse = Reuse(self)

    def save_memory(self) -> None:
        """Orders the units so that large values live shorter."""
        units = reordered(self)
        if units is not None:
            self.units = units
            self.first, self.last, self.choices = {}, {}, {}
            self._live()
            self.reuse = Reuse(self)

    def finish(self, inputs: dict[int, Place], outputs: dict[Node, Place],
               arena_slot: int) -> None:
        """Gives all values places and writes the calls.

        Args:
          inputs, outputs: where the part's inputs and outputs are. An output that takes the memory
            of an input (``reuse.inputs``) is where that one is.
        """
        self.inputs = inputs
        self.arena_slot = arena_slot
        self._place(outputs)
        self.arena.restart()        # calls have their own temporaries
        steps = []
        for number, (unit, detail) in enumerate(self.units):
            steps.append(len(self.tape.steps))
            self._emit(number, unit, detail)
        steps.append(len(self.tape.steps))
        self.tape.updates = window_updates(self, steps)
        self.tape.rows = row_writes(self, steps)
        self.tape.reads = window_reads(self, steps, [*self.tape.updates, *self.tape.rows],
                                       {update.read for update in self.tape.updates})
        self.plan.finished(self)

    # --- which unit is done when ---
    def _find_windows(self) -> None:
        """Elementwise results that are written straight to their window of a composed array."""
        positions: dict[Any, int] = {}
        for node in self.fusion.order:
            if not isinstance(node, Composed):
                continue
            positions = positions or {unit: n for n, unit in enumerate(self.fusion.units)}
            if not isinstance(node, Overlay) and node.filler is not None and not isinstance(
                    base_of(node.filler), (Constant, Input)):
                continue        # a computed filler may come after the pieces put on it
            for source, piece in zip(node.sources, node.pieces, strict=True):
                dims = _one_to_one(source)
                base = base_of(source)
                if (dims is not None and isinstance(base, Apply) and base not in self.outputs
                        and base in (source, *source.inputs)
                        and all(self._is_only_read_by(x, user) for x, user in (
                            (source, node), (base, node if base is source else source)))):
                    window = _window(node, piece)
                    window = Access(window.offset, tuple(
                        0 if dim < 0 else window.strides[dim] for dim in dims))
                    if not isinstance(node, Overlay) or computed_there(
                            self, node, base, window, positions):
                        self.windows[base] = (node, window)

    def _is_only_read_by(self, node: Node, reader: Node) -> bool:
        """Whether nothing else reads a node in memory, and the reader but once."""
        groups = [self.fusion.home.get(node)]
        others = [user for user in self.fusion.users[node] if user is not reader]
        return len(others) + 1 == len(self.fusion.users[node]) and all(
            isinstance(user, Apply) and list(self.fusion.groups_of[user]) == groups
            for user in others)

    def _steps(self) -> list[tuple[Any, Any]]:
        """The units, a composed array's filler before the pieces that are written to it."""
        steps: list[tuple[Any, Any]] = []
        filled: set[Node] = set()
        for unit in self.fusion.units:
            if isinstance(unit, Group):
                for node in unit.homes:
                    target = self.windows.get(node)
                    if target is not None and target[0].filler is not None \
                            and target[0] not in filled:
                        filled.add(target[0])
                        steps.append((target[0], "fill"))
                steps.append((unit, None))
            elif isinstance(unit, Composed):
                if unit.filler is not None and unit not in filled:
                    steps.append((unit, "fill"))
                steps += [(unit, number) for number, source in enumerate(unit.sources)
                          if self.windows.get(base_of(source), (None,))[0] is not unit]
                steps.append((unit, "done"))
            else:
                steps.append((unit, None))
        return steps

    def owner(self, node: Node) -> Node:
        """The node whose buffer holds a memory node's elements."""
        while True:
            if isinstance(node, Alias):
                node = base_of(node.inputs[0])
            elif node in self.windows:
                node = self.windows[node][0]
            else:
                return node

    def reads(self, unit: Any, detail: Any) -> list[Node]:
        """The memory that a unit reads."""
        if isinstance(unit, Group):
            return [x.node for x in self.kernels[unit].operands
                    if not x.is_output and not isinstance(x.node, Iota)]
        if isinstance(unit, Composed):
            if detail == "fill":
                return [base_of(unit.inputs[-1])]
            return [base_of(unit.inputs[detail])] if detail != "done" else []
        return [base_of(x) for x in unit.inputs]

    def makes(self, unit: Any, detail: Any) -> list[Node]:
        """The buffers that a unit writes, whole or in part."""
        if isinstance(unit, Group):
            return list(unit.homes)
        if isinstance(unit, Composed):
            return [unit]
        return self.fusion.users[unit]

    def _live(self) -> None:
        """Determines each buffer's first and last step."""
        for unit, _ in self.units:
            if isinstance(unit, Group) and unit not in self.kernels:
                self.kernels[unit] = gather(unit, self.fusion, self._placement)
        for number, (unit, detail) in enumerate(self.units):
            made = [self.owner(node) for node in self.makes(unit, detail)]
            read = [self.owner(node) for node in self.reads(unit, detail)]
            if isinstance(unit, Group):
                check_memory(unit, made, read)
            for owner in made:
                self.first.setdefault(owner, number)
                self.last[owner] = max(number, self.last.get(owner, 0))
            for owner in read:
                if owner not in self.first and not isinstance(owner, (Input, Constant, Empty)):
                    raise InternalError(f"{owner} is read before it is made")
                self.last[owner] = max(number, self.last.get(owner, 0))

    def _place(self, outputs: dict[Node, Place]) -> None:
        """Gives each buffer a place: that of the value whose memory it takes, or its own."""
        for output, place in outputs.items():
            for node in self.reuse.chain(output):
                if not isinstance(node, Input):
                    self.places[node] = place
        # By the value that is first in a block of the arena, all that are.
        tenants: dict[Node, list[Node]] = {}
        for number, (unit, detail) in enumerate(self.units):
            for node in self.makes(unit, detail):
                owner = self.owner(node)
                if owner in self.places or self.first[owner] != number:
                    continue
                *_, root = self.reuse.chain(owner)
                if root in self.places:
                    self.places[owner] = self.places[root]
                elif owner not in (held := tenants.setdefault(root, [])):
                    held.append(owner)
        offsets = self.arena.allocate_all([
            (root.nbytes, self.first[root], max(map(self.last.__getitem__, held)))
            for root, held in tenants.items()])
        for held, offset in zip(tenants.values(), offsets, strict=True):
            self.places.update(dict.fromkeys(held, (self.arena_slot, offset)))

    def held(self) -> dict[Node, int]:
        """The bytes of values that are in memory of the arena."""
        elsewhere = {node for output in self.outputs for node in self.reuse.chain(output)}
        return {owner: owner.nbytes for owner in self.first if owner not in elsewhere}

    def _placement(self, node: Node) -> tuple[Node, Access]:
        return self.windows.get(node) or (node, Access(0, row_major(node.shape)))

    def place(self, node: Node) -> Place:
        """Where a memory node's elements begin."""
        known = self.places.get(node)
        if known is not None:
            return known
        if isinstance(node, Input):
            return self.inputs[node.number]
        if isinstance(node, Constant):
            return self.plan.constant(node.value)
        if isinstance(node, Empty):
            return self.plan.constant(np.zeros(1, node.dtype))
        if isinstance(node, Alias):
            source = node.inputs[0]
            slot, offset = self.place(base_of(source))
            return slot, offset + strided(source).offset * source.dtype.itemsize
        return self.places[self.owner(node)]

    def operand_place(self, x: Node) -> Place:
        base = base_of(x)
        slot, offset = self.place(base)
        return slot, offset + strided(x).offset * base.dtype.itemsize

    # --- the calls ---
    def call(self, function: str, integers: Sequence[Any], note: object = "") -> None:
        self.plan.functions.setdefault(function)
        self.tape.steps.append(Step(function, None, list(integers), note))

    def kernel_call(self, form: Form, integers: list[Any], note: object, cost: float) -> None:
        """A call of a generated kernel.

        Args:
          integers: the last is the code that stands in for it.
          cost: nanoseconds that a call takes until it is compiled.
        """
        plan = self.plan
        plan.kernels[form] = None
        plan.costs[form] = plan.costs.get(form, 0.0) + plan.times * cost
        plan.codes.append(integers[-1])
        self.tape.steps.append(Step("", form, integers, note))

    def machine_call(self, machine: str, integers: list[Any], note: object, cost: float) -> None:
        """A call of a machine whose code, the last of the integers, no kernel will replace."""
        self.plan.functions.update(integers[-1].code.functions)
        self.plan.other_cost += self.plan.times * cost
        self.call(machine, integers, note)

    def _emit(self, number: int, unit: Any, detail: Any) -> None:
        if isinstance(unit, Unit) and not isinstance(unit, (Loop, Overlay)) and detail != "done":
            read = unit.inputs if not isinstance(unit, Composed) else (
                unit.inputs[-1] if detail == "fill" else unit.sources[detail],)
            self.plan.other_cost += self.plan.times * pack_nanoseconds(
                unit, read, self.results_of(unit))
        if isinstance(unit, Group):
            self._emit_group(unit)
        elif isinstance(unit, Composed):
            self._emit_composed(unit, detail)
        elif isinstance(unit, Loop):
            times = self.plan.times
            if unit.flow.is_loop:
                length = unit.flow.length
                self.plan.times *= UNKNOWN_ITERATIONS if length is None else length
            emit_loop(self, unit, number)
            self.plan.times = times
        elif unit.strided:
            self._emit_strided(unit)
        else:
            results = sorted(self.results_of(unit), key=lambda node: node.number)
            integers: list[Any] = []
            for x in unit.inputs:
                integers += self.operand_place(x)
            made: dict[int, Node] = {node.number: node for node in results}
            for position, size in enumerate(unit.result_bytes):
                integers += self.place(made[position]) if position in made else (
                    self.arena_slot, self.arena.allocate(max(size, 1), number, number))
            integers += [self.plan.cores if x == THREADS else x for x in unit.integers]
            note = signature(unit.inputs, results)
            if unit.host is None:
                self.call(unit.function, integers, note)
            else:
                self.plan.host_steps.append(unit.host)
                self.plan.functions.setdefault(unit.host.native_name or CALL_PYTHON)
                self.tape.steps.append(Step(unit.function, None, [*integers, unit.host],
                                            f"{note}: {unit.host}"))

    def _emit_strided(self, unit: Call) -> None:
        result = self.fusion.users[unit][0]
        if is_copy(unit):
            source, = unit.inputs
            self._copy(self.operand_place(source), strided(source).strides,
                       self.place(result), row_major(source.shape), source.shape, source.dtype)
            return
        a, b = unit.inputs
        self.call(unit.function, [
            *self.operand_place(a), *self.operand_place(b), *self.place(result),
            *matmul_integers(a.shape, strided(a).strides, b.shape, strided(b).strides,
                             self.plan.cores)], signature(unit.inputs, [result]))

    def _copy(self, source: Place, strides: Sequence[int], target: Place,
              target_strides: Sequence[int], shape: Sequence[int], dtype: np.dtype) -> None:
        self.call(f"copy_{8 * dtype.itemsize}", [
            *source, *target, len(shape), *shape, *strides, *target_strides, self.plan.cores],
            Copied(dtype, shape, strides, target_strides))

    def _emit_composed(self, node: Composed, detail: Any) -> None:
        slot, offset = self.place(node)
        if detail == "fill" and isinstance(node, Overlay):
            source = self.operand_place(node.ground)
            if source != (slot, offset):
                self._copy(source, row_major(node.shape), (slot, offset), row_major(node.shape),
                           node.shape, node.dtype)
        elif detail == "fill":
            self.call(f"fill_{8 * node.dtype.itemsize}", [
                *self.operand_place(node.inputs[-1]), slot, offset,
                len(node.shape), *node.shape, *row_major(node.shape), self.plan.cores],
                signature([], [node]))
        elif detail != "done":
            source, piece = node.sources[detail], node.pieces[detail]
            window = _window(node, piece)
            self._copy(self.operand_place(source), strided(source).strides,
                       (slot, offset + window.offset * node.dtype.itemsize), window.strides,
                       source.shape, source.dtype)

    def _emit_group(self, group: Group) -> None:
        kernel = self.kernels[group]
        operands = kernel.operands
        points, rows, inner = walks(group, kernel)
        point_count = math.prod(dim[0] for dim in points)
        row_count = math.prod(dim[0] for dim in rows)
        n = inner[0]
        elements = point_count * row_count * n
        threads = threads_for(group, elements, self.plan.cores)
        pieces = _pieces(kernel.kind, point_count, n, threads)
        items = point_count * pieces
        threads = max(1, min(threads, items))
        integers: list[Any] = KernelLayout(len(operands)).write(KernelIntegers(
            [self._first_element(x) for x in operands], threads, items, n, pieces, row_count,
            inner[1:], points, rows))
        code = GroupCode(kernel.form, elements, n, bool(rows))
        integers.append(code)
        note = signature([x.node for x in operands if not x.is_output],
                          [x.node for x in operands if x.is_output], threads)
        cost = machine_nanoseconds(group, elements, threads)
        if suits_machine(kernel.kind, point_count, row_count, n) and code.code is not None:
            self.machine_call(MACHINE, integers, note, cost)
            self.plan.codes.append(code)
        else:
            self.kernel_call(kernel.form, integers, note, cost)

    def _first_element(self, operand: Operand) -> tuple[int, int]:
        """Its location; for an iota 0 and its value."""
        if isinstance(operand.node, Iota):
            return 0, operand.access.offset
        slot, offset = self.place(operand.node)
        return slot, offset + operand.access.offset * operand.node.dtype.itemsize

    # --- what loops are written with ---
    def results_of(self, unit: Node) -> list[Result]:
        """The results of a call or a loop that are read."""
        return [user for user in self.fusion.users[unit] if isinstance(user, Result)]

    def empty_tape(self) -> Tape:
        return Tape()

    def draft(self, closed: ClosedJaxpr, unread: Collection[int] = (),
              carried: Mapping[int, int] = types.MappingProxyType({})) -> Draft:
        """A body of this part's: what computes its results, without places so far.

        Args:
          unread: positions of results that nobody needs.
          carried: for positions of results, the inputs whose memory they are to take if they can.
        """
        context, nodes, results = self.plan.body(simplify_once(closed))
        written: dict[Node, int] = {}
        wanted: list[Node] = []
        sources: dict[Node, Node] = {}
        kept: set[int] = set()
        for position, node in enumerate(results):
            source = nodes[carried[position]] if position in carried else None
            if 0 in node.shape or position in unread:
                continue
            if node is source:
                kept.add(position)      # it is there already
                continue
            final = writable(node, context, written)
            written[base_of(final)] = position
            wanted.append(final)
            if source is not None:
                sources[base_of(final)] = source
        part = self.plan.part(wanted, sources)
        kept.update(written[output] for output in part.reuse.inputs)
        return Draft(part, dict(carried), written, kept)


class LoweredBody(NamedTuple):
    """A lowered jaxpr of a loop or a choice: its context, its inputs and its results."""

    context: MojoContext
    inputs: list[Node]
    results: list[Node]


class Draft(NamedTuple):
    """A body of a loop or a choice before it has places.

    Attributes:
      part: what computes its results.
      carried: for positions of results, the inputs whose memory they were to take.
      written: the nodes that are written for results, and the results' positions.
      in_place: the positions of results that are in the memory of their inputs.
    """

    part: Part
    carried: dict[int, int]
    written: dict[Node, int]
    in_place: set[int]

    def finish(self, inputs: Sequence[Place], outputs: Mapping[int, Place],
               arena_slot: int) -> Part:
        """Writes the body; ``outputs`` are where results are to be, by positions."""
        self.part.finish(dict(enumerate(inputs)), {
            node: outputs[position] for node, position in self.written.items()}, arena_slot)
        return self.part


def writable(node: Node, context: MojoContext, written: dict[Node, int]) -> Node:
    """A node whose elements a kernel can write to their destination, in row-major order.

    It has the bits of the given one, maybe as elements of another dtype.
    """
    while isinstance(node, Alias):
        node = node.inputs[0]
    if node.dtype.itemsize not in COPIED:
        node = context.bitcast(node, PARTS[node.dtype.itemsize])
    base = base_of(node)
    access = strided(node)
    whole = node is base or (node.size == base.size and access.offset == 0
                             and is_row_major(access.strides, node.shape))
    if whole and isinstance(base, (Computed, Result, Composed)) and base not in written:
        return node
    copied = context.copy(node)
    if copied in written:
        copied = Apply(node.shape, node.dtype, (copied,), "copy")
    return copied


def _window(node: Node, piece: Piece) -> Access:
    return map_access(Access(0, row_major(node.shape)),
                      tuple((start, step, dim) for dim, (start, step)
                            in enumerate(zip(piece.starts, piece.steps, strict=True))),
                      len(node.shape))


def _one_to_one(node: Node) -> list[int] | None:
    """The position of each dimension of a node's base among the node's own; -1 for size 1.

    None unless the node has all of its base's elements in order.
    """
    if not isinstance(node, View):
        return list(range(len(node.shape))) if isinstance(node, Apply) else None
    base = node.inputs[0]
    dims = []
    for size, (start, step, dim) in zip(base.shape, node.index_map, strict=True):
        if size == 1:
            dims.append(-1)
        elif start == 0 and step == 1 and node.shape[dim] == size:
            dims.append(dim)
        else:
            return None
    return dims if node.size == base.size else None


def _pieces(kind: str, points: int, n: int, threads: int) -> int:
    """The number of pieces into which a kernel cuts each point's sweep of ``n`` elements."""
    if kind == "map" and 1 < threads and points < 4 * threads:
        wanted = -(-4 * threads // points) if points > 1 else threads
        return min(wanted, max(1, n // 1024))
    if kind == "columns":
        blocks = -(-n // _BLOCK)
        if threads > points * blocks:
            blocks = max(blocks, min(-(-threads // points), n // 64))
        return max(1, blocks)
    return 1
