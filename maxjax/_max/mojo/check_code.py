"""Checks that the vector machine's code is well formed: part of `check_plan.check_part`."""

from __future__ import annotations

from maxjax._base.errors import InternalError
from maxjax._max.mojo.bytecode import (
    FULL,
    KINDS,
    LEAST_BLOCK,
    LINE,
    ONCE,
    OPCODES,
    READING,
    Code,
    Instruction,
)
from maxjax._max.mojo.gather import Kernel

_WITH_FUNCTION = ("apply", "ramp", "reduce", "reduce_columns")


def check_code(code: Code, kernel: Kernel) -> None:
    """Registers are written before they are read, and operands are those of the kernel.

    Raises:
      InternalError: an instruction violates that; the message names it.
    """
    def require(holds: bool, x: Instruction | Code, message: str) -> None:
        if not holds:
            raise InternalError(f"{x}: {message}")

    require(code.kind == kernel.kind and code.kind in KINDS, code, "another kind than its kernel")
    require(code.operands == len(kernel.operands), code, "another number of operands")
    require(code.block > 0 and code.block % LEAST_BLOCK == 0, code,
            f"a block of {code.block} elements may end within a vector")
    outputs = {number for number, x in enumerate(kernel.operands) if x.is_output}
    stored: set[int] = set()
    written: set[int] = set()
    for part in code.parts:
        for number, x in enumerate(part):
            require(x.opcode in OPCODES, x, "no such instruction")
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
