"""The tables' cases of complex numbers in double precision: values, tangents and cotangents on the
vector machine against tier 0."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.support import mojo_programs
from tests.support.harness import Case

pytest.importorskip("max.engine")

pytestmark = pytest.mark.xdist_group("mojo")

WIDE = {np.dtype(np.complex64): np.complex128, np.dtype(np.float32): np.float64}


def widened(case: Case) -> Case | None:
    """A case of single precision in double; None for one without complex operands."""
    kinds = {x.dtype for x in case.args if isinstance(x, np.ndarray)}
    if case.x64 or np.dtype(np.complex64) not in kinds:
        return None
    args = [x.astype(WIDE.get(x.dtype, x.dtype)) if isinstance(x, np.ndarray) else x
            for x in case.args]
    return dataclasses.replace(case, args=tuple(args), x64=True)


FAMILIES = {name: found for name, cases in mojo_programs.tables().items() if (
    found := [wide for case in cases if (wide := widened(case)) is not None])}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_family_of_cases_agrees_without_kernels(family, monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    items = mojo_programs.family(FAMILIES[family])
    mojo_programs.check_all(items)
    reasons = mojo_programs.host_report(items)
    print(*(f"{reason}: {len(names)}" for reason, names in sorted(reasons.items())), sep="\n")
