"""jax.experimental.compilation_cache."""

from __future__ import annotations
