"""The harness of libraries' own tests, on a suite that is made up here."""

import dataclasses
import json
import subprocess

import numpy as np
import pytest

pytest.importorskip("jax")

from compat.libraries import compare, record, run, section, suites

# What they share is computed once.
pytestmark = [pytest.mark.extended, pytest.mark.xdist_group("libraries_tests")]

TESTS = '''
import os
import sys
import zlib

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

def test_draws_what_its_name_says():
    seed = zlib.crc32(b"tests/test_one.py::test_draws_what_its_name_says")
    assert np.random.uniform() == np.random.RandomState(seed).uniform()

@pytest.mark.parametrize("x", range(4))
def test_skipped_on_both(x):
    pytest.skip("for one reason")

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


FILES = ["tests/test_one.py", "tests/test_two.py"]


def compared(folder):
    return compare.compared(folder / "results", "made-up", FILES)


def test_each_outcome(made_up):
    folder, _ = made_up
    assert compare.ran(folder / "results", "made-up", FILES) == FILES
    found = {result.name.partition("::")[2] or result.name: result for result in compared(folder)}
    assert {name: result.outcome for name, result in found.items()} == {
        "test_passes[0.0]": "passed", "test_passes[1.0]": "passed", "test_fails": "failed",
        "test_fails_on_both": compare.ON_JAX_TOO, "test_passes_on_maxjax": "passed",
        "test_draws_what_its_name_says": "passed",
        "test_skipped_here": "failed", "test_ends_the_process": "failed",
        **{f"test_skipped_on_both[{x}]": "skipped" for x in range(4)},
        "test_z_after_the_end": "passed", "tests/test_two.py": "failed"}
    assert "made to fail" in found["test_fails"].error
    assert found["test_fails"].place.startswith("tests/test_one.py:")
    assert found["test_ends_the_process"].error == "the process died"
    assert "no_such_module" in found["tests/test_two.py"].error


def test_jax_runs_what_does_not_pass_here_and_a_sample(made_up, monkeypatch):
    folder, _ = made_up
    ours, theirs = (compare.results_path(folder / "results", library, "made-up", FILES[0])
                    for library in compare.LIBRARIES)
    assert {result.name.partition("::")[2] for result in run.records.results_of(theirs)} == {
        "test_fails", "test_fails_on_both", "test_skipped_here", "test_ends_the_process",
        "test_skipped_on_both[0]", "test_skipped_on_both[1]", "test_skipped_on_both[2]",
        "test_passes[0.0]", "test_passes[1.0]", "test_passes_on_maxjax", "test_z_after_the_end",
        "test_draws_what_its_name_says"}
    times = compare.times(folder / "results", "made-up", FILES)
    assert times.tests == 4 and times.ours > 0 and times.theirs > 0
    monkeypatch.setattr(compare, "SAMPLED_TESTS", 2)
    passed = [name.partition("::")[2] for name in compare.wanted_of_jax(ours, is_sampled=True)
              if "pass" in name or "draws" in name]
    assert passed == ["test_passes[0.0]", "test_draws_what_its_name_says"]


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
    paths = [compare.results_path(folder / "results", "maxjax", "made-up", file) for file in FILES]
    lines, kept = paths[0].read_text().splitlines(), paths[1].stat().st_mtime_ns
    # Stopped in the middle of the last test.
    paths[0].write_text("".join(
        f"{line}\n" for line in lines if json.loads(line)["outcome"] == "began"
        or not json.loads(line)["id"].endswith("::test_z_after_the_end")))
    compare.ended_path(paths[0]).unlink()
    assert run.main([*words, "--keep"]) == 0
    added = [json.loads(line)["id"] for line in paths[0].read_text().splitlines()[len(lines) - 2:]]
    assert set(added) == {"tests/test_one.py::test_z_after_the_end"}
    found = {result.name: result.outcome for result in compared(folder)}
    assert found["tests/test_one.py::test_z_after_the_end"] == "passed"
    assert paths[1].stat().st_mtime_ns == kept


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
    for name in ("equinox/tests", "dm-haiku/haiku", "flax/tests/nnx", "diffrax", "other/tests"):
        (tmp_path / "checkouts" / name).mkdir(parents=True)
    found = run.sources(["diffrax=" + str(tmp_path)], [tmp_path / "checkouts"])
    assert {name: folder.name for name, folder in found.items()} == {
        "equinox": "equinox", "haiku": "dm-haiku", "flax-linen": "flax", "flax-nnx": "flax",
        "diffrax": tmp_path.name}
    with pytest.raises(ValueError, match="no folder below .* has the name and the tests"):
        run.sources([], [tmp_path / "here"])
    folder = run.compare.ROOT / "compat" / "libraries"
    required = "".join(path.read_text() for path in folder.glob("requirements*.txt"))
    for package in [suite.package for suite in suites.SUITES.values()]:
        if package != "numpy":
            assert f"\n{package}==" in required


def test_a_run_that_is_stopped(made_up, tmp_path, capsys):
    folder, words = made_up
    words = [*words, "--results", str(tmp_path)]
    assert run.main([*words, "--suite-seconds", "0"]) == 0 and "stopped" in capsys.readouterr().out
    assert compare.ran(tmp_path, "made-up", FILES) == []


def test_some_files_of_a_suite(made_up, tmp_path, capsys):
    _, words = made_up
    words = [*words, "--results", str(tmp_path), "--file"]
    assert run.main([*words, "*/test_two.py"]) in (0, 1)
    assert compare.ran(tmp_path, "made-up", FILES) == FILES[1:]
    with pytest.raises(SystemExit):
        run.main([*words, "no-such-file"])
    assert "no file of made-up is named no-such-file" in capsys.readouterr().err


def test_rows_of_other_suites_stay(made_up, tmp_path):
    folder, _ = made_up
    page = tmp_path / "libraries.md"
    page.write_text(f"# Libraries\n\n{section.ENDS[0]}\n| rlax | 1 | old |\n"
                    "| made-up | 1 | old |\n\n- rlax, not settled: `a`\n"
                    "- made-up, not settled: `b`\n"
                    f"{section.ENDS[1]}\n\nAfter.\n")
    known = run.records.read_known(folder / "known.toml")
    verdict = run.records.judge(compared(folder), known)
    entry = record.Entry("made-up", "1", FILES[0], "2026-01-02", "a", {},
                         compare.Times(3, 0.5, 2.0))
    rows = {"made-up": section.Row("1 at c", 2, [entry])}
    texts = []
    for _ in range(2):
        section.write(known, verdict, rows, page)
        text = page.read_text()
        assert "| rlax | 1 | old |" in text and text.count("| made-up |") == 1
        assert ("| made-up | 1 at c | 1 of 2 | 5 | 0 | 4 | 1 | 4 | 0.25 (of 3) | 2026-01-02, a |"
                in text)
        assert "- made-up, 3: made up" in text and text.endswith("\n\nAfter.\n")
        assert "- rlax, not settled: `a`" in text and "made-up, not settled" not in text
        texts.append(text)
    assert texts[0] == texts[1]
    page.write_text("# Libraries\n")
    section.write(known, verdict, rows, page)
    assert page.read_text().startswith("# Libraries\n\n" + section.ENDS[0])


def test_a_version_names_the_commit_of_a_checkout(made_up):
    folder, _ = made_up
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a"]
    assert suites.revision_of(folder) == "" == suites.revision_of(run.compare.ROOT / "tests")
    for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "a"]):
        subprocess.run([*git, *command], check=True)
    commit = suites.revision_of(folder)
    assert len(commit) == 9 and suites.revision_of(folder / "tests") == ""
    assert run.version_of(suites.SUITES["made-up"], folder) == f"{np.__version__} at {commit}"


def test_a_suite_goes_on_where_another_run_ended(made_up, tmp_path):
    _, words = made_up
    page, kept = tmp_path / "libraries.md", tmp_path / "record.jsonl"
    page.write_text("# Libraries\n")

    def entries():
        return record.read(kept).values()

    # Each run has results of its own, as on another machine.
    words = [word for word in words if word != "--no-docs"]
    words += ["--keep", "--record", str(kept), "--page", str(page), "--results"]
    run.main([*words, str(tmp_path / "first"), "--file", "*/test_two.py"])
    assert [entry.file for entry in entries()] == FILES[1:] and "| 1 of 2 | 0 " in page.read_text()
    run.main([*words, str(tmp_path / "second")])
    assert compare.ran(tmp_path / "second", "made-up", FILES) == FILES[:1]
    assert {entry.file: entry.counts for entry in entries()} == {
        FILES[0]: {"passed": 5, "difference": 3, compare.ON_JAX_TOO: 1, "skipped": 4},
        FILES[1]: {"internal": 1}}
    assert "| 2 of 2 | 5 | 0 | 4 | 1 | 4 |" in page.read_text()
    # What is of another release counts no more.
    old = [dataclasses.replace(entry, version="0") for entry in entries()]
    record.update(old, kept)
    assert {entry.version for entry in entries()} == {"0"}
    run.main([*words, str(tmp_path / "third"), "--file", "*/test_two.py"])
    entry, = entries()
    assert entry.file == FILES[1] and entry.version.startswith(np.__version__)


def test_an_entry_tells_what_fails(made_up):
    folder, _ = made_up
    entries = record.made_of(folder / "results", "made-up", "1", FILES, [])
    verdict = record.verdict_of(entries)
    assert verdict.counts["made-up"] == {"passed": 5, "failed": 4, compare.ON_JAX_TOO: 1,
                                         "skipped": 4}
    assert {result.name for result in verdict.failed} == {
        result.name for result in compared(folder) if result.outcome == "failed"}
    assert record.total_times(entries).tests == compare.times(
        folder / "results", "made-up", FILES).tests
    assert " to " not in record.span(entries)
    later = dataclasses.replace(entries[0], day="2999-01-01", commit="b")
    assert record.span([*entries, later]).endswith(" to 2999-01-01, b")


def test_tests_that_no_source_distribution_has():
    with pytest.raises(RuntimeError, match="has no tests: name a folder"):
        suites.source_of(suites.SUITES["equinox"])
    with pytest.raises(RuntimeError, match="no-such-package is not installed here"):
        suites.Suite("some", "no-such-package", ()).version  # noqa: B018
