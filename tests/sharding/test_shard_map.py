"""``shard_map`` and ``pmap`` on 8 devices against real JAX."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import ROOT
from tests.sharding.shard_map_programs import COMPILED, LIVE
from tests.support import tolerances

HERE = Path(__file__).parent
BY_JAX = json.loads((HERE / "shard_map.json").read_text())

# Programs that maxjax writes otherwise than JAX, and why.
NUMBERS = "Python's numbers are converted while tracing, which leaves no equation that does it"
DIFFERS = dict.fromkeys(
    ("texts scalar", "texts while", "texts cond", "texts of another", "texts fori"), NUMBERS)


@functools.cache
def run(library: str, *names: str, compile: str = "never") -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    result = subprocess.run(
        [sys.executable, "-m", "tests.sharding.shard_map_programs", library, *names],
        cwd=ROOT, capture_output=True, text=True, env={**environment, "MAXJAX_COMPILE": compile})
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def agrees(actual: Any, expected: Any) -> bool:
    if "values" not in expected or "values" not in actual:
        return actual == expected
    pairs = list(zip(actual["values"], expected["values"], strict=True))
    return all(mine["dtype"] == other["dtype"] and mine["shape"] == other["shape"] and np.allclose(
        mine["data"], other["data"], *tolerances.bounds(
            "accumulate", np.dtype(other["dtype"]), True), equal_nan=True)
        for mine, other in pairs)


@pytest.mark.xdist_group("shard_map")
@pytest.mark.parametrize("name", list(BY_JAX))
def test_shard_map_is_as_in_jax(name):
    actual, expected = run("maxjax")[name], BY_JAX[name]
    assert agrees(actual, expected) == (name not in DIFFERS), (actual, expected)


@pytest.mark.xdist_group("shard_map")
def test_all_are_recorded():
    assert list(run("maxjax")) == list(BY_JAX)


@pytest.mark.xdist_group("shard_map")
@pytest.mark.parametrize("name", LIVE)
def test_what_is_recorded_is_what_jax_gives(name):
    assert agrees(run("jax", *LIVE)[name], BY_JAX[name])


@pytest.mark.extended
@pytest.mark.xdist_group("mojo")
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_shard_map_is_as_in_jax(name):
    actual, expected = run("maxjax", *COMPILED, compile="always")[name], BY_JAX[name]
    assert agrees(actual, expected), (actual, expected)


def test_a_wrong_collective_shows():
    right = [name for name, result in run("maxjax", "broken").items()
             if agrees(result, BY_JAX[name])]
    assert not right
