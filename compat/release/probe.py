"""What a library gives, written down: its names, options, recorded outcomes and matrix answers.

    python -m compat.release.probe LIBRARY PART FILE

runs in an environment of a release's own and writes JSON. Nothing of maxjax is imported but where
it is the library.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import inspect
import json
import pkgutil
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from compat import evaluate, surface
from compat.chosen import rows
from compat.outcome import plain
from compat.spec import Case

# Modules for what a CPU does not have, and those that start something when they are imported.
LEFT_OUT = ("jax.tools", "jax.experimental.jax2tf", "jax.experimental.mosaic",
            "jax.experimental.pallas", "jax.experimental.colocated_python",
            "jax.experimental.key_reuse", "jax.experimental.rnn", "jax.collect_profile",
            "jax.extend.mlir")
MESSAGE = 400       # characters of an error's message that count

Found = dict[str, Any]


# --- names ----------------------------------------------------------------------------------------

def modules(library: str) -> Iterator[tuple[str, types.ModuleType]]:
    """The public modules that can be imported, by JAX's names."""
    package = importlib.import_module(library)
    yield "jax", package
    for info in pkgutil.walk_packages(package.__path__, f"{library}.", onerror=lambda name: None):
        name = "jax" + info.name.removeprefix(library)
        if any(part.startswith("_") for part in name.split(".")) or name.startswith(LEFT_OUT):
            continue
        with contextlib.suppress(Exception):
            yield name, importlib.import_module(info.name)


def names(library: str) -> Found:
    """Kind, parameters and docstring of each public name."""
    found: Found = {}
    for module, value in modules(library):
        found[module] = {"kind": "module"}
        for name in dir(value):
            if name.startswith("_"):
                continue
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                member = getattr(value, name)
                if isinstance(member, types.ModuleType):
                    continue
                home = str(getattr(member, "__module__", "") or "").partition(".")[0]
                if home in (library, "jax", "jaxlib") or not callable(member):
                    found[f"{module}.{name}"] = described(member)
    array = evaluate.Library(importlib.import_module(library)).numpy.zeros(1)
    for prefix, owner in ((surface.ARRAY, array), (surface.AT, array.at[0])):
        for name in dir(owner):
            if not name.startswith("_"):
                found[f"{prefix}.{name}"] = described(
                    inspect.getattr_static(type(owner), name, None))
    return found


def described(value: Any) -> Found:
    text = inspect.getdoc(value) or "" if callable(value) else ""
    return {"kind": kind_of(value), "parameters": surface.signature(value),
            "docstring": hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""}


def kind_of(value: Any) -> str:
    if isinstance(value, type):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "value"


def options(library: str) -> Found:
    """The options and their defaults."""
    return {name: plain(value)
            for name, value in importlib.import_module(library).config.values.items()}


# --- answers --------------------------------------------------------------------------------------

def recorded(library: str) -> Found:
    """What each line of tests/recorded gives."""
    from tests.recorded import outcomes

    found: Found = {}
    for name in outcomes.NAMES:
        lines = outcomes.read(name)
        try:
            given = outcomes.outcomes(library, name)
        except AssertionError as error:
            found[f"{name}: all lines"] = f"the process failed: {str(error)[-MESSAGE:]}"
            continue
        for number, (line, text) in enumerate(zip(lines, given, strict=True)):
            if not line.statement or text:
                found[f"{name} {number}: {line.code}"] = text
    return found


def answers(library: str) -> Found:
    """What each case of the matrix gives in eager mode, as ``Outcome.dumps`` writes it."""
    there = evaluate.Library(importlib.import_module(library))
    for name in evaluate.SEPARATE:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(f"{library}.{name}")
    return {title: base64.b64encode(evaluate.run(there, case, "eager").dumps()).decode()
            for title, case in eager_cases().items()}


def eager_cases() -> dict[str, Case]:
    """The matrix's cases that have an eager mode, by their name and title."""
    return {f"{name}: {case.title}": case
            for name, cases in rows().items() for case in cases if "eager" in case.modes}


PARTS: dict[str, Callable[[str], Found]] = {
    "names": names, "options": options, "recorded": recorded, "answers": answers}


def main() -> None:
    library, part, file = sys.argv[1:]
    Path(file).write_text(json.dumps(PARTS[part](library)))


if __name__ == "__main__":
    main()
