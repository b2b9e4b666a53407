"""Subnormal numbers, which compiled programs take for 0, as XLA's do."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax._base.config import compile_mode, enable_x64
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")


def runs(function: Any, *args: np.ndarray) -> list[Any]:
    """A program's results, by kernels and by the machines."""
    program = Program(maxjax.make_jaxpr(function)(*args))
    plan = CheckedPlan(program.opened.jaxpr, 2)
    assert mojo_programs.store().build(plan.kernels) is None
    values = [*program.consts, *args]
    return [run(plan, program.opened.jaxpr)(values)
            for run in (mojo_programs.executable, mojo_programs.without_kernels)]


def functions(j: Any, d: Any) -> dict[str, Any]:
    return {
        "products": lambda x: (x * 0.5, x * 3, x / 2, x * x, (x * 2) * 1e38),
        "sums": lambda x: (x + x, x - 0.5 * x, j.sum(x), j.cumsum(x), x @ x, j.maximum(x, 0)),
        "comparisons": lambda x: (x > 0, x == 0, x != 0, x < 1e-45, x.astype(bool)),
        "functions": lambda x: (j.log(x), j.sqrt(x), 1 / x, j.exp(x), j.tanh(x)),
        "left as they are": lambda x: (-x, j.abs(x), x[::-1], j.where(j.arange(x.size) > 2, x, 1)),
        "loops": lambda x: d.lax.fori_loop(0, 5, lambda i, y: y * 0.9, x),
        "long loops": lambda x: d.lax.fori_loop(0, 5, lambda i, y: y * 0.9 + 0 * y[::-1],
                                                j.tile(x, 60)),
        "rows": lambda x: j.tile(x, (50, 40)).sum(0),
    }


@pytest.mark.parametrize("name", functions(jax.numpy, jax))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_programs_give_what_jax_s_do(name, dtype):
    info = np.finfo(dtype)
    x = np.array([info.smallest_subnormal, info.tiny / 2, 0.99 * info.tiny, -info.tiny / 4,
                  info.tiny, -0.0, 2 * info.tiny], dtype)
    with enable_x64(dtype == "float64"), jax.enable_x64(dtype == "float64"), \
            np.errstate(all="ignore"):
        expected = jax.tree.leaves(jax.jit(functions(jax.numpy, jax)[name])(x))
        for results in runs(functions(jnp, maxjax)[name], x):
            for ours, theirs in zip(results, expected, strict=True):
                assert ours.dtype == theirs.dtype
                if ours.dtype == bool:
                    np.testing.assert_array_equal(ours, theirs)
                else:
                    # What XLA computes by moving bits it leaves as it is.
                    np.testing.assert_allclose(*map(mojo_programs.flushed, (ours, theirs)),
                                               rtol=4 * info.eps, atol=0)


def test_python_computes_with_them():
    """Amid a program and after it."""
    seen = []

    def look(x):
        seen.append(float(np.float32(1e-39) * np.float32(0.5)))

    def function(x):
        def step(i, x):
            maxjax.debug.callback(look, x)
            return x * 0.5
        return maxjax.lax.fori_loop(0, 3, step, x) + 0

    with compile_mode("always"):
        result = np.asarray(maxjax.jit(function)(np.full(5, 2e-38, np.float32)))
    maxjax.effects_barrier()
    np.testing.assert_array_equal(result, 0)
    assert len(seen) == 3 and min(seen) > 0
    assert np.float32(1e-39) * np.float32(0.5) > 0
