"""custom_jvp, custom_vjp, custom_vmap and checkpoint against real JAX: nests of three,
and their errors."""

from __future__ import annotations

import functools
import itertools
import random

import jax
import jax.ad_checkpoint
import jax.custom_batching
import jax.custom_derivatives
import numpy as np
import pytest

import maxjax
import maxjax.ad_checkpoint
import maxjax.custom_batching
import maxjax.custom_derivatives
from maxjax._ir.check import check_jaxpr
from maxjax._transforms.simplify import simplify
from tests.support.against_jax import agree, assert_same_error, assert_tree_same, errors_of

X = np.array([0.3, -0.7, 1.1], np.float32)
DIRECTION = np.array([1.0, 0.5, -2.0], np.float32)

# --- nests ----------------------------------------------------------------------------------------
# Each turns such a function of a vector, for a library, into another. The rules are wrong on
# purpose, by a factor, so that it is visible where one is not used.


def with_vjp(j, f):
    g = j.custom_vjp(f)
    g.defvjp(lambda x: (f(x), (x, j.numpy.cos(x))),
             lambda res, cotangent: (2 * cotangent * res[1],))
    return g


def with_vjp_zeros(j, f):
    zero = j.custom_derivatives.SymbolicZero

    def fwd(x, y):
        return (f(x.value), y.value * 2), (y.value if x.perturbed else 0 * y.value)

    def bwd(res, cotangents):
        first, second = cotangents
        return (None if isinstance(first, zero) else 3 * first * res,
                None if isinstance(second, zero) else 5 * second)

    g = j.custom_vjp(lambda x, y: (f(x), y * 2))
    g.defvjp(fwd, bwd, symbolic_zeros=True)
    return lambda x: g(x, j.numpy.sin(x))[0]


def with_jvp(j, f):
    g = j.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0] * j.numpy.sin(primals[0])))
    return g


def with_gradient(j, f):
    @j.custom_gradient
    def g(x):
        wave = j.numpy.cos(x)
        return f(x), lambda cotangent: cotangent * wave

    return g


def summed_vmap(j, f):
    return lambda x: j.vmap(f)(j.numpy.stack([x, 0.5 * x])).sum(0)


def scanned(j, f):
    def loop(x):
        carry, outs = j.lax.scan(lambda c, w: (f(c) * w, c), x, X)
        return carry + outs[1]

    return loop


WRAPPERS = {
    "custom_vjp": with_vjp,
    "symbolic zeros": with_vjp_zeros,
    "custom_jvp": with_jvp,
    "custom_gradient": with_gradient,
    "checkpoint": lambda j, f: j.checkpoint(f),
    "checkpoint with policy": lambda j, f: j.checkpoint(
        f, policy=lambda primitive, *_, **__: primitive.name in ("sin", "mul")),
    "jit": lambda j, f: j.jit(f),
    "vmap": summed_vmap,
    "scan": scanned,
    "cond": lambda j, f: lambda x: j.lax.cond(x.sum() > 0, f, lambda y: 2 * y, x),
    "loop": lambda j, f: lambda x: j.lax.fori_loop(0, 2, lambda _, c: f(c), x),
    "grad": lambda j, f: lambda x: j.grad(lambda y: (f(y) ** 2).sum())(x),
}
RULES = set(list(WRAPPERS)[:6])
NESTS = [names for names in itertools.permutations(WRAPPERS, 3) if RULES & set(names)]


def nested(j, names):
    def f(x):
        return j.numpy.sin(x) * 0.75 + 0.125 * x * x

    for name in names:
        f = WRAPPERS[name](j, f)
    return f


def reverse(j, names, x):
    value, pullback = j.vjp(nested(j, names), x)
    return value, pullback(DIRECTION)


@functools.cache
def expected(names):
    """JAX's answer, operation by operation: XLA need not compile each nest."""
    with jax.disable_jit():
        return reverse(jax, names, X)


@pytest.mark.parametrize("outer", WRAPPERS)
def test_nested_functions_with_rules(outer):
    rng = random.Random(outer)
    for names in rng.sample([names for names in NESTS if names[-1] == outer], 12):
        for transformed in (
                functools.partial(reverse, maxjax, names),
                maxjax.jit(functools.partial(reverse, maxjax, names)),
                lambda x, names=names: maxjax.tree.map(
                    lambda y: y[1],
                    maxjax.vmap(functools.partial(reverse, maxjax, names))(np.stack([-x, x])))):
            try:
                assert_tree_same(transformed(X), expected(names), "loose", derivative=True)
            except Exception as error:
                raise AssertionError(f"{names}: {error}") from error


FORWARD = ["custom_jvp", "checkpoint", "checkpoint with policy", "jit", "vmap", "scan", "cond"]


@pytest.mark.parametrize("names", [
    names for names in itertools.permutations(FORWARD, 3)
    if sum(map(FORWARD.index, names)) % 5 == 0 and RULES & set(names)], ids=", ".join)
def test_nests_forward(names):
    with jax.disable_jit():
        value, tangent = jax.jvp(nested(jax, names), (X,), (DIRECTION,))
    f = nested(maxjax, names)
    for found in (maxjax.jvp(f, (X,), (DIRECTION,)),
                  maxjax.jit(lambda x, t: maxjax.jvp(f, (x,), (t,)))(X, DIRECTION)):
        assert_tree_same(found, (value, tangent), "loose", derivative=True)
    _, linear = maxjax.linearize(f, X)
    assert_tree_same(linear(DIRECTION), tangent, "loose", derivative=True)
    check_jaxpr(maxjax.make_jaxpr(lambda x, t: maxjax.jvp(f, (x,), (t,)))(X, DIRECTION))


@pytest.mark.parametrize("names", [
    ("checkpoint",), ("custom_vjp", "checkpoint"), ("checkpoint", "scan"), ("scan", "checkpoint"),
    ("checkpoint", "custom_vjp", "jit"), ("vmap", "checkpoint with policy", "scan")],
    ids=", ".join)
def test_well_formed(names):
    closed = maxjax.make_jaxpr(functools.partial(reverse, maxjax, names))(X)
    check_jaxpr(closed)
    check_jaxpr(simplify(closed))


# --- errors ---------------------------------------------------------------------------------------


def vjp_of(j, bwd=lambda res, cotangent: (cotangent,), fwd=lambda x: (x, None), fun=lambda x: x,
           **options):
    f = j.custom_vjp(fun)
    f.defvjp(fwd, bwd, **options)
    return f


def jvp_of(j, rule):
    f = j.custom_jvp(lambda x: (x, x))
    f.defjvp(rule)
    return f


def closed_over(j, x):
    return vjp_of(j, fun=lambda y: x * y, fwd=lambda y: (x * y, None))(2.0)


def mapped(j, rule):
    f = j.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(rule)
    return f


ERRORS = {
    "forward mode": lambda j: j.jvp(vjp_of(j), (1.0,), (1.0,)),
    "forward mode of vmap": lambda j: j.jvp(j.vmap(vjp_of(j)), (X,), (X,)),
    "vmap of forward mode": lambda j: j.vmap(lambda x: j.jvp(vjp_of(j), (x,), (x,)))(X),
    "forward mode under jit": lambda j: j.jit(lambda x: j.jvp(vjp_of(j), (x,), (x,)))(1.0),
    "linearized": lambda j: j.linearize(vjp_of(j), 1.0)[1](1.0),
    "reverse of forward": lambda j: j.grad(lambda x: j.jvp(vjp_of(j), (x,), (1.0,))[1])(1.0),
    "jacfwd": lambda j: j.jacfwd(vjp_of(j))(1.0),
    "no vjp": lambda j: j.custom_vjp(lambda x: x)(1.0),
    "no jvp": lambda j: j.custom_jvp(lambda x: x)(1.0),
    "no tuple": lambda j: j.grad(vjp_of(j, lambda res, cotangent: cotangent))(1.0),
    "too many": lambda j: j.grad(vjp_of(j, lambda res, cotangent: (cotangent, cotangent)))(1.0),
    "other shape": lambda j: j.grad(vjp_of(j, lambda res, cotangent: (j.numpy.ones(2),)))(1.0),
    "text": lambda j: j.grad(vjp_of(j, lambda res, cotangent: ("a",)))(1.0),
    "residual of text": lambda j: j.grad(vjp_of(j, fwd=lambda x: (x, "a")))(1.0),
    "missing key": lambda j: j.grad(vjp_of(
        j, lambda res, cotangent: ({"a": cotangent},), lambda d: (d["a"], None),
        lambda d: d["a"]))({"a": 1.0, "b": 2.0}),
    "forward without pair": lambda j: j.grad(vjp_of(j, fwd=lambda x: x))(1.0),
    "forward of another tree": lambda j: j.grad(
        j.jit(vjp_of(j, fwd=lambda x: ((x, x), None))))(1.0),
    "forward of another shape": lambda j: j.grad(lambda x: j.jit(
        vjp_of(j, fwd=lambda x: (j.numpy.ones(2), None)))(x).sum())(1.0),
    "zeros and remat": lambda j: vjp_of(j, symbolic_zeros=True, optimize_remat=True),
    "closed over, staged": lambda j: j.grad(j.jit(functools.partial(closed_over, j)))(1.0),
    "unknown keyword": lambda j: vjp_of(j)(1.0, z=1),
    "keyword only": lambda j: vjp_of(j, fun=lambda x, *, y: x)(1.0, y=2.0),
    "primals only": lambda j: j.jvp(jvp_of(j, lambda p, t: p[0]), (1.0,), (1.0,)),
    "other tangent tree": lambda j: j.jvp(
        jvp_of(j, lambda p, t: ((p[0], p[0]), t[0])), (1.0,), (1.0,)),
    "other tangent shapes": lambda j: j.jvp(
        jvp_of(j, lambda p, t: ((p[0], p[0]), (t[0], j.numpy.ones(2)))), (1.0,), (1.0,)),
    "rule of another tree": lambda j: j.jvp(
        j.jit(jvp_of(j, lambda p, t: (p[0], t[0]))), (1.0,), (1.0,)),
    "jvps and fixed arguments": lambda j: j.custom_jvp(
        lambda x: x, nondiff_argnames=["x"]).defjvps(None),
    "number of a fixed argument": lambda j: j.custom_jvp(lambda x, y: x, nondiff_argnums=1),
    "static list": lambda j: j.checkpoint(lambda x: x, static_argnums=[0])(1.0),
    "static out of range": lambda j: j.checkpoint(lambda x: x, static_argnums=3)(1.0),
    "concrete": lambda j: j.checkpoint(lambda x: x, concrete=True),
    "prevent_cse": lambda j: j.checkpoint(lambda x: x, prevent_cse=3),
    "checkpoint of text": lambda j: j.checkpoint(lambda x: x)("a"),
    "policy of a number": lambda j: j.grad(
        j.checkpoint(lambda x: j.numpy.sin(x), policy=lambda *_, **__: 3))(1.0),
    "both names": lambda j: j.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"], offload_src="device",
        offload_dst="pinned_host"),
    "both policies": lambda j: j.checkpoint_policies.save_from_both_policies(
        lambda *_, **__: 1, lambda *_, **__: True)(None),
    "no vmap rule": lambda j: j.custom_batching.custom_vmap(lambda x: x)(1.0),
    "vmap rule's flags": lambda j: j.vmap(mapped(j, lambda n, b, x: (x, (True, True))))(X),
    "vmap rule's result": lambda j: j.vmap(
        mapped(j, lambda n, b, x: ((x, x), (True, True))))(X),
    "reverse mode of custom_vmap": lambda j: j.grad(
        mapped(j, lambda n, b, x: (x, True)))(1.0),
    "linear_call mapped": lambda j: j.vmap(lambda x: j.custom_derivatives.linear_call(
        lambda r, x: x / r, lambda r, x: x / r, 2.0, x))(X),
    "linear_call's tree": lambda j: j.grad(lambda x: j.custom_derivatives.linear_call(
        lambda r, x: x / r, lambda r, x: (x, x), 2.0, x))(1.0),
    "values of no primals": lambda j: j.custom_derivatives.custom_vjp_primal_tree_values((1, 2)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(name):
    mine, theirs = errors_of(ERRORS[name])
    assert type(mine).__name__ == type(theirs).__name__
    assert str(mine).split("\n")[0] == str(theirs).split("\n")[0]


def test_fixed_tracers():
    def call(j):
        f = j.custom_vjp(lambda n, x: n * x, nondiff_argnums=(0,))
        f.defvjp(lambda n, x: (n * x, None), lambda n, res, cotangent: (cotangent,))
        return j.jit(lambda y: f(y, 1.0))(2.0)

    assert_same_error(*errors_of(call))


def test_unknown_branch_names_static_argnums():
    with pytest.raises(maxjax.errors.TracerBoolConversionError) as caught:
        maxjax.checkpoint(lambda x, n: x if n else -x)(1.0, True)
    assert "static_argnums" in str(caught.value)


# --- arguments, trees, dtypes ---------------------------------------------------------------------

CALLS = {
    "defaults": lambda j: j.grad(vjp_of(
        j, lambda res, cotangent: (cotangent * res, None), lambda x, y: (x * y, y),
        lambda x, y=2.0: x * y))(3.0),
    "keywords": lambda j: j.grad(lambda x: vjp_of(
        j, lambda res, cotangent: (cotangent, 5 * cotangent), lambda x, y: (x * y, y),
        lambda x, y: x * y)(x, y=x))(3.0),
    "list of cotangents": lambda j: j.grad(vjp_of(j, lambda res, cotangent: [3 * cotangent]))(1.0),
    "none": lambda j: j.grad(vjp_of(j, lambda res, cotangent: (None,)))(1.0),
    "prefix": lambda j: j.grad(vjp_of(
        j, lambda res, cotangent: (cotangent,), lambda d: (d["a"] + d["b"], None),
        lambda d: d["a"] + d["b"]))({"a": 1.0, "b": 2.0}),
    "none within": lambda j: j.grad(vjp_of(
        j, lambda res, cotangent: ({"a": cotangent, "b": None},), lambda d: (d["a"] + d["b"], None),
        lambda d: d["a"] + d["b"]))({"a": 1.0, "b": (2.0, 3.0)[0]}),
    "integer argument": lambda j: j.grad(vjp_of(
        j, lambda n, cotangent: (cotangent, cotangent * n), lambda n, x: (n * x, n),
        lambda n, x: n * x), (0, 1),
        allow_int=True)(2, 3.0),
    "integer result": lambda j: j.grad(lambda x: vjp_of(
        j, lambda res, cotangents: (cotangents[0] * 2,), lambda x: ((x, j.numpy.int32(3)), None),
        lambda x: (x, j.numpy.int32(3)))(x)[0])(1.0),
    "tree of residuals": lambda j: j.vjp(vjp_of(
        j, lambda res, cotangent: (res["a"][0] * cotangent["y"] + res["b"] * cotangent["z"],),
        lambda x: ({"y": 2 * x, "z": x}, {"a": (x, 3), "b": 2.0}),
        lambda x: {"y": 2 * x, "z": x}), j.numpy.asarray(X))[1]({"y": X, "z": X}),
    "fixed function": lambda j: j.grad(lambda x: _fixed(j)(j.numpy.sin, x, 3))(0.5),
    "fixed function under jit": lambda j: j.jit(j.grad(
        lambda x: _fixed(j)(j.numpy.sin, x, 3)))(0.5),
    "unmapped argument": lambda j: j.vmap(j.grad(lambda x, y: vjp_of(
        j, lambda res, cotangent: (cotangent * res[1], cotangent * res[0]),
        lambda x, y: (x * y, (x, y)),
        lambda x, y: x * y)(x, y), (0, 1)), (0, None))(X, X[0]),
    "cotangent summed over the map": lambda j: j.grad(lambda y: j.vmap(lambda x: vjp_of(
        j, lambda res, cotangent: (cotangent * res[1], cotangent * res[0]),
        lambda x, y: (x * y, (x, y)),
        lambda x, y: x * y)(x, y))(X).sum())(X[0]),
    "second derivative": lambda j: j.grad(j.grad(vjp_of(
        j, lambda x, cotangent: (cotangent * j.numpy.cos(x) * 2,), lambda x: (j.numpy.sin(x), x),
        lambda x: j.numpy.sin(x))))(0.5),
    "second derivative staged": lambda j: j.grad(j.jit(j.grad(j.jit(vjp_of(
        j, lambda x, cotangent: (cotangent * j.numpy.cos(x) * 2,), lambda x: (j.numpy.sin(x), x),
        lambda x: j.numpy.sin(x))))))(0.5),
    "unused tangent": lambda j: j.jit(
        lambda x: j.jvp(vjp_of(j), (x,), (1.0,))[0])(1.0),
    "remat of a custom forward": lambda j: j.grad(j.checkpoint(vjp_of(
        j, lambda x, cotangent: (cotangent * x,), lambda x: (x * 2, x), optimize_remat=True,
        fun=lambda x: x * 2)))(3.0),
    "static argument": lambda j: j.grad(j.checkpoint(
        lambda x, n: x ** n if n > 2 else x, static_argnums=(1,)))(2.0, 3),
    "static argument from the end": lambda j: j.remat(
        lambda x, n: x if n else -x, static_argnums=-1)(1.0, [True]),
    "keyword of checkpoint": lambda j: j.grad(
        lambda x: j.checkpoint(lambda x, *, y: x * y["a"])(x, y={"a": x}))(3.0),
    "closed-over value": lambda j: j.grad(
        lambda x: j.checkpoint(lambda y: j.numpy.sin(x * y))(2.0))(0.5),
    "third derivative of checkpoint": lambda j: j.grad(j.grad(j.grad(
        j.checkpoint(lambda x: j.numpy.sin(j.numpy.sin(x))))))(0.5),
    "tuple of prevent_cse": lambda j: j.jit(j.grad(j.checkpoint(
        lambda x, y: j.numpy.sin(x * y), prevent_cse=(True, False))))(0.5, 2.0),
    "named": lambda j: j.vmap(j.grad(j.checkpoint(
        lambda x: j.numpy.cos(j.ad_checkpoint.checkpoint_name(j.numpy.sin(x), "s")),
        policy=j.checkpoint_policies.save_only_these_names("s"))))(X),
    "convert a closure": lambda j: j.grad(lambda x: _converted(j, x))(X[1]),
    "linear call": lambda j: j.vjp(lambda x: j.custom_derivatives.linear_call(
        lambda r, x: {"y": x / r}, lambda r, cotangent: 7 * cotangent["y"] / r, 2.0, x), 3.0)[1](
            {"y": 1.0}),
    "linear call, transposed twice": lambda j: j.linear_transpose(
        lambda y: j.linear_transpose(lambda x: j.custom_derivatives.linear_call(
            lambda r, x: 3 * x / r, lambda r, cotangent: 7 * cotangent / r, 2.0, x),
            1.0)(y)[0], 1.0)(1.0),
    "mapped by a rule": lambda j: j.vmap(mapped(j, lambda n, b, x: (x * n, True)))(X),
    "rule not called": lambda j: j.vmap(
        lambda x: x + mapped(j, lambda n, b, x: (x * n, True))(2.0))(X),
    "derivative of a mapped rule": lambda j: j.jvp(
        j.vmap(mapped(j, lambda n, b, x: (j.numpy.sin(x) * n, True))), (X,), (X,)),
    "map of a derivative": lambda j: j.vmap(lambda x, t: j.jvp(
        mapped(j, lambda n, b, x: (j.numpy.sin(x) * n, True)), (x,), (t,)))(X, X),
    "map of a tangent": lambda j: j.vmap(lambda t: j.jvp(
        mapped(j, lambda n, b, x: (j.numpy.sin(x) * n, b[0])), (X[0],), (t,)))(X),
    "map of a primal": lambda j: j.vmap(lambda x: j.jvp(
        mapped(j, lambda n, b, x: (j.numpy.sin(x) * n, b[0])), (x,), (1.0,)))(X),
    "map of a map by a rule": lambda j: j.vmap(j.vmap(
        mapped(j, lambda n, b, x: (x * n, True))))(np.stack([X, X])),
    "rule under jit and scan": lambda j: j.vmap(j.jit(lambda x: j.lax.scan(
        lambda c, _: (mapped(j, lambda n, b, x: (x * n, True))(c), None), x, None,
        length=2)[0]))(X),
    "vjp around a rule": lambda j: j.vmap(vjp_of(
        j, fun=mapped(j, lambda n, b, x: (x * n, True))))(X),
    "sequential": lambda j: j.vmap(j.custom_batching.sequential_vmap(
        lambda x, y: {"a": x * y["b"]}), (0, None))(X, {"b": 2.0}),
    "symbolic zeros of custom_jvp": lambda j: j.jvp(
        lambda x: _known_zero(j)(x, 3.0), (2.0,), (1.0,)),
    "jvps": lambda j: j.grad(_jvps(j), (0, 1))(2.0, 3.0),
    "zeros": lambda j: j.custom_derivatives.zero_from_primal((X, {"a": X[:2]})),
}


def _fixed(j):
    f = j.custom_vjp(lambda f, x, n: f(x) * n, nondiff_argnums=(0,), nondiff_argnames=("n",))
    f.defvjp(lambda f, x, n: (f(x) * n, x), lambda f, n, x, cotangent: (cotangent * f(x) * n,))
    return f


def _converted(j, x):
    function, values = j.closure_convert(lambda y: x * y + X[0], 1.0)
    assert len(values) == 1
    f = vjp_of(j, lambda res, cotangent: (None, 7 * cotangent), lambda y, v: (function(y, v), None),
               lambda y, v: function(y, v))
    return f(2.0, *values)


def _known_zero(j):
    f = j.custom_jvp(lambda x, y: x * y)
    zero = j.custom_derivatives.SymbolicZero
    f.defjvp(lambda p, t: (p[0] * p[1], t[0] if type(t[1]) is zero else t[0] * 2),
             symbolic_zeros=True)
    return f


def _jvps(j):
    f = j.custom_jvp(lambda x, y: x * y)
    f.defjvps(None, lambda t, out, x, y: t * out)
    return f


@pytest.mark.parametrize("name", CALLS)
def test_calls_agree_with_jax(name):
    agree(CALLS[name])


def test_a_method_has_a_rule_of_its_own():
    class Scale:
        @functools.partial(maxjax.custom_vjp, nondiff_argnums=(0,))
        def apply(self, x):
            return 2 * x

        apply.defvjp(lambda self, x: (2 * x, None), lambda self, res, cotangent: (7 * cotangent,))

    assert float(maxjax.grad(Scale().apply)(1.0)) == 7



# --- rules whose cotangents do not depend on those they get ---------------------------------------
# ``adds`` gives 7, whatever it gets; ``drops`` says that its second operand's cotangent is zero.

def adds_of(j):
    return vjp_of(j, lambda res, cotangent: (j.numpy.full(cotangent.shape, 7, "float32"),),
                  lambda x: (3 * x, None), lambda x: 3 * x)


def drops_of(j):
    return vjp_of(j, lambda res, cotangent: (cotangent, None), lambda x, y: (1 * x, None),
                  lambda x, y: 1 * x)


ZERO_COTANGENTS = {
    "zero": lambda j, adds, drops, x: drops(x, adds(x)),
    "through operations": lambda j, adds, drops, x: drops(x, (adds(x) + 1) * j.numpy.sin(adds(x))),
    "twice": lambda j, adds, drops, x: drops(x, drops(adds(x), adds(x))),
    "inside jit": lambda j, adds, drops, x: j.jit(lambda x: drops(x, adds(x)))(x),
    "into jit": lambda j, adds, drops, x: j.jit(lambda a, x: drops(x, a))(adds(x), x),
    "from jit": lambda j, adds, drops, x: drops(*j.jit(lambda x: (2 * x, adds(x)))(x)),
    "from jit, nothing else": lambda j, adds, drops, x: drops(x, j.jit(adds)(x)),
    "through jit": lambda j, adds, drops, x: drops(x, j.jit(lambda a: 2 * a)(adds(x))),
    "not used": lambda j, adds, drops, x: j.jit(lambda x: (2 * x, adds(x)))(x)[0],
    "not used by jit": lambda j, adds, drops, x: j.jit(lambda a, x: 2 * x)(adds(x), x),
    "checkpoint": lambda j, adds, drops, x: j.checkpoint(lambda a, x: drops(x, a))(adds(x), x),
    "cond": lambda j, adds, drops, x: j.lax.cond(
        x > 0, lambda a, x: drops(x, a), lambda a, x: drops(2 * x, a), adds(x), x),
    "cond, not used": lambda j, adds, drops, x: j.lax.cond(
        x > 0, lambda a, x: x, lambda a, x: 2 * x, adds(x), x),
    "scan": lambda j, adds, drops, x: j.lax.scan(
        lambda c, _: (drops(c, adds(x)), None), x, None, length=2)[0],
    "scan, carried": lambda j, adds, drops, x: j.lax.scan(
        lambda c, _: (drops(c, adds(c)), None), x, None, length=2)[0],
    "scan, of elements": lambda j, adds, drops, x: j.lax.scan(
        lambda c, y: (drops(c, y), None), x, adds(j.numpy.stack([x, x])))[0],
    "vmap": lambda j, adds, drops, x: j.vmap(lambda x: drops(x, adds(x)))(x[None]).sum(),
    "stopped": lambda j, adds, drops, x: drops(x, j.lax.stop_gradient(adds(x))),
    "no direction": lambda j, adds, drops, x: drops(x, j.numpy.round(adds(x))),
    "integers": lambda j, adds, drops, x: drops(x, adds(x).astype(int)),
}


@pytest.mark.parametrize("name", ZERO_COTANGENTS)
def test_zero_cotangents_reach_rules(name):
    def run(j):
        adds, drops = adds_of(j), drops_of(j)

        def function(x):
            return ZERO_COTANGENTS[name](j, adds, drops, x)

        x = j.numpy.float32(2)
        return j.grad(function)(x), j.jit(j.grad(function))(x), j.grad(j.jit(function))(x)

    agree(run)


def test_zero_cotangents_that_rules_ask_for():
    def run(j):
        got = []

        def bwd(res, cotangent):
            got.append(type(cotangent).__name__)
            return cotangent,

        rule = vjp_of(j, bwd, lambda x: (x.value, None), symbolic_zeros=True)
        j.grad(lambda x: drops_of(j)(x, rule(x)))(2.0)
        return got

    assert run(maxjax) == run(jax) == ["SymbolicZero"]


# --- linear_transpose -----------------------------------------------------------------------------


def transposes(j, f):
    """Linear functions of y that apply ``f`` to the value x that they close over."""
    def looped(x, y):
        return j.lax.scan(lambda c, _: (c * f(x), None), y, length=2)[0]

    return {
        "plain": lambda x, y: y * f(x),
        "jit": lambda x, y: j.jit(lambda y: y * f(x))(y),
        "jit of f": lambda x, y: y * j.jit(f)(x),
        "of both": lambda x, y: j.jit(lambda x, y: y * f(x))(x, y),
        "scan": looped,
        "cond": lambda x, y: j.lax.cond(x.sum() > 0, lambda y: y * f(x), lambda y: y, y),
        "checkpoint": lambda x, y: j.checkpoint(lambda y: y * f(x))(y),
        "linear rule": lambda x, y: tripled(j)(y) * f(x),
    }


def tripled(j):
    g = j.custom_jvp(lambda y: 3 * y)
    g.defjvp(lambda primals, tangents: (g(*primals), 3 * tangents[0]))
    return g


@pytest.mark.parametrize("rule", [with_jvp, with_vjp], ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", transposes(None, None))
def test_linear_transpose_keeps_rules_of_what_is_closed_over(rule, name):
    def derivative(j):
        linear = transposes(j, rule(j, j.numpy.sin))[name]
        return j.grad(lambda x: j.linear_transpose(lambda y: linear(x, y), x)(x)[0].sum())(X)

    agree(derivative)


def rounded(j):
    """Functions without derivatives, by calls, loops and branches."""
    jnp, mesh = j.numpy, j.make_mesh((1,), ("i",), (j.sharding.AxisType.Auto,))
    return {
        "jit": j.jit(jnp.round),
        "checkpoint": j.checkpoint(jnp.round),
        "scan": lambda x: j.lax.scan(lambda c, w: (c + w, jnp.round(x * c)), 0.5, X)[1][1],
        "constants": lambda x: j.lax.scan(
            lambda c, _: (c + jnp.round(x), None), jnp.zeros(3), length=2)[0],
        "map": lambda x: j.lax.map(jnp.round, x),
        "cond": lambda x: j.lax.cond(x[0] > 0, jnp.round, jnp.floor, x),
        "shard_map": j.shard_map(jnp.round, mesh=mesh, in_specs=j.P(), out_specs=j.P()),
    }


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", rounded(maxjax))
def test_tangents_that_no_result_needs(name, compiled):
    """A rule's tangents are unknown while a function is linearized, the results known."""
    def derivative(j):
        def f(x):
            return x * 2 + rounded(j)[name](x * 3)

        g = j.custom_jvp(f)
        g.defjvp(lambda primals, tangents: (f(*primals), 5 * j.jvp(f, primals, tangents)[1]))
        grad = j.grad(lambda x: g(x).sum())
        return (j.jit(grad) if compiled else grad)(X), j.vmap(grad)(np.stack([X, -X]))

    agree(derivative)


# --- the primitive, bound again -------------------------------------------------------------------


def test_bind_params():
    """A custom_jvp call of a jaxpr, by its function and its rule."""
    def bound(j, x):
        def call(x):
            doubled = with_jvp(j, lambda y: j.numpy.sin(y) * np.float32(2))
            eqn = j.make_jaxpr(j.jit(doubled))(x).jaxpr
            eqn = eqn.eqns[0].params["jaxpr"].jaxpr.eqns[0]
            params = eqn.primitive.get_bind_params(eqn.params)
            assert sorted(params) == ["subfuns", "symbolic_zeros"]
            function, rule = params["subfuns"]
            return (function.call_wrapped(x)[0], rule.call_wrapped(x, 2 * x),
                    eqn.primitive.bind(x, **params)[0])

        return (call(x), j.grad(lambda x: call(x)[2].sum())(x),
                j.jit(j.vmap(j.grad(lambda x: call(x)[2].sum())))(np.stack([x, 2 * x])))

    agree(bound, X, kind="loose")
