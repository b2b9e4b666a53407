"""The reference: a page for each public module, of its names' signatures and docstrings."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from compat import surface

# maxjax's own names, which the surface of JAX does not have.
OWN = {
    "debug": ("explain", "graph", "statistics", "Explanation", "Statistics"),
    "sharding": ("explain", "auto"),
    "extend.mojo": ("register_elementwise", "register_composition"),
}
_SECTION = re.compile(r"^(Args|Arguments|Raises|Returns|Yields|Attributes|Example|Examples):$")


def write(folder: Path) -> Iterator[Path]:
    """Writes the pages, and says which they are."""
    folder.mkdir(parents=True)
    modules: dict[str, list[str]] = {}
    for name in surface.names():
        module = surface.module_of(name)
        if name.startswith("jax.") and "[" not in name:
            modules.setdefault(module, []).append(name)
    for short, names in OWN.items():
        modules.setdefault(f"jax.{short}", []).extend(f"jax.{short}.{name}" for name in names)
    index = folder / "index.md"
    pages: list[tuple[str, Path, int]] = []
    for module in sorted(modules):
        found = (_entry(name, module) for name in sorted(set(modules[module])))
        entries = [entry for entry in found if entry is not None]
        if not entries:
            continue
        page = folder / f"{module}.md"
        page.write_text(f"# {module}\n\n{_intro(module)}" + "\n\n".join(entries) + "\n")
        pages.append((module, page, len(entries)))
    rows = [f"| [{module}]({page.name}) | {count} | {_summary(module)} |"
            for module, page, count in pages]
    index.write_text("# Reference\n\nEvery public name, under JAX's name for it; `maxjax` has each "
                     "in the same place. Signatures and texts are those of the code, and every "
                     "example runs as a test. The search field above finds names.\n\n"
                     "| module | names | |\n| --- | ---: | --- |\n" + "\n".join(rows) + "\n")
    yield index
    for _, page, _ in pages:
        yield page


def _found(name: str) -> Any:
    """The object of a public name.

    Raises:
      AttributeError: maxjax does not have it.
    """
    with warnings.catch_warnings():      # of deprecated names, which are listed too
        warnings.simplefilter("ignore", DeprecationWarning)
        return _reached(importlib.import_module("maxjax"), name)


def _reached(value: Any, name: str) -> Any:
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError:
            if not isinstance(value, ModuleType):
                raise
            try:
                value = importlib.import_module(f"{value.__name__}.{part}")
            except ModuleNotFoundError as error:
                raise AttributeError(part) from error
    return value


def _doc(value: Any) -> str:
    module = getattr(value, "__module__", None) or type(value).__module__
    if module.startswith(("numpy", "ml_dtypes", "builtins", "typing", "collections")):
        return ""      # NumPy's classes and texts are not ours to print
    return inspect.getdoc(value) or ""


def _intro(module: str) -> str:
    try:
        return markdown(_doc(_found(module)).partition("\n\n")[0]) + "\n\n"
    except AttributeError:
        return ""


def _summary(module: str) -> str:
    return _intro(module).replace("\n", " ").strip().replace("|", "\\|")


def _entry(name: str, module: str) -> str | None:
    try:
        value = _found(name)
    except AttributeError:
        return None
    if isinstance(value, ModuleType):
        return None
    short = name.removeprefix(f"{module}.")
    text = markdown(_doc(value))
    signature = _signature(value)
    shown = f"```python\n{short}{signature}\n```\n\n" if signature else ""
    return f"### {short} {{ #{name} }}\n\n{shown}{text}".rstrip()


@functools.cache
def _defaults() -> re.Pattern[str]:
    return re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>|<(function|class) '?([\w.<>]+)'?[^>]*>")


def _signature(value: Any) -> str:
    if not callable(value):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = signature.replace(
        parameters=[parameter.replace(annotation=inspect.Parameter.empty)
                    for parameter in signature.parameters.values()],
        return_annotation=inspect.Signature.empty)
    return _defaults().sub(lambda match: match[2] or "...", str(plain))


def markdown(text: str) -> str:
    """A docstring as Markdown: sections as lists, examples as code, names in one pair of ticks."""
    out: list[str] = []
    lines = text.replace("``", "`").split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        section = _SECTION.match(line.strip())
        if line.lstrip().startswith(">>>"):
            block = []
            while number < len(lines) and lines[number].strip():
                block.append(lines[number])
                number += 1
            margin = min(len(row) - len(row.lstrip()) for row in block)
            out += ["", "```pycon", *(row[margin:] for row in block), "```", ""]
            continue
        if section is not None:
            out += ["", f"**{section[1]}**", ""]
            number += 1
            margin = 0
            while number < len(lines) and (not lines[number].strip() or lines[number][0] == " "):
                row = lines[number]
                indent = len(row) - len(row.lstrip())
                margin = margin or indent
                if row.strip() and indent <= margin and ":" in row:
                    head, _, rest = row.strip().partition(":")
                    out.append(f"- `{head.replace('`', '')}`:{rest}")
                elif row.strip():
                    out.append(f"  {row.strip()}")
                number += 1
            out.append("")
            continue
        if line.startswith("    ") and line.strip():
            out.append(line)
        else:
            if re.match(r"- ", line) and out and out[-1].strip() and not out[-1].startswith("- "):
                out.append("")
            out.append(line.replace("<", "&lt;") if "`" not in line else line)
        number += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n").rstrip()
