"""What checkpoint saves, by its policies, and how it is printed, against real JAX."""

from __future__ import annotations

import tracemalloc

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import maxjax
import maxjax.ad_checkpoint
import maxjax.numpy as jnp
from maxjax._transforms.simplify import simplify
from tests.transforms.test_custom_rules import X, vjp_of


def chain(j, policy=None, *, saved=False):
    def f(x, w):
        for _ in range(6):
            x = j.numpy.tanh(j.ad_checkpoint.checkpoint_name(x @ w, "product"))
        return x.sum()

    return f if saved else j.checkpoint(f, policy=policy)


W = np.eye(3, dtype=np.float32)
POLICIES = {
    "none": lambda p: None,
    "nothing_saveable": lambda p: p.nothing_saveable,
    "dots_saveable": lambda p: p.dots_saveable,
    "dots_with_no_batch_dims_saveable": lambda p: p.dots_with_no_batch_dims_saveable,
    "save_only_these_names": lambda p: p.save_only_these_names("product"),
    "save_any_names_but_these": lambda p: p.save_any_names_but_these("product"),
    "save_from_both_policies": lambda p: p.save_from_both_policies(
        p.nothing_saveable, p.save_only_these_names("product")),
}


@pytest.mark.parametrize("name", POLICIES)
def test_residuals_are_those_of_jax(name):
    from jax._src.ad_checkpoint import saved_residuals

    mine = maxjax.ad_checkpoint.saved_residuals(
        chain(maxjax, POLICIES[name](maxjax.checkpoint_policies)), X, W)
    theirs = saved_residuals(chain(jax, POLICIES[name](jax.checkpoint_policies)), X, W)
    assert [(aval.shape, source.split(" from ")[0]) for aval, source in mine] == [
        (aval.shape, source.split(" from ")[0]) for aval, source in theirs]


def loops_and_branches(j):
    """Functions of a scalar that hold what a policy may save inside loops and branches."""
    jnp, lax = j.numpy, j.lax

    def twice(x):
        return jnp.sin(jnp.sin(x))

    return {
        "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c), jnp.sin(c)), x, None, length=3)[0],
        "nested": lambda x: lax.scan(
            lambda c, _: (lax.fori_loop(0, 2, lambda i, d: twice(d), c), None), x, None,
            length=3)[0],
        "jit inside": lambda x: lax.scan(
            lambda c, _: (j.jit(twice)(c), None), x, None, length=2)[0],
        "cond": lambda x: lax.cond(x > 0, jnp.sin, lambda x: x, x),
        "cond in scan": lambda x: lax.scan(
            lambda c, _: (lax.cond(c > 0, twice, jnp.cos, c), c), x, None, length=3)[0],
    }


@pytest.mark.parametrize("saved", ["cos", "sin", "neither"])
@pytest.mark.parametrize("name", loops_and_branches(maxjax))
def test_policies_hold_inside_loops_and_branches(name, saved):
    def policy(primitive, *_, **__):
        return str(primitive) == saved

    mine, theirs = (j.checkpoint(loops_and_branches(j)[name], policy=policy) for j in (maxjax, jax))
    for j, f in ((maxjax, mine), (jax, theirs)):
        again = str(j.make_jaxpr(j.linearize(f, 1.25)[1])(1.))
        assert (" cos " in again) == (saved != "cos")
        if saved == "sin":
            assert " sin " not in again
    for order in (maxjax.grad, lambda f: maxjax.jit(maxjax.grad(maxjax.grad(f)))):
        for x in (1.25, -0.5):
            np.testing.assert_allclose(
                order(mine)(x), (jax.grad if order is maxjax.grad else lambda f: jax.grad(
                    jax.grad(f)))(theirs)(x), rtol=1e-5)
    np.testing.assert_allclose(
        maxjax.vmap(maxjax.grad(mine))(np.array([1.25, -0.5], np.float32)),
        jax.vmap(jax.grad(theirs))(np.array([1.25, -0.5], np.float32)), rtol=1e-5)


def residual_cases(j):
    """Functions of one argument, on either library."""
    jnp = j.numpy

    def mixed(x):
        c, _ = j.lax.scan(lambda c, _: (jnp.sin(c) * x, c), jnp.sin(x), None, length=3)
        z = j.jit(jnp.cos)(c)
        w = j.checkpoint(lambda z: jnp.sin(jnp.sin(z)))(z)
        return w * jnp.array([1., 2.]) + jnp.exp(w)

    def inner(x):
        return jnp.sin(
            jnp.sin(x))

    def calls(x):
        return j.checkpoint(inner)(
            j.checkpoint(inner)(x))

    return {
        "mixed": mixed, "checkpoint": j.checkpoint(mixed), "library": jnp.sin,
        "lines of checkpointed functions": calls,
        "lines of what a policy saves": lambda x: j.checkpoint(
            inner, policy=j.checkpoint_policies.everything_saveable)(x),
        "passed on": j.jit(lambda x: x * x),
        "inside": lambda x: j.jit(lambda z: z * x)(jnp.sin(x)),
        "several lines": lambda x: jnp.log(
            x) * jnp.exp(x),
    }


@pytest.mark.parametrize("name", residual_cases(maxjax))
def test_residuals_are_printed_with_lines_and_columns(name, capsys):
    printed = []
    for j in (maxjax, jax):
        j.ad_checkpoint.print_saved_residuals(residual_cases(j)[name], 2.)
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_offloaded_values_are_saved():
    policy = maxjax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    found = maxjax.ad_checkpoint.saved_residuals(chain(maxjax, policy), X, W)
    assert [source.split(" from ")[0] for _, source in found[2:]] == [
        "output of dot_general"] * 6


def test_chain_saves_its_arguments_alone():
    assert len(maxjax.ad_checkpoint.saved_residuals(chain(maxjax, saved=True), X, W)) > 6
    found = maxjax.ad_checkpoint.saved_residuals(chain(maxjax), X, W)
    assert [source for _, source in found] == ["from the argument x", "from the argument w"]


@pytest.mark.parametrize("jitted", [False, True])
def test_checkpointed_scan_needs_less_memory(jitted):
    def deep(h):
        for _ in range(8):
            h = jnp.sin(h) * 1.01
        return h

    def peak(step):
        def loss(x):
            return maxjax.lax.scan(lambda h, _: (step(h), None), x, None, length=16)[0].sum()

        gradient = maxjax.grad(loss)
        if jitted:
            gradient = maxjax.jit(gradient)
        x = jnp.ones(50_000)
        result = np.asarray(gradient(x))
        tracemalloc.start()
        np.asarray(gradient(x))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most, result

    plain, expected_gradient = peak(deep)
    less, gradient = peak(maxjax.checkpoint(deep))
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6)
    assert less < 0.4 * plain


def test_second_computation_is_kept_apart():
    """In one program, recomputed values are not merged with the original ones."""
    def sines(**options):
        f = maxjax.checkpoint(lambda x: jnp.sin(jnp.sin(jnp.sin(x))), **options)
        closed = simplify(maxjax.make_jaxpr(maxjax.value_and_grad(f))(0.5))
        return sum(eqn.primitive.name == "sin" for eqn in closed.eqns)

    assert sines() == 5
    assert sines(prevent_cse=False) == 3


def test_printing_is_that_of_jax():
    for make in (lambda j: j.grad(j.checkpoint(lambda x: j.numpy.sin(j.numpy.sin(x)))),
                 vjp_of, lambda j: j.grad(vjp_of(j)),
                 lambda j: lambda x: j.jvp(vjp_of(j), (x,), (1.0,))):
        assert str(maxjax.make_jaxpr(make(maxjax))(0.5)) == str(jax.make_jaxpr(make(jax))(0.5))
