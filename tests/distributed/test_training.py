"""Training steps over several processes give what one process, and JAX's processes, give."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest

from maxjax._base.dtypes import float32
from maxjax._base.processes import job
from maxjax._ir.jaxpr import every_equation
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._sharding.device_collectives import collective_p
from maxjax._sharding.exchange import Exchange, Kind
from maxjax._sharding.joined import with_joined_reductions
from tests.distributed.running import START, lines, run

# What they share is computed once.
pytestmark = pytest.mark.xdist_group("distributed_training")

_MAIN = "\nfrom tests.distributed.training_steps import main\nmain()\n"


@functools.cache
def results(engine: str, processes: int, devices: int) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "results.npz")
        script = _MAIN if processes == 1 else START + _MAIN
        assert "* done" in lines(run(engine, script, processes, devices, RESULTS=path))
        return dict(np.load(path))


def compare(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, 2e-5, 2e-6, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("engine, processes", [
    ("gloo", 2), ("mpi", 2), pytest.param("gloo", 4, marks=pytest.mark.exhaustive),
    pytest.param("mpi", 4, marks=pytest.mark.exhaustive)])
def test_steps_are_those_of_one_process(engine, processes):
    compare(results(engine, processes, 2), results("gloo", 1, 2 * processes))


@pytest.mark.slow
@pytest.mark.parametrize("engine", [
    pytest.param("gloo", marks=pytest.mark.extended),
    pytest.param("mpi", marks=pytest.mark.exhaustive)])
def test_steps_are_those_of_jax(engine):
    compare(results(engine, 2, 2), results("jax", 2, 2))


def _exchanges(function, count):
    closed = trace_to_jaxpr(function, [ShapedArray((2, 3), float32)] * count)
    joined = with_joined_reductions(closed)
    return [eqn.invars[0].aval.shape for eqn in every_equation(joined)
            if eqn.primitive is collective_p]


def test_reductions_that_do_not_wait_for_each_other_are_joined():
    assert job.count == 1

    def total(x, kind=Kind.SUM):
        return collective_p.bind(x, exchange=Exchange(kind, ((0, 1),), (0, 1), "test"))

    assert _exchanges(lambda a, b: [total(a) * 2, total(b * 2)], 2) == [(12,)]
    # The third needs the first: it joins the second, that a maximum cannot join.
    assert _exchanges(lambda a, b: [total(total(a) * b), total(b, Kind.MAXIMUM)], 2) == [
        (2, 3), (2, 3), (2, 3)]
    assert _exchanges(lambda a, b: [total(a), total(total(b) + 1), total(a * b)], 2) == [
        (18,), (2, 3)]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["gloo", "mpi"])
def test_steps_compiled(engine, monkeypatch):
    expected = results("gloo", 1, 4)
    monkeypatch.setenv("MAXJAX_COMPILE", "always")
    compare(results.__wrapped__(engine, 2, 2), expected)
