"""The graphs that MAX gets for an accelerator: all are built, one of each family is compiled."""

from __future__ import annotations

import subprocess
import sys

import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax._ir.jaxpr import Jaxpr, Literal
from maxjax._max.graph.accelerator import HOST_STEPS, device_reason, suits_cublas
from maxjax._runtime.tiering import tiering
from maxjax._transforms.partition import Piece, partition
from tests import ROOT
from tests.accelerators.compile_for_gpu import COMPOSED
from tests.support import harness, tier1

FAMILIES = {name: cases for name, cases in harness.families().items()
            if not isinstance(cases, Exception)}


def pieces_of(item: tier1.Compiled) -> list[Piece]:
    return partition(item.program.opened.jaxpr, device_reason)


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.extended
def test_every_graph_is_built(family):
    """What ``device_reason`` lets through, the context lowers, for an accelerator's device."""
    from max.graph import DeviceRef, Graph, Module

    from maxjax._max.graph.context import tensor_type
    from maxjax._max.graph.device_context import DeviceContext
    from maxjax._max.graph.kernel_library import package_path

    library = package_path(tiering.graph.service.cache.directory)
    context = DeviceContext(DeviceRef.GPU(0))
    seen = set()
    for case in tier1.select(FAMILIES[family]):
        with case.precision():
            for piece in pieces_of(tier1.program_of(case, "")):
                for eqn in () if piece.on_host else piece.jaxpr.eqns:
                    what = str(Jaxpr([], list(dict.fromkeys(
                        x for x in eqn.invars if not isinstance(x, Literal))),
                        list(eqn.outvars), [eqn], ""))
                    if what in seen:
                        continue
                    seen.add(what)
                    inputs = list(dict.fromkeys(
                        x for x in eqn.invars if not isinstance(x, Literal)))
                    jaxpr = Jaxpr([], inputs, list(eqn.outvars), [eqn], "")
                    with Graph("graph", module=Module(), custom_extensions=[library],
                               input_types=[tensor_type(x.aval, context.device)
                                            for x in inputs]) as graph:
                        graph.output(*context.lower_jaxpr(
                            jaxpr, [], [x.tensor for x in graph.inputs]))


@pytest.mark.exhaustive       # minutes: MAX takes some 20 s for each
def test_a_program_of_each_family_and_of_what_is_composed_compiles_for_a_gpu(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.accelerators.compile_for_gpu", str(tmp_path)],
        capture_output=True, text=True, timeout=1800, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert set(lines) == {*FAMILIES, *COMPOSED}
    assert all(x.startswith(("OK ", "nothing of it")) for x in lines.values()), done.stdout
    assert sum(x.startswith("OK ") for x in lines.values()) >= 15 + len(COMPOSED)
    assert all(name in lines[name] for name in COMPOSED), done.stdout


def test_host_steps_are_primitives_of_the_tables():
    names = {eqn.primitive.name for cases in FAMILIES.values() for case in tier1.select(cases)
             for eqn in tier1.program_of(case, "").program.opened.jaxpr.eqns}
    assert set(HOST_STEPS) <= names


def test_which_products_are_of_cublas():
    """Large ones of floats; cuBLAS refuses whole numbers, and is slower for small ones."""
    def suits(side: int, dtype: str) -> bool:
        x = jnp.zeros((side, side), dtype)
        return suits_cublas([maxjax.make_jaxpr(maxjax.jit(lambda x: x @ x + 1))(x).jaxpr])

    assert suits(1024, "float32") and suits(1024, "bfloat16")
    assert not suits(512, "float32")
    assert not suits(1024, "uint8") and not suits(1024, "int32")
    assert not suits_cublas([maxjax.make_jaxpr(jnp.sin)(1.0).jaxpr])
