"""Whether two libraries computed the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np


def save(path: Path, arrays: Sequence[np.ndarray]) -> None:
    np.savez(path, *arrays)


def load(path: Path) -> list[np.ndarray]:
    """The arrays of a file, in the order in which they were saved."""
    with np.load(path) as file:
        return [file[f"arr_{number}"] for number in range(len(file.files))]


def disagreement(
    ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], tolerance: float
) -> str | None:
    """How two lists of arrays differ; None if they do not.

    Args:
      tolerance: the largest difference of two elements, relative to the largest element of their
        array; integers, infinities and NaN are the same or differ.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} arrays, not {len(theirs)}"
    for number, (left, right) in enumerate(zip(ours, theirs)):
        if left.shape != right.shape or left.dtype != right.dtype:
            return (
                f"array {number} is {left.dtype}{list(left.shape)}, "
                f"not {right.dtype}{list(right.shape)}"
            )
        if not np.issubdtype(left.dtype, np.floating):
            if not np.array_equal(left, right):
                return f"array {number} has other elements"
            continue
        finite = np.isfinite(right)
        if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
            return f"array {number} is not finite at other places"
        if finite.any():
            scale = float(np.max(np.abs(right[finite])))
            worst = float(np.max(np.abs(left[finite].astype(float) - right[finite])))
            if not worst <= tolerance * scale:
                return f"array {number} differs by {worst:.3g}, at a scale of {scale:.3g}"
    return None
