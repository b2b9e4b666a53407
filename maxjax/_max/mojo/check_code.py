"""Checks that machines' code is well formed: part of `check_plan.check_part`."""

from __future__ import annotations

import math

from maxjax._base.errors import InternalError
from maxjax._max.mojo.abi import (
    ALIGNMENT,
    FULL,
    LINE,
    ONCE,
    SCALAR_OPCODES,
    VECTOR_KINDS,
    VECTOR_OPCODES,
)
from maxjax._max.mojo.bytecode import LEAST_BLOCK, READING, SINGLE_BLOCK, Code, Instruction
from maxjax._max.mojo.gather import Kernel
from maxjax._max.mojo.scalar_code import (
    Choice,
    Item,
    LoopCode,
    Register,
    Repeat,
    every_instruction,
)
from maxjax._max.mojo.scalar_code import (
    Instruction as ScalarInstruction,
)

_WITH_FUNCTION = ("apply", "ramp", "reduce", "reduce_columns")


def check_code(code: Code, kernel: Kernel) -> None:
    """Registers are written before they are read, and operands are those of the kernel.

    Raises:
      InternalError: an instruction violates that; the message names it.
    """
    def require(holds: bool, x: Instruction | Code, message: str) -> None:
        if not holds:
            raise InternalError(f"{x}: {message}")

    require(code.kind == kernel.kind and code.kind in VECTOR_KINDS, code,
            "another kind than its kernel")
    require(code.operands == len(kernel.operands), code, "another number of operands")
    require(code.block > 0 and code.block % LEAST_BLOCK == 0 if code.phases
            else code.block == SINGLE_BLOCK, code,
            f"a block of {code.block} elements may end within a vector")
    outputs = {number for number, x in enumerate(kernel.operands) if x.is_output}
    stored: set[int] = set()
    written: set[int] = set()
    for part in code.parts:
        for number, x in enumerate(part):
            require(x.opcode in VECTOR_OPCODES, x, "no such instruction")
            require(x.level in (ONCE, LINE, FULL), x, "no such level")
            require((x.opcode in _WITH_FUNCTION) == bool(x.function), x, "its function")
            if x.opcode in READING:
                require(all(0 <= k < code.operands for k in x.sources), x, "no such operand")
                require((x.opcode == "aim") == (x.sources[0] in outputs), x,
                        "an output is read, or an input written")
            else:
                require(written.issuperset(x.sources), x, "a register is read before it is written")
            if x.opcode == "store":
                require(x.target in outputs, x, "an input is written")
                stored.add(x.target)
            else:
                require(0 <= x.target < code.registers, x, "no such register")
                written.add(x.target)
            if x.opcode == "aim":
                after = part[number + 1] if number + 1 < len(part) else None
                require(after is not None and after.opcode == "apply"
                        and after.target == x.target, x, "no computation follows")
    require(stored == outputs, code,
            f"its outputs are {sorted(outputs)}, and {sorted(stored)} are stored")


def check_loop(code: LoopCode) -> None:
    """Registers have bytes of their own, are written before they are read, and are large enough
    for what is done with them; operands are those of the call.

    Raises:
      InternalError: an instruction violates that; the message names it.
    """
    registers = {x for instruction in every_instruction(code.items)
                 for x in (*instruction.written, *instruction.sources)}
    end = 0
    for register in registers:
        whole = register.root
        _require(register is whole or register.elements == 1 and register.dtype == whole.dtype
                 and 0 <= register.number < whole.elements and register.offset
                 == whole.offset + register.number * whole.dtype.itemsize, register, "no element")
    wholes = {register.root for register in registers}
    for register in sorted(wholes, key=lambda register: register.offset):
        _require(end <= register.offset, register, "it overlaps another")
        end = register.offset + register.room
        _require(end + ALIGNMENT <= code.nbytes, register, "it is outside the block")
        _require(register.offset % (8 if register.room == 8 else ALIGNMENT) == 0,
                 register, "it is not aligned")
    _LoopChecks(code.operands).items(code.items, set(), 0)


def _require(holds: bool, x: object, message: str) -> None:
    if not holds:
        raise InternalError(f"{x}: {message}")


def _is_written(register: Register, written: set[Register]) -> bool:
    if register in written or register.root in written:
        return True
    elements = {x.number for x in written if x.whole is register}
    return len(elements) == register.elements > 1


class _LoopChecks:
    def __init__(self, operands: int):
        self.operands = operands

    def items(self, items: list[Item], written: set[Register], depth: int) -> None:
        """Adds the registers that are written to those that are."""
        for item in items:
            if isinstance(item, Repeat):
                if item.predicate is not None:
                    self.items(item.condition, written, depth + 1)
                    _require(_is_written(item.predicate, written) and item.predicate.nbytes == 1,
                             item.predicate, "no predicate")
                    # The body may run no time.
                    self.items(item.body, set(written), depth + 1)
                else:
                    _require(item.counter in written, item.counter, "no counter")
                    self.items(item.body, written, depth + 1)
            elif isinstance(item, Choice):
                _require(_is_written(item.index, written) and item.index.nbytes == 4, item.index,
                         "no index")
                branches = [set(written) for _ in item.branches]
                for branch, own in zip(item.branches, branches, strict=True):
                    self.items(branch, own, depth)
                written |= set.intersection(*branches)
            else:
                self.instruction(item, written, depth)

    def instruction(self, x: ScalarInstruction, written: set[Register], depth: int) -> None:
        _require(x.opcode in SCALAR_OPCODES, x, "no such instruction")
        _require((x.opcode in ("apply", "reduce", "call")) == bool(x.function), x, "its function")
        # A stack is written through a register that holds where it is, a slice at a time, and a
        # value from several by one move after the other.
        _require(x.opcode == "aim" or all(_is_written(source, written) for source in x.sources), x,
                 "a register is read before it is written")
        _require(not depth or not any(register.invariant for register in x.written), x,
                 "an invariant is written in a loop")
        elements = x.sources[0].elements if x.sources else 0
        target = x.target.elements if x.target is not None else 0
        match x.opcode:
            case "apply":
                fits = target == x.elements and all(
                    source.elements == x.elements for source in x.sources)
            case "reduce":
                fits = target == x.numbers[0] and elements == x.elements * target
            case "spread":
                fits = target == x.elements and 0 <= x.numbers[0] < elements
            case "move":
                to, step, source, source_step = x.numbers
                assert x.target is not None
                size = x.sources[0].dtype.itemsize
                ends = [to, to + (x.elements - 1) * step]
                reads = [source, source + (x.elements - 1) * source_step]
                fits = min(*ends, *reads) >= 0 and max(reads) < elements \
                    and (max(ends) + 1) * size <= x.target.nbytes
            case "load" | "store" | "point":
                fits = 0 < x.numbers[0] < self.operands
            case "next":
                assert x.target is not None
                fits = abs(x.numbers[0]) == x.target.nbytes and x.sources[0].nbytes == 8
            case "put":
                assert x.target is not None
                fits = abs(x.numbers[0]) == x.sources[0].nbytes and x.target.nbytes == 8
            case "aim":
                fits = 0 <= x.numbers[0] < x.sources[0].nbytes
            case "read" | "write" | "assign":
                fits = _line_fits(x)
            case "call" if x.host is not None:
                kinds = [*x.host.inputs, *x.host.outputs]
                sizes = [register.nbytes for register in (*x.sources, *x.results)]
                fits = len(kinds) == len(sizes) and all(
                    math.prod(shape) * dtype.itemsize <= size
                    for (shape, dtype), size in zip(kinds, sizes, strict=True))
            case _:
                fits = x.opcode in ("set", "call")
        _require(fits, x, "its sizes are not those of its registers")
        written.update(x.written)
        if x.opcode == "aim":
            written.add(x.sources[0])


def _line_fits(x: ScalarInstruction) -> bool:
    """Whether the lines at a computed place, which an instruction reads or writes, lie within."""
    index = x.sources[1]
    if index.nbytes not in (4, 8) or index.elements != 1:
        return False
    if x.opcode == "assign":
        array, _, value = x.sources
        assert x.target is not None
        stride, places, *lines = x.numbers
        return x.target.elements == array.elements and value.elements == x.elements * len(lines) \
            and max(lines) + (places - 1) * stride + x.elements <= array.elements
    stride, first, rows = x.numbers[:3]
    fits = x.sources[0].nbytes == 8 and min(stride, rows) > 0 and first >= 0
    if x.target is not None and len(x.sources) > 2:
        fits &= first + (rows - 1) * stride + x.target.nbytes <= x.sources[2].root.nbytes
    return fits
