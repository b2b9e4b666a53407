"""The rest of jax.extend: linear_util, random words, keys and devices, and what is absent."""

from __future__ import annotations

import importlib
import warnings

import jax
import jax.extend
import numpy as np
import pytest

import maxjax
import maxjax.extend
from tests.api.test_extend import modules
from tests.support.against_jax import agree


def layers(j):
    lu = importlib.import_module(f"{j.__name__}.extend.linear_util")

    @lu.transformation
    def scaled(by, *args, **kwargs):
        result = yield tuple(by * x for x in args), kwargs
        yield result, by

    @lu.transformation_with_aux
    def counted(*args):
        result = yield args, {"more": len(args)}
        yield result, len(args)

    @lu.transformation2
    def twice(fun, label, *args):
        return fun(*args), fun(*args), label

    @lu.transformation_with_aux2
    def noted(fun, store, label, *args):
        store.store(label)
        return fun(*args)

    def fun(*args, more=0, start=0):
        return sum(args) + 10 * more + start

    return lu, scaled, counted, twice, noted, fun


def called(run, lu):
    try:
        return run()
    except lu.StoreException as error:
        return str(error)


LAYERS = {
    "parameters": lambda lu, s, c, t, n, f: lu.wrap_init(f, {"start": 5}).call_wrapped(1, 2),
    "transformed": lambda lu, s, c, t, n, f: s(s(lu.wrap_init(f), 2), 3).call_wrapped(1, 2, more=1),
    "on the side": lambda lu, s, c, t, n, f: (
        lambda g, aux: (called(aux, lu), g.call_wrapped(1, 2), aux(),
                        called(lambda: g.call_wrapped(1, 2), lu)))(*c(lu.wrap_init(f))),
    "twice": lambda lu, s, c, t, n, f: t(s(lu.wrap_init(f), 2), "label").call_wrapped(1),
    "noted": lambda lu, s, c, t, n, f: (
        lambda g, aux: (g.call_wrapped(4), aux()))(*n(lu.wrap_init(f), "label")),
    "equal": lambda lu, s, c, t, n, f: [
        lu.wrap_init(f) == lu.wrap_init(f), t(lu.wrap_init(f), 2) == t(lu.wrap_init(f), 2),
        t(lu.wrap_init(f), 2) == t(lu.wrap_init(f), 3), len({lu.wrap_init(f), lu.wrap_init(f)})],
    "merged": lambda lu, s, c, t, n, f: (
        lambda a, b: (called(lambda: lu.merge_linear_aux(a[1], b[1]), lu),
                      b[0].call_wrapped(4), lu.merge_linear_aux(a[1], b[1]),
                      lu.merge_linear_aux(b[1], a[1]), a[0].call_wrapped(4),
                      called(lambda: lu.merge_linear_aux(a[1], b[1]), lu)))(
                          n(lu.wrap_init(f), 1), n(lu.wrap_init(f), 2)),
    "name": lambda lu, s, c, t, n, f: s(lu.wrap_init(f), 2).__name__,
}


@pytest.mark.filterwarnings("ignore:.*DebugInfo:DeprecationWarning")
@pytest.mark.parametrize("name", LAYERS)
def test_linear_util(name):
    assert LAYERS[name](*layers(maxjax)) == LAYERS[name](*layers(jax))


@pytest.mark.filterwarnings("ignore:.*DebugInfo:DeprecationWarning")
def test_cache_of_linear_util():
    def counts(j):
        lu, *_, noted, fun = layers(j)
        calls = []

        def call(f, *args):
            calls.append(args)
            return f.call_wrapped(*args)

        kept = lu.cache(call)
        results = []
        for args in ((1, 2), (1, 2), (3,), (1, 2)):
            wrapped, aux = noted(lu.wrap_init(fun), "label")
            results.append((kept(wrapped, *args), aux()))
        return results, len(calls)
    assert counts(maxjax) == counts(jax)


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (2, 2), (3, 3), ()])
def test_threefry_gives_the_words_of_jax(shape):
    def words(j):
        module = importlib.import_module(f"{j.__name__}.extend.random")
        count = np.arange(np.prod(shape, dtype=int), dtype=np.uint32).reshape(shape)
        return module.threefry_2x32(np.array([7, 9], np.uint32), count)
    agree(words)


def test_keys_and_devices():
    def keys(j):
        module = importlib.import_module(f"{j.__name__}.extend.random")
        backend = importlib.import_module(f"{j.__name__}.extend.backend")
        impl = module.threefry_prng_impl
        return [j.random.key_data(module.random_seed(5, impl)),
                j.random.key_data(module.seed_with_impl(impl, 6)), list(backend.backends()),
                str(backend.get_default_device()), backend.get_backend().platform]
    ours, theirs = keys(maxjax), keys(jax)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])
    assert ours[2:] == theirs[2:]


@pytest.mark.parametrize("call", [
    lambda: maxjax.ffi.ffi_lowering("name"),
    lambda: maxjax.extend.backend.register_backend_factory("name", None)])
def test_what_is_absent_says_so(call):
    with pytest.raises(NotImplementedError, match="maxjax"):
        call()
    with pytest.raises(AttributeError, match="lowers to Mojo"):
        maxjax.extend.mlir  # noqa: B018


def test_pjit_is_deprecated():
    import maxjax.experimental.pjit as module

    vars(module).pop("pjit", None)
    with pytest.warns(DeprecationWarning, match="experimental.pjit.pjit has been deprecated"):
        pjit = module.pjit
    with warnings.catch_warnings():
        warnings.simplefilter("error")      # once is enough
        assert module.pjit is pjit
    assert pjit(lambda x: x + 1)(1) == 2


def test_numbers_are_handed_on():
    """An impl and a jvp that give their operand give Python's number itself."""
    def kinds(j, x):
        p = j.extend.core.Primitive("same")
        p.def_impl(lambda x: x)
        p.def_abstract_eval(lambda x: x)
        modules(j).ad.primitive_jvps[p] = lambda primals, tangents: (
            p.bind(*primals), tangents[0])
        return [type(value).__name__ for value in (
            p.bind(x), *j.jvp(p.bind, (x,), (x,)),
            *j.jvp(lambda y: p.bind(2.) * y, (x,), (x,)))]

    assert kinds(maxjax, 1.0) == kinds(jax, 1.0)
