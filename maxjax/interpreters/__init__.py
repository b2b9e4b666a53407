"""jax.interpreters: rules for custom primitives, and inspection of programs."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax.interpreters import ad as ad
from maxjax.interpreters import batching as batching
from maxjax.interpreters import mlir as mlir
from maxjax.interpreters import partial_eval as partial_eval
from maxjax.interpreters import pxla as pxla
from maxjax.interpreters import xla as xla

explain_missing_names(__name__)
