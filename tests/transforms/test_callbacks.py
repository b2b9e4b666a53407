"""Callbacks and effects against JAX: output and its order, results and errors.

A program is written once, for a library ``J`` (jax or maxjax), and run with both.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import logging
import os
import types

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MAXJAX_COMPILE", "never")

import jax
import numpy as np
import pytest

import maxjax
from maxjax._base import config
from maxjax._runtime.program import program_of
from maxjax.debug import statistics


def library(name):
    def module(path):
        return importlib.import_module(f"{name}.{path}" if path else name)

    J = types.SimpleNamespace(jax=module(""), np=module("numpy"), lax=module("lax"),
                              io_callback=module("experimental").io_callback)
    J.debug, J.pure_callback = module("debug"), J.jax.pure_callback
    J.jit, J.vmap, J.grad, J.jvp, J.scan = (
        J.jax.jit, J.jax.vmap, J.jax.grad, J.jax.jvp, J.lax.scan)
    J.scalar = J.jax.ShapeDtypeStruct((), np.float32)
    return J


LIBRARIES = [library("jax"), library("maxjax")]


def run(J, program, *args):
    """A program's output, and its results or its error's type and text."""
    logging.getLogger("jax").setLevel(logging.CRITICAL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = J.jax.tree.map(np.asarray, program(J, *args))
            J.jax.effects_barrier()
        except Exception as error:
            result = error
    return printed.getvalue().splitlines(), result


def agree(program, *args, in_order=True):
    (expected_lines, expected), (lines, result) = (run(J, program, *args) for J in LIBRARIES)
    if not in_order:
        expected_lines, lines = sorted(expected_lines), sorted(lines)
    assert lines == expected_lines
    if isinstance(expected, Exception) or isinstance(result, Exception):
        assert type(result).__name__ == type(expected).__name__, (result, expected)
        if "CpuCallback" not in str(expected):      # a traceback follows, of other files
            assert str(result) == str(expected)
        return
    assert jax.tree.structure(result) == jax.tree.structure(expected)
    for mine, other in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        assert mine.dtype == other.dtype and mine.shape == other.shape
        np.testing.assert_allclose(mine, other, rtol=1e-6)


# --- bodies that print, and what is made of them --------------------------------------------------


def plain(J, ordered):
    def f(x):
        J.debug.print("x {}", x, ordered=ordered)
        return x * x + x
    return f


def through_jit(J, ordered):
    return J.jit(plain(J, ordered))


def in_scan(J, ordered, inner=plain):
    def f(x):
        def body(c, t):
            J.debug.print("carry {} {t}", c, t=t, ordered=ordered)
            return inner(J, ordered)(c * t), c
        return J.scan(body, x, J.np.arange(1., 4.))[0]
    return f


def in_cond(J, ordered, inner=plain):
    def f(x):
        def low(x):
            J.debug.print("low {}", x, ordered=ordered)
            return -x
        return J.lax.cond(x > 1.5, inner(J, ordered), low, x)
    return f


def in_fori(J, ordered, inner=plain):
    return lambda x: J.lax.fori_loop(0, 2, lambda i, c: inner(J, ordered)(c) * (i + 1), x)


def in_map(J, ordered, inner=plain):
    return lambda x: J.lax.map(inner(J, ordered), x * J.np.arange(1., 3.)).sum()


def in_while(J, ordered, inner=plain):
    return lambda x: J.lax.while_loop(
        lambda c: c < 10, lambda c: inner(J, ordered)(c) + 1, x)


def with_callback(J, ordered, inner=plain):
    """A custom derivative is what lets a callback be differentiated."""
    @J.jax.custom_jvp
    def sine(x):
        J.debug.print("sine of {}", x, ordered=ordered)
        return J.pure_callback(lambda v: np.sin(v), J.scalar, x, vmap_method="sequential")

    @sine.defjvp
    def _(primals, tangents):
        return sine(*primals), J.np.cos(primals[0]) * tangents[0]

    return lambda x: inner(J, ordered)(sine(x))


WRAPS = {
    "eager": lambda J, f: f(J.np.float32(2)),
    "jit": lambda J, f: J.jit(f)(2.),
    "jvp": lambda J, f: J.jvp(f, (2.,), (3.,)),
    "linearize": lambda J, f: J.jax.linearize(f, 2.)[1](3.),
    "vmap": lambda J, f: J.vmap(f)(J.np.array([1., 2., 3.])),
    "jit(vmap)": lambda J, f: J.jit(J.vmap(f))(J.np.array([1., 2., 3.])),
    "vmap(vmap)": lambda J, f: J.vmap(J.vmap(f))(J.np.array([[1., 2.], [3., 4.]])),
    "grad": lambda J, f: J.grad(f)(2.),
    "jit(grad)": lambda J, f: J.jit(J.grad(f))(2.),
    "jit(vmap(grad))": lambda J, f: J.jit(J.vmap(J.grad(f)))(J.np.array([1., 2.])),
    "grad(grad)": lambda J, f: J.grad(J.grad(f))(2.),
}
BODIES = [plain, through_jit, in_scan, in_cond, in_fori, in_map, in_while, with_callback]
NESTING = [in_scan, in_cond, in_while]
NESTS = [(outer, inner) for outer, inner in itertools.product(NESTING, NESTING) if outer != inner]


# JAX takes seconds for some: the rest of the product is run by `pytest -m exhaustive`.
QUICK = ["eager", "jit(vmap)", "jit(grad)"]


@pytest.mark.parametrize("wrap", [
    pytest.param(wrap, marks=[] if wrap in QUICK else [pytest.mark.exhaustive]) for wrap in WRAPS])
@pytest.mark.parametrize("body", BODIES)
def test_bodies_under_transformations_call_as_in_jax(body, wrap):
    agree(lambda J: WRAPS[wrap](J, body(J, False)), in_order=False)


@pytest.mark.parametrize("wrap", ["eager", "jvp", "jit(grad)"])
@pytest.mark.parametrize("body", BODIES)
def test_bodies_keep_their_order(body, wrap):
    agree(lambda J: WRAPS[wrap](J, body(J, True)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("wrap", ["jit(vmap)", "linearize"])
@pytest.mark.parametrize("outer,inner", NESTS)
def test_nests_under_transformations_call_as_in_jax(outer, inner, wrap):
    agree(lambda J: WRAPS[wrap](J, outer(J, False, inner)), in_order=False)


@pytest.mark.parametrize("wrap", ["eager", "jit", "jvp", "linearize"])
def test_predicates_print(wrap):
    # Under vmap JAX evaluates a predicate twice in each iteration; here it is evaluated once.
    def program(J):
        def more(c):
            J.debug.print("more {}", c, ordered=True)
            return c < 10
        return WRAPS[wrap](J, lambda x: J.lax.while_loop(more, lambda c: c * 2, x))
    agree(program)


def test_a_jitted_program_prints_at_each_call():
    def program(J):
        f = J.jit(plain(J, True))
        return [f(1.), f(2.), f(1.)]
    agree(program)


def test_nothing_is_lost_or_merged():
    def program(J):
        @J.jit
        def f(x):
            J.debug.print("nothing", ordered=True)
            J.debug.print("dead {}", J.np.sin(x) * 0, ordered=True)
            J.debug.print("nothing", ordered=True)
            J.lax.fori_loop(0, 2, lambda i, c: J.debug.print("loop", ordered=True), None)
            J.lax.cond(x > 0, lambda: J.debug.print("yes", ordered=True), lambda: None)
        f(1.)
    agree(program)


def test_eager_prints_come_at_once():
    lines = []
    for value in range(3):
        printed, _ = run(LIBRARIES[1], lambda J, value=value: J.debug.print(
            "{}", J.np.add(value, 1)))
        lines += printed
    assert lines == ["1", "2", "3"]


# --- formatting -----------------------------------------------------------------------------------

FORMATS = [
    ("x {x:.3f} {} {s} {}", (1, True), {"x": np.float32(2), "s": "text"}),
    ("x ", (1,), {}), ("x ", (), {"x": 1}), ("x {} {}", (1,), {}), ("x {a}", (), {}),
    ("{a.shape} {b[0]}", (), {"a": np.arange(3), "b": [1, 2]}),
    ("{a:.2f}", (), {"a": np.arange(3.)}), ("{{}} {a}", (), {"a": np.arange(3.)}),
    ("", (), {}), ("{!r}", (np.arange(3),), {}), ("{} {}", (None, [1, "a", 2.5]), {}),
    ("{}{:>8}", (np.int8(3), np.float16(0.1)), {}), ("{}", (np.arange(2000),), {}),
    ("{}", (np.float32([0.1, 1e10, np.nan]),), {}), ("{}", (1 + 2j,), {}),
    ("{a[k]} {b.real}", (), {"a": {"k": 3}, "b": np.complex64(2 + 1j)}),
]


@pytest.mark.parametrize("fmt,args,kwargs", FORMATS, ids=[case[0] for case in FORMATS])
def test_print_formats(fmt, args, kwargs):
    agree(lambda J: J.debug.print(fmt, *args, **kwargs))
    agree(lambda J: J.debug.print(ordered=True)(fmt, *args, **kwargs))


def test_print_options():
    agree(lambda J: J.debug.print("x", 1, 2, skip_format_check=True))
    agree(lambda J: J.debug.print(x=3))
    agree(lambda J: J.jit(lambda x: J.debug.print("{}", x, partitioned=True))(1.))

    def program(J):
        with np.printoptions(precision=2):
            f = J.jit(lambda x: J.debug.print("{}", x)).lower(J.np.ones(2) / 3).compile()
        f(J.np.ones(2) / 3)
        J.debug.print("{}", J.jax.random.key(0))
    agree(program)


def test_log_names_the_file_that_logs(caplog):
    with caplog.at_level(logging.INFO):
        maxjax.jit(lambda x: maxjax.debug.log("value {}", x))(3)
    record, = caplog.records
    assert (record.getMessage(), record.levelname) == ("value 3", "INFO")
    assert record.filename == "test_callbacks.py"


# --- callbacks ------------------------------------------------------------------------------------


def failing(*args):
    raise KeyError("inside")


CALLBACKS = {
    "a dict": lambda J: J.pure_callback(
        lambda x, *, y: {"sum": x + y["v"], "list": [x, x]},
        {"sum": J.scalar, "list": [J.scalar] * 2}, 1., y={"v": np.float32(2)}),
    "nothing": lambda J: J.pure_callback(lambda x: None, None, 1.),
    "a Python number": lambda J: J.pure_callback(lambda x: 3.5, J.scalar, 1.),
    "64 bits become 32": lambda J: J.pure_callback(lambda x: np.float64(3.5), J.scalar, 1.),
    "bool": lambda J: J.pure_callback(
        lambda x: np.asarray(x) > 1, J.jax.ShapeDtypeStruct((3,), bool), J.np.arange(3.)),
    "it fails": lambda J: J.pure_callback(failing, J.scalar, 1.),
    "it fails in jit": lambda J: J.jit(lambda x: J.pure_callback(failing, J.scalar, x))(1.),
    "shape": lambda J: J.pure_callback(lambda x: np.zeros(3), J.scalar, 1.),
    "count": lambda J: J.pure_callback(lambda x: (x, x), J.scalar, 1.),
    "dtype": lambda J: J.pure_callback(lambda x: np.int32(3), J.scalar, 1.),
    "text": lambda J: J.pure_callback(lambda x: "a", J.scalar, 1.),
    "argument": lambda J: J.pure_callback(lambda x: 1., J.scalar, "a"),
    "method": lambda J: J.pure_callback(lambda x: 1., J.scalar, 1., vmap_method="foo"),
    "vectorized": lambda J: J.pure_callback(lambda x: 1., J.scalar, 1., vectorized=True),
    "64 bits": lambda J: J.pure_callback(
        lambda x: 1., J.jax.ShapeDtypeStruct((), np.float64), 1.),
    "no shape": lambda J: J.pure_callback(lambda x: 1., 3., 1.),
    "vmap": lambda J: J.vmap(
        lambda x: J.pure_callback(lambda x: x, J.scalar, x))(J.np.arange(3.)),
    "grad": lambda J: J.grad(lambda x: J.pure_callback(lambda x: x, J.scalar, x))(1.),
    "grad of stopped": lambda J: J.grad(lambda x: x * J.pure_callback(
        lambda x: x, J.scalar, J.lax.stop_gradient(x)))(3.),
    "io grad": lambda J: J.grad(lambda x: J.io_callback(lambda x: x, J.scalar, x))(1.),
    "io ordered vmap": lambda J: J.vmap(lambda x: J.io_callback(
        lambda x: x, J.scalar, x, ordered=True))(J.np.arange(3.)),
    "io vmap": lambda J: J.vmap(lambda x: J.io_callback(
        lambda x: print(x) or x, J.scalar, x))(J.np.arange(3.)),
    "io scan": lambda J: J.scan(lambda c, x: (J.io_callback(
        lambda c, x: print(c, x) or c + x, J.scalar, c, x, ordered=True), c), 0., J.np.arange(3.)),
    "io in vmap of cond": lambda J: J.vmap(lambda x: J.lax.cond(
        x > 1, lambda: J.io_callback(lambda x: x, J.scalar, x), lambda: x))(J.np.arange(3.)),
    "io in vmap of while": lambda J: J.vmap(lambda x: J.lax.while_loop(
        lambda x: x < 3, lambda x: J.io_callback(lambda x: x + 1, J.scalar, x), x))(
            J.np.arange(3.)),
    "ordered io in vmap of while": lambda J: J.vmap(lambda x: J.lax.while_loop(
        lambda x: x < 3, lambda x: J.io_callback(
            lambda x: x + 1, J.scalar, x, ordered=True), x))(J.np.arange(3.)),
    "debug fails": lambda J: J.debug.callback(failing, 1.),
    "debug fails in jit": lambda J: J.jit(lambda x: J.debug.callback(failing, x))(1.),
    "debug of no function": lambda J: J.debug.callback(3, 1.),
    "debug of nothing": lambda J: J.debug.callback(x=3),
    "debug in two calls": lambda J: J.debug.callback(ordered=True)(
        lambda *a, **k: print(a, k), 1., "text", x=3),
    "debug under jit": lambda J: J.jit(lambda x: J.debug.callback(
        lambda *a, **k: print(a, k), x, "text", x=x + 1, ordered=True))(1.),
}


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks(name):
    agree(CALLBACKS[name])


class Unconvertible:
    def __array__(self, *args, **kwargs):
        raise ValueError("no array")


FAILURES = {
    "pure": lambda J, x: J.pure_callback(failing, J.scalar, x),
    "result": lambda J, x: J.pure_callback(lambda x: Unconvertible(), J.scalar, x),
    "type": lambda J, x: J.pure_callback(lambda x: np.zeros(3), J.scalar, x),
    "loop": lambda J, x: J.lax.fori_loop(
        0, 2, lambda i, x: J.pure_callback(failing, J.scalar, x), x),
    "io": lambda J, x: J.io_callback(failing, J.scalar, x, ordered=True),
    "debug": lambda J, x: J.debug.callback(failing, x),
    "print": lambda J, x: J.debug.print("{:d}", x),
    "format": lambda J, x: J.debug.print("{} {y}", x),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", FAILURES)
def test_failures_of_callbacks_are_logged_as_in_jax(name, jitted, caplog):
    logged = []
    for J in LIBRARIES:
        caplog.clear()
        with caplog.at_level(logging.ERROR, "jax"), pytest.raises(Exception) as raised:
            function = lambda x, J=J: FAILURES[name](J, x)
            J.jax.block_until_ready((J.jit(function) if jitted else function)(J.np.float32(1)))
            J.jax.effects_barrier()
        logged.append((raised.type.__name__, [
            (record.name, record.levelno, record.getMessage(), record.exc_info[0],
             str(record.exc_info[1])) for record in caplog.records]))
    assert logged[1] == logged[0]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("in_axes", [(0, None), (1, 0)])
@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims",
                                    "broadcast_all", "legacy_vectorized", None])
def test_vmap_methods(method, in_axes, jitted):
    def program(J):
        def add(x, y):
            print(x.shape, y.shape)
            return np.asarray(x).sum(-1) + np.asarray(y)

        def f(x, y):
            return J.pure_callback(add, J.scalar, x, y, vmap_method=method)

        y = J.np.float32(2) if in_axes[1] is None else J.np.arange(2.)
        x = J.np.arange(6.).reshape((2, 3) if in_axes[0] == 0 else (3, 2))
        mapped = J.vmap(f, in_axes)
        return (J.jit(mapped) if jitted else mapped)(x, y)
    agree(program)


def test_what_a_callback_gets_is_an_array_outside_all_transformations():
    def program(J):
        def look(x):
            print(isinstance(x, J.jax.Array), isinstance(x, J.jax.core.Tracer),
                  J.np.sin(x) * 0 + x, float(x), x.weak_type)
            return x
        def f(x):
            J.debug.callback(look, x)
            return x * J.pure_callback(look, J.scalar, J.lax.stop_gradient(x))
        return J.jit(J.grad(f))(2.), J.vmap(J.jit(
            lambda x: J.pure_callback(look, J.scalar, x, vmap_method="sequential")))(
                J.np.arange(2.))
    agree(program, in_order=False)


def test_a_callback_may_keep_and_change_its_own_array():
    kept = np.zeros(2, np.float32)
    shape = maxjax.ShapeDtypeStruct((2,), np.float32)
    results = [maxjax.pure_callback(lambda: kept, shape), maxjax.jit(
        lambda: maxjax.pure_callback(lambda: kept, shape))()]
    kept[:] = 1
    for result in results:
        np.testing.assert_array_equal(result, [0, 0])


def test_unused_pure_callbacks_are_dropped_and_others_not():
    def program(J):
        @J.jit
        def f(x):
            J.pure_callback(lambda x: print("pure") or x, J.scalar, x)
            J.io_callback(lambda x: print("io") or x, J.scalar, x)
            return x
        return f(1.)
    agree(program)


def test_effects_of_jaxprs():
    for J in LIBRARIES:
        def f(x, J=J):
            J.debug.print("a {}", x, ordered=True)
            J.lax.cond(x > 0, lambda: J.debug.print("b"), lambda: None)
            J.io_callback(lambda: None, None)
        effects = J.jax.make_jaxpr(J.jit(f))(1.).effects
        assert sorted(map(str, effects)) == ["Debug", "IO", "OrderedDebug"]
        assert any(isinstance(effect, J.debug.OrderedDebugEffect) for effect in effects)
        assert not J.jax.make_jaxpr(lambda x: x + 1)(1.).effects


def test_breakpoint():
    def program(J):
        def f(x):
            y = {"a": x + 1, "b": "text"}
            J.debug.breakpoint(backend="cli", num_frames=1, stdout=out,
                               stdin=io.StringIO("p x\np y\nx * 2\nnope\nu\nc\n"))
            return y["a"]
        out = io.StringIO()
        results = f(2.), J.jit(f)(2.)
        print("\n".join(line for line in out.getvalue().splitlines() if line.startswith("(jdb)")))
        return results
    agree(program)

    def token(J):
        out = io.StringIO()
        x = J.jit(lambda x: J.debug.breakpoint(
            token=x, num_frames=1, stdout=out, stdin=io.StringIO("p x\nc\n")) * 2)(3.)
        print(out.getvalue())
        return x
    agree(token)
    agree(lambda J: J.debug.breakpoint(token=1., ordered=True))


# --- compiled -------------------------------------------------------------------------------------


@pytest.mark.tier1
@pytest.mark.xdist_group("mojo")
def test_callbacks_are_host_steps_of_compiled_programs():
    with config.compile_mode("always"):
        @maxjax.jit
        def f(x):
            maxjax.debug.print("first")
            y = maxjax.numpy.sin(x) * 2
            maxjax.debug.print("y {}", y[0])
            z = maxjax.pure_callback(
                lambda v: np.asarray(v) + 1, maxjax.ShapeDtypeStruct(x.shape, x.dtype), y)
            total = (maxjax.numpy.cos(z) * x).sum()
            maxjax.debug.print("x {}", x[1])      # could run earlier, and must not

            def body(c, t):
                maxjax.debug.print("c {}", c)
                return c + t, None
            return maxjax.lax.scan(body, total, maxjax.numpy.arange(2.))[0]

        x = np.linspace(0, 1, 5, dtype=np.float32)
        total = np.sum(np.cos(np.sin(x) * 2 + 1) * x, dtype=np.float32)
        for _ in range(2):
            lines, result = run(LIBRARIES[1], lambda J: f(x))
            np.testing.assert_allclose(result, total + 1, rtol=1e-5)
            assert [line.split()[0] for line in lines] == ["first", "y", "x", "c", "c"]
            np.testing.assert_allclose([float(line.split()[1]) for line in lines[1:]],
                                       [0, 0.25, total, total], rtol=1e-5)
        assert statistics(f).compiled_calls == 2
        program = program_of(next(iter(f._entries.values())).closed)
        # What is outside the loop is a piece of the host, what is in it a step of its tape.
        assert [piece.on_host for piece in program.prepared.pieces] == [False, True, False]
        assert "debug_print" in "".join(program.prepared.reasons(2))
