"""Checks that the structure gets no worse: counts have ceilings, which only go down.

    python -m tools.check_ratchet [--lower] [ROOT]

The ceilings stand in `tools/ceilings.toml`. A count above its ceiling is an error, with the files
or functions that it counts. One below asks for its ceiling to be lowered, which `--lower` does.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import check_blocks, check_layers
from tools.count_structure import (
    FOLDERS,
    ROOT,
    body_lines,
    docstring_lines,
    functions,
    parameters,
    says_any,
)

LINES_OF_A_FILE = 600  # with docstrings, in which the reference is written, and without them
LINES_OF_A_FUNCTION = 60  # of its body, likewise
COMPLEXITY = 30  # McCabe's, as ruff counts it

CEILINGS = "tools/ceilings.toml"


@dataclass(frozen=True)
class Count:
    """What was counted, and what makes it up, the worst last."""

    value: float
    items: Sequence[str] = ()


def long_files(sources: Mapping[Path, str], trees: Mapping[Path, ast.Module]) -> Count:
    """Files of many lines, without the docstrings of those that have a tree."""
    found = sorted((text.count("\n") - (docstring_lines(trees[path]) if path in trees else 0),
                    path.as_posix()) for path, text in sources.items())
    items = [f"{path}: {lines} lines" for lines, path in found if lines > LINES_OF_A_FILE]
    return Count(len(items), items)


def long_functions(trees: Mapping[Path, ast.Module]) -> Count:
    found = sorted((body_lines(function), f"{path.as_posix()}:{function.lineno}: {function.name}")
                   for path, tree in trees.items() for function in functions(tree))
    items = [f"{name}, {lines} lines" for lines, name in found if lines > LINES_OF_A_FUNCTION]
    return Count(len(items), items)


def complex_functions(root: Path) -> Count:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=C901",
               f"--config=lint.mccabe.max-complexity={COMPLEXITY}", "--output-format=json",
               "maxjax"]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if answer.returncode not in (0, 1):
        raise SystemExit(f"ruff cannot count complexity: {answer.stderr.strip()}")
    items = [f"{Path(found['filename']).relative_to(root.resolve()).as_posix()}:"
             f"{found['location']['row']}: {found['message']}"
             for found in json.loads(answer.stdout)]
    return Count(len(items), items)


def vague_parameters(root: Path, trees: Mapping[Path, ast.Module], folder: str) -> Count:
    """The percentage of a folder's parameters whose type says `Any`."""
    inside = [(path, parameter) for path, tree in trees.items()
              if path.is_relative_to(Path("maxjax") / folder)
              for function in functions(tree) for parameter in parameters(function)]
    vague = [f"{path.as_posix()}:{parameter.lineno}: {parameter.arg}" for path, parameter in inside
             if parameter.annotation is not None and says_any(parameter.annotation)]
    return Count(round(100 * len(vague) / max(len(inside), 1), 1), vague)


def upward_types(root: Path, trees: Mapping[Path, ast.Module]) -> Count:
    """Imports under `if TYPE_CHECKING:` of a room that comes later (`check_layers.ROOMS`)."""
    items = []
    for path, tree in trees.items():
        module = check_layers.module_name(path, Path())
        room = check_layers.room_of(module)
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and check_layers.is_type_checking(node.test):
                body = ast.Module(node.body, [])
                items += [f"{path.as_posix()}:{found.line}: {found.target}"
                          for found in check_layers.imports_of(body, package)
                          for _ in check_layers.check_inside(path.as_posix(), room, found)]
    return Count(len(items), items)


def counts(root: Path) -> dict[str, Count]:
    """All counts, by the names that their ceilings have."""
    python = {file.relative_to(root): file.read_text(encoding="utf-8")
              for file in sorted((root / "maxjax").rglob("*.py"))}
    mojo = {file.relative_to(root): file.read_text(encoding="utf-8")
            for file in sorted((root / "maxjax").rglob("*.mojo"))}
    trees = {path: ast.parse(text) for path, text in python.items()}
    blocks = check_blocks.check(root)
    found = {
        "files_over_600_lines": long_files(python, trees),
        "files_over_600_lines_with_docstrings": long_files(python, {}),
        "mojo_files_over_600_lines": long_files(mojo, trees),
        "functions_over_60_lines": long_functions(trees),
        "complexity_over_30": complex_functions(root),
        "primitives_named_outside_their_blocks": Count(len(blocks), blocks),
        "types_from_a_later_room": upward_types(root, trees),
    }
    for folder in FOLDERS:
        found[f"percent_any.{folder}"] = vague_parameters(root, trees, folder)
    return found


def read_ceilings(text: str) -> dict[str, float]:
    """The ceilings of a file, by their dotted names."""
    flat: dict[str, float] = {}
    for name, value in tomllib.loads(text).items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": number for inner, number in value.items()}
        else:
            flat[name] = value
    return flat


def lowered(text: str, found: Mapping[str, Count]) -> str:
    """The ceilings' file with each ceiling at its count, where that is lower."""
    table, lines = "", []
    for line in text.splitlines():
        if header := re.fullmatch(r"\[(\w+)\]", line):
            table = header[1] + "."
        if setting := re.match(r"(\w+) = ([\d.]+)", line):
            count = found.get(table + setting[1])
            if count is not None and count.value < float(setting[2]):
                line = f"{setting[1]} = {count.value}" + line[setting.end():]
        lines.append(line)
    return "\n".join(lines) + "\n"


def compare(found: Mapping[str, Count], ceilings: Mapping[str, float]
            ) -> tuple[list[str], list[str]]:
    """What is above its ceiling or has none, and what is below it: a line each, and the items."""
    above, below = [], []
    for name in sorted(found.keys() | ceilings.keys()):
        if name not in found or name not in ceilings:
            missing = "has no ceiling" if name in found else "nothing is counted"
            above.append(f"{name}: {missing}")
            continue
        count, ceiling = found[name], ceilings[name]
        if count.value > ceiling:
            above.append(f"{name}: {count.value}, where {ceiling} is the most")
            above += [f"    {item}" for item in count.items]
        elif count.value < ceiling:
            below.append(f"{name}: {count.value}: lower its ceiling from {ceiling} (--lower)")
    return above, below


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="holds maxjax/")
    parser.add_argument("--lower", action="store_true", help="write lower ceilings")
    options = parser.parse_args(arguments)
    found, file = counts(options.root), options.root / CEILINGS
    text = file.read_text(encoding="utf-8")
    if options.lower:
        text = lowered(text, found)
        file.write_text(text, encoding="utf-8")
    above, below = compare(found, read_ceilings(text))
    print("\n".join([*above, *below]) or "maxjax/: every count is at its ceiling")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
