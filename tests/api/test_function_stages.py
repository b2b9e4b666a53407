"""``jnp.sin.lower(x)``: which library functions can be lowered, and with which static arguments;
these refuse what cannot be hashed."""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import re
from types import FunctionType
from typing import Any

import jax
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax._higher_order.function_stages import static_names

MODULES = ("numpy", "numpy.linalg", "nn", "scipy.linalg", "scipy.special", "scipy.stats",
           "scipy.integrate", "lax", "lax.linalg")


def jitted_in_jax(module: str) -> dict[str, Any]:
    theirs = importlib.import_module(f"jax.{module}")
    found = {name: getattr(theirs, name) for name in dir(theirs) if name[0] != "_"
             and not name.startswith("lpmn")}
    return {name: value for name, value in found.items()
            if isinstance(value, type(jax.numpy.sin))}


@pytest.mark.parametrize("module", MODULES)
def test_functions_that_jax_jits_have_stages(module: str) -> None:
    ours = importlib.import_module(f"maxjax.{module}")
    for name, theirs in jitted_in_jax(module).items():
        function = getattr(ours, name, None)
        if function is None:
            continue
        for member in ("trace", "lower", "eval_shape"):
            assert callable(getattr(function, member)), name
        if isinstance(function, FunctionType):
            assert set(static_names(function)) == static_parameters(theirs), name


def static_parameters(theirs: Any) -> set[str]:
    info = theirs._jit_info
    positional = list(inspect.signature(theirs).parameters)
    return {*(info.static_argnames or ()),
            *(positional[number] for number in info.static_argnums or ())} & {*positional}


def refusal(function: Any, parameter: str, value: Any, static: set[str]) -> tuple[type, str]:
    """The error for a value of one parameter, with numbers and matrices for the others that have to
    be given."""
    given: dict[Any, Any] = {}
    for name, described in inspect.signature(function).parameters.items():
        if name == parameter:
            given[name] = value
        elif described.default is described.empty and described.kind is not (
                described.VAR_POSITIONAL):
            given[name] = 1 if name in static else np.eye(3, dtype=np.float32)
    bound = inspect.signature(function).bind_partial()
    bound.arguments.update(
        (name, given[name]) for name in inspect.signature(function).parameters if name in given)
    with pytest.raises(Exception) as caught:
        function(*bound.args, **bound.kwargs)
    return caught.type, re.sub(r"[\w.]+\.ArrayImpl", "ArrayImpl", str(caught.value))


UNHASHABLE = {"list": lambda j: [0], "dict": lambda j: {0: 1}, "set": lambda j: {0},
              "NumPy's array": lambda j: np.array(0), "array": lambda j: j.numpy.array(0)}


@pytest.mark.parametrize("kind", UNHASHABLE)
@pytest.mark.parametrize("module", MODULES)
def test_static_arguments_that_cannot_be_hashed(module: str, kind: str) -> None:
    ours = importlib.import_module(f"maxjax.{module}")
    compared = 0
    for name, theirs in jitted_in_jax(module).items():
        function = getattr(ours, name, None)
        static = static_parameters(theirs)
        for parameter in static if function is not None else ():
            if name == "qdwh":      # which reads its matrix first
                continue
            expected = refusal(theirs, parameter, UNHASHABLE[kind](jax), static)
            assert expected[1].startswith("Non-hashable static arguments"), (name, parameter)
            actual = refusal(function, parameter, UNHASHABLE[kind](maxjax), static)
            assert actual == expected, (name, parameter)
            compared += 1
    assert compared or module == "lax.linalg"


def test_functions_that_refuse_are_what_they_were() -> None:
    for name in ("cumsum", "matmul", "gradient", "mean", "put_along_axis", "round", "around"):
        function = getattr(jnp, name)
        assert function.__name__ == name and ">>>" in function.__doc__
        assert inspect.signature(function) == inspect.signature(function.__wrapped__)
        assert pickle.loads(pickle.dumps(function)) is function


# Functions that JAX does not jit, and that hand static arguments to one that it does.
HANDED_ON = {
    "jnp.sum(x, keepdims=v)", "jnp.sum(x, dtype=v)", "jnp.sum(x, promote_integers=v)",
    "jnp.prod(x, keepdims=v)", "jnp.max(x, keepdims=v)", "jnp.min(x, keepdims=v)",
    "jnp.mean(x, dtype=v)", "jnp.var(x, keepdims=v)", "jnp.std(x, dtype=v)",
    "jnp.any(x, keepdims=v)", "jnp.all(x, keepdims=v)", "jnp.ptp(x, keepdims=v)",
    "jnp.average(x, returned=v)", "jnp.linspace(0, 1, 3, endpoint=v)",
    "jnp.logspace(0, 1, 3, dtype=v)", "jnp.geomspace(1, 2, 3, endpoint=v)",
    "jnp.take(x, 0, mode=v)", "jnp.take(x, 0, fill_value=v)", "jnp.isin(x, x, invert=v)",
    "jnp.intersect1d(x, x, size=v)", "jnp.setdiff1d(x, x, assume_unique=v)",
    "jnp.unique(x, equal_nan=v)", "jnp.vecdot(x, x, precision=v)",
    "jnp.einsum('ij->j', x, precision=v)", "jnp.linalg.matmul(x, x, precision=v)",
    "jnp.linalg.multi_dot([x, x], precision=v)", "jnp.linalg.pinv(x, hermitian=v)",
    "jnp.linalg.trace(x, dtype=v)", "jnp.linalg.diagonal(x, offset=v)",
    "jnp.linalg.vector_norm(x, keepdims=v)", "jax.nn.logsumexp(x, keepdims=v)",
    "jax.nn.one_hot(x, 3, axis=v)", "x.sum(keepdims=v)", "x.cumsum(v)", "x.dot(x, precision=v)",
    "x.flatten(v)", "x.argsort(v)"}


@pytest.mark.parametrize("text", sorted(HANDED_ON))
@pytest.mark.parametrize("kind", UNHASHABLE)
def test_static_arguments_that_are_handed_on(text: str, kind: str) -> None:
    messages = []
    for package in (jax, maxjax):
        x = package.numpy.eye(3)
        with pytest.raises(ValueError, match="Non-hashable static arguments") as caught:
            eval(text, {"jax": package, "jnp": package.numpy, "x": x,
                        "v": UNHASHABLE[kind](package)})
        messages.append(re.sub(r"[\w.]+\.ArrayImpl", "ArrayImpl", str(caught.value)))
    assert messages[0] == messages[1]


def test_axes_that_jax_takes_from_lists() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name in ("sum", "max", "mean", "std", "all", "linalg.vector_norm"):
        expected, actual = [functools.reduce(getattr, name.split("."), package.numpy)(
            x, axis=[0]) for package in (jax, maxjax)]
        np.testing.assert_allclose(actual, expected, rtol=1e-6, err_msg=name)


def test_lowering_of_functions() -> None:
    x = np.array([[3., 1.], [2., 5.]], np.float32)
    compiled = jnp.cumsum.lower(x, axis=1).compile()
    np.testing.assert_array_equal(compiled(x), jax.numpy.cumsum.lower(x, axis=1).compile()(x))
    assert jnp.matmul.eval_shape(x, x).shape == (2, 2)
    assert str(jnp.sin.trace(1.).jaxpr) == str(jax.numpy.sin.trace(1.).jaxpr)
    assert jnp.sort.lower(x, 0).out_info.shape == (2, 2)
    jnp.sort.clear_cache()


def test_functions_with_stages_can_be_exported() -> None:
    x = np.ones((2, 2), np.float32)
    np.testing.assert_array_equal(maxjax.export.export(jnp.matmul)(x, x).call(x, x), x @ x)
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        maxjax.export.export(jnp.sum)


def test_what_wraps_a_function_has_not_its_stages() -> None:
    @functools.wraps(jnp.sin)
    def wrapped(x: Any) -> Any:
        return jnp.sin(x) + 1

    assert wrapped.__name__ == "sin" and not hasattr(wrapped, "lower")
    assert not hasattr(maxjax.vmap(jnp.sin), "lower")
    compiled = maxjax.jit(wrapped).lower(0.).compile()
    assert compiled(0.) == 1
