"""The compat suite: a representative part of its cases, its tables, and its detection of errors.

The whole matrix is ``make compat``.
"""

from __future__ import annotations

import html.parser
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("jax")

from compat import chosen, differences, evaluate, explore, judge, report, surface, tables
from compat.answers import Answers
from compat.outcome import Outcome
from compat.scripts_runner import Record
from compat.spec import MODES, array, case, check, floats, shaped, special
from compat.state import State, digest_of, provenance
from tests import ROOT

NAMES = 30      # the most used ones with cases; each with a part of its cases
CASES = 6


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return Answers(tmp_path_factory.mktemp("answers"))


def representative() -> list[str]:
    """Names from all tables, evenly sampled, the most used first."""
    known = [name for name, cases in chosen.rows().items() if len(cases) > 3]
    step = max(1, len(known) // NAMES)
    return known[::step][:NAMES]


def spread(items, count):
    step = max(1.0, len(items) / count)
    return [items[int(number * step)] for number in range(min(count, len(items)))]


def run(rows, name, answers, modes=MODES):
    return judge.interpreted([row.of(name) for row in rows], modes, answers)


def problems(results):
    return [f"{r.mode}: {r.case.title}: {r.problem}\n  jax {r.theirs}\n  maxjax {r.ours}"
            for r in results if r.fails]


# --- the cases ------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", representative())
def test_agrees_with_jax(name, answers):
    results = judge.interpreted(spread(chosen.rows()[name], CASES), MODES, answers)
    assert results
    assert not problems(results), "\n".join(problems(results))


# --- the tables -----------------------------------------------------------------------------------

def test_use_lists_the_public_names_of_jax():
    listed = {name for name, described in surface.names().items()
              if described.kind != "removed" and "__" not in name}
    public = surface.public_names()
    assert {name for name in listed if surface.listed_fully(name)} == public
    for name in listed - public - set(surface.excused()):
        surface.find(evaluate.real(), name)


def test_tables_name_what_is_public():
    library = evaluate.real()
    for name in tables.tables():
        described = surface.names().get(name)
        if described is None or described.kind != "removed":
            surface.find(library, name)


def test_no_name_is_silently_absent():
    """A name exists, or surface.toml says why it does not."""
    absent = [name for name in surface.names() if name not in surface.excused()
              and "does not have it" in (surface.api_problem(name) or "")]
    assert not absent


def test_every_name_has_cases_or_a_reason():
    known = chosen.rows()
    untested = [name for name, described in surface.names().items()
                if name not in known and name not in surface.excused()
                and described.kind != "removed"]
    assert not untested


def test_surface_rows():
    for name, reason in surface.excused().items():
        assert name in surface.names(), name
        assert len(reason) > 10, name


def test_known_differences_are_linked_to_cases():
    rows = differences.differences()
    known = chosen.rows()
    for row in rows:
        assert row.cases, f"{row.what}: no case shows it"
        for pattern in row.cases:
            names = [name for name in known if pattern.names(name)]
            assert any(pattern.matches(case, mode, tier) for name in names
                       for case in known[name] for mode in case.modes
                       for tier in report.TIERS), f"{row.what}: no case matches {pattern}"


# --- it finds what is wrong -----------------------------------------------------------------------

SIN = [*case("f(x)", x=floats(3)), *case("f(x)", x=floats(3), dtypes="float16"),
       *check("f(1.0)"), *case("f(x, 1)", x=floats(2), raises=True)]


@pytest.mark.parametrize("wrong, expected", [
    (lambda jnp, sin: lambda x: jnp.cos(x), "values differ"),
    (lambda jnp, sin: lambda x: sin(x).astype("bfloat16"), "dtype bfloat16, not float32"),
    (lambda jnp, sin: lambda x: sin(x)[None], "shape [1, 3], not [3]"),
    (lambda jnp, sin: lambda x: jnp.asarray(sin(x), sin(x).dtype), "weak_type False, not True"),
    (lambda jnp, sin: lambda x, y=0: sin(x), "raises nothing, not TypeError"),
    (lambda jnp, sin: lambda x: (sin(x),), "structure (*), not *"),
    (lambda jnp, sin: lambda x: jnp.stop_gradient(sin(x)), "raises AttributeError"),
])
def test_a_wrong_function_is_found(wrong, expected, monkeypatch, answers):
    numpy = evaluate.own().numpy
    assert not problems(run(SIN, "jax.numpy.sin", answers))
    monkeypatch.setattr(numpy, "sin", wrong(numpy, numpy.sin))
    found = problems(run(SIN, "jax.numpy.sin", answers))
    assert any(expected in problem for problem in found), "\n".join(found)


def test_finds_a_wrong_derivative(monkeypatch, answers):
    own = evaluate.own()
    constant = own.lax.stop_gradient
    monkeypatch.setattr(own.numpy, "sin", lambda x: constant(own.numpy.cos(x - 1.5707964)))
    rows = case("f(x)", x=floats(3), tol="iterative")
    modes = {r.mode for r in run(rows, "jax.numpy.sin", answers) if r.fails}
    assert modes == {"grad", "jvg"}


def test_finds_a_zero_of_the_wrong_sign(monkeypatch, answers):
    numpy = evaluate.own().numpy
    sin = numpy.sin
    monkeypatch.setattr(numpy, "sin", lambda x: sin(x) + 0.0)
    rows = case("f(x)", x=special("float32"), modes="eager")
    assert "-0.0" in problems(run(rows, "jax.numpy.sin", answers))[0]
    rows = case("f(x)", x=special("float32"), modes="eager", signed_zeros=False)
    assert not problems(run(rows, "jax.numpy.sin", answers))


def test_a_table_that_errs_is_told_so(answers):
    rows = [*case("f(y)", x=floats(3), raises=True), *case("f(x, 1)", x=floats(3)),
            *case("f(x)", x=floats(3), raises=True)]
    texts = [r.problem for r in run(rows, "jax.numpy.sin", answers, ["eager"])]
    assert [text.split(":")[0].split(",")[0] for text in texts] == [
        "the table's expression fails", "the table expects no error",
        "the table expects an error"]


def test_errors_may_be_of_a_derived_class(answers):
    outcome = Outcome(error=(["OwnError", "ValueError"], "no such axis"))
    theirs = Outcome(error=(["ValueError"], "axis 5 is out of bounds"))
    row = case("f(x)", x=floats(3), raises=True)[0]
    assert judge.problem_of(row, "eager", outcome, theirs) is None
    assert "TypeError, not" in judge.problem_of(
        row, "eager", Outcome(error=(["TypeError"], "")), theirs)


def test_non_contiguous_inputs_are_not_contiguous():
    value = floats(3, 4).strided().generate("x", "float32")
    assert not value.flags.c_contiguous and not value.flags.f_contiguous
    assert value.tolist() == floats(3, 4).generate("x", "float32").tolist()


def test_known_difference_that_has_gone_fails(monkeypatch, answers):
    pattern = differences.Pattern("a difference", "jax.numpy.sin", "f", "eager", "0")
    row = differences.Difference("a difference", "", "", "", (pattern,))
    monkeypatch.setattr(differences, "differences", lambda: [row])
    result, = run(case("f(x)", x=floats(3), modes="eager"), "jax.numpy.sin", answers)
    assert result.fails and "agrees with JAX by now" in result.problem
    numpy = evaluate.own().numpy
    monkeypatch.setattr(numpy, "sin", numpy.cos)
    result, = run(case("f(x)", x=floats(3), modes="eager"), "jax.numpy.sin", answers)
    assert result.known == "a difference" and not result.fails


def test_answers_are_kept(answers, monkeypatch):
    row = case("f(x) + 1", x=array([1.0, 2.0]), modes="eager jit")[0].of("jax.numpy.sin")
    first = answers.of([(row, "eager"), (row, "jit")])
    monkeypatch.setattr("compat.answers.ask", None)
    assert answers.of([(row, "jit"), (row, "eager")]) == first
    assert Outcome.loads(first[row, "jit"].dumps()) == first[row, "jit"]


# --- the page -------------------------------------------------------------------------------------

class Page(html.parser.HTMLParser):
    """The facts that a test needs about a page: rows, chips, data, and external references."""

    VOID = {"meta", "input", "br", "link", "img"}

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict]] = []
        self.rows: list[dict] = []
        self.cells: dict[str, list[str]] = {}
        self.chips: list[dict] = []
        self.links: list[str] = []
        self.data = ""
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.links += [attributes[key] for key in ("src", "href") if key in attributes]
        if tag == "tr" and "data-name" in attributes:
            self.rows.append(attributes)
        if tag == "i" and self.rows and any(t == "td" for t, _ in self.open):
            self.cells.setdefault(self.rows[-1]["data-name"], []).append(attributes["class"])
        if tag in ("button", "option"):
            self.chips.append(attributes)
        if tag not in self.VOID:
            self.open.append((tag, attributes))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, (tag, self.open[-3:], self.getpos())
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == ("script", {"type": "application/json", "id": "details"}):
            self.data += data


def summary(modes, shown=()):
    return {"modes": modes, "problems": list(shown), "compiled": 1, "host": ["a reason"],
            "seconds": 1.0}


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    state = State(tmp_path_factory.mktemp("state"))
    for name in ("jax.numpy.sin", "jax.numpy.add", "jax.numpy.sum"):
        state.store(name, "api", "", {"problem": None, "modes": {}, "problems": []})
        state.store(name, "1", "", summary({"jit": [3, 0, 0]}))
        state.store(name, "graph", "", summary({"jit": [1, 0, 0]}))
    shown = {"mode": "grad", "expression": "f(x) < '</script>'", "inputs": ["x = 1"], "x64": False,
             "problem": "1 of 3 values differ", "known": None, "jax": "1", "maxjax": "2"}
    state.store("jax.numpy.sin", "0", "", summary({"eager": [4, 0, 0], "jit": [3, 0, 0]}))
    state.store("jax.numpy.add", "0", "", summary({"eager": [4, 0, 0], "grad": [3, 1, 0]}, [shown]))
    state.store("jax.numpy.sum", "0", "", summary(
        {"eager": [4, 0, 1]}, [{**shown, "known": "zeros"}]))
    return report.build(state)


@pytest.mark.xdist_group("matrix")
def test_the_matrix_has_states_and_coverage(matrix):
    rows = {row.name: row for row in matrix.rows}
    states = [rows[f"jax.numpy.{name}"].state for name in ("sin", "add", "sum")]
    assert states == ["pass", "fail", "known"]
    assert rows["jax.numpy.add"].reason == "tier 0, grad: 1 of 3 values differ"
    everything = matrix.coverage[0]
    assert everything.passing >= 2
    weights = surface.names()
    assert everything.weighted >= (weights["jax.numpy.sin"].weight
                                   + weights["jax.numpy.sum"].weight) / sum(
        name.weight for name in weights.values())
    assert report.status(matrix) == 1


@pytest.mark.xdist_group("matrix")
def test_the_page_shows_each_name(matrix):
    page = Page(report.page(matrix))
    assert all(link.startswith("#") for link in page.links), "nothing may come from elsewhere"
    rows = {row["data-name"]: row for row in page.rows}
    assert set(surface.names()) <= set(rows)
    assert rows["jax.numpy.add"]["data-state"] == "fail"
    assert len({len(cells) for cells in page.cells.values()}) == 1
    # The dot, the signature, then tier 0: eager, jit, grad.
    assert page.cells["jax.numpy.add"][:5] == ["dot fail", "pass", "pass", "none", "fail"]
    assert page.cells["jax.numpy.sum"][2] == "known"
    # Every filter leaves something, and every row is reached by one.
    assert {chip["data-state"] for chip in page.chips if "data-state" in chip} == {
        row["data-state"] for row in page.rows}
    assert {chip["value"] for chip in page.chips if chip.get("value")} == {
        row["data-module"] for row in page.rows}
    details = json.loads(page.data)
    assert details["jax.numpy.add"]["problems"][0]["expression"] == "f(x) < '</script>'"
    assert set(details) <= set(rows)
    assert "{{" not in report.page(matrix)


@pytest.mark.xdist_group("matrix")
def test_the_markdown_lists_failures_and_origins(matrix):
    text = report.markdown(matrix)
    assert "| jax.numpy.add | " in text and "1 of 3 values differ" in text
    assert text.count("\n| sin |") == 2      # jax.numpy's and jax.lax's
    made = provenance()
    for column in ("names and signatures", "interpreted", "compiled", "graph backend"):
        assert (f"- {column}: 3 names on {made['day']}, from commit {made['commit']}, with "
                f"{made['versions']}, on {made['machine']}\n") in text


@pytest.mark.xdist_group("matrix")
def test_scripts_that_ran_before_stay_where_none_ran(matrix, tmp_path):
    report.write(matrix, tmp_path)
    assert "## Scripts\n\nNot run.\n" in (tmp_path / "matrix.md").read_text()
    report.write_scripts([Record("n_body", "pass", 2.0, 0.54, "")], tmp_path)
    before = [(tmp_path / name).read_text() for name in ("matrix.md", "matrix.html")]
    assert "| n_body | pass | 2.0 | 0.5 |  |" in before[0] and "n_body" in before[1]
    report.write(matrix, tmp_path)
    assert [(tmp_path / name).read_text() for name in ("matrix.md", "matrix.html")] == before


# --- the runner -----------------------------------------------------------------------------------

def start(folder: Path, *arguments: str) -> subprocess.Popen:
    environment = {**os.environ, "MAXJAX_COMPAT_FOLDER": str(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-m", "compat", *arguments], cwd=ROOT, text=True,
                            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)


def test_resumes_after_a_kill(tmp_path):
    """Names that a killed worker had finished are not lost."""
    names = ["jax.numpy.pi", "jax.numpy.float32", "jax.numpy.e", "jax.numpy.inf", "jax.numpy.nan"]
    names = [name for name in names if name in chosen.rows()]
    worker = start(tmp_path, "--worker")
    print("0", *names, file=worker.stdin, flush=True)
    done = []
    for line in worker.stdout:
        if line.startswith("done"):
            done.append(line.split()[1])
        if len(done) == 2:
            os.kill(worker.pid, signal.SIGKILL)
            break
    worker.wait()
    worker.stdin.close()
    worker.stdout.close()
    state = State(tmp_path)
    rows = chosen.rows()
    assert done == names[:2]
    for name in done:
        known = state.known(name, "0", digest_of(name, rows[name], "0"))
        assert known is not None and judge.failing(known) == 0
    # If the text of a case or the sources change, the name is run again.
    assert state.known(done[0], "0", digest_of(done[0], rows[done[0]][:-1], "0")) is None


def test_a_worker_that_dies_is_the_name_s_failure(tmp_path, monkeypatch):
    from compat import run as runner
    monkeypatch.setattr(runner, "FOLDER", tmp_path)
    worker = runner.Worker(MODES, tmp_path / "log")
    monkeypatch.setenv("MAXJAX_COMPAT_FOLDER", str(tmp_path))
    begun = time.monotonic()

    def kill_at_first(name: str) -> None:
        worker.process.kill()

    reason = worker.run("0", ["jax.numpy.pi", "jax.numpy.sin", "jax.numpy.add"], kill_at_first)
    assert reason.startswith("the process died") and time.monotonic() - begun < 60
    assert worker.current in ("", "jax.numpy.sin", "jax.numpy.add")
    assert worker.run("0", ["jax.numpy.pi"], lambda name: None) is None
    worker.stop()


def test_the_command_checks_the_names_given(tmp_path):
    process = start(tmp_path, "--only", "jax.numpy.pi", "jax.numpy.float32", "--failures", "1")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "pass  jax.numpy.pi" in output and "2 of 2 names pass" in output


def test_explore_finds_what_tables_miss(monkeypatch):
    """A function that is wrong only for empty arrays."""
    numpy = evaluate.own().numpy
    flip = numpy.flip
    rows = [row.of("jax.numpy.flip") for row in case("f(x, axis=0)", x=shaped(3, 2))]
    assert explore.explore("jax.numpy.flip", rows, 15) is None
    monkeypatch.setattr(numpy, "flip", lambda x, axis: flip(x, axis) if x.size else x[..., None])
    found = explore.explore("jax.numpy.flip", rows, 60)
    assert found is not None and "shape" in found.problem
