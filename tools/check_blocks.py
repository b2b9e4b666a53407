"""Checks that what is known of a primitive stands on the primitive.

A primitive is one block; a table elsewhere that is keyed by primitives' names, or a comparison with
one, is a second place that the next primitive forgets. This reads every file of maxjax with `ast`,
runs none of it, and reports, outside of the files that define primitives and of the backends' own
vocabularies,

- a comparison of some `primitive.name` (equal, or contained in), and a look-up by it, also where
  the name was first given to a variable of the function;
- a table, a set or a list at the top of a module most of whose strings are primitives' names.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from tools.problems import report

# Backends name what they compute with in words of their own, which are often primitives' names.
DIALECTS = ("maxjax/_max/", "maxjax/_stablehlo/", "maxjax/export/_")
# Files with tables of names that are no primitives' though they look like them.
EXCUSED: Mapping[str, str] = {
    "maxjax/_primitives/complex_values.py": "the NumPy rules of the blocks, for complex numbers",
    "maxjax/_sharding/cost_model.py": "kinds of steps between layouts",
    "maxjax/_sharding/projection.py": "ways in which parts combine",
    "maxjax/lax/_operands.py": "functions of lax, in JAX's messages",
    "maxjax/numpy/_array_methods.py": "Python's operators",
    "maxjax/numpy/_at.py": "methods of `.at[]`",
}
# So many strings that are primitives' names make a table.
LEAST = 3


def defined_names(tree: ast.Module) -> Iterator[str]:
    """The primitives that a file defines: the first arguments of calls assigned to ``..._p``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target, arguments = node.targets[0], node.value.args
            if (isinstance(target, ast.Name) and target.id.endswith("_p") and arguments
                    and isinstance(arguments[0], ast.Constant)
                    and isinstance(arguments[0].value, str)):
                yield arguments[0].value


@functools.cache
def primitive_names(root: Path) -> frozenset[str]:
    """The names of all primitives."""
    return frozenset(name for file in sorted((root / "maxjax").rglob("*.py"))
                     for name in defined_names(ast.parse(file.read_text(encoding="utf-8"))))


def is_primitive_name(node: ast.expr, variables: Collection[str] = ()) -> bool:
    """``primitive.name``, also ``eqn.primitive.name``, or one of the variables that hold it."""
    if isinstance(node, ast.NamedExpr):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id in variables
    return isinstance(node, ast.Attribute) and node.attr == "name" and (
        isinstance(node.value, ast.Name) and node.value.id.endswith("primitive")
        or isinstance(node.value, ast.Attribute) and node.value.attr.endswith("primitive"))


def holding_variables(scope: ast.AST) -> set[str]:
    """The variables of a function, or of a module's top, that are assigned a primitive's name."""
    found = set()
    for node in ast.walk(scope):
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            # Of `name, params = ...` each part is assigned by itself.
            pairs = (zip(target.elts, node.value.elts, strict=False)
                     if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                     else [(target, node.value)])
            found |= {part.id for part, value in pairs
                      if isinstance(part, ast.Name) and is_primitive_name(value)}
    return found


def strings_of(node: ast.expr) -> list[str]:
    """The keys of a table, the items of a set, list or tuple, the words of a split string."""
    if isinstance(node, ast.Dict):
        parts: Sequence[ast.expr | None] = node.keys
    elif isinstance(node, (ast.Set, ast.List, ast.Tuple)):
        parts = node.elts
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name == "split" and isinstance(node.func, ast.Attribute):
            value = node.func.value
            return value.value.split() if isinstance(value, ast.Constant) and isinstance(
                value.value, str) else []
        if name in ("frozenset", "set", "dict", "fromkeys") and node.args:
            return strings_of(node.args[0])
        return []
    else:
        return []
    return [part.value for part in parts
            if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def comparisons(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Comparisons with primitives' names, and look-ups by them; each once, whatever its scope."""
    scopes = [(tree, frozenset[str]())] + [
        (node, frozenset(holding_variables(node))) for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    found = {(node.lineno, what) for scope, variables in scopes for node in ast.walk(scope)
             if (what := breach(node, variables)) and isinstance(node, ast.expr)}
    yield from sorted(found)


def breach(node: ast.AST, variables: Collection[str]) -> str:
    """What a node does with a primitive's name that only its block may; empty for nothing."""
    if isinstance(node, ast.Compare) and any(
            is_primitive_name(side, variables) for side in [node.left, *node.comparators]):
        return "compares a primitive's name"
    if isinstance(node, ast.Subscript) and is_primitive_name(node.slice, variables) or (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get" and node.args
            and is_primitive_name(node.args[0], variables)):
        return "looks something up by a primitive's name"
    return ""


def tables(tree: ast.Module, names: Collection[str]) -> Iterator[tuple[int, str]]:
    """Tables, at the top of a module, of primitives' names."""
    for statement in tree.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if isinstance(target, ast.Name) and target.id == "__all__":
                continue
            words = strings_of(statement.value)
            known = [word for word in words if word in names]
            if len(known) >= LEAST and 2 * len(known) > len(words):
                yield statement.lineno, f"is a table of primitives' names: {', '.join(known[:4])}"


def check(root: Path) -> list[str]:
    """What there is to report, in order of file and line."""
    names = primitive_names(root)
    found = []
    for file in sorted((root / "maxjax").rglob("*.py")):
        path = file.relative_to(root).as_posix()
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if path.startswith(DIALECTS) or any(defined_names(tree)):
            continue
        problems = {*comparisons(tree), *(() if path in EXCUSED else tables(tree, names))}
        found += [f"{path}:{line}: {what}" for line, what in sorted(problems)]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    return report(arguments, __doc__, check, "primitives' blocks are closed")


if __name__ == "__main__":
    sys.exit(main())
