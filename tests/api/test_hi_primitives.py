"""Primitives that a class defines (``jax.experimental.hijax.HiPrim``), against JAX."""

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
        base = hijax.HiPrim

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

            def batch(self, axis_data, args, dims):
                args = hijax.bdims_at_front(axis_data, args, dims)
                return type(self)(*hijax.unmap_avals(axis_data, self.in_avals, (0, 0)))(*args), 0

        class Forward(Binary):
            """Its forward rule gives three times the derivative."""

            def jvp(self, primals, tangents):
                (x, y), (dx, dy) = primals, map(hijax.instantiate_zeros, tangents)
                return self(x, y), 3 * (jnp.cos(x) * dx * y + jnp.sin(x) * dy)

            batch = Reverse.batch

        class Both(Forward, Reverse):
            pass

        class FromJvp(Forward):
            lin, linearized = hijax.linearize_from_jvp
            vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp

        class FromJvpAlone(Forward):
            vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp

        class FromLin(Binary):
            """Its rules give seven times the derivative."""

            def lin(self, nonzeros, x, y):
                return self(x, y), (x, y, nonzeros)

            def linearized(self, residuals, dx, dy):
                x, y, (first, second) = residuals
                return 7 * ((jnp.cos(x) * dx * y if first else 0.0) + (
                    jnp.sin(x) * dy if second else 0.0))

            jvp = hijax.jvp_from_lin
            vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin
            batch = Reverse.batch

        class Ways(Both):
            """Rules that follow from others, by way of linearization."""

            lin, linearized = hijax.linearize_from_jvp
            vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin

        class Mapped(Binary):
            """Its rule for vmap is a primitive with all rules mapped."""

            def __init__(self, x, y, axis_data=None, dims=None, **params):
                self.in_avals, self.out_aval = (x, y), x
                self.params = {"axis_data": axis_data, "dims": dims}
                base.__init__(self)

            def mapped(self, rule, in_axes, out_axes):
                return rule if self.axis_data is None else hijax.vmap_rule(
                    self.axis_data, rule, in_axes, out_axes)

            def expand(self, x, y):
                return self.mapped(super().expand, self.dims, 0)(x, y)

            def jvp(self, primals, tangents):
                def rule(primals, tangents):
                    (x, y), (dx, dy) = primals, map(hijax.instantiate_zeros, tangents)
                    return self.function(x, y), 3 * (jnp.cos(x) * dx * y + jnp.sin(x) * dy)

                return self.mapped(rule, (self.dims, self.dims), (0, 0))(primals, tangents)

            def vjp_fwd(self, nonzeros, x, y):
                return self(x, y), (x, y)

            def vjp_bwd_retval(self, residuals, ct):
                def rule(residuals, ct):
                    x, y = residuals
                    return 10 * ct * jnp.cos(x) * y, 10 * ct * jnp.sin(x)

                if self.axis_data is None:
                    return rule(residuals, ct)
                return hijax.vmap_rule(self.axis_data, rule, (self.dims, 0), self.dims,
                                       sum_match=True)(residuals, ct)

            def function(self, x, y):
                return jnp.sin(x) * y

            def batch(self, axis_data, args, dims):
                avals = hijax.unmap_avals(axis_data, self.in_avals, dims)
                return Mapped(*avals, axis_data, dims)(*args), 0

        class WithMore(Reverse):
            """Its forward rule gives all that one can give."""

            def vjp_fwd(self, nonzeros, x, y):
                return self(x, y), {"x": x}, True, {"y": y}

            def vjp_bwd(self, residuals, structured, ct, x_ct, y_ct):
                x_ct.accum(20 * ct * structured["y"])
                y_ct.accum(30 * ct * residuals["x"])
                return {"logged": ct}

        class ZeroOut(Binary):
            """Its second result is not differentiated."""

            def __init__(self, x, y):
                self.in_avals, self.out_aval, self.params = (x, y), (x, [y]), {}
                base.__init__(self)

            def expand(self, x, y):
                return x * y, [x + y]

            def vjp_fwd(self, nonzeros, x, y):
                return self(x, y), (x, y), (True, False)

            def vjp_bwd_retval(self, residuals, cts):
                x, y = residuals
                assert isinstance(cts[1][0], hijax.Zero)
                return 5 * cts[0] * y, cts[0] * x

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
        self.forward, self.from_jvp, self.from_lin = map(applied, (Forward, FromJvp, FromLin))
        self.from_jvp_alone, self.ways = applied(FromJvpAlone), applied(Ways)
        self.mapped, self.with_more, self.zero_out = map(applied, (Mapped, WithMore, ZeroOut))
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
    **{f"{transform} of {name}": (lambda j, f, name=name, run=run: run(j, getattr(f, name)))
       for name in ("from_jvp", "from_lin", "ways") for transform, run in {
           "jvp": lambda j, f: j.jvp(f, (0.5, 2.0), (1.0, 1.0)),
           "jvp of one": lambda j, f: j.jvp(lambda x: f(x, 2.0), (0.5,), (1.0,)),
           "linearize": lambda j, f: j.linearize(f, 0.5, 2.0)[1](1.0, 3.0),
           "linearize of one": lambda j, f: j.linearize(lambda y: f(0.5, y), 2.0)[1](3.0),
           "grad": lambda j, f: j.grad(f, (0, 1))(0.5, 2.0),
           "grad of one": lambda j, f: (j.grad(f)(0.5, 2.0), j.grad(f, 1)(0.5, 2.0)),
           "grad of grad": lambda j, f: j.grad(j.grad(f))(0.5, 2.0),
           "jvp of grad": lambda j, f: j.jvp(j.grad(f), (0.5, 2.0), (1.0, 1.0)),
           "grad of jit": lambda j, f: j.grad(j.jit(f), (0, 1))(0.5, 2.0),
           "jit of grad": lambda j, f: j.jit(j.grad(f, (0, 1)))(0.5, 2.0),
           "checkpoint": lambda j, f: j.grad(j.checkpoint(f))(0.5, 2.0),
           "vmap of grad": lambda j, f: j.vmap(j.grad(f, (0, 1)))(X, Y),
           "grad of vmap": lambda j, f: j.grad(
               lambda x, y: j.vmap(f, (0, None))(x, y).sum(), (0, 1))(X, Y[0]),
           "grad of scan": lambda j, f: j.grad(
               lambda c: j.lax.scan(lambda c, x: (f(c, x), None), c, X)[0])(Y[0]),
       }.items()},
    "grad from a jvp alone": lambda j, f: j.grad(f.from_jvp_alone, (0, 1))(0.5, 2.0),
    "mapped": lambda j, f: (j.vmap(f.mapped)(X, Y), j.vmap(f.mapped, (None, 0))(0.5, Y)),
    "jvp of mapped": lambda j, f: j.jvp(j.vmap(f.mapped, (0, None)), (X, 2.0), (Y, 1.0)),
    "jvp of one mapped": lambda j, f: j.jvp(
        lambda x: j.vmap(f.mapped)(x, Y), (X,), (Y,)),
    "grad of mapped": lambda j, f: (
        j.grad(lambda x, y: (j.vmap(f.mapped, (0, None))(x, y) * Y).sum(), (0, 1))(X, Y[0]),
        j.grad(lambda x, y: (j.vmap(f.mapped)(x, y) * Y).sum(), (0, 1))(X, Y)),
    "vmap of grad of mapped": lambda j, f: j.vmap(j.grad(f.mapped, (0, 1)), (0, None))(X, Y[0]),
    "vmap with sums": lambda j, f: j.vmap(
        lambda x, y: (x * y, [x, y]), (0, None), (None, [0, None]), sum_match=True)(X, 2.0),
    "structured residuals": lambda j, f: j.grad(f.with_more, (0, 1))(0.5, 2.0),
    "a result without derivative": lambda j, f: (
        j.vjp(f.zero_out, 0.5, 2.0)[1]((1.0, [1.0])),
        j.grad(lambda x: f.zero_out(x, 2.0)[1][0])(0.5)),
    "printed": lambda j, f: (str(j.make_jaxpr(f.reverse)(0.5, 2.0)),
                             str(j.make_jaxpr(lambda x: f.scaled(x))(X)).count("scale=2.5")),
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
    """What is missing."""
    def made(j, **members):
        base = hijax_of(j).HiPrim
        kind = type("Made", (base,), members)
        return kind()

    for members in ({}, {"in_avals": ()}, {"in_avals": (), "out_aval": ()}):
        assert_same_error(lambda j, members=members: made(j, **members))


def test_traced_once():
    """A program runs what was traced; outside programs ``expand`` runs each time."""
    def calls(j):
        seen = []

        class Noisy(hijax_of(j).HiPrim):
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

    class Plain(hijax.HiPrim):
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


def test_rules_on_values_may_branch():
    def gradients(j):
        hijax = importlib.import_module(f"{j.__name__}.experimental.hijax")
        jnp = j.numpy

        class Branching(hijax.HiPrim):
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


class Wrong:
    """Functions of a number, by classes whose rules are not right."""

    def __init__(self, j):
        hijax = hijax_of(j)

        def applied(**rules):
            class Wrong(hijax.HiPrim):
                def __init__(self, x):
                    self.in_avals, self.out_aval, self.params = (x,), x, {}
                    super().__init__()

                def expand(self, x):
                    return 2 * x

                def vjp_fwd(self, nonzeros, x):
                    return self(x), None

                def batch(self, axis_data, args, dims):
                    return args[0], 0

                vars().update(rules)

            return lambda x: Wrong(j.typeof(x))(x)

        self.no_tuple = applied(vjp_bwd_retval=lambda self, residuals, ct: ct)
        self.shape = applied(vjp_bwd_retval=lambda self, residuals, ct: (X,))
        self.logs = applied(vjp_bwd=lambda self, residuals, ct, accum: 3)
        self.transposed = applied(transpose=lambda self, ct, accum: 3)
        self.nonzeros = applied(vjp_fwd=lambda self, nonzeros, x: (x, None, 3),
                                vjp_bwd=lambda self, residuals, ct, accum: None)
        self.structured = applied(vjp_fwd=lambda self, nonzeros, x: (x, None, True, x),
                                  vjp_bwd_retval=lambda self, residuals, ct: (ct,))
        self.no_lin = applied(jvp=hijax.jvp_from_lin)
        self.circle = applied(jvp=hijax.jvp_from_lin, lin=hijax.linearize_from_jvp.lin)
        self.checked = applied(check=lambda self, x: 1 / 0)
        self.pair = applied(vjp_fwd=hijax.vjp_from_jvp)
        self.other_pair = applied(lin=hijax.linearize_from_jvp, jvp=hijax.vjp_from_lin)


@pytest.mark.parametrize("name", [
    "no_tuple", "shape", "logs", "nonzeros", "structured", "checked", "pair"])
def test_wrong_rules_of_gradients(name):
    assert_same_error(lambda j: j.grad(getattr(Wrong(j), name))(1.0))


@pytest.mark.parametrize("name", ["no_lin", "circle", "other_pair"])
def test_wrong_rules_of_tangents(name):
    def text(j):
        with pytest.raises((TypeError, NotImplementedError)) as caught:
            j.jvp(getattr(Wrong(j), name), (1.0,), (1.0,))
        return type(caught.value).__name__, str(caught.value)

    agree(text)


def test_a_wrong_rule_of_transposition():
    assert_same_error(lambda j: j.linear_transpose(Wrong(j).transposed, 1.0)(1.0))


def test_accumulators():
    def run(j):
        hijax, seen = hijax_of(j), []
        scalar = j.typeof(1.0)
        for kind in (hijax.ValAccum, hijax.RefAccum):
            total = kind(scalar)
            assert isinstance(total, hijax.GradAccum)
            seen.append(str(total.freeze()))
            total.accum(None)
            total.accum(hijax.Zero(scalar))
            seen.append(str(total.freeze()))
            total.accum(2.0)
            total.accum(np.float32(3))
            seen.append((total.freeze(), str(total.aval)))
        started = hijax.RefAccum(scalar)
        assert started.inst() is started
        started.accum(4.0)
        seen.append(started.ref[...])
        nothing = hijax.NullAccum(scalar)
        seen.append((nothing.accum(1.0), str(nothing), str(hijax.ValAccum(scalar, 1.0)),
                     hijax.ValAccum(scalar, 1.0).val))
        for wrong in (nothing.freeze, hijax.GradAccum().freeze,
                      lambda: hijax.GradAccum().accum(1.0)):
            with pytest.raises(AssertionError):
                wrong()
        return seen

    agree(run, weak=False)
    for kind in ("ValAccum", "RefAccum"):
        def wrong(j, kind=kind):
            total = getattr(hijax_of(j), kind)(j.typeof(1.0))
            total.accum(1.0)
            total.accum(X)

        assert_same_error(wrong)


def test_dead_code():
    """A rule that says what is left where some results are not used."""
    def run(j):
        hijax, seen = hijax_of(j), []

        class Two(hijax.HiPrim):
            def __init__(self, x, y):
                self.in_avals, self.out_aval, self.params = (x, y), {"a": x, "b": y}, {}
                super().__init__()

            def expand(self, x, y):
                return {"a": 2 * x, "b": 3 * y}

            def vjp_fwd(self, nonzeros, x, y):
                return self(x, y), None

            def vjp_bwd_retval(self, residuals, ct):
                return 5 * hijax.instantiate_zeros(ct["a"]), hijax.instantiate_zeros(ct["b"])

            def jvp(self, primals, tangents):
                dx, dy = map(hijax.instantiate_zeros, tangents)
                return self(*primals), {"a": 5 * dx, "b": dy}

            def dce(self, used, live):
                seen.append(used)
                if used == {"a": False, "b": True}:
                    return (False, True), (False, True), One(self.in_avals[1])
                return super().dce(used, live)

        class One(hijax.HiPrim):
            def __init__(self, y):
                self.in_avals, self.out_aval, self.params = (y,), y, {}
                super().__init__()

            def expand(self, y):
                return 30 * y

        def f(x, y):
            return Two(j.typeof(x), j.typeof(y))(x, y)["b"]

        return [j.jit(f)(1.0, 2.0), f(1.0, 2.0), j.grad(f, 1)(1.0, 2.0),
                j.grad(j.checkpoint(f), 1)(1.0, 2.0), j.grad(j.jit(f), 1)(1.0, 2.0),
                j.grad(j.jit(lambda x, y: j.numpy.sin(f(x, y))), 1)(1.0, 2.0),
                j.lax.scan(lambda c, x: (f(c, x), None), 1.0, X)[0],
                {"a": False, "b": True} in seen, {"a": True, "b": True} in seen]

    agree(run)


def _effects_of(j):
    """The base of effects, and what says that programs may have one: JAX's are private."""
    if j is maxjax:
        return j.extend.core.Effect, lambda effect: None
    effects = importlib.import_module("jax._src.effects")
    return effects.Effect, effects.lowerable_effects.add_type


@pytest.mark.parametrize("has_effects", [False, True])
def test_an_application_with_effects_is_kept(has_effects):
    """An application that has effects is not dropped where its result is not used."""
    def run(j):
        hijax, seen = hijax_of(j), []
        base, allow = _effects_of(j)

        class Noise(base):
            def __str__(self):
                return "Noise"

        hijax.control_flow_allowed_effects.add_type(Noise)
        allow(Noise)

        class Noisy(hijax.HiPrim):
            def __init__(self, x):
                self.in_avals, self.out_aval, self.params = (x,), x, {}
                self.effects = frozenset([Noise()] if has_effects else [])
                super().__init__()

            def expand(self, x):
                j.debug.callback(lambda x: seen.append(float(x)), x)
                return x

            def vjp_fwd(self, nonzeros, x):
                return self(x), None

            def vjp_bwd_retval(self, residuals, ct):
                return (ct,)

        def f(x):
            Noisy(j.typeof(x))(x)
            return 2 * x

        results = []
        for program in (j.jit(f), j.grad(j.jit(f)),
                        lambda x: j.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
                        lambda x: j.lax.cond(x > 0, f, lambda x: x, x)):
            seen.clear()
            results.append(program(np.float32(1)))
            j.effects_barrier()
            results.append(list(seen))
        jaxpr = j.make_jaxpr(f)(1.0)
        return results, str(jaxpr), sorted(map(str, jaxpr.effects))

    agree(run)
