"""Both tiers run, and compared: what ``check_tiers`` asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.ownership import locked
from maxjax._ir.types import ShapedArray
from maxjax._runtime.compiled import CompiledProgram
from maxjax._runtime.program import Program


def check_tiers(program: Program, compiled: CompiledProgram, values: list[np.ndarray]) -> list[Any]:
    """Runs both tiers.

    Raises:
      AssertionError: they differ by more than rounding.
    """
    with np.errstate(all="ignore"):
        if program.donated:     # neither tier may overwrite what the other one reads
            values = list(map(locked, values))
            expected = program.tier0(values[:])
        else:
            expected = program.tier0(*values)
    results = compiled(values)
    for number, (aval, ours, theirs) in enumerate(
            zip(program.out_avals, results, expected, strict=True)):
        difference = disagreement(np.asarray(ours), np.asarray(theirs), aval)
        if difference:
            raise AssertionError(
                f"the tiers differ: output {number} ({aval.str_short()}) of "
                f"{program.closed.jaxpr.debug_info or 'a program'}: {difference}")
    return results


# Rounding errors grow with the length of sums: relative to the largest element of the output. Those
# of a part of a complex number are relative to the whole: a turn by pi leaves 1e-16 of it.
_RELATIVE = {"float16": 2e-2, "bfloat16": 6e-2, "float32": 2e-4, "float64": 1e-10}


def disagreement(ours: np.ndarray, theirs: np.ndarray, aval: ShapedArray) -> str | None:
    """How two results differ by more than rounding; None if they do not."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"MAX gives {ours.dtype}{ours.shape}, the interpreter {theirs.dtype}{theirs.shape}"
    if not dtypes.is_inexact(aval.dtype):
        count = int(np.sum(ours != theirs))
        return f"{count} of {ours.size} elements" if count else None
    dtype = aval.dtype
    if dtypes.is_complex(dtype):
        dtype = dtypes.real_dtype(dtype)
        ours, theirs = (np.stack([x.real, x.imag]) for x in (ours, theirs))
    left, right = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if not np.array_equal(np.isnan(left), np.isnan(right)):
        return "NaN at different places"
    finite = np.isfinite(left) & np.isfinite(right)
    if not np.array_equal(left[~finite & ~np.isnan(left)], right[~finite & ~np.isnan(right)]):
        return "infinities at different places"
    if not finite.any():
        return None
    scale = max(float(np.max(np.abs(right[finite]))), 1e-30)
    worst = float(np.max(np.abs(left[finite] - right[finite])))
    if worst > _RELATIVE.get(dtype.name, 0.1) * scale:
        return f"by up to {worst:.3g}, at a scale of {scale:.3g}"
    return None
