"""A call over a mesh derives nothing again that the one before it derived: the number of the
library's functions that it goes through is counted, which is the same on any machine."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests import ROOT

# What a call may go through, two of which are asked only where calls have taken long; it is the
# function's Python that an eager ``shard_map`` runs anew.
MOST = {"jit": 18, "jit with shardings": 18, "compiled with shardings": 18,
        "compiled, of a tree": 18, "jit(shard_map)": 19, "shard_map": 380}
KINDS = ("Auto", "Explicit")


@functools.cache
def counted() -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    result = subprocess.run(
        [sys.executable, "-m", "tests.sharding.hot_calls"], cwd=ROOT, capture_output=True,
        text=True, env={**environment, "MAXJAX_COMPILE": "never"})
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MOST)
def test_functions_of_a_hot_call(name, kind):
    assert counted()[f"{name} {kind}"]["hot"] <= MOST[name]


@pytest.mark.parametrize("kind", KINDS)
def test_written_specs_are_not_propagated(kind):
    assert not counted()[f"jit(shard_map) {kind}"]["propagates"]
    assert counted()[f"jit {kind}"]["propagates"]      # so it would be seen
