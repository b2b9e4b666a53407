"""StableHLO: XLA parses, compiles and runs the text of each case's program, and agrees with tier 0.

It is an independent reading of the whole intermediate representation.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax._src import xla_bridge
from jax._src.interpreters import mlir
from jaxlib import _jax, lapack, xla_client
from jaxlib.mlir import ir

import maxjax
from maxjax._base.dtypes import KeyDType
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import read_inputs
from maxjax._ir.runtime import installed
from maxjax._transforms.simplify import simplify
from tests.support import mojo_programs

# XLA finds SciPy's LAPACK only after this.
lapack._lapack.initialize()

FAMILIES = mojo_programs.tables()
# `pytest -m exhaustive` runs all.
COUNT = 10


def parsed(text):
    with mlir.make_ir_context():
        return mlir.module_to_bytecode(ir.Module.parse(text))


def run_by_xla(text, values):
    client = xla_bridge.get_backend("cpu")
    executable = client.compile_and_load(
        parsed(text), _jax.DeviceList(tuple(client.devices()[:1])), xla_client.CompileOptions())
    with jax.enable_x64(True):
        results = executable.execute_sharded([jax.device_put(value) for value in values])
        return [np.asarray(shards[0])
                for shards in results.disassemble_into_single_device_arrays()]


def text_of(closed):
    return installed.runtime.stablehlo(
        "f", closed, [f"result[{number}]" for number in range(len(closed.out_avals))])


def words(value, aval):
    return value[..., None].view(np.uint32) if isinstance(aval.dtype, KeyDType) else value


def check(item):
    """Whether XLA can run all of it; raises an AssertionError where it gives something else."""
    closed = ClosedJaxpr(item.program.opened.jaxpr, [])
    values = [np.asarray(value) for value in item.values]
    with np.errstate(all="ignore"):
        expected = item.program.tier0(*[value.copy() for value in values])
    text = text_of(closed)
    if "maxjax." in text:
        parsed(text)
        return False
    given = [words(value, aval) for value, aval, read in zip(
        values, closed.in_avals, read_inputs(simplify(closed)), strict=True) if read]
    actual = run_by_xla(text, given)
    if item.tolerance == "elementwise":
        item.tolerance = "accumulate"       # XLA rounds a product and a sum at once
    item.compare([value.view(np.dtype(aval.dtype.physical))[..., 0]
                  if isinstance(aval.dtype, KeyDType) else value
                  for value, aval in zip(actual, closed.out_avals, strict=True)], expected)
    return True


def check_family(family, count):
    chosen = [(case, mode) for case in FAMILIES[family] for mode in mojo_programs.modes_of(case)]
    if count is not None and len(chosen) > count:
        chosen = [chosen[int(number * len(chosen) / count)] for number in range(count)]
    failures, said = [], 0
    for case, mode in chosen:
        item = mojo_programs.item_of(case, mode)
        try:
            said += check(item)
        except Exception as error:
            failures.append(f"{item.name}: {type(error).__name__}: {error}")
    assert not failures, f"{len(failures)} of {len(chosen)} differ:\n" + "\n".join(failures)
    return said, len(chosen)


@pytest.mark.parametrize("family", FAMILIES)
def test_families_give_what_tier_0_gives(family):
    check_family(family, COUNT)


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_give_what_tier_0_gives(family):
    check_family(family, None)


def test_operations_say_where_they_come_from():
    """With ``debug_info``: scopes and lines, which XLA reads, and without it none."""
    def function(x):
        with maxjax.named_scope('the "first"'):
            y = maxjax.numpy.sin(x)
        y = maxjax.lax.fori_loop(0, 3, lambda _, c: c + maxjax.numpy.tanh(c), y)
        return y, maxjax.numpy.sort(x)

    lowered = maxjax.jit(function).lower(np.ones(3, np.float32))
    text = lowered.as_text(debug_info=True)
    line = function.__code__.co_firstlineno + 2
    assert rf'loc("jit(function)/the \"first\"/sin"("{__file__}":{line}:0))' in text
    assert 'loc("jit(function)/tanh"' in text
    assert "}) : (tensor<3xf32>) -> (tensor<3xf32>) loc(" in text
    assert parsed(text)
    assert " loc(" not in lowered.as_text() and lowered.as_text() == lowered.as_text("stablehlo")
