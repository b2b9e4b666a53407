"""jax.memory: where arrays are, by the names of shardings. The CPU has one memory."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._base.shardings import MemorySpace as Space

__all__ = ["Space"]
explain_missing_names(__name__)
