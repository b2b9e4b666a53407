"""Custom primitives and user-built jaxprs: the same code on maxjax and on JAX."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.extend.core.primitives
import numpy as np
import pytest

import maxjax
import maxjax.extend
import maxjax.interpreters
from maxjax import lax
from maxjax._base import config
from maxjax._ir.check import check_jaxpr
from maxjax._ir.jaxpr import every_equation
from maxjax._max.mojo.backend import MojoBackend
from maxjax._runtime.program import program_of
from maxjax._sharding.projection import rule_of
from maxjax.test_util import check_grads
from tests import ROOT
from tests.support.against_jax import agree, assert_same_error

sys.path.insert(0, str(ROOT / "examples"))

import custom_op

X = np.array([0.3, -0.7, 1.1], np.float32)
Y = np.array([1.0, 0.5, -2.0], np.float32)


def modules(j):
    name = j.__name__
    return SimpleNamespace(**{key: importlib.import_module(f"{name}.{path}") for key, path in {
        "core": "extend.core", "ad": "interpreters.ad", "batching": "interpreters.batching",
        "mlir": "interpreters.mlir", "primitives": "extend.core.primitives"}.items()})


def lowered(j, primitive, function, multiple_results=False):
    mlir = modules(j).mlir
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=multiple_results))


def multiply_add(j):
    """x * y + z, as in JAX's tutorial."""
    m = modules(j)
    p = m.core.Primitive("multiply_add")
    p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    p.def_abstract_eval(lambda x, y, z: j.core.ShapedArray(x.shape, x.dtype))
    lowered(j, p, lambda x, y, z: x * y + z)

    def jvp(primals, tangents):
        x, y, z = primals
        xt, yt, zt = tangents
        zeros = m.ad.zeros_like_aval

        def whole(t, like):
            return zeros(j.typeof(like)) if type(t) is m.ad.Zero else t

        return p.bind(x, y, z), p.bind(whole(xt, x), y, p.bind(x, whole(yt, y), whole(zt, z)))

    def transpose(cotangent, x, y, z):
        def product(linear, other):
            if not m.ad.is_undefined_primal(linear):
                return None
            return p.bind(other, cotangent, zeros(j.typeof(other)))

        zeros = m.ad.zeros_like_aval
        return product(x, y), product(y, x), cotangent if m.ad.is_undefined_primal(z) else None

    def batch(args, axes):
        size, = {x.shape[axis] for x, axis in zip(args, axes) if axis is not None}
        return p.bind(*[m.batching.bdim_at_front(x, axis, size)
                        for x, axis in zip(args, axes)]), 0

    m.ad.primitive_jvps[p] = jvp
    m.ad.primitive_transposes[p] = transpose
    m.batching.primitive_batchers[p] = batch
    return lambda x, y: p.bind(x, y, x)


def scaled(j):
    """Linear, with a parameter."""
    m = modules(j)
    p = m.core.Primitive("scaled")
    p.def_impl(lambda x, *, by: x * np.asarray(by, x.dtype))
    p.def_abstract_eval(lambda x, *, by: j.core.ShapedArray(x.shape, x.dtype))
    lowered(j, p, lambda x, *, by: x * by)
    m.ad.deflinear2(p, lambda cotangent, x, *, by: [p.bind(cotangent, by=by)])
    m.batching.defvectorized(p)
    return lambda x, y: p.bind(x, by=2.5) * p.bind(y, by=-1.0)


def both_waves(j):
    """Two results, one derivative of each operand."""
    m = modules(j)
    p = m.core.Primitive("both_waves")
    p.multiple_results = True
    p.def_impl(lambda x, y: [np.sin(x), np.cos(x) * y])
    p.def_abstract_eval(lambda x, y: [j.core.ShapedArray(x.shape, x.dtype)] * 2)
    lowered(j, p, lambda x, y: (j.numpy.sin(x), j.numpy.cos(x) * y), True)

    def jvp(primals, tangents):
        x, y = primals
        xt = m.ad.instantiate_zeros(tangents[0])
        yt = m.ad.instantiate_zeros(tangents[1])
        sin, cos = p.bind(x, y)
        return [sin, cos], [xt * j.numpy.cos(x), yt * j.numpy.cos(x) - sin * y * xt]

    m.ad.primitive_jvps[p] = jvp
    m.batching.primitive_batchers[p] = lambda args, axes: (
        p.bind(*[m.batching.bdim_at_front(x, axis, 2) for x, axis in zip(args, axes)]), [0, 0])
    return lambda x, y: sum(p.bind(x, y))


def methods(j):
    """Rules that are methods of a class of the user's, as in KFAC-JAX."""
    m = modules(j)

    class Pair(m.core.Primitive):
        multiple_results = True

        def __init__(self):
            super().__init__("pair")
            m.mlir.register_lowering(self, m.mlir.lower_fun(self.impl, multiple_results=True))
            m.ad.primitive_jvps[self] = self._jvp
            m.batching.primitive_batchers[self] = lambda args, axes: (self.bind(*args), axes)

        def impl(self, x, y):
            return [x * 2, y]

        def abstract_eval(self, x, y):
            return [x, y], m.core.no_effects

        def _jvp(self, primals, tangents):
            return self.bind(*primals), [m.ad.instantiate_zeros(t) * 2 if n == 0 else
                                         m.ad.instantiate_zeros(t)
                                         for n, t in enumerate(tangents)]

    pair_p = Pair()
    return lambda x, y: sum(pair_p.bind(x, y))


def test_rules_for_derivatives_get_numbers_as_they_were_given():
    def run(j):
        seen = []
        p = modules(j).core.Primitive("numbers")
        p.def_impl(lambda x, y: x * y)
        p.def_abstract_eval(lambda x, y: j.core.ShapedArray(x.shape, x.dtype))

        def jvp(primals, tangents):
            seen.append([isinstance(x, float) for x in (*primals, *tangents)])
            return primals[0], tangents[0]

        modules(j).ad.primitive_jvps[p] = jvp
        one = j.numpy.float32(1)
        found = [j.jvp(p.bind, (2., one), (3., one)),
                 j.jvp(lambda x, y: p.bind(p.bind(x, y), y), (2., one), (3., one)),
                 j.grad(p.bind)(2., one), j.jvp(j.jit(p.bind), (2., one), (3., one)),
                 j.vmap(lambda x: j.jvp(lambda y: p.bind(y, x), (2.,), (3.,)))(j.numpy.ones(2))]
        return seen, str([j.typeof(x) for x in j.tree.leaves(found)]), str(found)

    assert run(maxjax) == run(jax)


def test_rules_of_types_and_effects():
    outcomes = []
    for j in (jax, maxjax):
        p = modules(j).core.Primitive("with_effects")
        rule = lambda x: (x, set())
        assert p.def_effectful_abstract_eval(rule) is rule
        outcomes.append(str(j.make_jaxpr(p.bind)(1.0)))
    assert outcomes[0] == outcomes[1]


def bilinear(j):
    m = modules(j)
    p = m.core.Primitive("times")
    p.def_impl(np.multiply)
    p.def_abstract_eval(lambda x, y: j.core.ShapedArray(x.shape, x.dtype))
    lowered(j, p, lambda x, y: x * y)
    m.ad.defbilinear(p, lambda cotangent, x, y: p.bind(cotangent, y),
                    lambda cotangent, x, y: p.bind(x, cotangent))
    m.batching.primitive_batchers[p] = lambda args, axes: (
        p.bind(*[m.batching.bdim_at_front(x, axis, 2) for x, axis in zip(args, axes)]), 0)
    return lambda x, y: p.bind(p.bind(x, y), x)


def with_answer(j):
    m = modules(j)
    p = m.core.Primitive("own_exp")
    p.def_impl(np.exp)
    p.def_abstract_eval(lambda x: j.core.ShapedArray(x.shape, x.dtype))
    lowered(j, p, j.numpy.exp)
    m.ad.defjvp2(p, lambda t, answer, x: t * answer)
    m.batching.defvectorized(p)
    return lambda x, y: p.bind(x) * y


def with_parameters(j):
    """Its parameters have the names of what the rules themselves are given."""
    m = modules(j)
    p = m.core.Primitive("with_parameters")
    names = ("axes", "in_avals", "operands", "out_avals", "size")
    p.def_impl(lambda x, **params: x * np.float32(params["size"]))
    p.def_abstract_eval(lambda x, **params: j.core.ShapedArray(x.shape, x.dtype))
    lowered(j, p, lambda x, **params: x * params["size"])
    m.ad.deflinear2(p, lambda given, x, **params: [p.bind(given, **params)])
    m.batching.primitive_batchers[p] = lambda args, dims, **params: (
        p.bind(*args, **params), *dims)
    return lambda x, y: p.bind(x, **dict.fromkeys(names, 3)) * y


MODES = {
    "value": lambda j, f: f(X, Y),
    "jit": lambda j, f: j.jit(f)(X, Y),
    "jvp": lambda j, f: j.jvp(f, (X, Y), (Y, X)),
    "half a jvp": lambda j, f: j.jvp(lambda x: f(x, Y), (X,), (Y,)),
    "gradient": lambda j, f: j.grad(lambda x, y: (f(x, y) ** 2).sum(), (0, 1))(X, Y),
    "gradient of one": lambda j, f: j.grad(lambda y: (f(X, y) ** 2).sum())(Y),
    "vmap": lambda j, f: j.vmap(f)(np.stack([X, Y]), np.stack([Y, X])),
    "jit of vmap of grad": lambda j, f: j.jit(j.vmap(j.grad(lambda x, y: f(x, y).sum())))(
        np.stack([X, Y]), np.stack([Y, X])),
    "scan": lambda j, f: j.lax.scan(lambda c, y: (f(c, y), c), X, np.stack([Y, X])),
    "jaxpr": lambda j, f: str(j.make_jaxpr(f)(X, Y)).count("["),
}


@pytest.mark.parametrize("definition", [
    multiply_add, scaled, both_waves, methods, bilinear, with_answer, with_parameters],
    ids=lambda f: f.__name__)
def test_primitive(definition):
    for run in MODES.values():
        agree(lambda j, run=run: run(j, definition(j)), weak=False)
    gradient = maxjax.make_jaxpr(maxjax.grad(lambda x: definition(maxjax)(x, Y).sum()))(X)
    check_jaxpr(gradient)
    for eqn in every_equation(gradient):
        assert len(rule_of(eqn).operands) == len(eqn.invars)


def primitive_of(j, *rules):
    p = modules(j).core.Primitive("partial")
    if "impl" in rules:
        p.def_impl(lambda x: x * 2)
    if "abstract" in rules:
        p.def_abstract_eval(lambda x: j.core.ShapedArray(x.shape, x.dtype))
    if "lowering" in rules:
        lowered(j, p, lambda x: x * 2)
    return p.bind


ERRORS = {
    "no impl": lambda j: primitive_of(j)(1.0),
    "no abstract eval": lambda j: j.jit(primitive_of(j, "impl"))(1.0),
    "no derivative": lambda j: j.grad(primitive_of(j, "impl", "abstract"))(1.0),
    "no batching": lambda j: j.vmap(primitive_of(j, "impl", "abstract"))(X),
    "text": lambda j: primitive_of(j, "impl", "abstract")("text"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(name):
    assert_same_error(ERRORS[name])


def test_without_abstract_eval():
    agree(lambda j: primitive_of(j, "impl")(X), weak=False)


@pytest.mark.parametrize("impl, text", [
    (lambda x: x[:1], r"shape \(1,\)"), (lambda x: x.astype(np.int32), "dtype int32")])
def test_impl_and_abstract_eval_differ(impl, text):
    p = maxjax.extend.core.Primitive("wrong")
    p.def_impl(impl)
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(TypeError, match=text):
        np.asarray(maxjax.jit(p.bind)(X))
    np.testing.assert_array_equal(p.bind(X), impl(X))       # nobody asks for types


def test_impl_runs_at_once():
    def asked(j, seen):
        p = j.extend.core.Primitive("asked")
        p.def_impl(lambda x: (seen.append("impl"), x + x)[1])
        p.def_abstract_eval(lambda x: (seen.append("types"), x)[1])
        modules(j).ad.primitive_jvps[p] = lambda primals, tangents: (
            p.bind(*primals), p.bind(*tangents))
        p.bind(X)
        p.bind(X)
        j.jvp(p.bind, (X,), (X,))
        return seen

    assert asked(maxjax, []) == asked(jax, []) == ["impl"] * 4


def test_operands_to_transpose_say_their_types():
    def shown(j, seen):
        p = j.extend.core.Primitive("shown")
        p.def_impl(lambda x, y: x * y)
        p.def_abstract_eval(lambda x, y: x)
        modules(j).ad.primitive_jvps[p] = lambda primals, tangents: (
            p.bind(*primals), (seen.append(str(tangents[0])), p.bind(tangents[0], primals[1]))[1])
        modules(j).ad.primitive_transposes[p] = lambda ct, x, y: (
            seen.append(str(x)), (p.bind(ct, y), None))[1]
        j.grad(lambda x: p.bind(x, 3.))(2.)
        j.grad(lambda x: p.bind(x, X[0]))(X[1])
        return seen

    assert shown(maxjax, []) == shown(jax, [])


def test_rules_may_change():
    p = maxjax.extend.core.Primitive("changing")
    p.def_abstract_eval(lambda x: x)
    for factor in (2, 3):
        p.def_impl(lambda x, factor=factor: factor * x)
        np.testing.assert_array_equal(p.bind(X), factor * X)


@pytest.mark.parametrize("name", ["sin", "dot_general", "a b", "def"])
def test_a_primitive_may_have_any_name(name):
    p = maxjax.extend.core.Primitive(name)
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: 3 * x)
    np.testing.assert_array_equal(p.bind(X), 3 * X)
    np.testing.assert_array_equal(maxjax.jit(lambda x: maxjax.numpy.sin(p.bind(x)))(X),
                                  np.sin(3 * X))


@pytest.mark.parametrize("name", ["scan", "while", "cond", "jit", "remat2"])
def test_names_of_programs_are_taken(name):
    with pytest.raises(ValueError, match="choose another name"):
        maxjax.extend.core.Primitive(name)


def test_parameters_keep_the_sign_of_zero():
    p = maxjax.extend.core.Primitive("copysign")
    p.def_abstract_eval(lambda x, *, sign: x)
    p.def_impl(lambda x, *, sign: np.copysign(x, np.float32(sign)))
    assert [float(p.bind(1.0, sign=sign)) for sign in (0.0, -0.0)] == [1.0, -1.0]


def test_rules_that_are_refused():
    p = maxjax.extend.core.Primitive("mlir")
    maxjax.interpreters.mlir.register_lowering(p, lambda ctx, x: [x])
    with pytest.raises(NotImplementedError, match="maxjax.extend.mojo.register_elementwise"):
        p.bind(X)
    with pytest.raises(TypeError, match="maxjax.extend.core.Primitive"):
        maxjax.interpreters.ad.primitive_jvps[maxjax.lax.sin_p] = lambda *_: None
    with pytest.raises(ValueError, match="defines no function"):
        maxjax.extend.mojo.register_elementwise(p, "def f(x: Int): pass")


def test_rules_of_own_primitives():
    def tangent(j):
        m = modules(j)
        return m.ad.primitive_jvps[m.primitives.neg_p]((X,), (Y,))

    agree(tangent)
    transposed, = maxjax.interpreters.ad.get_primitive_transpose(maxjax.lax.neg_p)(
        maxjax.numpy.asarray(Y), maxjax.interpreters.ad.UndefinedPrimal(maxjax.typeof(Y)))
    np.testing.assert_array_equal(transposed, -Y)
    assert maxjax.lax.sin_p in maxjax.interpreters.ad.primitive_jvps
    assert maxjax.lax.sin_p not in maxjax.interpreters.ad.primitive_transposes


# --- jaxprs ---------------------------------------------------------------------------------------

def inverse(j, f):
    """The inverse of a chain of functions of one operand, from its jaxpr."""
    core = modules(j).core
    inverses = {j.lax.exp_p: j.numpy.log, j.lax.tanh_p: j.numpy.arctanh, j.lax.neg_p: lambda x: -x}

    def inverted(y):
        closed = j.make_jaxpr(f)(y)
        env = {}

        def read(var):
            return var.val if type(var) is core.Literal else env[var]

        for var, val in zip(closed.jaxpr.outvars, [y]):
            env[var] = val
        for eqn in closed.jaxpr.eqns[::-1]:
            value, = map(read, eqn.outvars)
            env[eqn.invars[0]] = inverses[eqn.primitive](value)
        return env[closed.jaxpr.invars[0]]

    return inverted


def evaluated(j, f, *args):
    """A jaxpr run equation by equation."""
    closed = j.make_jaxpr(f)(*args)
    core = modules(j).core
    env = dict(zip([*closed.jaxpr.constvars, *closed.jaxpr.invars], [*closed.consts, *args]))
    for eqn in closed.jaxpr.eqns:
        values = [x.val if isinstance(x, core.Literal) else env[x] for x in eqn.invars]
        result = eqn.primitive.bind(*values, **eqn.primitive.get_bind_params(eqn.params))
        env.update(zip(eqn.outvars, result if eqn.primitive.multiple_results else [result]))
    return [env[x] for x in closed.jaxpr.outvars]


def nested(j):
    return lambda x: j.lax.scan(lambda c, w: (c * w, j.jit(j.numpy.sin)(c)), x, Y)


def made_by_hand(j):
    core = modules(j).core
    x, y = (core.Var(j.core.ShapedArray((3,), np.float32)) for _ in range(2))
    eqn = core.new_jaxpr_eqn([x], [y], j.lax.neg_p, {}, core.no_effects)
    jaxpr = core.Jaxpr([], [x], [y], [eqn], effects=core.no_effects)
    core.check_jaxpr(jaxpr)
    return core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, []))(X)


JAXPRS = {
    "inverse": lambda j: inverse(j, lambda x: j.numpy.exp(-j.numpy.tanh(x)))(np.float32(0.6)),
    "jit of inverse": lambda j: j.jit(inverse(j, lambda x: j.numpy.exp(j.numpy.tanh(x))))(
        np.float32(1.6)),
    "evaluated": lambda j: evaluated(j, lambda x: j.numpy.exp(x) * X + 1, Y),
    "evaluated scan": lambda j: evaluated(j, nested(j), j.numpy.asarray(X)),
    "gradient of evaluated": lambda j: j.grad(
        lambda x: evaluated(j, nested(j), x)[0].sum())(X),
    "as a function": lambda j: modules(j).core.jaxpr_as_fun(j.make_jaxpr(nested(j))(X))(Y),
    "vmap of function": lambda j: j.vmap(modules(j).core.jaxpr_as_fun(
        j.make_jaxpr(j.numpy.sin)(X)))(np.stack([X, Y])),
    "eval_jaxpr": lambda j: (lambda c: j.core.eval_jaxpr(c.jaxpr, c.consts, X))(
        j.make_jaxpr(lambda x: x + Y)(X)),
    "by hand": made_by_hand,
    "primitives": lambda j: [j.lax.add_p.bind(X, Y), j.lax.neg_p.bind(np.float32(1))],
    "inside": lambda j: len(list(modules(j).core.subjaxprs(j.make_jaxpr(nested(j))(X).jaxpr))),
    "avals": lambda j: [modules(j).core.mapped_aval(3, 0, j.core.ShapedArray((3, 2), "float32"))
                        .shape, modules(j).core.unmapped_aval(
                            3, 1, j.core.ShapedArray((2,), "float32")).shape],
}


@pytest.mark.parametrize("name", JAXPRS)
def test_jaxprs_are_read_as_in_jax(name):
    agree(JAXPRS[name])


def test_jaxprs_are_made_of_the_public_types():
    closed = maxjax.make_jaxpr(maxjax.numpy.sin)(X)
    core = maxjax.extend.core
    assert isinstance(closed, core.ClosedJaxpr) and isinstance(closed.jaxpr, core.Jaxpr)
    assert closed.replace(consts=[]).jaxpr is closed.jaxpr
    assert isinstance(closed.eqns[0], core.JaxprEqn)
    assert isinstance(closed.jaxpr.invars[0].aval, maxjax.core.ShapedArray)
    assert maxjax.typeof(X) == maxjax.core.ShapedArray((3,), np.float32)


def test_names_of_primitives():
    from maxjax.extend.core import primitives
    for name in dir(jax.extend.core.primitives):
        if name.endswith("_p") and hasattr(maxjax.lax, name):
            assert getattr(primitives, name) is getattr(maxjax.lax, name)
    assert primitives.remat_p.name == "remat2"


# --- the example ----------------------------------------------------------------------------------

def reference(j):
    return lambda x: 2 * x / j.numpy.sqrt(4 + x * x)


@pytest.mark.parametrize("jit", [False, True])
def test_impl_takes_arrays(jit):
    """Not NumPy's, which have other methods and can be written to."""
    p = maxjax.extend.core.Primitive("first_is_nine")
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: x.at[0].set(9))
    f = maxjax.jit(p.bind) if jit else p.bind
    x = np.arange(3.0, dtype=np.float32)
    assert f(x).tolist() == [9, 1, 2] and x[0] == 0


def test_composition_with_a_part_for_the_host():
    """That part alone is the host's, not all that is around it."""
    def doubled(x):
        return maxjax.pure_callback(lambda x: 2 * x, maxjax.ShapeDtypeStruct(x.shape, x.dtype), x)

    p = maxjax.extend.core.Primitive("doubled_elsewhere")
    p.def_abstract_eval(lambda x: x)
    maxjax.extend.mojo.register_composition(p, doubled)
    x = np.arange(64.0, dtype=np.float32)
    for function, on_host in (
            (lambda x: lax.sin(p.bind(lax.sin(x) + 1)).sum(), [False, True, False]),
            (lambda x: lax.sin(lax.fori_loop(0, 2, lambda _, x: p.bind(x) / 2, lax.sin(x) + 1)
                               * 2).sum(), [False])):
        program = program_of(maxjax.make_jaxpr(function)(x))
        prepared = MojoBackend().prepare(program.opened.jaxpr)
        assert [step.on_host for step in prepared.pieces] == on_host
        why, = [why for reasons in map(prepared.reasons, range(len(on_host))) for why in reasons]
        assert "it calls a Python function" in why, why
        np.testing.assert_allclose(program.tier0(*program.consts, x)[0],
                                   np.sin(2 * (np.sin(x) + 1)).sum(), rtol=1e-5)


def test_the_example_primitive_is_as_a_reference():
    def soft(x):
        return custom_op.softclip(x, 2.0)

    f = reference(jax)
    for mode in (lambda j, f: f(X), lambda j, f: j.jit(f)(X), lambda j, f: j.jacfwd(f)(X),
                 lambda j, f: j.jit(j.vmap(j.grad(f)))(X),
                 lambda j, f: j.hessian(lambda x: f(x).sum())(X)):
        np.testing.assert_allclose(mode(maxjax, soft), mode(jax, f), rtol=1e-5, atol=1e-6)
    check_grads(soft, (X,), 2)
    with pytest.raises(TypeError, match="got str|text|not valid|not a valid|interpret"):
        custom_op.softclip("text")


def test_example_is_not_exported():
    with pytest.raises(NotImplementedError, match="primitive 'softclip', which holds rules"):
        maxjax.export.export(maxjax.jit(custom_op.softclip))(X)


def test_example_as_a_script():
    script = Path(custom_op.__file__)
    finished = subprocess.run([sys.executable, str(script)], capture_output=True, text=True,
                              env={**os.environ, "MAXJAX_COMPILE": "never"})
    assert finished.returncode == 0, finished.stderr
    assert "softclip[limit=2.0]" in finished.stdout


@pytest.mark.extended
@pytest.mark.tier1
@pytest.mark.xdist_group("mojo")
def test_example_compiled():
    """The kernel is part of the compiled program, with its derivative, batched or not."""
    pytest.importorskip("max.engine")
    x = np.linspace(-4, 4, 37, dtype=np.float32)

    def soft(x):
        return custom_op.softclip(x, 2.0) + custom_op.softclip(x * 3, 0.5)

    def same(j):
        def f(x, limit):
            return limit * x / j.numpy.sqrt(limit * limit + x * x)
        return lambda x: f(x, 2.0) + f(x * 3, 0.5)

    for mode in (lambda j, f: f, lambda j, f: j.vmap(f),
                 lambda j, f: j.vmap(j.value_and_grad(f)), lambda j, f: j.jacfwd(f),
                 lambda j, f: lambda x: j.lax.scan(lambda c, w: (f(c * w), c), x, x[:5])):
        compiled = maxjax.jit(mode(maxjax, soft))
        with config.compile_mode("always"):
            actual = maxjax.tree.map(np.asarray, compiled(x))
        assert maxjax.debug.statistics(compiled).compiled_calls == 1
        program = program_of(compiled._lookup((x,), {}).closed)
        assert [step.reasons for step in program.prepared.pieces if step.on_host] == []
        for ours, theirs in zip(jax.tree.leaves(actual), jax.tree.leaves(
                jax.jit(mode(jax, same(jax)))(x)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
