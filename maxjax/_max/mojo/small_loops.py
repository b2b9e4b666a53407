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
from maxjax._max.mojo.abi import ALIGNMENT
from maxjax._max.mojo.bodies import lower_body
from maxjax._max.mojo.context import THREADS, MojoContext
from maxjax._max.mojo.loop_copies import without_copies, without_unread
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
from maxjax._max.mojo.loop_ranges import Range, Ranges, known_range, step_of
from maxjax._max.mojo.loop_runs import VECTOR
from maxjax._max.mojo.loop_windows import MOST_LINES, assemble, read_window, write_window
from maxjax._max.mojo.nodes import (
    COPIED,
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
    Item,
    LoopCode,
    Place,
    Register,
    Repeat,
    every_instruction,
)
from maxjax._max.mojo.structure import BOOL
from maxjax._max.mojo.tape import CALL_PYTHON
from maxjax._max.mojo.vector_functions import accumulated, operation, reduction
from maxjax._max.mojo.vector_operations import singles
from maxjax._transforms.simplify import simplify_once

if TYPE_CHECKING:
    from maxjax._max.mojo.plan import Plan

_MOST_BYTES = 48 << 10          # of registers
_MOST_INSTRUCTIONS = 4096
_MOST_SINGLES = 4               # elements that are rather computed one by one
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


class Builder:
    """The code of a loop while it is made.

    Attributes:
      block: where instructions are added; ``prologue``: those before the loop.
      loaded: registers of what is in memory throughout the loop, and where that is.
      ranges: what is known of integers.
    """

    def __init__(self, plan: Plan, slot: int):
        self.plan = plan
        self.slot = slot
        self.places: list[Place | None] = []
        self.copies: list[tuple[Place, int, int]] = []
        self.prologue: list[Item] = []
        self.block = self.prologue      # where instructions are added
        self.nbytes = 0
        self.count = 0
        self.constants: dict[Place, Register] = {}
        self.tables: dict[Place, Memory] = {}
        # What is made of a register once: one element spread to many, and elements.
        self.spreads: dict[tuple[Register, int, int], Register] = {}
        self.elements: dict[tuple[Register, int], Register] = {}
        self.sources: dict[Register, Register] = {}     # of what is spread, the element
        self.ranges = Ranges()
        self.loaded: dict[Register, Place] = {}
        self.known: dict[Register, int] = {}
        self.aims: dict[Register, Register] = {}    # where registers begin

    # --- registers ---
    def new(self, elements: int, dtype: np.dtype, invariant: bool = False) -> Register:
        if elements > MOST_ELEMENTS or dtype.itemsize not in COPIED:
            raise Unsuited
        register = Register(self.count, elements, dtype, self.nbytes, invariant)
        size = register.room
        if size > 8:        # vectors are aligned
            self.nbytes = register.offset = -(-self.nbytes // ALIGNMENT) * ALIGNMENT
        self.count += 1
        self.nbytes += size
        if self.nbytes > _MOST_BYTES:
            raise Unsuited
        return register

    def element(self, register: Register, number: int) -> Register:
        """One element of a register."""
        if register.elements == 1:
            return register
        known = self.elements.get((register, number))
        if known is None:
            known = self.elements[register, number] = Register(
                number, 1, register.dtype, register.offset + number * register.dtype.itemsize,
                register.invariant, register)
        return known

    def number(self) -> Register:
        """A register for a number or an address."""
        return self.new(1, np.dtype(np.int64))

    def operand(self, place: Place | None) -> int:
        self.places.append(place)
        return len(self.places)

    def put(self, opcode: str, target: Register | None, *sources: Register, function: str = "",
            elements: int = 1, numbers: tuple[int, ...] = (),
            results: tuple[Register, ...] = ()) -> None:
        self.block.append(Instruction(opcode, target, sources, function, elements, numbers,
                                      results))

    def constant(self, place: Place, elements: int, dtype: np.dtype) -> Value:
        """What is in memory throughout the loop."""
        if elements <= MOST_ELEMENTS:
            return self.load(place, elements, dtype)
        known = self.tables.get(place)
        if known is None or (known.elements, known.dtype) != (elements, dtype):
            known = self.tables[place] = self.memory(place, elements, dtype, True)
        return known

    def memory(self, place: Place | None, elements: int, dtype: np.dtype, is_constant: bool
               ) -> Memory:
        """A large array that the code reaches there."""
        cell = self.new(1, np.dtype(np.int64), True)
        self.prologue.append(Instruction("point", cell, numbers=(self.operand(place), 0)))
        return Memory(cell, elements, dtype, is_constant)

    def load(self, place: Place, elements: int, dtype: np.dtype) -> Register:
        """A register that the code loads from a place of few elements, once."""
        known = self.constants.get(place)
        if known is not None and (known.elements, known.dtype) == (elements, dtype):
            return known
        register = self.new(elements, dtype, True)
        self.prologue.append(Instruction("load", register, numbers=(self.operand(place),)))
        self.constants[place] = register
        self.loaded[register] = place
        data = self.plan.constant_at(place)
        self.ranges.set(register, known_range(data, elements, dtype))
        if elements == 1 and dtype.kind in "iu" and data is not None \
                and len(data) == dtype.itemsize:
            self.known[register] = int(np.frombuffer(data, dtype)[0])
        return register

    def copy(self, target: Register, source: Register) -> None:
        if target.dtype == source.dtype and source.elements <= _MOST_SINGLES:
            for k in range(source.elements):
                self.put("move", self.element(target, k), self.element(source, k),
                         numbers=(0, 1, 0, 1))
        else:
            self.put("move", target, source, elements=source.elements, numbers=(0, 1, 0, 1))

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
        if 1 < node.size <= _MOST_SINGLES and function in singles():
            invariant = all(x.invariant for x in given)
            result = self.new(node.size, node.dtype, invariant)
            block = self.prologue if invariant else self.block
            block += [Instruction("apply", self.element(result, k), tuple([
                self.sources.get(x) or self.element(x, k) for x in given]), function,
                name=node.name) for k in range(node.size)]
            return result
        return self.computed(given, node.size, node.dtype, "apply", function, node.size,
                             name=node.name)

    def computed(self, given: Sequence[Register], elements: int, dtype: np.dtype, opcode: str,
                 function: str, count: int, numbers: tuple[int, ...] = (),
                 name: str = "") -> Register:
        """A function of registers: before the loop where they are known there."""
        invariant = all(x.invariant for x in given)
        register = self.new(elements, dtype, invariant)
        (self.prologue if invariant else self.block).append(
            Instruction(opcode, register, tuple(given), function, count, numbers, name=name))
        return register

    def view(self, source: Register, access: Access, shape: tuple[int, ...]) -> Register:
        """Elements of a register in row-major order."""
        dims = merged([(size, target, stride) for size, target, stride
                        in zip(shape, row_major(shape), access.strides, strict=True)])
        elements = math.prod(shape)
        if not any(stride for _, _, stride in dims):
            if elements == 1:
                return self.element(source, access.offset)
            known = self.spreads.get((source, elements, access.offset))
            if known is not None:
                return known
            register = self.computed([source], elements, source.dtype, "spread", "", elements,
                                     (access.offset,))
            self.sources[register] = self.element(source, access.offset)
            if register.invariant:
                self.spreads[source, elements, access.offset] = register
            return register
        if access.offset == 0 and dims == [(source.elements, 1, 1)]:
            return source
        register = self.new(elements, source.dtype, source.invariant)
        self.move(register, 0, source, access.offset, dims)
        return register

    def move(self, target: Register, to: int, source: Register, begin: int,
             dims: Sequence[tuple[int, int, int]]) -> None:
        """Copies elements.

        Args:
          dims: sizes, and strides of target and source.
        """
        line = self.line(dims)
        count, step, source_step = dims[line] if dims else (1, 1, 1)
        rest = [dim for number, dim in enumerate(dims) if number != line]
        if math.prod(size for size, _, _ in rest) > MOST_LINES:
            raise Unsuited
        offsets = [(to, begin)]
        for size, target_stride, source_stride in rest:
            offsets = [(a + i * target_stride, b + i * source_stride)
                       for a, b in offsets for i in range(size)]
        block = self.prologue if target.invariant else self.block
        if count * len(offsets) <= _MOST_SINGLES:
            block += [Instruction("move", self.element(target, a + i * step),
                                  (self.element(source, b + i * source_step),),
                                  numbers=(0, 1, 0, 1))
                      for a, b in offsets for i in range(count)]
            return
        block += [Instruction("move", target, (source,), elements=count,
                              numbers=(a, step, b, source_step)) for a, b in offsets]

    @staticmethod
    def line(dims: Sequence[tuple[int, int, int]]) -> int:
        """The dimension whose elements one instruction moves: the longest, or, as a kernel has
        vectors of them, one that stays one in the target and comes from a vector or an element."""
        elements = math.prod(size for size, _, _ in dims)
        for number, (size, step, source_step) in enumerate(dims):
            if size >= VECTOR and step == 1 and source_step in (0, 1) \
                    and elements <= MOST_LINES * size:
                return number
        return max(range(len(dims)), key=lambda dim: dims[dim][0], default=-1)

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
            if x.elements <= _MOST_SINGLES:
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

    def table(self, x: Register) -> Memory:
        """A register as an array that rows are read of: of what is in memory, where it is."""
        place = self.loaded.get(x)
        if place is not None:
            known = self.tables.get(place)
            if known is None or (known.elements, known.dtype) != (x.elements, x.dtype):
                known = self.tables[place] = self.memory(place, x.elements, x.dtype, True)
            return known
        cell = self.aims.get(x.root)
        if cell is None:
            cell = self.aims[x.root] = self.new(1, np.dtype(np.int64), True)
            self.prologue.append(Instruction("aim", cell, (x.root,), numbers=(0,)))
        return Memory(cell, x.elements, x.dtype, x.invariant)

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

    def row(self, opcode: str, target: Register | None, sources: tuple[Register, ...], rows: int,
            stride: int, offset: int = 0, is_bounded: bool = False) -> Instruction:
        if max(offset, stride) >= 1 << 31:      # beyond an instruction's numbers
            raise Unsuited
        return Instruction(opcode, target, sources, numbers=(
            stride, offset, rows, *([1] if is_bounded else [])))

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

    def slices(self, register: Register, length: int, reverse: bool) -> tuple[Register, int]:
        """A register that holds where a stack's next slice is, and the bytes to the next one."""
        cell, stride = self.number(), register.nbytes // length
        self.put("aim", cell, register, numbers=((length - 1) * stride if reverse else 0,))
        return cell, stride

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

    def finished(self) -> LoopCode:
        without_unread(self.prologue)
        if sum(1 for _ in every_instruction(self.prologue)) > _MOST_INSTRUCTIONS:
            raise Unsuited
        # The block is aligned where it is.
        return LoopCode(self.prologue, 1 + len(self.places), self.slot,
                        self.nbytes + ALIGNMENT, self.known)
