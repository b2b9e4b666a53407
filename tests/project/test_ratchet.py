"""tools/check_ratchet.py: counts of the structure stay below their ceilings."""

from pathlib import Path

import pytest

from tests import ROOT
from tools import check_ratchet as ratchet

Count = ratchet.Count


def project(tmp_path: Path, source: str, ceilings: str) -> Path:
    """A project of one file in a room that may import from all before it."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/ceilings.toml").write_text(ceilings)
    for folder in ratchet.FOLDERS:
        (tmp_path / "maxjax" / folder).mkdir(parents=True)
    (tmp_path / "maxjax/_ir/one.py").write_text(source)
    return tmp_path


@pytest.mark.extended       # `make lint` and CI run the tool itself
def test_no_count_is_above_its_ceiling(capsys):
    assert ratchet.main([str(ROOT)]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(("name", "source"), [
    ("files_over_600_lines_with_docstrings", '"""Text' + "\n" * 600 + '"""\n'),
    ("functions_over_60_lines", "def long():\n" + "    x = 1\n" * 61),
    ("complexity_over_30", "def twisted(x):\n" + "    if x: pass\n" * 31),
    ("primitives_named_outside_their_blocks", "def f(eqn):\n    n = eqn.primitive.name\n"
                                              "    return n == 'sin'\n"),
    ("types_from_a_later_room", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
                                "    from maxjax._runtime import jit\n"),
    ("percent_any._ir", "def f(x: Any, y: int): pass\n"),
])
def test_each_count_sees_what_it_counts(tmp_path, name, source):
    found = ratchet.counts(project(tmp_path, source, ""))
    assert {key for key, count in found.items() if count.value} == {name}
    assert "maxjax/_ir/one.py" in found[name].items[0]


def test_a_long_file_is_long_with_docstrings_and_without(tmp_path):
    found = ratchet.counts(project(tmp_path, "\n" * 601, ""))
    assert {key for key, count in found.items() if count.value} == {
        "files_over_600_lines", "files_over_600_lines_with_docstrings"}


def test_what_just_fits_is_not_counted(tmp_path):
    source = ('def long():\n    """' + "\n" * 50 + '    """\n' + "    x = 1\n" * 60
              + "def twisted(x):\n" + "    if x: pass\n" * 29)
    found = ratchet.counts(project(tmp_path, source + "\n" * (600 - source.count("\n")), ""))
    assert not any(count.value for count in found.values())


def test_docstrings_count_in_one_of_the_counts_of_lines_alone(tmp_path):
    source = '"""' + "\n" * 50 + '"""\n' + "\n" * 600
    found = ratchet.counts(project(tmp_path, source, ""))
    assert {key for key, count in found.items() if count.value} == {
        "files_over_600_lines_with_docstrings"}


def test_above_a_ceiling_is_an_error_that_names_what_is_counted():
    above, below = ratchet.compare({"files": Count(2, ["a.py", "b.py"])}, {"files": 1})
    assert above == ["files: 2, where 1 is the most", "    a.py", "    b.py"] and not below


def test_below_a_ceiling_asks_to_lower_it():
    above, below = ratchet.compare({"files": Count(1, ["a.py"])}, {"files": 3})
    assert not above and below == ["files: 1: lower its ceiling from 3 (--lower)"]


def test_a_count_without_a_ceiling_and_a_ceiling_without_a_count_are_errors():
    above, _ = ratchet.compare({"new": Count(0)}, {"old": 3})
    assert above == ["new: has no ceiling", "old: nothing is counted"]


def test_lowering_keeps_comments_and_raises_nothing():
    text = "# why\nfiles = 9  # today's\nlines = 2\n\n[percent_any]\n_ir = 8.5\n"
    found = {"files": Count(7), "lines": Count(3), "percent_any._ir": Count(4.5)}
    assert ratchet.lowered(text, found) == (
        "# why\nfiles = 7  # today's\nlines = 2\n\n[percent_any]\n_ir = 4.5\n")
