"""Retracing, donation, and jit's other arguments, against JAX."""

from __future__ import annotations

import concurrent.futures
import functools
import time
import warnings

import jax
import numpy as np
import pytest

import maxjax
from maxjax._higher_order import cache_misses
from maxjax._ir.jaxpr import derived
from tests.support.against_jax import agree, assert_same_error, errors_of

X = np.arange(3, dtype=np.float32)
FAQ = "https://docs.jax.dev/en/latest/201/jit.html#jax-201-buffer-donation"


def counted():
    runs = []

    def function(*args, **kwargs):
        runs.append(1)
        leaves = jax.tree.leaves((args, kwargs))
        return sum((x * 2 for x in leaves if not isinstance(x, str)), start=0.0)
    return function, runs


def same_counts(steps):
    """``steps(j, function)`` returns callables; how often the function ran after each, in both."""
    counts = []
    for j in (maxjax, jax):
        function, runs = counted()
        found = []
        for step in steps(j, function):
            step()
            found.append(len(runs))
        counts.append(found)
    assert counts[0] == counts[1]
    return counts[0]


# --- options --------------------------------------------------------------------------------------

@pytest.mark.parametrize("context", [
    lambda j: j.default_matmul_precision("float32"), lambda j: j.numpy_rank_promotion("warn"),
    lambda j: j.numpy_dtype_promotion("strict"), lambda j: j.debug_nans(True),
    lambda j: j.debug_infs(True), lambda j: j.log_compiles(True),
    lambda j: j.threefry_partitionable(False), lambda j: j.enable_x64(True),
    lambda j: j.default_device(j.devices()[0]), lambda j: j.disable_jit(True),
    lambda j: j.named_scope("a"), lambda j: j.transfer_guard("allow"),
    lambda j: j.checking_leaks(), lambda j: j.explain_cache_misses(False)])
def test_options_that_trace_again(context):
    def steps(j, function):
        jitted = j.jit(function)
        array = j.numpy.asarray(X)

        def within():
            with context(j):
                jitted(array)
        return [lambda: jitted(array), within, lambda: jitted(array), within]
    same_counts(steps)


# --- one function, many jits ----------------------------------------------------------------------

def test_one_function_in_many_forms():
    """Traces belong to the function: the next jit, eval_shape and make_jaxpr find them."""
    def steps(j, function):
        one, two = j.jit(function), j.jit(function)
        x = j.numpy.asarray(1.0)
        return [
            lambda: one(x), lambda: two(x), lambda: two(1), lambda: j.jit(function)(x),
            lambda: j.jit(function, keep_unused=True)(x), lambda: j.jit(function, inline=True)(x),
            lambda: j.jit(function, donate_argnums=0)(j.numpy.asarray(1.0) + 0),
            lambda: one.lower(x), lambda: one.trace(x), lambda: one.eval_shape(x),
            lambda: j.eval_shape(function, x), lambda: j.make_jaxpr(function)(x),
            lambda: j.make_jaxpr(one)(x), lambda: j.grad(one)(x), lambda: j.grad(two)(x),
            lambda: j.vmap(one)(X), lambda: j.vmap(two)(X),
            lambda: j.jit(lambda v: one(v) + two(v))(x),
            lambda: one.lower(j.ShapeDtypeStruct((2,), np.float32)), lambda: one(np.ones(2, "f4")),
            one.clear_cache, lambda: one(x), lambda: two(x),
            j.clear_caches, lambda: one(x), lambda: two(x)]
    same_counts(steps)


def test_new_closures_and_partials():
    def steps(j, function):
        bound = functools.partial(function, 1.0)

        def again(v):
            return j.jit(lambda w: function(w))(v)

        class Holder:
            def __init__(self):
                self.method = functools.partial(type(self).call, self)

            def call(self, v):
                return function(v)

            @functools.partial(j.jit, static_argnums=0)
            def static(self, v):
                return function(v)

        one, two = Holder(), Holder()
        return [lambda: again(1.0), lambda: again(1.0),
                lambda: j.jit(functools.partial(function, 1.0))(2.0),
                lambda: j.jit(functools.partial(function, 1.0))(2.0),
                lambda: j.jit(bound)(2.0), lambda: j.jit(bound)(2.0),
                lambda: one.static(1.0), lambda: one.static(2.0), lambda: two.static(1.0),
                lambda: j.jit(one.call)(1.0), lambda: j.jit(one.call)(1.0),
                lambda: j.jit(j.vmap(function))(X), lambda: j.jit(j.vmap(function))(X)]
    same_counts(steps)


def test_loops_and_branches():
    def steps(j, function):
        def carry(c, x):
            return j.numpy.float32(function(c)), None

        def step(v):
            return function(v) - v
        x = j.numpy.float32(1)
        return [lambda: j.lax.scan(carry, x, X), lambda: j.lax.scan(carry, x, X),
                lambda: j.jit(lambda y: j.lax.scan(carry, y, X)[0])(x),
                lambda: j.lax.while_loop(lambda v: v < 0, step, x),
                lambda: j.lax.while_loop(lambda v: v < 0, step, x),
                lambda: j.lax.cond(True, step, lambda v: v, x),
                lambda: j.lax.cond(True, step, lambda v: v, x),
                lambda: j.checkpoint(step)(x), lambda: j.checkpoint(step)(x)]
    same_counts(steps)


def test_types_and_trees():
    def steps(j, function):
        jitted = j.jit(function)
        calls = [(1.0,), (2,), (np.float32(1),), (j.numpy.asarray(1.0),), (X,), (X[:2],),
                 (X.astype(np.int8),), ([X],), ((X,),), ({"a": X},), ({"b": X},), (X, X), (X,)]
        return [functools.partial(jitted, *call) for call in calls] + [
            lambda: jitted(x=X), lambda: jitted(y=X), lambda: jitted(X, x=X)]
    same_counts(steps)


def test_static_arguments():
    def steps(j, function):
        jitted = j.jit(lambda x, n: function(x) * len(n), static_argnums=1)
        named = j.jit(lambda x, mode="a": function(x), static_argnames="mode")
        return [lambda: jitted(1.0, "a"), lambda: jitted(1.0, "b"), lambda: jitted(2.0, "a"),
                lambda: jitted(1.0, (1,)), lambda: jitted(1.0, (True,)), lambda: named(1.0),
                lambda: named(1.0, mode="a"), lambda: named(1.0, "a"), lambda: named(1.0, mode="b")]
    same_counts(steps)


def test_clearing_everything_lets_go_of_programs():
    jitted = maxjax.jit(lambda x: x + 1)
    jitted(X)
    maxjax.clear_caches()
    assert jitted._cache_size() == 0
    np.testing.assert_array_equal(np.asarray(jitted(X)), X + 1)


# --- donation -------------------------------------------------------------------------------------

DONATIONS = {
    "itself": (lambda j, v: v, {}),
    "a new value": (lambda j, v: v + 1, {}),
    "unused": (lambda j, v: 1, {}),
    "unused but kept": (lambda j, v: 1, {"keep_unused": True}),
    "kept, and its memory taken": (lambda j, v: j.numpy.zeros(3), {"keep_unused": True}),
    "a smaller result": (lambda j, v: v[:2], {}),
    "as many bytes": (lambda j, v: v.astype("int32"), {}),
    "a sum": (lambda j, v: v.sum(), {}),
    "one result for two": (lambda j, v, w: v + w, {"donate_argnums": (0, 1)}),
    "two for two": (lambda j, v, w: (v + w, w), {"donate_argnums": (0, 1)}),
    "another's": (lambda j, v, w: w * 2, {}),
    "by name": (lambda j, v: v + 1, {"donate_argnums": None, "donate_argnames": "v"}),
    "by a name that no number may stand for": (
        lambda j, v: v + 1, {"donate_argnums": (), "donate_argnames": "v"}),
}


@pytest.mark.parametrize("name", DONATIONS)
def test_what_donation_deletes(name):
    function, options = DONATIONS[name]

    def run(j):
        count = function.__code__.co_argcount - 1
        arrays = [j.numpy.asarray(X) + n for n in range(count)]
        # The names of the parameters matter.
        wrapped = (lambda v: function(j, v)) if count == 1 else (lambda v, w: function(j, v, w))
        jitted = j.jit(wrapped, **{"donate_argnums": 0, **options})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results = jitted(*arrays)
        return (results, [x.is_deleted() for x in arrays]), [
            str(x.message) for x in caught if x.category is UserWarning]

    (ours, said), (theirs, expected) = run(maxjax), run(jax)
    agree(lambda j: ours if j is maxjax else theirs)
    assert said == expected


def test_useless_donation_is_told_once():
    jitted = maxjax.jit(lambda v: v[:2], donate_argnums=0)
    with pytest.warns(UserWarning, match=rf"not usable: float32\[3\].\n.*{FAQ}"):
        jitted(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jitted(X)
        maxjax.jit(lambda v: v[:2], donate_argnums=0).trace(X)
    with pytest.warns(UserWarning, match="not usable"):
        maxjax.jit(lambda v: v[:1], donate_argnums=0).lower(X)


@pytest.mark.parametrize("use", [
    lambda j, x: np.asarray(x), lambda j, x: repr(x), lambda j, x: float(x[0]),
    lambda j, x: x.tolist()])
def test_use_after_donation(use):
    def run(j):
        x = j.numpy.asarray(X) + 1
        j.jit(lambda v: v * 2, donate_argnums=0)(x)
        return use(j, x)
    ours, theirs = errors_of(run)
    assert type(ours) is type(theirs) is RuntimeError and str(ours) == str(theirs)


@pytest.mark.parametrize("use", [
    lambda j, x: x + 1, lambda j, x: j.jit(lambda v: v)(x), lambda j, x: j.numpy.sum(x)])
def test_computing_with_a_donated_array(use):
    def run(j):
        x = j.numpy.asarray(X) + 1
        j.jit(lambda v: v * 2, donate_argnums=0)(x)
        return use(j, x)
    ours, theirs = errors_of(run)
    # JAX raises a ValueError from its runtime if its executable came from the cache.
    assert type(ours) is RuntimeError and isinstance(theirs, (RuntimeError, ValueError))
    assert "deleted" in str(ours) and "deleted" in str(theirs)


def test_an_argument_donated_and_used():
    def run(j):
        x = j.numpy.asarray(X) + 1
        return j.jit(lambda v, w: v + w, donate_argnums=0)(x, x)
    assert_same_error(run, whole=True)


def test_a_traced_argument_is_not_deleted():
    def run(j):
        x = j.numpy.asarray(X) + 1
        inner = j.jit(lambda v: v + 1, donate_argnums=0)
        return j.jit(lambda v: inner(v) + v)(x), x.is_deleted()
    agree(run)


# --- arguments of jit -----------------------------------------------------------------------------

@pytest.mark.parametrize("options", [
    {"static_argnums": 3}, {"static_argnums": "a"}, {"static_argnames": 1},
    {"donate_argnums": 5}, {"donate_argnums": 0, "static_argnums": 0},
    {"static_argnames": "w"}, {"donate_argnames": "w"}])
def test_arguments_that_do_not_fit(options):
    assert_same_error(lambda j: j.jit(lambda v, n=1: v, **options)(1.0))


@pytest.mark.parametrize("value", [[1], {"a": 1}, {1}, np.ones(2), bytearray(b"a")])
def test_static_values_must_hash(value):
    assert_same_error(lambda j: j.jit(lambda v, n: v, static_argnums=1)(1.0, value), whole=True)
    assert_same_error(lambda j: j.jit(lambda v, n: v, static_argnames="n")(1.0, n=value),
                      whole=True)


def test_device_and_backend():
    def run(j):
        with pytest.warns(DeprecationWarning, match="backend and device argument on jit"):
            one = j.jit(lambda v: v + 1, device=j.devices()[0])
        with pytest.warns(DeprecationWarning):
            two = j.jit(lambda v: v + 1, backend="cpu")
        return one(X), two(X), j.jit(lambda v: v, keep_unused=True, compiler_options={})(X)
    agree(run)
    for j in (maxjax, jax):
        with pytest.warns(DeprecationWarning), pytest.raises(
                ValueError, match="can't specify both a device and a backend for jit"):
            j.jit(lambda v: v, backend="cpu", device=j.devices()[0])(X)


def test_a_compiled_stage_is_called_as_in_jax():
    def run(j):
        jitted = j.jit(lambda x, y, n: {"out": x[:n] @ y[:n]}, static_argnums=2)
        traced = jitted.trace(j.ShapeDtypeStruct((4,), np.float32), np.ones(4, np.float32), 2)
        lowered = traced.lower()
        compiled = lowered.compile()
        return (compiled(np.ones(4, np.float32), np.ones(4, np.float32)),
                compiled(np.ones(4, np.float32), np.full(4, 3, np.float32)))
    agree(run)
    for j in (maxjax, jax):
        stage = j.jit(lambda x: x * 2).trace(1.0)
        assert stage.out_info.shape == () and stage.fun_name == "<lambda>"
        assert str(stage.jaxpr) == str(maxjax.make_jaxpr(lambda x: x * 2)(1.0))
        assert str(stage.lower().in_tree) == str(stage.lower().compile().in_tree)
        assert j.jit(lambda x: x[None]).eval_shape(X).shape == (1, 3)


def test_that_nothing_follows_from_a_jaxpr_is_kept_with_it():
    asked = []

    @derived
    def answer(closed, *arguments):
        asked.append(arguments)

    closed = maxjax.make_jaxpr(maxjax.numpy.sin)(1.0)
    assert [answer(closed), answer(closed), answer(closed, 1), answer(closed, 1)] == [None] * 4
    assert asked == [(), (1,)]


def test_cache_misses_are_explained_while_others_trace(monkeypatch):
    monkeypatch.setattr(cache_misses, "_changes", lambda *_: time.sleep(1e-4) or [])
    f = maxjax.jit(lambda x: x)

    def calls(start):
        with maxjax.explain_cache_misses(True):
            for size in range(start, 80, 4):
                f(np.zeros(size))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(calls, range(4)))
