"""What integers in a loop over few elements may be: a comparison that is decided needs no code.

Indices are made safe by comparisons and selections: ``x[i]`` counts from the end if ``i`` is
negative, and a row that is not there is left out. Of an index that follows from the counter of a
loop of known length all these are decided beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from maxjax._max.mojo.loop_memory import unchanged
from maxjax._max.mojo.nodes import Apply, Constant, Input, Node
from maxjax._max.mojo.scalar_code import Instruction, Item, Register
from maxjax._max.mojo.structure import BOOL

Range = tuple[int, int]     # the least and the greatest

_COMPARED: dict[str, Callable[[Range, Range], bool]] = {      # where it is true of all
    "lt": lambda a, b: a[1] < b[0],
    "le": lambda a, b: a[1] <= b[0],
    "gt": lambda a, b: a[0] > b[1],
    "ge": lambda a, b: a[0] >= b[1],
    "eq": lambda a, b: a[0] == a[1] == b[0] == b[1],
    "ne": lambda a, b: a[1] < b[0] or b[1] < a[0],
}
_UNCHANGED = frozenset(("select", "and", "or", "min", "max"))   # which may return an operand
_LIMITS = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}     # with operands exchanged
_OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


class Ranges:
    """The ranges of registers' elements, of those that are integers or booleans."""

    def __init__(self) -> None:
        self._known: dict[Register, Range] = {}

    def of(self, register: Register) -> Range | None:
        known = self._known.get(register)
        return known if known is not None or register.whole is None \
            else self._known.get(register.whole)

    def set(self, register: Register, found: Range | None) -> None:
        """Says what a register is from here on; None: anything."""
        if found is not None and _fits(found, register.dtype):
            self._known[register] = found
        else:
            self._known.pop(register, None)

    def taken(self, registers: Sequence[Register]) -> dict[Register, Range]:
        """Forgets what registers are, which a loop is about to change; returns what was known."""
        found = {x: known for x in registers if (known := self.of(x)) is not None}
        for x in found:
            self.set(x, None)
        return found

    def counted(self, carries: Mapping[Register, int], begins: Mapping[Register, Range],
                length: int | None, limits: Mapping[Register, Range]
                ) -> dict[Register, Range | None]:
        """Sets the ranges that carries have in a loop's body; returns those they have behind it.

        Args:
          carries: what each iteration adds to them.
          begins: what they are before the loop.
          length: the number of iterations, if that is known.
          limits: what the loop's condition says of them in the body.
        """
        ends: dict[Register, Range | None] = {}
        for carry, step in carries.items():
            ends[carry] = None
            begin, limit = begins.get(carry), limits.get(carry)
            if begin is None or not step:
                continue
            if length:
                whole, last = length * step, (length - 1) * step
                ends[carry] = begin[0] + whole, begin[1] + whole
                self.set(carry, (begin[0] + min(last, 0), begin[1] + max(last, 0)))
            elif length is None and limit is not None:
                # The last iteration begins within the limit, and goes a step beyond.
                low, high = (begin[0], limit[1]) if step > 0 else (limit[0], begin[1])
                end = ((begin[0], max(begin[1], high + step)) if step > 0
                       else (min(begin[0], low + step), begin[1]))
                if low <= high and _fits(end, carry.dtype):
                    ends[carry] = end
                    self.set(carry, (low, high))
        return ends

    def limits(self, condition: Sequence[Item], predicate: Register) -> dict[Register, Range]:
        """What registers are where a condition's code, which computes the predicate, has it true.
        """
        made = {x.target: x for x in condition if isinstance(x, Instruction)}
        found: dict[Register, Range] = {}
        left = [predicate]
        while left:
            x = made.get(left.pop())
            if x is None:
                continue
            if x.name == "and" and x.target is not None and x.target.dtype == BOOL:
                left += x.sources
            elif x.name in _LIMITS:
                name = x.name
                for one, other in (x.sources, x.sources[::-1]):
                    known = self.of(other)
                    if known is not None and one.dtype.kind == "i" and one.elements == 1:
                        info = np.iinfo(one.dtype)
                        low, high = found.get(one, (int(info.min), int(info.max)))
                        if name in ("lt", "le"):
                            high = min(high, known[1] - (name == "lt"))
                        else:
                            low = max(low, known[0] + (name == "gt"))
                        found[one] = low, high
                    name = _LIMITS[name]
        return found

    def joined(self, given: Sequence[Register]) -> Range | None:
        """The range of the elements of all these registers; None where one is not known."""
        found = [self.of(x) for x in given]
        known = [x for x in found if x is not None]
        if not known or len(known) < len(found):
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    def unchanged(self, name: str, given: Sequence[Register]) -> Register | None:
        """The operand that an elementwise operation returns."""
        if name not in _UNCHANGED:
            return None
        found = [self.of(x) for x in given]
        a = found[0]
        if name == "select":
            return given[1 if a[0] else 2] if a is not None and a[0] == a[1] else None
        for x, own, other in ((given[0], a, found[1]), (given[1], found[1], a)):
            if other is None:
                continue
            if name in ("and", "or") and x.dtype == BOOL and other == (name == "and",) * 2:
                return x
            if own is not None and (name == "min" and own[1] <= other[0]
                                    or name == "max" and own[0] >= other[1]):
                return x
        return None

    def result(self, name: str, given: Sequence[Register], dtype: np.dtype) -> Range | None:
        """What an elementwise operation of registers is in."""
        found = [self.of(x) for x in given]
        if dtype == BOOL and name in ("and", "or") and (name == "or",) * 2 in found:
            return (1, 1) if name == "or" else (0, 0)
        if name == "select":
            return self.joined(given[1:])
        known = [x for x in found if x is not None]
        if dtype.kind not in "ib" or not known or len(known) < len(found):
            return None
        return _computed(name, known, dtype)


def _computed(name: str, known: list[Range], dtype: np.dtype) -> Range | None:
    a, b = known[0], known[-1]
    if name in _COMPARED:
        return (1, 1) if _COMPARED[name](a, b) else (
            (0, 0) if _COMPARED[_OPPOSITE[name]](a, b) else None)
    match name:
        case "and" | "or" if dtype == BOOL:
            return (a[0] & b[0], a[1] & b[1]) if name == "and" else (a[0] | b[0], a[1] | b[1])
        case "not" if dtype == BOOL:
            found = 1 - a[1], 1 - a[0]
        case "copy" | "convert":
            found = a
        case "min":
            found = min(a[0], b[0]), min(a[1], b[1])
        case "max":
            found = max(a[0], b[0]), max(a[1], b[1])
        case "add":
            found = a[0] + b[0], a[1] + b[1]
        case "sub":
            found = a[0] - b[1], a[1] - b[0]
        case "rem" if a[0] >= 0 and b[0] > 0:
            found = a if a[1] < b[0] else (0, b[1] - 1)
        case "mul":
            products = [x * y for x in a for y in b]
            found = min(products), max(products)
        case _:
            return None
    return found if _fits(found, dtype) else None


def _fits(found: Range, dtype: np.dtype) -> bool:
    """Whether all of it are values of the dtype: a computation has not wrapped around."""
    if dtype == BOOL:
        return found[0] >= 0 and found[1] <= 1
    if dtype.kind != "i":
        return False
    info = np.iinfo(dtype)
    return bool(info.min <= found[0] and found[1] <= info.max)


def known_range(data: bytes | None, elements: int, dtype: np.dtype) -> Range | None:
    """The range of integers or booleans in memory; None for others, and if they are not known."""
    if data is None or dtype != BOOL and dtype.kind != "i" \
            or len(data) != elements * dtype.itemsize:
        return None
    values = np.frombuffer(data, dtype)
    return int(values.min()), int(values.max())


def step_of(result: Node, number: int) -> int:
    """What each iteration of a body adds to a carry: that of an input, and a result; 0 if it is
    nothing, or anything else.

    Args:
      number: of the input.
    """
    result = _itself(result)
    if isinstance(result, Apply) and result.name == "add":
        for x, other in (result.inputs, result.inputs[::-1]):
            x, other = _itself(x), _itself(other)
            if isinstance(x, Input) and x.number == number and x.size == 1 \
                    and isinstance(other, Constant) and other.size == 1:
                return int(other.value.item())
    return 0


def _itself(node: Node) -> Node:
    """What a node only has the elements of."""
    while (same := unchanged(node)) is not None:
        node = same
    return node
