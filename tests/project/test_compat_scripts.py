"""Whole scripts on maxjax and on JAX, and the runner that compares them."""

import dataclasses
from pathlib import Path

import pytest

from compat import scripts_runner
from compat.scripts_runner import Run, Script, first_difference, judge, tokens

# Scripts that JAX also runs quickly, from different areas.
QUICK = ["linear_regression", "pagerank", "policy_gradient", "heat_equation", "n_body"]
REQUIREMENTS = scripts_runner.ROOT / "compat" / "libraries" / "requirements.txt"
PLAIN = Script(Path("plain.py"), "")


@pytest.mark.parametrize("name", QUICK)
def test_a_script_passes(name):
    record, = scripts_runner.run_all([name], mode="interpreted")
    assert (record.state, record.detail) == ("pass", "")


def test_every_header_is_read():
    scripts = scripts_runner.all_scripts()
    waiting = [script for script in scripts if script.needs]
    assert len(scripts) >= 90 and len(waiting) <= 4
    for script in scripts:
        head = script.text.split('"""')[0]
        for key, value in (("needs", script.needs is not None), ("tolerance", script.tolerance !=
                           1e-5), ("absolute", script.absolute != 0)):
            assert (f"# {key}:" in head) == value, script.name
        assert 15 <= len(script.text.splitlines()) <= 150, script.name


def test_scripts_of_libraries():
    """Each library is one of those that `make library-scripts` installs (xoscar by itself), or
    stands under JAX's."""
    pinned = {line.partition("==")[0] for line in REQUIREMENTS.read_text().splitlines()}
    scripts = [script for script in scripts_runner.all_scripts() if script.libraries]
    assert len(scripts) >= 25
    for script in scripts:
        assert set(script.libraries) <= pinned | {"absl-py", "xoscar"}, script.name


def test_a_library_that_is_missing(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("# libraries: jax a-library-of-no-one\nprint(1)\n")
    (tmp_path / "two.py").write_text("# libraries: jax\nprint(jax.no)\n")
    monkeypatch.setattr(scripts_runner, "FOLDER", tmp_path)
    one, two = scripts_runner.all_scripts()
    assert (one.missing, two.missing) == (["a-library-of-no-one"], [])
    record, = scripts_runner.run_all(["one"])
    assert (record.state, record.detail) == ("skipped", "not installed: a-library-of-no-one")
    assert record.ratio == 0.0


def test_a_tolerance_has_a_reason(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("# tolerance: 1e-2\nprint(1)\n")
    with pytest.raises(ValueError, match="reason"):
        scripts_runner.read_script(path)
    path.write_text("# needs: jax.a.b\n# tolerance: 1e-2 (it is long)\nprint(1)\n")
    script = scripts_runner.read_script(path)
    assert (script.needs, script.tolerance, script.absolute) == ("jax.a.b", 1e-2, 0.0)
    with pytest.raises(ValueError, match="no script"):
        scripts_runner.all_scripts(["nothing"])


def test_tokens_of_an_output_are_numbers_and_words():
    assert tokens("x1=[-1.5 2.e-3], 7 nan 1+2j") == [
        ("x1", None), ("=", None), ("[", None), ("-1.5", -1.5), ("2.e-3", 2e-3), ("]", None),
        (",", None), ("7", 7), ("nan", pytest.approx(float("nan"), nan_ok=True)), ("1", 1),
        ("+", None), ("2", 2), ("j", None)]


@pytest.mark.parametrize("ours, theirs", [
    ("loss 0.500001", "loss 0.500002"), ("[1.\n 2.]", "[1. 2.]"), ("nan inf -inf", "nan inf -inf"),
    ("a  b", "a b"), ("1e-3", "0.001"),
])
def test_equal_texts(ours, theirs):
    assert first_difference(ours, theirs, PLAIN) is None


@pytest.mark.parametrize("ours, theirs, line", [
    ("a\n0.5001", "a\n0.5", 2), ("7", "8", 1), ("7", "7.0", 1), ("1.0", "nan", 1),
    ("inf", "-inf", 1), ("1.0", "inf", 1), ("True", "False", 1), ("[1.0]", "[1.0 2.0]", 1),
    ("a", "a\nb", 2), ("a\nb", "a", 2), ("1e-9", "2e-9", 1), ("0.0", "1e-9", 1),
])
def test_different_texts(ours, theirs, line):
    assert first_difference(ours, theirs, PLAIN).startswith(f"line {line}:")


def test_tolerances():
    loose = dataclasses.replace(PLAIN, tolerance=1e-2)
    assert first_difference("1.005", "1.0", loose) is None
    assert first_difference("1.02", "1.0", loose) is not None
    near_zero = dataclasses.replace(PLAIN, absolute=1e-3)
    assert first_difference("-1e-4", "1e-4", near_zero) is None
    assert first_difference("-1e-2", "1e-2", near_zero) is not None


def test_states_follow_from_both_runs():
    waits = dataclasses.replace(PLAIN, needs="jax.custom_vjp")
    good, other = Run("1.5\n", "", 0, 1.0), Run("1.6\n", "", 0, 2.0)
    lacks = Run("", "Traceback\nAttributeError: 'jax' has no attribute 'custom_vjp'", 1, 1.0)
    broken, slow = Run("", "ValueError: no", 1, 1.0), Run("", "", None, 9.0)
    cases = [(PLAIN, good, good, "pass"), (PLAIN, good, other, "fail"),
             (PLAIN, good, broken, "fail"), (PLAIN, broken, good, "fail"),
             (PLAIN, good, slow, "fail"), (PLAIN, good, lacks, "fail"),
             (waits, good, lacks, "waiting"), (waits, good, broken, "fail"),
             (waits, good, good, "fail"), (waits, good, other, "fail"),
             (waits, broken, lacks, "fail")]
    for script, jax, ours, state in cases:
        assert judge(script, jax, ours).state == state
    assert "remove" in judge(waits, good, good).detail
    assert judge(PLAIN, good, other).ratio == 2.0


def test_a_wrong_number_is_found(tmp_path):
    """Actually run: a number that depends on the library represents a wrong result."""
    path = tmp_path / "wrong.py"
    path.write_text("import jax\nimport jax.numpy as jnp\nprint('first', jnp.float32(0.5))\n"
                    "print('sum', 1.0 + 0.01 * jax.numpy.__name__.startswith('maxjax'))\n")
    script = scripts_runner.read_script(path)
    record = judge(script, scripts_runner.run_jax(script, cached=False),
                   scripts_runner.run_maxjax(script, "interpreted"))
    assert record.state == "fail"
    assert record.detail == "line 2: 'sum 1.01', in JAX 'sum 1.0'"
