"""Operations that stand for several compute the same bits when they come so often that they become
programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from tests.mojo.native_calls import same
from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax._base.config import compile_mode, enable_x64
from maxjax._base.meshes import use as mesh_use
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._runtime.program import Program, program_of
from maxjax._transforms.simplify import simplify_once
from maxjax.numpy import _at_once, _often, _whole

pytestmark = pytest.mark.xdist_group("mojo")

CALLS = """
    n.median(x) | n.median(m, axis=1) | n.median(m, axis=0, keepdims=True) | n.percentile(x, 30.)
    n.quantile(x, q) | n.quantile(m, q, axis=0, method="nearest") | n.nanmedian(x)
    n.nanpercentile(x, 30.) | n.nanquantile(m, 0.25, axis=1, method="midpoint") | n.interp(x, y, x)
    n.cross(m[:, :3], m[:, 1:]) | n.unwrap(x) | n.gradient(x) | n.gradient(m) | n.floor_divide(x, y)
    n.remainder(x, y) | n.divmod(x, y) | n.divmod(x, 2) | n.linspace(x, y, 4)
    n.nanargmax(x) | n.nanargmin(m, axis=1) | n.partition(x, 3) | n.argpartition(x, 3)
    n.fft.fftfreq(7) | n.packbits(x > 0) | n.sinc(x) | n.hypot(x, y) | l.lu(m) | l.lu(m.T)
    t.rankdata(x) | t.rankdata(x, method="min")
"""
TEXTS = [text.strip() for line in CALLS.strip().splitlines() for text in line.split("|")]
# All that is special to some rule: both zeros, NaN, infinities, halves, and what no integer holds.
VALUES = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 0.5, 2.5, -1.5, 3.0, 1e30, -7.3, 1e-30,
          1e10, -1e10, 0.1]


@pytest.fixture(autouse=True)
def without_meshes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_use, "ever_set", False)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[ClosedJaxpr]:
    """The operations that stand for several, of calls from now on."""
    made: list[ClosedJaxpr] = []
    original = _often.function_of

    def function_of(closed: ClosedJaxpr) -> Callable[..., Any]:
        made.append(closed)
        return original(closed)

    monkeypatch.setattr(_at_once, "function_of", function_of)
    monkeypatch.setattr(_whole.often, "function_of", function_of)
    maxjax.clear_caches()       # what another test has made would not be made again
    return made


def arrays(dtype: str, special: bool, size: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    x, y = (rng.choice(VALUES, size) if special else rng.normal(size=size) for _ in range(2))
    return jnp.asarray(x.astype(dtype)), jnp.asarray(y.astype(dtype))


def computed(text: str, x: Any, y: Any) -> list[Any]:
    names = {"n": jnp, "l": maxjax.scipy.linalg, "t": maxjax.scipy.stats, "x": x, "y": y,
             "m": x.reshape(3, -1), "q": jnp.asarray([0.2, 0.7], x.dtype)}
    return maxjax.tree.leaves(eval(text, names))


def inputs(closed: ClosedJaxpr, special: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    values = []
    for aval in closed.in_avals:
        if aval.dtype.kind == "f":
            value = rng.choice(VALUES, aval.shape) if special else rng.normal(size=aval.shape)
        else:
            value = rng.integers(0, 3, aval.shape)
        values.append(np.asarray(value).astype(aval.dtype))
    return values


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text", TEXTS)
def test_programs_give_what_the_interpreter_gives(text: str, dtype: str, programs: Any) -> None:
    with enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        for _ in range(_at_once._CALLS + 2):
            for leaf in computed(text, *arrays(dtype, False)):
                leaf.block_until_ready()
        exact = [closed for closed in programs if _often.has_same_bits(closed)]
        # Cumulative sums of float64 are no such operation.
        assert exact or (text, dtype) == ("n.unwrap(x)", "float64")
        for closed in exact:
            program = Program(closed)
            jaxpr = program.opened.jaxpr
            plan = CheckedPlan(jaxpr, 2)
            assert mojo_programs.store().build(plan.kernels) is None
            for special in (False, True):
                # The routine of LAPACK reads what is no number differently each time.
                values = inputs(closed, special and not text.startswith("l."))
                expected = _often.function_of(closed)(*values)
                for run in (mojo_programs.executable, mojo_programs.without_kernels):
                    for a, b in zip(run(plan, jaxpr)([*program.consts, *values]), expected,
                                    strict=True):
                        same(np.asarray(a), np.asarray(b))


# Calls of other sizes than the other tests' are traced anew.
@pytest.mark.parametrize("text", ["n.quantile(x, q)", "n.median(m, axis=1)", "n.hypot(x, y)",
                                  "n.divmod(x, y)", "t.rankdata(x)"])
def test_calls_stay_the_same_when_they_have_come_often(text: str, programs: Any) -> None:
    firsts = {special: computed(text, *arrays("float32", special, 15)) for special in (False, True)}
    for special, first in firsts.items():
        x, y = arrays("float32", special, 15)
        with compile_mode("auto"):
            for _ in range(_at_once._CALLS + _often._OFTEN + 9):
                last = computed(text, x, y)
                for a, b in zip(last, first, strict=True):
                    same(np.asarray(a), np.asarray(b))
        theirs = jax.tree.leaves(eval(text, {
            "n": jax.numpy, "t": jax.scipy.stats, "x": jax.numpy.asarray(np.asarray(x)),
            "y": np.asarray(y), "m": np.asarray(x).reshape(3, -1),
            "q": jax.numpy.asarray([0.2, 0.7])}))
        for a, b in zip(last, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=5e-6, atol=2e-6)
    ran = [program_of(closed) for closed in programs
           if len(closed.jaxpr.eqns) >= _often._LEAST_EQUATIONS]
    assert any(program.interpreted_calls + program.compiled_calls for program in ran)


def test_no_program_where_compiling_is_set_otherwise(programs: Any) -> None:
    x, y = arrays("float32", False, 18)
    for mode in ("never", "always"):
        with compile_mode(mode):
            for _ in range(_at_once._CALLS + _often._OFTEN + 9):
                computed("n.unwrap(x)", x, y)[0].block_until_ready()
    made = [program_of(closed) for closed in programs
            if len(closed.jaxpr.eqns) >= _often._LEAST_EQUATIONS]
    assert made
    assert not any(program.interpreted_calls or program.compiled_calls for program in made)


def test_quotients_that_programs_round_otherwise_stay_interpreted() -> None:
    def function(x: Any) -> Any:
        return [jnp.floor(maxjax.lax.neg(x) + 1) / x.dtype.type(3), x * x - x / x.dtype.type(7)]

    x = np.linspace(-3, 40, 19, dtype="float32")
    closed = simplify_once(maxjax.make_jaxpr(function)(x))
    assert _often.has_same_bits(closed) and len(closed.jaxpr.eqns) >= _often._LEAST_EQUATIONS
    run = _often.function_of(closed)
    with compile_mode("auto"):
        for _ in range(_often._OFTEN + 3):
            floors, differences = run(x)
            np.testing.assert_array_equal(floors, np.floor(-x + 1) / np.float32(3))
            np.testing.assert_array_equal(differences, x * x - x / np.float32(7))
    program = program_of(closed)
    assert not program.interpreted_calls and not program.compiled_calls


@pytest.mark.parametrize("function", [
    jnp.sin, jnp.sum, jnp.cumprod, lambda x: jnp.maximum(x, 0), lambda x: x @ x, jnp.max,
    lambda x: x * 1j, lambda x: x.astype("bfloat16") + 1])
def test_what_may_differ_is_not_taken_for_the_same(function: Any) -> None:
    closed = simplify_once(maxjax.make_jaxpr(function)(np.ones(9, "float32")))
    assert not _often.has_same_bits(closed)


def test_the_sign_of_an_extreme_zero_counts_where_it_can_be_seen() -> None:
    def seen(x: Any) -> Any:
        return 1 / jnp.maximum(x, 0)

    def unseen(x: Any) -> Any:
        return jnp.maximum(jnp.minimum(x, 5), 0).astype(int), jnp.maximum(x, 0) > 1

    x = np.ones(9, "float32")
    assert not _often.has_same_bits(simplify_once(maxjax.make_jaxpr(seen)(x)))
    assert _often.has_same_bits(simplify_once(maxjax.make_jaxpr(unseen)(x)))


def test_results_are_arrays_of_their_own() -> None:
    """What is computed from constants alone is kept, and nobody writes to it."""
    add = maxjax.jit(lambda x: x.at[0].add(3.0), donate_argnums=0)
    for make in (lambda: jnp.eye(4), lambda: jnp.tri(4), lambda: jnp.fft.fftfreq(8),
                 lambda: jnp.vander(jnp.arange(1.0, 4.0))):
        expected = np.array(make())
        with compile_mode("auto"):
            for _ in range(_at_once._CALLS + _often._OFTEN + 9):
                made = make()
                np.testing.assert_array_equal(made, expected)
                changed = add(made)
                np.testing.assert_array_equal(changed[1:], expected[1:])
                np.testing.assert_array_equal(changed[0], expected[0] + 3)
