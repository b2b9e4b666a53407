"""``custom_partitioning`` against JAX with 8 host devices: what ``partition`` is asked, the results
and how they lie, and errors."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Any

import pytest

import maxjax
from maxjax import export
from maxjax import numpy as jnp
from maxjax.experimental.custom_partitioning import custom_partitioning
from tests import ROOT


@functools.cache
def run(library: str) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    result = subprocess.run(
        [sys.executable, "-m", "tests.sharding.custom_partitioning_programs", library],
        cwd=ROOT, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.xdist_group("custom_partitioning")
def test_partitioned_functions_are_as_in_jax():
    mine, theirs = run("maxjax"), run("jax")
    assert list(mine) == list(theirs)
    assert {name: found for name, found in mine.items() if found != theirs[name]} == {}


def test_exported_as_the_function_itself():
    twice = custom_partitioning(lambda x: 2 * x)
    twice.def_partition(lambda mesh, args, result: (mesh, None, None, None), sharding_rule="i -> i")
    exported = export.export(maxjax.jit(twice))(jnp.arange(3))
    assert exported.call(jnp.arange(3)).tolist() == [0, 2, 4]
