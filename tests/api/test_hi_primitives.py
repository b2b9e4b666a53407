"""Primitives that a class defines (``jax.experimental.hijax.VJPHiPrimitive``), against JAX."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
import pytest

import maxjax
import maxjax.experimental.hijax
from tests.support.against_jax import agree, assert_same_error


class Point(NamedTuple):
    x: Any
    y: Any


def hijax_of(j):
    return importlib.import_module("maxjax.experimental.hijax" if j is maxjax
                                   else "jax.experimental.hijax")


class Functions:
    """Functions of arrays, each of a primitive with other rules."""

    def __init__(self, j):
        hijax, jnp = hijax_of(j), j.numpy
        base = hijax.VJPHiPrimitive

        class Unary(base):
            def __init__(self, x, **params):
                self.in_avals, self.out_aval, self.params = (x,), x, params
                super().__init__()

        class Binary(base):
            def __init__(self, x, y):
                self.in_avals, self.out_aval, self.params = (x, y), x, {}
                super().__init__()

            def expand(self, x, y):
                return jnp.sin(x) * y

        class Reverse(Binary):
            """Its backward rule gives ten times the derivative."""

            def vjp_fwd(self, nonzeros, x, y):
                return self(x, y), (x, y if nonzeros[0] else None, nonzeros[1])

            def vjp_bwd_retval(self, residuals, ct):
                x, y, second = residuals
                return (None if y is None else 10 * ct * jnp.cos(x) * y,
                        10 * ct * jnp.sin(x) if second else None)

            def batch_dim_rule(self, axis_data, dims):
                return dims[1] if dims[0] is None else dims[0]

        class Both(Reverse):
            def jvp(self, primals, tangents):
                (x, y), (dx, dy) = primals, map(hijax.instantiate_zeros, tangents)
                return self(x, y), 3 * (jnp.cos(x) * dx * y + jnp.sin(x) * dy)

        class Accumulated(Binary):
            def vjp_fwd(self, nonzeros, x, y):
                return self(x, y), (x, y)

            def vjp_bwd(self, residuals, ct, x_ct, y_ct):
                x, y = residuals
                x_ct.accum(ct * y)
                x_ct.accum(ct)
                y_ct.accum(ct * x)

        class Linearized(Unary):
            def expand(self, x):
                return jnp.sin(x)

            def lin(self, nonzeros, x):
                return self(x), jnp.cos(x)

            def linearized(self, residuals, tangent):
                return 7 * residuals * tangent

        class Tripled(Unary):
            def expand(self, x):
                return 3 * x

            def transpose(self, ct, accum):
                accum.accum(4 * ct)

            def batch(self, axis_data, args, dims):
                return 3 * args[0] + axis_data.size, dims[0]

        class Scaled(Unary):
            def expand(self, x):
                return self.function(x) * self.scale

        class OfTrees(base):
            def __init__(self, point):
                self.in_avals, self.params = (point,), {}
                self.out_aval = {"a": point.x, "b": (point.x, point.y)}
                super().__init__()

            def expand(self, point):
                return {"a": point.x ** 2, "b": (jnp.sin(point.x), jnp.cos(point.y))}

            def vjp_fwd(self, nonzeros, point):
                return self(point), point

            def vjp_bwd_retval(self, point, ct):
                ct = j.tree.map(hijax.instantiate_zeros, ct,
                                is_leaf=lambda x: isinstance(x, hijax.Zero))
                return (Point(2 * point.x * ct["a"] + ct["b"][0], ct["b"][1] * point.y),)

        def applied(kind, **params):
            return lambda *args: kind(*j.tree.map(j.typeof, args), **params)(*args)

        self.reverse, self.both = applied(Reverse), applied(Both)
        self.accumulated, self.linearized = applied(Accumulated), applied(Linearized)
        self.tripled, self.of_trees = applied(Tripled), applied(OfTrees)
        self.scaled = applied(Scaled, scale=2.5, function=jnp.cos)


X, Y = np.float32([0.5, 1.0, 1.5]), np.float32([2.0, 3.0, 4.0])

PROGRAMS = {
    "eager": lambda j, f: f.reverse(X, Y),
    "jit": lambda j, f: j.jit(f.reverse)(X, Y),
    "parameters": lambda j, f: j.jit(f.scaled)(X),
    "grad": lambda j, f: j.grad(f.reverse, (0, 1))(0.5, 2.0),
    "grad of one": lambda j, f: (j.grad(f.reverse)(0.5, 2.0), j.grad(f.reverse, 1)(0.5, 2.0)),
    "jit of grad": lambda j, f: j.jit(j.grad(f.reverse, (0, 1)))(0.5, 2.0),
    "grad of jit": lambda j, f: j.grad(j.jit(f.reverse), (0, 1))(0.5, 2.0),
    "grad of grad": lambda j, f: j.grad(j.grad(f.both))(0.5, 2.0),
    "jvp": lambda j, f: j.jvp(f.both, (0.5, 2.0), (1.0, 1.0)),
    "jvp of one": lambda j, f: j.jvp(lambda x: f.both(x, 2.0), (0.5,), (1.0,)),
    "jvp of grad": lambda j, f: j.jvp(lambda x: j.grad(f.both)(x, 2.0), (0.5,), (1.0,)),
    "accumulators": lambda j, f: j.grad(f.accumulated, (0, 1))(0.5, 2.0),
    "linearize": lambda j, f: [j.linearize(f.linearized, 0.5)[1](t) for t in (1.0, 2.0)],
    "jit of linearize": lambda j, f: j.jit(lambda x: j.linearize(f.linearized, x)[1](1.0))(0.5),
    "vmap of linear": lambda j, f: j.vmap(j.linearize(f.linearized, 0.5)[1])(X),
    "transpose": lambda j, f: j.linear_transpose(f.tripled, 1.0)(2.0),
    "batch": lambda j, f: j.vmap(f.tripled)(X),
    "vmap": lambda j, f: j.vmap(f.reverse)(X, Y),
    "vmap of one": lambda j, f: (j.vmap(f.reverse, (0, None))(X, 2.0),
                                 j.vmap(f.reverse, (None, 0))(2.0, Y)),
    "vmap of other axes": lambda j, f: j.vmap(f.reverse, (1, 1), 1)(
        X[None] * Y[:, None], Y[None] + X[:, None]),
    "vmap of vmap": lambda j, f: j.vmap(j.vmap(f.reverse))(X[None], Y[None]),
    "vmap of grad": lambda j, f: j.vmap(j.grad(f.reverse, (0, 1)))(X, Y),
    "grad of vmap": lambda j, f: j.grad(
        lambda x, y: j.vmap(f.reverse)(x, y).sum(), (0, 1))(X, Y),
    "grad of vmap, one for all": lambda j, f: j.grad(
        lambda x, y: j.vmap(f.reverse, (0, None))(x, y).sum(), (0, 1))(X, Y[0]),
    "jvp of vmap": lambda j, f: j.jvp(j.vmap(f.both), (X, Y), (Y, X)),
    "trees": lambda j, f: f.of_trees(Point(1.0, 2.0)),
    "grad of trees": lambda j, f: j.grad(
        lambda p: f.of_trees(p)["a"] + f.of_trees(p)["b"][0])(Point(1.0, 2.0)),
    "scan": lambda j, f: j.lax.scan(lambda c, x: (f.reverse(c, x), c), Y[0], X),
    "grad of scan": lambda j, f: j.grad(
        lambda c: j.lax.scan(lambda c, x: (f.reverse(c, x), None), c, X)[0])(Y[0]),
    "cond": lambda j, f: j.grad(
        lambda x: j.lax.cond(x > 0, lambda x: f.reverse(x, x), lambda x: x, x))(0.5),
    "in a jaxpr": lambda j, f: str(j.make_jaxpr(f.both)(0.5, 2.0)),
    "eval_shape": lambda j, f: str(j.eval_shape(f.of_trees, Point(1.0, X))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_primitives_of_classes(name):
    # The linear part is a program for the types that it was traced with.
    agree(lambda j: PROGRAMS[name](j, Functions(j)), weak=name != "vmap of linear")


@pytest.mark.parametrize("run", [
    lambda j, f: j.grad(f.tripled)(1.0),
    lambda j, f: j.jvp(f.tripled, (1.0,), (1.0,)),
    lambda j, f: j.vmap(f.linearized)(X),
    lambda j, f: j.linear_transpose(f.scaled, 1.0)(2.0),
], ids=["grad", "jvp", "vmap", "transpose"])
def test_a_missing_rule_is_named(run):
    def text(j):
        with pytest.raises(NotImplementedError) as caught:
            run(j, Functions(j))
        return str(caught.value).replace(__name__, "")

    agree(text)


def test_what_a_class_must_define():
    """What is missing, and rules that exclude one another."""
    def made(j, **members):
        base = hijax_of(j).VJPHiPrimitive
        kind = type("Made", (base,), members)
        return kind()

    for members in ({}, {"in_avals": ()}, {"in_avals": (), "out_aval": ()},
                    {"in_avals": (), "out_aval": (), "params": {},
                     "vjp_bwd": print, "vjp_bwd_retval": print}):
        assert_same_error(lambda j, members=members: made(j, **members))


def test_traced_once():
    """A program runs what was traced; outside programs ``expand`` runs each time."""
    def calls(j):
        seen = []

        class Noisy(hijax_of(j).VJPHiPrimitive):
            def __init__(self, x):
                self.in_avals, self.out_aval, self.params = (x,), x, {}
                super().__init__()

            def expand(self, x):
                seen.append(0)
                return 2 * x

        def noisy(x):
            return Noisy(j.typeof(x))(x)

        counts = []
        for run in (noisy, noisy, jitted := j.jit(noisy), jitted):
            run(1.0)
            counts.append(len(seen))
        return counts

    agree(calls)


def test_a_primitive_checks_types():
    """JAX computes with whatever it is called with under jit; here the declared types count."""
    hijax = maxjax.experimental.hijax

    class Plain(hijax.VJPHiPrimitive):
        def __init__(self, x, out):
            self.in_avals, self.out_aval, self.params = (x,), out, {}
            super().__init__()

        def expand(self, x):
            return x

    scalar, vector = maxjax.typeof(np.float32(1)), maxjax.typeof(X)
    with pytest.raises(TypeError, match=r"declared for .* float32\[\], and got .* float32\[3\]"):
        maxjax.jit(Plain(scalar, scalar))(X)
    with pytest.raises(TypeError, match=r"gives float32\[3\], declared is float32\[\]"):
        maxjax.jit(Plain(vector, scalar))(X)
    assert Plain(scalar, scalar) == Plain(scalar, scalar) != Plain(scalar, vector)
    assert hash(Plain(scalar, scalar)) == hash(Plain(scalar, scalar))
    with pytest.raises(NotImplementedError, match="Plain: of types above arrays"):
        Plain(hijax.MutableHiType(), scalar)


def test_rules_on_values_may_branch():
    def gradients(j):
        hijax = importlib.import_module(f"{j.__name__}.experimental.hijax")
        jnp = j.numpy

        class Branching(hijax.VJPHiPrimitive):
            def __init__(self, x):
                self.in_avals, self.out_aval, self.params = (x,), x, {}
                super().__init__()

            def expand(self, x):
                return jnp.sin(x) if x > 0 else jnp.cos(x)

            def vjp_fwd(self, nonzeros, x):
                return self(x), x

            def vjp_bwd_retval(self, residual, ct):
                return (2 * ct if residual > 0 else 3 * ct,)

        apply = lambda x: Branching(j.typeof(x))(x)
        return j.value_and_grad(apply)(1.0), j.value_and_grad(apply)(-1.0)

    agree(gradients)
