"""jax.scipy.spatial."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax.scipy.spatial import transform as transform

explain_missing_names(__name__)
