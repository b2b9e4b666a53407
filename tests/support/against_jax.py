"""maxjax and real JAX side by side: the same function on both, trees of results compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import maxjax
import maxjax.tree_util
from tests.support import harness


def tree_of(value: Any) -> Any:
    """The structure of a result as JAX prints it."""
    return jax.tree_util.tree_structure(value)


def assert_tree_same(actual: Any, expected: Any, kind: str = "accumulate", *, weak: bool = True,
                     derivative: bool = False) -> None:
    """Trees, dtypes, shapes, weak types and values are JAX's."""
    assert tree_of(actual) == tree_of(expected)
    pairs = zip(harness.leaves(actual), harness.leaves(expected), strict=True)
    for number, (a, e) in enumerate(pairs):
        if isinstance(e, str):
            assert a == e
            continue
        if isinstance(e, (bool, int, float, complex)):
            # JAX returns scalars of its own class where maxjax returns arrays.
            assert np.asarray(a).shape == ()
            np.testing.assert_allclose(np.asarray(a), e, rtol=1e-6)
            continue
        harness.assert_same(a, e, kind, weak=weak, derivative=derivative, signed_zeros=False,
                            what=f"[{number}] ")


def agree(fun: Callable[..., Any], *args: Any, kind: str = "accumulate", weak: bool = True,
          derivative: bool = True) -> Any:
    """Runs ``fun(j, *args)`` on both libraries and compares; returns maxjax's result."""
    expected = fun(jax, *args)
    actual = fun(maxjax, *args)
    assert_tree_same(actual, expected, kind, weak=weak, derivative=derivative)
    return actual


def errors_of(fun: Callable[[Any], Any]) -> tuple[Exception, Exception]:
    """The errors that ``fun(j)`` raises on maxjax and on JAX."""
    raised = []
    for library in (maxjax, jax):
        try:
            result = fun(library)
        except Exception as error:
            raised.append(error)
        else:
            raise AssertionError(f"{library.__name__} raises nothing, and gives {result!r}")
    return raised[0], raised[1]


def first_line(error: Exception) -> str:
    return harness.stable(str(error).split("\n")[0])


def assert_same_error(fun: Callable[[Any], Any], whole: bool = False) -> Exception:
    """Both libraries raise an error of the same class, with the same first line (or message)."""
    actual, expected = errors_of(fun)
    shown = f"{type(actual).__name__}: {actual}\nnot {type(expected).__name__}: {expected}"
    assert type(actual).__name__ == type(expected).__name__, shown
    if whole:
        assert harness.stable(str(actual)) == harness.stable(str(expected)), shown
    else:
        assert first_line(actual) == first_line(expected), shown
    return actual


def answers_of(functions: dict[str, Callable[..., Any]], *args: Any) -> dict[str, Any]:
    """The results of JAX's functions for these arguments, or the error; in one compilation."""
    try:
        return dict(jax.jit(lambda *xs: {name: f(*xs) for name, f in functions.items()})(*args))
    except Exception:
        outcomes: dict[str, Any] = {}
    for name, function in functions.items():
        try:
            outcomes[name] = jax.jit(function)(*args)
        except Exception as error:
            outcomes[name] = error
    return outcomes
