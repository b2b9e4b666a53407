"""Passes that write a program in another form, with the same results: updates of some examples of
a batch, and arrays with a short last dimension."""

from __future__ import annotations

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._ir.control_flow import bodies_of
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._transforms.components import take_components_apart
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


# --- updates of some examples ---------------------------------------------------------------------

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
    # -1 is no index that is dropped where indices are unsigned.
    assert choices(simplified, X.shape) == (name == "uint32 index")


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


# --- components -----------------------------------------------------------------------------------

def pairs(r):
    return r[:, None] - r[None]


COMPONENTS = {
    "distances": lambda r: jnp.sqrt((pairs(r) ** 2).sum(-1)),
    "forces": lambda r: maxjax.grad(lambda r: jnp.exp(-(pairs(r) ** 2).sum(-1)).sum())(r),
    "sums": lambda r: (jnp.square(pairs(r)).sum(0), pairs(r).max(1),
                       jnp.abs(pairs(r)).sum((0, 1)), jnp.square(pairs(r)).sum()),
    "sums with the last": lambda r: (jnp.abs(pairs(r)).max((0, 2)), pairs(r).min((1, 2))),
    "all": lambda r: (jnp.all(pairs(r) < 2, -1), jnp.any(pairs(r) > 2, -1)),
    "scaled": lambda r: (pairs(r) * r[:, 0][:, None, None] * (r @ r.T)[..., None]).sum(1),
    "chosen": lambda r: jnp.where(pairs(r) > 0, pairs(r), 0.).sum(-1),
    "converted": lambda r: jnp.round(pairs(r)).astype(jnp.int32).sum(-1),
    "a constant": lambda r: ((pairs(r) - jnp.array([1., 2., 3., 4.])[:r.shape[1]]) ** 2).sum(-1),
}
WHOLE = {
    "a result": pairs,
    "read as a whole": lambda r: pairs(r).reshape(-1).sum() + pairs(r).sum(),
    "no smaller operand": lambda r: (jnp.tile(r, (50, 1)) * 2 + 1).sum(-1),
    "half precision": lambda r: pairs(r.astype(jnp.float16)).sum(-1),
}


def long_arrays(closed: ClosedJaxpr) -> int:
    """Equations with results that have few components and many elements."""
    return sum(var.aval.ndim == 3 and var.aval.size >= 4096 and 1 < var.aval.shape[-1] < 5
               for eqn in closed.eqns for var in eqn.outvars)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("name", COMPONENTS)
def test_components(name, size):
    r = f32(48, size)
    r[3, 1] = np.nan
    closed = simplify(maxjax.make_jaxpr(COMPONENTS[name])(r))
    assert long_arrays(closed)
    apart = take_components_apart(closed)
    assert not long_arrays(apart)
    values = interpreter(closed)(r), interpreter(apart)(r)
    for theirs, ours in zip(*values, strict=True):
        # Sums of two dimensions are taken in another order.
        np.testing.assert_allclose(ours, theirs, 2e-5, 2e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_arrays_that_stay_whole(name):
    closed = simplify(maxjax.make_jaxpr(WHOLE[name])(f32(48, 3)))
    assert take_components_apart(closed) is closed


def test_small_arrays_stay_whole():
    closed = simplify(maxjax.make_jaxpr(COMPONENTS["distances"])(f32(8, 3)))
    assert take_components_apart(closed) is closed


def test_longer_last_dimensions_stay_whole():
    closed = simplify(maxjax.make_jaxpr(COMPONENTS["distances"])(f32(48, 5)))
    assert take_components_apart(closed) is closed
