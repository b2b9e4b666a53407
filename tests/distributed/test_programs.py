"""Programs over the devices of several processes give what JAX gives in as many processes."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.distributed.running import ENGINES, START, lines, run
from tests.sharding.test_shard_map import BY_JAX, DIFFERS, agrees

# What they share is computed once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("distributed_programs")]

_SCRIPT = START + "import sys\nfrom tests.distributed.global_programs import main\nmain()\n"


@functools.cache
def results(engine: str, count: int = 2) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "results.npz")
        assert "* done" in lines(run(engine, _SCRIPT, count, devices=4 // count, RESULTS=path))
        return dict(np.load(path))


@pytest.mark.parametrize("engine", [pytest.param("gloo", marks=pytest.mark.extended), "mpi"])
def test_programs_over_two_processes_are_as_in_jax(engine):
    _compare(results(engine), results("jax"))


@pytest.mark.extended
def test_programs_in_one_process():
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "results.npz")
        lines(run("gloo", _SCRIPT.removeprefix(START), 1, devices=4, RESULTS=path))
        _compare(dict(np.load(path)), results("jax"))


@pytest.mark.extended
def test_programs_over_four_processes():
    _compare(results("gloo", 4), results("gloo"))


@pytest.mark.extended
def test_programs_compiled():
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "results.npz")
        names = ("gradient jit", "plane gradient jit", "among other operations", "while jit",
                 "choices in loops jit")
        lines(run("gloo", _SCRIPT, RESULTS=path, MAXJAX_COMPILE="always", PROGRAMS=",".join(names)))
        _compare(dict(np.load(path)), {
            name: value for name, value in results("gloo").items()
            if name.rpartition(" ")[0] in names})


def _compare(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    different = [name for name, value in expected.items() if not (
        found[name].dtype == value.dtype and found[name].shape == value.shape and (
            np.allclose(found[name], value, 1e-5, 1e-5) if value.dtype.kind != "U"
            else found[name] == value))]
    assert not different, [(name, found[name], expected[name]) for name in different]


@pytest.mark.parametrize("engine, count", [
    ("gloo", 2), pytest.param("mpi", 4, marks=pytest.mark.extended)])
def test_every_program_with_shard_map(engine, count):
    script = "from tests.distributed.shard_map_over_processes import main\nmain()\n"
    output, = [line for result in run(engine, script, count, devices=8 // count)
               for line in result.stdout.splitlines() if line.startswith("{")]
    found = json.loads(output)
    different = [name for name, expected in BY_JAX.items()
                 if "pmap" not in name and agrees(found[name], expected) != (name not in DIFFERS)]
    assert not different, [(name, found[name], BY_JAX[name]) for name in different]


_PMAP = START + r"""
import jax.numpy as jnp
from jax import lax
i = jax.process_index()
def show(name, function):
    try:
        said = str(function())
    except ValueError as error:
        said = f"ValueError {error}"
    said = said.replace("\n", " ")
    sys.stdout.write(f"* {i} {name} {said}\n")
    sys.stdout.flush()
f = jax.pmap(lambda x: lax.psum(x, "i") + lax.axis_index("i"), "i")
a = np.arange(4.).reshape(2, 2) + 10 * i
r = f(a)
show("result", lambda: (r, r.sharding, r.is_fully_addressable))
show("again", lambda: (f(r), f(r + 1)))
show("not mapped", lambda: jax.pmap(lambda x, y: x * y, in_axes=(0, None))(a, np.arange(2.) + i))
show("axes", lambda: (jax.pmap(lambda x: x * 2, out_axes=1)(a),
                      jax.pmap(lambda x: lax.psum(x, "i"), "i", in_axes=1)(a)))
first = jax.pmap(lambda x: lax.psum(x, "i"), "i", out_axes=None)(a)
show("one for all", lambda: (first, first.sharding))
show("sizes", lambda: jax.pmap(lambda x: x)(np.arange(4.)))
show("all", lambda: jax.pmap(lambda x: x, axis_size=4)(a))
for devices in (jax.local_devices(), jax.devices()):
    show("devices", lambda: jax.pmap(lambda x: lax.psum(x, "i"), "i", devices=devices)(a))
show("gradient", lambda: jax.grad(lambda a: f(a).sum())(jnp.asarray(a)))
show("under jit", lambda: jax.jit(f)(a))
show("gathered", lambda: jax.pmap(lambda x: lax.all_gather(x, "i"), "i")({"x": a}))
jax.distributed.shutdown()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_pmap_as_in_jax(engine):
    assert lines(run(engine, _PMAP)) == lines(run("jax", _PMAP))
