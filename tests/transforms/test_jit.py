"""jit: retracing, static and donated arguments, and how functions are called."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from typing import NamedTuple

import jax
import numpy as np
import pytest

import maxjax
from maxjax._base import config
from tests.support.against_jax import agree, assert_same_error, errors_of

X = np.array([0.5, -1.25, 2.0], np.float32)


class Point(NamedTuple):
    x: object
    y: object


def traces(j, calls, **options):
    """How many times a function has been traced after each call."""
    count = 0

    def fun(*args, **kwargs):
        nonlocal count
        count += 1
        leaves = [x for x in jax.tree_util.tree_leaves((args, kwargs)) if not isinstance(x, str)]
        return sum(j.numpy.sum(j.numpy.asarray(x)) for x in leaves)

    jitted = j.jit(fun, **options)
    counts = []
    for args, kwargs in calls(j):
        jitted(*args, **kwargs)
        counts.append(count)
    return counts


def arguments(*calls):
    return lambda j: [(call, {}) for call in calls]


@pytest.mark.parametrize("calls,options", [
    (arguments((1.0,), (2.0,), (-0.0,), (float("nan"),)), {}),
    (arguments((1,), (2,), (True,), (1.0,), (1j,)), {}),
    (arguments((1.0,), (np.float32(1),), (np.float64(1),), (np.ones(()),)), {}),
    (arguments((np.float32(1),), (np.float64(1),), (np.int32(1),), (np.int64(1),)), {}),
    (arguments((np.ones(2, np.float32),), (np.ones(2),), (np.ones(3),), (np.ones((2, 1)),)), {}),
    (arguments(([1.0, 2.0],), ((1.0, 2.0),), ([1.0],), ({"a": 1.0},), ({"b": 1.0},)), {}),
    (arguments((None,), ((),), ((None,),)), {}),
    (arguments((Point(1.0, 2.0),), ((1.0, 2.0),), (Point(3.0, 4.0),)), {}),
    (arguments((1.0, 2), (1.0, 3), (2.0, 2), (1.0, 2.0), (1.0, True), (1.0, 1)),
     {"static_argnums": 1}),
    (arguments((1.0, "a"), (1.0, "b"), (1.0, "a")), {"static_argnums": (1,)}),
    (arguments((1.0, (1, 2)), (1.0, (1, 2)), (1.0, (2, 1))), {"static_argnums": -1}),
    (lambda j: [((1.0,), {}), ((), {"a": 1.0}), ((), {"b": 1.0}), ((1.0,), {"a": 1.0})], {}),
    (lambda j: [((), {"a": 1.0, "b": 2.0}), ((), {"b": 1.0, "a": 2.0})], {}),
    (lambda j: [((1.0,), {"n": 2}), ((1.0,), {"n": 3}), ((2.0,), {"n": 2})],
     {"static_argnames": "n"}),
    (lambda j: [((j.numpy.ones(2),), {}), ((np.ones(2, np.float32),), {}),
                ((j.numpy.ones(2) * 3,), {})], {}),
    (lambda j: [((j.numpy.asarray(1.0),), {}), ((1.0,), {}), ((j.numpy.float32(1),), {})], {}),
])
def test_trace_counts(calls, options):
    assert traces(maxjax, calls, **options) == traces(jax, calls, **options)


def test_the_trace_count_of_mixed_calls():
    """1., 2., 1, an array, NumPy scalars and arrays: four types, six signatures at most."""
    calls = lambda j: [((x,), {}) for x in (
        1.0, 2.0, 1, j.numpy.float32(1), np.float32(1), np.ones(2), np.ones(2, np.float32),
        np.ones(2, np.float64))]
    assert traces(maxjax, calls)[-1] == traces(jax, calls)[-1] == 4


def test_options_that_change_programs_trace_again():
    jitted = maxjax.jit(lambda x: maxjax.numpy.asarray(x) * 2)
    assert jitted(1.5).dtype == np.float32
    with config.enable_x64(True):
        assert jitted(1.5).dtype == np.float64
    assert jitted(1.5).dtype == np.float32
    assert jitted._cache_size() == 2


def test_clear_cache():
    count = []
    jitted = maxjax.jit(lambda x: (count.append(1), x)[1])
    jitted(1.0)
    jitted.clear_cache()
    assert jitted._cache_size() == 0
    jitted(1.0)
    assert len(count) == 2


def test_a_closure_keeps_what_it_was_traced_with():
    def run(j):
        scale = 2.0
        jitted = j.jit(lambda x: x * scale)
        first = jitted(3.0)
        scale = 5.0
        return first, jitted(3.0), jitted(np.float32(3))
    agree(run)


# --- static arguments -----------------------------------------------------------------------------

def power(x, n, flag=False):
    assert isinstance(n, int)
    return (x ** n, n) if flag else x ** n


@pytest.mark.parametrize("options", [
    {"static_argnums": 1}, {"static_argnums": (1, 2)}, {"static_argnames": "n"},
    {"static_argnames": ("n", "flag")}, {"static_argnums": (1,), "static_argnames": ("n",)}])
def test_static_arguments_by_number_and_by_name(options):
    def run(j):
        jitted = j.jit(power, **options)
        return jitted(X, 3), jitted(X, n=2), jitted(x=X, n=3)
    agree(run)


def test_static_flags_change_the_structure():
    agree(lambda j: [j.jit(power, static_argnums=(1, 2))(2.0, 3, flag) for flag in (True, False)])


def test_static_values_of_equal_hash_stay_apart():
    """hash(-1) == hash(-2), and 1 == 1.0 == True."""
    def run(j):
        total = j.jit(lambda x, axis: j.numpy.sum(x * j.numpy.arange(4.0).reshape(2, 2), axis=axis),
                      static_argnums=1)
        same = j.jit(lambda x, n: x * n, static_argnums=1)
        square = np.arange(4, dtype=np.float32).reshape(2, 2)
        return (total(square, -1), total(square, -2), total(square, -1), same(np.int32(2), 1),
                same(np.int32(2), 1.0), same(np.int32(2), True), same(2, 1.0), same(2, 1))
    agree(run)


def test_static_errors():
    assert_same_error(lambda j: j.jit(lambda x, n: x * n, static_argnums=1)(1.0, [1]), whole=True)
    assert_same_error(lambda j: j.jit(lambda x, n: x * n, static_argnames="m")(1.0, 3), whole=True)
    assert_same_error(lambda j: j.jit(lambda x: x, static_argnums=3)(1.0))
    assert_same_error(lambda j: j.jit(lambda x: x, donate_argnums=2)(1.0))
    assert_same_error(lambda j: j.jit(3.0))


# --- calls ----------------------------------------------------------------------------------------

def test_keywords_and_defaults():
    def fun(x, y=2.0, *rest, scale=1.0, **more):
        return (x + y) * scale + sum(rest) + sum(v * (n + 1) for n, v in enumerate(
            value for _, value in sorted(more.items())))

    def run(j):
        jitted = j.jit(fun)
        return (jitted(1.0), jitted(1.0, 3.0), jitted(1.0, y=3.0), jitted(y=1.0, x=2.0),
                jitted(1.0, 2.0, 3.0, 4.0), jitted(1.0, scale=3.0), jitted(1.0, b=1.0, a=2.0),
                jitted(1.0, a=2.0, b=1.0))
    agree(run)


def test_as_a_decorator():
    def run(j):
        @j.jit
        def plain(x):
            """Doubles."""
            return x * 2

        @functools.partial(j.jit, static_argnames=("n",))
        def repeated(x, n=2):
            return x * n

        assert plain.__name__ == "plain" and plain.__doc__ == "Doubles."
        return plain(X), repeated(X), repeated(X, n=3)
    agree(run)


def test_methods_under_jit_agree_with_jax():
    def run(j):
        class Model:
            def __init__(self, scale):
                self.scale = scale

            @functools.partial(j.jit, static_argnums=0)
            def __call__(self, x):
                return x * self.scale

            @staticmethod
            @j.jit
            def doubled(x):
                return x * 2

        two, three = Model(2.0), Model(3.0)
        bound = j.jit(two.__call__)
        return two(X), three(X), two(X), Model.doubled(X), two.doubled(X), bound(X)
    agree(run)


def test_partials_and_callables():
    class Callable:
        def __call__(self, x):
            return x + 1

    def run(j):
        return (j.jit(functools.partial(lambda x, y, z: x + y * z, 1.0, z=2.0))(X),
                j.jit(Callable())(X), j.jit(j.jit(j.numpy.sin))(X), j.jit(j.numpy.add)(X, X),
                j.jit(lambda *args: args)(1.0, (2.0, None)), j.jit(lambda: j.numpy.ones(2))(),
                j.jit(lambda x: None)(X), j.jit(lambda x: (x, x, 3, 2.5, True))(X))
    agree(run)


def test_inputs_may_be_outputs():
    def run(j):
        return j.jit(lambda x, y: (y, x, x))(X, 2), j.jit(lambda x: x)(1.0), j.jit(lambda: 1)()
    agree(run)


def test_results_do_not_share_the_callers_memory():
    array = X.copy()
    out = maxjax.jit(lambda x: x)(array)
    array[:] = 0
    np.testing.assert_array_equal(np.asarray(out), X)


def test_keep_unused_and_inline():
    agree(lambda j: j.jit(lambda x, y: x * 2, keep_unused=True)(X, X))
    inner = maxjax.jit(lambda x: x * 2, inline=True)
    closed = maxjax.jit(lambda x: inner(x) + 1)._lookup((X,), {}).closed
    assert [eqn.primitive.name for eqn in closed.eqns] == ["jit", "add"]
    np.testing.assert_array_equal(np.asarray(maxjax.jit(lambda x: inner(x) + 1)(X)), X * 2 + 1)


def test_disable_jit():
    seen = []
    jitted = maxjax.jit(lambda x: (seen.append(float(x)), x * 2)[1])
    with config.disable_jit(True):
        assert float(jitted(1.5)) == 3.0
        assert seen == [1.5]
        with pytest.raises(TypeError):      # for a value with a tangent, as in JAX
            maxjax.grad(jitted)(1.5)
    with pytest.raises(TypeError):
        jitted(1.5)


def test_nested_tracing_of_itself():
    """A recursive jitted function, whose recursion a static argument controls."""
    def run(j):
        @functools.partial(j.jit, static_argnums=1)
        def factorial(x, n):
            return x if n == 0 else n * factorial(x, n - 1)
        return factorial(2.0, 5)
    agree(run)


def test_an_exception_while_tracing_leaves_things_usable():
    calls = []

    @maxjax.jit
    def fun(x):
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("once")
        return x * 2

    with pytest.raises(KeyError, match="once"):
        fun(X)
    np.testing.assert_array_equal(np.asarray(fun(X)), X * 2)
    np.testing.assert_array_equal(np.asarray(maxjax.numpy.sin(X) * 0), X * 0)


def test_functions_of_a_moment_are_forgotten():
    """Nothing global keeps a jitted function, its jaxprs or its constants alive."""
    alive = []
    for _ in range(5):
        table = maxjax.numpy.asarray(np.ones(1000, np.float32)) * 2
        jitted = maxjax.jit(lambda x, t=table: maxjax.numpy.sum(x * t))
        gradient = maxjax.grad(jitted)
        gradient(np.ones(1000, np.float32)).block_until_ready()
        maxjax.vmap(jitted)(np.ones((2, 1000), np.float32)).block_until_ready()
        alive += [weakref.ref(table), weakref.ref(next(iter(jitted._entries.values())).closed)]
    del table, jitted, gradient
    gc.collect()
    assert [ref() for ref in alive] == [None] * len(alive)


def test_constants_go_with_their_function_at_once():
    """Without a collection of garbage, also where placements are looked at."""
    x = maxjax.numpy.ones(10)
    mesh = maxjax.sharding.Mesh(np.array(maxjax.devices()[:1]), ("x",))
    constrain = maxjax.sharding.NamedSharding(mesh, maxjax.sharding.PartitionSpec())
    maxjax.jit(lambda y: maxjax.lax.with_sharding_constraint(y, constrain))(x)
    jitted = maxjax.jit((lambda x: lambda: x)(x))
    alive = weakref.ref(x)
    del x
    gc.disable()
    try:
        jitted(), jitted()
        assert alive() is not None
        del jitted
        assert alive() is None
    finally:
        gc.enable()


# --- donation -------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [
    {"donate_argnums": 0}, {"donate_argnums": (0,)}, {"donate_argnames": "x"}])
def test_donated_arguments_are_gone(options):
    def run(j):
        x, y = j.numpy.asarray(X) + 1, j.numpy.asarray(X) + 2
        out = j.jit(lambda x, y: x * 2 + y, **options)(x, y)
        return out, x.is_deleted(), y.is_deleted(), y
    agree(run)
    x = maxjax.numpy.asarray(X) + 1
    maxjax.jit(lambda x: x * 2, **options)(x)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


def test_donated_trees():
    def run(j):
        tree = {"a": j.numpy.asarray(X) + 1, "b": (j.numpy.asarray(X) + 2,)}
        out = j.jit(lambda t, s: (t["a"] * s, t["b"][0]), donate_argnums=0)(tree, 2.0)
        return out, tree["a"].is_deleted()
    agree(run)


def test_a_donated_result_lives_on():
    """The output that is the donated input itself keeps its value."""
    x = maxjax.numpy.asarray(X) + 1
    out = maxjax.jit(lambda x: x, donate_argnums=0)(x)
    np.testing.assert_array_equal(np.asarray(out), X + 1)


# --- threads --------------------------------------------------------------------------------------

def in_threads(count, work):
    barrier = threading.Barrier(count)
    results, errors = [None] * count, []

    def run(number):
        try:
            barrier.wait(30)
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def test_eight_threads_call_one_new_function():
    for repetition in range(10):
        jitted = maxjax.jit(lambda x, k=repetition: maxjax.numpy.sin(x) * k + x)
        results = in_threads(8, lambda n, f=jitted: np.asarray(f(X + n)))
        for number, result in enumerate(results):
            np.testing.assert_allclose(
                result, np.sin(X + number) * repetition + X + number, rtol=1e-6, atol=1e-6)
        assert jitted._cache_size() == 1


def test_eight_threads_transform_one_function():
    inner = maxjax.jit(lambda x: maxjax.numpy.sum(maxjax.numpy.sin(x) ** 2))
    gradient = maxjax.jit(maxjax.vmap(maxjax.grad(inner)))
    batch = np.stack([X, X + 1])
    results = in_threads(8, lambda n: np.asarray(gradient(batch + n)))
    for number, result in enumerate(results):
        np.testing.assert_allclose(result, np.sin(2 * (batch + number)), rtol=1e-5, atol=1e-5)


def test_options_and_traces_of_a_thread_are_its_own():
    def work(number):
        with config.enable_x64(number % 2 == 0):
            for _ in range(20):
                out = maxjax.jit(maxjax.grad(lambda x: maxjax.numpy.sin(x)))(1.0)
            return out.dtype
    dtypes = in_threads(8, work)
    assert dtypes == [np.float64, np.float32] * 4


def test_names_of_functions():
    def named(x, y=1):
        return x + y

    class Callable:
        def __call__(self, x):
            return x

    given_a_name = functools.partial(named)
    given_a_name.__name__ = "given"
    for function in (named, functools.partial(named), functools.partial(named, y=2),
                     functools.partial(functools.partial(named)), given_a_name, Callable(),
                     Callable().__call__, lambda x: x):
        names = []
        for library in (maxjax, jax):
            jitted = library.jit(function)
            names.append((jitted.__name__, jitted.__qualname__, jitted.__getstate__()[
                "function_name"], jitted.lower(1.).as_text().split()[1], *(
                    wrapper(function).__name__ for wrapper in (
                        library.grad, library.value_and_grad, library.vmap, library.jacfwd,
                        library.checkpoint, library.pmap))))
        assert names[0] == names[1]


def test_no_two_results_have_one_address():
    """Though an argument that is handed on shares its memory, until somebody asks."""
    def addresses(library):
        j = library.numpy
        x = j.arange(6.)
        arrays = [x, library.jit(lambda x: x)(x), *library.jit(lambda x: (x, x))(x), j.copy(x),
                  j.array(x), x.copy(), x.reshape(2, 3), library.vmap(lambda x: x)(x),
                  library.device_put(x), j.asarray(x)]
        found = [y.unsafe_buffer_pointer() for y in arrays]
        assert found == [y.unsafe_buffer_pointer() for y in arrays]
        assert all(np.asarray(y).ravel().tolist() == [0, 1, 2, 3, 4, 5] for y in arrays)
        return [found.index(address) for address in found]

    assert addresses(maxjax) == addresses(jax)


def test_addresses_of_empty_and_deleted_arrays():
    x = maxjax.numpy.arange(3.)
    y = maxjax.jit(lambda x: x)(x)
    address = x.unsafe_buffer_pointer()
    x.delete()
    assert y.unsafe_buffer_pointer() == address
    empty = maxjax.numpy.zeros((0, 3))
    assert empty.unsafe_buffer_pointer() == empty.unsafe_buffer_pointer()


def test_attributes_of_a_callable_object():
    """They are the jitted function's too, and stand in no method's place."""
    def run(j):
        class Adder:
            def __init__(self):
                self.note, self._entry, self._trace, self._entries = "note", 1, 2, 3

            def __call__(self, x):
                return x + 1

        f = j.jit(Adder())
        return f.note, f(1), f.lower(1).compile()(2), j.jit(f)(3)

    agree(run)


def test_a_compiled_function_is_not_traced():
    def run(j):
        compiled = j.jit(lambda x: x + 1).lower(1.0).compile()
        return j.jit(compiled)(1.0)

    actual, expected = errors_of(run)
    assert type(actual) is type(expected)
    assert str(actual).split(" Detected")[0] == str(expected).split(" Detected")[0]
