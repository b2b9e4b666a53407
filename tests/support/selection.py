"""Which parameters of a test the usual run leaves to the extended one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def extended_but(usual: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """``values`` as parameters, of which those that are not ``usual`` are marked extended."""
    kept = frozenset(usual)
    values = list(values)
    assert kept <= frozenset(values), f"no parameters: {kept - frozenset(values)}"
    return [value if value in kept else pytest.param(value, marks=pytest.mark.extended)
            for value in values]
