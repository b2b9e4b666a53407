"""Expressions with their recorded outcomes in JAX 0.10.2 (tests/api/semantics/*.txt).

A line is ``expression -> outcome``: the printed value, or ``RAISES type: 'message'``; JAX's
warnings follow in brackets. The expression is evaluated with maxjax replacing jax.
"""

from __future__ import annotations

import ast
import collections.abc
import contextlib
import copy
import importlib
import json
import math
import numbers
import os
import pickle
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("MAXJAX_COMPILE", "never")

import numpy as np
import pytest

import maxjax
import maxjax.lax
import maxjax.numpy as jnp
from maxjax._base import config
from maxjax._runtime import devices as runtime

FOLDER = Path(__file__).resolve().parent / "semantics"

# Output that differs in maxjax, on purpose.
SPELLINGS = (
    ("jaxlib._jax.ArrayImpl", "maxjax._runtime.array.ArrayImpl"),
    ("unhashable type: 'maxjax._runtime.array.ArrayImpl'", "unhashable type: 'ArrayImpl'"),
    ("<class 'jax.ShapeDtypeStruct'>", "<class 'maxjax.ShapeDtypeStruct'>"),
)



def load_differences() -> dict[str, str]:
    """``file: expression`` with a different outcome in maxjax, each with the reason above it."""
    found: dict[str, str] = {}
    reason = ""
    for line in (FOLDER / "differences.list").read_text().splitlines():
        if line.startswith("--- "):
            reason = line.removeprefix("--- ")
        elif line:
            found[line] = reason
    return found


DIFFERENCES = load_differences()


def load() -> list[tuple[str, str, str]]:
    rows = []
    for path in sorted(FOLDER.glob("*.txt")):
        for line in path.read_text().splitlines():
            if line.startswith("---") or " -> " not in line:
                continue
            expression, outcome = re.split(r"\s+-> ", line, maxsplit=1)
            outcome = re.sub(r"\s+\[warn .*\]$", "", outcome)
            rows.append((path.stem, expression, outcome))
    return rows


ROWS = load()


# The prefix of expressions evaluated with the old layout of random counters.
OLD_COUNTERS = "threefry_partitionable(False) "


def context_of(expression: str, outcome: str) -> Any:
    """The configuration under which a line was written."""
    if "rank_promotion='raise'" in outcome:
        return config.rank_promotion("raise")
    if "dtype_promotion=strict" in outcome:
        return config.dtype_promotion("strict")
    if expression.startswith("x64:"):
        return config.enable_x64(True)
    if expression.startswith(OLD_COUNTERS):
        return config.threefry_partitionable(False)
    if "float(x)" in expression and not outcome.startswith("RAISES"):
        return config.disable_jit(True)
    if "FloatingPointError" in outcome:
        return config.debug_nans(True)
    return contextlib.nullcontext()


LIBRARIES = {module.__name__: module for module in (
    collections, copy, json, math, numbers, pickle)}


def names() -> dict[str, Any]:
    for name in ("random", "nn", "tree", "tree_util", "dtypes", "ops", "sharding"):
        with contextlib.suppress(ImportError):
            importlib.import_module(f"maxjax.{name}")

    def described(x: Any) -> tuple[str, bool]:
        return str(x.dtype), bool(x.weak_type)

    sharding = maxjax.sharding
    return {
        "P": sharding.PartitionSpec, "NamedSharding": sharding.NamedSharding,
        "AxisType": sharding.AxisType, "x4": jnp.arange(4.),
        "m": maxjax.make_mesh((2, 2), ("a", "b"), axis_types=(sharding.AxisType.Auto,) * 2),
        "mesh": maxjax.make_mesh((2, 2), ("a", "b")),
        "jax": maxjax, "jnp": jnp, "lax": maxjax.lax, "np": np, "x": jnp.arange(5.),
        "i": jnp.array(7), "v3": jnp.arange(3.), "i3": jnp.arange(3), "v2000": jnp.arange(2000.),
        "m23": jnp.arange(6.).reshape(2, 3) + 0.5, **LIBRARIES, "d": described,
        "f": lambda fun, *args: maxjax.jit(fun)(*args),
    }


@pytest.fixture(autouse=True, scope="module")
def four_devices() -> Iterator[None]:
    """The expressions were recorded on this many."""
    count = len(maxjax.devices())
    runtime._devices.extend(runtime.Device("cpu", n) for n in range(count, 4))
    yield
    del runtime._devices[count:]


def leaked_tracer() -> Any:
    leaked = []
    maxjax.jit(lambda x: leaked.append(x + 0) or x)(1.0)
    return leaked[0] + 1


def donated_then_used() -> Any:
    x = jnp.arange(8.0)
    maxjax.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x + 1


def without_rule() -> Any:
    @maxjax.custom_jvp
    def g(x: Any) -> Any:
        return x

    return maxjax.grad(g)(1.0)


# The programs for lines that describe one in words.
DESCRIBED = {
    "leaked tracer use": leaked_tracer,
    "donation then use": donated_then_used,
    "custom_jvp w/o rule grad": without_rule,
}


def outcome_of(expression: str) -> str:
    code = expression.removeprefix("x64: ").removeprefix(OLD_COUNTERS)
    try:
        value = DESCRIBED[code]() if code in DESCRIBED else eval(code, names())
        text = repr(value)
    except Exception as error:
        kind = type(error)
        module = kind.__module__.replace("maxjax._base.errors", "jax.errors")
        if kind.__name__ == "TypePromotionError":
            module = "jax.dtypes"
        return f"RAISES {module}.{kind.__qualname__}: {str(error)!r}"
    return text.replace("\n", "\\n")


# An object's address in memory.
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")


def same(expected: str, actual: str) -> bool:
    """Equal text, up to rounding of floats; for errors, the type and the gist."""
    for theirs, ours in SPELLINGS:
        expected = expected.replace(theirs, ours)
    expected, actual = (_ADDRESS.sub("0x0", text) for text in (expected, actual))
    if expected.startswith("RAISES"):
        pattern = r"RAISES ([\w.]+): (.*)"
        theirs, ours = re.match(pattern, expected), re.match(pattern, actual)
        if theirs is None or ours is None or theirs.group(1) != ours.group(1):
            return False
        messages = []
        for match in (theirs, ours):
            text = match.group(2)
            with contextlib.suppress(SyntaxError, ValueError):
                text = ast.literal_eval(text)
            messages.append(str(text)[:60])
        return messages[0] == messages[1]
    if expected == actual:
        return True
    if _NUMBER.sub("#", expected) != _NUMBER.sub("#", actual):
        expected, actual = (re.sub(r"\s+", "", text) for text in (expected, actual))
        if _NUMBER.sub("#", expected) != _NUMBER.sub("#", actual):
            return False
    return all(
        theirs == ours or ("." in theirs and np.isclose(float(theirs), float(ours), 3e-6, 1e-7))
        for theirs, ours in zip(_NUMBER.findall(expected), _NUMBER.findall(actual), strict=True))


@pytest.mark.parametrize(
    "file, expression, outcome", ROWS, ids=[f"{file}:{text}" for file, text, _ in ROWS])
def test_outcome(file: str, expression: str, outcome: str) -> None:
    with warnings.catch_warnings(), context_of(expression, outcome):
        warnings.simplefilter("ignore")
        actual = outcome_of(expression)
    reason = DIFFERENCES.get(f"{file}: {expression}")
    if same(outcome, actual):
        assert reason is None, (
            f"{expression} has JAX's outcome now: delete it from semantics/differences.list")
        return
    if reason is not None:
        pytest.xfail(reason)
    raise AssertionError(f"{expression}\n  JAX:    {outcome}\n  maxjax: {actual}")


def test_differences_are_of_expressions() -> None:
    assert set(DIFFERENCES) <= {f"{file}: {expression}" for file, expression, _ in ROWS}
