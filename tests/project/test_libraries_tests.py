"""The harness of libraries' own tests, on a suite that is made up here."""

import json

import pytest

pytest.importorskip("jax")

from compat.libraries import compare, run, section, suites

# What they share is computed once.
pytestmark = pytest.mark.xdist_group("libraries_tests")

TESTS = '''
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

IS_MAXJAX = "maxjax" in sys.modules

@pytest.mark.parametrize("x", [0.0, 1.0])
def test_passes(x):
    np.testing.assert_allclose(jax.jit(jnp.sin)(x), np.sin(x), rtol=1e-6)

def test_fails():
    assert not IS_MAXJAX, "made to fail"

def test_fails_on_both():
    assert False

def test_passes_on_maxjax():
    assert IS_MAXJAX

@pytest.mark.skipif(IS_MAXJAX, reason="for a reason")
def test_skipped_here():
    pass

def test_ends_the_process():
    if IS_MAXJAX:
        os._exit(0)

def test_z_after_the_end():
    pass
'''
SECOND = '''
import sys
if "maxjax" in sys.modules:
    import jax.no_such_module

def test_in_a_file_that_does_not_import():
    pass
'''
KNOWN = '''
[[known]]
kind = "difference"
file = "made-up"
tests = ["tests/test_one.py::test_fails", "*::test_ends_the_process", "*::test_skipped_here"]
reason = "made up"

[[known]]
kind = "internal"
file = "made-up"
tests = ["tests/test_two.py*"]
reason = "imports what is not there"
'''


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A suite that has been run, and the words that name its folders."""
    folder = tmp_path_factory.mktemp("made-up")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_one.py").write_text(TESTS)
    (folder / "tests" / "test_two.py").write_text(SECOND)
    (folder / "known.toml").write_text(KNOWN)
    words = ["made-up", "--results", str(folder / "results"), "--no-docs",
             "--known", str(folder / "known.toml"), "--source", f"made-up={folder}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suites.SUITES, "made-up", suites.Suite("made-up", "numpy", ("tests",)))
        assert run.main([*words, "--test-seconds", "60"]) == 0
        yield folder, words


def test_each_outcome(made_up):
    folder, _ = made_up
    found = {result.name.partition("::")[2] or result.name: result
             for result in compare.compared(folder / "results", "made-up")}
    assert {name: result.outcome for name, result in found.items()} == {
        "test_passes[0.0]": "passed", "test_passes[1.0]": "passed", "test_fails": "failed",
        "test_fails_on_both": compare.ON_JAX_TOO, "test_passes_on_maxjax": "passed",
        "test_skipped_here": "failed", "test_ends_the_process": "failed",
        "test_z_after_the_end": "passed", "tests/test_two.py": "failed",
        "test_in_a_file_that_does_not_import": "failed"}
    assert "made to fail" in found["test_fails"].error
    assert found["test_fails"].place.startswith("tests/test_one.py:")
    assert found["test_ends_the_process"].error == "the process died"
    assert "no_such_module" in found["tests/test_two.py"].error


def test_known_failures(made_up, capsys):
    folder, words = made_up
    (folder / "known.toml").write_text(KNOWN.replace('"*::test_skipped_here"', '"*::test_z_*"'))
    assert run.main([*words, "--report"]) == 1
    printed = capsys.readouterr().out
    assert "skipped, and passes on JAX" in printed and "test_z_* passes: remove it" in printed
    (folder / "known.toml").write_text(KNOWN)
    assert run.main([*words, "--report"]) == 0


def test_only_what_has_no_result_is_run_again(made_up):
    folder, words = made_up
    path = compare.results_path(folder / "results", "maxjax", "made-up")
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in lines
                            if not json.loads(line)["id"].endswith("::test_z_after_the_end")))
    assert run.main([*words, "--keep"]) == 0
    added = [json.loads(line)["id"] for line in path.read_text().splitlines()[len(lines) - 2:]]
    assert set(added) - {"tests/test_two.py"} == {"tests/test_one.py::test_z_after_the_end"}


def test_the_section_replaces_itself(made_up, tmp_path):
    folder, _ = made_up
    page = tmp_path / "libraries.md"
    page.write_text("# Libraries\n\nText.\n")
    verdict = run.records.judge(compare.compared(folder / "results", "made-up"),
                                run.records.read_known(folder / "known.toml"))
    section.write(folder / "results", verdict, page)
    first = page.read_text()
    assert "| 4 | 0 | 5 | 1 | 0 |" in first and "- made-up, 3: made up" in first
    section.write(folder / "results", verdict, page)
    assert page.read_text() == first


def test_suites_name_what_there_is(tmp_path):
    suite = suites.Suite("some", "numpy", ("here",), ignore=("here/left",))
    with pytest.raises(ValueError, match="no tests of some"):
        suites.files_of(suite, tmp_path)
    for name in ("here/test_b.py", "here/a_test.py", "here/left/test_c.py", "there/test_d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert suites.files_of(suite, tmp_path) == ["here/a_test.py", "here/test_b.py"]
    with pytest.raises(ValueError, match="names a suite and its sources"):
        run.sources(["no-such-suite=/"])
    required = (run.compare.ROOT / "compat" / "libraries" / "requirements.txt").read_text()
    for package in [*(suite.package for suite in suites.SUITES.values()), *suites.WITHOUT_TESTS]:
        if package != "numpy":
            assert f"\n{package}==" in required
