"""Random draws: names of the families with random dtypes, shapes and arguments."""

from __future__ import annotations

from collections.abc import Sequence


def main(names: Sequence[str], count: int, verbose: bool) -> int:
    raise NotImplementedError
