"""Loops over small and middle arrays: windows written in place, and loops that are one function."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.gen import loop_programs
from tests.mojo.test_cases import check_guarded
from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base.config import enable_x64
from maxjax._max.mojo import small_loops
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._max.mojo.emit_loop import LoopForm
from maxjax._max.mojo.loop_function import FunctionForm
from maxjax._max.mojo.tape import Tape
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

COUNT, MANY = 40, 400


@pytest.fixture(autouse=True)
def no_small_loops(monkeypatch):
    """Arrays are small here, and their loops tapes nevertheless."""
    monkeypatch.setattr(small_loops, "MOST_ELEMENTS", 0)


@pytest.fixture
def poisoned(monkeypatch):
    """Unwritten memory contains NaN and -1."""
    mojo_programs.fill_unwritten(monkeypatch, 0xff)


# --- random loops ---------------------------------------------------------------------------------

def test_random_loops_on_their_tapes(poisoned, monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    mojo_programs.check_all(loop_programs.default(COUNT))


@pytest.mark.extended
def test_random_loops_as_functions(poisoned):
    items = loop_programs.default(COUNT)
    assert sum(any(isinstance(kernel, FunctionForm) for kernel in item.kernels)
               for item in items) > COUNT // 2
    mojo_programs.build(items)
    mojo_programs.check_all(items)


@pytest.mark.extended
@pytest.mark.parametrize("side", ["end", "begin"])
def test_random_loops_within_bounds(side):
    mojo_programs.build(loop_programs.default(COUNT))
    check_guarded(side, "loops", COUNT)


@pytest.mark.exhaustive
@pytest.mark.parametrize("batch", range(4))
def test_many_random_loops(batch, poisoned):
    items = [loop_programs.item(seed) for seed in range(1000 + batch * MANY // 4,
                                                        1000 + (batch + 1) * MANY // 4)]
    mojo_programs.build(items)
    mojo_programs.check_all(items)


@pytest.mark.parametrize("seed", range(5))
def test_random_loops_give_what_jax_gives(seed):
    """One of each dtype, on tier 0, which all others are held against."""
    drawn = loop_programs.Drawn(seed)
    with jax.enable_x64(True), enable_x64(True):
        theirs = jax.tree.leaves(jax.jit(drawn.function(jax))(*drawn.args, drawn.rows))
        program = Program(maxjax.make_jaxpr(drawn.function(maxjax))(*drawn.args, drawn.rows))
        ours = program.tier0(*program.consts, *drawn.args, drawn.rows)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, np.asarray(b), strict=True)


REDUCED = {"bool": ("any", "all", "sum"), "int8": ("sum", "max", "min", "prod"),
           "uint16": ("sum", "max", "min"), "bfloat16": ("sum", "max", "min", "prod"),
           "float16": ("sum", "max", "min"), "float32": ("sum", "max", "min", "prod"),
           "complex64": ("sum", "prod")}


@pytest.mark.parametrize("dtype", REDUCED)
def test_short_rows(dtype, poisoned):
    """Reductions of rows of several lengths, floats with NaN and infinities, in a scan's body."""
    items = []
    for length in (1, 2, 3, 7, 10, 16, 17, 31, 33, 65):
        data = (np.arange(6 * length).reshape(6, length) * 7 % 5 - 2).astype(jnp.dtype(dtype))
        if dtype in ("bfloat16", "float16", "float32"):
            data[1, 0], data[2, -1], data[3, length // 2] = np.nan, np.inf, -np.inf

        def run(rows, dtype=dtype):
            def body(total, row):
                found = [getattr(jnp, name)(row, dtype=row.dtype) if name in ("sum", "prod")
                         and dtype != "bool" else getattr(jnp, name)(row)
                         for name in REDUCED[dtype]]
                return total + row, found
            return lax.scan(body, rows[0], rows)

        program = Program(maxjax.make_jaxpr(run)(data))
        items.append(mojo_programs.Item(f"{dtype}[{length}]", program, [*program.consts, data],
                                        "accumulate").plan())
    mojo_programs.build(items)
    mojo_programs.check_all(items)


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float32"])
def test_columns_of_many_rows(dtype, poisoned):
    """More rows than are added up in one go, of several dimensions: in parts, in the function."""
    items = []
    for shape, axes in (((97, 5), 0), ((3, 3, 9, 8), (0, 1, 2)), ((2, 65, 2, 7), (0, 1, 2)),
                        ((66, 3, 2, 5), (0, 2)), ((2, 61, 33), (0, 1))):
        data = (np.arange(np.prod(shape)).reshape(shape) * 7 % 5 - 2).astype(jnp.dtype(dtype))
        if dtype in ("bfloat16", "float32"):
            data[(1,) * len(shape)], data[(-1,) * len(shape)] = np.nan, np.inf

        def run(x, axes=axes):
            def body(i, state):
                x, total = state
                y = x ^ (i > 1) if dtype == "bool" else x * i.astype(x.dtype)
                found = [getattr(jnp, name)(y, axes).astype(x.dtype) for name in REDUCED[dtype]]
                return jnp.flip(x, axes), sum(found, total)
            first = jnp.zeros_like(x, shape=np.delete(x.shape, axes))
            return lax.fori_loop(0, 3, body, (x, first))

        program = Program(maxjax.make_jaxpr(run)(data))
        items.append(mojo_programs.Item(f"{dtype}{shape}", program, [*program.consts, data],
                                        "accumulate").plan())
        assert not any("_part(" in kernel.source for kernel in items[-1].kernels), shape
    mojo_programs.build(items)
    mojo_programs.check_all(items)


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float32"])
def test_columns_that_are_stored_while_they_are_reduced(dtype, poisoned):
    """In place and elsewhere, with numbers that each row has; few rows, and parts of many."""
    items = []
    for shape, axes in (((14, 20), 0), ((97, 5), 0), ((3, 65, 2, 7), (0, 1, 2)),
                        ((66, 3, 2, 5), (0, 2))):
        data = (np.arange(np.prod(shape)).reshape(shape) * 7 % 5 - 2).astype(jnp.dtype(dtype))
        if dtype == "float32":
            data[(1,) * len(shape)], data[(-1,) * len(shape)] = np.nan, np.inf
        kept = np.delete(shape, axes)

        def run(x, each, axes=axes, kept=kept):
            def body(i, state):
                x, each, before, total = state
                y = x ^ each if dtype == "bool" else x * i.astype(x.dtype) + each
                z = ~y if dtype == "bool" else jnp.maximum(y - jnp.expand_dims(total, axes), y)
                found = [getattr(jnp, name)(y, axes).astype(x.dtype) for name in REDUCED[dtype]]
                found.append(z.max(axes))
                return y, jnp.flip(each), z, sum(found, total)
            return lax.fori_loop(0, 3, body, (x, each, x, jnp.zeros_like(x, shape=kept)))

        each = data[..., :1]
        program = Program(maxjax.make_jaxpr(run)(data, each))
        items.append(mojo_programs.Item(f"{dtype}{shape}", program, [
            *program.consts, data, each], "accumulate").plan())
        assert not any("_part(" in kernel.source for kernel in items[-1].kernels), shape
    mojo_programs.build(items)
    mojo_programs.check_all(items)


SHORT = {
    "blocks": lambda x: x * 0.5 + jnp.pad(x.reshape(12, 2, 15, 2).max((1, 3)), (
        (0, 12), (0, 15))),
    "blocks of blocks": lambda x: x - x.reshape(4, 6, 3, 10).sum((1, 3))[:, :, None, None].repeat(
        6, 2).repeat(10, 3).transpose(0, 2, 1, 3).reshape(24, 30),
    "vectors": lambda x: (v := x.reshape(240, 3)) * v.max(1, keepdims=True) - jnp.roll(v, 1, 1),
    "products of vectors": lambda x: jnp.stack([x.reshape(180, 4)[:, k] * x.reshape(180, 4)[
        :, k - 1] - x.reshape(180, 4)[:, k - 2] for k in range(4)], 1),
    "scaled vectors": lambda x: (v := x.reshape(240, 3)) * np.float32([1, 2, 0.5]) - jnp.where(
        v > np.float32([0, 1, 2]), v, 1),
    "angles of pairs": lambda x: jnp.sin(
        (v := x.reshape(360, 2)) + np.float32([1, 2])) - v[:, ::-1],
    "counted vectors": lambda x: (x.astype(int).reshape(180, 4) // jnp.arange(1, 5)
                                  + jnp.arange(180)[:, None] % 3).astype(np.float32),
    "means of vectors": lambda x: (v := x.reshape(144, 5)) / (1 + (v * v).sum(1))[:, None],
}


@pytest.mark.extended
def test_short_rows_of_many(poisoned):
    """Vectors of few elements, and blocks, that an array consists of."""
    items = []
    data = np.random.default_rng(3).integers(-4, 5, (24, 30)).astype(np.float32)
    for name, step in SHORT.items():
        def run(x, step=step):
            return lax.fori_loop(0, 2, lambda i, x: step(x).reshape(x.shape), x)
        program = Program(maxjax.make_jaxpr(run)(data))
        items.append(mojo_programs.Item(name, program, [*program.consts, data],
                                        "accumulate").plan())
    mojo_programs.build(items)
    mojo_programs.check_all(items)


# --- what becomes a function ----------------------------------------------------------------------

A, B = (np.random.default_rng(seed).integers(-4, 5, (40, 30)).astype(np.float32)
        for seed in range(2))


def planned(function, *args, cores=1):
    program = Program(maxjax.make_jaxpr(function)(*args))
    plan = CheckedPlan(program.opened.jaxpr, cores)
    return program, plan


def within(tape: Tape) -> list[str]:
    """The calls of the tapes in a tape."""
    found = []
    for step in tape.steps:
        for x in step.integers:
            if isinstance(x, Tape):
                found += [step.function for step in x.steps] + within(x)
    return found


def two_in_turns(a, b):
    def step(_, ab):
        a, b = ab
        b = b.at[1:-1].set(a[:-2] + a[2:])
        return a.at[1:-1].set(b[:-2] - b[2:]), b
    return lax.fori_loop(0, 3, step, (a, b))


def read_where_written(a, b):
    return lax.fori_loop(0, 3, lambda i, a: a.at[1:].add(b[:-1]).at[0].set(1), a)


def border(a, b):
    return lax.fori_loop(0, 3, lambda i, a: (a + b).at[:, 0].set(2).at[:, -1].set(b[:, 1]), a)


@pytest.mark.parametrize("function", [two_in_turns, read_where_written])
def test_windows_are_written_where_they_are_computed(function):
    """A kernel for each of the body's windows, and no copy of an array or of a window."""
    program, plan = planned(function, A, B)
    called = within(plan.tape)
    assert called.count("vector_machine") in (1, 2)
    assert "write_window" not in plan.source and "scatter" not in plan.source
    assert [name for name in called if name != "vector_machine"] in ([], ["copy_32"]), called
    run = mojo_programs.without_kernels(plan, program.opened.jaxpr)
    for ours, theirs in zip(run([A, B]), program.tier0(A, B), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def stencil_in_place(a, b):
    return lax.fori_loop(0, 3, lambda i, a: a.at[1:-1].set(a[:-2] + a[2:]), a)


def shifted(a, b):
    return lax.fori_loop(0, 3, lambda i, a: a.at[1:].set(a[:-1]), a)


def read_later(a, b):
    return lax.fori_loop(0, 3, lambda i, ab: (ab[0].at[1:].set(ab[1][1:]), ab[0] + 1), (a, b))


def computed_below(a, b):
    return lax.fori_loop(0, 3, lambda i, a: (a + b).at[1:-1].set((a + b)[2:] - b[2:]), a)


FUNCTIONS = [two_in_turns, read_where_written, border, stencil_in_place, shifted, read_later,
             computed_below]


@pytest.mark.extended
def test_functions_stand_for_tapes(poisoned):
    """Also for those of running calls: they are exchanged when they are compiled."""
    for function in FUNCTIONS:
        program, plan = planned(function, A, B)
        assert any(isinstance(kernel, FunctionForm) for kernel in plan.kernels)
        mojo_programs.store().build([*plan.kernels])
        values = [*program.consts, A, B]
        expected = program.tier0(*values)
        for run in (mojo_programs.without_kernels(plan, program.opened.jaxpr),
                    mojo_programs.executable(plan, program.opened.jaxpr)):
            for _ in range(2):
                for ours, theirs in zip(run(values), expected, strict=True):
                    np.testing.assert_array_equal(ours, theirs)
            if not run.is_complete:
                run.exchange(mojo_programs.store().find(plan.kernels))
                assert run.is_complete
                for ours, theirs in zip(run(values), expected, strict=True):
                    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("function, args, cores", [
    # Work for two threads; more calls than a function has; a step of the host.
    (lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x) + 1, x),
     [np.ones(1 << 20, np.float32)], 2),
    (lambda x: lax.fori_loop(0, 3, lambda i, x: sum(
        (jnp.sort(x * k) for k in range(130)), x), x), [A], 1),
    (lambda x: lax.fori_loop(0, 3, lambda i, x: maxjax.pure_callback(
        lambda x: x, maxjax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1, x), [A], 1),
])
def test_other_loops_stay_tapes(function, args, cores):
    _, plan = planned(function, *args, cores=cores)
    assert not any(isinstance(kernel, FunctionForm) for kernel in plan.kernels), plan.source
    assert "tape_scan" in plan.source


def test_loops_of_many_calls_are_functions():
    def body(i, x):
        for k in range(40):
            x = jnp.sort(x * (k + 1.5)) @ jnp.ones((x.shape[-1], x.shape[-1]), x.dtype)
        return x

    _, plan = planned(lambda x: lax.fori_loop(0, 3, body, x), A)
    form, = (kernel for kernel in plan.kernels if isinstance(kernel, FunctionForm))
    assert len(plan.kernels) == 1 and "of 120 calls" in form.source


def test_small_loops_with_too_long_a_text_are_functions(monkeypatch, poisoned):
    """They would stay with the machine for small loops, which is slower."""
    monkeypatch.setattr(small_loops, "MOST_ELEMENTS", 128)

    def loop(dtype, calls, lax=lax, jnp=jnp):
        def body(i, carry):
            x, w = carry
            for k in range(calls):
                x = jnp.tanh(x @ w) + k * x
            return x / (1 + jnp.abs(x).max()), w

        x = np.linspace(-1, 1, 15).reshape(3, 5).astype(dtype)
        w = np.linspace(-0.5, 0.5, 25).reshape(5, 5).astype(dtype)
        return lambda x, w: lax.fori_loop(0, 4, body, (x, w))[0], x, w

    function, *args = loop("float32", 60)
    program, plan = planned(function, *args)
    assert any(isinstance(kernel, FunctionForm) for kernel in plan.kernels), plan.source
    mojo_programs.store().build([*plan.kernels])
    expected = jax.jit(loop("float32", 60, jax.lax, jax.numpy)[0])(*args)
    for made in (mojo_programs.executable(plan, program.opened.jaxpr),
                 mojo_programs.without_kernels(plan, program.opened.jaxpr)):
        np.testing.assert_allclose(made([*program.consts, *args])[0],
                                   expected, rtol=2e-5)
    for dtype, calls, kept in (("float32", 2, FunctionForm), ("float16", 30, LoopForm)):
        _, plan = planned(*loop(dtype, calls))
        assert not any(isinstance(kernel, kept) for kernel in plan.kernels)


def test_loops_that_differ_in_their_length_and_place_share_a_function():
    def loop(length):
        return lambda a, b: (a * 2, lax.fori_loop(0, length, lambda i, a: a + b, a + b))

    forms = []
    for function, args in ((loop(3), (A, B)), (loop(7), (A, B)),
                           (lambda a, b, c: loop(4)(b, c), (A, A, B))):
        _, plan = planned(function, *args)
        forms.append([kernel for kernel in plan.kernels if isinstance(kernel, FunctionForm)])
    assert len(forms[0]) == 1 and forms[0] == forms[1] == forms[2]
