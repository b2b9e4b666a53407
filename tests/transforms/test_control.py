"""Control flow: errors, printing, caching, well-formed jaxprs, dead code, and other properties
outside the case table."""

from __future__ import annotations

import functools
import time

import jax
import numpy as np
import pytest

import maxjax
import maxjax.lax as lax
import maxjax.numpy as jnp
from maxjax._ir.check import check_jaxpr
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, subjaxprs
from maxjax._ir.primitive import registry
from maxjax._ir.rule_groups import Effectful
from maxjax._ir.serialize import decode, dumps, encode
from maxjax._transforms.partition import partition
from maxjax._transforms.simplify import simplify
from tests.support.against_jax import agree, assert_same_error, errors_of

W = np.arange(3, dtype=np.float32)


def identity(c, x):
    return c, x


# --- errors ---------------------------------------------------------------------------------------

ERRORS = {
    "carry lengths": lambda j: j.lax.scan(lambda c, x: ((c[0], c[1], c[1]), x), (0, 1), W),
    "carry kinds": lambda j: j.lax.scan(lambda c, x: ([c[0], c[1]], x), (0, 1), W),
    "carry keys": lambda j: j.lax.scan(lambda c, x: ({"a": c["a"]}, x), {"a": 0, "b": 1}, W),
    "carry deeper": lambda j: j.lax.scan(
        lambda c, x: ((c[0], {"a": c[1]["a"]}), x), (1, {"a": 0, "b": 1}), W),
    "carry shape": lambda j: j.lax.scan(
        lambda c, x: (j.numpy.concatenate([c, c]), x), W, W),
    "carry dtype": lambda j: j.lax.scan(lambda c, x: (c + 1.0, x), j.numpy.int32(0), W),
    "carry shape and dtype": lambda j: j.lax.scan(
        lambda c, x: (c[:2].astype(bool), x), W, W),
    "carry several": lambda j: j.lax.scan(
        lambda c, x: ((c[0][:2], c[1].astype(bool)), x), (W, W), W),
    "carry by keys": lambda j: j.lax.scan(
        lambda c, x: ({"a": c["a"][0], "b": (c["b"][0] + 1, c["b"][1])}, x),
        {"a": W, "b": (W, 1)}, W),
    "no pair": lambda j: j.lax.scan(lambda c, x: c, 0, W),
    "neither carry nor output": lambda j: j.lax.scan(lambda c, x: None, 0, W),
    "no length": lambda j: j.lax.scan(identity, 0, None),
    "other length": lambda j: j.lax.scan(identity, 0, W, length=4),
    "length that is no number": lambda j: j.lax.scan(identity, 0, None, length="a"),
    "other sizes": lambda j: j.lax.scan(identity, 0, (W, W[:2])),
    "no axis": lambda j: j.lax.scan(identity, 0, 1.0),
    "init of text": lambda j: j.lax.scan(identity, (1, "a"), W),
    "xs of text": lambda j: j.lax.scan(identity, 0, "a"),
    "no function": lambda j: j.lax.scan(3, 0, W),
    "unroll of a float": lambda j: j.lax.scan(lambda c, x: (c + x, c), 0.0, W, unroll=2.5),
    "unroll below zero": lambda j: j.lax.scan(lambda c, x: (c + x, c), 0.0, W, unroll=-1),
    "predicate of a pair": lambda j: j.lax.while_loop(lambda c: (c < 3, c), lambda c: c, 0),
    "predicate of None": lambda j: j.lax.while_loop(lambda c: None, lambda c: c, 0),
    "predicate of a vector": lambda j: j.lax.while_loop(
        lambda c: j.numpy.array([True]), lambda c: c, 0),
    "predicate of an integer": lambda j: j.lax.while_loop(lambda c: 1, lambda c: c, 0),
    "while carry dtype": lambda j: j.lax.while_loop(
        lambda c: c < 3, lambda c: c + 1.0, j.numpy.int32(0)),
    "while carry shape": lambda j: j.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1][None]), (j.numpy.int32(0), W)),
    "while of no function": lambda j: j.lax.while_loop(3, lambda c: c, 0),
    "while of text": lambda j: j.lax.while_loop(lambda c: c < 3, lambda c: c, "a"),
    "while in reverse": lambda j: j.grad(
        lambda x: j.lax.while_loop(lambda c: c < 10, lambda c: c * x, 1.0))(2.0),
    "while in reverse under jit": lambda j: j.jit(j.grad(
        lambda x: j.lax.while_loop(lambda c: c < 10, lambda c: c * x, 1.0)))(2.0),
    "fori of a float": lambda j: j.lax.fori_loop(0, 3.0, lambda i, c: c, 0),
    "fori of other integers": lambda j: j.lax.fori_loop(
        j.numpy.int8(0), j.numpy.int16(3), lambda i, c: c + i, 0),
    "fori unsigned": lambda j: j.lax.fori_loop(0, j.numpy.uint8(3), lambda i, c: c + i, 0),
    "fori unroll": lambda j: j.jit(lambda n: j.lax.fori_loop(
        0, n, lambda i, c: c + i, 0, unroll=3))(3),
    "fori carry dtype": lambda j: j.lax.fori_loop(0, 7, lambda i, c: c.astype(bool), W),
    "fori dynamic carry dtype": lambda j: j.jit(lambda n: j.lax.fori_loop(
        0, n, lambda i, c: c.astype(bool), W))(3),
    "branch types": lambda j: j.lax.cond(True, lambda x: (x, 1), lambda x: (x, 2.0), 1.0),
    "branch shapes": lambda j: j.lax.cond(True, lambda x: (W, 1), lambda x: (W[:2], 2.0), 1.0),
    "branch trees": lambda j: j.lax.cond(True, lambda x: x, lambda x: (x, x), 1.0),
    "branch kinds": lambda j: j.lax.cond(True, lambda x: (x, x), lambda x: {"a": x}, 1.0),
    "branch lengths": lambda j: j.lax.cond(
        True, lambda x: (x, (x,)), lambda x: (x, (x, x)), 1.0),
    "predicate of text": lambda j: j.lax.cond("a", lambda x: x, lambda x: x, 1.0),
    "no predicate": lambda j: j.lax.cond(None, lambda x: x, lambda x: x, 1.0),
    "complex predicate": lambda j: j.lax.cond(
        j.numpy.complex64(1), lambda x: x, lambda x: x, 1.0),
    "predicate of a list": lambda j: j.lax.cond([True], lambda x: x, lambda x: x, 1.0),
    "predicate of an array": lambda j: j.lax.cond(
        j.numpy.array([True]), lambda x: x, lambda x: x, 1.0),
    "cond of no function": lambda j: j.lax.cond(True, 1, lambda x: x, 1.0),
    "cond of text": lambda j: j.lax.cond(True, lambda x: x, lambda x: x, "a"),
    "no branches": lambda j: j.lax.switch(0, []),
    "index of a float": lambda j: j.lax.switch(1.0, [lambda: 1, lambda: 2]),
    "index of an array": lambda j: j.lax.switch(W, [lambda: 1, lambda: 2]),
    "index of a bool": lambda j: j.lax.switch(True, [lambda: 1, lambda: 2]),
    "switch trees": lambda j: j.lax.switch(1, [lambda: 1, lambda: 2, lambda: (1, 2)]),
    "switch types": lambda j: j.lax.switch(1, [lambda: 1, lambda: 2, lambda: 2.0]),
    "switch of no function": lambda j: j.lax.switch(1, [lambda: 1, 3]),
    "map sizes": lambda j: j.lax.map(lambda x: x, (W, W[:2])),
    "map of nothing": lambda j: j.lax.map(lambda x: x, None),
    "matvec shapes": lambda j: j.lax.custom_linear_solve(
        lambda x: x[:1], W, lambda matvec, b: b),
    "solve shapes": lambda j: j.lax.custom_linear_solve(
        lambda x: x, W, lambda matvec, b: b[:1]),
    "no solver of the transpose": lambda j: j.grad(lambda b: j.lax.custom_linear_solve(
        lambda x: 2 * x, b, lambda matvec, b: b / 2).sum())(W),
    "root trees": lambda j: j.lax.custom_root(
        lambda x: (x, x), 1.0, lambda f, x: x, lambda g, y: y),
    "root's solver's trees": lambda j: j.lax.custom_root(
        lambda x: x, 1.0, lambda f, x: (x, x), lambda g, y: y),
    "root without data": lambda j: j.lax.custom_root(
        lambda x: x, 1.0, lambda f, x: x, lambda g, y: y, has_aux=True),
    "associative_scan of no function": lambda j: j.lax.associative_scan(3, W),
    "associative_scan sizes": lambda j: j.lax.associative_scan(j.numpy.add, (W, W[:2])),
    "associative_scan axis": lambda j: j.lax.associative_scan(
        j.numpy.add, j.numpy.ones((2, 3)), axis=2),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_is_jax_s(name):
    assert_same_error(ERRORS[name], whole=True)


@pytest.mark.parametrize("program", [
    lambda j: j.lax.scan(lambda c, x: ((c, c), x), 0, W),
    lambda j: j.lax.while_loop(lambda c: c < 3, lambda c: (c, c), 0),
    lambda j: j.lax.fori_loop(0, 7, lambda i, c: (c, c), 0),
])
def test_error_about_a_leaf_names_the_own_class(program):
    mine, other = errors_of(program)
    assert type(mine) is type(other) is TypeError
    assert str(mine) == str(other).replace("jax._src.core.ShapedArray",
                                           "maxjax._ir.types.ShapedArray")


@pytest.mark.parametrize("program", [
    lambda j: j.lax.scan(lambda c, x: ("a", x), 0, W),
    lambda j: j.lax.scan(lambda c, x: (c, "a"), 0, W),
    lambda j: j.lax.cond(True, lambda x: "a", lambda x: x, 1),
    lambda j: j.jit(lambda n: j.lax.scan(identity, 0, None, length=n))(3),
])
def test_error_of_tracing(program):
    assert_same_error(program)


# --- values that a table of arrays cannot hold ----------------------------------------------------

def test_the_result_has_the_pair_s_own_type():
    agree(lambda j: j.lax.scan(lambda c, x: [c + x, {"y": (c, None)}], 1.0, W))


@pytest.mark.parametrize("unroll", [0, 2, 5, True, False])
def test_an_unrolled_scan_agrees_with_jax(unroll):
    agree(lambda j: j.lax.scan(lambda c, x: (c + x, c * x), 1.0, W, unroll=unroll))


@pytest.mark.parametrize("length", [2.5, np.int64(2), np.float32(1), -3])
def test_length_is_made_an_integer(length):
    agree(lambda j: j.lax.scan(identity, 0, None, length=length))


def test_an_array_as_the_length():
    agree(lambda j: j.lax.scan(lambda c, _: (c + 1, c), 0, None, length=j.numpy.array(3)))


@pytest.mark.parametrize("program", [
    lambda j: j.lax.scan(lambda c, x: (c + j.numpy.float32(1), c), 0.0, None, length=2),
    lambda j: j.lax.scan(lambda c, x: (c + j.numpy.float32(1), c), 0, None, length=2),
    lambda j: j.lax.scan(lambda c, x: (c + 1.0, c), 0, None, length=2),
    lambda j: j.lax.scan(lambda c, x: (0.0, c), j.numpy.float32(0), None, length=2),
    lambda j: j.lax.scan(lambda c, x: (c | True, c), False, None, length=2),
    lambda j: j.lax.scan(lambda c, x: ((c[1], c[0] + 1.5), c), (0, 0.0), None, length=1),
    lambda j: j.lax.while_loop(lambda c: c < 3.0, lambda c: c + j.numpy.float32(1), 0),
    lambda j: j.lax.while_loop(lambda c: c < 3, lambda c: c + 1.0, 0),
    lambda j: j.lax.fori_loop(0, 3, lambda i, c: c + i, 0.0),
    lambda j: j.lax.fori_loop(j.numpy.int8(0), 3, lambda i, c: c + i, 0),
    lambda j: j.lax.fori_loop(0, j.numpy.int16(3), lambda i, c: (c[0] + i, i), (0, 0)),
    lambda j: j.jit(lambda n: j.lax.fori_loop(n, 9, lambda i, c: c + i, 0))(j.numpy.int16(3)),
    lambda j: j.lax.cond(True, lambda x: (x, 1.0), lambda x: (1.0, W[0]), W[0]),
])
def test_weak_types(program):
    agree(program)
    agree(lambda j: j.jit(lambda: program(j))())


def test_a_known_counter_is_a_python_integer():
    """Whatever the bounds' dtype."""
    agree(lambda j: j.lax.fori_loop(j.numpy.uint8(0), j.numpy.uint8(3), lambda i, c: i, 0))


def test_bounds_from_a_closure_make_a_scan():
    """Concrete bounds are known, traced ones are not."""
    def bounds(j, lower, upper):
        text = str(j.make_jaxpr(lambda: j.lax.fori_loop(lower, upper, lambda i, c: c + i, 0))())
        return "scan[" in text, "while[" in text

    for upper in (3, np.int32(3)):
        assert bounds(maxjax, 0, upper) == bounds(jax, 0, upper) == (True, False)
    assert bounds(maxjax, 0, jnp.int32(3)) == bounds(jax, 0, jax.numpy.int32(3)) == (True, False)
    text = str(maxjax.make_jaxpr(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))(3))
    assert "while[" in text


def test_platform_dependent():
    agree(lambda j: j.lax.platform_dependent(
        1.0, cpu=lambda x: x + 1, default=lambda x: x * 2))
    agree(lambda j: j.lax.platform_dependent(1.0, tpu=lambda x: x + 1, default=lambda x: x * 2))


def test_lazy_arrays_go_in_and_out():
    x = jnp.arange(4.0) * 2
    total, partial = lax.scan(lambda c, x: (c + x, c), jnp.zeros(()) + 1, x + 1)
    np.testing.assert_array_equal(np.asarray(total * 1), 17.0)
    np.testing.assert_array_equal(partial, [1, 2, 5, 10])


def test_a_result_is_not_the_caller_s_array():
    given = np.ones(3, np.float32)
    carry, _ = lax.scan(lambda c, _: (c, None), given, None, length=2)
    ys = lax.map(lambda row: row, given)
    given[:] = 7
    np.testing.assert_array_equal(carry, np.ones(3))
    np.testing.assert_array_equal(ys, np.ones(3))


SCALARS = [
    lambda j: j.lax.fori_loop(0, 10, lambda i, c: c * 3, j.numpy.int8(7)),
    lambda j: j.lax.fori_loop(0, 3, lambda i, c: c - 2, j.numpy.uint8(1)),
    lambda j: j.lax.fori_loop(0, 3, lambda i, c: c // 2, -17),
    lambda j: j.lax.fori_loop(0, 3, lambda i, c: 1.0 / (c - c) + i, 1.0),
    lambda j: j.lax.scan(lambda c, x: (-c, (abs(c), c < x, ~c, c & 3, c == x)), np.int32(-5),
                         np.arange(3)),
    lambda j: j.lax.scan(lambda c, x: (c ^ x, (c & x, c | x, ~c, c == x, c != x)), True, W > 0),
    lambda j: j.lax.scan(lambda c, x: (c << 1, (c >> 1, j.numpy.clip(c, 2, 4))), np.int32(1), W),
    lambda j: j.lax.scan(
        lambda c, x: (j.numpy.where(x > 1, c, c + 1), j.numpy.where(c > 0, 1, 2.0)), 0, W),
    lambda j: j.lax.scan(lambda c, x: (c ** 2 % 1000003, c), 3, None, length=5),
    lambda j: j.lax.scan(lambda c, x: (c * 2, (c > 5).astype(int)), 1, None, length=40),
    lambda j: j.lax.scan(lambda c, x: (c * x, c / x), np.float16(300), W.astype(np.float16) + 1),
    lambda j: j.lax.scan(lambda c, x: (c * x + c, c < x), j.numpy.bfloat16(1),
                         j.numpy.asarray(W, "bfloat16")),
    lambda j: j.lax.scan(lambda c, x: (c * x - 1j, c == x), 1j, W + 1j),
]


@pytest.mark.parametrize("number", range(len(SCALARS)))
def test_loops_over_scalars(number):
    """They use Python's operators, and wrap, round and divide by zero as arrays do."""
    agree(SCALARS[number])
    agree(lambda j: j.jit(lambda: SCALARS[number](j))())


CORNERS = [
    lambda j: j.grad(lambda n, x: j.lax.scan(
        lambda c, i: (c * x, None), 1.0, j.numpy.arange(3) + n)[0], argnums=1)(2, 3.0),
    lambda j: j.grad(lambda x: abs(j.lax.scan(
        lambda c, w: (c * w + 1j, None), x + 0j, W)[0]) ** 2)(0.3),
    lambda j: j.vmap(lambda x: j.lax.scan(lambda c, w: (c + w, c * w), x, W), out_axes=(0, 1))(W),
    lambda j: j.vmap(lambda p: j.lax.cond(p, lambda: 1.0, lambda: 2.0))(W > 0),
    lambda j: j.random.key_data(j.vmap(lambda n: j.lax.while_loop(
        lambda s: s[0] < n, lambda s: (s[0] + 1, j.random.split(s[1])[0]),
        (0, j.random.key(1)))[1])(np.array([1, 3, 0]))),
    lambda j: j.grad(lambda x: j.lax.scan(
        lambda c, w: ((~c[0], j.numpy.where(c[0], c[1] * w, c[1] + w)), None), (True, x),
        W)[0][1])(2.0),
    lambda j: j.lax.scan(lambda c, x: (None, x * 2), None, W),
    lambda j: j.lax.scan(lambda c, x: (c + x.sum(), x), 0.0, np.zeros((3, 0), np.float32)),
    lambda j: j.grad(lambda x: j.lax.scan(lambda c, w: (c * w, None), 1.0, x)[0])(W[:0]),
    lambda j: j.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, None), (0, None)),
    lambda j: j.linear_transpose(lambda x: j.lax.cond(
        True, lambda x: 2 * x, lambda x: x, x), 1.0)(3.0),
    lambda j: j.grad(lambda x: j.lax.scan(
        lambda c, i: (c + x[i], None), 0.0, np.array([0, 2, 2]))[0])(W),
    lambda j: j.grad(lambda x: (j.lax.fori_loop(
        0, 3, lambda i, b: b.at[i].set(b[i - 1] * x), j.numpy.asarray(W)) ** 2).sum())(2.0),
    lambda j: j.grad(lambda x: j.lax.scan(
        lambda c, w: (j.lax.stop_gradient(c) * x + w, None), x, W)[0])(2.0),
    lambda j: j.vmap(j.grad(lambda x, i: j.lax.switch(
        i, [lambda x: x, lambda x: x * x, j.numpy.sin], x)))(W, np.arange(3)),
    lambda j: j.lax.associative_scan(
        lambda a, b: {"x": a["x"] * b["x"], "y": a["y"] + b["y"]}, {"x": W, "y": W}),
]


@pytest.mark.parametrize("number", range(len(CORNERS)))
def test_corner_cases_agree_with_jax(number):
    agree(CORNERS[number], weak=False)


# --- transformations over closures ----------------------------------------------------------------

def test_bodies_close_over_tracers():
    def program(j):
        def f(w, x):
            def body(c, row):
                inner = j.grad(lambda v: (v * w * c).sum() ** 2)(row)
                return c + inner * w, j.lax.cond(w.sum() > c.sum(), lambda: w * c, lambda: c)

            return j.lax.scan(body, 0.1 * w, x)

        loss = lambda w, x: sum((y ** 2).sum() for y in f(w, x))
        xs = np.stack([W, W + 1])
        return (j.grad(loss)(W, xs), j.jit(j.vmap(j.grad(loss), (0, None)))(xs, xs),
                j.jvp(lambda w: f(w, xs), (W,), (W,)))

    agree(program, kind="accumulate", weak=False)


def test_derivatives_of_derivatives():
    def program(j):
        def f(x):
            return j.lax.scan(lambda c, w: (j.numpy.sin(c * w) + x, c * x), x, W)[1].sum()

        return (f(0.5), j.grad(f)(0.5), j.grad(j.grad(f))(0.5), j.grad(j.grad(j.grad(f)))(0.5),
                j.jacfwd(j.jacrev(f))(0.5), j.jacrev(j.jacfwd(f))(0.5),
                j.vmap(j.grad(j.grad(f)))(W), j.grad(lambda x: j.vmap(f)(x * W).sum())(0.5))

    agree(program, kind="accumulate", weak=False)


def test_vmap_of_vmap_of_a_while_loop():
    def program(j):
        def f(x, y):
            return j.lax.while_loop(lambda c: c[0] < y, lambda c: (c[0] * x, c[1] + 1), (1.5, 0))

        return j.vmap(j.vmap(f, (None, 0)), (0, None))(W + 1.5, 9 * W)

    agree(program, weak=False)


def test_a_finished_element_stays_as_it_is():
    """The body's result for it (here an infinity, then NaN) is not visible."""
    def program(j):
        def f(x):
            return j.lax.while_loop(lambda c: c[1] < x, lambda c: (1 / (3 - c[1]) + c[0], c[1] + 1),
                                    (0.0, 0.0))[0]

        return j.vmap(f)(np.array([2, 3, 5], np.float32))

    agree(program, weak=False)


def test_keys_and_integers_in_a_differentiated_while_loop():
    def program(j):
        def f(x):
            def body(state):
                i, key, value = state
                key, sub = j.random.split(key)
                return i + 1, key, value * x + j.random.uniform(sub)

            return j.lax.while_loop(lambda s: s[0] < 4, body, (0, j.random.key(0), x))[2]

        return j.jvp(f, (0.5,), (1.0,)), j.linearize(f, 0.5)[1](1.0), j.vmap(
            lambda x: j.jvp(f, (x,), (1.0,)))(W)

    agree(program, weak=False)


def test_a_key_that_a_loop_in_a_branch_needs_again():
    """A loop differentiated in forward mode keeps its initial value: here a key."""
    def program(j):
        def f(key, x):
            def branch(x):
                sub = j.random.fold_in(key, 3)
                return j.lax.while_loop(
                    lambda s: s[1] < 3.0, lambda s: (j.random.split(s[0])[0], s[1] + x),
                    (sub, x))[1]

            return j.lax.cond(x > 0, branch, lambda x: 2 * x, x)

        return j.linearize(functools.partial(f, j.random.key(0)), 0.7)[1](1.0)

    agree(program, weak=False)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_transpose_of_a_loop_that_counts(reverse):
    """A carry that is not linear is computed forward first."""
    def program(j):
        def f(x):
            def body(carry, _):
                i, total = carry
                return (i + 1, total * (1.0 + i) + x * i), total * i

            return j.lax.scan(body, (0, j.numpy.zeros(3)), None, length=4, reverse=reverse)

        linear = lambda x: (lambda r: (r[0][1], r[1]))(f(x))
        out = j.eval_shape(linear, W)
        return j.linear_transpose(linear, W)(
            j.tree_util.tree_map(lambda s: j.numpy.ones(s.shape, s.dtype), out))

    agree(program, weak=False)


def test_no_derivative_of_what_is_not_taken():
    """A constant carry, an output and a branch without tangents have none."""
    _, linear = maxjax.linearize(lambda x: lax.scan(
        lambda c, w: ((c[0] * x, c[1] * 2), w), (1.0, 1.0), W), 2.0)
    (_, constant), output = linear(1.0)
    assert float(constant) == 0.0
    np.testing.assert_array_equal(output, np.zeros(3))


def test_residuals_that_do_not_change_are_kept_once():
    """Neither the matrix nor values computed only from it are stacked."""
    m = jnp.ones((3, 3))

    def f(m, c):
        return lax.scan(lambda c, _: (jnp.sin(m) @ c, None), c, None, length=50)[0].sum()

    closed = simplify(maxjax.make_jaxpr(maxjax.grad(f, argnums=(0, 1)))(m, jnp.ones(3)))
    shapes = {var.aval.shape for eqn in closed.eqns for var in eqn.outvars}
    assert (50, 3) in shapes
    assert (50, 3, 3) not in shapes


def test_roots_with_auxiliary_data():
    def program(j):
        def f(a):
            def solve(g, x):
                return j.lax.fori_loop(0, 8, lambda _, x: x - g(x) / (2 * x), x), {"steps": 8.0}

            x, data = j.lax.custom_root(
                lambda x: x * x - a, 1.5, solve, lambda g, y: y / g(1.0), has_aux=True)
            return x * a, data

        return j.value_and_grad(f, has_aux=True)(2.0), j.grad(j.grad(lambda a: f(a)[0]))(2.0)

    agree(program, weak=False)


def test_a_residual_that_is_an_output_is_stacked_once():
    def f(c):
        def body(c, x):
            y = jnp.exp(c * x)      # its own derivative
            return y * 0.5, y

        return lax.scan(body, c, jnp.arange(5.0))[1].sum()

    closed = simplify(maxjax.make_jaxpr(maxjax.value_and_grad(f))(0.5))
    assert [v.aval.shape for v in equation(closed, "scan").outvars] == [(), (5,)]


# --- printing -------------------------------------------------------------------------------------

PRINTED = [
    lambda j, x: j.lax.scan(
        lambda c, y: (j.numpy.sin(c), (y, c)), x, x * W, reverse=True, unroll=2),
    lambda j, x: j.lax.scan(lambda c, y: ((c[0], c[1] * x), (y, c[0])), (x, x), x * W),
    lambda j, x: j.lax.fori_loop(0, 3, lambda i, c: c * x, x),
    lambda j, x: j.lax.while_loop(lambda c: c < x, lambda c: c * x, x),
    lambda j, x: j.lax.fori_loop(0, x.astype(int), lambda i, c: c * x, x),
    lambda j, x: j.lax.cond(x > 1, lambda y: y * 2, lambda y: y, x),
    lambda j, x: j.lax.switch(x.astype(int), [lambda y: y, lambda y: -y, lambda y: y * y], x),
    lambda j, x: j.lax.map(lambda y: y * y, x * W),
    lambda j, x: j.lax.map(lambda y: y * y, x * W, batch_size=2),
    lambda j, x: j.lax.associative_scan(j.numpy.multiply, x * W),
]


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_printed_as_jax_prints_it(number):
    program = PRINTED[number]
    texts = [str(j.make_jaxpr(lambda x: program(j, x))(np.float32(2))) for j in (maxjax, jax)]      # noqa: B023
    assert texts[0] == texts[1]


# --- traces and their keeping ---------------------------------------------------------------------

def test_a_body_is_traced_once_for_a_signature():
    calls = []

    def body(c, x):
        calls.append("body")
        return c + x, c

    def condition(c):
        calls.append("condition")
        return c < 3

    def one(c):
        calls.append("one")
        return c + 1

    def step(i, c):
        calls.append("step")
        return c + i

    for _ in range(3):
        lax.scan(body, jnp.float32(0), jnp.arange(3.0))
        lax.while_loop(condition, one, 0)
        lax.fori_loop(0, 3, step, 0)
        lax.map(one, jnp.arange(3))
        lax.cond(True, one, one, 2.5)
    lax.scan(body, jnp.float32(0), jnp.arange(4.0))      # another length is the same body
    assert sorted(calls) == ["body", "condition", "one", "one", "one", "step"]
    lax.scan(body, jnp.zeros(2), jnp.arange(3.0))
    assert calls.count("body") == 2


def test_a_body_over_tracers_is_traced_anew():
    def outer(w):
        def body(c, x):
            return c * w + x, None

        return lax.scan(body, 0.0, W)[0]

    first, second = maxjax.grad(outer)(2.0), maxjax.grad(outer)(3.0)
    assert (float(first), float(second)) == (2 * 0 + 1.0, 1.0)
    np.testing.assert_array_equal(
        maxjax.vmap(outer)(jnp.array([2.0, 3.0])), [float(outer(2.0)), float(outer(3.0))])


def test_x64_is_part_of_the_signature():
    def body(c, x):
        return c + 1.0, None

    assert lax.scan(body, 0.0, None, length=1)[0].dtype == np.float32
    with maxjax.enable_x64(True):
        assert lax.scan(body, 0.0, None, length=1)[0].dtype == np.float64


def test_an_eager_loop_is_one_program():
    def body(c, x):
        return jnp.sin(c) + x, c

    lax.scan(body, 0.5, W)
    start = time.thread_time()
    for _ in range(50):
        lax.scan(body, 0.5, W)
    assert (time.thread_time() - start) / 50 < 5e-3


# --- jaxprs ---------------------------------------------------------------------------------------

def programs():
    def body(c, x):
        i, v, d = c
        v = lax.cond(x[0] > 0, lambda v: jnp.sin(v) * x, lambda v: v + d, v)
        v = lax.while_loop(lambda v: (v ** 2).sum() > 4.0, lambda v: 0.7 * v, v)
        return (i + 1, v, d), (v.sum(), i)

    def f(c, x):
        return lax.scan(body, (0, c, 2 * c), x)

    def g(c, x):
        return lax.scan(lambda c, x: (lax.cond(x[0] > 0, jnp.sin, lambda v: v * x, c), c), c, x)[1]

    c, x = jnp.ones(3), jnp.arange(12.0).reshape(4, 3) - 4
    loss = lambda c, x: (g(c, x) ** 2).sum()
    yield f, (c, x)
    yield (lambda c, x: maxjax.jvp(lambda c: f(c, x)[1][0], (c,), (c,))), (c, x)
    yield maxjax.vmap(f), (x, jnp.stack([x] * 4))
    yield maxjax.grad(loss, argnums=(0, 1)), (c, x)
    yield maxjax.vmap(maxjax.grad(loss), (0, None)), (x, x)
    yield maxjax.grad(lambda c, x: maxjax.grad(loss)(c, x).sum()), (c, x)
    yield maxjax.jit(maxjax.hessian(loss)), (c, x)


@pytest.mark.parametrize("number", range(len(list(programs()))))
def test_jaxprs_are_well_formed(number):
    """As traced, simplified, read back from their text; and all three compute the same."""
    function, args = list(programs())[number]
    closed = maxjax.make_jaxpr(function)(*args)
    check_jaxpr(closed)
    simplified = simplify(closed)
    check_jaxpr(simplified)
    text = dumps(encode(simplified.jaxpr))
    restored = ClosedJaxpr(decode(encode(simplified.jaxpr)), simplified.consts)
    check_jaxpr(restored)
    assert dumps(encode(restored.jaxpr)) == text
    values = [np.asarray(leaf) for leaf in maxjax.tree_util.tree_leaves(args)]
    expected = maxjax.tree_util.tree_leaves(function(*args))
    with np.errstate(all="ignore"):
        for version in (closed, simplified, restored):
            for actual, wanted in zip(interpreter(version)(*values), expected, strict=True):
                np.testing.assert_allclose(actual, np.asarray(wanted), rtol=2e-6, atol=1e-6)


def test_what_has_effects_is_kept(monkeypatch):
    """Also where nothing uses its results."""
    primitive = registry["tanh"]
    closed = maxjax.make_jaxpr(lambda x: lax.scan(
        lambda c, _: (c + 1, jnp.tanh(c)), x, None, length=2)[0])(1.0)
    inner = lambda: equation(simplify(closed), "scan").params["jaxpr"].eqns
    assert [eqn.primitive.name for eqn in inner()] == ["add"]
    monkeypatch.setattr(primitive, "effects", Effectful(lambda **params: frozenset()))
    closed.eqns[0].params["jaxpr"].known.clear()
    assert "tanh" in [eqn.primitive.name for eqn in inner()]
    unused = ClosedJaxpr(closed.jaxpr.replace(outvars=[]), closed.consts)
    assert equation(simplify(unused), "scan") is not None


def equation(closed, name):
    return next(eqn for eqn in closed.eqns if eqn.primitive.name == name)


def test_dead_code_of_a_scan():
    """An unused output, the carry that only it needs, and an operand are gone."""
    def f(x, unused):
        def body(c, xs):
            a, b = c
            return (a + xs[0], b * 2 + xs[1]), (a, b)

        return lax.scan(body, (x[0], x[0]), (x, unused))[1][0]

    closed = simplify(maxjax.make_jaxpr(f)(jnp.ones(4), jnp.ones(4)))
    scan = equation(closed, "scan")
    assert len(scan.outvars) == 2
    assert (scan.params["num_carry"], len(scan.invars)) == (1, 2)
    assert [eqn.primitive.name for eqn in scan.params["jaxpr"].eqns] == ["add"]
    check_jaxpr(closed)


def test_dead_code_keeps_carries_that_feed_each_other():
    def f(x):
        return lax.scan(lambda c, _: ((c[1], c[2], c[0] * 2, c[3] + 1), None),
                        (x, x + 1, x + 2, x), None, length=5)[0][0]

    scan = equation(simplify(maxjax.make_jaxpr(f)(1.0)), "scan")
    assert scan.params["num_carry"] == 3
    agree(lambda j: j.jit(lambda x: j.lax.scan(
        lambda c, _: ((c[1], c[2], c[0] * 2, c[3] + 1), None),
        (x, x + 1, x + 2, x), None, length=5)[0][0])(1.0))


def test_dead_code_of_a_while_loop_and_a_branch():
    def f(x, w):
        kept = lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * w, c[2] * x),
                              (0, x, x))[2]
        return lax.cond(x > 0, lambda a, b: (a, b), lambda a, b: (a * 2, b), kept, w)[0]

    closed = simplify(maxjax.make_jaxpr(f)(1.0, 2.0))
    loop, branch = equation(closed, "while"), equation(closed, "cond")
    assert len(loop.outvars) == 2
    assert loop.params["body_nconsts"] == 1
    assert (len(branch.invars), len(branch.outvars)) == (2, 1)
    check_jaxpr(closed)


def test_the_graph_backend_leaves_control_flow_to_the_host():
    closed = simplify(maxjax.make_jaxpr(
        lambda x: lax.scan(lambda c, x: (c + x, c), 0.0, jnp.sin(x))[0] + 1)(jnp.ones(3)))
    pieces = partition(closed.jaxpr)
    reasons = [reason for piece in pieces for reason in piece.reasons]
    assert [piece.on_host for piece in pieces] == [False, True, False]
    assert reasons == ["scan: MAX graphs do without control flow"]


class Recorder:
    """A lowering context that records the requested operations."""

    def __init__(self):
        self.calls = []

    def control_flow(self, name, flow, operands):
        bodies = [len(body.jaxpr.eqns) for body in flow.bodies]
        self.calls.append((name, bodies, flow.parts(operands), flow.length, flow.reverse))
        return ["result"]


def test_loops_and_choices_are_lowered_with_their_jaxprs():
    def f(k, x, n):
        a = lax.scan(lambda c, x: (c * k + x, None), 1.0, x, reverse=True)[0]
        b = lax.while_loop(lambda c: c < n, lambda c: c * k, a)
        return lax.cond(b > 0, lambda b: b * k, lambda b: b, b)

    closed = maxjax.make_jaxpr(f)(2.0, jnp.ones(3), 5.0)
    recorder = Recorder()
    for eqn in closed.eqns:
        if list(subjaxprs(eqn.params)):
            names = [f"v{n}" for n in range(len(eqn.invars))]
            assert eqn.primitive.lower(recorder, *names, **eqn.params) == ["result"]
    assert recorder.calls == [
        ("scan", [3], [["v0"], ["v1"], ["v2"]], 3, True),
        ("while", [2, 2], [["v0"], ["v1"], ["v2"]], None, False),
        ("cond", [0, 2], [["v0"], ["v1", "v2"]], None, False)]
