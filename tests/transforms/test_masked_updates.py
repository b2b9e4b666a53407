"""Updates of some examples of a batch: in another form, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._ir.control_flow import bodies_of
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._transforms.simplify import inline_calls, simplify

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def same(new: ClosedJaxpr, function, args) -> None:
    """A jaxpr gives the bits that the function's own equations give."""
    plain = interpreter(inline_calls(maxjax.make_jaxpr(function)(*args)))
    values = [np.asarray(x) for x in args]
    for ours, theirs in zip(interpreter(new)(*values), plain(*values), strict=True):
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_array_equal(ours, theirs)


N = np.array([3, 7, 0, 9], np.int32)
X = f32(4, 10)


def until(step):
    """A loop over a batch: each example its own number of times."""
    def one(n, x):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, step(*c)), (0, x))[1]
    return maxjax.vmap(one)


UPDATES = {
    "set": lambda i, x: x.at[i].set(x[i - 1] + 1),
    "add": lambda i, x: x.at[i].add(x[0]),
    "multiply": lambda i, x: x.at[i].multiply(-0.0),
    "minimum": lambda i, x: x.at[i].min(0.5),
    "out of bounds": lambda i, x: x.at[2 * i - 3].set(7., mode="drop"),
    "clipped": lambda i, x: x.at[3 * i].set(i * 1., mode="clip"),
    "clipped below": lambda i, x: lax.dynamic_update_slice(x, x[:3] + 1, (i * 2 - 4,)),
    "promised": lambda i, x: x.at[i].set(7., mode="promise_in_bounds"),
    "int8 index": lambda i, x: x.at[i.astype(jnp.int8)].set(3.),
    "uint32 index": lambda i, x: x.at[i.astype(jnp.uint32)].set(3.),
    "copied": lambda i, x: jnp.array(jnp.array(jnp.array(x).at[i].set(2.)).at[i // 2].set(1.)),
    "several": lambda i, x: x.at[jnp.array([1, 1, 2]) + i // 4].set(x[:3]),
}


def choices(closed: ClosedJaxpr, shape) -> int:
    """Choices between whole arrays in loops."""
    return sum(eqn.primitive.name == "select_n" and eqn.outvars[0].aval.shape == shape
               for outer in closed.eqns for body in bodies_of(outer) for eqn in body.eqns)


@pytest.mark.parametrize("name", UPDATES)
def test_updates_of_some_examples(name):
    function = until(UPDATES[name])
    simplified = simplify(maxjax.make_jaxpr(function)(N, X))
    same(simplified, function, (N, X))
    assert choices(simplified, X.shape) == 0


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("undone", [False, True], ids=["chosen", "undone"])
def test_an_update_that_one_number_chooses(name, undone):
    def function(limit, x):
        def body(c):
            i, x = c
            new = UPDATES[name](i, x)
            return i + 1, jnp.where(i < limit, x, new) if undone else jnp.where(i < limit, new, x)
        return lax.while_loop(lambda c: c[0] < 9, body, (0, x))[1]

    for limit in (0, 4, 20):
        simplified = simplify(maxjax.make_jaxpr(function)(np.int32(limit), X[0]))
        same(simplified, function, (np.int32(limit), X[0]))
        assert not choices(simplified, X[0].shape)


def test_a_slice_at_one_place_in_all_examples():
    """The examples share the counter, and what they write depends on the example."""
    def one(limit, x):
        def body(i, x):
            new = lax.dynamic_update_slice(x, jnp.tanh(x[:2]) + 1, (i,))
            return jnp.where(x[0] < limit, new, x)
        return lax.fori_loop(0, 6, body, x)

    function = maxjax.vmap(one)
    simplified = simplify(maxjax.make_jaxpr(function)(f32(4), X))
    same(simplified, function, (f32(4), X))
    assert choices(simplified, X.shape) == 0


def test_batches_of_batches():
    function = maxjax.vmap(until(UPDATES["set"]))
    args = N.reshape(2, 2), X.reshape(2, 2, 10)
    same(simplify(maxjax.make_jaxpr(function)(*args)), function, args)


@pytest.mark.parametrize("chosen", (
    lambda m, new, x: jnp.where(m, new, x), lambda m, new, x: jnp.where(m, x, new),
    lambda m, new, x: lax.select_n(m, x, new)), ids=("where", "where not", "scalar"))
@pytest.mark.parametrize("name", UPDATES)
def test_updates_that_one_condition_undoes(name, chosen):
    """In loops of one array, and of some examples of a batch."""
    def function(n, x):
        return lax.fori_loop(0, 7, lambda i, x: chosen(i < n, UPDATES[name](i, x), x), x)

    for batched, args in ((function, (N[0], X[0])), (maxjax.vmap(function), (N, X))):
        simplified = simplify(maxjax.make_jaxpr(batched)(*args))
        same(simplified, batched, args)
        assert choices(simplified, args[1].shape) == 0


def test_updates_of_several_places():
    """One after the other; where one of them is read in between, the choice stays."""
    def several(i, x):
        new = x.at[i].set(1.).at[i - 2].add(x[i]).at[i // 2].multiply(2.)
        return jnp.where(i < 5, new, x)

    def read(i, x):
        new = x.at[i].set(1.)
        return jnp.where(i < 5, new.at[0].set(new.sum()), x)

    for step, count in ((several, 0), (read, 1)):
        function = until(step)
        simplified = simplify(maxjax.make_jaxpr(function)(N, X))
        same(simplified, function, (N, X))
        def one(x, step=step):
            return lax.fori_loop(0, 9, step, x)
        simplified = simplify(maxjax.make_jaxpr(one)(X[0]))
        same(simplified, one, (X[0],))
        assert choices(simplified, X[0].shape) == count


def test_choices_that_stay():
    """Between other arrays, by elements, or where the update is read as well."""
    def others(i, x):
        return jnp.where(x > 0, x.at[i].set(3.), x)

    def read(i, x):
        new = x.at[i].set(3.)
        return jnp.where(x[0] > i, new, x) + new.sum()

    for step in (others, read):
        function = until(step)
        same(simplify(maxjax.make_jaxpr(function)(N, X)), function, (N, X))
