"""Common programs against real JAX with 8 host devices: how the results are split, and no more
collectives than XLA compiles to."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sharded_by_xla import SIZES, programs

import maxjax
import maxjax.lax
import maxjax.nn
import maxjax.numpy
from maxjax._base import pytree
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._sharding.api import partition
from maxjax._sharding.specs import Spec


@functools.cache
def by_xla():
    script = Path(__file__).with_name("sharded_by_xla.py")
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    run = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True,
                         env=environment)
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", list(programs(maxjax)))
def test_against_jax(name):
    function, shapes, splits = programs(maxjax)[name]
    closed = trace_to_jaxpr(lambda *xs: pytree.flatten(function(*xs))[0],
                            [ShapedArray(shape, np.float32) for shape in shapes])
    made = partition(closed, SIZES, [Spec.of(*split) for split in splits])
    count, dims = by_xla()[name]
    assert [[list(axes) for axes in out] for out in made.out_specs] == dims
    assert len(made.report.moves) <= count, made.report.text()
