"""Every way to split the inputs of the cases over meshes of up to 8 devices gives the same result.

One case represents all that are equivalent to the engine (``pattern``), and one choice of specs all
that result from exchanging mesh axes of the same size. The full run takes an hour or more:

    python -m tests.sharding.test_every_spec DONE_FILE [MOST]

resumes where ``DONE_FILE`` ends. For a case with more than ``MOST`` ways (1,000) over one mesh,
that many are drawn; their line says so.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._sharding.engine import partition
from maxjax._sharding.graph import normalize
from maxjax._sharding.specs import Spec
from tests.sharding.sharded import check_equal, unsharded
from tests.sharding.test_cases import NOT_SPLIT, legal_specs, pattern, primitives, program
from tests.support import harness

MESHES: tuple[dict[str, int], ...] = (
    {"x": 2}, {"x": 8}, {"x": 4, "y": 2}, {"x": 2, "y": 2, "z": 2})
Row = tuple[harness.Case, str, ClosedJaxpr, list[np.ndarray]]


def representatives() -> Iterator[Row]:
    """The first case of each pattern, values and gradients."""
    seen: set[Any] = set()
    for _, cases in sorted(harness.families().items()):
        for case in cases:
            if case.raises or not case.jittable:
                continue
            for mode in ("value", "vjp") if case.differentiable else ("value",):
                with case.precision():
                    closed, args = program(case, mode)
                    key = pattern(normalize(closed))
                    if key in seen or not primitives(closed).isdisjoint(NOT_SPLIT):
                        continue
                    seen.add(key)
                    yield case, mode, closed, args


def renamings(mesh: dict[str, int]) -> list[dict[str, str]]:
    """The permutations of a mesh's axes that keep their sizes."""
    names = list(mesh)
    return [dict(zip(names, order, strict=True)) for order in itertools.permutations(names)
            if all(mesh[a] == mesh[b] for a, b in zip(names, order, strict=True))]


def is_first(specs: tuple[Spec, ...], renamed: list[dict[str, str]]) -> bool:
    """Whether no renaming of the axes results in an earlier choice."""
    key = [[dim.axes for dim in spec.dims] for spec in specs]
    return all(key <= [[tuple(names[axis] for axis in axes) for axes in dims] for dims in key]
               for names in renamed)


def ways(name: str, args: list[np.ndarray], mesh: dict[str, int], most: int) -> tuple[
        list[tuple[Spec, ...]], int]:
    """The choices of specs, and their number including all renamings."""
    options = [list(legal_specs(np.shape(arg), mesh)) for arg in args]
    count = math.prod(map(len, options))
    renamed = renamings(mesh)
    if count <= most * len(renamed):
        return [specs for specs in itertools.product(*options) if is_first(specs, renamed)], count
    rng = random.Random(zlib.crc32(name.encode()))
    return [tuple(rng.choice(some) for some in options) for _ in range(most)], count


def failures(row: Row, mesh: dict[str, int], chosen: list[tuple[Spec, ...]]) -> list[str]:
    case, mode, closed, args = row
    expected = unsharded(closed, args)
    found = []
    for specs in chosen:
        try:
            check_equal(partition(closed, mesh, list(specs)), closed, args, case.tolerance,
                        mode != "value", expected)
        except Exception as error:
            found.append(f"{case.name}, {mode}, {mesh}, {[str(spec) for spec in specs]}: "
                         f"{type(error).__name__}: {str(error)[:200]}")
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("mesh", MESHES[:2], ids=str)
def test_every_spec_over_one_axis(mesh):
    found = []
    for row in representatives():
        with row[0].precision():
            found += failures(row, mesh, ways(row[0].name, row[3], mesh, 1000)[0])
    assert not found, f"{len(found)} failures\n" + "\n".join(found[:40])


def run(done_file: Path, most: int) -> None:
    lines = done_file.read_text().splitlines() if done_file.exists() else []
    done = {tuple(json.loads(line)["of"]) for line in lines}
    rows = list(representatives())
    with done_file.open("a") as out:
        for mesh, row in itertools.product(MESHES, rows):
            of = (row[0].name, row[1], str(mesh))
            if of in done:
                continue
            chosen, count = ways(row[0].name, row[3], mesh, most)
            with row[0].precision():
                found = failures(row, mesh, chosen)
            json.dump({"of": of, "run": len(chosen), "specs": count, "failures": found,
                       "drawn": count > most * len(renamings(mesh))}, out)
            out.write("\n")
            out.flush()


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 1000)
