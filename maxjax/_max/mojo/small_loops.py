"""Loops over few elements, as code for the scalar machine.

A loop, with all that is in it, whose values have some tens of elements each, costs more in calls of
kernels and in memory traffic between them than in operations. So it becomes one list of
instructions on registers (``scalar_code.py``): nothing of it is fused, and nothing is called but
functions of the pack.

A carried value has one register. What the body computes for the next iteration is written there at
once if the value before it is not needed any more, and otherwise copied at the end of the body.
Large arrays may be there too, if only rows of them are read and written (``loop_memory.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import UNKNOWN_ITERATIONS, Role, Structure
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._max.host_step import HostStep
from maxjax._max.mojo.bodies import lower_body
from maxjax._max.mojo.context import THREADS, MojoContext
from maxjax._max.mojo.loop_copies import without_copies
from maxjax._max.mojo.loop_memory import (
    MOST_ELEMENTS,
    Memory,
    Unsuited,
    Value,
    in_order,
    is_suited,
    registers,
    unchanged,
)
from maxjax._max.mojo.loop_ranges import Range, known_range, step_of
from maxjax._max.mojo.loop_registers import MOST_SINGLES, Registers
from maxjax._max.mojo.loop_windows import MOST_LINES, assemble, read_window, write_window
from maxjax._max.mojo.nodes import (
    Access,
    Alias,
    Apply,
    Assemble,
    Call,
    Constant,
    Input,
    Iota,
    Loop,
    Node,
    Reduce,
    Result,
    View,
    is_copy,
    map_access,
    row_major,
)
from maxjax._max.mojo.pack_integers import matmul_integers, merged
from maxjax._max.mojo.scalar_code import (
    COMBINED,
    Choice,
    Instruction,
    Place,
    Register,
    Repeat,
)
from maxjax._max.mojo.structure import BOOL
from maxjax._max.mojo.tape import CALL_PYTHON
from maxjax._max.mojo.vector_functions import accumulated, operation, reduction
from maxjax._max.mojo.vector_operations import singles
from maxjax._transforms.simplify import simplify_once

if TYPE_CHECKING:
    from maxjax._max.mojo.plan import Plan

_MOST_LOOKED_UP = 8             # of a table, at a time
_MOST_IN_WINDOW = 32            # of a large array, likewise; more are a loop function's


class SmallLoop:
    """A loop as code, and the operands of its call.

    Attributes:
      code: it.
      places: of the operands after the first, which is the block of registers. None: memory for
        the time of the call.
      copies: bytes that have to be at an operand's place before the call: where they are, the
        number of the operand, and how many they are.
    """

    def __init__(self, plan: Plan, slot: int, flow: Structure, operands: Sequence[Place],
                 results: Mapping[int, Place]):
        self._builder = Builder(plan, slot)
        self._builder.outermost(flow, operands, results)
        self.places = self._builder.places
        self.copies = self._builder.copies
        self.code = self._builder.finished()


def small_loop(plan: Plan, slot: int, flow: Structure, operands: Sequence[Place],
               results: Mapping[int, Place]) -> SmallLoop | None:
    """A loop as code of the scalar machine; None if it is not over few elements.

    Args:
      slot: a slot for where its registers begin.
      operands, results: where they are; results that are read.
    """
    if not flow.is_loop or not all(is_suited(body.jaxpr.jaxpr) for body in flow.bodies):
        return None
    try:
        return SmallLoop(plan, slot, flow, operands, results)
    except Unsuited:
        return None


class Builder(Registers):
    """The code of a loop while it is made: of its body, and of the loops and branches in that."""

    # --- the outermost loop ---
    def outermost(self, flow: Structure, operands: Sequence[Place],
                  results: Mapping[int, Place]) -> None:
        inputs: dict[int, Value] = {}
        moves: dict[int, tuple[Register, int]] = {}
        avals = {number: aval for body in flow.bodies
                 for number, aval in zip(body.takes, body.jaxpr.in_avals, strict=True)}
        length = flow.length or 0
        for number, aval in avals.items():
            elements, dtype = math.prod(aval.shape), dtypes.physical(aval.dtype)
            role = flow.roles[number]
            if role is Role.CONSTANT:
                inputs[number] = self.constant(operands[number], elements, dtype)
            elif role is Role.CARRY and elements > MOST_ELEMENTS:
                place = results.get(flow.carries.index(number))
                inputs[number] = self.memory(place, elements, dtype, False)
                self.copies.append((operands[number], len(self.places), elements * dtype.itemsize))
            elif role is Role.CARRY:
                register = inputs[number] = self.new(elements, dtype)
                self.put("load", register, numbers=(self.operand(operands[number]),))
                self.ranges.set(register, known_range(
                    self.plan.constant_at(operands[number]), elements, dtype))
            else:
                stride = elements * dtype.itemsize
                moves[number] = self.pointer(
                    operands[number], stride, length, flow.reverse), stride
        stacks: dict[int, tuple[Register, int]] = {}
        for position, aval in enumerate(flow.producers[0].jaxpr.out_avals):
            if position >= len(flow.carries) and position in results:
                stride = math.prod(aval.shape) * dtypes.physical(aval.dtype).itemsize
                # Backwards, the last iteration writes the first elements.
                stacks[position] = self.pointer(
                    results[position], stride, length, flow.reverse), stride
        self.loop(flow, inputs, moves, stacks)
        for position, place in results.items():
            if position < len(flow.carries):
                carried = inputs[flow.carries[position]]
                if isinstance(carried, Register):
                    self.put("store", None, carried, numbers=(self.operand(place),))

    def pointer(self, place: Place, stride: int, length: int, reverse: bool) -> Register:
        cell = self.number()
        first = (length - 1) * stride if reverse and length else 0
        self.put("point", cell, numbers=(self.operand(place), first))
        return cell

    def loop(self, flow: Structure, inputs: dict[int, Value],
             moves: Mapping[int, tuple[Register, int]],
             stacks: Mapping[int, tuple[Register, int]]) -> None:
        """Adds a loop to the block.

        Args:
          inputs: registers of all operands that are not scanned; those of carries are the loop's
            own, and hold the results in the end.
          moves, stacks: registers that hold where the next slice of an operand, or of a result, is,
            and the bytes from one to the next.
        """
        sign = -1 if flow.reverse else 1
        outer = self.block
        body, = flow.producers
        loop = Repeat([], UNKNOWN_ITERATIONS if flow.length is None else flow.length)
        self.block = loop.body
        inside = dict(inputs)
        for number, aval in zip(body.takes, body.jaxpr.in_avals, strict=True):
            if number in moves:
                cell, stride = moves[number]
                register = inside[number] = self.new(
                    math.prod(aval.shape), dtypes.physical(aval.dtype))
                self.put("next", register, cell, numbers=(sign * stride,))
        wanted = [position for position in range(len(body.jaxpr.out_avals))
                  if position < len(flow.carries) or position in stacks]
        carries = [inputs[number] for number in flow.carries]
        begins = self.ranges.taken([x for x in carries if isinstance(x, Register)])
        limits: dict[Register, Range] = {}
        if flow.predicate is not None:
            self.block, condition = loop.condition, flow.predicate
            loop.predicate, = registers(self.lower(
                condition.jaxpr, [inside[number] for number in condition.takes], [0]))
            self.block = loop.body
            limits = self.ranges.limits(loop.condition, loop.predicate)
        ends: dict[Register, Range | None] = {}

        def counted(results: Sequence[Node]) -> None:
            steps = {carry: step_of(results[position], body.takes.index(number))
                     for position, (number, carry) in enumerate(
                         zip(flow.carries, carries, strict=True)) if isinstance(carry, Register)}
            ends.update(self.ranges.counted(steps, begins, flow.length, limits))

        values = dict(zip(wanted, self.lower(
            body.jaxpr, [inside[number] for number in body.takes], wanted, counted), strict=True))
        for position, (cell, stride) in stacks.items():
            put = Instruction("put", cell, tuple(registers([values[position]])),
                              numbers=(sign * stride,))
            # What is carried is written before it is overwritten.
            self.block.insert(0 if values[position] in carries else len(self.block), put)
        self.carry(carries, [values[position] for position in range(len(carries))])
        for carry, end in ends.items():
            self.ranges.set(carry, end)
        if flow.predicate is None and flow.length:
            loop.counter = self.number()
            outer.append(Instruction("set", loop.counter, numbers=(flow.length,)))
        self.block = outer
        if flow.length != 0:
            outer.append(loop)

    def carry(self, carries: Sequence[Value], values: Sequence[Value]) -> None:
        """Brings the results of the block, a body's, to where the next iteration reads them."""
        changed = [pair for pair in zip(carries, values, strict=True) if pair[0] is not pair[1]]
        pairs = list(zip(registers([carry for carry, _ in changed]),
                         registers([value for _, value in changed]), strict=True))
        overwritten = {carry for carry, _ in pairs}
        copied: dict[Register, Register] = {}
        for _, value in pairs:
            if value.root in overwritten and value not in copied:
                copied[value] = self.new(value.elements, value.dtype)
                self.copy(copied[value], value)
        for carry, value in pairs:
            self.copy(carry, copied.get(value, value))
        without_copies(self.block, [carry for carry in carries if isinstance(carry, Register)])

    # --- bodies ---
    def lower(self, closed: ClosedJaxpr, inputs: Sequence[Value], wanted: Sequence[int],
              begin: Callable[[Sequence[Node]], None] | None = None) -> list[Value]:
        """Adds what computes some results of a jaxpr to the block.

        Args:
          begin: is told all results before anything is added.
        """
        closed = simplify_once(closed)
        context = MojoContext(overlays=False)
        nodes = [context.input(number, var.aval.shape, var.aval.dtype)
                 for number, var in enumerate(closed.jaxpr.invars)]
        results = lower_body(context, closed, nodes)
        if begin is not None:
            begin(results)
        results = [results[position] for position in wanted]
        values: dict[Node, Value] = {}
        units: dict[Node, Mapping[int, Value]] = {}
        read: dict[Node, list[Result]] = {}
        order = in_order(results)
        for node in order:
            if isinstance(node, Result):
                read.setdefault(node.inputs[0], []).append(node)
        for node in order:
            if isinstance(node, (Loop, Call)) and not is_copy(node):
                given = [values[x] for x in node.inputs]
                units[node] = (self.inner(node.flow, given, read[node]) if isinstance(node, Loop)
                               else self.call(node, given, read[node]))
            elif not isinstance(node, Call):
                values[node] = self.value(node, inputs, values, units)
        return [values[node] for node in results]

    def value(self, node: Node, inputs: Sequence[Value], values: Mapping[Node, Value],
              units: Mapping[Node, Mapping[int, Value]]) -> Value:
        elements, dtype = node.size, node.dtype
        if isinstance(node, Input):
            return inputs[node.number]
        if isinstance(node, Constant):
            return self.constant(self.plan.constant(node.value), elements, dtype)
        if isinstance(node, Iota):
            if elements > MOST_ELEMENTS:
                raise Unsuited
            return self.load(self.plan.constant(np.arange(elements).astype(dtype)), elements,
                             dtype)
        if isinstance(node, Result) and not is_copy(node.inputs[0]):
            return units[node.inputs[0]][node.number]
        same = unchanged(node)
        if same is not None and (isinstance(values[same], Memory) or not isinstance(node, View)):
            return values[same]
        if isinstance(node, View):
            x, access = values[node.inputs[0]], map_access(
                Access(0, row_major(node.inputs[0].shape)), node.index_map, len(node.shape))
            if isinstance(x, Memory):
                return self.read_slice(x, access, node.shape)
            result = self.view(x, access, node.shape)
            if result is not x:
                self.ranges.set(result, self.ranges.of(x))
            return result
        given = registers([values[x] for x in node.inputs])
        if isinstance(node, Apply):
            return self.apply(node, given)
        if isinstance(node, Reduce):
            return self.reduce(node, given[0])
        if isinstance(node, Assemble):
            return assemble(self, node, given, values)
        if isinstance(node, Alias):
            register = self.new(elements, dtype)
            self.copy(register, given[0])
            self.ranges.set(register, self.ranges.of(given[0]))
            return register
        raise Unsuited

    def apply(self, node: Apply, given: Sequence[Register]) -> Register:
        if node.source is not None:
            raise Unsuited
        if given[0].dtype.kind not in "ib":
            return self.elementwise(node, given)
        same = self.ranges.unchanged(node.name, given)
        if same is not None and (same.elements, same.dtype) == (node.size, node.dtype):
            return same
        found = self.ranges.result(node.name, given, node.dtype)
        if found is not None and found[0] == found[1]:
            return self.load(self.plan.constant(np.full(node.size, found[0], node.dtype)),
                             node.size, node.dtype)
        result = self.elementwise(node, given)
        self.ranges.set(result, found)
        return result

    def elementwise(self, node: Apply, given: Sequence[Register]) -> Register:
        function = operation(node.name, given[0].dtype, node.dtype)
        if 1 < node.size <= MOST_SINGLES and function in singles():
            invariant = all(x.invariant for x in given)
            result = self.new(node.size, node.dtype, invariant)
            block = self.prologue if invariant else self.block
            block += [Instruction("apply", self.element(result, k), tuple([
                self.sources.get(x) or self.element(x, k) for x in given]), function,
                name=node.name) for k in range(node.size)]
            return result
        return self.computed(given, node.size, node.dtype, "apply", function, node.size,
                             name=node.name)

    def reduce(self, node: Reduce, source: Register) -> Register:
        shape = node.inputs[0].shape
        kept = [dim for dim in range(len(shape)) if dim not in node.axes]
        strides = row_major(shape)
        order = [*kept, *node.axes]
        source = self.view(source, Access(0, tuple([strides[dim] for dim in order])),
                           tuple([shape[dim] for dim in order]))
        wide = accumulated(node.name, node.dtype)
        lines = node.size
        partial = self.computed(
            [source], lines, node.dtype if node.dtype == BOOL else wide, "reduce",
            reduction(node.name, node.dtype, False), source.elements // lines, (lines,))
        if partial.dtype == node.dtype:
            return partial
        return self.computed([partial], lines, node.dtype, "apply",
                             operation("convert", wide, node.dtype), lines, name="convert")

    # --- units ---
    def call(self, node: Call, values: Sequence[Value],
             read: Sequence[Result]) -> Mapping[int, Value]:
        if node.host is not None:
            return self.host_step(node, node.host, registers(values), read)
        x = values[0]
        if node.function.startswith(("read_window_", "write_window_")):
            place, *updates = registers(values[1:])
            if isinstance(x, Memory) and math.prod(
                    node.integers[1:1 + node.integers[0]]) > _MOST_IN_WINDOW:
                raise Unsuited
            return {0: write_window(self, node, x, place, *updates) if updates
                    else read_window(self, node, x, place)}
        if isinstance(x, Memory):
            indices, *updates = registers(values[1:])
            if node.function.startswith("gather_rows_"):
                return {0: self.read_rows(node, x, indices)}
            if node.function.startswith("scatter_rows_"):
                self.write_rows(node, x, indices, *updates)
                return {0: x}
        given = registers(values)
        if node.function.startswith("gather_rows_"):
            outer, _, inner, count = node.integers[:4]
            if outer * count <= (MOST_LINES if inner == 1 else 1):
                return {0: self.read_rows(node, self.table(given[0]), given[1], given[0])}
        made = {result.number: self.new(result.size, result.dtype) for result in read}
        if node.strided:
            a, b = node.inputs
            integers = matmul_integers(a.shape, row_major(a.shape), b.shape, row_major(b.shape), 1)
        else:
            integers = [1 if size == THREADS else size for size in node.integers]
        self.put("call", None, *given, function=node.function, numbers=tuple(integers),
                 results=self.written(node, made))
        if node.function.startswith(("argmax_", "argmin_")):
            for result in made.values():
                self.ranges.set(result, (0, max(0, node.integers[1] - 1)))
        return made

    def host_step(self, node: Call, host: HostStep, given: Sequence[Register],
                  read: Sequence[Result]) -> Mapping[int, Value]:
        """A step of the host, of copies of short operands: a kernel has these in variables, and
        stores them only where the step is."""
        if host.native_name is not None:
            raise Unsuited
        operands = []
        for x in given:
            own = x
            if x.elements <= MOST_SINGLES:
                own = self.new(x.elements, x.dtype)
                self.copy(own, x)
            operands.append(own)
        made = {result.number: self.new(result.size, result.dtype) for result in read}
        self.block.append(Instruction(
            "call", None, tuple(operands), CALL_PYTHON, results=self.written(node, made),
            host=host))
        return made

    def written(self, node: Call, made: Mapping[int, Register]) -> tuple[Register, ...]:
        """The results of a call: all are written, also those that nobody reads."""
        word = np.dtype(np.int64)
        return tuple([made[number] if number in made else self.new(-(-size // word.itemsize), word)
                      for number, size in enumerate(node.result_bytes)])

    def read_rows(self, node: Call, x: Memory, indices: Register,
                  register: Register | None = None) -> Register:
        """Slices of a large array, each element or row by an instruction of its own.

        Args:
          register: the array, if it is one.
        """
        outer, size, inner, count = node.integers[:4]
        target = self.new(outer * count * inner, x.dtype,
                          x.is_constant and x.cell.invariant and indices.invariant)
        # Many elements of a table are read as vectors where the loop is a function.
        if outer * count > (1 if inner > 1 else MOST_LINES if register is not None
                            else _MOST_LOOKED_UP):
            raise Unsuited
        nbytes = inner * x.dtype.itemsize
        # What is read of a register is read after that is written.
        own = () if register is None or register in self.loaded else (register,)
        first = own[0].number * x.dtype.itemsize if own and own[0].whole is not None else 0
        block = self.prologue if target.invariant else self.block
        for line in range(outer):
            for k in range(count):
                place = target if inner > 1 else self.element(target, line * count + k)
                block.append(self.row("read", place, (x.cell, self.element(indices, k), *own),
                                      size, nbytes, first + line * size * nbytes))
        return target

    def read_slice(self, x: Memory, access: Access, shape: tuple[int, ...]) -> Register:
        """Elements of a large array that are always the same ones."""
        dims = merged([(size, target, stride) for size, target, stride
                        in zip(shape, row_major(shape), access.strides, strict=True)])
        if len(dims) > 1 or dims and dims[0][0] > MOST_LINES and dims[0][2] != 1:
            raise Unsuited
        size, _, stride = dims[0] if dims else (1, 1, 1)
        first = self.load(self.plan.constant(np.zeros((), np.int32)), 1, np.dtype(np.int32))
        target = self.new(size, x.dtype, x.is_constant)
        block, itemsize = self.prologue if target.invariant else self.block, x.dtype.itemsize
        if stride == 1:
            block.append(self.row("read", target, (x.cell, first), 1, target.nbytes,
                                  access.offset * itemsize))
        else:
            block += [self.row("read", self.element(target, k), (x.cell, first), 1, itemsize,
                               (access.offset + k * stride) * itemsize) for k in range(size)]
        return target

    def write_rows(self, node: Call, x: Memory, indices: Register, updates: Register) -> None:
        """Writes rows to a large array, or combines them with what is there, in their order."""
        rows, width, count = node.integers[:3]
        kind = node.function.removeprefix("scatter_rows_").removesuffix(f"_{x.dtype}")
        combines = kind in COMBINED
        if not (combines or kind == "set") or x.is_constant or combines and x.dtype == BOOL or (
                count > (MOST_LINES if width == 1 else 1)):
            raise Unsuited
        nbytes = width * x.dtype.itemsize
        for k in range(count):
            index = self.element(indices, k)
            update = updates if width > 1 else self.element(updates, k)
            if combines:
                old = self.new(width, x.dtype)
                self.block.append(self.row("read", old, (x.cell, index), rows, nbytes))
                update = self.computed([old, update], width, x.dtype, "apply",
                                       operation(kind, x.dtype, x.dtype), width, name=kind)
            self.block.append(self.row("write", None, (x.cell, index, update), rows, nbytes))

    def inner(self, flow: Structure, given: Sequence[Value],
              read: Sequence[Result]) -> Mapping[int, Value]:
        """A loop or a choice in the body of another."""
        wanted = {result.number: result for result in read}
        if not flow.is_loop:
            return self.choice(flow, given, wanted)
        inputs: dict[int, Value] = {}
        moves: dict[int, tuple[Register, int]] = {}
        length = flow.length or 0
        for number, x in enumerate(given):
            role = flow.roles[number]
            if role is Role.SCANNED:
                moves[number] = self.slices(registers([x])[0], length, flow.reverse)
            elif role is Role.CARRY and isinstance(x, Register):
                own = inputs[number] = self.new(x.elements, x.dtype)
                self.copy(own, x)
                self.ranges.set(own, self.ranges.of(x))
            else:
                inputs[number] = x
        made = {position: inputs[number] for position, number in enumerate(flow.carries)
                if position in wanted}
        stacks: dict[int, tuple[Register, int]] = {}
        for position, result in wanted.items():
            if position >= len(flow.carries):
                stack = made[position] = self.new(result.size, result.dtype)
                stacks[position] = self.slices(stack, length, flow.reverse)
        self.loop(flow, inputs, moves, stacks)
        return made

    def choice(self, flow: Structure, given: Sequence[Value],
               wanted: Mapping[int, Result]) -> Mapping[int, Value]:
        index, = registers([given[number] for number in flow.index])
        made: dict[int, Value] = {
            position: self.new(result.size, result.dtype)
            for position, result in wanted.items() if result.size <= MOST_ELEMENTS}
        outer, choice = self.block, Choice(index, [])
        for branch in flow.bodies:
            self.block = []
            values = self.lower(branch.jaxpr, [given[number] for number in branch.takes],
                                [*wanted])
            for position, value in zip(wanted, values, strict=True):
                # A large array is the same object in all branches, which write to it in place.
                into = made.setdefault(position, value)
                if isinstance(into, Register):
                    self.copy(into, *registers([value]))
                elif into is not value:
                    raise Unsuited
            without_copies(self.block, [x for x in made.values() if isinstance(x, Register)])
            choice.branches.append(self.block)
        self.block = outer
        self.block.append(choice)
        return made
