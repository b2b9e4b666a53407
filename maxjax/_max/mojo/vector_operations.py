"""The functions of the vector machine's instructions, as Mojo text: units of the pack.

Each is one loop over a block of an elementwise operation, for one dtype, or gathers a reduction.
The operations are the kernels that primitives name and the compiler's own words, as generated
kernels use them: ``emitter.expression`` writes both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from maxjax._base import dtypes
from maxjax._base.dtypes import name_of
from maxjax._max.elementwise_kernels import CHEAP, KERNELS
from maxjax._max.mojo.bytecode import accumulated, operation, reduction
from maxjax._max.mojo.emitter import (
    BOOL,
    HEADER,
    REDUCERS,
    Value,
    expression,
    kind_name,
    stored_name,
)
from maxjax._max.mojo.structure import ValueStructure

_NUMBERS = (*dtypes.FLOATS, *dtypes.INTS)
_INFIX = ("add", "sub", "mul")

_HEAD = HEADER.replace(
    "from std.sys.info import simd_width_of", "from std.collections import Array\n"
    "from std.sys.info import simd_width_of, size_of").replace(
    "from kernels.reduction import", "from kernels.reduction import Reducer, reduce_line,") + '''
comptime Bytes = Pointer[UInt8, MutAnyOrigin]


@always_inline
def typed[dtype: DType](x: Bytes) -> Pointer[Scalar[dtype], MutAnyOrigin]:
    return x.unsafe_bitcast[Scalar[dtype]]()

comptime Block = def (Bytes, Bytes, Bytes, Bytes, Int) thin -> None


@no_inline
def run_blocks(
    block: Block, width: Int, result: Bytes, a: Bytes, b: Bytes, c: Bytes, n: Int,
    result_size: Int, a_size: Int, b_size: Int, c_size: Int
):
    """Whole vectors, then a vector of copies of what is left; of registers alone, whose number of
    elements is told as a negative number, there is room for a whole vector more."""
    if n < 0:
        block(result, a, b, c, width - 1 - n)
        return
    block(result, a, b, c, n)
    var rest = n % width
    if rest == 0:
        return
    var done = n - rest
    # Of no more than 64 elements of 8 bytes each.
    var memory = Array[UInt64, 4 * 64](uninitialized=True)
    var own = Pointer(to=memory).unsafe_bitcast[UInt8]().as_unsafe_any_origin()
    copy_bytes(own, a.unsafe_offset(done * a_size), rest * a_size)
    copy_bytes(own.unsafe_offset(512), b.unsafe_offset(done * b_size), rest * b_size)
    copy_bytes(own.unsafe_offset(1024), c.unsafe_offset(done * c_size), rest * c_size)
    block(own.unsafe_offset(1536), own, own.unsafe_offset(512), own.unsafe_offset(1024), width)
    copy_bytes(result.unsafe_offset(done * result_size), own.unsafe_offset(1536),
               rest * result_size)


@always_inline
def copy_bytes(target: Bytes, source: Bytes, count: Int):
    for i in range(count):
        target.unsafe_store(i, source.unsafe_load[width=1](i))


@always_inline
def gather_lines[
    Op: Reducer, dtype: DType, kind: DType
](result: Bytes, x: Bytes, lines: Int, width: Int, fresh: Int):
    """Reduces lines, each to one element that is combined with what is there."""
    var target = typed[kind](result)
    for line in range(lines):
        var value = reduce_line[Op, dtype](
            typed[dtype](x).unsafe_offset(line * width), width
        ).cast[kind]()
        if fresh == 0:
            value = Op.combine[kind, 1](target.unsafe_load[width=1](line), value)
        target.unsafe_store(line, value)


@always_inline
def gather_columns[
    Op: Reducer, dtype: DType, kind: DType
](result: Bytes, x: Bytes, lines: Int, width: Int, fresh: Int):
    """Combines lines, one element with one, with what is there."""
    comptime W = simd_width_of[kind]()
    var target = typed[kind](result)
    for line in range(lines):
        var source = typed[dtype](x).unsafe_offset(line * width)
        var anew = fresh != 0 and line == 0
        var i = 0
        while i + W <= width:
            var value = source.unsafe_load[width=W](i).cast[kind]()
            if not anew:
                value = Op.combine[kind, W](target.unsafe_load[width=W](i), value)
            target.unsafe_store(i, value)
            i += W
        while i < width:
            var value = source.unsafe_load[width=1](i).cast[kind]()
            if not anew:
                value = Op.combine[kind, 1](target.unsafe_load[width=1](i), value)
            target.unsafe_store(i, value)
            i += 1


@always_inline
def fill_ramp[dtype: DType](result: Bytes, first: Int, step: Int, count: Int):
    for i in range(count):
        typed[dtype](result).unsafe_store(i, Int64(first + i * step).cast[dtype]())
'''


def units() -> dict[str, str]:
    """The texts by the units' names: a unit a dtype."""
    found: dict[str, dict[str, str]] = {}
    written: set[str] = set()
    for dtype in dtypes_of_units():
        unit = found.setdefault(f"vector_{name_of(dtype)}", {})
        for name, text in _functions(dtype):
            if name not in written:
                written.add(name)
                unit[name] = text
    return {unit: _HEAD + "".join(texts.values()) for unit, texts in found.items()}


def dtypes_of_units() -> list[np.dtype]:
    """Those that programs have most come first."""
    first = [np.dtype(np.float32), np.dtype(np.int32), BOOL]
    return [*first, *(x for x in _NUMBERS if x not in first)]


def _functions(dtype: np.dtype) -> Iterator[tuple[str, str]]:
    """Names and texts of the functions whose first operand is of a dtype."""
    for kernel in KERNELS.values():
        if dtype in kernel.dtypes:
            results = (dtype,) if kernel.results is None else kernel.results(dtype)
            for result in results:
                yield _elementwise(kernel.name, [dtype] * kernel.operands, result)
    for name in ("sum", "prod"):
        wide = accumulated(name, dtype)
        if wide != dtype and dtype != BOOL:
            yield _elementwise("convert", [wide], dtype)
    if dtype in dtypes.FLOATS:
        yield _elementwise("trunc", [dtype], dtype)
    if dtype == np.float32:
        yield _elementwise("multiply_add", [dtype] * 3, dtype)
    if dtype != BOOL:
        for name in _INFIX:
            yield _elementwise(name, [dtype] * 2, dtype)
    else:
        for kind in dtypes.UNSIGNED:    # elements of a size, whatever they mean
            yield _elementwise("select", [BOOL, kind, kind], kind)
            name = f"vector_copy_{8 * kind.itemsize}"
            yield name, _loop(name, [kind], kind, "x0", kind)
    yield from _reductions(dtype)
    if dtype != BOOL:
        name = f"vector_ramp_{name_of(dtype)}"
        yield name, (f'\n\n@export("{name}")\ndef {name}(result: Bytes, first: Int, step: Int, '
                     f'count: Int) abi("C"):\n    fill_ramp[{kind_name(dtype)}]'
                     "(result, first, step, count)\n")


def _elementwise(name: str, operands: Sequence[np.dtype], result: np.dtype) -> tuple[str, str]:
    inputs = [Value(ValueStructure("load", "", dtype), ()) for dtype in operands]
    value = Value(ValueStructure("apply", name, result), tuple(inputs))
    function = operation(value)
    widest = max([*operands, result], key=lambda dtype: dtype.itemsize)
    return function, _loop(function, operands, result, expression(
        value, [f"x{number}" for number in range(len(operands))], "w"), widest,
        1 if name in CHEAP else 2)


def _loop(function: str, operands: Sequence[np.dtype], result: np.dtype, text: str,
          widest: np.dtype, vectors: int = 1) -> str:
    """One function: a loop over whole vectors, and a vector of copies for what is left.

    The operation is written once: most of the time that a unit takes to build is for these.
    """
    kind = "DType.float32" if widest.itemsize < 4 and any(
        x in (dtypes.float16, dtypes.bfloat16) for x in (*operands, result)) \
        else stored_name(widest)
    names = "abc"[:len(operands)]
    width = f"{vectors} * simd_width_of[{kind}]()"
    loads = [f"        var x{k} = " + (f"load_bool[w](typed[DType.uint8]({name}), i)"
                                       if dtype == BOOL else
                                       f"load[{kind_name(dtype)}, w](typed[{kind_name(dtype)}]"
                                       f"({name}), i)")
             for k, (name, dtype) in enumerate(zip(names, operands, strict=True))]
    target = f"typed[{stored_name(result)}](result)"
    store = f"store_bool({target}, i, {text})" if result == BOOL \
        else f"{target}.unsafe_store(i, {text})"
    sizes = [f"size_of[{stored_name(dtype)}]()" for dtype in operands] + ["0"] * (3 - len(operands))
    return "\n".join([
        "", "", "@no_inline",
        f"def {function}_block(result: Bytes, a: Bytes, b: Bytes, c: Bytes, n: Int):",
        f"    comptime w = {width}",
        "    for vector in range(n // w):",
        "        var i = vector * w",
        *loads,
        f"        {store}",
        "", "", f'@export("{function}")',
        f'def {function}(result: Bytes, a: Bytes, b: Bytes, c: Bytes, n: Int) abi("C"):',
        f"    run_blocks({function}_block, {width}, result, a, b, c, n,",
        f"               size_of[{stored_name(result)}](), {', '.join(sizes)})", ""])


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
            yield function, (
                f'\n\n@export("{function}")\ndef {function}(result: Bytes, x: Bytes, lines: Int, '
                f'width: Int, fresh: Int) abi("C"):\n    {loop}[{reducer}, {kind_name(dtype)}, '
                f"{kind}](result, x, lines, width, fresh)\n")
