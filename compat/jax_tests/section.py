"""The matrix's section on JAX's own tests, which is replaced by itself."""

from __future__ import annotations

import html
import re
from collections import Counter
from pathlib import Path

from compat import ROOT, state
from compat.jax_tests.records import STATES, Verdict

FOLDER = ROOT / "compat"
BEGIN, END = "<!-- JAX's own tests -->", "<!-- end of JAX's own tests -->"
_SECTION = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)
# Where a matrix without the section gets it.
_BEFORE = {".md": "## Known differences\n",
           ".html": '<h2 id="differences-head">Known differences</h2>\n'}
INTRODUCTION = (
    "JAX's tests, unchanged, with maxjax under JAX's public names, interpreted, and the examples "
    "of its docstrings that pass on JAX itself. Internal are tests that look at JAX's inside: "
    "private objects, the text of HLO, counts of compilations. Differences are listed below.")


def _rows(verdict: Verdict) -> list[tuple[str, list[int]]]:
    rows = [(file, [count[state] for state in STATES])
            for file, count in sorted(verdict.counts.items())]
    return [*rows, ("all", [sum(column) for column in zip(*(counts for _, counts in rows))])]


def _reasons(verdict: Verdict) -> list[tuple[str, str, int]]:
    """Kind, reason and number of the failures that are known."""
    counts: Counter[tuple[str, str]] = Counter()
    for known, count in verdict.explained.items():
        counts[known.kind, known.reason] += count
    return [(kind, reason, count) for (kind, reason), count in counts.most_common() if count]


def _made() -> str:
    made = state.provenance()
    return (f"Run on {made['day']}, from commit {made['commit']}, with {made['versions']}, on "
            f"{made['machine']}.")


def markdown(verdict: Verdict) -> str:
    lines = [BEGIN, "## JAX's own tests", "", INTRODUCTION, _made(), "",
             f"| file | {' | '.join(STATES)} |", "| --- |" + " --: |" * len(STATES)]
    lines += [f"| {file} | {' | '.join(map(str, counts))} |" for file, counts in _rows(verdict)]
    lines += [""] + [f"- {kind}, {count}: {reason}" for kind, reason, count in _reasons(verdict)]
    return "\n".join([*lines, END])


def page(verdict: Verdict) -> str:
    head = "".join(f"<th>{state}</th>" for state in ("file", *STATES))
    body = "\n".join(
        f'<tr><th scope="row">{html.escape(file)}</th>'
        + "".join(f'<td class="use">{count}</td>' for count in counts) + "</tr>"
        for file, counts in _rows(verdict))
    reasons = "\n".join(f"<li>{kind} <b>{count}</b>: {html.escape(reason)}</li>"
                        for kind, reason, count in _reasons(verdict))
    return (f"{BEGIN}\n<h2 id=\"jax-tests-head\">JAX's own tests</h2>\n"
            f"<p>{html.escape(INTRODUCTION)} {_made()}</p>\n"
            f'<section id="jax-tests"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>'
            f"</table>\n<ul>{reasons}</ul></section>\n{END}")


def placed(text: str, section: str, suffix: str) -> str:
    """A matrix with the section in it, instead of the one that it has."""
    if _SECTION.search(text):
        return _SECTION.sub(lambda _: section, text, count=1)
    return text.replace(_BEFORE[suffix], f"{section}\n\n{_BEFORE[suffix]}", 1)


def kept(path: Path, text: str) -> str:
    """A new matrix with the section that the file has."""
    found = _SECTION.search(path.read_text()) if path.exists() else None
    return placed(text, found.group(), path.suffix) if found else text


def write(verdict: Verdict, folder: Path = FOLDER) -> None:
    """Writes the section into matrix.md and matrix.html."""
    for path, section in ((folder / "matrix.md", markdown(verdict)),
                          (folder / "matrix.html", page(verdict))):
        path.write_text(placed(path.read_text(), section, path.suffix))
