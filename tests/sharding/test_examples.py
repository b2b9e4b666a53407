"""The public functions about sharding: their examples, and the transformer of examples/."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import maxjax
import maxjax.numpy
import maxjax.sharding
from maxjax.sharding import AxisType, NamedSharding, PartitionSpec
from tests import ROOT

EXAMPLES = {
    "sharding": ["PartitionSpec", "auto", "explain", "make_mesh", "set_mesh"],
    "debug": ["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"],
    "experimental.mesh_utils": ["create_device_mesh"],
    "experimental.multihost_utils": ["process_allgather"],
    "_runtime.assembly": ["make_array_from_callback"],
    "_sharding.execute": ["global_program"],
}


@pytest.mark.parametrize("module, name", [(m, n) for m, names in EXAMPLES.items() for n in names])
def test_an_example_prints_what_it_says(module, name):
    found = importlib.import_module(f"maxjax.{module}")
    value = getattr(found, name)
    environment = {**vars(found), "jax": maxjax, "jnp": maxjax.numpy, "np": np, "print": print}
    example = doctest.DocTestParser().get_doctest(value.__doc__, environment, name, None, None)
    printed: list[str] = []
    result = doctest.DocTestRunner().run(example, out=printed.append)
    assert result.attempted and not result.failed, "".join(printed)


def test_an_uncommitted_argument_goes_where_the_others_are():
    mesh = maxjax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    rows = NamedSharding(mesh, PartitionSpec("x"))
    x = maxjax.device_put(np.ones((4, 4), np.float32), rows)
    explanation = maxjax.sharding.explain(lambda x, y: x @ y, x, np.ones((4, 4), np.float32))
    assert "dot_general" in explanation.text() and explanation.dot().startswith("digraph")
    assert (x + maxjax.numpy.ones(4)).sharding.is_equivalent_to(rows, 2)


EXAMPLE = ROOT / "examples" / "sharded_transformer.py"


def losses(path, *arguments):
    environment = {**os.environ, "MAXJAX_COMPILE": "never"}
    environment.pop("XLA_FLAGS", None)
    subprocess.run([sys.executable, str(EXAMPLE), "--steps", "8", "--losses", str(path),
                    *arguments], check=True, capture_output=True, env=environment)
    return json.loads(path.read_text())


@pytest.mark.slow
@pytest.mark.extended
def test_the_transformer_has_jaxs_losses(tmp_path):
    np.testing.assert_allclose(losses(tmp_path / "ours"), losses(tmp_path / "theirs", "--jax"),
                               rtol=1e-5)
