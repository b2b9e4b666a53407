"""References in documents and docstrings exist: paths, links and names."""

from __future__ import annotations

import ast
import fnmatch
import importlib
import re

import pytest

from tests import ROOT
from tests.support.elementwise import SPECIAL
from tools import write_test_index

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "compat" / "README.md",
                ROOT / "tests" / "README.md"])

# Files that a run writes, or that a page tells the reader to create.
MADE = re.compile(r"^(\.|build/|dist/)")
ROOMS = ("maxjax", "tests", "compat", "benchmarks", "examples", "tools", "docs")
SUFFIXES = "md|py|mojo|toml|txt|html|sharding"
PATH = re.compile(rf"^[\w.*<>-]+(?:/[\w.*<>-]+)*(?:/|\.(?:{SUFFIXES}))$")
NAME = re.compile(r"\bmaxjax(?:\.\w+)+")
# Placeholders in texts about names.
EXAMPLES = {"root/maxjax/lax/__init__.py", "maxjax._ir.types.Var"}

FILES = [*(file for file in ROOT.iterdir() if file.is_file() or file.name in ROOMS),
         *(file for room in ROOMS for file in (ROOT / room).rglob("*")
           if "__pycache__" not in file.parts)]
ENDINGS = {"/".join(parts[start:]) for file in FILES
           for parts in [file.relative_to(ROOT).parts] for start in range(len(parts))}
SOURCES = sorted(file for file in FILES if file.suffix == ".py" and file.parent != ROOT)


def paths_in(text):
    """The paths in backquotes in a text: with a known suffix, or folders of the package."""
    for quoted in re.findall(r"`+([^`\n]+)`+", text):
        if (PATH.match(quoted) and not MADE.match(quoted) and "<" not in quoted
                and not NAME.fullmatch(quoted)):
            yield quoted


def exists(path):
    """Whether a file or folder of the project has this path, or one that ends in it."""
    path = path.rstrip("/")
    return path in ENDINGS if "*" not in path else any(
        fnmatch.fnmatch(known, path) for known in ENDINGS)


def resolves(name):
    """Whether a dotted name is a module or an attribute of one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def docstrings(file):
    nodes = [ast.parse(file.read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield ast.get_docstring(node) or ""
        # Expressions, most of a tree, have none.
        nodes += [x for x in ast.iter_child_nodes(node) if not isinstance(x, ast.expr)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_point_at_what_exists(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    unquoted = re.sub(r"`[^`]*`", "", prose)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", unquoted) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [path for path in paths_in(prose) if not exists(path)]
    missing += [name for name in NAME.findall(page.read_text()) if not resolves(name)]
    assert not missing


def test_docstrings_point_at_what_exists():
    missing = []
    for file in SOURCES:
        for text in docstrings(file):
            wrong = [path for path in paths_in(text) if not exists(path)]
            wrong += [name for name in re.findall(rf"`({NAME.pattern})`", text)
                      if not resolves(name)]
            missing += [f"{file.relative_to(ROOT)}: {name}" for name in wrong
                        if name not in EXAMPLES]
    assert not missing


def test_index_lists_every_page():
    index = (ROOT / "docs" / "index.md").read_text()
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if f"]({page})" not in index and page != "index.md"] == []


def test_what_is_missing_is_seen():
    assert list(paths_in("see `docs/none.md` and ``_ir/`` and `x/y` and `a.b`")) == [
        "docs/none.md", "_ir/"]
    assert not exists("docs/none.md") and exists("_ir/") and exists("kernels/*.mojo")
    assert resolves("maxjax.numpy.sin") and not resolves("maxjax._ir.none")


def test_samples_are_the_code():
    """The blocks of the page about operations stand in the files that it names before them."""
    page = (ROOT / "docs" / "add_an_op.md").read_text()
    blocks = list(re.finditer(r"^```\w+\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    assert len(blocks) == 5
    for block in blocks:
        named = [path for path in paths_in(re.sub(r"^```.*?^```", "", page[:block.start()],
                                                  flags=re.DOTALL | re.MULTILINE))
                 if (ROOT / path).is_file()]
        assert any(block.group(1) in (ROOT / path).read_text() for path in named), block.group(1)


def test_special_functions_are_measured():
    """docs/special.md has a line of every function that the table of operations has ranges of."""
    page = (ROOT / "docs" / "special.md").read_text()
    measured = [name for name, row in SPECIAL.items() if row.ranges]
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == measured


def test_the_index_of_tests_is_of_these_files():
    assert (ROOT / "tests" / "README.md").read_text(encoding="utf-8") == write_test_index.index(), \
        "run `python -m tools.write_test_index`"
