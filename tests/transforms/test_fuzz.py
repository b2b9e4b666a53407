"""Random programs with control flow against real JAX: values, derivatives, vmap, and jit of vmap
of the gradient."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import maxjax
from maxjax._base.config import enable_x64
from maxjax._ir.check import check_jaxpr
from maxjax._transforms.simplify import simplify
from tests.gen import fuzz_programs
from tests.support import harness
from tests.support.against_jax import answers_of

# Of default runs; `pytest -m exhaustive` runs 10,000 smaller ones.
COUNT = 16
BATCHES, BATCH = 100, 100
RELATIVE, ABSOLUTE = 2e-4, 2e-5


def modes_of(program: fuzz_programs.Program, j: Any) -> dict[str, Callable[..., Any]]:
    """Functions of the program's arguments."""
    fun = program.on(j)

    def with_gradient(x, y, n):
        def total(x, y):
            results = fun(x, y, n)
            floats = [r for r in results if j.numpy.issubdtype(r.dtype, np.floating)]
            return sum(j.numpy.sum(r) * (0.5 + 0.25 * k) for k, r in enumerate(floats)), results
        gradients, results = j.grad(total, (0, 1), has_aux=True)(x, y)
        return results, gradients

    def with_tangent(x, y, n):
        outs, tangents = j.jvp(lambda x, y: fun(x, y, n), (x, y), (x * 0.25 + 1, y - 0.5))
        return outs, [t for t in tangents if t.dtype != jax.dtypes.float0]

    derivative = with_gradient if program.reverse else with_tangent

    def mapped(x, y, n):
        return j.vmap(derivative, in_axes=(0, None, 0), out_axes=0)(
            j.numpy.stack([x, x * 0.5, 1 - x]), y, j.numpy.stack([n, n + 1, n + 3]))

    def second(x, y, n):
        return j.jvp(lambda x: [t * 0.5 for t in derivative(x, y, n)[1]], (x,), (x + 1,))

    modes = {"value": fun, "derivative": derivative, "vmap of derivative": mapped}
    if program.seed % 4 == 0:
        modes["second derivative"] = second
    return modes


def widened(args: Any) -> Any:
    return tuple(x.astype(np.float64) if x.dtype == np.float32 else x for x in args)


@contextlib.contextmanager
def double_precision():
    with jax.enable_x64(True), enable_x64(True):
        yield


def expected(program: fuzz_programs.Program) -> dict[str, Any]:
    """JAX's answer in each mode, or its error."""
    modes = modes_of(program, jax)
    value = modes.pop("value")      # part of the next, and compiling takes most of the time
    answers = answers_of(modes, *program.args)
    if isinstance(answers["derivative"], Exception):
        return answers | answers_of({"value": value}, *program.args)
    return answers | {"value": answers["derivative"][0]}


def difference(actual: Any, answer: Any) -> str | None:
    """How a result differs from JAX's; trees, dtypes, shapes, weak types and values."""
    if jax.tree_util.tree_structure(actual) != jax.tree_util.tree_structure(answer):
        return f"another structure: {actual}, not {answer}"
    for number, (a, e) in enumerate(zip(
            harness.leaves(actual), harness.leaves(answer), strict=True)):
        if (a.dtype, a.shape, a.weak_type) != (e.dtype, e.shape, e.weak_type):
            return f"[{number}] {a.aval}, not {e.aval}"
        a, e = np.asarray(a), np.asarray(e)
        scale = float(np.max(np.abs(e), initial=1.0)) if e.dtype.kind == "f" else 0.0
        if not np.allclose(a, e, RELATIVE if scale else 0, ABSOLUTE * scale, equal_nan=True):
            return f"[{number}] {a}, not {e}"
    return None


def check(program: fuzz_programs.Program) -> None:
    answers = expected(program)
    modes = modes_of(program, maxjax)
    for name, mode in modes.items():
        jitted = maxjax.jit(mode)
        for run, how in ((mode, name), (jitted, f"jit of {name}")):
            problem = problem_of(run, program.args, answers[name])
            if problem and "Error" not in problem and is_rounding(program, name):
                problem = None
            assert problem is None, f"seed {program.seed}, {how}: {problem}\n{program.text}"
        if not isinstance(answers[name], Exception):
            closed = jitted._lookup(program.args, {}).closed
            check_jaxpr(closed)
            check_jaxpr(simplify(closed))


def problem_of(run: Callable[..., Any], args: Any, answer: Any) -> str | None:
    try:
        actual = run(*args)
    except Exception as error:
        if isinstance(answer, Exception) and type(error).__name__ == type(answer).__name__:
            return None
        return f"{type(error).__name__}: {error}\nnot {answer!r}"
    if isinstance(answer, Exception):
        return f"no error, but JAX has {answer!r}"
    return difference(actual, answer)


def is_rounding(program: fuzz_programs.Program, name: str) -> bool:
    """Whether the libraries agree to far more digits in double precision: then a condition was
    within rounding of its threshold, or the program magnifies rounding."""
    with double_precision():
        args = widened(program.args)
        return difference_within(modes_of(program, maxjax)[name](*args),
                                 jax.jit(modes_of(program, jax)[name])(*args), 1e-9)


def difference_within(actual: Any, answer: Any, bound: float) -> bool:
    return all(np.allclose(np.asarray(a), np.asarray(e), bound, bound, equal_nan=True)
               for a, e in zip(harness.leaves(actual), harness.leaves(answer), strict=True))


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_random_program_agrees_with_jax(seed):
    check(fuzz_programs.program(seed))


@pytest.mark.exhaustive
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_programs(batch):
    for seed in range(1000 + batch * BATCH, 1000 + (batch + 1) * BATCH):
        check(fuzz_programs.program(seed, structures=1 + seed % 4))
    jax.clear_caches()
