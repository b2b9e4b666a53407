"""jax.extend: for libraries that stand on maxjax's machinery."""

from __future__ import annotations

from maxjax._base.missing import missing_names
from maxjax.extend import core as core
from maxjax.extend import mojo as mojo

__getattr__ = missing_names(__name__)
