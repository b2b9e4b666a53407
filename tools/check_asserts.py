"""Checks that no check of maxjax's own is an `assert`, which `python -O` removes.

A condition that keeps compiled code from memory that is not its own, or a wrong result from going
on, has to hold in every process: it raises `maxjax._base.errors.InternalError`. In the private
rooms an `assert` only tells a type checker what is known: that something is not None, or of which
class it is. Public modules may refuse arguments by one where JAX does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.problems import report

# Functions of one argument that narrow its type.
NARROWING = {"isinstance", "issubclass", "is_linear"}


def narrows(test: ast.expr) -> bool:
    """Whether a condition is there for a type checker."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(map(narrows, test.values))
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot) and isinstance(
            test.comparators[0], ast.Constant) and test.comparators[0].value is None
    return isinstance(test, ast.Call) and isinstance(
        test.func, ast.Name) and test.func.id in NARROWING


def checks(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The asserts that check something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and not narrows(node.test):
            yield node.lineno, ast.unparse(node.test)


def check(root: Path) -> list[str]:
    """What there is to report, in order of file and line."""
    return [f"{file.relative_to(root).as_posix()}:{line}: `python -O` does not check {what}: "
            "raise an InternalError"
            for file in sorted((root / "maxjax").glob("_*/**/*.py"))
            for line, what in sorted(checks(ast.parse(file.read_text(encoding="utf-8"))))]


def main(arguments: Sequence[str] | None = None) -> int:
    return report(arguments, __doc__, check, "no check is an assert")


if __name__ == "__main__":
    sys.exit(main())
