"""The harness of JAX's own tests, on a file of tests that is made up here."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("jax")

from compat.jax_tests import docstrings, records, section
from compat.jax_tests.run import devices_of
from compat.jax_tests.run import test_files as files_of
from tests import ROOT

# What they share is computed once.
pytestmark = [pytest.mark.extended, pytest.mark.xdist_group("jax_tests")]

TESTS = '''
import os
import time
import unittest

import jax
import jax.numpy as jnp
import maxjax.numpy
from jax import lax
from jax._src import api, config, core

JTU = """
jtu.request_cpu_devices(2)
"""

class SomeTest(unittest.TestCase):
    def test_public(self):
        self.assertEqual(jax.jit(jnp.sin)(0.0), 0.0)
        self.assertIs(jnp.sin, maxjax.numpy.sin)
        self.assertEqual(len(jax.devices()), 2)

    def test_private_of_a_public_object(self):
        self.assertIs(api.jit, jax.jit)
        with config.numpy_rank_promotion("raise"):
            with self.assertRaisesRegex(ValueError, "rank_promotion"):
                jnp.zeros(2) + jnp.zeros((1, 2))

    def test_private_object(self):
        lax.sin(core.Token(None))

    def test_wrong(self):
        self.assertEqual(jnp.sin(0.0), 1.0)

    def test_listed_and_passes(self):
        self.assertEqual(lax.cos(0.0), 1.0)

    @unittest.skip("for a reason")
    def test_skipped(self):
        pass

    def test_too_long(self):
        try:
            time.sleep(60)
        except Exception:
            pass

    def test_ends_the_process(self):
        os.kill(os.getpid(), 9)

    def test_z_after_the_end(self):
        pass
'''
# A file that generates its tests may generate others on JAX.
GENERATED_HERE = '''
    if jnp.sin is maxjax.numpy.sin:
        def test_generated_here(self):
            self.fail()
'''
KNOWN = '''
[[known]]
kind = "internal"
file = "*"
error = "jax._src.core.Token"
reason = "private objects of JAX"

[[known]]
kind = "difference"
file = "some_test"
tests = ["SomeTest::test_wrong"]
reason = "made up"
'''
PASSING = '''
[[known]]
kind = "difference"
file = "some_test"
tests = ["SomeTest::test_listed_*"]
reason = "no longer"
'''


def harness(folder, *words, more=("--all",)):
    return subprocess.run(
        [sys.executable, "-m", "compat.jax_tests", *words, "--results", str(folder / "results"),
         "--known", str(folder / "known.toml"), "--no-matrix", "--test-seconds", "2", *more],
        cwd=ROOT, text=True, capture_output=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout whose one file has been run."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "tests").mkdir()
    (folder / "tests" / "some_test.py").write_text(TESTS)
    (folder / "known.toml").write_text(KNOWN)
    ran = harness(folder, str(folder))
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return folder


def states(folder, known):
    (folder / "known.toml").write_text(known)
    ran = harness(folder, "--report")
    verdict = records.judge(records.read_results(folder / "results"),
                            records.read_known(folder / "known.toml"))
    return ran, verdict


def test_each_outcome(checkout):
    ran, verdict = states(checkout, KNOWN)
    assert verdict.counts["some_test"] == {"passed": 4, "failed": 2, "difference": 1,
                                           "internal": 1, "skipped": 1}
    assert {result.name: result.error.partition(":")[0] for result in verdict.failed} == {
        "SomeTest::test_too_long": "TookTooLong",
        "SomeTest::test_ends_the_process": "the process died"}
    assert ran.returncode == 1 and not verdict.gone
    assert "SomeTest::test_too_long" in ran.stdout


def test_a_run_is_good_when_all_failures_are_known(checkout):
    more = KNOWN.replace('"SomeTest::test_wrong"',
                         '"SomeTest::test_wrong", "SomeTest::test_too_long", "*ends_the*"')
    ran, verdict = states(checkout, more)
    assert ran.returncode == 0 and verdict.is_good, ran.stdout
    assert verdict.counts["some_test"]["difference"] == 3


@pytest.mark.parametrize(("more", "passed"), [((), 2), (("--brief",), 3)])
def test_what_fails_on_jax_does_not_count(tmp_path, more, passed):
    (tmp_path / "some_test.py").write_text(
        TESTS.partition("    @unittest.skip")[0] + GENERATED_HERE)
    (tmp_path / "known.toml").write_text(KNOWN.partition("[[known]]\nkind = \"diff")[0])
    ran = harness(tmp_path, str(tmp_path), more=more)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # On JAX test_public finds JAX's functions and not maxjax's; JAX is not asked for it in brief.
    assert f"all: {passed} passed, 0 failed, 0 difference, 0 internal" in ran.stdout, ran.stdout


def test_a_known_failure_that_passes_fails_the_run(checkout):
    ran, verdict = states(checkout, KNOWN + PASSING)
    line, = verdict.gone
    assert "test_listed_*" in line and line in ran.stdout and ran.returncode == 1


def test_a_cause_that_is_gone_fails_a_whole_run(checkout):
    results = records.read_results(checkout / "results")
    gone = records.parse([{"kind": "internal", "file": "some_test", "error": "no such error",
                           "reason": "r"}])
    assert not records.judge(results, gone).gone
    assert len(records.judge(results, gone, ["some_test"]).gone) == 1


@pytest.mark.parametrize("row", [
    {"kind": "difference", "file": "*", "reason": "excuses everything"},
    {"kind": "difference", "file": "*", "tests": ["a"], "reason": ""},
    {"kind": "other", "file": "*", "tests": ["a"], "reason": "r"}])
def test_rows_that_say_too_little(row):
    with pytest.raises(ValueError, match="a known failure"):
        records.parse([row])


def test_the_list_is_in_order():
    for row in records.read_known():
        assert len(row.reason.split()) >= 3, row


def test_files_of_tests_are_found_by_name(checkout, tmp_path):
    path, = files_of(checkout, [])
    assert files_of(checkout / "tests", ["some_test"]) == [path] and devices_of(path) == 2
    with pytest.raises(ValueError, match="no other_test.py"):
        files_of(checkout, ["other_test"])
    with pytest.raises(ValueError, match="no tests in"):
        files_of(tmp_path, [])


def test_the_section_replaces_itself(checkout, tmp_path):
    _, verdict = states(checkout, KNOWN)
    for suffix in (".md", ".html"):
        path = tmp_path / f"matrix{suffix}"
        path.write_text((ROOT / "compat" / path.name).read_text())
    section.write(verdict, tmp_path)
    first = [(tmp_path / f"matrix{suffix}").read_text() for suffix in (".md", ".html")]
    assert "| some_test | 4 | 2 | 1 | 1 | 1 |" in first[0]
    section.write(verdict, tmp_path)
    assert first == [(tmp_path / f"matrix{suffix}").read_text() for suffix in (".md", ".html")]
    bare = "# Matrix\n\n## Known differences\n"
    assert section.kept(tmp_path / "matrix.md", bare).count("some_test") == 1


# --- docstrings -----------------------------------------------------------------------------------

def test_docstrings_are_run_on_both(tmp_path):
    (tmp_path / "known.toml").write_text("")
    ran = harness(tmp_path, "--docstrings", "jax.numpy.sin", "jax.numpy.ufunc.at")
    assert "of 2 objects with examples 2 pass on JAX" in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode == 0
    lines = (tmp_path / "results" / "docstrings.jsonl").read_text().splitlines()
    assert {json.loads(line)["id"] for line in lines} == {"jax.numpy.sin", "jax.numpy.ufunc.at"}


def test_a_failing_example_is_told():
    assert docstrings.examine("jax.numpy.sin", ">>> 1 + 1\n2\n") is None
    assert "Got" in docstrings.examine("jax.numpy.sin", ">>> 1 + 1\n3\n")
    assert "jax.numpy.sin" in docstrings.texts()
