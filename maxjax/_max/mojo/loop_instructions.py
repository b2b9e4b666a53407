"""The instructions of a loop over few elements (``scalar_code.py``) as text of its kernel
(``emit_loop.py``), one at a time, and where the elements of its registers are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxjax._max.mojo.abi import SCALAR_WORDS
from maxjax._max.mojo.emitter import REDUCERS, expression, kind_name, stored_name
from maxjax._max.mojo.loop_few import of_few
from maxjax._max.mojo.loop_runs import MOST_VARIABLES, VECTOR, is_total
from maxjax._max.mojo.scalar_code import (
    Instruction,
    LoopCode,
    Register,
    calls_of,
    every_instruction,
)
from maxjax._max.mojo.schedule import Value
from maxjax._max.mojo.structure import BOOL, ValueStructure

# Multiplications of a product that is written out, as a loop of known lengths, and of a stack.
_MOST_MULTIPLIED, _MOST_IN_STACK = 1 << 12, 1 << 14
MOST_UNROLLED = 4      # vectors that are written one after the other
_LEAST_ROW = 4          # of a product that is computed by vectors
_FEW_TERMS = 4          # as the pack has it
# Integers by which another is divided or shifted: the processor does that at once for a known one.
_BETTER_KNOWN = frozenset((
    "div", "rem", "shift_left", "shift_right_logical", "shift_right_arithmetic"))
_NO_LITERAL = 1 << 62
_WITH_INTEGER = ("set", "point", "read", "write")
_REDUCTION = "vector_lines_"


def has_integer(x: Instruction) -> bool:
    return x.opcode in _WITH_INTEGER and not x.is_bounded


def is_called(x: Instruction) -> bool:
    return x.opcode == "call" and not (
        x.is_product or _is_assignment(x) or is_total(x) or of_few(x))


def _is_assignment(x: Instruction) -> bool:
    """Whether a call writes a few rows of a register."""
    return bool(x.assigned) and x.numbers[1] * x.numbers[2] <= MOST_VARIABLES \
        and (x.assigned == "set" or x.sources[0].dtype != BOOL)


def is_fixed_product(batch: int, m: int, n: int, k: int) -> bool:
    """Whether the sizes of products of matrices are known to the text that computes them."""
    return 0 < m * n * k <= _MOST_MULTIPLIED and 0 < batch * m * n * k <= _MOST_IN_STACK


def _is_written_out(x: Instruction) -> bool:
    """Whether a product is a loop of known lengths in the text."""
    if x.function not in ("matmul_float32", "matmul_float64"):
        return False
    batch, m, n, k, _, a_row, a_col, _, b_row, b_col, _, c_row = x.numbers[:12]
    if m > 1 and c_row != n or not is_fixed_product(batch, m, n, k):
        return False
    if batch > 1 and (m * n == 1 or k <= _FEW_TERMS):
        return False        # the pack may add a stack of such in another order
    if n == 1:      # a row of the transposed matrix, or dots with its rows
        return m > 1 and (a_row == 1 < a_col or a_col == b_row == 1 < k <= a_row)
    return b_col == 1 or m == a_col == b_row == 1 < k <= b_col


def _adds_rows(x: Instruction) -> bool:
    """Whether a product of few elements adds rows that are vectors to one another, or nearly."""
    _, m, n, *_, a_row, _, _, _, b_col, _, c_row = x.numbers[:12]
    return (m == 1 or c_row == n) and (
        n >= _LEAST_ROW and b_col == 1 or n == 1 and m >= _LEAST_ROW and a_row == 1)


def _in_memory(code: LoopCode) -> set[Register]:
    """The registers that are no variables."""
    found: set[Register] = set()
    for x in every_instruction(code.items):
        registers = [*x.sources, *x.written]
        found.update(r.root for r in registers if r.root.elements > MOST_VARIABLES)
        if x.opcode == "aim":
            found.update(r.root for r in x.sources)
        elif x.opcode == "call" and _is_assignment(x):
            found.update(r.root for r in x.written)
        elif x.opcode == "reduce" and not is_total(x) or is_called(x) or of_few(x) \
                or x.opcode == "move" and len({r.dtype for r in registers}) > 1:
            found.update(r.root for r in registers)
        elif x.opcode == "assign":
            found.update(r.root for r in x.written)
    return found


class Instructions:
    """The text of a loop's instructions.

    Its registers are variables, one for each element, or lie in ``memory``: those of ``local`` in
    the kernel's own, of which it alone knows, the others in the block of the call.
    """

    def __init__(self, code: LoopCode):
        self.code = code
        # The positions of integers, by instructions.
        first = 2 * code.operands
        self.integers = {id(x): first + number for number, x in enumerate(
            x for x in every_instruction(code.items) if has_integer(x))}
        # The positions of calls of the pack.
        self.calls = {id(x): number for number, x in enumerate(calls_of(code.items))
                      if is_called(x)}
        self.memory = _in_memory(code)
        given = {r.root for x in every_instruction(code.items)
                 if is_called(x) and not _is_written_out(x) for r in (*x.sources, *x.written)}
        # Those in memory that nothing outside reaches: the compiler keeps their elements in the
        # processor's registers where it can, and knows that nothing else lies there.
        self.local = {r for r in self.memory - given if r.elements <= MOST_UNROLLED * VECTOR}
        # What a number in the text makes another operation.
        self.literals = {r: code.known[r] for x in every_instruction(code.items)
                         if x.opcode == "apply" and x.name in _BETTER_KNOWN
                         for r in x.sources[1:] if r not in self.memory
                         and abs(code.known.get(r, _NO_LITERAL)) < _NO_LITERAL}
        # Before the loop, all elements of these become one.
        self.spreads = {x.target: x for x in code.items if isinstance(x, Instruction)
                        and x.opcode == "spread" and x.target is not None and x.target.invariant
                        and x.target.dtype != BOOL and x.sources[0].root.invariant
                        and x.sources[0].root not in self.memory}

    def place(self, register: Register) -> str:
        """The text of where a register is in memory."""
        root = register.root
        if root in self.local:
            return f"b{root.number}.unsafe_offset({register.offset - root.offset})"
        return f"block.unsafe_offset({register.offset})"

    def address(self, register: Register) -> str:
        """The pointer to a register's first element."""
        return pointer_to(register, self.place(register))

    def value(self, register: Register, number: int = 0) -> str:
        if register.root not in self.memory:
            return variable_of(register, number)
        return self.load(register.root, str(_position(register, number)), "1")

    def set(self, register: Register, number: int, value: str) -> str:
        if register.root not in self.memory:
            return f"{variable_of(register, number)} = {value}"
        return self.store(register.root, str(_position(register, number)), value)

    def load(self, root: Register, at: str, width: str) -> str:
        return loaded(memory_of(root), at, root.dtype, width)

    def line_of(self, register: Register, at: str, width: str) -> str:
        """Some elements of a long register: of one before the loop, that whose elements they are.
        """
        x = self.spreads.get(register)
        return self.load(register, at, width) if x is None else (
            f"SIMD[{kind_name(register.dtype)}, {width}]({self.value(x.sources[0], x.numbers[0])})")

    def store(self, root: Register, at: str, value: str) -> str:
        return stored_text(memory_of(root), at, value, root.dtype)

    def read(self, register: Register, there: str) -> Iterator[str]:
        """Sets all elements to those at a place."""
        if register.root in self.memory:
            yield _copy(self.place(register), there, register.nbytes)
            return
        pointer = pointer_to(register, there)
        for k in range(register.elements):
            yield self.set(register, k, loaded(pointer, str(k), register.dtype, "1"))

    def write(self, register: Register, there: str) -> Iterator[str]:
        if register.root in self.memory:
            yield _copy(there, self.place(register), register.nbytes)
            return
        pointer = pointer_to(register, there)
        for k in range(register.elements):
            name = self.value(register, k)
            yield stored_text(pointer, str(k), name, register.dtype)

    # --- instructions ---
    def instruction(self, x: Instruction) -> Iterator[str]:
        target, source = x.target, x.sources[0] if x.sources else None
        match x.opcode:
            case "apply":
                assert target is not None
                for k in range(x.elements):
                    yield self.set(target, k, self.expression(
                        x, [self.value(r, k) for r in x.sources], "1"))
            case "reduce":
                yield self.reduce(x)
            case "call":
                yield from self.call(x)
            case "spread":
                assert target is not None and source is not None
                for k in range(x.elements):
                    yield self.set(target, k, self.value(source, x.numbers[0]))
            case "move":
                yield from self.move(x)
            case "load":
                assert target is not None
                if target in self.literals:
                    return
                yield from self.read(target, _operand(x))
            case "store":
                assert source is not None
                yield from self.write(source, _operand(x))
            case "point":
                yield (f"var {target} = {_operand(x)}"
                       f".unsafe_offset(frame.integer({self.integers[id(x)]}))")
            case "aim":
                assert source is not None
                yield f"var {target} = {self.place(source)}.unsafe_offset({x.numbers[0]})"
            case "next":
                assert target is not None
                yield from self.read(target, str(source))
                yield f"{source} = {source}.unsafe_offset({x.numbers[0]})"
            case "put":
                assert source is not None
                yield from self.write(source, str(target))
                yield f"{target} = {target}.unsafe_offset({x.numbers[0]})"
            case "read":
                assert target is not None
                yield from self.read(target, self.row(x))
            case "write" if x.is_bounded:
                yield from self.write(x.sources[2], _row(x, self.index(x)))
            case "write":
                yield (f"if 0 <= {self.index(x)} and "
                       f"{self.index(x)} < frame.integer({self.integers[id(x)]}):")
                for text in self.write(x.sources[2], _row(x, self.index(x))):
                    yield f"    {text}"
            case "assign":
                yield from self.assign(x)
            case _:
                yield f"{target} = frame.integer({self.integers[id(x)]})"

    def row(self, x: Instruction) -> str:
        """The text of where the row is that an instruction reads."""
        if x.is_bounded:
            return _row(x, self.index(x))
        last = f"frame.integer({self.integers[id(x)]}) - 1"
        return _row(x, f"max(0, min({self.index(x)}, {last}))")

    def index(self, x: Instruction) -> str:
        """The text of the index of the row that an instruction reads or writes."""
        known = self.code.known.get(x.sources[1])
        return str(known) if known is not None else f"Int({self.value(x.sources[1])})"

    def expression(self, x: Instruction, sources: list[str], width: str) -> str:
        assert x.target is not None
        return _applied(x.name, x.target.dtype, [r.dtype for r in x.sources], sources, width)

    def reduce(self, x: Instruction) -> str:
        source, target = x.sources[0], x.written[0]
        kinds = f"{stored_name(source.dtype)}, {stored_name(target.dtype)}"
        return (f"reduce_few[{self.reducer(x)}, {kinds}, {x.numbers[0]}, {x.elements}]"
                f"({self.address(source)}, {self.address(target)})")

    def reducer(self, x: Instruction) -> str:
        return REDUCERS[x.function.removeprefix(_REDUCTION).rpartition("_")[0]]

    def move(self, x: Instruction) -> Iterator[str]:
        target, source = x.target, x.sources[0]
        assert target is not None
        to, step, begin, source_step = x.numbers
        size = source.dtype.itemsize
        if target.dtype != source.dtype or (
                x.elements > MOST_VARIABLES and target.root is not source.root
                and step == source_step == 1):
            there, here = self.place(target), self.place(source)
            count, nbytes = (1, x.elements * size) if step == source_step == 1 else (
                x.elements, size)
            for k in range(count):
                yield _copy(f"{there}.unsafe_offset({(to + k * step) * size})",
                            f"{here}.unsafe_offset({(begin + k * source_step) * size})", nbytes)
            return
        # A value may be moved within itself.
        for k in range(x.elements):
            yield self.set(target, to + k * step, self.value(source, begin + k * source_step))

    def call(self, x: Instruction) -> Iterator[str]:
        if x.is_product:
            yield from self.product(x)
        elif _is_assignment(x):
            yield from self.assignment(x)
        elif _is_written_out(x):
            yield self.rows_of_product(x)
        elif few := of_few(x):
            yield f"{few}({self.operands(x)})"
        else:
            entry = SCALAR_WORDS * (1 + self.calls[id(x)])
            yield (f"code.unsafe_offset({entry}).unsafe_bitcast[Function]()[](slots, "
                   f"code.unsafe_offset({entry + SCALAR_WORDS - 1}).unsafe_bitcast[Args]()[])")
            if x.host is not None:
                yield "if is_stopped(slots):"
                yield "    return"

    def product(self, x: Instruction) -> Iterator[str]:
        """Each element is a chain of fused multiplications and additions."""
        a, b = x.sources
        batch, m, n, k, a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row = \
            x.numbers[:12]
        target, = x.results
        registers = (a, b, target)
        if all(r.root in self.memory for r in registers):
            if _adds_rows(x):
                yield self.rows_of_product(x)
                return
            numbers = ", ".join(map(str, x.numbers[:12]))
            yield f"product_of_few[{kind_name(target.dtype)}, {numbers}]({self.operands(x)})"
            return
        for t in range(batch):
            for i in range(m):
                for j in range(n):
                    total = f"Scalar[{kind_name(target.dtype)}](0)"
                    for p in range(k):
                        left = self.value(a, t * a_batch + i * a_row + p * a_col)
                        right = self.value(b, t * b_batch + p * b_row + j * b_col)
                        total = f"{left}.fma({right}, {total})"
                    yield self.set(target, t * c_batch + i * c_row + j, total)

    def rows_of_product(self, x: Instruction) -> str:
        """The call for a product of more elements, in vectors along the rows, which adds as the
        pack's function does."""
        numbers = ", ".join(map(str, x.numbers[:11]))
        kind = kind_name(x.results[0].dtype)
        return f"products_of_registers[{kind}, {numbers}]({self.operands(x)})"

    def operands(self, x: Instruction) -> str:
        """The text of where a call's operands and results are."""
        return ", ".join(self.address(r) for r in (*x.sources, *x.results))

    def assignment(self, x: Instruction) -> Iterator[str]:
        """Rows that are not there are left out."""
        given, places, updates = x.sources
        rows, width, count = x.numbers[:3]
        target, = x.results
        yield from self.copied(target, given)
        at = memory_of(target.root)
        for row in range(count):
            place = f"Int({self.value(places, row)})"
            yield f"if 0 <= {place} and {place} < {rows}:"
            for k in range(width):
                value, to = self.value(updates, row * width + k), f"{place} * {width} + {k}"
                if x.assigned != "set":
                    value = _applied(x.assigned, target.dtype, [target.dtype] * 2,
                                     [self.load(target.root, to, "1"), value], "1")
                yield f"    {stored_text(at, to, value, target.dtype)}"

    def assign(self, x: Instruction) -> Iterator[str]:
        """Lines of a window at a place that is there."""
        given, _, updates = x.sources
        target, (stride, _, *lines) = x.target, x.numbers
        assert target is not None
        yield from self.copied(target, given)
        size = target.dtype.itemsize
        for number, line in enumerate(lines):
            there = (f"{self.place(target)}.unsafe_offset({line * size} + {stride * size} * "
                     f"{self.index(x)})")
            if updates.root in self.memory:
                first = number * x.elements * size
                here = self.place(updates)
                if first:
                    here += f".unsafe_offset({first})"
                yield _copy(there, here, x.elements * size)
                continue
            pointer = pointer_to(target, there)
            for k in range(x.elements):
                value = self.value(updates, number * x.elements + k)
                yield stored_text(pointer, str(k), value, target.dtype)

    def window(self, x: Instruction) -> str:
        """The text of where the line is that an instruction writes."""
        if x.opcode == "write":
            return _row(x, self.index(x))
        assert x.target is not None
        step = x.numbers[0] * x.target.dtype.itemsize
        return f"{self.place(x.target)}.unsafe_offset({step} * {self.index(x)})"

    def copied(self, target: Register, given: Register) -> Iterator[str]:
        """Brings all elements of a register to another, which is in memory."""
        if given is target:
            pass        # written in place
        elif given.root in self.memory:
            yield _copy(self.place(target), self.place(given), target.nbytes)
        else:
            for k in range(target.elements):
                yield self.set(target, k, self.value(given, k))


def _applied(name: str, dtype: np.dtype, given: list[np.dtype], sources: list[str],
             width: str) -> str:
    """The text of an operation on vectors of some dtypes."""
    operation = Value(ValueStructure("apply", name, dtype), tuple(
        Value(ValueStructure("load", "", x), ()) for x in given))
    return expression(operation, sources, width)


def variable_of(register: Register, number: int) -> str:
    """The variable of an element."""
    if register.whole is not None:
        return f"r{register.whole.number}_{register.number}"
    return f"r{register.number}" if register.elements == 1 else f"r{register.number}_{number}"


def memory_of(root: Register) -> str:
    """The variable of where a register is."""
    return f"m{root.number}"


def _position(register: Register, number: int) -> int:
    """The number of an element of a register, from where the register's root begins."""
    return number if register.whole is None else register.number


def _operand(x: Instruction) -> str:
    return f"frame.address({x.numbers[0]})"


def _copy(target: str, source: str, nbytes: int) -> str:
    return f"unsafe_memcpy(dest={target}, src={source}, count={nbytes})"


def loaded(pointer: str, at: str, dtype: np.dtype, width: str) -> str:
    """The text of some elements, or of one: that without numbers of elements is read faster."""
    if width == "1":
        return f"bool_at({pointer}, {at})" if dtype == BOOL else f"at({pointer}, {at})"
    name = "bools_at" if dtype == BOOL else "vector_at"
    return f"{name}[{width}]({pointer}, {at})"


def stored_text(pointer: str, at: str, value: str, dtype: np.dtype) -> str:
    return (f"put_bools({pointer}, {at}, {value})" if dtype == BOOL
            else f"{pointer}.unsafe_store({at}, {value})")


def _row(x: Instruction, index: str) -> str:
    stride, before = x.numbers[:2]
    return f"{x.sources[0]}.unsafe_offset({before} + {stride} * {index})"


def pointer_to(register: Register, place: str) -> str:
    return f"{place}.unsafe_bitcast[Scalar[{stored_name(register.dtype)}]]()"
