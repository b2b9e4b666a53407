"""``jnp.sin.lower(x)``: which library functions can be lowered, and with which static arguments."""

from __future__ import annotations

import functools
import importlib
import inspect
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
            info = theirs._jit_info
            positional = list(inspect.signature(theirs).parameters)
            static = {*(info.static_argnames or ()),
                      *(positional[number] for number in info.static_argnums or ())}
            assert set(static_names(function)) == static & set(positional), name


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
