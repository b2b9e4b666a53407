"""Inputs that the tables on arrays share, and rows that take those that their text names."""

from __future__ import annotations

import ast
from typing import Any

from compat.spec import Case, Input, array, case, floats

NAN, INF = float("nan"), float("inf")

INPUTS: dict[str, Input] = {
    "a": floats(2, 3), "b": floats(3, 4), "v": floats(3), "w": floats(5), "m": floats(4, 4),
    "x3": floats(2, 3, 4), "x5": floats(2, 1, 3, 2, 2), "s": floats(), "z": floats(0, 3),
    "e": floats(0), "fl": array(0.5, "float32"), "one": array(1, "int32"),
    "i": array([[3, -1, 2], [0, 5, -7]], "int32"), "k": array([2, 0, -1], "int32"),
    "q": array([0, 2, 1, 1], "int32"), "p3": array([1, 0, 2], "int32"),
    "d": array([2, 1, 1, 3, 2, 2], "int32"), "far": array([1, 9, -9], "int32"),
    "u": array([3, 250, 0, 7], "uint8"), "i8": array([-100, 7, 100], "int8"),
    "t": array([True, False, True], "bool"),
    "T2": array([[True, False, True], [False, False, True]], "bool"),
    "c": floats(3, dtype="complex64"), "cm": floats(2, 3, dtype="complex64"),
    "h": floats(3, dtype="bfloat16"), "h16": floats(2, 3, dtype="float16"),
    "n": array([1, NAN, -INF, NAN, 2, -0.0, 0, 1], "float32"),
    "r": array([3, 1, 1, 2, 3, 0, 1], "float32"), "o": array([-2, 0, 0, 1, 4, 4], "float32"),
}


def rows(texts: str, **options: Any) -> list[Case]:
    """A case for each line: an expression of some of ``INPUTS``."""
    result: list[Case] = []
    for line in texts.strip().splitlines():
        text = line.strip()
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        used = {name: value for name, value in INPUTS.items() if name in names}
        result += case(text, **options, **used)
    return result
