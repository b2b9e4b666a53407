"""Says what changes between two releases of JAX, and what maxjax gives today.

    python -m compat.release NEW                  # from the release that maxjax follows
    python -m compat.release NEW --old OLD

Each release is installed in an environment of its own below build/releases, where a probe writes
down its names, options, recorded outcomes and matrix answers; maxjax's are written down in this
one. The report is build/releases/OLD-to-NEW.md; docs/releases.md tells what to do with it. What was
written down of a release is kept: only maxjax is asked anew.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from compat import ROOT, followed, surface
from compat.outcome import Outcome, difference, shorten
from compat.release.probe import PARTS, Found, eager_cases
from tests.recorded.test_recorded import same

FOLDER = ROOT / "build" / "releases"
# What the probe imports besides JAX and what JAX brings along.
NEEDED = ("opt_einsum", "ml_dtypes", "scipy", "rich", "pytest>=8,<9.2")
SHOWN = 300     # of each list; the rest are counted


# --- what each gives ------------------------------------------------------------------------------

def environment_of(release: str) -> Path:
    """The Python of an environment with a release of JAX, made where there is none."""
    folder = FOLDER / f"venv-{release}"
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet",
                        "--disable-pip-version-check", f"jax=={release}", *NEEDED], check=True)
        ready.touch()
    return python


def given(python: Path, library: str, part: str, file: Path) -> Found:
    """What a library gives, asked unless it was kept."""
    if not file.exists():
        print(f"asking {file.stem}", file=sys.stderr, flush=True)
        partial = file.with_suffix(".part")
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
        subprocess.run([str(python), "-m", "compat.release.probe", library, part, str(partial)],
                       cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        partial.rename(file)
    return json.loads(file.read_text())


def of_release(release: str, part: str) -> Found:
    return given(environment_of(release), "jax", part, FOLDER / f"{release} {part}.json")


def of_maxjax(part: str) -> Found:
    file = FOLDER / f"maxjax {part}.json"
    file.unlink(missing_ok=True)
    return given(Path(sys.executable), "maxjax", part, file)


# --- what changes ---------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Change:
    """What ``name`` was in the old release, is in the new one, and is in maxjax.

    Attributes:
      done: maxjax gives what the new release does.
    """

    name: str
    old: str
    new: str
    ours: str
    done: bool

    @property
    def weight(self) -> float:
        """How much the name is used, as far as somebody counted."""
        public = self.name.partition(":")[0]
        known = surface.names().get(public)
        return known.weight if known is not None else 0.0


Section = tuple[str, list[Change]]


def changes(old: Found, new: Found, ours: Found, agree: Callable[[str, Any, Any], bool],
            say: Callable[[Any], str]) -> list[Change]:
    """Names whose values in two releases do not agree."""
    found = []
    for name in old.keys() | new.keys():
        before, after, mine = (given.get(name) for given in (old, new, ours))
        if not agree(name, before, after):
            found.append(Change(name, *map(say, (before, after, mine)),
                                done=agree(name, mine, after)))
    return sorted(found, key=lambda change: (change.done, -change.weight, change.name))


def said(value: Any) -> str:
    return "-" if value is None else shorten(str(value), 200)


def of_names(old: Found, new: Found, ours: Found) -> list[Section]:
    """Modules and names that come and go, parameters and docstrings that change."""
    both = old.keys() & new.keys()

    def field(found: Found, key: str, of: Iterable[str]) -> Found:
        return {name: found[name].get(key) for name in of if name in found}

    def equal(name: str, a: Any, b: Any) -> bool:
        return a == b

    def there(found: Found, wanted: bool) -> Found:
        return {name: value["kind"] for name, value in found.items()
                if (value["kind"] == "module") == wanted}

    def presence(name: str, a: Any, b: Any) -> bool:
        return (a is None) == (b is None)

    def parameters(value: Any) -> str:
        return said(None if value is None else f"({', '.join(value)})")

    return [
        ("Modules", changes(*(there(f, True) for f in (old, new, ours)), presence, said)),
        ("Names", changes(*(there(f, False) for f in (old, new, ours)), presence, said)),
        ("Kinds", changes(*(field(f, "kind", both) for f in (old, new, ours)), equal, said)),
        ("Parameters and defaults", changes(
            *(field(f, "parameters", both) for f in (old, new, ours)), equal, parameters)),
        ("Docstrings of JAX's (maxjax has its own)", changes(
            *(field(f, "docstring", both) for f in (old, new, ours)), equal, said)),
    ]


def of_answers(old: Found, new: Found, ours: Found) -> list[Section]:
    cases = eager_cases()
    read = functools.cache(lambda text: Outcome.loads(base64.b64decode(text)))

    def agree(name: str, a: Any, b: Any) -> bool:
        if a is None or b is None:
            return a is b
        case, mine, theirs = cases[name], read(a), read(b)
        return difference(mine, theirs, "eager", case.tolerance, case.signed_zeros) is None

    def words(name: str, a: Any, b: Any) -> bool:
        if a is None or b is None:
            return True
        first, second = read(a), read(b)
        if not first.error or not second.error:
            return True
        return same(str(first.error[1]), str(second.error[1]))

    def show(text: Any) -> str:
        return "-" if text is None else shorten(str(read(text)), 200)

    return [("Answers of the matrix's cases", changes(old, new, ours, agree, show)),
            ("Words of errors", changes(old, new, ours, words, show))]


def of_texts(title: str) -> Callable[[Found, Found, Found], list[Section]]:
    def sections(old: Found, new: Found, ours: Found) -> list[Section]:
        return [(title, changes(old, new, ours, lambda name, a, b: a == b or (
            a is not None and b is not None and same(b, a)), said))]
    return sections


SECTIONS: dict[str, Callable[[Found, Found, Found], list[Section]]] = {
    "names": of_names, "options": of_texts("Options and their defaults"),
    "recorded": of_texts("Recorded outcomes"), "answers": of_answers}
assert SECTIONS.keys() == PARTS.keys()


# --- the report -----------------------------------------------------------------------------------

def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def written(old: str, new: str, sections: Sequence[Section]) -> str:
    """The report in Markdown: a summary, then what maxjax does not give yet, most used first."""
    lines = [f"# JAX {old} to {new}", "",
             "What changes between the two releases, and what maxjax gives today. The most used "
             "names come first; what maxjax gives already is counted, not listed.", "",
             "| | changes | maxjax gives the new one |", "| --- | ---: | ---: |"]
    for title, found in sections:
        lines.append(f"| {title} | {len(found)} | {sum(change.done for change in found)} |")
    for title, found in sections:
        left = [change for change in found if not change.done]
        lines += ["", f"## {title}", "", f"{len(left)} to do."]
        if left:
            lines += ["", f"| name | used | {old} | {new} | maxjax |",
                      "| --- | ---: | --- | --- | --- |"]
        lines += [f"| `{cell(change.name)}` | {change.weight:.0f} | {cell(change.old)} | "
                  f"{cell(change.new)} | {cell(change.ours)} |" for change in left[:SHOWN]]
        if len(left) > SHOWN:
            lines += ["", f"And {len(left) - SHOWN} more."]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compat.release", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("new", help="a release of JAX, such as 0.12.0.1")
    parser.add_argument("--old", default=followed(), help="default: %(default)s")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    sections: list[Section] = []
    for part in options.parts:
        old, new = (of_release(release, part) for release in (options.old, options.new))
        sections += SECTIONS[part](old, new, of_maxjax(part))
    file = FOLDER / f"{options.old}-to-{options.new}.md"
    file.write_text(written(options.old, options.new, sections))
    print(f"{file.relative_to(ROOT)}: {sum(len(found) for _, found in sections)} changes, "
          f"{sum(not change.done for _, found in sections for change in found)} to do")
    return 0
