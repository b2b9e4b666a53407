"""Dtypes that libraries define by JAX's ``ExtendedDType``, as Flax's for the statistics of FP8."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
import pytest

import maxjax
from maxjax._base import config
from tests.support.against_jax import agree, errors_of

X = np.arange(6, dtype=np.float32).reshape(2, 3)
PRIVATE = {"jax": "jax._src", "maxjax": "maxjax._internals"}


class Maxima:
    """Float32 whose sums, as of cotangents, are maxima, and whose zero is -inf."""

    def __init__(self, j: Any):
        dtypes, core, earray = (importlib.import_module(f"{PRIVATE[j.__name__]}.{name}")
                                for name in ("dtypes", "core", "earray"))
        lax = j.lax

        class Rules:
            allow_conversion = True

            @staticmethod
            def physical_element_aval(dtype):
                return core.ShapedArray((), np.dtype(np.float32))

            @staticmethod
            def tangent_dtype(dtype):
                return dtype

            @staticmethod
            def add(dtype, x, y):
                return self.put(lax.max(self.take(x), self.take(y)))

            @staticmethod
            def zero(dtype):
                return self.put(np.float32(-np.inf))

            @staticmethod
            def full(shape, value, dtype):
                return self.put(lax.full(shape, value, np.float32))

            @staticmethod
            def global_sharded_result_handler(aval, sharding, committed):
                handlers = importlib.import_module("jax._src.interpreters.pxla")
                handler = handlers.global_result_handlers[core.ShapedArray](
                    core.physical_aval(aval), sharding, committed)
                return lambda buffers: earray.EArray(aval, handler(buffers))

        class kind(dtypes.extended):
            pass

        @dataclasses.dataclass(frozen=True)
        class Dtype(dtypes.ExtendedDType):
            name: str = "maxima"
            _rules: type = Rules
            type: type = kind

            def __repr__(self):
                return self.name

        self.dtype, self.kind = Dtype(), kind
        self.put = lambda x: lax.convert_element_type(x, self.dtype)
        self.take = lambda x: lax.convert_element_type(x, np.float32)


PROGRAMS = {
    "conversion": lambda j, m, x: m.take(m.put(x)),
    "astype": lambda j, m, x: m.take(j.numpy.asarray(x).astype(m.dtype)),
    "jit": lambda j, m, x: j.jit(lambda x: m.take(m.put(x)) + 1)(x),
    "into and out of jit": lambda j, m, x: m.take(j.jit(lambda x: x)(m.put(x))),
    "reshape": lambda j, m, x: j.jit(lambda x: m.take(m.put(x).reshape(3, 2).T))(x),
    "index": lambda j, m, x: j.jit(lambda x: m.take(m.put(x)[1, ::2]))(x),
    "gather": lambda j, m, x: j.jit(lambda x: m.take(m.put(x)[j.numpy.array([1, 0])]))(x),
    "update": lambda j, m, x: j.jit(lambda x: m.take(m.put(x).at[0].set(m.put(x)[1])))(x),
    "concatenate": lambda j, m, x: j.jit(
        lambda x: m.take(j.numpy.concatenate([m.put(x), m.put(-x)])))(x),
    "select": lambda j, m, x: j.jit(
        lambda x: m.take(j.numpy.where(x > 2, m.put(x), m.put(-x))))(x),
    "pad": lambda j, m, x: j.jit(lambda x: m.take(j.lax.pad(
        m.put(x), m.put(x[0, 0]), ((1, 0, 0), (0, 0, 0)))))(x),
    "full": lambda j, m, x: j.jit(lambda: m.take(j.lax.full((2,), 3.0, m.dtype)))(),
    "zeros": lambda j, m, x: j.jit(lambda: m.take(j.numpy.zeros((2,), m.dtype)))(),
    "zeros_like": lambda j, m, x: j.jit(lambda x: m.take(j.numpy.zeros_like(m.put(x))))(x),
    "vmap": lambda j, m, x: j.vmap(lambda row: m.take(m.put(row)))(x),
    "scan": lambda j, m, x: j.lax.scan(
        lambda c, row: (m.put(m.take(c) + row.sum()), m.take(c) * row), m.put(x[0, 1]), x)[1],
    "cond": lambda j, m, x: j.jit(lambda x: m.take(j.lax.cond(
        x.sum() > 0, lambda: m.put(x), lambda: m.put(-x))))(x),
    "jvp": lambda j, m, x: j.jvp(lambda x: m.take(m.put(x)) * 2, (x,), (x,)),
    "equal": lambda j, m, x: j.jit(lambda x: m.put(x) == m.put(-x))(x),
    "kinds": lambda j, m, x: [
        j.dtypes.issubdtype(m.dtype, other)
        for other in (m.kind, j.dtypes.extended, j.dtypes.prng_key, np.floating)],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_are_moved_about_as_in_jax(name: str) -> None:
    agree(lambda j: PROGRAMS[name](j, Maxima(j), X))


def test_programs_of_such_dtypes_are_compiled() -> None:
    maxima = Maxima(maxjax)
    kept = maxima.put(X)

    @maxjax.jit
    def program(x):
        moved = [PROGRAMS[name](maxjax, maxima, x) for name in (
            "reshape", "update", "concatenate", "select", "pad", "zeros_like", "scan", "equal")]
        gradient = maxjax.grad(lambda s: maxjax.lax.scan(
            lambda c, row: (c + maxima.take(s) @ row, None), 0.0, x)[0], allow_int=True)
        return [*moved, maxima.take(kept), maxima.take(gradient(maxima.put(x[0])))]

    expected = program(X)
    maxjax.clear_caches()
    with config.compile_mode("always"):
        for e, a in zip(expected, program(X), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(e))


def statistics(j: Any, transform: Any) -> Any:
    """As Flax does it: a statistic whose cotangent is its new value, used in each step of a
    loop."""
    maxima = Maxima(j)

    @j.custom_vjp
    def step(x, statistic):
        return x * 2

    def forward(x, statistic):
        return x * 2, (x, statistic)

    def backward(kept, cotangent):
        x, statistic = kept
        return cotangent * 2, maxima.put(j.numpy.maximum(maxima.take(statistic), abs(x)))

    step.defvjp(forward, backward)

    def loss(x, number):
        statistic = maxima.put(number)
        x, _ = j.lax.scan(lambda x, _: (step(x, statistic), None), x, None, length=3)
        return step(x, statistic)

    return transform(j, j.grad(loss, (0, 1)))(np.float32(-1.5), np.float32(0.5))


def mapped(j: Any, f: Any) -> Any:
    return j.jit(lambda *args: j.vmap(f)(*(j.numpy.stack([x, x + 1]) for x in args)))


@pytest.mark.parametrize("transform", [lambda j, f: j.jit(f), mapped], ids=["jit", "vmap"])
def test_cotangents_are_added_by_the_rules(transform: Any) -> None:
    agree(lambda j: statistics(j, transform))


def test_cotangents_are_added_outside_jit() -> None:
    # JAX cannot add its arrays of such dtypes there.
    for eager, jitted in zip(statistics(maxjax, lambda j, f: f),
                             statistics(maxjax, lambda j, f: j.jit(f)), strict=True):
        assert float(eager) == float(jitted)


def test_cotangents_of_two_dtypes_are_not_added() -> None:
    def gradient(j):
        maxima = Maxima(j)

        @j.custom_vjp
        def scaled(x, by):
            return x

        scaled.defvjp(lambda x, by: (x, by), lambda by, ct: (maxima.put(ct * by), None))
        return j.jit(j.grad(lambda x: j.lax.scan(
            lambda c, by: (c + scaled(x, by), None), 0.0, j.numpy.arange(4.0))[0]))(3.0)

    for error in errors_of(gradient):
        assert isinstance(error, (TypeError, AssertionError))
        assert "float32" in str(error) and "maxima" in str(error)


def test_what_nothing_reads_has_the_rules_zero() -> None:
    maxima = Maxima(maxjax)
    # JAX cannot transpose such a conversion.
    gradient = maxjax.grad(lambda x: maxima.take(maxima.put(x)[0]).sum())(X)
    np.testing.assert_array_equal(np.asarray(gradient), [[1, 1, 1], [-np.inf] * 3])
    doubled = maxjax.grad(lambda x: (lambda m: (
        maxima.take(m) * 2 + maxima.take(m) * X).sum())(maxima.put(x)))(X)
    np.testing.assert_array_equal(np.asarray(doubled), np.maximum(X, 2))


def test_tangents_of_another_dtype() -> None:
    def program(j):
        dtypes = importlib.import_module(f"{PRIVATE[j.__name__]}.dtypes")
        dtype = dtypes.primal_tangent_dtype(np.int8, j.numpy.bfloat16)
        assert repr(dtype) == "PrimalTangentDType{i8/bf16}"

        def both(x):
            value, pullback = j.vjp(lambda y: y[1:], x.astype(dtype))
            return value.astype(np.int8), pullback(j.numpy.ones(2, j.numpy.bfloat16))

        return j.jit(both)(np.arange(3, dtype=np.int8))

    agree(program)


ERRORS = {
    "another float": lambda j, m: m.put(np.ones(2, np.float16)),
    "an integer": lambda j, m: m.put(1),
    "to an integer": lambda j, m: j.lax.convert_element_type(m.put(X), np.int32),
}


@pytest.mark.parametrize("name", ERRORS)
def test_other_conversions_are_refused(name: str) -> None:
    ours, theirs = errors_of(lambda j: ERRORS[name](j, Maxima(j)))
    assert (type(ours), str(ours)) == (type(theirs), str(theirs))


@pytest.mark.parametrize("operation", [
    lambda j, x: x + x, lambda j, x: -x, lambda j, x: x < x, lambda j, x: j.numpy.sort(x),
    lambda j, x: x.sum(), lambda j, x: x @ x.T, lambda j, x: x.at[0].add(x[1]),
    lambda j, x: x.at[j.numpy.array([0, 0])].add(x),
], ids=["add", "neg", "lt", "sort", "sum", "matmul", "at", "scatter"])
def test_there_is_no_arithmetic(operation: Any) -> None:
    for error in errors_of(lambda j: j.jit(lambda x: operation(j, Maxima(j).put(x)))(X)):
        assert isinstance(error, (TypeError, AssertionError))
    with pytest.raises(TypeError, match="maxima"):
        operation(maxjax, Maxima(maxjax).put(X))


@pytest.mark.parametrize("look", [np.asarray, float, bool, lambda x: x.tolist()],
                         ids=["asarray", "float", "bool", "tolist"])
def test_elements_are_no_numbers(look: Any) -> None:
    with pytest.raises((TypeError, NotImplementedError), match="maxima"):
        look(Maxima(maxjax).put(np.float32(1)))


def test_arrays_print_their_elements_and_dtype() -> None:
    assert repr(Maxima(maxjax).put(X[0])) == "EArray([0., 1., 2.], dtype=float32)"


def test_keys_have_no_arithmetic_either() -> None:
    def update(j):
        keys = j.random.split(j.random.key(0), 3)
        return keys.at[0].add(keys[1])

    for error in errors_of(update):
        assert type(error) is TypeError and "key<fry>" in str(error)
