"""Meshes, shardings, and programs over 8 devices: each line of api.txt has the same outcome in
maxjax as in JAX 0.10.2: results, shardings, types, errors and pictures.

``api_cases.py`` runs the lines, in a separate process with 8 devices.
"""

from __future__ import annotations

import doctest
import functools
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
from tests.sharding.api_cases import lines

AUTO_TYPES = "types of arrays on Auto axes do not name the mesh"
MORE = "maxjax finds the mesh of the arguments, where JAX wants set_mesh"
SHARDS = "the engine settles conflicts by its own stated order"
NAMES = "the arguments of an operation outside jit have other names in the message"
PREFIX = "the error names the place in the other words of maxjax's pytrees"
PRINTED = "nested jit shows its shardings as constraints, and sets print as Python's"
INDEX = "a slice is a slice, not a gather"
PARTLY = "JAX's print asks for axes that are not manual"
MASK = "JAX refuses a mask whose values it knows"
# Beginnings of lines with a different outcome: a line that now agrees fails.
DIFFERENT = {
    "(x2*jax.device_put(np.ones((8,2)),NS(m2,P('b')))).sharding": SHARDS,
    "x2+x": AUTO_TYPES, "jax.typeof(x2).sharding,": AUTO_TYPES,
    "jax.jit(lambda x:print(jax.typeof(x), jax.typeof(x).sharding) or x)(x2)": AUTO_TYPES,
    "jax.device_put({'a':np.ones((8,)),'b'": PREFIX, "jax.device_put(np.ones((8,)),[d[0]])": PREFIX,
    "jax.make_jaxpr(lambda x:lax.with_sharding_constraint(x*2,NS(m2": PRINTED,
    "jax.device_put(np.ones((8,4),np.float32),NS(me,P(unreduced={'a'})))":
        "JAX makes parts of a sum only where a dimension is split too",
    "jax.make_jaxpr(jax.jit(lambda x:x*2,in_shardings": PRINTED,
    "jnp.where(jax.device_put(np.ones(2),d[2])": NAMES, "lax.add(jax.device_put": NAMES,
    "jnp.dot(jax.device_put(np.ones(2),d[2])": NAMES, "jnp.concatenate([jax.device_put": NAMES,
    "jax.reshard(x2,NS(m2,P('b'))).sharding": "JAX's message names a place in JAX",
    "jnp.zeros((8,2),out_sharding=NS(m": MORE, "ty(T((8,4),'a').at[0].set(1.))": MORE,
    "ty(jax.grad(lambda": MORE, "g(T((8,4),'a'))": MORE,
    "ty(T((8,4),'a')[0])": INDEX, "ty(T((8,4),'a')[:4])": INDEX, "ty(T((8,4),'a')[::2])": INDEX,
    "sm(looks(lambda v:v),mesh=m2,axis_names": PARTLY,
    "sm(looks(lambda v:lax.psum(v,'i')[lax.psum": MASK,
    "ty(jnp.take(": "the row is clamped by a dynamic slice, not gathered",
    "ty(jnp.pad(T((8,4),'a'),1))": "sizes print as Python's",
}


@functools.cache
def ours() -> list[str]:
    return outcomes_of("maxjax")


def outcomes_of(library: str) -> list[str]:
    environment = {**os.environ, "MAXJAX_COMPILE": "never", "JAX_PLATFORMS": "cpu"}
    run = subprocess.run([sys.executable, "-m", "tests.sharding.api_cases", library], cwd=ROOT,
                         env=environment, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


CASES = [(number, line) for number, (line, outcome) in enumerate(lines())
         if outcome or not line.startswith("!")]


@pytest.mark.parametrize("number, line", CASES, ids=[f"{n}: {line[:60]}" for n, line in CASES])
def test_line(number, line):
    expected, actual = lines()[number][1], ours()[number]
    reason = next((why for start, why in DIFFERENT.items() if line.startswith(start)), None)
    if reason is None:
        # JAX's invitation to its bug tracker is replaced by a hint.
        start, asked, _ = expected.partition(" Please file a")
        assert actual == expected if not asked else actual.startswith(start.rstrip("."))
    else:
        assert actual != expected, f"{line} gives what it gives in JAX: take it out of DIFFERENT"


EXAMPLES = {
    "sharding": ["PartitionSpec", "auto", "explain", "make_mesh", "set_mesh"],
    "debug": ["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"],
    "experimental.mesh_utils": ["create_device_mesh"],
    "experimental.multihost_utils": ["process_allgather"],
    "_runtime.assembly": ["make_array_from_callback"],
    "_sharding.execute": ["global_program"],
}


@pytest.mark.parametrize("module, name", [(m, n) for m, names in EXAMPLES.items() for n in names])
def test_example(module, name):
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


@pytest.mark.exhaustive       # most of a minute; JAX's outcomes change only with its version
def test_the_outcomes_are_jaxs():
    recorded = [outcome or "done" for _, outcome in lines()]
    assert outcomes_of("jax") == recorded


EXAMPLE = ROOT / "examples" / "sharded_transformer.py"


def losses(path, *arguments):
    environment = {**os.environ, "MAXJAX_COMPILE": "never"}
    environment.pop("XLA_FLAGS", None)
    subprocess.run([sys.executable, str(EXAMPLE), "--steps", "8", "--losses", str(path),
                    *arguments], check=True, capture_output=True, env=environment)
    return json.loads(path.read_text())


@pytest.mark.slow
def test_the_transformer_has_jaxs_losses(tmp_path):
    np.testing.assert_allclose(losses(tmp_path / "ours"), losses(tmp_path / "theirs", "--jax"),
                               rtol=1e-5)
