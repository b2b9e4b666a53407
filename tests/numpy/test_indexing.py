"""Indexing beyond the case table: random dimension numbers, lowerings, plans."""

from __future__ import annotations

import warnings

import jax
import jax.numpy
import numpy as np
import pytest

import maxjax
import maxjax.lax
import maxjax.numpy
from maxjax._ir.runtime import installed
from maxjax._primitives import dynamic_slice as slices
from maxjax._primitives import gather_lowering
from maxjax._primitives.gather_plan import FillValue, GatherScatterMode
from tests.support import harness  # noqa: F401 (sets the environment before JAX is imported)

MODES = ("clip", "fill", "promise_in_bounds")
KINDS = ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")


def operand(x):
    return installed.runtime.operand(x)


def random_gather(seed):
    """(operand, indices, dimension numbers, slice sizes, mode) of a random legal gather."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = [int(size) for size in rng.integers(1, 5, rank)]
    dims = [int(dim) for dim in rng.permutation(rank)]
    count = int(rng.integers(0, min(rank, 2))) if rng.random() < 0.4 else 0
    batching, rest = sorted(dims[:count]), dims[count:]
    index_map = rest[:int(rng.integers(0, len(rest) + 1))]
    sizes = [1 if dim in batching else int(rng.integers(1, shape[dim] + 1))
             if rng.random() < 0.6 else shape[dim] for dim in range(rank)]
    collapsed = sorted(dim for dim in rest if sizes[dim] == 1 and rng.random() < 0.6)
    batch = [int(size) for size in rng.integers(1, 4, rng.integers(0, 3))] if index_map else []
    along = list(range(len(batch), len(batch) + count))
    batch += [shape[dim] for dim in batching]
    windows = rank - len(collapsed) - count
    offsets = sorted(int(dim) for dim in rng.permutation(len(batch) + windows)[:windows])
    indices = rng.integers(-2, 6, (*batch, len(index_map))).astype(
        rng.choice(["int32", "int8", "uint8", "uint32"]))
    x = np.round(rng.normal(size=shape) * 5, 2).astype(rng.choice(["float32", "int32"]))
    numbers = tuple(map(tuple, (offsets, collapsed, index_map, batching, along)))
    return x, indices, numbers, tuple(sizes), str(rng.choice(MODES)), rng


@pytest.mark.parametrize("seed", range(40))
def test_random_gather_and_scatter(seed):
    """Both tiers' arithmetic, NumPy's and the lowering's, against JAX."""
    x, indices, numbers, sizes, mode, rng = random_gather(seed)
    expected = np.asarray(jax.lax.gather(
        x, indices, jax.lax.GatherDimensionNumbers(*numbers), sizes, mode=mode))
    ours = maxjax.lax.GatherDimensionNumbers(*numbers)
    got = np.asarray(maxjax.lax.gather(x, indices, ours, sizes, mode=mode))
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == expected.dtype
    parsed = GatherScatterMode.from_any(mode)
    lowered = gather_lowering._gather_lowered(
        operand(x), operand(indices), dimension_numbers=ours, slice_sizes=sizes, mode=parsed,
        fill_value=None)
    np.testing.assert_array_equal(np.asarray(lowered), expected)

    updates = rng.integers(-4, 5, expected.shape).astype(x.dtype)
    for kind in rng.choice(KINDS, 3, replace=False):
        expected = np.asarray(getattr(jax.lax, kind)(
            x, indices, updates, jax.lax.ScatterDimensionNumbers(*numbers), mode=mode))
        ours = maxjax.lax.ScatterDimensionNumbers(*numbers)
        got = np.asarray(getattr(maxjax.lax, kind)(x, indices, updates, ours, mode=mode))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)
        if kind == "scatter_sub":       # the lowering adds the negated updates
            continue
        name = kind.removeprefix("scatter").removeprefix("_") or "set"
        lowered = gather_lowering._scatter_lowered(
            operand(x), operand(indices), operand(updates), kind=name, dimension_numbers=ours,
            mode=parsed)
        np.testing.assert_allclose(np.asarray(lowered), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("start", [(0, 0), (3, -1), (-5, 2), (1, 100)])
def test_lowered_dynamic_slices(start):
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    starts = [np.int32(s) for s in start]
    expected = np.asarray(jax.lax.dynamic_slice_p.bind(x, *starts, slice_sizes=(2, 3)))
    got = slices._dynamic_slice_lowered(operand(x), *map(operand, starts), slice_sizes=(2, 3))
    np.testing.assert_array_equal(np.asarray(got), expected)
    update = -np.ones((2, 3), np.float32)
    expected = np.asarray(jax.lax.dynamic_update_slice_p.bind(x, update, *starts))
    got = slices._dynamic_update_slice_lowered(operand(x), operand(update), *map(operand, starts))
    np.testing.assert_array_equal(np.asarray(got), expected)


INDICES = [0, -1, 7, (1, 2), slice(1, 3), slice(None, None, -2), slice(3, 0, -1), None, Ellipsis,
           (Ellipsis, 0), (None, 1, Ellipsis, None), (slice(0, 1), -1), (0, slice(2, 9), None),
           True, (False, 0), (0, True), np.int8(1), np.array(1), np.array([1, 0]),
           ([0, 1], [1, 2]), (slice(None), [0, -1], None), (0, slice(None), [0, 1]),
           np.eye(2, 3) > 0, (Ellipsis, np.array([True, False, False, True])),
           (np.array([[0], [1]]), None, np.array([0, 1, 2])), np.zeros((0,), int)]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_every_kind_of_index(index):
    """Reading and each kind of update, against JAX."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11
    ours, theirs = operand(x), jax.numpy.asarray(x)
    np.testing.assert_array_equal(np.asarray(ours[index]), np.asarray(theirs[index]))
    for kind in ("set", "add", "subtract", "multiply", "min", "max"):
        for value in (3.0, np.arange(np.asarray(theirs[index]).size, dtype=np.float32).reshape(
                theirs[index].shape)):
            got = getattr(ours.at[index], kind)(value)
            expected = getattr(theirs.at[index], kind)(value)
            np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))
            assert got.weak_type == expected.weak_type


def test_bool_and_float_do_not_meet_cached_plans():
    x = operand(np.arange(4, dtype=np.float32))
    assert x[1].shape == ()
    assert x[True].shape == (1, 4)
    assert x[1:3].shape == (2,)
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        x[1.0:3]


def test_static_indices_do_not_gather():
    def equations(function, *args):
        from_avals = [operand(arg).aval for arg in args]
        jaxpr = maxjax._ir.staging.trace_to_jaxpr(lambda *xs: [function(*xs)], from_avals)
        return [eqn.primitive.name for eqn in jaxpr.eqns]

    x = np.zeros((4, 5), np.float32)
    assert equations(lambda x: x[1:3], x) == ["slice"]
    assert equations(lambda x: x[1, ::-1], x) == ["slice", "rev", "squeeze"]
    assert "gather" not in equations(lambda x, i: x[i], x, np.int32(1))
    assert equations(lambda x: x.at[1].set(0.0), x)[-1] == "dynamic_update_slice"


def test_index_array_is_copied():
    index = np.array([0, 1])
    x = operand(np.arange(4, dtype=np.float32))
    taken = x[index]
    index[:] = 3
    np.testing.assert_array_equal(np.asarray(taken), [0, 1])


@pytest.mark.parametrize("update", [
    lambda x: x.at[0].set(1.0),
    lambda x: x.at[np.array([0])].set(1.0),
    lambda x: x.at[np.array([0, 0])].set(np.ones(2, np.float32)),
], ids=["integer", "array", "repeated"])
def test_nan_under_an_update_stays_out_of_gradients(update):
    x = np.array([-1.0, 2.0, 4.0], np.float32)
    got = maxjax.grad(lambda x: maxjax.numpy.sum(maxjax.numpy.log(update(x))))(x)
    expected = jax.grad(lambda x: jax.numpy.sum(jax.numpy.log(update(x))))(x)
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-6)


def test_unsafe_update_warns():
    x = operand(np.arange(3, dtype=np.int32))
    with pytest.warns(FutureWarning, match="scatter inputs have incompatible types: cannot "
                      "safely cast value from dtype=float32 to dtype=int32"):
        x.at[0].set(1.7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.at[0].set(True)


def test_fill_values_differ_by_bits():
    zero, negative = FillValue.of(np.float32(0.0)), FillValue.of(np.float32(-0.0))
    assert zero != negative
    assert FillValue.of(np.int32(1)) != FillValue.of(np.float32(1))
    assert FillValue.of(np.float32(np.nan)) == FillValue.of(np.float32(np.nan))


def test_true_positions_batched():
    mask = np.array([[True, False, True], [False, False, False]])
    got = maxjax.vmap(lambda m: maxjax.numpy.nonzero(m, size=2, fill_value=-1)[0])(mask)
    np.testing.assert_array_equal(np.asarray(got), [[0, 2], [-1, -1]])


# --- jax.ds ---------------------------------------------------------------------------------------

LINE, GRID = np.arange(10), np.arange(24).reshape(2, 3, 4)
WINDOWS = {
    "inside": lambda j, x, y: x[j.ds(2, 3)], "at the end": lambda j, x, y: x[j.ds(8, 3)],
    "from the end": lambda j, x, y: x[j.ds(-3, 3)], "far out": lambda j, x, y: x[j.ds(-20, 3)],
    "nothing": lambda j, x, y: x[j.ds(2, 0)], "all": lambda j, x, y: x[j.ds(0, 10)],
    "stride": lambda j, x, y: (x[j.ds(2, 3, 2)], x[j.ds(8, 3, 2)], x[j.ds(-3, 3, 2)]),
    "in a tuple": lambda j, x, y: (x[(j.ds(2, 3),)], x[None, j.ds(2, 3)], x[..., j.ds(2, 3)]),
    "traced": lambda j, x, y: [j.jit(lambda i: x[j.ds(i, 3)])(i) for i in (4, 9, -2)],
    "mapped": lambda j, x, y: j.vmap(lambda i: x[j.ds(i, 3)])(j.numpy.arange(3)),
    "of a dimension": lambda j, x, y: (y[:, j.ds(1, 2)], y[1, ..., j.ds(1, 2)],
                                       y[0, j.ds(1, 2), 1]),
    "of two": lambda j, x, y: y[1, j.ds(1, 2), j.ds(2, 2)],
    "with an array": lambda j, x, y: (y[np.array([1, 0]), j.ds(1, 2)],
                                      y[0, j.ds(2, 2), np.array([0, 2])]),
    "gradient": lambda j, x, y: j.grad(lambda v: (v[j.ds(1, 2)] ** 2).sum())(j.numpy.arange(4.0)),
    "set": lambda j, x, y: [x.at[j.ds(i, 3)].set(-1) for i in (2, 7, 8, -2)],
    "add": lambda j, x, y: x.at[j.ds(2, 3)].add(j.numpy.arange(3)),
    "set with a stride": lambda j, x, y: [x.at[j.ds(i, 3, 2)].set(-1) for i in (2, 8, -2)],
    "set traced": lambda j, x, y: [j.jit(lambda i: x.at[j.ds(i, 3)].set(x[:3]))(i)
                                   for i in (4, 8, -1)],
    "set mapped": lambda j, x, y: j.vmap(lambda v, i: v.at[j.ds(i, 2)].set(-1))(
        y[0], j.numpy.arange(3)),
    "set in a dimension": lambda j, x, y: (y.at[:, j.ds(1, 2)].set(7),
                                           y.at[1, j.ds(1, 2), 2].mul(3),
                                           y.at[np.array([1, 0]), j.ds(1, 2)].add(10)),
    "too large": lambda j, x, y: x[j.ds(2, 11)],
    "set too large": lambda j, x, y: x.at[j.ds(2, 11)].set(0),
    "too many": lambda j, x, y: x[j.ds(2, 3), j.ds(1, 2)],
    "no integer": lambda j, x, y: x[j.ds(2.5, 3)],
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_of_arrays(name):
    outcomes = []
    for j in (maxjax, jax):
        x, y = j.numpy.asarray(LINE), j.numpy.asarray(GRID)
        try:
            outcomes.append([np.asarray(leaf) for leaf in jax.tree.leaves(WINDOWS[name](j, x, y))])
        except Exception as error:
            outcomes.append(type(error).__name__)
    assert len(outcomes[0]) == len(outcomes[1])
    for ours, theirs in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# Without x64 the low bits are kept, after negative indices were counted from the end.
LONG = (2**33, 2**31, 2**32 + 1, -2**33, -2**33 - 2, -2**31 - 1, -1, 2, 2**63 - 1, -2**63,
        -2**63 + 7)
OF_LONG = {
    "read": lambda j, x, long: x[np.array([long, 1])],
    "read of two": lambda j, x, long: x.reshape(1, 5)[:, np.array([long, 1])],
    "read beside another": lambda j, x, long: x.reshape(5, 1)[np.array([long, 1]), np.array([0])],
    "take_along_axis": lambda j, x, long: j.numpy.take_along_axis(x, np.array([long, 1]), 0),
    **{f"get {mode}": lambda j, x, long, mode=mode: x.at[np.array([long, 1])].get(mode=mode)
       for mode in (None, "clip", "fill")},
    **{f"add {mode}": lambda j, x, long, mode=mode: x.at[np.array([long, 1])].add(9., mode=mode)
       for mode in (None, "clip", "drop")},
    **{f"take {mode}": lambda j, x, long, mode=mode: j.numpy.take(
        x, np.array([long, 1]), mode=mode) for mode in (None, "clip", "fill", "wrap")},
    "dynamic_slice": lambda j, x, long: j.lax.dynamic_slice(x, (np.int64(long),), (2,)),
    "dynamic_slice of an array": lambda j, x, long: j.lax.dynamic_slice(x, (np.array(long),), (2,)),
    "dynamic_update_slice": lambda j, x, long: j.lax.dynamic_update_slice(
        x, x[:2] * 10, (np.int64(long),)),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", OF_LONG)
def test_indices_of_64_bits(name, jitted):
    for long in LONG:
        results = []
        for j in (maxjax, jax):
            function = (lambda x, j=j, long=long: OF_LONG[name](j, x, long))
            results.append((j.jit(function) if jitted else function)(
                j.numpy.arange(5, dtype="float32")))
        np.testing.assert_array_equal(*results, err_msg=str(long))
