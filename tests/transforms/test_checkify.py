"""checkify against JAX: messages and results, through jit, vmap, grad and control flow."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MAXJAX_COMPILE", "never")

import jax
import numpy as np
import pytest
from jax.experimental import checkify as jax_checkify

import maxjax
from maxjax.experimental import checkify as maxjax_checkify
from tests import ROOT
from tests.support.against_jax import assert_same_error

LIBRARIES = [(jax, jax_checkify), (maxjax, maxjax_checkify)]


def positive(J, C):
    def f(x):
        C.check(x > 0, "{x} must be positive, {}", x + 1, x=x)
        return x * 2
    return f


def scanned(J, C):
    def f(x):
        def body(c, t):
            C.check(c < 3, "c is {c} at {t}", c=c, t=t)
            return c + t, J.numpy.log(c)
        return J.lax.scan(body, x, J.numpy.arange(5.))
    return f


def looped(J, C):
    def f(x):
        def more(v):
            C.check(v < 20, "cond {v}", v=v)
            return v < 30

        def body(v):
            C.check(v != 4, "body {v}", v=v)
            return v * 2
        return J.lax.while_loop(more, body, x)
    return f


def branched(J, C):
    def f(pred, x):
        def yes(x):
            C.check(x > 0, "yes {x}", x=x)
            return x

        def no(x):
            C.check(x < 0, "no {} {}", x, x + 1)
            return J.numpy.log(x)
        return J.lax.cond(pred, yes, no, x)
    return f


def ruled(J, C):
    @J.custom_jvp
    def f(x):
        C.check(x > 0, "custom {x}", x=x)
        return J.numpy.log(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 7 * tangents[0]))
    return f


def of(text):
    return lambda J, C: eval(f"lambda x, i=0: {text}", {"jax": J, "jnp": J.numpy})


F, I = np.float32, np.int32
CASES = {
    "check": (positive, [(F(-1),), (F(1),)]),
    "check in jit": (lambda J, C: J.jit(positive(J, C)), [(F(-1),)]),
    "check in vmap": (lambda J, C: J.vmap(positive(J, C)), [(F([1, -2, -3, 4]),)]),
    "check in map": (lambda J, C: lambda x: J.lax.map(positive(J, C), x), [(F([1, -1]),)]),
    "check in grad": (lambda J, C: J.grad(lambda x: positive(J, C)(J.numpy.sqrt(x))), [(F(0),)]),
    "scan": (scanned, [(F(0),), (F(-1),), (F(-100),)]),
    "while": (looped, [(I(1),), (I(3),), (I(25),), (I(40),)]),
    "vmap of while": (lambda J, C: J.vmap(looped(J, C)), [(I([1, 3]),)]),
    "cond": (branched, [(np.bool_(p), F(x)) for p in (True, False) for x in (1, -1)]),
    "custom rule": (ruled, [(F(-1),)]),
    "grad of custom rule": (lambda J, C: J.grad(ruled(J, C)), [(F(-1),)]),
    "nan": (of("jnp.log(x)"), [(F(-1),), (F(0),)]),
    "sin": (of("jnp.sin(x) + x"), [(F(np.inf),)]),
    "div": (of("i / x"), [(F(0), F(1)), (F(0), F(0))]),
    "integer div": (of("i // x"), [(I(0), I(3))]),
    "index": (of("x[i]"), [(F([1, 2, 3]), I(i)) for i in (5, -5, -1)]),
    "static index": (of("x[5] + x[-1]"), [(F([1, 2, 3]),)]),
    "static index from the end": (of("x[-5]"), [(F([1, 2, 3]),)]),
    "static index of two": (of("x[0, 4] + x[-3, 0]"), [(np.ones((2, 3), F),)]),
    "static and traced": (of("x[i, 1]"), [(np.ones((2, 3), F), I(4)), (np.ones((2, 1), F), I(0))]),
    "static set": (of("x.at[5].set(1.) + x.at[1].set(2.)"), [(F([1, 2, 3]),)]),
    "static add of two": (of("x.at[:, -4].add(1.)"), [(np.ones((2, 3), F),)]),
    "static clip": (of("x.at[5].get(mode='clip') + x.at[5].set(1., mode='clip')"),
                    [(F([1, 2, 3]),)]),
    "indices": (of("x[:, i]"), [(np.ones((2, 3), F), I([0, 1, 7]))]),
    "set": (of("x.at[i].set(1.)"), [(F([1, 2, 3]), I(5))]),
    "add": (of("x.at[i].add(1.)"), [(F([1, 2, 3]), I([1, 9]))]),
    "mul": (of("x.at[i].mul(jnp.nan)"), [(F([1, 2, 3]), I([1, 2]))]),
    "take": (of("jnp.take(x, i)"), [(F([1, 2, 3]), I(5))]),
    "dynamic_slice": (of("jax.lax.dynamic_slice(x, (i,), (2,))"), [(F([1, 2, 3]), I(2))]),
    "dynamic_update_slice": (of("jax.lax.dynamic_update_slice(x, jnp.ones(2), (i,))"),
                             [(F([1, 2, 3]), I(-2))]),
    "switch": (of("jax.lax.switch(i, [jnp.log, jnp.sqrt, lambda x: x / 0], x)"),
               [(F(-1), I(i)) for i in range(3)]),
    "fori": (of("jax.lax.fori_loop(0, i, lambda n, c: c / (n - 2.), x)"), [(F(1), I(4))]),
    "first of many": (of("(jnp.log(x), jnp.sqrt(x), 1 / (x + 1))"), [(F(-1),)]),
}
CATEGORIES = ["user_checks", "nan_checks", "index_checks", "div_checks", "all_checks"]


def outcome(call):
    try:
        error, result = call()
        return error.get(), result
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_messages_and_results(name, jitted):
    make, inputs = CASES[name]
    categories = CATEGORIES if name in ("first of many", "mul", "div") else ["all_checks"]
    for category in categories:
        for args in inputs:
            pair = []
            for J, C in LIBRARIES:
                checked = C.checkify(make(J, C), errors=getattr(C, category))
                pair.append(outcome(lambda J=J, checked=checked, args=args: (
                    J.jit(checked) if jitted else checked)(*map(J.numpy.asarray, args))))
            (expected, expected_result), (message, result) = pair
            assert message == expected, (category, args)
            jax.tree.map(lambda x, y: np.testing.assert_allclose(
                np.asarray(x), np.asarray(y), rtol=1e-6), result, expected_result) \
                if not isinstance(result, str) else None


ALONE = {
    "it raises": lambda J, C: positive(J, C)(J.numpy.float32(-1)),
    "it is quiet": lambda J, C: positive(J, C)(J.numpy.float32(1)),
    "under vmap": lambda J, C: J.vmap(positive(J, C))(J.numpy.array([1., -2., -3., 4.])),
    "under grad": lambda J, C: J.grad(positive(J, C))(-1.),
    "under jit": lambda J, C: J.jit(positive(J, C))(1.),
    "array": lambda J, C: C.check(J.numpy.array([True]), "a"),
    "number": lambda J, C: C.check(1, "a"),
    "format of a number": lambda J, C: C.check(True, "a {}", 3),
    "no error": lambda J, C: C.check_error(3),
    "throw": lambda J, C: C.checkify(positive(J, C))(J.numpy.float32(-1))[0].throw(),
    "vmap": lambda J, C: J.vmap(C.checkify(positive(J, C)))(
        J.numpy.array([1., -2., -3., 4.]))[0].get(),
    "vmap of vmap": lambda J, C: J.vmap(J.vmap(C.checkify(positive(J, C))))(
        J.numpy.array([[1., -2.], [-3., 4.]]))[0].get(),
    "vmap throw": lambda J, C: J.vmap(C.checkify(positive(J, C)))(
        J.numpy.array([1., -2., -3., 4.]))[0].throw(),
    "grad of custom rule": lambda J, C: J.grad(lambda x: C.checkify(ruled(J, C))(x)[1])(
        J.numpy.float32(-1)),
    "debug": lambda J, C: C.debug_check(J.numpy.array(False), "a"),
    "debug in jit": lambda J, C: J.jit(lambda x: C.debug_check(x > 0, "a"))(-1.),
    "again": lambda J, C: C.checkify(lambda x: C.check_error(
        C.checkify(positive(J, C))(x)[0]))(J.numpy.float32(-1))[0].get(),
    "categories": lambda J, C: [sorted(x.__name__ for x in getattr(C, name)) for name in (
        *CATEGORIES, "float_checks", "automatic_checks")],
    "nothing": lambda J, C: C.init_error.get(),
    "an error of no checks in jit": lambda J, C: J.jit(lambda x: (
        C.check_error(C.checkify(lambda x: x)(x)[0]), x))(1.),
    "thrown in jit": lambda J, C: J.jit(lambda x: C.checkify(positive(J, C))(x)[0].throw())(1.),
}


@pytest.mark.parametrize("name", ALONE)
def test_checks_outside_of_checkify(name):
    pair = []
    for J, C in LIBRARIES:
        try:
            pair.append(repr(J.tree.map(
                lambda x: x if isinstance(x, str) else np.asarray(x).tolist(),
                ALONE[name](J, C))))
        except Exception as error:
            pair.append((type(error).__name__, str(error)))
    assert pair[1] == pair[0]


# --- array references -----------------------------------------------------------------------------

@pytest.mark.parametrize("jitted", [False, True])
def test_references_from_outside(jitted):
    seen = []
    for J, C in LIBRARIES:
        ref = J.new_ref(J.numpy.arange(3.0))

        def taken(r, x, J=J, C=C):
            r[0] = x
            C.check(r[0] > 0, "{x} is written", x=x)
            return J.numpy.log(r[...] - 1)

        def closed(x, J=J, C=C, ref=ref):
            ref[1] = x
            return ref[...].sum()

        transform = J.jit if jitted else lambda f: f
        for x in map(J.numpy.float32, (4, -5)):
            error, result = transform(C.checkify(taken, C.user_checks | C.nan_checks))(ref, x)
            seen.append((error.get(), np.asarray(result).tolist(), np.asarray(ref[...]).tolist()))
            error, result = transform(C.checkify(closed))(x)
            seen.append((error.get(), float(result), np.asarray(ref[...]).tolist()))
    assert repr(seen[4:]) == repr(seen[:4])


# --- on several devices ---------------------------------------------------------------------------

ON_DEVICES = """
import importlib, sys

J = importlib.import_module(sys.argv[1])
C = importlib.import_module(sys.argv[1] + ".experimental.checkify")
jnp, P = J.numpy, J.sharding.PartitionSpec
mesh = J.make_mesh((4,), ("x",), axis_types=(J.sharding.AxisType.Auto,))

def logarithm(x):
    C.check(x > 0, "negative {x}", x=x)
    return jnp.log(x + 3)

def total(x):
    C.check(jnp.all(x > 0), "bad {x}", x=x.sum())
    return J.lax.psum(x, "x")

mapped = J.pmap(logarithm)
sharded = J.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())
for function, x in ((mapped, [1., -1., 2., 3.]), (mapped, [1., 1., 2., 3.]),
                    (sharded, list(range(8))), (sharded, list(range(1, 9))),
                    (J.jit(sharded), [1.] * 5 + [-4.] * 3)):
    error, result = C.checkify(function)(jnp.array(x, "float32"))
    print(error.get(), [round(y, 4) for y in result.tolist()])
error, _ = C.checkify(J.pmap(jnp.log), errors=C.nan_checks)(jnp.array([1., -1., 2., -3.]))
print(error.get())
"""


def test_each_device_has_checks_of_its_own():
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "4",
                   "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    outcomes = [subprocess.run([sys.executable, "-c", ON_DEVICES, name], env=environment, cwd=ROOT,
                               capture_output=True, text=True, check=True).stdout
                for name in ("maxjax", "jax")]
    assert outcomes[0] == outcomes[1] != ""


# --- loops whose elements end at different times --------------------------------------------------


def counted(j):
    return j.vmap(lambda x: j.lax.while_loop(lambda c: c < x, lambda c: c + 1.0, 0 * x))


BATCHED_LOOPS = {
    "vmap": counted,
    "jvp": lambda j: lambda x: j.jvp(counted(j), (x,), (x,)),
    "jvp of jit": lambda j: lambda x: j.jvp(j.jit(counted(j)), (x,), (x,)),
    "jvp of jvp": lambda j: lambda x: j.jvp(
        lambda x: j.jvp(counted(j), (x,), (x,))[1], (x,), (x,)),
    "linearize": lambda j: lambda x: j.linearize(counted(j), x)[0],
    "vmap of vmap": lambda j: lambda x: j.vmap(lambda s: counted(j)(x) * s)(x),
    "scan": lambda j: lambda x: j.jvp(lambda x: j.lax.scan(
        lambda c, _: (counted(j)(c), None), x, None, length=2)[0], (x,), (x,)),
    "cond": lambda j: lambda x: j.jvp(
        lambda x: j.lax.cond(x[0] < 1, counted(j), lambda x: x, x), (x,), (x,)),
}


@pytest.mark.parametrize("name", BATCHED_LOOPS)
def test_batched_loops_are_refused(name):
    """Also where the loop has been rebuilt: as a derivative, in another loop, in a batch."""
    def check(j):
        checkify = importlib.import_module(f"{j.__name__}.experimental.checkify")
        return checkify.checkify(BATCHED_LOOPS[name](j), errors=checkify.all_checks)(
            np.arange(3, dtype=np.float32))

    assert_same_error(check)
