"""Checks who imports whom in maxjax.

The package is built in rooms, each standing on those before it (ROOMS). This reads every file
with `ast`, runs none of it, and reports

- an import of a room further down the list, also from inside a function, and a private folder
  that is not in the list at all;
- `max` imported outside maxjax/_max, and JAX imported anywhere;
- an import inside a function, but for those in LATE_IMPORTS and lazy public modules;
- an outside package that is not a dependency, and one that has to be brought in late but is not;
- modules that import one another in a circle;
- a lock, or something with a lock inside, that is not made by maxjax/_base/threads.py, which
  renews locks in a forked child, and a handler of forks that is registered elsewhere;
- a list of one slot that serves as a variable, or as a hook that another module fills: a type
  checker sees through an attribute of a declared object, or a protocol, and not through those.

Imports under `if TYPE_CHECKING:` are for the type checker and do not count.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.problems import report

PACKAGE = "maxjax"
PUBLIC = "public modules"

# Each room may import from itself and from those before it.
ROOMS = (
    "_base",
    "_distributed",
    "_ir",
    "_primitives",
    "_transforms",
    "_higher_order",
    "_sharding",
    "_max",
    "_stablehlo",
    "_runtime",
    PUBLIC,
    "_internals",
)

# Imports inside functions are a sign of something on the wrong floor, but for these.
LATE_IMPORTS: Mapping[str, str] = {
    "maxjax/_max/graph/session.py": (
        "`import max` takes 0.4 s: it waits until something first compiles"),
    "maxjax/_base/absl_flags.py": "absl is for who has flags of it: no dependency",
    "maxjax/_base/lazy.py": "SciPy is brought in by the first operation that needs it",
    "maxjax/_runtime/pending.py": "few programs are wanted as HLO, and its reader takes 8 ms",
    "maxjax/__main__.py": "the script's own modules are imported when it runs",
}

# What pyproject.toml names; `mojo`, the compiler, comes with `max`.
DEPENDENCIES = {"max", "ml_dtypes", "mojo", "numpy", "opt_einsum", "optree", "rich", "scipy",
                "threadpoolctl"}
# Extras of pyproject.toml, and the one module that needs them.
EXTRAS = {"tensorstore": "maxjax/experimental/array_serialization/serialization.py",
          "mpi4py": "maxjax/_base/lazy.py",
          # Not named there: pictures have its colours where it happens to be installed.
          "matplotlib": "maxjax/_base/lazy.py"}
FORBIDDEN = {"jax": "maxjax stands on its own", "jaxlib": "maxjax stands on its own"}
ONLY_IN = {"max": "_max", "mojo": "_max"}
# What would slow `import maxjax` down; `maxjax._base.lazy` brings it in at first use.
NEVER_AT_IMPORT = {"max", "opt_einsum", "scipy", "threadpoolctl"}

# Calls that import the module they are given; those of the second line do so at first use.
IMPORTING_FUNCTIONS = {"import_module", "__import__"}
LAZY_IMPORTING_FUNCTIONS = {"LazyModule"}

# What has a lock inside, by modules ("*": all there is), and what is told of forks.
LOCKS: Mapping[str, frozenset[str]] = {
    "threading": frozenset({"Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore",
                            "Barrier", "Timer"}),
    "_thread": frozenset({"*"}),
    "queue": frozenset({"*"}),
    "concurrent": frozenset({"*"}),
    "multiprocessing": frozenset({"*"}),
    "functools": frozenset({"cached_property"}),
    "os": frozenset({"register_at_fork"}),
}
LOCKS_MADE_IN: Mapping[str, str] = {
    "maxjax/_base/threads.py": "where they are made",
    "maxjax/_max/graph/worker.py": "a process of its own, which forks no child that runs Python",
}


@dataclass(frozen=True)
class Import:
    """One imported module, as a statement names it."""

    target: str  # the dotted name of the module, or of the module and what is taken from it
    line: int
    function: str | None  # the function that it stands in, None at the top of the file


@dataclass(frozen=True)
class Problem:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def module_name(path: Path, root: Path) -> str:
    """`root/maxjax/lax/__init__.py` is `maxjax.lax`."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room of a maxjax module: its private folder, or PUBLIC."""
    parts = module.split(".")
    private = len(parts) > 1 and parts[1].startswith("_") and not parts[1].endswith("__")
    return parts[1] if private else PUBLIC


def is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def imports_of(tree: ast.AST, package: str) -> Iterator[Import]:
    """Every import of a file, `importlib.import_module("name")` included.

    Args:
      tree: the parsed file.
      package: the package that relative imports start from.
    """

    def resolve(statement: ast.ImportFrom) -> str:
        if not statement.level:
            return statement.module or ""
        base = package.split(".")
        base = base[: len(base) - (statement.level - 1)]
        return ".".join([*base, statement.module] if statement.module else base)

    def visit(node: ast.AST, function: str | None) -> Iterator[Import]:
        if isinstance(node, ast.If) and is_type_checking(node.test):
            for statement in node.orelse:
                yield from visit(statement, function)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, function)
        elif isinstance(node, ast.ImportFrom):
            module = resolve(node)
            for alias in node.names:
                name = module if alias.name == "*" else f"{module}.{alias.name}"
                yield Import(name, node.lineno, function)
        elif isinstance(node, ast.Call) and node.args:
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            first = node.args[0]
            if name in IMPORTING_FUNCTIONS | LAZY_IMPORTING_FUNCTIONS:
                # A computed name has no room to check, but is an import all the same.
                target = first.value if isinstance(first, ast.Constant) else ""
                late = name if name in LAZY_IMPORTING_FUNCTIONS else function
                yield Import(str(target), node.lineno, late)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        elif isinstance(node, ast.Lambda):
            function = function or "<lambda>"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, function)

    yield from visit(tree, None)


def known_module(target: str, modules: Mapping[str, object]) -> str | None:
    """The module that a dotted name leads to: `maxjax._ir.types.Var` is in `maxjax._ir.types`."""
    while target and target not in modules:
        target = target.rpartition(".")[0]
    return target or None


def circles(edges: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    """The groups of modules that import one another (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for target in edges.get(module, ()):
            if target not in order:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            start = stack.index(module)
            group = stack[start:]
            del stack[start:]
            if len(group) > 1:
                found.append(sorted(group))

    for module in edges:
        if module not in order:
            visit(module)
    return found


def check_outside(path: str, room: str, found: Import) -> Iterator[Problem]:
    """The rules for an import from outside maxjax."""
    top = found.target.partition(".")[0]
    if not top or top in sys.stdlib_module_names:
        return
    if top in FORBIDDEN:
        yield Problem(path, found.line, f"imports {found.target}: {FORBIDDEN[top]}")
    elif EXTRAS.get(top) == path:
        return
    elif top not in DEPENDENCIES:
        yield Problem(path, found.line, f"imports {top}, which pyproject.toml does not depend on")
    elif ONLY_IN.get(top, room) != room:
        yield Problem(path, found.line, f"imports {top}: only {PACKAGE}/{ONLY_IN[top]} may")
    elif top in NEVER_AT_IMPORT and found.function is None and room != ONLY_IN.get(top):
        message = f"imports {top} at once, which slows `import {PACKAGE}`: bring it in lazily"
        yield Problem(path, found.line, message)


def check_inside(path: str, room: str, found: Import) -> Iterator[Problem]:
    """The rules for an import of one maxjax module by another."""
    target_room = room_of(found.target)
    if target_room in ROOMS and ROOMS.index(target_room) > ROOMS.index(room):
        message = f"imports {found.target}: {target_room} comes after {room}"
        yield Problem(path, found.line, message)


def locks_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every use of a name of LOCKS, under whatever name its module was imported."""
    modules: dict[str, str] = {}
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                modules[alias.asname or top] = top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            top = (node.module or "").partition(".")[0]
            for alias in node.names:
                if LOCKS.get(top, frozenset()) & {alias.name, "*"}:
                    yield f"{node.module}.{alias.name}", node.lineno
    if LOCKS.keys().isdisjoint(modules.values()):
        return
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id, "")
            if LOCKS.get(module, frozenset()) & {node.attr, "*"}:
                yield f"{module}.{node.attr}", node.lineno


def slots_of(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every list that is a variable: something is stored at 0 in a list that begins with one
    element, or in a list of another module; or 0 is all that is read of a module's list."""

    def lists(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.List):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        yield target.id, len(node.value.elts)

    nodes = list(ast.walk(tree))
    single = {name for name, length in lists(nodes) if length == 1}
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if isinstance(node, ast.Import) and alias.name.partition(".")[0] == PACKAGE
        or isinstance(node, ast.ImportFrom) and (
            node.level or (node.module or "").partition(".")[0] == PACKAGE)
    }
    slots = [node for node in nodes if isinstance(node, ast.Subscript)
             and isinstance(node.slice, ast.Constant) and node.slice.value == 0]
    bases = {id(node.value) for node in slots}
    read_whole = {node.id for node in nodes if isinstance(node, ast.Name)
                  and isinstance(node.ctx, ast.Load) and id(node) not in bases}
    hooks = {name for name, length in lists(tree.body) if length < 2} - read_whole
    for node in slots:
        base, stored = node.value, isinstance(node.ctx, ast.Store)
        outer = base.value if isinstance(base, ast.Attribute) else base
        name = base.id if isinstance(base, ast.Name) else ""
        if name in hooks or stored and (
                name in single or isinstance(outer, ast.Name) and outer.id in imported):
            yield ast.unparse(base), node.lineno


def is_lazy_public_module(room: str, function: str) -> bool:
    """A public module may bring in its parts by the module function `__getattr__` (PEP 562)."""
    return room == PUBLIC and function == "__getattr__"


def check(root: Path, late_imports: Mapping[str, str] = LATE_IMPORTS) -> list[Problem]:
    """The problems of the package in `root/maxjax`, in order of file and line."""
    files = {module_name(file, root): file for file in sorted((root / PACKAGE).rglob("*.py"))}
    problems: list[Problem] = []
    edges: dict[str, dict[str, int]] = {module: {} for module in files}
    for module, file in files.items():
        path = file.relative_to(root).as_posix()
        room = room_of(module)
        if room not in ROOMS:
            message = f"{room} is no room of the design: {', '.join(ROOMS[:-1])}"
            problems.append(Problem(path, 1, message))
            continue
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        used_exception = False
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=path)
        if path not in LOCKS_MADE_IN:
            problems.extend(
                Problem(path, line, f"uses {name}, which a forked child cannot rely on: see "
                                    f"{PACKAGE}/_base/threads.py")
                for name, line in locks_of(tree))
        problems.extend(
            Problem(path, line, f"keeps a variable in the list {name}: make it an attribute")
            for name, line in slots_of(tree))
        for found in imports_of(tree, package):
            if found.target.partition(".")[0] == PACKAGE:
                problems.extend(check_inside(path, room, found))
                target = known_module(found.target, files)
                if target and target != module and found.function is None:
                    edges[module].setdefault(target, found.line)
            else:
                problems.extend(check_outside(path, room, found))
            if found.function is None:
                continue
            if path in late_imports:
                used_exception = True
            elif not is_lazy_public_module(room, found.function):
                message = f"imports {found.target or 'a module'} inside {found.function}()"
                problems.append(Problem(path, found.line, message))
        if path in late_imports and not used_exception:
            message = "is listed in LATE_IMPORTS, but imports nothing inside a function"
            problems.append(Problem(path, 1, message))
    for group in circles(edges):
        first = group[0]
        line = min(line for target, line in edges[first].items() if target in group)
        path = files[first].relative_to(root).as_posix()
        problems.append(Problem(path, line, f"import one another: {', '.join(group)}"))
    return sorted(set(problems), key=lambda problem: (problem.path, problem.line, problem.message))


def main(arguments: Sequence[str] | None = None) -> int:
    return report(arguments, __doc__, check, "imports go down")


if __name__ == "__main__":
    sys.exit(main())
