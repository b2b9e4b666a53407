"""The graphs that MAX gets for an accelerator: all are built, and some are compiled: for simulated
memory, where they run, and for ``sm_90``, which need not be there for that."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from maxjax._ir.jaxpr import Jaxpr, Literal
from maxjax._ir.serialize import dumps
from maxjax._max.graph import session
from maxjax._max.graph.accelerator import HOST_STEPS, device_reason
from maxjax._max.graph.backend import BUILDER, executables, texts
from maxjax._max.graph.service import CompileService
from maxjax._max.versions import cpu_target, versions
from maxjax._runtime.compiled import CompiledProgram
from maxjax._runtime.tiering import tiering
from maxjax._transforms.partition import Piece, partition
from tests.support import harness, tier1

FAMILIES = {name: cases for name, cases in harness.families().items()
            if not isinstance(cases, Exception)}
Piecewise = tuple[str, tier1.Compiled, Sequence[Piece]]


def pieces_of(item: tier1.Compiled) -> list[Piece]:
    return partition(item.program.opened.jaxpr, device_reason)


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
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


def test_host_steps_are_primitives_of_the_tables():
    names = {eqn.primitive.name for cases in FAMILIES.values() for case in tier1.select(cases)
             for eqn in tier1.program_of(case, "").program.opened.jaxpr.eqns}
    assert set(HOST_STEPS) <= names


@functools.cache
def chosen() -> list[Piecewise]:
    """A small case of each family that has something to compile for an accelerator."""
    found = []
    for family, cases in sorted(FAMILIES.items()):
        made = [tier1.program_of(case, f"{family}_") for case in tier1.select(cases, 6)]
        cut = [(family, item, pieces_of(item)) for item in made]
        cut = [one for one in cut if any(not piece.on_host for piece in one[2])]
        if cut:
            found.append(min(cut, key=lambda one: sum(
                len(piece.jaxpr.eqns) for piece in one[2] if not piece.on_host)))
    return found


@pytest.fixture
def service() -> Iterator[CompileService]:
    """Another worker: a process compiles for one target."""
    service = CompileService(BUILDER)
    yield service
    service.shutdown()


def compiled(service: CompileService, target: str, **options: object):
    text = dumps({"pieces": [text for family, _, pieces in chosen()
                             for text in texts(pieces, f"{family}_")]})
    key = "\n".join([versions(), cpu_target(), target, text]).encode()
    job = service.submit(key, text, lambda path, error: None, 0.0,
                         {"directory": str(service.cache.directory), **options})
    return service.wait(job, timeout=1500.0)


@pytest.mark.exhaustive
def test_values_on_simulated_memory(service):
    models = session.load(compiled(service, "simulated", device="simulated"))
    for family, item, pieces in chosen():
        program = item.program
        run = CompiledProgram(program.opened.jaxpr, pieces,
                              executables(pieces, models, f"{family}_"))
        with np.errstate(all="ignore"):
            expected = program.tier0(*item.values)
        for ours, theirs in zip(run(item.values), expected, strict=True):
            harness.assert_close(np.asarray(ours), np.asarray(theirs), item.case.tolerance,
                                 signed_zeros=item.case.signed_zeros, what=family)


@pytest.mark.exhaustive
def test_compiles_for_sm_90(service):
    path = compiled(service, "sm_90", device=0, virtual_target=["cuda", "sm_90"])
    assert path.stat().st_size > 0
