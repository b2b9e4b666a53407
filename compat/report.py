"""The matrix: compat/matrix.md and compat/matrix.html, from what the state knows."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from compat import ROOT, chosen, differences, followed, surface
from compat.jax_tests import section
from compat.scripts_runner import Record
from compat.spec import MODES
from compat.state import State, Summary

FOLDER = ROOT / "compat"
TIERS = ("0", "1", "graph")
COLUMNS = {"0": MODES, "1": MODES, "graph": ("jit", "grad")}
STATES = {
    "pass": "agrees with JAX in both tiers",
    "known": "agrees, but for known differences",
    "fail": "differs",
    "untested": "has no cases",
    "missing": "maxjax does not have it",
    "excused": "out of scope, with a reason",
}
# Of a script: its name, its state, JAX's seconds, maxjax's, what is to say of it.
ScriptRow = tuple[str, str, str, str, str]
# What coverage is counted over.
GROUPS: dict[str, tuple[str, ...] | None] = {
    "jax.numpy and jax.lax": ("jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax",
                              "jax.lax.linalg"),
    "jax.numpy": ("jax.numpy", "jax.numpy.linalg", "jax.numpy.fft"),
    "jax.lax": ("jax.lax", "jax.lax.linalg"),
    "jax.Array": ("jax.Array",),
    "jax.random": ("jax.random",),
    "trees": ("jax.tree", "jax.tree_util", "jax.flatten_util"),
    "all names": None,
}


@dataclasses.dataclass
class Row:
    """A name in the matrix; ``tiers`` has the summaries that there are."""

    name: str
    module: str
    kind: str
    weight: float
    state: str
    reason: str
    api: str | None
    tiers: dict[str, Summary]


@dataclasses.dataclass
class Coverage:
    """How many of a group's names in scope pass; the weighted coverage counts them by their use.

    Attributes:
      strict: the weighted coverage if names out of scope counted as missing.
    """

    group: str
    passing: int
    total: int
    excused: int
    weighted: float
    strict: float

    @property
    def plain(self) -> float:
        return self.passing / max(1, self.total)


@dataclasses.dataclass
class Matrix:
    rows: list[Row]
    scripts: list[Any]
    coverage: list[Coverage]
    problems: list[str]      # that are not a name's
    complete: bool
    provenance: dict[str, Counter[tuple[str, ...]]]  # by column, how many names were made how


def state_of(name: str, api: Summary, tiers: dict[str, Summary]) -> tuple[str, str]:
    """The state of a name and, where it is no pass, the reason in short."""
    excused = surface.excused()
    if name in excused:
        verdict = _verdict(name, {"problem": None}, tiers) if tiers else ("excused", "")
        return verdict if verdict[0] == "fail" else ("excused", excused[name])
    return _verdict(name, api, tiers)


def _verdict(name: str, api: Summary, tiers: dict[str, Summary]) -> tuple[str, str]:
    problem = api.get("problem")
    if problem and "does not have it" in problem:
        return "missing", problem
    if "0" not in tiers:
        if problem:
            return "fail", problem
        described = surface.names().get(name)
        removed = described is not None and described.kind == "removed"
        return ("pass", "") if removed else ("untested", "no cases")
    if problem:
        return "fail", f"signature: {problem}"
    for tier in ("0", "1"):
        summary = tiers.get(tier)
        if summary is None:
            return "untested", f"tier {tier} has not run"
        if "crash" in summary:
            return "fail", f"tier {tier}: {summary['crash']}"
        for shown in summary["problems"]:
            if not shown["known"]:
                return "fail", f"tier {tier}, {shown['mode']}: {shown['problem']}"
    if not any(sum(counts) for counts in tiers["0"]["modes"].values()):
        return "untested", "no case applies"
    for tier in ("0", "1"):
        for shown in tiers[tier]["problems"]:
            return "known", shown["known"]
    return "pass", ""


def coverage_of(rows: Sequence[Row]) -> list[Coverage]:
    found = []
    for group, modules in GROUPS.items():
        part = [row for row in rows if modules is None or row.module in modules]
        scope = [row for row in part if row.state != "excused"]
        good = [row for row in scope if row.state in ("pass", "known")]
        weight = sum(row.weight for row in good)
        found.append(Coverage(
            group, len(good), len(scope), len(part) - len(scope),
            weight / (sum(row.weight for row in scope) or 1.0),
            weight / (sum(row.weight for row in part) or 1.0)))
    return found


def build(state: State, scripts: Sequence[Any] = ()) -> Matrix:
    """The matrix of what the state holds."""
    tables = chosen.rows()
    summaries = {tier: state.all(tier) for tier in ("api", *TIERS)}
    rows = []
    for name in dict.fromkeys([*surface.names(), *tables]):
        described = surface.names().get(name)
        tiers = {tier: summaries[tier][name] for tier in TIERS
                 if name in summaries[tier] and name in tables}
        api = summaries["api"].get(name, {})
        verdict, reason = state_of(name, api, tiers)
        rows.append(Row(name, surface.module_of(name), described.kind if described else "",
                        described.weight if described else 0.0, verdict, reason,
                        api.get("problem"), tiers))
    problems = [f"known_differences.toml: no case matches {pattern}" for row in
                differences.differences() for pattern in row.cases
                if not any(pattern.names(case.name) and pattern.matches(case, mode, tier)
                           for cases in tables.values() for case in cases
                           for mode in case.modes for tier in TIERS)]
    problems += [f"graph backend: {row.name}, {shown['mode']}: {shown['problem']}"
                 for row in rows for shown in row.tiers.get("graph", {}).get("problems", [])
                 if not shown["known"]]
    complete = all(name in summaries[tier] for tier in ("0", "1") for name in tables)
    made = {tier: Counter(tuple(summary["made"].values()) for summary in summaries[tier].values()
                          if "made" in summary)
            for tier in ("api", *TIERS)}
    return Matrix(rows, list(scripts), coverage_of(rows), problems, complete, made)


def provenance_lines(matrix: Matrix) -> list[str]:
    """For each column and each way it was made: how many names, when, from what, with what."""
    return [f"{'names and signatures' if tier == 'api' else tier_name(tier)}: {count} names on "
            f"{day}, from commit {commit}, with {versions}, on {machine}"
            for tier, made in matrix.provenance.items()
            for (commit, day, versions, machine), count in made.most_common()]


def status(matrix: Matrix) -> int:
    """1 if a name differs from JAX unexpectedly, a known difference is gone, or a script fails."""
    wrong = any(row.state == "fail" for row in matrix.rows)
    scripts = any(record.state == "fail" for record in matrix.scripts)
    return int(wrong or scripts or bool(matrix.problems))


def headline(matrix: Matrix) -> str:
    lines = [f"{c.group:24} weighted {c.weighted:7.2%}   {c.passing} of {c.total} names "
             f"({c.plain:.2%})   {c.excused} out of scope" for c in matrix.coverage]
    counts = Counter(row.state for row in matrix.rows)
    lines.append(", ".join(f"{counts[state]} {state}" for state in STATES if counts[state]))
    if matrix.scripts:
        states = Counter(record.state for record in matrix.scripts)
        lines.append("scripts: " + ", ".join(f"{n} {s}" for s, n in sorted(states.items())))
    return "\n".join([*lines, *matrix.problems])


def write(matrix: Matrix, folder: Path = FOLDER) -> None:
    """Writes both forms; what they say of JAX's own tests stays, and of scripts if none ran."""
    old = folder / "matrix.md"
    known = [] if matrix.scripts or not old.exists() else _script_rows(old.read_text())
    for path, text in ((folder / "matrix.md", markdown(matrix)),
                       (folder / "matrix.html", page(matrix))):
        path.write_text(section.kept(path, text))
    if known:
        _place_scripts(known, folder)


def write_libraries(page: Path = FOLDER / "matrix.html") -> None:
    """Puts the present table of the libraries' own tests into the page as it stands."""
    page.write_text(re.sub(r'<h2 id="libraries-head">.*?</section>', lambda _: libraries(),
                           page.read_text(), count=1, flags=re.DOTALL))


def write_scripts(records: Sequence[Record], folder: Path = FOLDER) -> None:
    """Puts scripts that have run into both forms as they stand; the other rows stay.

    A script that could not run here does not replace the row of one that has run elsewhere.
    """
    rows = {row[0]: row for row in _script_rows((folder / "matrix.md").read_text())}
    rows |= {record.name: _script_row(record) for record in records
             if record.state != "skipped" or record.name not in rows}
    _place_scripts([rows[name] for name in sorted(rows)], folder)


def _place_scripts(ordered: Sequence[ScriptRow], folder: Path) -> None:
    text, page = folder / "matrix.md", folder / "matrix.html"
    part = "\n".join([SCRIPTS_HEAD, "", *_script_lines(ordered)])
    text.write_text(re.sub(rf"{SCRIPTS_HEAD}\n.*?(?=\n\n(?:## |<!--))", lambda _: part,
                           text.read_text(), count=1, flags=re.DOTALL))
    page.write_text(re.sub(r'(<section id="scripts">\n).*?(\n</section>)',
                           lambda found: found[1] + script_table(ordered) + found[2],
                           page.read_text(), count=1, flags=re.DOTALL))


# --- Markdown -------------------------------------------------------------------------------------

MARKS = {"pass": "✓", "known": "≈", "fail": "✗", "untested": "?", "missing": "–", "excused": "·"}


def markdown(matrix: Matrix) -> str:
    lines = [f"# maxjax against JAX {followed()}", "",
             "Made by `python -m compat`, each name and tier as it last ran; `matrix.html` shows"
             " the cases.", "",
             "| | weighted by use | names | of | out of scope |", "| --- | --: | --: | --: | --: |"]
    lines += [f"| {c.group} | {c.weighted:.2%} | {c.passing} ({c.plain:.2%}) | {c.total} | "
              f"{c.excused} |" for c in matrix.coverage]
    lines += ["", "Passing means: the name exists, with JAX's signature, and all of its cases agree"
              " with JAX in both tiers, but for the known differences (≈).", ""]
    bad = [row for row in matrix.rows if row.state in ("fail", "missing", "untested")]
    if bad:
        lines += ["## What does not pass", "",
                  "| name | use | state | |", "| --- | --: | --- | --- |"]
        lines += [f"| {row.name} | {row.weight:.0f} | {row.state} | {_cell(row.reason)} |"
                  for row in bad]
        lines.append("")
    lines += [SCRIPTS_HEAD, "", *(
        _script_lines(map(_script_row, matrix.scripts)) if matrix.scripts else ["Not run."]), ""]
    lines += ["## Known differences", ""]
    lines += [f"- **{known.what}**: maxjax: {known.maxjax}; JAX: {known.jax}. {known.reason}."
              for known in differences.differences()]
    hosts = host_steps(matrix, "1")
    if hosts:
        lines += ["", "## Host steps in tier 1", "",
                  "What the compiled programs leave to the host, and in how many names.", ""]
        lines += [f"- {_cell(reason)}: {count}" for reason, count in hosts.most_common()]
    if provenance := provenance_lines(matrix):
        lines += ["", "## When and where it was run", ""]
        lines += [f"- {line}" for line in provenance]
    excused: dict[str, list[str]] = {}
    for row in matrix.rows:
        if row.state == "excused":
            excused.setdefault(row.reason, []).append(row.name)
    if excused:
        lines += ["", "## Out of scope", ""]
        lines += [f"- {reason}: {', '.join(sorted(group))}" for reason, group in excused.items()]
    lines += ["", "## Names", ""]
    for module in dict.fromkeys(row.module for row in matrix.rows):
        lines += [f"### {module}", "", "| name | use | | tier 0 | tier 1 | graph |",
                  "| --- | --: | --- | --- | --- | --- |"]
        for row in sorted((r for r in matrix.rows if r.module == module),
                          key=lambda row: (-row.weight, row.name)):
            cells = [_counts(row.tiers.get(tier)) for tier in TIERS]
            lines.append(f"| {row.name.removeprefix(module + '.')} | {row.weight:.0f} | "
                         f"{MARKS[row.state]} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


SCRIPTS_HEAD = "## Scripts"


def _script_row(record: Record) -> ScriptRow:
    """A row of the scripts' table; without times where the script did not run on both."""
    ran = record.state == "pass"
    return (record.name, record.state, f"{record.seconds_jax:.1f}" if ran else "",
            f"{record.seconds_maxjax:.1f}" if ran else "", _cell(record.detail))


def _script_lines(rows: Iterable[ScriptRow]) -> list[str]:
    return ["Seconds from start to end of one run, kernels kept by earlier ones included.", "",
            "| script | state | JAX | maxjax | |", "| --- | --- | --: | --: | --- |",
            *(f"| {' | '.join(row)} |" for row in rows)]


def _script_rows(text: str) -> list[ScriptRow]:
    """The rows of a page that :func:`_script_lines` wrote."""
    part = text.partition(f"{SCRIPTS_HEAD}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    rows = [re.split(r"\s*(?<!\\)\|\s*", line)[1:-1] for line in lines[2:]]
    return [(name, state, jax, ours, detail) for name, state, jax, ours, detail in rows]


def host_steps(matrix: Matrix, tier: str) -> Counter[str]:
    """The reasons of host steps, and in how many names each is met."""
    return Counter(reason for row in matrix.rows
                   for reason in row.tiers.get(tier, {}).get("host", []))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:240]


def _counts(summary: Summary | None) -> str:
    if summary is None:
        return ""
    if "crash" in summary:
        return "crash"
    counts = summary["modes"].values()
    good, total = sum(c[0] + c[2] for c in counts), sum(sum(c) for c in counts)
    return f"{good}/{total}" if total else "nothing to compile"


# --- HTML -----------------------------------------------------------------------------------------

def page(matrix: Matrix) -> str:
    """A page without external resources; it shows the table without JavaScript, too."""
    template = (FOLDER / "page.html").read_text()
    counts = Counter(row.state for row in matrix.rows)
    modules = Counter(row.module for row in matrix.rows)
    details = {row.name: detail for row in matrix.rows if (detail := _detail(row))}
    parts = {
        "COVERAGE": "\n".join(_bar(matrix, c) for c in reversed(matrix.coverage)),
        "STATES": "\n".join(
            f'<button type="button" class="chip" data-state="{state}" title="{STATES[state]}">'
            f'<i class="dot {state}"></i>{state} <b>{counts[state]}</b></button>'
            for state in STATES if counts[state]),
        "MODULES": "\n".join(
            f'<option value="{module}">{module} ({count})</option>'
            for module, count in sorted(modules.items())),
        "ROWS": "\n".join(_table_row(row) for row in matrix.rows),
        "LIBRARIES": libraries(),
        "SCRIPTS": _scripts(matrix),
        "DIFFERENCES": "\n".join(
            f"<dt>{html.escape(d.what)}</dt><dd>maxjax: {html.escape(d.maxjax)}. JAX: "
            f"{html.escape(d.jax)}. <span>{html.escape(d.reason)}.</span></dd>"
            for d in differences.differences()),
        "GAPS": _gaps(matrix),
        "PROVENANCE": "\n".join(f"<li>{html.escape(line)}</li>"
                                for line in provenance_lines(matrix)),
        "NOTE": "" if matrix.complete else "A part has not been run yet.",
        # "</" would end the script element.
        "DATA": json.dumps(details, ensure_ascii=False, separators=(",", ":")
                           ).replace("</", "<\\/"),
    }
    for key, text in parts.items():
        template = template.replace("{{" + key + "}}", text, 1)
    return template.replace("{{JAX}}", followed())


def _bar(matrix: Matrix, coverage: Coverage) -> str:
    """A card: of how many names all is the same, and of how many but for known differences."""
    modules = GROUPS[coverage.group]
    known = sum(row.state == "known" and (modules is None or row.module in modules)
                for row in matrix.rows)
    return card(coverage.group, coverage.passing - known, known, coverage.total, coverage.excused)


def card(group: str, same: int, known: int, total: int, excused: int) -> str:
    share = 100 / max(1, total)
    agree = f"{same} agree" + (f", {known} pass with known differences" if known else "")
    return (f'<div class="bar">{group} <b>{same + known} of {total}</b>'
            f'<div class="track"><div class="pass" style="width:{same * share:.2f}%"></div>'
            f'<div class="known" style="width:{known * share:.2f}%"></div></div>'
            f'<small>{agree}{f"; {excused} out of scope" if excused else ""}</small></div>')


def _cell_state(summary: Summary | None, mode: str) -> tuple[str, str]:
    """The class of a cell, and what it says on hover."""
    if summary is None:
        return "none", "not run"
    if "crash" in summary:
        return "fail", summary["crash"]
    good, bad, known = summary["modes"].get(mode, (0, 0, 0))
    if bad:
        return "fail", f"{bad} of {good + bad + known} cases differ"
    if known:
        return "known", f"{known} known differences, {good} cases agree"
    if good:
        return "pass", f"{good} cases agree"
    return "none", "does not apply"


def _table_row(row: Row) -> str:
    cells = []
    for tier in TIERS:
        for number, mode in enumerate(COLUMNS[tier]):
            state, text = _cell_state(row.tiers.get(tier), mode)
            first = ' class="first"' if number == 0 else ""
            cells.append(f'<td{first}><i class="{state}" title="{tier_name(tier)}, {mode}: '
                         f'{html.escape(text)}"></i></td>')
    short = row.name.removeprefix(row.module + ".")
    prefix = f"<small>{row.module}.</small>" if short != row.name else ""
    api = "fail" if row.api else "pass" if row.state != "untested" else "none"
    return (f'<tr data-name="{html.escape(row.name)}" data-module="{row.module}" '
            f'data-state="{row.state}"><th scope="row">{prefix}{html.escape(short)}</th>'
            f'<td class="use">{row.weight:.0f}</td>'
            f'<td><i class="dot {row.state}" title="{html.escape(STATES[row.state])}"></i></td>'
            f'<td><i class="{api}" title="{html.escape(row.api or "exists, signature as in JAX")}">'
            f'</i></td>{"".join(cells)}</tr>')


def tier_name(tier: str) -> str:
    return {"0": "interpreted", "1": "compiled", "graph": "graph backend"}[tier]


def _detail(row: Row) -> dict[str, Any]:
    """What opens under a row."""
    detail: dict[str, Any] = {}
    if row.reason:
        detail["reason"] = row.reason
    problems = [{**problem, "tier": tier_name(tier)} for tier in TIERS
                for problem in row.tiers.get(tier, {}).get("problems", [])]
    if problems:
        detail["problems"] = problems
    host = row.tiers.get("1", {}).get("host")
    if host:
        detail["host"] = host
    return detail


def _scripts(matrix: Matrix) -> str:
    if not matrix.scripts:
        return "<p>Not run.</p>"
    return script_table(map(_script_row, matrix.scripts))


def script_table(scripts: Iterable[ScriptRow]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td><i class="dot '
        f'{"untested" if state == "waiting" else state}"></i> {state}</td>'
        f'<td class="use">{jax}</td><td class="use">{ours}</td>'
        f'<td class="text">{html.escape(detail)}</td></tr>'
        for name, state, jax, ours, detail in scripts)
    return ('<table><thead><tr><th>script</th><th></th><th>JAX, s</th><th>maxjax, s</th><th></th>'
            f'</tr></thead><tbody>{rows}</tbody></table>')


def libraries() -> str:
    """The table of the libraries' own tests, from their page."""
    text = (ROOT / "docs" / "libraries.md").read_text()
    found = re.search(r"<!-- the libraries' own tests -->\n(.*?)<!-- end", text, re.DOTALL)
    if found is None:
        return ""
    lines = found[1].splitlines()
    table = [[html.escape(cell.strip()) for cell in line.strip("|").split("|")]
             for line in lines if line.startswith("| ")]
    made = next((line for line in lines if line.startswith("Run on")), "")
    head, rows = table[0], [row for row in table[1:] if not row[0].startswith("---")]
    body = "\n".join(f'<tr><th scope="row">{row[0]}</th>' + "".join(
        f'<td class="use">{cell}</td>' for cell in row[1:]) + "</tr>" for row in rows)
    return ('<h2 id="libraries-head">Libraries\' own tests</h2>\n<p>The tests of libraries on top '
            f'of JAX, unchanged, on both. {html.escape(made)} More are in docs/libraries.md.</p>'
            '\n<section class="scrolls"><table><thead><tr>'
            + "".join(f"<th>{cell}</th>" for cell in head)
            + f"</tr></thead><tbody>{body}</tbody></table></section>")


def _gaps(matrix: Matrix) -> str:
    """What each backend leaves to the host, and why."""
    parts = []
    for tier in ("1", "graph"):
        reasons = host_steps(matrix, tier)
        items = "\n".join(f"<li>{html.escape(reason)} <b>{count}</b></li>"
                          for reason, count in reasons.most_common())
        parts.append(f"<h3>{tier_name(tier)}</h3><ul>{items or '<li>nothing</li>'}</ul>")
    return "\n".join(parts)
