"""jax.interpreters: rules for primitives of one's own."""

from __future__ import annotations

from maxjax._base.missing import missing_names
from maxjax.interpreters import ad as ad
from maxjax.interpreters import batching as batching
from maxjax.interpreters import mlir as mlir

__getattr__ = missing_names(__name__)
