"""Counts what a review of the structure counts: functions, files, types, repeated idioms.

    python tools/count_structure.py [ROOT]

`docs/decisions/0007-structure-in-counts.md` has these figures before and after the redesign. All of
them follow from the source, with `ast` or regular expressions; nothing is run.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The subsystems whose parameters are to have types that say something.
FOLDERS = ("_base", "_ir", "_primitives", "_transforms", "_higher_order", "_sharding", "_runtime",
           "_max")

IDIOMS = {
    "isinstance(..., Var)": r"isinstance\([^()]*(?:\([^()]*\))?[^()]*, Var\)",
    "loops over reversed equations":
        r"for \w+ in reversed\(.*eqns|for \w+ in reversed\(.*equations",
    "functions `read`": r"def read\(",
    "lines with num_consts, num_carry, *_nconsts":
        r"(?m)^.*(?:num_consts|num_carry|_nconsts).*$",
    "call_factors": r"call_factors",
    "base_trace": r"base_trace",
    "global statements": r"(?m)^\s+global ",
    "register_at_fork": r"register_at_fork",
    "`ct`, `cts`": r"\bcts?\b",
    "noqa": r"# noqa",
    "type: ignore": r"# type: ignore",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def body_lines(function: Function) -> int:
    """Lines of a function's body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def docstring_lines(tree: ast.AST) -> int:
    """Lines of all docstrings of a file."""
    texts = [node.body[0] for node in ast.walk(tree)
             if isinstance(node, ast.Module | ast.ClassDef | Function)
             and ast.get_docstring(node, clean=False) is not None]
    return sum((text.end_lineno or 0) - text.lineno + 1 for text in texts)


def says_any(annotation: ast.expr) -> bool:
    """Whether `Any` stands in an annotation."""
    return any(isinstance(node, ast.Name) and node.id == "Any"
               or isinstance(node, ast.Attribute) and node.attr == "Any"
               or isinstance(node, ast.Constant) and "Any" in str(node.value)
               for node in ast.walk(annotation))


def parameters(function: Function) -> list[ast.arg]:
    taken = function.args
    every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
    return [x for x in every if x is not None and x.arg not in ("self", "cls")]


def late_imports(tree: ast.AST) -> int:
    """Imports of the package's own modules inside functions."""
    return sum(isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maxjax")
               for function in functions(tree) for node in ast.walk(function))


def one_slot_lists(tree: ast.Module) -> int:
    return sum(isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.List)
               and len(node.value.elts) == 1 for node in tree.body)


def report(root: Path) -> Iterator[str]:
    """The lines to print."""
    package = root / "maxjax"
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lengths = sorted(body_lines(x) for tree in trees.values() for x in functions(tree))
    yield (f"functions: {len(lengths)}, median body {statistics.median(lengths)} lines, "
           f"{sum(x > 50 for x in lengths)} over 50, {sum(x > 80 for x in lengths)} over 80")
    lines = [text.count("\n") for text in texts.values()]
    yield (f"files: {len(lines)}, median {statistics.median(lines)} lines, "
           f"{sum(x > 600 for x in lines)} over 600, longest {max(lines)}")
    for name, pattern in IDIOMS.items():
        counts = [len(re.findall(pattern, text)) for text in texts.values()]
        yield f"{name}: {sum(counts)} in {sum(map(bool, counts))} files"
    yield f"lists of one slot: {sum(map(one_slot_lists, trees.values()))}"
    yield f"late imports of own modules: {sum(map(late_imports, trees.values()))}"
    for folder in FOLDERS:
        found = [x for path, tree in trees.items() if path.is_relative_to(package / folder)
                 for function in functions(tree) for x in parameters(function)]
        bare = sum(x.annotation is None for x in found)
        vague = sum(x.annotation is not None and says_any(x.annotation) for x in found)
        yield (f"{folder}: {len(found)} parameters, {100 * bare / len(found):.1f}% without a type, "
               f"{100 * vague / len(found):.1f}% with Any")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    for line in report(parser.parse_args().root):
        print(line)


if __name__ == "__main__":
    main()
