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
from tools import reference_groups

# What an entry of a section begins with: the names of arguments, of exceptions, of fields.
_NAMES = re.compile(r"[`\w.*]+(, [`\w.*]+)*$")

# Whose functions are also methods of arrays, or names of other modules.
_LENDERS = ("jax.numpy", "jax.nn", "jax.nn.initializers")

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
        entries = [name for name in sorted(set(modules[module]), key=_alphabetical)
                   if _has_entry(name)]
        if not entries:
            continue
        page = folder / f"{module}.md"
        page.write_text(_page(module, entries))
        pages.append((module, page, len(entries)))
    rows = [f"| [{module}]({page.name}) | {count} | {_summary(module)} |"
            for module, page, count in pages]
    index.write_text("# Reference\n\nEvery public name, under JAX's name for it; `maxjax` has each "
                     "in the same place. Signatures and texts are those of the code, and every "
                     "example runs as a test. The search field above finds names, with their "
                     "module or without.\n\n"
                     "| module | names | |\n| --- | ---: | --- |\n" + "\n".join(rows) + "\n")
    yield index
    for _, page, _ in pages:
        yield page


def found(name: str) -> Any:
    """The object of a public name.

    Raises:
      AttributeError: maxjax does not have it.
    """
    with warnings.catch_warnings():      # of deprecated names, which are listed too
        warnings.simplefilter("ignore", DeprecationWarning)
        return _reached(importlib.import_module("maxjax"), name)


def see_also(text: str) -> list[str]:
    """The names in the paragraph `See also:` of a docstring."""
    paragraph = re.search(r"^See also: ((?:.+\n?)+)", text, re.MULTILINE)
    return re.findall(r"``([\w.]+)``", paragraph[1]) if paragraph else []


def resolved(name: str, module: str) -> str | None:
    """The full name that a docstring of a module means: one of the module, of what it lies in, or
    of those whose functions other modules have under their own names."""
    if name.startswith("jnp."):
        name = f"jax.numpy.{name.removeprefix('jnp.')}"
    parts = module.split(".")
    rooms = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    for room in ("",) if name.startswith("jax.") else (*rooms, *_LENDERS):
        full = f"{room}.{name}".removeprefix(".")
        try:
            found(full)
        except AttributeError:
            continue
        return full
    return None


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


def docstring(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__doc__ or ""
    module = getattr(value, "__module__", None) or type(value).__module__
    if module.startswith(("numpy", "ml_dtypes", "builtins", "typing", "collections")):
        return ""      # NumPy's classes and texts are not ours to print
    return inspect.getdoc(value) or ""


# What the first words of a module's text would say, where it has none of its own.
INTRODUCTIONS = {
    "jax": "Transformations of functions (`jit`, `grad`, `vmap` and their kin), arrays and "
           "devices, and options.",
    "jax.core": "Jaxprs, tracers and types: what programs that look into functions need.",
    "jax.Array": "The methods, attributes and operators of arrays.",
    "jax.checkpoint_policies": "Which values `jax.checkpoint` keeps.",
}
# Pages of much-used modules come before others in the search, arrays' methods after functions.
BOOSTS = {"jax": 3.0, "jax.numpy": 4.0, "jax.lax": 2.0, "jax.random": 2.5, "jax.nn": 2.0,
          "jax.tree": 1.5, "jax.sharding": 1.5, "jax.Array": 0.5}


def _page(module: str, names: list[str]) -> str:
    """A module's page: summary tables by group, then an entry for each name."""
    groups = reference_groups.grouped(module, names, found)
    parts = [f"---\nsearch:\n  boost: {BOOSTS.get(module, 1.0)}\n---\n",
             f"# {module}\n\n{_intro(module)}"]
    for title, members in groups.items():
        rows = [f"| [`{_short(name, module)}`](#{name}) | {_first_sentence(name)} |"
                for name in members]
        parts += [f"## {title}\n\n" if title else "",
                  "| name | |\n| --- | --- |\n" + "\n".join(rows) + "\n\n"]
    parts += ["## In detail\n\n", "\n\n".join(_entry(name, module) for name in names), "\n"]
    return "".join(parts)


def _alphabetical(name: str) -> tuple[bool, str, str]:
    """Names with underscores before them last, capitals as small letters."""
    last = name.rpartition(".")[2]
    return last.startswith("_"), last.lower(), name


def _short(name: str, module: str) -> str:
    return name.removeprefix(f"{module}.")


def _intro(module: str) -> str:
    if module in INTRODUCTIONS:
        return INTRODUCTIONS[module] + "\n\n"
    try:
        text = markdown(docstring(found(module)).partition("\n\n")[0]).removeprefix(f"{module}: ")
        return text[:1].upper() + text[1:] + "\n\n"
    except AttributeError:
        return ""


def _summary(module: str) -> str:
    return _cell(_intro(module).replace("\n", " ").strip())


def _first_sentence(name: str) -> str:
    """The first sentence of a name's text, for a cell of a table."""
    value = found(name)
    if isinstance(value, (int, float, str, tuple)):
        return f"`{value!r}`"
    text = markdown(docstring(value).partition("\n\n")[0]).replace("\n", " ")
    sentence = re.match(r".*?(?:[.:](?= |$)|$)", text)
    return _cell((sentence[0] if sentence else text).rstrip(".:"))


def _cell(text: str) -> str:
    """A text for a cell of a table: bars in code need no backslash, others do."""
    return "".join(part if part.startswith("`") else part.replace("|", "\\|")
                   for part in re.split(r"(`[^`]*`)", text))


def _has_entry(name: str) -> bool:
    try:
        return not isinstance(found(name), ModuleType)
    except AttributeError:
        return False


def _entry(name: str, module: str) -> str:
    """A heading with the name's one anchor, its signature, and its text."""
    value = found(name)
    short = _short(name, module)
    signature = _signature(value)
    shown = f"```python\n{short}{signature}\n```\n\n" if signature else ""
    if isinstance(value, (int, float, str, tuple)):
        shown = f"`{value!r}`\n\n"
    heading = f"{module}.{short}".replace("_", r"\_")
    # As HTML, since Markdown takes double underscores in an attribute for emphasis.
    return (f'<h3 id="{name}" markdown="1">{heading}</h3>\n\n'
            f"{shown}{markdown(_linked(docstring(value), module))}").rstrip()


def _linked(text: str, module: str) -> str:
    """A docstring whose `See also:` has links to the entries of those names that have one."""
    def link(name: re.Match[str]) -> str:
        full = resolved(name[1], module)
        if full is None or full not in surface.names() or not _has_entry(full):
            return name[0]
        page = surface.module_of(full)
        return f"[`{name[1]}`]({'' if page == module else f'{page}.md'}#{full})"

    def links(paragraph: re.Match[str]) -> str:
        names = re.sub(r"``([\w.]+)``", link, paragraph[2].replace("\n", " ").rstrip())
        return f"**See also:** {names}\n"

    return re.sub(r"^(See also: )((?:.+\n?)+)", links, text, flags=re.MULTILINE)


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
                head, colon, rest = row.strip().partition(":")
                if indent <= margin and colon and _NAMES.match(head):
                    out.append(f"- `{head.replace('`', '')}`:{rest}")
                elif row.strip() and section[1] in ("Returns", "Yields"):
                    out.append(row.strip())
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
