"""Builds the documentation site: ``make docs``, or ``python -m tools.build_docs --mkdocs COMMAND``.

The pages of ``docs/`` are copied to ``build/docs``, with their links to files of the project turned
to the pages made of these. Pages are generated of the public names (signatures and docstrings), of
the options, of the known differences and of the examples. MkDocs, of an environment of its own,
makes the site of them, and fails on a link to a page or a heading that is not there.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import maxjax as jax
from compat import differences
from maxjax._base import variables
from tools import doc_pictures, reference, search_index

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
PAGES = BUILD / "docs"
# Files of the project that are pages of the site, or that pages are made of.
ELSEWHERE = {
    "README.md": "index.md", "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md",
    "compat/README.md": "compat.md", "compat/matrix.md": "matrix.md",
    "compat/known_differences.toml": "known_differences.md",
    "maxjax/_base/variables.py": "variables.md",
}
TITLES = {"contributing.md": "Contributing", "changelog.md": "Changelog",
          "security.md": "Security", "compat.md": "The comparison with JAX",
          "matrix.md": "The matrix", "known_differences.md": "Known differences",
          "variables.md": "Options and environment variables"}
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)#\s]+)((?:#[^)\s]*)?)\)")
_EXAMPLE = re.compile(r"(examples/(?!test_)\w+)\.py")
_PLACE = re.compile(r"<!-- picture: (\w+) -->")
_FENCED = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)
CSS = """\
.md-typeset table:not([class]) { font-size: .68rem; }
.md-typeset table:not([class]) th { min-width: 3rem; }
.md-typeset pre > code { font-size: .66rem; }
.md-typeset svg { max-width: 100%; height: auto; }
.md-typeset h3 code { word-break: break-word; }
.md-typeset td:first-child code { word-break: normal; }
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mkdocs", help="MkDocs' command; without it the pages are written alone")
    options = parser.parse_args()
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    (PAGES / "site.css").write_text(CSS)
    copy_pages()
    (PAGES / "known_differences.md").write_text(known_differences())
    (PAGES / "variables.md").write_text(options_and_variables())
    (PAGES / "matrix.md").write_text(MATRIX)
    matrix = (ROOT / "compat" / "matrix.html").read_text()
    (PAGES / "matrix_page.html").write_text(matrix.replace(
        "<!-- back -->", '<a href="index.html">maxjax</a>'))
    sections = {"examples": examples(), "reference": list(reference.write(PAGES / "reference")),
                "decisions": sorted((PAGES / "decisions").glob("*.md"))}
    config = (ROOT / "mkdocs.yml").read_text()
    for section, files in sections.items():
        place = re.search(rf"^( +)- (\w+: )?{section}$", config, re.MULTILINE)
        assert place is not None, section
        listed = "".join(f"\n{place[1]}  - {page.relative_to(PAGES)}" for page in files)
        config = config.replace(place[0], f"{place[1]}- {section.capitalize()}:{listed}")
    about = f"maxjax {jax.__version__}, follows JAX {jax.version.JAX_VERSION} · Apache-2.0"
    config = config.replace("copyright: Apache-2.0", f"copyright: {about}")
    (BUILD / "mkdocs.yml").write_text(config)
    if options.mkdocs is None:
        return 0
    made = subprocess.run([options.mkdocs, "build", "--strict", "--config-file",
                           str(BUILD / "mkdocs.yml")], check=False).returncode
    if made != 0:
        return made
    site = BUILD / "site"
    search_index.weigh(site / "search" / "search_index.json")
    wrong = search_index.check(site)
    print(*wrong, sep="\n", end="")
    return 1 if wrong else 0


# --- pages that are written -----------------------------------------------------------------------

def copy_pages() -> None:
    drawn = doc_pictures.pictures()
    for source in (*(ROOT / "docs").rglob("*.md"),
                   *(ROOT / name for name in ELSEWHERE
                     if name.endswith(".md") and name != "README.md")):
        name = source.relative_to(ROOT).as_posix()
        target = PAGES / ELSEWHERE.get(name, name.removeprefix("docs/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        text = with_links(source, target, source.read_text())
        target.write_text(_PLACE.sub(lambda place: drawn[place[1]](), text))


def with_links(source: Path, target: Path, text: str) -> str:
    """The text with the links of a file of the project as those of a page of the site."""
    def link(match: re.Match[str]) -> str:
        shown, path, anchor = match.groups()
        if "://" in path or path.startswith("mailto:"):
            return match[0]
        name = os.path.relpath(source.parent / path, ROOT)
        page = ELSEWHERE.get(name)
        if page is None and name.startswith("docs/") and name.endswith(".md"):
            page = name.removeprefix("docs/")
        if page is None and (example := _EXAMPLE.fullmatch(name)):
            page = f"{example[1]}.md"
        if page is None:      # a file that the site does not have
            return shown
        if shown.rpartition("/")[2] == path.rpartition("/")[2]:
            shown = _title(page)
        return f"[{shown}]({os.path.relpath(PAGES / page, target.parent)}{anchor})"

    return "".join(part if part.startswith("```") else _with_lists(_LINK.sub(link, part))
                   for part in _FENCED.split(text))


def _with_lists(text: str) -> str:
    """An empty line before each list, which the site's Markdown needs and others do not."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        begins = re.match(r"([-*]|\d+\.) ", line) is not None
        if begins and not inside and lines and lines[-1].strip():
            lines.append("")
        inside = begins or (inside and line[:1] in (" ", ""))
        lines.append(line)
    return "\n".join(lines)


def _title(page: str) -> str:
    """The heading of a page of the site."""
    if page in TITLES:
        return TITLES[page]
    return (ROOT / "docs" / page).read_text().partition("\n")[0].removeprefix("# ").strip()


# --- pages that are generated ---------------------------------------------------------------------

MATRIX = """\
# The matrix

Every public name of JAX beside maxjax's: signatures, values, dtypes, errors, in each tier.

[Open the matrix](matrix_page.html){ .md-button .md-button--primary }

What is compared, and how, is in [the suite's own page](compat.md); where the two differ and why, in
[known differences](known_differences.md).
"""


def known_differences() -> str:
    rows = differences.differences()
    lines = ["# Known differences", "", f"maxjax differs from JAX in {len(rows)} ways that the "
             "[comparison](compat.md) knows of. Each has a reason, and a row that has come to "
             "agree fails the comparison until it is removed.", ""]
    for row in rows:
        names = sorted({pattern.name for pattern in row.cases})
        shown = ", ".join(f"`{name}`" for name in names[:6]) + (", …" if len(names) > 6 else "")
        lines += [f"## {row.what[:1].upper()}{row.what[1:]}", "",
                  f"- **maxjax:** {row.maxjax}", f"- **JAX:** {row.jax}",
                  f"- **Why:** {row.reason}", *([f"- **Seen in:** {shown}"] if names else []), ""]
    return "\n".join(lines)


def options_and_variables() -> str:
    """One table of all options, as the code defines them."""
    lines = ["# Options and environment variables", "",
             "Generated from the code. An option is set by its environment variable, by "
             "`jax.config.update(name, value)`, and, where JAX has one, by a context manager. "
             "[Options](options.md) says more.", "", "## maxjax's own", "",
             "| variable | default | what it does |", "| --- | --- | --- |"]
    for name, (default, what) in variables.DESCRIBED.items():
        lines.append(f"| {_name(name)} | {default} | {_cell(what)} |")
    own = set(jax.config.own_names)
    for name in sorted(own):
        option = jax.config.option(name)
        lines.append(f"| {_name(f'MAXJAX_{name.upper()}')} | `{_shown(option.suffices[0])}` "
                     f"| {_cell(option.__doc__ or '')} |")
    acting: list[str] = []
    idle: list[str] = []
    for name in sorted(jax.config.names):
        option = jax.config.option(name)
        if name in own:
            continue
        row = f"| {_name(name)} | `{_shown(option.suffices[0])}` | {_cell(option.__doc__ or '')} |"
        if option.without_effect is None:
            acting.append(row)
        else:
            idle.append(f"| {_name(name)} | {_cell(option.without_effect)} |")
    lines += ["", f"## JAX's that act ({len(acting)})", "",
              "The environment variable is the name in capitals.", "",
              "| option | default | what it does |", "| --- | --- | --- |", *acting, "",
              f"## JAX's that have no effect here ({len(idle)})", "",
              "They are accepted; a value that asks for something is reported once.", "",
              "| option | why |", "| --- | --- |", *idle, ""]
    return "\n".join(lines)


def _name(name: str) -> str:
    """As code that a narrow screen breaks between words."""
    return f"<code>{name.replace('_', '_<wbr>')}</code>"


def _shown(value: object) -> str:
    value = getattr(value, "value", value)
    return "" if value is None else str(value).replace("|", "\\|") or "''"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def examples() -> list[Path]:
    """A page for each example: what its docstring says, and the code."""
    folder = PAGES / "examples"
    folder.mkdir()
    return [path for source in sorted((ROOT / "examples").glob("*.py"))
            if not source.name.startswith("test_") for path in _example(source, folder)]


def _example(source: Path, folder: Path) -> Iterator[Path]:
    code = source.read_text()
    doc = ast.get_docstring(ast.parse(code)) or ""
    title, _, rest = doc.partition("\n")
    body = reference.markdown(rest.strip("\n"))
    page = folder / f"{source.stem}.md"
    page.write_text(f"# {title.rstrip('.')}\n\n{body}\n\n`examples/{source.name}`:\n\n"
                    f"```python\n{code.rstrip()}\n```\n")
    yield page


if __name__ == "__main__":
    sys.exit(main())
