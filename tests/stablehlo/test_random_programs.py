"""Random programs, written as StableHLO and run by real XLA: they give what JAX gives."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import maxjax
from tests.gen import fuzz_programs, matrix_programs
from tests.stablehlo.test_stablehlo import parsed, run_by_xla
from tests.support import harness
from tests.transforms import test_fuzz

# `pytest -m exhaustive` runs so many more of both kinds.
MORE = 300
RELATIVE, ABSOLUTE = 2e-3, 2e-4


def check(ours, theirs, args, name):
    try:
        expected = harness.leaves(jax.jit(theirs)(*args))
    except Exception:
        return      # what JAX refuses, test_fuzz compares
    text = maxjax.jit(ours, keep_unused=True).lower(*args).as_text()
    assert "maxjax." not in text, name
    actual = run_by_xla(text, harness.leaves(args))
    assert len(actual) == len(expected)
    for number, (a, e) in enumerate(zip(actual, map(np.asarray, expected), strict=True)):
        assert (a.shape, a.dtype) == (e.shape, e.dtype), (name, number)
        scale = float(np.max(np.abs(e), initial=1.0)) if e.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(a, e, RELATIVE if scale else 0, ABSOLUTE * scale,
                                   err_msg=f"{name} [{number}]")


def check_matrix_program(seed):
    name, function = matrix_programs.program(seed)
    check(function(maxjax), function(jax), (matrix_programs.ARGUMENT,), f"seed {seed}: {name}")


def check_fuzz_program(seed):
    program = fuzz_programs.program(seed, 4)
    ours, theirs = (test_fuzz.modes_of(program, j) for j in (maxjax, jax))
    for mode in ours:
        check(ours[mode], theirs[mode], program.args, f"seed {seed}, {mode}:\n{program.text}")


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_of_matrices(seed):
    check_matrix_program(seed)


@pytest.mark.parametrize("seed", range(3))
def test_control_flow(seed):
    check_fuzz_program(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20, 20 + MORE))
def test_more_programs(seed):
    check_matrix_program(seed)
    check_fuzz_program(seed)


def test_a_scan_of_length_zero():
    def function(j):
        return lambda x: j.lax.scan(lambda c, row: (c + row, c * row), j.numpy.ones(3), x[:0])

    x = np.ones((2, 3), np.float32)
    check(function(maxjax), function(jax), (x,), "scan")


@pytest.mark.parametrize("keep_unused", [False, True])
def test_arguments_that_nothing_reads(keep_unused):
    """A module has those that JAX's has."""
    def main(j):
        lowered = j.jit(lambda x, y, z: y * 2, keep_unused=keep_unused).lower(1.0, 2.0, 3)
        return next(line for line in lowered.as_text().splitlines() if "@main" in line)

    assert main(maxjax) == main(jax)


def test_solves_are_calls_of_lapack():
    """As JAX makes them: XLA knows the targets, and results of what fails are NaN."""
    def function(j):
        return lambda x: (j.numpy.linalg.cholesky(x), j.numpy.linalg.solve(x, x[0]))

    x = -np.eye(3, dtype=np.float32)
    text = maxjax.jit(function(maxjax)).lower(x).as_text()
    assert all(name in text for name in ("lapack_spotrf", "lapack_sgetrf", "lapack_strsm"))
    factor, solution = run_by_xla(text, [x])
    for a, e in zip((factor, solution), jax.jit(function(jax))(x), strict=True):
        np.testing.assert_array_equal(a, np.asarray(e))
    assert np.isnan(factor).any() and parsed(text)
