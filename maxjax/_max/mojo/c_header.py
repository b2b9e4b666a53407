"""The C header of a library, and the texts of its errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._max.mojo import c_entry

# Numbers, as they are in programs that exist: new dtypes come last.
_C_TYPES = {"bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
            "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t",
            "uint64": "uint64_t", "float16": "uint16_t", "bfloat16": "uint16_t",
            "float32": "float", "float64": "double", "complex64": "float",
            "complex128": "double"}
_NUMBERS = {name: number for number, name in enumerate(_C_TYPES)}
_NOTES = {"bool": "0 or 1", "float16": "bits", "bfloat16": "bits", "complex64": "pairs",
          "complex128": "pairs"}
KEYWORDS = frozenset((
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl "
    "complex const const_cast constexpr continue default delete do double dynamic_cast else enum "
    "explicit export extern false float for friend goto if imaginary inline int int8_t int16_t "
    "int32_t int64_t long main mutable namespace new not not_eq nullptr operator or or_eq private "
    "protected public register reinterpret_cast restrict return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try typedef "
    "typeid typename typeof uint8_t uint16_t uint32_t uint64_t union unsigned using virtual void "
    "volatile wchar_t while xor xor_eq "
    # Macros of compilers, and of headers that may be included before.
    "EOF I NULL assert errno i386 linux stderr stdin stdout unix").split())


class Array(NamedTuple):
    """An argument or a result.

    Attributes:
      shape: sizes, or how they are written.
      alignment: of its address, in bytes.
      note: what it is in Python.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: np.dtype
    alignment: int
    note: str = ""

    @property
    def number(self) -> int:
        """The number that the header gives to its dtype."""
        return _NUMBERS[dtypes.name_of(self.dtype)]

    def __str__(self) -> str:
        return f"{dtypes.name_of(self.dtype)}[{','.join(map(str, self.shape))}]"


def has_type(dtype: np.dtype) -> bool:
    """Whether C has a type for elements of that dtype, or for their bits."""
    return dtypes.name_of(dtype) in _C_TYPES


def identifiers(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """C names like the given ones, each another."""
    found: list[str] = []
    used = {*KEYWORDS, *taken}
    for name in names:
        base = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_") or "x"
        base = f"x{base}" if base[0].isdigit() else base
        chosen, number = base, 2
        while chosen in used:
            chosen, number = f"{base}_{number}", number + 1
        used.add(chosen)
        found.append(chosen)
    return found


def error_texts(arguments: Sequence[Array], results: Sequence[Array],
                sizes: Sequence[tuple[str, int, int]]) -> list[str]:
    """By the codes of errors; the last one is that of unknown codes."""
    unknown = "there is no error of this number"
    bounds = ", ".join(f"{least} <= {name} <= {most}" for name, least, most in sizes)
    texts = [unknown] * c_entry.FIRST_OF_ARRAYS
    texts[0] = "no error"
    texts[c_entry.NO_MEMORY] = "there is no memory for temporary values"
    texts[c_entry.WRONG_COUNT] = (
        f"there must be {len(arguments)} arguments and {len(results)} results")
    if sizes:
        texts[c_entry.WRONG_SIZES] = f"the function is not for these sizes: {bounds}"
    described = [*(f"argument {n}, {x.name}, {x}" for n, x in enumerate(arguments)),
                 *(f"result {n}, {x.name}, {x}" for n, x in enumerate(results))]
    for text in described:
        of_array = [unknown] * c_entry.OF_ARRAY
        of_array[c_entry.NULL] = f"{text}: there is no array (its address is 0)"
        of_array[c_entry.MISALIGNED] = (
            f"{text}: its address is no multiple of what its elements need")
        of_array[c_entry.OVERLAPS] = f"{text}: it shares memory with another array"
        of_array[c_entry.WRONG_DTYPE] = f"{text}: the array has another dtype"
        of_array[c_entry.WRONG_SHAPE] = f"{text}: the array has another shape"
        texts += of_array
    return [*texts, unknown]


def header(name: str, arguments: Sequence[Array], results: Sequence[Array],
           sizes: Sequence[tuple[str, int, int]], made_by: str) -> str:
    """The text of the header."""
    guard = f"{name.upper()}_H"
    counts = [f"int64_t {size}" for size, _, _ in sizes]
    direct: list[str] = []
    if len(arguments) + len(results) <= c_entry.MOST_PARAMETERS:
        given = [*counts, *(f"const {_c_type(x)} *{x.name}" for x in arguments),
                 *(f"{_c_type(x)} *{x.name}" for x in results)]
        direct = [f"/* Returns 0, or the code of an error, see {name}_error.", "",
                  *_described(arguments, results, sizes), "*/",
                  _prototype(f"int32_t {name}", given), ""]
    else:
        direct = [f"/* Too many arrays for a function of so many parameters: {name}_arrays takes",
                  *_described(arguments, results, sizes), "*/", ""]
    given = [*counts, "const maxjax_array *arguments", "int64_t argument_count",
             "const maxjax_array *results", "int64_t result_count"]
    lines = [
        f"/* {name}: written by {made_by}.", "",
        "   Arrays are whole, row by row. Calls from several threads at once are allowed. Results",
        "   may not share memory with arguments or with one another. */",
        f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", "",
        "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
        "#ifndef MAXJAX_ARRAY", "#define MAXJAX_ARRAY", "enum maxjax_dtype {",
        ",\n".join(f"    MAXJAX_{dtype.upper()} = {number}" for dtype, number in _NUMBERS.items()),
        "};", "",
        "typedef struct {", "    void *data;", "    const int64_t *shape;",
        "    int32_t dtype;      /* enum maxjax_dtype */", "    int32_t rank;", "} maxjax_array;",
        "#endif", "", *direct,
        "/* The same for arrays whose dtypes and shapes are checked. */",
        _prototype(f"int32_t {name}_arrays", given), "",
        "/* What a code means. */", f"const char *{name}_error(int32_t code);", "",
        "/* Frees the memory that is kept from one call to the next. */",
        f"void {name}_release(void);", "",
        "/* Starts threads that share large calls with those that make them, until there are as",
        "   many as wanted; returns how many there are. */",
        f"int32_t {name}_threads(int32_t wanted);", "",
        "#ifdef __cplusplus", "}", "#endif", "#endif", ""]
    return "\n".join(lines)


def _c_type(array: Array) -> str:
    return _C_TYPES[dtypes.name_of(array.dtype)]


def _described(arguments: Sequence[Array], results: Sequence[Array],
               sizes: Sequence[tuple[str, int, int]]) -> list[str]:
    lines = [f"   {name}: a size, from {least} to {most}" for name, least, most in sizes]
    for x in (*arguments, *results):
        note = _NOTES.get(dtypes.name_of(x.dtype))
        python = x.note.replace("*/", "* /")
        lines.append(f"   {x.name}: {x}{f' ({note})' if note else ''}"
                     f"{f', {python}' if python and python != x.name else ''}")
    return lines


def _prototype(head: str, parameters: Sequence[str]) -> str:
    lines, line = [], f"{head}("
    for number, parameter in enumerate(parameters):
        piece = parameter + (");" if number + 1 == len(parameters) else ",")
        if len(line) + len(piece) > 98:
            lines.append(line.rstrip())
            line = "    "
        line += piece + ("" if piece.endswith(";") else " ")
    return "\n".join([*lines, line if parameters else f"{head}(void);"])
