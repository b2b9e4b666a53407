"""Common programs against real JAX with 8 host devices: how the results are split, and no more
collectives than XLA emits."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import maxjax
import maxjax.lax
import maxjax.nn
import maxjax.numpy
import maxjax.sharding
from maxjax._base import pytree
from maxjax._ir.jaxpr import subjaxprs
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._sharding.engine import partition
from maxjax._sharding.specs import Spec
from tests import ROOT
from tests.sharding.sharded_by_xla import SIZES, manual_programs, programs

pytestmark = pytest.mark.xdist_group("sharding_against_jax")      # XLA compiles once for all


@functools.cache
def by_xla():
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    run = subprocess.run([sys.executable, "-m", "tests.sharding.sharded_by_xla"], cwd=ROOT,
                         env=environment, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


@functools.cache
def partitioned(name):
    function, shapes, splits, asked = programs(maxjax)[name]
    closed = trace_to_jaxpr(lambda *xs: pytree.flatten(function(*xs))[0],
                            [ShapedArray(shape, np.float32) for shape in shapes])
    return partition(closed, SIZES, [Spec.of(*split) for split in splits],
                     None if asked is None else [Spec.of(*split) for split in asked])


def collectives_in(jaxpr):
    """Equations that communicate, including those of inner jaxprs."""
    return sum(eqn.primitive.name in COMMUNICATING for eqn in jaxpr.eqns) + sum(
        collectives_in(inner) for eqn in jaxpr.eqns for inner in subjaxprs(eqn.params))


COMMUNICATING = ("psum", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant",
                 "reduce_scatter", "all_to_all", "ppermute")
MANUAL = manual_programs(maxjax)


@functools.cache
def count(name):
    if name not in MANUAL:
        return len(partitioned(name).report.moves)
    function, shapes = MANUAL[name]
    devices = maxjax.sharding.AbstractMesh((8,), ("x",), (maxjax.sharding.AxisType.Auto,))
    mapped = maxjax.shard_map(function, mesh=devices, in_specs=maxjax.P("x"),
                              out_specs=maxjax.P("x"))
    return collectives_in(maxjax.make_jaxpr(mapped)(
        *[maxjax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]).jaxpr)


@pytest.mark.parametrize("name", list(programs(maxjax)))
def test_results_lie_as_jaxs(name):
    assert [[list(axes) for axes in out] for out in partitioned(name).out_specs] == (
        by_xla()[name][1])


NAMES = [*programs(maxjax), *MANUAL]


@pytest.mark.parametrize("name", NAMES)
def test_no_more_collectives_than_xla(name):
    assert count(name) <= by_xla()[name][0]


def test_the_table_of_collectives():
    """The table in docs/sharding.md matches both."""
    text = ROOT.joinpath("docs", "sharding.md").read_text()
    table = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    assert [(name, int(ours), int(theirs)) for name, ours, theirs in table] == [
        (name, count(name), by_xla()[name][0]) for name in NAMES]
