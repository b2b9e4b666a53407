"""The benchmarks run on maxjax, and their arithmetic is right."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

import maxjax
from benchmarks import compiling, models, plots, summary, whole_scripts
from benchmarks.agreement import disagreement
from benchmarks.calls import CALLS
from benchmarks.figures import FIGURES, Figure
from benchmarks.measure import Bound, Comparison, Result
from benchmarks.report import as_json, cells, markdown
from benchmarks.steady import PROGRAMS
from benchmarks.whole_scripts import SCRIPTS, Process, Script, ScriptReport, ScriptResult
from benchmarks.worker import Worker
from maxjax._base import config


def f32(values):
    return np.asarray(values, np.float32)


def i32(values):
    return np.asarray(values, np.int32)


def comparison(ratios):
    return Comparison("x", "s", [0.002 * ratio for ratio in ratios], [0.002] * len(ratios))


@pytest.mark.parametrize("name", CALLS)
def test_the_call_runs(name):
    CALLS[name](maxjax)()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_computes_what_it_does_with_jax(name):
    with config.compile_mode("never"):
        ours = PROGRAMS[name](maxjax)
        computed = ours.results()
        assert ours.tier().startswith("interpreted")
    theirs = PROGRAMS[name](jax)
    assert disagreement(computed, theirs.results(), ours.tolerance) is None
    assert theirs.tier() == ""


@pytest.mark.parametrize("name", models.TRAIN_STEPS)
def test_the_second_batch_size_is_another_and_has_the_same_loss(name):
    losses = []
    for batch in models.BATCHES[name]:
        with config.compile_mode("never"):
            step, arguments = models.TRAIN_STEPS[name](maxjax, batch)
            ours = float(step(*arguments)[0])
        step, arguments = models.TRAIN_STEPS[name](jax, batch)
        losses.append(float(step(*arguments)[0]))
        compiling.check_losses("MLP", [ours], losses[-1:])
    assert losses[0] != losses[1]


def test_a_loss_that_differs_is_an_error():
    with pytest.raises(compiling.BenchmarkError, match="losses of the MLP"):
        compiling.check_losses("MLP", [1.0, 2.0], [1.0, 2.001])


def test_agreement_is_relative_to_the_largest_element():
    ones = f32([1, 100])
    assert disagreement([ones], [f32([1.0001, 100])], 2e-6) is None
    assert disagreement([ones], [f32([1.001, 100])], 2e-6) is not None
    assert disagreement([ones], [ones], 0.0) is None


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([], [f32(1)]),
        ([f32(1)], [f32([1])]),
        ([i32([1, 2])], [f32([1, 2])]),
        ([i32([1, 2])], [i32([1, 3])]),
        ([f32([np.nan, 1])], [f32([0, 1])]),
        ([f32([0, 1])], [f32([np.nan, 1])]),
        ([f32([np.inf])], [f32([-np.inf])]),
        ([f32([np.inf, 1])], [f32([5, 1])]),
    ],
)
def test_what_disagrees_is_found(ours, theirs):
    assert disagreement(ours, theirs, 1.0)


def test_a_worker_answers_errors_and_goes_on():
    worker = Worker("maxjax")
    assert worker.answer("prepare eager_add 0.0001")["tolerance"] is None
    assert worker.answer("sample")["seconds"] > 0
    with pytest.raises(KeyError):
        worker.answer("prepare nothing 0.1")
    with pytest.raises(ValueError, match="nothing is prepared"):
        worker.answer("sample")


def test_a_ratio_is_the_median_over_pairs():
    assert comparison([1.0, 4.0, 2.0]).ratio == pytest.approx(2.0)
    slow = Comparison("x", "s", [1.0, 10.0, 1.0], [2.0, 20.0, 2.0])
    assert slow.ratio == pytest.approx(0.5)


def test_several_comparisons_have_a_geometric_mean():
    assert Result([comparison([4.0]), comparison([1.0])]).ratio == pytest.approx(2.0)


def test_amounts_are_readable():
    assert cells(comparison([0.5, 1.0, 1.5, 2.0, 9.0])) == [
        "3 ms", "2 ms", "1.50", "1.00 to 2.00",
    ]


def not_run(library: str, quick: bool) -> Result:
    raise AssertionError("the reports are made of results")


def test_the_reports_tell_a_figure_that_failed():
    figures: list[tuple[Figure, Result | str]] = [
        (Figure("a", "an a", 1.0, not_run), Result([comparison([0.5])])),
        (Figure("b", "a b", 1.0, not_run), "no such function"),
    ]
    text = markdown(figures, "maxjax")
    assert "| an a | 1 ms | 2 ms | 0.50 | 0.50 to 0.50 | 1.00 | yes |" in text
    assert "no: no such function" in text
    data = as_json(figures, "maxjax")["figures"]
    assert data["a"]["met"] and data["b"]["error"] == "no such function"


def test_the_page_shows_what_was_measured():
    results: list[tuple[Figure, Result | str]] = [
        (Figure("start", "a start", 1.0, not_run), Result([comparison([0.5, 0.6, 0.7])])),
        (Figure("eager", "an operation", 1.0, not_run), Result([comparison([0.5])])),
        (Figure("scan", "a scan", 1.0, not_run), "no such function"),
        (Figure("pack", "the pack", None, not_run), Result(bounds=[Bound("all", 62.4, 99.0, "s")])),
    ]
    quiet, busy = ScriptReport(4.0, 1.7, False), ScriptReport(4.0, 2.5, True)
    first, second = SCRIPTS["nbody"], SCRIPTS["kmeans"]
    measured = ScriptResult([(3, 3)], *(comparison([each]) for each in (0.5, 2.0, 0.25)))
    quiet.outcomes += [(first, measured), (second, "crashed")]
    busy.outcomes += [(first, measured), (second, measured)]
    around = f"# Title\n{summary.BEGIN}old\n{summary.END}rest\n"
    data = json.loads(json.dumps(as_json(results, "maxjax", [quiet, busy])))
    text = summary.filled(around, data)
    assert text.startswith(f"# Title\n{summary.BEGIN}Measured with maxjax")
    assert text.endswith("rest\n")
    for line in (
        "| N-body, 500 bodies | 0.50 | 2.00 | 0.25 | 0.50 | 2.00 | 0.25 |",
        "| k-means | not measured | not measured | not measured | 0.50 | 2.00 | 0.25 |",
        "| process start to the first result | 0.60 |",
        "| eager operations on 100 elements, geometric mean | 0.50 (`x`: 0.50) |",
        "| a scan of 1,000 small steps, interpreted; JAX compiled | not measured |",
        "| the kernel pack, once a machine | 62 s |",
    ):
        assert f"\n{line}\n" in text
    assert "4 s each (load 1.7" in text
    assert summary.filled(text, data) == text
    with pytest.raises(ValueError, match="no place for figures"):
        summary.filled("# Title\n", data)


def test_the_page_has_the_last_full_runs_figures():
    root = Path(__file__).parents[1]
    text = (root / "docs/performance.md").read_text(encoding="utf-8")
    assert summary.filled(text, json.loads((root / "benchmarks/results.json").read_text())) == text


def test_the_plots_are_the_last_full_runs(tmp_path):
    root = Path(__file__).parents[1]
    plots.draw(json.loads((root / "benchmarks/results.json").read_text()), tmp_path)
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(drawn) == {f"{name}-{theme}.svg" for name in ("scripts", "programs")
                          for theme in ("light", "dark")}
    assert drawn == {name: (root / "docs/images" / name).read_text() for name in drawn}


def test_a_plot_has_a_bar_for_each_ratio():
    svg = plots.bars("A <title>", ("a", "b"), [("x", (0.5, 2.0)), ("y", (1.0, 0.25))], "n", "page")
    tree = ElementTree.fromstring(svg)
    texts = [each.text for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"A <title>", "a", "b", "x", "y", "0.50", "2.00", "1.00", "0.25", "JAX"} <= {*texts}
    bars = list(tree.iter("{http://www.w3.org/2000/svg}rect"))[2:]
    widths = [float(each.get("width", "0")) for each in bars]
    assert widths[0] == pytest.approx(widths[1]) and min(widths) >= 1


def test_a_figure_is_met_if_all_of_it_is():
    figure = Figure("a", "an a", 0.8, not_run, each=1.5)
    assert figure.met(Result([comparison([0.5]), comparison([1.0])]))
    assert not figure.met(Result([comparison([0.9])]))
    assert not figure.met(Result([comparison([0.1]), comparison([1.6])]))
    assert not figure.met(Result([comparison([0.5])], failures=["b: crashed"]))
    assert not figure.met(Result(failures=["b: crashed"]))


@pytest.mark.parametrize(("value", "met"), [(7.5, "yes"), (8.5, "no"), (None, "no")])
def test_bounds_are_reported(value, met):
    figure = Figure("a", "an a", None, not_run)
    result = Result(bounds=[Bound("b", value, 8.0, "s")])
    shown = "not measured" if value is None else f"{value} s"
    assert f"| - b | {shown} |  |  |  | 8 s | {met} |" in markdown([(figure, result)], "maxjax")
    assert as_json([(figure, result)], "maxjax")["figures"]["a"]["met"] == (met == "yes")


def test_what_ran_interpreted_and_what_failed_is_said():
    slow = comparison([2.0])
    slow.remark = "interpreted: cold"
    result = Result([slow, comparison([0.5])], failures=["c: crashed"])
    text = markdown([(Figure("a", "an a", 0.8, not_run, each=1.5), result)], "maxjax")
    assert "| - x (interpreted: cold) | 4 ms | 2 ms | 2.00 | 2.00 to 2.00 | 1.50 | no |" in text
    assert "| - x | 1 ms | 2 ms | 0.50 | 0.50 to 0.50 | 1.50 | yes |" in text
    assert "| - c: crashed |  |  |  |  |  | no |" in text


def test_the_graph_backend_is_cited_from_its_last_measurement(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "GRAPH_RECORD", tmp_path / "record.json")
    assert not compiling.graph_bound().met
    record = {"date": "2001-02-03", "mojo": 5.0, "graph": 80.0}
    compiling.GRAPH_RECORD.write_text(json.dumps(record))
    bound = compiling.graph_bound()
    assert bound.met and bound.value == pytest.approx(0.0625) and "2001-02-03" in bound.label


def test_figures_have_names_of_their_own():
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)


def test_every_script_is_measured():
    assert {file.stem for file in whole_scripts.FOLDER.glob("*.py")} == set(SCRIPTS)


# The others take the same way, and run when they are measured.
@pytest.mark.parametrize("name", ["decoding", "kmeans"])
def test_a_script_prints_the_same_on_both_libraries(name):
    ours, theirs = (
        whole_scripts.run_script(name, library, {"MAXJAX_COMPILE": "never"}, 60.0, 3, small=True)
        for library in ("maxjax", "jax")
    )
    assert len(ours.numbers) == len(theirs.numbers) == 3
    assert whole_scripts.difference(SCRIPTS[name], ours, theirs) is None
    assert 0 < ours.seconds[0] < ours.seconds[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [("print('hello')", "printed 'hello', not a step"), ("raise ValueError('no')", "no")],
)
def test_a_script_that_fails_is_an_error(monkeypatch, tmp_path, text, message):
    monkeypatch.setattr(whole_scripts, "FOLDER", tmp_path)
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(whole_scripts.BenchmarkError, match=message):
        whole_scripts.run_script("broken", "jax", {}, 60.0)


def test_a_script_ends_when_its_time_is_over(monkeypatch, tmp_path):
    monkeypatch.setattr(whole_scripts, "FOLDER", tmp_path)
    (tmp_path / "endless.py").write_text("for step in range(10**9): print(step, 0.5)")
    process = whole_scripts.run_script("endless", "jax", {}, 0.0)
    assert process.numbers == [0.5] * whole_scripts.LEAST_STEPS


def test_a_process_that_builds_is_found(tmp_path):
    directory = str(tmp_path)
    environment = {**os.environ, "MAXJAX_CACHE_DIR": directory}
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stdout.readline()
        folder = Path("/proc", str(process.pid))
        assert whole_scripts.uses(folder, directory) == folder.exists()
        assert not whole_scripts.uses(folder, directory + "/other")
    whole_scripts.await_builders(directory)


def test_a_step_is_the_mean_of_the_last_third():
    assert Process([0.0] * 6, [9.0, 9.1, 10.0, 11.0, 12.0, 14.0]).step_seconds == 2.0
    assert Process([0.0] * 4, [1.0, 2.0, 3.0, 5.0]).step_seconds == 2.0


def test_numbers_are_compared_relative_to_themselves():
    script = Script("a script", 1e-3)
    theirs = Process([1000.0, 1.0], [1.0, 2.0])
    assert whole_scripts.difference(script, Process([1000.5, 1.0, 7.0]), theirs) is None
    assert whole_scripts.difference(script, Process([1000.0, 1.01]), theirs)


def script_result(ratios, difference=None):
    first, second, step = (comparison([ratio]) for ratio in ratios)
    return ScriptResult([(7, 9), (5, 8)], first, second, step, difference)


def test_scripts_are_reported():
    script, other = Script("a script", 0.0), Script("another", 0.0)
    outcomes = [(script, script_result([0.5, 0.25, 1.0])), (other, script_result([0.5, 1.0, 1.0]))]
    reports = [ScriptReport(18.0, 0.25, busy, outcomes) for busy in (False, True)]
    text = markdown([], "maxjax", reports)
    cell = "0.50 (1 ms / 2 ms)"
    assert f"| a script | 5, 8 | {cell} | 0.25 (500 µs / 2 ms) | 1.00 (2 ms / 2 ms) | yes |" in text
    assert "| geometric mean |  | 0.50 | 0.50 | 1.00 |  |" in text
    assert text.index("; no core was kept busy") < text.index("; one core was kept busy")
    assert text.count("geometric mean 0.63 (target 0.60)") == 2
    quiet, busy = as_json([], "maxjax", reports)["whole_scripts"]
    assert busy["busy"] and not quiet["busy"]
    assert busy["scripts"]["a script"]["comparisons"][1]["ratio"] == 0.25
    assert "whole_scripts" not in as_json([], "maxjax")


def test_scripts_that_differ_or_fail_are_reported():
    script = Script("a script", 0.0)
    outcomes = [(script, script_result([0.5] * 3, "array 0 differs")), (script, "crashed")]
    text = markdown([], "maxjax", [ScriptReport(18.0, 0.0, False, outcomes)])
    assert "| no: array 0 differs |" in text
    assert "| a script |  |  |  |  | no: crashed |" in text
    for each in outcomes:
        assert ScriptReport(18.0, 0.0, False, [each]).failed


@pytest.mark.parametrize(
    ("ratios", "met"), [([0.5, 0.5, 0.8], True), ([0.1, 0.1, 1.1], False), ([0.7] * 3, False)]
)
def test_scripts_meet_their_targets_in_each_ratio_and_in_the_mean(ratios, met):
    report = ScriptReport(18.0, 0.0, False, [(Script("a", 0.0), script_result(ratios))])
    assert report.met == met
