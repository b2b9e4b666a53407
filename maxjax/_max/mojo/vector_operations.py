"""The functions of the vector machine's instructions, as Mojo text: units of the pack.

Each is one loop over a block of an elementwise operation, for one dtype, or gathers a reduction.
The operations are the kernels that primitives name and the compiler's own words, as generated
kernels use them: ``emitter.expression`` writes both.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.dtypes import name_of
from maxjax._max.elementwise_kernels import CHEAP, KERNELS
from maxjax._max.mojo.emitter import (
    HEADER,
    REDUCERS,
    expression,
    kind_name,
    stored_name,
)
from maxjax._max.mojo.schedule import Value
from maxjax._max.mojo.structure import BOOL, ValueStructure
from maxjax._max.mojo.vector_functions import (
    COMPENSATED,
    SETTLE,
    Joint,
    accumulated,
    joint_operations,
    operation,
    ramp,
    reduction,
    signed,
)

_NUMBERS = (*dtypes.FLOATS, *dtypes.INTS)
_INFIX = ("add", "sub", "mul")
# Those that are computed for one element alone where there is no more: as a vector, whose other
# elements are for nothing, they would take longer.
_SINGLE = CHEAP | {"div", "rem", "sqrt", "rsqrt", "clz", "population_count"}
# The scalar machine's own operations are of these.
_SINGLE_DTYPES = (np.dtype(np.float32), np.dtype(np.int32), BOOL, np.dtype(np.uint32),
                  np.dtype(np.int64), np.dtype(np.float64))

_HALVES = (dtypes.float16, dtypes.bfloat16)
# What is not that of float32, rounded: it depends on how far apart a dtype's numbers are; keeps the
# bits of a NaN; or is computed in float64, which float16 rounds once.
_OWN = {dtype: frozenset(("nextafter", "trunc")) for dtype in _HALVES}
_OWN[dtypes.float16] |= {"digamma", "lgamma", "erfcx", "sin", "cos", "tan", "acos", "atan2", "cbrt"}

_PAIRED_DTYPES = (np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.float64),
                  np.dtype(np.int64))
_SIGNS = {"add": "+", "sub": "-", "mul": "*"}

HEAD = HEADER.replace(
    "from std.sys.info import simd_width_of", "from std.collections import Array\n"
    "from std.sys.info import simd_width_of, size_of").replace(
    "from kernels.calling import *", "from kernels.blocks import *\nfrom kernels.calling import *")


def units() -> dict[str, str]:
    """The texts by the units' names: a unit a dtype, with its integers without a sign, which have
    most functions in common with it. Both floats of 16 bits are one, by the blocks of float32."""
    found: dict[str, dict[str, str]] = {}
    written: set[str] = set()
    for dtype in dtypes_of_units():
        unit = found.setdefault(unit_of(dtype), {})
        for name, text in _functions(dtype):
            if name not in written:
                written.add(name)
                unit[name] = text
    return {unit: HEAD + "".join(texts.values()) for unit, texts in found.items()}


def unit_of(dtype: np.dtype) -> str:
    """The library of the functions whose first operand is of a dtype."""
    return "vector_halves" if dtype in _HALVES else f"vector_{name_of(signed(dtype))}"


def dtypes_of_units() -> list[np.dtype]:
    """Those that programs have most come first."""
    first = [np.dtype(np.float32), np.dtype(np.int32), BOOL]
    return [*first, *(x for x in _NUMBERS if x not in first)]


def _functions(dtype: np.dtype) -> Iterator[tuple[str, str]]:
    """Names and texts of the functions whose first operand is of a dtype."""
    for operator in operators(dtype):
        single = _single_of(operator)
        if single is None:
            yield operator.function, _loop(operator)
        else:
            yield f"{single.function}_block", _block(single)
            yield operator.function, _loop_of_halves(operator, single)
    for joint in joint_operations().values():
        if joint.dtype == dtype:
            yield joint.function, _loop(_joint_operator(joint))
    if dtype == BOOL:
        for kind in dtypes.UNSIGNED:    # elements of a size, whatever they mean
            name = f"vector_copy_{8 * kind.itemsize}"
            yield name, _loop(Operator(name, "copy", (kind,), kind, "x0"))
    yield from _reductions(dtype)
    if dtype != BOOL:
        name = ramp(dtype)
        yield name, (f'\n\n@export("{name}")\ndef {name}(result: Bytes, first: Int, step: Int, '
                     f'count: Int) abi("C"):\n    fill_ramp[{kind_name(dtype)}]'
                     "(result, first, step, count)\n")


class Operator(NamedTuple):
    """An elementwise operation for some dtypes.

    Attributes:
      function: its name in the pack.
      name: of the operation.
      text: of its value, the operands being ``x0``, ``x1`` and ``x2``, of width ``w``.
    """

    function: str
    name: str
    operands: tuple[np.dtype, ...]
    result: np.dtype
    text: str

    @property
    def widest(self) -> np.dtype:
        return max([*self.operands, self.result], key=lambda dtype: dtype.itemsize)

    @property
    def is_single(self) -> bool:
        """Whether one element is computed alone. Halves are converted by vectors: for one of them
        processors have instructions that lose subnormal numbers."""
        return self.name in _SINGLE and not {*self.operands, self.result} & {*_HALVES}

    @property
    def width(self) -> str:
        """How many elements are computed at a time, as Mojo text."""
        vectors = 1 if self.name in CHEAP else 2
        halves = any(dtype in _HALVES for dtype in (*self.operands, self.result))
        kind = "DType.float32" if self.widest.itemsize < 4 and halves else stored_name(self.widest)
        return f"{vectors} * simd_width_of[{kind}]()"

    def loads(self, indent: str, places: Sequence[str] = "iii") -> list[str]:
        return [f"{indent}var x{k} = " + (
            f"load_bool[w](typed[DType.uint8]({name}), {place})" if dtype == BOOL else
            f"load[{kind_name(dtype)}, w](typed[{kind_name(dtype)}]({name}), {place})")
            for k, (name, dtype, place) in enumerate(zip(
                "abc", self.operands, places, strict=False))]

    def store(self, indent: str) -> str:
        target = f"typed[{stored_name(self.result)}](result)"
        return indent + (f"store_bool({target}, i, {self.text})" if self.result == BOOL
                         else f"{target}.unsafe_store(i, {self.text})")


def operators(dtype: np.dtype) -> Iterator[Operator]:
    """Those whose first operand is of a dtype."""
    for kernel in KERNELS.values():
        if dtype in kernel.dtypes:
            results = (dtype,) if kernel.results is None else kernel.results(dtype)
            for result in results:
                yield _operator(kernel.name, [dtype] * kernel.operands, result)
    for name in ("sum", "prod"):
        wide = accumulated(name, dtype)
        if wide != dtype and dtype != BOOL:
            yield _operator("convert", [wide], dtype)
    if dtype in dtypes.FLOATS:
        yield _operator("trunc", [dtype], dtype)
    if dtype == np.float32:
        yield _operator("multiply_add", [dtype] * 3, dtype)
    if dtype != BOOL:
        for name in _INFIX:
            yield _operator(name, [dtype] * 2, dtype)
    else:
        for kind in dtypes.UNSIGNED:
            yield _operator("select", [BOOL, kind, kind], kind)


def _operator(name: str, operands: Sequence[np.dtype], result: np.dtype) -> Operator:
    inputs = [Value(ValueStructure("load", "", dtype), ()) for dtype in operands]
    value = Value(ValueStructure("apply", name, result), tuple(inputs))
    return Operator(operation(name, operands[0], result), name, tuple(operands), result,
                     expression(value, [f"x{number}" for number in range(len(operands))], "w"))


def _joint_operator(joint: Joint) -> Operator:
    xs = f"(x0 {_SIGNS[joint.first]} x1)", "x2"
    a, b = xs[::-1] if joint.right else xs
    return Operator(joint.function, joint.then, (joint.dtype,) * 3, joint.dtype,
                    f"{a} {_SIGNS[joint.then]} {b}")


@functools.cache
def singles() -> dict[str, int]:
    """The functions that the scalar machine computes itself, element by element, by its numbers."""
    return {operator.function: number for number, operator in enumerate(_singles())}


@functools.cache
def pairs() -> dict[tuple[str, str, bool], int]:
    """Those of `joint_operations` that the scalar machine computes by one instruction, by numbers
    behind the others."""
    return {key: len(singles()) + number
            for number, key in enumerate(joint_operations(_PAIRED_DTYPES))}


def own_operations() -> int:
    """How many the scalar machine has of both."""
    return len(singles()) + len(pairs())


# Bit k says whether operand k has elements that follow one another, or one for all.
STEPS = tuple(1 << k for k in range(3))


def singles_text() -> str:
    """The part of the scalar machine that does: of one element; of a few of a register, one after
    the other."""
    joint = map(_joint_operator, joint_operations(_PAIRED_DTYPES).values())
    operators = [*_singles(), *joint]
    head = "(kind: Int, result: Bytes, a: Bytes, b: Bytes, c: Bytes"
    one = ["", "", "@always_inline", f"def compute_one{head}):",
           "    comptime w = 1", "    comptime i = 0"]
    few = ["", "", "@always_inline", f"def compute_few{head}, count: Int, steps: Int):",
           "    comptime w = 1"]
    places = [f"i * Int(steps & {bit} != 0)" for bit in STEPS]
    for number, operator in enumerate(operators):
        case = f"    {'elif' if number else 'if'} kind == {number}:  # {operator.function}"
        one += [case, *operator.loads(" " * 8), operator.store(" " * 8)]
        few += [case, "        for i in range(count):",
                *operator.loads(" " * 12, places), operator.store(" " * 12)]
    return "\n".join([*one, *few, "", "", f"comptime OPERATIONS = {len(operators)}", ""])


@functools.cache
def _singles() -> list[Operator]:
    found = {operator.function: operator
             for dtype in _SINGLE_DTYPES for operator in operators(dtype)
             if operator.is_single and {*operator.operands, operator.result} <= {*_SINGLE_DTYPES}}
    return [*found.values()]


def _loop(operator: Operator) -> str:
    """One function: a loop over whole vectors, and a vector of copies for what is left.

    What is not computed in a few instructions is written once: most of the time that a unit takes
    to build is for these.
    """
    function, operands, result = operator.function, operator.operands, operator.result
    names, target = "abc"[:len(operands)], f"typed[{stored_name(result)}](result)"
    width = operator.width
    sizes = [f"size_of[{stored_name(dtype)}]()" for dtype in operands] + ["0"] * (3 - len(operands))
    if operator.is_single:
        one = ["        comptime w = 1", "        var i = 0", *operator.loads(" " * 8),
               operator.store(" " * 8)]
    else:
        # A vector of it, whole, so that the processor need not wait to read what it has written.
        one = ["        var own = Array[UInt64, 4 * 64](uninitialized=True)",
               "        var x = Pointer(to=own).unsafe_bitcast[UInt8]().as_unsafe_any_origin()",
               *[f"        fill_vector[{stored_name(dtype)}, {width}]"
                 f"(x.unsafe_offset({512 * k}), {name})"
                 for k, (name, dtype) in enumerate(zip(names, operands, strict=True))],
               f"        run_vector({function}_block, x, {width})",
               f"        {target}.unsafe_store(0, typed[{stored_name(result)}]"
               "(x.unsafe_offset(1536)).unsafe_load[width=1](0))"]
    return _block(operator) + "\n".join([
        "", "", f'@export("{function}")',
        f'def {function}(result: Bytes, a: Bytes, b: Bytes, c: Bytes, n: Int) abi("C"):',
        "    if n == -1:",
        *one,
        "        return",
        f"    run_blocks({function}_block, {width}, result, a, b, c, n,",
        f"               size_of[{stored_name(result)}](), {', '.join(sizes)})", ""])


def _block(operator: Operator) -> str:
    return "\n".join([
        "", "", "@no_inline", f"def {operator.function}_block(result: Bytes, a: Bytes, b: Bytes, "
        "c: Bytes, n: Int):",
        f"    comptime w = {operator.width}",
        "    for vector in range(n // w):",
        "        var i = vector * w",
        *operator.loads(" " * 8), operator.store(" " * 8), ""])


def _single_of(operator: Operator) -> Operator | None:
    """The operation of float32 that gives what one of 16 bits does, but for the rounding; None if
    it is not one, or is so cheap that to convert would take longest."""
    kinds = {*operator.operands, operator.result}
    if not any(kinds == {kind} and operator.name not in _SINGLE | own
               for kind, own in _OWN.items()):
        return None
    return _operator(operator.name, [np.dtype(np.float32)] * len(operator.operands),
                     np.dtype(np.float32))


def _loop_of_halves(operator: Operator, single: Operator) -> str:
    return "\n".join([
        "", "", f'@export("{operator.function}")',
        f"def {operator.function}(result: Bytes, a: Bytes, b: Bytes, c: Bytes, n: Int) "
        'abi("C"):',
        f"    run_halves[{kind_name(operator.result)}]({single.function}_block, {single.width},",
        f"               {len(operator.operands)}, result, a, b, n)", ""])


def _reductions(dtype: np.dtype) -> Iterator[tuple[str, str]]:
    if dtype == BOOL:
        return
    bitwise = dtype in dtypes.INTS
    for name, reducer in REDUCERS.items():
        if name in ("and", "or", "xor") and not bitwise:
            continue
        for columns in (False, True):
            function = reduction(name, dtype, columns)
            loop = "gather_columns" if columns else "gather_lines"
            kind = kind_name(accumulated(name, dtype))
            call = f"{loop}[{reducer}, {kind_name(dtype)}, {kind}]"
            if name in ("max", "min") and not columns:
                call = (f"gather_extremes[{name == 'max'}, {kind_name(dtype)}, "
                        f"{kind_name(signed(dtype))}]")
            yield function, (
                f'\n\n@export("{function}")\ndef {function}(result: Bytes, x: Bytes, lines: Int, '
                f'width: Int, fresh: Int) abi("C"):\n    {call}(result, x, lines, width, fresh)\n')
    if dtype == np.float64:
        for columns in (False, True):
            function = reduction(COMPENSATED, dtype, columns)
            loop = "add_columns" if columns else "add_lines"
            yield function, (
                f'\n\n@export("{function}")\ndef {function}(result: Bytes, x: Bytes, lines: Int, '
                f'width: Int, fresh: Int) abi("C"):\n    {loop}(result, x, lines, width, fresh)\n')
        yield SETTLE, (
            f'\n\n@export("{SETTLE}")\ndef {SETTLE}(result: Bytes, a: Bytes, b: Bytes, c: Bytes, '
            'n: Int) abi("C"):\n    settle_sums(result, a, abs(n))\n')
