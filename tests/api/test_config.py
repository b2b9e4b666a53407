"""Options against JAX's: their names, the values they refuse, and their effects."""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import logging
import pickle
import re
import traceback
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from jax._src import config as jax_config

import maxjax
from maxjax._base import accepted_options, config
from maxjax._base.errors import InternalError
from maxjax._runtime.program import program_of
from maxjax.version import JAX_VERSION
from tests.support.against_jax import agree, assert_same_error, errors_of, first_line

X = np.array([0.0, 1.0, 2.0], np.float32)
LIBRARIES = (maxjax, jax)


# --- the options themselves -----------------------------------------------------------------------

def test_every_option_of_jax():
    theirs, ours = jax.config.values, maxjax.config.values
    assert set(ours) - set(theirs) == {
        "backend", "check_tiers", "collective_timeout", "compile", "detached_builds"}
    assert set(theirs) <= set(ours)
    for name, value in theirs.items():
        if name not in ("jax_platforms", "jax_pprint_use_color") and "_cache_" not in name:
            assert str(value) == str(ours[name]), name      # the tests set the others


def test_an_option_is_defined_once():
    with pytest.raises(InternalError, match="two options are called 'jax_num_cpu_devices'"):
        maxjax.config.define("jax_num_cpu_devices", -1, "A second time.")


# Values of all the types that options accept, and of others.
VALUES = (None, True, False, 0, 1, -1, 2.5, "foo", "", "cpu", "ON", "on", "warn", [1], b"x")


def outcomes(j, name, give):
    """The option's value for each of ``VALUES``, or the error's type and text."""
    found = []
    before = j.config.values[name]
    for value in VALUES:
        try:
            kept = give(j, name, value)
            found.append((type(kept).__name__, str(kept)))
        except Exception as error:
            found.append((type(error).__name__, str(error)))
        finally:
            with contextlib.suppress(RuntimeError):      # too late to set it, even to itself
                j.config.update(name, before)
    return found


def module_of_jax(text):
    """A message with the names of JAX's enumerations replacing ours."""
    return re.sub(r"maxjax\._base\.\w+", "jax._src.config", text)


@pytest.mark.parametrize("name", jax.config.values)
def test_what_update_makes_of_a_value(name):
    def updated(j, name, value):
        j.config.update(name, value)
        return j.config.values[name]
    for j in LIBRARIES:
        j.devices()         # some options can only be set before
    ours = [(kind, module_of_jax(text)) for kind, text in outcomes(maxjax, name, updated)]
    assert ours == outcomes(jax, name, updated)


@pytest.mark.parametrize("name", jax.config.values)
def test_how_an_option_is_read(name):
    for read in (lambda j: j.config.read(name), lambda j: getattr(j.config, name)):
        results = []
        for j in LIBRARIES:
            try:
                read(j)
                results.append("it is there")
            except Exception as error:
                results.append((type(error).__name__, str(error)))
        assert results[0] == results[1]


CONTEXTS = [name for name, state in jax_config.config_states.items()
            if name in maxjax.config.values]


@pytest.mark.parametrize("name", CONTEXTS)
def test_what_a_context_manager_makes_of_a_value(name):
    def inside(j, name, value):
        option = jax_config.config_states[name] if j is jax else maxjax.config.option(name)
        with option(value):
            return j.config.values[name]

    for j in LIBRARIES:
        j.devices()         # as above
    ours = [(kind, module_of_jax(text)) for kind, text in outcomes(maxjax, name, inside)]
    assert ours == outcomes(jax, name, inside)


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_context_manager_without_a_value(name):
    def inside(j):
        option = jax_config.config_states[name] if j is jax else maxjax.config.option(name)
        try:
            with option():
                return str(j.config.values[name])
        except TypeError as error:
            return str(error)
    assert inside(maxjax) == inside(jax)


def test_context_managers_decorate():
    def run(j):
        @j.numpy_rank_promotion("raise")
        def added(x, y):
            return x + y
        return [added(j.numpy.ones(3), j.numpy.ones(3)),
                j.config.jax_numpy_rank_promotion == "allow"]
    agree(run)
    assert_same_error(lambda j: j.numpy_rank_promotion("raise")(
        lambda: j.numpy.ones((2, 3)) + j.numpy.ones(3))(), whole=True)


def test_what_options_are_not():
    assert_same_error(lambda j: bool(j.enable_x64), whole=True)
    ours, theirs = errors_of(lambda j: setattr(j.config, "jax_enable_x64", True))
    assert type(ours) is type(theirs) is AttributeError


def test_what_has_no_effect_is_told_once(caplog):
    option = maxjax.config.option("jax_compiler_enable_remat_pass")
    told = option.without_effect
    try:
        option.without_effect = "a reason"
        with caplog.at_level(logging.WARNING, "maxjax"):
            maxjax.config.update(option.name, True)
            assert not caplog.records
            with option(False):
                maxjax.config.update(option.name, False)
    finally:
        option.without_effect = told
        maxjax.config.update(option.name, True)
    assert [record.getMessage() for record in caplog.records] == [
        "jax_compiler_enable_remat_pass=False has no effect: a reason"]


def test_every_option_acts_or_says_why_not():
    """Every option in JAX's documentation is either implemented or explained."""
    source = "".join(path.read_text() for path in Path(maxjax.__file__).parent.rglob("*.py")
                     if path.name not in ("config.py", "accepted_options.py"))
    for name in jax.config.values:
        option = maxjax.config.option(name)
        if name in accepted_options.reasons or "topology_timeout" in name:
            continue
        variable = next((key for key, value in vars(config).items() if value is option), None)
        in_config = variable in ("debug_nans", "debug_infs", "no_execution", "logging_level")
        assert name in source or in_config or f"config.{variable}" in source, name


def test_options_without_effect_can_be_set():
    for name in accepted_options.reasons:
        option = maxjax.config.option(name)
        before = option.process_value
        other = not before if isinstance(before, bool) else before
        maxjax.config.update(name, other)
        assert maxjax.config.values[name] == other
        maxjax.config.update(name, before)
        with option(other):
            assert maxjax.config.values[name] == other


@pytest.mark.parametrize("name,value", [
    ("jax_foo", 1), ("jax_numpy_rank_promotion", "foo"), ("jax_transfer_guard", "foo"),
    ("jax_default_matmul_precision", "foo"), ("jax_optimization_level", 3),
    ("jax_random_seed_offset", "a")])
def test_what_update_refuses(name, value):
    assert_same_error(lambda j: j.config.update(name, value), whole=True)


def test_unknown_names():
    assert_same_error(lambda j: j.config.read("jax_foo"), whole=True)
    assert_same_error(lambda j: j.config.jax_foo, whole=True)


@pytest.mark.parametrize("name", [
    "transfer_guard", "transfer_guard_host_to_device", "transfer_guard_device_to_host",
    "transfer_guard_device_to_device", "explain_cache_misses", "enable_checks", "debug_key_reuse",
    "legacy_prng_key", "softmax_custom_jvp", "array_garbage_collection_guard", "thread_guard"])
def test_context_managers_without_effect(name):
    value = "allow" if "guard" in name or name == "legacy_prng_key" else False
    for j in LIBRARIES:
        with getattr(j, name)(value):
            assert float(j.numpy.sum(j.numpy.asarray(X))) == 3.0
    if name.startswith("transfer"):
        with pytest.raises(ValueError, match="must be None or in"), getattr(maxjax, name)("foo"):
            pass


def test_the_seed_offset():
    def run(j):
        j.config.update("jax_random_seed_offset", 5)
        try:
            return j.random.PRNGKey(3), j.random.key_data(j.random.key(0))
        finally:
            j.config.update("jax_random_seed_offset", 0)
    agree(run)


# --- disable_jit ----------------------------------------------------------------------------------

def looked(j, run):
    """A function's result under disable_jit, and whether the value it inspects is a tracer."""
    kinds = []

    def look(x):
        kinds.append("tracer" if isinstance(x, j.core.Tracer) else
                     "array" if isinstance(x, j.Array) else type(x).__name__)
        return x
    with j.disable_jit():
        result = run(j, look)
    return result, kinds


@pytest.mark.parametrize("run", [
    lambda j, look: j.lax.scan(lambda c, x: (look(c) + x, c * 2), 1.0, j.numpy.arange(3.0)),
    lambda j, look: j.lax.scan(lambda c, x: (look(c) + 1, None), 1, None, length=3),
    lambda j, look: j.lax.scan(lambda c, x: (look(c) + x, {"y": c}), j.numpy.float32(1), X,
                               reverse=True),
    lambda j, look: j.lax.scan(lambda c, x: (look(c) + 1, 3), 0, j.numpy.arange(2.0)),
    lambda j, look: j.lax.while_loop(lambda c: look(c) < 3, lambda c: c + 1, 0),
    lambda j, look: j.lax.while_loop(lambda c: look(c[0]) < 3, lambda c: (c[0] + 1, c[1] * 2),
                                     (j.numpy.int32(0), 2.0)),
    lambda j, look: j.lax.fori_loop(0, 3, lambda i, c: look(c) + look(i), 0),
    lambda j, look: j.lax.fori_loop(3, 0, lambda i, c: look(c) + i, 7),
    lambda j, look: j.lax.cond(True, lambda x: look(x) * 2, lambda x: x, 3.0),
    lambda j, look: j.lax.cond(j.numpy.bool_(False), look, lambda x: look(x) + 1, X),
    lambda j, look: j.lax.switch(7, [lambda x: look(x) * 2, lambda x: look(x) + 1], 3.0),
    lambda j, look: j.lax.switch(j.numpy.int32(-2), [lambda x: look(x) * 2, lambda x: x], 3.0),
    lambda j, look: j.lax.map(lambda x: look(x) * 2, j.numpy.arange(3.0)),
    lambda j, look: j.vmap(lambda n: j.lax.scan(
        lambda c, x: (look(c) + x, c), n, j.numpy.arange(3.0)))(j.numpy.arange(2.0)),
    lambda j, look: j.grad(lambda n: j.lax.while_loop(
        lambda c: look(c) < 10, lambda c: c * 2, n))(2.0),
    lambda j, look: j.grad(lambda n: j.lax.cond(n > 1, lambda x: look(x) ** 2, look, n))(2.0),
    lambda j, look: j.jit(lambda x: look(x) + 1)(1.0),
    lambda j, look: j.jit(lambda x, n: look(x) * n, static_argnums=1)(j.numpy.asarray(X), 2),
])
def test_disable_jit_runs_python(run):
    expected, their_kinds = looked(jax, run)
    result, kinds = looked(maxjax, run)
    assert kinds == their_kinds
    agree(lambda j: [j.numpy.asarray(x) for x in j.tree.leaves(
        result if j is maxjax else expected)])


def test_disable_jit_where_what_decides_is_traced():
    """vmap of a loop whose length differs: the primitive is used."""
    def run(j):
        with j.disable_jit():
            return j.vmap(lambda n: j.lax.while_loop(lambda c: c < n, lambda c: c + 1, 0))(
                j.numpy.arange(3))
    agree(run)


@pytest.mark.parametrize("run", [
    lambda j: j.lax.scan(lambda c, x: (c, x), 1.0, j.numpy.zeros(0)),
    lambda j: j.jit(lambda x: x).lower(1.0).compile()(2.0)])
def test_disable_jit_errors(run):
    def disabled(j):
        with j.disable_jit():
            return run(j)
    assert_same_error(disabled, whole=True)


# --- debug_nans and debug_infs --------------------------------------------------------------------

NANS = {
    "op": lambda j, x: x / 0.0,
    "log": lambda j, x: j.numpy.log(x - 1),
    "jit": lambda j, x: j.jit(lambda v: j.numpy.log(v - 1) * 2)(x),
    "nested jit": lambda j, x: j.jit(lambda v: j.jit(lambda w: j.numpy.log(w - 1))(v) + 1)(x),
    "vmap": lambda j, x: j.vmap(lambda v: j.numpy.log(v - 1))(x),
    "scan": lambda j, x: j.lax.scan(lambda c, v: (c / v - np.inf, c), 1.0, x * 0),
    "cond": lambda j, x: j.lax.cond(True, lambda v: v / 0.0, lambda v: v, x),
    "while": lambda j, x: j.lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] / 0.0), (0, 0.0)),
    "in a jitted loop": lambda j, x: j.jit(
        lambda: j.lax.scan(lambda c, v: (c / v - np.inf, c), 1.0, j.numpy.zeros(2)))(),
    "grad": lambda j, x: j.grad(lambda v: j.numpy.where(
        v > 0, j.numpy.sqrt(v) / v, 0.0))(0.0),
    "bfloat16": lambda j, x: j.numpy.zeros(1, "bfloat16") / j.numpy.zeros(1, "bfloat16"),
    "complex": lambda j, x: j.numpy.array([1j]) / 0,
    "an input handed on": lambda j, x: j.jit(lambda v: v)(np.array([np.nan, 1], np.float32)),
    # These raise nothing, in both.
    "inside alone": lambda j, x: j.jit(lambda v: j.numpy.isnan(v / v))(x * 0),
    "put": lambda j, x: j.device_put(np.array([np.nan], np.float32)),
    "fine": lambda j, x: j.jit(lambda v: v * 2)(x),
}


def outcome(j, name, option):
    """None, or the error's type and the primitive that it blames."""
    x = j.numpy.asarray(X)
    with option(True):
        try:
            j.block_until_ready(NANS[name](j, x))
        except FloatingPointError as error:
            text = first_line(error)
            return text if "encountered in" in text and "output of" not in text else "somewhere"
    return None


@pytest.mark.parametrize("name", NANS)
def test_debug_nans(name):
    logging.disable(logging.ERROR)
    try:
        expected = outcome(jax, name, jax.debug_nans)
    finally:
        logging.disable(logging.NOTSET)
    assert outcome(maxjax, name, maxjax.debug_nans) == expected


@pytest.mark.parametrize("function", [
    lambda j, x: j.jit(lambda v: 1 / v)(x), lambda j, x: x / 0.0, lambda j, x: j.numpy.log(x)])
def test_debug_infs(function):
    def run(j):
        with j.debug_infs(True):
            return j.block_until_ready(function(j, j.numpy.asarray(X)))
    assert_same_error(run)


def blamed(j, call):
    """The error, the lines of this file that its traceback has, its cause, and what is printed."""
    with j.debug_nans(True), contextlib.redirect_stdout(io.StringIO()) as printed, pytest.raises(
            ArithmeticError) as caught:
        call(j)
    error = caught.value
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__)
             if frame.f_code.co_filename == __file__]
    cause = type(error.__cause__).__name__
    return (type(error).__name__, first_line(error), lines[1:], cause,
            set(printed.getvalue().splitlines()))


def bad(j, v):
    doubled = v * 2
    return j.numpy.log(doubled - 10)


@pytest.mark.parametrize("call", [
    lambda j: j.jit(functools.partial(bad, j))(X),
    lambda j: j.jit(lambda v: 0. / v)(0.),
    lambda j: j.jit(lambda v: j.jit(functools.partial(bad, j))(v) + 1)(X),
    lambda j: j.vmap(j.jit(functools.partial(bad, j)))(X),
    lambda j: j.grad(j.numpy.linalg.norm)(j.numpy.zeros((3, 3)))])
def test_the_function_is_run_again_without_jit(call):
    """The traceback ends with the line; that of a backward pass is in the cause."""
    ours, theirs = blamed(maxjax, call), blamed(jax, call)
    assert ours[:3] == theirs[:3]
    assert ("BeforeTransformation" in ours[3]) == ("BeforeTransformation" in theirs[3])
    if "BeforeTransformation" not in ours[3]:
        assert ours[4] == theirs[4]


def test_a_program_ahead_of_time_names_the_line():
    def bad(v):
        doubled = v * 2
        return maxjax.numpy.log(doubled - 10)       # the line

    with maxjax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        maxjax.jit(bad).lower(X).compile()(X)
    line = bad.__code__.co_firstlineno + 2
    assert str(caught.value).startswith("invalid value (nan) encountered in log\n")
    assert f"test_config.py:{line} " in str(caught.value)


@pytest.mark.parametrize("function, x", [
    (lambda x: x * 3.0, np.nan),
    (lambda x: (maxjax.numpy.nan, x + 2), 3.0),
], ids=["an input", "a literal"])
def test_a_value_that_no_operation_produced_is_told_so(function, x):
    def message(j):
        with j.debug_nans(True), pytest.raises(FloatingPointError) as caught:
            j.jit(function)(x)
        return str(caught.value)

    for j in (maxjax, jax):
        assert re.search("the de-optimized function did not (?s:.)*input", message(j))


def test_nothing_is_checked_outside():
    with maxjax.debug_nans(True):
        pass
    assert not config.status.checks_values
    assert np.isnan(np.asarray(maxjax.numpy.log(maxjax.numpy.asarray(X) - 1))).any()


def test_donated_arguments_are_there_for_the_second_run():
    with maxjax.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        maxjax.jit(lambda v: maxjax.numpy.log(v - 1), donate_argnums=0)(maxjax.numpy.asarray(X))


@pytest.mark.tier1
@pytest.mark.xdist_group("mojo")
def test_debug_nans_of_a_compiled_program():
    jitted = maxjax.jit(lambda v: maxjax.numpy.log(v - 1) * 2)
    with config.compile_mode("always"):
        jitted(X).block_until_ready()
        assert program_of(jitted._lookup((X,), {}).closed).compiled is not None
        with maxjax.debug_nans(True), pytest.raises(FloatingPointError, match="in log"):
            jitted(X)


# --- promotion ------------------------------------------------------------------------------------

def wide_and_narrow(j):
    return j.numpy.ones((2, 3)), j.numpy.ones(3)


@pytest.mark.parametrize("run", [
    lambda j, a, b: a + b, lambda j, a, b: j.numpy.minimum(a, b),
    lambda j, a, b: j.jit(lambda x, y: x * y)(a, b)])
def test_rank_promotion(run):
    def raising(j):
        with j.numpy_rank_promotion("raise"):
            return run(j, *wide_and_narrow(j))
    assert_same_error(raising, whole=True)
    for j in LIBRARIES:
        with j.numpy_rank_promotion("warn"), pytest.warns(
                UserWarning, match=r"rank promotion for \w+ on shapes \(2, 3\) \(3,\)"):
            run(j, *wide_and_narrow(j))


@pytest.mark.parametrize("run", [
    lambda j, a, b: a + 1, lambda j, a, b: a + j.numpy.ones(()), lambda j, a, b: a @ b,
    lambda j, a, b: j.numpy.where(a > 0, b, 0.0), lambda j, a, b: j.numpy.broadcast_to(b, (2, 3)),
    lambda j, a, b: j.numpy.var(a, 0), lambda j, a, b: a.at[:].set(b)])
def test_what_rank_promotion_allows(run):
    def strict(j):
        with j.numpy_rank_promotion("raise"):
            return run(j, *wide_and_narrow(j))
    agree(strict)


@pytest.mark.parametrize("run", [
    lambda j: j.numpy.ones(2) + j.numpy.arange(2),
    lambda j: j.numpy.ones(2) + j.numpy.ones(2, "bfloat16"),
    lambda j: j.numpy.where(True, j.numpy.ones(2), j.numpy.arange(2)),
    lambda j: j.numpy.concatenate([j.numpy.ones(2), j.numpy.arange(2)]),
    lambda j: j.numpy.result_type("float32", "int32"),
    lambda j: j.numpy.arange(2) @ j.numpy.ones(2),
    lambda j: j.numpy.ones(3).at[0].set(j.numpy.int32(1))])
def test_strict_dtype_promotion(run):
    def strict(j):
        with j.numpy_dtype_promotion("strict"):
            return run(j)
    ours, theirs = errors_of(strict)
    assert type(ours).__name__ == type(theirs).__name__ == "TypePromotionError"
    assert "no available implicit dtype promotion path" in str(ours)


@pytest.mark.parametrize("run", [
    lambda j: j.numpy.ones(2) + 1, lambda j: j.numpy.ones(2) * 2.5,
    lambda j: j.numpy.sin(j.numpy.arange(2)), lambda j: j.numpy.mean(j.numpy.arange(3)),
    lambda j: j.numpy.ones(3)[j.numpy.arange(2, dtype="int8")], lambda j: j.numpy.add(1, 2.0),
    lambda j: j.numpy.arange(2) / j.numpy.arange(1, 3)])
def test_what_strict_promotion_allows(run):
    def strict(j):
        with j.numpy_dtype_promotion("strict"):
            return run(j)
    agree(strict)


@pytest.mark.parametrize("precision", [
    "float32", "bfloat16", "highest", "tensorfloat32", "F32_F32_F32", "default"])
def test_the_default_matmul_precision_is_written_down(precision):
    def text(j):
        with j.default_matmul_precision(precision):
            return str(j.make_jaxpr(lambda a: a @ a)(np.ones((2, 2), np.float32)))
    assert text(maxjax) == text(jax)


# --- leaks ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("transform", [
    lambda j, f: j.jit(f)(1.0), lambda j, f: j.vmap(f)(j.numpy.asarray(X)),
    lambda j, f: j.lax.scan(lambda c, x: (f(c), None), 1.0, j.numpy.asarray(X))])
def test_leaked_tracers(transform, request):
    # JAX searches all objects for references to a tracer: once is enough.
    for j in LIBRARIES if request.node.callspec.indices["transform"] == 0 else (maxjax,):
        leaked = []
        # What other tests left need not be searched.
        gc.freeze()
        request.addfinalizer(gc.unfreeze)

        def function(x, leaked=leaked):
            leaked.append(x * 2)
            return x

        with j.checking_leaks(), pytest.raises(Exception, match="Leaked trace") as caught:
            transform(j, function)
        assert type(caught.value) is Exception
        leaked.clear()
        gc.collect()
        transform(j, function)      # without the option it is an error to use it
        with pytest.raises(j.errors.UnexpectedTracerError, match="side effect") as used:
            leaked[-1] + 1
        assert "checking_leaks" in str(used.value)
        leaked.clear()


def test_nothing_leaks():
    with maxjax.checking_leaks():
        def step(c, x):
            return maxjax.lax.cond(x > 0, lambda v: v * 2, lambda v: v, c), maxjax.numpy.sin(c)
        assert float(maxjax.jit(maxjax.grad(lambda v: maxjax.lax.scan(
            step, v, maxjax.numpy.asarray(X))[0]))(1.0)) == 4.0
        maxjax.vmap(maxjax.jit(maxjax.checkpoint(maxjax.nn.relu)))(X)
        maxjax.jit(maxjax.vmap(maxjax.custom_jvp(maxjax.numpy.tanh)))


# --- compile time, structs and the rest -----------------------------------------------------------

def test_ensure_compile_time_eval():
    def run(j):
        def function(x):
            with j.ensure_compile_time_eval():
                count = int(j.numpy.sum(j.numpy.arange(4)))
                inner = j.jit(lambda v: v + 1)(2)
                shifted = x + 1         # uses the tracer, so it is still traced
            return shifted * count + int(inner)
        return j.jit(function)(2.0), j.vmap(function)(X), j.grad(function)(1.0)
    agree(run)


@pytest.mark.parametrize("run", [
    lambda s, j: repr(s((2, 3), np.float32)), lambda s, j: repr(s([2], "int8", weak_type=True)),
    lambda s, j: repr(s((), np.float32, is_ref=True)), lambda s, j: len(s((2, 3), np.float32)),
    lambda s, j: [getattr(s((2, 3), np.float16), name) for name in (
        "shape", "dtype", "ndim", "size", "sharding", "weak_type", "is_ref", "manual_axis_type")],
    lambda s, j: repr(s((2,), np.int32).format),
    lambda s, j: [s((2,), np.int32) == other for other in (
        s((2,), "int32"), s((2,), np.int32, weak_type=True), s((3,), np.int32), 1)],
    lambda s, j: hash(s((2,), np.int32)) == hash(s([2], "int32")),
    lambda s, j: [repr(s((2,), np.int32).update(**change)) for change in (
        {"shape": (4,)}, {"dtype": np.int8}, {"weak_type": True}, {"foo": 1})],
    lambda s, j: [repr(s.like(x)) for x in (np.ones(3, np.float32), 1.0, j.numpy.ones(2, "int8"))],
    lambda s, j: sorted(name for name in dir(s((), np.int32)) if name[0] != "_"),
    lambda s, j: pickle.loads(pickle.dumps(s((2,), np.int32))) == s((2,), np.int32),
    lambda s, j: len(s((), np.float32)), lambda s, j: s((2,), None), lambda s, j: s((2,), "foo"),
    lambda s, j: s(3, np.float32), lambda s, j: setattr(s((2,), np.int8), "shape", (1,)),
])
def test_shape_dtype_struct(run):
    results = []
    for j in LIBRARIES:
        try:
            results.append(run(j.ShapeDtypeStruct, j))
        except Exception as error:
            results.append((type(error), first_line(error)))
    assert results[0] == results[1]


@pytest.mark.parametrize("value", [1, 1.0, True, 1j, np.ones(2), np.float32(1), X])
def test_typeof_a_value_is_that_of_jax(value):
    assert str(maxjax.typeof(value)) == str(jax.typeof(value))
    assert_same_error(lambda j: j.typeof("a"), whole=True)


def test_live_arrays():
    before = len(maxjax.live_arrays())
    x = maxjax.numpy.asarray(X) + 1
    assert any(array is x for array in maxjax.live_arrays())
    assert len(maxjax.live_arrays("cpu")) == before + 2 or len(maxjax.live_arrays()) > before
    x.delete()
    assert not any(array is x for array in maxjax.live_arrays())


def test_environment_info():
    ours = maxjax.print_environment_info(return_string=True)
    theirs = jax.print_environment_info(return_string=True)
    for name in (f"jaxlib: {JAX_VERSION}", f"numpy:  {np.__version__}", "python:", "device info:",
                 "process_count:", "platform:"):
        assert name in ours and name in theirs


def test_no_tracing():
    def run(j):
        jitted = j.jit(lambda x: x)
        jitted(1.0)
        with j.no_tracing(True):
            jitted(2.0)
            return j.jit(lambda x: x + 1)(1.0)
    ours, theirs = errors_of(run)
    assert type(ours) is type(theirs) is RuntimeError
    assert "'no_tracing' is set" in str(ours)


@contextlib.contextmanager
def _debug_log_modules(j, names):
    j.config.update("jax_debug_log_modules", names)
    try:
        yield
    finally:
        j.config.update("jax_debug_log_modules", "")


@pytest.mark.parametrize("logging_on", [
    lambda j: contextlib.nullcontext(), lambda j: j.log_compiles(True),
    *[functools.partial(_debug_log_modules, names=names) for names in (
        "jax", "jax._src.dispatch", "jax._src.interpreters.pxla",
        "jax._src.dispatch,jax._src.interpreters.pxla", "json")]])
def test_logs_of_compilations(logging_on, caplog):
    """What is traced and compiled is logged as in JAX, by loggers of JAX's names."""
    def records(j):
        j.jit(lambda x: x - 1)(X)       # whatever the first call logs
        caplog.clear()
        with logging_on(j):
            j.jit(lambda x: x * 3)(X)
        return [(record.name, record.levelname, re.sub(r"[\d.]+ sec.*|Argument mapping.*", "",
                                                       record.getMessage()).strip())
                for record in caplog.records
                if re.match("Finished tracing|Compiling", record.getMessage())]
    assert records(maxjax) == records(jax)


def test_named_scopes_and_calls():
    assert_same_error(lambda j: j.named_scope(3), whole=True)
    for j in LIBRARIES:
        with j.named_scope("a"):
            assert j.named_scope("b")(lambda v: v)(1) == 1
        assert float(j.named_call(lambda v: v * 2, name="foo")(1.0)) == 2.0


def test_options_are_a_threads_own():
    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("error")
        stack.enter_context(maxjax.debug_nans(True))
        assert maxjax.config.jax_debug_nans and not maxjax.config.jax_debug_infs
    assert not maxjax.config.jax_debug_nans
