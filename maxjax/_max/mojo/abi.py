"""What Python and Mojo agree on, as one table: opcodes, layouts and limits.

Python code uses the names of this module, and of those that it gathers; Mojo code those of
constants that are written from it:

- ``kernels/abi.mojo`` has what kernels need. It is a file like the others, for MAX's graphs, the
  small standard library and digests to find; ``python -m tools.write_abi`` writes it, and a test
  compares.
- What only one file of the pack needs is written behind its text when the pack's texts are made
  (`constants`). So it counts in the digest of that library alone.

The pack's exports are a table as well (``pack_exports.py``).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from maxjax._distributed import native
from maxjax._max.mojo.layout import MOST_DIMENSIONS, KernelLayout
from maxjax._primitives import fourier

# --- tapes ----------------------------------------------------------------------------------------


class TapeCall(NamedTuple):
    """What stands before a call's integers in a tape: the function's address, their number."""

    function: int
    integers: int


class ScanCall(NamedTuple):
    """The first integers of a call of ``tape_scan``. Behind them: moves, the number of exchanges,
    exchanges (two slots each), the body.

    Attributes:
      times: how often the body runs.
      reverse: whether from the last slice to the first.
      counter: the slot of the iteration's number, or -1.
      moves: how many there are.
    """

    times: int
    reverse: int
    counter: int
    moves: int


class Move(NamedTuple):
    """A slot that moves in a scan: it is at a byte offset from where another slot is, and so many
    bytes further in each iteration."""

    slot: int
    base: int
    offset: int
    stride: int


class WhileCall(NamedTuple):
    """The first integers of a call of ``tape_while``; behind them exchanges.

    Attributes:
      condition, body: tapes, which are two integers each: an address and a length.
      slot, offset: where the condition leaves its byte.
      exchanges: how many there are.
    """

    condition: Any
    body: Any
    slot: int
    offset: int
    exchanges: int


class SwitchCall(NamedTuple):
    """The first integers of a call of ``tape_switch``: where the index is, and how many tapes
    follow."""

    slot: int
    offset: int
    tapes: int


_TAPES = frozenset(("condition", "body"))       # fields that are a tape


def place_of(fields: Sequence[str], name: str) -> int:
    """Where one of a call's fields is among its integers, of which a tape is two."""
    before = fields[:fields.index(name)]
    return len(before) + len(_TAPES.intersection(before))


class ArrayObject(NamedTuple):
    """NumPy's array objects: at which byte the address of the data and the flags are."""

    data: int = 16
    flags: int = 64


# The flags of an array that is contiguous in C order and aligned.
PLAIN_FLAGS = 0x101


# --- the vector machine (`bytecode.py`, `pack/vector.mojo`) ---------------------------------------

VECTOR_KINDS = ("map", "rows", "columns")
VECTOR_OPCODES = ("apply", "load", "store", "spread", "ramp", "reduce", "reduce_columns", "aim",
                  "view")
# How much of a tile an instruction is for: one element, one of each line, all of them.
ONCE, LINE, FULL = range(3)
# For groups of single elements, whose registers hold one each: of so many bytes, or fewer, that are
# a cache line at most. Registers of less are on the stack.
STACK_BYTES = 16384


class VectorHead(NamedTuple):
    """The first words of a code; behind them a `VectorPhase` for each phase, then instructions.

    Attributes:
      kind: its position in ``VECTOR_KINDS``.
      block: how many elements a register holds.
      registers, register_bytes: how many there are, and their size.
      operands: of the call.
      phases: how many there are.
      call_length: instructions that run once a call.
      odometer_bytes: of each of two, behind the registers' places in memory.
      registers_at, memory: the byte where registers begin, and where they end.
    """

    kind: int
    block: int
    registers: int
    register_bytes: int
    operands: int
    phases: int
    call_length: int
    odometer_bytes: int
    registers_at: int
    memory: int


class VectorPhase(NamedTuple):
    """How many instructions a phase has: for lines, for all elements, at its end."""

    lines: int
    elements: int
    end: int


class VectorWords(NamedTuple):
    """An instruction: its opcode's position in ``VECTOR_OPCODES``, the register that is written,
    three that are read, a function's address, bytes of an element, a level."""

    opcode: int
    target: int
    a: int
    b: int
    c: int
    function: int
    size: int
    level: int


def odometer_bytes(operands: int) -> int:
    """Of an odometer's memory: an integer for each dimension, and one for each operand."""
    return 8 * (MOST_DIMENSIONS + operands)


# --- the scalar machine (`scalar_code.py`, `pack/scalars.mojo`) -----------------------------------

SCALAR_OPCODES = ("apply", "count", "jump", "if", "switch", "next", "put", "spread", "move",
                  "reduce", "call", "set", "load", "store", "point", "aim", "read", "write",
                  "product", "assign", "end")
ALIGNMENT = 64          # of the block of registers


class ScalarWords(NamedTuple):
    """The short words of an instruction, of four bytes each, behind a long one of eight: the
    register that is written, three that are read, a number, an opcode, two more numbers.

    From opcode ``len(SCALAR_OPCODES)`` on it is one of the machine's own operations.
    """

    target: int
    a: int
    b: int
    c: int
    number: int
    opcode: int
    first: int
    second: int


_LONG = 2       # short words that are as long as a long one
SCALAR_WORDS = (_LONG + len(ScalarWords._fields)) // _LONG      # of an instruction, long ones
# The long word that is an instruction's last two short ones.
POINTER = SCALAR_WORDS - 1

# --- the crew (`crew.py`, `kernels/crew.mojo`) ----------------------------------------------------

CREW_WORDS, CREW_ALIGNMENT = 112, 128   # of its memory: words, and bytes
CREW_NAME = "maxjax_crew"               # of the global variable of graphs

# --- as Mojo --------------------------------------------------------------------------------------


def _numbered(names: Iterable[str], first: int = 0, prefix: str = "") -> dict[str, int]:
    return {f"{prefix}{name.upper()}": number for number, name in enumerate(names, first)}


def _members(kind: type[enum.IntEnum], prefix: str = "") -> dict[str, int]:
    return {f"{prefix}{member.name}": member.value for member in kind}


def _words(fields: Sequence[str], prefix: str) -> dict[str, int]:
    """Where the fields of a call's first integers are, and how many integers they are."""
    return {**{f"{prefix}_{name.upper()}": place_of(fields, name) for name in fields},
            f"{prefix}_WORDS": len(fields) + len(_TAPES.intersection(fields))}


def _joined(*tables: Mapping[str, int | str]) -> dict[str, int | str]:
    """Tables as one; a name is in one of them."""
    joined = {name: value for table in tables for name, value in table.items()}
    if len(joined) != sum(map(len, tables)):
        raise AssertionError("two constants have one name")
    return joined


# What only one file of the pack needs, by its name.
PACK: dict[str, dict[str, int | str]] = {
    "tape": _joined(
        _words(ScanCall._fields, "SCAN"), _words(Move._fields, "MOVE"),
        _words(WhileCall._fields, "WHILE"), _words(SwitchCall._fields, "SWITCH"),
        {f"ARRAY_{name.upper()}": byte for name, byte in ArrayObject()._asdict().items()},
        {"PLAIN_FLAGS": PLAIN_FLAGS}),
    "vector": _joined(
        _numbered(VectorHead._fields), {"HEAD": len(VectorHead._fields)},
        _numbered(VectorPhase._fields), {"PHASE_WORDS": len(VectorPhase._fields)},
        _numbered(VectorWords._fields), {"INSTRUCTION_WORDS": len(VectorWords._fields)},
        _numbered(VECTOR_KINDS, prefix="OF_"), _numbered(VECTOR_OPCODES),
        {"ONCE": ONCE, "LINE": LINE, "FULL": FULL, "STACK_BYTES": STACK_BYTES}),
    "scalars": _joined(
        _numbered(SCALAR_OPCODES), {"ONE": len(SCALAR_OPCODES)},
        _numbered(ScalarWords._fields, _LONG), {"WORDS": SCALAR_WORDS, "POINTER": POINTER,
                                                 "ALIGNMENT": ALIGNMENT}),
    "fourier": _joined(_members(fourier.Kind)),
    "collectives": _joined(
        _members(native.Word), _members(native.NativeKind, "KIND_"), _members(native.Event),
        _numbered(native.DTYPES, prefix="OF_"),
        {"MESSAGE_BYTES": native.MESSAGE_BYTES, "CALLS_AT": native.NUMBER_AT,
         "COMPARED_BYTES": native.TEXT_AT, "VALUE_AT": native.VALUE_AT}),
}

# What kernels, and several files of the pack, need.
_LAYOUT = KernelLayout(0)
KERNELS = _joined(
    {"MOST_DIMENSIONS": MOST_DIMENSIONS,
     "PLACE": KernelLayout(1).place(1), "AT_THREADS": _LAYOUT.threads, "AT_ITEMS": _LAYOUT.items,
     "AT_LENGTH": _LAYOUT.length, "AT_PIECES": _LAYOUT.pieces, "AT_ROWS": _LAYOUT.rows,
     "AT_STRIDES": _LAYOUT.stride(0)},
    _words(TapeCall._fields, "TAPE"), {"CREW_NAME": CREW_NAME, "CREW_WORDS": CREW_WORDS})

_KERNELS_HEAD = '''"""What kernels and Python agree on: `python -m tools.write_abi` writes it.

The table is `mojo/abi.py`. `AT_` and a name: where an integer of a generated kernel's call is
behind the places of operands, which are `PLACE` integers each. `TAPE_`: what stands before a call's
integers in a tape.
"""

'''


def constants(unit: str) -> str:
    """The constants of a file of the pack, to be written behind it."""
    table = PACK.get(unit)
    return "" if table is None else f"\n\n{_text(table)}"


def kernels() -> str:
    """``kernels/abi.mojo``."""
    return _KERNELS_HEAD + _text(KERNELS)


def _text(table: Mapping[str, int | str]) -> str:
    return "".join(f"comptime {name} = {value}\n" if isinstance(value, int) else
                   f'comptime {name} = "{value}"\n' for name, value in table.items())
