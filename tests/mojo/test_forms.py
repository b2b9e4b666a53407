"""Forms that programs take on the Mojo backend: masked updates, products of few terms, pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import mojo_programs
from tests.transforms import test_masked_updates as masked

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax._max.mojo import emit, pieces
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._max.mojo.fusion import Group
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


class KeptPlan(CheckedPlan):
    """Records its groups' spaces."""

    def finished(self, part):
        super().finished(part)
        vars(self).setdefault("spaces", []).extend(
            unit.space for unit, _ in part.units if isinstance(unit, Group))


def check(function, *args, tolerance=2e-5) -> KeptPlan:
    """The plan of a program that gives what tier 0 gives."""
    program = Program(maxjax.make_jaxpr(function)(*args))
    plan = KeptPlan(program.opened.jaxpr, 2)
    values = [*program.consts, *map(np.asarray, args)]
    results = mojo_programs.without_kernels(plan, program.opened.jaxpr)(values)
    for ours, theirs in zip(results, program.tier0(*values), strict=True):
        assert ours.dtype == theirs.dtype
        if tolerance == 0 and ours.dtype.kind == "f":
            assert np.all((np.signbit(ours) == np.signbit(theirs)) | np.isnan(theirs))
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance)
    return plan


def test_updates_of_some_examples():
    x = f32(64, 100)
    n = RNG.integers(0, 99, 64).astype(np.int32)
    for name, step in masked.UPDATES.items():
        plan = check(masked.until(step), n, x, tolerance=0)
        assert name == "uint32 index" or (64, 100) not in plan.spaces, (name, plan.spaces)


PRODUCTS = [((5, 1), (1, 7)), ((40, 6, 1), (40, 1, 3)), ((3, 50, 1, 4), (3, 50, 4, 1)),
            ((40, 1, 9), (40, 9, 1)), ((40, 1, 33), (40, 33, 1)), ((1, 1), (1, 1)),
            ((2, 1, 3), (2, 3, 1)), ((0, 5, 1), (0, 1, 5))]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_products_of_few_terms(dtype):
    with maxjax.enable_x64(True):
        for first, second in PRODUCTS:
            a, b = f32(*first).astype(dtype), f32(*second).astype(dtype)
            tolerance = 1e-2 if dtype == "float16" else 2e-5
            plan = check(lambda a, b: jnp.tanh(a @ b), a, b, tolerance=tolerance)
            if dtype == "float32" and 0 not in first:
                products = [name for name in plan.functions if name.startswith("matmul")]
                assert bool(products) == (first[-1] == 33 or first[0] == 2), (first, products)


@pytest.mark.parametrize("columns", [1, 3, 8, 9])
def test_a_row_by_a_stack_is_not_transposed(columns):
    """What is contracted lies between the dimensions that are kept."""
    row, stack, twice = f32(7), f32(50, 7, columns), f32(5, 6, 7, columns)
    for function, x in ((lambda w, x: jnp.tensordot(w, x, ((0,), (1,))), stack),
                        (lambda w, x: jnp.tensordot(x, w, ((1,), (0,))), stack),
                        (lambda w, x: maxjax.vmap(lambda x: w @ x)(x) + 1, stack),
                        (lambda w, x: jnp.tensordot(x[:, ::2], w, ((2,), (0,))), twice)):
        plan = check(function, row, x, tolerance=1e-5)
        copies = [name for name in plan.functions if name.startswith("copy")]
        assert not copies or columns in (1, 9), copies
    check(lambda w, x: jnp.tensordot(w, x[::-1], ((0,), (1,))), row, stack, tolerance=1e-5)
    check(lambda w, x: jnp.tensordot(w, x[..., ::-1], ((0,), (1,))), row, stack, tolerance=1e-5)


def test_products_of_infinities():
    a = np.array([[np.inf, -np.inf, np.nan, 0., -0., 1.]], np.float32).T
    check(lambda a, b: a @ b, a, a.T.copy())
    check(lambda a, b: a @ b, np.tile(a.T[None], (40, 1, 1)), np.tile(a[None], (40, 1, 1)))


def test_operands_that_are_read_many_times():
    """A column of a matrix, and a transpose, along each row of a larger array."""
    r, x = f32(80, 3), f32(80, 5)
    plan = check(lambda r: jnp.exp(r[:, 0] - r[:, 1][:, None]), r, tolerance=1e-5)
    assert "copy_32" in plan.functions
    check(lambda r, x: r[:, 2] * x.sum(1)[:, None] + (r[::-1, 0] * 2), r, x)
    check(lambda x: x[:70, :4].T[:, None, :] * jnp.ones((4, 60, 1)) + 1, x)


def test_views_of_pieces():
    """What was stacked and is taken apart again was never stored."""
    def function(x):
        y = jnp.stack([x[0] + x[1], x[1] * x[2], x[2] - x[0]])
        return jnp.sin(y[0]) + y[1] * y[2]

    plan = check(function, f32(3, 50))
    assert plan.arena == 0 and not any("copy" in name for name in plan.functions)
    check(lambda x: (lambda y: (y[1:3, ::-1], y[2], y[:, 1:], y[4:2:-1]))(
        jnp.concatenate([x, x * 2])), f32(3, 4))
    check(lambda x: (lambda y: (y[1:3], y[0], y[3:, 2]))(
        jnp.pad(x, ((1, 1), (0, 2)), constant_values=3.)), f32(3, 4))


# --- what reads assembled arrays ---
def laplacian(x):
    return (jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)
            - 4 * x)


def padded(mode, **options):
    def function(x):
        y = jnp.pad(x, 1, mode=mode, **options)
        return (y[:-2, 1:-1] + y[2:, 1:-1]) * y[1:-1, :-2] - y[1:-1, 2:] * x
    return function


def wave(u, v):
    """Two results, of which one is computed from the other."""
    v = v + 0.1 * laplacian(u)
    return u + 0.1 * v, v


def corners(x):
    return sum(jnp.roll(x, (down, right), (0, 1)) for down in (-1, 0, 2) for right in (-1, 0, 1))


STENCILS = {
    "laplacian": laplacian, "corners": corners,
    "line": lambda x: jnp.sin(jnp.roll(x.reshape(-1), 3)) - x.reshape(-1),
    "wrap": padded("wrap"), "edge": padded("edge"), "reflect": padded("reflect"),
    "constant": padded("constant", constant_values=-0.), "nan": padded("constant",
                                                                     constant_values=np.nan),
    "padded": lambda x: jnp.pad(laplacian(x), 1),
    "spaced": lambda x: maxjax.lax.pad(laplacian(x), 0., ((1, 1, 1), (2, -3, 0))) * 2,
    "computed filler": lambda x: maxjax.lax.pad(
        x, x[0, 9] * 2, ((0, 0, 0), (2, 0, 0)))[:, 1:-1] * x[:, :1],
    "twice": lambda x: x + 0.5 * laplacian(x * 2 + 0.5 * laplacian(x)),
    "two results": lambda x: wave(x, x * x),
    "loop": lambda x: maxjax.lax.fori_loop(0, 5, lambda _, s: wave(*s), (x, x * 2)),
    "differences": lambda x: jnp.concatenate([x[1:] - x[:-1], x[:1]]) * x,
    "reversed": lambda x: (lambda y: y[::-1] - y)(jnp.concatenate([x[:3] * 2, x[3:], x[:2]])),
    "strided": lambda x: (lambda y: y[1::3] - y[:-1:3])(jnp.concatenate([x, x[:2]], 0)),
    "gradient": maxjax.grad(lambda x: jnp.sum(jnp.sin(x[1:] * x[:-1]) * x[:-1])),
    "rows": lambda x: maxjax.nn.softmax(laplacian(x)), "stack": lambda x: jnp.stack(
        [x * 2, x + 1, -x]) * 3,
    "integers": lambda x: corners((x > 0).astype(np.int8)),
}


@pytest.mark.parametrize("name", STENCILS)
def test_stencils_read_neighbours_in_place(name):
    """Neighbours are read where they are, whatever is at the boundary."""
    x = f32(300, 310)
    x[0, :3] = np.nan, np.inf, -0.
    plan = check(STENCILS[name], x, tolerance=1e-6 if name in ("line", "rows", "gradient") else 0)
    copied = [function for function in plan.functions if function.startswith(("copy", "fill"))]
    assert not copied or name in ("rows", "stack", "reversed", "padded", "spaced"), (name, copied)
    check(STENCILS[name], f32(7, 9), tolerance=1e-6)


def test_many_rolls_of_rolls():
    def function(x):
        for number in range(600):
            x = jnp.roll(x, (-1) ** number)
        return x * 2

    check(function, f32(40000), tolerance=0)


def five(x):
    return 4 * x[1:-1, 1:-1] - (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])


def limited(x):
    """A Laplacian that is read at five places of each point."""
    y = five(x)
    across, along = y[1:, 1:-1] - y[:-1, 1:-1], y[1:-1, 1:] - y[1:-1, :-1]
    return jnp.where(across > 0, 0, across)[1:] + jnp.where(along > 0, along, 0)[:, :-1]


def test_stencils_of_stencils():
    """A small one of one large array is computed where it is read, others are stored."""
    x = f32(90, 100)
    assert check(limited, x, tolerance=0).spaces == [(86, 96)]
    assert check(lambda x: five(five(x)), x, tolerance=0).spaces == [(86, 96)]
    assert check(limited, x[:40, :50], tolerance=0).spaces == [(38, 48), (36, 46)]
    plan = check(lambda x: five(five(five(x))), x, tolerance=0)
    assert plan.spaces == [(88, 98), (84, 94)]
    assert (90, 100) in check(lambda x: five(jnp.exp(x) + 1), x).spaces
    assert (89, 99) in check(lambda x: five(x[1:, 1:] * x[:1, 1:] + f32(89, 99)), x).spaces


def test_what_is_not_worth_cutting():
    """Short pieces, few elements, and what is read whole elsewhere."""
    def rotate(x):
        return jnp.concatenate([-x[..., 2:], x[..., :2]], -1) * x

    assert (10000, 4) in check(rotate, f32(10000, 4)).spaces
    assert (8, 8) in check(laplacian, f32(8, 8)).spaces
    plan = check(lambda x: (lambda y: (y * x, y))(jnp.roll(x, 1, 0)), f32(300, 300))
    assert plan.spaces == [(300, 300)]
    assert pieces._MOST_BOXES < 40
    plan = check(lambda x: sum(jnp.roll(x, k) for k in range(40)), f32(40000))
    assert plan.spaces == [(40000,)]


def test_what_a_kernel_is_called_depends_on_all_that_writes_its_text(tmp_path):
    folder = Path(emit.__file__).parent
    written_by = emit.writing_modules(folder)
    assert {"emit", "emit_rows", "emit_columns", "emitter", "layout", "schedule"} <= set(written_by)
    for path in folder.glob("emit*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for name in ("schedule", "structure", "layout"):
        (tmp_path / f"{name}.py").write_bytes((folder / f"{name}.py").read_bytes())
    with (tmp_path / "emit_rows.py").open("a") as file:
        file.write("from maxjax._max.mojo.moved import a_function\n")
    (tmp_path / "moved.py").write_text("def a_function(): ...\n")
    assert emit.writing_modules(tmp_path).keys() == written_by.keys() | {"moved"}
