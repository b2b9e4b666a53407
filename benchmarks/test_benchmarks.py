"""The benchmarks run on maxjax, and their arithmetic is right."""

import pytest

import maxjax
from benchmarks.calls import CALLS
from benchmarks.figures import FIGURES, Figure, Result
from benchmarks.measure import Comparison
from benchmarks.report import as_json, cells, markdown


def comparison(ratios):
    return Comparison("x", "s", [0.002 * ratio for ratio in ratios], [0.002] * len(ratios))


@pytest.mark.parametrize("name", CALLS)
def test_the_call_runs(name):
    CALLS[name](maxjax)()


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


def test_the_reports_tell_a_figure_that_failed():
    figures = [
        (Figure("a", "an a", 1.0, None), Result([comparison([0.5])])),
        (Figure("b", "a b", 1.0, None), "no such function"),
    ]
    text = markdown(figures, "maxjax")
    assert "| an a | 1 ms | 2 ms | 0.50 | 0.50 to 0.50 | 1.00 | yes |" in text
    assert "no: no such function" in text
    data = as_json(figures, "maxjax")["figures"]
    assert data["a"]["met"] and data["b"]["error"] == "no such function"


def test_figures_have_names_of_their_own():
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)
