"""Errors of tracing and of the transformations: JAX's classes and messages."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import maxjax
from maxjax._base import errors
from tests.support.against_jax import assert_same_error, errors_of

X = np.array([1.0, 2.0, 3.0], np.float32)


def leaked_through_a_list(j):
    kept = []
    j.jit(lambda x: (kept.append(x * 2), x)[1])(1.0)
    return kept[0] + 1


def leaked_through_a_global(j):
    globals()["_leaked"] = None

    def fun(x):
        globals()["_leaked"] = x
        return x

    j.jit(fun)(X)
    return j.numpy.sin(globals()["_leaked"])


def leaked_into_another_jit(j):
    kept = []
    j.jit(lambda x: (kept.append(x), x)[1])(1.0)
    return j.jit(lambda y: y + kept[0])(1.0)


def leaked_argument(j):
    kept = []
    j.jit(lambda x: (kept.append(x), x)[1])(1.0)
    return j.jit(lambda y: y)(kept[0])


def leaked_from_vmap(j):
    kept = []
    j.vmap(lambda x: (kept.append(x), x)[1])(X)
    return kept[0] * j.vmap(lambda y: y + kept[0])(X)


def leaked_from_grad(j):
    kept = []
    j.grad(lambda x: (kept.append(x * 1), x * 2)[1])(1.0)
    return j.grad(lambda y: y * kept[0])(1.0)


TRACING = {
    "bool": lambda j: j.jit(lambda x: 1 if x else 0)(1.0),
    "while": lambda j: j.jit(lambda x: [x for _ in iter(lambda: bool(x < 3), False)])(1.0),
    "and": lambda j: j.jit(lambda x, y: x > 0 and y > 0)(1.0, 2.0),
    "not": lambda j: j.jit(lambda x: not x)(True),
    "bool of an array": lambda j: j.jit(lambda x: 1 if x > 0 else 0)(X),
    "numpy": lambda j: j.jit(lambda x: np.sin(x))(1.0),
    "asarray": lambda j: j.jit(lambda x: np.asarray(x))(X),
    "float": lambda j: j.jit(lambda x: float(x))(1.0),
    "int": lambda j: j.jit(lambda x: int(x))(1.0),
    "complex": lambda j: j.jit(lambda x: complex(x))(1.0),
    "range": lambda j: j.jit(lambda x: range(x))(3),
    "index of a list": lambda j: j.jit(lambda x: [1, 2][x])(1),
    "shape": lambda j: j.jit(lambda x: j.numpy.zeros(x))(3),
    "reshape": lambda j: j.jit(lambda x: j.numpy.reshape(j.numpy.ones(6), (x, 2)))(3),
    "item": lambda j: j.jit(lambda x: x.item())(1.0),
    "tolist": lambda j: j.jit(lambda x: x.tolist())(X),
    "arange": lambda j: j.jit(lambda x: j.numpy.arange(x))(3),
    "len": lambda j: j.jit(lambda x: len(x))(3),
    "str": lambda j: j.jit(lambda x: str(x))(1.0),
    "string result": lambda j: j.jit(lambda x: "abc")(1.0),
    "object result": lambda j: j.jit(lambda x: {"a": object})(1.0),
    "mask": lambda j: j.jit(lambda x: x[x > 1])(X),
    "in grad of jit": lambda j: j.grad(j.jit(lambda x: x if x > 0 else -x))(1.0),
    "in vmap": lambda j: j.vmap(lambda x: x if x > 0 else -x)(X),
    "in vmap, float": lambda j: j.vmap(lambda x: float(x))(X),
    "in vmap, numpy": lambda j: j.vmap(lambda x: np.sin(x))(X),
    "in jit of grad": lambda j: j.jit(j.grad(lambda x: x if x > 0 else -x))(1.0),
    "in jit of vmap": lambda j: j.jit(j.vmap(lambda x: x if x > 0 else -x))(X),
    "string argument": lambda j: j.jit(lambda x: x)("abc"),
    "iteration over a scalar": lambda j: j.jit(lambda x: list(x))(1.0),
}
# These contain the address of a function, and the traceback.
ADDRESS = re.compile(r"0x[0-9a-f]+")


def normalized(message):
    return ADDRESS.sub("0x0", message)


@pytest.mark.parametrize("name", TRACING)
def test_errors_while_tracing_are_those_of_jax(name):
    actual, expected = errors_of(TRACING[name])
    shown = f"{type(actual).__name__}: {actual}\nnot {type(expected).__name__}: {expected}"
    assert type(actual).__name__ == type(expected).__name__, shown
    lines = [normalized(str(error)).split("\n") for error in (actual, expected)]
    assert lines[0][0] == lines[1][0], shown
    if name == "in jit of vmap":      # JAX only knows the object's id here
        return
    # The function, its line and the argument.
    found = [next((line for line in text if "while tracing the function" in line), None)
             for text in lines]
    assert found[0] == found[1], shown


@pytest.mark.parametrize("fun", [
    leaked_through_a_list, leaked_through_a_global, leaked_into_another_jit, leaked_argument,
    leaked_from_vmap, leaked_from_grad])
def test_leaked_tracers_are_told(fun):
    actual, expected = errors_of(fun)
    assert type(actual).__name__ == type(expected).__name__ == "UnexpectedTracerError"
    start = "Encountered an unexpected tracer."
    assert str(actual).startswith(start) and str(expected).startswith(start)
    assert isinstance(actual, TypeError)
    assert "side effect" in str(actual)


def test_a_leak_names_where_the_value_came_from():
    with pytest.raises(errors.UnexpectedTracerError) as caught:
        leaked_through_a_list(maxjax)
    text = str(caught.value)
    assert "test_errors.py" in text and "leaked_through_a_list" in text and "mul" in text


def test_messages_name_the_function_line_and_argument():
    def branching(first, second):
        return first if second["flag"] > 0 else -first

    with pytest.raises(errors.TracerBoolConversionError) as caught:
        maxjax.jit(branching)(1.0, {"flag": 2.0})
    text = str(caught.value)
    line = branching.__code__.co_firstlineno
    assert f"branching at {__file__}:{line} for jit" in text
    assert "depends on the value of the argument second['flag']." in text
    with pytest.raises(errors.TracerBoolConversionError,
                       match="the values of the arguments a, b, and c"):
        maxjax.jit(lambda a, b, c: bool(a + b > c))(1.0, 2.0, 3.0)

    def without():
        ones = maxjax.numpy.ones(2)
        return bool(maxjax.numpy.sum(ones))

    with pytest.raises(errors.TracerBoolConversionError) as caught:
        maxjax.jit(without)()
    line = without.__code__.co_firstlineno
    assert "This value became a tracer due to JAX operations on these lines:" in str(caught.value)
    assert f"{__file__}:{line + 2}" in str(caught.value)
    with pytest.raises(errors.ConcretizationTypeError, match=r"the argument second\['flag'\]"):
        maxjax.jit(lambda first, second: float(second["flag"]))(1.0, {"flag": 2.0})


def test_classes_of_errors_derive_as_in_jax():
    for name in ("ConcretizationTypeError", "TracerBoolConversionError", "UnexpectedTracerError",
                 "TracerArrayConversionError", "TracerIntegerConversionError",
                 "NonConcreteBooleanIndexError", "KeyReuseError"):
        ours, theirs = getattr(errors, name), getattr(jax.errors, name)
        builtin = (TypeError, IndexError, RuntimeError, ValueError)
        assert [issubclass(ours, kind) for kind in builtin] == [
            issubclass(theirs, kind) for kind in builtin]
    assert issubclass(errors.TracerBoolConversionError, errors.ConcretizationTypeError)


# --- the transformations' own errors --------------------------------------------------------------

TRANSFORMS = {
    "unhashable static": lambda j: j.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
    "unhashable array static": lambda j: j.jit(lambda x, n: x, static_argnums=1)(1.0, np.ones(2)),
    "wrong argnames": lambda j: j.jit(lambda x, n: x * n, static_argnames="m")(1.0, 3),
    "wrong argnums": lambda j: j.jit(lambda x: x, static_argnums=2)(1.0),
    "static and donated": lambda j: j.jit(
        lambda x: x, static_argnums=0, donate_argnums=0)(1.0),
    "static and donated by name": lambda j: j.jit(
        lambda x: x, static_argnames="x", donate_argnames="x")(1.0),
    "not callable": lambda j: j.jit(1),
    "overflow": lambda j: j.jit(lambda x: x)(2 ** 40),
    "too few arguments": lambda j: j.jit(lambda x, y: x)(1.0),
    "vmap sizes": lambda j: j.vmap(lambda x, y: x + y)(np.ones(2), np.ones(3)),
    "vmap sizes of trees": lambda j: j.vmap(lambda t, y: y)(
        {"a": np.ones(2), "b": (np.ones((2, 3)), np.ones(4))}, np.ones(4)),
    "vmap rank": lambda j: j.vmap(lambda x: x, in_axes=1)(np.ones(2)),
    "vmap negative rank": lambda j: j.vmap(lambda x: x, in_axes=-3)(np.ones((2, 2))),
    "vmap of a scalar": lambda j: j.vmap(lambda x: x)(1.0),
    "vmap out_axes None": lambda j: j.vmap(lambda x: x, out_axes=None)(np.ones(2)),
    "vmap out_axes": lambda j: j.vmap(lambda x: x, out_axes=3)(np.ones(2)),
    "vmap no axis": lambda j: j.vmap(lambda x: x, in_axes=None)(np.ones(2)),
    "vmap in_axes length": lambda j: j.vmap(lambda x: x, in_axes=(0, 0))(np.ones(2)),
    "vmap in_axes type": lambda j: j.vmap(lambda x: x, in_axes="a")(np.ones(2)),
    "vmap in_axes leaf": lambda j: j.vmap(lambda x: x, in_axes=(1.5,))(np.ones(2)),
    "vmap in_axes tree": lambda j: j.vmap(lambda x: x, in_axes=({"a": 0},))({"b": np.ones(2)}),
    "vmap axis_size": lambda j: j.vmap(lambda x: x, axis_size=3)(np.ones(2)),
    "vmap not callable": lambda j: j.vmap(1),
    "vmap result": lambda j: j.vmap(lambda x: "a")(np.ones(2)),
    "grad of a tuple": lambda j: j.grad(lambda x: (j.numpy.float32(1), j.numpy.float32(2)))(1.0),
    "grad of a vector": lambda j: j.grad(lambda x: x * 2)(np.ones(2, np.float32)),
    "grad of an integer": lambda j: j.grad(lambda x: x * 2)(1),
    "grad of a boolean": lambda j: j.grad(lambda x: x)(True),
    "grad integer result": lambda j: j.grad(lambda x: 1)(1.0),
    "grad complex": lambda j: j.grad(lambda x: x * 1j)(1.0),
    "grad holomorphic": lambda j: j.grad(lambda x: x, holomorphic=True)(1.0),
    "grad holomorphic result": lambda j: j.grad(
        lambda x: j.numpy.abs(x), holomorphic=True)(1.0 + 1j),
    "grad argnums": lambda j: j.grad(lambda x: x, argnums=1)(1.0),
    "grad argnums tuple": lambda j: j.grad(lambda x: x, argnums=(0, 2))(1.0),
    "grad negative argnums": lambda j: j.grad(lambda x: x, argnums=-2)(1.0),
    "grad aux": lambda j: j.grad(lambda x: x, has_aux=True)(1.0),
    "grad aux of three": lambda j: j.grad(lambda x: (1.0, 2.0, 3.0), has_aux=True)(1.0),
    "grad of a string": lambda j: j.grad(lambda x: x)("a"),
    "grad string result": lambda j: j.grad(lambda x: "a")(1.0),
    "grad not callable": lambda j: j.grad(1),
    "jvp dtype": lambda j: j.jvp(lambda x: x * 2, (1.0,), (1,)),
    "jvp integer": lambda j: j.jvp(lambda x: x * 2, (1,), (1,)),
    "jvp shape": lambda j: j.jvp(lambda x: x * 2, (1.0,), (np.ones(2, np.float32),)),
    "jvp tree": lambda j: j.jvp(lambda x: x, ((1.0, 2.0),), ([1.0, 2.0],)),
    "jvp count": lambda j: j.jvp(lambda x: x, (1.0,), (1.0, 2.0)),
    "jvp no tuple": lambda j: j.jvp(lambda x: x, 1.0, 1.0),
    "vjp shape": lambda j: j.vjp(lambda x: x * 2, 1.0)[1](np.ones(2, np.float32)),
    "vjp dtype": lambda j: j.vjp(lambda x: x * 2, 1.0)[1](1),
    "vjp tree": lambda j: j.vjp(lambda x: (x, x), 1.0)[1](1.0),
    "linearize shape": lambda j: j.linearize(lambda x: x * 2, 1.0)[1](np.ones(2, np.float32)),
    "linearize tree": lambda j: j.linearize(lambda x: x * 2, 1.0)[1]((1.0,)),
}
# The messages differ here, for the reason given; the class is the same.
OTHER_WORDS = {"grad aux": "the message shows the tracer, which is of a class of our own"}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformations(name):
    if name in OTHER_WORDS:
        actual, expected = errors_of(TRANSFORMS[name])
        assert type(actual).__name__ == type(expected).__name__
        return
    actual, expected = errors_of(TRANSFORMS[name])
    shown = f"{type(actual).__name__}: {actual}\nnot {type(expected).__name__}: {expected}"
    assert type(actual).__name__ == type(expected).__name__, shown
    ours, theirs = (normalized(str(error)).split("\n") for error in (actual, expected))
    assert ours[0] == theirs[0], shown


def test_whole_messages():
    assert_same_error(lambda j: j.vmap(lambda x, y: x + y)(np.ones(2), np.ones(3)), whole=True)
    assert_same_error(lambda j: j.jit(lambda x: 1 if x else 0)(1.0), whole=True)
    assert_same_error(lambda j: j.jit(lambda x: float(x))(1.0), whole=True)
    assert_same_error(lambda j: j.jit(lambda x: np.sin(x))(1.0), whole=True)
    assert_same_error(lambda j: j.jit(lambda x: [1, 2][x])(1), whole=True)


def test_things_work_after_each_error():
    for name, fun in {**TRACING, **TRANSFORMS}.items():
        with pytest.raises(Exception):      # noqa: B017
            pytest.fail(f"{name} gives {fun(maxjax)}")
    np.testing.assert_allclose(
        np.asarray(maxjax.jit(maxjax.vmap(maxjax.grad(maxjax.numpy.sin)))(X)), np.cos(X),
        rtol=1e-6)


@pytest.mark.parametrize("name", [
    "ConcretizationTypeError", "KeyReuseError", "NonConcreteBooleanIndexError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "UnexpectedTracerError"])
def test_errors_of_tracers_that_have_no_type_yet(name):
    """The class is the user's own: JAX's first lines."""
    messages = []
    for j in (jax, maxjax):
        class Own(j.core.Tracer):
            def __init__(self, trace):
                super().__init__(trace, None)

        messages.append(str(getattr(j.errors, name)(Own(None))).splitlines()[0])
    assert messages[0] == messages[1]


@pytest.mark.parametrize("call", (
    lambda j: j.lax.map(lambda x: x, j.numpy.arange(5), batch_size=-2),
    lambda j: j.lax.map(lambda x: x, j.numpy.arange(5), batch_size=-2**31),
    lambda j: j.lax.rng_bit_generator(j.numpy.zeros(4, "uint32"), (-1,))))
def test_negative_sizes_are_refused(call):
    """As in JAX, whose words for them are about something else."""
    with pytest.raises(Exception):      # noqa: B017
        call(jax)
    with pytest.raises(TypeError, match="positive|nonnegative"):
        call(maxjax)
