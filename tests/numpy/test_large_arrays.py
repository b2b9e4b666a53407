"""Places that int32 does not hold: their types beside JAX's, and values with the bound moved."""

from __future__ import annotations

import jax
import jax.numpy
import numpy as np
import pytest

import maxjax
import maxjax.lax
import maxjax.numpy
from maxjax._primitives import gather_plan, reduction, rules
from maxjax._transforms import partition
from maxjax.numpy import _at
from tests.support import harness  # noqa: F401 (sets the environment before JAX is imported)

SIZE = 2**31 + 5000
FUNCTIONS = {
    "set": lambda m, x, n: x.at[n - 7].set(5),
    "set negative": lambda m, x, n: x.at[-7].set(5),
    "add": lambda m, x, n: x.at[n - 12:].add(1),
    "set backwards": lambda m, x, n: x.at[n - 3:n - 9:-1].set(m.numpy.arange(6).astype("int8")),
    "set strided": lambda m, x, n: x.at[n - 9::2].set(3),
    "scatter": lambda m, x, n: x.at[m.numpy.array([n - 5, 2, -1])].add(2),
    "scatter int32": lambda m, x, n: x.at[m.numpy.array([-5, 2], "int32")].multiply(2),
    "gather": lambda m, x, n: x[m.numpy.array([n - 5, 2, -1])],
    "gather NumPy": lambda m, x, n: x[np.array([n - 5, 2, -1])],
    "gather int32": lambda m, x, n: x[m.numpy.array([-5, 2], "int32")],
    "fill": lambda m, x, n: x.at[np.array([n - 5, n, -1])].get(mode="fill", fill_value=1),
    "vmap of int32": lambda m, x, n: m.vmap(lambda i: x[i])(m.numpy.arange(3, dtype="int32") - 2),
    "dynamic slice": lambda m, x, n: m.lax.dynamic_slice(x, (n - 7,), (3,)),
    "dynamic index": lambda m, x, n: m.lax.dynamic_index_in_dim(x, n - 7),
    "argmax": lambda m, x, n: m.numpy.argmax(x),
    "argmin": lambda m, x, n: m.numpy.argmin(x[:, None], 0),
}



@pytest.fixture
def small_bound(monkeypatch):
    """As if int32 held numbers up to 20 only."""
    for module in (rules, gather_plan, reduction, _at):
        monkeypatch.setattr(module, "MOST_INT32", 20)


def places(closed):
    """The dtypes of what tells places in a program, with all that it calls."""
    found = set()
    for eqn in closed.eqns:
        name = eqn.primitive.name
        if name.startswith(("gather", "scatter")) or name == "dynamic_slice":
            found.add(eqn.invars[1].aval.dtype)
        elif name == "dynamic_update_slice":
            found.add(eqn.invars[2].aval.dtype)
        elif name in ("argmax", "argmin"):
            found.add(eqn.outvars[0].aval.dtype)
        for inner in (eqn.params.get("jaxpr"), eqn.params.get("call_jaxpr")):
            if inner is not None:
                found |= places(getattr(inner, "jaxpr", inner))
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_places_have_64_bits(name):
    """All places in an array of more than 2**31 elements are int64; in JAX not those of indices
    that are int32, where negative ones then wrap around."""
    for m in (maxjax, jax)[:1 if "int32" in name else 2]:
        with m.enable_x64(True):
            closed = m.make_jaxpr(lambda x, m=m: FUNCTIONS[name](m, x, SIZE))(
                m.ShapeDtypeStruct((SIZE,), "int8"))
            assert places(closed.jaxpr) == {np.dtype("int64")}, (m.__name__, closed)


@pytest.mark.parametrize("x64", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, x64, small_bound):
    """Operation by operation and as a program, which leaves such places to NumPy."""
    x = np.random.default_rng(0).integers(-90, 90, 32).astype("int8")
    with jax.enable_x64(x64), maxjax.enable_x64(x64):
        expected = np.asarray(FUNCTIONS[name](jax, jax.numpy.asarray(x), 32))
        for wrap in (lambda f: f, maxjax.jit):
            got = wrap(lambda x: FUNCTIONS[name](maxjax, x, 32))(maxjax.numpy.asarray(x))
            np.testing.assert_array_equal(np.asarray(got), expected)
            assert got.dtype == expected.dtype


@pytest.mark.filterwarnings("ignore:Explicitly requested")
@pytest.mark.parametrize("m", [jax, maxjax], ids=["jax", "maxjax"])
def test_static_places_without_64_bits(m):
    """JAX drops such an update, as its place wraps around; here it is written."""
    with m.enable_x64(False):
        text = str(m.make_jaxpr(lambda x: x.at[SIZE - 7].set(5))(
            m.ShapeDtypeStruct((SIZE,), "int8")))
    assert ("scatter" in text) == (m is jax) and ("concatenate" in text) == (m is maxjax)


@pytest.mark.parametrize("m", [jax, maxjax], ids=["jax", "maxjax"])
def test_numpy_places_without_64_bits(m):
    with m.enable_x64(False), pytest.raises(OverflowError, match=str(SIZE)):
        m.make_jaxpr(lambda x: x[np.array([SIZE - 7])])(m.ShapeDtypeStruct((SIZE,), "int8"))


@pytest.mark.parametrize("function, on_host", [
    (lambda m, x: x[m.numpy.array([1]), m.numpy.array([2])], True),
    (lambda m, x: x[m.numpy.array([1])], False),
    (lambda m, x: x.at[m.numpy.array([1]), m.numpy.array([2])].set(1), True),
    (lambda m, x: x.at[m.numpy.array([1])].set(1), False),
    (lambda m, x: m.lax.dynamic_slice(x, (1, 2), (3, 3)), True),
    (lambda m, x: m.lax.dynamic_index_in_dim(x, 2), False),
    (lambda m, x: m.lax.dynamic_update_slice(x, x[:2, :2], (1, 2)), True),
    (lambda m, x: m.numpy.argmax(x), True),
    (lambda m, x: m.numpy.argmax(x, 1), False)])
def test_what_is_left_to_the_host(function, on_host):
    """Compiled programs number rows in int32, whatever the type of an index is."""
    closed = maxjax.make_jaxpr(lambda x: function(maxjax, x))(
        maxjax.ShapeDtypeStruct((70_000, 70_000), "int8"))
    reasons = [partition.host_reason(eqn) for eqn in closed.jaxpr.eqns]
    assert any(reasons) is on_host


@pytest.mark.parametrize("place", [
    SIZE - 7, np.int64(SIZE - 7), np.uint64(SIZE - 7), -SIZE + 7, np.int64(-SIZE + 7), np.int8(-7)],
    ids=lambda place: f"{type(place).__name__} {place}")
def test_integers_that_are_places_are_read_there(place):
    """Without 64 bits too: a number that the program holds needs no dtype."""
    texts = [str(m.make_jaxpr(lambda x: x[place])(jax.ShapeDtypeStruct((SIZE,), np.int8)))
             for m in (maxjax, jax)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("place", [
    SIZE, -SIZE - 1, np.int64(SIZE), np.int64(-SIZE - 1), np.uint64(2**63)],
    ids=lambda place: f"{type(place).__name__} {place}")
def test_integers_beyond_the_last_place_are_no_other_places(place):
    with pytest.raises(OverflowError, match="too large to convert to int32"):
        maxjax.make_jaxpr(lambda x: x[place])(maxjax.ShapeDtypeStruct((SIZE,), np.int8))
