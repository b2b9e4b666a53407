"""What a type checker sees of maxjax in a user's program, held against what it sees of JAX."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import maxjax
from maxjax._ir import trace
from maxjax._runtime.array import ArrayImpl

# What they share is computed once.
pytestmark = [pytest.mark.extended, pytest.mark.xdist_group("user_types")]

PAGES = Path(__file__).parent / "user_types"
ROOT = Path(maxjax.__file__).parents[1]
PAGE = PAGES / "page.py"
MISSPELT = PAGES / "misspelt.py"
MISTAKEN = PAGES / "mistaken.py"

# Classes of the same use that the two call differently.
OTHER_NAMES = {"PjitFunction": "JitWrapped", "IndexUpdateHelper": "_IndexUpdateHelper",
               # JAX's one class for a program is also here the one that holds its constants.
               "ClosedJaxpr": "Jaxpr",
               # JAX imports it from a library without types.
               "tree_util.PyTreeDef?": "PyTreeDef"}

# A module that is hidden by its function of the same name, as in JAX.
HIDDEN = "maxjax.experimental.roofline.roofline"
# A module whose names are those of the registry of primitives.
BY_REGISTRY = "maxjax.extend.core.primitives"

MESSAGE = re.compile(r"(\w+)\.py:(\d+): (note|error): (.*)")
REVEALED = re.compile(r'Revealed type is "(.*)"')


def of_maxjax(source: str) -> str:
    """A page with maxjax in the place of JAX; every line stays where it was."""
    source = re.sub(r"^import jax$", "import maxjax as jax", source, flags=re.M)
    return re.sub(r"^(from|import) jax\b", r"\1 maxjax", source, flags=re.M)


def public_modules() -> list[str]:
    names = [info.name for info in pkgutil.walk_packages(maxjax.__path__, "maxjax.")]
    return ["maxjax", *[name for name in names if name != HIDDEN
                        if not any(part.startswith("_") for part in name.split("."))]]


def names_page(modules: list[str]) -> str:
    """A line for each public name of each module, those that come at their first use included."""
    lines = []
    for module in modules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = importlib.import_module(module)
        names = {*dir(found), *getattr(found, "_LATE", ()), *getattr(found, "_MODULES", ())}
        lines += [f"import {module}", *[f"{module}.{name}" for name in sorted(names)
                                        if not name.startswith("_") and name.isidentifier()]]
    return "\n".join(lines)


def absent_names_page(modules: list[str]) -> str:
    """A name that it does not have, asked of each module."""
    return "\n".join([*[f"import {module}" for module in modules],
                      *[f"{module}.no_such_name" for module in modules]])


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[int, str]]]:
    """What mypy says of each page: line and text. One run for all of them."""
    folder = tmp_path_factory.mktemp("user")
    modules = public_modules()
    pages = {
        "with_jax": PAGE.read_text(),
        "with_maxjax": of_maxjax(PAGE.read_text()),
        "misspelt": of_maxjax(MISSPELT.read_text()),
        "mistaken": of_maxjax(MISTAKEN.read_text()),
        "names": names_page(modules),
        "absent_names": absent_names_page(modules),
    }
    for name, source in pages.items():
        (folder / f"{name}.py").write_text(source)
    # As an installed package, so that py.typed is asked for; no setting of this project counts.
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir=/dev/null",
         *[f"{name}.py" for name in pages]],
        cwd=folder, env={"PATH": "", "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=300)
    print(run.stdout[-3000:], run.stderr)
    assert not run.stderr, run.stderr
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in pages}
    *lines, last = run.stdout.splitlines()
    assert last.startswith("Found "), run.stdout
    for line in lines:
        match = MESSAGE.fullmatch(line)
        assert match, line
        page, number, _, text = match.groups()
        found[page].append((int(number), text))
    return found


def revealed(messages: list[tuple[int, str]], library: str) -> dict[int, str]:
    """The types shown on each line, without the names of modules."""
    shown = {}
    for number, text in messages:
        match = REVEALED.fullmatch(text)
        assert match, f"line {number}: {text}"
        written = re.sub(rf"\b(?:{library}|with_{library})(?:\.\w+)*\.(\w+)", r"\1", match[1])
        for ours, theirs in OTHER_NAMES.items():
            written = re.sub(rf"(?<!\w){re.escape(ours)}", theirs, written)
        shown[number] = written
    return shown


def test_a_checker_infers_what_it_infers_for_jax(messages):
    theirs = revealed(messages["with_jax"], "jax")
    ours = revealed(messages["with_maxjax"], "maxjax")
    lines = PAGE.read_text().splitlines()
    assert len(theirs) == sum(line.startswith("reveal_type") for line in lines)
    assert {lines[n - 1]: ours.get(n) for n in theirs} == {
        lines[n - 1]: written for n, written in theirs.items()}


def test_every_misspelt_name_is_flagged(messages):
    lines = MISSPELT.read_text().splitlines()
    first = lines.index("# misspelt:") + 2
    flagged = {number for number, _ in messages["misspelt"]}
    assert not [lines[n - 1] for n in range(first, len(lines) + 1) if n not in flagged]
    assert not [lines[n - 1] for n in flagged if n < first]


def test_every_mistaken_argument_is_flagged(messages):
    lines = MISTAKEN.read_text().splitlines()
    wrong = range(lines.index("# mistaken:") + 2, len(lines) + 1)
    assert sorted({number for number, _ in messages["mistaken"]}) == list(wrong)


def test_every_module_is_without_names_that_it_does_not_have(messages):
    modules = public_modules()
    flagged = {number - len(modules) for number, _ in messages["absent_names"]}
    unflagged = {name for n, name in enumerate(modules, start=1) if n not in flagged}
    assert unflagged == {BY_REGISTRY}


def test_every_public_name_is_seen(messages):
    lines = names_page(public_modules()).splitlines()
    assert not [f"{lines[number - 1]}: {text}" for number, text in messages["names"]]


# --- the members of arrays ------------------------------------------------------------------------

# Members that the class defines in its own body.
DEFINED = {"aval", "dtype", "itemsize", "nbytes", "ndim", "shape", "size", "weak_type"}
# Members that only raise.
REFUSED = {"device_buffer", "device_buffers", "flat", "format"}


def declared_members() -> dict[str, list[str] | None]:
    """The members that type checkers read: for a method its parameters, for a property None."""
    stub = Path(inspect.getfile(trace)).with_name("array_members.pyi")
    body = next(node for node in ast.parse(stub.read_text()).body
                if isinstance(node, ast.ClassDef)).body
    members: dict[str, list[str] | None] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args,
                     *filter(None, [arguments.vararg]), *arguments.kwonlyargs]
            members[node.name] = None if node.decorator_list else [arg.arg for arg in every]
    return members


def test_declared_members_are_those_that_arrays_have():
    declared = declared_members()
    for name, parameters in declared.items():
        member = inspect.getattr_static(ArrayImpl, name)
        assert (parameters is None) == isinstance(member, property), name
        if parameters is not None and not name.startswith("__"):
            assert parameters == list(inspect.signature(member).parameters), name
    public = {name for name in dir(maxjax.Array) if not name.startswith("_")}
    assert public - set(declared) - REFUSED == DEFINED
