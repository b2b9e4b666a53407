"""jax.scipy.spatial."""

from __future__ import annotations

from maxjax._base.missing import missing_names
from maxjax.scipy.spatial import transform as transform

__getattr__ = missing_names(__name__)
