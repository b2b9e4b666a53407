"""jax.experimental.roofline.rooflines: in JAX the rules of its primitives, there once it is
imported; those of maxjax are there from the start."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names

explain_missing_names(__name__)
