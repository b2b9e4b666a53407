"""Writes ``tests/README.md``: which file tests which behaviour, by the first words of each.

    python -m tools.write_test_index
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
_HEAD = """# Which file tests what

The first words of each file of tests, written by `python -m tools.write_test_index`.
What the folders are for, and which test to write, is in [CONTRIBUTING.md](../CONTRIBUTING.md).
"""


def subject(path: Path) -> str:
    """What a file's docstring says first: its first paragraph, in one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if text is None:
        raise ValueError(f"{path} has no docstring that says what it tests")
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|").replace("``", "`")


def index() -> str:
    """The page."""
    parts = [_HEAD]
    for folder in sorted({path.parent for path in TESTS.glob("*/test_*.py")}):
        parts.append(f"\n## {folder.name}\n\n| file | what |\n| --- | --- |\n")
        parts += [f"| [{path.name}]({folder.name}/{path.name}) | {subject(path)} |\n"
                  for path in sorted(folder.glob("test_*.py"))]
    return "".join(parts)


def main() -> None:
    path = TESTS / "README.md"
    path.write_text(index(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
