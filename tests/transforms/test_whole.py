"""Functions that are one operation outside transformations behave as if they were several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax._base.config import compile_mode
from maxjax._ir.primitive import registry
from maxjax._runtime import program

ODD = [0.0, -0.0, 1, -1, 2.5, -3.7, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 3e38, 1e-38]
X, Y = (grid.ravel() for grid in np.meshgrid(ODD, ODD))
INTEGERS = np.meshgrid([-2**31, -7, -1, 0, 1, 2, 5, 2**31 - 1], [-2**31, -7, -1, 0, 1, 3, 6, 64])
SHIFTS = [0, 1, -1, 5, -30, 127, 128, -126, -149, -150, 278, 2**31 - 1, -2**31]
LINE = np.sort([-np.inf, -3.7, -1, 0.0, 0.0, 2.5, 2.5, 3e38])
MATRIX = np.arange(12.0).reshape(3, 4)

# name -> (function, operands); the dtypes of their floats are those of FLOATS.
CASES: dict[str, tuple[Any, list[Any]]] = {
    **{name: (getattr(jnp, name), [X, Y]) for name in (
        "allclose", "copysign", "heaviside", "hypot", "isclose", "logaddexp", "logaddexp2")},
    **{name: (getattr(jnp, name), [np.array(ODD)]) for name in (
        "frexp", "modf", "nan_to_num", "spacing", "trunc")},
    **{f"{name} of integers": (getattr(jnp, name), INTEGERS) for name in (
        "floor_divide", "power", "remainder")},
    **{f"{name} by what is not 0": (getattr(jnp, name), [INTEGERS[0], INTEGERS[1] | 1])
       for name in ("floor_divide", "remainder")},
    "nan_to_num by values": (lambda x: jnp.nan_to_num(x, nan=-0.0, posinf=1.5), [np.array(ODD)]),
    "nan_to_num by an array": (lambda x, y: jnp.nan_to_num(x, nan=y), [X, Y]),
    "allclose with NaN": (lambda x, y: jnp.allclose(x, y, 0.5, 1e-3, equal_nan=True), [X, X]),
    "isclose with NaN": (lambda x, y: jnp.isclose(x, y, 0.5, 1e-3, equal_nan=True), [X, Y]),
    **{f"ldexp by {kind}": (jnp.ldexp, [np.array(ODD)[:, None], np.array(SHIFTS).astype(kind)])
       for kind in ("int8", "int32", "uint32")},
    "hypot of two shapes": (jnp.hypot, [X[:, None], Y[:3]]),
    "copysign of a scalar": (lambda x: jnp.copysign(2.0, x), [X]),
    "searchsorted": (jnp.searchsorted, [LINE, X]),
    "searchsorted right": (lambda x, y: jnp.searchsorted(x, y, "right"), [LINE, X.reshape(13, 13)]),
    "searchsorted with NaN": (jnp.searchsorted, [np.array([0.0, np.nan]), X]),
    "searchsorted in NaN": (jnp.searchsorted, [np.array([np.nan]), X]),
    "searchsorted unsorted": (jnp.searchsorted, [np.array([3.0, 1, 2]), Y]),
    **{f"triangle {kind} {k}": (lambda x, kind=kind, k=k: getattr(jnp, kind)(
        x.reshape(1, -1) * jnp.ones((600, 1), x.dtype), k), [np.tile(ODD, 40)])
       for kind in ("tril", "triu") for k in (0, -3, 500, 10_000, -10_000)},
    **{f"triangle of a small matrix, {kind} {k}": (
        lambda x, kind=kind, k=k: getattr(jnp, kind)(
            x.reshape(1, -1) * jnp.ones((5, 1), x.dtype), k), [np.array(ODD)])
       for kind in ("tril", "triu") for k in (0, -3, 4, 100, -100)},
    **{f"triangle of matrices {kind}": (lambda x, kind=kind: getattr(jnp, kind)(
        x * jnp.arange(160, dtype=x.dtype).reshape(2, 80, 1), 7), [np.tile(ODD, 40)])
       for kind in ("tril", "triu")},
    "linspace": (lambda x, y: jnp.linspace(x, y, 50_000), [-0.3, 12.5]),
    "linspace of arrays": (lambda x, y: jnp.linspace(x, y, 20_000), [0.1, np.array([1.7, -3.0])]),
    "linspace, no end": (lambda x, y: jnp.linspace(x, y, 20_000, False), [-0.0, -1e4]),
    "digitize": (jnp.digitize, [X, LINE]),
    "digitize, falling": (jnp.digitize, [X, LINE[::-1]]),
    "digitize, unsorted": (jnp.digitize, [X, np.array([3.0, 1, 2])]),
    **{f"take {axis} {mode} {indices}": (
        lambda x, i, axis=axis, mode=mode: jnp.take(x, i, axis, mode=mode),
        [MATRIX, np.array(indices, np.int32)])
       for axis in (None, 0, 1) for mode in (None, "clip", "wrap")
       for indices in ([0, 2, 1], [[-1, -3]], [1, 99, -99], 2, [])},
    **{f"take_along_axis {axis} {indices}": (
        lambda x, i, axis=axis: jnp.take_along_axis(x, i, axis),
        [MATRIX, np.array(indices, np.int32)])
       for axis in (0, 1, -1)
       for indices in ([[0, 2, 1, 3]], [[1, 0], [2, 2], [0, 3]], [[-1], [-4], [9]], [[]])
       if axis != 0 or len(indices) == 1 and indices[0]},
    "take_along_axis of all": (lambda x, i: jnp.take_along_axis(x, i, None),
                               [MATRIX, np.array([0, 11, -1, 12], np.int32)]),
    "take_along_axis of a vector": (jnp.take_along_axis, [LINE, np.array([7, 0, 3], np.int32)]),
}


def arrays(operands: list[Any], dtype: str) -> list[Any]:
    return [jnp.asarray(x, dtype if np.asarray(x).dtype.kind == "f" else None) for x in operands]


def same(ours: Any, theirs: Any) -> None:
    assert maxjax.tree.structure(ours) == maxjax.tree.structure(theirs)
    ours, theirs = maxjax.tree.leaves(ours), maxjax.tree.leaves(theirs)
    assert [x.aval for x in ours] == [x.aval for x in theirs]
    for a, b in zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True):
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=2e-7 if a.dtype == np.float32 else 4e-16, atol=0)
            number = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(a)[number], np.signbit(b)[number])
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
@pytest.mark.parametrize("name", CASES)
def test_whole_functions_give_what_operations_give(name, dtype):
    """Those of the operations that `jit` runs."""
    function, operands = CASES[name]
    with maxjax.enable_x64(dtype == "float64"), compile_mode("never"):
        operands = arrays(operands, dtype)
        same(function(*operands), maxjax.jit(function)(*operands))


@pytest.mark.parametrize("name", CASES)
def test_transformations_see_the_operations(name):
    function, operands = CASES[name]
    operands = arrays(operands, "float32")
    assert "whole_" not in str(maxjax.make_jaxpr(function)(*operands))
    with compile_mode("never"):
        rows = [x[None] for x in operands]
        same(maxjax.vmap(function)(*rows), maxjax.tree.map(
            lambda x: x[None], maxjax.jit(function)(*operands)))


def test_every_one_is_tested():
    known = {name.partition(" ")[0].rstrip(",") for name in CASES}
    assert {name.removeprefix("whole_") for name in registry if name.startswith("whole_")} == known


def test_derivatives():
    x, y = jnp.array([3.0, -1.5]), jnp.array([4.0, 2.0])
    for function in (jnp.hypot, jnp.logaddexp, jnp.copysign):
        def total(x, y, function=function):
            return function(x, y).sum()
        same(maxjax.grad(total, (0, 1))(x, y), maxjax.jit(maxjax.grad(total, (0, 1)))(x, y))


def test_weak_types():
    with compile_mode("never"):
        for function, operands in ((jnp.hypot, (3.0, 4.0)), (jnp.trunc, (2.5,)),
                                   (jnp.nan_to_num, (2.5,)), (jnp.heaviside, (0.0, 2.0))):
            same(function(*operands), maxjax.jit(function)(*operands))


@pytest.mark.tier1
@pytest.mark.xdist_group("mojo")
def test_compiled_as_its_operations():
    """A large eager graph is a program: compiled, it has the operations."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(300, 1000)), jnp.float32)
    before = set(program._graph_programs)
    with compile_mode("never"):
        expected = np.asarray(jnp.trunc(jnp.hypot(x * 3, x)) + jnp.nan_to_num(x))
    with compile_mode("always"):
        result = np.asarray(jnp.trunc(jnp.hypot(x * 3, x)) + jnp.nan_to_num(x))
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    (made,) = (program._graph_programs[key] for key in set(program._graph_programs) - before)
    assert made.compiled_calls == 1 and made.state == "compiled"
    assert "whole_hypot" in str(made.closed.jaxpr)
    assert "whole_" not in str(made.opened.jaxpr)
